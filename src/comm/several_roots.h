// SPDX-License-Identifier: Apache-2.0
// A communicator made from several unique ids: which root service gathers which rank, and what all ranks must agree on. Each
// service gathers its own ranks; the first one knows everybody, the others pass on (upstream.h). Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/unique_id.h"
#include "core/status.h"
#include "core/types.h"

namespace shoal::comm {

// Ranks are dealt out in contiguous blocks, as equal as possible, longer ones first: 7 ranks and 3 ids make 0 1 2 | 3 4 | 5 6.
std::size_t root_of(Rank rank, World world, std::size_t ids);

// The ids as they count: one if all are the same (NCCL_COMM_ID). invalid_argument for none, for more than there are ranks, and
// for one that stands twice among others, naming the places.
Result<std::vector<UniqueId>> distinct_ids(std::span<const UniqueId> ids, World world);

// What ranks compare, to find out that they were given different lists.
std::uint64_t digest_of(std::span<const UniqueId> ids);

}  // namespace shoal::comm
