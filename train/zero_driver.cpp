// SPDX-License-Identifier: Apache-2.0
#include "train/zero_driver.h"

#include <algorithm>
#include <array>

#include "train/error.h"
#include "train/nn/tensor.h"

namespace shoal::train {
namespace {

constexpr std::size_t kMostFetching = 2;  // groups that are on their way here at a time

// The groups of parameters that each unit uses: its own, and a tied head the embedding's.
std::vector<std::vector<std::size_t>> groups_of(const GptShape& shape) {
  std::vector<std::vector<std::size_t>> groups(shape.units());
  for (std::size_t u = 0; u < groups.size(); ++u) groups[u] = {u};
  if (shape.tied) groups.back().push_back(0);
  return groups;
}

// In which gradients become complete.
std::vector<std::size_t> order_of(std::vector<Stay> stays, std::size_t units) {
  std::erase_if(stays, [&](const Stay& stay) { return stay.from < units; });
  std::ranges::stable_sort(stays, {}, &Stay::until);
  std::vector<std::size_t> order;
  for (const Stay& each : stays) order.push_back(each.group);
  return order;
}

template <typename T>
class Zero final : public TextDriver {
 public:
  Zero(const TextRecipe& recipe, const ZeroTraining& training, const Communicator& comm)
      : recipe_(recipe),
        training_(training),
        comm_(comm),
        places_(places_in_order(recipe.length)),
        units_(make_units()),
        groups_(groups_of(recipe.shape)),
        stays_(stays_of(groups_)),
        ranks_(training.store, comm),
        store_(
            training.store, recipe.optimizer, tensors(), order_of(stays_, units_.size()),
            [&](std::span<const Tensor> group, std::span<float> values) { initialise_by_name(group, recipe.seed, values); },
            [this](const Tensor& tensor, std::size_t step) { return recipe_.freeze.holds(tensor.spec.name, step); }, ranks_,
            ledger_),
        values_(units_.size()),
        gradients_(units_.size()),
        activations_(units_.size()),
        stashes_(units_.size()) {}

  double step(const TextSample& batch, std::size_t number, float rate) override {
    const Sequences mine = sequences_for(batch.sequences, comm_.seat());
    double loss = 0;
    store_.begin_step(number);
    for (std::size_t m = 0; m < training_.accumulate; ++m) {
      const Sequences part = sequences_for(mine.count, {m, training_.accumulate});
      store_.begin_micro_batch(m == 0, m + 1 == training_.accumulate);
      loss += pass(sequences_of(batch, mine.first + part.first, part.count, places_, weight(batch)), 2 * units_.size());
      store_.end_micro_batch();
    }
    store_.finish_step(rate, recipe_.clip);
    ++steps_;
    sent_by_formula_ = sent_by_formula_ + costs().sent();
    if (recipe_.clip > 0) sent_by_formula_ = sent_by_formula_ + costs().norm();
    return mean(loss, batch);
  }

  double evaluate(const TextSample& batch) override {
    const Sequences mine = sequences_for(batch.sequences, comm_.seat());
    return mean(pass(sequences_of(batch, mine.first, mine.count, places_, weight(batch)), units_.size()), batch);
  }

  std::vector<Piece> pieces() override { return store_.pieces(); }
  void reloaded() override {
    store_.reloaded();
    ledger_.forget_sent();  // it is no step's
  }
  const Ledger& ledger() const override { return ledger_; }
  std::string summary() const override;

 private:
  std::vector<std::unique_ptr<Unit>> make_units();
  std::vector<std::vector<Tensor>> tensors() const;
  ZeroCosts costs() const;  // of a step like the last one
  std::string on_the_wire() const;
  static float weight(const TextSample& batch) { return 1 / static_cast<float>(batch.targets.size()); }
  double mean(double loss, const TextSample& batch) const {
    std::array<double, 1> sum{loss};
    comm_.all_reduce(std::span<double>(sum));
    return sum[0] / static_cast<double>(batch.targets.size());
  }

  // Forward of all units and, up to `end`, backward: positions as in zero_costs.h. The sum of the losses.
  double pass(const TokenBatch& batch, std::size_t end);
  void forward(const TokenBatch& batch, std::size_t u);
  void backward(const TokenBatch& batch, std::size_t u);
  // What a stash keeps for backward are activations, the rest is its working memory.
  void keep_stash(const TokenBatch& batch, std::size_t u);
  void drop_stash(const TokenBatch& batch, std::size_t u);
  void bind(std::size_t u, std::span<const std::span<float>> gradients);

  TextRecipe recipe_;
  ZeroTraining training_;
  const Communicator& comm_;
  Ledger ledger_;
  TensorGroup alone_;
  LocalAttention attention_;
  std::vector<Place> places_;
  std::vector<std::unique_ptr<Unit>> units_;
  std::vector<std::vector<std::size_t>> groups_;  // by unit
  std::vector<Stay> stays_;
  ZeroRanks ranks_;
  ZeroStore<T> store_;
  std::vector<std::span<float>> values_, gradients_;  // by group, while they are here
  std::vector<Held<float>> activations_;              // by unit: its output
  std::vector<std::vector<float>> stashes_;           // by unit
  std::vector<float> flowing_in_, flowing_out_;
  std::size_t steps_ = 0;
  ZeroSent sent_by_formula_;  // in all of them: what is frozen may change
};

template <typename T>
std::vector<std::unique_ptr<Unit>> Zero<T>::make_units() {
  check_shape(recipe_.shape);
  std::vector<std::unique_ptr<Unit>> units;
  for (std::size_t u = 0; u < recipe_.shape.units(); ++u)
    units.push_back(make_unit(recipe_.shape, u, alone_, attention_, recipe_.shape.tied ? Head::Table::shared : Head::Table::own));
  return units;
}

template <typename T>
std::vector<std::vector<Tensor>> Zero<T>::tensors() const {
  std::vector<std::vector<Tensor>> all;
  for (const auto& unit : units_) {
    std::vector<Tensor>& group = all.emplace_back();
    for (TensorSpec& spec : unit->tensors()) append(group, std::move(spec));
  }
  return all;
}

template <typename T>
double Zero<T>::pass(const TokenBatch& batch, std::size_t end) {
  const std::size_t units = units_.size();
  // stays_[0, used) have been used, [used, fetched) are on their way, those after them will come in this order.
  std::size_t used = 0, fetched = 0;
  const auto fetch_up_to = [&](std::size_t position) {
    while (fetched < stays_.size() && stays_[fetched].from <= std::min(position, end - 1) && fetched - used < kMostFetching) {
      if (fetched > used && stays_[fetched].group == stays_[used].group) return;  // is on its way for an earlier stay
      store_.fetch(stays_[fetched++].group);
    }
  };
  flowing_in_.resize(batch.rows() * recipe_.shape.width);
  flowing_out_.resize(flowing_in_.size());
  for (std::size_t at = 0; at < end; ++at) {
    const bool back = at >= units;
    const std::size_t u = back ? 2 * units - 1 - at : at;
    while (used < stays_.size() && stays_[used].from <= at) {
      fetch_up_to(at);
      const std::size_t group = stays_[used++].group;
      values_[group] = store_.use(group);
    }
    fetch_up_to(at + training_.prefetch);
    // A rank without sequences takes part in the communication only.
    if (batch.rows() > 0) back ? backward(batch, u) : forward(batch, u);
    for (const Stay& stay : stays_) {
      if (stay.until != at) continue;
      store_.drop(stay.group);
      if (back) store_.ready(stay.group);
    }
  }
  for (std::size_t u = 0; u < units; ++u) {
    activations_[u].drop();
    drop_stash(batch, u);
  }
  return batch.rows() == 0 ? 0 : static_cast<const Head&>(*units_.back()).loss();
}

template <typename T>
void Zero<T>::bind(std::size_t u, std::span<const std::span<float>> gradients) {
  if (groups_[u].size() > 1) static_cast<Head&>(*units_[u]).tie(values_[groups_[u][1]], gradients[groups_[u][1]]);
  units_[u]->bind(values_[u], gradients[u]);
}

template <typename T>
void Zero<T>::keep_stash(const TokenBatch& batch, std::size_t u) {
  const std::size_t kept = units_[u]->kept_size(batch);
  stashes_[u].resize(units_[u]->stash_size(batch));
  ledger_.hold(Holds::activations, kept * sizeof(float));
  ledger_.hold(Holds::working, (stashes_[u].size() - kept) * sizeof(float));
}

template <typename T>
void Zero<T>::drop_stash(const TokenBatch& batch, std::size_t u) {
  if (stashes_[u].empty()) return;
  const std::size_t kept = units_[u]->kept_size(batch);
  ledger_.release(Holds::activations, kept * sizeof(float));
  ledger_.release(Holds::working, (stashes_[u].size() - kept) * sizeof(float));
  std::vector<float>().swap(stashes_[u]);
}

template <typename T>
void Zero<T>::forward(const TokenBatch& batch, std::size_t u) {
  bind(u, values_);  // no gradient is touched
  activations_[u] = {ledger_, Holds::activations, u + 1 < units_.size() ? batch.rows() * recipe_.shape.width : 0};
  keep_stash(batch, u);
  units_[u]->forward(batch, u == 0 ? std::span<const float>() : activations_[u - 1].all(), activations_[u].all(), stashes_[u]);
}

template <typename T>
void Zero<T>::backward(const TokenBatch& batch, std::size_t u) {
  for (const std::size_t group : groups_[u]) gradients_[group] = store_.gradients(group);
  bind(u, gradients_);
  const bool last = u + 1 == units_.size();
  units_[u]->backward_input(batch, u == 0 ? std::span<const float>() : activations_[u - 1].all(),
                            last ? std::span<float>() : std::span(flowing_in_),
                            u == 0 ? std::span<float>() : std::span(flowing_out_), stashes_[u]);
  if (std::ranges::any_of(groups_[u], [&](std::size_t group) { return !store_.frozen(group); }))
    units_[u]->backward_parameters(batch, stashes_[u]);
  std::swap(flowing_in_, flowing_out_);
  drop_stash(batch, u);
  activations_[u].drop();
}

template <typename T>
ZeroCosts Zero<T>::costs() const {
  const ZeroOptions& options = training_.store;
  return {.stage = options.stage,
          .parameters = store_.padded(),
          .trained = store_.padded_trained(),
          .ranks = comm_.seat().world / options.replicas,
          .replicas = options.replicas,
          .node = options.node,
          .secondary = options.secondary,
          .word = sizeof(T),
          .state = recipe_.optimizer.moments() + (recipe_.bf16 ? 1 : 0),
          .micro_batches = training_.accumulate,
          .weight_format = options.weight_format,
          .gradient_format = options.gradient_format};
}

template <typename T>
std::string Zero<T>::summary() const {
  const ZeroOptions& options = training_.store;
  const ZeroCosts formula = costs();
  const std::size_t steps = std::max<std::size_t>(1, steps_);
  const auto row = [](std::string_view what, std::size_t measured, std::size_t promised) {
    return fmt::format("  {:<13} {:>13} {:>14}\n", what, measured, promised);
  };
  const auto held = [&](Holds what, std::size_t bytes) {
    return row(kHoldsNames[static_cast<std::size_t>(what)], ledger_.peak(what), bytes);
  };
  std::string text = fmt::format(
      "  stage {} over {} x {} ranks, {} parameters, {} with padding\n"
      "                     measured        formula, bytes\n",
      options.stage, formula.ranks, formula.replicas, parameters_of(recipe_.shape), formula.parameters);
  text += held(Holds::parameters, formula.parameter_bytes());
  if (options.secondary) text += held(Holds::secondary, formula.secondary_bytes());
  text += held(Holds::gradients, formula.gradient_bytes()) + held(Holds::optimizer, formula.optimizer_bytes());
  text += row("sent a step", ledger_.sent_bytes() / steps, sent_by_formula_.all() / steps);
  if (options.node > 0) {
    text += row("inside nodes", (ledger_.sent_bytes() - ledger_.sent_between()) / steps, sent_by_formula_.inside / steps);
    text += row("between nodes", ledger_.sent_between() / steps, sent_by_formula_.between / steps);
  }
  return text + on_the_wire();
}

// What the wire formats leave of the bytes that would be sent without them.
template <typename T>
std::string Zero<T>::on_the_wire() const {
  ZeroCosts plain = costs();
  if ((plain.weight_format + plain.gradient_format).empty()) return {};
  const std::size_t sent = plain.sent().all();
  plain.weight_format = plain.gradient_format = {};
  return fmt::format("  on the wire {:.2f} of all as float32\n",
                     static_cast<double>(sent) / static_cast<double>(plain.sent().all()));
}

}  // namespace

std::unique_ptr<TextDriver> make_zero(const TextRecipe& recipe, const ZeroTraining& training, const Communicator& comm) {
  const std::size_t world = comm.seat().world, replicas = training.store.replicas;
  if (replicas == 0 || world % replicas != 0)
    throw failure(Exit::usage, "{} ranks do not divide into --replicate {} groups", world, replicas);
  if (training.store.stage == 0 && replicas > 1)
    throw failure(Exit::usage, "--replicate {}: stage 0 has nothing sharded; every rank is a replica", replicas);
  const std::size_t ranks = world / replicas, node = training.store.node;
  if (node > 0 && ranks % node != 0)
    throw failure(Exit::usage, "--node {}: the {} ranks that share a model do not divide into nodes of {}", node, ranks, node);
  if (training.store.secondary && training.store.stage < 3)
    throw failure(Exit::usage, "--secondary: stage {} holds its weights whole; only --stage 3 gathers them again for backward",
                  training.store.stage);
  if (training.store.secondary && node == 0) throw failure(Exit::usage, "--secondary: say by --node how many ranks a node has");
  if (training.store.secondary && node == ranks)
    throw failure(Exit::usage,
                  "--secondary: the {} ranks that share a model are one node of --node {}, there is no other to spare", ranks,
                  node);
  if (training.store.stage < 3 && !training.store.weight_format.empty())
    throw failure(Exit::usage,
                  "--quantise-weights {}: stage {} updates the weights that it gathers, and would lose what the wire rounds off; "
                  "--stage 3 keeps its shards",
                  training.store.weight_format, training.store.stage);
  if (recipe.bf16 && !(training.store.weight_format + training.store.gradient_format).empty())
    throw failure(Exit::usage, "--precision bf16: wire formats are for float32; leave out --quantise-weights and -gradients");
  std::vector<std::string> units{"embedding", "head"};
  for (std::size_t b = 0; b < recipe.shape.layers; ++b) units.push_back(fmt::format("block{}", b));
  for (const std::string& name : recipe.freeze.units)
    if (std::ranges::find(units, name) == units.end())
      throw failure(Exit::usage, "--freeze {}: units are embedding, block0 to block{}, head", name, recipe.shape.layers - 1);
  if (recipe.bf16) return std::make_unique<Zero<Bf16>>(recipe, training, comm);
  return std::make_unique<Zero<float>>(recipe, training, comm);
}

}  // namespace shoal::train
