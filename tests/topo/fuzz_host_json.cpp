// SPDX-License-Identifier: Apache-2.0
// Any bytes: the parser refuses them with a text, or gives a host that is valid, and that its own text gives back.
#include <cstdlib>
#include <string_view>

#include "topo/files/host_json.h"

namespace {

void require(bool held) {
  if (!held) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace shoal::topo;
  const shoal::Result<Host> host = parse_host({reinterpret_cast<const char*>(data), size});
  if (!host.is_ok()) {
    require(!host.status().text().empty());
    return 0;
  }
  require(validate(*host).is_ok());
  const shoal::Result<Host> again = parse_host(json_of(*host));
  require(again.is_ok() && *again == *host);
  return 0;
}
