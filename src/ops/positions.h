#pragma once

#include "ops/shapes.h"

// Rows of one tensor that belong to consecutive segments of different lengths.
namespace brasa::ops {

/// v, whose sizes equal these in this call, with these as its sizes; brasa::Error if they do not.
Value with_sizes(Value v, const Shape& shape);
/// Exclusive running sums along the last dimension, with the total behind them: where segments of these lengths begin.
Value segment_starts(Value lengths);
/// starts [batch…, m] ascending: for positions 0 … n - 1 the number of starts at or before each, less one: [batch…, n].
Value segment_of(Value starts, Expr n);

}  // namespace brasa::ops
