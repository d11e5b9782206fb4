// SPDX-License-Identifier: Apache-2.0
#include "tools/plan/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tools/drawing/svg.h"

namespace shoal::plan_tool {

using namespace drawing;
using namespace plan;

namespace {

constexpr double kMargin = 16, kTop = 62, kLabel = 56;           // around everything; the headline; "rank 3"
constexpr double kBox = 70, kHeight = 36, kDot = 16, kGap = 34;  // a step, a signal, between columns
constexpr double kLaneGap = 6, kRankGap = 16;
constexpr std::size_t kMostStripes = 16;

bool is_all_to_all(Collective c) { return c == Collective::all_to_all || c == Collective::all_to_all_v; }

// What a box says under its chunks.
std::string word_of(const Timeline::Box& box) {
  switch (box.step->op) {
    case Op::copy: return "copy";
    case Op::reduce: return "add";
    case Op::send: return "send";
    case Op::recv: return "receive";
    case Op::recv_reduce: return "add";
    case Op::recv_reduce_send: return "add, send";
    case Op::recv_copy_send: return "keep, send";
    case Op::signal:
    case Op::wait: return "";
    case Op::copy_shared: return fmt::format("read rank {}", box.step->from.at(box.iteration));
    case Op::reduce_shared: return "add";
  }
  return "";
}

class Picture {
 public:
  Picture(std::span<const Plan> plans, const Timeline& timeline) : plans_(plans), timeline_(timeline) {
    pack_lanes();
    row_ = height_of(*std::max_element(lines_.begin(), lines_.end())) + kRankGap;

    std::vector<double> widths(static_cast<std::size_t>(timeline_.columns), kDot);
    for (const Timeline::Box& box : timeline_.boxes)
      if (carries_data(box.step->op)) widths[static_cast<std::size_t>(box.column)] = kBox;
    double x = kMargin + kLabel + 14;
    for (const double width : widths) {
      middles_.push_back(x + width / 2);
      x += width + kGap;
    }
    right_ = x - kGap + 14;
  }

  std::string draw(const std::string& title, const std::string& subtitle) {
    width_ = std::max({right_ + kMargin, 2 * kMargin + width_of(title, 17, true), 2 * kMargin + width_of(subtitle, 12.5), 560.0});
    svg_.text(kMargin, 30, title, {.size = 17, .bold = true});
    svg_.text(kMargin, 50, subtitle, {.size = 12.5, .fill = kFaintInk});
    svg_.raw(
        "<defs><pattern id=\"adds\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
        "<rect width=\"1.6\" height=\"5\" fill=\"#000000\" fill-opacity=\"0.3\"/></pattern></defs>\n");
    for (const Plan& plan : plans_) {
      const double y = kTop + plan.rank.value * row_;
      if (plan.rank.value % 2 == 0) svg_.rect(kMargin, y, width_ - 2 * kMargin, row_, fmt::format("rx=\"4\" fill=\"{}\"", kBand));
      svg_.text(kMargin + 8, y + row_ / 2 + 4.5, fmt::format("rank {}", plan.rank.value), {.size = 13, .bold = true});
    }
    for (const Timeline::Arrow& arrow : timeline_.arrows) draw(arrow);
    for (const Timeline::Box& box : timeline_.boxes) draw(box);
    const double bottom = legend(kTop + static_cast<double>(plans_.size()) * row_ + 24);
    return svg_.document(width_, bottom + kMargin, title);
  }

 private:
  double x_of(const Timeline::Box& box) const { return middles_[static_cast<std::size_t>(box.column)]; }
  double y_of(const Timeline::Box& box) const {
    const double used = height_of(lines_[static_cast<std::size_t>(box.rank)]);
    return kTop + box.rank * row_ + (row_ - used) / 2 + line_of_.at({box.rank, box.lane}) * (kHeight + kLaneGap) + kHeight / 2;
  }
  static double height_of(std::int32_t lines) { return lines * (kHeight + kLaneGap) - kLaneGap; }

  // Lanes that are never busy in the same column share a line.
  void pack_lanes() {
    std::map<std::pair<std::int32_t, std::int32_t>, std::set<std::int32_t>> lanes, lines;  // columns, by rank and number
    for (const Timeline::Box& box : timeline_.boxes) lanes[{box.rank, box.lane}].insert(box.column);
    lines_.assign(plans_.size(), 1);
    const auto meet = [](const std::set<std::int32_t>& a, const std::set<std::int32_t>& b) {
      return std::any_of(a.begin(), a.end(), [&b](std::int32_t column) { return b.count(column) > 0; });
    };
    for (const auto& [lane, columns] : lanes) {
      std::int32_t line = 0;
      while (meet(columns, lines[{lane.first, line}])) ++line;
      lines[{lane.first, line}].insert(columns.begin(), columns.end());
      line_of_[lane] = line;
      std::int32_t& most = lines_[static_cast<std::size_t>(lane.first)];
      most = std::max(most, line + 1);
    }
  }
  double half_width(const Timeline::Box& box) const { return (carries_data(box.step->op) ? kBox : kDot) / 2; }

  // A vector that is not cut has no chunks to tell apart: colours are ranks then, those that data come from.
  bool colours_are_ranks() const { return !in_blocks(plans_[0].collective) && plans_[0].chunks == 1; }

  // The colours of what a box handles: of chunks; in an all-to-all, of where blocks come from.
  std::vector<std::size_t> hues_of(const Timeline::Box& box) const {
    if (colours_are_ranks())
      return {static_cast<std::size_t>(receives(box.step->op) ? box.step->from.at(box.iteration) : box.rank)};
    const std::int32_t by = is_all_to_all(plans_[0].collective) ? static_cast<std::int32_t>(plans_.size()) : 1;
    std::vector<std::size_t> hues;
    for (const std::int32_t datum : box.data) hues.push_back(static_cast<std::size_t>(datum / by));
    return hues;
  }
  static std::string_view colour(std::size_t hue) { return kPalette[hue % kPalette.size()]; }

  std::string label(const Timeline::Box& box) const {
    if (!colours_are_ranks()) return label(box.data);
    const Step& step = *box.step;
    const std::int32_t i = box.iteration;
    if (receives(step.op) && sends(step.op)) return fmt::format("{} to {}", step.from.at(i), step.to.at(i));
    if (receives(step.op)) return fmt::format("from {}", step.from.at(i));
    if (sends(step.op)) return fmt::format("to {}", step.to.at(i));
    return step.op == Op::reduce_shared ? "all ranks" : "own";
  }
  std::string label(const std::vector<std::int32_t>& data) const {
    const std::int32_t world = static_cast<std::int32_t>(plans_.size());
    if (is_all_to_all(plans_[0].collective)) {
      std::string text;
      for (const std::int32_t d : data)
        text += fmt::format("{}{}{}{}", text.empty() ? "" : " ", d / world, world > 10 ? ">" : "", d % world);
      return text.size() <= 9 ? text : fmt::format("{} blocks", data.size());
    }
    std::vector<std::int32_t> sorted = data;
    std::sort(sorted.begin(), sorted.end());
    if (sorted.size() > 2 && sorted.back() - sorted.front() + 1 == static_cast<std::int32_t>(sorted.size()))
      return fmt::format("{}..{}", sorted.front(), sorted.back());
    std::string text;
    for (const std::int32_t d : sorted) text += fmt::format("{}{}", text.empty() ? "" : ",", d);
    return text.size() <= 9 ? text : fmt::format("{} chunks", data.size());
  }

  void draw(const Timeline::Arrow& arrow) {
    const Timeline::Box &from = timeline_.boxes[arrow.from], &to = timeline_.boxes[arrow.to];
    const double x1 = x_of(from) + half_width(from), y1 = y_of(from), x2 = x_of(to) - half_width(to) - 1, y2 = y_of(to);
    const bool signal = !carries_data(from.step->op);
    std::vector<std::size_t> hues = colours_are_ranks() ? std::vector{static_cast<std::size_t>(from.rank)} : hues_of(from);
    std::sort(hues.begin(), hues.end());
    const std::string ink(signal || hues.empty() || hues.front() != hues.back() ? kFaintInk : colour(hues.front()));
    // Bends in the gap before the receiver; what comes from farther passes under the boxes on its way.
    const double bend = std::max(14.0, std::min(x2 - x1, 3 * kBox) * 0.5);
    svg_.path(fmt::format("M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", x1, y1, x1 + bend, y1, x2 - 6 - bend, y2,
                          x2 - 6, y2),
              fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{}", ink, signal ? 1.1 : 1.8,
                          signal ? " stroke-dasharray=\"4 2.5\"" : ""));
    head(x2, y2, ink);
    messages_ = messages_ || !signal;
  }
  void head(double x, double y, const std::string& ink) {
    svg_.path(fmt::format("M{:.1f} {:.1f}l-8 -4.2v8.4z", x, y), fmt::format("fill=\"{}\"", ink));
  }

  // Border and hatch of a step, which the legend shows too.
  void frame(double x, double y, double width, double height, const Step& step) {
    if (reduces(step.op)) svg_.rect(x, y, width, height / 2, "fill=\"url(#adds)\"");
    const bool own_memory = step.op == Op::copy || step.op == Op::reduce;
    svg_.rect(x, y, width, height,
              fmt::format("rx=\"3\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{}", kInk, step.final ? 3 : 1,
                          own_memory && !step.final ? " stroke-dasharray=\"3 2\"" : ""));
  }

  void draw(const Timeline::Box& box) {
    const double x = x_of(box) - kBox / 2, y = y_of(box) - kHeight / 2;
    if (!carries_data(box.step->op)) {
      signals_ = true;
      svg_.circle(x_of(box), y_of(box), kDot / 2 - 1,
                  fmt::format("fill=\"{}\" stroke=\"{}\"", box.step->op == Op::signal ? kPaper : kRule, kFaintInk));
      return;
    }
    const std::vector<std::size_t> hues = hues_of(box);
    const std::size_t stripes = std::min(hues.size(), kMostStripes);
    const double stripe = kBox / static_cast<double>(stripes);
    for (std::size_t s = 0, end = 0; s < stripes; s = end) {  // neighbours of one colour together
      while (end < stripes && hues[end] == hues[s]) ++end;
      svg_.rect(x + static_cast<double>(s) * stripe, y, stripe * static_cast<double>(end - s), kHeight,
                fmt::format("fill=\"{}\"", tint(colour(hues[s]), 0.45)));
    }
    hues_.insert(hues.begin(), hues.end());
    frame(x, y, kBox, kHeight, *box.step);
    adds_ = adds_ || reduces(box.step->op);
    finals_ = finals_ || box.step->final;
    copies_ = copies_ || ((box.step->op == Op::copy || box.step->op == Op::reduce) && !box.step->final);
    svg_.text(x + kBox / 2, y + 15, label(box), {.size = 13, .anchor = "middle", .bold = true});
    svg_.text(x + kBox / 2, y + 29, word_of(box), {.size = 10.5, .anchor = "middle"});
  }

  // One entry after the other, in as many lines as it takes. Returns where it ends.
  double legend(double y) {
    double x = kMargin;
    const auto place = [&](double sample, const std::string& text) {
      const double width = sample + 6 + width_of(text, 12) + 18;
      if (x > kMargin && x + width > width_ - kMargin) {
        x = kMargin;
        y += 24;
      }
      svg_.text(x + sample + 6, y + 4, text, {.size = 12, .fill = kFaintInk});
      const double at = x;
      x += width;
      return at;
    };
    const bool blocks = in_blocks(plans_[0].collective);
    const std::string unit = is_all_to_all(plans_[0].collective) ? "blocks of rank "
                             : colours_are_ranks()               ? "from rank "
                             : blocks && plans_[0].chunks == 1   ? "block "
                                                                 : "chunk ";
    for (const std::size_t hue : hues_) {
      if (hues_.size() > kPalette.size() + 4) break;  // the boxes have numbers
      const bool first = hue == *hues_.begin();
      const std::string number = std::to_string(hue);
      const double at = place(14, first ? unit + number : number);
      svg_.rect(at, y - 7, 14, 14, fmt::format("fill=\"{}\" stroke=\"{}\"", tint(colour(hue), 0.45), kInk));
    }
    if (x > kMargin && (adds_ || finals_ || copies_ || signals_ || messages_)) {
      x = kMargin;
      y += 24;
    }
    if (adds_) {
      const double at = place(22, is_reduction(plans_[0].collective) ? "adds to a sum" : "adds");
      frame(at, y - 7, 22, 14, {.op = Op::recv_reduce});
    }
    if (finals_) {
      const double at = place(22, "finishes the sum");
      frame(at + 1, y - 6, 20, 12, {.op = Op::recv, .final = true});
    }
    if (copies_) {
      const double at = place(22, "in its own memory");
      frame(at, y - 7, 22, 14, {.op = Op::copy});
    }
    if (messages_) {
      const double at = place(26, "message");
      svg_.line(at, y, at + 20, y, fmt::format("stroke=\"{}\" stroke-width=\"1.8\"", kFaintInk));
      head(at + 26, y, std::string(kFaintInk));
    }
    if (signals_) {
      const double at = place(58, "signal, and the wait for it");
      svg_.circle(at + 7, y, 7, fmt::format("fill=\"{}\" stroke=\"{}\"", kPaper, kFaintInk));
      svg_.line(at + 14, y, at + 38, y, fmt::format("stroke=\"{}\" stroke-width=\"1.1\" stroke-dasharray=\"4 2.5\"", kFaintInk));
      head(at + 43, y, std::string(kFaintInk));
      svg_.circle(at + 51, y, 7, fmt::format("fill=\"{}\" stroke=\"{}\"", kRule, kFaintInk));
    }
    return y + 10;
  }

  std::span<const Plan> plans_;
  const Timeline& timeline_;
  Svg svg_;
  std::vector<double> middles_;                                            // of columns
  std::vector<std::int32_t> lines_;                                        // of each rank
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> line_of_;  // by rank and lane
  double row_ = 0, right_ = 0, width_ = 0;
  std::set<std::size_t> hues_;
  bool adds_ = false, finals_ = false, copies_ = false, signals_ = false, messages_ = false;
};

}  // namespace

std::string picture(std::span<const Plan> plans, const Timeline& timeline, const std::string& title,
                    const std::string& subtitle) {
  return Picture(plans, timeline).draw(title, subtitle);
}

}  // namespace shoal::plan_tool
