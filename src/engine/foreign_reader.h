// SPDX-License-Identifier: Apache-2.0
// Reads other processes' memory in one copy and without their help, where the system allows it (process_vm_readv: the same user,
// and a kernel that lets processes of a user trace each other). Only this process's memory is written.
//
// A process id means one process here and perhaps another where it was told: what a rank proves by is read before anything else.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/types.h"

namespace shoal::engine {

class ForeignReader {
 public:
  // What a rank shows of itself, so that others know that they read its memory: a number nobody guesses, and where it lies.
  struct Proof {
    std::uint64_t address = 0;
    std::uint64_t number = 0;
  };
  enum class Outcome {
    done,
    gone,        // there is no such process any more
    unreadable,  // not memory of that process
    refused,     // the system forbids it
  };

  // `pids`: of all ranks.
  explicit ForeignReader(std::vector<pid_t> pids);

  // std::bad_alloc.
  Proof own_proof();
  // Whether `rank` is where its proof says, and can be read.
  bool proves(Rank rank, const Proof& proof) const;
  // Only of ranks that have proved themselves.
  Outcome read(Rank rank, std::byte* to, const std::byte* from, std::size_t bytes) const;

 private:
  std::vector<pid_t> pids_;
  std::unique_ptr<std::uint64_t> number_;
};

}  // namespace shoal::engine
