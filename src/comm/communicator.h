// SPDX-License-Identifier: Apache-2.0
// A communicator as one rank holds it: who the others are, the links to them, the plans it has built, and its state of health.
//
// Threads: calls are issued by one thread at a time and get their place in the order of the communicator then; they may run on
// other threads (streams), one after the other in that order. abort() and failure() may be called from any thread at any time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include "comm/bootstrap.h"
#include "comm/exact_call.h"
#include "comm/selection.h"
#include "comm/settings.h"
#include "engine/drive.h"
#include "link/switchboard.h"
#include "transports/transports.h"

namespace shoal::comm {

// A group's point-to-point transfers of one rank. What it sends to itself is copied.
struct Exchange {
  std::vector<engine::Transfer> transfers;
  std::uint64_t ticket = 0;
};

class Communicator final : private engine::Watch, public engine::Refill {
 public:
  // Collective: returns when all ranks are in. `ids`: the same on all ranks; each process that made one serves a part of the
  // ranks.
  static Result<std::unique_ptr<Communicator>> create(std::span<const UniqueId> ids, Rank rank, World world,
                                                      const Environment& environment);
  static Result<std::unique_ptr<Communicator>> create(const UniqueId& id, Rank rank, World world,
                                                      const Environment& environment) {
    return create({&id, 1}, rank, world, environment);
  }
  ~Communicator() override;

  Rank rank() const { return endpoint_.self.rank; }
  World world() const { return world_; }
  const std::vector<link::PeerIdentity>& peers() const { return agreement_.peers; }
  const Settings& settings() const { return settings_; }

  // Gives the call its place in the order. Then exactly once, on whichever thread: run, or begin, drive and conclude.
  void issue(engine::Call& call);
  // Also numbers the transfers.
  void issue(Exchange& exchange);
  // invalid_usage if what the rank sends to itself is not what it receives from itself. Before issue, which takes a place.
  Status check(const Exchange& exchange) const;
  template <typename Work>
  Status run(Work& work, bool beside_compute) {
    engine::Driven driven = begin(work, beside_compute);
    if (!driven.finished) without_bad_alloc(driven, [&] { engine::drive({&driven, 1}, this); });
    return conclude(driven);
  }
  // Waits for the calls issued before, then starts this one. `beside_compute`: another thread of this rank needs its processor,
  // so waiting must not spin. A failure is also set in the result, finished.
  engine::Driven begin(const engine::Call& call, bool beside_compute);
  engine::Driven begin(Exchange& exchange, bool beside_compute);
  // A call may be made of several collectives: true if there is another one, started.
  bool next(engine::Driven& ended) override;
  // After drive: notes how it ended, makes way for the next call, and returns the result.
  Status conclude(engine::Driven& driven);
  bool owns(const engine::Driven& driven) const { return driven.execution == execution_.get(); }

  // What later calls promise of their results' bits; all ranks make this change between the same calls. Issuing thread.
  engine::Numerics numerics() const { return numerics_; }
  void set_numerics(engine::Numerics numerics) { numerics_ = numerics; }

  // What the tuner thinks of a call like this one.
  std::string explain(const engine::Call& call) const { return tuner_->explain(call); }

  // Waits until all calls issued so far are through.
  Status drain();

  // Makes running and later calls of this rank fail, tells the other ranks.
  void abort();
  // Ok, or the first failure, for good. Also hears of other ranks' failures.
  Status failure();

 private:
  Communicator(link::PeerIdentity self, World world, const Environment& environment);
  Status join(std::span<const UniqueId> ids, const Environment& environment);
  Result<Settings> prepare(const Environment& environment);
  Status assemble(std::span<const UniqueId> ids, const Settings& mine, const Environment& environment, link::NetworkDoors network,
                  link::Listener local);
  void plan_waiting(const Environment& environment);
  engine::Driven wait_to_begin(std::uint64_t ticket, bool beside_compute);
  // A call that has its place in the order must also leave it: lack of memory is how it ends.
  template <typename F>
  static void without_bad_alloc(engine::Driven& driven, F&& f) {
    try {
      f();
    } catch (const std::bad_alloc&) {
      driven.result = fail(Code::system_error, "rank {}: out of memory", driven.rank.value);
      driven.finished = true;
    }
  }
  struct Planned {
    plan::Plan plan;
    std::int32_t widest = 1;  // message of any rank, in chunks
  };
  const Planned& plan_for(const algorithms::Algorithm& algorithm, Rank root);
  Status start(const engine::Call& call);
  void start(const Exchange& exchange);
  Status wait_for_turn(std::uint64_t ticket);
  Status note_failure(const Status& why);

  Status look() override;
  link::Wakeup wakeup() const override;

  World world_;
  std::optional<link::DoorbellPage> doorbell_;
  link::Endpoint endpoint_;
  Agreement agreement_;
  Settings settings_;
  std::unique_ptr<link::Switchboard> switchboard_;
  std::unique_ptr<engine::Links> links_;
  std::unique_ptr<engine::Execution> execution_;
  std::optional<Tuner> tuner_;
  std::optional<ExactCall> exact_;                            // the call that is running, if it is one
  std::vector<std::vector<std::unique_ptr<Planned>>> plans_;  // by place in the table of algorithms, and root if it has one
  engine::WaitPolicy alone_, beside_compute_;

  Situation situation_;
  engine::Numerics numerics_ = engine::Numerics::fast;  // the issuing thread's
  std::uint64_t collectives_ = 0;                       // issued; the issuing thread's
  std::vector<std::uint64_t> sends_, receives_;         // transfers issued, by peer; the issuing thread's
  std::atomic<std::uint64_t> issued_{0};                // only the issuing thread changes it
  std::atomic<std::uint64_t> completed_{0};             // pairs: conclude stores, wait_for_turn loads
  std::atomic<int> queueing_{0};                        // threads in wait_for_turn that sleep
  std::mutex turn_mutex_;
  std::condition_variable turn_;

  std::atomic<bool> aborted_{false};
  std::atomic<bool> failed_{false};  // failure_ is set; pairs with its mutex
  std::mutex failure_mutex_;
  Status failure_;  // under failure_mutex_
};

}  // namespace shoal::comm
