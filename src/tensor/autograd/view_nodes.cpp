#include "tensor/autograd/view_nodes.h"

#include <algorithm>

#include "ops/primitives.h"
#include "ops/primitives/interp.h"
#include "support/error.h"
#include "tensor/execute.h"
#include "transforms/derived.h"

namespace brasa::autograd {
namespace {

std::vector<int64_t> ints(const ir::Arg& a) { return ops::constants(a.get<std::vector<ir::Expr>>()); }

// The gradient of a row's first argument from its result's.
Tensor gradient_of(const ops::Row& row, std::vector<CallArg> args, const Tensor& ct) {
  std::optional<Tensor> cts[] = {ct};
  args.push_back(CallArg(ArrayRef<std::optional<Tensor>>(cts)));
  return eager::call_one(eager::op(transforms::vjp_row(row, {true}, {true})), args);
}

// Any movement by its row's transpose; of what was moved only the shape matters.
Tensor step_backward(const Tensor& ct, const eager::ViewStep& s) {
  Tensor moved =
      eager::call_one("aten::zeros", {IntArrayRef(), s.from_dtype}).expand(IntArrayRef(s.from.data(), s.from.size()));
  std::vector<CallArg> args = {moved};
  eager::Literals literals;
  for (size_t i = 1; i < s.args.size(); ++i) args.push_back(literals.of(s.args[i], s.row->schema.params[i]));
  return gradient_of(*s.row, std::move(args), ct);
}

// A broadcast of which two operand dimensions are one of the result.
bool takes_diagonal(const eager::ViewStep& broadcast) {
  std::vector<int64_t> dims = ints(broadcast.args[2]);
  std::sort(dims.begin(), dims.end());
  return std::adjacent_find(dims.begin(), dims.end()) != dims.end();
}

}  // namespace

variable_list ViewNode::apply(variable_list&& grads) {
  if (!grads[0].defined()) return {Tensor()};
  Tensor ct = std::move(grads[0]);
  static const ops::Row *transpose = &ops::at("prim::transpose"), *reshaped = &ops::at("prim::reshape"),
                        *broadcast = &ops::at("prim::broadcast");
  for (size_t k = plan_->steps.size(); k-- > 0;) {
    const eager::ViewStep& s = plan_->steps[k];
    if (s.row == transpose) {
      std::vector<int64_t> dims = ints(s.args[1]), inverse(dims.size());
      for (size_t i = 0; i < dims.size(); ++i) inverse[dims[i]] = static_cast<int64_t>(i);
      ct = eager::call_one("aten::permute", {ct, IntArrayRef(inverse)});
    } else if (s.row == reshaped) {
      ct = summed(ct, {}, s.from);
    } else if (s.row == broadcast && !takes_diagonal(s)) {
      std::vector<int64_t> dims = ints(s.args[2]), added;
      for (size_t d = 0; d < s.to.size(); ++d) {
        auto it = std::find(dims.begin(), dims.end(), static_cast<int64_t>(d));
        if (it == dims.end() || s.from[it - dims.begin()] != s.to[d]) added.push_back(static_cast<int64_t>(d));
      }
      ct = summed(ct, added, s.from);
    } else {
      ct = step_backward(ct, s);
    }
  }
  return {std::move(ct)};
}

variable_list MemoryView::apply(variable_list&& grads) {
  if (!grads[0].defined()) return {Tensor()};
  Tensor memory = eager::call_one("aten::zeros", {IntArrayRef(extent_), grads[0].scalar_type()});
  Tensor all = gradient_of(ops::at("aten::as_strided"), view_.arguments(memory), grads[0]);
  return {eager::call_one(eager::op("aten::as_strided"), self_.arguments(all))};
}

variable_list CopySlices::apply(variable_list&& grads) {
  variable_list out(next_edges_.size());
  if (!grads[0].defined()) return out;
  BRASA_CHECK(write_, second_time("CopySlices"));
  Tensor result = grads[0].clone(MemoryFormat::Contiguous);
  Tensor slice = eager::replay(view_.get(), result);
  variable_list inner = NodeAccess::apply(*write_, {slice.clone(MemoryFormat::Contiguous)});
  for (size_t i = 0; i < out.size() && i < inner.size(); ++i)
    if (i != self_edge_) out[i] = std::move(inner[i]);
  if (next_edges_[self_edge_].is_valid()) {
    if (inner[self_edge_].defined())
      slice.copy_(inner[self_edge_]);
    else
      slice.zero_();
    out[self_edge_] = std::move(result);
  }
  return out;
}

}  // namespace brasa::autograd
