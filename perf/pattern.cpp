// SPDX-License-Identifier: Apache-2.0
#include "perf/pattern.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace shoal::perf {
namespace {

constexpr std::array<ReductionInfo, 6> kReductions = {{{Reduction::sum, "sum", ncclSum},
                                                       {Reduction::prod, "prod", ncclProd},
                                                       {Reduction::max, "max", ncclMax},
                                                       {Reduction::min, "min", ncclMin},
                                                       {Reduction::avg, "avg", ncclAvg},
                                                       {Reduction::mulsum, "mulsum", ncclSum}}};

// Spreads a place in the data over 64 bits (the finaliser of MurmurHash3's 64-bit variants, after Stafford).
std::uint64_t scramble(std::uint64_t seed, int rank, std::size_t index) {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(rank) * 0xd1b54a32d192ed03U + index;
  for (int round = 0; round < 2; ++round) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    x ^= x >> 31;
  }
  return x;
}

// Whether `rank` is among the `width` ranks whose turn it is at `index`.
bool in_window(const DataSpec& spec, int rank, std::size_t index, std::uint64_t width) {
  const auto world = static_cast<std::uint64_t>(spec.world);
  return (static_cast<std::uint64_t>(rank) + index + spec.seed) % world < width;
}

double sum_term(const DataSpec& spec, int rank, std::size_t index) {
  const std::uint64_t random = scramble(spec.seed, rank, index);
  const auto world = static_cast<std::uint64_t>(spec.world);
  const std::uint64_t limit = exact_limit(*spec.type) / (spec.reduction == Reduction::mulsum ? 2 : 1);
  if (world > limit) return !in_window(spec, rank, index, limit) ? 0.0 : (random & 1) != 0 ? 1.0 : -1.0;
  const std::uint64_t share = limit / world;  // each rank's largest magnitude
  return static_cast<double>(static_cast<std::int64_t>(random % (2 * share + 1)) - static_cast<std::int64_t>(share));
}

double average_term(const DataSpec& spec, int rank, std::size_t index) {
  constexpr std::uint64_t kMostTerms = 4;
  const std::uint64_t common = scramble(spec.seed, -1, index);  // terms of one index have one sign: nothing cancels
  if (!in_window(spec, rank, index, 1 + common % kMostTerms)) return 0;
  const auto size = static_cast<double>(1 << (common >> 8) % 7);  // 4 x 2^6 is within every type
  return (common >> 16 & 1) != 0 ? size : -size;
}

double product_factor(const DataSpec& spec, int rank, std::size_t index) {
  constexpr std::uint64_t kMostTwos = 8;  // 2^8 is the largest power of two of f8e4m3
  const std::uint64_t twos =
      scramble(spec.seed, -1, index) % (std::min<std::uint64_t>(kMostTwos, static_cast<std::uint64_t>(spec.world)) + 1);
  const double size = in_window(spec, rank, index, twos) ? 2.0 : 1.0;
  return (scramble(spec.seed, rank, index) & 1) != 0 ? size : -size;
}

Bits any_number(const ElementType& type, std::uint64_t random) {
  Bits bits = from_integer(type, random);
  const Bits sign = Bits{1} << (8 * type.bytes - 1);
  const Bits top_exponent_bit = sign >> 1;
  if (is_nan(type, bits) || is_infinite(type, bits)) bits ^= top_exponent_bit;
  return bits == sign ? 0 : bits;
}

// What a rank puts in, as a number that the type holds exactly.
double floating_input(const DataSpec& spec, int rank, std::size_t index) {
  switch (spec.reduction) {
    case Reduction::sum:
    case Reduction::mulsum: return sum_term(spec, rank, index);
    case Reduction::avg: return average_term(spec, rank, index);
    case Reduction::prod: return product_factor(spec, rank, index);
    case Reduction::min:
    case Reduction::max: return decode(*spec.type, any_number(*spec.type, scramble(spec.seed, rank, index)));
  }
  return 0;
}

Bits floating_result(const DataSpec& spec, std::size_t index) {
  double total = floating_input(spec, 0, index);  // every operation below is exact in a double
  for (int rank = 1; rank < spec.world; ++rank) {
    const double next = floating_input(spec, rank, index);
    switch (spec.reduction) {
      case Reduction::sum:
      case Reduction::avg: total += next; break;
      case Reduction::mulsum: total += mulsum_factor(rank) * next; break;
      case Reduction::prod: total *= next; break;
      case Reduction::min: total = std::min(total, next); break;
      case Reduction::max: total = std::max(total, next); break;
    }
  }
  if (spec.reduction == Reduction::avg) total /= spec.world;
  // Sums of opposite terms are +0; so must be 0 / n.
  return encode(*spec.type, total == 0 ? 0.0 : total);
}

Bits integer_result(const DataSpec& spec, std::size_t index) {
  const ElementType& type = *spec.type;
  const bool is_signed = type.kind == Kind::signed_integer;
  std::uint64_t total = input_bits(spec, 0, index);
  for (int rank = 1; rank < spec.world; ++rank) {
    const Bits next = input_bits(spec, rank, index);
    const bool next_is_less = is_signed ? to_signed(type, next) < to_signed(type, total) : next < total;
    switch (spec.reduction) {
      case Reduction::sum:
      case Reduction::avg: total += next; break;
      case Reduction::mulsum: total += static_cast<std::uint64_t>(mulsum_factor(rank)) * next; break;
      case Reduction::prod: total *= next; break;
      case Reduction::min: total = next_is_less ? next : total; break;
      case Reduction::max: total = next_is_less ? total : next; break;
    }
  }
  const Bits wrapped = from_integer(type, total);
  if (spec.reduction != Reduction::avg) return wrapped;
  return is_signed ? from_integer(type, static_cast<std::uint64_t>(to_signed(type, wrapped) / spec.world))
                   : wrapped / static_cast<std::uint64_t>(spec.world);
}

}  // namespace

std::span<const ReductionInfo> reductions() { return kReductions; }

const ReductionInfo* find_reduction(std::string_view name) {
  for (const ReductionInfo& info : kReductions) {
    if (name == info.name) return &info;
  }
  return nullptr;
}

Bits input_bits(const DataSpec& spec, int rank, std::size_t index) {
  const ElementType& type = *spec.type;
  if (type.kind != Kind::floating) {
    return from_integer(type, scramble(spec.seed, rank, index) | (spec.reduction == Reduction::prod ? 1 : 0));
  }
  return encode(type, floating_input(spec, rank, index));
}

Bits result_bits(const DataSpec& spec, std::size_t index) {
  return spec.type->kind == Kind::floating ? floating_result(spec, index) : integer_result(spec, index);
}

bool is_right(const DataSpec& spec, Bits expected, Bits got) {
  if (expected == got) return true;
  constexpr std::uint64_t kAverageUlps = 2;
  const bool rounded = spec.reduction == Reduction::avg && spec.type->kind == Kind::floating;
  return rounded && ulps_between(*spec.type, expected, got) <= kAverageUlps;
}

Pattern::Pattern(const DataSpec& spec, std::size_t longest) : spec_(spec), length_(std::min(longest, kPeriod)) {}

template <typename Element>
Pattern::Table Pattern::make_table(Element element) const {
  Table table(length_ * spec_.type->bytes);
  for (std::size_t i = 0; i < length_; ++i) store(*spec_.type, element(i), table.data() + i * spec_.type->bytes);
  return table;
}

const Pattern::Table& Pattern::inputs(int rank) {
  Table& table = inputs_[rank];
  if (table.empty()) table = make_table([&](std::size_t i) { return input_bits(spec_, rank, i); });
  return table;
}

const Pattern::Table& Pattern::results() {
  if (results_.empty()) results_ = make_table([&](std::size_t i) { return result_bits(spec_, i); });
  return results_;
}

void Pattern::write_input(std::span<std::byte> buffer, int rank, std::size_t first) {
  if (buffer.empty()) return;
  const Table& table = inputs(rank);
  std::size_t from = first * spec_.type->bytes % table.size();
  while (!buffer.empty()) {
    const std::size_t piece = std::min(buffer.size(), table.size() - from);
    std::memcpy(buffer.data(), table.data() + from, piece);
    buffer = buffer.subspan(piece);
    from = 0;
  }
}

std::int64_t Pattern::wrong_inputs(std::span<const std::byte> buffer, int rank, std::size_t first) {
  return buffer.empty() ? 0 : count_wrong(buffer, inputs(rank), first);
}

std::int64_t Pattern::wrong_results(std::span<const std::byte> buffer, std::size_t first) {
  return buffer.empty() ? 0 : count_wrong(buffer, results(), first);
}

std::int64_t Pattern::count_wrong(std::span<const std::byte> buffer, const Table& table, std::size_t first) const {
  const ElementType& type = *spec_.type;
  std::int64_t wrong = 0;
  std::size_t from = first * type.bytes % table.size();
  while (!buffer.empty()) {
    const std::size_t piece = std::min(buffer.size(), table.size() - from);
    if (std::memcmp(buffer.data(), table.data() + from, piece) != 0) {
      for (std::size_t at = 0; at < piece; at += type.bytes) {
        if (!is_right(spec_, load(type, table.data() + from + at), load(type, buffer.data() + at))) ++wrong;
      }
    }
    buffer = buffer.subspan(piece);
    from = 0;
  }
  return wrong;
}

}  // namespace shoal::perf
