// SPDX-License-Identifier: Apache-2.0
#include "ps/group.h"

#include <cmath>
#include <cstring>

namespace testing {

std::string take_part(const Group& group, const Ranks& ranks) {
  shoalPs_t ps = nullptr;
  if (std::string wrong = must(shoalPsInit(&ps, ranks.id, ranks.rank, &group.config), "shoalPsInit"); !wrong.empty())
    return wrong;
  std::string wrong;
  if (ranks.rank < group.config.workers) {
    wrong = group.work(ps, ranks.rank);
  } else {
    wrong = must(shoalPsServe(ps), "shoalPsServe");
    if (wrong.empty()) wrong = group.served(ps, ranks.rank - group.config.workers);
  }
  const std::string left = wrong.empty() ? must(shoalPsDestroy(ps), "shoalPsDestroy") : must(shoalPsAbort(ps), "shoalPsAbort");
  return wrong.empty() ? left : wrong;
}

std::string run_group(const std::string& transport, const Group& group, const Variables& more) {
  Variables variables = transport_variables(transport);
  variables.insert(variables.end(), more.begin(), more.end());
  const auto body = [&](const Ranks& ranks) { return take_part(group, ranks); };
  return transport == "threads" ? as_threads(group.world(), variables, 60, body)
                                : as_processes(group.world(), variables, 60, body);
}

std::string push(shoalPs_t ps, std::size_t first, const std::vector<float>& values) {
  std::uint64_t timestamp = 0;
  if (std::string wrong = must(shoalPsPush(ps, first, values.size(), values.data(), &timestamp), "shoalPsPush"); !wrong.empty())
    return wrong;
  return must(shoalPsWait(ps, timestamp), "wait for a push");
}

std::string pull(shoalPs_t ps, std::size_t first, std::vector<float>& values) {
  std::uint64_t timestamp = 0;
  if (std::string wrong = must(shoalPsPull(ps, first, values.size(), values.data(), &timestamp), "shoalPsPull"); !wrong.empty())
    return wrong;
  return must(shoalPsWait(ps, timestamp), "wait for a pull");
}

shoalPsConfig config_of(int workers, int servers, std::size_t keys) {
  shoalPsConfig config{};
  config.workers = workers;
  config.servers = servers;
  config.keys = keys;
  config.dtype = ncclFloat32;
  return config;
}

float rough(int worker, int iteration, std::size_t key) {
  std::uint64_t x = (static_cast<std::uint64_t>(worker) + 1) * 0x9e3779b97f4a7c15ULL +
                    (static_cast<std::uint64_t>(iteration) + 1) * 0xbf58476d1ce4e5b9ULL + key * 0x94d049bb133111ebULL;
  x ^= x >> 31;
  x *= 0xd6e8feb86659fd93ULL;
  x ^= x >> 29;
  const float mantissa = static_cast<float>(x & 0xffffff) / 16777216.0F - 0.5F;
  return std::ldexp(mantissa, static_cast<int>(x >> 60) - 8);
}

std::string same_bits(const std::vector<float>& seen, const std::vector<float>& expected, const std::string& what) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (std::memcmp(&seen[i], &expected[i], sizeof(float)) != 0)
      return what + ": key " + std::to_string(i) + " is " + std::to_string(seen[i]) + ", must be " + std::to_string(expected[i]);
  return "";
}

}  // namespace testing
