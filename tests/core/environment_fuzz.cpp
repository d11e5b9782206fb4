// SPDX-License-Identifier: Apache-2.0
// Any bytes as the value of each variable: the parser gives an environment within its bounds, or invalid_argument. The first byte
// chooses the variable; filters are also asked about a name. The same bytes as a file of settings and as a format of the time.
#include <cstdlib>
#include <string>

#include "core/conf_file.h"
#include "core/environment.h"
#include "core/host_port.h"
#include "core/log_format.h"
#include "core/name_filter.h"

namespace {

void require(bool held) {
  if (!held) std::abort();
}

constexpr const char* kVariables[] = {"NCCL_DEBUG",
                                      "NCCL_SOCKET_IFNAME",
                                      "NCCL_SOCKET_FAMILY",
                                      "NCCL_COMM_ID",
                                      "NCCL_SHM_DISABLE",
                                      "NCCL_NET",
                                      "SHOAL_ALGO",
                                      "NCCL_ALGO",
                                      "SHOAL_TIMEOUT_MS",
                                      "SHOAL_SLICE_BYTES",
                                      "SHOAL_CREDITS",
                                      "SHOAL_IN_FLIGHT",
                                      "SHOAL_SPIN_US",
                                      "NCCL_DEBUG_FILE",
                                      "NCCL_HOSTID",
                                      "SHOAL_SECRET",
                                      "SHOAL_SOCKET_IFNAME",
                                      "NCCL_DEBUG_SUBSYS",
                                      "NCCL_SOCKET_RETRY_CNT",
                                      "NCCL_SOCKET_RETRY_SLEEP_MSEC",
                                      "NCCL_DEBUG_TIMESTAMP_FORMAT",
                                      "NCCL_DEBUG_TIMESTAMP_LEVELS"};

void check_bounds(const shoal::Environment& e) {
  require(e.timeout_ms >= 0 && e.timeout_ms <= 1'000'000'000'000);
  require(e.slice_bytes == 0 || (e.slice_bytes >= 64 && e.slice_bytes <= 16 << 20));
  require(e.credits >= 0 && e.credits <= 64 && e.in_flight >= 0 && e.in_flight <= 16 && e.spin_us >= -1);
  require(e.socket_retry_count >= -1 && e.socket_retry_count <= 1'000'000);
  require(e.socket_retry_sleep_ms >= -1 && e.socket_retry_sleep_ms <= 100'000);
  if (e.socket_ifname.empty()) return;
  const shoal::Result<shoal::NameFilter> filter = shoal::NameFilter::parse("f", e.socket_ifname);
  require(filter.is_ok());
  static_cast<void>(filter->admits("eth0"));
}

void check_texts(const std::string& text) {
  const shoal::ConfFile file = shoal::parse_conf_file(text, "f");
  for (const auto& [name, setting] : file.values)
    require((name.starts_with("NCCL_") || name.starts_with("SHOAL_")) && setting.find('\n') == std::string::npos);
  for (const std::string& complaint : file.complaints) require(complaint.starts_with("f:"));
  require(shoal::log::subsystems_from(text) >> 18 == 0 && shoal::log::levels_from(text) >> 5 == 0);
  static_cast<void>(shoal::log::format_time(text, {}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string variable = kVariables[data[0] % std::size(kVariables)];
  const std::string value(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto parsed =
      shoal::parse_environment([&](const char* name) { return name == variable ? std::optional(value) : std::nullopt; });
  if (parsed.is_ok())
    check_bounds(*parsed);
  else
    require(parsed.status().code() == shoal::Code::invalid_argument);
  check_texts(value);
  const shoal::Result<shoal::HostPort> where = shoal::parse_host_port(value);
  if (where.is_ok()) {
    const shoal::Result<shoal::HostPort> again = shoal::parse_host_port(to_text(*where));
    require(again.is_ok() && *again == *where);
  }
  return 0;
}
