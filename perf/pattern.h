// SPDX-License-Identifier: Apache-2.0
// Inputs whose reduction is the same bits in every order and however often a partial result is rounded on the way, and what
// that reduction is. So a result is right or wrong, without a tolerance (but for averages of floats).
//
//   sum        whole numbers whose magnitudes add up to no more than the type holds exactly; where ranks outnumber that limit
//              (f8e5m2: 8), a window of ranks that moves with the index contributes 1 or -1, the others 0
//   avg        up to four ranks, a window that moves, contribute the same power of two, the others 0: whether a library divides
//              the sum or each input, it rounds by no more than the 2 ulp that count as right
//   mulsum     as sum, with room for the factors: 1 on even ranks, 2 on odd ones
//   prod       1 and -1, and on up to 8 ranks 2 or -2: every partial product is a power of two
//   min, max   any number but NaN, infinities and -0
//   integers   any bits, results wrap; factors of a product are odd, so that it never dies out
//
// Values repeat after kPeriod elements, a prime: no chunk of a power of two starts where another one did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "perf/element.h"

namespace shoal::perf {

enum class Reduction { sum, prod, min, max, avg, mulsum };

struct ReductionInfo {
  Reduction reduction;
  const char* name;
  ncclRedOp_t op;  // mulsum: made per communicator
};
std::span<const ReductionInfo> reductions();  // in the order of "-o all"
const ReductionInfo* find_reduction(std::string_view name);

// A rank's factor of mulsum.
constexpr int mulsum_factor(int rank) { return rank % 2 == 0 ? 1 : 2; }

// What decides the data of one call.
struct DataSpec {
  const ElementType* type;
  Reduction reduction;
  int world;
  std::uint64_t seed;
};

// The element that `rank` puts in at `index`.
Bits input_bits(const DataSpec& spec, int rank, std::size_t index);
// What all ranks get out at `index`. Floating averages: correctly rounded.
Bits result_bits(const DataSpec& spec, std::size_t index);
// Whether `got` counts as `expected`: the same bits; for averages of floats at most 2 ulp away.
bool is_right(const DataSpec& spec, Bits expected, Bits got);

// The same for whole buffers, from tables of one period. Belongs to one thread.
class Pattern {
 public:
  static constexpr std::size_t kPeriod = 65537;

  // `longest`: elements of the longest buffer that will be asked for.
  Pattern(const DataSpec& spec, std::size_t longest);

  std::size_t element_bytes() const { return spec_.type->bytes; }
  std::size_t elements(std::span<const std::byte> buffer) const { return buffer.size() / element_bytes(); }

  // Writes what `rank` puts in at elements first, first + 1, ... The buffer's length is a multiple of the element size.
  void write_input(std::span<std::byte> buffer, int rank, std::size_t first = 0);
  // Elements that are not what `rank` put in, or not the reduction over all ranks.
  std::int64_t wrong_inputs(std::span<const std::byte> buffer, int rank, std::size_t first = 0);
  std::int64_t wrong_results(std::span<const std::byte> buffer, std::size_t first = 0);

 private:
  using Table = std::vector<std::byte>;
  template <typename Element>
  Table make_table(Element element) const;
  const Table& inputs(int rank);
  const Table& results();
  std::int64_t count_wrong(std::span<const std::byte> buffer, const Table& table, std::size_t first) const;

  DataSpec spec_;
  std::size_t length_;  // elements of a table
  std::map<int, Table> inputs_;
  Table results_;
};

}  // namespace shoal::perf
