// SPDX-License-Identifier: Apache-2.0
// ZeRO's store over the ranks of a launch (run it under shoal-run): a toy model whose gradients are known, against one process.
// FC-48, FC-49, FC-51. All ranks run all cases; with SHOAL_NUMERICS=ordered the stages must agree to the last bit.
#include "train/parallel/zero_store.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cstdlib>
#include <map>
#include <string_view>

#include "compress/codecs/codec.h"

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

// All ranks of the launch, and what stores need of them, made once for the stores of a case.
class World {
 public:
  const Communicator& comm() const { return *comm_; }
  std::size_t size() const { return comm().seat().world; }
  ZeroRanks& ranks(std::size_t replicas) {
    const auto known = ranks_.find(replicas);
    return known != ranks_.end() ? known->second
                                 : ranks_.try_emplace(replicas, ZeroOptions{.replicas = replicas}, comm()).first->second;
  }

 private:
  OwnComm comm_{Communicator(launched_seat())};
  std::map<std::size_t, ZeroRanks> ranks_;  // plain ones, by replicas
};

struct Outcome {
  Values values;
  std::uint64_t held = 0;  // real elements of pieces, of all ranks
  Ledger ledger;
  ZeroCosts costs;
};

template <typename T>
Outcome sharded(const Toy& toy, const ZeroOptions& options, const World& all, ZeroRanks& ranks) {
  const Communicator& comm = all.comm();
  const std::size_t world = comm.seat().world, rank = comm.seat().rank;
  Outcome outcome;
  std::vector<std::size_t> order;
  for (std::size_t g = toy.groups.size(); g-- > 0;) order.push_back(g);
  ZeroStore<T> store(
      options, kAdam, tensors_of(toy), order, fill,
      [&](const Tensor& tensor, std::size_t step) { return toy.frozen(group_of(tensor), step); }, ranks, outcome.ledger);
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
                   .node = options.node,
                   .secondary = options.secondary,
                   .word = sizeof(T),
                   .state = std::is_same_v<T, float> ? 2U : 3U,
                   .micro_batches = toy.micro_batches,
                   .weight_format = options.weight_format,
                   .gradient_format = options.gradient_format};
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

// With ranks of its own.
template <typename T>
Outcome sharded(const Toy& toy, const ZeroOptions& options, const World& all) {
  ZeroRanks ranks(options, all.comm());
  return sharded<T>(toy, options, all, ranks);
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
void check_toy(World& all, const Toy& toy, std::size_t alignment = 1) {
  const Communicator& comm = all.comm();
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
      const Outcome got = sharded<float>(toy, options, all, all.ranks(replicas)),
                    bf16 = sharded<Bf16>(toy, options, all, all.ranks(replicas));
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
          CHECK(each->ledger.sent_bytes() == toy.steps * each->costs.sent().all());
      }
      if (stage == 0) {
        first = got.values;
        first_bf16 = bf16.values;
      } else if (ordered() && replicas == 1 && toy.micro_batches == 1) {
        CHECK(got.values == first);
        CHECK(bf16.values == first_bf16);
      }
    }
}

}  // namespace

TEST_CASE("store: some groups of some tensors") {
  World all;
  check_toy(all, {.groups = {{6, 5}, {16}, {3, 1, 9}}});
}

TEST_CASE("store: micro-batches add up in the shards") {
  World all;
  check_toy(all, {.groups = {{6, 5}, {16}}, .micro_batches = 3});
}

TEST_CASE("FC-48: padding that spans several ranks, of no part in the norm") {
  World all;
  check_toy(all, {.groups = {{57}, {1}}}, 4);
  check_toy(all, {.groups = {{10}, {57}, {1}}, .clip = 0.5}, 16);
}

TEST_CASE("FC-49: empty tensors and groups") {
  World all;
  check_toy(all, {.groups = {{8, 0, 24}, {0, 5}, {5, 0}, {4}, {0}, {}, {3}}, .steps = 3});
  check_toy(all, {.groups = {{3}}, .steps = 3});
}

TEST_CASE("FC-51: unused everywhere, used on rank 0 only, frozen, frozen from step 3 on") {
  Toy toy{.groups = {{7}, {5}, {6, 2}, {4}, {9}}};
  toy.uses = [](std::size_t group, std::size_t rank) { return group != 1 && (group != 2 || rank == 0); };
  toy.frozen = [](std::size_t group, std::size_t step) { return group == 3 || (group == 4 && step >= 3); };
  World all;
  check_toy(all, toy);

  for (std::size_t stage = 0; stage <= 3; ++stage) {
    const Outcome got = sharded<float>(toy, {.stage = stage}, all, all.ranks(1));
    const std::vector<Tensor> frozen = tensors_of(toy)[3];
    std::vector<float> start(4);
    fill(frozen, start);
    CHECK(got.values[3] == start);  // to the bit
    // Group 3 is never sent, group 4 in three steps of five; but stage 3 fetches frozen weights like others.
    const auto with = [&](std::size_t trained) {
      ZeroCosts costs = got.costs;
      costs.trained = trained;
      return costs.sent().all();
    };
    const std::size_t late = got.costs.trained, nine = Shards{.count = 9, .ranks = all.size()}.padded();
    CHECK(got.ledger.sent_bytes() == 3 * with(late + nine) + 2 * with(late));
  }
}

TEST_CASE("store: weights gathered as int8 are the same on all ranks, and the shards keep what was rounded off") {
  World all;
  const Toy toy{.groups = {{300}, {128}}, .steps = 20};
  const Values alone = one_process(toy, all.size());
  const Outcome got = sharded<float>(toy, {.stage = 3, .weight_format = "int8", .gradient_format = "int8"}, all);
  CHECK(same_everywhere(got.values, all.comm()));
  check_close(got.values, alone, 0.1);
  CHECK(got.ledger.sent_bytes() == toy.steps * got.costs.sent().all());
}

namespace {

// The sizes of nodes that these ranks divide into, but for all in one.
std::vector<std::size_t> node_sizes(std::size_t ranks) {
  std::vector<std::size_t> sizes;
  for (std::size_t node = 1; node < ranks; ++node)
    if (ranks % node == 0) sizes.push_back(node);
  return sizes;
}

template <typename T>
void check_secondary(World& all, Toy toy, std::size_t node, std::size_t replicas) {
  CAPTURE(node, replicas, sizeof(T), toy.micro_batches);
  const Outcome plain = sharded<T>(toy, {.stage = 3, .replicas = replicas}, all, all.ranks(replicas));
  const Outcome got = sharded<T>(toy, {.stage = 3, .replicas = replicas, .node = node, .secondary = true}, all);
  CHECK(got.values == plain.values);  // to the bit
  CHECK(got.ledger.peak(Holds::secondary) == got.costs.parameters / node * sizeof(T));
  CHECK(got.ledger.peak(Holds::parameters) == plain.ledger.peak(Holds::parameters));
  CHECK(got.ledger.held(Holds::working) == 0);
  const ZeroSent sent = toy.steps * (got.costs.sent() + (toy.clip > 0 ? got.costs.norm() : ZeroSent()));
  CHECK(got.ledger.sent_between() == sent.between);
  CHECK(got.ledger.sent_bytes() == sent.all());
  CHECK(got.ledger.sent_bytes() < plain.ledger.sent_bytes());
}

}  // namespace

TEST_CASE("secondary shards: the bits of stage 3, and nothing is sent between nodes to gather weights again") {
  World all;
  for (const std::size_t replicas : {1UL, 2UL}) {
    if (all.size() % replicas != 0) continue;
    for (const std::size_t node : node_sizes(all.size() / replicas)) {
      const Toy toy{.groups = {{7}, {30, 5}, {}, {4}}, .steps = 4};
      check_secondary<float>(all, toy, node, replicas);
      check_secondary<Bf16>(all, toy, node, replicas);
    }
  }
  if (all.size() != 4) return;
  Toy clipped{.groups = {{7}, {30, 5}, {4}}, .steps = 4, .micro_batches = 2, .clip = 0.5};
  clipped.frozen = [](std::size_t group, std::size_t step) { return group == 2 || (group == 0 && step >= 2); };
  const Outcome plain = sharded<float>(clipped, {.stage = 3}, all, all.ranks(1));
  CHECK(sharded<float>(clipped, {.stage = 3, .node = 2, .secondary = true}, all).values == plain.values);
  clipped.frozen = [](std::size_t, std::size_t) { return false; };
  check_secondary<float>(all, clipped, 2, 1);
}

TEST_CASE("4 ranks, 2 a node: between nodes go half, nothing and a quarter of the parameters, in 16-bit words, and scales") {
  World all;
  if (all.size() != 4) return;
  const Toy toy{.groups = {{5000}, {300}, {1}}, .steps = 3};
  const Outcome got =
      sharded<float>(toy, {.stage = 3, .node = 2, .secondary = true, .weight_format = "int8", .gradient_format = "int4"}, all);
  CHECK(same_everywhere(got.values, all.comm()));
  check_close(got.values, one_process(toy, 4), 0.15);
  const std::size_t y = got.costs.parameters;  // whole blocks of both codecs on every rank
  CHECK(y % (4 * 128) == 0);
  // Of what a node has to give to the other one, which is y / 2 elements, a rank sends half. The bytes of y elements:
  const std::size_t int8 = y + 2 * y / 128, int4 = y / 2 + 2 * y / 32;
  CHECK(got.ledger.sent(Moves::all_gather).between == 3 * (int8 / 4 + 0));
  CHECK(got.ledger.sent(Moves::all_to_all).between == 3 * int4 / 4);
  CHECK(got.ledger.sent(Moves::reduce_scatter).calls == 0);
  CHECK(got.ledger.sent_between() == 3 * (int8 / 4 + int4 / 4));
  // Inside: what is left of 3/4 of the first gathering, float32 in the second, half of the int4.
  CHECK(got.ledger.sent_bytes() - got.ledger.sent_between() == 3 * (int8 / 2 + 4 * y / 2 + int4 / 2));
  CHECK(got.ledger.peak(Holds::secondary) == 4 * y / 2);
  const Outcome bf16 = sharded<Bf16>(toy, {.stage = 3, .node = 2}, all);
  CHECK(bf16.ledger.sent_between() == 3 * 3 * 2 * bf16.costs.parameters / 4);
}

namespace {

std::vector<float> rounded(std::vector<float> values, const compress::Codec& codec) {
  std::vector<std::byte> wire(codec.wire_bytes(values.size()));
  codec.encode(values.data(), values.size(), wire.data(), 0);
  codec.decode(wire.data(), values.size(), values.data());
  return values;
}

float drawn(std::size_t rank, std::size_t i) { return static_cast<float>((i * 37 + rank * 101 + i * i % 17) % 1009) - 504.0F; }

}  // namespace

TEST_CASE("quantised gradients in two levels: two roundings, sums in float32, every rank its own block") {
  World all;
  const std::size_t world = all.size(), rank = all.comm().seat().rank;
  constexpr std::size_t kBlock = 384;
  for (const char* format : {"int4", "int8"})
    for (const std::size_t node : node_sizes(world)) {
      CAPTURE(format, node, rank, world);
      const compress::Codec& codec = *compress::find_codec(format);
      // What the owner of block `rank` gets of each node: the sum of the node's roundings, rounded.
      const auto of_node = [&](std::size_t first) {
        std::vector<float> sum(kBlock);
        for (std::size_t from = first; from < first + node; ++from) {
          std::vector<float> block(kBlock);
          for (std::size_t i = 0; i < kBlock; ++i) block[i] = drawn(from, rank * kBlock + i);
          block = rounded(std::move(block), codec);
          for (std::size_t i = 0; i < kBlock; ++i) sum[i] += block[i];
        }
        return rounded(std::move(sum), codec);
      };
      std::vector<float> expected(kBlock);
      for (std::size_t first = 0; first < world; first += node) {
        const std::vector<float> part = of_node(first);
        for (std::size_t i = 0; i < kBlock; ++i) expected[i] += part[i];
      }

      TwoLevelScatter scatter(all.comm(), node, format);
      Ledger ledger;
      scatter.count_in(ledger);
      std::vector<float> whole(world * kBlock), room(whole.size()), apart(kBlock, 1000.0F);
      const auto fill_whole = [&] {
        for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = drawn(rank, i);
      };
      const Stream stream(all.comm().seat());
      fill_whole();
      scatter.enqueue(whole, room, std::span(whole).subspan(rank * kBlock, kBlock), false, stream);
      stream.wait();
      scatter.check_async();
      CHECK(std::ranges::equal(std::span(whole).subspan(rank * kBlock, kBlock), expected));
      fill_whole();
      scatter.enqueue(whole, room, apart, true, stream);
      stream.wait();
      for (std::size_t i = 0; i < kBlock; ++i) CHECK(apart[i] == Approx(1000.0F + expected[i]).epsilon(1e-5));

      const std::size_t wire = wire_bytes(format, kBlock, 4), nodes = world / node;
      CHECK(wire == codec.wire_bytes(kBlock));
      CHECK(ledger.sent_between() == 2 * (nodes - 1) * wire);
      CHECK(ledger.sent_bytes() == 2 * (nodes - 1 + world - nodes) * wire);
    }
}

TEST_CASE("quantised gradients in two levels: every stage that shards, micro-batches and replicas") {
  World all;
  const std::size_t replicas = all.size() % 4 == 0 ? 2 : 1;
  for (std::size_t stage = 1; stage <= 3; ++stage)
    for (const std::size_t node : node_sizes(all.size() / replicas)) {
      CAPTURE(stage, node, replicas);
      const Toy toy{.groups = {{300}, {128, 7}}, .steps = 10, .micro_batches = 2, .clip = 1};
      const Outcome got =
          sharded<float>(toy, {.stage = stage, .replicas = replicas, .node = node, .gradient_format = "int8"}, all);
      CHECK(same_everywhere(got.values, all.comm()));
      check_close(got.values, one_process(toy, all.size()), 0.05);
      const ZeroSent sent = toy.steps * (got.costs.sent() + got.costs.norm());
      CHECK(got.ledger.sent_between() == sent.between);
      CHECK(got.ledger.sent_bytes() == sent.all());
      CHECK(got.ledger.held(Holds::working) == 0);
    }
}

}  // namespace shoal::train
