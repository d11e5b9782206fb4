// SPDX-License-Identifier: Apache-2.0
// shoal-topo measure: latency and bandwidth between all pairs of a job's ranks, and the ring that avoids the slow links. Run
// under a launcher, a rank a process; one pair talks at a time, so that links are measured and not each other's traffic.
#include <shoal/shoal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

#include "comm/calibration.h"
#include "tools/topo/arguments.h"
#include "tools/topo/heat_map.h"
#include "tools/topo/launch.h"
#include "tools/topo/words.h"
#include "topo/bound/ring_order.h"

namespace shoal::topo_tool {
namespace {

using Seconds = std::chrono::duration<double>;
using Matrix = std::vector<std::vector<double>>;
constexpr int kMostRanks = 64;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
constexpr std::size_t kPing = 8;  // bytes of a short message

// A message from `from` to `to`, and a short answer. Seconds of both, on `from`.
Result<double> transfer(const Launch& job, int from, int to, std::vector<char>& buffer, std::size_t bytes, std::size_t answer) {
  const auto start = std::chrono::steady_clock::now();
  const bool sends = job.rank == from;
  const auto call = [&](bool send, int peer, std::size_t length) {
    return send ? ncclSend(buffer.data(), length, ncclInt8, peer, job.comm.get(), nullptr)
                : ncclRecv(buffer.data(), length, ncclInt8, peer, job.comm.get(), nullptr);
  };
  ncclResult_t result = call(sends, sends ? to : from, bytes);
  if (result == ncclSuccess) result = call(!sends, sends ? to : from, answer);
  if (Status s = status_of(result, fmt::format("between ranks {} and {}", from, to).c_str()); !s.is_ok()) return s;
  return Seconds(std::chrono::steady_clock::now() - start).count();
}

struct Measured {
  std::vector<double> latency_s, Bps;  // from this rank to each
};

// The quickest of some: what else the machine does makes others slower, never quicker.
Result<double> quickest(const Launch& job, int from, int to, std::vector<char>& buffer, std::size_t bytes, int times) {
  double least = 1e9;
  for (int i = 0; i <= times; ++i) {
    const Result<double> round = transfer(job, from, to, buffer, bytes, kPing);
    if (!round.is_ok()) return round.status();
    if (i > 0) least = std::min(least, *round);  // at first buffers on the way grow
  }
  return least;
}

// Both ends of the pair come here.
Status measure_pair(const Launch& job, int from, int to, std::size_t bytes, int times, Measured& measured) {
  constexpr int kPings = 50;
  std::vector<char> buffer(std::max<std::size_t>(bytes, kPing));
  const Result<double> ping = quickest(job, from, to, buffer, kPing, kPings);
  if (!ping.is_ok()) return ping.status();
  const Result<double> whole = quickest(job, from, to, buffer, bytes, times);
  if (!whole.is_ok()) return whole.status();
  if (job.rank != from) return {};
  measured.latency_s[static_cast<std::size_t>(to)] = *ping / 2;
  // The answer's way is not the message's.
  measured.Bps[static_cast<std::size_t>(to)] = static_cast<double>(bytes) / std::max(*whole - *ping / 2, *whole / 2);
  return {};
}

Result<Measured> measure_all(const Launch& job, std::size_t bytes, int times) {
  Measured measured{std::vector<double>(static_cast<std::size_t>(job.world)),
                    std::vector<double>(static_cast<std::size_t>(job.world))};
  for (int from = 0; from < job.world; ++from)
    for (int to = 0; to < job.world; ++to) {
      if (from == to) continue;
      if (job.rank == from || job.rank == to)
        if (Status s = measure_pair(job, from, to, bytes, times, measured); !s.is_ok()) return s;
      if (Status s = status_of(shoalBarrier(job.comm.get(), nullptr), "barrier"); !s.is_ok()) return s;
    }
  return measured;
}

// Seconds of an all-reduce in a communicator whose ring has this order, the quickest of some; the same on all ranks.
Result<double> all_reduce_in(const Launch& job, const std::vector<int>& order, std::size_t bytes, int times) {
  const auto place = std::find(order.begin(), order.end(), job.rank) - order.begin();
  ncclComm_t raw = nullptr;
  if (Status s = status_of(ncclCommSplit(job.comm.get(), 0, static_cast<int>(place), &raw, nullptr), "split"); !s.is_ok())
    return s;
  const Communicator comm(raw);
  const std::size_t count = std::max<std::size_t>(1, bytes / sizeof(float));
  std::vector<float> buffer(count);
  double least = 1e9;
  for (int i = 0; i <= times; ++i) {
    if (Status s = status_of(shoalBarrier(comm.get(), nullptr), "barrier"); !s.is_ok()) return s;
    const auto start = std::chrono::steady_clock::now();
    if (Status s =
            status_of(ncclAllReduce(buffer.data(), buffer.data(), count, ncclFloat, ncclSum, comm.get(), nullptr), "all-reduce");
        !s.is_ok())
      return s;
    double mine = Seconds(std::chrono::steady_clock::now() - start).count(), slowest = 0;
    if (Status s = status_of(ncclAllReduce(&mine, &slowest, 1, ncclDouble, ncclMax, comm.get(), nullptr), "all-reduce");
        !s.is_ok())
      return s;
    if (i > 0) least = std::min(least, slowest);  // at first links are made
  }
  return least;
}

Result<Matrix> matrix_of(const Launch& job, const std::vector<double>& row) {
  const std::size_t n = row.size();
  std::vector<double> all(n * n);
  if (Status s = status_of(ncclAllGather(row.data(), all.data(), n, ncclDouble, job.comm.get(), nullptr), "all-gather");
      !s.is_ok())
    return s;
  Matrix matrix;
  for (std::size_t r = 0; r < n; ++r)
    matrix.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(r * n), all.begin() + static_cast<std::ptrdiff_t>((r + 1) * n));
  return matrix;
}

// "3 node7"
Result<std::vector<std::string>> names_of(const Launch& job) {
  std::array<char, 256> own = {};
  const bool known = ::gethostname(own.data(), own.size() - 1) == 0;
  return gather(job, fmt::format("{} {}", job.rank, known ? own.data() : "unknown"));
}

std::string number(double value) { return fmt::format("{:.{}f}", value, value < 10 ? 2 : value < 100 ? 1 : 0); }

std::string order_text(const std::vector<int>& order) {
  std::string text;
  for (const int rank : order) text += fmt::format("{}{}", text.empty() ? "" : ",", rank);
  return text;
}

// The quickest that was measured from each host to each other one, as SHOAL_CALIBRATION reads it. Hosts are told apart by name.
Result<std::string> calibration_of(const std::vector<std::string>& names, const Matrix& Bps) {
  const auto host_of = [&](std::size_t rank) { return names[rank].substr(names[rank].find(' ') + 1); };
  comm::Calibration paths;
  for (std::size_t a = 0; a < names.size(); ++a)
    for (std::size_t b = 0; b < names.size(); ++b) {
      if (host_of(a) == host_of(b)) continue;
      if (!comm::is_host_name(host_of(a)))
        return fail(Code::invalid_argument, "'{}' is no name of a host that a file can hold", host_of(a));
      double& known = paths.paths_Bps[{host_of(a), host_of(b)}];
      known = std::max(known, Bps[a][b]);
    }
  if (paths.paths_Bps.empty())
    return fail(Code::invalid_argument, "all ranks are on one host, {}: there are no ways between hosts", host_of(0));
  return "# Ways between hosts, measured by shoal-topo; SHOAL_CALIBRATION names this file.\n" + comm::text_of(paths, '\n') + "\n";
}

struct Rings {
  std::vector<int> plain, order;
  double in_rank_order_Bps = 0, best_Bps = 0;
  double plain_s = 0, order_s = 0;  // of an all-reduce; 0: not asked for
};

Rings rings_of(const Matrix& Bps) {
  topo::CostMatrix costs = Bps;
  for (auto& row : costs)
    for (double& each : row) each = each > 0 ? 1 / each : 0;
  Rings rings{.plain = {}, .order = topo::ring_order(costs)};
  for (std::size_t r = 0; r < Bps.size(); ++r) rings.plain.push_back(static_cast<int>(r));
  rings.in_rank_order_Bps = 1 / topo::ring_cost(costs, rings.plain).slowest;
  rings.best_Bps = 1 / topo::ring_cost(costs, rings.order).slowest;
  return rings;
}

void print(const char* title, const std::vector<std::string>& names, const Matrix& matrix, double unit) {
  std::size_t width = 8;
  for (const std::string& name : names) width = std::max(width, name.size() + 2);
  fmt::print("{}\n{:{}}", title, "", width);
  for (std::size_t r = 0; r < names.size(); ++r) fmt::print("{:>8}", r);
  fmt::print("\n");
  for (std::size_t a = 0; a < names.size(); ++a) {
    fmt::print("{:<{}}", names[a], width);
    for (std::size_t b = 0; b < names.size(); ++b) fmt::print("{:>8}", a == b ? "-" : number(matrix[a][b] / unit));
    fmt::print("\n");
  }
}

std::string picture_of(const std::vector<std::string>& names, const Matrix& latency_s, const Matrix& Bps, std::size_t bytes) {
  const auto map = [&](std::string title, std::string subtitle, const Matrix& values, double unit, bool more_is_better) {
    HeatMap heat{std::move(title), std::move(subtitle), names, values, {}, more_is_better};
    for (const auto& row : values) {
      heat.texts.emplace_back();
      for (const double value : row) heat.texts.back().push_back(number(value / unit));
    }
    return heat;
  };
  return draw({map("bandwidth, GB/s", fmt::format("from row to column, messages of {}", bytes_text(bytes)), Bps, 1e9, true),
               map("latency, microseconds", "half of the quickest round trip, 8 bytes", latency_s, 1e-6, false)});
}

}  // namespace

Ending measure(const Words& words) {
  std::uint64_t bytes = std::uint64_t{1} << 20, all_reduce = 0;
  int times = 8;
  std::string svg, calibration;
  bool json = false;
  cli::CommandLine line =
      command_line("measure", "latency and bandwidth between all ranks of a job.", "[OPTIONS]    (under a launcher)");
  line.size("-b,--bytes", bytes, "Of a message whose bandwidth is measured");
  line.integer("-n,--iters", times, 1, "Such messages for each pair and direction", 1 << 20);
  take_path(line, "--svg", svg, "Draws heat maps into this file");
  take_path(line, "--calibration", calibration, "Writes the bandwidths between hosts into this file, for SHOAL_CALIBRATION");
  line.size("--all-reduce", all_reduce, "Times an all-reduce of this size, too, in the order of ranks and in the best one found");
  line.flag("--json", json, "As JSON, in seconds and bytes a second");
  if (const auto ending = parse(line, words)) return *ending;
  if (bytes < kPing || bytes > kMostBytes) return {kUsage, fmt::format("-b/--bytes {}: must be 8 to 1G", bytes)};
  if (all_reduce > kMostBytes) return {kUsage, fmt::format("--all-reduce {}: must be at most 1G", all_reduce)};

  const Result<Launch> job = join(kMostRanks, "measure");
  if (!job.is_ok())
    return job.status().code() == Code::invalid_argument ? usage(job.status()) : Ending{kFound, std::string(job.status().text())};
  const auto failed = [](const Status& s) { return Ending{kFound, std::string(s.text())}; };
  const Result<std::vector<std::string>> names = names_of(*job);
  if (!names.is_ok()) return failed(names.status());
  const Result<Measured> own = measure_all(*job, bytes, times);
  if (!own.is_ok()) return failed(own.status());
  const Result<Matrix> latency_s = matrix_of(*job, own->latency_s), Bps = matrix_of(*job, own->Bps);
  if (!latency_s.is_ok() || !Bps.is_ok()) return failed(latency_s.is_ok() ? Bps.status() : latency_s.status());
  Rings rings = rings_of(*Bps);  // of the same matrix on all ranks
  if (all_reduce > 0) {
    const Result<double> plain_s = all_reduce_in(*job, rings.plain, all_reduce, times);
    if (!plain_s.is_ok()) return failed(plain_s.status());
    const Result<double> order_s = all_reduce_in(*job, rings.order, all_reduce, times);
    if (!order_s.is_ok()) return failed(order_s.status());
    rings.plain_s = *plain_s;
    rings.order_s = *order_s;
  }
  if (job->rank != 0) return {};

  if (!svg.empty())
    if (Status s = write_file(svg, picture_of(*names, *latency_s, *Bps, bytes)); !s.is_ok())
      return {kFound, "--svg " + std::string(s.text())};
  if (!calibration.empty()) {
    const Result<std::string> text = calibration_of(*names, *Bps);
    const Status written = text.is_ok() ? write_file(calibration, *text) : text.status();
    if (!written.is_ok()) return {kFound, "--calibration " + std::string(written.text())};
  }
  if (json) {
    nlohmann::ordered_json all = {
        {"ranks", *names},
        {"bytes", bytes},
        {"latency_s", *latency_s},
        {"bandwidth_Bps", *Bps},
        {"ring",
         {{"order", rings.order}, {"slowest_Bps", rings.best_Bps}, {"slowest_in_rank_order_Bps", rings.in_rank_order_Bps}}}};
    if (all_reduce > 0)
      all["all_reduce"] = {{"bytes", all_reduce}, {"in_rank_order_s", rings.plain_s}, {"in_best_order_s", rings.order_s}};
    fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return {};
  }
  print(fmt::format("GB/s from row to column, messages of {}", bytes_text(bytes)).c_str(), *names, *Bps, 1e9);
  print("\nmicroseconds, half of the quickest round trip", *names, *latency_s, 1e-6);
  fmt::print("\nring in the order of ranks: its slowest link {} GB/s\nbest order found, {}: {} GB/s\n",
             number(rings.in_rank_order_Bps / 1e9), order_text(rings.order), number(rings.best_Bps / 1e9));
  if (all_reduce > 0)
    fmt::print("all-reduce of {}: {:.4g} ms in the order of ranks, {:.4g} ms in the best order\n", bytes_text(all_reduce),
               rings.plain_s * 1e3, rings.order_s * 1e3);
  return {};
}

}  // namespace shoal::topo_tool
