// SPDX-License-Identifier: Apache-2.0
// The last call of a communicator whose arguments were found good, kept beside what they mean: most calls are followed by their
// like, which needs no second look. The issuing thread's.
#pragma once

#include <nccl.h>
#include <shoal/shoal.h>

#include <cstddef>
#include <optional>

#include "engine/call.h"

namespace shoal::api {

// The arguments of any collective of NCCL's; `count` is of the vector, or of one block.
struct CollectiveArguments {
  plan::Collective collective = plan::Collective::all_reduce;
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  int root = 0;
  std::optional<shoalNumerics> numerics = std::nullopt;  // else the communicator's
  friend bool operator==(const CollectiveArguments&, const CollectiveArguments&) = default;
};

class CheckedCall {
 public:
  bool is(const CollectiveArguments& arguments) const { return arguments_.has_value() && *arguments_ == arguments; }
  engine::Call& call() { return call_; }
  void set(const CollectiveArguments& arguments, engine::Call call) {
    arguments_ = arguments;
    call_ = std::move(call);
  }
  // What arguments mean has changed.
  void forget() { arguments_.reset(); }

 private:
  std::optional<CollectiveArguments> arguments_;
  engine::Call call_;
};

}  // namespace shoal::api
