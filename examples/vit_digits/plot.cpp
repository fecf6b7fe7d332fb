#include "plot.h"

#include <cairo/cairo.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>

namespace demo {
namespace {

constexpr double kWidth = 1240, kHeight = 860, kScale = 1.5;
constexpr double kLeft = 110, kRight = 40, kTop = 104, kBottom = 74, kGap = 34;
constexpr Color kInk{0.16, 0.18, 0.22}, kFaint{0.45, 0.48, 0.53}, kGrid{0.90, 0.91, 0.93};

struct Box {
  double x, y, w, h;
};

struct Axis {
  double low, high;  // of log10 for y
  double place(double v) const { return (v - low) / (high - low); }
};

void ink(cairo_t* c, Color k) { cairo_set_source_rgb(c, k.r, k.g, k.b); }

double text_width(cairo_t* c, const std::string& s) {
  cairo_text_extents_t e;
  cairo_text_extents(c, s.c_str(), &e);
  return e.x_advance;
}

enum class Align { Left, Center, Right };

void text(cairo_t* c, const std::string& s, double x, double y, double size, Color color, Align align,
          bool bold = false) {
  cairo_select_font_face(c, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                         bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(c, size);
  double w = text_width(c, s);
  ink(c, color);
  cairo_move_to(c, align == Align::Left ? x : align == Align::Right ? x - w : x - w / 2, y);
  cairo_show_text(c, s.c_str());
}

void line(cairo_t* c, double x0, double y0, double x1, double y1, double width, Color color) {
  ink(c, color);
  cairo_set_line_width(c, width);
  cairo_move_to(c, x0, y0);
  cairo_line_to(c, x1, y1);
  cairo_stroke(c);
}

// 1, 2 or 5 times a power of ten, so that about `count` steps fit.
double nice_step(double range, int count) {
  double raw = range / count, power = std::pow(10, std::floor(std::log10(raw)));
  for (double m : {1.0, 2.0, 5.0})
    if (raw <= m * power) return m * power;
  return 10 * power;
}

std::string number(double v) {
  char buffer[32];
  if (v == 0 || (v >= 1e-3 && v < 1e5)) {
    std::snprintf(buffer, sizeof buffer, "%g", v);
    return buffer;
  }
  int exponent = static_cast<int>(std::lround(std::log10(v)));
  const char* digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out = exponent < 0 ? "10⁻" : "10";
  for (char d : std::to_string(std::abs(exponent))) out += digits[d - '0'];
  return out;
}

Axis y_axis(const Panel& panel) {
  double low = INFINITY, high = -INFINITY;
  for (const Series& s : panel.series)
    for (double v : s.y)
      if (v > 0) {
        low = std::min(low, std::log10(v));
        high = std::max(high, std::log10(v));
      }
  if (!(low <= high)) return {-1, 1};
  double margin = std::max(0.05, 0.06 * (high - low));
  return {low - margin, high + margin};
}

void draw_y_ticks(cairo_t* c, const Box& box, const Axis& axis) {
  bool whole_decades = axis.high - axis.low > 2.5;
  int every = std::max(1, static_cast<int>(std::ceil((axis.high - axis.low) / 5)));
  for (int decade = static_cast<int>(std::floor(axis.low)); decade <= axis.high; ++decade) {
    if (decade % every != 0) continue;
    for (double m : {1.0, 2.0, 5.0}) {
      double at = decade + std::log10(m);
      if (at < axis.low || at > axis.high || (m != 1 && (whole_decades || at < -3))) continue;
      double y = box.y + box.h * (1 - axis.place(at));
      line(c, box.x, y, box.x + box.w, y, 1, kGrid);
      text(c, number(m * std::pow(10, decade)), box.x - 12, y + 5, 14, kFaint, Align::Right);
    }
  }
}

void draw_x_ticks(cairo_t* c, const Box& box, const Axis& axis, bool labels) {
  double step = nice_step(axis.high - axis.low, 9);
  for (double v = std::ceil(axis.low / step) * step; v <= axis.high; v += step) {
    double x = box.x + box.w * axis.place(v);
    line(c, x, box.y, x, box.y + box.h, 1, kGrid);
    if (labels) text(c, number(v), x, box.y + box.h + 24, 14, kFaint, Align::Center);
  }
}

void draw_series(cairo_t* c, const Box& box, const Axis& x, const Axis& y, const Series& s) {
  double dash[] = {7, 5};
  cairo_set_dash(c, dash, s.dashed ? 2 : 0, 0);
  cairo_set_line_join(c, CAIRO_LINE_JOIN_ROUND);
  cairo_set_line_cap(c, CAIRO_LINE_CAP_ROUND);
  cairo_set_line_width(c, s.width);
  ink(c, s.color);
  bool drawing = false;
  for (size_t i = 0; i < s.y.size(); ++i) {
    if (!(s.y[i] > 0)) {
      drawing = false;
      continue;
    }
    double px = box.x + box.w * x.place(static_cast<double>(i + 1));
    double py = box.y + box.h * (1 - y.place(std::log10(s.y[i])));
    drawing ? cairo_line_to(c, px, py) : cairo_move_to(c, px, py);
    drawing = true;
  }
  cairo_stroke(c);
  cairo_set_dash(c, nullptr, 0, 0);
}

void draw_legend(cairo_t* c, const Box& box, const Panel& panel) {
  if (panel.series.size() < 2) return;
  double x = box.x + box.w - 18, y = box.y + 28;
  cairo_set_font_size(c, 15);
  double widest = 0;
  for (const Series& s : panel.series) widest = std::max(widest, text_width(c, s.name));
  double left = x - widest - 52, height = 26 * static_cast<double>(panel.series.size()) + 10;
  cairo_set_source_rgba(c, 1, 1, 1, 0.9);
  cairo_rectangle(c, left - 12, y - 22, x - left + 22, height);
  cairo_fill(c);
  for (const Series& s : panel.series) {
    double dash[] = {7, 5};
    cairo_set_dash(c, dash, s.dashed ? 2 : 0, 0);
    line(c, left, y - 5, left + 38, y - 5, s.width, s.color);
    cairo_set_dash(c, nullptr, 0, 0);
    text(c, s.name, left + 50, y, 15, kInk, Align::Left);
    y += 26;
  }
}

void draw_panel(cairo_t* c, const Box& box, const Axis& x, const Panel& panel, bool last) {
  Axis y = y_axis(panel);
  draw_x_ticks(c, box, x, last);
  draw_y_ticks(c, box, y);
  cairo_save(c);
  cairo_rectangle(c, box.x, box.y, box.w, box.h);
  cairo_clip(c);
  for (const Series& s : panel.series) draw_series(c, box, x, y, s);
  cairo_restore(c);
  line(c, box.x, box.y + box.h, box.x + box.w, box.y + box.h, 1.5, kFaint);
  line(c, box.x, box.y, box.x, box.y + box.h, 1.5, kFaint);
  draw_legend(c, box, panel);
  cairo_save(c);
  cairo_translate(c, 34, box.y + box.h / 2);
  cairo_rotate(c, -M_PI / 2);
  text(c, panel.y_label, 0, 0, 16, kInk, Align::Center);
  cairo_restore(c);
}

}  // namespace

void write_png(const Figure& figure, const std::string& path) {
  std::unique_ptr<cairo_surface_t, void (*)(cairo_surface_t*)> surface(
      cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(kWidth * kScale),
                                 static_cast<int>(kHeight * kScale)),
      cairo_surface_destroy);
  std::unique_ptr<cairo_t, void (*)(cairo_t*)> context(cairo_create(surface.get()), cairo_destroy);
  cairo_t* c = context.get();
  cairo_scale(c, kScale, kScale);
  cairo_set_source_rgb(c, 1, 1, 1);
  cairo_paint(c);
  text(c, figure.title, kLeft, 48, 25, kInk, Align::Left, true);
  text(c, figure.subtitle, kLeft, 76, 16, kFaint, Align::Left);

  size_t longest = 1;
  double shares = 0;
  for (const Panel& panel : figure.panels) {
    shares += panel.height;
    for (const Series& s : panel.series) longest = std::max(longest, s.y.size());
  }
  Axis x{0, static_cast<double>(longest)};
  double free = kHeight - kTop - kBottom - kGap * static_cast<double>(figure.panels.size() - 1), top = kTop;
  for (size_t i = 0; i < figure.panels.size(); ++i) {
    double h = free * figure.panels[i].height / shares;
    draw_panel(c, {kLeft, top, kWidth - kLeft - kRight, h}, x, figure.panels[i], i + 1 == figure.panels.size());
    top += h + kGap;
  }
  text(c, figure.x_label, kLeft + (kWidth - kLeft - kRight) / 2, kHeight - 22, 16, kInk, Align::Center);

  cairo_status_t status = cairo_surface_write_to_png(surface.get(), path.c_str());
  if (status != CAIRO_STATUS_SUCCESS)
    throw std::runtime_error("cannot write " + path + ": " + cairo_status_to_string(status));
}

}  // namespace demo
