// SPDX-License-Identifier: Apache-2.0
// shoal-topo diff: in what two hosts differ.
#include <fmt/format.h>

#include "tools/topo/arguments.h"
#include "tools/topo/difference.h"
#include "topo/files/host_json.h"

namespace shoal::topo_tool {

Ending diff(const Words& words) {
  std::string a, b;
  bool all = false;
  cli::CommandLine line = command_line("diff", "in what two hosts differ; exit code 1 if they do.", "A [B] [--all]");
  take_path(line, "A", a, "A host's file");
  take_path(line, "B", b, "Another one's; else NCCL_TOPO_FILE's, else this machine");
  line.flag("--all", all, "Names, addresses and identifiers, too, which every host has of its own");
  if (const auto ending = parse(line, words)) return *ending;
  if (a.empty()) return {kUsage, "A is missing: a file of show --json or NCCL's XML"};
  const Result<topo::Host> one = topo::load_host(a);
  if (!one.is_ok()) return usage(one.status());
  const Result<topo::Host> other = b.empty() ? this_host() : topo::load_host(b);
  if (!other.is_ok()) return usage(other.status());
  const std::vector<std::string> found = differences(*one, *other, all);
  for (const std::string& each : found) fmt::print("{}\n", each);
  return {found.empty() ? 0 : kFound, ""};
}

}  // namespace shoal::topo_tool
