// SPDX-License-Identifier: Apache-2.0
// The inner level of Alpa's search: a stage of a transformer on a mesh of devices, seen as a logical mesh of two axes, outer and
// inner. On each axis every operator C[i,j] = sum_k A[i,k] B[k,j] is split by rows (i: data parallelism), columns (j), inner (k)
// or not at all:
//
//             A          C          weights    forward           backward            once a step
//   rows      by rows    by rows    whole                                            all-reduce of the gradients
//   columns   whole      by columns split                        all-reduce of dA
//   inner     by columns whole      split      all-reduce of C
//   none      whole      whole      whole                        (work is repeated)
//
// Between operators activations are brought into the layout that the next one takes, forward and backward: an all-gather where a
// split ends or begins, two all-to-alls where it changes. Which split each operator takes, so that time is least and memory is
// enough, is a OneHotProblem. All blocks of a stage take the same. Norms, additions and optimisers, which are passes over memory,
// are not priced. Pure; any thread.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "train/search/cluster.h"
#include "train/search/inter.h"
#include "train/search/one_hot.h"

namespace shoal::train {

// What is to be trained.
struct SearchModel {
  std::size_t layers = 4, width = 128, heads = 4, hidden = 512, vocabulary = 256;
  std::size_t length = 128;         // [tokens] of a sequence
  std::size_t batch = 16;           // [sequences] a step
  double bytes = 4;                 // of an activation and of a gradient that travels: 4 or 2
  double bytes_per_parameter = 16;  // weights, gradients, optimiser
};

// Neighbouring units of a transformer.
struct Slice {
  bool embedding = false;
  std::size_t blocks = 0;
  bool head = false;

  friend auto operator<=>(const Slice&, const Slice&) = default;
};

enum class Split : std::uint8_t { none, rows, columns, inner };
using Splits = std::array<Split, 2>;        // of the outer and the inner axis
std::string text_of(const Splits& splits);  // "rows x columns"

struct LogicalMesh {
  std::array<std::size_t, 2> size{1, 1};  // outer: neighbours are size[1] devices apart
  std::array<Wire, 2> wire;               // as one device of a group sees it
};
// Every way of seeing the mesh as two axes; (n, 1) is (1, n).
std::vector<LogicalMesh> logical_meshes(const SearchCluster& cluster, const Mesh& mesh);
LogicalMesh logical_mesh(const SearchCluster& cluster, const Mesh& mesh, std::size_t outer, std::size_t inner);

// [s] of n bytes in all over a group of g.
double all_reduce_s(double bytes, std::size_t group, const Wire& wire);
double all_gather_s(double bytes, std::size_t group, const Wire& wire);  // and reduce-scatter
double all_to_all_s(double bytes, std::size_t group, const Wire& wire);

struct StageCase {
  Slice slice;
  std::size_t micro_batches = 1;  // of a step
  std::size_t in_flight = 1;      // whose activations are kept at once
};

struct IntraProblem {
  std::vector<std::string> operators;
  std::vector<std::vector<Splits>> choices;  // of each operator, those that divide evenly
  OneHotProblem problem;                     // seconds of a micro-batch; bytes of a device
};
IntraProblem intra_problem(const SearchModel& model, const SearchCluster& cluster, const LogicalMesh& mesh,
                           const StageCase& stage);

// How a stage runs.
struct IntraPlan {
  LogicalMesh mesh;
  std::vector<std::string> operators;
  std::vector<Splits> splits;   // of each operator
  double seconds = 0;           // of a micro-batch, forward and backward
  double state_bytes = 0;       // of a device: weights, gradients, optimiser
  double activation_bytes = 0;  // ... for each micro-batch in flight

  double bytes(std::size_t in_flight) const { return state_bytes + static_cast<double>(in_flight) * activation_bytes; }

  // The degrees, if all operators of the blocks use an axis alike, for rows or as Megatron-LM does, the latter on neighbours; of
  // a stage without blocks all operators count.
  struct Degrees {
    std::size_t dp = 1, tp = 1;
    friend bool operator==(const Degrees&, const Degrees&) = default;
  };
  std::optional<Degrees> degrees() const;
  // The operators that do not follow them, the embedding and the head at most: places in `operators`.
  std::vector<std::size_t> exceptions() const;
};
// The best of all logical meshes; none if the memory is too small.
std::optional<IntraPlan> best_splits(const SearchModel& model, const SearchCluster& cluster, const Mesh& mesh,
                                     const StageCase& stage);
// dp x tp as shoal-train hybrid runs it: rows on the outer axis, Megatron-LM's splits on the inner one. None if something does
// not divide, or the memory is too small.
std::optional<IntraPlan> uniform_splits(const SearchModel& model, const SearchCluster& cluster, const Mesh& mesh,
                                        IntraPlan::Degrees degrees, const StageCase& stage);

}  // namespace shoal::train
