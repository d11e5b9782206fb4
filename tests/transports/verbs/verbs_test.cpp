// SPDX-License-Identifier: Apache-2.0
// verbs where things go wrong, and what it asks of devices, over devices that exist in this process only.
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "device/announced_memory.h"
#include "transports/verbs/two.h"

namespace shoal::transports {

using Catch::Matchers::Contains;
using verbs::Event;
using verbs::Outcome;

Tested tested_transports() { return {}; }

TEST_CASE("verbs: whatever a device refuses while a link is made ends it on both sides, and both say what it was") {
  const std::string step = GENERATE("open", "completions", "pin", "queue_pair", "receives", "connect", "post", "arm");
  CAPTURE(step);
  FakeFabric fabric;
  Two two(fabric);
  REQUIRE(two.reaches());
  int asked = 0;  // the first one alone fails: one side is well
  fabric.refuses = [&](const std::string& each) { return each == step && asked++ == 0; };
  two.connect();
  if (step == "arm") {  // only who sleeps arms
    two.link(0).wakeup();
    CHECK_THAT(two.health(0), Contains("fake0: its completions cannot be waited for") && Contains("rank 1 (testhost, pid 1001)"));
    return;
  }
  const int failing =
      two.text(0).find("fake0") != std::string::npos && two.text(0).find("cannot use") == std::string::npos ? 0 : 1;
  CAPTURE(two.text(0), two.text(1));
  CHECK(two.side(0).link == nullptr);
  CHECK(two.side(1).link == nullptr);
  CHECK_THAT(two.text(failing), Contains("fake0") && Contains("fake"));
  if (step == "connect" || step == "post")  // too late for more than the stream's end
    CHECK_THAT(two.text(1 - failing), Contains("broke off") || Contains("does not acknowledge"));
  else
    CHECK_THAT(two.text(1 - failing), Contains("cannot use verbs: fake0: "));
}

TEST_CASE("verbs: memory that cannot be pinned names the limit on locked memory, and the remedy") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_MEMLOCK, &before) == 0);
  const rlimit low{.rlim_cur = 64 << 10, .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_MEMLOCK, &low) == 0);
  FakeFabric fabric;
  Two two(fabric);
  fabric.refuses = [](const std::string& step) { return step == "pin"; };
  two.connect();
  CHECK(::setrlimit(RLIMIT_MEMLOCK, &before) == 0);
  CHECK_THAT(two.text(0), Contains("fake0: ") && Contains(" bytes cannot be pinned: fake") &&
                              Contains("this process may lock 64 KiB (ulimit -l): raise that"));
}

TEST_CASE("verbs: a peer whose settings differ is refused by name") {
  FakeFabric fabric;
  Two two(fabric);
  SECTION("credits") {
    two.side(1).endpoint.credits = 5;
    two.connect();
    CHECK_THAT(two.text(0), Contains("offers credits 5, expected is 4") && Contains("rank 1 (testhost, pid 1001)"));
  }
  SECTION("bytes a message") {
    two.side(1).endpoint.max_message = {kMax + 1};
    two.connect();
    CHECK_THAT(two.text(0), Contains("bytes a message 100001, expected is 100000"));
  }
}

TEST_CASE("verbs: a write that fails ends the link, and its health names rank, cause and port; what came before is delivered") {
  const auto [outcome, cause] = GENERATE(table<Outcome, const char*>({
      {Outcome::retries_exceeded, "does not acknowledge: cut off, or dead"},
      {Outcome::receiver_not_ready, "does not receive"},
      {Outcome::remote_access, "does not allow the access"},
      {Outcome::remote_error, "the other side's device failed"},
      {Outcome::local_error, "this side's device refused a request"},
      {Outcome::other, "the device failed"},
  }));
  CAPTURE(cause);
  FakeFabric fabric;
  Two two(fabric);
  two.must_connect();
  two.send(1, 50, 7);
  const Outcome how = outcome;  // structured bindings are not captured
  fabric.outcome = [how](const verbs::Write&) { return how; };
  two.send(0, 50, 8);
  two.receive(0, 50, 7);
  const Status health = two.link(0).health();
  CHECK(health.code() == Code::remote_error);
  CHECK(health.culprit() == Rank{1});
  CHECK_THAT(std::string(health.text()), Contains("rank 1 (testhost, pid 1001) cannot be reached any more") && Contains(cause) &&
                                             Contains("fake0:1") && Contains("(verbs)"));
  CHECK_FALSE(two.link(0).flushed());
  // Afterwards everything still answers.
  CHECK(two.link(0).front() == nullptr);
  for (int i = 0; i < 20 && two.link(0).acquire({10}).data() != nullptr; ++i) two.link(0).commit({1});
  CHECK(two.link(0).acquire({10}).data() == nullptr);
}

TEST_CASE("verbs: a port without a wire is named where writes fail, and forgiven where it comes back") {
  FakeFabric fabric;
  Two two(fabric);
  two.must_connect();
  fabric.happen("fake0", {Event::Kind::port_down, 1});
  CHECK(two.health(0) == "success");  // packets are repeated for a while
  SECTION("for ever") {
    fabric.outcome = [](const verbs::Write&) { return Outcome::retries_exceeded; };
    two.send(0, 50, 8);
    CHECK_THAT(two.health(0), Contains("on fake0:1, which has lost its wire"));
  }
  SECTION("for a while") {
    fabric.happen("fake0", {Event::Kind::port_up, 1});
    CHECK(two.health(0) == "success");
    two.send(0, 50, 8);
    two.receive(1, 50, 8);
  }
}

TEST_CASE("verbs: what a peer that has gone did not acknowledge is not waited for") {
  FakeFabric fabric;
  fabric.overtaking = true;
  Two two(fabric);
  two.must_connect();
  two.send(0, 50, 8);
  two.side(1).link.reset();
  int looks = 0;
  while (!two.link(0).flushed() && ++looks < 10'000) {
  }
  CHECK(looks < 10'000);
  CHECK(two.link(0).flushed());  // and it stays so: other links are asked, too
  CHECK_THAT(two.health(0), Contains("rank 1 (testhost, pid 1001) closed the connection"));
}

TEST_CASE("verbs: a device that is removed ends its links") {
  FakeFabric fabric;
  Two two(fabric);
  two.must_connect();
  fabric.happen("fake0", {Event::Kind::device_gone, 0});
  CHECK_THAT(two.health(0), Contains("the device fake0 is gone"));
  CHECK_THAT(two.health(1), Contains("the device fake0 is gone"));  // they share it
}

TEST_CASE("verbs: without a device nothing is reached, and nothing is an error") {
  FakeFabric fabric;
  SECTION("no list") {
    fabric.refuses = [](const std::string& step) { return step == "list"; };
  }
  SECTION("an empty list") { fabric.devices.clear(); }
  SECTION("a port without a wire") { fabric.devices.front().ports.front().active = false; }
  SECTION("no address") { fabric.devices.front().gids.clear(); }
  SECTION("iWARP alone") { fabric.devices = {verbs::fake_device("iwarp0", 1)}; }
  Two two(fabric);
  CHECK_FALSE(two.reaches());
}

TEST_CASE("verbs: a link to nowhere, asked for all the same, is refused") {
  FakeFabric fabric;
  VerbsTransport transport([&fabric] { return Result(fabric.verbs()); }, IbOptions());
  Side side;
  side.endpoint.self = identity(0, Apart::processes);
  Streams streams = make_streams(link::Carrier::network, "127.0.0.1");
  side.connection = transport.connect(side.endpoint, identity(1, Apart::processes), 0, std::move(streams.connecting), true);
  streams.accepting.reset();
  for (int turn = 0; turn < 1'000'000 && side.failure.is_ok(); ++turn) side.progress();
  CHECK_THAT(std::string(side.failure.text()), Contains("there is no port that may be used"));
}

TEST_CASE("verbs: the reason why no port is used names every port") {
  FakeFabric fabric;
  fabric.devices = {verbs::fake_device("mlx5_0", 1), verbs::fake_device("mlx5_1", 2), verbs::fake_device("iwarp0", 3)};
  fabric.devices[1].ports.front().active = false;
  std::string why;
  IbOptions options;
  options.devices = *NameFilter::parse("NCCL_IB_HCA", "^=mlx5_0:1", NameFilter::Of::devices);
  options.device_text = "^=mlx5_0:1";
  CHECK(verbs::usable_ports(*fabric.verbs(), options, why).empty());
  CHECK(why == "iwarp0 needs a connection manager (iWARP); mlx5_0:1 is not in NCCL_IB_HCA='^=mlx5_0:1'; mlx5_1:1 has no wire");
}

TEST_CASE("verbs: its bandwidth is that of the ports that links use, as soon as somebody has looked") {
  FakeFabric fabric;
  fabric.devices.push_back(verbs::fake_device("fake1", 2));
  const VerbsTransport transport([&fabric] { return Result(fabric.verbs()); }, IbOptions());
  CHECK(transport.capabilities().bandwidth_Bps == 12e9);
  link::Endpoint here;
  here.self = {.host_id = "here"};
  REQUIRE(transport.reaches(here, {.rank = {1}, .host_id = "elsewhere"}));
  CHECK(transport.capabilities().bandwidth_Bps == 2 * 12.5e9);
}

TEST_CASE("verbs: of several ports the fastest of one kind are used, at most four") {
  FakeFabric fabric;
  fabric.devices.clear();
  for (unsigned i = 0; i < 6; ++i) fabric.devices.push_back(verbs::fake_device(fmt::format("d{}", i), i));
  fabric.devices[0].ports.front().bandwidth_Bps = 1e9;
  fabric.devices[2].ports.front().ethernet = false;
  std::string why;
  std::vector<std::string> names;
  for (const verbs::UsablePort& port : verbs::usable_ports(*fabric.verbs(), {}, why)) names.push_back(port.device);
  CHECK(names == std::vector<std::string>{"d1", "d3", "d4", "d5"});
}

TEST_CASE("verbs: the address of a RoCE port is v2 with IPv4 if it has that, else the best there is, else what is asked for") {
  using verbs::GidEntry;
  using verbs::GidKind;
  const auto entry = [](int index, GidKind kind, std::initializer_list<int> bytes) {
    GidEntry made{.kind = kind, .index = index};
    std::size_t at = 0;
    for (const int each : bytes) made.gid.bytes[at++] = static_cast<std::byte>(each);
    return made;
  };
  const std::initializer_list<int> local{0xfe, 0x80}, global{0x20, 0x01},
      ipv4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
  const auto chosen = [](const std::vector<GidEntry>& table, bool ethernet, std::int64_t wanted) {
    const auto found = verbs::choose_gid(table, ethernet, wanted);
    return found ? found->index : -1;
  };
  const std::vector<GidEntry> all{entry(0, GidKind::roce_v1, local), entry(1, GidKind::roce_v2, local),
                                  entry(2, GidKind::roce_v1, ipv4),  entry(3, GidKind::roce_v2, global),
                                  entry(5, GidKind::roce_v2, ipv4),  entry(6, GidKind::roce_v2, ipv4)};
  CHECK(chosen(all, true, -1) == 5);
  CHECK(chosen({all[0], all[1], all[2], all[3]}, true, -1) == 3);
  CHECK(chosen({all[0], all[1], all[2]}, true, -1) == 1);
  CHECK(chosen({all[0], all[2]}, true, -1) == 2);
  CHECK(chosen(all, true, 2) == 2);
  CHECK(chosen(all, true, 4) == -1);
  CHECK(chosen({}, true, -1) == -1);
  CHECK(chosen({entry(0, GidKind::infiniband, local), entry(1, GidKind::infiniband, global)}, false, -1) == 0);
}

TEST_CASE("verbs: tiny messages are inlined, and a stream of messages asks for few completions") {
  FakeFabric fabric;
  fabric.overtaking = true;
  Two two(fabric);
  two.side(0).endpoint.credits = two.side(1).endpoint.credits = 16;
  two.must_connect();
  const FakeFabric::Tally before = fabric.tally();
  for (std::uint32_t i = 0; i < 16; ++i) two.send(0, 40, i);
  const FakeFabric::Tally after = fabric.tally();
  CHECK(after.writes - before.writes == 16);
  CHECK(after.inlined - before.inlined == 16);
  CHECK(after.signalled - before.signalled == 1);
  for (std::uint32_t i = 0; i < 16; ++i) two.receive(1, 40, i);
  for (int turn = 0; turn < 1000 && !two.link(0).flushed(); ++turn) {
  }
  CHECK(two.link(0).flushed());
}

TEST_CASE(
    "verbs: memory of the library goes straight into offered memory; nothing is pinned twice, and freed blocks are forgotten") {
  constexpr std::size_t kBytes = 64 << 10;
  FakeFabric fabric;
  const IbOptions options{.queue_pairs = GENERATE(1, 3)};
  Two two(fabric, options);
  two.must_connect();
  const std::size_t own = fabric.regions_alive();
  for (int round = 0; round < 3; ++round) {  // the allocator gives the same addresses again
    const LibraryMemory source(kBytes), target(kBytes);
    for (std::uint32_t i = 0; i < 4; ++i) {
      const auto payload = pattern(kBytes - i, i);
      std::copy(payload.begin(), payload.end(), source.bytes().begin());
      std::fill(target.bytes().begin(), target.bytes().end(), std::byte{0});
      two.link(1).direct()->expect(target.bytes());
      REQUIRE(two.link(0).direct()->send(source.bytes().first(kBytes - i), {i}));
      CHECK(two.next(1).payload.data() == target.bytes().data());
      two.receive(1, kBytes - i, i);
      CHECK(two.link(0).direct()->sent());
    }
    CHECK(fabric.regions_alive() == own + 2);
  }
  CHECK(fabric.tally().pinned == own + 6);
}

TEST_CASE("verbs: memory of malloc's is copied, and nothing of it is pinned") {
  FakeFabric fabric;
  Two two(fabric);
  two.must_connect();
  const std::size_t own = fabric.regions_alive();
  const auto payload = pattern(kMax, 3);
  std::vector<std::byte> target(kMax);
  two.link(1).direct()->expect(target);
  REQUIRE(two.link(0).direct()->send(payload, {3}));
  CHECK(two.link(0).direct()->sent());
  CHECK(two.next(1).payload.data() != target.data());
  two.receive(1, kMax, 3);
  CHECK(fabric.regions_alive() == own);
}

TEST_CASE("verbs: memory of malloc's that is announced goes and comes as the library's own does, until it is withdrawn") {
  FakeFabric fabric;
  Two two(fabric);
  two.must_connect();
  const std::size_t own = fabric.regions_alive();
  const auto payload = pattern(kMax - 1, 3);
  std::vector<std::byte> source(kMax), target(kMax);
  std::copy(payload.begin(), payload.end(), source.begin() + 1);
  const auto send = [&] {
    two.link(1).direct()->expect(std::span(target).subspan(1));
    REQUIRE(two.link(0).direct()->send(std::span(source).subspan(1), {3}));
    const bool landed = two.next(1).payload.data() == target.data() + 1;
    two.receive(1, kMax - 1, 3);
    CHECK(two.link(0).direct()->sent());
    return landed;
  };
  const std::uint64_t from = device::announce(source), to = device::announce(target);
  for (int round = 0; round < 3; ++round) CHECK(send());
  CHECK(fabric.regions_alive() == own + 2);
  device::withdraw(to);
  CHECK_FALSE(send());
  CHECK(fabric.regions_alive() == own + 1);
  device::withdraw(from);
  const std::uint64_t again = device::announce(target);  // under another number
  CHECK(send());
  CHECK(fabric.regions_alive() == own + 1);
  const std::uint64_t part = device::announce(std::span(source).first(kMax / 2));  // not all of what is sent
  CHECK(send());
  CHECK(fabric.regions_alive() == own + 1);
  device::withdraw(part);
  device::withdraw(again);
}

TEST_CASE("verbs: where a block cannot be pinned its messages are copied") {
  FakeFabric fabric;
  Two two(fabric);
  two.must_connect();
  fabric.refuses = [](const std::string& step) { return step == "pin"; };
  const LibraryMemory source(kMax), target(kMax);
  const auto payload = pattern(kMax, 3);
  std::copy(payload.begin(), payload.end(), source.bytes().begin());
  two.link(1).direct()->expect(target.bytes());
  REQUIRE(two.link(0).direct()->send(source.bytes(), {3}));
  two.receive(1, kMax, 3);
}

TEST_CASE("verbs: a direct payload waits for room, and holds back what follows") {
  FakeFabric fabric;
  Two two(fabric);
  two.must_connect();
  std::uint32_t sent = 0;
  for (; two.link(0).acquire({8}).data() != nullptr; ++sent) {
    two.link(0).commit({sent});
    REQUIRE(sent < 100);
  }
  const auto payload = pattern(20'000, sent);
  REQUIRE(two.link(0).direct()->send(payload, {sent}));
  CHECK_FALSE(two.link(0).direct()->sent());
  CHECK_FALSE(two.link(0).flushed());
  CHECK(two.link(0).acquire({0}).data() == nullptr);
  for (std::uint32_t i = 0; i < sent; ++i) {
    CHECK(two.next(1).tag.value == i);
    two.link(1).release();
  }
  two.receive(1, 20'000, sent);
  CHECK(two.link(0).direct()->sent());
}

TEST_CASE("verbs: memory of another device is pinned by its dma-buf descriptor") {
  FakeFabric fabric;
  const auto context = fabric.verbs()->open("fake0").take();
  const auto region = context->pin_dmabuf(3, 4096, 100, 0x7000);
  REQUIRE(region.is_ok());
  CHECK((*region)->remote_key() != 0);
  CHECK_FALSE(context->pin_dmabuf(-1, 0, 100, 0x7000).is_ok());
}

}  // namespace shoal::transports
