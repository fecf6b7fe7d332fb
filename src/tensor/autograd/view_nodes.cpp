#include "tensor/autograd/view_nodes.h"

#include <algorithm>
#include <optional>

#include <brasa/factories.h>

#include "ops/primitives.h"
#include "ops/primitives/interp.h"
#include "support/error.h"
#include "support/lazy.h"
#include "tensor/execute.h"
#include "tensor/geometry.h"
#include "tensor/recorder.h"
#include "transforms/derived.h"

namespace brasa::autograd {
namespace {

std::vector<int64_t> ints(const ir::Arg& a) { return ops::constants(a.get<std::vector<ir::Expr>>()); }

// The gradient of a row's first argument from its results', of which some may be undefined.
Tensor gradient_of(const ops::Row& row, std::vector<CallArg> args, const variable_list& grads) {
  std::vector<std::optional<Tensor>> results(grads.size()), cts;
  std::vector<bool> given;
  for (const Tensor& g : grads) {
    given.push_back(g.defined());
    cts.push_back(g.defined() ? std::optional(g) : std::nullopt);
  }
  args.push_back(CallArg(ArrayRef<std::optional<Tensor>>(results)));
  args.push_back(CallArg(ArrayRef<std::optional<Tensor>>(cts)));
  return eager::call_one(eager::op(transforms::vjp_row(row, {true}, given)), args);
}

// A tensor of which only the shape matters.
Tensor stand_in(const Sizes& sizes, DType dtype) {
  return eager::call_one("aten::zeros", {IntArrayRef(), dtype}).expand(IntArrayRef(sizes.data(), sizes.size()));
}

// Any movement by its row's transpose.
Tensor step_backward(const Tensor& ct, const eager::ViewStep& s) {
  Tensor moved = stand_in(s.from, s.from_dtype);
  std::vector<CallArg> args = {moved};
  eager::Literals literals;
  for (size_t i = 1; i < s.args.size(); ++i) args.push_back(literals.of(s.args[i], s.row->schema.params[i]));
  return gradient_of(*s.row, std::move(args), {ct});
}

// A broadcast of which two operand dimensions are one of the result.
bool takes_diagonal(const eager::ViewStep& broadcast) {
  std::vector<int64_t> dims = ints(broadcast.args[2]);
  std::sort(dims.begin(), dims.end());
  return std::adjacent_find(dims.begin(), dims.end()) != dims.end();
}

// Of a slice along one dimension; nothing for others.
std::optional<Tensor> slice_backward(const Tensor& ct, const eager::ViewStep& slice) {
  std::vector<int64_t> start = ints(slice.args[1]), step = ints(slice.args[3]), cut;
  for (size_t d = 0; d < start.size(); ++d)
    if (slice.from[d] != slice.to[d]) cut.push_back(static_cast<int64_t>(d));
  if (cut.size() != 1) return std::nullopt;
  auto d = static_cast<size_t>(cut[0]);
  // The last element's place is one that the next step does not reach either.
  int64_t end = start[d] + (slice.to[d] - 1) * step[d] + 1;
  IntArrayRef sizes(slice.from.data(), slice.from.size());
  return eager::call_one("aten::slice_backward", {ct, sizes, cut[0], start[d], std::max(end, start[d]), step[d]});
}

// Whether both parts of each number lie beside each other, the first one at an even place. Strides of dimensions of 0 or 1 count, too.
bool lies_in_pairs(const Tensor& parts) {
  int64_t odd = parts.storage_offset() % 2;
  for (int64_t d = 0; d + 1 < parts.dim(); ++d) odd |= parts.stride(d) % 2;
  return odd == 0 && parts.stride(-1) == 1;
}

struct Movements {
  const ops::Row *transpose = &ops::at("prim::transpose"), *reshape = &ops::at("prim::reshape"),
                 *broadcast = &ops::at("prim::broadcast"), *slice = &ops::at("prim::slice"),
                 *as_real = &ops::at("prim::as_real"), *as_complex = &ops::at("prim::as_complex");
};
const Movements& movements() {
  static constinit Lazy<Movements> all;
  return *all;
}

// A diagonal of which slices and others leave more out: copied to its place among zeros, in place of a tensor of zeros for each step. Nothing
// for other ways.
std::optional<Tensor> diagonal_backward(const Tensor& ct, const eager::ViewPlan& plan) {
  const Movements& movement = movements();
  const Sizes& from = plan.steps[0].from;
  std::vector<int64_t> strides(from.size(), 1);
  for (size_t d = from.size(); d-- > 1;) strides[d - 1] = strides[d] * from[d];
  int64_t offset = 0, diagonals = 0;
  for (const eager::ViewStep& s : plan.steps) {
    std::vector<int64_t> next(s.to.size(), 0);
    if (s.row == movement.transpose) {
      std::vector<int64_t> dims = ints(s.args[1]);
      for (size_t d = 0; d < next.size(); ++d) next[d] = strides[dims[d]];
    } else if (s.row == movement.slice) {
      std::vector<int64_t> starts = ints(s.args[1]), steps = ints(s.args[3]);
      for (size_t d = 0; d < next.size(); ++d) {
        offset += starts[d] * strides[d];
        next[d] = steps[d] * strides[d];
      }
    } else if (s.row == movement.broadcast && takes_diagonal(s) && s.from.size() == s.to.size() + 1) {
      std::vector<int64_t> dims = ints(s.args[2]);
      ++diagonals;
      for (size_t d = 0; d < dims.size(); ++d) next[dims[d]] += strides[d];
    } else {
      return std::nullopt;
    }
    strides = std::move(next);
  }
  if (diagonals == 0 || ct.numel() == 0) return std::nullopt;
  Tensor out = eager::call_one("aten::new_zeros", {ct, IntArrayRef(from.data(), from.size())});
  out.as_strided(ct.sizes(), IntArrayRef(strides), offset).copy_(ct);
  return out;
}

Tensor back_along(const eager::ViewPlan& plan, Tensor ct) {
  const Movements& movement = movements();
  if (plan.steps.empty()) return ct;
  if (std::optional<Tensor> spread = diagonal_backward(ct, plan)) return std::move(*spread);
  for (size_t k = plan.steps.size(); k-- > 0;) {
    const eager::ViewStep& s = plan.steps[k];
    if (s.row == movement.transpose) {
      std::vector<int64_t> dims = ints(s.args[1]), inverse(dims.size());
      for (size_t i = 0; i < dims.size(); ++i) inverse[dims[i]] = static_cast<int64_t>(i);
      ct = eager::call_one("aten::permute", {ct, IntArrayRef(inverse)});
    } else if (s.row == movement.as_complex) {
      ct = eager::call_one("aten::view_as_real", {ct});
    } else if (s.row == movement.as_real) {
      if (!lies_in_pairs(ct)) ct = ct.clone(MemoryFormat::Contiguous);
      ct = eager::call_one("aten::view_as_complex", {ct});
    } else if (s.row == movement.reshape) {
      ct = summed(ct, {}, s.from);
    } else if (s.row == movement.broadcast && !takes_diagonal(s)) {
      std::vector<int64_t> dims = ints(s.args[2]), added;
      for (size_t d = 0; d < s.to.size(); ++d) {
        auto it = std::find(dims.begin(), dims.end(), static_cast<int64_t>(d));
        if (it == dims.end() || s.from[it - dims.begin()] != s.to[d]) added.push_back(static_cast<int64_t>(d));
      }
      ct = summed(ct, added, s.from);
    } else {
      std::optional<Tensor> sliced = s.row == movement.slice ? slice_backward(ct, s) : std::nullopt;
      ct = sliced ? std::move(*sliced) : step_backward(ct, s);
    }
  }
  return ct;
}

}  // namespace

variable_list ViewNode::apply(variable_list&& grads) {
  Tensor& ct = grads[0];
  if (!ct.defined()) return {Tensor()};
  // Where sizes are recorded, what is the whole of a dimension now may be a part of it in another call.
  if (int64_t d = plan_->range; d >= 0 && Recorder::current())
    return {eager::call_one("aten::slice_backward", {ct, ct.sizes(), d, 0, ct.size(d), 1})};
  return {back_along(*plan_, std::move(ct))};
}

bool ViewNode::moves() const {
  const Movements& movement = movements();
  return !std::all_of(plan_->steps.begin(), plan_->steps.end(), [&](const eager::ViewStep& s) {
    return (s.row == movement.slice || s.row == movement.reshape) && s.from == s.to;
  });
}

variable_list ViewsNode::apply(variable_list&& grads) {
  grads.resize(plans_.size());
  auto defined = [](const Tensor& g) { return g.defined(); };
  auto count = std::count_if(grads.begin(), grads.end(), defined);
  if (count == 0) return {Tensor()};
  if (count == 1) {
    auto only = std::find_if(grads.begin(), grads.end(), defined);
    return {back_along(*plans_[static_cast<size_t>(only - grads.begin())], std::move(*only))};
  }
  std::vector<CallArg> args = args_->args().vec();
  Tensor of = stand_in(sizes_, dtype_);
  args[0] = CallArg(of);
  eager::Literals literals;
  literals.fill_up(args, row_, row_.schema.params.size());
  return {gradient_of(row_, std::move(args), grads)};
}

variable_list MemoryView::apply(variable_list&& grads) {
  if (!grads[0].defined()) return {Tensor()};
  Tensor memory = eager::call_one("aten::zeros", {IntArrayRef(extent_), grads[0].scalar_type()});
  Tensor all = gradient_of(ops::at("aten::as_strided"), view_.arguments(memory), {grads[0]});
  return {eager::call_one(eager::op("aten::as_strided"), self_.arguments(all))};
}

variable_list CopySlices::apply(variable_list&& grads) {
  variable_list out(next_edges_.size());
  if (!grads[0].defined()) return out;
  BRASA_CHECK(write_, second_time("CopySlices"));
  // It lies as the base does, as links may count in the memory.
  const Sizes& sizes = impl_of(grads[0])->sizes;
  bool turned = is_dense(sizes, strides_) && !is_row_major(sizes, strides_);
  IntArrayRef strides(strides_.data(), strides_.size());
  Tensor result = turned ? empty_strided(grads[0].sizes(), strides, grads[0].options()).copy_(grads[0])
                         : grads[0].clone(MemoryFormat::Contiguous);
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
