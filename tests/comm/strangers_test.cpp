// SPDX-License-Identifier: Apache-2.0
// Whoever else connects to the root service's port can neither join, nor stall, nor crash it.
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "comm/approach.h"
#include "comm/ranks.h"
#include "comm/root_service.h"
#include "link/handshake.h"
#include "link/socket.h"

namespace shoal::comm::testing {
namespace {

using namespace std::chrono_literals;

link::Descriptor connected(const std::string& address) {
  Result<link::Descriptor> stream = link::start_connect_tcp(address);
  if (!stream.is_ok()) return {};
  for (int i = 0; i < 200; ++i) {
    const Result<bool> done = link::connect_finished(*stream, address);
    if (!done.is_ok()) return {};
    if (*done) break;
    std::this_thread::sleep_for(1ms);
  }
  return stream.take();
}

void resets(const std::string& address) {
  const link::Descriptor stream = connected(address);
  const linger at_once{1, 0};
  (void)setsockopt(stream.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void says(const std::string& address, std::size_t bytes) {
  const link::Descriptor stream = connected(address);
  const link::Key noise = link::random_key(), more = link::random_key();
  std::vector<std::byte> all(noise.bytes.begin(), noise.bytes.end());
  all.insert(all.end(), more.bytes.begin(), more.bytes.end());
  if (stream.is_open()) (void)link::write_some(stream.get(), std::span(all).first(bytes));
}

// Echoes the server's own header, then garbage of an answer's length.
link::Descriptor right_magic_then_garbage(const std::string& address) {
  link::Descriptor stream = connected(address);
  if (!stream.is_open()) return stream;
  std::array<std::byte, 48> challenge{};
  for (int i = 0; i < 200 && link::read_some(stream.get(), challenge).bytes == 0; ++i) std::this_thread::sleep_for(1ms);
  std::array<std::byte, 400> answer{};
  answer.fill(std::byte{0x5a});
  std::copy_n(challenge.begin(), 16, answer.begin());
  (void)link::write_some(stream.get(), answer);
  return stream;
}

TEST_CASE("strangers: resets, fragments, noise, silence and garbage behind the right magic do not disturb twenty bootstraps") {
  std::vector<link::Descriptor> silent;
  for (int round = 0; round < 20; ++round) {
    const UniqueId id = new_id();
    std::thread strangers([&] {
      for (int i = 0; i < 4; ++i) {
        resets(id.address());
        says(id.address(), 3);
        says(id.address(), 64);
        silent.push_back(connected(id.address()));
        silent.push_back(right_magic_then_garbage(id.address()));
      }
    });
    auto all = join_all(id, ranks_below(4), 4);
    strangers.join();
    for (auto& one : all) {
      REQUIRE(one.is_ok());
      CHECK(one->control->progress().is_ok());
      one->control->bye();
    }
  }
}

TEST_CASE("strangers: hundreds of silent ones make room for ranks") {
  const UniqueId id = new_id();
  std::vector<link::Descriptor> silent;
  for (int i = 0; i < 400; ++i) silent.push_back(connected(id.address()));
  auto all = join_all(id, ranks_below(4), 4);
  for (auto& one : all) {
    REQUIRE(one.is_ok());
    one->control->bye();
  }
}

TEST_CASE("strangers: knowing the key is not enough: another purpose, no record, or no message at all ends the connection") {
  const UniqueId id = new_id();
  Approach plan;
  plan.whom = "root";
  plan.addresses = id.addresses;
  plan.key = bootstrap_key(id.key);
  plan.max_payload = 1000;
  const std::string other_purpose = "shoal links 1";
  plan.hello = std::as_bytes(std::span(other_purpose));
  const auto is_closed = [](Channel& channel) {
    for (int i = 0; i < 500 && !channel.closed(); ++i) {
      channel.progress();
      std::this_thread::sleep_for(2ms);
    }
    return channel.closed();
  };
  Result<Channel> link_like = approach(plan, Deadline(kLong));
  REQUIRE(link_like.is_ok());
  CHECK(is_closed(*link_like));
  plan.hello = std::as_bytes(std::span(kBootstrapHello));
  Result<Channel> no_record = approach(plan, Deadline(kLong));
  REQUIRE(no_record.is_ok());
  no_record->send(Abort{});
  CHECK(is_closed(*no_record));
  Result<Channel> nonsense = approach(plan, Deadline(kLong));
  REQUIRE(nonsense.is_ok());
  nonsense->send(std::make_shared<const std::vector<std::byte>>(100, std::byte{0x77}));
  CHECK(is_closed(*nonsense));
  auto all = join_all(id, ranks_below(2), 2);
  for (auto& one : all) CHECK(one.is_ok());
}

}  // namespace
}  // namespace shoal::comm::testing
