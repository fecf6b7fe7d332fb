#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include <brasa/brasa.h>

namespace brasa::testing {

inline std::vector<double> values(const Tensor& t) {
  NoGradGuard guard;
  Tensor flat = t.detach().cpu().to(kDouble).contiguous();
  const double* at = flat.data_ptr<double>();
  return {at, at + flat.numel()};
}

/// The elements in row-major order, exactly.
template <class T>
std::vector<T> elements(const Tensor& t) {
  Tensor flat = t.cpu().contiguous();
  const T* at = flat.data_ptr<T>();
  return {at, at + flat.numel()};
}

inline void expect_values(const Tensor& t, const std::vector<double>& expected, double tolerance = 1e-6) {
  std::vector<double> got = values(t);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], tolerance * std::max(1.0, std::fabs(expected[i]))) << "element " << i;
}

/// As the CPU's tensor prints.
inline std::string text(const Tensor& t) {
  std::ostringstream out;
  out << (t.defined() ? t.cpu() : t);
  return out.str();
}

/// The message of the brasa::Error that f throws, or work that it gave to the default device; "" if none does.
template <class F>
std::string error_of(F f) {
  try {
    f();
    synchronize(get_default_device());
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace brasa::testing
