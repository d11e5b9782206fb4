// SPDX-License-Identifier: Apache-2.0
#include "train/search/intra.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

namespace shoal::train {
namespace {

// One operator of the transformer, per row (token) of a micro-batch.
struct Operator {
  std::string_view name;
  double in = 0, out = 0;      // values of a row of A and of C
  double parameters = 0;       // k * j
  double flops = 0;            // forward, a row; backward takes twice as many
  std::size_t columns = 0;     // the units that `columns` deals out, 0: it cannot
  std::size_t inner = 0;       // ... that `inner` does
  bool input_gradient = true;  // backward sums dA over the axis that splits its columns
  double repeats = 1;          // blocks that hold it
};

double d(std::size_t n) { return static_cast<double>(n); }

// Megatron-LM's split: pairs of matrices by columns, then by inner, so that only the second one's result is summed.
Split tensor_parallel_split(std::string_view name) {
  return name == "embedding" || name == "proj" || name == "fc2" ? Split::inner : Split::columns;
}

class Stage {
 public:
  Stage(const SearchModel& model, const SearchCluster& cluster, const LogicalMesh& mesh, const StageCase& stage)
      : model_(model),
        cluster_(cluster),
        mesh_(mesh),
        stage_(stage),
        sequences_(model.batch / stage.micro_batches),
        rows_(d(sequences_) * d(model.length)) {
    list_operators();
  }

  const std::vector<Operator>& operators() const { return operators_; }

  // All splits of an operator that divide evenly.
  std::vector<Splits> choices(const Operator& op) const {
    std::vector<Splits> all;
    for (const Split outer : splits_of_axis(0))
      for (const Split inner : splits_of_axis(1))
        if (divides(op, {outer, inner})) all.push_back({outer, inner});
    return all;
  }

  bool divides(const Operator& op, const Splits& splits) const {
    std::size_t rows = 1, columns = 1, inner = 1;
    for (std::size_t axis = 0; axis < 2; ++axis) {
      if (splits[axis] == Split::rows) rows *= mesh_.size[axis];
      if (splits[axis] == Split::columns) columns *= mesh_.size[axis];
      if (splits[axis] == Split::inner) inner *= mesh_.size[axis];
    }
    const auto fits = [](std::size_t units, std::size_t parts) { return parts == 1 || (units > 0 && units % parts == 0); };
    return fits(sequences_, rows) && fits(op.columns, columns) && fits(op.inner, inner);
  }

  // [s] of a micro-batch.
  double seconds(const Operator& op, const Splits& splits) const {
    double degree = 1;
    for (std::size_t axis = 0; axis < 2; ++axis)
      if (splits[axis] != Split::none) degree *= d(mesh_.size[axis]);
    double sum = 3 * op.flops * rows_ / (degree * cluster_.flops);
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const std::size_t group = mesh_.size[axis];
      const Wire& wire = mesh_.wire[axis];
      if (splits[axis] == Split::inner)
        sum += all_reduce_s(bytes_of(op.out) / share(result(splits)[1 - axis], 1 - axis), group, wire);
      if (splits[axis] == Split::columns && op.input_gradient)
        sum += all_reduce_s(bytes_of(op.in) / share(operand(splits)[1 - axis], 1 - axis), group, wire);
      if (splits[axis] == Split::rows && op.parameters > 0)
        sum += all_reduce_s(op.parameters * model_.bytes / weight_parts(splits), group, latency_shared(wire)) /
               d(stage_.micro_batches);
    }
    return op.repeats * sum;
  }

  // [bytes] of a device.
  double state_bytes(const Operator& op, const Splits& splits) const {
    return op.repeats * op.parameters * model_.bytes_per_parameter / weight_parts(splits);
  }
  // What goes into and comes out of the operator in one micro-batch.
  double activation_bytes(const Operator& op, const Splits& splits) const {
    double in = bytes_of(op.in), out = bytes_of(op.out);
    for (std::size_t axis = 0; axis < 2; ++axis) {
      in /= share(operand(op, splits)[axis], axis);
      out /= share(result(splits)[axis], axis);
    }
    return op.repeats * (in + out);
  }

  // [s] from one layout of a tensor to another, and of its gradient back.
  double reshard_seconds(const Splits& from, const Splits& to, double width) const {
    double sum = 0;
    for (std::size_t axis = 0; axis < 2; ++axis) {
      if (from[axis] == to[axis]) continue;
      const double bytes = bytes_of(width) / share(from[1 - axis], 1 - axis);
      if (from[axis] == Split::none || to[axis] == Split::none)
        sum += all_gather_s(bytes, mesh_.size[axis], mesh_.wire[axis]);
      else
        sum += 2 * all_to_all_s(bytes, mesh_.size[axis], mesh_.wire[axis]);
    }
    return sum;
  }

  // Layouts of A and C: a tensor is split by rows, columns, or not.
  static Splits operand(const Splits& splits) {
    const auto of = [](Split split) {
      return split == Split::inner ? Split::columns : split == Split::rows ? split : Split::none;
    };
    return {of(splits[0]), of(splits[1])};
  }
  static Splits result(const Splits& splits) {
    const auto of = [](Split split) { return split == Split::inner ? Split::none : split; };
    return {of(splits[0]), of(splits[1])};
  }
  // Attention takes its heads where they are: columns in, columns out.
  static Splits operand(const Operator& op, const Splits& splits) { return is_attention(op) ? splits : operand(splits); }
  static bool is_attention(const Operator& op) { return op.name == "attention"; }

 private:
  void list_operators() {
    const double w = d(model_.width), h = d(model_.hidden), v = d(model_.vocabulary), blocks = d(stage_.slice.blocks);
    if (stage_.slice.embedding)
      operators_.push_back({.name = "embedding",
                            .in = 0,
                            .out = w,
                            .parameters = v * w,
                            .columns = model_.width,
                            .inner = model_.vocabulary,
                            .input_gradient = false});
    if (stage_.slice.blocks > 0) {
      const auto matrix = [&](std::string_view name, double in, double out, std::size_t columns, std::size_t inner) {
        operators_.push_back({.name = name,
                              .in = in,
                              .out = out,
                              .parameters = in * out,
                              .flops = 2 * in * out,
                              .columns = columns,
                              .inner = inner,
                              .repeats = blocks});
      };
      matrix("qkv", w, 3 * w, model_.heads, model_.width);
      // Scores and their sums with the values, of half of the places: attention is causal.
      operators_.push_back({.name = "attention",
                            .in = 3 * w,
                            .out = w,
                            .flops = 2 * d(model_.length) * w,
                            .columns = model_.heads,
                            .input_gradient = false,
                            .repeats = blocks});
      matrix("proj", w, w, model_.width, model_.heads);
      matrix("fc1", w, h, model_.hidden, model_.width);
      matrix("fc2", h, w, model_.width, model_.hidden);
    }
    if (stage_.slice.head)
      operators_.push_back({.name = "head",
                            .in = w,
                            .out = v,
                            .parameters = w * v,
                            .flops = 2 * w * v,
                            .columns = model_.vocabulary,
                            .inner = model_.width});
  }

  std::vector<Split> splits_of_axis(std::size_t axis) const {
    if (mesh_.size[axis] == 1) return {Split::none};
    return {Split::none, Split::rows, Split::columns, Split::inner};
  }
  // The gradients of a stage's matrices are summed in one call: each has its part of the latency.
  Wire latency_shared(const Wire& wire) const {
    double matrices = 0;
    for (const Operator& op : operators_) matrices += op.parameters > 0 ? op.repeats : 0;
    return {.latency_s = wire.latency_s / matrices, .bandwidth_Bps = wire.bandwidth_Bps};
  }
  double share(Split layout, std::size_t axis) const { return layout == Split::none ? 1 : d(mesh_.size[axis]); }
  double bytes_of(double width) const { return rows_ * width * model_.bytes; }
  double weight_parts(const Splits& splits) const {
    double parts = 1;
    for (std::size_t axis = 0; axis < 2; ++axis)
      if (splits[axis] == Split::columns || splits[axis] == Split::inner) parts *= d(mesh_.size[axis]);
    return parts;
  }

  const SearchModel& model_;
  const SearchCluster& cluster_;
  const LogicalMesh& mesh_;
  const StageCase& stage_;
  std::size_t sequences_;  // of a micro-batch
  double rows_;
  std::vector<Operator> operators_;
};

// Which operators' results meet: `times` a micro-batch the result of `from` becomes the operand of `to`, or is added to its
// result.
struct Meeting {
  std::string_view from, to;
  double times;
  bool added;
};

std::vector<Meeting> meetings(const Slice& slice) {
  const double blocks = static_cast<double>(slice.blocks);
  if (slice.blocks == 0) return {{"embedding", "head", 1, false}};
  return {{"embedding", "qkv", 1, false},      {"embedding", "proj", 1, true},
          {"qkv", "attention", blocks, false}, {"attention", "proj", blocks, false},
          {"proj", "fc1", blocks, false},      {"fc1", "fc2", blocks, false},
          {"proj", "fc2", blocks, true},       {"fc2", "qkv", blocks - 1, false},
          {"fc2", "proj", blocks - 1, true},   {"fc2", "head", 1, false}};
}

std::optional<std::size_t> place_of(const std::vector<Operator>& operators, std::string_view name) {
  const auto found = std::ranges::find(operators, name, &Operator::name);
  if (found == operators.end()) return std::nullopt;
  return static_cast<std::size_t>(found - operators.begin());
}

void add_edges(const Stage& stage, const Slice& slice, IntraProblem& intra) {
  const std::vector<Operator>& operators = stage.operators();
  for (const Meeting& meeting : meetings(slice)) {
    const auto from = place_of(operators, meeting.from), to = place_of(operators, meeting.to);
    if (!from || !to || meeting.times == 0) continue;
    OneHotProblem::Edge edge{.from = *from, .to = *to, .cost = {}};
    for (const Splits& a : intra.choices[*from])
      for (const Splits& b : intra.choices[*to])
        edge.cost.push_back(meeting.times *
                            stage.reshard_seconds(Stage::result(a),
                                                  meeting.added ? Stage::result(b) : Stage::operand(operators[*to], b),
                                                  operators[*from].out));
    intra.problem.edges.push_back(std::move(edge));
  }
}

// Fills an IntraProblem whose operators have the given choices each.
template <typename ChoicesOf>
IntraProblem make_problem(const Stage& stage, const SearchCluster& cluster, const StageCase& what, ChoicesOf choices_of) {
  IntraProblem intra;
  intra.problem.budget = cluster.memory_bytes;
  const std::size_t in_flight = what.in_flight;
  for (const Operator& op : stage.operators()) {
    intra.operators.emplace_back(op.name);
    intra.choices.push_back(choices_of(op));
    OneHotProblem::Node& node = intra.problem.nodes.emplace_back();
    for (const Splits& splits : intra.choices.back()) {
      node.cost.push_back(stage.seconds(op, splits));
      node.memory.push_back(stage.state_bytes(op, splits) + d(in_flight) * stage.activation_bytes(op, splits));
    }
  }
  add_edges(stage, what.slice, intra);
  return intra;
}

IntraPlan plan_of(const Stage& stage, const LogicalMesh& mesh, const IntraProblem& intra, const Choices& choices) {
  IntraPlan plan{.mesh = mesh, .operators = intra.operators, .splits = {}, .seconds = cost_of(intra.problem, choices)};
  for (std::size_t v = 0; v < choices.size(); ++v) {
    const Splits& splits = plan.splits.emplace_back(intra.choices[v][choices[v]]);
    plan.state_bytes += stage.state_bytes(stage.operators()[v], splits);
    plan.activation_bytes += stage.activation_bytes(stage.operators()[v], splits);
  }
  return plan;
}

bool is_outside(std::string_view name) { return name == "embedding" || name == "head"; }

// Without a budget first: most often it does not matter, and the program is smaller.
std::optional<Choices> solve_within_budget(OneHotProblem problem) {
  const double budget = std::exchange(problem.budget, std::numeric_limits<double>::infinity());
  std::optional<Choices> choices = solve(problem);
  if (!choices || memory_of(problem, *choices) <= budget) return choices;
  problem.budget = budget;
  return solve(problem);
}

}  // namespace

std::string text_of(const Splits& splits) {
  constexpr std::array<std::string_view, 4> kNames{"none", "rows", "columns", "inner"};
  return fmt::format("{} x {}", kNames[static_cast<std::size_t>(splits[0])], kNames[static_cast<std::size_t>(splits[1])]);
}

double all_reduce_s(double bytes, std::size_t group, const Wire& wire) { return 2 * all_gather_s(bytes, group, wire); }

double all_gather_s(double bytes, std::size_t group, const Wire& wire) {
  return (d(group) - 1) * (wire.latency_s + bytes / (d(group) * wire.bandwidth_Bps));
}

double all_to_all_s(double bytes, std::size_t group, const Wire& wire) {
  return (d(group) - 1) * (wire.latency_s + bytes / (d(group) * d(group) * wire.bandwidth_Bps));
}

LogicalMesh logical_mesh(const SearchCluster& cluster, const Mesh& mesh, std::size_t outer, std::size_t inner) {
  LogicalMesh logical{.size = {outer, inner}, .wire = {cluster.within, cluster.within}};
  if (mesh.hosts == 1) return logical;
  // A host's NIC is shared by the groups of the outer axis that meet in the host: as many as it has places on the inner one.
  const auto shared = [&](std::size_t groups) {
    return Wire{.latency_s = cluster.nics.latency_s, .bandwidth_Bps = cluster.nics.bandwidth_Bps / d(groups)};
  };
  logical.wire[0] = shared(std::min(inner, mesh.per_host));
  if (inner > mesh.per_host) logical.wire[1] = shared(1);
  return logical;
}

std::vector<LogicalMesh> logical_meshes(const SearchCluster& cluster, const Mesh& mesh) {
  std::vector<LogicalMesh> all;
  for (std::size_t outer = 1; outer <= mesh.devices(); ++outer) {
    if (mesh.devices() % outer != 0 || (outer > 1 && outer == mesh.devices())) continue;
    const std::size_t inner = mesh.devices() / outer;
    // An inner group is inside a host, or made of whole ones.
    if (mesh.hosts > 1 && mesh.per_host % inner != 0 && inner % mesh.per_host != 0) continue;
    all.push_back(logical_mesh(cluster, mesh, outer, inner));
  }
  return all;
}

IntraProblem intra_problem(const SearchModel& model, const SearchCluster& cluster, const LogicalMesh& mesh,
                           const StageCase& stage) {
  const Stage whole(model, cluster, mesh, stage);
  return make_problem(whole, cluster, stage, [&](const Operator& op) { return whole.choices(op); });
}

std::optional<IntraPlan> best_splits(const SearchModel& model, const SearchCluster& cluster, const Mesh& mesh,
                                     const StageCase& stage) {
  std::optional<IntraPlan> best;
  for (const LogicalMesh& logical : logical_meshes(cluster, mesh)) {
    const Stage whole(model, cluster, logical, stage);
    const IntraProblem intra = intra_problem(model, cluster, logical, stage);
    const std::optional<Choices> choices = solve_within_budget(intra.problem);
    if (!choices) continue;
    IntraPlan plan = plan_of(whole, logical, intra, *choices);
    if (!best || plan.seconds < best->seconds) best = std::move(plan);
  }
  return best;
}

std::optional<IntraPlan> uniform_splits(const SearchModel& model, const SearchCluster& cluster, const Mesh& mesh,
                                        IntraPlan::Degrees degrees, const StageCase& stage) {
  const LogicalMesh logical = logical_mesh(cluster, mesh, degrees.dp, degrees.tp);
  const Stage whole(model, cluster, logical, stage);
  bool divides = true;
  const IntraProblem intra = make_problem(whole, cluster, stage, [&](const Operator& op) {
    const Splits splits{degrees.dp > 1 ? Split::rows : Split::none,
                        degrees.tp > 1 ? tensor_parallel_split(op.name) : Split::none};
    divides = divides && whole.divides(op, splits);
    return std::vector<Splits>{splits};
  });
  const Choices only(intra.operators.size(), 0);
  if (!divides || memory_of(intra.problem, only) > cluster.memory_bytes) return std::nullopt;
  return plan_of(whole, logical, intra, only);
}

std::optional<IntraPlan::Degrees> IntraPlan::degrees() const {
  const bool blocks = !std::ranges::all_of(operators, is_outside);
  Degrees degrees;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    if (mesh.size[axis] == 1) continue;
    bool rows = true, tensor = true;
    for (std::size_t v = 0; v < splits.size(); ++v) {
      if (blocks && is_outside(operators[v])) continue;
      rows = rows && splits[v][axis] == Split::rows;
      tensor = tensor && splits[v][axis] == tensor_parallel_split(operators[v]);
    }
    if (!rows && !tensor) return std::nullopt;
    if (rows && axis == 1 && degrees.tp > 1) return std::nullopt;  // neighbours are replicas: not as ranks are numbered
    (rows ? degrees.dp : degrees.tp) *= mesh.size[axis];
  }
  return degrees;
}

std::vector<std::size_t> IntraPlan::exceptions() const {
  // What a block's operator does on an axis says what the axis is for.
  const auto inside = std::ranges::find_if_not(operators, is_outside);
  const std::size_t pattern = inside == operators.end() ? 0 : static_cast<std::size_t>(inside - operators.begin());
  std::vector<std::size_t> places;
  for (std::size_t v = 0; v < splits.size(); ++v) {
    bool follows = true;
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const Split expected = splits[pattern][axis] == Split::rows ? Split::rows : tensor_parallel_split(operators[v]);
      follows = follows && (mesh.size[axis] == 1 || splits[v][axis] == expected);
    }
    if (!follows) places.push_back(v);
  }
  return places;
}

}  // namespace shoal::train
