// SPDX-License-Identifier: Apache-2.0
#include "comm/gathering.h"

#include <algorithm>

namespace shoal::comm {
namespace {

constexpr int kNamedMissing = 16;  // a text lists at most so many ranks

}  // namespace

Status Gathering::add(const Record& record) {
  const link::PeerIdentity& self = record.self;
  if (!first_) {
    first_ = record;
    first_->settings.clear();
  }
  if (record.version != first_->version)
    return {Code::invalid_usage,
            fmt::format("{} runs Shoal {}, {} runs Shoal {}: all ranks need the same version", describe(self), record.version,
                        describe(first_->self), first_->version),
            self.rank};
  if (record.world != first_->world)
    return {Code::invalid_usage,
            fmt::format("{} says that the communicator has {} ranks, {} says {}: give all ranks the same number", describe(self),
                        record.world.value, describe(first_->self), first_->world.value),
            self.rank};
  if (record.roots != first_->roots || record.roots_digest != first_->roots_digest)
    return {
        Code::invalid_usage,
        fmt::format("{} was given {} unique ids, {} was given {}: give all ranks the same ones in the same order", describe(self),
                    record.roots, describe(first_->self),
                    record.roots == first_->roots ? std::string("others, or in another order") : std::to_string(first_->roots)),
        self.rank};
  if (!record.failure.empty())
    return {Code::remote_error, fmt::format("{} failed: {}", describe(self), record.failure), self.rank};
  if (record.world.value < 1 || record.world.value > kMaxWorld)
    return {Code::invalid_usage,
            fmt::format("{}: a communicator of {} ranks; allowed are 1 to {}", describe(self), record.world.value, kMaxWorld),
            self.rank};
  if (self.rank.value < 0 || self.rank.value >= record.world.value)
    return {Code::invalid_usage,
            fmt::format("{} is not a rank of a communicator of {} ranks: allowed are 0 to {} (first to come was {})",
                        describe(self), record.world.value, record.world.value - 1, describe(first_->self)),
            self.rank};
  const auto [place, fresh] = records_.try_emplace(self.rank.value, record);
  if (!fresh)
    return {Code::invalid_usage,
            fmt::format("two processes say that they are rank {}: {} and {}; every rank needs a number of its own",
                        self.rank.value, describe(place->second.self), describe(self)),
            self.rank};
  return {};
}

Table Gathering::table() const {
  Table table;
  for (const auto& [rank, record] : records_) {
    table.peers.push_back(record.self);
    table.views.push_back(record.view);
  }
  if (const auto zero = records_.find(0); zero != records_.end()) table.settings = zero->second.settings;
  return table;
}

Notice Gathering::nobody_else_came(std::uint64_t waited_ms) const {
  Notice notice{Code::timeout, -1, ""};
  std::string names;
  int named = 0;
  const std::int32_t world = first_ ? first_->world.value : 0;
  for (std::int32_t rank = 0; rank < world; ++rank) {
    if (records_.contains(rank)) continue;
    if (notice.culprit < 0) notice.culprit = rank;
    if (named++ == kNamedMissing) break;
    names += (names.empty() ? "" : ", ") + std::to_string(rank);
  }
  const std::int32_t more = missing() - std::min(named, kNamedMissing);
  notice.text = fmt::format("only {} of {} ranks came within {} ms; missing: {}{}", records_.size(), world, waited_ms, names,
                            more > 0 ? fmt::format(" and {} more", more) : "");
  return notice;
}

}  // namespace shoal::comm
