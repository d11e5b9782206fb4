// SPDX-License-Identifier: Apache-2.0
#include "link/handshake.h"

#include <functional>

#include "link/support.h"

using namespace shoal;
using namespace shoal::link;
using namespace shoal::link::testing;

namespace {

constexpr std::size_t kChallenge = 48, kAnswer = 273, kProof = 48;

// The client and the server of one connection, with somebody in between who sees every byte and may change it.
struct Wire {
  Key client_key = random_key();
  Key server_key = client_key;
  std::vector<std::byte> hello = bytes_of("hello");
  // Given the number of a byte in its direction; returns what is passed on.
  std::function<std::byte(bool to_client, std::size_t at, std::byte)> change = [](bool, std::size_t, std::byte b) { return b; };
  std::size_t at_a_time = 4096;

  std::optional<Handshake> client, server;
  Status client_end, server_end;
  std::vector<std::byte> to_client, to_server;  // as sent

  bool run() {
    auto [client_end_of_wire, middle_a] = stream_pair();
    auto [server_end_of_wire, middle_b] = stream_pair();
    client = Handshake::client(std::move(client_end_of_wire), client_key, hello);
    server = Handshake::server(std::move(server_end_of_wire), server_key);
    bool client_done = false, server_done = false;
    for (int turn = 0; turn < 5000; ++turn) {
      server_done = step(*server, server_end) || server_done;
      client_done = step(*client, client_end) || client_done;
      const bool alive = relay(middle_b, middle_a, true) && relay(middle_a, middle_b, false);
      if (!alive || (client_done && server_done)) break;
    }
    middle_a.reset();
    middle_b.reset();
    if (!client_done) client_done = step(*client, client_end);
    if (!server_done) server_done = step(*server, server_end);
    return client_done && server_done;
  }

 private:
  static bool step(Handshake& side, Status& end) {
    const Result<bool> proven = side.progress();
    if (!proven.is_ok()) end = proven.status();
    return proven.is_ok() && *proven;
  }

  bool relay(const Descriptor& from, const Descriptor& to, bool towards_client) {
    std::vector<std::byte> some(at_a_time);
    const Transfer got = read_some(from.get(), some);
    std::vector<std::byte>& log = towards_client ? to_client : to_server;
    for (std::size_t i = 0; i < got.bytes; ++i) {
      const std::byte passed = change(towards_client, log.size(), some[i]);
      log.push_back(some[i]);
      if (write_some(to.get(), {&passed, 1}).closed) return false;
    }
    return !got.closed;
  }
};

std::string text_of(const Status& status) { return std::string(status.text()); }

// A server that has said its challenge and is told `bytes`, then (perhaps) the end.
Status server_told(std::span<const std::byte> bytes, bool close) {
  auto [ours, theirs] = stream_pair();
  Handshake server = Handshake::server(std::move(ours), random_key());
  REQUIRE(server.progress().is_ok());
  std::vector<std::byte> challenge(kChallenge);  // unread, it would make the end a reset
  REQUIRE(read_some(theirs.get(), challenge).bytes == kChallenge);
  REQUIRE(write_some(theirs.get(), bytes).bytes == bytes.size());
  if (close) theirs.reset();
  const Result<bool> end = server.progress();
  if (end.is_ok()) CHECK_FALSE(*end);
  return end.status();
}

}  // namespace

TEST_CASE("handshake: both sides are proven, the hello arrives, the session key is common and new each time") {
  Wire wire;
  wire.hello = GENERATE(std::vector<std::byte>(), bytes_of("x"), bytes_of("from 3 to 7"),
                        std::vector<std::byte>(kMaxHello, std::byte{0xff}));
  REQUIRE(wire.run());
  CHECK(std::ranges::equal(wire.server->hello(), wire.hello));
  CHECK(std::ranges::equal(wire.client->hello(), wire.hello));
  CHECK(wire.client->session_key() == wire.server->session_key());
  CHECK(wire.to_client.size() == kChallenge + kProof);
  CHECK(wire.to_server.size() == kAnswer);
  Wire again;
  again.client_key = again.server_key = wire.client_key;
  REQUIRE(again.run());
  CHECK_FALSE(again.client->session_key() == wire.client->session_key());
  CHECK_FALSE(wire.client->session_key() == wire.client_key);
}

TEST_CASE("handshake: the stream afterwards is the caller's, with nothing of what follows read") {
  auto [a, b] = stream_pair();
  const Key key = random_key();
  Handshake server = Handshake::server(std::move(a), key);
  Handshake client = Handshake::client(std::move(b), key, {});
  CHECK_FALSE(*server.progress());
  CHECK_FALSE(*client.progress());
  CHECK(server.wakeup().events == POLLIN);
  REQUIRE(*server.progress());
  const Descriptor from_server = server.take_stream();
  CHECK(write_some(from_server.get(), bytes_of("next")).bytes == 4);
  REQUIRE(*client.progress());
  CHECK(client.wakeup().descriptor == -1);
  const Descriptor from_client = client.take_stream();
  std::vector<std::byte> got(16);
  CHECK(read_some(from_client.get(), got).bytes == 4);
}

TEST_CASE("handshake: arrives byte by byte as well") {
  Wire wire;
  wire.at_a_time = 1;
  REQUIRE(wire.run());
  CHECK(std::ranges::equal(wire.server->hello(), wire.hello));
}

TEST_CASE("handshake: another key is found out by the server, and the client is told no more than that") {
  Wire wire;
  wire.server_key = random_key();
  REQUIRE_FALSE(wire.run());
  CHECK(wire.server_end.code() == Code::invalid_usage);
  CHECK_THAT(text_of(wire.server_end), Catch::Contains("knows another key"));
  CHECK(wire.client_end.code() == Code::remote_error);
  CHECK_THAT(text_of(wire.client_end), Catch::Contains("closed") && Catch::Contains("may know another"));
  CHECK(wire.to_client.size() == kChallenge);
}

TEST_CASE("handshake: one bit changed on the way, wherever it is, ends it on one side at least") {
  for (std::size_t at = 0; at < kChallenge + kProof + kAnswer; ++at) {
    Wire wire;
    const bool towards_client = at < kChallenge + kProof;
    const std::size_t place = towards_client ? at : at - kChallenge - kProof;
    wire.change = [&](bool to_client, std::size_t n, std::byte b) {
      return to_client == towards_client && n == place ? b ^ std::byte{0x10} : b;
    };
    INFO("byte " << place << (towards_client ? " to the client" : " to the server"));
    REQUIRE_FALSE(wire.run());
    const bool in_proof = towards_client && place >= kChallenge;  // by then the server has all it needs
    const Status& end = in_proof || (towards_client && place < 16) ? wire.client_end : wire.server_end;
    REQUIRE(end.code() == Code::invalid_usage);
  }
}

TEST_CASE("handshake: strangers are told apart") {
  Wire magic, version, proof;
  magic.change = [](bool to_client, std::size_t at, std::byte b) { return to_client && at == 3 ? std::byte{'x'} : b; };
  CHECK_FALSE(magic.run());
  CHECK_THAT(text_of(magic.client_end), Catch::Contains("not one of ours"));
  version.change = [](bool to_client, std::size_t at, std::byte b) { return to_client && at == 8 ? std::byte{2} : b; };
  CHECK_FALSE(version.run());
  CHECK_THAT(text_of(version.client_end), Catch::Contains("another version"));
  proof.change = [](bool to_client, std::size_t at, std::byte b) { return to_client && at == kChallenge + 20 ? ~b : b; };
  CHECK_FALSE(proof.run());
  CHECK_THAT(text_of(proof.client_end), Catch::Contains("knows another key"));
}

TEST_CASE("handshake: garbage is found out by its first byte, an end by where it is") {
  CHECK_THAT(text_of(server_told(bytes_of("G"), false)), Catch::Contains("not one of ours"));
  CHECK_THAT(text_of(server_told(bytes_of("GET / HTTP/1.1\r\n\r\n"), true)), Catch::Contains("not one of ours"));
  CHECK_THAT(text_of(server_told(std::vector<std::byte>(10'000, std::byte{0}), false)), Catch::Contains("not one of ours"));
  CHECK(server_told({}, false).is_ok());
  const Status closed = server_told({}, true);
  CHECK(closed.code() == Code::remote_error);
  CHECK_THAT(text_of(closed), Catch::Contains("closed the connection after 0 of 273 bytes"));
  auto [ours, theirs] = stream_pair();
  theirs.reset();
  CHECK_THAT(text_of(Handshake::server(std::move(ours), random_key()).progress().status()), Catch::Contains("Broken pipe (32)"));
}

TEST_CASE("handshake: an end after any number of bytes is an error on both sides, and stays one") {
  for (std::size_t last = 0; last < kChallenge + kAnswer + kProof; last += 7) {
    Wire wire;
    const std::size_t to_client = last < kChallenge ? last : last < kChallenge + kAnswer ? kChallenge : last - kAnswer;
    const std::size_t to_server = last < kChallenge ? 0 : std::min(last - kChallenge, kAnswer);
    auto [a, middle_a] = stream_pair();
    auto [b, middle_b] = stream_pair();
    Handshake client = Handshake::client(std::move(a), wire.client_key, {});
    Handshake server = Handshake::server(std::move(b), wire.server_key);
    const auto pass = [](const Descriptor& from, const Descriptor& to, std::size_t n) {
      std::vector<std::byte> some(n);
      const Transfer got = read_some(from.get(), some);
      REQUIRE(write_some(to.get(), std::span(some).first(got.bytes)).bytes == got.bytes);
    };
    static_cast<void>(server.progress());
    pass(middle_b, middle_a, std::min(to_client, kChallenge));
    static_cast<void>(client.progress());
    pass(middle_a, middle_b, to_server);
    const bool server_proven = *server.progress();
    if (to_client > kChallenge) pass(middle_b, middle_a, to_client - kChallenge);
    CHECK_FALSE(*client.progress());
    middle_a.reset();
    middle_b.reset();
    CHECK(client.progress().status().code() == Code::remote_error);
    CHECK(client.progress().status().code() == Code::remote_error);
    CHECK(client.wakeup().descriptor == -1);
    CHECK(server_proven == (to_server == kAnswer));
    if (!server_proven) CHECK(server.progress().status().code() == Code::remote_error);
  }
}

TEST_CASE("handshake: an answer that was good once is refused the next time") {
  Wire first;
  REQUIRE(first.run());
  auto [ours, theirs] = stream_pair();
  Handshake server = Handshake::server(std::move(ours), first.server_key);
  REQUIRE(write_some(theirs.get(), first.to_server).bytes == kAnswer);
  const Result<bool> end = server.progress();
  REQUIRE_FALSE(end.is_ok());
  CHECK_THAT(text_of(end.status()), Catch::Contains("knows another key"));
}

TEST_CASE("handshake: a peer that never reads does not block") {
  auto [a, b] = stream_pair();
  const std::vector<std::byte> much(1 << 20);
  while (write_some(a.get(), much).bytes > 0) {
  }
  Handshake server = Handshake::server(std::move(a), random_key());
  CHECK_FALSE(*server.progress());
  CHECK(server.wakeup().events == POLLOUT);
}

TEST_CASE("key: differs by secret and by purpose, and random ones differ") {
  const Key key = derive_key(bytes_of("secret"), "links");
  CHECK(key == derive_key(bytes_of("secret"), "links"));
  CHECK_FALSE(key == derive_key(bytes_of("secret"), "bootstrap"));
  CHECK_FALSE(key == derive_key(bytes_of("secrets"), "links"));
  CHECK_FALSE(derive_key(bytes_of("ab"), "c") == derive_key(bytes_of("b"), "ca"));
  CHECK_FALSE(derive_key({}, "") == Key{});
  CHECK_FALSE(random_key() == random_key());
}
