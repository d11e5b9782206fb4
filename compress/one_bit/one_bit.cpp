// SPDX-License-Identifier: Apache-2.0
// Kernels work on 8 rows of 16 columns, which is a cache line of each row, whatever the width of a vector is; along the columns
// first, because a memory page often ends with the row, and more pages at a time are more than a processor can foresee.
#include "compress/one_bit/one_bit.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/one_bit/one_bit.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "compress/one_bit/group.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::compress::one_bit::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<float, kLanes>;
using Words = hn::RebindToUnsigned<Tag>;
constexpr std::size_t kVector = hn::MaxLanes(Tag());  // lanes of a register
constexpr std::size_t kParts = kLanes / kVector;
constexpr std::size_t kRowsAtOnce = 8;
constexpr std::size_t kAhead = 4 * kLanes;  // elements of a row that are fetched before they are needed: 4 cache lines

template <bool kResidual>
HWY_INLINE hn::Vec<Tag> meant(const Group& group, std::size_t at) {
  const Tag d;
  const auto v = hn::Mul(hn::Set(d, group.scale), hn::LoadU(d, group.input + at));
  if constexpr (kResidual) return hn::Add(v, hn::LoadU(d, group.residual + at));
  return v;
}

template <bool kResidual>
HWY_INLINE void encode16(const Group& group, std::size_t first, std::size_t column, Sums& sums) {
  const Tag d;
  const Words w;
  hn::Vec<Tag> upper[kParts], lower[kParts];
  hn::Vec<Words> bits[kParts];
  for (std::size_t part = 0; part < kParts; ++part) {
    upper[part] = lower[part] = hn::Zero(d);
    bits[part] = hn::Zero(w);
  }
  const std::size_t end = HWY_MIN(group.rows, first + kRowsAtOnce);
  auto bit = hn::Set(w, std::uint32_t{1} << first);
  for (std::size_t row = first; row < end; ++row) {
    const std::size_t at = row * group.stride + column;
    hwy::Prefetch(group.input + at + kAhead);
    if constexpr (kResidual) hwy::Prefetch(group.residual + at + kAhead);
    for (std::size_t part = 0; part < kParts; ++part) {
      const auto v = meant<kResidual>(group, at + part * kVector);
      const auto is_upper = hn::Ge(v, hn::Zero(d));
      upper[part] = hn::Add(upper[part], hn::IfThenElseZero(is_upper, v));
      lower[part] = hn::Add(lower[part], hn::IfThenZeroElse(is_upper, v));
      bits[part] = hn::Or(bits[part], hn::IfThenElseZero(hn::RebindMask(w, is_upper), bit));
    }
    bit = hn::Add(bit, bit);
  }
  for (std::size_t part = 0; part < kParts; ++part) {
    const std::size_t at = column + part * kVector;
    hn::StoreU(hn::Add(hn::LoadU(d, sums.upper + at), upper[part]), d, sums.upper + at);
    hn::StoreU(hn::Add(hn::LoadU(d, sums.lower + at), lower[part]), d, sums.lower + at);
    hn::StoreU(hn::Add(hn::LoadU(w, sums.ones + at), hn::PopulationCount(bits[part])), w, sums.ones + at);
    hn::StoreU(first == 0 ? bits[part] : hn::Or(hn::LoadU(w, sums.words + at), bits[part]), w, sums.words + at);
  }
}

HWY_INLINE hn::Vec<Tag> decoded(const Means& means, std::size_t column, hn::Vec<Words> bit) {
  const Tag d;
  const auto is_upper = hn::TestBit(hn::LoadU(Words(), means.words + column), bit);
  return hn::IfThenElse(hn::RebindMask(d, is_upper), hn::LoadU(d, means.upper + column), hn::LoadU(d, means.lower + column));
}

template <bool kAdd>
HWY_INLINE void decode16(const Means& means, std::size_t first, std::size_t column, std::size_t rows, std::size_t stride,
                         float* out) {
  const Tag d;
  const std::size_t end = HWY_MIN(rows, first + kRowsAtOnce);
  auto bit = hn::Set(Words(), std::uint32_t{1} << first);
  for (std::size_t row = first; row < end; ++row) {
    for (std::size_t part = 0; part < kParts; ++part) {
      float* to = out + row * stride + column + part * kVector;
      auto v = decoded(means, column + part * kVector, bit);
      if constexpr (kAdd) v = hn::Add(hn::LoadU(d, to), v);
      hn::StoreU(v, d, to);
    }
    bit = hn::Add(bit, bit);
  }
}

HWY_INLINE void keep16(const Group& group, std::size_t first, std::size_t column, const Means& means, float* residual) {
  const Tag d;
  const std::size_t end = HWY_MIN(group.rows, first + kRowsAtOnce);
  auto bit = hn::Set(Words(), std::uint32_t{1} << first);
  for (std::size_t row = first; row < end; ++row) {
    const std::size_t at = row * group.stride + column;
    hwy::Prefetch(group.input + at + kAhead);
    hwy::Prefetch(residual + at + kAhead);
    for (std::size_t part = 0; part < kParts; ++part) {
      float* to = residual + at + part * kVector;
      const auto before = hn::LoadU(d, to);
      const auto sent = decoded(means, column + part * kVector, bit);
      const auto left = hn::Sub(meant<true>(group, at + part * kVector), sent);
      hn::StoreU(hn::IfThenElse(hn::Eq(sent, sent), left, before), d, to);
    }
    bit = hn::Add(bit, bit);
  }
}

void encode_group(const Group& group, std::size_t width, Sums& sums) {
  for (std::size_t first = 0; first < group.rows; first += kRowsAtOnce)
    for (std::size_t column = 0; column < width; column += kLanes)
      if (group.residual == nullptr)
        encode16<false>(group, first, column, sums);
      else
        encode16<true>(group, first, column, sums);
}

void decode_group(const Means& means, std::size_t rows, std::size_t width, std::size_t stride, bool add, float* out) {
  for (std::size_t first = 0; first < rows; first += kRowsAtOnce)
    for (std::size_t column = 0; column < width; column += kLanes)
      if (add)
        decode16<true>(means, first, column, rows, stride, out);
      else
        decode16<false>(means, first, column, rows, stride, out);
}

void keep_group(const Group& group, std::size_t width, const Means& means, float* residual) {
  for (std::size_t first = 0; first < group.rows; first += kRowsAtOnce)
    for (std::size_t column = 0; column < width; column += kLanes) keep16(group, first, column, means, residual);
}

}  // namespace shoal::compress::one_bit::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::compress::one_bit {
namespace {

HWY_EXPORT(encode_group);
HWY_EXPORT(decode_group);
HWY_EXPORT(keep_group);

static_assert(std::endian::native == std::endian::little, "words go to the wire as they lie in memory");

// A matrix's columns beyond a multiple of 16, with zeros beside them: 32 rows of one vector's width.
struct Edge {
  alignas(64) float input[kRows * kLanes];
  alignas(64) float residual[kRows * kLanes];

  static void gather(const float* from, std::size_t stride, std::size_t rows, std::size_t width, float* to) {
    for (std::size_t row = 0; row < rows; ++row) {
      std::fill_n(to + row * kLanes, kLanes, 0.0F);
      std::copy_n(from + row * stride, width, to + row * kLanes);
    }
  }
  static void scatter(const float* from, std::size_t stride, std::size_t rows, std::size_t width, float* to) {
    for (std::size_t row = 0; row < rows; ++row) std::copy_n(from + row * kLanes, width, to + row * stride);
  }
};

// Whole vectors of columns, and the edge.
std::size_t whole(std::size_t width) { return width / kLanes * kLanes; }

void encode_columns(const Group& group, std::size_t width, Sums& sums) {
  const std::size_t edge_at = whole(width), edge_width = width - edge_at;
  HWY_DYNAMIC_DISPATCH(encode_group)(group, edge_at, sums);
  if (edge_width == 0) return;
  Edge edge;
  Edge::gather(group.input + edge_at, group.stride, group.rows, edge_width, edge.input);
  if (group.residual != nullptr) Edge::gather(group.residual + edge_at, group.stride, group.rows, edge_width, edge.residual);
  const Group padded{edge.input, group.residual == nullptr ? nullptr : edge.residual, group.scale, group.rows, kLanes};
  Sums at_edge = sums.from(edge_at);
  HWY_DYNAMIC_DISPATCH(encode_group)(padded, kLanes, at_edge);
}

void decode_columns(const Means& means, std::size_t rows, std::size_t width, std::size_t stride, bool add, float* out) {
  const std::size_t edge_at = whole(width), edge_width = width - edge_at;
  HWY_DYNAMIC_DISPATCH(decode_group)(means, rows, edge_at, stride, add, out);
  if (edge_width == 0) return;
  Edge edge;
  if (add) Edge::gather(out + edge_at, stride, rows, edge_width, edge.input);
  HWY_DYNAMIC_DISPATCH(decode_group)(means.from(edge_at), rows, kLanes, kLanes, add, edge.input);
  Edge::scatter(edge.input, stride, rows, edge_width, out + edge_at);
}

void keep_columns(const Group& group, std::size_t width, const Means& means, float* residual) {
  const std::size_t edge_at = whole(width), edge_width = width - edge_at;
  HWY_DYNAMIC_DISPATCH(keep_group)(group, edge_at, means, residual);
  if (edge_width == 0) return;
  Edge edge;
  Edge::gather(group.input + edge_at, group.stride, group.rows, edge_width, edge.input);
  Edge::gather(residual + edge_at, group.stride, group.rows, edge_width, edge.residual);
  const Group padded{edge.input, edge.residual, group.scale, group.rows, kLanes};
  HWY_DYNAMIC_DISPATCH(keep_group)(padded, kLanes, means.from(edge_at), edge.residual);
  Edge::scatter(edge.residual, group.stride, group.rows, edge_width, residual + edge_at);
}

// Consecutive columns of one length that are worked on together.
struct Panel {
  std::size_t first_column, first_element;
  std::size_t rows, width, stride;
  bool one;  // all of it is one column
  std::size_t bytes() const { return width * ((rows + 7) / 8); }
};

template <class F>
void for_each_panel(const Columns& columns, F f) {
  if (columns.column == 0) {
    for (std::size_t k = 0; k < columns.width; k += kWidth)
      f(Panel{k, k, columns.rows, std::min(kWidth, columns.width - k), columns.stride, false});
    return;
  }
  const std::size_t full = columns.rows / columns.column, rest = columns.rows % columns.column;
  for (std::size_t k = 0; k < full; ++k) f(Panel{k, k * columns.column, columns.column / kLanes, kLanes, kLanes, true});
  if (rest > 0) f(Panel{full, full * columns.column, rest, 1, 1, true});
}

// Up to 32 rows of a panel begin with row `first`: f(first, rows, where their bits are on the wire).
template <class Bytes, class F>
void for_each_group(const Panel& panel, Bytes* bits, F f) {
  for (std::size_t first = 0; first < panel.rows; first += kRows) {
    const std::size_t rows = std::min(kRows, panel.rows - first);
    f(first, rows, bits);
    bits += panel.width * ((rows + 7) / 8);
  }
}

void write_words(const std::uint32_t* words, std::size_t rows, std::size_t width, std::byte* to) {
  if (rows > kRows - 8) {
    std::memcpy(to, words, width * sizeof *words);
    return;
  }
  for (std::size_t shift = 0; shift < rows; shift += 8)
    for (std::size_t k = 0; k < width; ++k) *to++ = static_cast<std::byte>(words[k] >> shift);
}

void read_words(const std::byte* from, std::size_t rows, std::size_t width, std::uint32_t* words) {
  if (rows > kRows - 8) {
    std::memcpy(words, from, width * sizeof *words);
    return;
  }
  std::fill_n(words, width, 0U);
  for (std::size_t shift = 0; shift < rows; shift += 8)
    for (std::size_t k = 0; k < width; ++k) words[k] |= std::to_integer<std::uint32_t>(*from++) << shift;
}

struct Pair {
  float upper, lower;
};

Pair means_of(float upper, float lower, std::size_t ones, std::size_t n) {
  const Pair means{ones == 0 ? 0.0F : upper / static_cast<float>(ones), ones == n ? 0.0F : lower / static_cast<float>(n - ones)};
  if (std::isfinite(means.upper) && std::isfinite(means.lower)) return means;
  return {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::quiet_NaN()};
}

// Where the parts of a stripe's wire are.
template <class Bytes>
struct Wire {
  Wire(const Columns& columns, Bytes* wire)
      : upper(wire), lower(wire + sizeof(float) * columns.count()), bits(lower + sizeof(float) * columns.count()) {}
  Bytes *upper, *lower, *bits;
};

// f(panel, its means, where its bits are)
template <class F>
void for_each_decoded(const Columns& columns, const std::byte* wire, F f) {
  const Wire<const std::byte> parts(columns, wire);
  const std::byte* bits = parts.bits;
  Table table{};
  for_each_panel(columns, [&](const Panel& panel) {
    const std::size_t at = sizeof(float) * panel.first_column;
    if (panel.one) {
      Pair means;
      std::memcpy(&means.upper, parts.upper + at, sizeof(float));
      std::memcpy(&means.lower, parts.lower + at, sizeof(float));
      std::fill_n(table.upper, panel.width, means.upper);
      std::fill_n(table.lower, panel.width, means.lower);
    } else {
      std::memcpy(table.upper, parts.upper + at, sizeof(float) * panel.width);
      std::memcpy(table.lower, parts.lower + at, sizeof(float) * panel.width);
    }
    for_each_group(panel, bits, [&](std::size_t first, std::size_t rows, const std::byte* from) {
      read_words(from, rows, panel.width, table.words);
      f(panel, first, rows, Means{table.upper, table.lower, table.words});
    });
    bits += panel.bytes();
  });
}

void decode_to(const Columns& columns, const std::byte* wire, bool add, float* out) {
  for_each_decoded(columns, wire, [&](const Panel& panel, std::size_t first, std::size_t rows, const Means& means) {
    decode_columns(means, rows, panel.width, panel.stride, add, out + panel.first_element + first * panel.stride);
  });
}

}  // namespace

void encode(const Columns& columns, const Meant& meant, std::byte* wire) {
  const Wire<std::byte> parts(columns, wire);
  std::byte* bits = parts.bits;
  Table table{};
  for_each_panel(columns, [&](const Panel& panel) {
    std::fill_n(table.upper, panel.width, 0.0F);
    std::fill_n(table.lower, panel.width, 0.0F);
    std::fill_n(table.ones, panel.width, 0U);
    Sums sums{table.upper, table.lower, table.ones, table.words};
    for_each_group(panel, bits, [&](std::size_t first, std::size_t rows, std::byte* to) {
      const std::size_t at = panel.first_element + first * panel.stride;
      const float* residual = meant.residual == nullptr ? nullptr : meant.residual + at;
      encode_columns({meant.input + at, residual, meant.scale, rows, panel.stride}, panel.width, sums);
      write_words(table.words, rows, panel.width, to);
    });
    bits += panel.bytes();
    if (panel.one)
      for (std::size_t k = 1; k < panel.width; ++k) {
        table.upper[0] += table.upper[k];
        table.lower[0] += table.lower[k];
        table.ones[0] += table.ones[k];
      }
    const std::size_t count = panel.one ? 1 : panel.width, n = panel.one ? panel.rows * panel.width : panel.rows;
    for (std::size_t k = 0; k < count; ++k) {
      const Pair means = means_of(table.upper[k], table.lower[k], table.ones[k], n);
      std::memcpy(parts.upper + sizeof(float) * (panel.first_column + k), &means.upper, sizeof(float));
      std::memcpy(parts.lower + sizeof(float) * (panel.first_column + k), &means.lower, sizeof(float));
    }
  });
}

void decode(const Columns& columns, const std::byte* wire, float* out) { decode_to(columns, wire, false, out); }
void decode_add(const Columns& columns, const std::byte* wire, float* sum) { decode_to(columns, wire, true, sum); }

void keep(const Columns& columns, const float* input, float scale, const std::byte* wire, float* residual) {
  for_each_decoded(columns, wire, [&](const Panel& panel, std::size_t first, std::size_t rows, const Means& means) {
    const std::size_t at = panel.first_element + first * panel.stride;
    keep_columns({input + at, residual + at, scale, rows, panel.stride}, panel.width, means, residual + at);
  });
}

}  // namespace shoal::compress::one_bit
#endif
