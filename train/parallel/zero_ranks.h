// SPDX-License-Identifier: Apache-2.0
// Who of all ranks does what with whom under ZeRO. Consecutive ranks are a shard group, which has the whole model; consecutive
// ranks of that are a node, whose links are the fast ones.
//
//   8 ranks, 2 replicas, nodes of 2      shard groups 0 1 2 3 | 4 5 6 7     nodes 0 1 | 2 3 | 4 5 | 6 7     replicas 0 4 | 1 5 |
//   ...
#pragma once

#include <optional>
#include <string>

#include "train/parallel/comm.h"
#include "train/parallel/own_comm.h"
#include "train/parallel/two_level_scatter.h"

namespace shoal::train {

struct ZeroOptions {
  std::size_t stage = 0;
  std::size_t replicas = 1;  // shard groups; divides the world
  std::size_t node = 0;      // ranks of a node; divides those of a shard group. 0: nobody said
  bool secondary =
      false;  // stage 3: a node keeps the weights of a step's first gathering, and gathers the later ones from itself (hpZ)
  std::size_t alignment = 1;    // a group is padded to a multiple of the world and of this
  std::string weight_format;    // what gathered weights look like on the wire (shoal/compress.h); empty: as they are
  std::string gradient_format;  // ... reduced gradients; with nodes: quantised in two levels (qgZ), but for stage 0
};

// The communicators of a store; one store after another may use them. They are of two streams, and what is enqueued for the one
// waits for nothing of the other. Made and closed by all ranks together.
struct ZeroRanks {
  ZeroRanks(const ZeroOptions& options, const Communicator& comm);

  // For the gathering stream.
  OwnComm gathers;              // the shard group
  std::optional<OwnComm> node;  // of this rank, if there are secondary shards
  // For the reducing stream.
  OwnComm reduces;                        // the shard group
  std::optional<TwoLevelScatter> levels;  // in its place
  std::optional<OwnComm> replicas;        // those with the same shard, in all shard groups, if there are several

  std::size_t world;  // all ranks

  Seat seat() const { return (*gathers).seat(); }  // in the shard group
  void count_in(Ledger& ledger, const ZeroOptions& options);
  // Throw if work on a stream has failed.
  void check_gathering() const;
  void check_reducing() const;
  // Of all of them, on the way out of a failure: so that what is on the streams ends. No store can be made on them any more.
  void abort();
};

}  // namespace shoal::train
