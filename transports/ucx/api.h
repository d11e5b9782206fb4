// SPDX-License-Identifier: Apache-2.0
// The face of UCX that links use: the functions of libucp, found at run time, so that a machine without the library runs
// everything else, and so that tests can put others in their place. Value type; the library stays loaded until the process ends.
#pragma once

#include <ucp/api/ucp.h>

#include "core/status.h"

namespace shoal::transports::ucx {

struct Api {
  decltype(&::ucp_get_version) get_version = nullptr;
  decltype(&::ucp_get_version_string) get_version_string = nullptr;
  decltype(&::ucp_config_read) config_read = nullptr;
  decltype(&::ucp_config_modify) config_modify = nullptr;
  decltype(&::ucp_config_release) config_release = nullptr;
  decltype(&::ucp_init_version) init_version = nullptr;
  decltype(&::ucp_cleanup) cleanup = nullptr;
  decltype(&::ucp_worker_create) worker_create = nullptr;
  decltype(&::ucp_worker_destroy) worker_destroy = nullptr;
  decltype(&::ucp_worker_get_address) worker_get_address = nullptr;
  decltype(&::ucp_worker_release_address) worker_release_address = nullptr;
  decltype(&::ucp_worker_get_efd) worker_get_efd = nullptr;
  decltype(&::ucp_worker_arm) worker_arm = nullptr;
  decltype(&::ucp_worker_progress) worker_progress = nullptr;
  decltype(&::ucp_worker_set_am_recv_handler) worker_set_am_recv_handler = nullptr;
  decltype(&::ucp_ep_create) ep_create = nullptr;
  decltype(&::ucp_ep_close_nbx) ep_close_nbx = nullptr;
  decltype(&::ucp_ep_flush_nbx) ep_flush_nbx = nullptr;
  decltype(&::ucp_am_send_nbx) am_send_nbx = nullptr;
  decltype(&::ucp_am_recv_data_nbx) am_recv_data_nbx = nullptr;
  decltype(&::ucp_am_data_release) am_data_release = nullptr;
  decltype(&::ucp_request_check_status) request_check_status = nullptr;
  decltype(&::ucp_request_free) request_free = nullptr;
  decltype(&::ucs_status_string) status_string = nullptr;
};

inline constexpr const char* kLibrary = "libucp.so.0";

// Loads the library. system_error says what is missing: the file, or the function. The handlers of signals are afterwards those
// that were there before: UCX would print a backtrace where the program wants to be ended by SIGSEGV, and wait for a debugger
// at SIGHUP. Whoever sets UCX_HANDLE_ERRORS, UCX_ERROR_SIGNALS or UCX_DEBUG_SIGNO, or has loaded UCX before, keeps what they
// have.
Result<Api> open_library(const char* library = kLibrary);

}  // namespace shoal::transports::ucx
