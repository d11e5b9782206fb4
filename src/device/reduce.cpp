// SPDX-License-Identifier: Apache-2.0
#include "device/reduce.h"

#include <cstring>

#include "core/expects.h"
#include "device/convert.h"
#include "device/reduce_tables.h"

namespace shoal::device {
namespace {

template <class T>
T read(const void* element) {
  T value;
  std::memcpy(&value, element, sizeof value);  // may be unaligned
  return value;
}

float read_float32(DataType type, const void* element) {
  switch (type) {
    case DataType::float16: return from_float16(read<std::uint16_t>(element));
    case DataType::bfloat16: return from_bfloat16(read<std::uint16_t>(element));
    case DataType::float8_e4m3: return from_float8_e4m3(read<std::uint8_t>(element));
    case DataType::float8_e5m2: return from_float8_e5m2(read<std::uint8_t>(element));
    case DataType::float32: return read<float>(element);
    case DataType::float64:
    case DataType::int8:
    case DataType::uint8:
    case DataType::int32:
    case DataType::uint32:
    case DataType::int64:
    case DataType::uint64: break;
  }
  return 1;
}

std::uint64_t read_bits(std::size_t bytes, const void* element) {
  switch (bytes) {
    case 1: return read<std::uint8_t>(element);
    case 4: return read<std::uint32_t>(element);
    default: return read<std::uint64_t>(element);
  }
}

}  // namespace

Scale make_scale(DataType type, ReduceOp op, World world, const void* premul) {
  Scale scale;
  if (op == ReduceOp::avg) {
    expects(world.value >= 1, "make_scale: a world has at least one rank");
    scale.factor64 = 1.0 / world.value;
    scale.factor32 = static_cast<float>(scale.factor64);
    scale.divisor = static_cast<std::uint64_t>(world.value);
  }
  if (op == ReduceOp::premul_sum) {
    expects(premul != nullptr, "make_scale: premul_sum needs a factor");
    if (is_integer(type))
      scale.factor_bits = read_bits(element_bytes(type), premul);
    else if (type == DataType::float64)
      scale.factor64 = read<double>(premul);
    else
      scale.factor32 = read_float32(type, premul);
  }
  return scale;
}

const ReduceKernels& kernels(DataType type, ReduceOp op) {
  const auto index = static_cast<std::size_t>(op);
  switch (type) {
    case DataType::int8:
    case DataType::uint8:
    case DataType::int32:
    case DataType::uint32:
    case DataType::int64:
    case DataType::uint64: return integer_kernels(type)[index];
    case DataType::float32:
    case DataType::float64: return float32_64_kernels(type)[index];
    case DataType::float16:
    case DataType::bfloat16: return float16_kernels(type)[index];
    case DataType::float8_e4m3:
    case DataType::float8_e5m2: break;
  }
  return float8_kernels(type)[index];
}

bool scales_input(DataType type, ReduceOp op) { return op == ReduceOp::premul_sum || (op == ReduceOp::avg && !is_integer(type)); }

}  // namespace shoal::device
