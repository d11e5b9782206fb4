// SPDX-License-Identifier: Apache-2.0
// Field cases FC-01, FC-02, FC-15 and FC-16: what users of collective libraries ran into with empty messages, buffers in place,
// counts that do not divide, and odd pointers. docs/testing.md lists all cases.
#include "api/field_cases.h"

#include <shoal/shoal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>

#include "support/pattern.h"

namespace {

using shoal::DataType;
using shoal::ReduceOp;
using testing::Guarded;
using testing::must;
using testing::on_all_transports;
using testing::Ranks;

// The first call that fails, or nothing.
std::string all_of(std::initializer_list<std::pair<ncclResult_t, const char*>> calls) {
  for (const auto& [result, what] : calls)
    if (std::string wrong = must(result, what); !wrong.empty()) return wrong;
  return "";
}

// ---- FC-01 -----------------------------------------------------------------------------------------------------------------

using Matrix = std::vector<std::vector<std::size_t>>;  // [from][to]

float message(std::size_t from, std::size_t to, std::size_t i) { return static_cast<float>(1000 * from + 100 * to + i); }

// One group with every pair posted on both sides, also the empty ones, whose pointers are NULL.
std::string exchange(const Ranks& ranks, ncclComm_t comm, const Matrix& matrix) {
  const auto own = static_cast<std::size_t>(ranks.rank), world = matrix.size();
  std::vector<std::vector<float>> out(world);
  std::vector<Guarded<float>> in;
  for (std::size_t q = 0; q < world; ++q) {
    for (std::size_t i = 0; i < matrix[own][q]; ++i) out[q].push_back(message(own, q, i));
    in.emplace_back(matrix[q][own], -1.0f);
  }
  ncclGroupStart();
  for (std::size_t q = 0; q < world; ++q) {
    ncclSend(out[q].empty() ? nullptr : out[q].data(), out[q].size(), ncclFloat, static_cast<int>(q), comm, nullptr);
    ncclRecv(in[q].size() == 0 ? nullptr : in[q].data(), in[q].size(), ncclFloat, static_cast<int>(q), comm, nullptr);
  }
  if (std::string wrong = must(ncclGroupEnd(), "ncclGroupEnd"); !wrong.empty()) return wrong;
  for (std::size_t q = 0; q < world; ++q) {
    if (!in[q].whole()) return "wrote beyond what came from rank " + std::to_string(q);
    for (std::size_t i = 0; i < in[q].size(); ++i)
      if (in[q][i] != message(q, own, i)) return "element " + std::to_string(i) + " from rank " + std::to_string(q) + " is wrong";
  }
  return "";
}

// Every collective, with nothing to do.
std::string nothing_at_all(const Ranks& ranks, ncclComm_t comm, const float* in, float* out) {
  const int root = ranks.world - 1;
  const std::vector<std::size_t> none(static_cast<std::size_t>(ranks.world), 0);
  return all_of({
      {ncclAllReduce(in, out, 0, ncclFloat, ncclSum, comm, nullptr), "ncclAllReduce"},
      {ncclAllReduce(in, out, 0, ncclFloat, ncclAvg, comm, nullptr), "ncclAllReduce, average"},
      {shoalAllReduce(in, out, 0, ncclFloat, ncclSum, shoalOrdered, comm, nullptr), "shoalAllReduce, ordered"},
      {shoalAllReduce(in, out, 0, ncclFloat, ncclSum, shoalExact, comm, nullptr), "shoalAllReduce, exact"},
      {ncclReduce(in, out, 0, ncclFloat, ncclSum, root, comm, nullptr), "ncclReduce"},
      {ncclBroadcast(in, out, 0, ncclFloat, root, comm, nullptr), "ncclBroadcast"},
      {ncclBcast(out, 0, ncclFloat, root, comm, nullptr), "ncclBcast"},
      {ncclReduceScatter(in, out, 0, ncclFloat, ncclSum, comm, nullptr), "ncclReduceScatter"},
      {shoalReduceScatter(in, out, 0, ncclFloat, ncclSum, shoalExact, comm, nullptr), "shoalReduceScatter, exact"},
      {ncclAllGather(in, out, 0, ncclFloat, comm, nullptr), "ncclAllGather"},
      {ncclAlltoAll(in, out, 0, ncclFloat, comm, nullptr), "ncclAlltoAll"},
      {ncclGather(in, out, 0, ncclFloat, root, comm, nullptr), "ncclGather"},
      {ncclScatter(in, out, 0, ncclFloat, root, comm, nullptr), "ncclScatter"},
      {shoalAllGatherV(in, 0, out, none.data(), nullptr, ncclFloat, comm, nullptr), "shoalAllGatherV"},
      {shoalAllToAllV(in, none.data(), nullptr, out, none.data(), nullptr, ncclFloat, comm, nullptr), "shoalAllToAllV"},
  });
}

// ---- FC-02 -----------------------------------------------------------------------------------------------------------------

std::string in_and_out_of_place(const Ranks& ranks, ncclComm_t comm) {
  const int r = ranks.rank;
  const auto own = static_cast<std::size_t>(r);
  std::vector<std::int32_t> everyone;
  for (int q = 0; q < 4; ++q)
    for (int i = 0; i < 3; ++i) everyone.push_back(10 * q + i);

  Guarded<std::int32_t> gathered(12, -1);
  for (std::size_t i = 0; i < 3; ++i) gathered[3 * own + i] = everyone[3 * own + i];
  if (std::string wrong = must(ncclAllGather(gathered.data() + 3 * own, gathered.data(), 3, ncclInt32, comm, nullptr), "(a)");
      !wrong.empty())
    return wrong;
  if (gathered.values() != everyone || !gathered.whole()) return "(a) an all-gather in place is wrong";

  Guarded<std::int32_t> scattered({r + 1, 2 * (r + 1), 3 * (r + 1), 4 * (r + 1)});
  if (std::string wrong =
          must(ncclReduceScatter(scattered.data(), scattered.data() + own, 1, ncclInt32, ncclSum, comm, nullptr), "(b)");
      !wrong.empty())
    return wrong;
  if (scattered[own] != 10 * (r + 1) || !scattered.whole()) return "(b) a reduce-scatter in place is wrong";

  const std::vector<std::int32_t> piece = {10 * r, 10 * r + 1, 10 * r + 2},
                                  multiples = {r + 1, 2 * (r + 1), 3 * (r + 1), 4 * (r + 1)};
  Guarded<std::int32_t> send(piece), all(12, -1), input(multiples), sum(1, -1);
  if (std::string wrong =
          all_of({{ncclAllGather(send.data(), all.data(), 3, ncclInt32, comm, nullptr), "(c) all-gather"},
                  {ncclReduceScatter(input.data(), sum.data(), 1, ncclInt32, ncclSum, comm, nullptr), "(c) reduce-scatter"}});
      !wrong.empty())
    return wrong;
  if (all.values() != everyone || sum[0] != 10 * (r + 1)) return "(c) out of place is wrong";
  if (send.values() != piece || input.values() != multiples) return "(c) an input was changed";
  return send.whole() && all.whole() && input.whole() && sum.whole() ? "" : "(c) wrote beyond a buffer";
}

// ---- FC-15 -----------------------------------------------------------------------------------------------------------------

// One all-reduce out of place, between guards.
std::string reduced(const Ranks& ranks, ncclComm_t comm, DataType type, ReduceOp op, std::size_t count) {
  const std::vector<std::byte> input = testing::input_of(type, op, ranks.rank, count);
  Guarded<std::byte> in(input), out(input.size());
  auto handle = static_cast<ncclRedOp_t>(op);
  std::vector<std::byte> factor = testing::factor_of(type, ranks.rank);
  if (op == ReduceOp::premul_sum)
    ncclRedOpCreatePreMulSum(&handle, factor.data(), static_cast<ncclDataType_t>(type), ncclScalarHostImmediate, comm);
  std::string wrong =
      must(ncclAllReduce(in.data(), out.data(), count, static_cast<ncclDataType_t>(type), handle, comm, nullptr), "all-reduce");
  if (op == ReduceOp::premul_sum) ncclRedOpDestroy(handle, comm);
  if (wrong.empty()) wrong = testing::compare(type, op, ranks.world, out.data(), count);
  if (wrong.empty() && (!in.whole() || !out.whole())) wrong = "wrote beyond a buffer";
  if (wrong.empty() && in.values() != input) wrong = "the input was changed";
  return wrong.empty()
             ? ""
             : std::string(name_of(type)) + " " + std::string(name_of(op)) + " x " + std::to_string(count) + ": " + wrong;
}

std::string counts_that_do_not_divide(const Ranks& ranks, ncclComm_t comm) {
  const auto n = static_cast<std::size_t>(ranks.world);
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{2}, n - 1, n + 1, std::size_t{31}, std::size_t{127}, std::size_t{129}})
    for (int type = 0; type < shoal::kDataTypes; ++type)
      for (int op = 0; op < shoal::kReduceOps; ++op)
        if (std::string wrong = reduced(ranks, comm, DataType(type), ReduceOp(op), count); !wrong.empty()) return wrong;
  for (const std::size_t count : {std::size_t{50177}, std::size_t{1048577}})
    if (testing::small() && count > 100000)
      continue;
    else if (std::string wrong = testing::plain_sum(ranks, comm, count); !wrong.empty())
      return std::to_string(count) + ": " + wrong;
  return "";
}

// ---- FC-16 -----------------------------------------------------------------------------------------------------------------

// Memory between two pages that may not be touched.
class Fenced {
 public:
  explicit Fenced(std::size_t bytes)
      : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))), middle_((bytes + 64 + page_ - 1) / page_ * page_) {
    base_ = static_cast<std::byte*>(mmap(nullptr, middle_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + page_, middle_, PROT_READ | PROT_WRITE);
  }
  ~Fenced() { munmap(base_, middle_ + 2 * page_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;

  // `shift` bytes behind the page in front, or before the one behind.
  std::byte* first(std::size_t shift) const { return base_ + page_ + shift; }
  std::byte* last(std::size_t bytes, std::size_t shift) const { return base_ + page_ + middle_ - bytes - shift; }

 private:
  std::size_t page_, middle_;
  std::byte* base_ = nullptr;
};

struct Placement {
  bool at_end;
  std::size_t shift;  // bytes away from the fence
};

// Every collective and a transfer, `count` elements a block, each buffer at its place.
std::string every_collective(const Ranks& ranks, ncclComm_t comm, DataType element, std::size_t count, Placement place) {
  const auto world = static_cast<std::size_t>(ranks.world), own = static_cast<std::size_t>(ranks.rank);
  const auto type = static_cast<ncclDataType_t>(element);
  const std::size_t block = count * element_bytes(element);
  const Fenced in_memory(block * world), out_memory(block * world);
  const auto at = [&](const Fenced& memory, std::size_t blocks) {
    return place.at_end ? memory.last(block * blocks, place.shift) : memory.first(place.shift);
  };
  const auto put = [&](const std::vector<std::byte>& data, std::size_t blocks) {
    std::memcpy(at(in_memory, blocks), data.data(), data.size());
    return at(in_memory, blocks);
  };
  const auto numbers = [&](std::size_t blocks) {
    return put(testing::input_of(element, ReduceOp::sum, ranks.rank, count * blocks), blocks);
  };
  const auto bytes = [&](std::size_t blocks) { return put(testing::bytes_of(ranks.rank, block * blocks), blocks); };
  const auto holds = [&](const std::byte* found, int rank, std::size_t first = 0) {
    const auto expected = testing::bytes_of(rank, block, first);
    return std::memcmp(found, expected.data(), block) == 0 ? "" : "wrong data";
  };
  const auto summed = [&](const std::byte* found, std::size_t first = 0) {
    return testing::compare(element, ReduceOp::sum, ranks.world, found, count, first);
  };
  const auto blocks_of_all = [&](const std::byte* found, std::size_t first) {
    std::string wrong;
    for (std::size_t q = 0; q < world && wrong.empty(); ++q) wrong = holds(found + q * block, static_cast<int>(q), first);
    return wrong;
  };
  const int root = ranks.world - 1, next = (ranks.rank + 1) % ranks.world,
            previous = (ranks.rank + ranks.world - 1) % ranks.world;
  const bool at_root = ranks.rank == root;
  std::byte* const one = at(out_memory, 1);
  std::byte* const all = at(out_memory, world);

  std::string wrong;
  const auto check = [&](const char* what, ncclResult_t result, const std::function<std::string()>& right) {
    if (!wrong.empty()) return;
    wrong = must(result, what);
    if (wrong.empty()) wrong = right();
    if (!wrong.empty())
      wrong = std::string(what) + ", " + std::string(name_of(element)) + ", " + std::to_string(place.shift) + " bytes from the " +
              (place.at_end ? "end: " : "start: ") + wrong;
  };
  check("all-reduce", ncclAllReduce(numbers(1), one, count, type, ncclSum, comm, nullptr), [&] { return summed(one); });
  check("reduce", ncclReduce(numbers(1), one, count, type, ncclSum, root, comm, nullptr),
        [&] { return at_root ? summed(one) : ""; });
  check("reduce-scatter", ncclReduceScatter(numbers(world), one, count, type, ncclSum, comm, nullptr),
        [&] { return summed(one, own * count); });
  check("broadcast", ncclBroadcast(bytes(1), one, count, type, root, comm, nullptr), [&] { return holds(one, root); });
  check("all-gather", ncclAllGather(bytes(1), all, count, type, comm, nullptr), [&] { return blocks_of_all(all, 0); });
  check("gather", ncclGather(bytes(1), all, count, type, root, comm, nullptr),
        [&] { return at_root ? blocks_of_all(all, 0) : ""; });
  check("scatter", ncclScatter(bytes(world), one, count, type, root, comm, nullptr),
        [&] { return holds(one, root, own * block); });
  check("all-to-all", ncclAlltoAll(bytes(world), all, count, type, comm, nullptr),
        [&] { return blocks_of_all(all, own * block); });
  ncclGroupStart();
  ncclSend(bytes(1), count, type, next, comm, nullptr);
  ncclRecv(one, count, type, previous, comm, nullptr);
  check("send and receive", ncclGroupEnd(), [&] { return holds(one, previous); });
  return wrong;
}

}  // namespace

TEST_CASE("FC-01: empty messages in a grouped all-to-all, on both sides, and a rank that sends nothing") {
  const Matrix fixed = {{0, 3, 0, 5}, {0, 0, 0, 0}, {7, 0, 1, 0}, {2, 0, 4, 0}};
  on_all_transports(4, [&](const Ranks& ranks, ncclComm_t comm) -> std::string {
    if (std::string wrong = exchange(ranks, comm, fixed); !wrong.empty()) return "the fixed matrix: " + wrong;
    std::mt19937 random(1);  // the same on all ranks
    for (int round = 0; round < 1000; ++round) {
      Matrix matrix(4, std::vector<std::size_t>(4));
      for (auto& row : matrix)
        for (std::size_t& n : row) n = random() % 10 < 6 ? 0 : 1 + random() % 90;
      if (std::string wrong = exchange(ranks, comm, matrix); !wrong.empty())
        return "matrix " + std::to_string(round) + ": " + wrong;
    }
    return "";
  });
}

TEST_CASE("FC-01: every collective of no elements succeeds, with and without pointers, and keeps ranks in step") {
  for (int world = 2; world <= 5; ++world)
    on_all_transports(world, [](const Ranks& ranks, ncclComm_t comm) -> std::string {
      if (std::string wrong = nothing_at_all(ranks, comm, nullptr, nullptr); !wrong.empty()) return "NULL: " + wrong;
      Guarded<float> in(1, 3), out(1, 4);
      if (std::string wrong = nothing_at_all(ranks, comm, in.data(), out.data()); !wrong.empty()) return wrong;
      if (in[0] != 3 || out[0] != 4 || !in.whole() || !out.whole()) return "something was written";
      // NULL on some ranks only.
      float* const some = ranks.rank == 0 ? nullptr : out.data();
      return nothing_at_all(ranks, comm, some, some);
    });
}

TEST_CASE("FC-02: all-gather and reduce-scatter in place where NCCL has it, and out of place") {
  on_all_transports(4, in_and_out_of_place);
}

TEST_CASE("FC-02: an all-gather from the start of its output is in place on rank 0 alone; others are refused") {
  for (const char* transport : {"shm", "tcp"}) {
    INFO(transport);
    CHECK(testing::run_ranks(transport, 4, 60, [](const Ranks& ranks) {
            return testing::case_and_sum(ranks, [](const Ranks& r, ncclComm_t comm) -> std::string {
              Guarded<std::int32_t> data(12, r.rank);
              if (r.rank > 0) {
                if (ncclAllGather(data.data(), data.data(), 3, ncclInt32, comm, nullptr) != ncclInvalidArgument)
                  return "overlapping buffers were accepted";
                if (std::string(ncclGetLastError(nullptr)).find("overlap") == std::string::npos)
                  return std::string("the overlap is not named: ") + ncclGetLastError(nullptr);
              }
              return data.values() == std::vector<std::int32_t>(12, r.rank) && data.whole() ? "" : "data were changed";
            });
          }) == "");
  }
  // Where rank 0 goes on with the call that only it may make, everyone learns that the ranks have parted.
  CHECK(testing::as_processes(
            4, {{"SHOAL_LOOPBACK_DISABLE", "1"}, {"SHOAL_TIMEOUT_MS", "10000"}}, 60, [](const Ranks& ranks) -> std::string {
              ncclComm_t comm = nullptr;
              if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
              std::vector<std::int32_t> data(12, ranks.rank);
              ncclResult_t result = ncclAllGather(data.data(), data.data(), 3, ncclInt32, comm, nullptr);
              if (ranks.rank > 0 && result != ncclInvalidArgument) return "overlapping buffers were accepted";
              if (ranks.rank > 0) result = ncclAllReduce(data.data(), data.data(), 12, ncclInt32, ncclSum, comm, nullptr);
              const std::string said = ncclGetLastError(nullptr);
              ncclCommAbort(comm);
              return result == ncclInvalidUsage && said.find("all_gather") != std::string::npos ? "" : "not told apart: " + said;
            }) == "");
}

TEST_CASE("FC-15: counts that do not divide, all types and reductions") {
  for (const int world : {2, 3, 5, 6, 7, 8}) on_all_transports(world, counts_that_do_not_divide);
}

TEST_CASE("FC-15: thirteen ranks with thirteen elements, eight ranks with ten million") {
  const auto sum_of = [](std::size_t count) {
    return [count](const Ranks& ranks, ncclComm_t comm) { return testing::plain_sum(ranks, comm, count); };
  };
  on_all_transports(13, sum_of(13));
  if (!testing::small()) on_all_transports(8, sum_of(10556587));
}

TEST_CASE("FC-16: buffers at any offset, and flush with pages that may not be touched, in every collective") {
  on_all_transports(3, [](const Ranks& ranks, ncclComm_t comm) -> std::string {
    for (const bool at_end : {true, false})
      for (const std::size_t shift : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
        for (const DataType type : {DataType::int8, DataType::uint8, DataType::float8_e4m3, DataType::float16, DataType::bfloat16,
                                    DataType::float32, DataType::float64})
          for (const std::size_t count : {std::size_t{67}, std::size_t{8003}}) {
            if (count > 1000 && shift > 1) continue;
            if (std::string wrong = every_collective(ranks, comm, type, count, {at_end, shift}); !wrong.empty()) return wrong;
          }
    return "";
  });
}
