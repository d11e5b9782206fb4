// SPDX-License-Identifier: Apache-2.0
#include "transports/ucx/api.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>

namespace shoal::transports::ucx {
namespace {

// What is done on each signal, so that it can be put back. Signals that nobody can handle are left out by the system.
class SignalHandlers {
 public:
  SignalHandlers() {
    for (int signal = 1; signal < kSignals; ++signal)
      known_[at(signal)] = ::sigaction(signal, nullptr, &actions_[at(signal)]) == 0;
  }
  void restore() const {
    for (int signal = 1; signal < kSignals; ++signal) {
      struct sigaction now {};
      if (!known_[at(signal)] || ::sigaction(signal, nullptr, &now) != 0 || same(now, actions_[at(signal)])) continue;
      (void)::sigaction(signal, &actions_[at(signal)], nullptr);
    }
  }

 private:
  static constexpr int kSignals = 32;  // those with names; nobody handles others when loaded
  static std::size_t at(int signal) { return static_cast<std::size_t>(signal); }
  static bool same(const struct sigaction& a, const struct sigaction& b) {
    return a.sa_flags == b.sa_flags &&
           ((a.sa_flags & SA_SIGINFO) != 0 ? a.sa_sigaction == b.sa_sigaction : a.sa_handler == b.sa_handler);
  }
  std::array<struct sigaction, kSignals> actions_{};
  std::array<bool, kSignals> known_{};
};

std::string loader_text() {
  const char* const text = ::dlerror();
  return text == nullptr ? "no reason given" : text;
}

bool is_set(const char* variable) { return ::getenv(variable) != nullptr; }

// RTLD_LOCAL: its symbols get in nobody's way. RTLD_NODELETE: it has threads and tables that outlive a handle.
Result<void*> load(const char* library) {
  constexpr int kHow = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  if (void* const there = ::dlopen(library, kHow | RTLD_NOLOAD)) return there;
  const SignalHandlers before;
  void* const loaded = ::dlopen(library, kHow);
  if (loaded == nullptr) return fail(Code::system_error, "{}: {}", library, loader_text());
  using Set = ucs_status_t (*)(const char* name, const char* value);
  const auto set = reinterpret_cast<Set>(::dlsym(loaded, "ucs_global_opts_set_value"));
  // What went wrong is in the errors that links report.
  if (set != nullptr && !is_set("UCX_LOG_LEVEL")) (void)set("LOG_LEVEL", "fatal");
  if (is_set("UCX_HANDLE_ERRORS") || is_set("UCX_ERROR_SIGNALS") || is_set("UCX_DEBUG_SIGNO")) return loaded;
  before.restore();
  // And where UCX itself has failed: no debugger, no backtrace that takes seconds.
  if (set != nullptr) (void)set("HANDLE_ERRORS", "");
  return loaded;
}

}  // namespace

Result<Api> open_library(const char* library) {
  const Result<void*> loaded = load(library);
  if (!loaded.is_ok()) return loaded.status();
  Api api;
  const char* missing = nullptr;
  const auto find = [&](auto& into, const char* name) {
    into = reinterpret_cast<std::remove_reference_t<decltype(into)>>(::dlsym(*loaded, name));
    if (into == nullptr && missing == nullptr) missing = name;
  };
  find(api.get_version, "ucp_get_version");
  find(api.get_version_string, "ucp_get_version_string");
  find(api.config_read, "ucp_config_read");
  find(api.config_modify, "ucp_config_modify");
  find(api.config_release, "ucp_config_release");
  find(api.init_version, "ucp_init_version");
  find(api.cleanup, "ucp_cleanup");
  find(api.worker_create, "ucp_worker_create");
  find(api.worker_destroy, "ucp_worker_destroy");
  find(api.worker_get_address, "ucp_worker_get_address");
  find(api.worker_release_address, "ucp_worker_release_address");
  find(api.worker_get_efd, "ucp_worker_get_efd");
  find(api.worker_arm, "ucp_worker_arm");
  find(api.worker_progress, "ucp_worker_progress");
  find(api.worker_set_am_recv_handler, "ucp_worker_set_am_recv_handler");
  find(api.ep_create, "ucp_ep_create");
  find(api.ep_close_nbx, "ucp_ep_close_nbx");
  find(api.ep_flush_nbx, "ucp_ep_flush_nbx");
  find(api.am_send_nbx, "ucp_am_send_nbx");
  find(api.am_recv_data_nbx, "ucp_am_recv_data_nbx");
  find(api.am_data_release, "ucp_am_data_release");
  find(api.request_check_status, "ucp_request_check_status");
  find(api.request_free, "ucp_request_free");
  find(api.status_string, "ucs_status_string");
  if (missing != nullptr) return fail(Code::system_error, "{} has no {}: UCX 1.10 or later is needed", library, missing);
  return api;
}

}  // namespace shoal::transports::ucx
