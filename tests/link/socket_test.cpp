// SPDX-License-Identifier: Apache-2.0
#include "link/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <array>
#include <cerrno>

#include "link/support.h"

using namespace shoal;
using namespace shoal::link;
using namespace shoal::link::testing;

namespace {

Listener listening(const std::string& where) {
  Result<Listener> made = where == "local" ? listen_local(unique_name("socket")) : listen_tcp(where, 0);
  INFO(made.status().text());
  REQUIRE(made.is_ok());
  return made.take();
}

Descriptor accepted(const Listener& listener) {
  Descriptor stream;
  REQUIRE(eventually([&] {
    Result<std::optional<Descriptor>> got = accept_stream(listener);
    REQUIRE(got.is_ok());
    if (*got) stream = *got.take();
    return stream.is_open();
  }));
  return stream;
}

void check_flags(const Descriptor& stream, bool tcp) {
  CHECK((fcntl(stream.get(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK((fcntl(stream.get(), F_GETFL) & O_NONBLOCK) != 0);
  if (!tcp) return;
  int on = 0;
  socklen_t length = sizeof on;
  REQUIRE(getsockopt(stream.get(), IPPROTO_TCP, TCP_NODELAY, &on, &length) == 0);
  CHECK(on == 1);
}

std::string congestion_control(const Descriptor& stream) {
  std::array<char, 17> name{};
  socklen_t length = name.size() - 1;
  REQUIRE(getsockopt(stream.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), &length) == 0);
  return name.data();
}

// How a connect to `address` ends.
Status outcome(Result<Descriptor> stream, const std::string& address) {
  if (!stream.is_ok()) return stream.status();
  Status end;
  REQUIRE(eventually([&] {
    const Result<bool> finished = connect_finished(*stream, address);
    if (!finished.is_ok()) end = finished.status();
    return !finished.is_ok() || *finished;
  }));
  return end;
}

}  // namespace

TEST_CASE("socket: two ends meet over IPv4, IPv6 and a local name, and bytes pass in both directions") {
  const std::string where = GENERATE("127.0.0.1", "::1", "local");
  const bool local = where == "local";
  const std::ptrdiff_t before = open_descriptors();
  {
    const Listener listener = listening(where);
    const Result<std::optional<Descriptor>> nobody = accept_stream(listener);
    REQUIRE(nobody.is_ok());
    CHECK_FALSE(nobody->has_value());
    const Descriptor a = connected_to(listener, local);
    const Descriptor b = accepted(listener);
    check_flags(listener.descriptor, false);
    check_flags(a, !local);
    check_flags(b, !local);

    std::array<std::byte, 8> got{};
    CHECK(read_some(b.get(), got).bytes == 0);
    CHECK_FALSE(read_some(b.get(), got).closed);
    CHECK(write_some(a.get(), bytes_of("abc")).bytes == 3);
    CHECK(write_some(b.get(), bytes_of("x")).bytes == 1);
    REQUIRE(eventually([&] { return read_some(a.get(), got).bytes == 1; }));
    CHECK(got[0] == std::byte{'x'});
    REQUIRE(eventually([&] { return read_some(b.get(), std::span(got).first(2)).bytes == 2; }));
    CHECK(got[1] == std::byte{'b'});
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("socket: both ends of a TCP stream start with reno and can go on with what the system has chosen") {
  const std::string where = GENERATE("127.0.0.1", "::1");
  const Descriptor fresh(::socket(where == "::1" ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Listener listener = listening(where);
  Result<Descriptor> connecting = start_connect_tcp(listener.address);
  REQUIRE(connecting.is_ok());
  const Descriptor accepting = accepted(listener);
  for (const Descriptor* end : {static_cast<const Descriptor*>(&*connecting), &accepting}) {
    CHECK(congestion_control(*end) == "reno");
    use_systems_congestion_control(*end);
    CHECK(congestion_control(*end) == congestion_control(fresh));
  }
}

TEST_CASE("socket: what belongs to UNIX streams is left as it is") {
  const Listener listener = listening("local");
  Result<Descriptor> connecting = start_connect_local(listener.address);
  REQUIRE(connecting.is_ok());
  const Descriptor accepting = accepted(listener);
  use_systems_congestion_control(accepting);
  CHECK(write_some(connecting->get(), std::as_bytes(std::span("x", 1))).bytes == 1);
}

TEST_CASE("socket: reading or writing nothing is no end of the stream") {
  auto [a, b] = stream_pair();
  CHECK_FALSE(read_some(a.get(), {}).closed);
  CHECK_FALSE(write_some(a.get(), {}).closed);
}

TEST_CASE("socket: an orderly close is an end without an error, a write to it is one with EPIPE and no signal") {
  auto [a, b] = stream_pair();
  CHECK(write_some(b.get(), bytes_of("last")).bytes == 4);
  b.reset();
  std::array<std::byte, 8> got{};
  CHECK(read_some(a.get(), got).bytes == 4);
  const Transfer end = read_some(a.get(), got);
  CHECK(end.closed);
  CHECK(end.error == 0);
  const Transfer broken = write_some(a.get(), bytes_of("x"));
  CHECK(broken.closed);
  CHECK(broken.error == EPIPE);
}

TEST_CASE("socket: a reset connection is an end with its error") {
  const Listener listener = listening("127.0.0.1");
  Descriptor a = connected_to(listener, false);
  const Descriptor b = accepted(listener);
  const linger at_once{1, 0};
  REQUIRE(setsockopt(a.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
  a.reset();
  std::array<std::byte, 8> got{};
  Transfer end;
  REQUIRE(eventually([&] { return (end = read_some(b.get(), got)).closed; }));
  CHECK(end.error == ECONNRESET);
}

TEST_CASE("socket: a full stream takes nothing and says so without blocking") {
  auto [a, b] = stream_pair();
  const std::vector<std::byte> much(1 << 20);
  std::size_t total = 0;
  Transfer last;
  for (int i = 0; i < 1000 && (last = write_some(a.get(), much)).bytes > 0; ++i) total += last.bytes;
  CHECK(last.bytes == 0);
  CHECK_FALSE(last.closed);
  CHECK(total > 0);
}

TEST_CASE("socket: a refused connect names call, address and reason") {
  std::string address;
  bool local = false;
  SECTION("over TCP") { address = listening("127.0.0.1").address; }
  SECTION("over a local name") {
    address = listening("local").address;
    local = true;
  }
  const Status end = outcome(local ? start_connect_local(address) : start_connect_tcp(address), address);
  CHECK(end.code() == Code::system_error);
  CHECK_THAT(std::string(end.text()),
             Catch::StartsWith("connect ") && Catch::Contains(address) && Catch::Contains("Connection refused (111)"));
}

TEST_CASE("socket: a port in use is refused, and can be had again at once when its owner is gone") {
  Listener first = listening("127.0.0.1");
  const std::uint16_t port = parse_host_port(first.address)->port;
  const Result<Listener> second = listen_tcp("127.0.0.1", port);
  REQUIRE_FALSE(second.is_ok());
  CHECK(second.status().code() == Code::system_error);
  CHECK_THAT(std::string(second.status().text()),
             Catch::Contains("bind " + first.address) && Catch::Contains("Address already in use (98)"));

  const Descriptor a = connected_to(first, false);
  { const Descriptor b = accepted(first); }  // closes first: its end waits in TIME_WAIT
  first.descriptor.reset();
  CHECK(listen_tcp("127.0.0.1", port).is_ok());
}

TEST_CASE("socket: a local name belongs to one listener") {
  const Listener first = listening("local");
  const Result<Listener> second = listen_local(first.address);
  REQUIRE_FALSE(second.is_ok());
  CHECK_THAT(std::string(second.status().text()), Catch::Contains(first.address) && Catch::Contains("in use"));
}

TEST_CASE("socket: malformed addresses and names are invalid arguments") {
  CHECK(start_connect_tcp("nowhere").status().code() == Code::invalid_argument);
  CHECK(start_connect_tcp("1.2.3.4.5.6:7").status().code() == Code::invalid_argument);
  CHECK(listen_tcp("300.1.1.1", 0).status().code() == Code::invalid_argument);
  CHECK(start_connect_local("").status().code() == Code::invalid_argument);
  CHECK(listen_local(std::string(108, 'n')).status().code() == Code::invalid_argument);
  CHECK(listen_local(std::string(107 - 20, 'n') + unique_name("x").substr(0, 20)).is_ok());
}

TEST_CASE("socket: an IPv6 scope stays in the address, and one of no interface is refused") {
  const Result<HostPort> parsed = parse_host_port("[fe80::1%lo]:7");
  REQUIRE(parsed.is_ok());
  CHECK(parsed->host == "fe80::1%lo");
  CHECK_FALSE(start_connect_tcp("[fe80::1%nosuch0]:7").is_ok());
}

TEST_CASE("descriptor: has one owner") {
  auto [a, b] = stream_pair();
  const int number = a.get();
  Descriptor moved = std::move(a);
  CHECK_FALSE(a.is_open());
  CHECK(moved.get() == number);
  moved = std::move(b);
  CHECK(fcntl(number, F_GETFD) == -1);
  moved.reset();
  CHECK_FALSE(moved.is_open());
}
