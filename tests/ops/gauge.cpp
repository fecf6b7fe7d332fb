#include "gauge.h"

#include <gtest/gtest.h>

#include <cstring>

#include "compare.h"

// Factorisations that are not unique are compared up to what is open, and no further.
namespace brasa::test {
namespace {

verify::Array array(std::vector<int64_t> shape, std::vector<double> v) {
  verify::Array a{DType::Float64, std::move(shape), std::vector<std::byte>(v.size() * sizeof(double)), {}};
  std::memcpy(a.bytes.data(), v.data(), a.bytes.size());
  return a;
}

struct Eigenvectors {
  verify::Entry expected;
  verify::Outcome got;
  verify::Card card;

  Eigenvectors(std::vector<double> values, std::vector<double> vectors) {
    expected.outputs = {array({2}, values), array({2, 2}, {1, 0, 0, 1})};
    expected.numbers = {false, false};
    got.outputs = {array({2}, std::move(values)), array({2, 2}, std::move(vectors))};
    card.values[DType::Float64] = 1e-9;
  }
  bool same() const {
    auto e = verify::in_basis_of("aten.linalg_eigh.default", expected, got);
    return e && !verify::check(*e, got, card);
  }
};

TEST(Gauge, SignsAreOpen) { EXPECT_TRUE(Eigenvectors({1, 2}, {-1, 0, 0, 1}).same()); }
TEST(Gauge, DirectionsAreNot) { EXPECT_FALSE(Eigenvectors({1, 2}, {0.6, 0.8, -0.8, 0.6}).same()); }
TEST(Gauge, LengthsAreNot) { EXPECT_FALSE(Eigenvectors({1, 2}, {2, 0, 0, 1}).same()); }
TEST(Gauge, TheBasisOfEqualValuesIsOpen) { EXPECT_TRUE(Eigenvectors({2, 2}, {0.6, 0.8, -0.8, 0.6}).same()); }
TEST(Gauge, ABasisIsOrthonormal) { EXPECT_FALSE(Eigenvectors({2, 2}, {1, 0.8, 0, 0.6}).same()); }

TEST(Gauge, CotangentsTurnWithTheVectors) {
  Eigenvectors e({1, 2}, {-1, 0, 0, 1});
  e.expected.cotangents = {std::nullopt, array({2, 2}, {3, 4, 5, 6})};
  auto turned = verify::in_basis_of("aten.linalg_eigh.default", e.expected, e.got);
  ASSERT_TRUE(turned);
  const double want[] = {-3, 4, -5, 6};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(verify::element(*turned->cotangents[1], i).real(), want[i]);
}

TEST(Gauge, OtherOperatorsHaveNone) {
  Eigenvectors e({1, 2}, {-1, 0, 0, 1});
  EXPECT_FALSE(verify::in_basis_of("aten.linalg_qr.default", e.expected, e.got));
}

}  // namespace
}  // namespace brasa::test
