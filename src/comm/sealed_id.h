// SPDX-License-Identifier: Apache-2.0
// A unique id on its way over an authenticated connection: its key must not be read on the wire. Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "comm/unique_id.h"
#include "core/status.h"
#include "link/handshake.h"

namespace shoal::comm {

inline constexpr std::size_t kSealedId = UniqueId::kBytes + 16;  // with libsodium's authenticator

// `purpose`: a session seals one id for each of them, so that its nonce is constant.
std::vector<std::byte> seal(const UniqueId& id, const link::Key& session, std::string_view purpose);
// internal_error for bytes that seal() did not make with this key and purpose.
Result<UniqueId> unseal(std::span<const std::byte> sealed, const link::Key& session, std::string_view purpose);

}  // namespace shoal::comm
