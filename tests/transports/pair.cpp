// SPDX-License-Identifier: Apache-2.0
#include "transports/pair.h"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <thread>

namespace shoal::transports {
namespace {

using Clock = std::chrono::steady_clock;

#if defined(__SANITIZE_THREAD__)
constexpr bool kForks = false;
#else
constexpr bool kForks = true;
#endif

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

template <typename T>
T take(Result<T> result) {
  require(result.is_ok(), std::string(result.status().text()));
  return result.take();
}

// Whether this machine has what the transport needs: verbs reaches nobody without devices, UCX nobody without its library.
bool works_here(const link::Transport& transport) {
  link::Endpoint self;
  self.self = identity(0, Apart::processes);
  self.shm_disable = transport.carrier() == link::Carrier::network;
  return transport.carrier() != link::Carrier::network || transport.reaches(self, identity(1, Apart::processes));
}

bool has_ipv6() { return link::listen_tcp("::1", 0).is_ok(); }

// Two ends of a blocking stream whose reads give up at last.
std::array<link::Descriptor, 2> sync_sockets() {
  std::array<int, 2> ends{};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "socketpair");
  const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
  for (const int end : ends) ::setsockopt(end, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return {link::Descriptor(ends[0]), link::Descriptor(ends[1])};
}

std::string play(const Arrangement& arrangement, const Options& options, int side, link::Descriptor stream, int to_other,
                 const Script& script) {
  try {
    Party party(arrangement, options, side, std::move(stream), to_other);
    script(party);
    return {};
  } catch (const std::exception& failure) {
    return fmt::format("{}, rank {}: {}\n", arrangement.name(), side, failure.what());
  }
}

std::string run_threads(const Arrangement& arrangement, const Options& options, const Script& lower, const Script& higher) {
  Streams streams = make_streams(arrangement.transport->carrier(), arrangement.host);
  auto sync = sync_sockets();
  std::string failure;
  std::thread thread([&] {
    failure = play(arrangement, options, 1, std::move(streams.accepting), sync[1].get(), higher);
    ::shutdown(sync[1].get(), SHUT_RDWR);
  });
  std::string own = play(arrangement, options, 0, std::move(streams.connecting), sync[0].get(), lower);
  ::shutdown(sync[0].get(), SHUT_RDWR);
  thread.join();
  return own + failure;
}

[[noreturn]] void be_child(const Arrangement& arrangement, const Options& options, link::Descriptor stream, link::Descriptor sync,
                           link::Descriptor report, const Script& script) {
  const std::string failure = play(arrangement, options, 1, std::move(stream), sync.get(), script);
  if (!failure.empty()) require(::write(report.get(), failure.data(), failure.size()) > 0, "report");
  ::_exit(failure.empty() ? 0 : 1);
}

std::string run_processes(const Arrangement& arrangement, const Options& options, const Script& lower, const Script& higher) {
  Streams streams = make_streams(arrangement.transport->carrier(), arrangement.host);
  auto sync = sync_sockets();
  auto report = sync_sockets();
  const pid_t child = ::fork();
  require(child >= 0, "fork");
  if (child == 0) {
    streams.connecting.reset();
    sync[0].reset();
    be_child(arrangement, options, std::move(streams.accepting), std::move(sync[1]), std::move(report[1]), higher);
  }
  streams.accepting.reset();
  sync[1].reset();
  report[1].reset();
  std::string own = play(arrangement, options, 0, std::move(streams.connecting), sync[0].get(), lower);
  sync[0].reset();
  std::string failure(4096, '\0');
  const ssize_t said = ::read(report[0].get(), failure.data(), failure.size());
  failure.resize(said > 0 ? static_cast<std::size_t>(said) : 0);
  if (said < 0) ::kill(child, SIGKILL);
  int state = 0;
  ::waitpid(child, &state, 0);
  const bool killed = WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL;
  const bool as_wanted = options.higher_is_killed ? killed : WIFEXITED(state) && WEXITSTATUS(state) == 0;
  if (!as_wanted && failure.empty())
    failure = fmt::format("{}: the other process ended with state {:#x}\n", arrangement.name(), state);
  return own + failure;
}

}  // namespace

std::string Arrangement::name() const {
  return fmt::format("{}{}{}{}{} between {}{}", transport->name(), *ucx_tls == '\0' ? "" : " with UCX_TLS=", ucx_tls,
                     *host == '\0' ? "" : " on ", host, apart == Apart::threads ? "threads" : "processes",
                     shim ? ", slowed" : "");
}

std::vector<Arrangement> arrangements() {
  ::setenv("NCCL_NET", "UCX", 1);  // else nobody asks for it
  std::vector<Arrangement> all;
  const Tested tested = tested_transports();
  for (link::Transport* transport : tested.transports) {
    if (transport->name() == "ucx") {
      // ThreadSanitizer sees the threads of UCX, but not how they keep out of each other's way.
      if (!kForks || !works_here(*transport)) continue;
      for (const char* tls : {"tcp", "shm"}) {
        all.push_back({.transport = transport, .apart = Apart::threads, .host = "127.0.0.1", .ucx_tls = tls});
        all.push_back({.transport = transport, .apart = Apart::processes, .host = "127.0.0.1", .ucx_tls = tls});
      }
      continue;
    }
    if (!works_here(*transport)) continue;
    const bool network = transport->carrier() == link::Carrier::network;
    const bool can_fork = kForks && tested.between_processes && transport->carrier() != link::Carrier::none;
    const std::vector<const char*> hosts = !network     ? std::vector{""}
                                           : has_ipv6() ? std::vector{"127.0.0.1", "::1"}
                                                        : std::vector{"127.0.0.1"};
    for (const char* host : hosts) {
      all.push_back({transport, Apart::threads, host});
      if (can_fork) all.push_back({transport, Apart::processes, host});
    }
  }
  return all;
}

std::vector<Arrangement> arrangements_and_slowed() {
  std::vector<Arrangement> all = arrangements();
  const std::size_t plain = all.size();
  for (std::size_t i = 0; i < plain; ++i) {
    all.push_back(all[i]);
    all.back().shim = Shim{.latency = std::chrono::microseconds(300), .jitter = std::chrono::microseconds(200)};
  }
  return all;
}

std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t number) {
  std::vector<std::byte> made(bytes);
  std::uint64_t state = number * 0x9e3779b97f4a7c15u + 1;
  for (std::byte& byte : made) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
  return made;
}

link::PeerIdentity identity(int side, Apart apart) {
  return {.rank = {side},
          .host = "testhost",
          .host_id = "this-machine",
          .process = apart == Apart::threads ? 7u : 7u + static_cast<std::uint64_t>(side),
          .pid = 1000 + side,
          .address = "127.0.0.1:1",
          .local_address = "some-name"};
}

Streams make_local_streams() {
  std::array<int, 2> ends{};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) == 0, "socketpair");
  return {link::Descriptor(ends[0]), link::Descriptor(ends[1])};
}

Streams make_streams(link::Carrier carrier, const char* host) {
  if (carrier == link::Carrier::none) return {};
  if (carrier == link::Carrier::local) return make_local_streams();
  const link::Listener listener = take(link::listen_tcp(host, 0));
  Streams streams{take(link::start_connect_tcp(listener.address)), {}};
  const auto deadline = Clock::now() + kPatience;
  while (!streams.accepting.is_open() || !take(link::connect_finished(streams.connecting, listener.address))) {
    require(Clock::now() < deadline, "connecting to a listener of ours");
    if (streams.accepting.is_open()) continue;
    if (auto accepted = take(link::accept_stream(listener))) streams.accepting = std::move(*accepted);
  }
  return streams;
}

Party::Party(const Arrangement& arrangement, const Options& options, int side, link::Descriptor stream, int to_other)
    : page_(take(link::DoorbellPage::create())), side_(side), to_other_(to_other) {
  endpoint_.self = identity(side, arrangement.apart);
  endpoint_.communicator = 42;
  endpoint_.max_message = options.max_message;
  endpoint_.credits = options.credits;
  // Whoever goes over the network goes there within a host only if nothing better may be used.
  endpoint_.shm_disable = arrangement.transport->carrier() == link::Carrier::network;
  endpoint_.loopback_disable = arrangement.transport->carrier() != link::Carrier::none;
  endpoint_.doorbell = &page_.doorbell();
  endpoint_.doorbell_descriptor = page_.descriptor();
  connect(arrangement, identity(1 - side, arrangement.apart), std::move(stream));
}

void Party::connect(const Arrangement& arrangement, const link::PeerIdentity& peer, link::Descriptor stream) {
  require(arrangement.transport->reaches(endpoint_, peer), "the transport reaches the peer");
  link::Transport* transport = arrangement.transport;
  if (arrangement.shim) {
    shimmed_ = std::make_unique<ShimmedTransports>(*arrangement.shim, std::span<link::Transport* const>(&transport, 1));
    transport = shimmed_->transports().front();
  }
  const auto connection = transport->connect(endpoint_, peer, 0, std::move(stream), side_ == 0);
  const auto deadline = Clock::now() + kPatience;
  while (!link_) {
    link_ = take(connection->progress());
    require(Clock::now() < deadline, "a link within the time");
    ::sched_yield();
  }
}

void Party::check(bool condition, const std::string& what) { require(condition, what); }

void Party::sync() const {
  char byte = 's';
  require(::send(to_other_, &byte, 1, MSG_NOSIGNAL) == 1 && ::recv(to_other_, &byte, 1, 0) == 1, "the other side comes to sync");
}

void Party::until(const std::string& what, const std::function<bool()>& done) {
  const auto deadline = Clock::now() + kPatience;
  for (std::uint64_t turn = 1; !done(); ++turn) {
    link_->progress();
    if (turn % 16 == 0) ::sched_yield();
    if (turn % 256 == 0) doze();  // a device that is made of software needs the processor, too
    if (turn % 4096 == 0) require(Clock::now() < deadline, "waited too long for: " + what);
  }
}

void Party::doze() {
  const link::Wakeup wakeup = link_->wakeup();
  if (wakeup.descriptor < 0 || wakeup.rings_doorbell || wakeup.at) return;
  pollfd news{.fd = wakeup.descriptor, .events = wakeup.events, .revents = 0};
  (void)::poll(&news, 1, 1);
}

void Party::send(std::span<const std::byte> payload, std::uint32_t tag) {
  std::span<std::byte> memory;
  until("credit", [&] { return (memory = link_->acquire({payload.size()})).data() != nullptr; });
  require(memory.size() == payload.size(), "acquire gives exactly what was asked for");
  std::copy(payload.begin(), payload.end(), memory.begin());
  link_->commit({tag});
}

void Party::receive(std::span<const std::byte> expected, std::uint32_t tag) {
  const link::Message* message = nullptr;
  until("a message", [&] { return (message = link_->front()) != nullptr; });
  require(link_->front() == message, "front stays the same until release");
  require(message->tag.value == tag, fmt::format("tag {} came, {} expected", message->tag.value, tag));
  require(message->payload.size() == expected.size(),
          fmt::format("{} bytes came, {} expected with tag {}", message->payload.size(), expected.size(), tag));
  require(std::equal(expected.begin(), expected.end(), message->payload.begin()), fmt::format("the bytes of message {}", tag));
  link_->release();
}

void Party::flush() {
  until("flush", [&] { return link_->flushed(); });
}

void Party::expect_health() {
  const Status health = link_->health();
  require(health.is_ok(), "not healthy: " + std::string(health.text()));
}

Status Party::await_loss() {
  Status health;
  until("the loss of the peer", [&] { return !(health = link_->health()).is_ok(); });
  return health;
}

void Party::sleep_until(const std::function<bool()>& ready) {
  const link::Wakeup wakeup = link_->wakeup();
  require(wakeup.descriptor >= 0 || wakeup.rings_doorbell, "there is something to sleep on");
  while (true) {
    const std::uint32_t ticket = doorbell().arm();
    link_->progress();
    if (ready()) break;
    const link::Wakeup now = link_->wakeup();
    const auto longest = now.at ? std::max(*now.at - Clock::now(), Clock::duration(0)) : Clock::duration(kPatience);
    bool woken = false;
    if (wakeup.rings_doorbell) {
      woken = doorbell().sleep(ticket, longest);
    } else {
      pollfd stream{.fd = wakeup.descriptor, .events = now.events, .revents = 0};
      const auto ms = std::chrono::ceil<std::chrono::milliseconds>(longest);
      woken = ::poll(&stream, 1, static_cast<int>(ms.count())) > 0;
    }
    woken |= now.at.has_value();
    require(woken, "nobody woke the sleeper");
  }
  doorbell().disarm();
}

std::string run(const Arrangement& arrangement, const Options& options, const Script& lower, const Script& higher) {
  // Read anew whenever nothing of UCX is in use.
  if (*arrangement.ucx_tls != '\0') ::setenv("UCX_TLS", arrangement.ucx_tls, 1);
  try {
    return arrangement.apart == Apart::threads ? run_threads(arrangement, options, lower, higher)
                                               : run_processes(arrangement, options, lower, higher);
  } catch (const std::exception& failure) {
    return failure.what();
  }
}

}  // namespace shoal::transports
