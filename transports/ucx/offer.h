// SPDX-License-Identifier: Apache-2.0
// How two ends exchange what UCX needs, over the authenticated stream: the offer and the worker's address behind it, both ways at
// once. Nothing blocks; for the thread that makes the connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "link/socket.h"
#include "transports/ucx/frame.h"

namespace shoal::transports::ucx {

// What comes from the peer, byte by byte. Never reads beyond the address: credits may follow.
class OfferReader {
 public:
  // `expected`: magic, credits and max_message must be these.
  explicit OfferReader(const Offer& expected) : expected_(expected) {}

  // Takes some of the bytes and says how many; a violation is an error that names what came and what was expected.
  Result<std::size_t> take(std::span<const std::byte> bytes);
  // How many bytes it still takes.
  std::size_t missing() const { return wanted_ - bytes_.size(); }
  bool is_complete() const { return missing() == 0; }

  const Offer& offer() const { return offer_; }
  std::span<const std::byte> address() const { return std::span(bytes_).subspan(sizeof(Offer)); }

 private:
  Status check() const;

  Offer expected_;
  Offer offer_;
  std::vector<std::byte> bytes_;
  std::size_t wanted_ = sizeof(Offer);
};

}  // namespace shoal::transports::ucx
