#include <algorithm>
#include <cstdint>
#include <utility>

#include "loops/kernel.h"

// Results that no cache holds, in rows that begin and end within lines of memory: whole lines go past the caches.
namespace brasa::compiler::test {
namespace {

using T = uint8_t;
constexpr int64_t kBytes = 17 << 20;

// Rows of which the first elements are zeros, behind each other from the last one on.
void check(const std::string& target, DType dtype, int width, int unroll) {
  constexpr int kBorder = 3;
  Kernel k;
  Expr n = Expr::size(0), rows = Expr::size(1);
  Value x = k.b.buffer(dtype, rows * (n - kBorder)), y = k.b.buffer(dtype, rows * n);
  Expr row = k.b.loop("parallel", rows), i = k.b.loop("vector", n, width, unroll);
  Value inside = k.b.op("ge", {k.b.index(i), k.b.index(kBorder)});
  Value read = k.b.load(x, (rows - row - 1) * (n - kBorder) + i - kBorder, inside);
  k.b.store(y, row * n + i, k.b.op("select", {inside, read, k.b.constant(0, dtype)}));
  if (target != "x86-64") {
    EXPECT_NE(show_kernel(k.graph, target, "llvm").find("nontemporal"), std::string::npos);
  }
  k.compile(target);
  const auto size = static_cast<int64_t>(size_of(dtype));
  for (auto [length, behind] : {std::pair<int64_t, int64_t>{67, 0}, {331, 3}}) {
    int64_t count = kBytes / (length * size) + 1, given = length - kBorder;
    std::vector<T> in(count * given * size), out((count * length + behind + 1) * size, T{7});
    for (size_t j = 0; j < in.size(); ++j) in[j] = static_cast<T>(j * 37 >> 3);
    k.run({in.data(), out.data() + behind * size}, {length, count}, 1000);
    for (int64_t r = 0; r < count; ++r) {
      const T *from = in.data() + (count - r - 1) * given * size, *to = out.data() + (behind + r * length) * size;
      ASSERT_EQ(std::count(to, to + kBorder * size, T{0}), kBorder * size) << "row " << r << " of " << length;
      ASSERT_EQ(std::memcmp(to + kBorder * size, from, given * size), 0) << "row " << r << " of " << length;
    }
    ASSERT_EQ(std::count(out.begin(), out.begin() + behind * size, T{7}), behind * size);
    ASSERT_EQ(std::count(out.end() - size, out.end(), T{7}), size) << "written beyond the end";
  }
}

class FarRows : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Targets, FarRows, testing::ValuesIn(targets()));

TEST_P(FarRows, OfFloats) { check(GetParam(), DType::Float32, 8, 1); }
TEST_P(FarRows, OfFloatsInWholeSteps) { check(GetParam(), DType::Float32, 16, 2); }
TEST_P(FarRows, OfDoubles) { check(GetParam(), DType::Float64, 8, 3); }
TEST_P(FarRows, OfBytes) { check(GetParam(), DType::UInt8, 32, 1); }

}  // namespace
}  // namespace brasa::compiler::test
