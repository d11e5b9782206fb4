// SPDX-License-Identifier: Apache-2.0
// The receiving half of a UCX link: puts active messages in order and shows one after the other. What UCX delivers whole stays
// where UCX put it, if that may be kept; what it only announces (rendezvous) is fetched into wire memory at once, or, if it comes
// from user memory, when its turn has come, so that it can go where it is expected. The peer is not trusted: a header that cannot
// be ends the link. Part of a lane, driven by its thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/types.h"
#include "link/link.h"
#include "transports/ucx/frame.h"
#include "transports/ucx/window.h"
#include "transports/ucx/worker.h"

namespace shoal::transports::ucx {

class Receiver {
 public:
  Receiver(const Worker& worker, Bytes max_message, int credits);
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  // From inside UCX: what its callback returns. `how`: UCP_AM_RECV_ATTR flags.
  ucs_status_t take(const FrameHeader& header, void* data, std::size_t bytes, std::uint64_t how);
  // Ends the link: the peer did what cannot be.
  ucs_status_t refuse(std::string why);
  // From outside: starts what can be fetched now.
  void move();

  const link::Message* front();
  void release();
  void expect(std::span<std::byte> target);

  // Eager messages released so far; wraps.
  std::uint32_t released() const { return released_; }
  // No operation is under way that UCX would tell of.
  bool is_idle() const { return under_way_ == 0; }
  // What the peer did that cannot be; empty: nothing.
  const std::string& violation() const { return violation_; }
  // Why a message could not be fetched; UCS_OK: none.
  ucs_status_t failure() const { return failure_; }
  // Gives back what UCX keeps for it; nothing is shown any more.
  void drop();

 private:
  // One message: on its way here, or not yet released.
  struct Place {
    enum class State { empty, announced, fetching, here };
    Receiver* owner = nullptr;
    State state = State::empty;
    Kind kind = Kind::eager;
    std::uint32_t tag = 0;
    std::size_t bytes = 0;
    void* held = nullptr;  // UCX's: the data, or the announcement
    const std::byte* payload = nullptr;
  };

  Place& place(std::uint32_t ahead) { return places_[(head_ + ahead) % places_.size()]; }
  std::byte* memory(const Place& place) { return wire_.get() + static_cast<std::size_t>(&place - places_.data()) * stride_; }
  void fetch(Place& place);
  static void on_fetched(void* request, ucs_status_t status, std::size_t bytes, void* place);

  const Worker& worker_;
  std::size_t max_message_;
  std::size_t stride_;
  std::vector<Place> places_;          // a ring: the window, one direct message shown and one announced
  std::unique_ptr<std::byte[]> wire_;  // the places' memory; costs no page until a message needs it
  std::size_t head_ = 0;               // in places_: of the oldest message
  std::uint32_t number_ = 0;           // its number
  std::uint32_t released_ = 0;
  std::span<std::byte> target_;
  link::Message message_;
  std::size_t under_way_ = 0;  // requests
  std::string violation_;
  ucs_status_t failure_ = UCS_OK;
};

}  // namespace shoal::transports::ucx
