// SPDX-License-Identifier: Apache-2.0
#include "transports/verbs/ports.h"

#include <algorithm>
#include <iterator>

#include "transports/verbs/layout.h"

namespace shoal::transports::verbs {
namespace {

bool is_ipv4(const Gid& gid) {
  const auto& b = gid.bytes;
  return std::all_of(b.begin(), b.begin() + 10, [](std::byte each) { return each == std::byte{0}; }) &&
         b[10] == std::byte{0xff} && b[11] == std::byte{0xff};
}

bool is_link_local(const Gid& gid) {
  return gid.bytes[0] == std::byte{0xfe} && (gid.bytes[1] & std::byte{0xc0}) == std::byte{0x80};
}

// Less is better.
int rank_of(const GidEntry& entry) {
  const int address = is_ipv4(entry.gid) ? 0 : is_link_local(entry.gid) ? 2 : 1;
  return entry.kind == GidKind::roce_v2 ? address : 3 + address;
}

class Survey {
 public:
  Survey(Verbs& verbs, const IbOptions& options) : verbs_(verbs), options_(options) {}

  std::vector<UsablePort> take(std::string& why) {
    std::vector<std::string> unsuited;
    const Result<std::vector<std::string>> names = verbs_.devices(unsuited);
    if (!names.is_ok()) note("{}", names.status().text());
    for (const std::string& name : unsuited) note("{} needs a connection manager (iWARP)", name);
    if (names.is_ok())
      for (const std::string& name : *names) look_at(name);
    std::stable_sort(found_.begin(), found_.end(),
                     [](const UsablePort& a, const UsablePort& b) { return a.facts.bandwidth_Bps > b.facts.bandwidth_Bps; });
    std::erase_if(found_, [this](const UsablePort& each) {
      return each.facts.ethernet != found_.front().facts.ethernet ||
             each.facts.bandwidth_Bps < found_.front().facts.bandwidth_Bps;
    });
    if (found_.size() > kMaxRails) found_.resize(kMaxRails);
    why = why_.empty() ? "there is no device" : why_;
    return std::move(found_);
  }

 private:
  template <typename... Args>
  void note(fmt::format_string<Args...> text, Args&&... args) {
    why_ += (why_.empty() ? "" : "; ") + fmt::format(text, std::forward<Args>(args)...);
  }

  void look_at(const std::string& name) {
    const Result<std::unique_ptr<Context>> context = verbs_.open(name);
    if (!context.is_ok()) return note("{}: {}", name, context.status().text());
    for (int number = 1; number <= (*context)->ports(); ++number) look_at(name, **context, number);
  }

  void look_at(const std::string& name, Context& context, int number) {
    if (!options_.devices.admits(name, number))
      return note("{}:{} is not in NCCL_IB_HCA='{}'", name, number, options_.device_text);
    const Result<PortFacts> facts = context.port(number);
    if (!facts.is_ok()) return note("{}:{}: {}", name, number, facts.status().text());
    if (!facts->active) return note("{}:{} has no wire", name, number);
    const Result<std::vector<GidEntry>> table = context.gids(number);
    if (!table.is_ok()) return note("{}:{}: {}", name, number, table.status().text());
    const std::optional<GidEntry> gid = choose_gid(*table, facts->ethernet, options_.gid_index);
    if (!gid && options_.gid_index >= 0)
      return note("{}:{} has nothing at NCCL_IB_GID_INDEX={}", name, number, options_.gid_index);
    if (!gid) return note("{}:{} has no address", name, number);
    found_.push_back({name, number, *facts, *gid});
  }

  Verbs& verbs_;
  const IbOptions& options_;
  std::vector<UsablePort> found_;
  std::string why_;
};

}  // namespace

std::optional<GidEntry> choose_gid(std::span<const GidEntry> table, bool ethernet, std::int64_t wanted) {
  std::vector<GidEntry> candidates;
  std::copy_if(table.begin(), table.end(), std::back_inserter(candidates),
               [&](const GidEntry& entry) { return wanted < 0 || entry.index == wanted; });
  const auto less = [&](const GidEntry& a, const GidEntry& b) {
    const int rank_a = ethernet ? rank_of(a) : 0, rank_b = ethernet ? rank_of(b) : 0;
    return rank_a != rank_b ? rank_a < rank_b : a.index < b.index;
  };
  const auto best = std::min_element(candidates.begin(), candidates.end(), less);
  return best == candidates.end() ? std::nullopt : std::optional(*best);
}

std::vector<UsablePort> usable_ports(Verbs& verbs, const IbOptions& options, std::string& why) {
  return Survey(verbs, options).take(why);
}

}  // namespace shoal::transports::verbs
