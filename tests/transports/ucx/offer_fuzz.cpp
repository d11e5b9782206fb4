// SPDX-License-Identifier: Apache-2.0
// Any bytes in place of a peer's offer and its worker's address, in pieces of any size: refused with a reason, or taken to the
// end of the address and not a byte further.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "transports/ucx/offer.h"

using shoal::transports::ucx::Offer;
using shoal::transports::ucx::OfferReader;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  const Offer expected{.credits = 4, .max_message = 65536};
  const std::size_t piece = data[0] + std::size_t{1};
  const std::span<const std::byte> all = std::as_bytes(std::span(data, size)).subspan(1);
  OfferReader reader(expected);
  std::size_t taken = 0;
  while (taken < all.size() && !reader.is_complete()) {
    const std::span<const std::byte> some = all.subspan(taken, std::min(piece, all.size() - taken));
    const shoal::Result<std::size_t> got = reader.take(some);
    if (!got.is_ok()) {
      if (got.status().text().empty()) std::abort();
      return 0;
    }
    if (*got == 0 || *got > some.size()) std::abort();
    taken += *got;
  }
  if (!reader.is_complete()) return 0;
  const Offer& offer = reader.offer();
  if (offer.magic != Offer::kMagic || offer.credits != expected.credits || offer.max_message != expected.max_message)
    std::abort();
  if (offer.address_bytes == 0 || offer.address_bytes > Offer::kLongestAddress) std::abort();
  if (taken != sizeof offer + offer.address_bytes || reader.address().size() != offer.address_bytes) std::abort();
  if (std::memcmp(reader.address().data(), all.data() + sizeof offer, offer.address_bytes) != 0) std::abort();
  return 0;
}
