// SPDX-License-Identifier: Apache-2.0
#include "link/switchboard.h"

#include <set>

#include "link/fake_transport.h"
#include "link/hello.h"
#include "link/support.h"

using namespace shoal;
using namespace shoal::link;
using namespace shoal::link::testing;

namespace {

enum class Place { one_process, one_host, two_hosts };

// All ranks of a communicator, in one thread. Ranks of two_hosts live on two hosts in turn.
struct Job {
  FakeMeetingTransport meeting;
  FakeStreamTransport shared{"shared", Carrier::local};
  FakeStreamTransport wire{"wire", Carrier::network};
  Transport* transports[3] = {&meeting, &shared, &wire};
  Key key = random_key();
  std::vector<PeerIdentity> peers;
  std::vector<Endpoint> endpoints;
  std::vector<Listener> tcp, local;
  std::vector<std::unique_ptr<Switchboard>> boards;

  Job(int world, Place place) {
    for (int r = 0; r < world; ++r) {
      Result<Listener> t = listen_tcp("127.0.0.1", 0), l = listen_local(unique_name("board"));
      REQUIRE(t.is_ok());
      REQUIRE(l.is_ok());
      PeerIdentity peer;
      peer.rank = {r};
      peer.host = place == Place::two_hosts && r % 2 == 1 ? "node1" : "node0";
      peer.host_id = peer.host;
      peer.process = place == Place::one_process ? 7 : static_cast<std::uint64_t>(100 + r);
      peer.pid = 4000 + r;
      peer.address = t->address;
      peer.local_address = l->address;
      peers.push_back(peer);
      tcp.push_back(t.take());
      local.push_back(l.take());
    }
    for (const PeerIdentity& peer : peers) {
      Endpoint endpoint;
      endpoint.self = peer;
      endpoint.communicator = 77;
      endpoints.push_back(endpoint);
    }
    boards.resize(peers.size());
  }

  Switchboard& board(int rank) {
    const auto r = static_cast<std::size_t>(rank);
    if (!boards[r])
      boards[r] = std::make_unique<Switchboard>(endpoints[r], peers, key, transports, std::move(tcp[r]), std::move(local[r]));
    return *boards[r];
  }

  void progress() {
    for (auto& each : boards)
      if (each) each->progress();
  }

  // Null where it failed; `end` says why.
  FakeLink* link(int from, int to, int channel, Status* end = nullptr) {
    FakeLink* found = nullptr;
    Status failure;
    REQUIRE(eventually([&] {
      progress();
      const Result<Link*> got = board(from).link({to}, channel);
      if (!got.is_ok()) failure = got.status();
      if (got.is_ok() && *got) found = static_cast<FakeLink*>(*got);
      return found != nullptr || !failure.is_ok();
    }));
    if (end) *end = failure;
    if (!end) CHECK(failure.is_ok());
    return found;
  }

  // Both ends, asked for at once.
  void expect_link(int a, int b, int channel, std::string_view transport) {
    static_cast<void>(board(a).link({b}, channel));
    static_cast<void>(board(b).link({a}, channel));
    const FakeLink* at_a = link(a, b, channel);
    const FakeLink* at_b = link(b, a, channel);
    REQUIRE(at_a);
    REQUIRE(at_b);
    CHECK(at_a->name == transport);
    CHECK(at_b->name == transport);
    CHECK(at_a->heard_from == Rank{b});
    CHECK(at_b->heard_from == Rank{a});
    CHECK(at_a->heard_channel == channel);
    CHECK(at_b->heard_channel == channel);
    CHECK(at_a->was_connecting == (a < b));
    CHECK(at_b->was_connecting == (b < a));
  }

  // A visitor's side, proven.
  Handshake visit(const Hello& hello) {
    const Listener door{Descriptor(), peers[1].address};
    Handshake caller = Handshake::client(connected_to(door, false), key, hello.encode());
    REQUIRE(eventually([&] {
      progress();
      const Result<bool> proven = caller.progress();
      REQUIRE(proven.is_ok());
      return *proven;
    }));
    progress();
    return caller;
  }

  // A client that knows the key and says this, to rank 1, by this door; true if the switchboard then keeps the stream.
  bool is_admitted(const Hello& hello, bool by_local) {
    const Listener door{Descriptor(), by_local ? peers[1].local_address : peers[1].address};
    Handshake caller = Handshake::client(connected_to(door, by_local), key, hello.encode());
    REQUIRE(eventually([&] {
      progress();
      const Result<bool> proven = caller.progress();
      REQUIRE(proven.is_ok());
      return *proven;
    }));
    const Descriptor stream = caller.take_stream();
    Transfer got;
    std::byte said[8];
    REQUIRE(eventually([&] {
      progress();
      got = read_some(stream.get(), said);
      return got.bytes > 0 || got.closed;
    }));
    return !got.closed;
  }
};

}  // namespace

TEST_CASE("switchboard: all pairs of 2 to 5 ranks on two channels, by the first transport that reaches") {
  const int world = GENERATE(2, 3, 4, 5);
  const Place place = GENERATE(Place::one_process, Place::one_host, Place::two_hosts);
  const std::ptrdiff_t before = open_descriptors();
  {
    Job job(world, place);
    for (int a = 0; a < world; ++a)
      for (int b = 0; b < a; ++b)
        for (const int channel : {0, 1}) {
          const bool same_host = job.peers[static_cast<std::size_t>(a)].host_id == job.peers[static_cast<std::size_t>(b)].host_id;
          job.expect_link(a, b, channel, place == Place::one_process ? "meeting" : same_host ? "shared" : "wire");
        }
    std::set<std::pair<int, int>> seen;
    job.board(0).for_each_link([&](Link& link, Rank peer, int channel) {
      CHECK(static_cast<FakeLink&>(link).heard_from == peer);
      CHECK(seen.insert({peer.value, channel}).second);
    });
    CHECK(seen.size() == static_cast<std::size_t>(2 * (world - 1)));
    int links = 0;
    job.board(0).for_each_link([&](Link&) { ++links; });
    job.board(0).for_each_link([&](Link&, Rank peer) { links += peer.value > 0 ? 1 : 0; });
    CHECK(links == 4 * (world - 1));
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("switchboard: a link is the same each time, and null until it is made") {
  Job job(2, Place::one_host);
  const Result<Link*> first = job.board(0).link({1}, 0);
  REQUIRE(first.is_ok());
  CHECK(*first == nullptr);
  job.expect_link(0, 1, 0, "shared");
  CHECK(job.link(0, 1, 0) == job.link(0, 1, 0));
  CHECK(job.link(0, 1, 0) != job.link(1, 0, 0));
}

TEST_CASE("switchboard: only what is asked for is made, and what the peer made early is kept") {
  Job job(3, Place::one_host);
  const FakeLink* lower = nullptr;
  job.board(1);
  job.board(2);
  lower = job.link(0, 2, 3);  // rank 2 has not asked
  REQUIRE(lower);
  REQUIRE(eventually([&] {
    job.progress();
    int links = 0;
    job.board(2).for_each_link([&](Link&, Rank peer, int channel) { links += peer == Rank{0} && channel == 3 ? 1 : 100; });
    return links == 1;
  }));
  const Result<Link*> higher = job.board(2).link({0}, 3);
  REQUIRE(higher.is_ok());
  REQUIRE(*higher);
  CHECK(static_cast<FakeLink*>(*higher)->heard_from == Rank{0});
  job.board(1).for_each_link([&](Link&) { FAIL("rank 1 was not asked for anything"); });
  CHECK(job.shared.started == 2);
}

TEST_CASE("switchboard: a sleeper that looks at the wakeups misses nothing") {
  Job job(2, Place::one_host);
  for (int r : {0, 1}) static_cast<void>(job.board(r).link({1 - r}, 0));
  for (int sleeps = 0; sleeps < 100; ++sleeps) {
    const bool done = *job.board(0).link({1}, 0) != nullptr && *job.board(1).link({0}, 0) != nullptr;
    if (done) break;
    std::vector<pollfd> waiting;
    for (int r : {0, 1}) {
      std::vector<Wakeup> wakeups;
      job.board(r).wakeups(wakeups);
      for (const Wakeup& w : wakeups) waiting.push_back({w.descriptor, w.events, 0});
    }
    REQUIRE(poll(waiting.data(), waiting.size(), 10'000) > 0);
    job.progress();
  }
  CHECK(*job.board(0).link({1}, 0) != nullptr);
  CHECK(*job.board(1).link({0}, 0) != nullptr);
}

TEST_CASE("switchboard: where a transport fails on either side, the next one that reaches is used") {
  Job job(2, Place::one_process);
  SECTION("one without a carrier") {
    job.meeting.fails_connecting = true;
    job.expect_link(1, 0, 0, "shared");
  }
  SECTION("two, the second on the connecting side") {
    job.meeting.fails_connecting = true;
    job.shared.fails_connecting = true;
    job.expect_link(0, 1, 2, "wire");
  }
  SECTION("two, the second on the accepting side") {
    job.meeting.fails_connecting = true;
    job.shared.fails_accepting = true;
    job.expect_link(0, 1, 2, "wire");
  }
  SECTION("one whose carrier has no listener") {
    job.meeting.fails_connecting = true;
    job.peers[1].local_address = "";
    job.expect_link(0, 1, 0, "wire");
  }
  SECTION("one whose listener is gone") {
    job.meeting.fails_connecting = true;
    job.local[1].descriptor.reset();
    job.expect_link(0, 1, 0, "wire");
  }
}

TEST_CASE("switchboard: when nothing is left, the error names the peer and all that was tried, and stays") {
  Job job(2, Place::one_host);
  job.shared.fails_connecting = true;
  job.tcp[1].descriptor.reset();
  job.board(1);
  Status end;
  CHECK(job.link(0, 1, 4, &end) == nullptr);
  CHECK(end.code() == Code::system_error);
  CHECK(end.culprit() == Rank{1});
  const std::string text(end.text());
  CHECK_THAT(text, Catch::Contains("rank 0 cannot reach rank 1 (node0, pid 4001) on channel 4") &&
                       Catch::Contains("shared via " + job.peers[1].local_address) && Catch::Contains("fake: no such device") &&
                       Catch::Contains("wire via " + job.peers[1].address) && Catch::Contains("Connection refused (111)"));
  const Result<Link*> again = job.board(0).link({1}, 4);
  REQUIRE_FALSE(again.is_ok());
  CHECK(again.status().text() == text);
}

TEST_CASE("switchboard: a peer with another key is an error of the link, not of the job") {
  Job job(2, Place::two_hosts);
  job.board(0);
  job.key = random_key();
  job.board(1);
  Status end;
  CHECK(job.link(0, 1, 0, &end) == nullptr);
  CHECK(end.code() == Code::remote_error);
  CHECK_THAT(std::string(end.text()), Catch::Contains("may know another"));
  job.board(1).for_each_link([](Link&) { FAIL("nobody was let in"); });
}

TEST_CASE("switchboard: ranks and channels that do not exist are invalid arguments") {
  Job job(2, Place::one_host);
  for (const auto& [rank, channel] : {std::pair(0, 0), std::pair(2, 0), std::pair(-1, 0), std::pair(1, -1), std::pair(1, 1024)}) {
    const Result<Link*> got = job.board(0).link({rank}, channel);
    REQUIRE_FALSE(got.is_ok());
    CHECK(got.status().code() == Code::invalid_argument);
  }
}

TEST_CASE("switchboard: no transport that reaches, or no listener to wait at, is an error at once") {
  Job job(3, Place::two_hosts);
  const auto at = [](int rank) { return static_cast<std::size_t>(rank); };
  Transport* const only_shared[] = {&job.shared};
  Switchboard none(job.endpoints[at(0)], job.peers, job.key, only_shared, {}, {});
  const Result<Link*> unreached = none.link({1}, 0);
  REQUIRE_FALSE(unreached.is_ok());
  CHECK(unreached.status().culprit() == Rank{1});
  CHECK_THAT(std::string(unreached.status().text()),
             Catch::Contains("no transport reaches") && Catch::Contains("(node1, pid 4001)"));
  Switchboard deaf(job.endpoints[at(2)], job.peers, job.key, job.transports, {}, {});
  const Result<Link*> unheard = deaf.link({0}, 0);
  REQUIRE_FALSE(unheard.is_ok());
  CHECK_THAT(std::string(unheard.status().text()), Catch::Contains("no listener"));
}

TEST_CASE("switchboard: a hello is believed only if all of it fits") {
  Job job(3, Place::one_host);
  job.board(1);
  const Hello good{77, {0}, {1}, 0, "shared"};
  const auto with = [&](auto change) {
    Hello hello = good;
    change(hello);
    return hello;
  };
  CHECK_FALSE(job.is_admitted(with([](Hello& h) { h.communicator = 78; }), true));
  CHECK_FALSE(job.is_admitted(with([](Hello& h) { h.to = {2}; }), true));
  CHECK_FALSE(job.is_admitted(with([](Hello& h) { h.from = {2}; }), true));
  CHECK_FALSE(job.is_admitted(with([](Hello& h) { h.from = {1}; }), true));
  CHECK_FALSE(job.is_admitted(with([](Hello& h) { h.from = {-1}; }), true));
  CHECK_FALSE(job.is_admitted(with([](Hello& h) { h.channel = -1; }), true));
  CHECK_FALSE(job.is_admitted(with([](Hello& h) { h.channel = 1 << 20; }), true));
  CHECK_FALSE(job.is_admitted(with([](Hello& h) { h.transport = "nonsense"; }), true));
  CHECK_FALSE(job.is_admitted(with([](Hello& h) { h.transport = "meeting"; }), true));
  CHECK_FALSE(job.is_admitted(with([](Hello& h) { h.transport = "wire"; }), true));  // by the other door
  CHECK_FALSE(job.is_admitted(good, false));
  job.board(1).for_each_link([](Link&) { FAIL("nobody was let in"); });
  CHECK(job.is_admitted(good, true));
}

TEST_CASE("switchboard: a second connection replaces one that is not in use, and never one that is") {
  Job job(2, Place::one_host);
  job.board(1);
  const Hello hello{77, {0}, {1}, 0, "shared"};
  CHECK(job.is_admitted(hello, true));  // and gone again before it is a link
  job.expect_link(0, 1, 0, "shared");
  CHECK_FALSE(job.is_admitted(hello, true));
  CHECK(job.link(1, 0, 0)->heard_from == Rank{0});
}

TEST_CASE("switchboard: strangers at the door do not keep ranks apart") {
  Job job(3, Place::one_host);
  const std::ptrdiff_t before = open_descriptors();
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 100; ++i)
    for (const bool local : {true, false}) {
      const PeerIdentity& victim = job.peers[static_cast<std::size_t>(1 + i % 2)];
      strangers.push_back(connected_to({Descriptor(), local ? victim.local_address : victim.address}, local));
      if (i % 3 == 0) static_cast<void>(write_some(strangers.back().get(), bytes_of("SSH-2.0-OpenSSH_9.2\r\n")));
      if (i % 3 == 1) strangers.back().reset();
    }
  job.expect_link(0, 1, 0, "shared");
  job.expect_link(2, 1, 0, "shared");
  job.expect_link(0, 2, 7, "shared");
  strangers.clear();
  job.boards.clear();
  CHECK(open_descriptors() == before - 6);  // the listeners went with the switchboards
}

TEST_CASE("switchboard: visitors are for its owner; of each rank the newest counts, and it comes with its session") {
  Job job(3, Place::two_hosts);
  static_cast<void>(job.board(1));
  const Hello good{77, {2}, {1}, 0, Switchboard::kVisit};
  Handshake first = job.visit(good), second = job.visit(good), other = job.visit({77, {0}, {1}, 0, Switchboard::kVisit});
  std::vector<Switchboard::Visitor> visitors;
  REQUIRE(eventually([&] {
    job.progress();
    for (const Rank wanted : {Rank{0}, Rank{2}})
      for (Switchboard::Visitor& each : job.board(1).take_visitors([&](Rank from) { return from == wanted; }))
        visitors.push_back(std::move(each));
    return visitors.size() >= 2;
  }));
  REQUIRE(visitors.size() == 2);
  CHECK(visitors[0].from == Rank{0});
  CHECK(visitors[0].shaken.session_key() == other.session_key());
  CHECK(visitors[1].from == Rank{2});
  CHECK(visitors[1].shaken.session_key() == second.session_key());
  for (const Hello& bad : {Hello{78, {2}, {1}, 0, Switchboard::kVisit}, Hello{77, {2}, {0}, 0, Switchboard::kVisit},
                           Hello{77, {1}, {1}, 0, Switchboard::kVisit}, Hello{77, {3}, {1}, 0, Switchboard::kVisit},
                           Hello{77, {-1}, {1}, 0, Switchboard::kVisit}}) {
    Handshake stranger = job.visit(bad);
    const Descriptor stream = stranger.take_stream();
    std::byte said[8];
    CHECK(eventually([&] {
      job.progress();
      return read_some(stream.get(), said).closed;
    }));
  }
  CHECK(job.board(1).take_visitors([](Rank) { return true; }).empty());
}
