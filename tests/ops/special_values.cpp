#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <brasa/error.h>

#include "ops/algebra.h"
#include "ops/interpreter.h"
#include "ops/primitives/interp.h"

// Special functions at single points, in float64, against values computed with 30 digits.
namespace brasa::test {
namespace {

struct Point {
  const char* op;
  std::vector<double> at;
  double value;
};

const Point kPoints[] = {
    {"special_i0", {2.5}, 3.289839144050123},
    {"special_i1", {-9.5}, -1658.4530777821342},
    {"special_i0e", {30.0}, 0.073145946482237294},
    {"special_i1e", {0.25}, 0.098112628697368247},
    {"special_modified_bessel_k0", {0.5}, 0.92441907122766586},
    {"special_modified_bessel_k1", {7.0}, 0.00045418248688489697},
    {"special_scaled_modified_bessel_k0", {40.0}, 0.19755558495729817},
    {"special_scaled_modified_bessel_k1", {1.0}, 1.6361534862632582},
    {"special_bessel_j0", {1.5}, 0.51182767173591813},
    {"special_bessel_j1", {-2.0}, -0.57672480775687339},
    {"special_bessel_y0", {1.5}, 0.38244892379775884},
    {"special_bessel_y1", {0.5}, -1.4714723926702431},
    {"special_spherical_bessel_j0", {0.25}, 0.98961583701809172},
    {"special_airy_ai", {1.5}, 0.07174949700810541},
    {"special_airy_ai", {5.0}, 0.00010834442813607442},
    {"special_airy_ai", {-9.0}, -0.022133721547341404},
    {"special_erfcx", {0.5}, 0.61569034419292587},
    {"special_erfcx", {60.0}, 0.0094018542751763886},
    {"special_erfcx", {-2.0}, 108.94090438997797},
    {"special_log_ndtr", {-30.0}, -454.3212439563432},
    {"special_log_ndtr", {3.0}, -0.0013508099647481938},
    {"special_ndtri", {0.025}, -1.9599639845400542},
    {"special_ndtri", {1e-20}, -9.262340089798408},
    {"special_zeta", {2.5, 1.5}, 0.59025638507643129},
    {"special_zeta", {3.0, -2.25}, -61.948474887030083},
    {"special_zeta", {4.0, -0.5}, 32.234848505667073},
    {"igamma", {2.5, 1.0}, 0.15085496391539036},
    {"igammac", {2.5, 9.0}, 0.0029464045878802904},
    {"igamma", {300.0, 310.0}, 0.72248875417186111},
    {"igammac", {0.01, 0.001}, 0.061429347473871015},
    {"special_chebyshev_polynomial_t", {0.3, 20.0}, 0.98213013105489211},
    {"special_chebyshev_polynomial_u", {1.5, 11.0}, 46368.0},
    {"special_chebyshev_polynomial_v", {-1.5, 9.0}, -9349.0},
    {"special_chebyshev_polynomial_w", {-1.5, 10.0}, 10946.0},
    {"special_shifted_chebyshev_polynomial_t", {0.3, 5.0}, -0.88384},
    {"special_hermite_polynomial_h", {1.5, 10.0}, -85401.0},
    {"special_hermite_polynomial_he", {1.5, 7.0}, 54.4921875},
    {"special_laguerre_polynomial_l", {2.5, 12.0}, -0.54584474517981696},
    {"special_legendre_polynomial_p", {0.5, 30.0}, 0.14984881490061079},
};

double evaluated(const std::string& op, const std::vector<double>& at) {
  ir::Graph graph;
  ir::Facts facts;
  std::vector<ops::Array> inputs;
  ir::Args args;
  for (double x : at) {
    args.emplace_back(graph.add_input({DType::Float64, {}, false}));
    inputs.push_back(ops::make_array(DType::Float64, {}));
    ops::set(inputs.back(), 0, x);
  }
  {
    ops::Builder builder(graph, facts);
    for (ir::Value v : builder.call(ops::at("aten::" + op), args)) graph.add_output(v);
  }
  // Checks that the row makes are outputs too, and come before.
  return ops::get(ops::evaluate(graph, inputs).back(), 0);
}

class SpecialValues : public testing::TestWithParam<Point> {};

TEST_P(SpecialValues, AreRight) {
  const Point& p = GetParam();
  double y = evaluated(p.op, p.at);
  EXPECT_NEAR(y, p.value, 2e-10 * std::max(1e-4, std::fabs(p.value))) << p.op;
}

INSTANTIATE_TEST_SUITE_P(Table, SpecialValues, testing::ValuesIn(kPoints));

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(SpecialEdges, AreThoseOfPyTorch) {
  EXPECT_EQ(evaluated("special_bessel_y0", {0}), -kInf);
  EXPECT_TRUE(std::isnan(evaluated("special_bessel_y1", {-1})));
  EXPECT_EQ(evaluated("special_modified_bessel_k0", {0}), kInf);
  EXPECT_EQ(evaluated("special_ndtri", {0}), -kInf);
  EXPECT_EQ(evaluated("special_ndtri", {1}), kInf);
  EXPECT_TRUE(std::isnan(evaluated("special_ndtri", {1.5})));
  EXPECT_EQ(evaluated("special_zeta", {1, 2}), kInf);
  EXPECT_TRUE(std::isnan(evaluated("special_zeta", {0.5, 2})));
  EXPECT_EQ(evaluated("special_zeta", {3, -2}), kInf);
  for (double order : {200.0, 1000.0, 1e30, 1e300, kInf}) {
    EXPECT_EQ(evaluated("special_zeta", {order, 1}), 1);
    EXPECT_NEAR(evaluated("special_zeta", {order, 1.5}), std::pow(1.5, -order), 1e-45);
    EXPECT_EQ(evaluated("special_zeta", {1e5 * order, 0.5}), kInf);
  }
  EXPECT_EQ(evaluated("special_zeta", {1e5 + 1, -0.25}), -kInf);
  EXPECT_EQ(evaluated("special_zeta", {1e5 + 1, -0.5}), 0);
  EXPECT_EQ(evaluated("igamma", {0, 2}), 1);
  EXPECT_TRUE(std::isnan(evaluated("igamma", {0, 0})));
  EXPECT_EQ(evaluated("igammac", {2, 0}), 1);
  EXPECT_TRUE(std::isnan(evaluated("special_airy_ai", {kInf})));
  EXPECT_EQ(evaluated("special_legendre_polynomial_p", {0.5, -1}), 0);
  EXPECT_EQ(evaluated("special_chebyshev_polynomial_w", {1, 20}), 41);
}

TEST(SpecialEdges, DegreesHaveABound) {
  EXPECT_THROW(evaluated("special_laguerre_polynomial_l", {0.5, 65}), Error);
  EXPECT_TRUE(std::isnan(evaluated("special_hermite_polynomial_h", {0.5, 600})));
}

}  // namespace
}  // namespace brasa::test
