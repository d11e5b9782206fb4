// SPDX-License-Identifier: Apache-2.0
// The vocabulary of the library: ranks, element counts and byte counts are different types, and one function leads from
// elements to bytes. Value types: copy, compare, no resources.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace shoal {

// A position in a communicator, 0 <= value < world.
struct Rank {
  std::int32_t value = 0;
  friend constexpr auto operator<=>(Rank, Rank) = default;
};

// The number of ranks of a communicator, at least 1.
struct World {
  std::int32_t value = 1;
  friend constexpr auto operator<=>(World, World) = default;
};

// Elements of one DataType.
struct Count {
  std::size_t value = 0;
  friend constexpr auto operator<=>(Count, Count) = default;
};

// What memory and wires measure.
struct Bytes {
  std::size_t value = 0;
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
};

// Element types; the values are NCCL's.
enum class DataType : std::uint8_t {
  int8 = 0,
  uint8 = 1,
  int32 = 2,
  uint32 = 3,
  int64 = 4,
  uint64 = 5,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  bfloat16 = 9,
  float8_e4m3 = 10,  // 4 exponent bits, largest finite value 448, no infinities ("fn")
  float8_e5m2 = 11,  // 5 exponent bits, largest finite value 57344
};
inline constexpr int kDataTypes = 12;

// Reductions. The first five values are NCCL's; premul_sum is the operation of user-made handles: the sum of every rank's
// input times that rank's factor.
enum class ReduceOp : std::uint8_t { sum = 0, prod = 1, max = 2, min = 3, avg = 4, premul_sum = 5 };
inline constexpr int kReduceOps = 6;

constexpr std::size_t element_bytes(DataType type) {
  switch (type) {
    case DataType::int8:
    case DataType::uint8:
    case DataType::float8_e4m3:
    case DataType::float8_e5m2: return 1;
    case DataType::float16:
    case DataType::bfloat16: return 2;
    case DataType::int32:
    case DataType::uint32:
    case DataType::float32: return 4;
    case DataType::int64:
    case DataType::uint64:
    case DataType::float64: return 8;
  }
  return 0;
}

constexpr bool is_integer(DataType type) {
  return static_cast<std::uint8_t>(type) <= static_cast<std::uint8_t>(DataType::uint64);
}

// The only door from elements to bytes.
constexpr Bytes size_of(Count n, DataType type) { return {n.value * element_bytes(type)}; }

// "float32", "bfloat16", ...; "sum", "premul_sum", ...
std::string_view name_of(DataType type);
std::string_view name_of(ReduceOp op);

// From a name, or from a value that came from outside (C API, wire); nothing for one that is not in the list.
std::optional<DataType> data_type_from(std::string_view name);
std::optional<DataType> data_type_from(int value);
std::optional<ReduceOp> reduce_op_from(std::string_view name);

constexpr Rank next(Rank r, World w) { return {r.value + 1 == w.value ? 0 : r.value + 1}; }
constexpr Rank prev(Rank r, World w) { return {r.value == 0 ? w.value - 1 : r.value - 1}; }

}  // namespace shoal
