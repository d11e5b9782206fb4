// SPDX-License-Identifier: Apache-2.0
#include "transports/ucx/fake_ucx.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>

namespace shoal::transports::ucx {
namespace {

constexpr std::size_t kAddress = 40;
char some_address[kAddress];
int descriptor = -1;

// Handles mean nothing here, but are not null.
template <typename T>
T handle() {
  return reinterpret_cast<T>(&some_address);
}
ucs_status_ptr_t result(ucs_status_t status) { return status == UCS_OK ? nullptr : UCS_STATUS_PTR(status); }

}  // namespace

FakeUcx& fake_ucx() {
  static FakeUcx fake;
  return fake;
}

Api fake_api() {
  fake_ucx() = {};
  Api api;
  api.get_version = [](unsigned* major, unsigned* minor, unsigned* release) { *major = 1, *minor = 13, *release = 0; };
  api.get_version_string = [] { return "fake"; };
  api.config_read = [](const char*, const char*, ucp_config_t** config) {
    *config = handle<ucp_config_t*>();
    return fake_ucx().config;
  };
  api.config_modify = [](ucp_config_t*, const char*, const char*) { return UCS_OK; };
  api.config_release = [](ucp_config_t*) {};
  api.init_version = [](unsigned, unsigned, const ucp_params_t*, const ucp_config_t*, ucp_context_h* context) {
    *context = handle<ucp_context_h>();
    fake_ucx().contexts += fake_ucx().init == UCS_OK ? 1 : 0;
    return fake_ucx().init;
  };
  api.cleanup = [](ucp_context_h) { --fake_ucx().contexts; };
  api.worker_create = [](ucp_context_h, const ucp_worker_params_t*, ucp_worker_h* worker) {
    *worker = handle<ucp_worker_h>();
    fake_ucx().workers += fake_ucx().worker == UCS_OK ? 1 : 0;
    return fake_ucx().worker;
  };
  api.worker_destroy = [](ucp_worker_h) {
    --fake_ucx().workers;
    if (descriptor >= 0) ::close(descriptor);
    descriptor = -1;
  };
  api.worker_get_address = [](ucp_worker_h, ucp_address_t** address, std::size_t* length) {
    *address = handle<ucp_address_t*>();
    *length = kAddress;
    return fake_ucx().address;
  };
  api.worker_release_address = [](ucp_worker_h, ucp_address_t*) {};
  api.worker_get_efd = [](ucp_worker_h, int* into) {
    *into = descriptor = ::eventfd(0, EFD_CLOEXEC);
    return fake_ucx().descriptor;
  };
  api.worker_arm = [](ucp_worker_h) { return UCS_OK; };
  api.worker_progress = [](ucp_worker_h) { return 0u; };
  api.worker_set_am_recv_handler = [](ucp_worker_h, const ucp_am_handler_param_t* handler) {
    fake_ucx().on_message = *handler;
    return fake_ucx().handler;
  };
  api.ep_create = [](ucp_worker_h, const ucp_ep_params_t* params, ucp_ep_h* endpoint) {
    *endpoint = handle<ucp_ep_h>();
    fake_ucx().on_error = params->err_handler;
    fake_ucx().endpoints += fake_ucx().endpoint == UCS_OK ? 1 : 0;
    return fake_ucx().endpoint;
  };
  api.ep_close_nbx = [](ucp_ep_h, const ucp_request_param_t*) -> ucs_status_ptr_t {
    --fake_ucx().endpoints;
    return nullptr;
  };
  api.ep_flush_nbx = [](ucp_ep_h, const ucp_request_param_t*) -> ucs_status_ptr_t { return nullptr; };
  api.am_send_nbx = [](ucp_ep_h, unsigned, const void* header, std::size_t bytes, const void*, std::size_t,
                       const ucp_request_param_t* param) {
    if (bytes == sizeof(FrameHeader)) std::memcpy(&fake_ucx().sent, header, bytes);
    fake_ucx().flags = param->flags;
    return result(fake_ucx().send);
  };
  api.am_recv_data_nbx = [](ucp_worker_h, void* announcement, void* into, std::size_t bytes, const ucp_request_param_t*) {
    if (fake_ucx().fetch == UCS_OK) std::memcpy(into, announcement, bytes);
    return result(fake_ucx().fetch);
  };
  api.am_data_release = [](ucp_worker_h, void*) { ++fake_ucx().released; };
  api.request_check_status = [](void*) { return UCS_OK; };
  api.request_free = [](void*) {};
  api.status_string = [](ucs_status_t) { return "as the test wants it"; };
  return api;
}

}  // namespace shoal::transports::ucx
