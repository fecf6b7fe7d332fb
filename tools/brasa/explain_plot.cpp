#include "explain_plot.h"

#include <fmt/format.h>
#include <algorithm>
#include <vector>

#include "svg.h"

namespace brasa::tool {
namespace {

constexpr double kLeft = 16, kKernels = 620, kMemory = 480, kGap = 24, kTop = 44, kLine = 18;
constexpr size_t kLongest = 96;

using Graph = Explanation::Graph;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// What was fused, without how it runs.
std::string shortened(const std::string& kernel) {
  std::string out = kernel.substr(0, kernel.find("  {"));
  return out.size() <= kLongest ? out : out.substr(0, kLongest) + " …";
}

class Plot {
 public:
  void add(const Graph& g, size_t number) {
    std::vector<std::string> kernels = lines_of(g.kernels);  // and a last one of all
    kernels.resize(std::min(kernels.size(), static_cast<size_t>(g.kernels_after)));
    double prepared = g.prepared_bytes ? kLeft + kKernels : 0,
           arena = kLeft + kKernels + (prepared ? kMemory / 2 + kGap : 0);
    out_ += svg::text(kLeft, y_ + 16, "start",
                      fmt::format("graph {}: {} operators, {} kernels", number, g.operator_count, kernels.size()));
    if (prepared) out_ += svg::text(prepared, y_ + 16, "start", fmt::format("made once: {} bytes", g.prepared_bytes));
    out_ += svg::text(arena, y_ + 16, "start", fmt::format("arena: {} bytes", g.arena_bytes));
    double top = y_ + kTop - kLine;
    for (size_t k = 0; k < kernels.size(); ++k) {
      double y = top + kLine * static_cast<double>(k);
      out_ += svg::line(kLeft, y, arena + kMemory, y, "#eeeeee", 1);
      out_ += svg::text(kLeft, y + 13, "start", fmt::format("{}  {}", k, shortened(kernels[k])));
    }
    for (size_t i = 0; i < g.memory.size(); ++i) {
      const Graph::Buffer& b = g.memory[i];
      int64_t all = std::max<int64_t>(1, b.prepared ? g.prepared_bytes : g.arena_bytes);
      double scale = (b.prepared ? kMemory / 2 : kMemory) / static_cast<double>(all);
      double x = (b.prepared ? prepared : arena) + scale * static_cast<double>(b.offset);
      out_ += svg::rectangle(
          x, top + kLine * static_cast<double>(b.first), std::max(1.0, scale * static_cast<double>(b.bytes)),
          kLine * static_cast<double>(b.last - b.first + 1), svg::colour(i),
          fmt::format("{}, {} bytes at {}, kernels {} to {}", b.type, b.bytes, b.offset, b.first, b.last));
    }
    width_ = std::max(width_, arena + kMemory + kLeft);
    y_ = top + kLine * static_cast<double>(kernels.size()) + kGap;
  }
  std::string picture() const { return svg::begin(width_, y_) + out_ + "</svg>\n"; }

 private:
  std::string out_;
  double y_ = 8, width_ = 0;
};

}  // namespace

std::string plot_of(const Explanation& e) {
  Plot plot;
  for (size_t i = 0; i < e.graphs.size(); ++i) plot.add(e.graphs[i], i);
  return plot.picture();
}

}  // namespace brasa::tool
