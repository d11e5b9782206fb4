// SPDX-License-Identifier: Apache-2.0
#include "tools/drawing/svg.h"

#include <fmt/format.h>

#include <cmath>

namespace shoal::drawing {
namespace {

std::string number(double value) { return fmt::format("{:.7g}", std::round(value * 10) / 10); }

}  // namespace

std::string tint(std::string_view colour, double white) {
  std::string text = "#";
  for (std::size_t at = 1; at < 7; at += 2) {
    const double part = std::stoi(std::string(colour.substr(at, 2)), nullptr, 16);
    text += fmt::format("{:02x}", static_cast<int>(std::lround(part + (255 - part) * white)));
  }
  return text;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

double width_of(std::string_view text, double size, bool bold) {
  return static_cast<double>(text.size()) * size * (bold ? 0.62 : 0.56);
}

void Svg::rect(double x, double y, double width, double height, std::string_view attributes) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {}/>\n", number(x), number(y), number(width),
                       number(height), attributes);
}

void Svg::path(std::string_view d, std::string_view attributes) { body_ += fmt::format("<path d=\"{}\" {}/>\n", d, attributes); }

void Svg::line(double x1, double y1, double x2, double y2, std::string_view attributes) {
  body_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" {}/>\n", number(x1), number(y1), number(x2), number(y2),
                       attributes);
}

void Svg::circle(double x, double y, double radius, std::string_view attributes) {
  body_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" {}/>\n", number(x), number(y), number(radius), attributes);
}

void Svg::text(double x, double y, std::string_view text, const Text& style) {
  body_ +=
      fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\" text-anchor=\"{}\" fill=\"{}\"{}>{}</text>\n", number(x), number(y),
                  number(style.size), style.anchor, style.fill, style.bold ? " font-weight=\"bold\"" : "", escaped(text));
}

std::string Svg::document(double width, double height, std::string_view title) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" "
      "font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n"
      "<!-- SPDX-License-Identifier: Apache-2.0 -->\n<title>{2}</title>\n"
      "<rect x=\"0.5\" y=\"0.5\" width=\"{3}\" height=\"{4}\" rx=\"6\" fill=\"{5}\" stroke=\"{6}\"/>\n{7}</svg>\n",
      number(width), number(height), escaped(title), number(width - 1), number(height - 1), kPaper, kRule, body_);
}

}  // namespace shoal::drawing
