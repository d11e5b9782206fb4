// SPDX-License-Identifier: Apache-2.0
#include "comm/communicator.h"

#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "comm/descriptor_limit.h"
#include "comm/host_view.h"
#include "comm/messages.h"
#include "comm/process.h"
#include "comm/watcher.h"
#include "core/expects.h"
#include "core/log.h"
#include "core/path_pattern.h"

namespace shoal::comm {
namespace {

using namespace std::chrono_literals;

constexpr int kLooksAtOnce = 128;  // before the full care of drive: some microseconds
constexpr int kYields = 50;        // more do not make it faster, on 2 processors with 4 and 8 ranks; 1 is too few

int ranks_here(const std::vector<link::PeerIdentity>& peers, const link::PeerIdentity& self) {
  return static_cast<int>(
      std::count_if(peers.begin(), peers.end(), [&](const auto& peer) { return peer.host_id == self.host_id; }));
}

std::vector<pid_t> pids_of(const std::vector<link::PeerIdentity>& peers) {
  std::vector<pid_t> pids;
  for (const link::PeerIdentity& peer : peers) pids.push_back(peer.pid);
  return pids;
}

int only_by_name_here(const std::vector<link::PeerIdentity>& peers, const link::PeerIdentity& self) {
  return static_cast<int>(std::count_if(
      peers.begin(), peers.end(), [&](const auto& peer) { return peer.host == self.host && peer.host_id != self.host_id; }));
}

}  // namespace

Communicator::Communicator(link::PeerIdentity self, World world, const Environment& environment) : world_(world) {
  endpoint_.self = std::move(self);
  plan_waiting(environment);
}

Result<std::unique_ptr<Communicator>> Communicator::create(std::span<const UniqueId> ids, Rank rank, World world,
                                                           const Environment& environment, const Interrupted& interrupted) {
  log::banner(rank.value, fmt::format("NCCL version {}.{}.{} (Shoal {})", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH, SHOAL_VERSION));
  if (ids.empty()) return fail(Code::invalid_argument, "a communicator needs a unique id, and none was given");
  std::unique_ptr<Communicator> made(new Communicator(identity_of_this_process(rank, environment), world, environment));
  Status joined;
  try {
    joined = made->join(ids, environment, interrupted);
  } catch (const std::bad_alloc&) {
    joined = fail(Code::system_error, "rank {} has no memory left to join a communicator of {} ranks", rank.value, world.value);
  }
  if (joined.is_ok()) return made;
  // The others must not wait for this rank.
  if (made->agreement_.control != nullptr) {
    (void)made->note_failure(joined);
  } else if (!made->presented_ || joined.code() == Code::system_error) {
    const link::PeerIdentity self = made->endpoint_.self;
    made.reset();  // descriptors may be what there is a lack of
    decline(ids, rank, world, self, environment, joined);
  }
  return joined;
}

// All of this rank's own that may fail, before the others are asked.
Result<Settings> Communicator::prepare(const Environment& environment) {
  if (Status enough = require_descriptors(world_); !enough.is_ok()) return enough;
  Result<Settings> mine = make_settings(environment);
  if (!mine.is_ok()) return mine;
  if (rank().value == 0 && world_.value > 1) mine->network = find_network();
  Result<link::DoorbellPage> page = link::DoorbellPage::create();
  if (!page.is_ok()) return page.status();
  doorbell_.emplace(page.take());
  return mine;
}

Status Communicator::join(std::span<const UniqueId> ids, const Environment& environment, const Interrupted& interrupted) {
  key_ = ids.front().key;
  const Result<Settings> mine = prepare(environment);
  if (!mine.is_ok()) return mine.status();
  const Result<HostView> view = look_at_host(rank());
  if (!view.is_ok()) return view.status();
  link::NetworkDoors network;
  link::Listener local;
  if (world_.value > 1) {
    // An abstract UNIX name is of this network namespace: where there is none, ranks of this host talk over TCP.
    if (Result<link::Listener> named = link::listen_local(random_name()); named.is_ok()) {
      local = named.take();
      endpoint_.self.local_address = local.address;
    }
  }

  presented_ = true;
  Result<Agreement> agreed = bootstrap(ids, rank(), world_, endpoint_.self, encode(*mine), environment,
                                       std::chrono::milliseconds(environment.timeout_ms), world_.value > 1 ? &network : nullptr,
                                       interrupted, encode(*view));
  if (!agreed.is_ok()) return agreed.status();
  agreement_ = agreed.take();
  endpoint_.self.address = network.address();
  return assemble(ids, *mine, environment, std::move(network), std::move(local));
}

Status Communicator::assemble(std::span<const UniqueId> ids, const Settings& mine, const Environment& environment,
                              link::NetworkDoors network, link::Listener local) {
  Result<Settings> settings = decode_settings(agreement_.settings);
  if (!settings.is_ok()) return settings.status();
  settings_ = settings.take();
  Settings here = mine;
  here.network = settings_.network;  // only rank 0 looks
  if (!(settings_ == here)) log::info(rank().value, "rank 0's settings are used: {} (here: {})", encode(settings_), encode(here));

  const Result<std::vector<HostView>> views = decode_host_views(agreement_.views);
  if (!views.is_ok()) return views.status();
  situation_ = situation_of(agreement_.peers, settings_, *views);
  endpoint_.communicator = ids.front().communicator;
  endpoint_.max_message = longest_message(situation_, settings_);
  if (environment.socket_retry_count >= 0) endpoint_.connects = static_cast<int>(environment.socket_retry_count) + 1;
  if (environment.socket_retry_sleep_ms >= 0)
    endpoint_.connect_pause = std::chrono::milliseconds(environment.socket_retry_sleep_ms);
  endpoint_.credits = settings_.credits;
  endpoint_.shm_disable = settings_.shm_disable;
  endpoint_.loopback_disable = settings_.loopback_disable;
  endpoint_.doorbell = &doorbell_->doorbell();
  endpoint_.doorbell_descriptor = doorbell_->descriptor();
  board_ = std::make_shared<link::Window>(engine::Boards::size(), engine::Boards::head());
  endpoint_.windows = {{engine::kBoardChannel, board_}};
  if (settings_.shim) {
    shimmed_ = std::make_unique<transports::ShimmedTransports>(*settings_.shim, transports::transports());
    log::info(rank().value, "SHOAL_SHIM={}: messages are delayed, and plans over mapped memory are off", settings_.shim_text);
  }
  switchboard_ = std::make_unique<link::Switchboard>(endpoint_, agreement_.peers, key_,
                                                     shimmed_ ? shimmed_->transports() : transports::transports(),
                                                     std::move(network), std::move(local));
  links_ = std::make_unique<engine::Links>(*switchboard_, world_, engine::kAllChannels);
  execution_ = std::make_unique<engine::Execution>(*links_, world_, rank(), ids.front().communicator, pids_of(agreement_.peers));
  plans_.resize(algorithms::all().size());
  tuner_.emplace(settings_, situation_);
  numerics_ = settings_.numerics;
  sends_.resize(static_cast<std::size_t>(world_.value));
  receives_.resize(static_cast<std::size_t>(world_.value));
  plan_waiting(environment);
  if (!environment.dump.empty()) {
    dump_path_ = expand_path(environment.dump, rank().value);
    dump_on_signal();
  }
  if (!environment.trace.empty()) {
    Result<std::unique_ptr<Trace>> trace = Trace::open(expand_path(environment.trace, rank().value), endpoint_.self);
    if (!trace.is_ok()) return trace.status();
    trace_ = trace.take();
  }
  agreement_.control->listen({.answer = [this](std::uint64_t sequence) { return report(sequence); },
                              .news = [this] { endpoint_.doorbell->ring(); },
                              .dump = [this] { write_dump(); }});
  log::info(rank().value, "rank {} of {} on {}: {} ranks here on {} processors, {}", rank().value, world_.value,
            endpoint_.self.host, ranks_here(agreement_.peers, endpoint_.self),
            processors_shared(agreement_.peers, endpoint_.self), encode(settings_));
  if (const int apart = only_by_name_here(agreement_.peers, endpoint_.self); apart > 0)
    log::info(rank().value, "{} ranks have this host's name but not its memory (another network namespace or boot): TCP is used",
              apart);
  return {};
}

// Spinning pays while every rank of this host has a processor of its own; else whoever spins keeps off the rank it waits for.
// There a few offers of the processor come before sleep: the next rank runs at once, where a wake-up takes several microseconds.
void Communicator::plan_waiting(const Environment& environment) {
  const bool crowded = ranks_here(agreement_.peers, endpoint_.self) > processors_shared(agreement_.peers, endpoint_.self);
  const auto chosen = environment.spin_us >= 0 ? std::chrono::microseconds(environment.spin_us) : crowded ? 0us : 200us;
  alone_ = {.spin = chosen, .yields = crowded ? kYields : 0, .timeout = std::chrono::milliseconds(environment.timeout_ms)};
  at_once_ = chosen.count() > 0 ? kLooksAtOnce : 1;
  beside_compute_ = alone_;
  if (environment.spin_us < 0) beside_compute_.spin = 0us;
  beside_compute_.yields = 0;
}

Communicator::~Communicator() {
  if (agreement_.control == nullptr) return;
  if (!aborted_.load() && !failed_.load()) agreement_.control->bye(finished_.load());
  agreement_.control.reset();  // from here on nobody asks this rank for a report
}

std::uint64_t Communicator::issue_regrouping() {
  const std::uint64_t ticket = issued_.load(std::memory_order_relaxed) + 1;
  issued_.store(ticket, std::memory_order_relaxed);
  return ticket;
}

Result<std::optional<Membership>> Communicator::regroup(const Regrouping& wish, std::uint64_t ticket,
                                                        const Environment& environment, const Interrupted& interrupted) {
  (void)wait_for_turn(ticket);  // a failure of this communicator is no failure of its children
  const auto trouble = [&]() -> Status {
    if (aborted_.load()) return look();
    if (interrupted && interrupted())
      return fail(Code::invalid_usage, "the communicator was aborted here while it was being made");
    return find_loss(wish.members);
  };
  const Family family{rank(), agreement_.peers, endpoint_.communicator, key_, *switchboard_};
  Result<std::optional<Membership>> place =
      aborted_.load() ? Result<std::optional<Membership>>(look()) : comm::regroup(wish, family, environment, trouble);
  pass_turn();
  return place;
}

// A failure that takes one of `members` away for good.
Status Communicator::find_loss(const std::vector<Rank>& members) {
  const Status known = first_failure();
  const bool lost =
      known.code() == Code::remote_error && known.culprit() && std::ranges::binary_search(members, *known.culprit());
  return lost ? known : Status();
}

// The first failure stays; every later one is answered with it. Others hear of what this rank found out by itself.
Status Communicator::note_failure(const Status& why) {
  if (revoked_.load()) return why;  // what ends because of that is no failure
  const std::lock_guard lock(failure_mutex_);
  if (failed_.load(std::memory_order_relaxed)) return failure_;
  failure_ = why;
  failed_.store(true, std::memory_order_release);
  log::warn(rank().value, "{}", failure_.text());
  write_dump();
  if (!aborted_.load()) agreement_.control->announce_failure(failure_);
  return failure_;
}

void Communicator::abort() {
  if (aborted_.exchange(true)) return;
  if (agreement_.control != nullptr) agreement_.control->announce_abort();
  endpoint_.doorbell->ring();
}

void Communicator::revoke() {
  if (revoked_.exchange(true)) return;
  if (!failed_.load())
    agreement_.control->announce_failure(
        {Code::invalid_usage, describe(agreement_.peers[static_cast<std::size_t>(rank().value)]) + " revoked the communicator",
         rank()});
  endpoint_.doorbell->ring();
}

Status Communicator::failure() {
  if (!failed_.load(std::memory_order_acquire)) return look();
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

Status Communicator::first_failure() {
  if (!failed_.load(std::memory_order_acquire)) return agreement_.control->progress();
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

Status Communicator::look() {
  if (aborted_.load(std::memory_order_relaxed))
    return fail(Code::invalid_usage, "rank {}: this communicator was aborted here", rank().value);
  if (revoked_.load(std::memory_order_relaxed))
    return fail(Code::invalid_usage, "rank {}: this communicator was revoked here", rank().value);
  return agreement_.control->progress();
}

bool Communicator::has_news() const {
  return aborted_.load(std::memory_order_relaxed) || revoked_.load(std::memory_order_relaxed) || agreement_.control->has_news();
}

link::Wakeup Communicator::wakeup() const { return agreement_.control->wakeup(); }

}  // namespace shoal::comm
