// SPDX-License-Identifier: Apache-2.0
// What the ranks of one test do again and again, as processes: agree on the next unique id through memory that they share, make a
// communicator, compute something whose result is known, and measure themselves. Made before the ranks are forked.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <memory>
#include <string>

#include "support/ranks.h"
#include "support/shared.h"

namespace testing {

// A place where rank 0 leaves ids, one after another.
class IdBoard {
 public:
  IdBoard();
  IdBoard(const IdBoard&) = delete;
  IdBoard& operator=(const IdBoard&) = delete;
  ~IdBoard();

  // The id of round 1, 2, ...: made by rank 0, awaited by the others. "" or what is wrong.
  std::string next(const Ranks& who, int round, ncclUniqueId& id);
  // Ranks leave notes for the parent.
  void note(int rank, std::int64_t value);
  std::int64_t note_of(int rank) const;

 private:
  struct Page;
  std::unique_ptr<Shared<Page>> page_;
};

// x[r][i] = (i mod 97) + r, summed over all ranks: exact. "" or what is wrong.
std::string all_reduce_once(ncclComm_t comm, const Ranks& who, std::size_t count);
// Init, one all-reduce, destroy.
std::string one_round(IdBoard& board, const Ranks& who, int round, std::size_t count = 1000);

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// What this process holds.
struct Holdings {
  int descriptors = 0;
  int threads = 0;
  int mappings = 0;
  long resident_kb = 0;
};
Holdings holdings();
// Waits, boundedly, until descriptors, threads and mappings have stopped to shrink: services of earlier communicators end by
// themselves. What is held then, once malloc has given back the pages that are free.
Holdings settled();
// "", or what has grown; of resident memory by more than `nothing_kb`. Under a sanitizer descriptors and threads alone count.
std::string grown(const Holdings& before, const Holdings& now, long nothing_kb = 1024);

}  // namespace testing
