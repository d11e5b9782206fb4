// SPDX-License-Identifier: Apache-2.0
#include "comm/several_roots.h"

#include <algorithm>

#include "comm/wire.h"
#include "link/handshake.h"

namespace shoal::comm {

std::size_t root_of(Rank rank, World world, std::size_t ids) {
  const auto r = static_cast<std::size_t>(rank.value), n = static_cast<std::size_t>(world.value);
  const std::size_t shorter = n / ids, longer_blocks = n % ids, in_longer = longer_blocks * (shorter + 1);
  return r < in_longer ? r / (shorter + 1) : longer_blocks + (r - in_longer) / shorter;
}

Result<std::vector<UniqueId>> distinct_ids(std::span<const UniqueId> ids, World world) {
  if (ids.empty()) return fail(Code::invalid_argument, "a communicator needs a unique id, and none was given");
  const auto same_as_first = [&](const UniqueId& id) { return id.key == ids.front().key; };
  if (std::all_of(ids.begin(), ids.end(), same_as_first)) return std::vector<UniqueId>{ids.front()};
  if (ids.size() > static_cast<std::size_t>(std::max(world.value, 1)))
    return fail(Code::invalid_argument, "{} unique ids for a communicator of {} ranks: at most one a rank is allowed", ids.size(),
                world.value);
  for (std::size_t i = 0; i < ids.size(); ++i)
    for (std::size_t j = i + 1; j < ids.size(); ++j)
      if (ids[i].key == ids[j].key)
        return fail(Code::invalid_argument, "the unique ids number {} and {} are the same: each must come from a call of its own",
                    i, j);
  return std::vector<UniqueId>(ids.begin(), ids.end());
}

std::uint64_t digest_of(std::span<const UniqueId> ids) {
  ByteWriter all;
  for (const UniqueId& id : ids) all.raw(id.key.bytes);
  const link::Key digest = link::derive_key(all.take(), "shoal: list of unique ids");
  return ByteReader(digest.bytes).number<std::uint64_t>();
}

}  // namespace shoal::comm
