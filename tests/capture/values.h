#pragma once

#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <gtest/gtest.h>

namespace brasa {

/// Numbers without a pattern, the same in every run.
inline Tensor numbers(IntArrayRef sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return (arange(n, kFloat32) * 0.37 + 0.1).sin().reshape(sizes);
}

inline void expect_close(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.sizes(), b.sizes());
  ASSERT_EQ(a.scalar_type(), b.scalar_type());
  EXPECT_TRUE(allclose(a, b, 1e-5, 1e-6)) << a << "\n" << b;
}

}  // namespace brasa
