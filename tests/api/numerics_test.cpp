// SPDX-License-Identifier: Apache-2.0
// What the numerics modes promise of the bits: ordered - the same for any count, slice, transport and algorithm at a given world;
// exact - for any world and order of ranks too, and the true sum.
#include <shoal/shoal.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <numeric>

#include "support/ranks.h"

namespace {

using testing::Ranks;
using testing::Variables;

// Values over many powers of two, of both signs: sums of them depend on the order.
float value(int rank, std::size_t i) {
  const auto mixed =
      static_cast<std::uint32_t>((i * 2654435761u) ^ (static_cast<std::uint32_t>(rank + 1) * 40503u * 2246822519u));
  const int exponent = static_cast<int>(mixed >> 27) - 16;
  const float sign = (mixed & 1) != 0 ? -1.0f : 1.0f;
  return sign * std::ldexp(1.0f + static_cast<float>(mixed & 0x7fffff) / 8388608.0f, exponent);
}

std::vector<float> values(int rank, std::size_t count) {
  std::vector<float> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = value(rank, i);
  return all;
}

// The tree of recursive doubling over the folded world, by hand.
float ordered_sum(int world, std::size_t i) {
  int leaves = 1;
  while (leaves * 2 <= world) leaves *= 2;
  const int folded = world - leaves;
  std::vector<float> partial;
  for (int q = 0; q < leaves; ++q) partial.push_back(q < folded ? value(2 * q, i) + value(2 * q + 1, i) : value(q + folded, i));
  for (; partial.size() > 1; partial.resize(partial.size() / 2))
    for (std::size_t q = 0; q < partial.size() / 2; ++q) partial[q] = partial[2 * q] + partial[2 * q + 1];
  return partial[0];
}

std::string same_bits(const std::vector<float>& found, const std::vector<float>& expected, const char* what) {
  for (std::size_t i = 0; i < found.size(); ++i)
    if (std::memcmp(&found[i], &expected[i], sizeof(float)) != 0)
      return std::string(what) + ": element " + std::to_string(i) + " is " + std::to_string(found[i]) + ", not " +
             std::to_string(expected[i]);
  return "";
}

// Every reduction of `count` elements in ordered numerics gives the bits of ordered_sum.
std::string ordered(const Ranks& ranks, std::size_t count) {
  ncclComm_t comm = nullptr;
  if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
  const auto world = static_cast<std::size_t>(ranks.world), own = static_cast<std::size_t>(ranks.rank);
  std::vector<float> expected(count * world);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = ordered_sum(ranks.world, i);
  const std::vector<float> input = values(ranks.rank, count * world);
  std::vector<float> output(count);
  const auto first = [&](std::size_t from) { return std::vector<float>(&expected[from], &expected[from] + count); };

  std::string wrong =
      testing::must(ncclAllReduce(input.data(), output.data(), count, ncclFloat32, ncclSum, comm, nullptr), "all");
  if (wrong.empty()) wrong = same_bits(output, first(0), "all-reduce");
  if (wrong.empty())
    wrong = testing::must(ncclReduceScatter(input.data(), output.data(), count, ncclFloat32, ncclSum, comm, nullptr), "scatter");
  if (wrong.empty()) wrong = same_bits(output, first(own * count), "reduce-scatter");
  for (int root = 0; root < ranks.world; ++root) {
    if (wrong.empty())
      wrong = testing::must(ncclReduce(input.data(), output.data(), count, ncclFloat32, ncclSum, root, comm, nullptr), "reduce");
    if (wrong.empty() && root == ranks.rank) wrong = same_bits(output, first(0), "reduce");
  }
  ncclCommDestroy(comm);
  return wrong;
}

// The correctly rounded sum, from doubles that hold it exactly: the values span 33 + 24 bits, at most 9 of them.
float exact_sum(int world, std::size_t i, int divisor = 1) {
  __float128 sum = 0;
  for (int rank = 0; rank < world; ++rank) sum += value(rank, i);
  return static_cast<float>(sum / divisor);
}

// `world` ranks of which only `filled`, beginning at `shift`, have something to add.
std::string exact(const Ranks& ranks, std::size_t count, int filled, int shift) {
  ncclComm_t comm = nullptr;
  if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
  const auto world = static_cast<std::size_t>(ranks.world), own = static_cast<std::size_t>(ranks.rank);
  const int as = (ranks.rank + shift) % ranks.world;  // whose values this rank brings
  std::vector<float> input = as < filled ? values(as, count * world) : std::vector<float>(count * world, 0.0f);
  std::vector<float> output(count), expected(count);
  std::string wrong = testing::must(shoalCommSetNumerics(comm, shoalExact), "shoalCommSetNumerics");
  for (const int root : {0, ranks.world - 1}) {
    for (std::size_t i = 0; i < count; ++i) expected[i] = exact_sum(filled, i);
    if (wrong.empty())
      wrong = testing::must(ncclReduce(input.data(), output.data(), count, ncclFloat32, ncclSum, root, comm, nullptr), "reduce");
    if (wrong.empty() && root == ranks.rank) wrong = same_bits(output, expected, "reduce");
  }
  for (std::size_t i = 0; i < count; ++i) expected[i] = exact_sum(filled, own * count + i, ranks.world);
  if (wrong.empty())
    wrong = testing::must(ncclReduceScatter(input.data(), output.data(), count, ncclFloat32, ncclAvg, comm, nullptr), "scatter");
  if (wrong.empty()) wrong = same_bits(output, expected, "average, scattered");
  for (std::size_t i = 0; i < count; ++i) expected[i] = exact_sum(filled, i);
  ncclGroupStart();
  ncclAllReduce(input.data(), output.data(), count, ncclFloat32, ncclSum, comm, nullptr);
  ncclAllReduce(input.data(), input.data(), count, ncclFloat32, ncclSum, comm, nullptr);  // in place
  if (std::string grouped = testing::must(ncclGroupEnd(), "a group"); wrong.empty()) wrong = grouped;
  if (wrong.empty()) wrong = same_bits(output, expected, "all-reduce");
  input.resize(count);
  if (wrong.empty()) wrong = same_bits(input, expected, "all-reduce in place");
  if (wrong.empty() &&
      ncclAllReduce(output.data(), output.data(), count, ncclFloat32, ncclProd, comm, nullptr) != ncclInvalidUsage)
    wrong = "an exact product was not refused";
  ncclCommDestroy(comm);
  return wrong;
}

// A call's own mode beats the communicator's.
std::string for_one_call(const Ranks& ranks) {
  ncclComm_t comm = nullptr;
  if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
  constexpr std::size_t kCount = 501;
  const std::vector<float> input = values(ranks.rank, kCount);
  std::vector<float> output(kCount), expected(kCount);
  for (std::size_t i = 0; i < kCount; ++i) expected[i] = exact_sum(ranks.world, i);
  std::string wrong = testing::must(
      shoalAllReduce(input.data(), output.data(), kCount, ncclFloat32, ncclSum, shoalExact, comm, nullptr), "shoalAllReduce");
  if (wrong.empty()) wrong = same_bits(output, expected, "exact");
  for (std::size_t i = 0; i < kCount; ++i) expected[i] = ordered_sum(ranks.world, i);
  if (wrong.empty())
    wrong = testing::must(shoalReduce(input.data(), output.data(), kCount, ncclFloat32, ncclSum, 1, shoalOrdered, comm, nullptr),
                          "shoalReduce");
  if (wrong.empty() && ranks.rank == 1) wrong = same_bits(output, expected, "ordered");
  if (wrong.empty() && shoalAllReduce(input.data(), output.data(), kCount, ncclFloat32, ncclSum, static_cast<shoalNumerics>(3),
                                      comm, nullptr) != ncclInvalidArgument)
    wrong = "a mode that does not exist was taken";
  shoalNumerics now = shoalExact;
  if (wrong.empty() && (shoalCommGetNumerics(comm, &now) != ncclSuccess || now != shoalFast))
    wrong = "the communicator's mode changed";
  ncclCommDestroy(comm);
  return wrong;
}

}  // namespace

TEST_CASE("ordered numerics: the same bits for any algorithm, count and slice at a given world") {
  const std::vector<Variables> ways = {
      {{"SHOAL_NUMERICS", "ordered"}},
      {{"SHOAL_NUMERICS", "ordered"}, {"SHOAL_ALGO", "all_reduce:recursive_doubling"}},
      {{"SHOAL_NUMERICS", "ordered"}, {"SHOAL_ALGO", "all_reduce:halving_doubling"}, {"SHOAL_SLICE_BYTES", "512"}},
      {{"SHOAL_NUMERICS", "ordered"}, {"SHOAL_IN_FLIGHT", "5"}, {"SHOAL_SLICE_BYTES", "4096"}},
  };
  for (int world = 1; world <= 9; ++world)
    for (const Variables& way : ways)
      for (const std::size_t count : {std::size_t{1}, std::size_t{5}, std::size_t{3001}}) {
        INFO("world " << world << ", count " << count << ", " << way.back().first << "=" << way.back().second);
        CHECK(testing::as_threads(world, way, 60, [&](const Ranks& ranks) { return ordered(ranks, count); }) == "");
      }
}

TEST_CASE("ordered numerics: an algorithm with another order is refused by name") {
  const std::string said = testing::as_threads(4, {{"SHOAL_NUMERICS", "ordered"}, {"SHOAL_ALGO", "ring"}}, 60,
                                               [](const Ranks& ranks) { return ordered(ranks, 10); });
  CHECK_THAT(said, Catch::Contains("no algorithm that is allowed (SHOAL_ALGO=ring)"));
}

TEST_CASE("numerics: a call may have a mode of its own") {
  for (int world = 2; world <= 5; ++world) CHECK(testing::as_threads(world, {}, 60, for_one_call) == "");
}

TEST_CASE("exact numerics: the true sum, for any world and order of ranks") {
  for (const int filled : {1, 3, 4})
    for (int world = filled; world <= 9; world += 2)
      for (const int shift : {0, 2}) {
        INFO(filled << " of " << world << " ranks, shifted by " << shift);
        CHECK(testing::as_threads(world, {}, 60, [&](const Ranks& ranks) { return exact(ranks, 1001, filled, shift); }) == "");
      }
  // Several pieces of rows.
  CHECK(testing::as_processes(3, {}, 120, [](const Ranks& ranks) { return exact(ranks, 150001, 3, 1); }) == "");
}

TEST_CASE("explain lists every algorithm, the winner first, and why others cannot run") {
  const auto body = [](const Ranks& ranks) -> std::string {
    ncclComm_t comm = nullptr;
    if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
    std::vector<char> text(1 << 14);
    if (std::string wrong =
            testing::must(shoalExplain(comm, "all_reduce", 1 << 20, ncclFloat32, 0, text.data(), text.size()), "shoalExplain");
        !wrong.empty())
      return wrong;
    const std::string said(text.data());
    for (const char* part : {"ring", "recursive_doubling", "one_shot", " runs: ", "4194304 bytes"})
      if (said.find(part) == std::string::npos) return std::string("nothing of ") + part + " in:\n" + said;
    if (shoalExplain(comm, "all_reduze", 1, ncclFloat32, 0, text.data(), text.size()) != ncclInvalidArgument)
      return "a collective that does not exist was explained";
    char tiny[8];
    shoalExplain(comm, "barrier", 0, ncclFloat32, 0, tiny, sizeof tiny);
    if (std::strlen(tiny) != 7) return "a short text is not terminated";
    ncclCommDestroy(comm);
    return "";
  };
  CHECK(testing::as_threads(4, {}, 60, body) == "");
}
