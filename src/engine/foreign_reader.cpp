// SPDX-License-Identifier: Apache-2.0
#include "engine/foreign_reader.h"

#include <sys/random.h>
#include <sys/uio.h>

#include <cerrno>
#include <chrono>
#include <utility>

namespace shoal::engine {

ForeignReader::ForeignReader(std::vector<pid_t> pids) : pids_(std::move(pids)) {}

ForeignReader::Proof ForeignReader::own_proof() {
  if (number_ == nullptr) {
    number_ = std::make_unique<std::uint64_t>();
    if (getrandom(number_.get(), sizeof *number_, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof *number_))
      *number_ = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  return {reinterpret_cast<std::uintptr_t>(number_.get()), *number_};
}

bool ForeignReader::proves(Rank rank, const Proof& proof) const {
  std::uint64_t found = ~proof.number;
  return read(rank, reinterpret_cast<std::byte*>(&found), reinterpret_cast<const std::byte*>(proof.address), sizeof found) ==
             Outcome::done &&
         found == proof.number;
}

ForeignReader::Outcome ForeignReader::read(Rank rank, std::byte* to, const std::byte* from, std::size_t bytes) const {
  while (bytes > 0) {
    const iovec here{to, bytes}, there{const_cast<std::byte*>(from), bytes};
    const ssize_t n = process_vm_readv(pids_[static_cast<std::size_t>(rank.value)], &here, 1, &there, 1, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == ESRCH) return Outcome::gone;
    if (n <= 0) return n < 0 && errno != EFAULT ? Outcome::refused : Outcome::unreadable;
    to += n;
    from += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return Outcome::done;
}

}  // namespace shoal::engine
