// SPDX-License-Identifier: Apache-2.0
// Any bytes: the parser refuses them with a text, or gives a host that is valid and written the same from then on.
#include <cstdlib>
#include <string_view>

#include "topo/files/nccl_xml.h"

namespace {

void require(bool held) {
  if (!held) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace shoal::topo;
  const shoal::Result<Host> host = parse_nccl_xml({reinterpret_cast<const char*>(data), size});
  if (!host.is_ok()) {
    require(!host.status().text().empty());
    return 0;
  }
  require(validate(*host).is_ok());
  const std::string text = nccl_xml_of(*host);
  const shoal::Result<Host> again = parse_nccl_xml(text);
  require(again.is_ok() && nccl_xml_of(*again) == text);
  return 0;
}
