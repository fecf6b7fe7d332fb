#pragma once

#include <cstdint>

// What a row of the table says beside its meaning. Other folders read these facts and keep no lists of names.
namespace brasa::ops {

/// What autocast does to the floating operands of a call.
enum class Autocast : uint8_t {
  None,
  Lower,             // they become autocast's dtype
  Float32,           // they become float32
  Float32ByDefault,  // they become float32 unless the call names the dtype to compute in
  Widest,            // float32 if one of them is, else autocast's dtype
  Refused,           // the call is an error: its results would often overflow
};

/// What the dtype of a tensor given as out= may be.
enum class Out : uint8_t {
  Own,      // the result's
  Cast,     // any that the result can be cast to
  Decides,  // any: the call computes in it, as if it were the argument `dtype`
};

/// What an operator computes from where its operand lies in memory, and not from values; a tensor library does it.
enum class Memory : uint8_t {
  None,
  Stride,
  StorageOffset,
  EmptyLike,
  EmptyStrided,
  NewEmptyStrided,
  EmptyPermuted,
  AsStridedCopy,
};

/// How an operator takes sparse operands: src/tensor/sparse has one function for each form. Without one they are an error.
enum class Sparse : uint8_t {
  None,
  Linear,  // of the values; entries with the same index need not be added before
  Each,    // 0 stays 0: of the values after entries with the same index are added
  Power,
  Copy,
  CopyFrom,
  Zeros,
  Densified,
  Add,
  Sub,
  Mul,
  Div,
  MatrixMatrix,
  MatrixVector,
  BatchMatrix,
  Matmul,
  AddMatrix,
  AddVector,
  LinearLayer,
  Sum,
  SumOver,
  Norm,
  Softmax,
  LogSoftmax,
  Any,
  MatrixTranspose,
  Transpose,
  Permute,
  Unsqueeze,
  Select,
  Narrow,
  Slice,
  IndexSelect,
  Cat,
  Stack,
  // Lookups in a dense weight, which may ask for a sparse gradient.
  Embedding,
  EmbeddingBag,
};
inline constexpr int kSparseForms = static_cast<int>(Sparse::EmbeddingBag) + 1;

}  // namespace brasa::ops
