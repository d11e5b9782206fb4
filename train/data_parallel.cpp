// SPDX-License-Identifier: Apache-2.0
#include "train/data_parallel.h"

#include <array>
#include <cmath>
#include <memory>
#include <numeric>

#include "train/nn/gemm.h"
#include "train/parallel/bucket_reducer.h"
#include "train/record.h"
#include "train/reference.h"
#include "train/stopwatch.h"

namespace shoal::train {
namespace {

Score sum_over_ranks(const Communicator& comm, const Score& mine) {
  std::array<double, 1> loss{mine.loss};
  std::array<std::int64_t, 2> counts{mine.correct, mine.samples};
  comm.all_reduce(std::span<double>(loss), Over::sum);
  comm.all_reduce(std::span<std::int64_t>(counts), Over::sum);
  return {.loss = loss[0], .correct = counts[0], .samples = counts[1]};
}

bool same_on_all_ranks(const Communicator& comm, std::uint64_t value) {
  std::array<std::uint64_t, 1> least{value}, most{value};
  comm.all_reduce(std::span<std::uint64_t>(least), Over::min);
  comm.all_reduce(std::span<std::uint64_t>(most), Over::max);
  return least == most;
}

double percent_correct(const Score& score) {
  return score.samples == 0 ? 0.0 : 100.0 * static_cast<double>(score.correct) / static_cast<double>(score.samples);
}

// One rank's run. Every rank makes the same calls in the same order: what is decided is decided on all-reduced figures.
class DataParallelRun {
 public:
  DataParallelRun(const DataOptions& options, const FashionMnist& data, Seat seat)
      : options_(options),
        data_(data),
        comm_(seat),
        trainer_(options.recipe, data.train, seat),
        buckets_(options.compressor.empty() ? make_buckets(trainer_.network().tensors(), options.caps)
                                            : a_bucket_a_tensor(trainer_.network().tensors())),
        compression_(options.compressor.empty()
                         ? nullptr
                         : std::make_unique<Compression>(options.compressor, trainer_.network().tensors(), buckets_)),
        reducer_(comm_, trainer_.network().gradients(), buckets_, compression_.get()) {
    if (options.server) {
      server_ = std::make_unique<ParameterServer>(comm_, *options.server, trainer_.network().values());
      sums_ = std::make_unique<ServedSums>(*server_, trainer_.network().gradients(), buckets_);
    }
    record_.recipe = options.recipe;
    record_.world = seat.world;
    record_.samples = data.train.count();
    record_.parameters = trainer_.network().values().size();
    record_.tensors = trainer_.network().tensors().size();
    record_.buckets.assign(reducer_.buckets().begin(), reducer_.buckets().end());
    record_.target_accuracy = options.target_accuracy;
  }

  void train();
  // Closes the communicator before the run alone, which takes as long as it takes: no rank waits for it.
  void check();
  void close() {
    if (server_ != nullptr) server_->close();
    comm_.close();
  }

  bool speaks() const { return comm_.seat().rank == 0; }
  const RunRecord& record() const { return record_; }

 private:
  void tell_late_ranks();
  void run_epoch(std::size_t epoch);
  void timed_step(std::span<const std::uint32_t> batch);
  Score step(std::span<const std::uint32_t> batch);
  // Weights of this rank become the servers'.
  void pull_weights();
  bool servers_hold_weights() const { return options_.server && options_.server->mode != ServerMode::sync; }
  // Adds the window's score of all ranks to the epoch's and starts the next window.
  Score close_window(std::size_t epoch, std::size_t step);

  const DataOptions& options_;
  const FashionMnist& data_;
  Communicator comm_;
  Trainer trainer_;
  std::vector<Bucket> buckets_;
  std::unique_ptr<Compression> compression_;  // null: none
  BucketReducer reducer_;
  std::unique_ptr<ParameterServer> server_;  // null: all-reduce
  std::unique_ptr<ServedSums> sums_;
  RunRecord record_;
  std::vector<double> exposed_;  // [ms] of each step
  Score window_;                 // this rank's, since the last progress line
  Score epoch_;                  // all ranks', since the epoch's start
};

void DataParallelRun::train() {
  if (speaks()) print_header(record_);
  if (!same_on_all_ranks(comm_, hash_bits(trainer_.network().values()))) {
    throw failure(Exit::verdict,
                  "the ranks start from different parameters: are all of them the same build, with the same options?");
  }
  for (std::size_t epoch = 1; epoch <= options_.recipe.epochs; ++epoch) {
    run_epoch(epoch);
    if (record_.target_accuracy && record_.reached_target()) break;
  }
  tell_late_ranks();
  if (compression_ != nullptr) {
    record_.compression = compression_->record();
    if (!same_on_all_ranks(comm_, hash_bits(trainer_.network().values())))
      throw failure(Exit::verdict, "the ranks end with different parameters");
  }
  if (speaks()) print_summary(record_);
}

// The rank that waits least in a step comes last, and waits for the communication itself; what others wait beyond that is for it.
void DataParallelRun::tell_late_ranks() {
  comm_.all_reduce(std::span(exposed_), Over::min);
  const auto timed = std::span(exposed_).last(record_.time.timed_steps());
  record_.time.late_ms = record_.time.exposed_ms - std::accumulate(timed.begin(), timed.end(), 0.0);
}

void DataParallelRun::run_epoch(std::size_t epoch) {
  const Stopwatch watch;
  Stopwatch window_watch;
  const auto order = shuffled(data_.train.count(), options_.recipe.seed, epoch);
  const std::size_t steps = steps_per_epoch(options_.recipe, order.size());
  epoch_ = {};
  for (std::size_t step = 1; step <= steps; ++step) {
    timed_step(global_batch(order, options_.recipe.batch, step - 1));
    if (options_.log_every == 0 || step % options_.log_every != 0) continue;
    const Score score = close_window(epoch, step);
    if (speaks()) print_progress(record_, epoch, step, score, static_cast<double>(score.samples) * 1000 / window_watch.ms());
    window_watch = {};
  }
  close_window(epoch, steps);
  const double training_ms = watch.ms();
  if (servers_hold_weights())
    pull_weights();  // all workers' gradients are in them: the window's all-reduce came after the pushes

  const Score test = sum_over_ranks(comm_, trainer_.evaluate(data_.test));
  const double samples = static_cast<double>(epoch_.samples);
  record_.epochs.push_back({.epoch = epoch,
                            .loss = epoch_.loss / samples,
                            .accuracy = percent_correct(epoch_),
                            .test_accuracy = percent_correct(test),
                            .seconds = watch.ms() / 1000,
                            .samples_per_s = samples * 1000 / training_ms});
  if (speaks()) print_epoch(record_.epochs.back());
}

void DataParallelRun::timed_step(std::span<const std::uint32_t> batch) {
  const Stopwatch watch;
  window_ += step(batch);
  const CommTimes times = reducer_.take_times();
  record_.time.add(watch.ms(), times);
  exposed_.push_back(times.exposed_ms);
}

Score DataParallelRun::step(std::span<const std::uint32_t> batch) {
  if (server_ == nullptr) return trainer_.step(batch, reducer_);
  if (!servers_hold_weights()) return trainer_.step(batch, *sums_);
  pull_weights();
  const Score score = trainer_.gradients(batch, [](std::size_t) {});
  server_->wait(server_->push(0, trainer_.network().gradients()));
  server_->end_iteration();
  return score;
}

void DataParallelRun::pull_weights() { server_->wait(server_->pull_after(0, 0, trainer_.network().values())); }

Score DataParallelRun::close_window(std::size_t epoch, std::size_t step) {
  const Score score = sum_over_ranks(comm_, window_);
  if (!std::isfinite(score.loss)) {
    throw failure(Exit::verdict, "epoch {}, step {}: the loss is not finite; try a --lr below {}", epoch, step,
                  options_.recipe.sgd.rate);
  }
  epoch_ += score;
  window_ = {};
  return score;
}

void DataParallelRun::check() {
  CheckRecord check{.same_bits = same_on_all_ranks(comm_, hash_bits(trainer_.network().values()))};
  close();
  if (speaks()) {
    const Difference difference =
        difference_from_run_alone(options_.recipe, data_.train, record_.epochs.size(), trainer_.network());
    check.difference = difference.relative_l2;
    check.worst = difference.tensor;
    print_check(check);
  }
  record_.check = check;
}

}  // namespace

Exit run_data_parallel(const DataOptions& options, Seat seat) {
  check_gemm();
  // What NCCL_ALGO says stands for every collective; the option, for the gradients' sums.
  if (!options.algorithm.empty()) setenv("NCCL_ALGO", fmt::format("allreduce:{}", options.algorithm).c_str(), 1);
  FashionMnist data = load_fashion_mnist(options.folder);
  data.train.truncate(options.limit);

  DataParallelRun run(options, data, seat);
  const bool writes = run.speaks() && !options.json.empty();
  std::ofstream json = writes ? open_json(options.json) : std::ofstream();
  run.train();
  options.check ? run.check() : run.close();
  if (writes) write_json(run.record(), std::move(json), options.json);
  const bool passed = run.record().reached_target() && (!run.record().check || run.record().check->passed());
  return passed ? Exit::ok : Exit::verdict;
}

}  // namespace shoal::train
