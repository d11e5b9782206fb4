// SPDX-License-Identifier: Apache-2.0
#include "transports/ucx/context.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "core/log.h"

namespace shoal::transports::ucx {
namespace {

struct Wish {
  const char* key;  // as in UCX's environment, without UCX_
  const char* value;
  const char* early_key;  // as ucp_config_modify took it up to UCX 1.13
};
constexpr std::array<Wish, 3> kWishes{{
    // Else shared memory is left out where errors are to be reported. That a peer died is known from the handshake's stream.
    {"POSIX_ERROR_HANDLING", "y", "MM_ERROR_HANDLING"},
    {"SYSV_ERROR_HANDLING", "y", "MM_ERROR_HANDLING"},
    // For the same reason: a probe of a peer that has left would make UCX drop what it sent last.
    {"KEEPALIVE_INTERVAL", "inf", "KEEPALIVE_INTERVAL"},
}};

void apply(const Api& api, ucp_config_t* config) {
  unsigned major = 0, minor = 0, release = 0;
  api.get_version(&major, &minor, &release);
  const bool early = major == 1 && minor <= 13;
  for (const Wish& wish : kWishes) {
    if (::getenv((std::string("UCX_") + wish.key).c_str()) != nullptr) continue;
    const char* const key = early ? wish.early_key : wish.key;
    const ucs_status_t done = api.config_modify(config, key, wish.value);
    if (done != UCS_OK) log::info(log::Subsystem::net, -1, "ucx: this version knows no {} ({})", key, text_of(api, done));
  }
}

}  // namespace

std::string text_of(const Api& api, ucs_status_t status) {
  return fmt::format("{} ({})", api.status_string(status), static_cast<int>(status));
}

Context::Context(const Api& api) : api_(api), process_(::getpid()) {}

Result<std::shared_ptr<Context>> Context::create(const Api& api) {
  std::shared_ptr<Context> context(new Context(api));
  ucp_config_t* config = nullptr;
  if (const ucs_status_t read = api.config_read(nullptr, nullptr, &config); read != UCS_OK)
    return fail(Code::system_error, "ucp_config_read: {}", text_of(api, read));
  apply(api, config);
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.mt_workers_shared = 1;
  const ucs_status_t made = api.init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context->handle_);
  api.config_release(config);
  if (made != UCS_OK) {
    context->handle_ = nullptr;
    return fail(Code::system_error, "ucp_init: {}; UCX_TLS and UCX_NET_DEVICES say which transports and devices it may use",
                text_of(api, made));
  }
  return context;
}

Context::~Context() {
  if (handle_ != nullptr && is_of_this_process()) api_.cleanup(handle_);
}

bool Context::is_of_this_process() const { return ::getpid() == process_; }

}  // namespace shoal::transports::ucx
