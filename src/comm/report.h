// SPDX-License-Identifier: Apache-2.0
// What a rank says of itself when something is wrong somewhere: what it called last, what it does now and whom it waits for.
// Calls travel as the text that describes them: two ranks make the same call exactly if the texts are equal. Value types.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::comm {

// A rank asks the root to look into something.
enum class Alarm : std::uint8_t {
  slow,      // nothing has moved for a second or more: is somebody making another call?
  mismatch,  // a message that belongs to another call
  broken,    // a link ended
  timeout,   // nothing has moved until the deadline
};

struct CalledOnce {
  std::uint64_t sequence = 0;  // among the communicator's collectives: 1, 2, ...
  std::string call;            // "all_reduce #88 of 1000 float32, sum"
  friend bool operator==(const CalledOnce&, const CalledOnce&) = default;
};

// A transfer that has not ended, or one of the last that have.
struct KnownTransfer {
  std::int32_t peer = 0;
  bool sending = false;
  std::uint64_t sequence = 0;  // between these two in this direction
  std::uint64_t bytes = 0;
  bool open = false;
  friend bool operator==(const KnownTransfer&, const KnownTransfer&) = default;
};

struct Report {
  static constexpr std::size_t kMaxCalls = 16, kMaxTransfers = 128, kMaxCallText = 160, kMaxDoing = 400;
  static constexpr std::size_t kMaxLengths = 4096;  // ranks; of larger worlds' all_to_all_v no lengths are told

  std::uint32_t inquiry = 0;             // the answer to which
  std::int32_t rank = -1;                // whose; the root service that it came to fills it in
  std::vector<CalledOnce> calls;         // the last collectives that were begun, oldest first
  std::uint64_t finished = 0;            // collectives that have ended
  bool inside = false;                   // a call is running
  std::uint64_t since_ms = 0;            // inside: nothing has moved for so long; else: so long since the last call began
  std::string doing;                     // inside: "all_reduce #88 ...: slice 3 of 16, waiting for rank 2"
  std::int32_t waits_for = -1;           // rank; -1: nobody
  std::vector<KnownTransfer> transfers;  // the open ones first
  // The last all_to_all_v that was begun (0: none), and its elements to and from every rank.
  std::uint64_t lengths_of = 0;
  std::vector<std::uint64_t> sends, receives;
  friend bool operator==(const Report&, const Report&) = default;
};

}  // namespace shoal::comm
