// SPDX-License-Identifier: Apache-2.0
#include "transports/ucx/lane.h"

namespace shoal::transports::ucx {

ucs_status_t Lane::take(const FrameHeader& header, void* data, std::size_t bytes, std::uint64_t how) {
  if (header.kind == Kind::greeting) {
    greeted_ = true;
    return UCS_OK;
  }
  if (!sender_.credit(header.released)) {
    receiver_.refuse(fmt::format("says that it has released {} messages, more than it was sent", header.released));
    return UCS_OK;
  }
  const ucs_status_t taken = receiver_.take(header, data, bytes, how);
  if ((how & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 && taken == UCS_INPROGRESS) worker_.move_soon(*this);
  return taken;
}

}  // namespace shoal::transports::ucx
