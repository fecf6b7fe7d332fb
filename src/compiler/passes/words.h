#pragma once

#include <optional>

#include "compiler/fusion/indexing.h"
#include "compiler/passes/passes.h"

// Operands of products packed into words (int32) of neighbours along what is summed: two of 16 bits or four bytes in each.
namespace brasa::compiler {

/// An operand as it is before what widens it: float32 from narrower floats, int32 from narrower integers.
ir::Value unwidened(ir::Value operand);
/// How many elements of a dtype are in a word.
int64_t in_a_word(DType t);

/// A matrix [b] x, y packed into panels of words [b] size / width, other / in_a_word, width along this dimension of it, which is filled
/// up with zeros, as the other one is up to a multiple of so many words. Bytes as those of the other sign are moved by 128, up or down, with
/// what fills up.
ir::Value panels_of_words(ir::Value v, int64_t dim, ir::Expr width, int64_t multiple, DType as, Primitives& out);

/// The words that an operand is read from, and where, for its element at this index.
struct Words {
  ir::Value value;
  Index at;
};
std::optional<Words> words_of(ir::Value operand, Index at);
/// Whether an operand comes out of words.
bool of_words(ir::Value operand);
/// Whether it lies in panels of words for the processor's tiles (kMatrixTile), by its kept dimension and the one that is summed.
bool in_tiles(ir::Value operand, size_t kept, size_t summed);

}  // namespace brasa::compiler
