// SPDX-License-Identifier: Apache-2.0
// What the links of one rank of one communicator share: a UCX worker, which moves the bytes of all of them, and a path (a UCX
// endpoint) to each peer's worker. Driven by the thread that drives those links.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "link/socket.h"
#include "transports/ucx/context.h"
#include "transports/ucx/frame.h"

namespace shoal::transports::ucx {

class Lane;
class Worker;

// The way to a peer's worker, shared by the lanes that take it.
class Path {
 public:
  Path(Worker& worker) : worker_(worker) {}
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;
  // Closes without a word to the peer, so that a dead one delays nobody.
  ~Path();

  ucp_ep_h endpoint() const { return endpoint_; }
  // UCS_OK, or why nothing passes any more.
  ucs_status_t failure() const { return *failure_; }

 private:
  friend class Worker;
  Worker& worker_;
  ucp_ep_h endpoint_ = nullptr;
  std::unique_ptr<ucs_status_t> failure_ = std::make_unique<ucs_status_t>(UCS_OK);
};

class Worker {
 public:
  static Result<std::shared_ptr<Worker>> create(std::shared_ptr<Context> context);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  const Api& api() const { return context_->api(); }
  ucp_worker_h handle() const { return handle_; }
  const Context& context() const { return *context_; }

  // What peers need to know to reach this worker.
  std::span<const std::byte> address() const {
    return {static_cast<const std::byte*>(static_cast<const void*>(address_)), address_bytes_};
  }
  Result<std::shared_ptr<Path>> path_to(std::span<const std::byte> address);

  // After arm(), until the next progress(), one of the two is readable when there is news: UCX's own, or ours where UCX says that
  // there is something to do before it can tell of more.
  int descriptor() const { return descriptor_; }
  int busy_descriptor() const { return busy_.get(); }
  void arm();
  void progress();

  // Lanes get what arrives under their number. `later`: asked for the lane's move() after the next progress, when UCX is not
  // inside of a callback.
  void attach(Lane& lane);
  void move_soon(Lane& lane) { moving_.push_back(&lane); }
  // Takes a lane out of use and keeps it as long as UCX still works on its operations. `peer_lives`: waits a little for what was
  // sent last to arrive.
  void bury(std::unique_ptr<Lane> lane, bool peer_lives);

 private:
  explicit Worker(std::shared_ptr<Context> context);
  friend class Path;
  Status open();
  void close(ucp_ep_h endpoint, std::unique_ptr<ucs_status_t> failure);
  void await_arrival(Lane& lane);
  void reap();

  static ucs_status_t on_message(void* self, const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
                                 const ucp_am_recv_param_t* how);
  static void on_error(void* failure, ucp_ep_h endpoint, ucs_status_t status);

  std::shared_ptr<Context> context_;
  ucp_worker_h handle_ = nullptr;
  ucp_address_t* address_ = nullptr;
  std::size_t address_bytes_ = 0;
  int descriptor_ = -1;  // UCX's
  link::Descriptor busy_;
  bool is_busy_ = false;                              // busy_ is readable
  std::map<std::string, std::weak_ptr<Path>> paths_;  // by the peer's address
  std::map<std::uint64_t, Lane*> lanes_;              // by number
  std::vector<Lane*> moving_, moved_;
  std::vector<std::unique_ptr<Lane>> buried_;
  std::vector<std::unique_ptr<ucs_status_t>> unclosed_;
  std::chrono::nanoseconds patience_;  // with all peers that have not yet got everything when their links go
};

}  // namespace shoal::transports::ucx
