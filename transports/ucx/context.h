// SPDX-License-Identifier: Apache-2.0
// UCX as this process uses it: one context, from the first worker to the last, so that nothing is left when the last one has
// gone. Any thread may make one; workers share it.
#pragma once

#include <sys/types.h>

#include <memory>

#include "core/status.h"
#include "transports/ucx/api.h"

namespace shoal::transports::ucx {

class Context {
 public:
  // Reads UCX's own environment (UCX_TLS, UCX_NET_DEVICES, ...). What Shoal wants otherwise than UCX by default is changed only
  // where that environment says nothing.
  static Result<std::shared_ptr<Context>> create(const Api& api);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  const Api& api() const { return api_; }
  ucp_context_h handle() const { return handle_; }
  // False in a child that was forked while this lived: UCX's threads are not there.
  bool is_of_this_process() const;

 private:
  explicit Context(const Api& api);

  Api api_;
  ucp_context_h handle_ = nullptr;
  pid_t process_;
};

// "Destination is unreachable (-6)"
std::string text_of(const Api& api, ucs_status_t status);

}  // namespace shoal::transports::ucx
