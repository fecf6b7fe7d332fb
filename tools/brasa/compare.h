#pragma once

#include <complex>
#include <optional>
#include <string>

#include "vectors.h"

namespace brasa::verify {

/// What is wrong with a call's outcome, or nothing.
std::optional<std::string> check(const Entry& expected, const Outcome& got, const Card& card);

/// Element i, in row-major order, of floating or complex numbers.
std::complex<double> element(const Array& a, int64_t i);

/// An array for people: "[0.5, 1.0, …] float32[3, 5]".
std::string describe(const Array& a, int64_t most = 12);

}  // namespace brasa::verify
