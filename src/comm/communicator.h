// SPDX-License-Identifier: Apache-2.0
// A communicator as one rank holds it: who the others are, the links to them, the plans it has built, and its state of health.
//
// Threads: calls are issued by one thread at a time and get their place in the order of the communicator then; they may run on
// other threads (streams), one after the other in that order. abort() and failure() may be called from any thread at any time.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include "comm/bootstrap.h"
#include "comm/dump.h"
#include "comm/exact_call.h"
#include "comm/flight_recorder.h"
#include "comm/registrations.h"
#include "comm/regroup.h"
#include "comm/selection.h"
#include "comm/settings.h"
#include "comm/trace.h"
#include "engine/composition.h"
#include "engine/drive.h"
#include "link/switchboard.h"
#include "transports/shim/transport.h"
#include "transports/transports.h"

namespace shoal::comm {

// A group's point-to-point transfers of one rank. What it sends to itself is copied.
struct Exchange {
  std::vector<engine::Transfer> transfers;
  std::uint64_t ticket = 0;
};

// An operation in words and in time since the epoch.
DumpedOperation told(const Operation& operation, const TickScale& clock);

class Communicator final : private engine::Watch, public engine::Refill {
 public:
  // Collective: returns when all ranks are in. `ids`: at least one, the same on all ranks; each process that made one serves a
  // part of the ranks. Interrupted: invalid_usage, soon.
  static Result<std::unique_ptr<Communicator>> create(std::span<const UniqueId> ids, Rank rank, World world,
                                                      const Environment& environment, const Interrupted& interrupted = {});
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
    return drive(begin(work, beside_compute));
  }
  // Issue and run of a call that nobody runs beside compute, by the shortest way there is: most need no look at anything but
  // data.
  Status perform(engine::Call& call);
  // Of a call that was performed before, as that left it: shorter still if no other has been since.
  Status perform_again(engine::Call& call);
  // Waits for the calls issued before, then starts this one. `beside_compute`: another thread of this rank needs its processor,
  // so waiting must not spin. A failure is also set in the result, finished.
  engine::Driven begin(const engine::Call& call, bool beside_compute);
  engine::Driven begin(Exchange& exchange, bool beside_compute);
  // A call may be made of several collectives: true if there is another one, started.
  bool next(engine::Driven& ended) override;
  // After drive: notes how it ended, makes way for the next call, and returns the result.
  Status conclude(engine::Driven& driven);
  bool owns(const engine::Driven& driven) const { return driven.execution == execution_.get(); }

  // A place in the order for a regrouping. Then exactly once, on whichever thread: regroup, which waits for the calls before, and
  // holds up those after. It works whatever became of this communicator, as long as no member is lost: then remote_error.
  std::uint64_t issue_regrouping();
  Result<std::optional<Membership>> regroup(const Regrouping& wish, std::uint64_t ticket, const Environment& environment,
                                            const Interrupted& interrupted);

  // What later calls promise of their results' bits; all ranks make this change between the same calls. Issuing thread.
  engine::Numerics numerics() const { return numerics_; }
  void set_numerics(engine::Numerics numerics) { numerics_ = numerics; }

  // How later calls' float32 travels; null: as it is. All ranks make this change between the same calls. Issuing thread.
  const compress::Codec* wire_format() const { return wire_format_; }
  void set_wire_format(const compress::Codec* codec) { wire_format_ = codec; }

  // What the tuner thinks of a call like this one.
  std::string explain(const engine::Call& call) const { return tuner_->explain(call); }
  // Seconds, as the tuner's model of the ranks' hosts has them. The exchange's ends on other ranks are taken to be there.
  Result<double> predict(const engine::Call& call) const { return tuner_->predict(call); }
  Result<double> predict(const Exchange& exchange) const { return tuner_->predict(exchange.transfers, rank()); }

  // Seconds, roughly and quickly, the same on all ranks. Whoever runs a call.
  double expect(const engine::Call& call) { return tuner_->expect(call); }

  // What the user has said of memory. Any thread.
  Registrations& registrations() { return registrations_; }

  // Waits until all calls issued so far are through, or the communicator is aborted.
  Status drain();
  bool is_idle() const { return completed_.load(std::memory_order_acquire) == issued_.load(std::memory_order_acquire); }

  // Makes running and later calls of this rank end with invalid_usage, and those of the others fail, naming this rank.
  // Regrouping still works.
  void revoke();
  bool is_aborted() const { return aborted_.load(); }

  // Makes running and later calls of this rank fail, tells the other ranks.
  void abort();
  // Ok, or the first failure, for good. Also hears of other ranks' failures.
  Status failure();
  // The same, but this rank's own abort or revocation are none.
  Status first_failure();

  // A picture of this rank's communicator: what it does and what it has run last. Any thread.
  Dump dump() const;

 private:
  Communicator(link::PeerIdentity self, World world, const Environment& environment);
  Status join(std::span<const UniqueId> ids, const Environment& environment, const Interrupted& interrupted);
  Result<Settings> prepare(const Environment& environment);
  Status assemble(std::span<const UniqueId> ids, const Settings& mine, const Environment& environment, link::NetworkDoors network,
                  link::Listener local);
  void plan_waiting(const Environment& environment);
  void number(engine::Call& call);
  static Operation operation_of(const engine::Call& call);
  bool finish_at_once(const engine::Call& call, bool timed);
  Status drive(engine::Driven driven) {
    if (!driven.finished) without_bad_alloc(driven, [&] { engine::drive({&driven, 1}, this); });
    return conclude(driven);
  }
  bool is_turn_of(std::uint64_t ticket) const { return completed_.load(std::memory_order_acquire) + 1 == ticket; }
  bool is_well() const {
    return !failed_.load(std::memory_order_acquire) && !aborted_.load() && !revoked_.load(std::memory_order_relaxed);
  }
  engine::Driven driven_by(const engine::WaitPolicy& policy);
  engine::Driven wait_to_begin(std::uint64_t ticket, bool beside_compute, bool timed);
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
  Status prepare(const engine::Call& call);
  void start_private(const engine::Call& call);
  void start_prepared(const engine::Call& call);
  void start(const Exchange& exchange);
  Status wait_for_turn(std::uint64_t ticket);
  void pass_turn();
  Status note_failure(const Status& why);
  Status find_loss(const std::vector<Rank>& members);

  Status look() override;
  bool has_news() const override;
  link::Wakeup wakeup() const override;
  void note(const engine::Standing& standing, std::chrono::nanoseconds unmoved) override;
  void raise(engine::Trouble trouble, const Status& own) override;
  Status unanswered(const Status& own) override { return agreement_.control->unanswered(own); }
  Report report(std::uint64_t sequence) const;
  void write_dump() const;

  World world_;
  link::Key key_;
  bool presented_ = false;  // to the root service, which then notices this rank's end
  std::optional<link::DoorbellPage> doorbell_;
  link::Endpoint endpoint_;
  Agreement agreement_;
  Settings settings_;
  std::unique_ptr<transports::ShimmedTransports> shimmed_;  // null: nothing slows the links
  std::unique_ptr<link::Switchboard> switchboard_;
  std::shared_ptr<link::Window> board_;  // shown to the ranks of this host
  std::unique_ptr<engine::Links> links_;
  std::unique_ptr<engine::Execution> execution_;
  std::optional<Tuner> tuner_;
  // How a kind of calls is run.
  struct Prepared {
    const Planned* planned = nullptr;  // null: none was
    plan::Collective collective = plan::Collective::all_reduce;
    engine::Numerics numerics = engine::Numerics::fast;
    Rank root;
    int length_class = 0;
    const compress::Codec* codec = nullptr;
    engine::Tuning tuning;
    bool tries_mapped = false;  // first, whether all buffers are of memory that all can map
    bool tries_pulled = false;  // then, whether all can read all others' memory
    bool always_pulls = false;  // whatever is the quickest way
    std::int16_t place = 0;     // in the table of algorithms
    bool is_for(const engine::Call& call, int length) const {
      return collective == call.collective && length_class == length && root == call.root && numerics == call.numerics &&
             codec == call.codec && planned != nullptr;
    }
  };
  Status prepare_for(const engine::Call& call);
  static constexpr std::size_t kKeptPrepared = 8;             // a step of training has a few kinds of calls, by turns
  std::array<Prepared, kKeptPrepared> kept_;                  // those of the last kinds; whoever runs a call
  std::size_t oldest_ = 0;                                    // of them
  Prepared* prepared_ = kept_.data();                         // the last call's
  std::uint64_t performed_ = 0;                               // the last call's ticket, if it can be started again
  engine::Call composed_;                                     // the call that is running, if it is made of several
  bool moving_ = false;                                       // one of them has been started
  std::vector<std::vector<std::unique_ptr<Planned>>> plans_;  // by place in the table of algorithms, and root if it has one
  engine::WaitPolicy alone_, beside_compute_;
  int at_once_ = 1;  // looks for what the other ranks send that a call is worth before it is driven as one that waits

  Situation situation_;
  Registrations registrations_;
  engine::Numerics numerics_ = engine::Numerics::fast;  // the issuing thread's
  const compress::Codec* wire_format_ = nullptr;        // the issuing thread's
  std::uint64_t collectives_ = 0;                       // issued; the issuing thread's
  std::vector<std::uint64_t> sends_, receives_;         // transfers issued, by peer; the issuing thread's
  std::atomic<std::uint64_t> issued_{0};                // only the issuing thread changes it
  std::atomic<std::uint64_t> completed_{0};             // pairs: conclude stores, wait_for_turn loads
  std::atomic<int> queueing_{0};                        // threads in wait_for_turn that sleep
  std::mutex turn_mutex_;
  std::condition_variable turn_;

  FlightRecorder recorder_;
  std::string dump_path_;         // empty: none is written
  std::unique_ptr<Trace> trace_;  // null: none; whoever runs a call adds to it
  struct Noted {
    engine::Standing standing;
    std::uint64_t ticket = 0;  // of the call
    std::chrono::steady_clock::time_point last_move;
  };
  mutable std::mutex noted_mutex_;
  Noted noted_;  // under noted_mutex_
  static constexpr std::size_t kKeptTransfers = 64;
  std::array<KnownTransfer, kKeptTransfers> transfers_;  // the last that were issued, in turn; under noted_mutex_
  std::size_t transfers_issued_ = 0;                     // under noted_mutex_
  std::uint64_t lengths_of_ = 0;                         // the last all_to_all_v; under noted_mutex_, with its lengths
  std::shared_ptr<const engine::Uneven> lengths_;
  std::atomic<std::uint64_t> finished_{0};  // the last collective that has ended; whoever runs a call changes it
  std::uint64_t running_ = 0;               // the collective that is being run, 0 if it is transfers; whoever runs it

  std::atomic<bool> aborted_{false};
  std::atomic<bool> revoked_{false};
  std::atomic<bool> failed_{false};  // failure_ is set; pairs with its mutex
  std::mutex failure_mutex_;
  Status failure_;  // under failure_mutex_
};

}  // namespace shoal::comm
