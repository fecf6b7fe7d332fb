#include <brasa/brasa.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

// Sorted lines that are short and long, against the standard library's search.
namespace brasa::test {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

bool before(float a, float b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

// n ascending elements, some of them equal, the last two NaN; and values among, between and beyond them.
std::vector<float> line_of(int64_t n, float first) {
  std::vector<float> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(i + 2 < n ? first + std::floor(static_cast<float>(i) / 3) : kNaN);
  return out;
}
std::vector<float> values_for(const std::vector<float>& line) {
  std::vector<float> out = {kNaN, -1e9F, 1e9F};
  for (size_t i = 0; i < 64; ++i) {
    float near = line[i * (line.size() - 1) / 63];
    out.insert(out.end(), {near, near + 0.5F});
  }
  return out;
}

Tensor tensor_of(std::vector<float> v, const std::vector<int64_t>& shape) {
  return from_blob(v.data(), shape, kFloat).clone();
}

void expect_found(const Tensor& found, const std::vector<float>& line, const std::vector<float>& values, bool right) {
  Tensor host = found.cpu();
  for (size_t i = 0; i < values.size(); ++i) {
    auto at = right ? std::upper_bound(line.begin(), line.end(), values[i], before)
                    : std::lower_bound(line.begin(), line.end(), values[i], before);
    EXPECT_EQ(host[static_cast<int64_t>(i)].item<int64_t>(), at - line.begin()) << values[i] << " in " << line.size();
  }
}

TEST(Search, LinesOfAnyLength) {
  for (int64_t n : {255, 256, 5000, 17003})
    for (bool right : {false, true}) {
      std::vector<float> line = line_of(n, -40), values = values_for(line);
      auto m = static_cast<int64_t>(values.size());
      expect_found(searchsorted(tensor_of(line, {n}), tensor_of(values, {m}), false, right), line, values, right);
    }
}

TEST(Search, LinesOfABatch) {
  constexpr int64_t n = 700;
  std::vector<float> first = line_of(n, -40), second = line_of(n, 7), values = values_for(first), lines = first,
                     both = values;
  auto m = static_cast<int64_t>(values.size());
  lines.insert(lines.end(), second.begin(), second.end());
  both.insert(both.end(), values.begin(), values.end());
  Tensor found = searchsorted(tensor_of(lines, {2, n}), tensor_of(both, {2, m}));
  expect_found(found[0], first, values, false);
  expect_found(found[1], second, values, false);
}

TEST(Search, MembersOfALargeSet) {
  Tensor set = (arange(1000) * 7).flip({0}), x = arange(3000);
  EXPECT_TRUE(equal(isin(x, set), x.remainder(7).eq(0)));
  EXPECT_TRUE(equal(isin(x, set, false, true), x.remainder(7).ne(0)));
}

TEST(Search, DistancesByAProduct) {
  Tensor a = arange(120).reshape({30, 4}).to(kFloat) / 60, b = a.slice(0, 3, 20) * 2;
  Tensor product = cdist(a, b), differences = cdist(a, b, 2, 2);
  EXPECT_TRUE(allclose(product, differences, 1e-5, 1e-3));
}

}  // namespace
}  // namespace brasa::test
