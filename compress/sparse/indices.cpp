// SPDX-License-Identifier: Apache-2.0
#include "compress/sparse/indices.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "device/convert.h"

namespace shoal::compress::sparse {
namespace {

constexpr std::uint32_t kLongestRun = 65535;
constexpr float kLargestFloat16 = 65504;

template <class T>
void put(std::byte*& to, T value) {
  std::memcpy(to, &value, sizeof value);
  to += sizeof value;
}

template <class T>
T get(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

void put_value(std::byte*& to, float value, ValueType type) {
  if (type == ValueType::fp32)
    put(to, value);
  else
    put(to, device::to_float16(value));
}

// The first byte: the format in the low four bits, the values' type above.
std::byte head_of(Format format, ValueType type) {
  return static_cast<std::byte>(static_cast<unsigned>(format) | static_cast<unsigned>(type) << 4);
}

// The values of a message, one after the other.
struct Values {
  const std::byte* from;
  ValueType type;
  float operator[](std::uint64_t i) const {
    return type == ValueType::fp32 ? get<float>(from + 4 * i) : device::from_float16(get<std::uint16_t>(from + 2 * i));
  }
};

bool is_filler(std::uint32_t run, float value) { return run == kLongestRun && std::bit_cast<std::uint32_t>(value) == 0; }

template <class Take>
Status read_list(std::span<const std::byte> body, std::uint64_t n, ValueType type, Take take) {
  const std::uint64_t each = 4 + bytes_of(type), k = body.size() / each;
  if (body.size() % each != 0 || k > n)
    return fail(Code::invalid_usage, "sparse list of {} bytes: entries have {}, and at most {} elements", body.size(), each, n);
  const Values values{body.data() + 4 * k, type};
  std::uint64_t next = 0;  // the least index that may come
  for (std::uint64_t i = 0; i < k; ++i) {
    const auto index = get<std::uint32_t>(body.data() + 4 * i);
    if (index < next || index >= n)
      return fail(Code::invalid_usage, "sparse list: index {} as entry {}: must be within [{}, {})", index, i, next, n);
    next = std::uint64_t{index} + 1;
    take(index, values[i]);
  }
  return {};
}

template <class Take>
Status read_runs(std::span<const std::byte> body, std::uint64_t n, ValueType type, Take take) {
  const std::uint64_t each = 2 + bytes_of(type), k = body.size() / each;
  if (body.size() % each != 0) return fail(Code::invalid_usage, "sparse runs of {} bytes: entries have {}", body.size(), each);
  const Values values{body.data() + 2 * k, type};
  std::uint64_t next = 0;  // behind the last element reached
  for (std::uint64_t i = 0; i < k; ++i) {
    const std::uint32_t run = get<std::uint16_t>(body.data() + 2 * i);
    const std::uint64_t index = next + run;
    if (index >= n) return fail(Code::invalid_usage, "sparse runs: entry {} is element {} of {}", i, index, n);
    next = index + 1;
    const float value = values[i];
    if (!is_filler(run, value)) take(static_cast<std::uint32_t>(index), value);
  }
  return {};
}

template <class Take>
Status read_bitmap(std::span<const std::byte> body, std::uint64_t n, ValueType type, Take take) {
  const std::uint64_t bytes = n / 8 + (n % 8 != 0 ? 1 : 0);
  if (body.size() < bytes)
    return fail(Code::invalid_usage, "sparse bitmap of {} bytes: the bits of {} elements are {}", body.size(), n, bytes);
  const auto at = [&](std::uint64_t i) { return std::to_integer<unsigned>(body[i]); };
  if (n % 8 != 0 && at(bytes - 1) >> n % 8 != 0)
    return fail(Code::invalid_usage, "sparse bitmap: bits are set behind the last one of {} elements", n);
  std::uint64_t k = 0;
  for (std::uint64_t i = 0; i < bytes; ++i) k += static_cast<std::uint64_t>(std::popcount(at(i)));
  if (body.size() - bytes != k * bytes_of(type))
    return fail(Code::invalid_usage, "sparse bitmap: {} bits are set, and {} bytes of values follow, {} each", k,
                body.size() - bytes, bytes_of(type));
  const Values values{body.data() + bytes, type};
  std::uint64_t entry = 0;
  for (std::uint64_t i = 0; i < bytes; ++i)
    for (unsigned bits = at(i); bits != 0; bits &= bits - 1)
      take(static_cast<std::uint32_t>(8 * i + static_cast<unsigned>(std::countr_zero(bits))), values[entry++]);
  return {};
}

template <class Take>
Status read_dense(std::span<const std::byte> body, std::uint64_t n, ValueType type, Take take) {
  if (body.size() != n * bytes_of(type))
    return fail(Code::invalid_usage, "dense vector of {} bytes: {} elements have {}", body.size(), n, n * bytes_of(type));
  const Values values{body.data(), type};
  for (std::uint64_t i = 0; i < n; ++i) {
    const float value = values[i];
    if (std::bit_cast<std::uint32_t>(value) != 0) take(static_cast<std::uint32_t>(i), value);
  }
  return {};
}

template <class Take>
Status read(std::span<const std::byte> wire, std::uint64_t n, Take take) {
  if (wire.empty()) return fail(Code::invalid_usage, "sparse message without a byte, of {} elements", n);
  if (n > kMostElements) return fail(Code::invalid_usage, "sparse message of {} elements: indices have 32 bits", n);
  const auto head = std::to_integer<unsigned>(wire.front());
  if (head >> 4 > 1 || (head & 15) >= kFormats)
    return fail(Code::invalid_usage, "sparse message: there is no format {:#04x}", head);
  const auto type = static_cast<ValueType>(head >> 4);
  const std::span<const std::byte> body = wire.subspan(1);
  switch (static_cast<Format>(head & 15)) {
    case Format::list: return read_list(body, n, type, take);
    case Format::runs: return read_runs(body, n, type, take);
    case Format::bitmap: return read_bitmap(body, n, type, take);
    case Format::dense: break;
  }
  return read_dense(body, n, type, take);
}

}  // namespace

std::string_view name_of(Format format) {
  switch (format) {
    case Format::list: return "list";
    case Format::runs: return "runs";
    case Format::bitmap: return "bitmap";
    case Format::dense: break;
  }
  return "dense";
}

float rounded(float value, ValueType type) {
  if (type == ValueType::fp32) return value;
  return device::from_float16(device::to_float16(std::clamp(value, -kLargestFloat16, kLargestFloat16)));
}

std::uint64_t wire_bytes(Format format, std::uint64_t entries, std::uint64_t fillers, std::uint64_t n, ValueType type) {
  const std::uint64_t value = bytes_of(type);
  switch (format) {
    case Format::list: return 1 + entries * (4 + value);
    case Format::runs: return 1 + (entries + fillers) * (2 + value);
    case Format::bitmap: return 1 + n / 8 + (n % 8 != 0 ? 1 : 0) + entries * value;
    case Format::dense: break;
  }
  return 1 + n * value;
}

std::uint64_t fillers_of(std::span<const std::uint32_t> indices, std::uint64_t base) {
  std::uint64_t fillers = 0, next = base;
  for (const std::uint32_t index : indices) {
    fillers += (index - next) / (kLongestRun + 1);
    next = std::uint64_t{index} + 1;
  }
  return fillers;
}

Layout layout_of(EntriesView entries, std::uint64_t base, std::uint64_t n, ValueType type) {
  const std::uint64_t fillers = fillers_of(entries.indices, base);
  Layout shortest{Format::list, wire_bytes(Format::list, entries.size(), fillers, n, type)};
  for (const Format each : {Format::runs, Format::bitmap, Format::dense})
    if (const std::uint64_t bytes = wire_bytes(each, entries.size(), fillers, n, type); bytes < shortest.bytes)
      shortest = {each, bytes};
  return shortest;
}

void encode(EntriesView entries, std::uint64_t base, std::uint64_t n, ValueType type, Layout layout, std::byte* wire) {
  std::byte* const start = wire;
  put(wire, head_of(layout.format, type));
  if (layout.format == Format::dense) {
    std::memset(wire, 0, n * bytes_of(type));
    for (std::size_t i = 0; i < entries.size(); ++i) {
      std::byte* to = wire + (entries.indices[i] - base) * bytes_of(type);
      put_value(to, entries.values[i], type);
    }
    return;
  }
  if (layout.format == Format::runs) {
    // Runs and values are apart, and fillers are in both: the values' place follows from the length.
    std::byte* values = start + 1 + (layout.bytes - 1) / (2 + bytes_of(type)) * 2;
    std::uint64_t next = base;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      for (; entries.indices[i] - next > kLongestRun; next += kLongestRun + 1) {
        put(wire, static_cast<std::uint16_t>(kLongestRun));
        put_value(values, 0, type);
      }
      put(wire, static_cast<std::uint16_t>(entries.indices[i] - next));
      put_value(values, entries.values[i], type);
      next = std::uint64_t{entries.indices[i]} + 1;
    }
    return;
  }
  if (layout.format == Format::list) {
    for (const std::uint32_t index : entries.indices) put(wire, static_cast<std::uint32_t>(index - base));
  } else {
    const std::uint64_t bytes = n / 8 + (n % 8 != 0 ? 1 : 0);
    std::memset(wire, 0, bytes);
    for (const std::uint32_t index : entries.indices) wire[(index - base) / 8] |= std::byte{1} << (index - base) % 8;
    wire += bytes;
  }
  for (const float value : entries.values) put_value(wire, value, type);
}

void encode_dense(std::span<const float> values, ValueType type, std::byte* wire) {
  put(wire, head_of(Format::dense, type));
  for (const float value : values) put_value(wire, value, type);
}

bool is_dense(std::span<const std::byte> wire) {
  return !wire.empty() && (std::to_integer<unsigned>(wire.front()) & 15) == static_cast<unsigned>(Format::dense);
}

Status decode(std::span<const std::byte> wire, std::uint64_t n, Entries& out) {
  return read(wire, n, [&](std::uint32_t index, float value) { out.push(index, value); });
}

Status decode_add(std::span<const std::byte> wire, std::uint64_t n, float* sum) {
  return read(wire, n, [&](std::uint32_t index, float value) { sum[index] += value; });
}

}  // namespace shoal::compress::sparse
