// SPDX-License-Identifier: Apache-2.0
#include "transports/ucx/offer.h"

#include <algorithm>
#include <cstring>

namespace shoal::transports::ucx {

Result<std::size_t> OfferReader::take(std::span<const std::byte> bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && !is_complete()) {
    const std::size_t n = std::min(missing(), bytes.size() - taken);
    bytes_.insert(bytes_.end(), bytes.begin() + static_cast<std::ptrdiff_t>(taken),
                  bytes.begin() + static_cast<std::ptrdiff_t>(taken + n));
    taken += n;
    if (bytes_.size() != sizeof(Offer) || wanted_ != sizeof(Offer)) continue;
    std::memcpy(&offer_, bytes_.data(), sizeof offer_);
    if (Status good = check(); !good.is_ok()) return good;
    wanted_ = sizeof(Offer) + offer_.address_bytes;
  }
  return taken;
}

Status OfferReader::check() const {
  if (offer_.magic != expected_.magic || offer_.credits != expected_.credits || offer_.max_message != expected_.max_message)
    return fail(Code::remote_error, "offered {:#x}: {} messages of {} bytes; {:#x}: {} of {} expected", offer_.magic,
                offer_.credits, offer_.max_message, expected_.magic, expected_.credits, expected_.max_message);
  if (offer_.address_bytes == 0 || offer_.address_bytes > Offer::kLongestAddress)
    return fail(Code::remote_error, "offered an address of {} bytes, 1 to {} expected", offer_.address_bytes,
                Offer::kLongestAddress);
  return {};
}

}  // namespace shoal::transports::ucx
