// SPDX-License-Identifier: Apache-2.0
#include "support/pattern.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#include "device/convert.h"

namespace testing {
namespace {

using shoal::DataType;
using shoal::ReduceOp;

constexpr std::size_t kPeriod = 560;  // of every pattern below in the index: 7, 5 and 16 divide it

// Values and sums over 9 ranks are whole numbers up to 8: exact even with float8_e5m2's 3 significant bits.
std::int64_t value_at(DataType type, ReduceOp op, int rank, std::size_t i) {
  const auto r = static_cast<std::size_t>(rank);
  switch (op) {
    case ReduceOp::prod: return (i + r) % 5 == 0 ? 2 : 1;
    case ReduceOp::max:
    case ReduceOp::min: {
      const auto v = static_cast<std::int64_t>((i * 7 + r * 3) % 16);
      const bool has_sign = type != DataType::uint8 && type != DataType::uint32 && type != DataType::uint64;
      return has_sign ? v - 8 : v;
    }
    case ReduceOp::avg:
      if (type == DataType::int8 || type == DataType::int32 || type == DataType::int64)
        return -static_cast<std::int64_t>((i + 3 * r) % 7);
      return static_cast<std::int64_t>((i + 3 * r) % 7);
    case ReduceOp::sum: return (i + 3 * r) % 7 < 4 ? 1 : 0;
    case ReduceOp::premul_sum: return (i + 3 * r) % 7 < 2 ? 1 : 0;  // with factors up to 2 the sum stays at most 8
  }
  return 0;
}

double factor(int rank) { return rank % 2 == 0 ? 1 : 2; }

template <typename T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}
template <typename T>
T get(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void encode(DataType type, std::int64_t value, std::byte* at) {
  const auto f = static_cast<float>(value);
  switch (type) {
    case DataType::int8:
    case DataType::uint8: return put(at, static_cast<std::uint8_t>(value));
    case DataType::int32:
    case DataType::uint32: return put(at, static_cast<std::uint32_t>(value));
    case DataType::int64:
    case DataType::uint64: return put(at, static_cast<std::uint64_t>(value));
    case DataType::float16: return put(at, shoal::device::to_float16(f));
    case DataType::bfloat16: return put(at, shoal::device::to_bfloat16(f));
    case DataType::float32: return put(at, f);
    case DataType::float64: return put(at, static_cast<double>(value));
    case DataType::float8_e4m3: return put(at, shoal::device::to_float8_e4m3(f));
    case DataType::float8_e5m2: return put(at, shoal::device::to_float8_e5m2(f));
  }
}

double decode_float(DataType type, const std::byte* at) {
  switch (type) {
    case DataType::float16: return shoal::device::from_float16(get<std::uint16_t>(at));
    case DataType::bfloat16: return shoal::device::from_bfloat16(get<std::uint16_t>(at));
    case DataType::float32: return get<float>(at);
    case DataType::float64: return get<double>(at);
    case DataType::float8_e4m3: return shoal::device::from_float8_e4m3(get<std::uint8_t>(at));
    case DataType::float8_e5m2: return shoal::device::from_float8_e5m2(get<std::uint8_t>(at));
    default: return 0;
  }
}

// Significant bits after the leading one.
int fraction_bits(DataType type) {
  switch (type) {
    case DataType::float16: return 10;
    case DataType::bfloat16: return 7;
    case DataType::float32: return 23;
    case DataType::float64: return 52;
    case DataType::float8_e4m3: return 3;
    case DataType::float8_e5m2: return 2;
    default: return 0;
  }
}

std::int64_t reduced(DataType type, ReduceOp op, int world, std::size_t i) {
  std::int64_t result = value_at(type, op, 0, i);
  for (int rank = 1; rank < world; ++rank) {
    const std::int64_t v = value_at(type, op, rank, i);
    switch (op) {
      case ReduceOp::sum:
      case ReduceOp::avg: result += v; break;
      case ReduceOp::premul_sum: result += v * static_cast<std::int64_t>(factor(rank)); break;
      case ReduceOp::prod: result *= v; break;
      case ReduceOp::max: result = std::max(result, v); break;
      case ReduceOp::min: result = std::min(result, v); break;
    }
  }
  return result;
}

void tile(std::vector<std::byte>& bytes, std::size_t period) {
  for (std::size_t at = period; at < bytes.size(); at += period)
    std::memcpy(&bytes[at], bytes.data(), std::min(period, bytes.size() - at));
}

}  // namespace

std::vector<std::byte> input_of(DataType type, ReduceOp op, int rank, std::size_t count) {
  const std::size_t width = element_bytes(type);
  std::vector<std::byte> bytes(count * width);
  for (std::size_t i = 0; i < std::min(count, kPeriod); ++i) encode(type, value_at(type, op, rank, i), &bytes[i * width]);
  tile(bytes, kPeriod * width);
  return bytes;
}

std::vector<std::byte> factor_of(DataType type, int rank) {
  std::vector<std::byte> bytes(element_bytes(type));
  encode(type, static_cast<std::int64_t>(factor(rank)), bytes.data());
  return bytes;
}

std::vector<std::byte> bytes_of(int rank, std::size_t count, std::size_t first) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = first + i;
    bytes[i] =
        static_cast<std::byte>((at * 131 + (at >> 8) * 31 + (at >> 16) * 17 + static_cast<std::size_t>(rank) * 59 + 7) & 0xff);
  }
  return bytes;
}

std::string compare(DataType type, ReduceOp op, int world, const std::byte* output, std::size_t count, std::size_t first_index) {
  const std::size_t width = element_bytes(type);
  const bool average = op == ReduceOp::avg, rounded = average && !shoal::is_integer(type);
  std::vector<std::byte> expected(std::min(count, kPeriod) * width);
  const std::size_t offset = first_index % kPeriod;
  std::size_t wrong = 0, first = 0;
  if (!rounded) {
    for (std::size_t i = 0; i < std::min(count, kPeriod); ++i) {
      const std::int64_t sum = reduced(type, op, world, (offset + i) % kPeriod);
      encode(type, average ? sum / world : sum, &expected[i * width]);
    }
    for (std::size_t at = 0; at < count; at += kPeriod) {  // whole periods at a time
      const std::size_t n = std::min(kPeriod, count - at);
      if (std::memcmp(output + at * width, expected.data(), n * width) == 0) continue;
      for (std::size_t i = 0; i < n; ++i)
        if (std::memcmp(output + (at + i) * width, &expected[i * width], width) != 0 && wrong++ == 0) first = at + i;
    }
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      const double exact = static_cast<double>(reduced(type, op, world, (offset + i) % kPeriod)) / world;
      const double unit = std::ldexp(1.0, std::ilogb(std::max(exact, 1.0 / 64)) - fraction_bits(type));
      // Each of world-1 additions and the scaling round once: half a unit each; 2 units cover small worlds as they do in NCCL's
      // tests.
      const double allowed = unit * std::max(2.0, world / 2.0);
      if (!(std::abs(decode_float(type, output + i * width) - exact) <= allowed) && wrong++ == 0) first = i;
    }
  }
  return wrong == 0 ? ""
                    : std::to_string(wrong) + " of " + std::to_string(count) + " elements are wrong, the first is " +
                          std::to_string(first);
}

}  // namespace testing
