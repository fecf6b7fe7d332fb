#include <algorithm>
#include <cstdint>

#include "loops/kernel.h"

// Loads that are far apart by lane and side by side in an unrolled loop.
namespace brasa::compiler::test {
namespace {

class Transposed : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Targets, Transposed, testing::ValuesIn(targets()), [](const auto& info) {
  std::string name = info.param;
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

// Neighbours of an unrolled loop, rows apart by lane: with all of them there, and with masks that end rows and windows.
TEST_P(Transposed, Loads) {
  auto transposed = [&](auto element, DType t, int64_t apart, int64_t lanes, int64_t rows, int64_t columns) {
    using T = decltype(element);
    const int64_t step = 70;
    std::vector<T> in(static_cast<size_t>(rows * step));
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<T>(i * 29 + 1);
    Kernel k;
    Value from = k.b.buffer(t, static_cast<int64_t>(in.size())), to = k.b.buffer(t, lanes * lanes * apart);
    Expr u = k.b.loop("unroll", lanes), l = k.b.loop("vector", lanes, static_cast<int>(lanes));
    auto below = [&](Expr e, int64_t end) { return k.b.op(ops::ScalarOp::Lt, {k.b.index(e), k.b.index(end)}); };
    for (int64_t d = 0; d < apart; ++d) {
      Value mask = rows < lanes ? below(l, rows) : Value{};
      if (columns < lanes * apart) {
        Value end = below(u * apart + d, columns);
        mask = mask ? k.b.op(ops::ScalarOp::BitAnd, {mask, end}) : end;
      }
      k.b.store(to, (u * apart + d) * lanes + l, k.b.load(from, l * step + u * apart + d, mask));
    }
    k.compile(GetParam());
    std::vector<T> got(static_cast<size_t>(lanes * lanes * apart));
    k.run({in.data(), got.data()});
    for (int64_t c = 0; c < lanes * apart; ++c)
      for (int64_t r = 0; r < lanes; ++r)
        ASSERT_EQ(got[c * lanes + r], r < rows && c < columns ? in[r * step + c] : T{})
            << name(t) << ", " << apart << " apart, " << lanes << " lanes, row " << r << " of " << rows << ", " << c
            << " of " << columns;
  };
  for (int64_t less : {0, 3})
    for (int64_t lanes : {4, 8, 16}) transposed(double{}, DType::Float64, 1, lanes, lanes - less, lanes - less);
  for (int64_t lanes : {8, 16})
    for (int64_t less : {0, 3}) {
      transposed(int16_t{}, DType::Int16, 1, lanes, lanes - less, lanes - less);
      transposed(uint8_t{}, DType::UInt8, 1, lanes, lanes - less, lanes - less);
      for (int64_t apart : {1, 2})
        transposed(float{}, DType::Float32, apart, lanes, lanes - less, apart * lanes - less);
      transposed(int16_t{}, DType::Int16, 2, lanes, lanes - less, 2 * lanes - less);
      transposed(uint8_t{}, DType::UInt8, 4, lanes, lanes - less, 4 * lanes - less);
    }
}

// Of a kernel's taps there are fewer than lanes, or some more than fill vectors; and they may be read from the last one back.
TEST_P(Transposed, LoadsOfFew) {
  constexpr int64_t kLanes = 16, kRow = 51;
  for (int width : {8, 16})
    for (int64_t count : {3, 5, 9, 15, 25})
      for (int64_t step : {1, 2, -1, -2}) {
        auto in = ramp(kLanes * kRow);
        Kernel k;
        Value from = k.f32(kLanes * kRow), to = k.f32(count * kLanes * 2);
        Expr u = k.b.loop("unroll", count), l = k.b.loop("vector", kLanes, width);
        Expr first = step > 0 ? Expr(0) : Expr((count - 1) * -step);
        for (int64_t d = 0; d < std::abs(step); ++d)
          k.b.store(to, (u * 2 + d) * kLanes + l, k.b.load(from, l * kRow + first + u * step + d));
        k.compile(GetParam());
        std::vector<float> got(count * kLanes * 2);
        k.run({in.data(), got.data()});
        for (int64_t i = 0; i < count; ++i)
          for (int64_t d = 0; d < std::abs(step); ++d)
            for (int64_t lane = 0; lane < kLanes; ++lane) {
              int64_t at = step > 0 ? i * step : (count - 1 - i) * -step;
              ASSERT_EQ(got[(i * 2 + d) * kLanes + lane], in[lane * kRow + at + d]) << count << " by " << step;
            }
      }
}

// A matrix in squares, as its transposition's schedule has it: of any size, whose last squares lack rows, columns or both.
TEST_P(Transposed, Matrices) {
  auto transposed = [&](auto element, DType t, int lanes) {
    using T = decltype(element);
    Kernel k;
    Expr rows = Expr::size(0), columns = Expr::size(1);
    Value from = k.b.buffer(t, rows * columns), to = k.b.buffer(t, rows * columns);
    Expr square = k.b.loop("parallel", ceildiv(columns, lanes)), u = k.b.loop("unroll", lanes);
    Expr row = k.b.loop("vector", rows, lanes), column = square * lanes + u;
    Value there = k.b.op(ops::ScalarOp::Lt, {k.b.index(column), k.b.index(columns)});
    k.b.store(to, column * rows + row, k.b.load(from, row * columns + column, there), there);
    k.compile(GetParam());
    for (int64_t m : {1, 3, 4, 7, 8, 16, 19, 33})
      for (int64_t n : {1, 3, 4, 7, 8, 12, 16, 20, 35}) {
        std::vector<T> in(static_cast<size_t>(m * n)), got(in.size() + 64, T(7));
        for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<T>(i * 29 + 1);
        k.run({in.data(), got.data()}, {m, n});
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j)
            ASSERT_EQ(got[j * m + i], in[i * n + j]) << name(t) << ", " << lanes << " lanes, " << m << " x " << n;
        for (size_t i = in.size(); i < got.size(); ++i) ASSERT_EQ(got[i], T(7)) << "written beyond the end";
      }
  };
  transposed(double{}, DType::Float64, 4);
  for (int lanes : {8, 16}) {
    transposed(double{}, DType::Float64, lanes);
    transposed(float{}, DType::Float32, lanes);
    transposed(int16_t{}, DType::Int16, lanes);
    transposed(uint8_t{}, DType::UInt8, lanes);
  }
}

// Neighbours of a matrix of any size in words of two, as panels of them are made: to the places of whole words, of which the last one may
// have its second element beyond the row.
void make_words(Kernel& k, int lanes) {
  Expr rows = Expr::size(0), columns = Expr::size(1), words = ceildiv(columns, 2);
  Value from = k.b.buffer(DType::Int16, rows * columns), to = k.b.buffer(DType::Int16, rows * words * 2);
  Expr square = k.b.loop("parallel", ceildiv(words, lanes)), u = k.b.loop("unroll", lanes), word = square * lanes + u;
  auto below = [&](Expr e, Expr end) { return k.b.op(ops::ScalarOp::Lt, {k.b.index(e), k.b.index(end)}); };
  Value there = below(word, words);
  Expr row = k.b.loop("vector", rows, lanes);
  for (int64_t d : {0, 1}) {
    Value inside = k.b.op(ops::ScalarOp::BitAnd, {there, below(word * 2 + d, columns)});
    k.b.store(to, (word * 2 + d) * rows + row, k.b.load(from, row * columns + word * 2 + d, inside), there);
  }
}
TEST_P(Transposed, Words) {
  for (int lanes : {8, 16}) {
    Kernel k;
    make_words(k, lanes);
    k.compile(GetParam());
    for (int64_t m : {1, 7, 16, 19, 33})
      for (int64_t n : {1, 2, 7, 16, 31, 32, 33, 70}) {
        std::vector<int16_t> in(static_cast<size_t>(m * n)), got(static_cast<size_t>(m * (n + n % 2) + 64), 7);
        for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int16_t>(i * 29 + 1);
        k.run({in.data(), got.data()}, {m, n});
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n + n % 2; ++j)
            ASSERT_EQ(got[j * m + i], j < n ? in[i * n + j] : 0) << lanes << " lanes, " << m << " x " << n;
        for (size_t i = static_cast<size_t>(m * (n + n % 2)); i < got.size(); ++i)
          ASSERT_EQ(got[i], 7) << "written beyond the end";
      }
  }
}
TEST(TransposedCode, WordsAreNotReadElementByElement) {
  Kernel k;
  make_words(k, 16);
  std::string code = show_kernel(k.graph, "x86-64+avx512", "assembly");
  EXPECT_EQ(code.find("vpinsrw"), code.npos) << code;
}

}  // namespace
}  // namespace brasa::compiler::test
