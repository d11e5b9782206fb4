// SPDX-License-Identifier: Apache-2.0
// Compressed collectives through the C API: what the compressors compute is tested in tests/compress; here is what surrounds
// them.
#include <shoal/compress.h>
#include <shoal/shoal.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "support/ranks.h"

using testing::must;
using testing::Ranks;

namespace {

// Every compressor's name, from the list that the library gives.
std::vector<std::string> compressors() {
  std::size_t size = 0;
  shoalDescribeCompressors(nullptr, 0, &size);
  std::string text(size, '\0');
  shoalDescribeCompressors(text.data(), text.size(), nullptr);
  std::vector<std::string> names;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos) break;
    if (text[at] != ' ') names.push_back(text.substr(at, text.find(':', at) - at));
    at = end + 1;
  }
  return names;
}

float value(int rank, std::size_t i) { return std::sin(0.37F * static_cast<float>(i) + static_cast<float>(rank)); }

std::vector<float> input_of(int rank, std::size_t count) {
  std::vector<float> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = value(rank, i);
  return all;
}

// "" if all ranks hold the same bytes.
std::string same_everywhere(const void* data, std::size_t bytes, int world, ncclComm_t comm) {
  std::vector<char> all(bytes * static_cast<std::size_t>(world));
  if (std::string wrong = must(ncclAllGather(data, all.data(), bytes, ncclUint8, comm, nullptr), "gather"); !wrong.empty())
    return wrong;
  for (std::size_t r = 0; r < static_cast<std::size_t>(world); ++r)
    if (bytes > 0 && std::memcmp(all.data() + r * bytes, data, bytes) != 0)
      return "rank " + std::to_string(r) + " has other bits";
  return "";
}

struct Compressor {
  explicit Compressor(const std::string& name, const char* options = nullptr) {
    wrong = must(shoalCompressorCreate(&handle, name.c_str(), options), "shoalCompressorCreate");
  }
  ~Compressor() {
    if (handle != nullptr) shoalCompressorDestroy(handle);
  }
  shoalCompressor_t handle = nullptr;
  std::string wrong;
};

std::string every_compressor(const Ranks& ranks, std::size_t count) {
  return testing::with_comm(ranks, [&](ncclComm_t comm) -> std::string {
    for (const std::string& name : compressors()) {
      Compressor compressor(name);
      if (!compressor.wrong.empty()) return compressor.wrong;
      std::vector<float> data = input_of(ranks.rank, count), output(count, -1.0F);
      shoalCompressionReport report{};
      for (int step = 0; step < 3; ++step) {
        std::string wrong = must(shoalAllReduceCompressed(data.data(), output.data(), count, ncclFloat32, ncclAvg,
                                                          compressor.handle, "w", count % 8 == 0 ? 8 : 1, comm, nullptr, &report),
                                 name.c_str());
        if (wrong.empty()) wrong = same_everywhere(output.data(), count * sizeof(float), ranks.world, comm);
        for (const float x : output)
          if (wrong.empty() && !(std::abs(x) < 100)) wrong = "a value of " + std::to_string(x);
        if (wrong.empty() && count > 0 && report.encodedBytes == 0 && report.dense == 0) wrong = "nothing was encoded";
        if (wrong.empty() && ranks.world > 1 && count > 100 && report.receivedBytes == 0) wrong = "nothing came";
        if (!wrong.empty()) return name + ", step " + std::to_string(step) + ": " + wrong;
      }
    }
    return "";
  });
}

}  // namespace

TEST_CASE("Every compressor through the API: the same bits on all ranks, over every transport") {
  const std::string transport = GENERATE("threads", "shm", "tcp");
  const int world = GENERATE(1, 2, 3, 5);
  CAPTURE(transport, world);
  CHECK(testing::run_ranks(transport, world, 60, [](const Ranks& ranks) { return every_compressor(ranks, 4096); }) == "");
  CHECK(testing::run_ranks(transport, world, 60, [](const Ranks& ranks) { return every_compressor(ranks, 77); }) == "");
  CHECK(testing::run_ranks(transport, world, 60, [](const Ranks& ranks) { return every_compressor(ranks, 0); }) == "");
}

TEST_CASE("The report counts the bytes that an all-reduce quantised twice must move") {
  CHECK(testing::run_ranks("tcp", 4, 60, [](const Ranks& ranks) {
          return testing::with_comm(ranks, [&](ncclComm_t comm) -> std::string {
            constexpr std::size_t kCount = 1 << 16;
            Compressor compressor("fp16");
            std::vector<float> data = input_of(ranks.rank, kCount);
            shoalCompressionReport report{};
            std::string wrong = must(shoalAllReduceCompressed(data.data(), data.data(), kCount, ncclFloat32, ncclSum,
                                                              compressor.handle, "w", 1, comm, nullptr, &report),
                                     "all-reduce");
            if (!wrong.empty()) return wrong;
            // 3 of 4 stripes of 2 bytes an element, twice.
            constexpr std::uint64_t kMoved = 2 * 3 * 2 * kCount / 4;
            if (report.receivedBytes != kMoved) return "received " + std::to_string(report.receivedBytes);
            if (report.sentBytes != kMoved) return "sent " + std::to_string(report.sentBytes);
            if (report.encodedBytes != 2 * kCount || report.ratio != 2) return "encoded " + std::to_string(report.encodedBytes);
            if (!(report.error > 1e-5 && report.error < 1e-3)) return "error " + std::to_string(report.error);
            if (!(report.encodeSeconds > 0)) return "no time";
            return "";
          });
        }) == "");
}

TEST_CASE("FC-42: the average of large values in half precision is exact, for it is divided before it is made narrow") {
  CHECK(testing::run_ranks("shm", 4, 60, [](const Ranks& ranks) {
          return testing::with_comm(ranks, [&](ncclComm_t comm) -> std::string {
            std::vector<float> data(1000, 30000.0F), output(1000);
            for (std::size_t i = 1; i < data.size(); i += 2) data[i] = 1e-7F;
            Compressor compressor("fp16");
            std::string wrong = must(shoalAllReduceCompressed(data.data(), output.data(), data.size(), ncclFloat32, ncclAvg,
                                                              compressor.handle, "w", 1, comm, nullptr, nullptr),
                                     "all-reduce");
            for (std::size_t i = 0; i < data.size(); i += 2)
              if (wrong.empty() && output[i] != 30000.0F) wrong = "average " + std::to_string(output[i]);
            // Half a unit of half precision's subnormals, 2^-24, from each of the ranks and from the sum.
            for (std::size_t i = 1; i < data.size(); i += 2)
              if (wrong.empty() && !(std::abs(output[i] - 1e-7F) <= 5 * 0x1p-25F)) wrong = "tiny " + std::to_string(output[i]);
            return wrong;
          });
        }) == "");
}

TEST_CASE("16-bit and 64-bit tensors, unaligned memory, streams and groups go the same way") {
  CHECK(testing::run_ranks("shm", 3, 60, [](const Ranks& ranks) {
          return testing::with_comm(ranks, [&](ncclComm_t comm) -> std::string {
            Compressor compressor("fp16");
            std::vector<double> wide(100, 1.5);
            std::vector<std::uint16_t> brain(100, 0x3f80);  // 1.0
            std::vector<char> bytes(401);
            const std::vector<float> ones(100, 0.25F);
            std::memcpy(bytes.data() + 1, ones.data(), 400);
            cudaStream_t stream = nullptr;
            std::string wrong = must(shoalStreamCreate(&stream), "stream");
            ncclGroupStart();
            shoalAllReduceCompressed(wide.data(), wide.data(), 100, ncclFloat64, ncclSum, compressor.handle, "a", 1, comm, stream,
                                     nullptr);
            shoalAllReduceCompressed(brain.data(), brain.data(), 100, ncclBfloat16, ncclSum, compressor.handle, "b", 1, comm,
                                     stream, nullptr);
            shoalAllReduceCompressed(bytes.data() + 1, bytes.data() + 1, 100, ncclFloat32, ncclSum, compressor.handle, "c", 1,
                                     comm, stream, nullptr);
            if (wrong.empty()) wrong = must(ncclGroupEnd(), "group");
            if (wrong.empty()) wrong = must(shoalStreamSynchronize(stream), "synchronize");
            shoalStreamDestroy(stream);
            std::vector<float> sum(100);
            std::memcpy(sum.data(), bytes.data() + 1, 400);
            for (std::size_t i = 0; i < 100; ++i)
              if (wrong.empty() && (wide[i] != 4.5 || brain[i] != 0x4040 || sum[i] != 0.75F))
                wrong = "element " + std::to_string(i) + ": " + std::to_string(wide[i]) + ", " + std::to_string(sum[i]);
            return wrong;
          });
        }) == "");
}

TEST_CASE("Ranks that compress differently are told so, and nobody gets a sum") {
  CHECK(testing::run_ranks("shm", 3, 60, [](const Ranks& ranks) -> std::string {
          ncclComm_t comm = nullptr;
          if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
          Compressor compressor("fp16", ranks.rank == 1 ? "feedback=1" : "");
          std::vector<float> data(1000, 1.0F);
          const ncclResult_t result = shoalAllReduceCompressed(data.data(), data.data(), 1000, ncclFloat32, ncclSum,
                                                               compressor.handle, "w", 1, comm, nullptr, nullptr);
          const std::string text = ncclGetLastError(comm);
          ncclCommAbort(comm);
          if (result != ncclInvalidUsage) return "result " + std::to_string(result) + ": " + text;
          return text.find("rank 1") != std::string::npos && text.find("all_reduce") != std::string::npos ? "" : text;
        }) == "");
}

TEST_CASE("State is saved and loaded as bytes: another process goes on with the same bits; spoilt ones are refused") {
  CHECK(testing::run_ranks("shm", 2, 60, [](const Ranks& ranks) {
          return testing::with_comm(ranks, [&](ncclComm_t comm) -> std::string {
            constexpr std::size_t kCount = 999;
            Compressor first("fp16", "feedback=1"), second("fp16", "feedback=1"), other("fp16");
            const std::vector<float> data = input_of(ranks.rank, kCount);
            std::vector<float> a(kCount), b(kCount);
            std::string wrong;
            const auto reduce = [&](shoalCompressor_t with, std::vector<float>& into) {
              if (wrong.empty())
                wrong = must(shoalAllReduceCompressed(data.data(), into.data(), kCount, ncclFloat32, ncclSum, with, "w", 1, comm,
                                                      nullptr, nullptr),
                             "all-reduce");
            };
            for (int step = 0; step < 3; ++step) reduce(first.handle, a);
            std::size_t size = 0, small = 10;
            if (wrong.empty()) wrong = must(shoalCompressorSave(first.handle, nullptr, &size), "size");
            std::vector<char> state(size);
            if (wrong.empty()) wrong = must(shoalCompressorSave(first.handle, state.data(), &size), "save");
            if (shoalCompressorSave(first.handle, state.data(), &small) != ncclInvalidArgument)
              return "too little room was taken";
            if (wrong.empty()) wrong = must(shoalCompressorLoad(second.handle, state.data(), size), "load");
            reduce(first.handle, a);
            reduce(second.handle, b);
            if (wrong.empty() && a != b) wrong = "the loaded state goes on differently";
            if (shoalCompressorLoad(other.handle, state.data(), size) != ncclInvalidArgument) return "other options were taken";
            for (std::size_t at = 0; at < size; at += 97) {
              state[at] = static_cast<char>(state[at] ^ 1);
              if (shoalCompressorLoad(second.handle, state.data(), size) != ncclInvalidArgument)
                return "a spoilt byte " + std::to_string(at) + " was taken";
              state[at] = static_cast<char>(state[at] ^ 1);
            }
            if (shoalCompressorLoad(second.handle, state.data(), size - 1) != ncclInvalidArgument) return "a cut state was taken";
            reduce(first.handle, a);
            reduce(second.handle, b);
            if (wrong.empty() && a != b) wrong = "a refused state has changed something";
            return wrong;
          });
        }) == "");
}

TEST_CASE("FC-47: what is remembered follows the tensor's name, not its memory; a tensor of another shape starts anew alone") {
  CHECK(testing::run_ranks("threads", 2, 60, [](const Ranks& ranks) {
          return testing::with_comm(ranks, [&](ncclComm_t comm) -> std::string {
            Compressor moved("fp16", "feedback=1"), fixed("fp16", "feedback=1");
            std::vector<float> x = input_of(ranks.rank, 500), y = input_of(ranks.rank + 10, 300);
            std::string wrong;
            for (int step = 0; step < 8 && wrong.empty(); ++step) {
              const bool shrunk = step >= 5;
              const std::size_t of_y = shrunk ? 299 : 300;
              // One compressor always sees the same memory in the same order, the other one never does.
              std::vector<float> x1(500), x2(500), y1(of_y), y2(of_y);
              const std::vector<float> again(x);
              const auto one = [&](shoalCompressor_t with, const char* key, const std::vector<float>& in,
                                   std::vector<float>& out) {
                if (wrong.empty())
                  wrong = must(shoalAllReduceCompressed(in.data(), out.data(), out.size(), ncclFloat32, ncclSum, with, key, 1,
                                                        comm, nullptr, nullptr),
                               key);
              };
              one(fixed.handle, "x", x, x1);
              one(fixed.handle, "y", y, y1);
              if (step % 2 == 0) {
                one(moved.handle, "y", y, y2);
                one(moved.handle, "x", again, x2);
              } else {
                one(moved.handle, "x", again, x2);
                one(moved.handle, "y", y, y2);
              }
              if (wrong.empty() && (x1 != x2 || y1 != y2)) wrong = "step " + std::to_string(step) + " differs";
            }
            if (shoalCompressorReset(fixed.handle, "z") != ncclInvalidArgument) return "an unknown key was reset";
            if (wrong.empty()) wrong = must(shoalCompressorReset(fixed.handle, "x"), "reset");
            if (wrong.empty()) wrong = must(shoalCompressorReset(fixed.handle, nullptr), "reset all");
            return wrong;
          });
        }) == "");
}

TEST_CASE("Arguments of compressed calls that are wrong are named") {
  CHECK(testing::run_ranks("shm", 1, 60, [](const Ranks& ranks) {
          return testing::with_comm(ranks, [&](ncclComm_t comm) -> std::string {
            shoalCompressor_t none = nullptr;
            const auto refused = [](ncclResult_t result, const char* text) -> std::string {
              const std::string said = ncclGetLastError(nullptr);
              if (result == ncclInvalidArgument && said.find(text) != std::string::npos) return "";
              return std::string("expected \"") + text + "\", got " + std::to_string(result) + ": " + said;
            };
            std::string wrong =
                refused(shoalCompressorCreate(&none, "zip", nullptr), "there is no compressor \"zip\"; there are: ");
            if (wrong.empty()) wrong = refused(shoalCompressorCreate(&none, "fp16", "speed=1"), "options are: feedback");
            if (wrong.empty())
              wrong = refused(shoalCompressorCreate(&none, "fp16", "feedback=2"), "feedback is 2, allowed are 0 to 1");
            if (wrong.empty()) wrong = refused(shoalCompressorCreate(&none, "fp16", "feedback=x"), "not a number");
            if (wrong.empty()) wrong = refused(shoalCompressorCreate(&none, "fp16", "feedback"), "has no value");
            if (wrong.empty()) wrong = refused(shoalCompressorCreate(&none, "fp16", "feedback=1,feedback=1"), "given twice");
            if (wrong.empty() && none != nullptr) wrong = "a handle was written";
            Compressor fp16("fp16");
            float x[6] = {};
            const auto call = [&](ncclDataType_t type, ncclRedOp_t op, shoalCompressor_t with, const char* key,
                                  std::size_t rows) {
              return shoalAllReduceCompressed(x, x, 6, type, op, with, key, rows, comm, nullptr, nullptr);
            };
            if (wrong.empty()) wrong = refused(call(ncclInt32, ncclSum, fp16.handle, "w", 1), "datatype is int32");
            if (wrong.empty()) wrong = refused(call(ncclFloat32, ncclMax, fp16.handle, "w", 1), "ncclSum or ncclAvg");
            if (wrong.empty()) wrong = refused(call(ncclFloat32, ncclSum, nullptr, "w", 1), "compressor is NULL");
            if (wrong.empty()) wrong = refused(call(ncclFloat32, ncclSum, fp16.handle, nullptr, 1), "key is NULL");
            if (wrong.empty()) wrong = refused(call(ncclFloat32, ncclSum, fp16.handle, "", 1), "key is empty");
            if (wrong.empty())
              wrong = refused(call(ncclFloat32, ncclSum, fp16.handle, "w", 4), "rows is 4, which does not divide");
            if (wrong.empty()) wrong = refused(shoalCommSetWireFormat(comm, "morse"), "wire formats are: none, fp16");
            return wrong;
          });
        }) == "");
}
