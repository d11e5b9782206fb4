// SPDX-License-Identifier: Apache-2.0
// Field cases FC-11 to FC-14 and FC-17: NaN, the same bits everywhere, sums that stop growing, averages that overflow on the way,
// and wrap-around. (tests/device has them for one kernel; here they pass through whole collectives.)
#include <shoal/shoal.h>

#include <chrono>
#include <limits>
#include <random>
#include <set>
#include <thread>

#include "algorithms/algorithms.h"
#include "api/field_cases.h"
#include "device/reference.h"

namespace {

using shoal::DataType;
using shoal::ReduceOp;
using shoal::plan::Collective;
using testing::must;
using testing::on_all_transports;
using testing::Ranks;
namespace reference = shoal::device::reference;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr DataType kFloats[] = {DataType::float16, DataType::bfloat16, DataType::float32, DataType::float64};

ncclDataType_t nccl(DataType type) { return static_cast<ncclDataType_t>(type); }

std::vector<std::byte> encoded(DataType type, const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * element_bytes(type));
  for (std::size_t i = 0; i < values.size(); ++i) reference::write(type, bytes.data(), i, reference::bits_of(type, values[i]));
  return bytes;
}

double value(DataType type, const std::vector<std::byte>& bytes, std::size_t i) {
  return reference::value_of(type, reference::read(type, bytes.data(), i));
}

// ---- FC-11 -----------------------------------------------------------------------------------------------------------------

using Column = std::vector<double>;  // what each rank holds of one element

std::vector<Column> columns(std::size_t world) {
  std::vector<Column> all;
  for (std::size_t r = 0; r < world; ++r) {
    for (const double special : {kNaN, -kNaN, kInfinity, -kInfinity}) {
      Column column(world);
      for (std::size_t q = 0; q < world; ++q) column[q] = static_cast<double>((q * 5 + r) % 7) - 3;
      all.push_back(column);
      column[r] = special;
      all.push_back(column);
      column[(r + 1) % world] = kNaN;
      all.push_back(column);
    }
    Column zeros(world, 0.0);
    zeros[r] = -0.0;
    all.push_back(zeros);
    all.emplace_back(world, -0.0);
    all.back()[r] = 0.0;
  }
  if (world == 3)
    for (const Column& order :
         {Column{5, kNaN, 1}, Column{5, 1, kNaN}, Column{1, 5, kNaN}, Column{1, kNaN, 5}, Column{kNaN, 1, 5}, Column{kNaN, 5, 1}})
      all.push_back(order);
  if (world == 2) all.insert(all.end(), {Column{1, 1}, Column{kNaN, 2}, Column{3, 3}});
  while (all.size() % world != 0) all.emplace_back(world, 1.0);  // a whole number of blocks
  return all;
}

// A NaN anywhere is the result; -0 is below +0.
double extreme(const Column& column, bool largest) {
  double best = column[0];
  for (const double v : column) {
    if (std::isnan(v) || std::isnan(best)) return kNaN;
    const bool less = v < best || (v == best && std::signbit(v) && !std::signbit(best));
    const bool more = v > best || (v == best && !std::signbit(v) && std::signbit(best));
    if (largest ? more : less) best = v;
  }
  return best;
}

std::string extremes(const Ranks& ranks, ncclComm_t comm) {
  const auto world = static_cast<std::size_t>(ranks.world), own = static_cast<std::size_t>(ranks.rank);
  const std::vector<Column> all = columns(world);
  std::vector<double> mine;
  for (const Column& column : all) mine.push_back(column[own]);
  for (const DataType type : kFloats)
    for (const bool largest : {true, false}) {
      const std::vector<std::byte> input = encoded(type, mine);
      std::vector<std::byte> output(input.size());
      const ncclRedOp_t op = largest ? ncclMax : ncclMin;
      const auto wrong = [&](std::size_t first, std::size_t count) -> std::string {
        for (std::size_t i = 0; i < count; ++i)
          if (!reference::same(type, reference::read(type, output.data(), i),
                               reference::bits_of(type, extreme(all[first + i], largest))))
            return std::string(largest ? "max of " : "min of ") + std::string(name_of(type)) + ", element " +
                   std::to_string(first + i) + " is " + std::to_string(value(type, output, i)) + " instead of " +
                   std::to_string(extreme(all[first + i], largest));
        return "";
      };
      if (std::string w = must(ncclAllReduce(input.data(), output.data(), mine.size(), nccl(type), op, comm, nullptr), "call");
          !w.empty())
        return w;
      if (std::string w = wrong(0, mine.size()); !w.empty()) return "all-reduce: " + w;
      const int root = ranks.world / 2;
      if (std::string w = must(ncclReduce(input.data(), output.data(), mine.size(), nccl(type), op, root, comm, nullptr), "call");
          !w.empty())
        return w;
      if (root == ranks.rank)
        if (std::string w = wrong(0, mine.size()); !w.empty()) return "reduce: " + w;
      const std::size_t block = mine.size() / world;
      if (std::string w = must(ncclReduceScatter(input.data(), output.data(), block, nccl(type), op, comm, nullptr), "call");
          !w.empty())
        return w;
      if (std::string w = wrong(own * block, block); !w.empty()) return "reduce-scatter: " + w;
    }
  return "";
}

// ---- FC-12 -----------------------------------------------------------------------------------------------------------------

// Values of both signs over several powers of two: their sums depend on the order.
std::vector<std::byte> scattered_values(DataType type, int rank, std::size_t count) {
  std::mt19937 random(static_cast<std::uint32_t>(rank) + 1);
  std::vector<double> values(count);
  for (double& v : values) {
    const std::uint32_t bits = static_cast<std::uint32_t>(random());
    v = ((bits & 1) != 0 ? -1 : 1) *
        std::ldexp(1 + static_cast<double>((bits >> 8) & 0xffff) / 65536, static_cast<int>(bits >> 29) - 4);
  }
  return encoded(type, values);
}

// "" if all ranks hold these bytes.
std::string same_everywhere(const Ranks& ranks, ncclComm_t comm, const std::vector<std::byte>& bytes) {
  std::vector<std::byte> all(bytes.size() * static_cast<std::size_t>(ranks.world));
  if (std::string wrong = must(ncclAllGather(bytes.data(), all.data(), bytes.size(), ncclUint8, comm, nullptr), "all-gather");
      !wrong.empty())
    return wrong;
  for (int q = 0; q < ranks.world; ++q)
    if (std::memcmp(&all[static_cast<std::size_t>(q) * bytes.size()], bytes.data(), bytes.size()) != 0)
      return "rank " + std::to_string(q) + " holds other bits than rank " + std::to_string(ranks.rank);
  return "";
}

std::string same_bits(const Ranks& ranks, ncclComm_t comm) {
  std::mt19937 random(static_cast<std::uint32_t>(ranks.rank) * 97 + 5);
  for (const DataType type : {DataType::float16, DataType::bfloat16, DataType::float32}) {
    const auto sum = [&](const std::vector<std::byte>& input, std::size_t count, shoalNumerics mode,
                         std::vector<std::byte>& result) {
      result.resize(count * element_bytes(type));
      return must(shoalAllReduce(input.data(), result.data(), count, nccl(type), ncclSum, mode, comm, nullptr), "shoalAllReduce");
    };
    const std::vector<std::byte> input = scattered_values(type, ranks.rank, 100003);
    std::vector<std::byte> result, again;
    for (const std::size_t count :
         {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{1000}, std::size_t{4099}, std::size_t{100003}}) {
      if (std::string wrong = sum(input, count, shoalFast, result); !wrong.empty()) return wrong;
      if (std::string wrong = same_everywhere(ranks, comm, result); !wrong.empty())
        return std::string(name_of(type)) + " x " + std::to_string(count) + ": " + wrong;
    }
    if (std::string wrong = sum(input, 4099, shoalFast, result); !wrong.empty()) return wrong;
    for (int repeat = 0; repeat < 20; ++repeat) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
      if (std::string wrong = sum(input, 4099, shoalFast, again); !wrong.empty()) return wrong;
      if (again != result) return std::string(name_of(type)) + ": repeat " + std::to_string(repeat) + " gave other bits";
    }
    // Alone, or as the front of a longer message: promised by ordered numerics only.
    if (std::string wrong = sum(input, 1000, shoalOrdered, result); !wrong.empty()) return wrong;
    if (std::string wrong = sum(input, 100000, shoalOrdered, again); !wrong.empty()) return wrong;
    if (!std::equal(result.begin(), result.end(), again.begin()))
      return std::string(name_of(type)) + ": a longer message has other bits";
  }
  return "";
}

// ---- FC-13, FC-14 ----------------------------------------------------------------------------------------------------------

// One element's result, the same at every one of `count` positions and on every rank, or the text of what is wrong.
std::string uniform(const Ranks& ranks, ncclComm_t comm, DataType type, ncclRedOp_t op, shoalNumerics mode, double mine,
                    bool in_place, double& result) {
  constexpr std::size_t kCount = 4096;
  std::vector<std::byte> input = encoded(type, std::vector<double>(kCount, mine)), output(input.size());
  void* const into = in_place ? input.data() : output.data();
  if (std::string wrong = must(shoalAllReduce(input.data(), into, kCount, nccl(type), op, mode, comm, nullptr), "shoalAllReduce");
      !wrong.empty())
    return wrong;
  if (in_place) output = input;
  result = value(type, output, 0);
  for (std::size_t i = 1; i < kCount && mode != shoalFast; ++i)
    if (value(type, output, i) != result) return "element " + std::to_string(i) + " differs from the first";
  for (std::size_t i = 1; i < kCount; ++i)  // fast: the one that is farthest from what all hold
    if (std::abs(value(type, output, i)) > std::abs(result)) result = value(type, output, i);
  return same_everywhere(ranks, comm, output);
}

}  // namespace

TEST_CASE("FC-11: a NaN on any rank is the maximum and the minimum; -0 is below +0") {
  for (int world = 2; world <= 8; ++world) on_all_transports(world, extremes);
}

TEST_CASE("FC-11: the same with every algorithm") {
  std::set<std::string> all;
  for (const auto& each : shoal::algorithms::all())
    if (is_reduction(each.collective)) all.insert(std::string(name_of(each.collective)) + ":" + std::string(each.name));
  REQUIRE(all.size() > 6);
  for (const std::string& algorithm : all)
    for (const int world : {3, 4, 7}) {
      INFO("SHOAL_ALGO=" << algorithm << ", world " << world);
      CHECK(testing::as_threads(world, {{"SHOAL_ALGO", algorithm}}, 60,
                                [](const Ranks& ranks) { return testing::case_and_sum(ranks, extremes); }) == "");
    }
}

TEST_CASE("FC-12: the same bits on every rank and at every repeat; in ordered numerics also in a longer message") {
  for (const int world : {3, 4, 5, 8}) on_all_transports(world, same_bits);
}

TEST_CASE("FC-13: bfloat16 sums: 264 in exact numerics, at most half a unit a hop away in the others") {
  on_all_transports(8, [](const Ranks& ranks, ncclComm_t comm) -> std::string {
    const double mine = ranks.rank == 0 ? 256 : 1;  // 263 in all, in the middle of 262 and 264
    double found = 0;
    if (std::string wrong = uniform(ranks, comm, DataType::bfloat16, ncclSum, shoalExact, mine, false, found); !wrong.empty())
      return "exact: " + wrong;
    if (found != 264) return "exact: " + std::to_string(found);
    // 256 + 1 is 256 (tie to even), + 2 is 258, + 4 is 262: a rounding a hop, in the documented tree.
    if (std::string wrong = uniform(ranks, comm, DataType::bfloat16, ncclSum, shoalOrdered, mine, false, found); !wrong.empty())
      return "ordered: " + wrong;
    if (found != 262) return "ordered: " + std::to_string(found);
    std::vector<std::byte> input = encoded(DataType::bfloat16, std::vector<double>(4096, mine)), output(input.size());
    if (std::string wrong = must(ncclAllReduce(input.data(), output.data(), 4096, ncclBfloat16, ncclSum, comm, nullptr), "fast");
        !wrong.empty())
      return wrong;
    for (std::size_t i = 0; i < 4096; ++i)
      if (std::abs(value(DataType::bfloat16, output, i) - 263) > 7)  // 7 hops of half a unit; the unit is 2 from 256 on
        return "fast: " + std::to_string(value(DataType::bfloat16, output, i));
    return same_everywhere(ranks, comm, output);
  });
}

TEST_CASE("FC-14: an average of the largest values is finite and near them; their sum is infinite") {
  on_all_transports(10, [](const Ranks& ranks, ncclComm_t comm) -> std::string {
    for (const DataType type : {DataType::float16, DataType::bfloat16})
      for (const bool in_place : {false, true}) {
        const double largest = reference::largest(type);
        double found = 0;
        for (const shoalNumerics mode : {shoalFast, shoalOrdered, shoalExact}) {
          if (std::string wrong = uniform(ranks, comm, type, ncclAvg, mode, largest, in_place, found); !wrong.empty())
            return wrong;
          const double allowed = mode == shoalExact ? 0 : type == DataType::float16 ? 0.001 : 0.01;
          if (!(std::abs(found - largest) <= allowed * largest))
            return std::string(name_of(type)) + ", mode " + std::to_string(mode) + ": the average is " + std::to_string(found);
        }
        if (std::string wrong = uniform(ranks, comm, type, ncclSum, shoalFast, largest, in_place, found); !wrong.empty())
          return wrong;
        if (found != kInfinity) return std::string(name_of(type)) + ": the sum is " + std::to_string(found);
      }
    return "";
  });
}

TEST_CASE("FC-14: an average over three magnitudes agrees with float64 within a rounding a rank") {
  on_all_transports(3, [](const Ranks& ranks, ncclComm_t comm) -> std::string {
    constexpr double kShare[] = {1, 10, 0.1};
    for (const DataType type : kFloats)
      for (const bool in_place : {false, true})
        for (const double base : {1.0, 0.37, 1000.0}) {
          const double epsilon = type == DataType::float16    ? 0x1p-11
                                 : type == DataType::bfloat16 ? 0x1p-8
                                 : type == DataType::float32  ? 0x1p-24
                                                              : 0x1p-53;
          double found = 0;
          if (std::string wrong = uniform(ranks, comm, type, ncclAvg, shoalFast, base * kShare[ranks.rank], in_place, found);
              !wrong.empty())
            return wrong;
          // Each input is rounded to the type first, then once a rank.
          if (!(std::abs(found - base * 3.7) <= 4 * epsilon * base * 3.7))
            return std::string(name_of(type)) + ": " + std::to_string(found) + " instead of " + std::to_string(base * 3.7);
        }
    return "";
  });
}

TEST_CASE("FC-17: integers wrap in two's complement, sums and products") {
  on_all_transports(2, [](const Ranks& ranks, ncclComm_t comm) -> std::string {
    const auto check = [&](auto first, auto second, auto sum, auto product, ncclDataType_t type,
                           const char* name) -> std::string {
      using T = decltype(first);
      const std::vector<T> input(1001, ranks.rank == 0 ? first : static_cast<T>(second));
      std::vector<T> output(1001);
      if (std::string wrong = must(ncclAllReduce(input.data(), output.data(), 1001, type, ncclSum, comm, nullptr), name);
          !wrong.empty())
        return wrong;
      if (output != std::vector<T>(1001, static_cast<T>(sum))) return std::string(name) + ": sum " + std::to_string(output[0]);
      if (std::string wrong = must(ncclAllReduce(input.data(), output.data(), 1001, type, ncclProd, comm, nullptr), name);
          !wrong.empty())
        return wrong;
      if (output != std::vector<T>(1001, static_cast<T>(product)))
        return std::string(name) + ": product " + std::to_string(output[0]);
      return "";
    };
    constexpr auto kMost32 = std::numeric_limits<std::int32_t>::max();
    constexpr auto kMost64 = std::numeric_limits<std::int64_t>::max();
    std::string wrong = check(std::int8_t{120}, 100, -36, -32, ncclInt8, "int8");  // 220 - 256, 12000 - 47 * 256
    if (wrong.empty()) wrong = check(std::uint8_t{200}, 100, 44, 32, ncclUint8, "uint8");
    if (wrong.empty()) wrong = check(kMost32, 1, std::numeric_limits<std::int32_t>::min(), kMost32, ncclInt32, "int32");
    if (wrong.empty()) wrong = check(kMost32, 2, std::numeric_limits<std::int32_t>::min() + 1, -2, ncclInt32, "int32 by 2");
    if (wrong.empty()) wrong = check(kMost64, 1, std::numeric_limits<std::int64_t>::min(), kMost64, ncclInt64, "int64");
    return wrong;
  });
}

TEST_CASE("FC-17: float16 sums over the whole range are correctly rounded, infinities included, on both ranks") {
  on_all_transports(2, [](const Ranks& ranks, ncclComm_t comm) -> std::string {
    constexpr std::size_t kCount = 1000003;
    std::vector<std::uint16_t> data[2] = {std::vector<std::uint16_t>(kCount), std::vector<std::uint16_t>(kCount)}, sum(kCount);
    std::mt19937 random(17);
    std::uniform_real_distribution<float> uniform(-65504, 65504);
    for (auto& each : data)
      for (std::uint16_t& v : each) v = shoal::device::to_float16(uniform(random));
    const auto& mine = data[ranks.rank];
    if (std::string wrong = must(ncclAllReduce(mine.data(), sum.data(), kCount, ncclFloat16, ncclSum, comm, nullptr), "sum");
        !wrong.empty())
      return wrong;
    std::size_t infinite = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
      // float32 has more than twice float16's digits: rounding to it first changes nothing.
      const std::uint16_t expected =
          shoal::device::to_float16(shoal::device::from_float16(data[0][i]) + shoal::device::from_float16(data[1][i]));
      if (sum[i] != expected) return "element " + std::to_string(i) + " is wrong";
      infinite += (expected & 0x7fff) == 0x7c00 ? 1 : 0;
    }
    return infinite > kCount / 100 ? "" : "hardly any sum was infinite";
  });
}
