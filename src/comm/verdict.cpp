// SPDX-License-Identifier: Apache-2.0
#include "comm/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace shoal::comm {
namespace {

constexpr std::size_t kDetailed = 6;  // ranks or pairs that a text spells out

std::string counted(std::size_t n, const char* what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

std::string seconds(std::uint64_t ms) { return fmt::format("{:.1f} s", static_cast<double>(ms) / 1000); }

class Judgement {
 public:
  Judgement(const std::vector<Witness>& witnesses, Alarm alarm, std::int32_t accuser, const Notice& own)
      : all_(witnesses), alarm_(alarm), accuser_(accuser), own_(own) {}

  std::optional<Notice> find() const {
    if (auto found = different_calls()) return found;
    if (auto found = lengths_that_do_not_meet()) return found;
    if (auto found = transfers_that_do_not_meet()) return found;
    if (auto found = left_too_early()) return found;
    if (alarm_ == Alarm::slow) return std::nullopt;
    if (alarm_ == Alarm::mismatch) return own_;
    if (auto found = silent()) return found;
    if (alarm_ == Alarm::broken) return own_;
    if (auto found = missing()) return found;
    if (auto found = sink()) return found;
    return own_;
  }

 private:
  using Ranks = std::vector<std::int32_t>;

  const Witness& at(std::int32_t rank) const { return all_[static_cast<std::size_t>(rank)]; }
  std::int32_t world() const { return static_cast<std::int32_t>(all_.size()); }

  template <typename F>
  Ranks ranks_where(F&& f) const {
    Ranks found;
    for (std::int32_t r = 0; r < world(); ++r)
      if (f(at(r))) found.push_back(r);
    return found;
  }

  // "rank 2 (node7, pid 4121)"; more than a few only by number.
  std::string names(const Ranks& ranks) const {
    if (ranks.size() > kDetailed) return "ranks " + ranks_text(ranks);
    std::string text;
    for (std::size_t i = 0; i < ranks.size(); ++i)
      text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + describe(at(ranks[i]).who);
    return text;
  }

  static const CalledOnce* call_at(const Witness& witness, std::uint64_t sequence) {
    if (!witness.report) return nullptr;
    for (const CalledOnce& each : witness.report->calls)
      if (each.sequence == sequence) return &each;
    return nullptr;
  }
  static std::uint64_t last_call(const Witness& witness) {
    return witness.report && !witness.report->calls.empty() ? witness.report->calls.back().sequence : 0;
  }

  // The first collective that is not the same on all ranks that have made it. Most ranks are taken to be right; of two equal
  // camps, the one with the lowest rank.
  std::optional<Notice> different_calls() const {
    std::uint64_t first = 0, last = 0;
    for (const Witness& each : all_) {
      if (!each.report || each.report->calls.empty()) continue;
      const std::uint64_t from = each.report->calls.front().sequence;
      first = first == 0 ? from : std::min(first, from);
      last = std::max(last, last_call(each));
    }
    for (std::uint64_t sequence = std::max<std::uint64_t>(first, 1); sequence <= last; ++sequence) {
      std::map<std::string, Ranks> camps;
      for (std::int32_t r = 0; r < world(); ++r)
        if (const CalledOnce* made = call_at(at(r), sequence)) camps[made->call].push_back(r);
      if (camps.size() > 1) return contradiction(sequence, camps);
    }
    return std::nullopt;
  }

  Notice contradiction(std::uint64_t sequence, const std::map<std::string, Ranks>& camps) const {
    std::vector<std::pair<std::string, Ranks>> sorted(camps.begin(), camps.end());
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return a.second.size() != b.second.size() ? a.second.size() > b.second.size() : a.second < b.second;
    });
    std::string text = "the ranks make different calls: ";
    for (std::size_t i = 1; i < sorted.size() && i <= kDetailed; ++i)
      text += fmt::format("{} made {}; ", names(sorted[i].second), sorted[i].first);
    const Ranks& most = sorted.front().second;
    text += fmt::format("rank{} {} made {}", most.size() == 1 ? "" : "s", ranks_text(most), sorted.front().first);
    const Ranks behind = ranks_where([&](const Witness& w) { return w.report && !w.left && last_call(w) < sequence; });
    if (!behind.empty()) text += fmt::format("; rank{} {} not there yet", behind.size() == 1 ? "" : "s", ranks_text(behind));
    text += ". All ranks must make the same calls in the same order";
    return {Code::invalid_usage, sorted[1].second.front(), text};
  }

  std::optional<Notice> lengths_that_do_not_meet() const {
    std::string pairs;
    std::size_t wrong = 0;
    std::int32_t first = -1;
    for (std::int32_t a = 0; a < world(); ++a)
      for (std::int32_t b = 0; at(a).report && at(a).report->lengths_of != 0 && b < world(); ++b) {
        const std::optional<Report>&from = at(a).report, &to = at(b).report;
        if (!from || !to || from->lengths_of == 0 || from->lengths_of != to->lengths_of) continue;
        if (from->sends.size() != all_.size() || to->receives.size() != all_.size()) continue;
        const std::uint64_t sent = from->sends[static_cast<std::size_t>(b)];
        const std::uint64_t expected = to->receives[static_cast<std::size_t>(a)];
        if (sent == expected) continue;
        if (first < 0) first = a;
        if (++wrong <= kDetailed)
          pairs += fmt::format("{}{} sends {} to {}, which expects {}", pairs.empty() ? "" : "; ", describe(at(a).who),
                               counted(sent, "element"), describe(at(b).who), expected);
      }
    if (wrong == 0) return std::nullopt;
    const std::string call = call_text(at(first).report->lengths_of);
    return Notice{Code::invalid_usage, first,
                  fmt::format("{}: {}{}. What a rank sends to another must be what that one receives from it", call, pairs,
                              wrong > kDetailed ? fmt::format("; {} pairs in all", wrong) : "")};
  }

  const KnownTransfer* other_end(std::int32_t rank, const KnownTransfer& mine) const {
    if (mine.peer < 0 || mine.peer >= world() || !at(mine.peer).report) return nullptr;
    for (const KnownTransfer& each : at(mine.peer).report->transfers)
      if (each.peer == rank && each.sending != mine.sending && each.sequence == mine.sequence) return &each;
    return nullptr;
  }

  std::optional<Notice> transfers_that_do_not_meet() const {
    std::string pairs;
    std::size_t wrong = 0;
    std::int32_t first = -1;
    for (std::int32_t a = 0; a < world(); ++a) {
      if (!at(a).report) continue;
      for (const KnownTransfer& each : at(a).report->transfers) {
        const KnownTransfer* other = each.sending ? other_end(a, each) : nullptr;
        if (other == nullptr || other->bytes == each.bytes) continue;
        if (first < 0) first = a;
        if (++wrong <= kDetailed)
          pairs += fmt::format("{}{} sends {} to {}, which receives {} (transfer #{} from {} to {})", pairs.empty() ? "" : "; ",
                               describe(at(a).who), counted(each.bytes, "byte"), describe(at(each.peer).who), other->bytes,
                               each.sequence, a, each.peer);
      }
    }
    if (wrong == 0) return std::nullopt;
    return Notice{Code::invalid_usage, first,
                  pairs + ". The sends and receives between two ranks must pair up in order, with the same number of bytes"};
  }

  static bool in_transfers(const Report& report) {
    return std::any_of(report.transfers.begin(), report.transfers.end(), [](const KnownTransfer& each) { return each.open; });
  }

  // The collective that the ranks inside are at; 0 if they are in transfers, or none is inside.
  std::uint64_t current() const {
    std::uint64_t sequence = 0;
    for (const Witness& each : all_)
      if (each.report && !each.left && each.report->inside && !in_transfers(*each.report))
        sequence = std::max(sequence, last_call(each));
    return sequence;
  }
  std::string call_text(std::uint64_t sequence) const {
    for (const Witness& each : all_)
      if (const CalledOnce* made = call_at(each, sequence)) return made->call;
    return fmt::format("collective #{}", sequence);
  }

  std::optional<Notice> left_too_early() const {
    const std::uint64_t sequence = current();
    const Ranks early =
        ranks_where([&](const Witness& w) { return w.left && sequence > 0 && w.report && w.report->finished < sequence; });
    if (!early.empty())
      return Notice{Code::invalid_usage, early.front(),
                    fmt::format("{} left the communicator after {}, but the others are at {}", names(early),
                                counted(at(early.front()).report->finished, "collective"), call_text(sequence))};
    for (std::int32_t r = 0; r < world(); ++r) {
      const std::optional<Report>& report = at(r).report;
      if (!report || at(r).left) continue;
      for (const KnownTransfer& each : report->transfers)
        if (each.open && each.peer >= 0 && each.peer < world() && at(each.peer).left)
          return Notice{
              Code::invalid_usage, each.peer,
              fmt::format("{} left the communicator, but {} waits for it: {} #{} of {}", describe(at(each.peer).who),
                          describe(at(r).who), each.sending ? "send" : "recv", each.sequence, counted(each.bytes, "byte"))};
    }
    return std::nullopt;
  }

  std::string where() const {
    const std::uint64_t sequence = current();
    return sequence > 0 ? fmt::format(" ({})", call_text(sequence)) : std::string();
  }

  std::optional<Notice> silent() const {
    const Ranks mute = ranks_where([](const Witness& w) { return !w.report && !w.left; });
    if (mute.empty()) return std::nullopt;
    std::string text = names(mute) + (mute.size() == 1 ? " does" : " do") + " not answer";
    const std::string& condition = at(mute.front()).condition;
    text += condition.empty() ? ": stopped, or cut off from the network" : fmt::format(": {}", condition);
    return Notice{Code::remote_error, mute.front(), fmt::format("{}{}; {}", text, where(), what_others_do())};
  }

  std::string what_others_do() const {
    const Ranks inside = ranks_where([](const Witness& w) { return w.report && !w.left && w.report->inside; });
    if (inside.empty()) return "no rank is inside a call";
    std::uint64_t longest = 0;
    for (const std::int32_t r : inside) longest = std::max(longest, at(r).report->since_ms);
    return fmt::format("rank{} {} wait{}, the longest for {}", inside.size() == 1 ? "" : "s", ranks_text(inside),
                       inside.size() == 1 ? "s" : "", seconds(longest));
  }

  // Ranks that have not made the call which others are waiting in.
  std::optional<Notice> missing() const {
    const std::uint64_t sequence = current();
    if (sequence == 0) return std::nullopt;
    const Ranks absent = ranks_where([&](const Witness& w) { return w.report && !w.left && last_call(w) < sequence; });
    if (absent.empty()) return std::nullopt;
    std::string text = fmt::format("{} {} not made {}", names(absent), absent.size() == 1 ? "has" : "have", call_text(sequence));
    for (std::size_t i = 0; i < absent.size() && i < kDetailed; ++i) {
      const Report& report = *at(absent[i]).report;
      text += fmt::format("; rank {} ", absent[i]);
      if (report.inside)
        text += fmt::format("is in {}", report.doing);
      else if (report.calls.empty())
        text += "has made no call yet";
      else
        text += fmt::format("is outside the library, its last call, {}, was {} ago", report.calls.back().call,
                            seconds(report.since_ms));
    }
    return Notice{Code::timeout, absent.front(), fmt::format("{}; {}", text, what_others_do())};
  }

  // Where the chain of who waits for whom ends: at a rank that waits for nobody, or nowhere.
  std::optional<Notice> sink() const {
    Ranks path;
    for (std::int32_t r = accuser_; r >= 0 && r < world();) {
      const auto before = std::find(path.begin(), path.end(), r);
      if (before != path.end()) return circle({before, path.end()});
      path.push_back(r);
      const std::optional<Report>& report = at(r).report;
      if (!report || !report->inside || report->waits_for < 0) break;
      r = report->waits_for;
    }
    if (path.size() < 2) return std::nullopt;
    const Witness& end = at(path.back());
    std::string text = describe(end.who);
    if (end.report && end.report->inside)
      text += fmt::format(" is in {} and waits for nobody, but nothing moves", end.report->doing);
    else if (end.report && !end.report->calls.empty())
      text += fmt::format(" is outside the library, its last call, {}, was {} ago", end.report->calls.back().call,
                          seconds(end.report->since_ms));
    else
      text += " is outside the library";
    text += "; waiting: ";
    for (std::size_t i = 0; i + 1 < path.size() && i < kDetailed; ++i)
      text += fmt::format("{}rank {} for rank {} ({})", i == 0 ? "" : ", ", path[i], path[i + 1], at(path[i]).report->doing);
    return Notice{Code::timeout, path.back(), text};
  }

  Notice circle(const Ranks& ring) const {
    std::string text = "ranks wait for each other in a circle: ";
    for (std::size_t i = 0; i < ring.size() && i < kDetailed; ++i)
      text += fmt::format("{}rank {} for rank {} ({})", i == 0 ? "" : ", ", ring[i], ring[(i + 1) % ring.size()],
                          at(ring[i]).report->doing);
    return {Code::timeout, ring.front(), text};
  }

  const std::vector<Witness>& all_;
  Alarm alarm_;
  std::int32_t accuser_;
  const Notice& own_;
};

}  // namespace

std::string ranks_text(const std::vector<std::int32_t>& sorted) {
  std::string text;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1) ++end;
    if (!text.empty()) text += ", ";
    text += end - i == 1   ? fmt::format("{}", sorted[i])
            : end - i == 2 ? fmt::format("{}, {}", sorted[i], sorted[end - 1])
                           : fmt::format("{}-{}", sorted[i], sorted[end - 1]);
    i = end;
  }
  return text;
}

std::optional<Notice> judge(const std::vector<Witness>& witnesses, Alarm alarm, std::int32_t accuser, const Notice& own) {
  return Judgement(witnesses, alarm, accuser, own).find();
}

}  // namespace shoal::comm
