#pragma once

#include "ir/graph.h"

namespace brasa::ops {

/// The words at `index` (int64, any shape) of a key's stream, as int64 in [0, 2^32).
ir::Value words(ir::Value key, ir::Value index);
/// A key whose offset is larger by a multiple of these has the words behind so many.
constexpr int64_t kWordsTogether = 64;
/// Numbers in [0, 1) of such words.
ir::Value uniform_of(ir::Value words, DType dtype);
/// A key of a stream of its own, drawn from a row's share of the generator's, for more numbers than that share.
ir::Value derived_key(ir::Value key);

}  // namespace brasa::ops
