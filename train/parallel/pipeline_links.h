// SPDX-License-Identifier: Apache-2.0
// The messages between a stage of a pipeline and its neighbours. Calls of one communicator wait for one another, in the order in
// which they were made, so each way has a communicator of two ranks and a stream of its own: activations forward, gradients back,
// over each boundary. On a way there is one order of messages, the same at both ends. A stage computes on
// while its messages leave, whatever their size, and a receive is under way one message ahead. Nobody can wait in a circle then,
// unless the schedule itself does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "train/parallel/comm.h"
#include "train/parallel/own_comm.h"

namespace shoal::train {

// The sending end of a way.
class Outbox {
 public:
  // `way` has two ranks, the other one receives. The memory of messages under way is counted as Holds::working.
  Outbox(Communicator way, Ledger& ledger);

  void send(std::vector<float> message);
  // Memory of a message that has been taken, if there is any.
  std::optional<std::vector<float>> reclaim();
  void finish();  // until all have been taken

 private:
  struct Sent {
    std::vector<float> message;
    Event taken;
  };
  std::deque<Sent> sent_;
  Ledger& ledger_;
  Stream stream_;
  OwnComm way_;  // ends before the memory that it reads
};

// The receiving end of a way.
class Inbox {
 public:
  Inbox(Communicator way, Ledger& ledger);

  // That many floats each will come, in this order. The memory is asked for when its receive begins.
  void expect(std::vector<std::size_t> sizes);
  // Waits for the next message and begins to receive the one after it.
  std::vector<float> take();

 private:
  void begin();

  std::deque<std::size_t> expected_;
  std::vector<float> coming_;
  Ledger& ledger_;
  Stream stream_;
  Event come_;
  OwnComm way_;
};

enum class Flow : std::uint8_t { activations, gradients };

// All ways of one stage. With one stage, what is sent is there to be taken.
class PipelineLinks {
 public:
  // Collective over `stages`, a rank of which is a stage. `wraps`: the last stage's activations go to the first one's next chunk.
  PipelineLinks(const Communicator& stages, bool wraps, Ledger& ledger);

  void send(Flow flow, std::vector<float> message);
  void expect(Flow flow, std::vector<std::size_t> sizes);
  std::vector<float> take(Flow flow);
  // Memory for a message of that many floats; values are any.
  std::vector<float> room(std::size_t size);
  void finish();  // until all that was sent has been taken

 private:
  struct Ways {
    std::optional<Outbox> out;
    std::optional<Inbox> in;
    std::deque<std::vector<float>> here;
  };
  Ways& ways(Flow flow) { return ways_[static_cast<std::size_t>(flow)]; }
  void connect(const Communicator& stages, bool wraps, Flow flow, Ledger& ledger);

  std::array<Ways, 2> ways_;
};

}  // namespace shoal::train
