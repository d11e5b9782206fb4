// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/functions.h"

#include <dlfcn.h>

namespace shoal::transports::verbs {
namespace {

template <typename F>
void find(void* library, const char* name, F& into, const char*& missing) {
  into = reinterpret_cast<F>(::dlsym(library, name));
  if (into == nullptr && missing == nullptr) missing = name;
}

}  // namespace

Result<Functions> load_functions() {
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fail(Code::system_error, "{}", ::dlerror());
  Functions f{};
  const char* missing = nullptr;
  const char* optional = "";
  find(library, "ibv_fork_init", f.fork_init, missing);
  find(library, "ibv_get_device_list", f.get_device_list, missing);
  find(library, "ibv_free_device_list", f.free_device_list, missing);
  find(library, "ibv_get_device_name", f.get_device_name, missing);
  find(library, "ibv_open_device", f.open_device, missing);
  find(library, "ibv_close_device", f.close_device, missing);
  find(library, "ibv_query_device", f.query_device, missing);
  find(library, "ibv_query_port", f.query_port, missing);
  find(library, "_ibv_query_gid_table", f.query_gid_table, missing);
  find(library, "ibv_alloc_pd", f.alloc_pd, missing);
  find(library, "ibv_dealloc_pd", f.dealloc_pd, missing);
  find(library, "ibv_reg_mr", f.reg_mr, missing);
  find(library, "ibv_reg_dmabuf_mr", f.reg_dmabuf_mr, optional);
  find(library, "ibv_dereg_mr", f.dereg_mr, missing);
  find(library, "ibv_create_comp_channel", f.create_comp_channel, missing);
  find(library, "ibv_destroy_comp_channel", f.destroy_comp_channel, missing);
  find(library, "ibv_create_cq", f.create_cq, missing);
  find(library, "ibv_destroy_cq", f.destroy_cq, missing);
  find(library, "ibv_get_cq_event", f.get_cq_event, missing);
  find(library, "ibv_ack_cq_events", f.ack_cq_events, missing);
  find(library, "ibv_create_qp", f.create_qp, missing);
  find(library, "ibv_modify_qp", f.modify_qp, missing);
  find(library, "ibv_destroy_qp", f.destroy_qp, missing);
  find(library, "ibv_get_async_event", f.get_async_event, missing);
  find(library, "ibv_ack_async_event", f.ack_async_event, missing);
  if (missing != nullptr) return fail(Code::system_error, "{} has no {}", kLibrary, missing);
  // Old kernels copy pinned pages away from the parent at fork unless told so before the first registration.
  if (const int error = f.fork_init(); error != 0)
    return fail(Code::system_error, "{} cannot be used by programs that fork: {}", kLibrary, errno_text(error));
  return f;
}

}  // namespace shoal::transports::verbs
