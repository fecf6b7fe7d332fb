// Fourier transforms and factorisations in programs that run alone: against the same function in this process.
#include <brasa/export_program.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <tuple>

#include <brasa/brasa.h>
#include <brasa/fft.h>

#include "error_of.h"
#include "export/loaded.h"

namespace brasa {
namespace {

std::vector<Tensor> run(Loaded& program, const std::vector<Tensor>& in, const std::vector<Tensor>& like) {
  std::vector<Tensor> out;
  for (const Tensor& t : like) out.push_back(t.clone().zero_());
  EXPECT_EQ(program.run(in, out), ALONE_OK) << program.context.message;
  return out;
}

// Lengths with small prime factors, with a large one (a convolution), with a middle one; along the last dimension and before it.
TEST(ExportedFunctions, FourierTransforms) {
  manual_seed(7);
  Folder folder;
  auto f = [](const Tensor& x, const Tensor& y) {
    Tensor z = fft::fft(y, std::nullopt, 0), half = fft::rfft(x);
    return std::vector<Tensor>{half.abs(), fft::irfft(half, x.size(1)), real(z),
                               imag(z),    real(fft::ifft2(y)),         imag(fft::ifft2(y))};
  };
  Loaded program(
      export_(f, {rand({3, 12}), rand({5, 4}, kFloat64)}, alone({{0, 1, 2, 200}, {1, 0, 1, 64}, {1, 1, 1, 64}})),
      folder.path);
  for (auto [n, rows, columns] :
       {std::tuple(12, 5, 4), {2, 1, 1}, {59, 1, 3}, {128, 47, 2}, {199, 64, 53}, {106, 61, 30}}) {
    Tensor x = randn({3, n}), y = randn({rows, columns}, kFloat64);
    std::vector<Tensor> want = f(x, y), out = run(program, {x, y}, want);
    for (size_t k = 0; k < want.size(); ++k) {
      // Sums of up to 59 · 64 products of numbers about 1; double precision inside.
      double tolerance = want[k].scalar_type() == kFloat32 ? 2e-5 : 1e-11;
      EXPECT_TRUE(allclose(out[k], want[k], tolerance, tolerance))
          << k << " of " << n << ", " << rows << ", " << columns;
    }
  }
}

TEST(ExportedFunctions, ShortTimeTransforms) {
  Folder folder;
  Tensor window = hann_window(20);
  auto f = [&](const Tensor& x) { return stft(x, 20, 5, 20, window, true, "reflect", false, true, true).abs(); };
  Loaded program(export_(f, {rand({2, 100})}, alone({{0, 1, 60, 400}})), folder.path);
  for (int64_t n : {60, 100, 333}) {
    Tensor x = randn({2, n}), want = f(x);
    EXPECT_TRUE(allclose(run(program, {x}, {want})[0], want, 1e-5, 1e-5)) << n;
  }
}

// What is unique is compared, and products of what is not: signs of vectors are the algorithm's.
TEST(ExportedFunctions, SquareMatrices) {
  manual_seed(8);
  Folder folder;
  auto f = [](const Tensor& x, const Tensor& b) {
    Tensor spd = x.matmul(x.mT()) + eye(x.size(-1)), lower = linalg_cholesky(spd);
    auto [values, vectors] = linalg_eigh(spd);
    auto [p, l, u] = linalg_lu(x);
    return std::vector<Tensor>{lower,
                               linalg_inv(x),
                               linalg_solve(x, b),
                               linalg_det(x),
                               cholesky_solve(b, lower),
                               values,
                               (vectors * values.unsqueeze(-2)).matmul(vectors.mT()) - spd,
                               vectors.mT().matmul(vectors) - eye(x.size(-1)),
                               p,
                               l,
                               u,
                               linalg_solve_triangular(u, b, true)};
  };
  Loaded program(export_(f, {rand({2, 5, 5}), rand({2, 5, 3})},
                         alone({{0, 1, 1, 40, "n"}, {0, 2, 1, 40, "n"}, {1, 1, 1, 40, "n"}})),
                 folder.path);
  for (int64_t n : {1, 2, 5, 31}) {
    Tensor x = randn({2, n, n}) + 3 * eye(n), b = randn({2, n, 3});
    std::vector<Tensor> want = f(x, b), out = run(program, {x, b}, want);
    for (size_t k = 0; k < want.size(); ++k) {
      // Both sides lose digits by the matrices' conditions (up to some 100) and sizes of elements.
      double size = want[k].abs().max().item<double>();
      EXPECT_LE((out[k] - want[k]).abs().max().item<double>(), 2e-4 * (1 + size)) << k << " of " << n;
    }
  }
}

TEST(ExportedFunctions, MatricesOfAnyShape) {
  manual_seed(9);
  Folder folder;
  auto f = [](const Tensor& x) {
    auto [q, r] = linalg_qr(x);
    auto [whole, r2] = linalg_qr(x, "complete");
    auto [u, s, vh] = linalg_svd(x, false);
    auto [all, s2, vh2] = linalg_svd(x, true);
    auto [reflectors, tau] = geqrf(x);
    return std::vector<Tensor>{q,
                               r,
                               whole,
                               r2,
                               s,
                               (u * s).matmul(vh),
                               all.mT().matmul(all),
                               vh2.matmul(vh2.mT()),
                               linalg_pinv(x),
                               linalg_matrix_rank(x).to(kFloat64),
                               reflectors,
                               tau};
  };
  auto largest = [](const Tensor& x) { return x.dim() ? static_cast<double>(x.abs().max().item<double>()) : 1; };
  for (auto [m, n] : {std::pair(6, 4), {4, 6}, {1, 5}, {5, 1}, {30, 30}}) {
    fs::path here = folder.path / (std::to_string(m) + "x" + std::to_string(n));
    fs::create_directory(here);
    Tensor x = randn({m, n}, kFloat64);
    if (m == 6) x.select(1, 3).copy_(x.select(1, 0));  // of rank 3
    Loaded program(export_(f, {rand({m, n}, kFloat64)}, alone()), here);
    std::vector<Tensor> want = f(x), out = run(program, {x}, want);
    for (size_t k = 0; k < want.size(); ++k) {
      // What belongs to columns beyond the rank follows from rounding.
      if (m == 6 && (k == 0 || k == 2 || k >= 10)) continue;
      EXPECT_LE((out[k] - want[k]).abs().max().item<double>(), 1e-9 * (1 + largest(want[k])))
          << k << " of " << m << ", " << n;
    }
  }
}

TEST(ExportedFunctions, WhatTheyDoNotTakeIsSaid) {
  Folder folder;
  Loaded program(export_([](const Tensor& x) { return linalg_cholesky(x) + 0; }, {eye(3)}, alone()), folder.path);
  std::vector<Tensor> out = {zeros({3, 3})};
  EXPECT_EQ(program.run({-eye(3)}, out), ALONE_CHECK);
  EXPECT_NE(std::string(program.context.message).find("positive"), std::string::npos) << program.context.message;
  EXPECT_EQ(program.run({eye(3) * 4}, out), ALONE_OK);
  EXPECT_TRUE(allclose(out[0], eye(3) * 2));
}

// A check of values holds where there are none.
TEST(ExportedFunctions, IntegersAreDividedAlsoWhereThereAreNone) {
  Folder folder;
  auto f = [](const Tensor& x, const Tensor& y, const Tensor& z) {
    return std::make_tuple(x % y, x.floor_divide(z), x.sum());
  };
  Loaded program(export_(f, {arange(6), arange(6) + 1, scalar_tensor(3, kInt64)},
                         alone({{0, 0, 0, 100, "n"}, {1, 0, 0, 100, "n"}})),
                 folder.path);
  for (int64_t n : {0, 1, 6, 100}) {
    Tensor x = arange(n) - 3, y = arange(n) + 1, z = scalar_tensor(n == 0 ? 0 : 3, kInt64);
    std::vector<Tensor> out = {full({n}, -9, kInt64), full({n}, -9, kInt64), full({}, -9, kInt64)};
    ASSERT_EQ(program.run({x, y, z}, out), ALONE_OK) << n << ": " << program.context.message;
    auto [rest, quotient, sum] = f(x, y, z);
    EXPECT_TRUE(out[0].equal(rest) && out[1].equal(quotient) && out[2].equal(sum)) << n;
  }
  std::vector<Tensor> out = {zeros({2}, kInt64), zeros({2}, kInt64), zeros({}, kInt64)};
  EXPECT_EQ(program.run({arange(2), arange(2), scalar_tensor(1, kInt64)}, out), ALONE_CHECK);
  EXPECT_STREQ(program.context.message, "ZeroDivisionError");
}

// A mixture of experts: where each one's rows end is data.
TEST(ExportedFunctions, ProductsOfGroupsOfRows) {
  Folder folder;
  Tensor w = randn({4, 6, 5});
  auto f = [&](const Tensor& x, const Tensor& ends) { return _grouped_mm(x, w, ends); };
  Loaded program(export_(f, {randn({9, 6}), arange(4, kInt32)}, alone({{0, 0, 0, 300}})), folder.path);
  for (const std::vector<int64_t>& ends :
       {std::vector<int64_t>{2, 2, 7, 9}, {0, 0, 0, 1}, {0, 0, 0, 0}, {3, 40, 90, 150}, {300, 300, 300, 300}}) {
    Tensor x = randn({ends.back(), 6}), want = zeros({ends.back(), 5});
    for (int64_t g = 0; g < 4; ++g) {
      int64_t begin = g ? ends[g - 1] : 0;
      if (ends[g] > begin) want.slice(0, begin, ends[g]).copy_(x.slice(0, begin, ends[g]).mm(w[g]));
    }
    std::vector<Tensor> out = {full(want.sizes(), NAN)};
    ASSERT_EQ(program.run({x, tensor(ends).to(kInt32)}, out), ALONE_OK) << program.context.message;
    EXPECT_TRUE(allclose(out[0], want, 1e-4, 1e-5)) << ends.back();
  }
  std::vector<Tensor> out = {empty({9, 5})};
  EXPECT_EQ(program.run({randn({9, 6}), tensor({3, 2, 9, 9}).to(kInt32)}, out), ALONE_CHECK);
}

// A name may have in it what the headers' texts are made by.
TEST(Export, HeadersOfAnyName) {
  Folder folder;
  ExportOptions options = alone();
  options.name = "STAND_ALONE_UPPER_INCLUDE";
  std::string path = (folder.path / "p").string();
  export_([](const Tensor& x) { return x + 1; }, {rand({3})}, options).write_object(path);
  std::ofstream(path + "_main.cpp") << R"(#include "p.hpp"
    int main() {
      float x[3] = {1, 2, 3}, y[3] = {0};
      STAND_ALONE_UPPER_INCLUDE::Program program;
      std::array<STAND_ALONE_UPPER_INCLUDE_tensor, STAND_ALONE_UPPER_INCLUDE_OUTPUTS> out{{{y, sizeof y, {0}}}};
      program.run({{{x, sizeof x, {3}}}}, out);
      return y[2] == 4 ? 0 : 1;
    })";
  EXPECT_EQ(std::system(("c++ -std=c++17 " + path + "_main.cpp " + path + ".o -o " + path + " && " + path).c_str()), 0);
}

// Elements that nobody wrote are no reason to refuse: here each is written, by a permutation.
TEST(ExportedFunctions, ElementsThatNobodyWrote) {
  Folder folder;
  int calls = 0;
  auto f = [&](const Tensor& x) {
    std::memset(empty({16}, kInt64).data_ptr(), ++calls, 128);
    Tensor order = x.argsort(), places = empty({16}, kInt64);
    places.index_put_({order}, arange(16));
    return std::vector<Tensor>{places};
  };
  Tensor x = rand({16});
  Loaded program(export_(f, {x}, alone()), folder.path);
  EXPECT_TRUE(equal(run(program, {x}, {x.to(kInt64)})[0], x.argsort().argsort()));
}

// Numbers of the function that sizes happen to be equal to while it is recorded, sizes of tensors that it makes, and short ranges.
TEST(ExportedFunctions, NumbersThatLookLikeSizes) {
  Folder folder;
  auto f = [](const Tensor& x) {
    int64_t rows = x.size(0), columns = x.size(1);
    Tensor y = x.unsqueeze(2).expand({rows, columns, 6}).reshape({rows * columns, 6});
    Tensor z = x.unsqueeze(2).expand({rows, columns, 5}).reshape({rows, 5 * columns});
    return std::make_tuple(y * 2, z + arange(5 * columns).to(kFloat32), zeros({rows, 11}) + x.sum());
  };
  Loaded program(export_(f, {rand({2, 8})}, alone({{0, 0, 1, 64, "rows"}, {0, 1, 2, 20, "columns"}})), folder.path);
  for (auto [rows, columns] : {std::pair(2, 8), {3, 5}, {9, 20}, {1, 2}}) {
    Tensor x = rand({rows, columns});
    auto [a, b, c] = f(x);
    std::vector<Tensor> got = run(program, {x}, {a, b, c});
    EXPECT_TRUE(allclose(got[0], a) && allclose(got[1], b) && allclose(got[2], c)) << rows << " " << columns;
  }
}

// A matrix is packed once, not for each block of rows that it multiplies (as many bytes as the rows take, twice).
TEST(ExportedFunctions, ExpertsArePackedOnce) {
  Folder folder;
  auto f = [](const Tensor& x, const Tensor& w, const Tensor& ends) {
    return std::vector<Tensor>{_grouped_mm(x, w, ends)};
  };
  Tensor x = randn({1024, 64}), w = randn({2, 64, 70}), ends = tensor({300, 1000}).to(kInt32);
  ExportedProgram exported = export_(f, {x, w, ends}, alone());
  std::string header = exported.header(), name = "ALONE_MEMORY_BYTES ";
  EXPECT_LT(std::stol(header.substr(header.find(name) + name.size())), 850'000);
  Loaded program(exported, folder.path);
  Tensor want = cat({x.slice(0, 0, 300).mm(w[0]), x.slice(0, 300, 1000).mm(w[1]), zeros({24, 70})});
  EXPECT_TRUE(allclose(run(program, {x, w, ends}, {want})[0], want, 1e-4, 1e-4));
}

}  // namespace
}  // namespace brasa
