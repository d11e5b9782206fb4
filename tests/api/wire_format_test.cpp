// SPDX-License-Identifier: Apache-2.0
// Collectives whose float32 travels encoded: every algorithm that may run so gives all ranks the same bits, near the true result.
#include <shoal/compress.h>
#include <shoal/shoal.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "algorithms/algorithms.h"
#include "compress/codecs/codec.h"
#include "support/ranks.h"

using shoal::plan::Collective;
using testing::must;
using testing::Ranks;

namespace {

// What is said of an algorithm that shares memory, or whose result several ranks finish.
const std::string kRefused = "it does not run so";

float value(int rank, std::size_t i) { return std::sin(0.37F * static_cast<float>(i) + static_cast<float>(rank)); }

// One call of the collective; `blocks`: of count elements each, in and out.
ncclResult_t call(Collective c, const float* in, float* out, std::size_t count, ncclComm_t comm) {
  switch (c) {
    case Collective::all_reduce: return ncclAllReduce(in, out, count, ncclFloat32, ncclAvg, comm, nullptr);
    case Collective::reduce_scatter: return ncclReduceScatter(in, out, count, ncclFloat32, ncclAvg, comm, nullptr);
    case Collective::all_gather: return ncclAllGather(in, out, count, ncclFloat32, comm, nullptr);
    case Collective::broadcast: return ncclBroadcast(in, out, count, ncclFloat32, 0, comm, nullptr);
    case Collective::reduce: return ncclReduce(in, out, count, ncclFloat32, ncclAvg, 0, comm, nullptr);
    case Collective::all_to_all: return ncclAlltoAll(in, out, count, ncclFloat32, comm, nullptr);
    default: return ncclInvalidUsage;
  }
}

// What element i of rank `rank`'s output is, without codecs.
double truth(Collective c, int rank, int world, std::size_t count, std::size_t i) {
  const auto average = [&](std::size_t at) {
    double sum = 0;
    for (int q = 0; q < world; ++q) sum += value(q, at);
    return sum / world;
  };
  switch (c) {
    case Collective::reduce_scatter: return average(static_cast<std::size_t>(rank) * count + i);
    case Collective::all_gather: return value(static_cast<int>(i / count), i % count);
    case Collective::broadcast: return value(0, i);
    case Collective::all_to_all: return value(static_cast<int>(i / count), static_cast<std::size_t>(rank) * count + i % count);
    default: return average(i);
  }
}

std::string one(Collective c, const Ranks& ranks, ncclComm_t comm, std::size_t count, const char* codec, double tolerance) {
  const auto world = static_cast<std::size_t>(ranks.world);
  std::vector<float> in(count * world), out(count * world, -7.0F);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(ranks.rank, i);
  std::string wrong = must(shoalCommSetWireFormat(comm, codec), "format");
  if (wrong.empty()) wrong = must(call(c, in.data(), out.data(), count, comm), codec);
  if (!wrong.empty()) return wrong.find("no algorithm that is allowed") == std::string::npos ? wrong : kRefused;
  const bool in_blocks = c == Collective::all_gather || c == Collective::all_to_all;
  out.resize(in_blocks ? count * world : count);
  if (c == Collective::reduce && ranks.rank != 0) out.clear();
  for (std::size_t i = 0; i < out.size(); ++i)
    if (const double right = truth(c, ranks.rank, ranks.world, count, i); !(std::abs(out[i] - right) <= tolerance))
      return std::string(codec) + ", element " + std::to_string(i) + ": " + std::to_string(out[i]) + " for " +
             std::to_string(right);
  if (c != Collective::all_reduce && c != Collective::all_gather && c != Collective::broadcast) return "";
  std::vector<float> all(out.size() * world);
  wrong = must(shoalCommSetWireFormat(comm, nullptr), "none");
  if (wrong.empty()) wrong = must(ncclAllGather(out.data(), all.data(), out.size(), ncclFloat32, comm, nullptr), "gather");
  for (std::size_t r = 0; r < world && wrong.empty(); ++r)
    if (std::memcmp(all.data() + r * out.size(), out.data(), out.size() * sizeof(float)) != 0)
      wrong = std::string(codec) + ": rank " + std::to_string(r) + " has other bits";
  return wrong;
}

}  // namespace

TEST_CASE("Every algorithm with every wire format: all ranks the same bits, near the truth") {
  const std::string transport = GENERATE("threads", "tcp");
  const int world = GENERATE(2, 3, 4, 5);
  int ran = 0;
  for (const shoal::algorithms::Algorithm& algorithm : shoal::algorithms::all())
    for (const Collective c : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::broadcast,
                               Collective::reduce, Collective::all_to_all}) {
      if (algorithm.collective != c) continue;
      CAPTURE(transport, world, algorithm.name);
      auto variables = testing::transport_variables(transport);
      variables.emplace_back("NCCL_ALGO", std::string(shoal::plan::name_of(c)) + ":" + std::string(algorithm.name));
      const auto every_codec = [&](const Ranks& ranks, ncclComm_t comm) -> std::string {
        for (const shoal::compress::Codec& codec : shoal::compress::codecs()) {
          if (!codec.idempotent) continue;
          // Every hop may round: a value below one, in blocks whose largest is below one, partial sums of averages below one too.
          const double step = codec.bound.relative + codec.bound.of_block + codec.bound.absolute;
          if (std::string wrong = one(c, ranks, comm, 1000, codec.name.data(), 2 * world * step); !wrong.empty()) return wrong;
        }
        return "";
      };
      const auto body = [&](const Ranks& ranks) {
        return testing::with_comm(ranks, [&](ncclComm_t comm) { return every_codec(ranks, comm); });
      };
      const std::string said = transport == "threads" ? testing::as_threads(world, variables, 60, body)
                                                      : testing::as_processes(world, variables, 60, body);
      if (said.find(kRefused) == std::string::npos) {
        CHECK(said == "");
        ++ran;
      } else {
        CHECK(said.find("element") == std::string::npos);
      }
    }
  CHECK(ran >= 20);
}

TEST_CASE("A wire format is a part of the call: ranks that disagree on it are told so") {
  CHECK(testing::run_ranks("shm", 3, 60, [](const Ranks& ranks) -> std::string {
          ncclComm_t comm = nullptr;
          if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
          if (ranks.rank == 2) shoalCommSetWireFormat(comm, "fp16");
          std::vector<float> data(1000, 1.0F);
          const ncclResult_t result = ncclAllReduce(data.data(), data.data(), 1000, ncclFloat32, ncclSum, comm, nullptr);
          const std::string text = ncclGetLastError(comm);
          ncclCommAbort(comm);
          return result == ncclInvalidUsage && text.find("rank 2") != std::string::npos ? ""
                                                                                        : std::to_string(result) + ": " + text;
        }) == "");
}

TEST_CASE("Long vectors in many slices, in place, unaligned, and other types with a wire format") {
  CHECK(testing::run_ranks("tcp", 3, 60, [](const Ranks& ranks) {
          return testing::with_comm(ranks, [&](ncclComm_t comm) -> std::string {
            constexpr std::size_t kCount = 300'001;
            std::string wrong = must(shoalCommSetWireFormat(comm, "fp16"), "format");
            const char* name = "";
            if (wrong.empty()) wrong = must(shoalCommGetWireFormat(comm, &name), "get");
            if (std::string(name) != "fp16") return std::string("the format is ") + name;
            std::vector<char> bytes(kCount * sizeof(float) + 1);
            const std::vector<float> ones(kCount, 1.0F);
            std::memcpy(bytes.data() + 1, ones.data(), kCount * sizeof(float));
            if (wrong.empty())
              wrong = must(ncclAllReduce(bytes.data() + 1, bytes.data() + 1, kCount, ncclFloat32, ncclSum, comm, nullptr), "sum");
            std::vector<float> sums(kCount);
            std::memcpy(sums.data(), bytes.data() + 1, kCount * sizeof(float));
            for (const float x : sums)
              if (wrong.empty() && x != 3.0F) wrong = "a sum of " + std::to_string(x);
            std::vector<double> doubles(1000, 1.0 + 0x1p-40);
            if (wrong.empty())
              wrong = must(ncclAllReduce(doubles.data(), doubles.data(), 1000, ncclFloat64, ncclSum, comm, nullptr), "doubles");
            if (wrong.empty() && doubles[7] != 3.0 + 3 * 0x1p-40) wrong = "doubles were rounded";
            if (wrong.empty()) wrong = must(shoalCommSetNumerics(comm, shoalExact), "exact");
            std::vector<float> fine(1000, 1.0F + 0x1p-20F);
            if (wrong.empty())
              wrong = must(ncclAllReduce(fine.data(), fine.data(), 1000, ncclFloat32, ncclMax, comm, nullptr), "max");
            return wrong;
          });
        }) == "");
}

TEST_CASE("In place, rough values: the owner of a block keeps what the others get of it, with every wire format") {
  const std::string transport = GENERATE("threads", "tcp");
  CHECK(testing::run_ranks(transport, 3, 60, [](const Ranks& ranks) {
          return testing::with_comm(ranks, [&](ncclComm_t comm) -> std::string {
            constexpr std::size_t kBlock = 501;
            const auto world = static_cast<std::size_t>(ranks.world), self = static_cast<std::size_t>(ranks.rank);
            std::string wrong;
            const auto same = [&](const std::vector<float>& data, const std::string& what) {
              if (wrong.empty()) wrong = must(shoalCommSetWireFormat(comm, nullptr), "none");
              std::vector<float> all(data.size() * world);
              if (wrong.empty())
                wrong = must(ncclAllGather(data.data(), all.data(), data.size(), ncclFloat32, comm, nullptr), "same");
              for (std::size_t r = 0; r < world && wrong.empty(); ++r)
                if (std::memcmp(all.data() + r * data.size(), data.data(), data.size() * sizeof(float)) != 0)
                  wrong = what + ": rank " + std::to_string(r) + " has other bits";
            };
            for (const shoal::compress::Codec& codec : shoal::compress::codecs()) {
              if (!codec.idempotent) continue;
              const std::string name(codec.name);
              std::vector<float> data(kBlock * world);
              const auto begin = [&] {
                for (std::size_t i = 0; i < data.size(); ++i) data[i] = value(ranks.rank, i);
                if (wrong.empty()) wrong = must(shoalCommSetWireFormat(comm, name.c_str()), "format");
              };
              begin();
              if (wrong.empty())
                wrong = must(ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat32, ncclSum, comm, nullptr), "sum");
              same(data, name + ", all-reduce");
              begin();
              if (wrong.empty())
                wrong =
                    must(ncclAllGather(data.data() + self * kBlock, data.data(), kBlock, ncclFloat32, comm, nullptr), "gather");
              same(data, name + ", all-gather");
              begin();
              if (wrong.empty())
                wrong = must(ncclBroadcast(data.data(), data.data(), data.size(), ncclFloat32, 1, comm, nullptr), "bc");
              same(data, name + ", broadcast");
              begin();
              const std::size_t counts[] = {0, kBlock, 7};
              std::vector<float> uneven(kBlock + 7);
              if (wrong.empty())
                wrong = must(
                    shoalAllGatherV(data.data(), counts[self], uneven.data(), counts, nullptr, ncclFloat32, comm, nullptr), "v");
              same(uneven, name + ", all-gather-v");
              if (wrong.empty()) wrong = must(shoalCommSetWireFormat(comm, name.c_str()), "format");
              if (wrong.empty()) wrong = must(shoalBarrier(comm, nullptr), "barrier");
              // What two ranks send each other comes as the codec makes it, in blocks of different lengths.
              std::vector<std::size_t> sent(world), received(world);
              for (std::size_t q = 0; q < world; ++q) {
                sent[q] = 10 * q + self;
                received[q] = 10 * self + q;
              }
              std::vector<float> got(200);
              if (wrong.empty())
                wrong = must(shoalAllToAllV(data.data(), sent.data(), nullptr, got.data(), received.data(), nullptr, ncclFloat32,
                                            comm, nullptr),
                             "all-to-all-v");
              const double step = codec.bound.relative + codec.bound.of_block + codec.bound.absolute;
              for (std::size_t q = 0, at = 0; q < world; ++q)
                for (std::size_t i = 0, first = 5 * self * (self - 1) + self * q; i < received[q]; ++i, ++at)
                  if (wrong.empty() && !(std::abs(got[at] - value(static_cast<int>(q), first + i)) <= 2 * step))
                    wrong = name + ", all-to-all-v: element " + std::to_string(at) + " is " + std::to_string(got[at]);
            }
            return wrong;
          });
        }) == "");
}

TEST_CASE("What may travel on any step is never longer than float32, and whole blocks of it lie one after another") {
  for (const shoal::compress::Codec& codec : shoal::compress::codecs()) {
    if (!codec.idempotent) continue;
    CAPTURE(codec.name);
    for (std::size_t n = 0; n < 5000; ++n) {
      const bool fits = codec.wire_bytes(n) <= n * sizeof(float),
                 adds = codec.wire_bytes(4096 + n) == codec.wire_bytes(4096) + codec.wire_bytes(n);
      REQUIRE((fits && adds));
    }
  }
}
