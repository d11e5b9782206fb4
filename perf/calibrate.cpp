// SPDX-License-Identifier: Apache-2.0
#include "perf/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <vector>

#include "perf/group.h"

namespace shoal::perf {
namespace {

using Clock = std::chrono::steady_clock;

// The least of many short rounds is what the machine does when nothing else goes on, which is what the model's numbers mean: a
// round is well within the time that a scheduler leaves a process alone.
constexpr int kRounds = 64;
constexpr int kPingPongs = 16;                                    // a round
constexpr int kBurst = 64;                                        // messages in one group
constexpr std::size_t kSmall = 8, kLarge = std::size_t{2} << 20;  // bytes of a message

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

template <typename Body>
double least_of_rounds(Body body) {
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    const auto start = Clock::now();
    body();
    least = std::min(least, seconds_since(start));
  }
  return least;
}

// One end of a pair: rank 0 keeps the time, the other one answers.
class Pair {
 public:
  Pair(ncclComm_t comm, int rank, int peer) : comm_(comm), rank_(rank), peer_(peer), memory_(kLarge) {}

  MaybeFailure measure(WireFigures& wire) {
    ping_pong();  // connects
    const double there_and_back = least_of_rounds([this] {
      for (int i = 0; i < kPingPongs; ++i) ping_pong();
    });
    // Messages one after the other keep the sender's processor busy, or the receiver's: whichever takes longer.
    const double burst = least_of_rounds([this] { send_then_answer(kBurst, kSmall); });
    const double large = least_of_rounds([this] { send_then_answer(1, kLarge); });
    const double one_way = there_and_back / kPingPongs / 2;
    wire.overhead_s = std::min(std::max(burst - 2 * one_way, 0.0) / kBurst, one_way / 2);
    wire.latency_s = one_way - wire.overhead_s;
    wire.bandwidth_Bps = static_cast<double>(kLarge) / std::max(large - one_way, large / 2);
    if (failed_ == ncclSuccess) return std::nullopt;
    return make_failure(failed_, "ncclSend and ncclRecv", fmt::format("{}", rank_));
  }

 private:
  bool leads() const { return rank_ < peer_; }

  void transfer(bool sending, int messages, std::size_t bytes) {
    if (failed_ != ncclSuccess) return;
    failed_ = in_group(true, [&] {
      for (int i = 0; i < messages; ++i) {
        const ncclResult_t result = sending ? ncclSend(memory_.data(), bytes, ncclUint8, peer_, comm_, nullptr)
                                            : ncclRecv(memory_.data(), bytes, ncclUint8, peer_, comm_, nullptr);
        if (result != ncclSuccess) return result;
      }
      return ncclSuccess;
    });
  }
  void send_then_answer(int messages, std::size_t bytes) {
    transfer(leads(), messages, bytes);
    transfer(!leads(), 1, kSmall);
  }
  void ping_pong() { send_then_answer(1, kSmall); }

  ncclComm_t comm_;
  int rank_, peer_;
  std::vector<std::byte> memory_;
  ncclResult_t failed_ = ncclSuccess;
};

// One processor, arrays that no second-level cache holds, in pieces as long as a slice. Copies are the library's own, which a
// rank alone makes; memcpy is several times slower on some machines when both sides have the same place in their pages.
MaybeFailure measure_processor(CalibrationFigures& figures) {
  constexpr std::size_t kSlice = (std::size_t{64} << 10) / sizeof(float), kSlices = 8, kArray = 16 * kSlices * kSlice;
  std::vector<float> from(kArray, 1.0F), to(kArray, 2.0F);
  const auto each_slice = [&](auto body) {
    std::size_t at = 0;
    return static_cast<double>(kSlices * kSlice * sizeof(float)) / least_of_rounds([&] {
             for (std::size_t i = 0; i < kSlices; ++i, at = (at + kSlice) % kArray) body(to.data() + at, from.data() + at);
             asm volatile("" : : "r"(to.data()) : "memory");  // somebody might look at it
           });
  };
  figures.reduce_Bps = each_slice([](float* out, const float* in) {
    for (std::size_t i = 0; i < kSlice; ++i) out[i] += in[i];
  });
  ncclComm_t alone = nullptr;
  ncclResult_t result = ncclCommInitAll(&alone, 1, nullptr);
  if (result != ncclSuccess) return make_failure(result, "ncclCommInitAll", "0");
  figures.copy_Bps = each_slice([&](float* out, const float* in) {
    if (result == ncclSuccess) result = ncclAllReduce(in, out, kSlice, ncclFloat32, ncclSum, alone, nullptr);
  });
  ncclCommDestroy(alone);
  if (result != ncclSuccess) return make_failure(result, "ncclAllReduce (of a rank alone)", "0");
  return std::nullopt;
}

// As the library chooses between two processes of one host.
const char* transport_within() {
  for (const char* name : {"SHOAL_SHM_DISABLE", "NCCL_SHM_DISABLE"})
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return std::atoi(value) != 0 ? "tcp" : "shm";
  return "shm";
}

// The lowest rank that is, or is not, of rank 0's host; 0: there is none.
int partner(const std::vector<RankInfo>& ranks, bool same_host) {
  for (std::size_t rank = 1; rank < ranks.size(); ++rank)
    if ((ranks[rank].machine == ranks.front().machine) == same_host) return static_cast<int>(rank);
  return 0;
}

}  // namespace

MaybeFailure calibrate(Team& team, const std::vector<RankInfo>& ranks, CalibrationFigures& figures) {
  Member& member = team.members().front();
  for (const bool same_host : {true, false}) {
    const int other = partner(ranks, same_host);
    if (other == 0) continue;
    if (same_host) figures.within_transport = transport_within();
    if (member.rank == 0 || member.rank == other) {
      Pair pair(member.comm, member.rank, member.rank == 0 ? other : 0);
      if (auto failure = pair.measure(same_host ? figures.within : figures.between)) return failure;
    }
    if (auto failure = team.barrier()) return failure;
  }
  if (member.rank == 0)
    if (auto failure = measure_processor(figures)) return failure;
  return team.barrier();
}

std::string calibration_text(const CalibrationFigures& figures, const std::vector<RankInfo>& ranks, const std::string& when) {
  std::string text = fmt::format("# Shoal's calibration of {} ranks, rank 0 on {}, {}; SHOAL_CALIBRATION names this file.\n",
                                 ranks.size(), ranks.front().host, when);
  const auto line = [&text](const char* key, double value) {
    if (value > 0) text += fmt::format("{} = {:.4g}\n", key, value);
  };
  if (!figures.within_transport.empty()) text += fmt::format("within.transport = {}\n", figures.within_transport);
  line("within.latency_s", figures.within.latency_s);
  line("within.overhead_s", figures.within.overhead_s);
  line("within.bandwidth_Bps", figures.within.bandwidth_Bps);
  line("between.latency_s", figures.between.latency_s);
  line("between.overhead_s", figures.between.overhead_s);
  line("between.bandwidth_Bps", figures.between.bandwidth_Bps);
  line("copy_Bps", figures.copy_Bps);
  line("reduce_Bps", figures.reduce_Bps);
  return text;
}

}  // namespace shoal::perf
