// SPDX-License-Identifier: Apache-2.0
// A lane being run: the program counter of one lane over every n-th slice of a call, on a channel of its own. Several tracks of
// one lane keep several slices in flight. advance() runs steps until one has to wait; it never blocks and allocates nothing.
#pragma once

#include <cstdint>

#include "engine/call.h"
#include "engine/links.h"
#include "engine/slicing.h"

namespace shoal::engine {

// What all tracks of one execution share.
struct Job {
  Call call;
  const plan::Plan* plan = nullptr;
  Slicing slicing;
  const device::ReduceKernels* kernels = nullptr;
  link::Tag tag;
  bool scales_input = false;
  bool stream_stores = false;  // outputs go past the caches
};

class Track {
 public:
  Track(Links& links) : links_(links) {}

  // Runs `lane` over slices first, first + stride, ...
  void start(const Job& job, const plan::Lane& lane, int channel, std::size_t first, std::size_t stride);

  // True if any step was done. Sets failure() on a message that does not fit.
  bool advance();
  bool done() const { return done_; }

  // While not done: the rank waited for, and whether for a message from it (else for room towards it).
  Rank waiting_for() const { return waiting_for_; }
  bool waiting_to_receive() const { return waiting_to_receive_; }
  int channel() const { return channel_; }
  const Status& failure() const { return failure_; }

 private:
  bool execute(const plan::Step& step);
  bool do_copy(const plan::Step& step);
  bool do_send(const plan::Step& step);
  bool do_recv(const plan::Step& step);
  bool do_recv_reduce(const plan::Step& step);
  bool do_recv_reduce_send(const plan::Step& step);
  bool do_recv_copy_send(const plan::Step& step);

  void next_step();
  void next_slice();

  // The message that has arrived for this step, checked; null: wait, or failure().
  const link::Message* arrived(link::Link& in, Rank from, Bytes expected);
  // The link to a peer; null while it is being made.
  link::Link* link_to(Rank peer);
  void ask_for_all_links();
  link::Link* incoming(const plan::Step& step);
  link::Link* outgoing(const plan::Step& step);
  // Straight from user memory, where plan and link allow it and it pays.
  link::Direct* direct_way(link::Link& out, Bytes size) const;
  bool room_behind_direct(link::Link& out) const;

  struct Part {  // of a chunk, in this slice
    std::size_t begin, elements;
    Bytes offset, size;
  };
  Part part(const plan::Chunk& chunk) const;
  const std::byte* read_from(const plan::Chunk& chunk, const Part& part) const;
  std::byte* write_to(const Part& part) const;  // always the output: the checker has proven it
  device::CombineFn combine(const plan::Step& step) const;

  Links& links_;
  const Job* job_ = nullptr;
  const plan::Lane* lane_ = nullptr;
  int channel_ = 0;
  std::size_t slice_ = 0, stride_ = 1;
  std::size_t loop_ = 0, step_ = 0;
  std::int32_t iteration_ = 0;
  bool done_ = true;
  bool asked_ = false;     // all links of this lane have been asked for
  bool expected_ = false;  // the link knows where the awaited payload should land
  Rank waiting_for_;
  bool waiting_to_receive_ = false;
  Status failure_;
};

}  // namespace shoal::engine
