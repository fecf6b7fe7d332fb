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
  int64_t range = -1;  // without steps: the dimension of which a row that takes a range took the whole
};

/// A result of a view row with its arguments, of which the first stands for any tensor, and where it lies: a view's way from its
/// base is a list of them, which keeps none of the tensors between, and which views of views share.
struct ViewLink {
  std::shared_ptr<ViewLink> before;  // null: this one starts from the base
  const ops::Row* row = nullptr;
  std::shared_ptr<const ArgStore> args;
  int result = 0;
  std::shared_ptr<const ViewPlan> plan;
  int64_t offset = 0;  // in the storage, in elements of the view

  ViewLink() = default;
  ViewLink(const ViewLink&) = default;
  ~ViewLink();
};
/// The links from the base to `last`.
std::vector<const ViewLink*> links_to(const ViewLink* last);
/// The view of another tensor of the base's sizes.
Tensor replay(const ViewLink* last, Tensor base);

/// What a view knows of where it comes from.
struct ViewInfo : Pooled, autograd::DifferentiableViewMeta {
  Tensor base;
  std::shared_ptr<ViewLink> last;
  uint32_t version = 0;                // of the storage when the history was made
  uint32_t moves = 0, base_moves = 0;  // of the view and its base when it was made
};

/// Makes `self` look at its memory as `view`, a view of it, does; returns it. The in-place form of a row that gives views.
Tensor& look_like(const Tensor& self, const Tensor& view);

/// How a tensor is read from its base; null if it is no view, or if it or its base has moved since.
inline const ViewInfo* view_of(const TensorImpl& t) {
  const ViewInfo* v = t.view.get();
  return v && v->moves == t.moves && v->base_moves == impl_of(v->base)->moves ? v : nullptr;
}
/// The base, or the tensor itself.
inline const Tensor& base_of(const Tensor& t) {
  const ViewInfo* v = view_of(*impl_of(t));
  return v ? v->base : t;
}

/// Makes views of the first argument; false if the strides do not allow one and the row may copy.
bool call_view(Operator& op, CallArgs args, Results& results);

/// The same view without history, of a base without history.
Tensor detached(const Tensor& t);

}  // namespace brasa::eager
