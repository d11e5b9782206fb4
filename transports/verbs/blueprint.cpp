// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/blueprint.h"

#include <algorithm>

namespace shoal::transports::verbs {
namespace {

constexpr std::uint32_t k24Bits = 0xffffff;  // numbers of queue pairs and packets

bool is_mtu(std::uint16_t bytes) { return bytes >= 256 && bytes <= 4096 && (bytes & (bytes - 1)) == 0; }

}  // namespace

void Blueprint::refuse(std::string_view why) {
  refusal = {};
  const std::size_t length = std::min(why.size(), refusal.size() - 1);
  std::copy_n(why.begin(), length, refusal.begin());
  if (why.empty()) refusal.front() = '?';
}

// Whatever a peer writes there goes into logs.
std::string Blueprint::refused() const {
  std::string text(refusal.begin(), std::find(refusal.begin(), refusal.end(), '\0'));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

Status check(const Blueprint& theirs, const Blueprint& ours) {
  const auto wrong = [](std::string_view what, auto is, auto wanted) {
    return fail(Code::remote_error, "offers {} {}, expected is {}", what, is, wanted);
  };
  if (theirs.magic != Blueprint::kMagic) return wrong("layout", theirs.magic, Blueprint::kMagic);
  if (std::string why = theirs.refused(); !why.empty()) return fail(Code::remote_error, "cannot use verbs: {}", why);
  if (theirs.credits != ours.credits) return wrong("credits", theirs.credits, ours.credits);
  if (theirs.max_message != ours.max_message) return wrong("bytes a message", theirs.max_message, ours.max_message);
  if (theirs.rails_used < 1 || theirs.rails_used > kMaxRails) return wrong("ports", theirs.rails_used, "1 to 4");
  if (theirs.queues_used < 1 || theirs.queues_used > kMaxQueues) return wrong("queue pairs", theirs.queues_used, "1 to 8");
  if (theirs.memory == 0 || theirs.memory % 64 != 0) return wrong("memory at", theirs.memory, "a multiple of 64");
  for (const Blueprint::Rail& rail : theirs.rail_list()) {
    if (!is_mtu(rail.mtu)) return wrong("packets of", rail.mtu, "256, 512, ... 4096 bytes");
    if (rail.ethernet > 1) return wrong("a wire of kind", rail.ethernet, "0 or 1");
    if (rail.ethernet != ours.rails.front().ethernet)
      return wrong("a wire of", rail.ethernet != 0 ? "RoCE" : "InfiniBand",
                   ours.rails.front().ethernet != 0 ? "RoCE" : "InfiniBand");
  }
  for (const Blueprint::Queue& queue : theirs.queue_list()) {
    if (queue.rail >= theirs.rails_used) return wrong("a queue pair on port", queue.rail, "one of those offered");
    if (queue.number > k24Bits || queue.first_packet > k24Bits)
      return wrong("a queue pair", queue.number, "one whose numbers have 24 bits");
  }
  return {};
}

}  // namespace shoal::transports::verbs
