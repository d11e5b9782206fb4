// SPDX-License-Identifier: Apache-2.0
// A worker: requests in order, each cut at the servers' borders and into messages. A thread of its own drives the links, so that
// requests move while the caller computes.
//
// Threads: public functions from any thread. They put requests into `incoming_` under the mutex; all that follows a request from
// there on belongs to the driving thread, which tells the callers by taking timestamps out of `open_`.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "ps/fabric.h"
#include "ps/partition.h"

namespace shoal::ps {

using Timestamp = std::uint64_t;  // of a request, from 1 on; 0: none

class Worker final : private Actor {
 public:
  // Starts the thread; std::system_error if there can be none.
  Worker(std::unique_ptr<Fabric> fabric, const Own& own);
  ~Worker() override;  // aborts unless it has left

  // The memory belongs to the worker until wait() has returned, or the group has failed and join() has.
  Result<Timestamp> push(KeyRange keys, const std::byte* values, Timestamp after);
  Result<Timestamp> pull(KeyRange keys, std::byte* out, Timestamp after);
  Status tick();
  Status wait(Timestamp request);
  // Waits for all requests, tells the servers, and ends the thread.
  Status leave();

  struct Clocks {
    std::uint64_t own;
    std::uint64_t slowest;
  };
  Clocks clocks();
  Fabric& fabric() { return *fabric_; }

 private:
  struct Request {
    Timestamp timestamp = 0;
    Kind kind = Kind::push;
    KeyRange keys;
    const std::byte* values = nullptr;
    std::byte* out = nullptr;
    Timestamp after = 0;
    std::uint64_t clock = 0;
    int parts = 0;  // servers that have not yet done theirs
    std::uint64_t slowest_clock = UINT64_MAX;
  };
  // A server's part of a request.
  struct Parcel {
    Request* request;
    KeyRange keys;  // what is still to be sent
  };
  struct Lane {
    std::deque<Parcel> outgoing;
    int answers_due = 0;
    Clock::time_point last_move;  // or since when there is something to do

    bool busy() const { return !outgoing.empty() || answers_due > 0; }
  };

  Result<Timestamp> enqueue(Request request);
  Status check(const Request& request);

  void run();
  Result<bool> step() override;
  bool finished() override { return left_; }
  Status overdue(Clock::time_point now, std::chrono::milliseconds timeout) override;

  void take_in();
  bool dispatch();
  void hand(std::size_t server, Parcel parcel);
  bool send(std::size_t server);
  bool send_parcel(Rank to, Parcel& parcel);
  Status receive(std::size_t server, bool& moved);
  std::map<Timestamp, Request>::iterator find_active(std::uint32_t low);
  Status receive_reply(Request& request, Rank from, const Header& header, std::span<const std::byte> values);
  void finish_part(Request& request);
  void complete(Timestamp timestamp);

  const std::unique_ptr<Fabric> fabric_;
  const Partition partition_;
  const std::size_t width_;  // bytes of a key
  const std::size_t window_;

  std::mutex mutex_;
  std::condition_variable change_;         // of what the mutex guards
  std::deque<Request> incoming_;           // under mutex_
  std::set<Timestamp> open_;               // under mutex_: requests that are not complete
  Timestamp next_ = 1;                     // under mutex_
  std::uint64_t clock_ = 0;                // under mutex_
  std::uint64_t slowest_clock_ = 0;        // under mutex_
  bool leaving_ = false;                   // under mutex_
  bool ended_ = false;                     // under mutex_: the thread drives no more
  Status failure_;                         // under mutex_
  std::atomic<bool> has_incoming_{false};  // pairs with Fabric's sleep

  // The driving thread's.
  std::deque<Request> backlog_;          // taken in, not yet sent
  std::map<Timestamp, Request> active_;  // sent, or being sent
  std::vector<Lane> lanes_;              // by server
  bool left_ = false;

  std::thread thread_;
};

}  // namespace shoal::ps
