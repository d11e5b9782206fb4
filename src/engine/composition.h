// SPDX-License-Identifier: Apache-2.0
// A call that is made of several collectives with work of its own between them: a sum in exact numerics, a compressed all-reduce.
#pragma once

#include <optional>

#include "core/status.h"
#include "core/types.h"

namespace shoal::engine {

struct Call;

// Payload that one rank has sent to, and received from, the others.
struct Traffic {
  Bytes sent;
  Bytes received;
};

// One rank's; one thread at a time. It may be thrown away between two collectives, when the call fails.
class Composition {
 public:
  virtual ~Composition() = default;
  // The next collective to run, once the one before has ended; nothing: the output is there. All ranks get the same sequence of
  // collectives. Whoever runs them numbers them. May throw std::bad_alloc.
  virtual Result<std::optional<Call>> next() = 0;
  // What the collective that has ended has moved.
  virtual void moved(const Traffic& /*traffic*/) {}
};

}  // namespace shoal::engine
