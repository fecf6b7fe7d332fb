#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "compiler/kernels/codegen_client.h"
#include "compiler/loops/linearize.h"
#include "loops/kernel.h"
#include "support/checked.h"

namespace brasa::compiler::test {
namespace {

class Structure : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Targets, Structure, testing::ValuesIn(targets()), [](const auto& info) {
  std::string name = info.param;
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

// out[i] = a[i] + b[i] over chunks, for every remainder.
TEST_P(Structure, PointwiseWithTail) {
  Kernel k;
  Expr n = Expr::size(0);
  Value a = k.f32(n), b = k.f32(n), out = k.f32(n);
  Expr chunk = k.b.loop("parallel", ceildiv(n, 100));
  Expr r = k.b.loop("vector", min(Expr(100), n - chunk * 100), 16, 2);
  Expr i = chunk * 100 + r;
  k.b.store(out, i, k.b.op("add", {k.b.load(a, i), k.b.load(b, i)}));
  k.compile(GetParam());
  for (int64_t size : {0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 99, 100, 101, 257, 1000}) {
    auto x = ramp(size), y = ramp(size, 3, 1);
    std::vector<float> z(size + 1, -7);
    k.run({x.data(), y.data(), z.data()}, {size});
    for (int64_t j = 0; j < size; ++j) ASSERT_EQ(z[j], x[j] + y[j]) << j << " of " << size;
    ASSERT_EQ(z[size], -7) << "written beyond the end";
  }
}

// Rows with reductions that share a loop, and a second pass.
TEST_P(Structure, MeanAndVarianceInOnePass) {
  Kernel k;
  Expr rows = Expr::size(0), n = Expr::size(1);
  Value x = k.f32(rows * n), out = k.f32(rows * n);
  Expr row = k.b.loop("parallel", rows), r = k.b.loop("vector", n, 16, 4), r2 = k.b.loop("vector", n, 16, 1);
  Value v = k.b.load(x, row * n + r);
  Value sum = k.b.reduce(v, {r}, "add"), squares = k.b.reduce(k.b.op("mul", {v, v}), {r}, "add");
  Value count = k.b.convert(k.b.index(n), DType::Float32);
  Value mean = k.b.op("div", {sum, count});
  Value variance = k.b.op("sub", {k.b.op("div", {squares, count}), k.b.op("mul", {mean, mean})});
  Value y = k.b.op("div", {k.b.op("sub", {k.b.load(x, row * n + r2), mean}), k.b.op("sqrt", {variance})});
  k.b.store(out, row * n + r2, y);
  // One loop for both sums, one for the results.
  Nest nest = linearize(k.graph);
  ASSERT_EQ(nest.body.size(), 1u);
  EXPECT_EQ(nest.body[0].loop->body.size(), 2u) << print(nest);
  k.compile(GetParam());
  for (int64_t size : {1, 2, 7, 16, 63, 64, 65, 200}) {
    auto in = ramp(3 * size, 0.1);
    std::vector<float> got(3 * size);
    k.run({in.data(), got.data()}, {3, size});
    for (int64_t i = 0; i < 3 && size > 1; ++i) {
      double s = 0, q = 0;
      for (int64_t j = 0; j < size; ++j) s += in[i * size + j];
      s /= static_cast<double>(size);
      for (int64_t j = 0; j < size; ++j) q += (in[i * size + j] - s) * (in[i * size + j] - s);
      q = std::sqrt(q / static_cast<double>(size));
      for (int64_t j = 0; j < size; ++j) ASSERT_NEAR(got[i * size + j], (in[i * size + j] - s) / q, 1e-4) << size;
    }
  }
}

// max, then the sum of what depends on it, over the same range: two loops.
TEST_P(Structure, DependentReductionsGetLoopsOfTheirOwn) {
  Kernel k;
  Value x = k.f32(50), out = k.f32(1);
  Expr r = k.b.loop("serial", 50);
  Value v = k.b.load(x, r);
  Value top = k.b.reduce(v, {r}, "max");
  k.b.store(out, 0, k.b.reduce(k.b.op("sub", {top, v}), {r}, "add"));
  EXPECT_EQ(linearize(k.graph).body.size(), 3u) << print(linearize(k.graph));
  k.compile(GetParam());
  auto in = ramp(50);
  float got = 0;
  k.run({in.data(), &got});
  float most = *std::max_element(in.begin(), in.end()), want = 0;
  for (float f : in) want += most - f;
  EXPECT_FLOAT_EQ(got, want);
}

TEST_P(Structure, MatmulTile) {
  Kernel k;
  Expr depth = Expr::size(0);
  Value a = k.f32(depth * 6), b = k.f32(depth * 32), c = k.f32(6 * 32);
  Expr i = k.b.loop("unroll", 6), j = k.b.loop("unroll", 2), v = k.b.loop("vector", 16, 16),
       r = k.b.loop("serial", depth);
  Value product = k.b.op("mul", {k.b.load(a, r * 6 + i), k.b.load(b, r * 32 + j * 16 + v)});
  k.b.store(c, i * 32 + j * 16 + v, k.b.reduce(product, {r}, "add"));
  k.compile(GetParam());
  for (int64_t d : {0, 1, 5, 64}) {
    auto x = ramp(6 * d), y = ramp(32 * d, 0.5, -3);
    std::vector<float> z(6 * 32);
    k.run({x.data(), y.data(), z.data()}, {d});
    for (int64_t p = 0; p < 6; ++p)
      for (int64_t q = 0; q < 32; ++q) {
        double want = 0;
        for (int64_t s = 0; s < d; ++s) want += double{x[s * 6 + p]} * y[s * 32 + q];
        ASSERT_NEAR(z[p * 32 + q], want, 1e-6 * std::fabs(want) + 1e-3);
      }
  }
}

// A stage on the stack and one in scratch memory (its size is only known at run time).
TEST_P(Structure, Stages) {
  for (bool symbolic : {false, true}) {
    Kernel k;
    Expr n = symbolic ? Expr::size(0) : Expr(40);
    Value x = k.f32(n * n), out = k.f32(n * n);
    Expr row = k.b.loop("parallel", n), r = k.b.loop("vector", n, 16), back = k.b.loop("vector", n, 16);
    Value staged = k.b.stage(k.b.op("mul", {k.b.load(x, row * n + r), k.b.constant(2.0, DType::Float32)}), {r});
    k.b.store(out, row * n + back, k.b.load(staged, n - 1 - back));
    k.compile(GetParam());
    auto in = ramp(1600);
    std::vector<float> got(1600);
    k.run({in.data(), got.data()}, symbolic ? std::vector<int64_t>{40} : std::vector<int64_t>{});
    for (int i = 0; i < 40; ++i)
      for (int j = 0; j < 40; ++j) ASSERT_EQ(got[i * 40 + j], 2 * in[i * 40 + 39 - j]);
  }
}

TEST_P(Structure, ArgMax) {
  Kernel k;
  Expr n = Expr::size(0);
  Value x = k.f32(n), value = k.f32(1), index = k.b.buffer(DType::Int64, 1);
  Expr r = k.b.loop("vector", n, 16, 2);
  auto best = k.b.arg_reduce(k.b.load(x, r), k.b.index(r), {r}, "argmax");
  k.b.store(value, 0, best[0]);
  k.b.store(index, 0, best[1]);
  k.compile(GetParam());
  for (size_t size : {size_t{1}, size_t{5}, size_t{33}, size_t{100}, size_t{517}})
    for (int kind = 0; kind < 3; ++kind) {
      auto in = ramp(size);
      if (kind == 1) in[size / 2] = NAN;
      if (kind == 2) std::fill(in.begin(), in.end(), -INFINITY);
      float got = 0;
      int64_t at = -1;
      k.run({in.data(), &got, &at}, {static_cast<int64_t>(size)});
      size_t want = 0;
      for (size_t i = 1; i < size; ++i)
        if (!std::isnan(in[want]) && (std::isnan(in[i]) || in[i] > in[want])) want = i;
      ASSERT_EQ(at, static_cast<int64_t>(want)) << size << " " << kind;
      ASSERT_TRUE(got == in[want] || (std::isnan(got) && std::isnan(in[want])));
    }
}

// Indices read from memory, out of order and masked.
TEST_P(Structure, GatherAndScatterAdd) {
  Kernel k;
  Value x = k.f32(100), where = k.b.buffer(DType::Int64, 70), out = k.f32(70), sums = k.f32(100);
  Expr p = k.b.loop("parallel", 7), r = k.b.loop("vector", 10, 16);
  Expr i = p * 10 + r;
  Expr at = k.b.bind(k.b.load(where, i), 100);
  Value v = k.b.load(x, at, k.b.op("lt", {k.b.index(i), k.b.constant(int64_t{65}, DType::Int64)}));
  k.b.store(out, i, v);
  k.b.store(sums, at, k.b.constant(1.0, DType::Float32), {}, "add");
  k.compile(GetParam());
  auto in = ramp(100);
  std::vector<int64_t> index(70);
  for (int j = 0; j < 70; ++j) index[j] = (j * j) % 100;
  std::vector<float> got(70), counts(100), want(100);
  k.run({in.data(), index.data(), got.data(), counts.data()});
  for (int j = 0; j < 70; ++j) {
    ASSERT_EQ(got[j], j < 65 ? in[index[j]] : 0);
    want[index[j]] += 1;
  }
  EXPECT_EQ(counts, want);
}

// Places in two dimensions: in 32 bits where the memory that they may lie in is short enough, and in 64 where sizes say otherwise.
TEST_P(Structure, GatherInTwoDimensions) {
  Kernel k;
  Expr rows = Expr::size(0), columns = Expr::size(1);
  Value x = k.f32(63), at_row = k.b.buffer(DType::Int64, 45), at_column = k.b.buffer(DType::Int32, 45), out = k.f32(45);
  Expr r = k.b.loop("vector", 45, 16);
  Expr row = k.b.bind(k.b.load(at_row, r), rows),
       column = k.b.bind(k.b.convert(k.b.load(at_column, r), DType::Int64), columns);
  k.b.store(out, r, k.b.load(x, row * columns + column));
  k.compile(GetParam());
  auto in = ramp(63);
  std::vector<int64_t> i(45);
  std::vector<int32_t> j(45);
  for (int n = 0; n < 45; ++n) i[n] = n * n % 7, j[n] = n * 5 % 9;
  for (int64_t so_many : {int64_t{7}, int64_t{1} << 40}) {
    std::vector<float> got(45);
    k.run({in.data(), i.data(), j.data(), got.data()}, {so_many, 9});
    for (int n = 0; n < 45; ++n) ASSERT_EQ(got[n], in[i[n] * 9 + j[n]]) << n << " of " << so_many;
  }
}

// Strided and transposed reads; rows found by quotient and remainder.
TEST_P(Structure, Strides) {
  Kernel k;
  Value x = k.f32(64 * 48), out = k.f32(64 * 48);
  Expr r = k.b.loop("vector", 64 * 48, 16, 2);
  k.b.store(out, r, k.b.load(x, mod(r, 64) * 48 + floordiv(r, 64)));
  k.compile(GetParam());
  auto in = ramp(64 * 48);
  std::vector<float> got(64 * 48);
  k.run({in.data(), got.data()});
  for (int j = 0; j < 64 * 48; ++j) ASSERT_EQ(got[j], in[(j % 64) * 48 + j / 64]);
}

// Places near the multiples of a divisor that is known when the kernel runs, as far out as places go.
TEST_P(Structure, Quotients) {
  Kernel k;
  Expr d = Expr::size(0), start = Expr::size(1);
  Value quotients = k.b.buffer(DType::Int64, 20), rests = k.b.buffer(DType::Int64, 20);
  Expr r = k.b.loop("vector", 20, 8);
  k.b.store(quotients, r, k.b.index(floordiv(start + r, d)));
  k.b.store(rests, r, k.b.index(mod(start + r, d)));
  k.compile(GetParam());
  for (int64_t divisor : {int64_t{1}, int64_t{3}, int64_t{7}, int64_t{641}, int64_t{1000003}, (int64_t{1} << 31) - 1})
    for (int64_t far : {int64_t{40}, int64_t{1} << 31, (int64_t{1} << 50) - 40}) {
      int64_t first = std::max<int64_t>(far / divisor * divisor - 10, 0);
      std::vector<int64_t> q(20), rest(20);
      k.run({q.data(), rest.data()}, {divisor, first});
      for (int64_t j = 0; j < 20; ++j) {
        ASSERT_EQ(q[j], (first + j) / divisor) << first + j << " / " << divisor;
        ASSERT_EQ(rest[j], (first + j) % divisor) << first + j << " % " << divisor;
      }
    }
}

// Which places leave a rest, by a divisor that the code knows: neighbours, and places apart.
TEST_P(Structure, Rests) {
  for (int64_t divisor : {1, 2, 3, 5, 8, 64})
    for (int64_t apart : {1, 2, 3}) {
      Kernel k;
      Expr start = Expr::size(0), r = k.b.loop("vector", 20, 8), place = start + r * apart - 9;
      Value out = k.b.buffer(DType::Int64, 20);
      Value leaves = k.b.op("eq", {k.b.index(mod(place, divisor)), k.b.index(divisor / 2)});
      k.b.store(out, r, k.b.op("select", {leaves, k.b.index(1), k.b.index(0)}));
      k.compile(GetParam());
      for (int64_t first = 0; first < 12; ++first) {
        std::vector<int64_t> got(20);
        k.run({got.data()}, {first});
        for (int64_t j = 0; j < 20; ++j)
          ASSERT_EQ(got[j], floor_mod(first + j * apart - 9, divisor) == divisor / 2)
              << first << " " << j << " " << divisor;
      }
    }
}

TEST_P(Structure, SerialUnrollAndColumnSums) {
  Kernel k;
  Expr rows = Expr::size(0), n = Expr::size(1);
  Value x = k.f32(rows * n), out = k.f32(n);
  Expr c = k.b.loop("vector", n, 8, 2), r = k.b.loop("serial", rows, 1, 4);
  k.b.store(out, c, k.b.reduce(k.b.load(x, r * n + c), {r}, "add"));
  k.compile(GetParam());
  for (int64_t height : {0, 1, 3, 4, 9}) {
    auto in = ramp(height * 37);
    std::vector<float> got(37);
    k.run({in.data(), got.data()}, {height, 37});
    for (int64_t j = 0; j < 37; ++j) {
      float want = 0;
      for (int64_t i = 0; i < height; ++i) want += in[i * 37 + j];
      ASSERT_FLOAT_EQ(got[j], want);
    }
  }
}

// Column sums that depend on no row are made inside the loop over the rows that use them: the loop over columns lies in it.
TEST_P(Structure, ReductionUsedInALoopAround) {
  Kernel k;
  Expr rows = Expr::size(0), n = Expr::size(1);
  Value x = k.f32(rows * n), w = k.f32(3 * n), out = k.f32(rows * n);
  Expr row = k.b.loop("serial", rows), c = k.b.loop("vector", n, 8), r = k.b.loop("serial", Expr(3));
  Value sum = k.b.reduce(k.b.load(w, r * n + c), {r}, "add");
  k.b.store(out, row * n + c, k.b.op("mul", {k.b.load(x, row * n + c), sum}));
  Nest nest = linearize(k.graph);
  EXPECT_EQ(nest.body.size(), 1u) << print(nest);
  k.compile(GetParam());
  for (int64_t width : {1, 8, 19}) {
    auto in = ramp(4 * width), weights = ramp(3 * width, 2, 1);
    std::vector<float> got(4 * width);
    k.run({in.data(), weights.data(), got.data()}, {4, width});
    for (int64_t j = 0; j < 4 * width; ++j) {
      int64_t at = j % width;
      ASSERT_FLOAT_EQ(got[j], in[j] * (weights[at] + weights[width + at] + weights[2 * width + at]));
    }
  }
}

// A sum over columns that no row changes comes before the loop over the rows, so that a row's own sum and what both are used in share it.
TEST_P(Structure, ASumThatNoRowChangesComesBeforeTheRows) {
  Kernel k;
  Expr rows = Expr::size(0), n = Expr::size(1);
  Value x = k.f32(rows * n), w = k.f32(n), y = k.f32(rows), twice = k.f32(rows), out = k.f32(rows * n);
  Expr row = k.b.loop("serial", rows), c = k.b.loop("vector", n, 8);
  k.b.store(twice, row, k.b.op("mul", {k.b.load(y, row), k.b.constant(2.0, DType::Float32)}));
  Value weight = k.b.load(w, c), total = k.b.reduce(weight, {c}, "add");
  Value here = k.b.op("mul", {k.b.load(x, row * n + c), weight}), own = k.b.reduce(here, {c}, "add");
  k.b.store(out, row * n + c, k.b.op("add", {k.b.op("add", {here, total}), own}));
  Nest nest = linearize(k.graph);
  EXPECT_EQ(nest.body.size(), 2u) << print(nest);
  k.compile(GetParam());
  for (int64_t width : {1, 8, 19}) {
    auto in = ramp(4 * width), weights = ramp(width, 2, 1), each = ramp(4);
    std::vector<float> doubled(4), got(4 * width);
    k.run({in.data(), weights.data(), each.data(), doubled.data(), got.data()}, {4, width});
    float all = std::accumulate(weights.begin(), weights.end(), 0.0f);
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_FLOAT_EQ(doubled[i], 2 * each[i]);
      float sum = 0;
      for (int64_t j = 0; j < width; ++j) sum += in[i * width + j] * weights[j];
      for (int64_t j = 0; j < width; ++j)
        ASSERT_NEAR(got[i * width + j], in[i * width + j] * weights[j] + all + sum, 1e-3) << width;
    }
  }
}

// What a row stages is there for that row alone: a sum that no row changes does not come between.
TEST_P(Structure, AStageLiesInTheRowThatReadsIt) {
  Kernel k;
  Expr rows = Expr::size(0), n = Expr::size(1);
  Value x = k.f32(rows * n), w = k.f32(n), out = k.f32(rows * n);
  Expr row = k.b.loop("serial", rows), c = k.b.loop("vector", n, 8);
  Value doubled = k.b.op("mul", {k.b.load(x, row * n + c), k.b.constant(2.0, DType::Float32)});
  Value here = k.b.load(k.b.stage(doubled, {c}), c), total = k.b.reduce(k.b.load(w, c), {c}, "add");
  Value own = k.b.reduce(k.b.op("mul", {here, total}), {c}, "add");
  k.b.store(out, row * n + c, k.b.op("add", {here, own}));
  Nest nest = linearize(k.graph);
  EXPECT_EQ(nest.body.size(), 2u) << print(nest);
  k.compile(GetParam());
  for (int64_t width : {1, 8, 19}) {
    auto in = ramp(4 * width), weights = ramp(width, 2, 1);
    std::vector<float> got(4 * width);
    k.run({in.data(), weights.data(), got.data()}, {4, width});
    float all = std::accumulate(weights.begin(), weights.end(), 0.0f);
    for (int64_t i = 0; i < 4; ++i) {
      float sum = 0;
      for (int64_t j = 0; j < width; ++j) sum += 2 * in[i * width + j] * all;
      for (int64_t j = 0; j < width; ++j)
        ASSERT_NEAR(got[i * width + j], 2 * in[i * width + j] + sum, 1e-5 * std::fabs(sum) + 1e-3) << width;
    }
  }
}

// The value written is read again in the same iteration of the shared loop, and completely by a loop of its own.
TEST_P(Structure, StoreThenLoad) {
  Kernel k;
  Value x = k.f32(64), sum = k.f32(1);
  Expr r = k.b.loop("vector", 64, 16), again = k.b.loop("vector", 64, 16);
  k.b.store(x, r, k.b.op("mul", {k.b.load(x, r), k.b.constant(3.0, DType::Float32)}));
  k.b.store(sum, 0, k.b.reduce(k.b.load(x, Expr(63) - again), {again}, "add"));
  k.compile(GetParam());
  auto in = ramp(64);
  float want = 0, got = 0;
  for (float f : in) want += 3 * f;
  k.run({in.data(), &got});
  EXPECT_FLOAT_EQ(got, want);
}

// Every second element: steps of several vectors and single vectors, none of which needs a mask (there twice, for results that memory takes past
// the caches), and the rest.
TEST_P(Structure, StridedVectorsBehindFullSteps) {
  Kernel k;
  Expr n = Expr::size(0), i = k.b.loop("vector", n, 16, 4);
  Value x = k.f32(n * 2), y = k.f32(n);
  k.b.store(y, i, k.b.load(x, i * 2));
  std::string code = show_kernel(k.graph, "x86-64+avx512", "llvm-raw");
  int whole = 0;
  for (size_t at = 0; (at = code.find(" = load <16 x float>", at)) != code.npos; ++at) ++whole;
  EXPECT_EQ(whole, 2 * (2 * 4 + 2)) << code;
  k.compile(GetParam());
  for (int64_t count : {0, 1, 15, 16, 17, 56, 63, 64, 65, 130}) {
    auto in = ramp(2 * count);
    std::vector<float> got(count);
    k.run({in.data(), got.data()}, {count});
    for (int64_t j = 0; j < count; ++j) ASSERT_EQ(got[j], in[2 * j]) << j << " of " << count;
  }
}

int64_t count_of(std::string_view what, std::string_view code) {
  int64_t count = 0;
  for (size_t at = 0; (at = code.find(what, at)) != code.npos; ++at) ++count;
  return count;
}

// Four rows of sums of three: each row of elements is read once for all of them.
TEST(Rows, SideBySideReadOnce) {
  Kernel k;
  Expr n = Expr::size(0);
  Value x = k.f32(n * 6), y = k.f32(n * 4);
  Expr row = k.b.loop("unroll", 4), column = k.b.loop("vector", n, 16), tap = k.b.loop("serial", 3, 1, 3);
  k.b.store(y, row * n + column, k.b.reduce(k.b.load(x, (row + tap) * n + column), {tap}, "add"));
  std::string code = show_kernel(k.graph, "x86-64+avx512", "llvm");
  int64_t stores = count_of("store <16 x float>", code);
  EXPECT_GT(stores, 0) << code;
  EXPECT_EQ(count_of("= load <16 x float>", code) * 4, stores * 6) << code;
  k.compile("x86-64+avx2");
  for (int64_t columns : {1, 8, 19, 40}) {
    auto in = ramp(6 * columns);
    std::vector<float> got(4 * columns);
    k.run({in.data(), got.data()}, {columns});
    for (int64_t i = 0; i < 4 * columns; ++i)
      ASSERT_EQ(got[i], in[i] + in[i + columns] + in[i + 2 * columns]) << i << " of " << columns;
  }
}

// Whether a row lies in the image is decided for those above it, within it and below it.
TEST(Rows, BetweenBordersHaveCodeOfTheirOwn) {
  auto stores = [](bool above_and_below) {
    Kernel k;
    Expr rows = Expr::size(0), n = Expr::size(1);
    Value x = k.f32(rows * n), y = k.f32((rows + 2) * (n + 2));
    Expr row = k.b.loop("serial", above_and_below ? rows + 2 : rows), column = k.b.loop("vector", n + 2, 8);
    Expr from = above_and_below ? row - 1 : row;
    auto inside = [&](Expr e, Expr end) {
      Value low = k.b.op(ops::ScalarOp::Ge, {k.b.index(e), k.b.index(0)});
      Value high = k.b.op(ops::ScalarOp::Lt, {k.b.index(e), k.b.index(end)});
      return k.b.op(ops::ScalarOp::BitAnd, {low, high});
    };
    Value mask = inside(column - 1, n), zero = k.b.constant(0.0, DType::Float32);
    if (above_and_below) mask = k.b.op(ops::ScalarOp::BitAnd, {mask, inside(from, rows)});
    Value read = k.b.load(x, from * n + column - 1, mask);
    k.b.store(y, row * (n + 2) + column, k.b.op(ops::ScalarOp::Select, {mask, read, zero}));
    return count_of("store <8 x float>", show_kernel(k.graph, "x86-64+avx2", "llvm-raw"));
  };
  EXPECT_GT(stores(false), 0);
  EXPECT_EQ(stores(true), 3 * stores(false));
}

// A border of columns that are known and rows that are not: whole registers of a vector have no lane.
TEST_P(Structure, BordersOfRows) {
  auto bordered = [&](auto element, DType t) {
    using T = decltype(element);
    constexpr int64_t kRows = 3, kColumns = 13, kBorder = 4, kWidth = 21;
    std::vector<T> in(kRows * kColumns), got((kRows + 2 * kBorder) * kWidth, T(7));
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<T>(i + 1);
    Kernel k;
    Value from = k.b.buffer(t, std::ssize(in)), to = k.b.buffer(t, std::ssize(got));
    Expr row = k.b.loop("serial", kRows + 2 * kBorder), column = k.b.loop("vector", kWidth, 8);
    auto inside = [&](Expr e, int64_t end) {
      Value low = k.b.op(ops::ScalarOp::Ge, {k.b.index(e), k.b.index(0)});
      Value high = k.b.op(ops::ScalarOp::Lt, {k.b.index(e), k.b.index(end)});
      return k.b.op(ops::ScalarOp::BitAnd, {low, high});
    };
    Value rows = inside(row - kBorder, kRows), columns = inside(column - kBorder, kColumns);
    Value mask = k.b.op(ops::ScalarOp::BitAnd, {rows, columns});
    Value x = k.b.load(from, (row - kBorder) * kColumns + column - kBorder, mask);
    k.b.store(to, row * kWidth + column, k.b.op("select", {mask, x, k.b.constant(0.0, t)}));
    k.compile(GetParam());
    k.run({in.data(), got.data()});
    for (int64_t r = 0; r < kRows + 2 * kBorder; ++r)
      for (int64_t c = 0; c < kWidth; ++c) {
        int64_t y = r - kBorder, x_at = c - kBorder;
        bool there = y >= 0 && y < kRows && x_at >= 0 && x_at < kColumns;
        ASSERT_EQ(got[r * kWidth + c], there ? in[y * kColumns + x_at] : T{}) << name(t) << " row " << r << ", " << c;
      }
  };
  bordered(double{}, DType::Float64);
  bordered(float{}, DType::Float32);
}

// Neighbours of rows of five beside a row that all share and the first three elements of rows of seven: each lane's are at one place in
// every step of five vectors, and in the vectors that are left of the last one.
TEST_P(Structure, ShortRowsInSteps) {
  constexpr int64_t kRow = 5, kLonger = 7, kPart = 3;
  auto rows = [&](auto element, DType t) {
    using T = decltype(element);
    for (int width : {4, 8, 16}) {
      Kernel k;
      Expr n = Expr::size(0);
      Value all = k.b.buffer(t, n * kRow), shared = k.b.buffer(t, kRow), longer = k.b.buffer(t, n * kLonger),
            out = k.b.buffer(t, n * kRow);
      Expr i = k.b.loop("vector", n * kRow, width, 5), row = floordiv(i, kRow), column = mod(i, kRow);
      Value mask = k.b.op(ops::ScalarOp::Lt, {k.b.index(column), k.b.index(kPart)});
      Value sum = k.b.op("add", {k.b.load(all, i), k.b.load(shared, column)});
      k.b.store(out, i, k.b.op("add", {sum, k.b.load(longer, row * kLonger + column, mask)}));
      k.compile(GetParam());
      for (int64_t size : {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 40, 100}) {
        std::vector<T> x(size * kRow), y{1, 2, 3, 4, 5}, z(size * kLonger), got(size * kRow + 1, T(-7));
        for (size_t j = 0; j < x.size(); ++j) x[j] = static_cast<T>(j % 90);
        for (size_t j = 0; j < z.size(); ++j) z[j] = static_cast<T>(j % 30);
        k.run({x.data(), y.data(), z.data(), got.data()}, {size});
        for (int64_t j = 0; j < size * kRow; ++j) {
          T part = j % kRow < kPart ? z[j / kRow * kLonger + j % kRow] : T(0);
          ASSERT_EQ(got[j], static_cast<T>(x[j] + y[j % kRow] + part)) << j << " of " << size << " rows, " << width;
        }
        ASSERT_EQ(got[size * kRow], T(-7)) << "written beyond the end";
      }
    }
  };
  rows(float{}, DType::Float32);
  rows(double{}, DType::Float64);
  rows(int8_t{}, DType::Int8);
}

// Rows of parts: the first elements of x in reverse, all of x, y from an element on that differs from row to row, and ones. Parts may be shorter than a vector,
// or empty, and several may end in one.
TEST_P(Structure, PartsOfRows) {
  auto parts = [&](auto element, DType t, int width) {
    using T = decltype(element);
    Kernel k;
    Expr rows = Expr::size(0), first = Expr::size(1), n = Expr::size(2), m = Expr::size(3), all = first + n + m + 3;
    Value x = k.b.buffer(t, n), y = k.b.buffer(t, rows + m), out = k.b.buffer(t, rows * all);
    Expr row = k.b.loop("parallel", rows), i = k.b.loop("vector", all, width, 2);
    auto below = [&](Expr end) { return k.b.op(ops::ScalarOp::Lt, {k.b.index(i), k.b.index(end)}); };
    auto from = [&](Expr begin) { return k.b.op(ops::ScalarOp::Ge, {k.b.index(i), k.b.index(begin)}); };
    auto within = [&](Expr begin, Expr end) { return k.b.op(ops::ScalarOp::BitAnd, {from(begin), below(end)}); };
    auto choice = [&](Value c, Value a, Value b) { return k.b.op(ops::ScalarOp::Select, {c, a, b}); };
    Value reversed = k.b.load(x, first - 1 - i, below(first));
    Value whole = k.b.load(x, i - first, within(first, first + n));
    Value shifted = k.b.load(y, i - first - n + row, within(first + n, first + n + m));
    Value one = is_floating(t) ? k.b.constant(1.0, t) : k.b.constant(int64_t{1}, t);
    Value rest = choice(below(first + n + m), shifted, one);
    k.b.store(out, row * all + i, choice(below(first), reversed, choice(below(first + n), whole, rest)));
    k.compile(GetParam());
    constexpr int64_t kRows = 3;
    for (auto [a, b, c] :
         {std::array<int64_t, 3>{0, 1, 0}, {1, 12, 2}, {3, 5, 40}, {64, 100, 0}, {2, 200, 1}, {70, 70, 90}}) {
      std::vector<T> u(b), v(kRows + c), got(kRows * (a + b + c + 3) + 1, T(7));
      for (size_t j = 0; j < u.size(); ++j) u[j] = static_cast<T>(j % 50 + 2);
      for (size_t j = 0; j < v.size(); ++j) v[j] = static_cast<T>(j % 40 + 60);
      k.run({u.data(), v.data(), got.data()}, {kRows, a, b, c});
      for (int64_t r = 0; r < kRows; ++r)
        for (int64_t j = 0; j < a + b + c + 3; ++j) {
          T want = j < a ? u[a - 1 - j] : j < a + b ? u[j - a] : j < a + b + c ? v[j - a - b + r] : T(1);
          ASSERT_EQ(got[r * (a + b + c + 3) + j], want)
              << name(t) << ", row " << r << ", element " << j << " of " << a << " + " << b << " + " << c;
        }
      ASSERT_EQ(got.back(), T(7)) << "written beyond the end";
    }
  };
  for (int width : {4, 16}) {
    parts(double{}, DType::Float64, width);
    parts(float{}, DType::Float32, width);
    parts(int16_t{}, DType::Int16, width);
    parts(int8_t{}, DType::Int8, width);
  }
}

}  // namespace
}  // namespace brasa::compiler::test
