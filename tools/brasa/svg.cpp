#include "svg.h"

#include <fmt/format.h>
#include <iterator>

namespace brasa::tool::svg {

const char* colour(size_t i) {
  constexpr const char* kColours[] = {"#56b4e9", "#0072b2", "#e69f00", "#d55e00", "#009e73", "#cc79a7", "#777777"};
  return kColours[i % std::size(kColours)];
}

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

std::string begin(double width, double height) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, height);
}
std::string text(double x, double y, const char* anchor, const std::string& what) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, escaped(what));
}
std::string line(double x1, double y1, double x2, double y2, const char* stroke, double width) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"{}\"/>\n", x1, y1, x2,
      y2, stroke, width);
}
std::string rectangle(double x, double y, double width, double height, const char* fill, const std::string& title) {
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" fill-opacity=\"0.85\" "
      "stroke=\"white\"><title>{}</title></rect>\n",
      x, y, width, height, fill, escaped(title));
}

}  // namespace brasa::tool::svg
