#pragma once

#include <complex>
#include <optional>
#include <string>

#include "vectors.h"

namespace brasa::verify {

/// Eigenvectors and singular vectors are given up to a phase, in the space of equal values up to a unitary matrix, and eigenvalues of
/// general matrices in any order. The expected vectors, with their cotangents, in the basis and the order that an outcome came
/// with: still the same factorisation, so that an outcome is compared with it as with any expectation. Nothing for other overloads.
std::optional<Entry> in_basis_of(const std::string& overload, const Entry& expected, const Outcome& got);

}  // namespace brasa::verify
