#pragma once

#include "ops/algebra.h"

// Complex numbers and their parts.
namespace brasa::ops {

/// x itself if it is real.
Value real(Value x);
/// Zeros if x is real.
Value imag(Value x);
/// Of two real parts of one dtype and shape.
Value complex(Value real, Value imag);
/// x itself if it is real.
Value conj(Value x);
/// |x| without overflow of the squares; of complex x a real number.
Value magnitude(Value x);
Value magnitude(Value real, Value imag);

}  // namespace brasa::ops
