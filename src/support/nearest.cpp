#include "support/nearest.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace brasa {
namespace {

// Characters to insert, remove or replace (Levenshtein).
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      size_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] != b[j])});
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view name, std::span<const std::string> known) {
  std::string near, all;
  size_t least = SIZE_MAX;
  for (const std::string& k : known) {
    (all += all.empty() ? "" : ", ") += k;
    size_t d = distance(name, k);
    if (d >= least || d > 1 + std::max(name.size(), k.size()) / 3) continue;
    least = d;
    near = k;
  }
  return near.empty() ? "; there are " + all : "; did you mean '" + near + "'?";
}

}  // namespace brasa
