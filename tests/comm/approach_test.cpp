// SPDX-License-Identifier: Apache-2.0
// Which of several addresses is taken, how soon, and what is said where none can be.
#include "comm/approach.h"

#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "comm/ranks.h"
#include "comm/root_service.h"

namespace shoal::comm::testing {
namespace {

using namespace std::chrono_literals;

// Nobody listens; connects are refused.
std::string refusing() {
  const Result<link::Listener> listener = link::listen_tcp("127.0.0.1", 0);
  REQUIRE(listener.is_ok());
  return listener->address;
}

// Accepts in the kernel, and says nothing.
struct Silent {
  Result<link::Listener> listener = link::listen_tcp("127.0.0.1", 0);
};

Approach to(const UniqueId& id, std::vector<std::string> addresses) {
  Approach plan;
  plan.whom = "the root";
  plan.addresses = std::move(addresses);
  plan.key = bootstrap_key(id.key);
  plan.hello = std::as_bytes(std::span(kBootstrapHello));
  plan.max_payload = 1 << 20;
  plan.timeout = kLong;
  return plan;
}

std::string peer_of(Result<Channel>& channel) {
  INFO(channel.status().text());
  REQUIRE(channel.is_ok());
  return channel->ends().there;
}

}  // namespace

TEST_CASE("approach: the first address that proves the key wins; refusing, silent and foreign ones only cost a moment") {
  const UniqueId id = new_id(), other = new_id();
  const Silent silent;
  const auto begin = std::chrono::steady_clock::now();
  Result<Channel> reached =
      approach(to(id, {refusing(), silent.listener->address, other.addresses[0], id.addresses[0]}), Deadline(kLong));
  CHECK(peer_of(reached) == "127.0.0.1");
  CHECK(std::chrono::steady_clock::now() - begin < 4s);  // the silent one would have taken 5 s
  CHECK(testing::join(id, 0, 1).is_ok());
  CHECK(testing::join(other, 0, 1).is_ok());
}

TEST_CASE("approach: whoever cannot be reached is named with every address and its reason") {
  const UniqueId id = new_id();
  const std::string first = refusing(), second = refusing();
  Approach plan = to(id, {first, second});
  plan.patience = 200ms;
  const Status none = approach(plan, Deadline(kLong)).status();
  CHECK(none.code() == Code::remote_error);
  CHECK(none.text() ==
        fmt::format("the root at {0}, {1} cannot be reached: {0}: connect {0}: Connection refused (111); {1}: connect "
                    "{1}: Connection refused (111)",
                    first, second));
  CHECK(testing::join(id, 0, 1).is_ok());
}

TEST_CASE("approach: NCCL_SOCKET_RETRY_CNT and _SLEEP_MSEC bound the tries") {
  const UniqueId id = new_id();
  Approach plan = to(id, {refusing()});
  plan.patience = 20s;
  plan.retries = 3;
  plan.retry_sleep_ms = 20;  // 20 + 40 + 60 ms
  const auto begin = std::chrono::steady_clock::now();
  const Status none = approach(plan, Deadline(kLong)).status();
  const auto took = std::chrono::steady_clock::now() - begin;
  CHECK(none.code() == Code::remote_error);
  CHECK(took >= 120ms);
  CHECK(took < 10s);
  CHECK(testing::join(id, 0, 1).is_ok());
}

TEST_CASE("approach: the deadline holds while addresses keep silent") {
  const UniqueId id = new_id();
  const Silent silent;
  Approach plan = to(id, {silent.listener->address, refusing()});
  plan.timeout = 300ms;
  const Status none = approach(plan, Deadline(plan.timeout)).status();
  CHECK(none.code() == Code::timeout);
  CHECK_THAT(std::string(none.text()), Catch::Contains("was not reached within 300 ms") && Catch::Contains("no answer") &&
                                           Catch::Contains("Connection refused"));
  CHECK(testing::join(id, 0, 1).is_ok());
}

}  // namespace shoal::comm::testing
