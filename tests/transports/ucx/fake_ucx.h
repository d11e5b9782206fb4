// SPDX-License-Identifier: Apache-2.0
// A UCX that moves nothing, in which each step can be made to fail, and whose arriving messages a test makes up. One at a time.
#pragma once

#include <cstddef>
#include <span>

#include "transports/ucx/api.h"
#include "transports/ucx/frame.h"

namespace shoal::transports::ucx {

// What the next calls give.
struct FakeUcx {
  ucs_status_t config = UCS_OK, init = UCS_OK, worker = UCS_OK, handler = UCS_OK, descriptor = UCS_OK, address = UCS_OK;
  ucs_status_t endpoint = UCS_OK, send = UCS_OK, fetch = UCS_OK;
  // What happened.
  int contexts = 0, workers = 0, endpoints = 0, released = 0;  // alive; data given back
  FrameHeader sent;                                            // the last message's
  unsigned flags = 0;                                          // and how
  // As the worker and the path have set them.
  ucp_am_handler_param_t on_message{};
  ucp_err_handler_t on_error{};

  // Lets a message arrive. `how`: UCP_AM_RECV_ATTR flags.
  ucs_status_t deliver(const FrameHeader& header, std::span<std::byte> payload, std::uint64_t how = 0) const {
    ucp_am_recv_param_t param{};
    param.recv_attr = how;
    return on_message.cb(on_message.arg, &header, sizeof header, payload.data(), payload.size(), &param);
  }
};

FakeUcx& fake_ucx();  // that of fake_api()
Api fake_api();       // starts from a fresh one

}  // namespace shoal::transports::ucx
