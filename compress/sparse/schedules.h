// SPDX-License-Identifier: Apache-2.0
// The ways in which sparse contributions become their sum on all ranks. Each is a coroutine of collectives, begun when all ranks
// know all announcements; all of them end with the same bits. p ranks with k entries each of v + i bytes:
//
//   gather     all-gather of the contributions, added in the order of ranks: (p - 1) k (v + i) bytes received
//   doubling   recursive doubling, where two ranks exchange and merge their sums: log2 p rounds, between log2 p and p - 1 times
//              k (v + i) bytes, as indices agree or not; sums become vectors once lists are longer. A world that is no power of
//              two is folded to one: 2j hands its contribution to 2j + 1, and gets the result
//   split      rank q adds up the q-th share of the indices, in the order of ranks, and all gather the sums: four collectives,
//              (p - 1) / p times k (v + i) bytes and as much of the union
//
// Renggli et al., SparCML, SC 2019: SSAR_Recursive_double and SSAR_Split_allgather.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compress/calls.h"
#include "compress/compressor.h"
#include "compress/sparse/entries.h"
#include "compress/sparse/indices.h"
#include "compress/sparse/sum.h"

namespace shoal::compress::sparse {

// One rank's part of the sum.
struct Contribution {
  EntriesView entries;  // values are of the type
  ValueType values = ValueType::fp32;
  bool finite = true;  // false: entries are not looked at
};

// What every rank tells all others first.
struct Announcement {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;  // of its message, whole
  std::uint64_t finite = 1;
};

// The schedules write the sum's n elements. Arguments stay until it is over.
class Gather {
 public:
  Stages run(float* output, std::uint64_t n, const Place& place, const Contribution& own,
             std::span<const Announcement> announced);
  Frame& frame() { return frame_; }

 private:
  BlockLengths lengths_;
  std::vector<std::byte> message_, arrived_;
  Frame frame_;
};

// A rank's part in one round of doubling. All ranks have rounds(world) of them.
struct Exchange {
  std::size_t peer = 0;
  bool sends = false;
  bool receives = false;
  bool replaces = false;  // what is received is the result
};
int rounds(World world);
Exchange exchange_of(Rank rank, World world, int round);

class Doubling {
 public:
  Stages run(float* output, std::uint64_t n, const Place& place, const Contribution& own);
  Frame& frame() { return frame_; }

 private:
  BlockLengths lengths_;
  std::uint64_t sent_ = 0, received_ = 0;  // [bytes] of this round
  std::vector<std::byte> message_, arrived_;
  Sum sum_;
  Frame frame_;
};

class Split {
 public:
  Stages run(float* output, std::uint64_t n, const Place& place, const Contribution& own);
  std::uint64_t encoded_bytes() const { return encoded_bytes_; }  // of the own shares
  Frame& frame() { return frame_; }

 private:
  void encode_shares(std::uint64_t n, World world, const Contribution& own);
  Status add_shares(std::uint64_t own_share);

  std::uint64_t encoded_bytes_ = 0;
  BlockLengths lengths_;
  std::vector<std::uint64_t> sent_, received_;  // [rank] bytes
  std::vector<Layout> layouts_;                 // [rank] of the shares
  std::vector<std::byte> message_, arrived_;
  Sum sum_;
  Frame frame_;
};

}  // namespace shoal::compress::sparse
