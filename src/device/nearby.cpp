// SPDX-License-Identifier: Apache-2.0
#include "device/nearby.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include "core/conf_file.h"
#include "core/topo_options.h"

namespace shoal::device {
namespace {

constexpr const char* kNodes = "/sys/devices/system/node";

// Those of cpu_set_t, which are 1024: a machine with more says so by an error, and its threads run where they may.
std::vector<int> allowed() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return processors;
  for (int each = 0; each < CPU_SETSIZE; ++each)
    if (CPU_ISSET(static_cast<std::size_t>(each), &mask)) processors.push_back(each);
  return processors;
}

std::vector<int> all() {
  std::vector<int> processors;
  for (int each = 0; each < CPU_SETSIZE && each < sysconf(_SC_NPROCESSORS_CONF); ++each) processors.push_back(each);
  return processors;
}

}  // namespace

std::vector<int> on_node(const std::string& folder, unsigned node, const std::vector<int>& processors) {
  std::vector<int> on;
  for (const int each : processors)
    if (access(fmt::format("{}/node{}/cpu{}", folder, node, each).c_str(), F_OK) == 0) on.push_back(each);
  return on.size() == processors.size() ? std::vector<int>() : on;
}

std::vector<int> processors_nearby() {
  static const auto options = parse_topo_options(variable);
  unsigned processor = 0, node = 0;
  if (!options.is_ok() || !options->stream_affinity || getcpu(&processor, &node) != 0) return {};
  return on_node(kNodes, node, options->ignore_affinity ? all() : allowed());
}

void keep_to(const std::vector<int>& processors) {
  if (processors.empty()) return;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int each : processors) CPU_SET(static_cast<std::size_t>(each), &mask);
  (void)sched_setaffinity(0, sizeof mask, &mask);
}

}  // namespace shoal::device
