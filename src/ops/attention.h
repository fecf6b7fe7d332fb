#pragma once

#include <array>

#include <memory>
#include <optional>

#include "ir/facts.h"
#include "ops/table.h"

namespace brasa::ops {

/// Attention of heads [N, heads, length, features].
struct HeadAttention {
  Value query, key, value;
  Value mask = {};  // null, or one that fits the scores by broadcasting
  bool causal = false;
  std::optional<double> scale = {};  // 1/√features
  /// Of dropout: a key whose number i says whether element i of the scores is kept.
  Value random = {};
  double dropout = 0;
};
/// {output, logarithm of the sums} by prim::attention, where the target takes it.
std::optional<std::array<Value, 2>> attention_of_target(const HeadAttention& attention);

/// A call of prim::attention, or of prim::attention_backward, taken apart.
struct AttentionNode {
  explicit AttentionNode(const Args& args);

  bool backward;
  size_t query;                // its place: key and value follow, and the cotangent is before it in a derivative
  size_t mask, random, scale;  // their places
  bool causal;
  double dropout;
  /// The dimensions of the scores over which the gradient of an added mask is summed up; nothing: it has none.
  std::optional<std::vector<int64_t>> summed = {};
};

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
  /// With a mask of what it keeps, and the elements from row to row in that.
  struct Dropout {
    double p;
    Expr row;
  };
  std::optional<Dropout> dropout = {};
  /// Of the mask's gradient: over which of its two dimensions it is summed up, and the step from row to row in what it is added to.
  struct MaskSum {
    bool over_rows, over_keys;
    Expr row;
  };
  std::optional<MaskSum> mask_sum = {};
};
/// Of query [rows, features], key and value [keys, features], the mask if there is one, and what dropout keeps; then what the blocks before it gave, which it goes on with in its place: the
/// largest scores (at first -infinity) and sums of exponentials [rows], and their products with the values [rows, features].
std::unique_ptr<ir::Graph> attention_block(const AttentionBlock& block, ir::Facts& facts);
/// Of these three: the output and the logarithms of the sums.
std::unique_ptr<ir::Graph> attention_end(const AttentionBlock& block, ir::Facts& facts);
/// Of the output's cotangent, query, key, value, the mask if there is one, what dropout keeps, output and logarithms; then sums of the cotangents of query, key
/// and value, and of the mask if asked for, in place.
std::unique_ptr<ir::Graph> attention_block_backward(const AttentionBlock& block, ir::Facts& facts);
/// Of the key of dropout: what it keeps of the first scores, `rows` in number.
std::unique_ptr<ir::Graph> attention_kept(const AttentionBlock& block, ir::Facts& facts);
/// One of these sums in the operands' dtype.
std::unique_ptr<ir::Graph> attention_backward_end(const AttentionBlock& block, ir::Facts& facts);

/// The rows of multi_head.cpp, which belong to the family of attention's kernels.
void add_multi_head(Table& t);

}  // namespace brasa::ops
