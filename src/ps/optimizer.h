// SPDX-License-Identifier: Apache-2.0
// What a server does to weights with a gradient. Stateless but for what a user's function keeps; driven by the server's thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.h"
#include "ps/config.h"

namespace shoal::ps {

// One application: `range` of keys, all of it in both places. Memory needs no alignment beyond its allocation's.
struct Application {
  KeyRange range;
  std::byte* weights;
  const std::byte* gradient;
  int workers = 1;  // in the gradient
  std::uint64_t iteration = 0;
};

class Optimizer {
 public:
  Optimizer(const Config& config, Rank server, const Own& own)
      : server_(server),
        type_(config.type),
        update_(config.update),
        rate_(config.rate),
        function_(own.function),
        user_(own.user) {}

  // Whether keys that nobody has pushed need an application too.
  bool wants_untouched() const { return update_ == Update::custom || update_ == Update::sum; }
  // Whether the gradient simply takes the weights' place.
  bool replaces() const { return update_ == Update::sum; }
  // invalid_usage if the user's function refuses, which makes this server the culprit.
  Status apply(const Application& application) const;

 private:
  Rank server_;
  DataType type_;
  Update update_;
  double rate_;
  UpdateFunction function_;
  void* user_;
};

}  // namespace shoal::ps
