// SPDX-License-Identifier: Apache-2.0
#include "ps/fabric.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "comm/messages.h"
#include "comm/process.h"
#include "core/log.h"
#include "core/shim.h"
#include "transports/transports.h"

namespace shoal::ps {
namespace {

using namespace std::chrono_literals;

// How often a rank looks beyond its links: for abort, for news of other ranks, at the health of its links.
constexpr auto kLookEvery = 50ms;
// A broken link names its peer, but the peer may have left because of somebody else: the control plane is given this long to say.
constexpr auto kGrace = 300ms;
// Two ends of a link in one process find each other in a table, which wakes nobody.
constexpr auto kConnectingNap = 500us;
// Nobody can sleep on a doorbell and on descriptors in one call. A rank with both kinds of links naps on the descriptors: shortly
// at first, longer as nothing comes.
constexpr auto kShortestNap = 200us;
constexpr auto kLongestNap = 2ms;
constexpr int kNapsOfALength = 16;
constexpr int kYields = 16;  // offers of the processor before a sleep: whoever is awaited runs at once

}  // namespace

Result<std::unique_ptr<Fabric>> Fabric::join(const comm::UniqueId& id, Rank rank, const Config& config,
                                             const Environment& environment) {
  std::unique_ptr<Fabric> made(new Fabric);
  made->endpoint_.self = comm::identity_of_this_process(rank, environment);
  if (Status s = made->join_group(id, config, environment); !s.is_ok()) return s;
  return made;
}

Status Fabric::join_group(const comm::UniqueId& id, const Config& config, const Environment& environment) {
  timeout_ = std::chrono::milliseconds(environment.timeout_ms);
  Result<link::DoorbellPage> page = link::DoorbellPage::create();
  if (!page.is_ok()) return page.status();
  doorbell_.emplace(page.take());
  event_ = link::Descriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!event_.is_open()) return fail(Code::system_error, "eventfd: {}", errno_text(errno));

  link::Listener local;
  // Where abstract UNIX names do not exist, ranks of one host talk over TCP.
  if (Result<link::Listener> named = link::listen_local(comm::random_name()); named.is_ok()) {
    local = named.take();
    endpoint_.self.local_address = local.address;
  }

  link::NetworkDoors network;
  Result<comm::Agreement> agreed = comm::bootstrap({&id, 1}, rank(), config.world(), endpoint_.self,
                                                   encode(make_settings(config, environment)), environment, timeout_, &network);
  if (!agreed.is_ok()) return agreed.status();
  agreement_ = agreed.take();
  endpoint_.self.address = network.address();
  Result<Settings> settings = decode_settings(agreement_.settings);
  if (!settings.is_ok()) return note_failure(settings.status());
  settings_ = settings.take();
  if (Status same = compare(rank(), config, settings_.config); !same.is_ok()) return note_failure(same);

  endpoint_.communicator = id.communicator;
  endpoint_.max_message = settings_.max_message;
  endpoint_.credits = settings_.credits;
  endpoint_.shm_disable = settings_.shm_disable;
  endpoint_.loopback_disable = settings_.loopback_disable;
  endpoint_.doorbell = &doorbell_->doorbell();
  endpoint_.doorbell_descriptor = doorbell_->descriptor();
  if (!settings_.shim.empty()) {
    shimmed_ = std::make_unique<transports::ShimmedTransports>(*parse_shim(settings_.shim), transports::transports());
    log::info(rank().value, "SHOAL_SHIM={}: messages are delayed", settings_.shim);
  }
  switchboard_ = std::make_unique<link::Switchboard>(endpoint_, agreement_.peers, id.key,
                                                     shimmed_ ? shimmed_->transports() : transports::transports(),
                                                     std::move(network), std::move(local));
  lines_ = std::vector<Line>(static_cast<std::size_t>(config.world().value));
  for_each_peer([&](Rank, Line&) { ++connecting_; });
  return {};
}

Fabric::~Fabric() {
  if (agreement_.control != nullptr && !aborted_.load() && !failed_.load()) agreement_.control->bye();
}

template <typename F>
void Fabric::for_each_peer(F&& f) {
  const bool worker = config().is_worker(rank());
  const int first = worker ? config().workers : 0, end = worker ? config().world().value : config().workers;
  for (int i = first; i < end; ++i) f(Rank{i}, line({i}));
}

std::string Fabric::describe(Rank peer) const { return comm::describe(agreement_.peers[static_cast<std::size_t>(peer.value)]); }

const link::Message* Fabric::front(Rank peer) {
  Line& from = line(peer);
  return from.link == nullptr ? nullptr : from.link->front();
}

void Fabric::release(Rank peer) {
  Line& from = line(peer);
  from.traffic.received.count(from.link->front()->payload.size() - kHeader, kHeader);
  from.link->release();
}

Status Fabric::drive(Actor& actor) {
  int yields = 0;
  Clock::time_point next_look = Clock::now();
  while (true) {
    Result<bool> moved = actor.step();
    progress();
    if (moved.is_ok() && *moved) {
      yields = naps_ = 0;
    } else if (moved.is_ok() && actor.finished() && flushed()) {
      return failure();
    } else if (moved.is_ok() && ++yields <= kYields) {
      sched_yield();
    } else if (moved.is_ok()) {
      sleep(
          [&] {
            moved = actor.step();
            return moved.is_ok() && !*moved && !actor.finished();
          },
          std::max<std::chrono::nanoseconds>(next_look - Clock::now(), 1us));
      if (moved.is_ok() && *moved) yields = naps_ = 0;
    }
    if (!moved.is_ok()) return note_failure(moved.status());
    const Clock::time_point now = Clock::now();
    if (now < next_look) continue;
    next_look = now + kLookEvery;
    if (Status s = look(actor, now); !s.is_ok()) return note_failure(s);
  }
}

void Fabric::connect() {
  switchboard_->progress();
  for_each_peer([&](Rank peer, Line& to) {
    if (to.link != nullptr || !connect_failure_.is_ok()) return;
    Result<link::Link*> made = switchboard_->link(peer, 0);
    if (!made.is_ok()) {
      connect_failure_ = made.status();
      connect_failed_since_ = Clock::now();
    } else if (*made != nullptr) {
      to.link = *made;
      to.on_descriptor = !to.link->wakeup().rings_doorbell;
      (to.on_descriptor ? any_on_descriptor_ : any_rings_) = true;
      --connecting_;
    }
  });
}

// Moves what needs this thread to move.
void Fabric::progress() {
  if (connecting_ > 0) connect();
  if (!any_on_descriptor_) return;
  for_each_peer([](Rank, Line& each) {
    if (each.on_descriptor) each.link->progress();
  });
}

bool Fabric::flushed() {
  bool all = true;
  for_each_peer([&](Rank, Line& each) { all = all && (each.link == nullptr || each.link->flushed()); });
  return all;
}

// Messages that are known to be on their way, from peers that are listened to, end a sleep when they are due.
std::chrono::nanoseconds Fabric::until_due(std::chrono::nanoseconds longest) {
  const Clock::time_point now = Clock::now();
  for_each_peer([&](Rank, Line& each) {
    if (each.link == nullptr || !each.listening || each.parted) return;
    if (const auto at = each.link->wakeup().at) longest = std::clamp<std::chrono::nanoseconds>(*at - now, 0ns, longest);
  });
  return longest;
}

void Fabric::sleep(const std::function<bool()>& still_nothing, std::chrono::nanoseconds longest) {
  if (shimmed_) longest = until_due(longest);
  if (connecting_ == 0 && !any_on_descriptor_) {
    link::Doorbell& doorbell = *endpoint_.doorbell;
    const std::uint32_t ticket = doorbell.arm();
    if (still_nothing())
      doorbell.sleep(ticket, longest);
    else
      doorbell.disarm();
    return;
  }
  on_descriptors_.store(true, std::memory_order_seq_cst);
  if (still_nothing()) sleep_on_descriptors(longest);
  on_descriptors_.store(false, std::memory_order_relaxed);
}

void Fabric::sleep_on_descriptors(std::chrono::nanoseconds longest) {
  std::vector<pollfd> set{{event_.get(), POLLIN, 0}};
  const auto add = [&](const link::Wakeup& wakeup) {
    if (wakeup.descriptor >= 0 && wakeup.events != 0) set.push_back({wakeup.descriptor, wakeup.events, 0});
  };
  add(agreement_.control->wakeup());
  for_each_peer([&](Rank, Line& each) {
    if (!each.on_descriptor || each.broken_since) return;
    link::Wakeup wakeup = each.link->wakeup();
    // News that this rank would not take now would end every sleep at once.
    if (!each.listening || each.parted) wakeup.events = static_cast<short>(wakeup.events & ~POLLIN);
    add(wakeup);
  });
  if (connecting_ > 0) {
    std::vector<link::Wakeup> making;
    switchboard_->wakeups(making);
    std::for_each(making.begin(), making.end(), add);
    longest = std::min<std::chrono::nanoseconds>(longest, kConnectingNap);
  }
  if (any_rings_) {
    const auto nap = kShortestNap * (std::int64_t{1} << std::min(naps_++ / kNapsOfALength, 8));
    longest = std::min({longest, std::chrono::nanoseconds(nap), std::chrono::nanoseconds(kLongestNap)});
  }
  const timespec timeout{.tv_sec = static_cast<time_t>(longest / 1s), .tv_nsec = static_cast<long>((longest % 1s).count())};
  ppoll(set.data(), set.size(), &timeout, nullptr);
  std::uint64_t rings = 0;
  if ((set[0].revents & POLLIN) != 0) (void)!::read(event_.get(), &rings, sizeof rings);
}

void Fabric::wake() {
  endpoint_.doorbell->ring();
  const std::uint64_t one = 1;
  if (on_descriptors_.load(std::memory_order_seq_cst)) (void)!::write(event_.get(), &one, sizeof one);
}

Status Fabric::look(Actor& actor, Clock::time_point now) {
  if (Status s = failure(); !s.is_ok()) return s;
  if (connect_failed_since_ && now - *connect_failed_since_ >= kGrace) return connect_failure_;
  Status worst;
  for_each_peer([&](Rank, Line& each) {
    if (worst.is_ok() && each.link != nullptr && !each.parted) worst = health(each, now);
  });
  if (!worst.is_ok()) return worst;
  return timeout_.count() > 0 ? actor.overdue(now, timeout_) : Status();
}

Status Fabric::health(Line& each, Clock::time_point now) {
  Status state = each.link->health();
  if (state.is_ok()) {
    each.broken_since.reset();
    return {};
  }
  if (!each.broken_since) each.broken_since = now;
  return now - *each.broken_since >= kGrace ? state : Status();
}

Status Fabric::note_failure(const Status& why) {
  const std::lock_guard lock(failure_mutex_);
  if (failed_.load(std::memory_order_relaxed)) return failure_;
  failure_ = why;
  failed_.store(true, std::memory_order_release);
  log::warn(rank().value, "{}", failure_.text());
  if (!aborted_.load()) agreement_.control->announce_failure(failure_);
  return failure_;
}

Status Fabric::failure() {
  if (failed_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(failure_mutex_);
    return failure_;
  }
  if (aborted_.load()) return fail(Code::invalid_usage, "rank {}: this group was aborted here", rank().value);
  return agreement_.control->progress();
}

void Fabric::abort() {
  if (aborted_.exchange(true)) return;
  agreement_.control->announce_abort();
  wake();
}

}  // namespace shoal::ps
