// SPDX-License-Identifier: Apache-2.0
#include "train/delayed_averaging.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "train/nn/gemm.h"
#include "train/nn/tensor.h"
#include "train/parallel/stream_reducer.h"
#include "train/record.h"
#include "train/stopwatch.h"

namespace shoal::train {
namespace {

template <typename... Args>
void line(fmt::format_string<Args...> format, Args&&... args) {
  fmt::print("{}\n", fmt::format(format, std::forward<Args>(args)...));
  std::fflush(stdout);  // a launcher's pipe is not a terminal: a line must not wait for the next ones
}

Score sum_over_ranks(const Communicator& comm, const Score& mine) {
  std::array<double, 1> loss{mine.loss};
  std::array<std::int64_t, 2> counts{mine.correct, mine.samples};
  comm.all_reduce(std::span<double>(loss));
  comm.all_reduce(std::span<std::int64_t>(counts));
  return {.loss = loss[0], .correct = counts[0], .samples = counts[1]};
}

bool same_on_all_ranks(const Communicator& comm, std::uint64_t value) {
  std::array<std::uint64_t, 1> least{value}, most{value};
  comm.all_reduce(std::span<std::uint64_t>(least), Over::min);
  comm.all_reduce(std::span<std::uint64_t>(most), Over::max);
  return least == most;
}

double percent(const Score& score) { return 100.0 * static_cast<double>(score.correct) / static_cast<double>(score.samples); }

// Times are rank 0's.
struct Figures {
  double iteration_ms = 0;  // mean over the second half: the first rounds are awaited by nobody
  double waited_ms = 0;     // all in all, for rounds that were due
  double total_ms = 0;      // with the drain
  double loss = 0;          // of the last window
  std::optional<double> test_accuracy;
};

// One rank's run. Every rank makes the same calls in the same order.
class DelayedRun {
 public:
  // `weight` of this rank in means.
  DelayedRun(const DelayedOptions& options, const Communicator& comm, LocalWorker& worker, double weight)
      : options_(options),
        comm_(comm),
        worker_(worker),
        averaging_(options.schedule, options.outer, weight, worker.parameters(), reducer_),
        reducer_(comm, options.schedule.in_flight()) {}

  void train();
  void close() { reducer_.close(); }

  Figures& figures() { return figures_; }
  const StreamReducer& reducer() const { return reducer_; }
  std::size_t bytes_held() const { return averaging_.bytes_held(); }

 private:
  void close_window(std::size_t t, double ms_an_iteration);

  const DelayedOptions& options_;
  const Communicator& comm_;
  LocalWorker& worker_;
  DelayedAveraging<float> averaging_;
  StreamReducer reducer_;  // behind the averaging, to go first: its streams write into the other's memory
  Score window_;
  Figures figures_;
};

void DelayedRun::train() {
  if (!same_on_all_ranks(comm_, hash_bits(worker_.parameters()))) {
    throw failure(Exit::verdict,
                  "the ranks start from different parameters: are all of them the same build, with the same options?");
  }
  const std::size_t iterations = options_.replica.iterations, half = iterations / 2;
  const Stopwatch watch;
  Stopwatch since_half, since_window;
  for (std::size_t t = 1; t <= iterations; ++t) {
    window_ += worker_.step(t);
    averaging_.post(worker_.parameters());
    averaging_.settle(worker_.parameters());
    if (t == half) since_half = {};
    if (t == iterations) figures_.iteration_ms = since_half.ms() / static_cast<double>(iterations - half);
    if (options_.log_every == 0 || t % options_.log_every != 0) continue;
    close_window(t, since_window.ms() / static_cast<double>(options_.log_every));
    since_window = {};
  }
  averaging_.drain(worker_.parameters());
  figures_.total_ms = watch.ms();
  figures_.waited_ms = reducer_.waited_ms();
  if (!same_on_all_ranks(comm_, hash_bits(worker_.parameters())))
    throw failure(Exit::verdict, "the ranks end with different parameters");
  if (!std::ranges::all_of(worker_.parameters(), [](float each) { return std::isfinite(each); }))
    throw failure(Exit::verdict, "the parameters are not finite at the end; try a --lr below {}",
                  options_.replica.optimizer.rate);
}

void DelayedRun::close_window(std::size_t t, double ms_an_iteration) {
  if (options_.compute_ms > 0) return;
  const Score score = sum_over_ranks(comm_, window_);
  window_ = {};
  figures_.loss = score.loss / static_cast<double>(score.samples);
  if (!std::isfinite(score.loss))
    throw failure(Exit::verdict, "iteration {}: the loss is not finite; try a --lr below {}", t, options_.replica.optimizer.rate);
  if (comm_.seat().rank == 0)
    line("iteration {:>5}/{}  loss {:.4f}  accuracy {:5.2f} %  {:.2f} ms an iteration", t, options_.replica.iterations,
         figures_.loss, percent(score), ms_an_iteration);
}

void print_header(const DelayedOptions& options, std::size_t parameters, Seat seat) {
  const DelayOptions& schedule = options.schedule;
  line("{}: {} parameters, world {}, {} iterations, a round every {}, its mean {} later{}", options.kind, parameters, seat.world,
       options.replica.iterations, schedule.local_steps, schedule.delay, schedule.correction ? "" : ", without correction");
  if (schedule.sync_steps > 0) line("the first {} iterations are synchronous", schedule.sync_steps);
  if (options.outer.momentum != 0 || options.outer.rate != 1)
    line("outer optimiser: Nesterov {}, rate {}", options.outer.momentum, options.outer.rate);
}

void print_summary(const Figures& figures, const Ledger::Sent& sent, const DelayedOptions& options, std::size_t held) {
  const auto iterations = static_cast<double>(options.replica.iterations);
  line("an iteration: {:.3f} ms; waited for means: {:.3f} ms of it; in all {:.1f} s with the drain", figures.iteration_ms,
       figures.waited_ms / iterations, figures.total_ms / 1000);
  line("rounds: {}; sent by a rank: {:.0f} bytes an iteration; held beside the parameters: {} bytes", sent.calls,
       static_cast<double>(sent.bytes) / iterations, held);
  line("all ranks hold the same bits");
  if (figures.test_accuracy) line("test accuracy {:.2f} %", *figures.test_accuracy);
}

void write(const Figures& figures, const Ledger::Sent& sent, const DelayedOptions& options, std::size_t parameters, Seat seat,
           std::ofstream file) {
  nlohmann::json json = {{"kind", options.kind},
                         {"world", seat.world},
                         {"delay", options.schedule.delay},
                         {"local_steps", options.schedule.local_steps},
                         {"sync_steps", options.schedule.sync_steps},
                         {"correction", options.schedule.correction},
                         {"iterations", options.replica.iterations},
                         {"parameters", parameters},
                         {"seed", options.replica.seed},
                         {"iteration_ms", figures.iteration_ms},
                         {"waited_ms", figures.waited_ms},
                         {"total_ms", figures.total_ms},
                         {"rounds", sent.calls},
                         {"sent_bytes", sent.bytes}};
  if (options.compute_ms > 0) json["compute_ms"] = options.compute_ms;
  if (figures.test_accuracy) json["test_accuracy_percent"] = *figures.test_accuracy;
  file << json.dump(2) << '\n';
  file.close();
  if (!file) throw failure(Exit::usage, "--json: {} could not be written whole", options.json);
}

Exit run(const DelayedOptions& options, const Communicator& comm, LocalWorker& worker, double weight,
         const std::function<std::optional<double>()>& test, std::ofstream json) {
  const bool speaks = comm.seat().rank == 0;
  const std::size_t parameters = worker.parameters().size();
  if (speaks) print_header(options, parameters, comm.seat());
  DelayedRun run(options, comm, worker, weight);
  run.train();
  run.figures().test_accuracy = test();
  run.close();
  const Ledger::Sent& sent = run.reducer().ledger().sent(Moves::all_reduce);
  if (speaks) print_summary(run.figures(), sent, options, run.bytes_held());
  if (json.is_open()) write(run.figures(), sent, options, parameters, comm.seat(), std::move(json));
  return Exit::ok;
}

// What all updates of all ranks come to, whenever they were averaged.
void check_sum(std::span<const float> values, const DelayedOptions& options, Seat seat) {
  double expected = 0;
  for (std::size_t t = 1; t <= options.iterations; ++t)
    for (std::size_t rank = 0; rank < seat.world; ++rank)
      expected += static_cast<double>(StandIn::update({rank, seat.world}, t)) / static_cast<double>(seat.world);
  for (const float each : values)
    if (std::abs(static_cast<double>(each) - expected) > kTolerance * std::max(1.0, expected))
      throw failure(Exit::verdict, "rank {} ends with {} where the updates of all ranks come to {}", seat.rank, each, expected);
}

Exit run_stand_in(DelayedOptions options, Seat seat, std::ofstream json) {
  options.replica.iterations = options.iterations;
  Communicator comm(seat);
  StandIn worker(options.parameters, std::chrono::nanoseconds(std::llround(options.compute_ms * 1e6)), seat);
  const auto no_test = [] { return std::optional<double>(); };
  const Exit end = run(options, comm, worker, 1.0 / static_cast<double>(seat.world), no_test, std::move(json));
  comm.close();
  check_sum(worker.parameters(), options, seat);
  return end;
}

Exit run_replicas(DelayedOptions options, Seat seat, std::ofstream json) {
  check_gemm();
  FashionMnist data = load_fashion_mnist(options.folder);
  data.train.truncate(options.limit);
  const std::size_t samples = data.train.count();
  if (samples < 2 * seat.world)
    throw failure(Exit::usage, "--limit: {} samples are too few for {} ranks: at least {}", samples, seat.world, 2 * seat.world);
  options.replica.iterations = options.epochs * std::max<std::size_t>(1, samples / (options.replica.batch * seat.world));
  std::vector<std::uint32_t> mine = shard(data.train.labels(), seat, options.spread, options.replica.seed);
  const double weight =
      options.by_size ? static_cast<double>(mine.size()) / static_cast<double>(samples) : 1.0 / static_cast<double>(seat.world);
  Communicator comm(seat);
  Replica replica(options.replica, data.train, std::move(mine), seat);
  const auto test = [&] { return std::optional(percent(sum_over_ranks(comm, replica.evaluate(data.test)))); };
  const Exit end = run(options, comm, replica, weight, test, std::move(json));
  comm.close();
  return end;
}

}  // namespace

Exit run_delayed(const DelayedOptions& options, Seat seat) {
  std::ofstream json = seat.rank == 0 && !options.json.empty() ? open_json(options.json) : std::ofstream();
  return options.compute_ms > 0 ? run_stand_in(options, seat, std::move(json)) : run_replicas(options, seat, std::move(json));
}

}  // namespace shoal::train
