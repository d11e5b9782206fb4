// SPDX-License-Identifier: Apache-2.0
// The grammar that NCCL_SOCKET_IFNAME and its relatives share: [^][=]name[:port],name[:port]... Names are prefixes, or exact
// after '=', and those that must not be used after '^' ('^=': exact names, excluded). Value type.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace shoal {

class NameFilter {
 public:
  // The empty text admits every name. invalid_argument names `variable`, the text and what is wrong with it.
  static Result<NameFilter> parse(std::string_view variable, std::string_view text);

  bool admits(std::string_view name) const;
  // Whether the filter asks for this name, rather than only not excluding it.
  bool names(std::string_view name) const { return !names_.empty() && !excludes_ && admits(name); }

 private:
  bool excludes_ = false;
  bool exact_ = false;
  std::vector<std::string> names_;  // without their ports: an interface has none
};

}  // namespace shoal
