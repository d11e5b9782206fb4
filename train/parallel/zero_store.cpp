// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/zero_store.h"

#include <algorithm>
#include <array>
#include <exception>
#include <numeric>

#include "train/error.h"

namespace shoal::train {
namespace {

constexpr std::size_t kMostScattering = 2;  // groups whose whole gradients are held while they are on their way

template <typename T>
constexpr bool kIsFloat = std::is_same_v<T, float>;

// Sums in float32, rounded once.
void add(std::span<const float> from, std::span<float> to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] += from[i];
}
void add(std::span<const float> from, std::span<Bf16> to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = to_bf16(to_float(to[i]) + from[i]);
}
void add(std::span<const Bf16> from, std::span<Bf16> to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = to_bf16(to_float(to[i]) + to_float(from[i]));
}

}  // namespace

template <typename T>
ZeroStore<T>::ZeroStore(const ZeroOptions& options, const Optimizer& optimizer, std::vector<std::vector<Tensor>> groups,
                        std::vector<std::size_t> order, const Fill& fill, Frozen frozen, ZeroRanks& ranks, Ledger& ledger)
    : options_(options),
      optimizer_(optimizer),
      order_(std::move(order)),
      is_frozen_(std::move(frozen)),
      ledger_(ledger),
      seat_(ranks.seat()),
      unwinding_(std::uncaught_exceptions()),
      ranks_(ranks),
      gathering_(seat_),
      reducing_(seat_) {
  ranks_.count_in(ledger, options);
  const std::size_t block = std::lcm(wire_block(options.weight_format), wire_block(options.gradient_format));
  ready_.resize(groups.size());
  for (std::vector<Tensor>& tensors : groups) {
    events_.emplace_back(seat_);
    Group& group = groups_.emplace_back();
    group.tensors = std::move(tensors);
    // A multiple of the world: replicas can divide a shard among them, too. What is quantised, in whole blocks.
    group.shards = {.count = group.tensors.empty() ? 0 : group.tensors.back().offset + group.tensors.back().count,
                    .ranks = seat_.world,
                    .alignment = std::lcm(options.alignment, ranks.world * block)};
    const std::size_t padded = group.shards.padded();
    group.own = options.stage == 0 ? Extent{0, padded} : group.shards.of(seat_.rank);
    group.runs = runs_in(group.tensors, group.own);
    const std::size_t mine = group.own.count();
    group.weights = {ledger, Holds::parameters, options.stage < 3 ? padded : mine};
    if (options.secondary) group.secondary = {ledger, Holds::secondary, padded / options.node};
    group.gradients = {ledger, Holds::gradients, options.stage < 2 ? padded : mine};
    if constexpr (!kIsFloat<T>) group.masters = {ledger, Holds::optimizer, mine};
    group.first = {ledger, Holds::optimizer, mine};
    group.second = {ledger, Holds::optimizer, optimizer.moments() > 1 ? mine : 0};

    Held<float> start(ledger, Holds::working, padded);
    fill(group.tensors, start.all().first(group.shards.count));
    std::ranges::copy(start.all().subspan(group.own.begin, mine), masters(group).begin());
    if constexpr (kIsFloat<T>) {
      if (options.stage < 3) std::ranges::copy(start.all(), group.weights.all().begin());
    } else {
      to_bf16(options.stage < 3 ? start.all() : std::span<float>(masters(group)), group.weights.all());
    }
  }
}

template <typename T>
ZeroStore<T>::~ZeroStore() {
  if (std::uncaught_exceptions() > unwinding_) {  // peers may be gone
    ranks_.abort();
    return;
  }
  try {
    gathering_.wait();
    reducing_.wait();
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the run's own last call tells of a failure
  }
}

template <typename T>
std::size_t ZeroStore<T>::padded() const {
  std::size_t all = 0;
  for (const Group& group : groups_) all += group.shards.padded();
  return all;
}

template <typename T>
std::size_t ZeroStore<T>::padded_trained() const {
  std::size_t all = 0;
  for (const Group& group : groups_) all += group.frozen ? 0 : group.shards.padded();
  return all;
}

// What is held is the whole space, or own already.
template <typename T>
std::span<T> ZeroStore<T>::own_of(const Group& group, std::span<T> held) const {
  return held.size() == group.own.count() ? held : held.subspan(group.own.begin, group.own.count());
}

template <typename T>
std::span<float> ZeroStore<T>::masters(Group& group) {
  if constexpr (kIsFloat<T>)
    return own_of(group, group.weights.all());
  else
    return group.masters.all();
}

// ---- Weights

template <typename T>
void ZeroStore<T>::fetch(std::size_t number) {
  Group& group = groups_[number];
  if (options_.stage < 3 || group.shards.count == 0) return;
  group.arriving = {ledger_, Holds::working, group.shards.padded()};
  if (group.secondary_holds)
    (**ranks_.node).all_gather<T>(group.secondary.all(), group.arriving.all(), gathering_.handle());
  else
    (*ranks_.gathers).template all_gather<T>(group.weights.all(), group.arriving.all(), gathering_.handle());
  events_[number].arrived.record(gathering_);
}

template <typename T>
std::span<float> ZeroStore<T>::use(std::size_t number) {
  Group& group = groups_[number];
  const std::size_t count = group.shards.count;
  if (group.arriving) {
    events_[number].arrived.wait();
    ranks_.check_gathering();
    if (options_.secondary && !group.secondary_holds) keep(group);
  }
  if constexpr (kIsFloat<T>) {
    if (options_.stage < 3) return group.weights.all().first(count);
    group.values = std::move(group.arriving);
  } else {
    group.values = {ledger_, Holds::working, count};
    to_float((group.arriving ? group.arriving : group.weights).all().first(count), group.values.all());
    group.arriving.drop();
  }
  return group.values.all().first(std::min(count, group.values.all().size()));
}

// This rank's part of what has arrived, for its node.
template <typename T>
void ZeroStore<T>::keep(Group& group) {
  const std::span<T> part = group.secondary.all();
  std::ranges::copy(group.arriving.all().subspan(seat_.rank % options_.node * part.size(), part.size()), part.begin());
  group.secondary_holds = true;
}

template <typename T>
void ZeroStore<T>::drop(std::size_t number) {
  groups_[number].values.drop();
}

// ---- Gradients

template <typename T>
void ZeroStore<T>::begin_step(std::size_t number) {
  step_ = number;
  for (Group& group : groups_) {
    group.frozen = !group.tensors.empty() && is_frozen_(group.tensors.front(), number);
    std::ranges::fill(group.gradients.all(), T{});
    group.secondary_holds = false;  // so that every step sends the same, whatever came between
  }
}

template <typename T>
void ZeroStore<T>::begin_micro_batch(bool first, bool last) {
  first_ = first;
  last_ = last;
  handed_over_ = 0;
  ready_.assign(groups_.size(), false);
}

template <typename T>
std::span<float> ZeroStore<T>::gradients(std::size_t number) {
  Group& group = groups_[number];
  if constexpr (kIsFloat<T>)
    if (options_.stage < 2) return group.gradients.all().first(group.shards.count);
  if (!group.summed) group.summed = {ledger_, Holds::working, kIsFloat<T> ? group.shards.padded() : group.shards.count};
  return group.summed.all().first(group.shards.count);
}

// Groups leave in the same order on all ranks, even if a later one is complete here first.
template <typename T>
void ZeroStore<T>::ready(std::size_t group) {
  ready_[group] = true;
  while (handed_over_ < order_.size() && ready_[order_[handed_over_]]) hand_over(order_[handed_over_++]);
}

template <typename T>
void ZeroStore<T>::end_micro_batch() {
  while (handed_over_ < order_.size()) hand_over(order_[handed_over_++]);
}

template <typename T>
void ZeroStore<T>::hand_over(std::size_t number) {
  Group& group = groups_[number];
  if (group.frozen || group.shards.count == 0) {
    group.summed.drop();
    return;
  }
  if (options_.stage < 2) {
    if constexpr (!kIsFloat<T>) add(group.summed.all(), group.gradients.all().first(group.summed.all().size()));
    group.summed.drop();
    if (last_) reduce(number, group.gradients.all());
    return;
  }
  while (scattering_.size() >= kMostScattering || std::ranges::find(scattering_, number) != scattering_.end()) collect_oldest();
  if constexpr (kIsFloat<T>) {
    gradients(number);
    group.leaving = std::move(group.summed);
  } else {
    group.leaving = {ledger_, Holds::working, group.shards.padded()};
    to_bf16(group.summed.all(), group.leaving.all().first(group.summed.all().size()));
    group.summed.drop();
  }
  // The sum of the micro-batches before is in the shard: it goes in with this rank's own part, unless that would round it again.
  if (!first_ && !ranks_.levels) add(group.gradients.all(), group.leaving.all().subspan(group.own.begin, group.own.count()));
  scattering_.push_back(number);
  reduce(number, group.leaving.all());
}

template <typename T>
void ZeroStore<T>::reduce(std::size_t number, std::span<T> whole) {
  Group& group = groups_[number];
  const std::span<T> mine = own_of(group, group.gradients.all());
  const auto plainly = [&] {
    if (options_.stage == 0)
      (*ranks_.reduces).all_reduce(whole, Over::sum, reducing_.handle());
    else
      (*ranks_.reduces).template reduce_scatter<T>(whole, mine, reducing_.handle());
  };
  if constexpr (kIsFloat<T>) {
    if (ranks_.levels) {
      group.room = {ledger_, Holds::working, whole.size()};
      ranks_.levels->enqueue(whole, group.room.all(), mine, options_.stage >= 2 && !first_, reducing_);
    } else {
      plainly();
    }
  } else {
    plainly();
  }
  if (ranks_.replicas && last_) (**ranks_.replicas).all_reduce(mine, Over::sum, reducing_.handle());
  events_[number].reduced.record(reducing_);
}

template <typename T>
void ZeroStore<T>::collect_oldest() {
  await(scattering_.front());
  groups_[scattering_.front()].leaving.drop();
  scattering_.pop_front();
}

template <typename T>
void ZeroStore<T>::await(std::size_t group) {
  events_[group].reduced.wait();
  groups_[group].room.drop();
  ranks_.check_reducing();
}

// ---- The update

template <typename T>
void ZeroStore<T>::finish_step(float rate, double clip) {
  while (!scattering_.empty()) collect_oldest();
  factor_ = clip == 0 ? 1.0F : clip_factor(squares(), clip);
  for (const std::size_t number : order_) {
    Group& group = groups_[number];
    if (group.frozen || group.shards.count == 0) continue;
    await(number);
    update(group, rate);
    share_weights(group);
  }
  gathering_.wait();
  ranks_.check_gathering();
}

// Of all trained gradients, once each: every rank adds those of its shard, whatever else it holds. Padding is zero.
template <typename T>
double ZeroStore<T>::squares() {
  std::array<double, 1> sum{};
  for (const std::size_t number : order_) {
    Group& group = groups_[number];
    if (group.frozen || group.shards.count == 0) continue;
    await(number);
    const std::span<T> mine = own_of(group, group.gradients.all());
    const Extent shard = group.shards.of(seat_.rank);
    for (const T each : options_.stage == 0 ? mine.subspan(shard.begin, shard.count()) : mine) {
      const double value = [&] {
        if constexpr (kIsFloat<T>)
          return static_cast<double>(each);
        else
          return static_cast<double>(to_float(each));
      }();
      sum[0] += value * value;
    }
  }
  (*ranks_.gathers).all_reduce(std::span<double>(sum));
  return sum[0];
}

template <typename T>
void ZeroStore<T>::update(Group& group, float rate) {
  std::span<float> gradient;
  Held<float> widened;
  const std::span<T> mine = own_of(group, group.gradients.all());
  if constexpr (kIsFloat<T>) {
    gradient = mine;
  } else {
    widened = {ledger_, Holds::working, mine.size()};
    to_float(mine, widened.all());
    gradient = widened.all();
  }
  scale(factor_, gradient);
  const auto part = [&](std::span<float> span, const TensorRun& run) {
    return span.empty() ? span : span.subspan(run.at - group.own.begin, run.count);
  };
  for (const TensorRun& run : group.runs)
    optimizer_.update(step_, rate, group.tensors[run.tensor].spec.fan_in > 0, part(gradient, run), part(masters(group), run),
                      part(group.first.all(), run), part(group.second.all(), run));
}

// From the masters to the weights that are computed with, on all ranks that have them.
template <typename T>
void ZeroStore<T>::share_weights(Group& group) {
  const std::span<T> mine = own_of(group, group.weights.all());
  if constexpr (!kIsFloat<T>) to_bf16(masters(group), mine);
  group.secondary_holds = false;
  if (options_.stage == 1 || options_.stage == 2)
    (*ranks_.gathers).template all_gather<T>(mine, group.weights.all(), gathering_.handle());
}

// ---- Pieces

template <typename T>
std::vector<Piece> ZeroStore<T>::pieces() {
  std::vector<Piece> all;
  for (Group& group : groups_) {
    std::span<float> gradient;
    if (!group.frozen) {
      const std::span<T> mine = own_of(group, group.gradients.all());
      if constexpr (kIsFloat<T>) {
        gradient = mine;
      } else {
        group.shown.resize(mine.size());
        to_float(mine, group.shown);
        scale(factor_, group.shown);
        gradient = group.shown;
      }
    }
    for (const TensorRun& run : group.runs) {
      const auto part = [&](std::span<float> span) {
        return span.empty() ? span : span.subspan(run.at - group.own.begin, run.count);
      };
      all.push_back(run_of(group.tensors[run.tensor], run.first, part(masters(group)), part(gradient), part(group.first.all()),
                           part(group.second.all())));
    }
  }
  return all;
}

template <typename T>
void ZeroStore<T>::reloaded() {
  for (Group& group : groups_)
    if (group.shards.count > 0) share_weights(group);
  gathering_.wait();
  ranks_.check_gathering();
}

template class ZeroStore<float>;
template class ZeroStore<Bf16>;

}  // namespace shoal::train
