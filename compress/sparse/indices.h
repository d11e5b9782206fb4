// SPDX-License-Identifier: Apache-2.0
// Sparse vectors on the wire: a byte that names the format, the indices, the values. Of n elements, k entries:
//
//   list     k 32-bit indices, k values
//   runs     for every entry the number of elements left out before it, 16 bits; then the values. A gap of more than 65535 is
//            crossed by fillers, run 65535 with value +0, which stand for the element that they reach (Lin et al., ICLR 2018)
//   bitmap   ceil(n / 8) bytes, the lowest bit first, the bits behind the n-th zero; k values
//   dense    n values
//
// Little endian, unaligned. What is read is what was written, but for entries of value +0, which change no sum and may be left
// out. Reading checks every byte: invalid_usage says what is wrong, and nothing outside the vector is touched.
// Pure functions: any thread, no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "compress/sparse/entries.h"
#include "core/status.h"

namespace shoal::compress::sparse {

enum class Format : std::uint8_t { list, runs, bitmap, dense };
enum class ValueType : std::uint8_t { fp32, fp16 };
constexpr int kFormats = 4;
std::string_view name_of(Format format);

constexpr std::uint64_t bytes_of(ValueType type) { return type == ValueType::fp32 ? 4 : 2; }

// The nearest value of the type: beyond fp16's range its largest one, so that no value becomes infinite.
float rounded(float value, ValueType type);

// Bytes of a message, exactly. `fillers` are those of runs.
std::uint64_t wire_bytes(Format format, std::uint64_t entries, std::uint64_t fillers, std::uint64_t n, ValueType type);

// Of entries with indices within [base, base + n), which travel as those of a vector of n elements.
std::uint64_t fillers_of(std::span<const std::uint32_t> indices, std::uint64_t base);

struct Layout {
  Format format = Format::list;
  std::uint64_t bytes = 0;
};
// The shortest format; at equal length the first one.
Layout layout_of(EntriesView entries, std::uint64_t base, std::uint64_t n, ValueType type);

// Writes the layout's bytes. Values must be what `rounded` leaves as they are.
void encode(EntriesView entries, std::uint64_t base, std::uint64_t n, ValueType type, Layout layout, std::byte* wire);
// The same for a vector as it is, dense: wire_bytes(Format::dense, ...).
void encode_dense(std::span<const float> values, ValueType type, std::byte* wire);

// True if the message is of the dense format (and perhaps malformed).
bool is_dense(std::span<const std::byte> wire);
// Appends the entries.
Status decode(std::span<const std::byte> wire, std::uint64_t n, Entries& out);
// sum[index] += value.
Status decode_add(std::span<const std::byte> wire, std::uint64_t n, float* sum);

}  // namespace shoal::compress::sparse
