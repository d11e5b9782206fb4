// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/parameter_server.h"

#include <array>

namespace shoal::train {
namespace {

shoalPsMode mode_of(ServerMode mode) {
  switch (mode) {
    case ServerMode::sync: return shoalPsSync;
    case ServerMode::async: return shoalPsAsync;
    case ServerMode::bounded: return shoalPsSsp;
  }
  return shoalPsSync;
}

}  // namespace

ParameterServer::ParameterServer(const Communicator& comm, const ServerOptions& options, std::span<const float> initial)
    : seat_(comm.seat()) {
  const bool sums = options.mode == ServerMode::sync;
  shoalPsConfig config{};
  config.workers = static_cast<int>(seat_.world);
  config.servers = static_cast<int>(options.servers);
  config.keys = initial.size();
  config.dtype = ncclFloat32;
  config.mode = mode_of(options.mode);
  config.staleness = options.mode == ServerMode::bounded ? static_cast<int>(options.staleness) : 0;
  config.optimizer = sums ? shoalPsOptimizerSum : shoalPsOptimizerSgd;
  config.learningRate = sums ? 0 : options.rate;
  config.initial = sums ? nullptr : initial.data();

  ncclUniqueId id{};
  if (seat_.rank == 0) check(ncclGetUniqueId(&id), "ncclGetUniqueId", seat_);
  comm.broadcast(std::as_writable_bytes(std::span(&id, 1)), 0);
  shoalPs_t handle = nullptr;
  if (seat_.rank < options.servers) {
    check(shoalPsServeInBackground(&handle, id, static_cast<int>(seat_.world + seat_.rank), &config), "shoalPsServeInBackground",
          seat_);
    server_.reset(handle);
  }
  check(shoalPsInit(&handle, id, static_cast<int>(seat_.rank), &config), "shoalPsInit", seat_);
  worker_.reset(handle);
}

ParameterServer::~ParameterServer() = default;

std::uint64_t ParameterServer::push(std::size_t first, std::span<const float> gradient) {
  std::uint64_t timestamp = 0;
  check(shoalPsPush(worker_.get(), first, gradient.size(), gradient.data(), &timestamp), "shoalPsPush", seat_);
  return timestamp;
}

std::uint64_t ParameterServer::pull_after(std::uint64_t push, std::size_t first, std::span<float> into) {
  std::uint64_t timestamp = 0;
  check(shoalPsPullAfter(worker_.get(), first, into.size(), into.data(), push, &timestamp), "shoalPsPullAfter", seat_);
  return timestamp;
}

void ParameterServer::wait(std::uint64_t timestamp) { check(shoalPsWait(worker_.get(), timestamp), "shoalPsWait", seat_); }

void ParameterServer::end_iteration() { check(shoalPsClock(worker_.get()), "shoalPsClock", seat_); }

std::uint64_t ParameterServer::server_bytes() const {
  shoalPsStatistics statistics{};
  if (server_ == nullptr) return 0;
  check(shoalPsStats(server_.get(), -1, &statistics), "shoalPsStats", seat_);
  return statistics.payloadBytesSent + statistics.payloadBytesReceived;
}

void ParameterServer::close() {
  check(shoalPsDestroy(worker_.release()), "shoalPsDestroy of the worker", seat_);
  if (server_ != nullptr) check(shoalPsDestroy(server_.release()), "shoalPsDestroy of the server", seat_);
}

void ServedSums::ready_from(std::size_t offset) {
  for (; pushed_ < buckets_.size() && buckets_[pushed_].begin >= offset; ++pushed_)
    last_push_ = server_.push(buckets_[pushed_].begin, of(buckets_[pushed_]));
}

void ServedSums::wait(std::size_t bucket) {
  if (bucket == 0) {  // backward has ended, and with it the iteration: sums are there once all workers have said so
    server_.end_iteration();
    for (std::size_t b = 0; b < buckets_.size(); ++b)
      pulls_[b] = server_.pull_after(last_push_, buckets_[b].begin, of(buckets_[b]));
    pushed_ = 0;
  }
  server_.wait(pulls_[bucket]);
}

}  // namespace shoal::train
