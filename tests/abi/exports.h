// SPDX-License-Identifier: Apache-2.0
// The table of exported functions, for the tests that compare it with something.
#pragma once

#include <string>
#include <vector>

namespace testing {

enum class Header { nccl_h, nccl_device_h, no_header, shoal_h };

struct Export {
  std::string name;
  Header header;
  std::string since;
  bool paired() const { return header == Header::nccl_h || header == Header::nccl_device_h; }
};

inline const std::vector<Export>& exports() {
#define SHOAL_EXPORT(name, header, since) {#name, Header::header, since},
  static const std::vector<Export> table{
#include "api/exports.inc"
  };
#undef SHOAL_EXPORT
  return table;
}

}  // namespace testing
