// SPDX-License-Identifier: Apache-2.0
// The grammar that NCCL_SOCKET_IFNAME, NCCL_IB_HCA and their relatives share: [^][=]name[:port],name[:port]... Names are
// prefixes, or exact after '=', and those that must not be used after '^' ('^=': exact names, excluded). Value type.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace shoal {

class NameFilter {
 public:
  // What is named: network interfaces, which have no ports (a number behind one is read and means nothing), or devices, whose
  // ports are 1 to 255; without one all of the device's are meant.
  enum class Of : std::uint8_t { interfaces, devices };

  // The empty text admits everything. invalid_argument names `variable`, the text and what is wrong with it.
  static Result<NameFilter> parse(std::string_view variable, std::string_view text, Of what = Of::interfaces);

  bool admits(std::string_view name, int port = 0) const;
  // Whether the filter asks for this name, rather than only not excluding it.
  bool names(std::string_view name) const { return !entries_.empty() && !excludes_ && admits(name); }

 private:
  struct Entry {
    std::string name;
    int port = 0;  // 0: any
  };
  bool excludes_ = false;
  bool exact_ = false;
  std::vector<Entry> entries_;
};

}  // namespace shoal
