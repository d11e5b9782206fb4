// SPDX-License-Identifier: Apache-2.0
#include "plan/simulator/cluster.h"

#include <algorithm>
#include <cmath>

#include "core/expects.h"

namespace shoal::plan {
namespace {

constexpr std::int32_t kMaxRanks = 1 << 20;
constexpr std::int32_t kMaxNics = 64;

Status time(std::string_view name, double value) {
  if (std::isfinite(value) && value >= 0 && value <= 1e6) return {};
  return fail(Code::invalid_argument, "{} is {}: a number of seconds from 0 to 1e6", name, value);
}

Status speed(std::string_view name, double value) {
  if (value > 0 && (value >= 1e-3 || std::isinf(value))) return {};
  return fail(Code::invalid_argument, "{} is {}: a number of bytes a second, at least 1e-3", name, value);
}

Status whole(std::string_view name, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return {};
  return fail(Code::invalid_argument, "{} is {}: a whole number from {} to {}", name, value, least, most);
}

Status validate_ranks(const Cluster& c) {
  if (Status s = whole("hosts", c.hosts, 1, kMaxRanks); !s.is_ok()) return s;
  if (c.host_of_rank.empty()) {
    if (Status s = whole("ranks_per_host", c.ranks_per_host, 1, kMaxRanks); !s.is_ok()) return s;
    if (static_cast<std::int64_t>(c.hosts) * c.ranks_per_host > kMaxRanks)
      return fail(Code::invalid_argument, "hosts is {} and ranks_per_host is {}: at most {} ranks together", c.hosts,
                  c.ranks_per_host, kMaxRanks);
    return {};
  }
  if (c.host_of_rank.size() > static_cast<std::size_t>(kMaxRanks))
    return fail(Code::invalid_argument, "host_of_rank has {} entries: at most {} ranks", c.host_of_rank.size(), kMaxRanks);
  for (std::size_t r = 0; r < c.host_of_rank.size(); ++r)
    if (Status s = whole(fmt::format("host_of_rank[{}]", r), c.host_of_rank[r], 0, c.hosts - 1); !s.is_ok()) return s;
  return {};
}

// Most ranks that one host has.
std::int32_t most_locals(const Cluster& c) {
  if (c.host_of_rank.empty()) return c.ranks_per_host;
  std::vector<std::int32_t> found(static_cast<std::size_t>(c.hosts));
  for (std::int32_t host : c.host_of_rank) ++found[static_cast<std::size_t>(host)];
  return *std::max_element(found.begin(), found.end());
}

Status validate_nics(const Cluster& c) {
  if (Status s = whole("nics.per_host", c.nics.per_host, 1, kMaxNics); !s.is_ok()) return s;
  const std::int32_t locals = most_locals(c);
  if (!c.nics.of_local.empty() && c.nics.of_local.size() != static_cast<std::size_t>(locals))
    return fail(Code::invalid_argument, "nics.of_local has {} entries: one for each of the {} ranks of a host",
                c.nics.of_local.size(), locals);
  for (std::size_t l = 0; l < c.nics.of_local.size(); ++l)
    if (Status s = whole(fmt::format("nics.of_local[{}]", l), c.nics.of_local[l], 0, c.nics.per_host - 1); !s.is_ok()) return s;
  return {};
}

}  // namespace

std::string_view name_of(Within within) {
  switch (within) {
    case Within::pairs: return "pairs";
    case Within::switched: return "switch";
    case Within::bus: return "bus";
  }
  expects(false, "a kind of the list");
  return "";
}

std::int32_t Cluster::ranks() const {
  return host_of_rank.empty() ? hosts * ranks_per_host : static_cast<std::int32_t>(host_of_rank.size());
}

Status validate(const Cluster& c) {
  if (Status s = validate_ranks(c); !s.is_ok()) return s;
  if (Status s = validate_nics(c); !s.is_ok()) return s;
  if (Status s = whole("cores_per_host", c.cores_per_host, 0, kMaxRanks); !s.is_ok()) return s;
  if (Status s = whole("credits", c.credits, 1, 1 << 20); !s.is_ok()) return s;
  if (Status s = whole("leaves.hosts", c.leaves.hosts, 0, kMaxRanks); !s.is_ok()) return s;
  for (const auto& [name, value] : {std::pair{"overhead_s", c.overhead_s},
                                    {"within.latency_s", c.within.latency_s},
                                    {"within.credit_s", c.within.credit_s},
                                    {"nics.latency_s", c.nics.latency_s},
                                    {"nics.credit_s", c.nics.credit_s},
                                    {"leaves.latency_s", c.leaves.latency_s}})
    if (Status s = time(name, value); !s.is_ok()) return s;
  for (const auto& [name, value] : {std::pair{"reduce_Bps", c.reduce_Bps},
                                    {"copy_Bps", c.copy_Bps},
                                    {"within.bandwidth_Bps", c.within.bandwidth_Bps},
                                    {"nics.out_Bps", c.nics.out_Bps},
                                    {"nics.in_Bps", c.nics.in_Bps},
                                    {"leaves.uplink_Bps", c.leaves.uplink_Bps}})
    if (Status s = speed(name, value); !s.is_ok()) return s;
  return {};
}

std::vector<Place> places(const Cluster& c, World world) {
  expects(world.value <= c.ranks(), "a cluster with as many ranks as the world");
  const std::int32_t locals = most_locals(c), per_host = c.nics.per_host;
  const std::int32_t leaf_hosts = c.leaves.hosts == 0 ? c.hosts : c.leaves.hosts;
  std::vector<std::int32_t> seen(c.host_of_rank.empty() ? 0 : static_cast<std::size_t>(c.hosts));
  std::vector<Place> all(static_cast<std::size_t>(world.value));
  for (std::int32_t r = 0; r < world.value; ++r) {
    Place& place = all[static_cast<std::size_t>(r)];
    if (c.host_of_rank.empty()) {
      place.host = r / c.ranks_per_host;
      place.local = r % c.ranks_per_host;
    } else {
      place.host = c.host_of_rank[static_cast<std::size_t>(r)];
      place.local = seen[static_cast<std::size_t>(place.host)]++;
    }
    const std::int32_t nic = c.nics.of_local.empty()
                                 ? static_cast<std::int32_t>(static_cast<std::int64_t>(place.local) * per_host / locals)
                                 : c.nics.of_local[static_cast<std::size_t>(place.local)];
    place.nic = place.host * per_host + nic;
    place.leaf = c.leaves.by_rail ? place.host / leaf_hosts * per_host + nic : place.host / leaf_hosts;
    place.core = c.cores_per_host == 0 ? r : place.host * c.cores_per_host + place.local % c.cores_per_host;
  }
  return all;
}

}  // namespace shoal::plan
