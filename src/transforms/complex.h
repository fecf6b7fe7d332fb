#pragma once

#include <memory>

#include "ir/facts.h"
#include "ops/table.h"

namespace brasa::transforms {

/// A graph of primitives in which every complex value is two real ones, so that what follows works on real numbers alone. A complex
/// input or output is the same memory as reals with a last dimension of 2. A graph without complex values is copied as it is.
/// Where complex numbers are only moved, each is an integer instead (`moved_as_words`).
/// With `size_classes` facts tell few rows of an unknown number apart. brasa::Error for a primitive that has no formula on parts.
std::unique_ptr<ir::Graph> split_complex(const ir::Graph& graph, ir::Facts& facts, bool size_classes = false);
/// A graph of primitives whose complex numbers of 64 bits are integers of as many: what moves elements is made for whole ones, as
/// transpositions in registers and rows with borders. Null where there are none, or something computes with them.
std::unique_ptr<ir::Graph> moved_as_words(const ir::Graph& graph, ir::Facts& facts);

}  // namespace brasa::transforms
