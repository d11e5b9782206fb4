// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.h"

#include <barrier>
#include <catch2/catch.hpp>
#include <set>
#include <thread>

#include "train/reference.h"

namespace shoal::train {
namespace {

// Stripes whose frequency is their kind, with noise: learnable and small.
Images striped_images(std::size_t count) {
  std::vector<std::uint8_t> pixels, labels;
  std::uint32_t noise = 1;
  for (std::size_t s = 0; s < count; ++s) {
    labels.push_back(static_cast<std::uint8_t>(s % kClasses));
    for (std::size_t p = 0; p < kPixels; ++p) {
      noise = noise * 1664525 + 1013904223;
      pixels.push_back(static_cast<std::uint8_t>((p * (1 + s % kClasses) / 8 % 2 * 150) + (noise >> 26)));
    }
  }
  return {std::move(pixels), std::move(labels)};
}

Recipe small_recipe(const std::string& model) {
  Recipe recipe;
  recipe.model = model;
  recipe.batch = 60;  // seven whole blocks and a short one
  recipe.epochs = 2;
  if (model == "resnet") recipe.sgd.rate = 0.01;  // these images are bright: at 0.1 its gradients leave the range of exact sums
  return recipe;
}

void train(Trainer& trainer, const Recipe& recipe, std::size_t samples, GradientSync& sync) {
  for (std::size_t epoch = 1; epoch <= recipe.epochs; ++epoch) {
    const auto order = shuffled(samples, recipe.seed, epoch);
    for (std::size_t step = 0; step < steps_per_epoch(recipe, samples); ++step) {
      trainer.step(global_batch(order, recipe.batch, step), sync);
    }
  }
}

// Ranks as threads, meeting at a barrier instead of on a wire; sums are taken in an order that turns with the rank.
struct Meeting {
  explicit Meeting(std::size_t world) : gradients(world), barrier(static_cast<std::ptrdiff_t>(world)) {}
  std::vector<std::span<float>> gradients;
  std::barrier<> barrier;
};

class ThreadSync final : public GradientSync {
 public:
  ThreadSync(Meeting& meeting, Seat seat, Network& network)
      : meeting_(meeting), seat_(seat), buckets_(make_buckets(network.tensors(), {.first = 4096, .other = 65536})) {
    meeting.gradients[seat.rank] = network.gradients();
  }
  std::span<const Bucket> buckets() const override { return buckets_; }
  void ready_from(std::size_t) override {}
  void wait(std::size_t bucket) override {
    const auto [begin, end] = buckets_[bucket];
    std::vector<float> sum(end - begin);
    meeting_.barrier.arrive_and_wait();
    for (std::size_t r = 0; r < seat_.world; ++r) {
      const auto part = meeting_.gradients[(r + seat_.rank) % seat_.world].subspan(begin, end - begin);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    }
    meeting_.barrier.arrive_and_wait();
    std::ranges::copy(sum, meeting_.gradients[seat_.rank].subspan(begin).begin());
  }

 private:
  Meeting& meeting_;
  Seat seat_;
  std::vector<Bucket> buckets_;
};

std::vector<std::uint64_t> hashes_of_world(const Recipe& recipe, const Images& images, std::size_t world) {
  std::vector<std::uint64_t> hashes(world);
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (std::size_t rank = 0; rank < world; ++rank)
    trainers.push_back(std::make_unique<Trainer>(recipe, images, Seat{rank, world}));
  Meeting meeting(world);
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadSync sync(meeting, {rank, world}, trainers[rank]->network());
      train(*trainers[rank], recipe, images.count(), sync);
      hashes[rank] = hash_bits(trainers[rank]->network().values());
    });
  }
  threads.clear();
  return hashes;
}

TEST_CASE("trainer: the order of an epoch is a permutation that depends on seed and epoch") {
  const auto order = shuffled(1000, 1, 1);
  CHECK(std::set<std::uint32_t>(order.begin(), order.end()).size() == 1000);
  CHECK(*std::ranges::max_element(order) == 999);
  CHECK(order == shuffled(1000, 1, 1));
  CHECK(order != shuffled(1000, 1, 2));
  CHECK(order != shuffled(1000, 2, 1));
  CHECK(shuffled(1, 1, 1) == std::vector<std::uint32_t>{0});
  CHECK(shuffled(0, 1, 1).empty());
}

TEST_CASE("trainer: the batches of an epoch cover it, the last is short") {
  const auto order = shuffled(130, 1, 1);
  Recipe recipe;
  recipe.batch = 60;
  CHECK(steps_per_epoch(recipe, 130) == 3);
  CHECK(global_batch(order, 60, 1).data() == order.data() + 60);
  CHECK(global_batch(order, 60, 2).size() == 10);
}

TEST_CASE("trainer: the same recipe gives the same bits twice") {
  const Images images = striped_images(150);
  for (const Model& model : models()) {
    const Recipe recipe = small_recipe(std::string(model.name));
    CHECK(hashes_of_world(recipe, images, 1) == hashes_of_world(recipe, images, 1));
  }
}

TEST_CASE("trainer: worlds of 2 to 5 end with the bits of the run alone, short batches included") {
  const Images images = striped_images(150);  // batches of 60, 60 and 30: of the last, some ranks have no sample
  for (const Model& model : models()) {
    const Recipe recipe = small_recipe(std::string(model.name));
    const std::uint64_t alone = hashes_of_world(recipe, images, 1)[0];
    for (std::size_t world = 2; world <= 5; ++world) {
      INFO(model.name << ", world " << world);
      CHECK(hashes_of_world(recipe, images, world) == std::vector<std::uint64_t>(world, alone));
    }
  }
}

TEST_CASE("trainer: training learns, and evaluation counts the shares of all ranks") {
  const Images images = striped_images(300);
  Recipe recipe = small_recipe("mlp");
  recipe.epochs = 6;
  Trainer trainer(recipe, images, {});
  Alone nobody(trainer.network().values().size());
  const Score before = trainer.evaluate(images);
  train(trainer, recipe, images.count(), nobody);
  const Score after = trainer.evaluate(images);
  CHECK(before.samples == 300);
  CHECK(after.samples == 300);
  CHECK(after.loss < before.loss / 2);
  CHECK(after.correct > 250);
}

TEST_CASE("reference: a difference of one value is found and named") {
  Network one = make_network("mlp", 1, 1), other = make_network("mlp", 1, 1);
  CHECK(largest_difference(one, other).relative_l2 == 0.0);
  one.values()[one.tensors()[2].offset] += 1.0F;
  const Difference difference = largest_difference(one, other);
  CHECK(difference.tensor == "dense2.weight");
  CHECK(difference.relative_l2 > 1e-3);
  one.values()[0] = std::numeric_limits<float>::quiet_NaN();
  CHECK_FALSE(largest_difference(one, other).relative_l2 <= 1.0);
}

}  // namespace
}  // namespace shoal::train
