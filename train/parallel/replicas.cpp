// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/replicas.h"

#include <map>
#include <vector>

namespace shoal::train {

bool replicas_agree(const Communicator& comm, std::span<const Piece> pieces) {
  std::vector<std::uint64_t> most{pieces.size()};
  comm.all_reduce(std::span(most), Over::max);
  std::vector<std::uint64_t> mine(2 * most.front()), all(mine.size() * comm.seat().world);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    mine[2 * i] = place_key(pieces[i]);
    mine[2 * i + 1] = hash_bits(pieces[i].values);
  }
  comm.all_gather<std::uint64_t>(mine, std::span(all));
  std::map<std::uint64_t, std::uint64_t> seen;
  for (std::size_t i = 0; i < all.size(); i += 2)
    if (all[i] != 0 && seen.try_emplace(all[i], all[i + 1]).first->second != all[i + 1]) return false;
  return true;
}

}  // namespace shoal::train
