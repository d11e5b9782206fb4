// SPDX-License-Identifier: Apache-2.0
// ZeRO's store over the ranks of a launch (run it under shoal-run): a toy model whose gradients are known, against one process.
// FC-48, FC-49, FC-51. All ranks run all cases; with SHOAL_NUMERICS=ordered the stages must agree to the last bit.
#include "train/parallel/zero_store.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cstdlib>
#include <string_view>

namespace shoal::train {
namespace {

// Every rank uses the weights w of a group so that its loss has the derivative (rank + 1) (w - target).
struct Toy {
  std::vector<std::vector<std::size_t>> groups;  // sizes of the tensors of each
  std::size_t steps = 5;
  std::size_t micro_batches = 1;
  double clip = 0;
  std::function<bool(std::size_t group, std::size_t rank)> uses = [](std::size_t, std::size_t) { return true; };
  std::function<bool(std::size_t group, std::size_t step)> frozen = [](std::size_t, std::size_t) { return false; };
};

constexpr float kRate = 0.05F;
const Optimizer kAdam{.rule = Rule::adamw, .weight_decay = 0.01};

// "g2.t0": group 2.
std::size_t group_of(const Tensor& tensor) { return std::stoul(tensor.spec.name.substr(1)); }

std::vector<std::vector<Tensor>> tensors_of(const Toy& toy) {
  std::vector<std::vector<Tensor>> all;
  for (std::size_t g = 0; g < toy.groups.size(); ++g) {
    std::vector<Tensor>& group = all.emplace_back();
    for (std::size_t t = 0; t < toy.groups[g].size(); ++t)  // every second one decays
      append(group, {.name = fmt::format("g{}.t{}", g, t), .shape = {toy.groups[g][t]}, .fan_in = t % 2});
  }
  return all;
}

std::size_t count_of(std::span<const Tensor> tensors) {
  return tensors.empty() ? 0 : tensors.back().offset + tensors.back().count;
}

void fill(std::span<const Tensor> tensors, std::span<float> values) {
  for (const Tensor& tensor : tensors)
    for (std::size_t i = 0; i < tensor.count; ++i)
      values[tensor.offset + i] = 0.125F * static_cast<float>((i * 7 + tensor.offset * 3 + 1) % 13) - 0.5F;
}

float target(std::size_t group, std::size_t i) { return static_cast<float>((i + group) % 5) - 2.25F; }

// Whole weights after the toy's steps, by group.
using Values = std::vector<std::vector<float>>;

Values one_process(const Toy& toy, std::size_t world) {
  const auto tensors = tensors_of(toy);
  const std::size_t groups = tensors.size();
  Values values(groups), first(groups), second(groups), gradient(groups);
  for (std::size_t g = 0; g < groups; ++g) {
    values[g].resize(count_of(tensors[g]));
    fill(tensors[g], values[g]);
    first[g].resize(values[g].size());
    second[g].resize(values[g].size());
  }
  for (std::size_t step = 0; step < toy.steps; ++step) {
    double squares = 0;
    for (std::size_t g = 0; g < groups; ++g) {
      gradient[g].assign(values[g].size(), 0.0F);
      for (std::size_t rank = 0; rank < world; ++rank)
        for (std::size_t i = 0; i < values[g].size(); ++i)
          if (toy.uses(g, rank)) gradient[g][i] += static_cast<float>(rank + 1) * (values[g][i] - target(g, i));
      if (!toy.frozen(g, step)) squares += sum_of_squares(gradient[g]);
    }
    for (std::size_t g = 0; g < groups; ++g) {
      if (toy.frozen(g, step)) continue;
      scale(clip_factor(squares, toy.clip), gradient[g]);
      for (const Tensor& tensor : tensors[g]) {
        const auto part = [&](std::vector<float>& all) { return std::span(all).subspan(tensor.offset, tensor.count); };
        kAdam.update(step, kRate, tensor.spec.fan_in > 0, part(gradient[g]), part(values[g]), part(first[g]), part(second[g]));
      }
    }
  }
  return values;
}

struct Outcome {
  Values values;
  std::uint64_t held = 0;  // real elements of pieces, of all ranks
  Ledger ledger;
  ZeroCosts costs;
};

template <typename T>
Outcome sharded(const Toy& toy, const ZeroOptions& options, const Communicator& comm) {
  const std::size_t world = comm.seat().world, rank = comm.seat().rank;
  Outcome outcome;
  std::vector<std::size_t> order;
  for (std::size_t g = toy.groups.size(); g-- > 0;) order.push_back(g);
  ZeroStore<T> store(
      options, kAdam, tensors_of(toy), order, fill,
      [&](const Tensor& tensor, std::size_t step) { return toy.frozen(group_of(tensor), step); }, comm, outcome.ledger);
  for (std::size_t step = 0; step < toy.steps; ++step) {
    store.begin_step(step);
    for (std::size_t m = 0; m < toy.micro_batches; ++m) {
      store.begin_micro_batch(m == 0, m + 1 == toy.micro_batches);
      for (const bool backward : {false, true})
        for (const std::size_t g : order) {
          store.fetch(g);
          const std::span<const float> values = store.use(g);
          // A rank that has no use for a group does not even mention it.
          if (backward && toy.uses(g, rank)) {
            const std::span<float> gradients = store.gradients(g);
            for (std::size_t i = 0; i < values.size(); ++i)
              gradients[i] += static_cast<float>(rank + 1) * (values[i] - target(g, i)) / static_cast<float>(toy.micro_batches);
            store.ready(g);
          }
          store.drop(g);
        }
      store.end_micro_batch();
    }
    store.finish_step(kRate, toy.clip);
  }
  outcome.costs = {.stage = options.stage,
                   .parameters = store.padded(),
                   .trained = store.padded_trained(),
                   .ranks = world / options.replicas,
                   .replicas = options.replicas,
                   .word = sizeof(T),
                   .state = std::is_same_v<T, float> ? 2U : 3U,
                   .micro_batches = toy.micro_batches};
  for (std::size_t g = 0; g < toy.groups.size(); ++g) {
    const Ledger before = outcome.ledger;
    store.fetch(g);
    const std::span<float> values = store.use(g);
    outcome.values.emplace_back(values.begin(), values.end());
    store.drop(g);
    outcome.ledger = before;  // this look is no part of the run; nothing is held more than before
  }
  std::vector<std::uint64_t> held(1);
  for (const Piece& each : store.pieces()) held[0] += each.values.size();
  comm.all_reduce(std::span(held));
  outcome.held = held[0] / (options.stage == 0 ? world : options.replicas);
  return outcome;
}

bool same_everywhere(const Values& values, const Communicator& comm) {
  std::vector<std::uint64_t> hash(1, 0);
  for (const auto& each : values) hash[0] = hash[0] * 31 + hash_bits(each);
  std::vector<std::uint64_t> most = hash;
  comm.all_reduce(std::span(hash), Over::min);
  comm.all_reduce(std::span(most), Over::max);
  return hash == most;
}

void check_close(const Values& got, const Values& expected, double within) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t g = 0; g < got.size(); ++g) {
    REQUIRE(got[g].size() == expected[g].size());
    for (std::size_t i = 0; i < got[g].size(); ++i) {
      CAPTURE(g, i);
      CHECK(got[g][i] == Approx(expected[g][i]).epsilon(within).margin(within));
    }
  }
}

bool ordered() {
  const char* mode = std::getenv("SHOAL_NUMERICS");
  return mode != nullptr && std::string_view(mode) == "ordered";
}

// All stages and both precisions against one process.
void check_toy(const Toy& toy, std::size_t alignment = 1) {
  Communicator comm(launched_seat());
  const Values alone = one_process(toy, comm.seat().world);
  std::size_t elements = 0;
  for (const auto& each : alone) elements += each.size();
  bool freezes = false;
  for (std::size_t g = 0; g < toy.groups.size(); ++g) freezes = freezes || toy.frozen(g, toy.steps);
  Values first, first_bf16;
  for (std::size_t stage = 0; stage <= 3; ++stage)
    for (const std::size_t replicas : {1UL, 2UL}) {
      if (comm.seat().world % replicas != 0 || (stage == 0 && replicas > 1)) continue;
      CAPTURE(stage, replicas, comm.seat().rank, comm.seat().world);
      const ZeroOptions options{.stage = stage, .replicas = replicas, .alignment = alignment};
      const Outcome got = sharded<float>(toy, options, comm), bf16 = sharded<Bf16>(toy, options, comm);
      check_close(got.values, alone, 1e-6);
      check_close(bf16.values, alone, 0.05);
      CHECK(same_everywhere(got.values, comm));
      CHECK(same_everywhere(bf16.values, comm));
      for (const Outcome* each : {&got, &bf16}) {
        CHECK(each->held == elements);
        CHECK(each->ledger.peak(Holds::parameters) == each->costs.parameter_bytes());
        CHECK(each->ledger.peak(Holds::gradients) == each->costs.gradient_bytes());
        CHECK(each->ledger.peak(Holds::optimizer) == each->costs.optimizer_bytes());
        CHECK(each->ledger.held(Holds::working) == 0);
        if (toy.clip == 0 && !freezes)  // clipping sends the norm
          CHECK(each->ledger.sent_bytes() == toy.steps * each->costs.sent() * each->costs.word);
      }
      if (stage == 0) {
        first = got.values;
        first_bf16 = bf16.values;
      } else if (ordered() && replicas == 1 && toy.micro_batches == 1) {
        CHECK(got.values == first);
        CHECK(bf16.values == first_bf16);
      }
    }
  comm.close();
}

}  // namespace

TEST_CASE("store: some groups of some tensors") { check_toy({.groups = {{6, 5}, {16}, {3, 1, 9}}}); }

TEST_CASE("store: micro-batches add up in the shards") { check_toy({.groups = {{6, 5}, {16}}, .micro_batches = 3}); }

TEST_CASE("FC-48: padding that spans several ranks, of no part in the norm") {
  check_toy({.groups = {{10}}}, 16);
  check_toy({.groups = {{57}}}, 4);
  check_toy({.groups = {{1}}});
  check_toy({.groups = {{10}, {57}, {1}}, .clip = 0.5}, 16);
}

TEST_CASE("FC-49: empty tensors and groups") {
  check_toy({.groups = {{8, 0, 24}}, .steps = 3});
  check_toy({.groups = {{0, 5}}, .steps = 3});
  check_toy({.groups = {{5, 0}}, .steps = 3});
  check_toy({.groups = {{3}}, .steps = 3});
  check_toy({.groups = {{4}, {0}, {}, {3}}, .steps = 3});
}

TEST_CASE("FC-51: unused everywhere, used on rank 0 only, frozen, frozen from step 3 on") {
  Toy toy{.groups = {{7}, {5}, {6, 2}, {4}, {9}}};
  toy.uses = [](std::size_t group, std::size_t rank) { return group != 1 && (group != 2 || rank == 0); };
  toy.frozen = [](std::size_t group, std::size_t step) { return group == 3 || (group == 4 && step >= 3); };
  check_toy(toy);

  Communicator comm(launched_seat());
  for (std::size_t stage = 0; stage <= 3; ++stage) {
    const Outcome got = sharded<float>(toy, {.stage = stage}, comm);
    const std::vector<Tensor> frozen = tensors_of(toy)[3];
    std::vector<float> start(4);
    fill(frozen, start);
    CHECK(got.values[3] == start);  // to the bit
    // Group 3 is never sent, group 4 in three steps of five; but stage 3 fetches frozen weights like others.
    const auto with = [&](std::size_t trained) {
      ZeroCosts costs = got.costs;
      costs.trained = trained;
      return costs.sent() * sizeof(float);
    };
    const std::size_t late = got.costs.trained, nine = Shards{.count = 9, .ranks = comm.seat().world}.padded();
    CHECK(got.ledger.sent_bytes() == 3 * with(late + nine) + 2 * with(late));
  }
  comm.close();
}

TEST_CASE("store: weights gathered as int8 are the same on all ranks, and the shards keep what was rounded off") {
  Communicator comm(launched_seat());
  const Toy toy{.groups = {{300}, {128}}, .steps = 20};
  const Values alone = one_process(toy, comm.seat().world);
  const Outcome got = sharded<float>(toy, {.stage = 3, .weight_format = "int8", .gradient_format = "int8"}, comm);
  CHECK(same_everywhere(got.values, comm));
  check_close(got.values, alone, 0.1);
  comm.close();
}

}  // namespace shoal::train
