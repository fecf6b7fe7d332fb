#pragma once

#include <algorithm>
#include <cstddef>

namespace brasa::ops {

/// A string as a template argument: rows that differ in a name alone share one composition.
template <size_t N>
struct Literal {
  char text[N];
  constexpr Literal(const char (&s)[N]) { std::copy_n(s, N, text); }  // NOLINT
};

}  // namespace brasa::ops
