// SPDX-License-Identifier: Apache-2.0
#include "compress/sparse/all_reduce.h"

#include <algorithm>
#include <utility>

#include "compress/calls.h"

namespace shoal::compress::sparse {
namespace {

// Bytes of a message with `entries` of n elements at random places, nearly.
double message_bytes(double entries, double n, double value) {
  return std::min({entries * (2 + value), n / 8 + entries * value, n * value});
}

// Of a sum: a vector as soon as Sum says so.
double sum_bytes(double entries, double n) {
  constexpr double kValue = 4;
  return entries > n / 2 ? n * kValue : message_bytes(entries, n, kValue);
}

engine::Call blocks_of(plan::Collective collective, double bytes) {
  return {.collective = collective, .count = {static_cast<std::size_t>(bytes) + 1}, .type = DataType::uint8};
}

}  // namespace

std::string_view name_of(Schedule schedule) {
  switch (schedule) {
    case Schedule::automatic: return "auto";
    case Schedule::gather: return "gather";
    case Schedule::doubling: return "doubling";
    case Schedule::split: return "split";
    case Schedule::dense: break;
  }
  return "dense";
}

Schedule schedule_from(std::string_view word) {
  for (const Schedule each : {Schedule::automatic, Schedule::gather, Schedule::doubling, Schedule::split})
    if (word == name_of(each)) return each;
  return Schedule::dense;
}

ValueType value_type_from(std::string_view word) { return word == "fp16" ? ValueType::fp16 : ValueType::fp32; }

Schedule cheapest(std::span<const Announcement> ranks, std::uint64_t n, ValueType values,
                  const std::function<double(const engine::Call&)>& predict) {
  if (n == 0) return Schedule::gather;
  const World world{static_cast<std::int32_t>(ranks.size())};
  const auto length = static_cast<double>(n), p = static_cast<double>(ranks.size());
  constexpr double kNumber = sizeof(std::uint64_t);  // [bytes] of a length that is told
  const auto collective = [&](plan::Collective which, double bytes) { return predict(blocks_of(which, bytes)); };
  std::uint64_t longest = 0, most = 0;
  for (const Announcement& each : ranks) {
    longest = std::max(longest, each.bytes);
    most = std::max(most, each.entries);
  }
  // Entries of the union of the first ranks, of more from call to call: n (1 - prod (1 - d)).
  auto united = [&, counted = std::size_t{0}, left_out = 1.0](std::size_t first) mutable {
    for (; counted < first; ++counted) left_out *= 1 - static_cast<double>(ranks[counted].entries) / length;
    return (1 - left_out) * length;
  };

  double doubling = 0;
  for (int round = 0; round < rounds(world); ++round) {
    const std::size_t merged = std::min<std::size_t>(ranks.size(), std::size_t{1} << round);
    const double bytes = round == 0 ? static_cast<double>(longest) : sum_bytes(united(merged), length);
    // Two ranks exchange: as many bytes as a block for every other rank would make.
    doubling += collective(plan::Collective::all_to_all, kNumber / p);
    doubling += collective(plan::Collective::all_to_all, bytes / std::max(1.0, p - 1));
  }
  const double own_share = message_bytes(static_cast<double>(most) / p, length / p, static_cast<double>(bytes_of(values)));
  const double split = collective(plan::Collective::all_to_all, kNumber) + collective(plan::Collective::all_to_all, own_share) +
                       collective(plan::Collective::all_gather, kNumber) +
                       collective(plan::Collective::all_gather, sum_bytes(united(ranks.size()) / p, length / p));
  const double gather = collective(plan::Collective::all_gather, static_cast<double>(longest));
  const double dense = predict({.collective = plan::Collective::all_reduce, .count = {n}});

  Schedule best = Schedule::gather;
  double least = gather;
  const auto offer = [&](Schedule schedule, double seconds) {
    if (seconds >= least) return;
    best = schedule;
    least = seconds;
  };
  offer(Schedule::doubling, doubling);
  offer(Schedule::split, split);
  offer(Schedule::dense, dense);
  return best;
}

void write_scaled(const Tensor& tensor) {
  for (std::size_t i = 0; i < tensor.elements; ++i) tensor.output[i] = tensor.scale * tensor.input[i];
}

Stages AllReduce::sum(const Tensor& tensor, const Place& place, const Contribution& own) {
  switch (chosen_) {
    case Schedule::gather: return gather_.run(tensor.output, tensor.elements, place, own, announced_);
    case Schedule::doubling: return doubling_.run(tensor.output, tensor.elements, place, own);
    case Schedule::split: return split_.run(tensor.output, tensor.elements, place, own);
    case Schedule::automatic:
    case Schedule::dense: break;
  }
  return {};
}

Stages AllReduce::run(Tensor tensor, const Place& place, Contribution own) {
  const std::uint64_t n = tensor.elements;
  announcement_ = {.finite = own.finite ? 1U : 0U};
  if (own.finite) {
    announcement_.entries = own.entries.size();
    announcement_.bytes = layout_of(own.entries, 0, n, own.values).bytes;
  }
  announced_.resize(static_cast<std::size_t>(place.world.value));
  co_yield compress::all_gather(&announcement_, announced_.data(), sizeof announcement_);

  finite_ = std::all_of(announced_.begin(), announced_.end(), [](const Announcement& each) { return each.finite != 0; });
  chosen_ = schedule_;
  if (schedule_ == Schedule::automatic && finite_) chosen_ = cheapest(announced_, n, own.values, place.predict);
  if (!finite_ || chosen_ == Schedule::dense) {
    chosen_ = Schedule::dense;
    encoded_bytes_ = n * sizeof(float);
    if (finite_) {
      sum_.assign(own.entries, 0, n, own.values);
      sum_.write(tensor.output);
    } else {
      write_scaled(tensor);
    }
    co_yield compress::all_reduce(tensor.output, n);
    co_return Status();
  }

  for (Stages stages = sum(tensor, place, own);;) {
    auto next = stages.next();
    if (!next.is_ok()) co_return next.status();
    if (!next->has_value()) break;
    co_yield std::move(**next);
  }
  encoded_bytes_ = chosen_ == Schedule::split ? split_.encoded_bytes() : announcement_.bytes;
  co_return Status();
}

}  // namespace shoal::compress::sparse
