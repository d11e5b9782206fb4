// SPDX-License-Identifier: Apache-2.0
// Whether ranks that are awaited still live, when nobody may be left who watches them: a rank's listener is open as long as its
// communicator, so who refuses at every address has ended. Knocks ever more rarely: a rank that is only late finds each knock in
// its listener's queue. One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/deadline.h"
#include "link/link.h"
#include "link/socket.h"

namespace shoal::comm {

class Knocking {
 public:
  // `peers`: by rank; they outlive this.
  explicit Knocking(std::span<const link::PeerIdentity> peers) : peers_(peers) {}

  // One of `awaited` (ascending) that has ended, if one is found. Silence proves nothing. Never blocks.
  std::optional<Rank> progress(const std::vector<Rank>& awaited);

 private:
  struct Knock {
    Rank rank;
    std::vector<std::string> addresses;
    std::size_t next = 0;     // of addresses: the one to try when the stream is closed
    link::Descriptor stream;  // a connect under way
  };
  enum class Answer : std::uint8_t { none, alive, ended };

  void begin_round(const std::vector<Rank>& awaited);
  static Answer step(Knock& knock);

  static constexpr std::chrono::milliseconds kFirstPause{500}, kLongestPause{60'000};
  std::span<const link::PeerIdentity> peers_;
  std::vector<Knock> knocks_;  // of this round
  std::size_t turn_ = 0;       // how many of the awaited have been tried, over all rounds
  std::chrono::milliseconds pause_{kFirstPause};
  Deadline next_round_{kFirstPause};
};

}  // namespace shoal::comm
