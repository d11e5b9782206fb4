// SPDX-License-Identifier: Apache-2.0
// verbs and what a peer says that cannot be.
#include <catch2/catch.hpp>
#include <cstring>

#include "transports/verbs/two.h"

namespace shoal::transports {

using Catch::Matchers::Contains;

TEST_CASE("verbs: counts that travel modulo a power of two are found again across every wrap") {
  using verbs::count_of;
  using verbs::immediate;
  using verbs::Kind;
  for (const std::uint64_t about :
       {std::uint64_t{0}, std::uint64_t{1} << 29, (std::uint64_t{1} << 32) - 3, std::uint64_t{1} << 40})
    for (std::uint64_t ahead = 0; ahead < 200; ++ahead) {
      CHECK(count_of(immediate(Kind::offer, about + ahead), about) == about + ahead);
      CHECK(verbs::unwrap(static_cast<std::uint32_t>(about + ahead), about, 32) == about + ahead);
      if (about > ahead) CHECK(count_of(immediate(Kind::part, about - ahead), about) == about - ahead);
    }
}

TEST_CASE("verbs: a peer that writes what cannot be ends the link, and the reason names it") {
  using verbs::Header;
  struct Madness {
    const char* said;
    void (*header)(Header&);
    std::uint32_t immediate;  // 0: as it is
  };
  const auto none = [](Header&) {};
  const Madness madness = GENERATE_COPY(
      Madness{"announced a message of 100001 bytes where 100000 is the most", [](Header& h) { h.length = kMax + 1; }, 0},
      Madness{"announced a message in 2 parts, 1 came by 1 queue pairs", [](Header& h) { h.parts = 2; }, 0},
      Madness{"announced a message in 0 parts", [](Header& h) { h.parts = 0; }, 0},
      Madness{"announced 40 bytes where nothing was offered to it", [](Header& h) { h.landed = 1; }, 0},
      Madness{"announced 40 bytes where nothing was offered to it", [](Header& h) { h.landed = 9; }, 0},
      Madness{"has released 5 messages of 0", [](Header& h) { h.released = 5; }, 0},
      Madness{"sent message 6, where 0 to 5 have room", none, verbs::immediate(verbs::Kind::message, 6)},
      Madness{"where 0 to 5 have room", none, verbs::immediate(verbs::Kind::part, (1u << 29) - 1)},
      Madness{"has released 1 messages of 0", none, verbs::immediate(verbs::Kind::released, 1)},
      Madness{"which means nothing here", none, verbs::immediate(verbs::Kind::greeting, 0)},
      Madness{"which means nothing here", none, 0xffffffffu});
  CAPTURE(madness.said);
  FakeFabric fabric;
  Two two(fabric);
  two.must_connect();
  fabric.spoil = [&](verbs::Write& write, std::vector<std::byte>& bytes) {
    if (bytes.size() < sizeof(Header)) return;
    Header header;
    std::memcpy(&header, bytes.data(), sizeof header);
    madness.header(header);
    std::memcpy(bytes.data(), &header, sizeof header);
    if (madness.immediate != 0) write.immediate = madness.immediate;
  };
  two.send(0, 40, 1);
  const link::Message* const came = two.link(1).front();
  const Status health = two.link(1).health();
  if (came != nullptr) {  // the message was right, what it says beside was not
    two.link(1).release();
    CHECK_THAT(two.health(1), Contains(madness.said));
    return;
  }
  CHECK(health.culprit() == Rank{0});
  CHECK_THAT(std::string(health.text()), Contains(madness.said) && Contains("rank 0 (testhost, pid 1000)"));
  CHECK(two.link(1).front() == nullptr);
}

TEST_CASE("verbs: a peer that has gone mad is refused with a reason, and nothing outside is touched") {
  verbs::Blueprint ours;
  ours.rails_used = ours.queues_used = 1;
  ours.memory = 4096;
  ours.rails.front().mtu = 1024;
  REQUIRE(verbs::check(ours, ours).is_ok());
  verbs::Blueprint theirs = ours;
  const auto refusal = [&] { return std::string(verbs::check(theirs, ours).text()); };
  SECTION("another layout") {
    theirs.magic = 1;
    CHECK_THAT(refusal(), Contains("layout"));
  }
  SECTION("no port, too many") {
    theirs.rails_used = GENERATE(0u, 5u, 0xffffffffu);
    CHECK_THAT(refusal(), Contains("ports"));
  }
  SECTION("no queue pair, too many") {
    theirs.queues_used = GENERATE(0u, 9u, 0xffffffffu);
    CHECK_THAT(refusal(), Contains("queue pairs"));
  }
  SECTION("a queue pair on a port that is not there") {
    theirs.queues.front().rail = 1;
    CHECK_THAT(refusal(), Contains("queue pair on port 1"));
  }
  SECTION("numbers of more than 24 bits") {
    theirs.queues.front().number = 1u << 24;
    CHECK_THAT(refusal(), Contains("24 bits"));
  }
  SECTION("packets of an odd size") {
    theirs.rails.front().mtu = GENERATE(std::uint16_t{0}, std::uint16_t{128}, std::uint16_t{1500}, std::uint16_t{8192});
    CHECK_THAT(refusal(), Contains("packets"));
  }
  SECTION("another kind of wire") {
    theirs.rails.front().ethernet = 1;
    CHECK_THAT(refusal(), Contains("RoCE"));
  }
  SECTION("memory at no address") {
    theirs.memory = GENERATE(std::uint64_t{0}, std::uint64_t{4097});
    CHECK_THAT(refusal(), Contains("memory"));
  }
  SECTION("a refusal of any bytes") {
    theirs.refusal.fill('\x1b');
    CHECK_THAT(refusal(), Contains("cannot use verbs: ????"));
  }
}

}  // namespace shoal::transports
