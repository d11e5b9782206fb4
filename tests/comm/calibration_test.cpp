// SPDX-License-Identifier: Apache-2.0
#include "comm/calibration.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "comm/selection.h"

using namespace shoal;
using namespace shoal::comm;

namespace {

const Calibration kAll = {
    .within_transport = "shm", .within = {1e-7, 2e-8, 4e9}, .between = {2e-5, 3e-6, 5e8}, .copy_Bps = 6e9, .reduce_Bps = 3e9};

Settings settings_with(const Calibration& calibration) {
  Settings settings;
  settings.calibration = calibration;
  return settings;
}

std::string why_not(std::string_view text) {
  const Result<Calibration> parsed = parse_calibration(text);
  if (parsed.is_ok()) return "it was taken";
  CHECK(parsed.status().code() == Code::invalid_argument);
  return std::string(parsed.status().text());
}

}  // namespace

TEST_CASE("calibration: comments, spaces and any order; what is known comes back bit by bit") {
  const Result<Calibration> parsed = parse_calibration(
      "# measured\r\n\n  reduce_Bps=3e9\n within.latency_s = 1e-07\t\nwithin.transport = shm\ncopy_Bps = 6000000000\n"
      "within.bandwidth_Bps=4e9\nwithin.overhead_s=2e-8\nbetween.latency_s=2e-5\nbetween.overhead_s=3e-6\n"
      "between.bandwidth_Bps=5e8");
  REQUIRE(parsed.is_ok());
  CHECK(*parsed == kAll);
  Calibration odd = {.copy_Bps = 1.0 / 3e-10};
  for (const Calibration& each : {kAll, odd}) CHECK(*parse_calibration(text_of(each, ','), ',') == each);
  CHECK(text_of(odd, ',').find(' ') == std::string::npos);
}

TEST_CASE("calibration: errors name line, key, value and what is allowed") {
  CHECK(why_not("") == "it says nothing: allowed are lines KEY = VALUE");
  CHECK(why_not("# only words\n") == "it says nothing: allowed are lines KEY = VALUE");
  CHECK(why_not("\ncopy_Bps 7\n") == "line 2: 'copy_Bps 7': allowed is KEY = VALUE");
  CHECK(why_not("copy = 7\n") == "line 1: there is no 'copy': shoal-perf --calibrate writes such files");
  for (const char* value : {"", "fast", "-1", "0", "nan", "inf", "1e16", "1e9x", "0x10"}) {
    CAPTURE(value);
    CHECK(why_not("reduce_Bps = " + std::string(value)) ==
          "line 1: reduce_Bps = '" + std::string(value) + "': allowed is a number from 1 to 1e+15");
  }
  CHECK(why_not("between.latency_s = 61") == "line 1: between.latency_s = '61': allowed is a number from 1e-10 to 60");
  CHECK(why_not("copy_Bps = 1\ncopy_Bps = 2") == "line 2: copy_Bps is there twice");
  CHECK(why_not("within.transport = rdma") == "line 1: within.transport = 'rdma': allowed is shm or tcp");
  CHECK(why_not("within.latency_s = 1e-6").find("within.transport goes with within.latency_s") == 0);
  CHECK(why_not("within.transport = shm").find("within.transport goes with within.latency_s") == 0);
}

TEST_CASE("calibration: paths between hosts by name, each direction by itself") {
  const auto parsed = parse_calibration("path.alpha:beta-2.net_Bps = 1e8\npath.beta-2.net:alpha_Bps=12500000\n");
  REQUIRE(parsed.is_ok());
  CHECK(parsed->paths_Bps ==
        std::map<std::pair<std::string, std::string>, double>{{{"alpha", "beta-2.net"}, 1e8}, {{"beta-2.net", "alpha"}, 1.25e7}});
  CHECK(*parse_calibration(text_of(*parsed, ','), ',') == *parsed);
  for (const char* name :
       {"path.", "path.a_Bps", "path.a:_Bps", "path.:b_Bps", "path.a:b", "path.a:a_Bps", "path.a:b:c_Bps", "path.a b:c_Bps"}) {
    CAPTURE(name);
    CHECK(why_not(std::string(name) + " = 1e9") ==
          "line 1: '" + std::string(name) + "': allowed is path.FROM:TO_Bps with the names of two hosts");
  }
  CHECK(why_not("path.a:b_Bps = fast") == "line 1: path.a:b_Bps = 'fast': allowed is a number from 1 to 1e+15");
  CHECK(why_not("path.a:b_Bps = 1\npath.a:b_Bps = 1") == "line 2: path.a:b_Bps is there twice");
}

TEST_CASE("calibration: a file's errors name variable and file, and settings carry it to all ranks") {
  std::string pattern = (std::filesystem::temp_directory_path() / "shoal-calibration-XXXXXX").string();
  const std::filesystem::path directory = ::mkdtemp(pattern.data());
  const std::string path = (directory / "here.txt").string();
  Environment environment;
  environment.calibration = path;
  Result<Settings> made = make_settings(environment);
  CHECK(made.status().code() == Code::system_error);
  CHECK(made.status().text() == "SHOAL_CALIBRATION='" + path + "': cannot be read: No such file or directory (2)");
  std::ofstream(path) << "copy_Bps = much\n";
  made = make_settings(environment);
  CHECK(made.status().code() == Code::invalid_argument);
  CHECK(std::string(made.status().text()).find("SHOAL_CALIBRATION='" + path + "': line 1: copy_Bps = 'much': ") == 0);
  std::ofstream(path) << std::string(600'000, '#');
  CHECK(std::string(make_settings(environment).status().text()).find("is longer than 524288 bytes") != std::string::npos);
  environment.calibration = directory.string();
  CHECK(make_settings(environment).status().code() == Code::system_error);
  std::ofstream(path) << text_of(kAll, '\n') << "\n";
  environment.calibration = path;
  environment.algo = "all_reduce:ring";
  environment.algo_variable = "SHOAL_ALGO";
  made = make_settings(environment);
  REQUIRE(made.is_ok());
  const Result<Settings> received = decode_settings(encode(*made));
  REQUIRE(received.is_ok());
  CHECK(*received == *made);
  CHECK(received->calibration == kAll);
  CHECK(received->algorithm_text == "SHOAL_ALGO=all_reduce:ring");
  CHECK_FALSE(decode_settings(encode(Settings{}))->calibration);
  std::filesystem::remove_all(directory);
}

TEST_CASE("calibration: the tuner's model takes what was measured, and only for the transport that it was measured of") {
  const Situation one_host{.world = {4}, .hosts = 1, .group = 4, .mappable = true};
  const Situation two_hosts{.world = {4}, .hosts = 2, .group = 2};
  const plan::Cluster plain = cluster_of(one_host, Settings{}), near = cluster_of(one_host, settings_with(kAll)),
                      far = cluster_of(two_hosts, settings_with(kAll));
  CHECK(near.within.latency_s == 1e-7);
  CHECK(near.overhead_s == 2e-8);
  CHECK(near.copy_Bps == 4e9);  // no faster through shared memory than a message is
  CHECK(near.reduce_Bps == 3e9);
  CHECK(far.nics.latency_s == 2e-5);
  CHECK(far.overhead_s == 3e-6);
  CHECK(far.nics.out_Bps == 5e8);
  CHECK(far.nics.in_Bps == 5e8);

  Settings over_tcp = settings_with(kAll);
  over_tcp.shm_disable = true;
  const Situation sockets{.world = {4}, .hosts = 1, .group = 4};
  Settings stated;
  stated.shm_disable = true;
  CHECK(cluster_of(sockets, over_tcp).within.latency_s == cluster_of(sockets, stated).within.latency_s);
  CHECK(cluster_of(sockets, over_tcp).within.bandwidth_Bps == cluster_of(sockets, stated).within.bandwidth_Bps);
  CHECK(cluster_of(sockets, over_tcp).copy_Bps == 6e9);

  // Nothing measured, nothing changed.
  Calibration only_far;
  only_far.between = {1e-5, 1e-6, 1e9};
  const plan::Cluster same = cluster_of(one_host, settings_with(only_far));
  CHECK(same.within.latency_s == plain.within.latency_s);
  CHECK(same.copy_Bps == plain.copy_Bps);
  CHECK(same.reduce_Bps == plain.reduce_Bps);
}

TEST_CASE("calibration: it decides which algorithm runs, and explain says whose numbers they are") {
  engine::Call call{.collective = plan::Collective::all_reduce, .count = {4096}, .type = DataType::float32};
  Calibration slow_wire, fast_wire;
  slow_wire.between = {1e-2, 1e-6, 1e9};   // rounds cost everything
  fast_wire.between = {1e-9, 1e-10, 1e6};  // bytes do
  const Situation hosts{.world = {8}, .hosts = 8, .group = 1};
  Tuner few_rounds(settings_with(slow_wire), hosts), few_bytes(settings_with(fast_wire), hosts);
  const Candidate a = few_rounds.candidates(call).front(), b = few_bytes.candidates(call).front();
  CHECK(a.choice.algorithm != b.choice.algorithm);
  CHECK(a.rounds < b.rounds);
  CHECK(a.sent > b.sent);
  CHECK(few_rounds.explain(call).find("by SHOAL_CALIBRATION: between.latency_s=0.01 ") != std::string::npos);
  CHECK(Tuner(Settings{}, hosts).explain(call).find("CALIBRATION") == std::string::npos);
}
