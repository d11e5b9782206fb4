// SPDX-License-Identifier: Apache-2.0
// How algorithms write plans: one function a verb, in the order in which things happen. Used while a plan is built, by one
// thread.
//
//   LaneBuilder lane;
//   lane.send(next, input(mine));
//   lane.loop(world - 2, [&] { lane.recv_reduce_send(prev, input(rotating(...)), next); });
#pragma once

#include <utility>

#include "plan/plan.h"

namespace shoal::plan {

class LaneBuilder {
 public:
  void copy(Chunk source, Chunk target, bool final = false) {
    add({.op = Op::copy, .final = final, .source = source, .target = target});
  }
  // target = source (op) target
  void reduce(Chunk source, Chunk target, bool final = false) {
    add({.op = Op::reduce, .final = final, .source = source, .target = target});
  }
  void send(Rotating to, Chunk source) { add({.op = Op::send, .to = to, .source = source}); }
  void recv(Rotating from, Chunk target) { add({.op = Op::recv, .from = from, .target = target}); }
  void recv_reduce(Rotating from, Chunk source, Chunk target, bool final = false) {
    add({.op = Op::recv_reduce, .final = final, .from = from, .source = source, .target = target});
  }
  void recv_reduce_send(Rotating from, Chunk source, Rotating to) {
    add({.op = Op::recv_reduce_send, .from = from, .to = to, .source = source});
  }
  // Keeps what it sends.
  void recv_reduce_copy_send(Rotating from, Chunk source, Chunk target, Rotating to, bool final = false) {
    add({.op = Op::recv_reduce_send, .final = final, .from = from, .to = to, .source = source, .target = target});
  }
  void recv_copy_send(Rotating from, Chunk target, Rotating to) {
    add({.op = Op::recv_copy_send, .from = from, .to = to, .target = target});
  }

  void signal(Rotating to) { add({.op = Op::signal, .to = to}); }
  void wait(Rotating from) { add({.op = Op::wait, .from = from}); }
  // `source` is a shared slot of rank `from`.
  void copy_shared(Rotating from, Chunk source, Chunk target) {
    add({.op = Op::copy_shared, .from = from, .source = source, .target = target});
  }
  // `source` is a shared slot; every rank's is taken.
  void reduce_shared(Chunk source, Chunk target, bool final = false) {
    add({.op = Op::reduce_shared, .final = final, .source = source, .target = target});
  }
  void append(Step step) { add(step); }

  // What `body` adds runs `iterations` times (not at all if that is zero or less). Loops do not nest.
  template <typename F>
  void loop(std::int32_t iterations, F&& body) {
    if (iterations <= 0) return;
    open_ = false;
    lane_.loops.push_back({iterations, {}});
    in_loop_ = true;
    std::forward<F>(body)();
    in_loop_ = false;
  }

  Lane take(std::int32_t channel = 0) {
    lane_.channel = channel;
    return std::move(lane_);
  }

 private:
  void add(Step step) {
    if (!in_loop_ && !open_) {
      lane_.loops.push_back({1, {}});
      open_ = true;
    }
    lane_.loops.back().steps.push_back(step);
  }

  Lane lane_;
  bool open_ = false;     // the last loop is straight-line code that further steps join
  bool in_loop_ = false;  // inside loop()'s body
};

}  // namespace shoal::plan
