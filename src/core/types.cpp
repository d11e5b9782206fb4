// SPDX-License-Identifier: Apache-2.0
#include "core/types.h"

#include <array>

namespace shoal {
namespace {

constexpr std::array<std::string_view, kDataTypes> kTypeNames = {"int8",    "uint8",    "int32",       "uint32",
                                                                 "int64",   "uint64",   "float16",     "float32",
                                                                 "float64", "bfloat16", "float8_e4m3", "float8_e5m2"};
constexpr std::array<std::string_view, kReduceOps> kOpNames = {"sum", "prod", "max", "min", "avg", "premul_sum"};

}  // namespace

std::string_view name_of(DataType type) { return kTypeNames[static_cast<std::size_t>(type)]; }
std::string_view name_of(ReduceOp op) { return kOpNames[static_cast<std::size_t>(op)]; }

std::optional<DataType> data_type_from(std::string_view name) {
  for (int i = 0; i < kDataTypes; ++i)
    if (kTypeNames[static_cast<std::size_t>(i)] == name) return static_cast<DataType>(i);
  return std::nullopt;
}

std::optional<DataType> data_type_from(int value) {
  if (value < 0 || value >= kDataTypes) return std::nullopt;
  return static_cast<DataType>(value);
}

std::optional<ReduceOp> reduce_op_from(std::string_view name) {
  for (int i = 0; i < kReduceOps; ++i)
    if (kOpNames[static_cast<std::size_t>(i)] == name) return static_cast<ReduceOp>(i);
  return std::nullopt;
}

}  // namespace shoal
