#pragma once

#include <array>

#include <memory>
#include <optional>

#include "ir/facts.h"
#include "ops/table.h"

namespace brasa::ops {

/// {output [N, heads, length, features], logarithm of the sums} by prim::attention, where the target takes it. A mask is null, or fits the scores
/// by broadcasting.
std::optional<std::array<Value, 2>> attention_of_target(Value query, Value key, Value value, Value mask, bool causal,
                                                        std::optional<double> scale);

/// The output alone, with a mask of bools, by prim::masked_attention.
std::optional<Value> masked_attention_of_target(Value query, Value key, Value value, Value mask,
                                                std::optional<double> scale);

/// Queries and keys from which on a target that computes attention block by block keeps it whole: shorter ones fit a cache with their scores, unless
/// blocks leave half of them out.
constexpr int64_t long_attention(bool causal) { return causal ? 192 : 512; }

/// Some rows and some keys of one head of prim::attention.
struct AttentionBlock {
  DType dtype;
  int64_t features;
  double scale;
  Expr rows, keys;
  /// Row 0 attends to the keys up to this one, row 1 to one more. Nothing: to all of them.
  std::optional<Expr> diagonal = {};
  /// Of its mask [rows, keys].
  struct Mask {
    DType dtype;
    Expr row, key;  // steps of elements
  };
  std::optional<Mask> mask = {};
};
/// Of query [rows, features], key and value [keys, features], and the mask if there is one; then what the blocks before it gave, which it goes on with in its place: the
/// largest scores (at first -infinity) and sums of exponentials [rows], and their products with the values [rows, features].
std::unique_ptr<ir::Graph> attention_block(const AttentionBlock& block, ir::Facts& facts);
/// Of these three: the output and the logarithms of the sums.
std::unique_ptr<ir::Graph> attention_end(const AttentionBlock& block, ir::Facts& facts);
/// Of the output's cotangent, query, key, value, the mask if there is one, output and logarithms; then sums of the cotangents of query, key and value, in place.
std::unique_ptr<ir::Graph> attention_block_backward(const AttentionBlock& block, ir::Facts& facts);
/// One of these sums in the operands' dtype.
std::unique_ptr<ir::Graph> attention_backward_end(const AttentionBlock& block, ir::Facts& facts);

/// The rows of multi_head.cpp, which belong to the family of attention's kernels.
void add_multi_head(Table& t);

}  // namespace brasa::ops
