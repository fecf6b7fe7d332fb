#pragma once

#include <memory>
#include <vector>

#include <brasa/autograd.h>

#include "support/pooled.h"
#include "tensor/args.h"
#include "tensor/dispatch.h"

namespace brasa::eager {

/// One movement primitive with its numbers, and the sizes that it starts from.
struct ViewStep {
  const ops::Row* row;
  ir::Args args;  // args[0] stands for the operand
  Sizes from, to;
  DType from_dtype, to_dtype;
};

/// How a result of a view row lies in its operand's storage.
struct ViewPlan {
  std::vector<ViewStep> steps;
  Sizes sizes, strides;
  DType dtype;
  int64_t offset = 0;  // relative to the operand's, in elements of the view
};

/// A result of a view row with its arguments, of which the first stands for any tensor.
struct ViewLink {
  const ops::Row* row = nullptr;
  std::shared_ptr<const ArgStore> args;
  int result = 0;
};

/// What a view knows of where it comes from: its link replays it from `parent`.
struct ViewInfo : Pooled, autograd::DifferentiableViewMeta, ViewLink {
  Tensor parent, base;  // base: the tensor at the end of the chain of parents
  std::shared_ptr<const ViewPlan> plan;
  uint32_t version = 0;                  // of the storage when the history was made
  uint32_t moves = 0, parent_moves = 0;  // of the view and its parent when it was made

  ViewInfo() = default;
  ViewInfo(const ViewInfo&) = default;
  ~ViewInfo();
};

/// How a tensor is read from its parent; null if it is no view, or if it or its parent has moved since.
inline const ViewInfo* view_of(const TensorImpl& t) {
  const ViewInfo* v = t.view.get();
  return v && v->moves == t.moves && v->parent_moves == impl_of(v->parent)->moves ? v : nullptr;
}
/// The tensor at the end of that chain.
const Tensor& base_of(const Tensor& t);

/// Makes views of the first argument; false if the strides do not allow one and the row may copy.
bool call_view(Operator& op, CallArgs args, Results& results);

/// The chain of view rows from a view's base to the view, without the tensors between.
struct ViewChain {
  std::vector<ViewLink> links;
  /// The view of another tensor of the base's sizes.
  Tensor replay(Tensor base) const;
};
ViewChain chain_from_base(const Tensor& view);

/// The same view without history, of parents without history.
Tensor detached(const Tensor& t);

}  // namespace brasa::eager
