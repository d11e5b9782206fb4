// SPDX-License-Identifier: Apache-2.0
#include "ps/config.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace shoal::ps {
namespace {

Status check_shares(const Config& config) {
  if (config.shares.size() != static_cast<std::size_t>(config.servers))
    return fail(Code::invalid_argument, "config.shares has {} entries for {} servers", config.shares.size(), config.servers);
  std::size_t left = config.keys.value;
  for (std::size_t i = 0; i < config.shares.size(); ++i) {
    if (config.shares[i] > left)
      return fail(Code::invalid_argument, "config.shares[{}] is {}: more than the {} of {} keys that are left", i,
                  config.shares[i], left, config.keys.value);
    left -= config.shares[i];
  }
  if (left != 0)
    return fail(Code::invalid_argument, "config.shares add up to {}, config.keys is {}", config.keys.value - left,
                config.keys.value);
  return {};
}

}  // namespace

Status check(const Config& config) {
  if (config.workers < 1) return fail(Code::invalid_argument, "config.workers is {}, must be at least 1", config.workers);
  if (config.servers < 1) return fail(Code::invalid_argument, "config.servers is {}, must be at least 1", config.servers);
  if (config.workers > kMaxRanks || config.servers > kMaxRanks - config.workers)
    return fail(Code::invalid_argument, "{} workers and {} servers are more than {} ranks", config.workers, config.servers,
                kMaxRanks);
  if (config.type != DataType::float32 && config.type != DataType::float64)
    return fail(Code::invalid_argument, "config.dtype is {}, must be float32 or float64", name_of(config.type));
  if (config.keys.value > std::numeric_limits<std::size_t>::max() / 2 / element_bytes(config.type))
    return fail(Code::invalid_argument, "config.keys is {}: more than memory can hold", config.keys.value);
  if (config.staleness < 0) return fail(Code::invalid_argument, "config.staleness is {}, must be at least 0", config.staleness);
  if (config.staleness > 0 && config.mode != Mode::ssp)
    return fail(Code::invalid_argument, "config.staleness is {}: only shoalPsSsp has one", config.staleness);
  if (config.update == Update::sum && config.mode != Mode::sync)
    return fail(Code::invalid_argument,
                "config.optimizer is shoalPsOptimizerSum, which needs shoalPsSync: without iterations "
                "there is no sum of one (shoalPsOptimizerAdd adds up)");
  if (!std::isfinite(config.rate)) return fail(Code::invalid_argument, "config.learningRate is {}", config.rate);
  if (config.rate != 0 && config.update != Update::sgd)
    return fail(Code::invalid_argument, "config.learningRate is {}: only shoalPsOptimizerSgd has one", config.rate);
  return check_shares(config);
}

Status compare(Rank rank, const Config& mine, const Config& of_rank_0) {
  const auto differ = [&](const char* what, const auto& here, const auto& there) {
    return Status(Code::invalid_usage, fmt::format("rank {}: config.{} is {} here, {} at rank 0", rank.value, what, here, there),
                  rank);
  };
  if (mine.workers != of_rank_0.workers) return differ("workers", mine.workers, of_rank_0.workers);
  if (mine.servers != of_rank_0.servers) return differ("servers", mine.servers, of_rank_0.servers);
  if (mine.keys != of_rank_0.keys) return differ("keys", mine.keys.value, of_rank_0.keys.value);
  if (mine.type != of_rank_0.type) return differ("dtype", name_of(mine.type), name_of(of_rank_0.type));
  if (mine.mode != of_rank_0.mode) return differ("mode", static_cast<int>(mine.mode), static_cast<int>(of_rank_0.mode));
  if (mine.staleness != of_rank_0.staleness) return differ("staleness", mine.staleness, of_rank_0.staleness);
  if (mine.update != of_rank_0.update)
    return differ("optimizer", static_cast<int>(mine.update), static_cast<int>(of_rank_0.update));
  if (mine.rate != of_rank_0.rate) return differ("learningRate", mine.rate, of_rank_0.rate);
  for (std::size_t i = 0; i < mine.shares.size(); ++i)
    if (mine.shares[i] != of_rank_0.shares[i])
      return differ(fmt::format("shares[{}]", i).c_str(), mine.shares[i], of_rank_0.shares[i]);
  return {};
}

}  // namespace shoal::ps
