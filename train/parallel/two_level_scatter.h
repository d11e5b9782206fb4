// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter of float32 that rounds twice, whatever the number of ranks, and sends little between nodes: qgZ of ZeRO++ (Wang
// et al. 2023). A node is g consecutive ranks, m nodes are all; a vector is a block a rank, and rank r's is to become the sum of
// all ranks' r-th blocks.
//
//   inside a node   each rank gets, from all of its node, the blocks of the ranks that have its place in their nodes, quantised,
//                   and adds them up in float32: m blocks, (g-1)/g n elements sent
//   between nodes   each of these sums goes, quantised, to the rank whose it is, which adds up what comes from every node:
//                   (m-1)/m n/g elements sent
//
// A rank's blocks come in the order of their owners; before the first exchange they are sorted by places, so that both exchanges
// move contiguous parts and the second one ends in the owner's own block. 4 ranks, 2 a node:   0 1 2 3  ->  0 2 | 1 3
#pragma once

#include <span>
#include <string>

#include "train/parallel/comm.h"
#include "train/parallel/own_comm.h"

namespace shoal::train {

// Rows of `columns` blocks each, as many elements a block as there are, become columns of blocks. Neither is part of the other.
void transpose_blocks(std::span<const float> from, std::size_t rows, std::size_t columns, std::span<float> to);

class TwoLevelScatter {
 public:
  // Collective over `ranks`, which divide into nodes of `node`.
  TwoLevelScatter(const Communicator& ranks, std::size_t node, const std::string& format);

  // Enqueues, on a stream for all calls: mine becomes the sum of this rank's blocks, or grows by it. whole: a block a rank;
  // spoilt; one of them may be `mine`, which does not grow then. room: as many elements, working memory.
  void enqueue(std::span<float> whole, std::span<float> room, std::span<float> mine, bool grows, const Stream& stream) const;

  void count_in(Ledger& ledger);
  void check_async() const;
  void abort();

 private:
  OwnComm inside_, between_;  // the ranks of this node, by place; those of this place, by node
};

}  // namespace shoal::train
