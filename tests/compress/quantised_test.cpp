// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "compress/codecs/codec.h"
#include "compress/vectors.h"
#include "plan/plan.h"

using namespace shoal::compress;
using namespace testing;

namespace {

shoal::plan::Range stripe(std::size_t n, int world, std::size_t q) {
  return shoal::plan::chunk_range({n}, world, static_cast<std::int32_t>(q));
}

// The first element of the block that element i is encoded with, and the one after its last.
shoal::plan::Range block_of(const Codec& codec, std::size_t n, int world, std::size_t i) {
  std::size_t q = 0;
  while (i >= stripe(n, world, q).end) ++q;
  const auto [begin, end] = stripe(n, world, q);
  if (codec.block == 0) return {begin, end};
  const std::size_t first = begin + (i - begin) / codec.block * codec.block;
  return {first, std::min(end, first + codec.block)};
}

// What the codec's bound allows for values of these magnitudes.
Wide rounding(const Codec& codec, const Wide& magnitudes, int world) {
  Wide bound(magnitudes.size());
  for (std::size_t i = 0; i < bound.size();) {
    const auto [begin, end] = block_of(codec, bound.size(), world, i);
    double largest = 0;
    for (std::size_t k = begin; k < end; ++k) largest = std::max(largest, magnitudes[k]);
    for (; i < end; ++i) bound[i] = codec.bound.relative * magnitudes[i] + codec.bound.of_block * largest + codec.bound.absolute;
  }
  return bound;
}

// Of two roundings: every rank's, and that of the sum, which may already be as far off as all those.
Wide two_roundings(const Codec& codec, const Vectors& inputs, double scale) {
  const int world = static_cast<int>(inputs.size());
  Wide first(inputs.front().size()), added(first.size());
  for (const auto& each : inputs) {
    Wide magnitudes;
    for (const float x : each) magnitudes.push_back(std::abs(scale * static_cast<double>(x)));
    const Wide bound = rounding(codec, magnitudes, world);
    for (std::size_t i = 0; i < first.size(); ++i) {
      first[i] += bound[i];
      added[i] += magnitudes[i] + bound[i];
    }
  }
  Wide sum = sum_of(inputs, scale);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = std::abs(sum[i]) + first[i];
  Wide total = rounding(codec, sum, world);
  // Sums of float32: half a unit in the last place for each addition, and one for the scale.
  for (std::size_t i = 0; i < total.size(); ++i) total[i] += first[i] + (world + 1) * 0x1p-24 * added[i];
  return total;
}

// Says the first element that is not.
void require_within(const Outcome& outcome, const Wide& sum, const Wide& bound) {
  const std::vector<float>& result = outcome.outputs[0];
  std::size_t i = 0;
  while (i < sum.size() && std::abs(static_cast<double>(result[i]) - sum[i]) <= bound[i]) ++i;
  if (i == sum.size()) return;
  CAPTURE(i, result[i], sum[i], bound[i]);
  REQUIRE(std::abs(static_cast<double>(result[i]) - sum[i]) <= bound[i]);
}

struct State {
  std::uint64_t calls;
  std::vector<float> residual, stripe_residual;
  std::size_t stripe_begin;
};

State state_of(const Compressor& compressor, std::size_t n) {
  const auto bytes = saved(compressor);
  StateReader reader(bytes);
  State state{reader.number(), std::vector<float>(n), {}, 0};
  reader.floats(state.residual);
  state.stripe_begin = reader.number();
  state.stripe_residual.resize(reader.number());
  REQUIRE(reader.floats(state.stripe_residual));
  return state;
}

bool whole(const std::vector<float>& v) {
  return std::all_of(v.begin(), v.end(), [](float x) { return x == std::floor(x) && std::abs(x) < 0x1p22F; });
}

}  // namespace

TEST_CASE("Every codec's all-reduce at every world and awkward lengths: all ranks the same bits, within two roundings") {
  const int world = GENERATE(1, 2, 3, 4, 5, 6, 7, 8, 9);
  const std::size_t n = GENERATE(0, 1, 2, 57, 255, 4097);
  const bool average = GENERATE(false, true);
  for (const Codec& codec : codecs()) {
    CAPTURE(codec.name, world, n, average);
    const double scale = average ? static_cast<double>(1.0F / static_cast<float>(world)) : 1;
    const auto inputs = random_vectors(world, n, 7);
    const Outcome outcome = all_reduce(make_ranks(codec.name, "", {n, 1}, world), inputs, average);
    require_alike(outcome);
    require_within(outcome, sum_of(inputs, scale), two_roundings(codec, inputs, scale));
  }
}

TEST_CASE("Every codec's all-reduce of a million and three elements stays within two roundings") {
  constexpr std::size_t kElements = 1'000'003;
  const auto inputs = random_vectors(3, kElements, 7);
  const Wide sum = sum_of(inputs);
  for (const Codec& codec : codecs()) {
    CAPTURE(codec.name);
    const Outcome outcome = all_reduce(make_ranks(codec.name, "", {kElements, 1}, 3), inputs, false, false);
    require_alike(outcome);
    require_within(outcome, sum, two_roundings(codec, inputs, 1));
  }
}

TEST_CASE("Every codec's error for a sum of one size does not grow with the number of ranks") {
  constexpr std::size_t kElements = 3000;
  const auto goal = random_vector(kElements, 8);
  const int world = GENERATE(2, 3, 5, 9, 16);
  for (const Codec& codec : codecs()) {
    CAPTURE(codec.name, world);
    auto part = goal;
    for (float& x : part) x /= static_cast<float>(world);
    const Vectors inputs(static_cast<std::size_t>(world), part);
    const Outcome outcome = all_reduce(make_ranks(codec.name, "", {kElements, 1}, world), inputs);
    require_alike(outcome);
    // Blocks begin anew with every stripe; so the bound of one rank's sum is taken with the stripes of this world.
    const Wide sum = sum_of(inputs);
    Wide magnitudes;
    for (const double x : sum) magnitudes.push_back(std::abs(x));
    Wide bound = rounding(codec, magnitudes, world), once = bound;
    for (std::size_t i = 0; i < kElements; ++i) magnitudes[i] += once[i];
    const Wide again = rounding(codec, magnitudes, world);
    for (std::size_t i = 0; i < kElements; ++i)
      bound[i] = (once[i] + again[i]) * (1 + 1e-5) + world * (codec.bound.absolute + 0x1p-24 * magnitudes[i]);
    require_within(outcome, sum, bound);
  }
}

TEST_CASE("Every codec's traffic: encoded stripes to their owners, and encoded sums to all, to the byte") {
  const int world = GENERATE(1, 2, 3, 5, 9);
  const std::size_t n = GENERATE(0, 1, 57, 255, 4097);
  for (const Codec& codec : codecs()) {
    const auto ranks = make_ranks(codec.name, "", {n, 1}, world);
    const Outcome outcome = all_reduce(ranks, random_vectors(world, n, 2));
    REQUIRE(outcome.wrong == "");
    REQUIRE(outcome.collectives == 2);
    const auto bytes = [&](std::size_t q) { return codec.wire_bytes(stripe(n, world, q).length()); };
    std::size_t all = 0;
    for (std::size_t q = 0; q < ranks.size(); ++q) all += bytes(q);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      CAPTURE(codec.name, world, n, r);
      REQUIRE(outcome.sent[r] == static_cast<double>(all - bytes(r) + (ranks.size() - 1) * bytes(r)));
      REQUIRE(outcome.received[r] == static_cast<double>((ranks.size() - 1) * bytes(r) + all - bytes(r)));
      REQUIRE(ranks[r]->report().encoded_bytes == all);
    }
  }
}

TEST_CASE("Every codec with feedback loses nothing: results, residuals of all ranks and of all owners are what went in") {
  const int world = GENERATE(1, 2, 3, 5, 9);
  const bool average = GENERATE(false, true);
  const bool integers = GENERATE(false, true);
  constexpr std::size_t kElements = 700;
  for (const Codec& codec : codecs()) {
    const auto ranks = make_ranks(codec.name, "feedback=1", {kElements, 1}, world);
    const double scale = average ? static_cast<double>(1.0F / static_cast<float>(world)) : 1;
    Wide in(kElements), out(kElements);
    bool all_whole = integers && !average;
    for (unsigned call = 0; call < 6; ++call) {
      auto inputs = random_vectors(world, kElements, call);
      if (integers)
        for (auto& each : inputs)
          for (float& x : each) x = std::clamp(std::round(40 * x), -127.0F, 127.0F);
      const Wide sum = sum_of(inputs, scale);
      for (std::size_t i = 0; i < kElements; ++i) in[i] += sum[i];
      const Outcome outcome = all_reduce(ranks, inputs, average);
      require_alike(outcome);
      add(out, outcome.outputs[0]);
      Wide accounted = out;
      double kept = 0;
      all_whole = all_whole && whole(outcome.outputs[0]);
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        const State state = state_of(*ranks[r], kElements);
        REQUIRE(state.calls == call + 1);
        const auto [begin, end] = stripe(kElements, world, r);
        REQUIRE(state.stripe_begin == begin);
        REQUIRE(state.stripe_residual.size() == end - begin);
        add(accounted, state.residual);
        for (std::size_t i = begin; i < end; ++i) accounted[i] += static_cast<double>(state.stripe_residual[i - begin]);
        kept += norm(wide(state.residual)) + norm(wide(state.stripe_residual));
        all_whole = all_whole && whole(state.residual) && whole(state.stripe_residual);
      }
      CAPTURE(codec.name, world, average, call, kept);
      for (std::size_t i = 0; i < kElements; ++i) accounted[i] -= in[i];
      REQUIRE(norm(accounted) <= 1e-5 * (norm(in) + kept));
      if (all_whole) REQUIRE(norm(accounted) == 0);
    }
    // Whole numbers stay whole in half precision: the line above has been reached.
    if (integers && !average && codec.name == "fp16") REQUIRE(all_whole);
  }
}

TEST_CASE("An average is divided before it is made narrow: half precision's range is that of the mean") {  // FC-42
  constexpr std::size_t kElements = 300;
  std::vector<float> large(kElements, 30000), mixed(kElements, 30000);
  for (std::size_t i = 0; i < kElements; i += 3) mixed[i] = 1e-7F;
  const auto ranks = make_ranks("fp16", "", {kElements, 1}, 4);
  const Outcome exact = all_reduce(ranks, Vectors(4, large), true);
  require_alike(exact);
  REQUIRE(exact.outputs[0] == large);
  const Outcome sum = all_reduce(ranks, Vectors(4, large));
  require_alike(sum);
  for (const float x : sum.outputs[0]) REQUIRE(x == kInfinity);  // beyond 65504: it shows
  for (const Codec& codec : codecs()) {
    CAPTURE(codec.name);
    const Outcome outcome = all_reduce(make_ranks(codec.name, "", {kElements, 1}, 4), Vectors(4, mixed), true);
    require_alike(outcome);
    require_within(outcome, wide(mixed), two_roundings(codec, Vectors(4, mixed), 0.25));
  }
}

TEST_CASE("Blocks of zeros, of subnormal and of equal numbers keep to the bound; infinity and NaN stay in theirs") {  // FC-44
  for (const Codec& codec : codecs()) {
    const std::size_t block = std::max<std::size_t>(codec.block, 32), n = 4 * 5 * block;
    Vectors inputs = random_vectors(4, n, 4);
    for (std::size_t r = 0; r < 4; ++r)
      for (std::size_t i = 0; i < n; ++i) switch (i / block % 5) {
          case 0: inputs[r][i] = 0; break;
          case 1: inputs[r][i] = 1e-42F * static_cast<float>(static_cast<int>(i % 7) - 3); break;
          case 2: inputs[r][i] = 2.5F; break;
          default: break;
        }
    inputs[1][3 * block + 5] = kInfinity;
    inputs[2][9 * block + 11] = kNan;
    const auto ranks = make_ranks(codec.name, "", {n, 1}, 4);
    const Outcome outcome = all_reduce(ranks, inputs);
    REQUIRE(outcome.wrong == "");
    // Blocks with what is not finite are judged apart, and are none of the bound's.
    std::vector<bool> broken(n);
    for (const std::size_t bad : {3 * block + 5, 9 * block + 11}) {
      const auto [begin, end] = block_of(codec, n, 4, bad);
      std::fill(broken.begin() + static_cast<std::ptrdiff_t>(begin), broken.begin() + static_cast<std::ptrdiff_t>(end), true);
    }
    Vectors sound = inputs;
    for (std::size_t i = 0; i < n; ++i)
      if (broken[i])
        for (auto& each : sound) each[i] = 0;
    const Wide sum = sum_of(sound), bound = two_roundings(codec, sound, 1);
    for (const auto& each : outcome.outputs)
      for (std::size_t i = 0; i < n; ++i) {
        const bool bad = i == 3 * block + 5 || i == 9 * block + 11, zero = codec.block != 0 && i / block % 5 == 0;
        const bool right = bad         ? !std::isfinite(each[i])
                           : zero      ? each[i] == 0
                           : broken[i] ? true
                                       : std::abs(static_cast<double>(each[i]) - sum[i]) <= bound[i];
        if (right) continue;
        CAPTURE(codec.name, i, bad, zero, each[i], sum[i], bound[i]);
        REQUIRE(right);
      }
  }
}

TEST_CASE("Awkward sizes: what fills up a byte or a block never gets into the result") {  // FC-45
  const int world = GENERATE(2, 3, 5);
  const std::size_t n = GENERATE(1, 2, 57, 255, 4097);
  for (const Codec& codec : codecs()) {
    CAPTURE(codec.name, world, n);
    // Large numbers in an earlier call, which buffers still hold; then small ones.
    const auto ranks = make_ranks(codec.name, "", {n, 1}, world);
    all_reduce(ranks, Vectors(static_cast<std::size_t>(world), std::vector<float>(n, 1000)));
    auto inputs = random_vectors(world, n, 7);
    for (auto& each : inputs)
      for (float& x : each) x *= 1e-3F;
    const Outcome outcome = all_reduce(ranks, inputs);
    require_alike(outcome);
    require_within(outcome, sum_of(inputs), two_roundings(codec, inputs, 1));
  }
}

TEST_CASE("With feedback a NaN or an infinity of one call is nothing in the next") {
  const float bad = GENERATE(values({kNan, kInfinity, -kInfinity}));
  for (const Codec& codec : codecs()) {
    constexpr std::size_t kElements = 3000;
    const auto ranks = make_ranks(codec.name, "feedback=1", {kElements, 1}, 3);
    const auto inputs = random_vectors(3, kElements, 4);
    all_reduce(ranks, inputs);
    auto broken = inputs;
    broken[2][1234] = bad;
    const Outcome outcome = all_reduce(ranks, broken);
    REQUIRE(outcome.wrong == "");
    for (const auto& each : outcome.outputs) REQUIRE(!std::isfinite(each[1234]));
    CAPTURE(codec.name, bad);
    for (const auto& each : ranks) {
      const State state = state_of(*each, kElements);
      for (const float x : state.residual) REQUIRE(std::isfinite(x));
      for (const float x : state.stripe_residual) REQUIRE(std::isfinite(x));
    }
    const Outcome after = all_reduce(ranks, inputs);
    require_alike(after);
    for (const float x : after.outputs[0]) REQUIRE(std::isfinite(x));
  }
}

TEST_CASE("Every codec's state: saved and loaded it goes on bit for bit; another shape's is refused and changes nothing") {
  const bool feedback = GENERATE(false, true);
  const auto* options = feedback ? "feedback=1" : "";
  for (const Codec& codec : codecs()) {
    CAPTURE(codec.name, feedback);
    const auto first = make_ranks(codec.name, options, {500, 1}, 3), second = make_ranks(codec.name, options, {500, 1}, 3);
    for (unsigned call = 0; call < 3; ++call) all_reduce(first, random_vectors(3, 500, call));
    for (std::size_t r = 0; r < 3; ++r) {
      const auto bytes = saved(*first[r]);
      REQUIRE(loaded(*second[r], bytes).is_ok());
      REQUIRE(!loaded(*second[r], {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2)}).is_ok());
      REQUIRE(!loaded(*second[r], {}).is_ok());
      if (!feedback) continue;
      const auto status = loaded(*make_ranks(codec.name, options, {501, 1}, 1)[0], bytes);
      REQUIRE(status.code() == shoal::Code::invalid_argument);
      REQUIRE(status.text().find("not one of 501 elements") != std::string::npos);
      REQUIRE(!loaded(*make_ranks(codec.name, "", {500, 1}, 1)[0], bytes).is_ok());
    }
    for (unsigned call = 3; call < 6; ++call) {
      const auto inputs = random_vectors(3, 500, call);
      REQUIRE(all_reduce(first, inputs).outputs == all_reduce(second, inputs).outputs);
    }
  }
}

TEST_CASE(
    "Every codec: in another world, or as another rank, a rank's own residual is kept and an owner's of other elements is not") {
  for (const Codec& codec : codecs()) {
    CAPTURE(codec.name);
    const auto inputs = random_vectors(4, 1024, 4);
    const auto ranks = make_ranks(codec.name, "feedback=1", {1024, 1}, 4);
    all_reduce(ranks, inputs);
    // Ranks 1 and 2 change places: their stripes are as long as before, but not theirs.
    const auto swapped = make_ranks(codec.name, "feedback=1", {1024, 1}, 4);
    const auto cleared = make_ranks(codec.name, "feedback=1", {1024, 1}, 4);
    const std::array<std::size_t, 4> old = {0, 2, 1, 3};
    for (std::size_t r = 0; r < 4; ++r) {
      REQUIRE(loaded(*swapped[r], saved(*ranks[old[r]])).is_ok());
      const State state = state_of(*ranks[old[r]], 1024);
      StateWriter writer;
      writer.number(state.calls);
      writer.floats(state.residual);
      const bool kept = old[r] == r;
      writer.number(kept ? state.stripe_begin : 0);
      writer.number(kept ? state.stripe_residual.size() : 0);
      writer.floats(kept ? std::span<const float>(state.stripe_residual) : std::span<const float>());
      REQUIRE(loaded(*cleared[r], writer.bytes()).is_ok());
    }
    REQUIRE(all_reduce(swapped, inputs).outputs == all_reduce(cleared, inputs).outputs);
    const auto two = make_ranks(codec.name, "feedback=1", {1024, 1}, 2);
    for (std::size_t r = 0; r < 2; ++r) REQUIRE(loaded(*two[r], saved(*ranks[r])).is_ok());
    require_alike(all_reduce(two, {inputs[0], inputs[1]}));
  }
}

TEST_CASE("Every codec: input and output may be the same memory, and the measured error is that of this rank's rounding") {
  const auto input = random_vector(777, 4);
  for (const Codec& codec : codecs()) {
    CAPTURE(codec.name);
    const auto apart = make_ranks(codec.name, "feedback=1", {777, 1}, 1),
               in_place = make_ranks(codec.name, "feedback=1", {777, 1}, 1);
    for (int call = 0; call < 3; ++call) REQUIRE(alone_in_place(*in_place[0], input) == all_reduce(apart, {input}).outputs[0]);
    const auto once = make_ranks(codec.name, "feedback=1", {777, 1}, 1);
    all_reduce(once, {input});
    const Wide residual = wide(state_of(*once[0], 777).residual);
    REQUIRE(once[0]->report().squared_error == Approx(norm(residual) * norm(residual)).margin(1e-12));
    REQUIRE(once[0]->report().squared_norm == Approx(norm(wide(input)) * norm(wide(input))));
  }
}
