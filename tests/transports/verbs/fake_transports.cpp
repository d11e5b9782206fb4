// SPDX-License-Identifier: Apache-2.0
// The conformance suite over devices of this process: one queue pair; and eight on two devices, whose writes overtake each other,
// and which inline nothing.
#include <array>

#include "transports/pair.h"
#include "transports/verbs/fake_verbs.h"
#include "transports/verbs/transport.h"

namespace shoal::transports {

Tested tested_transports() {
  static verbs::FakeFabric plain, wild;
  wild.devices = {verbs::fake_device("fake0", 1), verbs::fake_device("fake1", 2)};
  wild.overtaking = true;
  wild.inline_bytes = 0;
  static VerbsTransport one([] { return Result(plain.verbs()); }, IbOptions());
  static VerbsTransport many([] { return Result(wild.verbs()); }, IbOptions{.queue_pairs = 4});
  static const std::array<link::Transport*, 2> list{&one, &many};
  return {list, /*between_processes=*/false};
}

}  // namespace shoal::transports
