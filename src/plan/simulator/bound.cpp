// SPDX-License-Identifier: Apache-2.0
#include "plan/simulator/bound.h"

#include <algorithm>
#include <cmath>

namespace shoal::plan {
namespace {

// Bytes that pass into (or out of) the busiest of `u` equal parts of `p` ranks, at least. `n` of the vector or of a block.
double through(Collective collective, double u, double p, double n) {
  switch (collective) {
    case Collective::all_reduce: return 2 * (u - 1) / u * n;
    case Collective::reduce:
    case Collective::broadcast: return u > 1 ? n : 0;
    case Collective::all_gather:
    case Collective::all_gather_v:
    case Collective::reduce_scatter:
    case Collective::gather:
    case Collective::scatter: return (u - 1) / u * p * n;
    case Collective::all_to_all:
    case Collective::all_to_all_v: return (u - 1) / u * p * (p / u) * n;
    case Collective::barrier: return 0;
  }
  return 0;
}

// On average as much enters the parts as leaves them, so both ways are needed in full; but a root's alone in gather and scatter.
double narrower(Collective collective, double out_Bps, double in_Bps) {
  if (collective == Collective::gather) return in_Bps;
  if (collective == Collective::scatter) return out_Bps;
  return std::min(out_Bps, in_Bps);
}

struct Parts {
  double count = 0;
  bool equal = true;  // all have as many ranks
};

template <typename Of>
Parts parts(const std::vector<Place>& places, Of of) {
  std::int32_t most = 0;
  for (const Place& place : places) most = std::max(most, of(place));
  std::vector<std::int32_t> ranks(static_cast<std::size_t>(most) + 1);
  for (const Place& place : places) ++ranks[static_cast<std::size_t>(of(place))];
  Parts found;
  std::int32_t size = 0;
  for (std::int32_t each : ranks) {
    if (each == 0) continue;
    ++found.count;
    if (size == 0) size = each;
    found.equal = found.equal && each == size;
  }
  return found;
}

}  // namespace

double lower_bound(Collective collective, World world, double bytes, const Cluster& cluster) {
  const double p = world.value;
  if (world.value == 1) return 0;
  const std::vector<Place> all = places(cluster, world);
  const Parts hosts = parts(all, [](const Place& place) { return place.host; });
  const Parts leaves = parts(all, [](const Place& place) { return place.leaf; });
  const double nic_Bps = narrower(collective, cluster.nics.out_Bps, cluster.nics.in_Bps);
  // Vectors: what enters u parts together is 2(u-1)n whoever is in them. Blocks: only equal parts have equal shares.
  const bool vector = !in_blocks(collective);
  double bound = 0;
  const auto raise = [&](double latency_s, double volume, double bandwidth_Bps) {
    bound = std::max(bound, latency_s + (std::isinf(bandwidth_Bps) ? 0 : volume / bandwidth_Bps));
  };

  // Around a leaf, around a host.
  if (leaves.count > 1 && (leaves.equal || vector) && !cluster.leaves.by_rail)
    raise(cluster.nics.latency_s + cluster.leaves.latency_s, through(collective, leaves.count, p, bytes),
          cluster.leaves.uplink_Bps);
  if (hosts.count > 1 && (hosts.equal || vector))
    raise(cluster.nics.latency_s, through(collective, hosts.count, p, bytes), nic_Bps * cluster.nics.per_host);
  // Around a rank: all its ways together.
  const double locals = std::ceil(p / hosts.count);
  double rank_Bps = hosts.count > 1 ? nic_Bps : 0;
  if (locals > 1 || hosts.count == 1) {
    const double ways = cluster.within.through == Within::pairs ? std::max(1.0, hosts.equal ? locals - 1 : p - 1) : 1;
    rank_Bps += ways * cluster.within.bandwidth_Bps;
  }
  const double least_latency = hosts.count == p ? cluster.nics.latency_s
                                                : (hosts.count == 1 ? cluster.within.latency_s
                                                                    : std::min(cluster.within.latency_s, cluster.nics.latency_s));
  raise(least_latency, through(collective, p, p, bytes), rank_Bps);
  // What is added.
  if (is_reduction(collective)) {
    const double blocks = in_blocks(collective) ? p : 1;
    const double cores = cluster.cores_per_host == 0 ? p : std::min(p, hosts.count * cluster.cores_per_host);
    raise(0, (p - 1) * bytes * blocks / cores, cluster.reduce_Bps);
  }
  return bound;
}

}  // namespace shoal::plan
