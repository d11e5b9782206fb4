// SPDX-License-Identifier: Apache-2.0
// shoal-plan desync: the dumps of a communicator's ranks side by side: who is where, and who is to blame.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "comm/dump.h"
#include "comm/verdict.h"
#include "tools/plan/arguments.h"

namespace shoal::plan_tool {
namespace {

using comm::Dump;
using comm::DumpedOperation;
using comm::Witness;
using nlohmann::ordered_json;

constexpr std::size_t kMostBytes = 64 << 20;  // of a file

Result<Dump> read_dump(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return fail(Code::invalid_argument, "{}: cannot be read", path);
  const auto size = static_cast<std::size_t>(std::max<std::streamoff>(0, file.tellg()));
  if (size > kMostBytes) return fail(Code::invalid_argument, "{}: has {} bytes, at most {} are read", path, size, kMostBytes);
  file.seekg(0);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  Result<Dump> dump = comm::dump_from_json(text);
  if (!dump.is_ok()) return fail(Code::invalid_argument, "{}: {}", path, dump.status().text());
  return dump;
}

using Dumps = std::map<std::int32_t, Dump>;  // by rank

Result<Dumps> read_dumps(const std::vector<std::string>& paths) {
  Dumps dumps;
  for (const std::string& path : paths) {
    Result<Dump> dump = read_dump(path);
    if (!dump.is_ok()) return dump.status();
    if (!dumps.empty() &&
        (dump->communicator != dumps.begin()->second.communicator || dump->world != dumps.begin()->second.world))
      return fail(Code::invalid_argument, "{}: is of another communicator than {}", path, paths.front());
    const std::int32_t rank = dump->who.rank.value;
    if (!dumps.emplace(rank, dump.take()).second)
      return fail(Code::invalid_argument, "{}: is a second dump of rank {}", path, rank);
  }
  return dumps;
}

// The recorder remembers more calls than a rank tells in a report.
comm::Report report_of(const Dump& dump) {
  comm::Report report = dump.report;
  report.calls.clear();
  for (const DumpedOperation& each : dump.operations)
    if (each.sequence != 0 && each.state != "issued") report.calls.push_back({each.sequence, each.call});
  return report;
}

std::vector<Witness> witnesses_of(const Dumps& dumps) {
  std::vector<Witness> witnesses;
  for (std::int32_t rank = 0; rank < dumps.begin()->second.world; ++rank) {
    Witness& witness = witnesses.emplace_back();
    witness.who.rank = {rank};
    witness.who.host = "unknown host";
    const auto found = dumps.find(rank);
    if (found == dumps.end()) {
      witness.condition = "no dump was given";
      continue;
    }
    witness.who = found->second.who;
    witness.report = report_of(found->second);
  }
  return witnesses;
}

std::int32_t accuser_of(const Dumps& dumps) {
  for (const auto& [rank, dump] : dumps)
    if (dump.report.inside) return rank;
  return dumps.begin()->first;
}

std::string verdict_of(const Dumps& dumps) {
  const std::vector<Witness> witnesses = witnesses_of(dumps);
  const comm::Notice nobody{Code::internal_error, -1, ""};
  const auto inside = [](const auto& each) { return each.second.report.inside; };
  const bool waiting = std::any_of(dumps.begin(), dumps.end(), inside);
  const auto found = judge(witnesses, waiting ? comm::Alarm::timeout : comm::Alarm::slow, accuser_of(dumps), nobody);
  return found ? found->text : "";
}

std::string state_of(const Dump& dump) {
  if (dump.report.inside) return dump.report.doing;
  return dump.operations.empty() ? "no call yet" : "outside; last: " + dump.operations.back().call;
}

void print(const Dumps& dumps) {
  fmt::print("{:>5} {:16} {:>8} {:>8} {:>9}  {}\n", "rank", "host", "pid", "ended", "for", "where");
  for (std::int32_t rank = 0; rank < dumps.begin()->second.world; ++rank) {
    const auto found = dumps.find(rank);
    if (found == dumps.end()) {
      fmt::print("{:>5} {:16} {:>8} {:>8} {:>9}  no dump\n", rank, "-", "-", "-", "-");
      continue;
    }
    const Dump& dump = found->second;
    fmt::print("{:>5} {:16} {:>8} {:>8} {:>7.1f} s  {}\n", rank, dump.who.host, dump.who.pid, dump.report.finished,
               static_cast<double>(dump.report.since_ms) / 1000, state_of(dump));
  }
  fmt::print("\nended: collectives that have ended; for: since the last movement, or the last call's start\n");
  for (const auto& [rank, dump] : dumps)
    if (!dump.failure.empty()) fmt::print("rank {} failed: {}\n", rank, dump.failure);
  const std::string verdict = verdict_of(dumps);
  fmt::print("verdict: {}\n", verdict.empty() ? "the dumps contradict each other nowhere" : verdict);
}

void print_json(const Dumps& dumps) {
  ordered_json ranks = ordered_json::array();
  for (const auto& [rank, dump] : dumps)
    ranks.push_back({{"rank", rank},
                     {"host", dump.who.host},
                     {"pid", dump.who.pid},
                     {"ended", dump.report.finished},
                     {"inside", dump.report.inside},
                     {"since_ms", dump.report.since_ms},
                     {"where", state_of(dump)},
                     {"failure", dump.failure}});
  const ordered_json json = {{"world", dumps.begin()->second.world}, {"ranks", std::move(ranks)}, {"verdict", verdict_of(dumps)}};
  fmt::print("{}\n", json.dump(2, ' ', false, ordered_json::error_handler_t::replace));
}

}  // namespace

Ending desync(const Words& words) {
  std::vector<std::string> paths;
  bool json = false;
  cli::CommandLine line =
      command_line("desync", "compares the dumps (SHOAL_DUMP) of a communicator's ranks: who is where, and who is to blame.",
                   "DUMP... [--json]");
  line.app().add_option("DUMP", paths, "Files, one a rank");
  line.flag("--json", json, "As JSON");
  if (const auto ending = parse(line, words)) return *ending;
  if (paths.empty()) return {kUsage, "desync: no dump is named"};
  const Result<Dumps> dumps = read_dumps(paths);
  if (!dumps.is_ok()) return usage(dumps.status());
  json ? print_json(*dumps) : print(*dumps);
  return {};
}

}  // namespace shoal::plan_tool
