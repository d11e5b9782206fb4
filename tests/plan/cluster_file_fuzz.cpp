// SPDX-License-Identifier: Apache-2.0
// Any bytes: the parser refuses them with a text, or gives a cluster that is valid, has a place for every rank, and is written
// and read back the same.
#include <cstdlib>
#include <string_view>

#include "plan/simulator/cluster_file.h"

namespace {

void require(bool held) {
  if (!held) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace shoal::plan;
  const shoal::Result<Cluster> cluster = parse_cluster({reinterpret_cast<const char*>(data), size});
  if (!cluster.is_ok()) {
    require(!cluster.status().text().empty());
    return 0;
  }
  require(validate(*cluster).is_ok());
  const shoal::World world{cluster->ranks() < 1024 ? cluster->ranks() : 1024};
  require(places(*cluster, world).size() == static_cast<std::size_t>(world.value));
  const std::string text = text_of(*cluster);
  const shoal::Result<Cluster> again = parse_cluster(text);
  require(again.is_ok() && text_of(*again) == text);
  return 0;
}
