// SPDX-License-Identifier: Apache-2.0
// Any bytes in place of a peer's blueprint: refused with a reason, or safe to use.
#include <cstdlib>
#include <cstring>

#include "transports/verbs/blueprint.h"

using shoal::transports::verbs::Blueprint;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  Blueprint ours;
  ours.credits = 4;
  ours.max_message = 65536;
  ours.memory = 4096;
  ours.rails_used = ours.queues_used = 1;
  Blueprint theirs = ours;  // what a short input leaves as it is
  theirs.rails.front().mtu = 1024;
  std::memcpy(&theirs, data, std::min(size, sizeof theirs));
  const shoal::Status checked = shoal::transports::verbs::check(theirs, ours);
  if (!checked.is_ok()) {
    if (checked.text().empty()) std::abort();
    for (const char each : checked.text())
      if (each < ' ' || each > '~') std::abort();  // it is logged
    return 0;
  }
  for (const Blueprint::Queue& queue : theirs.queue_list())
    if (theirs.rails.at(queue.rail).mtu < 256) std::abort();
  if (ours.joined(theirs) < 1) std::abort();
  return 0;
}
