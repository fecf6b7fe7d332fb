#pragma once

#include <cstdint>

#include "runtime/cuda/ready_kernels.h"

// Attention in one pass, without the matrix of scores in memory, on tensor cores (Dao et al. 2022): kernels of our own, whose text
// attention_kernels.cpp writes.
namespace brasa::runtime::cuda {

/// What a kernel is made for.
struct AttentionKind {
  DType dtype;           // float16, bfloat16, or float32, which is rounded to TF32
  int64_t features;      // of a head
  bool causal;           // query i attends to keys 0 … i
  bool wide = true;      // rows begin at multiples of 16 bytes and are as long
  bool tall = false;     // a warp has 32 rows in place of 16, for which it reads the other side's once
  bool summed = false;   // rows of gradients are added up besides, kRowsOfSum at a time
  bool grouped = false;  // four warps multiply 64 rows together, which Hopper's tensor cores do
  bool cached = false;   // of one row: one of the keys and one of the values lie elsewhere
  int blocks = 1;        // of one row: that share a head's keys, as a cluster
  bool early = false;    // of one row: keys and values may be read while what runs before ends
  auto operator<=>(const AttentionKind&) const = default;
};

/// Rows of heads in memory: neighbours in a row are neighbours in memory; the rest lies in steps of elements.
struct Heads {
  void* data;
  int64_t batch, head, row;
};

/// [batches, heads, queries or keys, features]; `log_sum` is [batches, heads, queries] of float32 without gaps.
struct Attention {
  AttentionKind kind;
  int64_t batches, heads, queries, keys;
  double scale;
  Heads query, key, value;
  void* log_sum;
};

/// A query of each head, with a mask: one of no zeros in its bytes is attended to, all alike in `row`.
struct AttentionOfRow {
  AttentionKind kind;
  int64_t batches, heads, keys;
  double scale;
  Heads query, key, value, mask;
  /// If the kind is cached: what is in the place of the rows of keys and values that this int64 names.
  const void* at;
  Heads key_row, value_row;
};

/// Whether there are kernels for such heads.
bool takes_attention(DType dtype, int64_t features);
/// out = softmax(query · keyᵀ · scale) · value, and the logarithms of the sums of exponentials; scale > 0.
void run_attention(const Attention& a, const Heads& out, Device& device, Stream stream);
/// Of query, key and value.
struct AttentionGradients {
  Heads by_query, by_key, by_value;
};
/// The cotangents for `ct` of `out`. `sums`, if there are any, get the sums of each kRowsOfSum rows of these, rounded as they are: float32, a
/// `row` each.
void run_attention_backward(const Attention& a, const Heads& ct, const Heads& out, const AttentionGradients& to,
                            const AttentionGradients* sums, Device& device, Stream stream);
constexpr int kRowsOfSum = 64;
/// Whether there are kernels that add them up.
bool sums_attention_gradients(DType dtype, int64_t features);

/// Whether there is a kernel for one query each.
bool takes_attention_of_row(DType dtype, int64_t features);
void run_attention_of_row(const AttentionOfRow& a, const Heads& out, Device& device, Stream stream);

/// A block's rows are its part of the queries, or of the keys.
enum class AttentionPass : uint8_t { Forward, ForwardOfHead, ByQuery, ByKey, BackwardOfHead, OfRow };
/// Queries and keys of a head that one block has all of.
constexpr int kMostRowsOfHead = 208;
WrittenKernel attention_kernel(AttentionPass pass, const AttentionKind& kind);
WrittenKernel attention_of_row(const AttentionKind& kind);                      // of AttentionPass::OfRow
WrittenKernel attention_backward_of_head_by_groups(const AttentionKind& kind);  // of BackwardOfHead

}  // namespace brasa::runtime::cuda
