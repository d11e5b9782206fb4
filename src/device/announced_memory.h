// SPDX-License-Identifier: Apache-2.0
// Memory that the user has announced and keeps until it says otherwise (ncclCommRegister): what a transport may pin though it is
// not of the library's own making. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/types.h"

namespace shoal::device {

struct Announced {
  std::uint64_t number = 0;  // 1, 2, ..., never given again in this process
  std::span<const std::byte> memory;
};

// The number under which it is withdrawn.
std::uint64_t announce(std::span<const std::byte> memory);
// From here on the memory may be given back, and its addresses may mean other pages.
void withdraw(std::uint64_t number);

// One that all of `memory` lies in, the oldest; nothing if there is none. Quick where nothing is announced.
std::optional<Announced> announced(std::span<const std::byte> memory);
bool is_announced(std::uint64_t number);

// How often one has been withdrawn: whoever has pinned one should look whether it is still announced.
std::uint64_t withdrawals();

}  // namespace shoal::device
