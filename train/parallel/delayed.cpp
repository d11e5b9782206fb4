// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/delayed.h"

#include <algorithm>
#include <utility>

namespace shoal::train {

std::size_t DelayOptions::in_flight() const {
  const std::size_t shortest = sync_steps > 0 ? 1 : local_steps;
  return std::max<std::size_t>(1, (delay + shortest - 1) / shortest);
}

template <typename T>
DelayedAveraging<T>::DelayedAveraging(const DelayOptions& options, const OuterOptions& outer, double weight,
                                      std::span<const T> initial, RoundReducer<T>& reducer)
    : options_(options),
      outer_(outer),
      weight_(static_cast<T>(weight)),
      reducer_(reducer),
      shared_(initial.begin(), initial.end()),
      base_(shared_),
      velocity_(outer.momentum != 0 ? initial.size() : 0) {}

template <typename T>
void DelayedAveraging<T>::post(std::span<T> parameters) {
  ++iteration_;
  if (options_.round_ends(iteration_)) return start_round(parameters);
  if (options_.correction) return;
  // Stale: the step is remembered as the distance to the base, and undone.
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    base_[i] -= parameters[i] - shared_[i];
    parameters[i] = shared_[i];
  }
}

template <typename T>
void DelayedAveraging<T>::start_round(std::span<T> parameters) {
  Round round;
  if (!spare_.empty()) {
    round = std::move(spare_.back());
    spare_.pop_back();
  }
  round.id = next_id_++;
  round.ended = last_end_ = iteration_;
  round.own.resize(parameters.size());
  round.sum.resize(parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    round.own[i] = parameters[i] - base_[i];
    round.sum[i] = weight_ * round.own[i];
    if (!options_.correction) parameters[i] = shared_[i];
    base_[i] = parameters[i];
  }
  rounds_.push_back(std::move(round));
  reducer_.start(rounds_.back().id, rounds_.back().sum);
}

template <typename T>
void DelayedAveraging<T>::settle(std::span<T> parameters) {
  while (!rounds_.empty() && rounds_.front().ended + options_.delay <= iteration_) put_in(parameters);
}

template <typename T>
void DelayedAveraging<T>::end_round(std::span<T> parameters) {
  if (last_end_ != iteration_) start_round(parameters);
}

template <typename T>
void DelayedAveraging<T>::drain(std::span<T> parameters) {
  end_round(parameters);
  while (!rounds_.empty()) put_in(parameters);
}

template <typename T>
void DelayedAveraging<T>::put_in(std::span<T> parameters) {
  Round& round = rounds_.front();
  reducer_.wait(round.id);
  // What only this rank has done: in rounds that are still on their way, and since the last round's end. Nothing is exactly
  // nothing, so that no rounding is left of what all ranks share.
  const bool others = rounds_.size() > 1, steps = last_end_ != iteration_;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    round.own[i] = others ? base_[i] - shared_[i] - round.own[i] : T{0};
    base_[i] = steps ? parameters[i] - base_[i] : T{0};
  }
  move_shared(round.sum);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (options_.correction) {
      const T since = std::exchange(base_[i], shared_[i] + round.own[i]);
      parameters[i] = base_[i] + since;
    } else {
      parameters[i] = shared_[i];
      base_[i] = shared_[i] - base_[i];
    }
  }
  spare_.push_back(std::move(round));
  rounds_.pop_front();
}

template <typename T>
void DelayedAveraging<T>::move_shared(std::span<const T> mean) {
  const T rate = static_cast<T>(outer_.rate), momentum = static_cast<T>(outer_.momentum);
  for (std::size_t i = 0; i < shared_.size(); ++i) {
    T update = mean[i];
    if (!velocity_.empty()) {
      velocity_[i] = momentum * velocity_[i] + mean[i];
      update += momentum * velocity_[i];
    }
    shared_[i] += rate * update;
  }
}

template <typename T>
std::size_t DelayedAveraging<T>::bytes_held() const {
  const std::size_t vectors = 2 + 2 * (rounds_.size() + spare_.size());
  return (vectors * shared_.size() + velocity_.size()) * sizeof(T);
}

template class DelayedAveraging<float>;
template class DelayedAveraging<double>;

}  // namespace shoal::train
