// SPDX-License-Identifier: Apache-2.0
// The queue pairs of a link, over all its rails: posts writes, asks for as few completions as will do, and hands out the
// immediates that come. A completion is asked for where none is on its way, which tells of all writes before it. Part of a link,
// driven by its thread; allocates nothing once it is joined.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/ib_options.h"
#include "core/status.h"
#include "link/memory_file.h"
#include "transports/verbs/blueprint.h"
#include "transports/verbs/device.h"
#include "transports/verbs/layout.h"
#include "transports/verbs/ports.h"

namespace shoal::transports::verbs {

struct Rail {
  std::shared_ptr<Device> device;
  UsablePort port;
  std::unique_ptr<Completions> completions;
  std::unique_ptr<Region> memory;  // the link's
};

// A write by one of the queues. Without a key `from` is in the link's own memory.
struct Posting {
  std::span<const std::byte> from;
  std::optional<std::uint32_t> local_key;
  std::uint64_t to = 0;
  std::uint32_t remote_key = 0;
  std::optional<std::uint32_t> immediate;
  bool counts = false;  // flushed() waits for it
  bool told = false;    // its end must be known
};

class Queues {
 public:
  // Queue pairs on all rails, ready to receive; `memory` is pinned on each.
  static Result<std::unique_ptr<Queues>> open(std::vector<Rail> rails, const IbOptions& options, const Layout& layout,
                                              link::Mapping memory);

  // This side's part of the blueprint.
  void describe(Blueprint& ours) const;
  Status join(const Blueprint& ours, const Blueprint& theirs);

  std::size_t count() const { return queues_.size(); }
  std::size_t rails() const { return rails_.size(); }
  const Rail& rail(std::size_t i) const { return rails_[i]; }
  std::span<std::byte> memory() const { return memory_.memory(); }
  // The peer's: where its memory is, and the key for it, or the place of its rail among its own, by the queue that leads there.
  std::uint64_t peer_memory() const { return peer_memory_; }
  std::uint32_t peer_key(std::size_t queue) const { return queues_[queue].peer_key; }
  std::size_t peer_rail(std::size_t queue) const { return queues_[queue].peer_rail; }
  std::size_t rail_of(std::size_t queue) const { return queues_[queue].rail; }
  bool inlines(std::size_t queue, std::size_t bytes) const { return bytes <= queues_[queue].inline_bytes; }

  bool has_room(std::size_t queue, int writes) const;
  void post(std::size_t queue, const Posting& posting);
  // Posts ended so far, and posted, by queue: `posted` has ended when that many have.
  std::uint64_t posted(std::size_t queue) const { return queues_[queue].posted; }
  std::uint64_t ended(std::size_t queue) const { return queues_[queue].ended; }

  // Hands every immediate to `take`, in the order of each queue. True if there was anything. Ends of writes are looked for when
  // there was none: who has a message to take is not waiting for them.
  template <typename Take>
  bool poll(Take&& take) {
    bool found = false;
    for (std::size_t i = 0; i < rails_.size(); ++i)
      for (std::size_t got = kAtOnce; got == kAtOnce;) {
        got = poll_receives(i);
        found |= got > 0;
        for (const Completion& each : std::span(completions_).first(got))
          if (each.outcome == Outcome::ok) take(each.immediate);
      }
    return found || poll_writes();
  }

  // Nothing that counts is still on its way. Asks for what it needs to know it.
  bool flushed();
  // Descriptors of all rails become readable at news: immediates, and ends of writes if there are any to wait for.
  void arm();
  std::vector<int> descriptors() const;

  // Why no write or immediate will pass any more; empty while all is well.
  const std::string& failure() const { return failure_; }
  // What the devices say of themselves.
  void look_at_devices();

 private:
  struct Queue {
    std::unique_ptr<QueuePair> pair;
    std::size_t rail = 0;
    std::size_t inline_bytes = 0;
    std::uint32_t first_packet = 0;
    std::uint32_t peer_key = 0;
    std::size_t peer_rail = 0;
    std::uint64_t posted = 0;    // writes
    std::uint64_t ended = 0;     // of them; known by completions
    std::uint64_t asked = 0;     // the last one that tells its end
    std::uint64_t counting = 0;  // the last one that flushed() waits for
    int taken = 0;               // receives to be posted again
  };

  Queues(std::vector<Rail> rails, const IbOptions& options, const Layout& layout, link::Mapping memory)
      : memory_(std::move(memory)), rails_(std::move(rails)), options_(options), layout_(layout) {}
  Status make_queue(std::size_t rail, std::size_t per_rail);
  bool poll_writes();
  std::size_t poll_receives(std::size_t rail);
  Queue* find(std::size_t rail, std::uint32_t number);
  void note_failure(std::size_t rail, const Completion& completion);

  static constexpr std::size_t kAtOnce = 16;
  // Destroyed from the last to the first: queue pairs before what they use.
  link::Mapping memory_;
  std::vector<Rail> rails_;
  std::vector<Queue> queues_;
  IbOptions options_;
  Layout layout_;
  std::uint64_t peer_memory_ = 0;
  std::array<Completion, kAtOnce> completions_;
  std::string failure_;
  bool reported_ = false;  // failure_ is more than that an earlier failure flushed what was left
};

}  // namespace shoal::transports::verbs
