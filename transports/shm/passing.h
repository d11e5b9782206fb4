// SPDX-License-Identifier: Apache-2.0
// Messages of fixed size over a UNIX stream that carry open descriptors (SCM_RIGHTS). Nothing blocks; for the thread that makes
// the connection.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "core/status.h"
#include "link/socket.h"

namespace shoal::transports {

inline constexpr std::size_t kMaxPassed = 3;  // descriptors with one message

// False: the stream takes nothing now, try again. The receiver gets duplicates; ours stay ours.
Result<bool> pass(const link::Descriptor& stream, std::span<const std::byte> message, std::span<const int> descriptors);

// Gathers one message of message.size() bytes, in pieces if need be, and the descriptors that came with it.
class Parcel {
 public:
  // False: not all here yet. An orderly close before the end is an error, and so are more descriptors than `wanted`, or fewer.
  Result<bool> receive(const link::Descriptor& stream, std::span<std::byte> message, std::size_t wanted);
  std::vector<link::Descriptor>& descriptors() { return descriptors_; }

 private:
  std::size_t bytes_ = 0;
  std::vector<link::Descriptor> descriptors_;
};

}  // namespace shoal::transports
