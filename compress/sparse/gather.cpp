// SPDX-License-Identifier: Apache-2.0
#include "compress/sparse/from_rank.h"
#include "compress/sparse/kernels.h"
#include "compress/sparse/schedules.h"

namespace shoal::compress::sparse {

Stages Gather::run(float* output, std::uint64_t n, const Place& place, const Contribution& own,
                   std::span<const Announcement> announced) {
  lengths_.renew(place.world);
  std::uint64_t bytes = 0;
  for (std::size_t q = 0; q < announced.size(); ++q) bytes += lengths_.received()[q] = announced[q].bytes;
  const Layout layout = layout_of(own.entries, 0, n, own.values);
  message_.resize(layout.bytes);
  arrived_.resize(bytes);
  encode(own.entries, 0, n, own.values, layout, message_.data());
  co_yield lengths_.all_gather(message_.data(), arrived_.data());

  fill_zero(output, n);
  for (std::size_t q = 0; q < announced.size(); ++q) {
    const std::span<const std::byte> message(arrived_.data() + lengths_.received_at(q), announced[q].bytes);
    if (Status status = decode_add(message, n, output); !status.is_ok()) co_return from_rank(q, status);
  }
  co_return Status();
}

}  // namespace shoal::compress::sparse
