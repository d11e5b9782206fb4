// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/connection.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/log.h"
#include "transports/peer_status.h"
#include "transports/verbs/link.h"

namespace shoal::transports {

using verbs::Blueprint;
using verbs::Queues;

namespace {

constexpr const char* kName = "verbs";
constexpr char kJoined = 'J';
constexpr char kProven = 'P';
// No packet in such a time: there is no path, though both devices have a wire.
constexpr std::chrono::seconds kPatience{30};
constexpr std::chrono::seconds kPatienceOfRefusal{2};

Result<link::Mapping> plain_memory(std::size_t bytes) {
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t size = (bytes + page - 1) / page * page;
  void* const start = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return fail(Code::system_error, "{} bytes for a link cannot be had: {}", size, errno_text(errno));
  return link::Mapping{{static_cast<std::byte*>(start), size}};
}

Status watch(const link::Descriptor& news, int descriptor) {
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {}};
  if (::epoll_ctl(news.get(), EPOLL_CTL_ADD, descriptor, &event) == 0) return {};
  return fail(Code::system_error, "epoll_ctl: {}", errno_text(errno));
}

}  // namespace

VerbsConnection::VerbsConnection(const link::Endpoint& self, const link::PeerIdentity& peer, int channel, link::Descriptor stream,
                                 Result<std::vector<verbs::Rail>> rails, const IbOptions& options)
    : rank_(self.self.rank.value), peer_(peer), layout_(self.max_message_on(channel), self.credits), stream_(std::move(stream)) {
  ours_.credits = static_cast<std::uint32_t>(self.credits);
  ours_.max_message = layout_.max_message();
  failure_ = prepare(std::move(rails), options);
  if (!failure_.is_ok()) {
    ours_.refuse(failure_.text());
    queues_.reset();
    step_ = Step::refusing;
    deadline_ = Clock::now() + kPatienceOfRefusal;
  }
  const auto* const bytes = reinterpret_cast<const char*>(&ours_);
  unsaid_.assign(bytes, bytes + verbs::kBlueprint);
}

Status VerbsConnection::prepare(Result<std::vector<verbs::Rail>> rails, const IbOptions& options) {
  if (!rails.is_ok()) return rails.status();
  if (layout_.max_message() > UINT32_MAX)
    return fail(Code::invalid_usage, "messages of {} bytes: verbs takes {}", layout_.max_message(), UINT32_MAX);
  Result<link::Mapping> memory = plain_memory(layout_.bytes());
  if (!memory.is_ok()) return memory.status();
  Result<std::unique_ptr<Queues>> queues = Queues::open(rails.take(), options, layout_, memory.take());
  if (!queues.is_ok()) return queues.status();
  queues_ = queues.take();
  queues_->describe(ours_);
  news_ = link::Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  if (!news_.is_open()) return fail(Code::system_error, "epoll_create1: {}", errno_text(errno));
  if (Status watched = watch(news_, stream_.get()); !watched.is_ok()) return watched;
  for (const int each : queues_->descriptors())
    if (Status watched = watch(news_, each); !watched.is_ok()) return watched;
  return {};
}

Result<std::unique_ptr<link::Link>> VerbsConnection::progress() {
  if (step_ == Step::failed) return failure_;
  const Status said = say_all();
  if (step_ == Step::refusing) {
    // A stream that is closed with bytes unread is reset, and takes the refusal along.
    const Result<bool> heard = hear(std::as_writable_bytes(std::span(&theirs_, 1)), heard_);
    if (said.is_ok() && heard.is_ok() && !*heard && Clock::now() < deadline_) return std::unique_ptr<link::Link>();
  } else {
    failure_ = said.is_ok() ? step() : said;
  }
  if (!failure_.is_ok()) {
    step_ = Step::failed;
    queues_.reset();
    stream_.reset();
    return failure_;
  }
  if (step_ != Step::proven || !unsaid_.empty()) return std::unique_ptr<link::Link>();
  const Result<bool> proven = hear_byte(kProven);
  if (!proven.is_ok()) return failure_ = proven.status();
  return *proven ? finish() : std::unique_ptr<link::Link>();
}

link::Wakeup VerbsConnection::wakeup() const {
  if (queues_ == nullptr || step_ == Step::failed) return {};
  queues_->arm();  // what has come before is found by the next look, which a link in the making gets often
  const int events = POLLIN | (unsaid_.empty() ? 0 : POLLOUT);
  return {.descriptor = step_ == Step::greeting ? news_.get() : stream_.get(), .events = static_cast<short>(events)};
}

Status VerbsConnection::step() {
  if (step_ == Step::introducing)
    if (Status introduced = introduce(); !introduced.is_ok()) return introduced;
  if (step_ == Step::joining) {
    const Result<bool> joined = hear_byte(kJoined);
    if (!joined.is_ok()) return joined.status();
    if (*joined) {
      step_ = Step::greeting;
      deadline_ = Clock::now() + kPatience;
      for (std::size_t i = 0; i < queues_->count(); ++i)
        queues_->post(i, {.to = queues_->peer_memory(),
                          .remote_key = queues_->peer_key(i),
                          .immediate = verbs::immediate(verbs::Kind::greeting, i),
                          .counts = true,
                          .told = true});
    }
  }
  return step_ == Step::greeting ? greet() : Status();
}

Status VerbsConnection::introduce() {
  const Result<bool> heard = hear(std::as_writable_bytes(std::span(&theirs_, 1)), heard_);
  if (!heard.is_ok()) return heard.status();
  if (!*heard) return {};
  if (Status checked = verbs::check(theirs_, ours_); !checked.is_ok()) return peer_failure(kName, peer_, "{}", checked.text());
  if (Status joined = queues_->join(ours_, theirs_); !joined.is_ok()) return joined;
  say(kJoined);
  step_ = Step::joining;
  return say_all();
}

Status VerbsConnection::greet() {
  bool strange = false;
  queues_->poll([&](std::uint32_t immediate) {
    ++greetings_;
    strange |= verbs::kind_of(immediate) != verbs::Kind::greeting;
  });
  queues_->look_at_devices();
  if (strange) return peer_failure(kName, peer_, "sent something else before its greetings");
  if (!queues_->failure().empty()) return peer_failure(kName, peer_, "cannot be reached: {}", queues_->failure());
  if (queues_->flushed() && greetings_ >= queues_->count()) {
    say(kProven);
    step_ = Step::proven;
    return say_all();
  }
  if (Clock::now() < deadline_) return {};
  return peer_failure(kName, peer_, "cannot be reached: no packet came or was acknowledged in {} s", kPatience.count());
}

Status VerbsConnection::say_all() {
  const link::Transfer put = link::write_some(stream_.get(), std::as_bytes(std::span(unsaid_)));
  unsaid_.erase(unsaid_.begin(), unsaid_.begin() + static_cast<std::ptrdiff_t>(put.bytes));
  if (!put.closed) return {};
  return peer_failure(kName, peer_, "broke off: {}", put.error != 0 ? errno_text(put.error) : "the stream was closed");
}

Result<bool> VerbsConnection::hear(std::span<std::byte> into, std::size_t& heard) {
  const link::Transfer got = link::read_some(stream_.get(), into.subspan(heard));
  heard += got.bytes;
  if (heard == into.size()) return true;
  if (!got.closed) return false;
  return peer_failure(kName, peer_, "broke off: {}", got.error != 0 ? errno_text(got.error) : "it may have no device");
}

Result<bool> VerbsConnection::hear_byte(char wanted) {
  std::byte byte{};
  std::size_t heard = 0;
  const Result<bool> got = hear(std::span(&byte, 1), heard);
  if (!got.is_ok() || !*got) return got;
  if (static_cast<char>(byte) == wanted) return true;
  return peer_failure(kName, peer_, "said {:#04x} where {:#04x} belongs", static_cast<unsigned>(byte),
                      static_cast<unsigned>(wanted));
}

std::unique_ptr<link::Link> VerbsConnection::finish() {
  const verbs::UsablePort& port = queues_->rail(0).port;
  log::info(log::Subsystem::net, rank_, "verbs to rank {}: {} queue pairs by {} ports, first {}:{}, GID index {}",
            peer_.rank.value, queues_->count(), queues_->rails(), port.device, port.number, port.gid.index);
  return std::make_unique<VerbsLink>(peer_, layout_, std::move(queues_), std::move(stream_), std::move(news_));
}

}  // namespace shoal::transports
