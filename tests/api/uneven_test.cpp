// SPDX-License-Identifier: Apache-2.0
// All-to-all-v and all-gather-v where much is zero, and what they refuse; counts beyond 2^31.
#include <shoal/shoal.h>
#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <random>

#include "support/ranks.h"

namespace {

using testing::must;
using testing::Ranks;
using testing::with_comm;
using Matrix = std::vector<std::vector<std::size_t>>;  // [from][to]

// Element i from a to b is 1000 a + 100 b + i; areas of zero pairs stay as they are; pointers of empty buffers are NULL.
std::string exchange(const Ranks& ranks, ncclComm_t comm, const Matrix& matrix) {
  const auto own = static_cast<std::size_t>(ranks.rank), world = matrix.size();
  std::vector<std::size_t> out, in, out_at, in_at;
  std::vector<std::int32_t> send;
  std::size_t end = 0;
  for (std::size_t q = 0; q < world; ++q) {
    out.push_back(matrix[own][q]);
    out_at.push_back(send.size());
    for (std::size_t i = 0; i < out[q]; ++i) send.push_back(static_cast<std::int32_t>(1000 * own + 100 * q + i));
    in.push_back(matrix[q][own]);
    in_at.push_back(end);
    end += in[q] + 1;  // a gap behind every block
  }
  std::vector<std::int32_t> receive(end, -1), expected(end, -1);
  for (std::size_t q = 0; q < world; ++q)
    for (std::size_t i = 0; i < in[q]; ++i) expected[in_at[q] + i] = static_cast<std::int32_t>(1000 * q + 100 * own + i);
  if (std::string wrong = must(shoalAllToAllV(send.empty() ? nullptr : send.data(), out.data(), out_at.data(), receive.data(),
                                              in.data(), in_at.data(), ncclInt32, comm, nullptr),
                               "shoalAllToAllV");
      !wrong.empty())
    return wrong;
  return receive == expected ? "" : "wrong elements";
}

// Memory that costs nothing until it is touched.
struct Huge {
  explicit Huge(std::size_t n) : bytes(n) {
    memory =
        static_cast<std::int8_t*>(mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    madvise(memory, n, MADV_HUGEPAGE);
  }
  ~Huge() { munmap(memory, bytes); }
  std::int8_t* memory;
  std::size_t bytes;
};

}  // namespace

TEST_CASE("all-to-all-v: zero pairs, ranks that send nothing, ranks that receive nothing") {
  const Matrix fixed = {{0, 3, 0, 5}, {0, 0, 0, 0}, {7, 0, 1, 0}, {2, 0, 4, 0}};
  for (const char* algorithm : {"pairwise", "linear"})
    for (const char* transport : {"threads", "shm", "tcp"}) {
      INFO(transport << ", " << algorithm);
      setenv("SHOAL_ALGO", (std::string("all_to_all_v:") + algorithm).c_str(), 1);
      CHECK(testing::run_ranks(transport, 4, 60, [&](const Ranks& ranks) {
              return with_comm(ranks, [&](ncclComm_t comm) -> std::string {
                if (std::string wrong = exchange(ranks, comm, fixed); !wrong.empty()) return "the fixed matrix: " + wrong;
                std::mt19937 random(7);  // the same on all ranks
                for (int round = 0; round < 200; ++round) {
                  Matrix matrix(4, std::vector<std::size_t>(4));
                  for (auto& row : matrix)
                    for (std::size_t& n : row) n = random() % 10 < 6 ? 0 : random() % (round % 20 == 0 ? 60000 : 90);
                  if (std::string wrong = exchange(ranks, comm, matrix); !wrong.empty())
                    return "matrix " + std::to_string(round) + ": " + wrong;
                }
                return "";
              });
            }) == "");
      unsetenv("SHOAL_ALGO");
    }
}

// Over processes: the text of the last error is the process's.
TEST_CASE("blocks of different lengths: bad arguments are named") {
  CHECK(
      testing::run_ranks("shm", 2, 60, [](const Ranks& ranks) {
        return with_comm(ranks, [&](ncclComm_t comm) -> std::string {
          std::int32_t data[8] = {};
          const std::size_t counts[2] = {2, 2}, overlapping[2] = {0, 1}, other[2] = {3, 3};
          const auto said = [](const char* text) {
            return std::string(ncclGetLastError(nullptr)).find(text) != std::string::npos;
          };
          if (shoalAllGatherV(data, 2, data + 4, nullptr, nullptr, ncclInt32, comm, nullptr) != ncclInvalidArgument)
            return "NULL counts";
          if (shoalAllGatherV(data, 1, data + 4, counts, nullptr, ncclInt32, comm, nullptr) != ncclInvalidArgument ||
              !said("sendcount is 1"))
            return "a sendcount that is not this rank's";
          if (shoalAllGatherV(data, 2, data + 4, counts, overlapping, ncclInt32, comm, nullptr) != ncclInvalidArgument ||
              !said("overlap"))
            return "overlapping blocks";
          if (shoalAllToAllV(data, counts, nullptr, data + 4, other, nullptr, ncclInt32, comm, nullptr) != ncclInvalidArgument ||
              !said("to itself"))
            return "a block to itself of two lengths";
          if (shoalAllToAllV(nullptr, counts, nullptr, data, counts, nullptr, ncclInt32, comm, nullptr) != ncclInvalidArgument)
            return "a NULL sendbuff with something to send";
          const std::size_t none[2] = {0, 0};
          return must(shoalAllToAllV(nullptr, none, nullptr, nullptr, none, nullptr, ncclInt32, comm, nullptr), "nothing at all");
        });
      }) == "");
}

TEST_CASE("all-to-all-v: lengths on which two ranks disagree are an error, not a hang") {
  const std::string said = testing::run_ranks("shm", 2, 60, [](const Ranks& ranks) {
    return with_comm(ranks, [&](ncclComm_t comm) -> std::string {
      std::int32_t data[16] = {};
      const std::size_t out[2] = {1, ranks.rank == 0 ? 3u : 1u}, back[2] = {ranks.rank == 0 ? 1u : 2u, 1};
      const std::size_t sent[2] = {ranks.rank == 0 ? out[0] : out[1], ranks.rank == 0 ? out[1] : out[0]};
      return must(shoalAllToAllV(data, sent, nullptr, data + 8, back, nullptr, ncclInt32, comm, nullptr), "shoalAllToAllV");
    });
  });
  CHECK_THAT(said, Catch::Contains("its message has 12 bytes, 8 expected"));
}

// 9 GB of memory; run by name.
TEST_CASE("counts beyond 2^31 elements", "[.huge]") {
  constexpr std::size_t kCount = (std::size_t{1} << 31) + 11;
  CHECK(testing::run_ranks("threads", 2, 600, [&](const Ranks& ranks) {
          return with_comm(ranks, [&](ncclComm_t comm) -> std::string {
            Huge data(kCount);
            data.memory[0] = static_cast<std::int8_t>(ranks.rank + 1);
            data.memory[kCount - 1] = static_cast<std::int8_t>(10 * (ranks.rank + 1));
            data.memory[std::size_t{1} << 31] = 3;
            if (std::string wrong =
                    must(ncclAllReduce(data.memory, data.memory, kCount, ncclInt8, ncclSum, comm, nullptr), "all-reduce");
                !wrong.empty())
              return wrong;
            if (data.memory[0] != 3 || data.memory[kCount - 1] != 30 || data.memory[std::size_t{1} << 31] != 6 ||
                data.memory[1] != 0)
              return "wrong sums";
            data.memory[kCount - 2] = static_cast<std::int8_t>(ranks.rank + 5);
            if (std::string wrong =
                    must(ncclBroadcast(data.memory, data.memory, kCount, ncclInt8, 1, comm, nullptr), "broadcast");
                !wrong.empty())
              return wrong;
            if (data.memory[kCount - 2] != 6) return "wrong broadcast";
            ncclGroupStart();
            if (ranks.rank == 0) ncclSend(data.memory, kCount, ncclInt8, 1, comm, nullptr);
            if (ranks.rank == 1) ncclRecv(data.memory, kCount, ncclInt8, 0, comm, nullptr);
            return must(ncclGroupEnd(), "a transfer");
          });
        }) == "");
}
