// SPDX-License-Identifier: Apache-2.0
// shoal-topo as its users meet it: the built program, its lines and its exit codes.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/spawn.h"
#include "tools/well_formed.h"
#include "topo/samples.h"

using namespace shoal::testing;
using nlohmann::json;
using Words = std::vector<std::string>;

namespace {

Finished run(const std::string& arguments) {
  Words words = {SHOAL_TOPO};
  std::istringstream text(arguments);
  for (std::string word; text >> word;) words.push_back(word);
  return spawn(words);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string line_with(const std::string& text, const std::string& part) {
  for (const std::string& line : lines_of(text))
    if (has(line, part)) return line;
  return "no line with " + part;
}

// A shell in namespaces of its own, where it may mount.
Finished shell(const std::string& script) {
  return spawn({"unshare", "--user", "--map-root-user", "--mount", "--", "sh", "-c", script});
}

}  // namespace

TEST_CASE("topo: help goes to standard output with exit code 0") {
  for (const char* arguments : {"--help", "-h", "show --help", "check --help", "diff -h"}) {
    INFO(arguments);
    const Finished done = run(arguments);
    CHECK(done.code == 0);
    CHECK(done.err.empty());
    CHECK(has(done.out, "Usage: shoal-topo"));
  }
}

TEST_CASE("topo: a bad argument or file is one line that names it, with exit code 2") {
  const std::string samples = SHOAL_SAMPLES;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"draw", "draw: is no command: show, check, diff, bound, measure, ranks"},
      {"--nosuch", "--nosuch: is no option of this program"},
      {"show --json --nccl-xml", "--nccl-xml: not together with --json"},
      {"show /nosuch.xml", "/nosuch.xml: No such file or directory"},
      {"show --root /nosuch", "--root /nosuch: is no folder"},
      {"show --root / " + samples + "/cloud_vm.json", "--root /: not together with FILE"},
      {"show " + samples + "/bad/unknown_tag.xml", "unknown_tag.xml: line 3: <bridge>: only <pci> and <nic> may be here"},
      {"check " + samples + "/bad/cycle.json", "cycle.json: pci[0] (0000:20:01.1): parent is 1"},
      {"check --ranks 0", "-n/--ranks 0: must be at least 1"},
      {"bound --bytes 3", "-b/--bytes 3: must be at least an element of 4 bytes"},
      {"bound --ranks 513 " + samples + "/cloud_vm.json", "-n/--ranks 513: must be at most 512"},
      {"measure", "one rank: run it under a launcher, such as shoal-run -n 4 shoal-topo measure"},
      {"ranks", "one rank: run it under a launcher, such as shoal-run -n 4 shoal-topo ranks"},
      {"measure --all-reduce 2G", "--all-reduce 2147483648: must be at most 1G"},
      {"measure --bytes 7", "-b/--bytes 7: must be 8 to 1G"},
      {"diff", "A is missing: a file of show --json or NCCL's XML"},
      {"diff " + samples + "/cloud_vm.json " + samples + "/bad/truncated.xml", "truncated.xml: line 6: "},
  };
  for (const auto& [arguments, part] : cases) {
    INFO(arguments);
    const Finished done = run(arguments);
    CHECK(done.code == 2);
    CHECK(done.out.empty());
    CHECK(lines_of(done.err).size() == 1);
    INFO(done.err);
    CHECK(has(done.err, part));
  }
}

TEST_CASE("topo: NCCL_TOPO_FILE is taken for this machine unless a file or folder is named, and that is said beside the output") {
  const auto told = [](Words words, const std::string& file, const std::string& name = "NCCL_TOPO_FILE") {
    words.insert(words.begin(), SHOAL_TOPO);
    return spawn(words, {.environment = {{name, file}}});
  };
  const std::string file = sample("nvswitch8.json"), said = "NCCL_TOPO_FILE=" + file + ": in place of this machine\n";
  for (const Words& command : {Words{"show"},
                               {"--json"},
                               {"--nccl-xml"},
                               {"check"},
                               {"check", "--json"},
                               {"bound"},
                               {"diff", sample("cloud_vm.json")}}) {
    CAPTURE(command);
    const Finished done = told(command, file);
    Words named = command.front().starts_with('-') ? Words{"show"} : Words{};
    named.insert(named.end(), command.begin(), command.end());
    named.push_back(file);
    named.insert(named.begin(), SHOAL_TOPO);
    const Finished same = spawn(named);
    CHECK(done.err == "shoal-topo: " + said);
    CHECK(done.code == same.code);
    CHECK(done.out == same.out);
    CHECK(same.err.empty());
    CHECK_FALSE(done.out.empty());
  }
  CHECK(told({"--json"}, file, "SHOAL_TOPO_FILE").err == "shoal-topo: SHOAL_" + said.substr(5));
  CHECK(told({"show", sample("cloud_vm.json")}, file).err.empty());
  CHECK(told({"show", "--root", "/"}, file).err.empty());
  CHECK(told({"bound", sample("cloud_vm.json")}, file).err.empty());
  for (const Words& command : {Words{"show"}, {"check"}, {"bound"}, {"diff", file}}) {
    CAPTURE(command);
    const Finished done = told(command, "/nosuch.xml");
    CHECK(done.code == 2);
    CHECK(done.out.empty());
    CHECK(done.err == "shoal-topo: NCCL_TOPO_FILE=/nosuch.xml: No such file or directory (2)\n");
  }
}

TEST_CASE("topo: what CUDA's driver knows of GPUs, where there is no other library; one that does not start has none") {
  const Tree libraries;  // the fake has no names of NVML's: it does not start as that
  for (const char* name : {"/libcuda.so.1", "/libnvidia-ml.so.1"})
    std::filesystem::create_symlink(FAKE_CUDA, libraries.root() + name);
  const auto with_driver = [&](const Words& words, const std::string& init) {
    Words all = {SHOAL_TOPO};
    all.insert(all.end(), words.begin(), words.end());
    return spawn(all, {.environment = {{"LD_LIBRARY_PATH", libraries.root()}, {"FAKE_CUDA_INIT", init}}});
  };
  const Finished shown = with_driver({"show"}, "0");
  CAPTURE(shown.out, shown.err);
  CHECK(has(shown.out, "GPU 0: Fake GPU 100, 80 GiB"));
  CHECK(line_with(shown.out, "GPU 2: ").ends_with("Fake GPU 102"));
  CHECK(has(shown.out,
            "P2P       GPU0   GPU1   GPU2\nGPU0         X  yes/2     no\nGPU1     yes/1      X     no\nGPU2        no     no     "
            " X\n"));
  const json host = json::parse(with_driver({"--json"}, "0").out);
  CHECK(host["p2p_known"] == true);
  REQUIRE(host["gpus"].size() == 3);
  CHECK(host["gpus"][1]["reaches"] == json({0}));
  CHECK(host["gpus"][1]["performance_ranks"] == json({1}));
  CHECK(host["gpus"][1]["compute_capability"] == 90);
  CHECK(host["pci"][host["gpus"][2]["pci"].get<std::size_t>()]["bus_id"] == "0001:66:00.0");
  CHECK_FALSE(host["gpus"][2].contains("reaches"));
  const std::string file = libraries.root() + "/host.json";
  json other = host;
  other["gpus"][1]["performance_ranks"] = {5};
  other["gpus"][0].erase("reaches");
  other["gpus"][0].erase("performance_ranks");
  std::ofstream(file) << other;
  const Finished differs = with_driver({"diff", file}, "0");
  CAPTURE(differs.out, differs.err);
  CHECK(differs.code == 1);
  CHECK(has(differs.out, "gpus 1: performance_ranks [5] -> [1]\n"));
  CHECK(has(differs.out, "gpus 0: reaches unknown -> [1]\n"));
  const Finished none = with_driver({"show"}, "100");  // CUDA_ERROR_NO_DEVICE
  CHECK(none.code == 0);
  CHECK_FALSE(has(none.out, "Fake GPU"));
  CHECK_FALSE(has(none.out, "P2P"));
}

TEST_CASE("topo show: every sample as tree, picture, JSON and XML") {
  for (const char* name : kHostSamples) {
    INFO(name);
    const std::string svg = "/tmp/shoal-topo-" + std::to_string(::getpid()) + ".svg";
    CHECK(run("show " + sample(name)).code == 0);
    CHECK(run("show " + sample(name) + " --svg " + svg).code == 0);
    CHECK(fault_in(contents(svg)).empty());
    ::unlink(svg.c_str());
    CHECK(fault_in(run("show --nccl-xml " + sample(name)).out).empty());
    CHECK(json::parse(run("show --json " + sample(name)).out, nullptr, false).is_object());
  }
  const Finished nowhere = run("show --svg /nosuch/a.svg " + sample("cloud_vm.json"));
  CHECK(nowhere.code == 1);
  CHECK(has(nowhere.err, "--svg /nosuch/a.svg: No such file or directory"));
}

TEST_CASE("topo show: what an operator looks for is there") {
  const std::string gpus = run("show " + sample("nvswitch8.json")).out;
  CHECK(has(line_with(gpus, "GPU 3"), "NVIDIA H100 80GB HBM3, 80 GiB, 18 NVLinks, 450 GB/s each way"));
  CHECK(has(line_with(gpus, "mlx5_4"), "port 1 400 Gb/s ACTIVE InfiniBand"));
  CHECK(has(line_with(gpus, "X   NV18"), "GPU0"));
  const std::string vm = run("show " + sample("cloud_vm.json")).out;
  CHECK(has(vm, "memory unknown"));
  CHECK(has(line_with(vm, "CPU quota"), "4 processors' time"));
  CHECK(has(line_with(vm, "eth0"), "up, speed unknown, 172.31.8.7"));
  const std::string station = run("show " + sample("workstation4.xml")).out;
  CHECK(has(station, "0000:20:01.1 > 0000:21:00.0 (16 GT/s x16, 31.5 GB/s)"));
  CHECK(line_with(station, "X     PIX     PHB") == "GPU2         PHB     PHB       X     PIX     PHB");
}

TEST_CASE("topo check: each thing that hurts, with its remedy; nothing where nothing does") {
  const auto advice = [](const std::string& arguments) {
    const Finished done = run("check " + arguments);
    CHECK(done.code == (has(done.out, "nothing to say") ? 0 : 1));
    return done.out;
  };
  CHECK(advice(sample("nvswitch8.json")) == "nothing to say\n");
  CHECK(advice(sample("workstation4.xml")) == "nothing to say\n");
  const std::string dual = advice(sample("dual_socket.json"));
  CHECK(has(dual, "locked memory is limited to 8 MiB"));
  CHECK(has(dual, "0000:40:01.1: 8 of 16 PCI lanes"));
  CHECK(has(dual, "ens1f1np1 runs at 10 Gb/s, ens1f0np0 at 25 Gb/s\n  name the fast ones (NCCL_SOCKET_IFNAME=ens1f0np0)"));
  CHECK(has(dual, "RDMA mlx5_1 port 1 is DOWN"));
  CHECK_FALSE(has(dual, "eno8303"));  // down: nobody uses it
  const std::string vm = advice(sample("cloud_vm.json") + " --ranks 6");
  CHECK(has(vm, "CPU quota 4, but 6 ranks"));
  CHECK(has(vm, "/dev/shm holds 64 MiB"));
  CHECK_FALSE(has(advice(sample("cloud_vm.json") + " --ranks 4"), "but 4 ranks"));
  CHECK(has(advice(sample("mixed_b.json") + " -n 9"), "9 ranks, but only 8 processors (0-7)"));
  CHECK(has(advice(sample("mixed_a.xml")), "GPU 0 is on NUMA node 0, but every RDMA device is on another (mlx5_0 on 1)"));
  const Finished as_json = run("check --json " + sample("mixed_a.xml"));
  CHECK(json::parse(as_json.out, nullptr, false).size() == 2);
}

TEST_CASE("topo bound: every sample, alone and doubled; no plan is quicker than the bound") {
  for (const char* name : kHostSamples)
    for (const char* hosts : {"1", "2"}) {
      INFO(name << " x " << hosts);
      const Finished done = run("bound --json --bytes 16M --hosts " + std::string(hosts) + " " + sample(name));
      REQUIRE(done.code == 0);
      const json rows = json::parse(done.out, nullptr, false);
      REQUIRE(rows.size() == 8);
      for (const json& row : rows) {
        INFO(row.dump());
        CHECK(row.contains("algorithm"));
        if (row.contains("bound_s")) CHECK(row["predicted_s"].get<double>() >= 0.99 * row["bound_s"].get<double>());
      }
    }
  const Finished mixed = run("bound " + sample("mixed_a.xml") + " " + sample("mixed_b.json"));
  CHECK(has(line_with(mixed.out, "all_reduce"), "network to host 1 enp1s0 (1.25 GB/s)"));
  CHECK(has(line_with(run("bound " + sample("cloud_vm.json")).out, "all_reduce"), "unknown"));
  CHECK(has(run("bound --hosts 2 a b").err, "--hosts 2: not together with several files"));
}

TEST_CASE("topo measure: every pair of a job, as text, JSON and picture") {
  const std::string svg = "/tmp/shoal-topo-" + std::to_string(::getpid()) + ".svg";
  const Finished text = spawn({SHOAL_RUN, "-n", "3", SHOAL_TOPO, "measure", "-b", "4K", "-n", "2", "--svg", svg});
  CHECK(text.code == 0);
  CHECK(has(text.out, "GB/s from row to column, messages of 4 KiB"));
  CHECK(has(text.out, "best order found, 0,"));
  CHECK(fault_in(contents(svg)).empty());
  ::unlink(svg.c_str());
  const Finished as_json =
      spawn({SHOAL_RUN, "-n", "3", SHOAL_TOPO, "measure", "-b", "4K", "-n", "2", "--json", "--all-reduce", "1K"});
  REQUIRE(as_json.code == 0);
  const json all = json::parse(as_json.out, nullptr, false);
  REQUIRE(all.is_object());
  for (std::size_t a = 0; a < 3; ++a)
    for (std::size_t b = 0; b < 3; ++b) {
      CHECK((all["bandwidth_Bps"][a][b].get<double>() > 0) == (a != b));
      CHECK((all["latency_s"][a][b].get<double>() > 0) == (a != b));
    }
  CHECK(all["ring"]["order"].size() == 3);
  CHECK(all["all_reduce"]["bytes"] == 1024);
  CHECK(all["ring"]["slowest_Bps"] >= all["ring"]["slowest_in_rank_order_Bps"]);
}

TEST_CASE("topo measure: of one host there are no ways between hosts to write down") {
  const Finished done =
      spawn({SHOAL_RUN, "-n", "2", SHOAL_TOPO, "measure", "-b", "4K", "-n", "1", "--calibration", "/tmp/shoal-none.txt"});
  CHECK(done.code != 0);
  CHECK(has(done.err, "--calibration all ranks are on one host"));
}

TEST_CASE("topo ranks: who shares what, and over what each pair talks") {
  const std::string topo = SHOAL_TOPO, svg = "/tmp/shoal-topo-" + std::to_string(::getpid()) + ".svg";
  const Finished one = spawn({SHOAL_RUN, "-n", "3", SHOAL_TOPO, "--ranks", "--svg", svg});
  CHECK(one.code == 0);
  CHECK(has(one.out, "3 ranks on 1 host, launched by shoal-run"));
  CHECK(has(one.out, "rank 2: pid "));
  CHECK(has(one.out, "shm: one host (3 pairs)"));
  CHECK(fault_in(contents(svg)).empty());
  ::unlink(svg.c_str());
  const Finished pretended =
      spawn({SHOAL_RUN, "-n", "4", "sh", "-c", "NCCL_HOSTID=h$((SHOAL_RANK / 2)) exec " + topo + " ranks --json"});
  REQUIRE(pretended.code == 0);
  const json all = json::parse(pretended.out, nullptr, false);
  REQUIRE(all.is_object());
  CHECK(all["transports"] ==
        json::parse(R"([["","shm","tcp","tcp"],["shm","","tcp","tcp"],["tcp","tcp","","shm"],["tcp","tcp","shm",""]])"));
  CHECK(all["ranks"][3]["topology"]["processors"].is_string());
  const Finished checked =
      spawn({SHOAL_RUN, "-n", "3", "sh", "-c", "NCCL_HOSTID=h$((SHOAL_RANK / 2)) exec " + topo + " ranks --check"});
  CHECK(has(checked.out, ", 2 ranks:"));
  CHECK(has(checked.out, ", 1 rank:"));
  CHECK(checked.code == (has(checked.out, "\n- ") ? 1 : 0));
  const Finished apart = spawn({SHOAL_RUN, "-n", "2", SHOAL_TOPO, "ranks"}, {.environment = {{"NCCL_SHM_DISABLE", "1"}}});
  CHECK(has(apart.out, "tcp: one host, but NCCL_SHM_DISABLE is 1 (1 pair)"));
}

TEST_CASE("FC-40: four ranks work without /sys") {
  const Finished done =
      shell("mount -t tmpfs none /sys || exit 77; exec " SHOAL_RUN " -n 4 " SHOAL_PERF " all_reduce -b 1K -e 8K -f 8 -n 1 -w 0");
  if (done.code == 77 || has(done.err, "unshare")) {
    WARN("no namespaces to be had here: not tried");
    return;
  }
  CHECK(done.code == 0);
  CHECK(has(done.out, "# Out of bounds values : 0 OK"));
}

TEST_CASE("topo diff: a host and itself are alike; what differs is named, whatever the order") {
  CHECK(run("diff " + sample("nvswitch8.json") + " " + sample("nvswitch8.json")).code == 0);
  const std::string path = "/tmp/shoal-topo-" + std::to_string(::getpid()) + ".json";
  json changed = json::parse(contents(sample("dual_socket.json")));
  changed["name"] = "cpu-node-02";
  changed["interfaces"][0]["Mbps"] = 10000;
  changed["interfaces"][0]["addresses"] = {"10.1.0.2"};
  std::reverse(changed["interfaces"].begin(), changed["interfaces"].end());
  changed["rdma"].erase(1);
  std::ofstream(path) << changed;
  const Finished done = run("diff " + sample("dual_socket.json") + " " + path);
  CHECK(done.code == 1);
  CHECK(done.out == "interfaces ens1f0np0: Mbps 25000 -> 10000\nrdma mlx5_1: only in A\n");
  const Finished all = run("diff --all " + sample("dual_socket.json") + " " + path);
  CHECK(has(all.out, "name: cpu-node-01 -> cpu-node-02"));
  CHECK(has(all.out, "interfaces ens1f0np0: addresses"));
  ::unlink(path.c_str());
}

TEST_CASE("topo: this machine's JSON is read back and does not differ from it") {
  const std::string path = "/tmp/shoal-topo-" + std::to_string(::getpid()) + ".self";
  const Finished as_json = run("--json");
  REQUIRE(as_json.code == 0);
  std::ofstream(path) << as_json.out;
  const Finished read = run("show --json " + path);
  CHECK(read.out == as_json.out);
  ::unlink(path.c_str());
}

TEST_CASE("FC-40: without /sys, with half of it, as an ordinary user: exit 0, and unknown what is unknown") {
  if (shell("mount -t tmpfs none /sys").code != 0) {
    WARN("no namespaces to be had here: not tried");
    return;
  }
  const std::string topo = SHOAL_TOPO;
  const Finished none = shell("mount -t tmpfs none /sys && exec " + topo);
  CHECK(none.code == 0);
  CHECK(none.err.empty());
  CHECK(has(none.out, "package 0"));
  CHECK_FALSE(has(none.out, "NUMA node"));
  CHECK(has(line_with(none.out, "lo: "), "127.0.0.1"));
  for (const char* part : {"/sys/devices/system/node", "/sys/devices/system/node/node0", "/sys/class", "/sys/bus/pci",
                           "/sys/devices/system/cpu", "/sys/devices/system/cpu/cpu0/topology"}) {
    INFO(part);
    const Finished half = shell(std::string("mount -t tmpfs none ") + part + " && exec " + topo + " --json");
    CHECK(half.code == 0);
    CHECK(half.err.empty());
    const json parsed = json::parse(half.out, nullptr, false);
    REQUIRE(parsed.is_object());
    CHECK(parsed["processors"] == parsed["ours"]);
    if (part == std::string("/sys/devices/system/node")) CHECK_FALSE(parsed.contains("nodes"));
  }
}

TEST_CASE("FC-41: the share of the machine that is ours, by the system's numbers") {
  const json whole = json::parse(run("--json").out);
  const std::string ours = whole["ours"];
  const std::string last = ours.substr(ours.find_last_of("-,") + 1);
  const Finished one = spawn({"taskset", "-c", last, SHOAL_TOPO, "--json"});
  REQUIRE(one.code == 0);
  const json share = json::parse(one.out);
  CHECK(share["ours"] == last);
  CHECK(share["processors"] == whole["processors"]);
  CHECK(share["cores"] == whole["cores"]);
}
