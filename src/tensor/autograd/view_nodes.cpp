#include "tensor/autograd/view_nodes.h"

#include <algorithm>

#include "ops/primitives.h"
#include "support/error.h"
#include "tensor/execute.h"
#include "tensor/geometry.h"
#include "tensor/recorder.h"
#include "transforms/derived.h"

namespace brasa::autograd {
namespace {

std::vector<int64_t> constants(const ir::Arg& a) {
  std::vector<int64_t> out;
  for (ir::Expr e : a.get<std::vector<ir::Expr>>()) out.push_back(e.constant());
  return out;
}

Tensor reshape(const Tensor& t, std::span<const int64_t> sizes) {
  if (std::equal(sizes.begin(), sizes.end(), t.sizes().begin(), t.sizes().end())) return t;
  return eager::call_one("aten::reshape", {t, IntArrayRef(sizes.data(), sizes.size())});
}

Tensor sum_dims(const Tensor& t, const std::vector<int64_t>& dims) {
  if (dims.empty()) return t;
  return eager::call_one("aten::sum.dim_IntList", {t, IntArrayRef(dims), false});
}

// Any movement by its row's transpose; of what was moved only the shape matters.
Tensor step_backward(const Tensor& ct, const eager::ViewStep& s) {
  Tensor moved =
      eager::call_one("aten::zeros", {IntArrayRef(), s.from_dtype}).expand(IntArrayRef(s.from.data(), s.from.size()));
  std::vector<CallArg> args = {moved};
  std::vector<std::vector<int64_t>> lists(s.args.size());
  for (size_t i = 1; i < s.args.size(); ++i) {
    if (s.args[i].get_if<std::vector<ir::Expr>>())
      args.push_back(IntArrayRef(lists[i] = constants(s.args[i])));
    else
      args.push_back(s.args[i].get<ir::Expr>().constant());
  }
  std::optional<Tensor> cts[] = {ct};
  args.push_back(CallArg(ArrayRef<std::optional<Tensor>>(cts)));
  return eager::call_one(eager::op(transforms::vjp_row(*s.row, {true}, {true})), args);
}

// A broadcast of which two operand dimensions are one of the result.
bool takes_diagonal(const eager::ViewStep& broadcast) {
  std::vector<int64_t> dims = constants(broadcast.args[2]);
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
      std::vector<int64_t> dims = constants(s.args[1]), inverse(dims.size());
      for (size_t i = 0; i < dims.size(); ++i) inverse[dims[i]] = static_cast<int64_t>(i);
      ct = eager::call_one("aten::permute", {ct, IntArrayRef(inverse)});
    } else if (s.row == reshaped) {
      ct = reshape(ct, s.from);
    } else if (s.row == broadcast && !takes_diagonal(s)) {
      std::vector<int64_t> dims = constants(s.args[2]), summed;
      for (size_t d = 0; d < s.to.size(); ++d) {
        auto it = std::find(dims.begin(), dims.end(), static_cast<int64_t>(d));
        if (it == dims.end() || s.from[it - dims.begin()] != s.to[d]) summed.push_back(static_cast<int64_t>(d));
      }
      ct = reshape(sum_dims(ct, summed), s.from);
    } else {
      ct = step_backward(ct, s);
    }
  }
  return {std::move(ct)};
}

variable_list MemoryView::apply(variable_list&& grads) {
  if (!grads[0].defined()) return {Tensor()};
  static const ops::Row& row = transforms::vjp_row(ops::at("aten::as_strided"), {true}, {true});
  Tensor memory = eager::call_one("aten::zeros", {IntArrayRef(extent_), grads[0].scalar_type()});
  std::optional<Tensor> ct[] = {grads[0]};
  std::vector<CallArg> args = view_.arguments(memory);
  args.push_back(CallArg(ArrayRef<std::optional<Tensor>>(ct)));
  Tensor all = eager::call_one(eager::op(row), args);
  return {eager::call_one(eager::op("aten::as_strided"), self_.arguments(all))};
}

variable_list CopySlices::apply(variable_list&& grads) {
  variable_list out(next_edges_.size());
  if (!grads[0].defined()) return out;
  BRASA_CHECK(write_, second_time("CopySlices"));
  Tensor result = grads[0].clone(MemoryFormat::Contiguous);
  Tensor slice = view_.replay(result);
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
