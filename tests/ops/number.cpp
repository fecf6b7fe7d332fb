#include "ops/number.h"

#include <brasa/error.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/algebra.h"
#include "ops/builder.h"
#include "ops/combiner.h"

namespace brasa::ops {
namespace {

TEST(Number, ArithmeticKeepsTheCategory) {
  EXPECT_EQ((Number(2) + Number(3)).dtype(), DType::Int64);
  EXPECT_EQ((Number(2) * Number(true)).as_int(), 2);
  EXPECT_EQ((Number(2) / Number(4)).as_double(), 0.5);
  EXPECT_EQ((Number(2) - Number(0.5)).as_double(), 1.5);
  EXPECT_EQ((Number(std::complex<double>(1, 2)) * Number(2)).as_complex(), std::complex<double>(2, 4));
}

TEST(Number, IntegersAreExactAndWrap) {
  int64_t large = (int64_t{1} << 53) + 1;
  EXPECT_EQ((Number(large) + Number(2)).as_int(), large + 2);
  EXPECT_EQ((Number(INT64_MAX) + Number(1)).as_int(), INT64_MIN);
  EXPECT_EQ((-Number(INT64_MIN)).as_int(), INT64_MIN);
}

TEST(Number, NegationKeepsZerosSign) {
  EXPECT_TRUE(std::signbit((-Number(0.0)).as_double()));
  EXPECT_FALSE(std::signbit((-Number(-0.0)).as_double()));
}

TEST(Number, AComplexOneIsNoDouble) { EXPECT_THROW(Number(std::complex<double>(1, 2)).as_double(), Error); }

// The code generator holds real constants for real elements.
TEST(Number, AComplexLiteralWithoutAnImaginaryPartIsReal) {
  ir::Graph graph;
  ir::Facts facts;
  Builder builder(graph, facts);
  for (Value v :
       {full(std::complex<double>(1.5, 0), {}, DType::Float32), scalar(std::complex<double>(1.5, 0), DType::Float32)})
    EXPECT_EQ(v.node->arg<double>(0), 1.5);
  EXPECT_THROW(full(std::complex<double>(1.5, 1), {}, DType::Float32), Error);
  EXPECT_NO_THROW(full(std::complex<double>(1.5, 1), {}, DType::Complex64));
}

TEST(Combiner, IdentityChangesNothing) {
  for (DType t : {DType::Bool, DType::UInt8, DType::Int8, DType::Int16, DType::Int32, DType::Int64})
    for (const char* name : {"add", "mul", "max", "min", "and", "or"}) {
      Combiner c = combiner_of(name);
      int64_t bits = 8 * size_of(t);
      int64_t least = t == DType::Bool || t == DType::UInt8 ? 0 : INT64_MIN >> (64 - bits);
      int64_t most = t == DType::Bool ? 1 : t == DType::UInt8 ? 255 : INT64_MAX >> (64 - bits);
      for (int64_t v : {least, int64_t{0}, int64_t{1}, most})
        EXPECT_EQ(combine(c, identity(c, t).as_int(), v), v) << name << " of " << brasa::name(t);
    }
  for (const char* name : {"add", "mul", "max", "min"})
    EXPECT_EQ(combine(combiner_of(name), identity(name, DType::Float32).as_double(), -2.5), -2.5) << name;
  EXPECT_THROW(combiner_of("mean"), InternalError);
}

}  // namespace
}  // namespace brasa::ops
