// SPDX-License-Identifier: Apache-2.0
// What ranks and the root service, and the ranks of a regrouping, say to each other, as values. encode and decode are pure;
// decode takes bytes of any origin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "comm/report.h"
#include "core/status.h"
#include "link/handshake.h"
#include "link/link.h"

namespace shoal::comm {

// Bounds of what a message may hold, in bytes where not said otherwise.
inline constexpr std::size_t kMaxNoticeText = 2048;
inline constexpr std::size_t kMaxIdentityText = 256;
inline constexpr std::size_t kMaxSettings = 1 << 20;
inline constexpr std::size_t kMaxView = 128;
inline constexpr std::size_t kMaxRecords = 1 << 10;  // that one message passes on
inline constexpr std::int32_t kMaxWorld = 1 << 16;   // ranks
// The longest message that a rank may send (a record with settings), and the longest that the root may (a table).
inline constexpr std::size_t kMaxFromRank = kMaxSettings + 4096;
inline constexpr std::size_t kMaxFromRoot = kMaxFromRank + std::size_t{kMaxWorld} * (4 * kMaxIdentityText + kMaxView + 64);
// The longest message of a regrouping: a claim, a placement, or a notice.
inline constexpr std::size_t kMaxRegrouping = kMaxNoticeText + kMaxIdentityText + 256;

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
  std::string view;                // what this rank sees of its host, for all to know
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
  std::vector<std::string> views;  // by rank
  std::int32_t root_rank = -1;     // the first rank of the process that the root service lives in; -1: it is none of them
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
struct Bye {
  std::int32_t rank = -1;      // from one root service to another: the rank that left
  std::uint64_t finished = 0;  // of a rank: collectives that have ended there
};
// A rank asks the root to find out what is wrong.
struct Alarmed {
  Alarm alarm = Alarm::slow;
  std::int32_t rank = -1;      // whose; the root service that it came to fills it in
  std::uint64_t sequence = 0;  // of the collective that the rank is in; 0: transfers
  Notice own;                  // what the rank says if nobody knows better; it stands if nobody is to blame
};
// The root asks every rank for a report.
struct Inquiry {
  std::uint32_t number = 0;
  std::uint64_t sequence = 0;  // a collective that the report should cover if the rank still remembers it
};

// A rank of a communicator tells the leader of a regrouping (regroup.h) what it wants to become. A rank whose caller made a
// mistake sends a notice instead.
struct Claim {
  Rank rank;                  // in the parent
  std::uint64_t members = 0;  // digest of who takes part
  std::int32_t colour = 0;    // same colour: same child; -1: none
  std::int32_t key = 0;       // order within the child
  std::string root_address;   // where the child's root service will be, if this rank becomes its rank 0
};
// The leader's answer; a notice instead is the end of the regrouping.
struct Placement {
  Rank rank{-1};   // in the child; -1: in none
  World world{0};  // of the child; 0: none
  std::string root_address;
  link::Key nonce;  // makes the child's key
};

using Message = std::variant<Record, Table, Notice, GaveUp, Abort, Bye, Claim, Placement, Alarmed, Inquiry, Report, Records>;

std::vector<std::byte> encode(const Message& message);
// internal_error for bytes that encode does not make.
Result<Message> decode(std::span<const std::byte> bytes);

// "rank 2 (node7, pid 4121)"
std::string describe(const link::PeerIdentity& who);

}  // namespace shoal::comm
