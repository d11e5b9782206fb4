// SPDX-License-Identifier: Apache-2.0
// shoal-topo check: what is likely to hurt a job on this host, and what to do about it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/topo/advice.h"
#include "tools/topo/arguments.h"
#include "tools/topo/words.h"

namespace shoal::topo_tool {

Ending check(const Words& words) {
  Subject subject;
  int ranks = 0;
  bool json = false;
  cli::CommandLine line = command_line("check", "what is likely to hurt a job on a host, and the remedy.", "[FILE] [OPTIONS]");
  take_subject(line, subject);
  line.integer("-n,--ranks", ranks, 1, "Ranks that will run on this host; else one a GPU", 1 << 20);
  line.flag("--json", json, "As JSON");
  if (const auto ending = parse(line, words)) return *ending;
  const Result<topo::Host> host = host_of(subject);
  if (!host.is_ok()) return usage(host.status());
  if (ranks == 0) ranks = static_cast<int>(host->gpus.size());

  const std::vector<Advice> advice = advise(*host, ranks);
  if (json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Advice& each : advice) list.push_back({{"what", each.what}, {"remedy", each.remedy}});
    fmt::print("{}\n", list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    for (const Advice& each : advice) fmt::print("- {}\n  {}\n", each.what, each.remedy);
    if (advice.empty()) fmt::print("nothing to say\n");
  }
  return {advice.empty() ? 0 : kFound, ""};
}

}  // namespace shoal::topo_tool
