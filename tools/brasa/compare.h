#pragma once

#include <optional>
#include <string>

#include "vectors.h"

namespace brasa::verify {

/// What is wrong with a call's outcome, or nothing.
std::optional<std::string> check(const Entry& expected, const Outcome& got, const Card& card);

/// An array for people: "[0.5, 1.0, …] float32[3, 5]".
std::string describe(const Array& a, int64_t most = 12);

}  // namespace brasa::verify
