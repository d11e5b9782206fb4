// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/buckets.h"

#include <catch2/catch.hpp>

namespace shoal::train {
namespace {

std::vector<Tensor> tensors_of(const std::vector<std::size_t>& counts) {
  std::vector<Tensor> tensors;
  for (const std::size_t count : counts) append(tensors, {.name = "t", .shape = {count}});
  return tensors;
}

using Layout = std::vector<Bucket>;

// Caps in elements, for legibility.
Layout layout(const std::vector<std::size_t>& counts, std::size_t first, std::size_t other) {
  return make_buckets(tensors_of(counts), {.first = first * sizeof(float), .other = other * sizeof(float)});
}

TEST_CASE("buckets: tensors are packed in reverse order up to the caps") {
  //        offsets 0   10  30  60
  CHECK(layout({10, 20, 30, 5}, 40, 40) == Layout{{30, 65}, {0, 30}});
  CHECK(layout({10, 20, 30, 5}, 5, 50) == Layout{{60, 65}, {10, 60}, {0, 10}});
  CHECK(layout({10, 20, 30, 5}, 1000, 1000) == Layout{{0, 65}});
  CHECK(layout({10, 20, 30, 5}, 1, 1) == Layout{{60, 65}, {30, 60}, {10, 30}, {0, 10}});
}

TEST_CASE("buckets: a bucket exactly at its cap is not split, one element less splits it") {
  CHECK(layout({4, 4}, 8, 8) == Layout{{0, 8}});
  CHECK(layout({4, 4}, 7, 8) == Layout{{4, 8}, {0, 4}});
}

TEST_CASE("buckets: a tensor above the cap is a bucket of its own") {
  CHECK(layout({3, 100, 2}, 10, 10) == Layout{{103, 105}, {3, 103}, {0, 3}});
  CHECK(layout({100}, 10, 10) == Layout{{0, 100}});
}

TEST_CASE("buckets: the first cap is the first bucket's alone") {
  CHECK(layout({2, 2, 2, 2, 2}, 2, 4) == Layout{{8, 10}, {4, 8}, {0, 4}});
  CHECK(layout({2, 2, 2, 2, 2}, 4, 2) == Layout{{6, 10}, {4, 6}, {2, 4}, {0, 2}});
}

TEST_CASE("buckets: no tensors, no buckets") { CHECK(make_buckets({}, {}).empty()); }

TEST_CASE("buckets: every layout covers the arena once, from the end to the beginning") {
  const std::vector<std::size_t> counts{200704, 256, 32768, 128, 1280, 10};  // the mlp's
  for (std::size_t first = 1; first < 400000; first = first * 3 + 1) {
    for (std::size_t other = 1; other < 400000; other = other * 5 + 2) {
      std::size_t end = 235146;
      for (const Bucket& bucket : layout(counts, first, other)) {
        CHECK(bucket.end == end);
        CHECK(bucket.begin < bucket.end);
        end = bucket.begin;
      }
      CHECK(end == 0);
    }
  }
}

}  // namespace
}  // namespace shoal::train
