// SPDX-License-Identifier: Apache-2.0
#include "link/reception.h"

#include <sys/resource.h>

#include <deque>

#include "link/support.h"

using namespace shoal;
using namespace shoal::link;
using namespace shoal::link::testing;

namespace {

Listener made(Result<Listener> listener) {
  INFO(listener.status().text());
  REQUIRE(listener.is_ok());
  return listener.take();
}

// A reception with both doors, and those who knock.
struct House {
  Key key = random_key();
  Listener tcp = made(listen_tcp("127.0.0.1", 0));
  Listener local = made(listen_local(unique_name("reception")));
  // What knockers need to know, after the listeners have moved in.
  Listener tcp_address{Descriptor(), tcp.address};
  Listener local_address{Descriptor(), local.address};
  Reception reception{Rank{3}, key, std::move(tcp), std::move(local)};
  std::vector<Arrival> arrivals;

  Handshake honest(bool by_local, int channel) const {
    const Hello hello{1, {0}, {3}, channel, "fake"};
    return Handshake::client(connected_to(by_local ? local_address : tcp_address, by_local), key, hello.encode());
  }

  // Until this many have arrived.
  bool receive(std::span<Handshake> callers, std::size_t count) {
    return eventually([&] {
      reception.progress(arrivals);
      for (Handshake& caller : callers) static_cast<void>(caller.progress());
      return arrivals.size() >= count;
    });
  }

  // Like an engine that sleeps on the wakeups and nothing else, at most ten seconds.
  bool sleeps_until_news() const {
    std::vector<Wakeup> wakeups;
    reception.wakeups(wakeups);
    std::vector<pollfd> waiting;
    for (const Wakeup& w : wakeups) waiting.push_back({w.descriptor, w.events, 0});
    return poll(waiting.data(), waiting.size(), 10'000) > 0;
  }
};

}  // namespace

TEST_CASE("reception: who knows the key arrives, by either door, with hello and a stream that works") {
  const std::ptrdiff_t before = open_descriptors();
  {
    House house;
    CHECK(house.reception.listens(Carrier::local));
    CHECK(house.reception.listens(Carrier::network));
    CHECK_FALSE(house.reception.listens(Carrier::none));
    Handshake callers[] = {house.honest(false, 5), house.honest(true, 6)};
    REQUIRE(house.receive(callers, 2));
    for (Arrival& arrival : house.arrivals) {
      CHECK(arrival.hello.from == Rank{0});
      CHECK(arrival.hello.channel == (arrival.carrier == Carrier::local ? 6 : 5));
      CHECK(write_some(arrival.shaken.take_stream().get(), bytes_of("x")).bytes == 1);
    }
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("reception: closed doors are silent") {
  const Key key = random_key();
  Reception reception(Rank{0}, key, {}, {});
  std::vector<Arrival> arrivals;
  reception.progress(arrivals);
  std::vector<Wakeup> wakeups;
  reception.wakeups(wakeups);
  CHECK(arrivals.empty());
  CHECK(wakeups.empty());
}

TEST_CASE(
    "reception: strangers that say garbage, nothing, another key or another hello do not arrive, and cost nothing for long") {
  House house;
  const std::ptrdiff_t before = open_descriptors();
  std::deque<Descriptor> garbage, resetting;
  for (int i = 0; i < 20; ++i) {
    garbage.push_back(connected_to(house.tcp_address, false));
    static_cast<void>(write_some(garbage.back().get(), bytes_of("GET / HTTP/1.1\r\n\r\n")));
    resetting.push_back(connected_to(house.tcp_address, false));
    const linger at_once{1, 0};
    setsockopt(resetting.back().get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  resetting.clear();
  Handshake other_key = Handshake::client(connected_to(house.tcp_address, false), random_key(), {});
  Handshake no_hello = Handshake::client(connected_to(house.tcp_address, false), house.key, bytes_of("good morning"));
  Handshake honest = house.honest(false, 1);
  bool told = false;
  REQUIRE(eventually([&] {
    house.reception.progress(house.arrivals);
    told = told || !other_key.progress().is_ok();
    static_cast<void>(no_hello.progress());
    static_cast<void>(honest.progress());
    return told && !house.arrivals.empty();
  }));
  CHECK(house.arrivals.size() == 1);
  CHECK(house.arrivals.front().hello.channel == 1);
  std::byte end[1024];
  for (const Descriptor& one : garbage) {
    REQUIRE(eventually([&] {
      house.reception.progress(house.arrivals);
      return read_some(one.get(), end).closed;
    }));
  }
  garbage.clear();
  house.arrivals.clear();
  static_cast<void>(no_hello.take_stream());
  static_cast<void>(honest.take_stream());
  CHECK(open_descriptors() <= before + 1);  // the timer
}

TEST_CASE("reception: a silent guest has to go in the end, and its time wakes a sleeper") {
  House house;
  const Descriptor silent = connected_to(house.tcp_address, false);
  std::byte challenge[256];
  bool closed = false;
  for (int sleeps = 0; sleeps < 10 && !closed; ++sleeps) {
    REQUIRE(house.sleeps_until_news());
    house.reception.progress(house.arrivals);
    closed = read_some(silent.get(), challenge).bytes == 0 && read_some(silent.get(), challenge).closed;
  }
  CHECK(closed);
  CHECK(house.arrivals.empty());
}

TEST_CASE("reception: a crowd of silent strangers does not keep an honest caller out") {
  House house;
  std::deque<Descriptor> silent;
  for (std::size_t i = 0; i < 3 * Reception::kMaxGuests; ++i) silent.push_back(connected_to(house.tcp_address, false));
  Handshake honest[] = {house.honest(false, 9)};
  REQUIRE(house.receive(honest, 1));
  CHECK(house.arrivals.front().hello.channel == 9);
}

TEST_CASE("reception: a crowd of honest callers larger than the house is served whole") {
  House house;
  constexpr std::size_t kCallers = 2 * Reception::kMaxGuests + 22;
  std::vector<Handshake> callers;
  for (std::size_t i = 0; i < kCallers; ++i) callers.push_back(house.honest(i % 2 == 0, static_cast<int>(i)));
  REQUIRE(house.receive(callers, kCallers));
  std::vector<int> channels;
  for (const Arrival& arrival : house.arrivals) channels.push_back(arrival.hello.channel);
  std::sort(channels.begin(), channels.end());
  CHECK(std::adjacent_find(channels.begin(), channels.end()) == channels.end());
}

TEST_CASE("reception: an answer that came while nobody looked is worth more than the time it took") {
  House house;
  Handshake honest = house.honest(false, 2);
  REQUIRE(eventually([&] {
    house.reception.progress(house.arrivals);
    static_cast<void>(honest.progress());
    return honest.wakeup().events == POLLIN && house.arrivals.empty();
  }));
  std::deque<Descriptor> silent;  // as many as would have sent the honest one away
  for (std::size_t i = 0; i < 2 * Reception::kMaxGuests; ++i) silent.push_back(connected_to(house.tcp_address, false));
  std::this_thread::sleep_for(2 * Reception::kMinStay);
  REQUIRE(house.receive({&honest, 1}, 1));
}

TEST_CASE("reception: without descriptors nobody comes in, nobody spins, and later all is well") {
  House house;
  Handshake honest[] = {house.honest(true, 4)};
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  house.reception.progress(house.arrivals);  // lets it in
  Handshake late[] = {house.honest(true, 5)};
  rlimit none = before;
  none.rlim_cur = 3;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  house.reception.progress(house.arrivals);
  std::vector<Wakeup> wakeups;
  house.reception.wakeups(wakeups);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  // The doors are not among what a sleeper looks at, as one has somebody waiting: only the guest and the timer are.
  CHECK(wakeups.size() == 2);
  REQUIRE(house.receive(honest, 1));
  REQUIRE(house.receive(late, 2));
  CHECK(house.arrivals.back().hello.channel == 5);
}
