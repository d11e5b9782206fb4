// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "comm/selection.h"

using namespace shoal;
using namespace shoal::comm;
using plan::Collective;

namespace {

engine::Call call_of(Collective collective, std::size_t count) {
  return {.collective = collective, .count = {count}, .type = DataType::float32};
}

}  // namespace

TEST_CASE("tuner: what all-to-all-v runs does not depend on the lengths, which no two ranks share") {
  for (const int world : {2, 3, 8, 16}) {
    Tuner short_blocks(Settings{}, {.world = {world}}), long_blocks(Settings{}, {.world = {world}});
    const Choice first = *short_blocks.choose(call_of(Collective::all_to_all_v, 1));
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{1} << 20, std::size_t{1} << 32}) {
      const Choice other = *long_blocks.choose(call_of(Collective::all_to_all_v, count));
      CHECK(other.algorithm == first.algorithm);
      CHECK(other.tuning.slice == first.tuning.slice);
    }
  }
}

TEST_CASE("tuner: every collective has a choice for every world and length, the same on every rank") {
  for (int c = 0; c < plan::kCollectives; ++c)
    for (const int world : {1, 2, 3, 7, 16})
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{5000}, std::size_t{1} << 22}) {
        Tuner one(Settings{}, {.world = {world}, .group = world}), another(Settings{}, {.world = {world}, .group = world});
        const Result<Choice> a = one.choose(call_of(Collective(c), count)), b = another.choose(call_of(Collective(c), count));
        REQUIRE(a.is_ok());
        CHECK(a->algorithm == b->algorithm);
        CHECK(a->algorithm->build({.world = {world}}).boards == plan::Boards::unused);  // nobody said that memory can be mapped
      }
}

TEST_CASE("tuner: ordered numerics lets only plans run that add in the promised tree") {
  Tuner tuner(Settings{}, {.world = {6}, .mappable = true});
  for (const Collective c : {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter})
    for (const std::size_t count : {std::size_t{1}, std::size_t{1} << 22}) {
      engine::Call call = call_of(c, count);
      call.numerics = engine::Numerics::ordered;
      CHECK(tuner.choose(call)->algorithm->build({.world = {6}}).order == plan::Order::butterfly);
    }
}

TEST_CASE("tuner: what it predicts is its winner's time, of any collective, world and length") {
  for (int c = 0; c < plan::kCollectives; ++c)
    for (const int world : {1, 2, 5}) {
      const Tuner tuner(Settings{}, {.world = {world}, .group = world, .mappable = true});
      double before = 0;
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{1} << 20}) {
        INFO(plan::name_of(Collective(c)) << ", " << world << " ranks, " << count << " elements");
        const Result<double> time = tuner.predict(call_of(Collective(c), count));
        REQUIRE(time.is_ok());
        CHECK(*time >= before);
        if (world > 1) CHECK(*time > 0);
        before = *time;
      }
      if (world == 1 || Collective(c) == Collective::all_to_all_v) continue;
      const engine::Call whole = call_of(Collective(c), 1024);  // 4096 bytes: just what choices are made for
      CHECK(*tuner.predict(whole) == tuner.candidates(whole).front().time_s);
    }
}

TEST_CASE("tuner: what nothing may do has no predicted time") {
  Settings settings;
  settings.algorithms = *AlgorithmFilter::parse("NCCL_ALGO", "all_reduce:two_rings");
  settings.algorithm_text = "NCCL_ALGO=all_reduce:two_rings";
  engine::Call call = call_of(Collective::all_reduce, 10);
  call.numerics = engine::Numerics::ordered;
  const Result<double> time = Tuner(settings, {.world = {4}}).predict(call);
  REQUIRE_FALSE(time.is_ok());
  CHECK(time.status().code() == Code::invalid_usage);
}

TEST_CASE("tuner: long slices where every link is a stream and a chunk has several of them, else the usual ones") {
  const Settings settings;
  const std::size_t usual = settings.tuning.slice.value;
  const Situation streams{.world = {4}, .hosts = 4, .group = 1, .streams = true};
  CHECK(longest_message(streams, settings).value == 4 * usual);
  CHECK(longest_message({.world = {4}, .group = 4}, settings).value == usual);
  const auto slice_of = [](const Settings& with, const Situation& at, std::size_t bytes) {
    return Tuner(with, at).choose(call_of(Collective::all_reduce, bytes / sizeof(float)))->tuning.slice.value;
  };
  CHECK(slice_of(settings, streams, 64 << 20) == 4 * usual);
  CHECK(slice_of(settings, streams, 2 << 20) == 2 * usual);
  CHECK(slice_of(settings, streams, 1 << 20) == usual);
  CHECK(slice_of(settings, {.world = {4}, .group = 4}, 64 << 20) == usual);
  Settings given;
  given.slice_is_given = true;
  CHECK(longest_message(streams, given).value == usual);
  CHECK(slice_of(given, streams, 64 << 20) == usual);
}

TEST_CASE("tuner: what rank 0 finds between hosts travels with the settings, and is what plans are priced with there alone") {
  Settings settings;
  settings.network = {.latency_s = 3e-6, .overhead_s = 0.5e-6, .bandwidth_Bps = 25e9 / 3};
  const Result<Settings> received = decode_settings(encode(settings));
  REQUIRE(received.is_ok());
  CHECK(received->network == settings.network);
  CHECK(decode_settings(encode(Settings{}))->network == Calibration::Wire{});
  const Situation two_hosts{.world = {4}, .hosts = 2, .group = 2}, one_host{.world = {4}, .hosts = 1, .group = 4};
  const plan::Cluster far = cluster_of(two_hosts, *received);
  CHECK(far.nics.latency_s == 3e-6);
  CHECK(far.nics.out_Bps == 25e9 / 3);
  CHECK(far.overhead_s == 0.5e-6);
  CHECK(cluster_of(two_hosts, Settings{}).nics.out_Bps == 1.25e9);
  CHECK(cluster_of(one_host, *received).overhead_s == cluster_of(one_host, Settings{}).overhead_s);
  settings.calibration = Calibration{.between = {.bandwidth_Bps = 1e9}};  // what was measured is known better
  CHECK(cluster_of(two_hosts, settings).nics.out_Bps == 1e9);
  CHECK(cluster_of(two_hosts, settings).nics.latency_s == 3e-6);
}

TEST_CASE("settings: a network in other words than three numbers is refused") {
  const std::string good = encode(Settings{});
  for (const char* wrong : {"network=", "network=1,2", "network=1,2,3,4", "network=1,x,3", "network=1,-2,3", "network=nan,1,2",
                            "network=1,inf,2", "network=1,2,1e16"}) {
    std::string text = good;
    text.replace(text.find("network=0,0,0"), std::string_view("network=0,0,0").size(), wrong);
    INFO(wrong);
    CHECK_FALSE(decode_settings(text).is_ok());
  }
}

TEST_CASE("tuner: between hosts slices are not cut shorter for a gain that one message more eats up") {
  const Situation pair{.world = {2}, .hosts = 2, .group = 1, .streams = true};
  Tuner tuner(Settings{}, pair);
  CHECK(tuner.choose(call_of(Collective::broadcast, std::size_t{1} << 20))->tuning.slice == longest_message(pair, Settings{}));
  // A chain of many gains: what it waits for at first is a slice a rank.
  const Situation chain{.world = {16}, .hosts = 16, .group = 1, .streams = true};
  Settings only;
  only.algorithms = *AlgorithmFilter::parse("NCCL_ALGO", "broadcast:chain");
  only.algorithm_text = "NCCL_ALGO=broadcast:chain";
  Tuner of_chain(only, chain);
  CHECK(of_chain.choose(call_of(Collective::broadcast, std::size_t{1} << 20))->tuning.slice < longest_message(chain, only));
}

TEST_CASE("tuner: between hosts a ring carries long vectors, whose ranks keep their partners; short ones take fewer rounds") {
  const auto choice = [](std::size_t bytes) {
    Tuner tuner(Settings{}, {.world = {4}, .hosts = 4, .group = 1, .streams = true});
    return std::string(tuner.choose(call_of(Collective::all_reduce, bytes / sizeof(float)))->algorithm->name);
  };
  CHECK(choice(64 << 20) == "ring");
  CHECK(choice(1 << 20) == "ring");
  CHECK(choice(64) != "ring");
}

TEST_CASE("tuner: within a host without shared memory plans of several lanes gain nothing, whose streams one processor serves") {
  const auto choice = [](std::int32_t world, bool crowded, std::size_t bytes) {
    Settings settings;
    settings.shm_disable = true;
    settings.processors = 2;
    Tuner tuner(settings, {.world = {world}, .group = world, .crowded = crowded, .streams = true});
    return std::string(tuner.choose(call_of(Collective::all_reduce, bytes / sizeof(float)))->algorithm->name);
  };
  CHECK(choice(2, false, 64 << 10) == "recursive_doubling");
  CHECK(choice(2, false, 1 << 20) == "ring");
  CHECK(choice(4, true, 32 << 10) == "recursive_doubling");
  CHECK(choice(4, true, 256 << 10) == "ring");
}

TEST_CASE("situation: links are all streams where no two ranks share memory or a process") {
  const auto peer = [](int rank, const char* host, std::uint64_t process) {
    return link::PeerIdentity{.rank = {rank}, .host_id = host, .process = process, .address = "a:1", .local_address = "l"};
  };
  Settings settings;
  const std::vector<link::PeerIdentity> apart{peer(0, "a", 1), peer(1, "b", 1)}, together{peer(0, "a", 1), peer(1, "a", 2)},
      one_process{peer(0, "a", 1), peer(1, "a", 1)};
  CHECK(situation_of(apart, settings).streams);
  CHECK_FALSE(situation_of(together, settings).streams);
  CHECK_FALSE(situation_of(one_process, settings).streams);
  settings.shm_disable = true;
  CHECK(situation_of(together, settings).streams);
  CHECK_FALSE(situation_of(one_process, settings).streams);
  settings.loopback_disable = true;
  CHECK(situation_of(one_process, settings).streams);
}
