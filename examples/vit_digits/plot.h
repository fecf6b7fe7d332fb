#pragma once

#include <string>
#include <vector>

namespace demo {

struct Color {
  double r, g, b;
};

struct Series {
  std::string name;
  std::vector<double> y;  // at x = 1, 2, …
  Color color;
  double width = 2;  // of the line, in pixels
  bool dashed = false;
};

struct Panel {
  std::string y_label;
  std::vector<Series> series;
  double height = 1;  // share of the picture
};

struct Figure {
  std::string title, subtitle, x_label;
  std::vector<Panel> panels;  // below each other, over one x axis
};

/// Writes a PNG with logarithmic y axes. Values that are not positive are left out. std::runtime_error if it cannot be written.
void write_png(const Figure& figure, const std::string& path);

}  // namespace demo
