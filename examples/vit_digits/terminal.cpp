#include "terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace demo {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Characters, not bytes: UTF-8's continuation bytes take no room.
size_t width(const std::string& s) {
  return static_cast<size_t>(std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string repeated(const char* s, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += s;
  return out;
}

}  // namespace

ProgressBar::ProgressBar(std::string name, bool quiet)
    : name_(std::move(name)), quiet_(quiet), terminal_(::isatty(STDERR_FILENO)) {}

void ProgressBar::show(const Progress& p) {
  if (quiet_) return;
  bool last = p.epoch + 1 == p.epochs && p.step == p.steps;
  if (terminal_ ? now() - last_drawn_ < 0.05 && !last : p.step != p.steps || (p.epoch % 4 != 3 && !last)) return;
  last_drawn_ = now();
  constexpr double kBar = 28;
  double share = (p.epoch + static_cast<double>(p.step) / p.steps) / p.epochs;
  auto full = static_cast<size_t>(kBar * share);
  fmt::print(stderr, "{}  {:<9} epoch {:>2}/{}  {}{}  loss {:7.4f}  {:>7} images/s{}", terminal_ ? "\r" : "", name_,
             p.epoch + 1, p.epochs, repeated("━", full), repeated("┄", static_cast<size_t>(kBar) - full), p.loss,
             with_commas(static_cast<int64_t>(p.images_per_second)), terminal_ ? "" : "\n");
  std::fflush(stderr);
}

void ProgressBar::done() {
  if (!quiet_ && terminal_) fmt::print(stderr, "\n");
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      if (i == widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], width(row[i]));
    }
  std::string out;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line = " ";
    for (size_t i = 0; i < rows[r].size(); ++i) {
      std::string pad(widths[i] - width(rows[r][i]), ' ');
      line += i == 0 ? " " + rows[r][i] + pad : "   " + pad + rows[r][i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
    if (r == 0) {
      size_t total = 1;
      for (size_t w : widths) total += w + 3;
      out += "  " + repeated("─", total - 3) + "\n";
    }
  }
  return out;
}

std::string with_commas(int64_t n) {
  std::string digits = std::to_string(n), out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0 && digits[i - 1] != '-') out += ',';
    out += digits[i];
  }
  return out;
}

}  // namespace demo
