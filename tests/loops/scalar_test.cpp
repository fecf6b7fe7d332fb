#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "loops/kernel.h"
#include "support/half.h"

namespace brasa::compiler::test {
namespace {

class Scalars : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Targets, Scalars, testing::ValuesIn(targets()), [](const auto& info) {
  std::string name = info.param;
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

template <class T>
constexpr DType dtype() {
  if constexpr (std::is_same_v<T, uint8_t>) return DType::UInt8;
  if constexpr (std::is_same_v<T, int8_t>) return DType::Int8;
  if constexpr (std::is_same_v<T, int16_t>) return DType::Int16;
  if constexpr (std::is_same_v<T, int32_t>) return DType::Int32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::Int64;
  if constexpr (std::is_same_v<T, double>) return DType::Float64;
  return DType::Float32;
}

// All pairs of these numbers through one binary primitive, in vectors and lane by lane.
template <class T, class F>
void check_binary(const std::string& target, const char* name, F reference) {
  using L = std::numeric_limits<T>;
  std::vector<T> numbers{
      0, 1, 2, 3, 5, 7, 8, 31, 63, 100, T(-1), T(-2), T(-7), L::max(), L::min(), T(L::max() - 1), T(L::min() + 1)};
  std::vector<T> a, b;
  for (T x : numbers)
    for (T y : numbers) {
      a.push_back(x);
      b.push_back(y);
    }
  Kernel k;
  auto n = static_cast<int64_t>(a.size());
  Value va = k.b.buffer(dtype<T>(), n), vb = k.b.buffer(dtype<T>(), n), out = k.b.buffer(dtype<T>(), n),
        one = k.b.buffer(dtype<T>(), n);
  Expr i = k.b.loop("vector", n, 16), j = k.b.loop("serial", n);
  k.b.store(out, i, k.b.op(name, {k.b.load(va, i), k.b.load(vb, i)}));
  k.b.store(one, j, k.b.op(name, {k.b.load(va, j), k.b.load(vb, j)}));
  k.compile(target);
  std::vector<T> got(a.size()), scalar(a.size());
  k.run({a.data(), b.data(), got.data(), scalar.data()});
  for (size_t p = 0; p < a.size(); ++p) {
    T want = reference(a[p], b[p]);
    ASSERT_EQ(got[p], want) << name << " " << short_name(dtype<T>()) << " " << +a[p] << " " << +b[p];
    ASSERT_EQ(scalar[p], want) << name << " (lane) " << short_name(dtype<T>()) << " " << +a[p] << " " << +b[p];
  }
}

template <class T>
void check_integers(const std::string& target) {
  using U = std::make_unsigned_t<T>;
  constexpr int width = 8 * sizeof(T);
  check_binary<T>(target, "add", [](T a, T b) { return T(U(a) + U(b)); });
  check_binary<T>(target, "mul", [](T a, T b) { return T(uint64_t(a) * uint64_t(b)); });
  check_binary<T>(target, "div", [](T a, T b) {
    return b == 0 ? T(0) : b == T(-1) && std::is_signed_v<T> ? T(U(0) - U(a)) : T(a / b);
  });
  check_binary<T>(target, "rem",
                  [](T a, T b) { return b == 0 || (b == T(-1) && std::is_signed_v<T>) ? T(0) : T(a % b); });
  check_binary<T>(target, "max", [](T a, T b) { return std::max(a, b); });
  check_binary<T>(target, "shl", [](T a, T b) { return U(b) >= width ? T(0) : T(U(a) << b); });
  check_binary<T>(target, "shr", [](T a, T b) { return U(b) >= width ? (a < 0 ? T(-1) : T(0)) : T(a >> b); });
}

TEST_P(Scalars, Int8) { check_integers<int8_t>(GetParam()); }
TEST_P(Scalars, UInt8) { check_integers<uint8_t>(GetParam()); }
TEST_P(Scalars, Int16) { check_integers<int16_t>(GetParam()); }
TEST_P(Scalars, Int32) { check_integers<int32_t>(GetParam()); }
TEST_P(Scalars, Int64) { check_integers<int64_t>(GetParam()); }

template <class T>
void check_powers(const std::string& target) {
  check_binary<T>(target, "pow", [](T a, T e) {
    if (e < 0) return T(a == 1 ? 1 : a == T(-1) ? (e & 1 ? -1 : 1) : 0);
    uint64_t r = 1, base = static_cast<uint64_t>(a);
    for (auto n = static_cast<uint64_t>(e); n; n >>= 1, base *= base)
      if (n & 1) r *= base;
    return static_cast<T>(r);
  });
}

TEST_P(Scalars, IntegerPowers) {
  check_powers<int32_t>(GetParam());
  check_powers<int64_t>(GetParam());
  check_powers<uint8_t>(GetParam());
}

// Every float16 and bfloat16 there and back; and rounding of what lies between.
TEST_P(Scalars, NarrowFloats) {
  for (DType t : {DType::Float16, DType::BFloat16}) {
    Kernel k;
    Expr n = Expr::size(0);
    Value x = k.b.buffer(t, n), wide = k.b.buffer(DType::Float32, n), y = k.b.buffer(DType::Float32, n),
          narrow = k.b.buffer(t, n);
    Expr i = k.b.loop("vector", n, 16);
    k.b.store(wide, i, k.b.convert(k.b.load(x, i), DType::Float32));
    k.b.store(narrow, i, k.b.convert(k.b.load(y, i), t));
    k.compile(GetParam());
    constexpr int64_t kAll = 65536;
    std::vector<uint16_t> in(kAll), out(kAll);
    std::vector<float> widened(kAll), source(kAll);
    for (int64_t j = 0; j < kAll; ++j) in[j] = static_cast<uint16_t>(j);
    for (int64_t j = 0; j < kAll; ++j) {
      uint32_t bits = static_cast<uint32_t>(j) * 65521u + (static_cast<uint32_t>(j) << 13);
      std::memcpy(&source[j], &bits, 4);
      if (j % 3 == 0) source[j] = std::ldexp(static_cast<float>(j % 4097) + 0.5f, static_cast<int>(j % 60) - 40);
    }
    k.run({in.data(), widened.data(), source.data(), out.data()}, {kAll});
    bool half = t == DType::Float16;
    for (int64_t j = 0; j < kAll; ++j) {
      float want = half ? half_to_float(in[j]) : bfloat16_to_float(in[j]);
      ASSERT_TRUE(widened[j] == want || (std::isnan(widened[j]) && std::isnan(want))) << short_name(t) << " " << j;
      uint16_t back = half ? double_to_half(source[j]) : double_to_bfloat16(source[j]);
      if (std::isnan(source[j]))
        ASSERT_TRUE((out[j] & 0x7fff) > (half ? 0x7c00 : 0x7f80)) << short_name(t) << " " << j;
      else
        ASSERT_EQ(out[j], back) << short_name(t) << " " << source[j];
    }
  }
}

TEST_P(Scalars, Conversions) {
  Kernel k;
  Value x = k.f32(8), bytes = k.b.buffer(DType::Int8, 8), wide = k.b.buffer(DType::Int64, 8),
        truth = k.b.buffer(DType::Bool, 8), back = k.f32(8);
  Expr i = k.b.loop("vector", 8, 16);
  Value v = k.b.load(x, i);
  k.b.store(bytes, i, k.b.convert(v, DType::Int8));
  k.b.store(wide, i, k.b.convert(v, DType::Int64));
  k.b.store(truth, i, k.b.convert(v, DType::Bool));
  k.b.store(back, i, k.b.convert(k.b.convert(v, DType::Bool), DType::Float32));
  k.compile(GetParam());
  std::vector<float> in{0, -0.0f, 1.9f, -1.9f, 100, -128, 0.25f, NAN}, floats(8);
  std::vector<int8_t> b(8);
  std::vector<int64_t> w(8);
  std::vector<uint8_t> t(8);
  k.run({in.data(), b.data(), w.data(), t.data(), floats.data()});
  for (int j = 0; j < 7; ++j) {
    EXPECT_EQ(b[j], static_cast<int8_t>(in[j]));
    EXPECT_EQ(w[j], static_cast<int64_t>(in[j]));
  }
  for (int j = 0; j < 8; ++j) {
    EXPECT_EQ(t[j], in[j] != 0);
    EXPECT_EQ(floats[j], in[j] != 0);
  }
}

// Reductions of every combiner and of narrow integers, with a tail.
TEST_P(Scalars, Combiners) {
  Kernel k;
  Expr n = Expr::size(0);
  Value x = k.b.buffer(DType::Int32, n), out = k.b.buffer(DType::Int32, 4), truth = k.b.buffer(DType::Bool, 2);
  Expr i = k.b.loop("vector", n, 16, 2);
  Value v = k.b.load(x, i), positive = k.b.op("gt", {v, k.b.constant(int64_t{0}, DType::Int32)});
  const char* names[] = {"add", "mul", "max", "min"};
  for (int c = 0; c < 4; ++c) k.b.store(out, c, k.b.reduce(v, {i}, names[c]));
  k.b.store(truth, 0, k.b.reduce(positive, {i}, "and"));
  k.b.store(truth, 1, k.b.reduce(positive, {i}, "or"));
  k.compile(GetParam());
  for (size_t size : {size_t{1}, size_t{17}, size_t{75}}) {
    std::vector<int32_t> in(size), got(4), want{0, 1, INT32_MIN, INT32_MAX};
    for (size_t j = 0; j < size; ++j) in[j] = static_cast<int32_t>((j * 29) % 50) - 10;
    bool all = true, any = false;
    for (int32_t e : in) {
      want[0] += e;
      want[1] = static_cast<int32_t>(static_cast<uint32_t>(want[1]) * static_cast<uint32_t>(e));
      want[2] = std::max(want[2], e);
      want[3] = std::min(want[3], e);
      all &= e > 0;
      any |= e > 0;
    }
    uint8_t t[2] = {7, 7};
    k.run({in.data(), got.data(), t}, {static_cast<int64_t>(size)});
    EXPECT_EQ(got, want);
    EXPECT_EQ(t[0], all);
    EXPECT_EQ(t[1], any);
  }
}

// Added up in vectors of every width, and alone: sums of a few integers are exact in any order.
TEST_P(Scalars, PairProducts) {
  constexpr int64_t lanes = 37, terms = 9;
  std::vector<int32_t> a(lanes * terms), b(terms);
  auto number = [](size_t i) { return static_cast<double>(i % 7) - 3; };
  auto word = [&](size_t i) {
    return static_cast<int32_t>(double_to_bfloat16(number(i)) | uint32_t{double_to_bfloat16(number(3 * i + 1))} << 16);
  };
  for (size_t i = 0; i < a.size(); ++i) a[i] = word(i);
  for (size_t k = 0; k < b.size(); ++k) b[k] = word(k + 2);
  for (int width : {1, 4, 8, 16}) {
    Kernel k;
    Value va = k.b.buffer(DType::Int32, lanes * terms), vb = k.b.buffer(DType::Int32, terms), out = k.f32(lanes);
    Expr i = k.b.loop("vector", lanes, width, 2), j = k.b.loop("serial", terms);
    Value item = k.b.pair_product(k.b.load(va, j * lanes + i), k.b.load(vb, j), DType::Float32);
    k.b.store(out, i, k.b.reduce(item, {j}, "add"));
    k.compile(GetParam());
    std::vector<float> got(lanes);
    k.run({a.data(), b.data(), got.data()});
    for (size_t p = 0; p < lanes; ++p) {
      double want = 0;
      for (size_t q = 0; q < terms; ++q) {
        size_t at = q * lanes + p;
        want += number(at) * number(q + 2) + number(3 * at + 1) * number(3 * (q + 2) + 1);
      }
      EXPECT_EQ(got[p], want) << "width " << width << ", lane " << p;
    }
  }
}

// Of signed bytes by unsigned ones, the extreme ones, too, added up in vectors of every width: exact.
TEST_P(Scalars, QuadProducts) {
  constexpr int64_t lanes = 37, terms = 9;
  std::vector<int8_t> a(4 * lanes * terms);
  std::vector<uint8_t> b(4 * terms);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<int8_t>(i % 5 ? i * 37 % 256 - 128 : -128);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<uint8_t>(i % 3 ? i * 91 : 255);
  for (int width : {1, 4, 8, 16}) {
    Kernel k;
    Value va = k.b.buffer(DType::Int32, lanes * terms), vb = k.b.buffer(DType::Int32, terms);
    Value out = k.b.buffer(DType::Int32, lanes);
    Expr i = k.b.loop("vector", lanes, width, 2), j = k.b.loop("serial", terms);
    Value sum = k.b.reduce(k.b.quad_product(k.b.load(va, j * lanes + i), k.b.load(vb, j)), {j}, "add");
    k.b.store(out, i, k.b.op(ops::ScalarOp::Add, {sum, k.b.quad_product(k.b.load(va, i), k.b.load(vb, 0))}));
    k.compile(GetParam());
    std::vector<int32_t> got(lanes);
    k.run({a.data(), b.data(), got.data()});
    for (size_t p = 0; p < lanes; ++p) {
      int32_t want = 0;
      for (size_t q = 0; q <= terms; ++q)
        for (size_t byte = 0; byte < 4; ++byte)
          want += a[4 * (q % terms * lanes + p) + byte] * b[4 * (q % terms) + byte];
      EXPECT_EQ(got[p], want) << "width " << width << ", lane " << p;
    }
  }
}

// Every count of tiles and of steps, and every kind, against sums of integers, which are exact.
TEST_P(Scalars, TileProducts) {
  if (!GetParam().ends_with("+amx")) return;
  for (const char* kind : {"bf16", "ss", "su", "us", "uu"})
    for (auto [rows, columns, steps] :
         {std::array<int64_t, 3>{16, 16, 1}, {16, 32, 3}, {32, 16, 2}, {32, 32, 5}, {16, 32, 0}}) {
      const bool brain = kind[0] == 'b';
      const int64_t each = brain ? 2 : 4, k = 16 * each * steps;
      auto number = [&](int64_t i, char letter) {
        return i * 37 % 101 % 13 - (brain || letter == 's' ? 6 : 0) + (letter == 'u' ? 200 : 0);
      };
      std::vector<uint8_t> a(rows * k * 4 / each + 64), b(k * columns * 4 / each + 64);
      std::vector<double> want(rows * columns);
      auto put = [&](std::vector<uint8_t>& to, int64_t at, int64_t v) {
        uint16_t bits = double_to_bfloat16(static_cast<double>(v));
        brain ? std::memcpy(&to[2 * at], &bits, 2) : (to[at] = static_cast<uint8_t>(v), nullptr);
      };
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t q = 0; q < k; ++q) put(a, i * k + q, number(i * k + q, kind[0]));
      for (int64_t q = 0; q < k; ++q)
        for (int64_t j = 0; j < columns; ++j)
          put(b, (q / each * columns + j) * each + q % each, number(q * 7 + j, kind[1]));
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          for (int64_t q = 0; q < k; ++q)
            want[i * columns + j] += static_cast<double>(number(i * k + q, kind[0]) * number(q * 7 + j, kind[1]));
      Kernel kernel;
      DType of_a = brain ? DType::BFloat16 : kind[0] == 's' ? DType::Int8 : DType::UInt8;
      TileProduct p;
      p.a = kernel.b.buffer(of_a, rows * k);
      p.b = kernel.b.buffer(DType::Int32, k / each * columns);
      Value out = kernel.b.buffer(brain ? DType::Float32 : DType::Int32, rows * columns);
      p.a_row = k;
      p.a_step = 16 * each;
      p.steps = steps;
      p.rows = rows;
      p.columns = columns;
      p.kind = kind;
      p.a_at = p.b_at = 0;
      Value array = kernel.b.tile_product(p);
      Expr i = kernel.b.loop("vector", rows * columns, 16);
      kernel.b.store(out, i, kernel.b.load(array, i));
      kernel.compile(GetParam());
      std::vector<int32_t> got(rows * columns);
      kernel.run({a.data(), b.data(), got.data()});
      for (int64_t i = 0; i < rows * columns; ++i)
        EXPECT_EQ(brain ? std::bit_cast<float>(got[i]) : got[i], want[i])
            << kind << ' ' << rows << 'x' << columns << " at " << i;
    }
}

// Places along a row, and a number of each row that may be no place of it: lanes find it in 32 bits.
TEST_P(Scalars, PlacesAndANumberInCommon) {
  constexpr int64_t kColumns = 53, kStep = 3, kFirst = 2;
  std::vector<int64_t> labels = {0,
                                 2,
                                 5,
                                 158,
                                 161,
                                 52,
                                 -1,
                                 INT64_MIN,
                                 INT64_MAX,
                                 int64_t{1} << 31,
                                 (int64_t{1} << 32) + 5,
                                 (int64_t{1} << 30) + 2,
                                 -(int64_t{1} << 32) + 2};
  auto rows = static_cast<int64_t>(labels.size());
  for (const char* comparison : {"eq", "ne"}) {
    Kernel k;
    Expr n = Expr::size(0), row = k.b.loop("parallel", n), i = k.b.loop("vector", kColumns, 16);
    Value label = k.b.buffer(DType::Int64, n), out = k.b.buffer(DType::Float32, n * kColumns);
    Value place = k.b.index(i * kStep + kFirst), common = k.b.load(label, row);
    Value found = comparison[0] == 'e' ? k.b.op(comparison, {place, common}) : k.b.op(comparison, {common, place});
    k.b.store(out, row * kColumns + i, k.b.convert(found, DType::Float32));
    k.compile(GetParam());
    std::vector<float> got(static_cast<size_t>(rows * kColumns), -1.0F);
    k.run({labels.data(), got.data()}, {rows});
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < kColumns; ++c)
        ASSERT_EQ(got[static_cast<size_t>(r * kColumns + c)],
                  ((c * kStep + kFirst == labels[static_cast<size_t>(r)]) == (comparison[0] == 'e')) ? 1 : 0)
            << comparison << ' ' << labels[static_cast<size_t>(r)] << " at " << c;
  }
}

}  // namespace
}  // namespace brasa::compiler::test
