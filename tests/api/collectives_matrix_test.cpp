// SPDX-License-Identifier: Apache-2.0
// Every collective with every algorithm over every world from 1 to 9, compared exactly, over each transport. SHOAL_ALGO forces
// one algorithm of each collective at a time.
#include <shoal/shoal.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>

#include "algorithms/algorithms.h"
#include "support/pattern.h"
#include "support/ranks.h"

namespace {

using shoal::DataType;
using shoal::ReduceOp;
using shoal::plan::Collective;
using testing::Ranks;

// Memory with guards before and behind, off alignment by `shift` bytes.
class Guarded {
 public:
  Guarded(std::size_t bytes, std::size_t shift)
      : memory_(bytes + 2 * kGuard + shift, std::byte{0xA5}), data_(memory_.data() + kGuard + shift), bytes_(bytes) {}
  std::byte* data() { return data_; }
  std::size_t bytes() const { return bytes_; }
  bool whole() const {
    for (const std::byte* p = memory_.data(); p < data_; ++p)
      if (*p != std::byte{0xA5}) return false;
    for (const std::byte* p = data_ + bytes_; p < memory_.data() + memory_.size(); ++p)
      if (*p != std::byte{0xA5}) return false;
    return true;
  }

 private:
  static constexpr std::size_t kGuard = 64;
  std::vector<std::byte> memory_;
  std::byte* data_;
  std::size_t bytes_;
};

struct Case {
  Collective collective;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  std::size_t count = 0;  // of the vector, or of a block
  int root = 0;
  bool in_place = false;
  std::size_t shift = 0;
};

std::string text_of(const Case& c) {
  return std::string(name_of(c.collective)) + " " + std::string(name_of(c.type)) + " x " + std::to_string(c.count) + " " +
         std::string(name_of(c.op)) + " root " + std::to_string(c.root) + (c.in_place ? " in place" : "") +
         (c.shift != 0 ? " shifted by " + std::to_string(c.shift) : "");
}

std::string differs(const std::byte* found, const std::vector<std::byte>& expected, const char* what) {
  if (expected.empty() || std::memcmp(found, expected.data(), expected.size()) == 0) return "";
  std::size_t at = 0;
  while (found[at] == expected[at]) ++at;
  return std::string(what) + " is wrong from byte " + std::to_string(at) + " of " + std::to_string(expected.size());
}

void put(std::byte* at, const std::vector<std::byte>& bytes) {
  if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
}

// One call, its buffers, and what must come out of it.
class Trial {
 public:
  Trial(const Case& c, const Ranks& ranks, ncclComm_t comm)
      : c_(c),
        comm_(comm),
        world_(static_cast<std::size_t>(ranks.world)),
        rank_(ranks.rank),
        own_(static_cast<std::size_t>(ranks.rank)),
        block_(c.count * element_bytes(c.type)),
        at_root_(ranks.rank == c.root),
        input_(input_bytes(), c.shift),
        output_(output_bytes(), c.shift) {}

  std::string run() {
    fill();
    const bool small_input = input_.bytes() < output_.bytes();
    std::byte* send = input_.data();
    std::byte* recv = output_.data();
    if (c_.in_place) {  // the smaller buffer lies in the larger one
      if (small_input || (has_output() && !has_input())) {
        send = recv + (small_input && has_input() ? own_ * block_ : 0);
        put(send, original_);
      } else {
        recv = send + (input_.bytes() > output_.bytes() && has_output() ? own_ * block_ : 0);
      }
    }
    if (std::string wrong = testing::must(call(send, recv), "the call"); !wrong.empty()) return wrong;
    if (has_output())
      if (std::string wrong = check(recv); !wrong.empty()) return wrong;
    if (!c_.in_place && !std::equal(original_.begin(), original_.end(), input_.data())) return "the input was changed";
    return input_.whole() && output_.whole() ? "" : "wrote beyond a buffer";
  }

 private:
  bool has_input() const {
    return c_.collective != Collective::broadcast && c_.collective != Collective::scatter ? true : at_root_;
  }
  bool has_output() const { return c_.collective != Collective::reduce && c_.collective != Collective::gather ? true : at_root_; }
  std::size_t input_bytes() const {
    if (!has_input()) return 0;
    const bool wide = c_.collective == Collective::reduce_scatter || c_.collective == Collective::all_to_all ||
                      c_.collective == Collective::scatter;
    return wide ? block_ * world_ : block_;
  }
  std::size_t output_bytes() const {
    if (!has_output()) return 0;
    const bool wide =
        c_.collective == Collective::all_gather || c_.collective == Collective::all_to_all || c_.collective == Collective::gather;
    return wide ? block_ * world_ : block_;
  }

  void fill() {
    original_ = is_reduction(c_.collective) ? testing::input_of(c_.type, c_.op, rank_, input_.bytes() / element_bytes(c_.type))
                                            : testing::bytes_of(rank_, input_.bytes());
    put(input_.data(), original_);
  }

  ncclResult_t call(const void* send, void* recv) const {
    const auto type = static_cast<ncclDataType_t>(c_.type);
    const auto op = static_cast<ncclRedOp_t>(c_.op);
    switch (c_.collective) {
      case Collective::all_reduce: return ncclAllReduce(send, recv, c_.count, type, op, comm_, nullptr);
      case Collective::reduce:
        return ncclReduce(send, has_output() ? recv : nullptr, c_.count, type, op, c_.root, comm_, nullptr);
      case Collective::broadcast:
        return ncclBroadcast(has_input() ? send : nullptr, recv, c_.count, type, c_.root, comm_, nullptr);
      case Collective::reduce_scatter: return ncclReduceScatter(send, recv, c_.count, type, op, comm_, nullptr);
      case Collective::all_gather: return ncclAllGather(send, recv, c_.count, type, comm_, nullptr);
      case Collective::all_to_all: return ncclAlltoAll(send, recv, c_.count, type, comm_, nullptr);
      case Collective::gather: return ncclGather(send, has_output() ? recv : nullptr, c_.count, type, c_.root, comm_, nullptr);
      case Collective::scatter: return ncclScatter(has_input() ? send : nullptr, recv, c_.count, type, c_.root, comm_, nullptr);
      default: return ncclInvalidArgument;
    }
  }

  std::string check(const std::byte* recv) const {
    switch (c_.collective) {
      case Collective::all_reduce:
      case Collective::reduce: return testing::compare(c_.type, c_.op, static_cast<int>(world_), recv, c_.count);
      case Collective::reduce_scatter:
        return testing::compare(c_.type, c_.op, static_cast<int>(world_), recv, c_.count, own_ * c_.count);
      case Collective::broadcast: return differs(recv, testing::bytes_of(c_.root, block_), "the output");
      case Collective::scatter: return differs(recv, testing::bytes_of(c_.root, block_, own_ * block_), "the output");
      case Collective::all_gather:
      case Collective::gather:
        for (std::size_t q = 0; q < world_; ++q)
          if (std::string wrong = differs(recv + q * block_, testing::bytes_of(static_cast<int>(q), block_), "a block");
              !wrong.empty())
            return wrong + " (of rank " + std::to_string(q) + ")";
        return "";
      case Collective::all_to_all:
        for (std::size_t q = 0; q < world_; ++q)
          if (std::string wrong =
                  differs(recv + q * block_, testing::bytes_of(static_cast<int>(q), block_, own_ * block_), "a block");
              !wrong.empty())
            return wrong + " (of rank " + std::to_string(q) + ")";
        return "";
      default: return "no such collective here";
    }
  }

  Case c_;
  ncclComm_t comm_;
  std::size_t world_;
  int rank_;
  std::size_t own_, block_;
  bool at_root_;
  Guarded input_, output_;
  std::vector<std::byte> original_;
};

// Blocks of lengths that differ, some of them zero, with gaps between them.
std::size_t uneven(std::size_t from, std::size_t to, std::size_t scale) {
  return (from * 7 + to * 3) % 5 * scale + (from + to) % 2 * 3;
}

std::string all_gather_v(const Ranks& ranks, ncclComm_t comm, std::size_t scale) {
  const auto world = static_cast<std::size_t>(ranks.world), own = static_cast<std::size_t>(ranks.rank);
  std::vector<std::size_t> counts, displacements;
  std::size_t end = 1;
  for (std::size_t q = 0; q < world; ++q) {
    counts.push_back(uneven(q, 0, scale));
    displacements.push_back(end);
    end += counts.back() + 2;
  }
  const auto input = testing::bytes_of(ranks.rank, counts[own]);
  std::vector<std::byte> output(end, std::byte{0xA5});
  if (std::string wrong = testing::must(shoalAllGatherV(input.data(), input.size(), output.data(), counts.data(),
                                                        displacements.data(), ncclInt8, comm, nullptr),
                                        "shoalAllGatherV");
      !wrong.empty())
    return wrong;
  std::vector<std::byte> expected(end, std::byte{0xA5});
  for (std::size_t q = 0; q < world; ++q) put(&expected[displacements[q]], testing::bytes_of(static_cast<int>(q), counts[q]));
  return differs(output.data(), expected, "shoalAllGatherV: the output");
}

std::string all_to_all_v(const Ranks& ranks, ncclComm_t comm, std::size_t scale) {
  const auto world = static_cast<std::size_t>(ranks.world), own = static_cast<std::size_t>(ranks.rank);
  std::vector<std::size_t> out, in;
  std::size_t sent = 0, received = 0;
  for (std::size_t q = 0; q < world; ++q) {
    out.push_back(uneven(own, q, scale));
    in.push_back(uneven(q, own, scale));
    sent += out.back();
    received += in.back();
  }
  const auto input = testing::bytes_of(ranks.rank, sent);
  std::vector<std::byte> output(received, std::byte{0xA5});
  if (std::string wrong =
          testing::must(shoalAllToAllV(sent > 0 ? input.data() : nullptr, out.data(), nullptr,
                                       received > 0 ? output.data() : nullptr, in.data(), nullptr, ncclUint8, comm, nullptr),
                        "shoalAllToAllV");
      !wrong.empty())
    return wrong;
  std::vector<std::byte> expected;
  for (std::size_t q = 0; q < world; ++q) {
    std::size_t before = 0;  // in rank q's input
    for (std::size_t to = 0; to < own; ++to) before += uneven(q, to, scale);
    const auto block = testing::bytes_of(static_cast<int>(q), in[q], before);
    expected.insert(expected.end(), block.begin(), block.end());
  }
  return differs(output.data(), expected, "shoalAllToAllV: the output");
}

// Each rank sends to every rank, itself too, in one group; odd ranks post their receives first.
std::string transfers(const Ranks& ranks, ncclComm_t comm, std::size_t scale) {
  const auto world = static_cast<std::size_t>(ranks.world), own = static_cast<std::size_t>(ranks.rank);
  std::vector<std::vector<std::byte>> out(world), in(world);
  for (std::size_t q = 0; q < world; ++q) {
    out[q] = testing::bytes_of(ranks.rank, uneven(own, q, scale), q);
    in[q].assign(uneven(q, own, scale), std::byte{0xA5});
  }
  const auto send_all = [&] {
    for (std::size_t q = 0; q < world; ++q) ncclSend(out[q].data(), out[q].size(), ncclInt8, static_cast<int>(q), comm, nullptr);
  };
  const auto receive_all = [&] {
    for (std::size_t q = world; q-- > 0;) ncclRecv(in[q].data(), in[q].size(), ncclInt8, static_cast<int>(q), comm, nullptr);
  };
  ncclGroupStart();
  if (own % 2 == 0) send_all();
  receive_all();
  if (own % 2 == 1) send_all();
  if (std::string wrong = testing::must(ncclGroupEnd(), "a group of sends and receives"); !wrong.empty()) return wrong;
  for (std::size_t q = 0; q < world; ++q)
    if (std::string wrong = differs(in[q].data(), testing::bytes_of(static_cast<int>(q), in[q].size(), own), "a transfer");
        !wrong.empty())
      return wrong;
  return "";
}

bool small() { return std::getenv("SHOAL_TEST_SMALL") != nullptr; }

std::vector<Case> cases(int world) {
  const auto w = static_cast<std::size_t>(world);
  std::vector<Case> all;
  for (const Collective c : {Collective::all_reduce, Collective::reduce, Collective::broadcast, Collective::all_gather,
                             Collective::reduce_scatter, Collective::all_to_all, Collective::gather, Collective::scatter})
    for (const int root : {0, world / 2, world - 1}) {
      if (root != 0 && (!has_root(c) || root == world / 2)) continue;
      const auto add = [&](DataType type, std::size_t count, bool in_place = false, std::size_t shift = 0,
                           ReduceOp op = ReduceOp::sum) {
        all.push_back({c, type, op, count, root, in_place, shift});
      };
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, w - 1, w + 1, std::size_t{1000}})
        add(DataType::float32, count);
      add(DataType::float32, small() ? 9001 : 90001);  // several slices, uneven
      add(DataType::float32, 1003, has_in_place(c));
      add(DataType::int8, 1001, false, 3);
      add(DataType::float16, 1001, false, 1);
      add(DataType::bfloat16, 777, has_in_place(c));
      add(DataType::float64, 333, false, 5);
      add(DataType::int64, 513);
      add(DataType::float8_e4m3, 1025, false, 7);
      if (is_reduction(c)) {
        add(DataType::int32, 1001, false, 0, ReduceOp::avg);
        add(DataType::float32, 1001, true, 0, ReduceOp::avg);
        add(DataType::uint8, 1001, false, 0, ReduceOp::max);
        add(DataType::float16, 1001, false, 0, ReduceOp::prod);
      }
    }
  return all;
}

std::string everything(const Ranks& ranks) {
  ncclComm_t comm = nullptr;
  if (std::string wrong = testing::init(ranks, comm); !wrong.empty()) return wrong;
  std::string wrong;
  for (const Case& c : cases(ranks.world)) {
    wrong = Trial(c, ranks, comm).run();
    if (!wrong.empty()) {
      wrong = text_of(c) + ": " + wrong;
      break;
    }
  }
  for (const std::size_t scale : {std::size_t{0}, std::size_t{1}, std::size_t{700}, std::size_t{50000}}) {
    if (wrong.empty()) wrong = all_gather_v(ranks, comm, scale);
    if (wrong.empty()) wrong = all_to_all_v(ranks, comm, scale);
    if (wrong.empty()) wrong = transfers(ranks, comm, scale);
    if (wrong.empty()) wrong = testing::must(shoalBarrier(comm, nullptr), "shoalBarrier");
  }
  if (!wrong.empty()) {
    ncclCommAbort(comm);
    return wrong;
  }
  return testing::must(ncclCommDestroy(comm), "ncclCommDestroy");
}

// Whether a transport can carry it: boards need memory that every rank maps.
bool carries(const std::string& transport, const shoal::algorithms::Algorithm& algorithm) {
  return (transport != "tcp" && transport != "ucx") || algorithm.build({.world = {2}}).boards == shoal::plan::Boards::unused;
}

// The k-th algorithm of every collective that has so many, the last of the others.
std::string forced(const std::string& transport, std::size_t k) {
  std::string text;
  for (int c = 0; c < shoal::plan::kCollectives; ++c) {
    std::vector<std::string_view> names;
    for (const auto& each : shoal::algorithms::all())
      if (each.collective == Collective(c) && carries(transport, each)) names.push_back(each.name);
    if (names.empty()) continue;
    text +=
        (text.empty() ? "" : ";") + std::string(name_of(Collective(c))) + ":" + std::string(names[std::min(k, names.size() - 1)]);
  }
  return text;
}

std::size_t most_algorithms() {
  std::size_t most = 0;
  for (int c = 0; c < shoal::plan::kCollectives; ++c) {
    std::size_t n = 0;
    for (const auto& each : shoal::algorithms::all()) n += each.collective == Collective(c) ? 1 : 0;
    most = std::max(most, n);
  }
  return most;
}

void matrix(const std::string& transport) {
  for (std::size_t k = 0; k < most_algorithms(); ++k) {
    const std::string algorithms = forced(transport, k);
    setenv("SHOAL_ALGO", algorithms.c_str(), 1);
    for (int world = 1; world <= 9; ++world) {
      if (small() && world != 2 && world != 3 && world != 5 && world != 8) continue;
      if (transport == "ucx" && world > 5) continue;  // a context of UCX costs each rank some ten milliseconds
      INFO(transport << ", world " << world << ", SHOAL_ALGO=" << algorithms);
      CHECK(testing::run_ranks(transport, world, 120, everything) == "");
    }
    unsetenv("SHOAL_ALGO");
  }
}

}  // namespace

TEST_CASE("every collective is exact with every algorithm and world over threads", "[threads]") { matrix("threads"); }
TEST_CASE("every collective is exact with every algorithm and world over shm", "[shm]") { matrix("shm"); }
TEST_CASE("every collective is exact with every algorithm and world over tcp", "[tcp]") { matrix("tcp"); }
TEST_CASE("every collective is exact with every algorithm and world over UCX", "[ucx]") { matrix("ucx"); }

TEST_CASE("an algorithm that needs mapped memory is refused by name where there is none", "[tcp]") {
  setenv("SHOAL_ALGO", "one_shot", 1);
  const std::string said = testing::run_ranks("tcp", 2, 60, everything);
  unsetenv("SHOAL_ALGO");
  CHECK_THAT(said, Catch::Contains("no algorithm that is allowed (SHOAL_ALGO=one_shot)"));
}
