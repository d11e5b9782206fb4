// SPDX-License-Identifier: Apache-2.0
// Field cases FC-03, FC-04 and FC-19: two ranks that exchange, messages to oneself among others, and very many small messages.
#include <shoal/shoal.h>

#include <atomic>
#include <numeric>
#include <random>
#include <type_traits>

#include "api/field_cases.h"
#include "engine/call.h"
#include "engine/transfer.h"
#include "link/ring.h"

namespace {

using testing::must;
using testing::on_all_transports;
using testing::Ranks;
using testing::Variables;

// ---- FC-03 -----------------------------------------------------------------------------------------------------------------

// Fills and checks fast: the sizes go up to 64 MiB.
std::vector<std::uint32_t> words_of(int rank, std::size_t bytes) {
  std::vector<std::uint32_t> words(bytes / 4);
  std::iota(words.begin(), words.end(), static_cast<std::uint32_t>(rank + 1) * 0x10000001u);
  return words;
}

struct Pair {
  explicit Pair(const Ranks& ranks, ncclComm_t on, std::size_t bytes)
      : comm(on), peer(1 - ranks.rank), out(words_of(ranks.rank, bytes)), in(out.size()) {}
  ncclResult_t send() const { return ncclSend(out.data(), out.size(), ncclUint32, peer, comm, nullptr); }
  ncclResult_t receive() { return ncclRecv(in.data(), in.size(), ncclUint32, peer, comm, nullptr); }
  std::string right() const { return in == words_of(peer, in.size() * 4) ? "" : "wrong data"; }

  ncclComm_t comm;
  int peer;
  std::vector<std::uint32_t> out, in;
};

std::vector<std::size_t> pair_sizes() { return {4, std::size_t{64} << 10, (testing::small() ? std::size_t{4} : 64) << 20}; }

// An error that names what waits, and for whom; never one that blames the library.
std::string names_the_transfer(ncclResult_t result, const Pair& pair) {
  const std::string text = ncclGetLastError(nullptr);
  if (result == ncclInternalError || text.find("internal") != std::string::npos) return "an internal error: " + text;
  const bool operation = text.find("send") != std::string::npos || text.find("recv") != std::string::npos;
  if (operation && text.find("rank " + std::to_string(pair.peer)) != std::string::npos) return "";
  return "operation or peer is not named: " + text;
}

// ---- FC-04 -----------------------------------------------------------------------------------------------------------------

constexpr std::size_t kTwo[] = {5, 7};  // elements of the first and the second message of a pair

std::int32_t mark(int from, int to, std::size_t which, std::size_t i) {
  return 1000 * from + 100 * to + 10 * static_cast<std::int32_t>(which) + static_cast<std::int32_t>(i);
}

// Two messages between any two of `peers` and this rank, posted in one of three orders: sends first, receives first, or a peer at
// a time with itself in the middle.
std::string two_each(const Ranks& ranks, ncclComm_t comm, int order, const std::vector<int>& peers) {
  struct Messages {
    std::vector<std::int32_t> out[2], in[2];
  };
  std::vector<Messages> with(peers.size());
  for (std::size_t p = 0; p < peers.size(); ++p)
    for (std::size_t which : {0u, 1u}) {
      for (std::size_t i = 0; i < kTwo[which]; ++i) with[p].out[which].push_back(mark(ranks.rank, peers[p], which, i));
      with[p].in[which].assign(kTwo[which], -1);
    }
  const auto send = [&](std::size_t p, std::size_t which) {
    ncclSend(with[p].out[which].data(), kTwo[which], ncclInt32, peers[p], comm, nullptr);
  };
  const auto receive = [&](std::size_t p, std::size_t which) {
    ncclRecv(with[p].in[which].data(), kTwo[which], ncclInt32, peers[p], comm, nullptr);
  };
  const auto each = [&](const auto& post) {
    for (std::size_t p = 0; p < peers.size(); ++p)
      for (std::size_t which : {0u, 1u}) post(p, which);
  };
  ncclGroupStart();
  if (order == 0) each(send);
  if (order < 2) each(receive);
  if (order == 1) each(send);
  if (order == 2)
    for (std::size_t which : {0u, 1u})
      for (std::size_t p = peers.size(); p-- > 0;) {
        receive(p, which);
        send(p, which);
      }
  if (std::string wrong = must(ncclGroupEnd(), "ncclGroupEnd"); !wrong.empty()) return wrong;
  for (std::size_t p = 0; p < peers.size(); ++p)
    for (std::size_t which : {0u, 1u})
      for (std::size_t i = 0; i < kTwo[which]; ++i)
        if (with[p].in[which][i] != mark(peers[p], ranks.rank, which, i))
          return "order " + std::to_string(order) + ": message " + std::to_string(which) + " from rank " +
                 std::to_string(peers[p]) + " is wrong";
  return "";
}

// ---- FC-19 -----------------------------------------------------------------------------------------------------------------

// Counters that would have to be compared across a wrap are 64 bits wide: at a thousand million operations a second, 584 years.
static_assert(std::is_same_v<decltype(shoal::engine::Call::sequence), std::uint64_t>);
static_assert(std::is_same_v<decltype(shoal::engine::Call::ticket), std::uint64_t>);
static_assert(std::is_same_v<decltype(shoal::engine::Transfer::sequence), std::uint64_t>);
static_assert(std::is_same_v<decltype(shoal::link::RingControlLine::sequence), std::atomic<std::uint64_t>>);
static_assert(std::is_same_v<decltype(shoal::link::RingConsumerLine::released), std::atomic<std::uint64_t>>);

// FNV-1a over all but the first 8 bytes, which hold it.
std::uint64_t checksum(const std::byte* payload, std::size_t bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::size_t i = 8; i < bytes; ++i) hash = (hash ^ static_cast<std::uint64_t>(payload[i])) * 0x100000001b3u;
  return hash ^ bytes;
}

std::string small_messages(const Ranks& ranks, ncclComm_t comm, int messages) {
  std::mt19937 random(19);  // the same on both ranks
  std::byte payload[256];
  for (int k = 0; k < messages; ++k) {
    const std::size_t bytes = 8 + random() % 249;
    const int sender = random() % 64 == 0 ? 1 : 0;  // mostly one way, so that messages pile up
    if (ranks.rank == sender) {
      for (std::size_t i = 8; i < bytes; ++i) payload[i] = static_cast<std::byte>(static_cast<std::size_t>(k) * 31 + i * 7);
      const std::uint64_t sum = checksum(payload, bytes);
      std::memcpy(payload, &sum, 8);
      if (std::string wrong = must(ncclSend(payload, bytes, ncclUint8, 1 - sender, comm, nullptr), "ncclSend"); !wrong.empty())
        return wrong;
    } else {
      if (std::string wrong = must(ncclRecv(payload, bytes, ncclUint8, sender, comm, nullptr), "ncclRecv"); !wrong.empty())
        return wrong;
      std::uint64_t sum = 0;
      std::memcpy(&sum, payload, 8);
      if (sum != checksum(payload, bytes)) return "the checksum of message " + std::to_string(k) + " is wrong";
      if (bytes > 8 && payload[8] != static_cast<std::byte>(static_cast<std::size_t>(k) * 31 + 56))
        return "message " + std::to_string(k) + " is another one";
    }
  }
  return "";
}

}  // namespace

TEST_CASE("FC-03: two ranks exchange in a group whatever the order of posting, and with one side grouped") {
  on_all_transports(2, [](const Ranks& ranks, ncclComm_t comm) -> std::string {
    for (const std::size_t bytes : pair_sizes())
      for (const bool both_grouped : {true, false}) {
        Pair pair(ranks, comm, bytes);
        std::string wrong;
        if (ranks.rank == 0) {
          ncclGroupStart();
          pair.send();
          pair.receive();
          wrong = must(ncclGroupEnd(), "send and receive");
        } else if (both_grouped) {
          ncclGroupStart();
          pair.receive();
          pair.send();
          wrong = must(ncclGroupEnd(), "receive and send");
        } else {  // one call after the other, this way round or that
          wrong = bytes == 4 ? must(pair.receive(), "receive") : must(pair.send(), "send");
          if (wrong.empty()) wrong = bytes == 4 ? must(pair.send(), "send") : must(pair.receive(), "receive");
        }
        if (wrong.empty()) wrong = pair.right();
        if (!wrong.empty()) return std::to_string(bytes) + " bytes, " + (both_grouped ? "both" : "one") + " grouped: " + wrong;
      }
    return "";
  });
}

TEST_CASE("FC-03: without groups both send first: it works, or both are told of the operation and the peer") {
  for (const char* transport : {"shm", "tcp"})
    for (const std::size_t bytes : pair_sizes()) {
      INFO(transport << ", " << bytes << " bytes");
      Variables variables = testing::transport_variables(transport);
      variables.emplace_back("SHOAL_TIMEOUT_MS", "3000");
      CHECK(testing::as_processes(2, variables, 60, [&](const Ranks& ranks) -> std::string {
              ncclComm_t comm = nullptr;
              if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
              Pair pair(ranks, comm, bytes);
              ncclResult_t result = pair.send();
              if (result == ncclSuccess) result = pair.receive();
              std::string wrong = result == ncclSuccess ? pair.right() : names_the_transfer(result, pair);
              if (wrong.empty() && result == ncclSuccess) wrong = testing::plain_sum(ranks, comm);
              if (bytes <= 65536 && result != ncclSuccess) wrong = must(result, "a message that a link can hold");
              result == ncclSuccess ? ncclCommDestroy(comm) : ncclCommAbort(comm);
              return wrong;
            }) == "");
    }
}

TEST_CASE("FC-04: two messages to oneself and to everyone else in one group keep their order, however they are posted") {
  on_all_transports(3, [](const Ranks& ranks, ncclComm_t comm) -> std::string {
    for (int order = 0; order < 3; ++order) {
      if (std::string wrong = two_each(ranks, comm, order, {0, 1, 2}); !wrong.empty()) return wrong;
      if (std::string wrong = two_each(ranks, comm, order, {ranks.rank}); !wrong.empty()) return "alone: " + wrong;
    }
    return two_each(ranks, comm, ranks.rank, {0, 1, 2});  // each rank in an order of its own
  });
}

TEST_CASE("FC-19: small messages arrive in order, each with its checksum") {
  on_all_transports(
      2, [](const Ranks& ranks, ncclComm_t comm) { return small_messages(ranks, comm, testing::small() ? 10000 : 100000); });
}
