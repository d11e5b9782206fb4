// SPDX-License-Identifier: Apache-2.0
#include "comm/agreed_port.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <thread>

#include "comm/deadline.h"

namespace shoal::comm {
namespace {

using namespace std::chrono_literals;

bool is_numeric(const std::string& host) {
  std::array<unsigned char, 16> binary;
  const std::string without_scope = host.substr(0, host.find('%'));
  return inet_pton(AF_INET, host.c_str(), binary.data()) == 1 || inet_pton(AF_INET6, without_scope.c_str(), binary.data()) == 1;
}

Result<link::Listener> listen_once(const link::HostPort& where) {
  if (is_numeric(where.host)) return link::listen_tcp(where.host, where.port);
  Result<link::Listener> both = link::listen_tcp("::", where.port);  // IPv4, too
  if (both.is_ok()) return both;
  return link::listen_tcp("0.0.0.0", where.port);
}

}  // namespace

Result<link::Listener> listen_at_agreed(const link::HostPort& where, std::chrono::milliseconds patience) {
  const Deadline deadline(std::max(patience, 1ms));
  while (true) {
    Result<link::Listener> listener = listen_once(where);
    if (listener.is_ok() || deadline.passed()) return listener;
    std::this_thread::sleep_for(20ms);
  }
}

}  // namespace shoal::comm
