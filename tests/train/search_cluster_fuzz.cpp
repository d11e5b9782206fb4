// SPDX-License-Identifier: Apache-2.0
// Any bytes: refused with a text, or a cluster of some ranks whose numbers are numbers. seeds/fuzz_search_cluster holds one.
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "train/error.h"
#include "train/search/cluster.h"

namespace {

void require(bool held) {
  if (!held) std::abort();
}

void require_wire(const shoal::train::Wire& wire) {
  require(wire.latency_s >= 0 && std::isfinite(wire.latency_s));
  require(wire.bandwidth_Bps >= 1 && std::isfinite(wire.bandwidth_Bps));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace shoal::train;
  try {
    const SearchCluster cluster = parse_search_cluster({reinterpret_cast<const char*>(data), size});
    require(cluster.hosts >= 1 && cluster.ranks_per_host >= 1 && cluster.ranks() <= 1024);
    require_wire(cluster.within);
    require_wire(cluster.nics);
    require(cluster.flops >= 1 && std::isfinite(cluster.flops));
    require(cluster.memory_bytes >= 1 && std::isfinite(cluster.memory_bytes));
  } catch (const Error& error) {
    require(*error.what() != '\0');
  }
  return 0;
}
