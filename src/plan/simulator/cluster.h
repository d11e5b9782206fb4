// SPDX-License-Identifier: Apache-2.0
// A cluster as numbers: where ranks live, what joins them, how fast it is. Value type; every number has its unit in its name. An
// infinite bandwidth is a thing that is never waited for.
//
//   rank - host                  ranks of a host exchange messages over `within`
//          host - NIC - leaf     other messages leave through a NIC, which ranks of the host share, and a leaf switch
//                       leaf - spine - leaf   or two, whose up-links all hosts of the leaf share
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/types.h"

namespace shoal::plan {

inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// What joins the ranks of one host.
enum class Within : std::uint8_t {
  pairs,     // a wire for each ordered pair of ranks
  switched,  // a port in and a port out for each rank, through one switch
  bus,       // one memory, whose bandwidth all messages of the host share
};
std::string_view name_of(Within within);

struct Cluster {
  std::string name;

  std::int32_t hosts = 1;
  std::int32_t ranks_per_host = 1;         // rank r is on host r / ranks_per_host, ...
  std::vector<std::int32_t> host_of_rank;  // ... unless this names each rank's

  double overhead_s = 0;            // of the sender's processor, a message
  double reduce_Bps = kUnlimited;   // operand bytes that a rank's processor adds to others
  double copy_Bps = kUnlimited;     // bytes that it copies
  std::int32_t cores_per_host = 0;  // processors that the ranks of a host share; 0: each has its own
  std::int32_t credits = 4;         // messages that a link holds

  struct {
    Within through = Within::pairs;
    double latency_s = 0;
    double bandwidth_Bps = kUnlimited;
    double credit_s = 0;  // until the sender knows that the receiver has taken a message
  } within;

  struct {
    std::int32_t per_host = 1;
    std::vector<std::int32_t> of_local;  // NIC of the host's first, second, ... rank; empty: evenly, neighbours together
    double latency_s = 0;
    double out_Bps = kUnlimited;
    double in_Bps = kUnlimited;
    double credit_s = 0;
  } nics;

  struct {
    std::int32_t hosts = 0;          // in reach of one leaf switch; 0: all
    bool by_rail = false;            // a leaf for each NIC of a host ("rail"), not for the host
    double latency_s = 0;            // more from leaf to leaf
    double uplink_Bps = kUnlimited;  // of one leaf, each direction
  } leaves;

  std::int32_t ranks() const;
};

// Ok, or what is wrong: "nics.out_Bps is -3: a number of bytes a second above 0". The names are those of the file format.
Status validate(const Cluster& cluster);

// Where a rank is, everything numbered over the whole cluster.
struct Place {
  std::int32_t host = 0;
  std::int32_t local = 0;  // position among the ranks of the host
  std::int32_t nic = 0;
  std::int32_t leaf = 0;
  std::int32_t core = 0;
};
// Of the first `world` ranks; world <= ranks().
std::vector<Place> places(const Cluster& cluster, World world);

// ---- clusters that are known by name; each is a function of the world ----

// One rank a host, every message alpha + bytes * beta, reducing gamma a byte: the machine of the formulas.
Cluster uniform(World world, double alpha_s, double beta_sB, double gamma_sB = 0);

// Ranks of one host that exchange messages through memory, a processor copying them in and out.
struct LocalHost {
  std::int32_t cores = 0;  // 0: one a rank
  double latency_s = 300e-9;
  double overhead_s = 100e-9;
  double memory_Bps = 20e9;  // of all ranks together
  double copy_Bps = 10e9;    // of one processor
  double reduce_Bps = 8e9;
};
Cluster local(World world, const LocalHost& host = {});

struct Preset {
  std::string_view name;
  std::string_view summary;
  Cluster (*make)(World world);
};
const std::vector<Preset>& presets();

// Fails with the list of names if there is no such preset.
Result<Cluster> preset(std::string_view name, World world);

}  // namespace shoal::plan
