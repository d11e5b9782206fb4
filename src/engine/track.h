// SPDX-License-Identifier: Apache-2.0
// A lane being run: the program counter of one lane over every n-th slice of a call, on a channel of its own. Several tracks of
// one lane keep several slices in flight. advance() runs steps until one has to wait; it never blocks and allocates nothing.
#pragma once

#include <cstdint>

#include "engine/call.h"
#include "engine/composition.h"
#include "engine/layout.h"
#include "engine/links.h"
#include "engine/waiting.h"

namespace shoal::engine {

// What all tracks of one execution share.
struct Job {
  Call call;
  const plan::Plan* plan = nullptr;
  std::size_t slices = 0;
  Layout layout;
  const device::ReduceKernels* kernels = nullptr;
  link::Tag tag;
  bool scales_input = false;
  bool stream_stores = false;  // outputs go past the caches
};

class Track {
 public:
  Track(Links& links) : links_(links) {}

  // Runs `lane` over slices first, first + stride, ...; `scratch` is this track's own.
  void start(const Job& job, const plan::Lane& lane, int channel, std::size_t first, std::size_t stride, std::byte* scratch);

  // True if any step was done. Sets failure() on a message that does not fit.
  bool advance();
  bool done() const { return done_; }

  std::size_t slice() const { return slice_; }

  // While not done.
  const Waiting& waiting() const { return waiting_; }
  const Status& failure() const { return failure_; }

  // What it has moved since it was started.
  const Traffic& traffic() const { return traffic_; }

 private:
  bool execute(const plan::Step& step);
  bool do_copy(const plan::Step& step);
  bool do_reduce(const plan::Step& step);
  bool do_send(const plan::Step& step);
  bool do_recv(const plan::Step& step);
  bool do_recv_reduce(const plan::Step& step);
  bool do_recv_reduce_send(const plan::Step& step);
  bool do_recv_copy_send(const plan::Step& step);
  bool do_signal(const plan::Step& step);
  bool do_wait(const plan::Step& step);

  // The same for calls with a codec (track_coded.cpp).
  bool execute_coded(const plan::Step& step);
  bool do_coded_copy(const plan::Step& step);
  bool do_coded_reduce(const plan::Step& step);
  bool do_coded_send(const plan::Step& step);
  bool do_coded_recv(const plan::Step& step);
  bool do_coded_pass_on(const plan::Step& step);
  void encode(const plan::Step& step, const Part& source, std::byte* wire) const;
  void decode(const std::byte* wire, const Part& target) const;
  void round_off(std::byte* values, std::size_t elements) const;
  Bytes wire_size_of(const Part& part) const;

  // Always true: the end of a step that has moved something.
  bool sent(Bytes size) {
    traffic_.sent.value += size.value;
    return true;
  }
  bool received(Bytes size) {
    traffic_.received.value += size.value;
    return true;
  }

  void next_step();
  void next_slice();

  // The message that has arrived for this step, checked; null: wait, or failure().
  const link::Message* arrived(link::Link& in, Rank from, Bytes expected);
  // The link to a peer; null while it is being made.
  link::Link* link_to(Rank peer);
  void ask_for_all_links();
  link::Link* incoming(const plan::Step& step);
  link::Link* outgoing(const plan::Step& step);
  struct Ends {  // of a step that receives and sends
    link::Link* in = nullptr;
    link::Link* out = nullptr;
    const link::Message* message = nullptr;  // null: wait
  };
  Ends both_ends(const plan::Step& step, Bytes size);
  // Straight from user memory, where plan and link allow it and it pays.
  link::Direct* direct_way(link::Link& out, Bytes size) const;
  bool room_behind_direct(link::Link& out) const;

  // How the chunks of a step are walked: all at once where they are neighbours in memory, else one by one.
  struct Walk {
    std::int32_t pieces = 1;
    bool merged = false;
    Bytes total;  // of the message
  };
  // Of the step that the track stands at: found once, for a step is looked at again and again until its message comes.
  const Walk& walk(const plan::Step& step) {
    if (!walked_) {
      walk_ = find_walk(step);
      walked_ = true;
    }
    return walk_;
  }
  Walk find_walk(const plan::Step& step) const;
  Part part(const plan::Chunk& chunk, const Walk& walk, std::int32_t piece) const;
  Part part_of(plan::Buffer buffer, std::int32_t index) const;
  Bytes size_of(const Part& part) const { return {part.elements * job_->layout.width()}; }

  // source (op) other -> target, in the variant that the step asks for.
  void combine(const plan::Step& step, device::Target target, const std::byte* source, const std::byte* other,
               std::size_t n) const;
  void load(const plan::Step& step, device::Target target, const Part& source) const;

  Links& links_;
  const Job* job_ = nullptr;
  const plan::Lane* lane_ = nullptr;
  std::byte* scratch_ = nullptr;
  std::size_t slice_ = 0, stride_ = 1;
  std::size_t loop_ = 0, step_ = 0;
  std::int32_t iteration_ = 0;
  bool done_ = true;
  bool asked_ = false;     // all links of this lane have been asked for
  bool expected_ = false;  // the link knows where the awaited payload should land
  bool walked_ = false;    // walk_ is this step's
  Walk walk_;
  Traffic traffic_;
  Waiting waiting_;
  Status failure_;
};

}  // namespace shoal::engine
