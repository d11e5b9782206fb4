// SPDX-License-Identifier: Apache-2.0
// What a peer could do that has gone mad: every transport refuses with a reason and touches nothing that is not its own. And what
// a connection does whose other end never comes.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "link/memory_file.h"
#include "link/ring.h"
#include "transports/loopback/transport.h"
#include "transports/pair.h"
#include "transports/shm/passing.h"
#include "transports/shm/transport.h"
#include "transports/tcp/frame.h"
#include "transports/tcp/transport.h"

namespace shoal::transports {
namespace {

using Catch::Matchers::Contains;

struct Rig {
  explicit Rig(int side, Apart apart = Apart::processes) {
    endpoint.self = identity(side, apart);
    endpoint.communicator = 1;
    endpoint.max_message = {1000};
    endpoint.credits = 2;
    endpoint.doorbell = &page->doorbell();
    endpoint.doorbell_descriptor = page->descriptor();
  }
  Result<link::DoorbellPage> page = link::DoorbellPage::create();
  link::Endpoint endpoint;
};

std::string text(const Status& status) { return std::string(status.text()); }

// What the offer of the shm transport looks like on the stream.
struct RawOffer {
  std::uint32_t magic = 0x4d485331;
  std::int32_t credits = 2;
  std::uint64_t max_message = 1000;
};
constexpr link::RingShape kShape{{1000}, 2};
const Bytes kRings{2 * kShape.bytes()};

// An accepting side of shm and the mad peer's end of its stream.
struct ShmVictim {
  ShmVictim() {
    connection = transport.connect(rig.endpoint, identity(0, Apart::processes), 0, std::move(streams.accepting), false);
  }
  std::string refusal() {
    auto made = connection->progress();
    return made.is_ok() ? "" : text(made.status());
  }
  std::string offer(const RawOffer& offer, const std::vector<int>& descriptors) {
    REQUIRE(*pass(streams.connecting, std::as_bytes(std::span(&offer, 1)), descriptors));
    return refusal();
  }
  Rig rig{1};
  Streams streams = make_local_streams();
  ShmTransport transport;
  std::unique_ptr<link::Connection> connection;
};

link::Descriptor rings_file(Bytes size = kRings) {
  auto file = link::create_memory_file("shoal-test", size);
  REQUIRE(file.is_ok());
  return file.take();
}

TEST_CASE("shm: an offer of another size, an unsealed file, a plain file and too few descriptors are refused") {
  const Rig mad{0};
  const int page = mad.endpoint.doorbell_descriptor;
  const link::Descriptor good = rings_file();
  SECTION("another number of credits") {
    CHECK_THAT(ShmVictim().offer({.credits = 3}, {good.get(), page}), Contains("rank 0") && Contains("3 messages of 1000 bytes"));
  }
  SECTION("another magic") { CHECK_THAT(ShmVictim().offer({.magic = 1}, {good.get(), page}), Contains("0x1")); }
  SECTION("a file that is too short") {
    const link::Descriptor file = rings_file({4096});
    CHECK_THAT(ShmVictim().offer({}, {file.get(), page}), Contains("4096 bytes, " + std::to_string(kRings.value) + " wanted"));
  }
  SECTION("a file that can shrink") {
    const link::Descriptor file{::memfd_create("shoal-test", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    REQUIRE(::ftruncate(file.get(), static_cast<off_t>(kRings.value)) == 0);
    CHECK_THAT(ShmVictim().offer({}, {file.get(), page}), Contains("may change its size"));
  }
  SECTION("not a memory file") {
    const link::Descriptor file{::open("/dev/zero", O_RDWR | O_CLOEXEC)};
    CHECK_THAT(ShmVictim().offer({}, {file.get(), page}), Contains("not a memory file"));
  }
  SECTION("a doorbell page that is none") {
    const link::Descriptor file = rings_file({64});
    CHECK_THAT(ShmVictim().offer({}, {good.get(), file.get()}), Contains("64 bytes"));
  }
  SECTION("one descriptor") { CHECK_THAT(ShmVictim().offer({}, {good.get()}), Contains("1 descriptors came, 2 wanted")); }
  SECTION("an end after half an offer") {
    ShmVictim victim;
    REQUIRE(::send(victim.streams.connecting.get(), "half", 4, 0) == 4);
    CHECK(victim.refusal() == "");
    victim.streams.connecting.reset();
    CHECK_THAT(victim.refusal(), Contains("after 4 of 16 bytes"));
  }
}

TEST_CASE("shm: a control line with an impossible length is an error that names the peer, not a read beyond the memory") {
  const Rig mad{0};
  const link::Descriptor file = rings_file();
  ShmVictim victim;
  const RawOffer offer;
  const std::vector<int> descriptors{file.get(), mad.endpoint.doorbell_descriptor};
  REQUIRE(*pass(victim.streams.connecting, std::as_bytes(std::span(&offer, 1)), descriptors));
  auto made = victim.connection->progress();
  REQUIRE(made.is_ok());
  link::Link& link = **made;
  CHECK(link.health().is_ok());
  CHECK(link.front() == nullptr);

  const auto mapping = link::map_memory_file("shoal-test", file, kRings);
  REQUIRE(mapping.is_ok());
  link::RingControlLine& control = *kShape.controls(mapping->memory());
  control.length = 1001;
  control.sequence.store(1);
  CHECK(link.front() == nullptr);
  const Status health = link.health();
  CHECK_THAT(text(health), Contains("rank 0") && Contains("1001 bytes where 1000 is the most"));
  CHECK(health.culprit() == Rank{0});
}

TEST_CASE("shm: an endpoint without a doorbell page is told so") {
  Rig rig{1};
  rig.endpoint.doorbell_descriptor = -1;
  ShmTransport transport;
  const auto connection =
      transport.connect(rig.endpoint, identity(0, Apart::processes), 0, make_local_streams().accepting, false);
  CHECK_THAT(text(connection->progress().status()), Contains("doorbell_descriptor"));
}

TEST_CASE("shm: memory that cannot be had is an error that says how much was wanted") {
  Rig rig{0};
  rig.endpoint.max_message = {std::size_t{1} << 60};
  Streams streams = make_local_streams();
  ShmTransport transport;
  const auto connection = transport.connect(rig.endpoint, identity(1, Apart::processes), 0, std::move(streams.connecting), true);
  const auto made = connection->progress();
  REQUIRE_FALSE(made.is_ok());
  CHECK_THAT(text(made.status()), Contains("4611686018427388"));  // 4 * 2^60 bytes and the lines
}

// A TCP link and the mad peer's end of its stream.
struct TcpVictim {
  explicit TcpVictim(std::size_t max_message = 1000) {
    rig.endpoint.max_message = {max_message};
    auto made =
        transport.connect(rig.endpoint, identity(0, Apart::processes), 0, std::move(streams.accepting), false)->progress();
    link = made.take();
  }
  void say(const void* bytes, std::size_t count) {
    REQUIRE(::send(streams.connecting.get(), bytes, count, 0) == static_cast<ssize_t>(count));
  }
  void say(const FrameHeader& header) { say(&header, sizeof header); }
  Rig rig{1};
  Streams streams = make_streams(link::Carrier::network, "127.0.0.1");
  TcpTransport transport;
  std::unique_ptr<link::Link> link;
};

Status await_trouble(link::Link& link) {
  Status health;
  for (int turn = 0; turn < 10000 && (health = link.health()).is_ok(); ++turn) ::usleep(100);
  return health;
}

const link::Message* await_message(link::Link& link) {
  const link::Message* message = nullptr;
  for (int turn = 0; turn < 10000 && (message = link.front()) == nullptr; ++turn) ::usleep(100);
  return message;
}

TEST_CASE("tcp: a frame that is none, and one that is too long, end the link after what came before") {
  TcpVictim victim;
  victim.say({.tag = 3, .length = 2});
  victim.say("ok", 2);
  SECTION("another magic") {
    victim.say({.magic = 0x20544547, .length = 1});
    REQUIRE(await_message(*victim.link) != nullptr);
    CHECK(victim.link->health().is_ok());  // the good message is still to be read
    CHECK(victim.link->front()->tag == link::Tag{3});
    victim.link->release();
    CHECK_THAT(text(await_trouble(*victim.link)), Contains("rank 0") && Contains("0x20544547"));
  }
  SECTION("too long") {
    victim.say({.length = 1001});
    REQUIRE(await_message(*victim.link) != nullptr);
    victim.link->release();
    const Status health = await_trouble(*victim.link);
    CHECK_THAT(text(health), Contains("1001 bytes where 1000 is the most"));
    CHECK(health.culprit() == Rank{0});
    CHECK(victim.link->front() == nullptr);
  }
  SECTION("the largest length there is") {
    victim.say({.length = ~std::uint64_t{0}});
    REQUIRE(await_message(*victim.link) != nullptr);
    victim.link->release();
    CHECK_FALSE(await_trouble(*victim.link).is_ok());
  }
}

TEST_CASE("tcp: a message that comes byte by byte is one message") {
  TcpVictim victim;
  std::vector<std::byte> wire(kFrameHeader);
  const FrameHeader header{.tag = 77, .length = 300};
  std::memcpy(wire.data(), &header, sizeof header);
  const auto payload = pattern(300, 5);
  wire.insert(wire.end(), payload.begin(), payload.end());
  for (std::size_t i = 0; i < wire.size(); ++i) {
    CHECK(victim.link->front() == nullptr);
    victim.say(&wire[i], 1);
  }
  const link::Message* message = await_message(*victim.link);
  REQUIRE(message != nullptr);
  CHECK(message->tag.value == 77);
  CHECK(std::equal(payload.begin(), payload.end(), message->payload.begin(), message->payload.end()));
}

TEST_CASE("tcp: a payload that has landed is taken back with its target, half way or whole, and what follows stays whole") {
  TcpVictim victim(1 << 20);
  link::Direct& direct = *victim.link->direct();
  const auto payload = pattern(100000, 1);
  std::vector<std::byte> target(payload.size());
  const auto await = [&](auto&& done) {
    for (int turn = 0; turn < 10000 && !done(); ++turn) {
      victim.link->progress();
      ::usleep(100);
    }
    REQUIRE(done());
  };
  const auto take_back = [&] {
    direct.expect({});
    std::fill(target.begin(), target.end(), std::byte{0xee});
  };
  const auto check_next = [&](std::uint32_t tag, std::span<const std::byte> expected) {
    await([&] { return victim.link->front() != nullptr; });
    const link::Message& message = *victim.link->front();
    CHECK(message.tag.value == tag);
    CHECK(std::equal(expected.begin(), expected.end(), message.payload.begin(), message.payload.end()));
    victim.link->release();
  };
  direct.expect(target);
  victim.say({.tag = 1, .length = payload.size()});
  SECTION("half way") {
    victim.say(payload.data(), 50000);
    await([&] { return std::equal(payload.begin(), payload.begin() + 50000, target.begin()); });
    CHECK(victim.link->front() == nullptr);
    take_back();
    victim.say(payload.data() + 50000, 50000);
  }
  SECTION("whole, with the header of the next message behind it") {
    victim.say(payload.data(), payload.size());
    victim.say({.tag = 2, .length = 3});
    await([&] { return victim.link->front() != nullptr; });
    CHECK(victim.link->front()->payload.data() == target.data());
    take_back();
    CHECK(victim.link->front()->payload.data() != target.data());
    victim.say("abc", 3);
    check_next(1, payload);
    check_next(2, std::as_bytes(std::span("abc", 3)));
    return;
  }
  victim.say({.tag = 2, .length = 0});
  check_next(1, payload);
  check_next(2, {});
  CHECK(std::count(target.begin(), target.end(), std::byte{0xee}) == 100000);
}

TEST_CASE("tcp: an end in the middle of a message delivers nothing of it") {
  TcpVictim victim;
  victim.say({.length = 500});
  victim.say("only these", 10);
  victim.streams.connecting.reset();
  const Status health = await_trouble(*victim.link);
  CHECK_THAT(text(health), Contains("rank 0 (testhost, pid 1000) closed the connection"));
  CHECK(victim.link->front() == nullptr);
}

TEST_CASE("loopback: a connection that is given up before the peer comes leaves nothing for it") {
  Rig low{0, Apart::threads};
  Rig high{1, Apart::threads};
  LoopbackTransport transport;
  {
    const auto gone = transport.connect(low.endpoint, high.endpoint.self, 0, {}, true);
    CHECK(*gone->progress() == nullptr);
  }
  const auto later = transport.connect(high.endpoint, low.endpoint.self, 0, {}, false);
  CHECK(*later->progress() == nullptr);
  const auto again = transport.connect(low.endpoint, high.endpoint.self, 0, {}, true);
  CHECK(*again->progress() != nullptr);
  CHECK(*later->progress() != nullptr);
}

TEST_CASE("loopback: channels, pairs and communicators do not meet each other") {
  Rig low{0, Apart::threads};
  Rig high{1, Apart::threads};
  LoopbackTransport transport;
  const auto here = transport.connect(low.endpoint, high.endpoint.self, 0, {}, true);
  const auto other_channel = transport.connect(high.endpoint, low.endpoint.self, 1, {}, false);
  high.endpoint.communicator = 2;
  const auto other_communicator = transport.connect(high.endpoint, low.endpoint.self, 0, {}, false);
  CHECK(*here->progress() == nullptr);
  CHECK(*other_channel->progress() == nullptr);
  CHECK(*other_communicator->progress() == nullptr);

  const auto meets = transport.connect(low.endpoint, high.endpoint.self, 1, {}, true);
  auto one = meets->progress().take();
  auto two = other_channel->progress().take();
  REQUIRE(one != nullptr);
  REQUIRE(two != nullptr);
  one->acquire({0});
  one->commit({9});
  REQUIRE(two->front() != nullptr);
  CHECK(two->front()->tag.value == 9);
}

TEST_CASE("loopback: an end whose peer gives up before taking its link sees that it left") {
  Rig low{0, Apart::threads};
  Rig high{1, Apart::threads};
  LoopbackTransport transport;
  auto given_up = transport.connect(low.endpoint, high.endpoint.self, 0, {}, true);
  const auto link = transport.connect(high.endpoint, low.endpoint.self, 0, {}, false)->progress().take();
  REQUIRE(link != nullptr);
  CHECK(link->health().is_ok());
  given_up.reset();
  CHECK_THAT(text(link->health()), Contains("rank 0 (testhost, pid 1000) has left (loopback)"));
}

TEST_CASE("transports reach whom they should, by agreed facts alone") {
  Rig rig{0, Apart::threads};
  const LoopbackTransport loopback;
  const ShmTransport shm;
  const TcpTransport tcp;
  link::PeerIdentity peer = identity(1, Apart::threads);
  CHECK(loopback.reaches(rig.endpoint, peer));
  CHECK_FALSE(shm.reaches(rig.endpoint, peer));  // same process
  CHECK(tcp.reaches(rig.endpoint, peer));

  rig.endpoint.loopback_disable = true;
  CHECK_FALSE(loopback.reaches(rig.endpoint, peer));
  CHECK(shm.reaches(rig.endpoint, peer));

  rig.endpoint.loopback_disable = false;
  peer.process = 99;
  CHECK_FALSE(loopback.reaches(rig.endpoint, peer));
  CHECK(shm.reaches(rig.endpoint, peer));
  rig.endpoint.shm_disable = true;
  CHECK_FALSE(shm.reaches(rig.endpoint, peer));
  rig.endpoint.shm_disable = false;
  peer.local_address = "";
  CHECK_FALSE(shm.reaches(rig.endpoint, peer));

  peer = identity(1, Apart::threads);
  peer.host_id = "another-machine";  // the same process number by chance
  CHECK_FALSE(loopback.reaches(rig.endpoint, peer));
  CHECK_FALSE(shm.reaches(rig.endpoint, peer));
  CHECK(tcp.reaches(rig.endpoint, peer));
  peer.address = "";
  CHECK_FALSE(tcp.reaches(rig.endpoint, peer));
}

}  // namespace
}  // namespace shoal::transports
