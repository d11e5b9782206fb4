// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/volume.h"

#include <fmt/format.h>

namespace shoal::train {

std::string beside_formulas(const Ledger& counted, std::uint64_t steps, std::span<const Volume> expected) {
  std::string text;
  for (std::size_t i = 0; i < kMovesNames.size(); ++i) {
    const Ledger::Sent& sent = counted.sent(static_cast<Moves>(i));
    Volume all{.how = static_cast<Moves>(i)};
    for (const Volume& each : expected) {
      if (each.how != all.how) continue;
      all.calls += each.calls;
      all.bytes += each.bytes;
      if (each.calls > 0) all.what += fmt::format("{}{}", all.what.empty() ? "" : "; ", each.what);
    }
    if (sent.calls == 0 && all.calls == 0) continue;
    const bool same = sent.calls == steps * all.calls && sent.bytes == steps * all.bytes;
    text += fmt::format("  {} a step ({}): {}\n", kMovesNames[i], all.what,
                        same ? "as the formula"
                             : fmt::format("NOT as the formula: {} calls of {} bytes in {} steps, expected {} of {}", sent.calls,
                                           sent.bytes, steps, steps * all.calls, steps * all.bytes));
  }
  return text;
}

}  // namespace shoal::train
