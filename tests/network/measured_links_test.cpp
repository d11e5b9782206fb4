// SPDX-License-Identifier: Apache-2.0
// Four hosts at two sites that a thin line joins, their ranks alternating: what shoal-topo measures, and the ring that it
// proposes, and which the library takes once it is told what was measured.
#include <unistd.h>
#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "network/hosts.h"

using namespace testing;

namespace {

std::string output_of(const std::string& command) {
  std::string text;
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> bytes = {};
  for (std::size_t n = 0; pipe != nullptr && (n = std::fread(bytes.data(), 1, bytes.size(), pipe)) > 0;)
    text.append(bytes.data(), n);
  return pipe != nullptr && ::pclose(pipe) == 0 ? text : "failed: " + text;
}

// The object of one line of output that begins with a mark.
nlohmann::json object_after(const std::string& text, const std::string& mark) {
  const std::size_t at = text.find(mark), open = text.find('{', at), close = text.find("\n}", at);
  if (at == std::string::npos || open == std::string::npos || close == std::string::npos) return {};
  return nlohmann::json::parse(text.substr(open, close + 2 - open), nullptr, false);
}

}  // namespace

TEST_CASE(
    "measure: a thin line between two sites is found, the ring crosses it once each way, and so do communicators told of it") {
  if (!why_no_hosts().empty()) {
    WARN("SKIP: no network namespaces: " << why_no_hosts());
    return;
  }
  const std::string paths = "/tmp/shoal-paths-" + std::to_string(::getpid()) + ".txt";
  const std::string said = with_hosts(160, [&]() -> std::string {
    const Host switches("switches"), a("alpha"), b("beta"), c("gamma"), d("delta");
    const std::array<const Host*, 4> hosts = {&a, &b, &c, &d};
    switches.run("ip link add west type bridge; ip link add east type bridge; ip link set west up; ip link set east up");
    switches.run("ip link add line type veth peer name enil; ip link set line master west; ip link set enil master east");
    for (const char* end : {"line", "enil"})
      switches.run(std::string("ip link set ") + end + " up; tc qdisc add dev " + end +
                   " root tbf rate 100mbit burst 64k latency 200ms");
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      const std::string number = std::to_string(h + 1), port = "port" + number;
      hosts[h]->cable("eth0", switches, port);
      hosts[h]->run("ip addr add 10.77.0." + number + "/24 dev eth0; ip link set eth0 up");
      switches.run("ip link set " + port + " master " + (h % 2 == 0 ? "west" : "east") + "; ip link set " + port + " up");
    }
    return as_processes(
        4, {}, 150,
        [&](const Ranks& who) -> std::string {
          ::setenv("SHOAL_RANK", std::to_string(who.rank).c_str(), 1);
          for (const auto& [name, value] : Variables{{"SHOAL_WORLD_SIZE", "4"},
                                                     {"SHOAL_LOCAL_RANK", "0"},
                                                     {"SHOAL_LOCAL_WORLD_SIZE", "1"},
                                                     {"SHOAL_RENDEZVOUS", "10.77.0.1:29555"},
                                                     {"SHOAL_SECRET", "of this test"},
                                                     {"NCCL_ALGO", "ring"}})
            ::setenv(name.c_str(), value.c_str(), 1);
          const std::string first =
              output_of(SHOAL_TOPO " measure --json --bytes 512K --iters 3 --all-reduce 16M --calibration " + paths);
          ::setenv("SHOAL_RENDEZVOUS", "10.77.0.1:29556", 1);
          if (who.rank == 0) ::setenv("SHOAL_CALIBRATION", paths.c_str(), 1);  // rank 0's counts for all
          const std::string second = output_of(SHOAL_TOPO " measure --json --bytes 8 --iters 1 --all-reduce 16M");
          if (first.starts_with("failed") || second.starts_with("failed")) return "<" + first + second + ">";
          return who.rank == 0 ? "measured:" + first + "told:" + second : "";
        },
        {}, [&](int rank) { hosts[static_cast<std::size_t>(rank)]->enter(); });
  });
  ::unlink(paths.c_str());
  CAPTURE(said);
  const auto all = object_after(said, "measured:"), told = object_after(said, "told:");
  REQUIRE(all.is_object());
  REQUIRE(told.is_object());
  constexpr double kLine = 100e6 / 8;
  for (std::size_t from = 0; from < 4; ++from)
    for (std::size_t to = 0; to < 4; ++to) {
      if (from == to) continue;
      const double Bps = all["bandwidth_Bps"][from][to];
      INFO(from << " to " << to << ": " << Bps);
      if (from % 2 == to % 2)
        CHECK(Bps > 2 * kLine);
      else
        CHECK(Bps < 1.5 * kLine);  // a token bucket lets the beginning through
    }
  const std::vector<int> order = all["ring"]["order"];
  int crossings = 0;
  for (std::size_t i = 0; i < 4; ++i) crossings += order[i] % 2 != order[(i + 1) % 4] % 2 ? 1 : 0;
  CHECK(crossings == 2);
  // Not a matter of how busy the machine is: each byte crosses the line twice as often, and the line is what takes the time.
  const double plain_s = all["all_reduce"]["in_rank_order_s"], order_s = all["all_reduce"]["in_best_order_s"];
  const double told_s = told["all_reduce"]["in_rank_order_s"];
  INFO(plain_s << " s, " << order_s << " s, and told " << told_s << " s");
  CHECK(plain_s > 1.5 * order_s);
  CHECK(plain_s > 1.5 * told_s);
}
