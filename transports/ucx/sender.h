// SPDX-License-Identifier: Apache-2.0
// The sending half of a UCX link: at most a window of eager messages in wire memory, and one from user memory, each handed to UCX
// in order as an active message. Part of a lane, driven by its thread.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/types.h"
#include "link/link.h"
#include "transports/ucx/api.h"
#include "transports/ucx/frame.h"
#include "transports/ucx/window.h"

namespace shoal::transports::ucx {

class Sender {
 public:
  Sender(const Api& api, Bytes max_message, int credits);
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // The path, and what the peer calls its end. Before any message.
  void open(ucp_ep_h endpoint, std::uint64_t peers_number);
  // Long enough for UCX to settle all that it needs to settle with the peer, while the peer's thread is there for it.
  void greet();

  std::span<std::byte> acquire(Bytes n);
  void commit(link::Tag tag, std::uint32_t released);
  bool send_direct(std::span<const std::byte> payload, link::Tag tag, std::uint32_t released);
  bool has_direct() const { return direct_.busy; }

  // The peer has released so many eager messages, all in all. False: more than were sent.
  bool credit(std::uint32_t released);
  // The last acquire found no credit or no memory, and would again.
  bool is_refused() const { return refused_ && !has_room(); }
  // The caller must be waiting for something to go: that, or user memory is still being sent.
  bool is_starving() const { return is_refused() || direct_.busy; }

  // True once what was sent is on its way without this thread. Sends something small after it where that shows it.
  bool flushed();
  // Starts to wait for the peer to have all of it; is_idle() says when. The peer's thread may have to do something for it.
  void flush();
  // No operation is under way that UCX would tell of.
  bool is_idle() const { return under_way_ == 0; }
  // Why an operation failed; UCS_OK: none did.
  ucs_status_t failure() const { return failure_; }

 private:
  struct Slot {
    Sender* owner = nullptr;
    FrameHeader header;
    bool busy = false;
  };

  bool has_room() const { return sent_ - released_ < window_.size && !slots_[next_].busy; }
  // The peer has used all that was sent.
  bool is_acknowledged() const { return sent_ == released_ && !direct_.busy; }
  std::byte* memory(std::size_t slot) { return wire_.get() + slot * stride_; }
  void post(Slot& slot, Kind kind, std::span<const std::byte> payload, link::Tag tag, std::uint32_t released);
  static void on_sent(void* request, ucs_status_t status, void* slot);
  static void on_flushed(void* request, ucs_status_t status, void* sender);

  const Api& api_;
  CreditWindow window_;
  std::size_t max_message_;
  std::size_t stride_;
  std::unique_ptr<std::byte[]> wire_;  // the slots' memory; costs no page until a message needs it
  std::vector<Slot> slots_;            // eager messages, in turn
  Slot direct_, greeting_;
  ucp_ep_h endpoint_ = nullptr;
  std::uint64_t peers_number_ = 0;
  std::size_t next_ = 0;        // in slots_
  std::uint32_t number_ = 0;    // of the next message
  std::uint32_t sent_ = 0;      // eager messages
  std::uint32_t released_ = 0;  // of them, by the peer
  bool refused_ = false;
  std::span<std::byte> acquired_;
  std::size_t under_way_ = 0;  // requests
  bool unflushed_ = false;     // something was sent since flushed() last sent something after it
  ucs_status_t failure_ = UCS_OK;
};

}  // namespace shoal::transports::ucx
