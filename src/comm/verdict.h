// SPDX-License-Identifier: Apache-2.0
// Who is to blame, from what all ranks say of themselves. Pure function: the root service uses it on live ranks, `shoal-plan
// desync` on the dumps of dead ones.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/messages.h"
#include "comm/report.h"
#include "link/link.h"

namespace shoal::comm {

// One rank, as the root knows it.
struct Witness {
  link::PeerIdentity who;
  std::optional<Report> report;  // nothing: it does not answer
  bool left = false;             // in order; its report is what it said last
  std::string condition;         // of a rank that does not answer, where it is known: "stopped by a signal"
};

// Calls that contradict each other, lengths that do not meet, ranks that left too early are a verdict whatever the alarm; ranks
// that do not answer or have not come are one for a timeout or a broken link only. Nothing: nobody is to blame (yet).
// `own` is what the rank with the alarm would say if nobody knew better; `accuser` is that rank.
std::optional<Notice> judge(const std::vector<Witness>& witnesses, Alarm alarm, std::int32_t accuser, const Notice& own);

// Ranks in short: "0-3, 5".
std::string ranks_text(const std::vector<std::int32_t>& sorted);

}  // namespace shoal::comm
