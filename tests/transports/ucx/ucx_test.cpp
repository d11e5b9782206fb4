// SPDX-License-Identifier: Apache-2.0
// The UCX transport against a UCX that is absent, too old, or fails at any step, and against a peer that has gone mad.
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <optional>
#include <string>

#include "transports/pair.h"
#include "transports/ucx/connection.h"
#include "transports/ucx/fake_ucx.h"
#include "transports/ucx/transport.h"

namespace shoal::transports::ucx {
namespace {

using Catch::Matchers::Contains;

constexpr std::size_t kMax = 1000;
constexpr std::uint64_t kPeersNumber = 77;

std::string text(const Status& status) { return std::string(status.text()); }

link::Endpoint endpoint_of(int side) {
  link::Endpoint endpoint;
  endpoint.self = identity(side, Apart::processes);
  endpoint.max_message = {kMax};
  endpoint.credits = 2;  // a window of 3
  return endpoint;
}

// One rank's connection over the fake, and the peer as bytes on the other end of its stream.
struct Rig {
  Rig() : transport([this] { return Result<Api>(api); }), raw(std::move(streams.connecting)) {}
  void connect() {
    connection = transport.connect(endpoint, identity(0, Apart::processes), 0, std::move(streams.accepting), false);
  }
  void say(const void* bytes, std::size_t n) const {
    REQUIRE(::send(raw.get(), bytes, n, MSG_NOSIGNAL) == static_cast<ssize_t>(n));
  }
  std::string refusal() {
    const auto made = connection->progress();
    return made.is_ok() ? "" : text(made.status());
  }
  Offer offer() const { return {.credits = 2, .max_message = kMax, .link = kPeersNumber, .address_bytes = 3}; }
  void say_offer(const Offer& offer) const {
    say(&offer, sizeof offer);
    say("abc", 3);
  }
  // The number under which this end wants its messages.
  std::uint64_t number() const {
    Offer ours;
    REQUIRE(::recv(raw.get(), &ours, sizeof ours, MSG_DONTWAIT) == sizeof ours);
    std::array<char, 1000> address;
    REQUIRE(::recv(raw.get(), address.data(), ours.address_bytes, MSG_DONTWAIT) == ours.address_bytes);
    return ours.link;
  }
  link::Link& make_link() {
    connect();
    REQUIRE(refusal() == "");
    to = number();
    say_offer(offer());
    REQUIRE(refusal() == "");
    fake_ucx().deliver({.link = to, .kind = Kind::greeting}, {});
    say(&kReady, 1);
    auto made = connection->progress();
    REQUIRE(made.is_ok());
    link = made.take();
    REQUIRE(link != nullptr);
    std::byte said{};
    REQUIRE(::recv(raw.get(), &said, 1, MSG_DONTWAIT) == 1);
    CHECK(said == kReady);
    return *link;
  }
  std::string loss() const {
    const Status health = link->health();
    CHECK(health.culprit() == Rank{0});
    CHECK(health.code() == Code::remote_error);
    return text(health);
  }

  Api api = fake_api();
  UcxTransport transport;
  link::Endpoint endpoint = endpoint_of(1);
  Streams streams = make_local_streams();
  link::Descriptor raw;
  std::unique_ptr<link::Connection> connection;
  std::unique_ptr<link::Link> link;
  std::uint64_t to = 0;
};

TEST_CASE("ucx: a library that is not there, or too old, is said so by name") {
  CHECK_THAT(text(open_library("libucp-nowhere.so.0").status()), Contains("libucp-nowhere.so.0"));
  CHECK_THAT(text(open_library("libc.so.6").status()), Contains("libc.so.6 has no ucp_get_version"));
  const UcxTransport absent([] { return Result<Api>(fail(Code::system_error, "no UCX")); });
  CHECK_FALSE(absent.reaches(endpoint_of(0), identity(1, Apart::processes)));
}

TEST_CASE("ucx: each step of making a link that fails is an error that names it, and leaves nothing") {
  Rig rig;
  SECTION("configuration") {
    fake_ucx().config = UCS_ERR_NO_MEMORY;
    rig.connect();
    CHECK_THAT(rig.refusal(), Contains("ucp_config_read: as the test wants it (-4)"));
  }
  SECTION("context") {
    fake_ucx().init = UCS_ERR_NO_DEVICE;
    rig.connect();
    CHECK_THAT(rig.refusal(), Contains("ucp_init") && Contains("UCX_TLS"));
  }
  SECTION("worker") {
    fake_ucx().worker = UCS_ERR_NO_RESOURCE;
    rig.connect();
    CHECK_THAT(rig.refusal(), Contains("ucp_worker_create"));
  }
  SECTION("handler") {
    fake_ucx().handler = UCS_ERR_UNSUPPORTED;
    rig.connect();
    CHECK_THAT(rig.refusal(), Contains("ucp_worker_set_am_recv_handler"));
  }
  SECTION("descriptor") {
    fake_ucx().descriptor = UCS_ERR_UNSUPPORTED;
    rig.connect();
    CHECK_THAT(rig.refusal(), Contains("ucp_worker_get_efd"));
  }
  SECTION("address") {
    fake_ucx().address = UCS_ERR_NO_MEMORY;
    rig.connect();
    CHECK_THAT(rig.refusal(), Contains("ucp_worker_get_address"));
  }
  SECTION("path") {
    fake_ucx().endpoint = UCS_ERR_UNREACHABLE;
    rig.connect();
    rig.say_offer(rig.offer());
    CHECK_THAT(rig.refusal(), Contains("rank 0") && Contains("ucp_ep_create") && Contains("UCX_NET_DEVICES"));
  }
  SECTION("greeting") {
    fake_ucx().send = UCS_ERR_ENDPOINT_TIMEOUT;
    rig.connect();
    rig.say_offer(rig.offer());
    CHECK_THAT(rig.refusal(), Contains("rank 0") && Contains("cannot be reached"));
  }
  SECTION("the peer gives up") {
    rig.connect();
    rig.say_offer(rig.offer());
    REQUIRE(rig.refusal() == "");
    rig.raw.reset();
    CHECK_THAT(rig.refusal(), Contains("it gave up"));
  }
  rig.connection.reset();
  CHECK(fake_ucx().contexts == 0);
  CHECK(fake_ucx().workers == 0);
  CHECK(fake_ucx().endpoints == 0);
}

TEST_CASE("ucx: an offer that cannot be is refused with what came and what was expected, however it is cut") {
  const Rig rig;
  const auto refusal = [&](Offer offer) {
    OfferReader reader(rig.offer());
    Status last;
    const auto bytes = std::as_bytes(std::span(&offer, 1));
    for (std::size_t i = 0; i < bytes.size() && last.is_ok(); ++i) last = reader.take(bytes.subspan(i, 1)).status();
    return text(last);
  };
  Offer offer = rig.offer();
  CHECK(refusal(offer) == "success");
  offer.magic = 5;
  CHECK_THAT(refusal(offer), Contains("offered 0x5"));
  offer = rig.offer();
  offer.credits = 3;
  CHECK_THAT(refusal(offer), Contains("3 messages of 1000 bytes") && Contains("2 of 1000 expected"));
  offer = rig.offer();
  offer.address_bytes = 0;
  CHECK_THAT(refusal(offer), Contains("address of 0 bytes"));
  offer.address_bytes = Offer::kLongestAddress + 1;
  CHECK_THAT(refusal(offer), Contains("address of 65537 bytes"));
  // What follows the address is not taken.
  OfferReader reader(rig.offer());
  std::vector<std::byte> bytes(sizeof(Offer) + 10);
  offer = rig.offer();
  std::memcpy(bytes.data(), &offer, sizeof offer);
  CHECK(*reader.take(bytes) == sizeof(Offer) + 3);
  CHECK(reader.is_complete());
  CHECK(reader.address().size() == 3);
}

TEST_CASE("ucx: messages that come out of order are shown in order, wherever UCX keeps them") {
  Rig rig;
  link::Link& link = rig.make_link();
  auto first = pattern(500, 1), second = pattern(900, 2), third = pattern(700, 3);
  const auto header = [&](std::uint32_t number, Kind kind) {
    return FrameHeader{.link = rig.to, .number = number, .tag = number + 10, .kind = kind};
  };
  CHECK(fake_ucx().deliver(header(2, Kind::direct), third, UCP_AM_RECV_ATTR_FLAG_RNDV) == UCS_INPROGRESS);
  CHECK(fake_ucx().deliver(header(1, Kind::eager), second, UCP_AM_RECV_ATTR_FLAG_DATA) == UCS_INPROGRESS);
  CHECK(link.front() == nullptr);
  CHECK(fake_ucx().deliver(header(0, Kind::eager), first) == UCS_OK);
  for (const auto* expected : {&first, &second, &third}) {
    std::vector<std::byte> target(kMax);
    if (expected == &third) link.direct()->expect(target);
    const link::Message* message = link.front();
    REQUIRE(message != nullptr);
    CHECK(std::vector(message->payload.begin(), message->payload.end()) == *expected);
    CHECK((message->payload.data() == target.data()) == (expected == &third));
    CHECK((message->payload.data() == second.data()) == (expected == &second));
    link.release();
  }
  CHECK(fake_ucx().released == 1);
  CHECK(link.health().is_ok());
  // A message of another link, and one of another size of header, are nobody's.
  CHECK(fake_ucx().deliver({.link = rig.to + 1}, first) == UCS_OK);
  CHECK(link.front() == nullptr);
}

TEST_CASE("ucx: a peer that has gone mad ends its link, by name, and nothing else") {
  Rig rig;
  link::Link& link = rig.make_link();
  auto payload = pattern(kMax + 1, 1);
  const auto one = std::span(payload).first(1);
  SECTION("a message from the future") {
    fake_ucx().deliver({.link = rig.to, .number = 100}, one);
    CHECK_THAT(rig.loss(), Contains("rank 0") && Contains("message 100 where 0 is awaited"));
  }
  SECTION("the same message twice") {
    fake_ucx().deliver({.link = rig.to, .number = 1}, one);
    fake_ucx().deliver({.link = rig.to, .number = 1}, one);
    CHECK_THAT(rig.loss(), Contains("message 1 where 0"));
  }
  SECTION("too long") {
    fake_ucx().deliver({.link = rig.to}, payload);
    CHECK_THAT(rig.loss(), Contains("1001 bytes where 1000 is the most"));
  }
  SECTION("of no kind") {
    fake_ucx().deliver({.link = rig.to, .kind = static_cast<Kind>(9)}, one);
    CHECK_THAT(rig.loss(), Contains("kind 9"));
  }
  SECTION("credit for what was never sent, beside a message") {
    fake_ucx().deliver({.link = rig.to, .released = 4}, one);
    CHECK_THAT(rig.loss(), Contains("released 4 messages"));
  }
  SECTION("the same on the stream") {
    const std::uint32_t released = 9;
    rig.say(&released, sizeof released);
    CHECK_THAT(rig.loss(), Contains("released 9 messages"));
  }
  CHECK(link.front() == nullptr);
}

TEST_CASE("ucx: what UCX reports of the path, of a message or of a fetch ends the link, by name") {
  Rig rig;
  link::Link& link = rig.make_link();
  auto payload = pattern(10, 1);
  SECTION("the path") { fake_ucx().on_error.cb(fake_ucx().on_error.arg, nullptr, UCS_ERR_CONNECTION_RESET); }
  SECTION("a message") {
    fake_ucx().send = UCS_ERR_ENDPOINT_TIMEOUT;
    REQUIRE(link.acquire({8}).data() != nullptr);
    link.commit({1});
    CHECK(link.flushed());  // it will never be further
  }
  SECTION("a message from user memory") {
    fake_ucx().send = UCS_ERR_ENDPOINT_TIMEOUT;
    CHECK(link.direct()->send(payload, {1}));
    CHECK_FALSE(link.direct()->sent());
  }
  SECTION("a fetch") {
    fake_ucx().fetch = UCS_ERR_IO_ERROR;
    fake_ucx().deliver({.link = rig.to}, payload, UCP_AM_RECV_ATTR_FLAG_RNDV);
    link.progress();
    CHECK(link.front() == nullptr);
  }
  CHECK_THAT(rig.loss(), Contains("rank 0 (testhost, pid 1000)") && Contains("as the test wants it"));
}

TEST_CASE("ucx: credits come back beside messages, or else on the stream, and never let the agreed number down") {
  Rig rig;
  link::Link& link = rig.make_link();
  const auto send = [&] {
    if (link.acquire({8}).data() == nullptr) return false;
    link.commit({1});
    return true;
  };
  int sent = 0;
  while (send()) ++sent;
  CHECK(sent == 3);
  CHECK(fake_ucx().sent.number == 2);
  CHECK(fake_ucx().flags == UCP_AM_SEND_FLAG_EAGER);
  CHECK(link.direct()->send(pattern(10, 1), {1}));  // needs none
  CHECK(fake_ucx().flags == UCP_AM_SEND_FLAG_RNDV);
  auto byte = pattern(1, 1);
  fake_ucx().deliver({.link = rig.to, .number = 0, .released = 1}, byte);
  CHECK(send());
  CHECK_FALSE(send());
  const std::uint32_t released = 2;
  rig.say(&released, sizeof released);
  link.progress();
  CHECK(send());
  CHECK_FALSE(send());
  // This side's: one untold is kept, two are told.
  std::uint32_t told = 0;
  link.release();
  CHECK(::recv(rig.raw.get(), &told, sizeof told, MSG_DONTWAIT) < 0);
  fake_ucx().deliver({.link = rig.to, .number = 1}, byte);
  REQUIRE(link.front() != nullptr);
  link.release();
  CHECK(::recv(rig.raw.get(), &told, sizeof told, MSG_DONTWAIT) == sizeof told);
  CHECK(told == 2);
}

}  // namespace
}  // namespace shoal::transports::ucx
