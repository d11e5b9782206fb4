// SPDX-License-Identifier: Apache-2.0
#include "tools/topo/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/drawing/svg.h"

namespace shoal::topo_tool {

using namespace drawing;

namespace {

constexpr double kMargin = 16, kPadding = 10, kGap = 8, kLine = 26;  // around all; in a box; between boxes; of one text

// Of kPalette; nothing for boxes that only hold others.
int hue(Kind kind) {
  switch (kind) {
    case Kind::host:
    case Kind::limits: return -1;
    case Kind::package: return 4;
    case Kind::node: return 2;
    case Kind::cores: return 2;
    case Kind::bridge: return 7;
    case Kind::gpu: return 0;
    case Kind::rdma: return 3;
    case Kind::interface: return 1;
  }
  return -1;
}

struct Box {
  const Branch* branch = nullptr;
  double x = 0, y = 0, width = 0, height = 0;  // x and y within the parent
  std::vector<Box> inside;
};

// Packages and nodes stand beside each other, everything else below each other.
bool beside(const Branch& branch) {
  return branch.children.size() > 1 && std::any_of(branch.children.begin(), branch.children.end(), [](const Branch& child) {
           return child.kind == Kind::package || child.kind == Kind::node;
         });
}

Box lay_out(const Branch& branch) {
  Box box{.branch = &branch, .inside = {}};
  box.width = width_of(branch.text, 12.5, !branch.children.empty()) + 2 * kPadding;
  box.height = kLine;
  const bool row = beside(branch);
  double x = kPadding, y = kLine + 4, highest = 0;
  std::vector<const Branch*> order;
  for (const Branch& child : branch.children) order.push_back(&child);
  if (row)  // the wide ones first, what goes below them last
    std::stable_partition(order.begin(), order.end(),
                          [](const Branch* child) { return child->kind == Kind::package || child->kind == Kind::node; });
  bool in_row = row;
  for (const Branch* child : order) {
    Box placed = lay_out(*child);
    const bool large = child->kind == Kind::package || child->kind == Kind::node;
    if (in_row && !large) {
      in_row = false;
      x = kPadding;
      y += highest + kGap;
    }
    placed.x = x;
    placed.y = y;
    box.width = std::max(box.width, x + placed.width + kPadding);
    box.height = std::max(box.height, y + placed.height + kPadding);
    if (in_row) {
      x += placed.width + kGap;
      highest = std::max(highest, placed.height);
    } else {
      y += placed.height + kGap;
    }
    box.inside.push_back(std::move(placed));
  }
  return box;
}

// Boxes below each other are as wide as what they are in.
void stretch(Box& box) {
  for (Box& each : box.inside) {
    const bool in_row = beside(*box.branch) && (each.branch->kind == Kind::package || each.branch->kind == Kind::node);
    if (!in_row) each.width = box.width - kPadding - each.x;
    stretch(each);
  }
}

void draw(Svg& svg, const Box& box, double x, double y) {
  const int colour = hue(box.branch->kind);
  const bool holds = !box.inside.empty();
  const std::string fill = colour < 0 ? std::string(kPaper) : tint(kPalette[static_cast<std::size_t>(colour)], holds ? 0.9 : 0.7);
  svg.rect(x, y, box.width, box.height, fmt::format("rx=\"4\" fill=\"{}\" stroke=\"{}\"", fill, holds ? kFaintInk : kRule));
  svg.text(x + kPadding, y + 17.5, box.branch->text, {.size = 12.5, .bold = holds});
  for (const Box& each : box.inside) draw(svg, each, x + each.x, y + each.y);
}

}  // namespace

std::string picture(const Branch& host) {
  Box box = lay_out(host);
  stretch(box);
  Svg svg;
  draw(svg, box, kMargin, kMargin);
  return svg.document(box.width + 2 * kMargin, box.height + 2 * kMargin, host.text);
}

}  // namespace shoal::topo_tool
