// SPDX-License-Identifier: Apache-2.0
// Field case FC-61: machines that do not look alike, or of which unlike files are told. Four ranks on two pretended hosts, each
// fed its own topology: all print the same plans, and sums are exact.
#include <shoal/shoal.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "support/ranks.h"

using namespace testing;

namespace {

// What a rank prints of its plans, after an all-reduce.
std::string plans_of(const Ranks& ranks) {
  std::string text;
  const std::string wrong = with_comm(ranks, [&](ncclComm_t comm) -> std::string {
    std::vector<int> data(1001);
    std::iota(data.begin(), data.end(), ranks.rank);
    if (std::string failed =
            must(ncclAllReduce(data.data(), data.data(), data.size(), ncclInt, ncclSum, comm, nullptr), "all-reduce");
        !failed.empty())
      return failed;
    for (std::size_t i = 0; i < data.size(); ++i)
      if (data[i] != 4 * static_cast<int>(i) + 6) return "element " + std::to_string(i) + " is wrong";
    for (const char* collective : {"all_reduce", "all_gather", "reduce_scatter", "broadcast"})
      for (const std::size_t count : {std::size_t{16}, std::size_t{1} << 20}) {
        std::vector<char> said(1 << 14);
        if (std::string failed = must(shoalExplain(comm, collective, count, ncclFloat, 0, said.data(), said.size()), "explain");
            !failed.empty())
          return failed;
        text += said.data();
      }
    return "";
  });
  return wrong.empty() ? text : "wrong: " + wrong;
}

// The ranks' texts between marks.
std::vector<std::string> texts_of(const std::vector<std::string>& file_of_host) {
  const std::string all = as_processes(
      4, {}, 60, [](const Ranks& ranks) { return "<<<" + plans_of(ranks) + ">>>"; }, {},
      [&](int rank) {
        const std::size_t host = static_cast<std::size_t>(rank) / 2;
        ::setenv("NCCL_HOSTID", ("host" + std::to_string(host)).c_str(), 1);
        if (!file_of_host[host].empty()) ::setenv("NCCL_TOPO_FILE", (SHOAL_SAMPLES "/" + file_of_host[host]).c_str(), 1);
      });
  std::vector<std::string> texts;
  for (std::size_t at = 0; (at = all.find("<<<", at)) != std::string::npos; ++at)
    texts.push_back(all.substr(at + 3, all.find(">>>", at) - at - 3));
  if (texts.size() != 4) texts.push_back(all);
  return texts;
}

}  // namespace

TEST_CASE("FC-61: hosts with unlike topology files, or one without: all ranks print one plan, made for the slowest") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"mixed_a.xml", "mixed_b.json"}, "network carries 10 Gb/s"},
      {{"mixed_b.json", "mixed_a.xml"}, "network carries 10 Gb/s"},
      {{"nvswitch8.json", "mixed_a.xml"}, "network carries 200 Gb/s"},
      {{"mixed_a.xml", "cloud_vm.json"}, "network carries 200 Gb/s"},
      {{"mixed_b.json", ""}, "network carries "}};
  for (const auto& [files, network] : cases) {
    const std::vector<std::string> texts = texts_of(files);
    CAPTURE(files, texts.back());
    REQUIRE(texts.size() == 4);
    CHECK(texts[0].find(network) != std::string::npos);
    for (const std::string& text : texts) CHECK(text == texts[0]);
  }
}

TEST_CASE("FC-40: one rank's bad topology file is an error that names it on that rank, and on the others names the rank") {
  const std::string all = as_processes(
      3, {}, 60,
      [](const Ranks& ranks) {
        ncclComm_t comm = nullptr;
        return "<" + init(ranks, comm) + ">";
      },
      {},
      [](int rank) {
        if (rank == 1) ::setenv("NCCL_TOPO_FILE", SHOAL_SAMPLES "/bad/truncated.xml", 1);
      });
  CAPTURE(all);
  CHECK(all.find("NCCL_TOPO_FILE=" SHOAL_SAMPLES "/bad/truncated.xml: line ") != std::string::npos);
  CHECK(all.find("rank 1 (") != std::string::npos);
  CHECK(all.find("<>") == std::string::npos);
}
