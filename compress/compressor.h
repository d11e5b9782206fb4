// SPDX-License-Identifier: Apache-2.0
// Compressors: all-reduces of one tensor that move less than it, with what they remember from call to call (residuals, momentum,
// factors). An object is one rank's state of one tensor: it belongs to the tensor's name, not to an address. All ranks end with
// the same bits.
//
// What is not finite is never kept. If any rank's input has a NaN or an infinity, either the call sums the inputs as they are,
// uncompressed, so that what is wrong shows where it is, and the state stays as it was before the call (report().dense says so);
// or, with codecs that give blocks a scale, the block's result is not finite, and what is remembered of the block stays as it
// was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>

#include "compress/options.h"
#include "compress/stages.h"
#include "compress/state.h"
#include "core/types.h"
#include "engine/call.h"

namespace shoal::compress {

struct Codec;

// The tensor's length and the matrix that it is, row by row: rows = 1 is a vector. rows divides elements.
struct Shape {
  std::size_t elements = 0;
  std::size_t rows = 1;
  std::size_t columns() const { return rows == 0 ? 0 : elements / rows; }
  bool is_matrix() const { return rows > 1 && columns() > 1; }
  friend bool operator==(const Shape&, const Shape&) = default;
};

// One call's memory: output = sum over ranks of scale * input. The two are the same memory or do not overlap.
struct Tensor {
  const float* input = nullptr;
  float* output = nullptr;
  std::size_t elements = 0;
  float scale = 1;       // 1, or 1 / world for an average: applied before anything is made narrower
  bool measure = false;  // the report's error is asked for
};

// Where the call runs.
struct Place {
  World world;
  Rank rank;
  // Seconds that a collective would take here; the same on all ranks for calls that are the same but for their addresses.
  std::function<double(const engine::Call&)> predict;
};

// How the last call went, for this rank.
struct Report {
  std::uint64_t encoded_bytes = 0;  // of this rank's own contribution, as handed to the first collectives
  double encode_s = 0;              // time to select and encode it
  double squared_error = 0;         // of this rank's contribution: sum of (meant - sent)^2, where meant includes the residual ...
  double squared_norm = 0;          // ... and sum of meant^2; both 0 unless measured
  std::uint64_t selected = 0;       // elements sent, of sparse ones
  bool dense = false;               // went uncompressed: not finite, too short, or too dense
};

class Compressor {
 public:
  virtual ~Compressor() = default;

  // One all-reduce: its collectives in order, with the work between them. One at a time; memory stays until it is over. A run
  // that is thrown away half-way leaves a state that can be used, saved and destroyed. Allocates on the first call only.
  virtual Stages all_reduce(Tensor tensor, Place place) = 0;

  // What is remembered. load: invalid_argument if the bytes are not of this shape; the state is then as it was.
  virtual void save(StateWriter& out) const = 0;
  virtual Status load(StateReader& in) = 0;

  const Report& report() const { return report_; }
  Frame& frame() { return frame_; }

 protected:
  Report report_;

 private:
  Frame frame_;
};

// A line of the table.
struct Kind {
  std::string_view name;   // "dgc"
  std::string_view about;  // one line
  std::span<const OptionSpec> options;
  // Options have been checked against the specs. `seed`: of the tensor, the same on all ranks.
  std::unique_ptr<Compressor> (*make)(const Kind& kind, const Options& options, Shape shape, std::uint64_t seed);
  const Codec* codec = nullptr;  // of the kinds that codecs are
};

// The `make` of a kind that is the class T.
template <typename T>
std::unique_ptr<Compressor> make_compressor(const Kind& /*kind*/, const Options& options, Shape shape, std::uint64_t seed) {
  if constexpr (std::is_constructible_v<T, const Options&, Shape, std::uint64_t>)
    return std::make_unique<T>(options, shape, seed);
  else
    return std::make_unique<T>(options, shape);
}

// All kinds, in the order of the table.
std::span<const Kind> kinds();
const Kind* find_kind(std::string_view name);

}  // namespace shoal::compress
