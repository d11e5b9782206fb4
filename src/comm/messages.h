// SPDX-License-Identifier: Apache-2.0
// What ranks and the root service say to each other, as values. encode and decode are pure; decode takes bytes of any origin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/status.h"
#include "link/link.h"

namespace shoal::comm {

// Bounds of what a message may hold, in bytes where not said otherwise.
inline constexpr std::size_t kMaxNoticeText = 2048;
inline constexpr std::size_t kMaxIdentityText = 256;
inline constexpr std::size_t kMaxSettings = 1 << 20;
inline constexpr std::size_t kMaxRecords = 1 << 10;  // that one message passes on
inline constexpr std::int32_t kMaxWorld = 1 << 16;   // ranks
// The longest message that a rank may send (a record with settings), and the longest that the root may (a table).
inline constexpr std::size_t kMaxFromRank = kMaxSettings + 4096;
inline constexpr std::size_t kMaxFromRoot = kMaxFromRank + std::size_t{kMaxWorld} * (4 * kMaxIdentityText + 64);

// A rank presents itself. Rank and world are what the caller said, right or wrong.
struct Record {
  std::string version;  // of the library
  World world;
  link::PeerIdentity self;
  std::string settings;            // of rank 0; empty from others
  bool lives_with_root = false;    // this rank and the root service are of one process
  std::int32_t roots = 1;          // how many unique ids the communicator is made from
  std::uint64_t roots_digest = 0;  // of several
  std::string failure;             // why this rank cannot join, if it comes only to say so
  std::string upstream;            // the first id, sealed (sealed_id.h), where this root service is another one's
};
// Of several root services, one that is not the first passes on those that came to it.
struct Records {
  std::string address;  // of that service, for texts
  std::vector<Record> records;
};
// The root has everyone.
struct Table {
  std::vector<link::PeerIdentity> peers;  // peers[r].rank == r
  std::string settings;
  std::int32_t root_rank = -1;  // the first rank of the process that the root service lives in; -1: it is none of them
};
// Something failed: a rank tells the root, the root tells the others. Text longer than kMaxNoticeText is cut.
struct Notice {
  Code code = Code::internal_error;  // not ok
  std::int32_t culprit = -1;         // rank; -1: none known
  std::string text;
};
// A rank's patience is over while the root still gathers; the root answers with a notice to all.
struct GaveUp {
  std::uint64_t waited_ms = 0;
};
// A rank aborts its communicator.
struct Abort {};
// The sender leaves in order: the end of its connection means nothing.
struct Bye {};

using Message = std::variant<Record, Table, Notice, GaveUp, Abort, Bye, Records>;

std::vector<std::byte> encode(const Message& message);
// internal_error for bytes that encode does not make.
Result<Message> decode(std::span<const std::byte> bytes);

// "rank 2 (node7, pid 4121)"
std::string describe(const link::PeerIdentity& who);

}  // namespace shoal::comm
