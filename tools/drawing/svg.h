// SPDX-License-Identifier: Apache-2.0
// Writes pictures as SVG text: self-contained, on a paper of their own, so that they read alike on light and dark pages. One
// thread.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace shoal::drawing {

// Colours that colour-blind people tell apart: those of Okabe and Ito, yellow darkened for lines, and a ninth.
inline constexpr std::array<std::string_view, 9> kPalette = {"#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9",
                                                             "#D55E00", "#C8B900", "#8C8C8C", "#6A4C93"};
inline constexpr std::string_view kInk = "#1f2328", kFaintInk = "#57606a", kRule = "#d0d7de", kPaper = "#ffffff",
                                  kBand = "#f3f5f7";

// `colour` ("#rrggbb") with white, 0: all colour, 1: all white.
std::string tint(std::string_view colour, double white);

class Svg {
 public:
  struct Text {
    double size = 12;
    std::string_view anchor = "start";  // "middle", "end"
    std::string_view fill = kInk;
    bool bold = false;
  };

  void raw(std::string_view element) { body_ += element; }
  void rect(double x, double y, double width, double height, std::string_view attributes);
  void path(std::string_view d, std::string_view attributes);
  void line(double x1, double y1, double x2, double y2, std::string_view attributes);
  void circle(double x, double y, double radius, std::string_view attributes);
  void text(double x, double y, std::string_view text, const Text& style);

  // The whole document; `title` is what screen readers say.
  std::string document(double width, double height, std::string_view title) const;

 private:
  std::string body_;
};

std::string escaped(std::string_view text);
// About how wide a text is, in any sans-serif font.
double width_of(std::string_view text, double size, bool bold = false);

}  // namespace shoal::drawing
