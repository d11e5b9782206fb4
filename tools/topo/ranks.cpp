// SPDX-License-Identifier: Apache-2.0
// shoal-topo ranks: one picture of a job: who sits where, over what each pair talks, and why. Run under a launcher.
#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tools/topo/advice.h"
#include "tools/topo/arguments.h"
#include "tools/topo/difference.h"
#include "tools/topo/launch.h"
#include "tools/topo/outline.h"
#include "tools/topo/picture.h"
#include "tools/topo/seat.h"
#include "tools/topo/words.h"
#include "topo/files/host_json.h"

namespace shoal::topo_tool {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostRanks = 512;
constexpr std::size_t kMostInTable = 64;

// Ranks by host, hosts in the order of their first ranks.
std::vector<std::vector<int>> hosts_of(const std::vector<Seat>& seats) {
  std::vector<std::vector<int>> hosts;
  std::map<std::string, std::size_t> known;
  for (std::size_t r = 0; r < seats.size(); ++r) {
    const auto [at, is_new] = known.emplace(seats[r].identity.host_id, hosts.size());
    if (is_new) hosts.emplace_back();
    hosts[at->second].push_back(static_cast<int>(r));
  }
  return hosts;
}

std::string seat_text(const Seat& seat) {
  std::vector<std::string> nodes;
  for (const topo::NumaNode& node : seat.host.nodes)
    if (!node.processors.within(seat.host.ours).empty()) nodes.push_back(std::to_string(node.number));
  return fmt::format("rank {}: pid {}, processors {}{}", seat.identity.rank.value, seat.identity.pid, set_text(seat.host.ours),
                     nodes.empty() ? "" : fmt::format(", NUMA node{} {}", nodes.size() > 1 ? "s" : "", fmt::join(nodes, ",")));
}

Branch job_outline(const std::vector<Seat>& seats, const std::string& launcher) {
  const auto hosts = hosts_of(seats);
  Branch job{Kind::host,
             fmt::format("{} on {}, launched by {}", plural(static_cast<int>(seats.size()), "rank"),
                         plural(static_cast<int>(hosts.size()), "host"), launcher),
             {}};
  for (const std::vector<int>& ranks : hosts) {
    Branch host = outline(seats[static_cast<std::size_t>(ranks.front())].host);
    host.children.pop_back();  // limits, which are each rank's own
    for (const int rank : ranks) host.children.push_back({Kind::limits, seat_text(seats[static_cast<std::size_t>(rank)]), {}});
    job.children.push_back(std::move(host));
  }
  return job;
}

void print_ways(const std::vector<Seat>& seats) {
  std::map<std::string, std::vector<std::string>> pairs;  // by what is said of them
  const bool table = seats.size() <= kMostInTable;
  if (table) {
    fmt::print("\nover what each pair talks\n     ");
    for (std::size_t r = 0; r < seats.size(); ++r) fmt::print("{:>9}", r);
    fmt::print("\n");
  }
  for (std::size_t a = 0; a < seats.size(); ++a) {
    if (table) fmt::print("{:<5}", a);
    for (std::size_t b = 0; b < seats.size(); ++b) {
      const Way way = a == b ? Way{"-", ""} : way_between(seats, a, b);
      if (table) fmt::print("{:>9}", way.transport);
      if (a < b) pairs[fmt::format("{}: {}", way.transport, way.why)].push_back(fmt::format("{}-{}", a, b));
    }
    if (table) fmt::print("\n");
  }
  fmt::print("\n");
  for (const auto& [said, who] : pairs) fmt::print("{} ({})\n", said, plural(static_cast<int>(who.size()), "pair"));
}

// Hosts of a job are best alike.
void print_differences(const std::vector<Seat>& seats) {
  constexpr std::size_t kShown = 6;
  const auto hosts = hosts_of(seats);
  for (std::size_t h = 1; h < hosts.size(); ++h) {
    const Seat &first = seats[static_cast<std::size_t>(hosts[0].front())],
               &other = seats[static_cast<std::size_t>(hosts[h].front())];
    const std::vector<std::string> found = differences(first.host, other.host, false);
    if (found.empty()) continue;
    fmt::print("\nhost of rank {} differs from that of rank 0:\n", hosts[h].front());
    for (std::size_t i = 0; i < found.size() && i < kShown; ++i) fmt::print("  {}\n", found[i]);
    if (found.size() > kShown) fmt::print("  and {} more\n", found.size() - kShown);
  }
}

// What a consultant would say of each host, for the ranks that it has. True if anything.
bool print_advice(const std::vector<Seat>& seats) {
  bool any = false;
  for (const std::vector<int>& ranks : hosts_of(seats)) {
    const Seat& seat = seats[static_cast<std::size_t>(ranks.front())];
    const std::vector<Advice> advice = advise(seat.host, static_cast<int>(ranks.size()));
    fmt::print("\n{}, {}:{}\n", seat.identity.host, plural(static_cast<int>(ranks.size()), "rank"),
               advice.empty() ? " nothing to say" : "");
    for (const Advice& each : advice) fmt::print("- {}\n  {}\n", each.what, each.remedy);
    any |= !advice.empty();
  }
  return any;
}

void print_json(const std::vector<Seat>& seats, const std::string& launcher) {
  Json ranks = Json::array(), ways = Json::array();
  for (std::size_t a = 0; a < seats.size(); ++a) {
    ranks.push_back({{"rank", a},
                     {"host", seats[a].identity.host},
                     {"host_id", seats[a].identity.host_id},
                     {"pid", seats[a].identity.pid},
                     {"topology", Json::parse(topo::json_of(seats[a].host))}});
    Json row = Json::array();
    for (std::size_t b = 0; b < seats.size(); ++b) row.push_back(a == b ? "" : way_between(seats, a, b).transport);
    ways.push_back(std::move(row));
  }
  const Json all = {{"launcher", launcher}, {"ranks", std::move(ranks)}, {"transports", std::move(ways)}};
  fmt::print("{}\n", all.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

Ending ranks(const Words& words) {
  std::string svg;
  bool json = false, check = false;
  cli::CommandLine line =
      command_line("ranks", "who of a job sits where, over what each pair talks, and why.", "[OPTIONS]    (under a launcher)");
  take_path(line, "--svg", svg, "Draws all hosts and their ranks into this file");
  line.flag("--json", json, "As JSON");
  line.flag("--check", check,
            "Also what is likely to hurt the job on each of its hosts, and the remedy; exit code 1 if there is something");
  if (const auto ending = parse(line, words)) return *ending;
  if (check && json) return {kUsage, "--check: not together with --json"};
  const auto failed = [](const Status& s) {
    return Ending{s.code() == Code::invalid_argument ? kUsage : kFound, std::string(s.text())};
  };
  const Result<Launch> launch = join(kMostRanks, "ranks");
  if (!launch.is_ok()) return failed(launch.status());
  const Result<std::vector<std::string>> texts = gather(*launch, text_of(seat_here(launch->rank)));
  if (!texts.is_ok()) return failed(texts.status());
  if (launch->rank != 0) return {};

  std::vector<Seat> seats;
  for (const std::string& text : *texts) {
    Result<Seat> seat = parse_seat(text);
    if (!seat.is_ok()) return failed(fail(Code::internal_error, "rank {}: {}", seats.size(), seat.status().text()));
    seats.push_back(seat.take());
    seats.back().identity.rank = {static_cast<std::int32_t>(seats.size()) - 1};
  }
  const Branch tree = job_outline(seats, launch->launcher);
  if (!svg.empty())
    if (Status s = write_file(svg, picture(tree)); !s.is_ok()) return {kFound, "--svg " + std::string(s.text())};
  if (json) {
    print_json(seats, launch->launcher);
    return {};
  }
  fmt::print("{}", tree_text(tree));
  print_ways(seats);
  print_differences(seats);
  return {check && print_advice(seats) ? kFound : 0, ""};
}

}  // namespace shoal::topo_tool
