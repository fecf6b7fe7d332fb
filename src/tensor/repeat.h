#pragma once

#include "program/variants.h"
#include "support/epoch.h"
#include "tensor/parse.h"

namespace brasa::eager {

/// Most calls are of row-major tensors of one shape in the host's memory, or of numbers that are inputs, all else left out, without gradients.
/// The variant of such a call follows from its operands' dtypes and their rank alone, and each thread remembers some of them: a call
/// like an earlier one needs neither parsing nor a signature. It lives no longer than the call's arguments.
class Repeat {
 public:
  Repeat(const Operator& op, CallArgs args);
  Repeat(const Repeat&) = delete;

  /// False, with nothing done, if the variant is not known.
  bool run(Results& results);
  /// The variant that served the call, and serves all like it.
  void remember(const program::Variant& variant);
  /// Whether the call is of this kind.
  explicit operator bool() const { return key_ != 0; }

 private:
  static constexpr size_t kMost = 3;
  bool add(size_t position, const Tensor& t);
  void add(size_t position, const Scalar& s);

  Epoch::Reading reading_;  // before the evictions are looked at: what goes after that stays until the call is done
  const uint64_t evicted_;
  const Operator& op_;
  uint64_t key_ = 0;                   // rank, and dtypes by position; 0: not of this kind
  const TensorImpl* shape_ = nullptr;  // one with dimensions
  compiler::Operand operands_[kMost];
  NumberBytes numbers_[kMost];
  size_t count_ = 0;
};

}  // namespace brasa::eager
