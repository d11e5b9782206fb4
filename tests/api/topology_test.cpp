// SPDX-License-Identifier: Apache-2.0
// Field case FC-61: machines that do not look alike, or of which unlike files are told. Four ranks on two pretended hosts, each
// fed its own topology: all print the same plans, and sums are exact.
#include <shoal/shoal.h>

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
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

namespace {

// Element i of rank r's block for rank (or from rank) b: no two blocks, ranks or elements are alike.
int element(int r, int b, std::size_t i) { return 10'000'000 * (r + 1) + 100'000 * (b + 1) + static_cast<int>(i); }

// All-gather, reduce-scatter and all-gather of unlike lengths by rings; "" or what is wrong.
std::string blocks_round(const Ranks& ranks, ncclComm_t comm, std::size_t count) {
  const auto world = static_cast<std::size_t>(ranks.world), me = static_cast<std::size_t>(ranks.rank);
  std::vector<int> mine(count), all(world * count, -1);
  for (std::size_t i = 0; i < count; ++i) mine[i] = element(ranks.rank, 0, i);
  if (std::string failed = must(ncclAllGather(mine.data(), all.data(), count, ncclInt, comm, nullptr), "all-gather");
      !failed.empty())
    return failed;
  for (std::size_t b = 0; b < world; ++b)
    for (std::size_t i = 0; i < count; ++i)
      if (all[b * count + i] != element(static_cast<int>(b), 0, i)) return "all-gather: block " + std::to_string(b) + " is wrong";

  for (std::size_t b = 0; b < world; ++b)
    for (std::size_t i = 0; i < count; ++i) all[b * count + i] = element(ranks.rank, static_cast<int>(b), i);
  if (std::string failed =
          must(ncclReduceScatter(all.data(), mine.data(), count, ncclInt, ncclSum, comm, nullptr), "reduce-scatter");
      !failed.empty())
    return failed;
  for (std::size_t i = 0; i < count; ++i) {
    int sum = 0;
    for (int r = 0; r < ranks.world; ++r) sum += element(r, ranks.rank, i);
    if (mine[i] != sum) return "reduce-scatter: element " + std::to_string(i) + " is wrong";
  }

  std::vector<std::size_t> counts(world), begins(world);
  std::size_t total = 0;
  for (std::size_t b = 0; b < world; ++b) {
    counts[b] = b % 3 == 1 ? 0 : count / (b + 1);
    begins[b] = total;
    total += counts[b];
  }
  std::vector<int> part(counts[me]), whole(total, -1);
  for (std::size_t i = 0; i < counts[me]; ++i) part[i] = element(ranks.rank, 7, i);
  if (std::string failed =
          must(shoalAllGatherV(part.data(), counts[me], whole.data(), counts.data(), nullptr, ncclInt, comm, nullptr),
               "all-gather of unlike lengths");
      !failed.empty())
    return failed;
  for (std::size_t b = 0; b < world; ++b)
    for (std::size_t i = 0; i < counts[b]; ++i)
      if (whole[begins[b] + i] != element(static_cast<int>(b), 7, i))
        return "unlike lengths: block " + std::to_string(b) + " is wrong";
  return "";
}

}  // namespace

TEST_CASE("rings of blocks in the order of hosts: every rank gets the blocks and sums that its number says") {
  // A letter a rank: its pretended host. What the ring must pass, as shoalExplain says it.
  const std::vector<std::pair<std::string, std::string>> cases = {{"aba", "0, 2, 1"},
                                                                  {"abab", "0, 2, 1, 3"},
                                                                  {"abcab", "0, 3, 1, 4, 2"},
                                                                  {"aabbba", "0, 1, 5, 2, 3, 4"},
                                                                  {"abcdabc", "0, 4, 1, 5, 2, 6, 3"},
                                                                  {"abababba", "0, 2, 4, 7, 1, 3, 5, 6"},
                                                                  {"abcabcabc", "0, 3, 6, 1, 4, 7, 2, 5, 8"}};
  for (const auto& [hosts, order] : cases)
    for (const char* algorithm : {"ring", "AllGather:two_rings"}) {
      CAPTURE(hosts, algorithm);
      const std::string said = as_processes(
          static_cast<int>(hosts.size()), {{"NCCL_ALGO", algorithm}}, 120,
          [&](const Ranks& ranks) {
            return with_comm(ranks, [&](ncclComm_t comm) -> std::string {
              std::vector<char> text(1 << 14);
              if (std::string failed =
                      must(shoalExplain(comm, "all_gather", 64, ncclInt, 0, text.data(), text.size()), "explain");
                  !failed.empty())
                return failed;
              if (std::string(text.data()).find("rings pass the ranks " + order + "\n") == std::string::npos) return text.data();
              for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{1001}, std::size_t{99'991}})
                if (std::string wrong = blocks_round(ranks, comm, count); !wrong.empty()) return wrong;
              return "";
            });
          },
          {}, [&](int rank) { ::setenv("NCCL_HOSTID", std::string(1, hosts[static_cast<std::size_t>(rank)]).c_str(), 1); });
      CHECK(said == "");
    }
}

TEST_CASE("hierarchical plans follow NUMA borders: a dual-socket host's ranks, each fed the file of its socket") {
  const std::string folder = "/tmp/shoal-sockets-" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  std::ifstream sample(SHOAL_SAMPLES "/dual_socket.json");
  const std::string host((std::istreambuf_iterator<char>(sample)), {});
  const std::string ours = "\"ours\": \"0-63\"";
  REQUIRE(host.find(ours) != std::string::npos);
  for (const auto& [name, processors] : {std::pair{"0", "0-15"}, {"1", "16-31,48"}, {"both", "15-16"}}) {
    std::string text = host;
    text.replace(text.find(ours), ours.size(), std::string("\"ours\": \"") + processors + "\"");
    std::ofstream(folder + "/" + name) << text;
  }
  const std::string borders = "hierarchical plans follow the borders of NUMA nodes, each 3 ranks\n";
  for (const auto& [sockets, found] :
       std::vector<std::pair<std::vector<std::string>, bool>>{{{"0", "0", "0", "1", "1", "1"}, true},
                                                              {{"0", "0", "both", "1", "1", "1"}, false},
                                                              {{"0", "1", "0", "1", "0", "1"}, false}}) {
    CAPTURE(sockets);
    const std::string said = as_processes(
        6, {{"NCCL_ALGO", "hierarchical"}}, 120,
        [&](const Ranks& ranks) {
          return with_comm(ranks, [&](ncclComm_t comm) -> std::string {
            std::vector<char> text(1 << 14);
            if (std::string failed = must(shoalExplain(comm, "all_reduce", 64, ncclInt, 0, text.data(), text.size()), "explain");
                !failed.empty())
              return failed;
            if ((std::string(text.data()).find(borders) != std::string::npos) != found) return text.data();
            for (const std::size_t count : {std::size_t{1}, std::size_t{1001}, std::size_t{300'007}}) {
              std::vector<int> data(count);
              for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<int>(i % 1000) * (ranks.rank + 1);
              if (std::string failed =
                      must(ncclAllReduce(data.data(), data.data(), count, ncclInt, ncclSum, comm, nullptr), "all-reduce");
                  !failed.empty())
                return failed;
              for (std::size_t i = 0; i < count; ++i)
                if (data[i] != 21 * static_cast<int>(i % 1000)) return "element " + std::to_string(i) + " is wrong";
            }
            return "";
          });
        },
        {}, [&](int rank) { ::setenv("NCCL_TOPO_FILE", (folder + "/" + sockets[static_cast<std::size_t>(rank)]).c_str(), 1); });
    CHECK(said == "");
  }
  std::filesystem::remove_all(folder);
}
