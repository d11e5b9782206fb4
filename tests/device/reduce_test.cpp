// SPDX-License-Identifier: Apache-2.0
// Every kernel of every type and operation against the reference, element by element.
#include "device/reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "device/instruction_sets.h"
#include "device/reference.h"

namespace {

using namespace shoal;
using namespace shoal::device;
using reference::Element;

constexpr std::size_t kCounts[] = {0, 1, 3, 7, 15, 16, 17, 31, 33, 64, 127, 129, 1000, 4099};
constexpr std::size_t kMost = 4099;
constexpr std::size_t kGuard = 64;  // [bytes] before and after every output
constexpr std::byte kCanary{0xA5};
constexpr std::size_t kOffsets[] = {0, 1, 8, 13};

DataType type_at(int i) { return static_cast<DataType>(i); }
ReduceOp op_at(int i) { return static_cast<ReduceOp>(i); }

// Bit patterns of all kinds; a quarter of them special: zeros, infinities, NaNs, subnormals and the largest values.
std::vector<std::byte> make_input(DataType type, std::uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Element> special = {0, 1, 2, ~Element{0}, Element{1} << (8 * element_bytes(type) - 1)};
  if (!is_integer(type)) {
    const double large = reference::largest(type);
    for (const double v : {large, large / 2, large / 3, 1.0, 3.0, HUGE_VAL, std::nan("")}) {
      special.push_back(reference::bits_of(type, v));
      special.push_back(reference::bits_of(type, -v));
    }
  }
  std::vector<std::byte> input(kMost * element_bytes(type));
  for (std::size_t i = 0; i < kMost; ++i) {
    Element e = random();
    if (random() % 4 == 0)
      e = special[random() % special.size()];
    else if (random() % 2 == 0 && !is_integer(type))
      e = reference::bits_of(type, static_cast<double>(random() % 4001) / 16.0 - 125.0);
    reference::write(type, input.data(), i, e);
  }
  return input;
}

// What the six kernels must give for two inputs, in the order of ReduceKernels.
using Expected = std::vector<std::vector<std::byte>>;
Expected make_expected(DataType type, ReduceOp op, const std::vector<std::byte>& a, const std::vector<std::byte>& b,
                       const Scale& scale) {
  Expected expected(6, a);
  for (std::size_t i = 0; i < kMost; ++i) {
    const Element x = reference::read(type, a.data(), i);
    const Element y = reference::read(type, b.data(), i);
    const Element loaded = reference::load(type, op, x, scale);
    const Element combined = reference::combine(type, op, x, y);
    const Element both = reference::combine(type, op, loaded, y);
    const Element results[] = {combined,
                               both,
                               reference::finish(type, op, combined, scale),
                               reference::finish(type, op, both, scale),
                               loaded,
                               reference::finish(type, op, loaded, scale)};
    for (std::size_t k = 0; k < 6; ++k) reference::write(type, expected[k].data(), i, results[k]);
  }
  return expected;
}

std::string first_difference(DataType type, const std::byte* got, const std::byte* wanted, std::size_t n) {
  if (std::memcmp(got, wanted, n * element_bytes(type)) == 0) return "";
  for (std::size_t i = 0; i < n; ++i) {
    const Element x = reference::read(type, got, i);
    const Element y = reference::read(type, wanted, i);
    if (!reference::same(type, x, y)) return fmt::format("element {} of {}: {:#x}, not {:#x}", i, n, x, y);
  }
  return "";
}

// Memory with canaries around an arbitrarily aligned range.
class Guarded {
 public:
  Guarded(std::size_t bytes, std::size_t offset)
      : memory_(bytes + offset + 2 * kGuard, kCanary), begin_(kGuard + offset), bytes_(bytes) {}
  std::byte* data() { return memory_.data() + begin_; }
  bool intact() const {
    const auto is_canary = [](std::byte b) { return b == kCanary; };
    const auto begin = memory_.begin() + static_cast<std::ptrdiff_t>(begin_);
    return std::all_of(memory_.begin(), begin, is_canary) &&
           std::all_of(begin + static_cast<std::ptrdiff_t>(bytes_), memory_.end(), is_canary);
  }

 private:
  std::vector<std::byte> memory_;
  std::size_t begin_;
  std::size_t bytes_;
};

enum class Output { separate, over_a, over_b };

struct Shape {
  std::size_t n;
  std::size_t offset;
  Output output;
  bool also;
  bool stream;
};

void run_kernel(const ReduceKernels& set, std::size_t k, Target to, const std::byte* a, const std::byte* b, std::size_t n,
                const Scale& scale) {
  const CombineFn combines[] = {set.combine, set.combine_input, set.combine_final, set.combine_input_final};
  if (k < 4)
    combines[k](to, a, b, n, scale);
  else
    (k == 4 ? set.load_input : set.load_input_final)(to, a, n, scale);
}

// One call; the text says what is wrong.
std::string check_call(DataType type, ReduceOp op, std::size_t k, const Shape& shape, const std::vector<std::byte>& a,
                       const std::vector<std::byte>& b, const std::vector<std::byte>& expected, const Scale& scale) {
  const std::size_t bytes = shape.n * element_bytes(type);
  Guarded x(bytes, shape.offset);
  Guarded y(bytes, shape.offset / 2);
  Guarded separate(bytes, (shape.offset + 3) % 16);
  Guarded also(bytes, (shape.offset + 5) % 16);
  if (bytes > 0) std::memcpy(x.data(), a.data(), bytes);
  if (bytes > 0) std::memcpy(y.data(), b.data(), bytes);
  Guarded& out = shape.output == Output::over_a ? x : shape.output == Output::over_b ? y : separate;
  // At odd offsets the second output is an operand, too: the one that the first is not.
  Guarded& second = shape.offset % 2 == 0 || k >= 4 ? also : shape.output == Output::over_a ? y : x;
  run_kernel(kernels(type, op), k, {.out = out.data(), .also = shape.also ? second.data() : nullptr, .stream = shape.stream},
             x.data(), y.data(), shape.n, scale);
  std::string wrong = first_difference(type, out.data(), expected.data(), shape.n);
  if (wrong.empty() && shape.also && bytes > 0 && std::memcmp(second.data(), out.data(), bytes) != 0)
    wrong = "also differs from out";
  if (wrong.empty() && !(x.intact() && y.intact() && separate.intact() && also.intact()))
    wrong = "a byte outside the output was written";
  if (wrong.empty() || wrong.starts_with("also")) return wrong;
  return wrong + fmt::format(" ({} {} kernel {}, {}: offset {}, output {}, also {}, stream {})", name_of(type), name_of(op), k,
                             instruction_set(), shape.offset, static_cast<int>(shape.output), shape.also, shape.stream);
}

void check_all_shapes(DataType type, ReduceOp op) {
  const auto a = make_input(type, 1);
  const auto b = make_input(type, 2);
  const auto premul = reference::bits_of(type, 3);
  const Scale scale = make_scale(type, op, World{7}, &premul);
  const Expected expected = make_expected(type, op, a, b, scale);
  for (const std::size_t n : kCounts)
    for (const std::size_t offset : kOffsets)
      for (const Output output : {Output::separate, Output::over_a, Output::over_b})
        for (const bool also : {false, true})
          for (const bool stream : {false, true})
            for (std::size_t k = 0; k < 6; ++k) {
              if (k >= 4 && output == Output::over_b) continue;
              const std::string wrong = check_call(type, op, k, {n, offset, output, also, stream}, a, b, expected[k], scale);
              if (!wrong.empty()) FAIL(wrong);
            }
  SUCCEED();
}

TEST_CASE("reduce: every kernel equals the reference for all types, operations, counts, alignments and targets") {
  for_each_instruction_set([] {
    for (int type = 0; type < kDataTypes; ++type)
      for (int op = 0; op < kReduceOps; ++op) check_all_shapes(type_at(type), op_at(op));
  });
}

TEST_CASE("reduce: all pairs of 8-bit elements, and all 16-bit elements with partners of every magnitude") {
  for_each_instruction_set([] {
    for (const DataType type :
         {DataType::int8, DataType::uint8, DataType::float8_e4m3, DataType::float8_e5m2, DataType::float16, DataType::bfloat16}) {
      const std::size_t width = element_bytes(type);
      const std::size_t values = std::size_t{1} << (8 * width);
      const std::size_t partners = width == 1 ? 256 : 24;
      std::vector<std::byte> a(values * width);
      std::vector<std::byte> b(values * width);
      std::vector<std::byte> out(values * width);
      for (std::size_t i = 0; i < values; ++i) reference::write(type, a.data(), i, i);
      for (std::size_t p = 0; p < partners; ++p) {
        const Element partner = width == 1 ? p : (p * 2 + (p % 3)) * values / 48 + p;
        for (std::size_t i = 0; i < values; ++i)
          reference::write(type, b.data(), i, (partner + (width == 1 ? 0 : i % 5)) % values);
        for (int op = 0; op < kReduceOps - 1; ++op) {
          kernels(type, op_at(op)).combine({.out = out.data()}, a.data(), b.data(), values, Scale());
          for (std::size_t i = 0; i < values; ++i) {
            const Element got = reference::read(type, out.data(), i);
            const Element y = reference::read(type, b.data(), i);
            const Element wanted = reference::combine(type, op_at(op), i, y);
            if (!reference::same(type, got, wanted))
              FAIL(fmt::format("{} {} {:#x} {:#x} ({}): {:#x}, not {:#x}", name_of(type), name_of(op_at(op)), i, y,
                               instruction_set(), got, wanted));
          }
        }
      }
    }
  });
}

TEST_CASE("reduce: scaling rounds every narrow float as the scalar conversion does") {
  for_each_instruction_set([] {
    for (const DataType type : {DataType::float8_e4m3, DataType::float8_e5m2, DataType::float16, DataType::bfloat16}) {
      const std::size_t values = std::size_t{1} << (8 * element_bytes(type));
      std::vector<std::byte> a(values * element_bytes(type));
      std::vector<std::byte> out(a.size());
      for (std::size_t i = 0; i < values; ++i) reference::write(type, a.data(), i, i);
      for (const float factor :
           {1.0F, 1.0F / 3, 0.1F, 1.0F / 1024, 1.0F / 16384, 0x1p-30F, 1.0F / 7, 3.0F, -1.5F, 300.0F, 0.0F, 1e-38F, HUGE_VALF}) {
        Scale scale;
        scale.factor32 = factor;
        kernels(type, ReduceOp::avg).load_input({.out = out.data()}, a.data(), values, scale);
        for (std::size_t i = 0; i < values; ++i) {
          const Element got = reference::read(type, out.data(), i);
          const Element wanted = reference::load(type, ReduceOp::avg, i, scale);
          if (!reference::same(type, got, wanted))
            FAIL(fmt::format("{} {:#x} * {} ({}): {:#x}, not {:#x}", name_of(type), i, factor, instruction_set(), got, wanted));
        }
      }
    }
  });
}

TEST_CASE("reduce: integer averages divide by any number of ranks, toward zero") {
  for_each_instruction_set([] {
    for (const DataType type :
         {DataType::int8, DataType::uint8, DataType::int32, DataType::uint32, DataType::int64, DataType::uint64}) {
      const auto a = make_input(type, 5);
      std::vector<std::byte> out(a.size());
      for (const std::int32_t world :
           {1, 2, 3, 4, 5, 7, 8, 10, 64, 127, 128, 255, 256, 641, 1000, 65535, 65536, 65537, 1 << 30, 0x7FFFFFFF}) {
        const Scale scale = make_scale(type, ReduceOp::avg, World{world}, nullptr);
        kernels(type, ReduceOp::avg).load_input_final({.out = out.data()}, a.data(), kMost, scale);
        for (std::size_t i = 0; i < kMost; ++i) {
          const Element x = reference::read(type, a.data(), i);
          if (reference::read(type, out.data(), i) != reference::finish(type, ReduceOp::avg, x, scale))
            FAIL(fmt::format("{} {:#x} / {} ({})", name_of(type), x, world, instruction_set()));
        }
      }
    }
  });
}

TEST_CASE("make_scale: the factor is read from any address, in the element's type") {
  std::byte memory[9] = {};
  std::byte* const odd = memory + 1;
  const auto put = [odd](auto value) { std::memcpy(odd, &value, sizeof value); };
  put(2.5);
  CHECK(make_scale(DataType::float64, ReduceOp::premul_sum, World{4}, odd).factor64 == 2.5);
  put(-0.1F);
  CHECK(make_scale(DataType::float32, ReduceOp::premul_sum, World{4}, odd).factor32 == -0.1F);
  put(std::uint16_t{0x3E00});
  CHECK(make_scale(DataType::float16, ReduceOp::premul_sum, World{4}, odd).factor32 == 1.5F);
  put(std::uint16_t{0x4040});
  CHECK(make_scale(DataType::bfloat16, ReduceOp::premul_sum, World{4}, odd).factor32 == 3.0F);
  put(std::uint8_t{0x7E});
  CHECK(make_scale(DataType::float8_e4m3, ReduceOp::premul_sum, World{4}, odd).factor32 == 448.0F);
  CHECK(make_scale(DataType::int8, ReduceOp::premul_sum, World{4}, odd).factor_bits == 0x7E);
  put(std::int64_t{-2});
  CHECK(make_scale(DataType::int64, ReduceOp::premul_sum, World{4}, odd).factor_bits == ~std::uint64_t{1});
  CHECK(make_scale(DataType::int32, ReduceOp::avg, World{6}, nullptr).divisor == 6);
  CHECK(make_scale(DataType::float16, ReduceOp::avg, World{6}, nullptr).factor32 == 1.0F / 6);
  CHECK(make_scale(DataType::float64, ReduceOp::avg, World{6}, nullptr).factor64 == 1.0 / 6);
}

TEST_CASE("reduce: only scaled operations change raw input") {
  for (int type = 0; type < kDataTypes; ++type)
    for (int op = 0; op < kReduceOps; ++op) {
      const bool scaled = op_at(op) == ReduceOp::premul_sum || (op_at(op) == ReduceOp::avg && !is_integer(type_at(type)));
      CHECK(scales_input(type_at(type), op_at(op)) == scaled);
      const ReduceKernels& set = kernels(type_at(type), op_at(op));
      CHECK((set.combine == set.combine_input) == !scaled);
    }
}

TEST_CASE("copy: any size, alignment and target gives the same bytes and touches no others") {
  for_each_instruction_set([] {
    const auto source = make_input(DataType::uint8, 3);
    for (const std::size_t n : kCounts)
      for (const std::size_t offset : kOffsets)
        for (const bool second : {false, true})
          for (const bool stream : {false, true}) {
            Guarded out(n, offset);
            Guarded also(n, (offset + 7) % 16);
            const std::size_t from = std::min(offset, kMost - n);
            copy({.out = out.data(), .also = second ? also.data() : nullptr, .stream = stream},
                 std::span(source).subspan(from, n));
            REQUIRE(std::equal(out.data(), out.data() + n, source.data() + from));
            REQUIRE((!second || std::equal(also.data(), also.data() + n, source.data() + from)));
            REQUIRE((out.intact() && also.intact()));
          }
  });
  copy({.out = nullptr}, {});
}

TEST_CASE("reduce: the instruction set has a name, and the machine's best is in use") {
  CHECK(std::string(instruction_set()) != "Unknown");
  if ((hwy::SupportedTargets() & HWY_AVX2) != 0) CHECK(std::string(instruction_set()).starts_with("AVX"));
}

}  // namespace
