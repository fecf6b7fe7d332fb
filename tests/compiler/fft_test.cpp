#include <gtest/gtest.h>

#include "check.h"
#include "compiler/libraries/fourier/lanes.h"
#include "compiler/schedules/machine.h"
#include "ops/fourier.h"
#include "runtime/cpu/features.h"

namespace brasa::compiler {
namespace {

using namespace testing;
using Values = std::vector<ir::Value>;

// Sizes without elements, with one, of small factors, primes, and a product of a large prime.
TEST(Fft, AnySize) {
  for (DType t : {DType::Float32, DType::Float64})
    for (int64_t n : {0, 1, 2, 12, 53, 64, 101, 134})
      for (bool forward : {false, true})
        check_both({{t, {3, n, 2}}, {t, {3, n, 2}}}, [forward](const Values& v) {
          auto [a, b] = ops::prim::fft(v[0], v[1], 1, forward);
          return Values{a, b};
        });
}

// Lines that fill vectors or do not, behind or beside each other.
TEST(Fft, AnyNumberOfLines) {
  for (DType t : {DType::Float32, DType::Float64})
    for (int64_t lines : {1, 7, 16, 19})
      for (int64_t n : {16, 30, 49}) {
        check_both({{t, {lines, n}}, {t, {lines, n}}}, [](const Values& v) {
          auto [a, b] = ops::prim::fft(v[0], v[1], 1, true);
          return Values{a, b};
        });
        check_both({{t, {n, lines}}, {t, {n, lines}}}, [](const Values& v) {
          auto [a, b] = ops::prim::fft(v[0], v[1], 0, false);
          return Values{a, b};
        });
      }
}

// What is split into rows and columns, and a convolution that is.
TEST(Fft, LongLines) {
  for (DType t : {DType::Float32, DType::Float64})
    for (int64_t n : {1100, 2048, 1999})
      check_both({{t, {2, n}}, {t, {2, n}}}, [](const Values& v) {
        auto [a, b] = ops::prim::fft(v[0], v[1], 1, true);
        return Values{a, b};
      });
}

TEST(Fft, FillsTheVectorsOfThisProcessor) {
  Machine machine = machine_of(runtime::cpu::host_target(), 1);
  EXPECT_EQ(fourier::lanes<float>(), machine.lanes(4));
  EXPECT_EQ(fourier::lanes<double>(), machine.lanes(8));
}

}  // namespace
}  // namespace brasa::compiler
