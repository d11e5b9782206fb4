// SPDX-License-Identifier: Apache-2.0
// Tensors by name, and their states as bytes: for every compressor.
#include "compress/tensor_set.h"

#include <sodium.h>

#include <catch2/catch.hpp>
#include <random>

#include "compress/lockstep.h"

using namespace shoal;
using namespace shoal::compress;

namespace {

std::unique_ptr<TensorSet> make_set(const Kind& kind) {
  Result<std::unique_ptr<TensorSet>> made = TensorSet::create(kind.name, "");
  REQUIRE(made.is_ok());
  return made.take();
}

// A step of one tensor of a world of one.
std::vector<float> reduce(TensorSet& set, const std::string& key, Shape shape, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> input(shape.elements), output(shape.elements);
  for (float& x : input) x = normal(random);
  Result<TensorSet::Use> use = set.use(key, shape);
  REQUIRE(use.is_ok());
  Stages stages =
      (*use)->compressor->all_reduce({.input = input.data(), .output = output.data(), .elements = input.size()},
                                     {.world = {1}, .rank = {0}, .predict = [](const engine::Call&) { return 1e-6; }});
  for (int calls = 0; calls < 100; ++calls) {
    auto next = stages.next();
    REQUIRE(next.is_ok());
    if (!next->has_value()) return output;
    testing::run_alone(**next);
  }
  FAIL("no end");
  return {};
}

// As a file that somebody has changed and signed again.
void sign(std::vector<std::byte>& state) {
  auto* const bytes = reinterpret_cast<unsigned char*>(state.data());
  crypto_generichash(bytes + state.size() - 32, 32, bytes, state.size() - 32, nullptr, 0);
}

}  // namespace

TEST_CASE("Tensors: a saved state goes on with the same bits, for every compressor, also when it is saved again unused") {
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    const auto first = make_set(kind), second = make_set(kind), third = make_set(kind);
    const Shape matrix{600, 20}, vector{77, 1};
    for (unsigned step = 0; step < 3; ++step) {
      reduce(*first, "matrix", matrix, step);
      reduce(*first, "vector", vector, step + 100);
    }
    const auto state = first->save();
    REQUIRE(state.is_ok());
    REQUIRE(second->load(*state).is_ok());
    const auto again = second->save();
    REQUIRE(again.is_ok());
    CHECK(*again == *state);
    REQUIRE(third->load(*again).is_ok());
    for (unsigned step = 3; step < 5; ++step) {
      CHECK(reduce(*first, "matrix", matrix, step) == reduce(*third, "matrix", matrix, step));
      CHECK(reduce(*first, "vector", vector, step) == reduce(*third, "vector", vector, step));
    }
  }
}

TEST_CASE("Tensors: bytes that were changed and signed again are refused when they are loaded or used, and hurt nothing") {
  std::mt19937 random(5);
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    const auto set = make_set(kind), other = make_set(kind);
    reduce(*set, "w", {600, 20}, 1);
    const auto state = set->save();
    REQUIRE(state.is_ok());
    for (int change = 0; change < 200; ++change) {
      std::vector<std::byte> spoilt = *state;
      const std::size_t at = random() % (spoilt.size() - 32);
      spoilt[at] = static_cast<std::byte>(random());
      if (change % 5 == 0) spoilt.resize(32 + random() % (spoilt.size() - 32));
      sign(spoilt);
      const Status loaded = other->load(spoilt);
      if (!loaded.is_ok()) {
        CHECK(loaded.code() == Code::invalid_argument);
        continue;
      }
      Result<TensorSet::Use> use = other->use("w", {600, 20});
      if (!use.is_ok()) CHECK(use.status().code() == Code::invalid_argument);
    }
    REQUIRE(other->reset("").is_ok());
    CHECK(reduce(*other, "w", {600, 20}, 1).size() == 600);
  }
}

TEST_CASE("Tensors: a shape that nobody has memory for is only a claim of the bytes") {
  const auto set = make_set(*find_kind("dgc"));
  reduce(*set, "w", {600, 20}, 1);
  std::vector<std::byte> state = set->save().take();
  // magic, version, text, count, key: then the elements
  std::uint64_t text = 0;
  std::memcpy(&text, state.data() + 16, 8);
  const std::size_t at = 24 + text + 8 + 8 + 1;
  std::uint64_t elements = 0;
  std::memcpy(&elements, state.data() + at, 8);
  REQUIRE(elements == 600);
  elements = (std::uint64_t{1} << 50) * 20;
  std::memcpy(state.data() + at, &elements, 8);
  sign(state);
  REQUIRE(set->load(state).is_ok());
  CHECK(reduce(*set, "w", {600, 20}, 1).size() == 600);
}

TEST_CASE("Tensors: one call at a time has a tensor; meanwhile nothing is saved, loaded or reset") {
  const auto set = make_set(*find_kind("dgc"));
  {
    const Result<TensorSet::Use> use = set->use("w", {10, 1});
    REQUIRE(use.is_ok());
    CHECK(set->use("w", {10, 1}).status().code() == Code::invalid_usage);
    CHECK(set->use("other", {10, 1}).is_ok());
    CHECK(set->save().status().code() == Code::invalid_usage);
    CHECK(set->reset("w").code() == Code::invalid_usage);
    CHECK(set->reset("").code() == Code::invalid_usage);
  }
  CHECK(set->reset("w").is_ok());
  CHECK(set->reset("w").code() == Code::invalid_argument);
}

TEST_CASE("Options: numbers within their ranges, words of their lists, each once; their text is the same for the same values") {
  constexpr OptionSpec kSpecs[] = {{.name = "share", .value = 0.5, .low = 0, .high = 1},
                                   {.name = "steps", .value = 3, .low = 1, .high = 1e6, .whole = true},
                                   {.name = "way", .words = "up|down"}};
  const auto options = Options::parse("way=down,share=0.25", kSpecs, "x");
  REQUIRE(options.is_ok());
  CHECK(options->number("share") == 0.25);
  CHECK(options->whole("steps") == 3);
  CHECK(options->word("way") == "down");
  CHECK(options->text() == Options::parse("share=2.5e-1,steps=3,way=down", kSpecs, "x")->text());
  for (const char* wrong : {"speed=1", "share=2", "share=-0.1", "share=nan", "share=inf", "share=1x", "share=", "share",
                            "steps=1.5", "way=left", "way=", "share=0.1,share=0.1", "=", ",", "share=0.1,"}) {
    CAPTURE(wrong);
    const auto parsed = Options::parse(wrong, kSpecs, "x");
    if (std::string_view(wrong) == "share=0.1,")
      CHECK(parsed.is_ok());
    else
      CHECK(parsed.status().code() == Code::invalid_argument);
  }
}
