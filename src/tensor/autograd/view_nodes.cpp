#include "tensor/autograd/view_nodes.h"

#include <algorithm>
#include <mutex>

#include "ops/primitives.h"
#include "support/error.h"
#include "tensor/autograd/record.h"
#include "tensor/execute.h"
#include "tensor/geometry.h"
#include "tensor/recorder.h"
#include "transforms/derived.h"

namespace brasa::autograd {
namespace {

using eager::Input;

// Places a cotangent into zeros. Inputs: the cotangent, and a shape whose sizes are low…, high…, interior….
class Pad final : public eager::Program {
 public:
  explicit Pad(bool interior) : Program("slice backward", 2, false), interior_(interior) {}
  std::vector<ir::Value> build(std::span<const ir::Value> in) const override {
    const ir::Type& t = ir::type_of(in[0]);
    const ir::Shape& numbers = ir::type_of(in[1]).shape;
    size_t rank = t.shape.size();
    auto part = [&](size_t k) {
      return std::vector<ir::Expr>(numbers.begin() + k * rank, numbers.begin() + (k + 1) * rank);
    };
    std::vector<ir::Expr> gaps = interior_ ? part(2) : std::vector<ir::Expr>(rank, ir::Expr(0));
    return {ops::prim::pad(in[0], ops::prim::full(0, {}, t.dtype), part(0), part(1), gaps)};
  }

 private:
  bool interior_;
};

Tensor slice_backward(const Tensor& ct, const eager::ViewStep& s) {
  auto numbers = [&](size_t i) {
    std::vector<int64_t> out;
    for (ir::Expr e : s.args[i].get<std::vector<ir::Expr>>()) out.push_back(e.constant());
    return out;
  };
  std::vector<int64_t> start = numbers(1), size = numbers(2), step = numbers(3), shape = start;
  bool interior = false;
  std::vector<int64_t> high, gaps;
  for (size_t d = 0; d < start.size(); ++d) {
    int64_t covered = size[d] == 0 ? 0 : (size[d] - 1) * step[d] + 1;
    high.push_back(s.from[d] - start[d] - covered);
    gaps.push_back(size[d] <= 1 ? 0 : step[d] - 1);
    interior = interior || gaps.back() != 0;
  }
  shape.insert(shape.end(), high.begin(), high.end());
  if (interior) shape.insert(shape.end(), gaps.begin(), gaps.end());
  if (shape.empty()) return ct;
  if (Recorder::current()) {
    if (gaps.empty()) gaps.assign(start.size(), 0);
    Tensor zero = eager::call_one("aten::zeros", {IntArrayRef(), ct.scalar_type()});
    return eager::call_one("prim::pad", {ct, zero, IntArrayRef(start), IntArrayRef(high), IntArrayRef(gaps)});
  }
  static const auto *dense = new Pad(false), *dilated = new Pad(true);
  const Pad& program = interior ? *dilated : *dense;
  Sizes strides(shape.size(), 0);
  Input carrier;
  carrier.sizes = shape.data();
  carrier.strides = strides.data();
  carrier.rank = static_cast<uint32_t>(shape.size());
  carrier.dtype = DType::Bool;
  Input operands[] = {Input::of(ct), carrier};
  eager::Results results;
  eager::execute(program, operands, nullptr, results);
  attach(program, "SliceBackwardBackward0", operands, results);
  return std::move(results[0]);
}

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

// The program of a movement whose numbers are fixed, so that its derivative can be had.
class Movement final : public eager::Program {
 public:
  Movement(const ops::Row& row, ir::Args args) : Program(row.name(), 1, false), row_(row), args_(std::move(args)) {}
  std::vector<ir::Value> build(std::span<const ir::Value> in) const override {
    ir::Args args = args_;
    args[0] = ir::Arg(in[0]);
    return ops::Builder::current().call(row_, std::move(args));
  }
  bool is(const eager::ViewStep& s) const { return &row_ == s.row && args_ == s.args; }

 private:
  const ops::Row& row_;
  ir::Args args_;
};

// Any other movement (sliding windows) by its row's transpose.
Tensor step_backward(const Tensor& ct, const eager::ViewStep& s) {
  if (Recorder::current()) {
    // Only the shape of what was moved matters.
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
    std::vector<std::optional<Tensor>> cts = {ct};
    args.push_back(CallArg(ArrayRef<std::optional<Tensor>>(cts)));
    return eager::call_one(eager::op(transforms::vjp_row(*s.row, {true}, {true})), args);
  }
  static std::mutex mutex;
  static auto* programs = new std::vector<std::unique_ptr<Movement>>;
  const Movement* program = nullptr;
  {
    std::lock_guard lock(mutex);
    for (auto& p : *programs)
      if (p->is(s)) program = p.get();
    if (!program) program = programs->emplace_back(std::make_unique<Movement>(*s.row, s.args)).get();
  }
  const eager::Backward& backward = program->backward({true}, {true});
  Sizes from_strides = row_major_strides(s.from), to_strides = row_major_strides(s.to);
  Input from, to;
  from.sizes = s.from.data(), from.strides = from_strides.data(), from.rank = static_cast<uint32_t>(s.from.size());
  to.sizes = s.to.data(), to.strides = to_strides.data(), to.rank = static_cast<uint32_t>(s.to.size());
  from.dtype = s.from_dtype;
  to.dtype = s.to_dtype;
  Input operands[] = {from, to, Input::of(ct)};
  eager::Results results;
  eager::execute(backward, operands, nullptr, results);
  attach(backward, "MovementBackward0", operands, results);
  return std::move(results[0]);
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
                        *broadcast = &ops::at("prim::broadcast"), *slice = &ops::at("prim::slice");
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
    } else if (s.row == slice) {
      ct = slice_backward(ct, s);
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
