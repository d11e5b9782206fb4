// SPDX-License-Identifier: Apache-2.0
#include "comm/knocking.h"

#include <algorithm>
#include <cerrno>

#include "link/interfaces.h"

namespace shoal::comm {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kAtOnce = 64;    // descriptors that a round may take
constexpr auto kConnectPatience = 5s;  // with a host that keeps silent

bool is_refusal(const Status& why) { return why.text().ends_with(errno_text(ECONNREFUSED)); }

}  // namespace

std::optional<Rank> Knocking::progress(const std::vector<Rank>& awaited) {
  if (knocks_.empty() && next_round_.passed()) begin_round(awaited);
  for (auto knock = knocks_.begin(); knock != knocks_.end();) {
    const Answer answer = step(*knock);
    if (answer == Answer::none) {
      ++knock;
      continue;
    }
    const Rank rank = knock->rank;
    knock = knocks_.erase(knock);
    if (answer == Answer::ended && std::ranges::binary_search(awaited, rank)) return rank;
  }
  return std::nullopt;
}

void Knocking::begin_round(const std::vector<Rank>& awaited) {
  for (std::size_t i = 0; i < std::min(awaited.size(), kAtOnce); ++i) {
    Knock& knock = knocks_.emplace_back(Knock{.rank = awaited[turn_++ % awaited.size()]});
    for (const std::string& each : link::addresses_in(peers_[static_cast<std::size_t>(knock.rank.value)].address))
      for (std::string& scoped : link::with_own_scopes(each, link::scope_of(each))) knock.addresses.push_back(std::move(scoped));
  }
  // The pause counts once a round has come around.
  if (awaited.size() <= kAtOnce || turn_ % awaited.size() < kAtOnce) pause_ = std::min(2 * pause_, kLongestPause);
  next_round_ = Deadline(pause_);
}

Knocking::Answer Knocking::step(Knock& knock) {
  while (true) {
    if (!knock.stream.is_open()) {
      // Without any address there is nothing to be learned.
      if (knock.next == knock.addresses.size()) return knock.addresses.empty() ? Answer::alive : Answer::ended;
      Result<link::Descriptor> stream = link::start_connect_tcp(knock.addresses[knock.next++], kConnectPatience);
      if (stream.is_ok())
        knock.stream = stream.take();
      else if (!is_refusal(stream.status()))
        return Answer::alive;
      continue;
    }
    const Result<bool> connected = link::connect_finished(knock.stream, knock.addresses[knock.next - 1]);
    if (connected.is_ok()) return *connected ? Answer::alive : Answer::none;
    knock.stream.reset();
    if (!is_refusal(connected.status())) return Answer::alive;
  }
}

}  // namespace shoal::comm
