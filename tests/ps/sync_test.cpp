// SPDX-License-Identifier: Apache-2.0
// Synchronous groups: what is pulled is, bit for bit, what one process computes that adds in the order of the ranks.
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "ps/group.h"

namespace {

using testing::Group;
using testing::pull;
using testing::push;
using testing::rough;
using testing::run_group;
using testing::same_bits;

constexpr int kIterations = 5;
constexpr float kRate = 0.1F;

// One process that does what a group does.
class Serial {
 public:
  Serial(int workers, std::size_t keys) : workers_(workers), weights(keys) {
    for (std::size_t i = 0; i < keys; ++i) weights[i] = rough(99, 0, i);
  }
  void iterate(int iteration) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      float sum = rough(0, iteration, i);
      for (int worker = 1; worker < workers_; ++worker) sum += rough(worker, iteration, i);
      weights[i] -= kRate * (sum / static_cast<float>(workers_));
    }
  }

 private:
  int workers_;

 public:
  std::vector<float> weights;
};

std::vector<float> gradient(int worker, int iteration, std::size_t keys) {
  std::vector<float> values(keys);
  for (std::size_t i = 0; i < keys; ++i) values[i] = rough(worker, iteration, i);
  return values;
}

// `lazy`: the worker that comes late in every iteration, so that the others' pushes are there before its own.
std::string train(shoalPs_t ps, int rank, int workers, std::size_t keys, int lazy) {
  Serial serial(workers, keys);
  std::vector<float> weights(keys);
  for (int iteration = 0; iteration <= kIterations; ++iteration) {
    if (std::string wrong = pull(ps, 0, weights); !wrong.empty()) return wrong;
    if (std::string wrong = same_bits(weights, serial.weights, "iteration " + std::to_string(iteration)); !wrong.empty())
      return wrong;
    if (iteration == kIterations) return "";
    if (rank == lazy) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (std::string wrong = push(ps, 0, gradient(rank, iteration, keys)); !wrong.empty()) return wrong;
    if (std::string wrong = testing::must(shoalPsClock(ps), "shoalPsClock"); !wrong.empty()) return wrong;
    serial.iterate(iteration);
  }
  return "";
}

Group training(int workers, int servers, std::size_t keys, const std::vector<float>& initial, int lazy) {
  Group group{.config = testing::config_of(workers, servers, keys),
              .work = [=](shoalPs_t ps, int rank) { return train(ps, rank, workers, keys, lazy); }};
  group.config.optimizer = shoalPsOptimizerSgd;
  group.config.learningRate = kRate;
  group.config.initial = initial.data();
  return group;
}

}  // namespace

TEST_CASE("ps sync: weights equal the serial reference bit for bit, for every number of workers and servers") {
  const std::size_t keys = 1003;
  const std::vector<float> initial = Serial(1, keys).weights;
  for (int workers = 1; workers <= 8; ++workers)
    for (int servers : {1, 2, 3}) {
      if (workers + servers > 9) continue;
      INFO(workers << " workers, " << servers << " servers");
      CHECK(run_group("threads", training(workers, servers, keys, initial, 0)) == "");
    }
}

TEST_CASE("ps sync: the same over shared memory and TCP, in large and in tiny messages") {
  const std::size_t keys = 50'001;
  const std::vector<float> initial = Serial(1, keys).weights;
  for (const char* transport : {"shm", "tcp"})
    for (const char* slice : {"65536", "100"}) {
      INFO(transport << ", " << slice);
      const std::size_t fewer = slice == std::string("100") ? 1001 : keys;
      CHECK(run_group(transport, training(3, 2, fewer, initial, 1), {{"SHOAL_SLICE_BYTES", slice}}) == "");
    }
}

TEST_CASE("ps sync: a fast worker's pushes of the next iteration wait for theirs") {
  const std::size_t keys = 301;
  const int rounds = 6;
  for (const char* transport : {"threads", "tcp"}) {
    INFO(transport);
    Group group{.config = testing::config_of(3, 2, keys), .work = [=](shoalPs_t ps, int rank) -> std::string {
                  // Worker 2 pushes everything at once and never looks; the others check each iteration's sum.
                  std::vector<std::vector<float>> pushed;
                  std::vector<float> sum(keys);
                  for (int iteration = 0; iteration < rounds; ++iteration) {
                    if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
                    pushed.push_back(gradient(rank, iteration, keys));
                    if (shoalPsPush(ps, 0, keys, pushed.back().data(), nullptr) != ncclSuccess) return ncclGetLastError(nullptr);
                    if (shoalPsClock(ps) != ncclSuccess) return ncclGetLastError(nullptr);
                    if (rank == 2) continue;
                    if (std::string wrong = pull(ps, 0, sum); !wrong.empty()) return wrong;
                    std::vector<float> expected = gradient(0, iteration, keys);
                    for (int worker : {1, 2})
                      for (std::size_t i = 0; i < keys; ++i) expected[i] += rough(worker, iteration, i);
                    if (std::string wrong = same_bits(sum, expected, "iteration " + std::to_string(iteration)); !wrong.empty())
                      return wrong;
                  }
                  std::vector<float> last(keys);
                  return pull(ps, 0, last);
                }};
    CHECK(run_group(transport, group) == "");
  }
}

TEST_CASE("ps sync: ranges over the servers' borders, several a key, none at all, and servers without keys") {
  const std::vector<std::size_t> shares{0, 7, 0, 3};
  Group group{.config = testing::config_of(2, 4, 10), .work = [](shoalPs_t ps, int rank) -> std::string {
                const float f = rank == 0 ? 1 : 100;
                if (std::string wrong = push(ps, 5, {f, 2 * f, 3 * f, 4 * f}); !wrong.empty()) return wrong;  // 5..8
                if (std::string wrong = push(ps, 6, {f, f}); !wrong.empty()) return wrong;                    // 6..7
                if (std::string wrong = push(ps, 10, {}); !wrong.empty()) return wrong;
                if (rank == 1)
                  if (std::string wrong = push(ps, 0, {1000}); !wrong.empty()) return wrong;
                if (shoalPsClock(ps) != ncclSuccess) return ncclGetLastError(nullptr);
                std::vector<float> all(10), some(3), none;
                if (std::string wrong = pull(ps, 0, all); !wrong.empty()) return wrong;
                if (std::string wrong = pull(ps, 6, some); !wrong.empty()) return wrong;
                if (std::string wrong = pull(ps, 3, none); !wrong.empty()) return wrong;
                if (all != std::vector<float>{1000, 0, 0, 0, 0, 101, 303, 404, 404, 0}) return "all is wrong";
                if (some != std::vector<float>{303, 404, 404}) return "some are wrong";
                // The next iteration's sum has nothing of this one's.
                if (std::string wrong = push(ps, 9, {f}); !wrong.empty()) return wrong;
                if (shoalPsClock(ps) != ncclSuccess) return ncclGetLastError(nullptr);
                if (std::string wrong = pull(ps, 0, all); !wrong.empty()) return wrong;
                return all == std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 0, 101} ? "" : "the second iteration is wrong";
              }};
  group.config.shares = shares.data();
  for (const char* transport : {"threads", "shm", "tcp"}) {
    INFO(transport);
    CHECK(run_group(transport, group) == "");
  }
}

TEST_CASE("ps sync: float64, and an update function with momentum on the servers") {
  struct Momentum {
    static int update(std::size_t first, std::size_t count, void* weights, const void* gradient, int workers, std::uint64_t,
                      void* user) {
      auto* velocity = static_cast<double*>(user);
      for (std::size_t i = 0; i < count; ++i) {
        velocity[first + i] = 0.5 * velocity[first + i] + static_cast<const double*>(gradient)[i] / workers;
        static_cast<double*>(weights)[i] -= velocity[first + i];
      }
      return 0;
    }
  };
  const std::size_t keys = 6;
  std::vector<double> velocity(keys);
  Group group{.config = testing::config_of(2, 2, keys), .work = [](shoalPs_t ps, int rank) -> std::string {
                std::vector<double> weights(keys), gradients(keys);
                double expected = 0, speed = 0;
                for (int iteration = 0; iteration < 4; ++iteration) {
                  for (std::size_t i = 0; i < keys; ++i) gradients[i] = iteration + 2 * rank + 1;
                  std::uint64_t pushed = 0, pulled = 0;
                  if (shoalPsPush(ps, 0, keys, gradients.data(), &pushed) != ncclSuccess || shoalPsClock(ps) != ncclSuccess ||
                      shoalPsPull(ps, 0, keys, weights.data(), &pulled) != ncclSuccess ||
                      shoalPsWait(ps, pulled) != ncclSuccess || shoalPsWait(ps, pushed) != ncclSuccess)
                    return ncclGetLastError(nullptr);
                  speed = 0.5 * speed + iteration + 2;
                  expected -= speed;
                  for (double weight : weights)
                    if (weight != expected) return "iteration " + std::to_string(iteration) + ": " + std::to_string(weight);
                }
                return "";
              }};
  group.config.dtype = ncclFloat64;
  group.config.optimizer = shoalPsOptimizerCustom;
  group.config.update = &Momentum::update;
  group.config.user = velocity.data();
  CHECK(run_group("threads", group) == "");
  CHECK(run_group("shm", group) == "");
}
