// SPDX-License-Identifier: Apache-2.0
// Rules of NCCL's that clones get wrong and that have no test elsewhere: averages of negative integers and of bfloat16, groups of
// several communicators on several streams, and the state that a watchdog asks for. docs/testing.md says where the others are.
#include <shoal/shoal.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "api/communicators.h"
#include "api/field_cases.h"
#include "device/convert.h"
#include "support/pattern.h"

namespace {

using testing::must;
using testing::on_all_transports;
using testing::Ranks;

// Every rank holds one of `values`; the average, by each reduction, must be `expected`.
template <typename T>
std::string averages(const Ranks& ranks, ncclComm_t comm, ncclDataType_t type, const std::vector<T>& values, T expected) {
  constexpr std::size_t kCount = 301;
  const auto world = static_cast<std::size_t>(ranks.world);
  const std::vector<T> input(kCount * world, values[static_cast<std::size_t>(ranks.rank)]), right(kCount, expected);
  std::vector<T> output(kCount);
  const auto check = [&](ncclResult_t result, const char* what, bool here) -> std::string {
    if (std::string wrong = must(result, what); !wrong.empty()) return wrong;
    if (here && output != right)
      return std::string(what) + ": " + std::to_string(output[0]) + " instead of " + std::to_string(expected);
    return "";
  };
  std::string wrong = check(ncclAllReduce(input.data(), output.data(), kCount, type, ncclAvg, comm, nullptr), "all-reduce", true);
  if (wrong.empty())
    wrong = check(ncclReduce(input.data(), output.data(), kCount, type, ncclAvg, 1, comm, nullptr), "reduce", ranks.rank == 1);
  if (wrong.empty())
    wrong = check(ncclReduceScatter(input.data(), output.data(), kCount, type, ncclAvg, comm, nullptr), "reduce-scatter", true);
  return wrong;
}

std::string negative_averages(const Ranks& ranks, ncclComm_t comm) {
  std::string wrong = averages<std::int8_t>(ranks, comm, ncclInt8, {-1, -1, -5}, -2);  // -7 / 3
  if (wrong.empty()) wrong = averages<std::int8_t>(ranks, comm, ncclInt8, {-1, -1, 0}, 0);
  if (wrong.empty()) wrong = averages<std::int8_t>(ranks, comm, ncclInt8, {-100, -100, -100}, -14);  // the sum wraps to -44
  if (wrong.empty()) wrong = averages<std::uint8_t>(ranks, comm, ncclUint8, {200, 100, 1}, 15);      // and this one to 45
  if (wrong.empty()) wrong = averages<std::int32_t>(ranks, comm, ncclInt32, {-1, -1, -5}, -2);
  if (wrong.empty()) wrong = averages<std::int64_t>(ranks, comm, ncclInt64, {-7, 0, -1}, -2);
  return wrong;
}

// Distance from the true average in units in the last place of bfloat16 (8 significant bits).
std::string bfloat16_averages(const Ranks& ranks, ncclComm_t comm) {
  constexpr std::size_t kCount = 5000;
  std::vector<double> average(kCount, 0);
  std::vector<std::uint16_t> input(kCount), output(kCount);
  for (int q = 0; q < ranks.world; ++q) {
    std::mt19937 random(static_cast<std::uint32_t>(q) + 11);
    std::uniform_real_distribution<float> uniform(0.5f, 8);
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::uint16_t bits = shoal::device::to_bfloat16(uniform(random));
      average[i] += static_cast<double>(shoal::device::from_bfloat16(bits)) / ranks.world;
      if (q == ranks.rank) input[i] = bits;
    }
  }
  if (std::string wrong =
          must(ncclAllReduce(input.data(), output.data(), kCount, ncclBfloat16, ncclAvg, comm, nullptr), "average");
      !wrong.empty())
    return wrong;
  for (std::size_t i = 0; i < kCount; ++i) {
    const double unit = std::ldexp(1.0, std::ilogb(average[i]) - 7);
    const double off = std::abs(static_cast<double>(shoal::device::from_bfloat16(output[i])) - average[i]) / unit;
    if (off > 2) return "element " + std::to_string(i) + " is " + std::to_string(off) + " units off";
  }
  return "";
}

// Two communicators, each with calls on two streams, in one group. The first stream is late, and what all send is written on it.
std::string two_by_two(const Ranks& ranks, ncclComm_t a) {
  ncclComm_t b = nullptr;
  if (std::string wrong = must(ncclCommSplit(a, 0, -ranks.rank, &b, nullptr), "split"); !wrong.empty()) return wrong;
  constexpr std::size_t kCount = 70001;
  struct Data {
    float number;
    std::vector<float> sent, sum_a, sum_b, from_a, from_b;
  } data{static_cast<float>(ranks.rank + 1), {}, {}, {}, {}, {}};
  for (std::vector<float>* each : {&data.sent, &data.sum_a, &data.sum_b, &data.from_a, &data.from_b}) each->assign(kCount, -1);
  cudaStream_t first = nullptr, second = nullptr;
  shoalStreamCreate(&first);
  shoalStreamCreate(&second);
  shoalStreamLaunch(
      first,
      [](void* argument) {
        testing::sleep_ms(50);
        auto& d = *static_cast<Data*>(argument);
        std::fill(d.sent.begin(), d.sent.end(), d.number);
      },
      &data);
  const int next = (ranks.rank + 1) % ranks.world, previous = (ranks.rank + ranks.world - 1) % ranks.world;
  const int turn = ranks.world - 1;  // b counts its ranks the other way round
  ncclGroupStart();
  ncclAllReduce(data.sent.data(), data.sum_a.data(), kCount, ncclFloat, ncclSum, a, first);
  ncclAllReduce(data.sent.data(), data.sum_b.data(), kCount, ncclFloat, ncclMax, b, second);
  ncclSend(data.sent.data(), kCount, ncclFloat, next, a, second);
  ncclRecv(data.from_a.data(), kCount, ncclFloat, previous, a, second);
  ncclSend(data.sent.data(), kCount, ncclFloat, turn - previous, b, first);
  ncclRecv(data.from_b.data(), kCount, ncclFloat, turn - next, b, first);
  std::string wrong = must(ncclGroupEnd(), "ncclGroupEnd");
  if (wrong.empty()) wrong = must(shoalStreamSynchronize(second), "the second stream");  // waits for the first one's calls, too
  const auto holds = [](const std::vector<float>& found, int expected) {
    return found == std::vector<float>(found.size(), static_cast<float>(expected));
  };
  if (wrong.empty() && !holds(data.sum_a, ranks.world * (ranks.world + 1) / 2)) wrong = "the sum of the first is wrong";
  if (wrong.empty() && !holds(data.sum_b, ranks.world)) wrong = "the maximum of the second is wrong";
  if (wrong.empty() && !holds(data.from_a, previous + 1)) wrong = "the transfer of the first is wrong";
  if (wrong.empty() && !holds(data.from_b, next + 1)) wrong = "the transfer of the second is wrong";
  shoalStreamDestroy(first);
  shoalStreamDestroy(second);
  const std::string end = must(wrong.empty() ? ncclCommDestroy(b) : ncclCommAbort(b), "the end of the second");
  return wrong.empty() ? end : wrong;
}

// What goes out without a stream is written on the stream on which the answer is awaited.
std::string with_and_without_stream(const Ranks& ranks, ncclComm_t comm) {
  struct Number {
    float value;
    int rank;
  } out{-1, ranks.rank};
  float in = -1;
  cudaStream_t stream = nullptr;
  shoalStreamCreate(&stream);
  shoalStreamLaunch(
      stream,
      [](void* argument) {
        testing::sleep_ms(50);
        auto& number = *static_cast<Number*>(argument);
        number.value = static_cast<float>(number.rank);
      },
      &out);
  ncclGroupStart();
  ncclSend(&out.value, 1, ncclFloat, (ranks.rank + 1) % ranks.world, comm, nullptr);
  ncclRecv(&in, 1, ncclFloat, (ranks.rank + ranks.world - 1) % ranks.world, comm, stream);
  std::string wrong = must(ncclGroupEnd(), "ncclGroupEnd");
  if (wrong.empty()) wrong = must(shoalStreamSynchronize(stream), "the stream");
  if (wrong.empty() && in != static_cast<float>((ranks.rank + ranks.world - 1) % ranks.world))
    wrong = "received " + std::to_string(in);
  shoalStreamDestroy(stream);
  return wrong;
}

// Sums, and bytes passed around a ring, whose lengths lie about those where slices over sockets become longer.
std::string about_long_slices(const Ranks& ranks, ncclComm_t comm) {
  constexpr std::size_t kKiB = 1024 / sizeof(std::int64_t);
  for (const std::size_t chunk : {64 * kKiB, 256 * kKiB, 512 * kKiB, 1024 * kKiB})
    for (const std::size_t more : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {  // one less, none, one more
      const std::size_t count = chunk * static_cast<std::size_t>(ranks.world) + more - 1;
      std::vector<std::int64_t> values(count);
      for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::int64_t>(i) * (ranks.rank + 1);
      if (std::string wrong = must(ncclAllReduce(values.data(), values.data(), count, ncclInt64, ncclSum, comm, nullptr), "sum");
          !wrong.empty())
        return wrong;
      const std::int64_t factor = ranks.world * (ranks.world + 1) / 2;
      for (std::size_t i = 0; i < count; ++i)
        if (values[i] != static_cast<std::int64_t>(i) * factor)
          return "element " + std::to_string(i) + " of " + std::to_string(count) + " is " + std::to_string(values[i]);

      const std::size_t bytes = chunk * sizeof(std::int64_t) + more - 1;
      const int to = (ranks.rank + 1) % ranks.world, from = (ranks.rank + ranks.world - 1) % ranks.world;
      const auto sent = testing::bytes_of(ranks.rank, bytes, chunk), right = testing::bytes_of(from, bytes, chunk);
      std::vector<std::byte> got(bytes);
      ncclGroupStart();
      ncclSend(sent.data(), bytes, ncclInt8, to, comm, nullptr);
      ncclRecv(got.data(), bytes, ncclInt8, from, comm, nullptr);
      if (std::string wrong = must(ncclGroupEnd(), "ring"); !wrong.empty()) return wrong;
      if (got != right) return std::to_string(bytes) + " bytes from rank " + std::to_string(from) + " are others";
    }
  return "";
}

}  // namespace

TEST_CASE("semantics: averages of integers divide the wrapped sum towards zero") { on_all_transports(3, negative_averages); }

TEST_CASE("semantics: averages of bfloat16 are within two units in the last place") {
  for (const int world : {2, 3, 4}) on_all_transports(world, bfloat16_averages);
}

TEST_CASE("semantics: a group of two communicators on two streams waits for both before and after") {
  on_all_transports(3, two_by_two);
}

TEST_CASE("semantics: a group on a stream and on none waits for the stream") { on_all_transports(3, with_and_without_stream); }

TEST_CASE("semantics: sums and transfers about the lengths of long slices are right, in odd worlds") {
  for (const int world : {2, 3, 5}) on_all_transports(world, about_long_slices);
}

TEST_CASE("semantics: a watchdog that only asks for the state sees the death of a peer") {
  for (const char* transport : {"shm", "tcp"}) {
    INFO(transport);
    CHECK(testing::as_processes(3, testing::transport_variables(transport), 60,
                                [](const Ranks& ranks) -> std::string {
                                  ncclComm_t comm = nullptr;
                                  if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
                                  if (std::string wrong = testing::plain_sum(ranks, comm); !wrong.empty()) return wrong;
                                  if (ranks.rank == 2) kill(getpid(), SIGKILL);
                                  ncclResult_t state = ncclSuccess;
                                  const auto start = testing::Clock::now();
                                  while (state == ncclSuccess && testing::seconds_since(start) < 20) {
                                    if (std::string wrong = must(ncclCommGetAsyncError(comm, &state), "the state");
                                        !wrong.empty())
                                      return wrong;
                                    testing::sleep_ms(5);
                                  }
                                  if (std::string wrong = testing::expect(state, ncclRemoteError, "the state"); !wrong.empty())
                                    return wrong;
                                  float x = 1;
                                  if (ncclAllReduce(&x, &x, 1, ncclFloat, ncclSum, comm, nullptr) == ncclSuccess)
                                    return "a call after the death succeeded";
                                  if (std::string wrong = testing::expect_text("rank 2 "); !wrong.empty()) return wrong;
                                  return must(ncclCommAbort(comm), "abort");
                                },
                                {2}) == "");
  }
}
