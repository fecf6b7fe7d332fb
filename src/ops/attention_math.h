#pragma once

#include <array>
#include <limits>
#include <optional>

#include "ops/attention.h"

// softmax(query · keyᵀ · scale + mask) · value and its derivative, as they are computed where no target has a kernel for them.
namespace brasa::ops {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct AttentionOperands {
  Value query, key, value, mask;  // [N, heads, length, features], wide
  std::optional<Expr> diagonal;   // row 0 attends to the keys up to this one, row 1 to one more
  Value scale;
  Shape scores;
  Value kept;  // which of the scores dropout leaves; null: all
  double dropout = 0;
};
/// Whether kernels take a mask of this dtype.
bool is_mask_for(DType mask, DType query);
/// The number that scores are multiplied by: 1/√features unless it is given.
Value attention_scale(std::optional<double> scale, Expr features, DType dtype);
/// brasa::Error where they do not fit together.
AttentionOperands attention_operands(const HeadAttention& attention);
/// Probabilities, or what goes back to them, behind dropout.
Value dropped(Value p, Value kept, double dropout);
Value dropped(const AttentionOperands& o, Value p);
Value attention_scores(const AttentionOperands& o);
/// A number for each row, in the shape of what has rows of more: scores, or results.
Value by_row(Value v, const Shape& shape);
/// {output, logarithms of the sums}. A row in which nothing may be attended to gives zeros, and 0 as its logarithm.
std::array<Value, 2> attention_by_scores(const AttentionOperands& o, Value q, Value v);
/// Σ dO O of each row. A cotangent of logsumexp itself adds P times it to dS.
Value attention_inner(Value g, Value g_log, Value out);
/// {dQ, dK, dV, dS}, wide, for the cotangent `g` of the output; `inner` is its attention_inner. An added mask has dS, too.
std::array<Value, 4> attention_cotangents(const AttentionOperands& o, Value g, Value log_sum, Value inner);

}  // namespace brasa::ops
