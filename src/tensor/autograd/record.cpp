#include "tensor/autograd/record.h"

#include <algorithm>

#include <brasa/factories.h>
#include "ops/primitives.h"
#include "support/error.h"
#include "tensor/autograd/meta.h"
#include "tensor/execute.h"
#include "tensor/geometry.h"
#include "tensor/recorder.h"
#include "tensor/views.h"
#include "transforms/derived.h"

namespace brasa::autograd {
namespace {

using eager::Input;

bool differentiable(DType t) { return is_floating(t) || is_complex(t); }

// Inference tensors never take part in autograd.
bool takes_part(const Tensor& t) {
  return differentiable(t.scalar_type()) && !impl_of(t)->inference && t.requires_grad();
}
bool wants_gradient(const Input& in) { return in.tensor && takes_part(*in.tensor); }

ResultMeta meta_of_result(const Tensor& t) {
  if (!t.defined()) return {};
  return {impl_of(t)->sizes, t.scalar_type(), true};
}

std::string second_time(const std::string& name) {
  return str(
      "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed): ",
      name, ". Specify retain_graph=true if you need to backward through the graph a second time.");
}

// Backward of a program: again a program, run on what was saved and the gradients.
class ProgramNode final : public Node, public Pooled {
 public:
  ProgramNode(const eager::Program& program, std::string name, std::vector<bool> needs)
      : program_(program), name_(std::move(name)), needs_(std::move(needs)) {}

  std::string name() const override { return name_; }
  std::vector<Saved>& inputs() { return inputs_; }
  std::vector<Saved>& results() { return results_; }
  std::weak_ptr<Node> self;

 protected:
  variable_list apply(variable_list&& grads) override {
    std::lock_guard lock(internals_->mutex);
    BRASA_CHECK(!internals_->released, second_time(name_));
    variable_list out(needs_.size());
    std::vector<bool> given(results_.size());
    for (size_t i = 0; i < given.size(); ++i) given[i] = i < grads.size() && grads[i].defined();
    if (std::none_of(given.begin(), given.end(), [](bool b) { return b; })) return out;
    const eager::Backward& backward = program_.backward(needs_, given);

    std::shared_ptr<Node> me = self.lock();
    std::vector<Input> operands;
    std::vector<Tensor> holders(inputs_.size() + results_.size());
    for (const Saved& s : inputs_) operands.push_back(s.input(me, name_, holders[operands.size()]));
    for (const Saved& s : results_) operands.push_back(s.input(me, name_, holders[operands.size()]));
    for (size_t i = 0; i < given.size(); ++i)
      if (given[i]) operands.push_back(Input::of(grads[i]));

    eager::Results results;
    eager::execute(backward, operands, nullptr, results);
    attach(backward, name_, operands, results);
    for (size_t i = 0, k = 0; i < needs_.size(); ++i)
      if (needs_[i]) {
        Tensor g = std::move(results[k++]);
        out[i] = g.defined() ? sum_to_size(g, inputs_[i].sizes()) : Tensor();
      }
    return out;
  }
  void release_variables() override {
    std::lock_guard lock(internals_->mutex);
    // A node that reads no values can run again.
    for (std::vector<Saved>* list : {&inputs_, &results_})
      for (Saved& s : *list) {
        internals_->released = internals_->released || s.keeps();
        s.reset();
      }
  }

 private:
  const eager::Program& program_;
  std::string name_;
  std::vector<bool> needs_;
  std::vector<Saved> inputs_, results_;
};

// The tensors among a call's arguments in the order of the row's operands.
template <class F>
void each_tensor(eager::CallArgs args, F f) {
  for (const CallArg& a : args) {
    if (a.kind == CallArg::Kind::Tensor) f(*a.tensor);
    if (a.kind == CallArg::Kind::Tensors)
      for (uint32_t k = 0; k < a.size; ++k) f(a.tensor[k]);
    if (a.kind == CallArg::Kind::OptionalTensors)
      for (uint32_t k = 0; k < a.size; ++k)
        if (a.optional_tensor[k] && a.optional_tensor[k]->defined()) f(*a.optional_tensor[k]);
  }
}

// Backward of a row by its derived row, for calls that a recorder kept: the arguments are snapshots.
class RowNode final : public Node, public Pooled {
 public:
  RowNode(eager::Operator& op, std::shared_ptr<eager::ArgStore> args, std::vector<bool> needs)
      : op_(op), args_(std::move(args)), needs_(std::move(needs)) {}
  std::string name() const override { return op_.backward_name(); }

 protected:
  variable_list apply(variable_list&& grads) override {
    std::lock_guard lock(internals_->mutex);
    BRASA_CHECK(!internals_->released, second_time(name()));
    variable_list out(needs_.size());
    std::vector<bool> given;
    std::vector<std::optional<Tensor>> cts;
    for (size_t i = 0; i < internals_->results.size(); ++i) {
      given.push_back(i < grads.size() && grads[i].defined());
      cts.push_back(given.back() ? std::optional<Tensor>(grads[i]) : std::nullopt);
    }
    if (std::none_of(given.begin(), given.end(), [](bool b) { return b; })) return out;
    std::vector<CallArg> args(args_->args().begin(), args_->args().end());
    variable_list with_history = tensors_with_history();
    if (!with_history.empty()) {
      size_t at = 0;
      for (CallArg& a : args) {
        if (a.kind != CallArg::Kind::Tensor && a.kind != CallArg::Kind::Tensors) continue;
        a.tensor = &with_history[at];
        at += a.kind == CallArg::Kind::Tensor ? 1 : a.size;
      }
    }
    eager::Literals defaults;
    const auto& params = op_.row().schema.params;
    for (size_t i = args.size(); i < params.size(); ++i) args.push_back(defaults.default_of(params[i]));
    args.push_back(CallArg(ArrayRef<std::optional<Tensor>>(cts)));
    std::vector<Tensor> results = eager::call_list(op_.backward(needs_, given), args);
    for (size_t i = 0, k = 0; i < needs_.size(); ++i)
      if (needs_[i]) out[i] = std::move(results[k++]);
    return out;
  }
  void release_variables() override {
    std::lock_guard lock(internals_->mutex);
    internals_->released = true;
    args_.reset();
  }
  void for_each_saved(const std::function<void(const Tensor&)>& f) const override {
    if (!args_) return;
    each_tensor(eager::CallArgs(args_->args().data(), args_->args().size()), f);
  }

 private:
  // Where the derivative is to have one itself, the operands lead on to what they came from.
  variable_list tensors_with_history() const {
    variable_list out;
    if (!GradMode::is_enabled()) return out;
    Recorder* recorder = Recorder::current();
    size_t operand = 0;
    each_tensor(eager::CallArgs(args_->args().data(), args_->args().size()), [&](const Tensor& t) {
      size_t i = operand++;
      if (out.size() == args_->tensors().size() || &t != &args_->tensors()[out.size()]) return;  // an optional one
      Tensor copy = recorder ? recorder->snapshot(t) : shallow_copy(t);
      if (needs_[i]) set_history(copy, next_edges_[i].function, next_edges_[i].input_nr);
      out.push_back(std::move(copy));
    });
    return out;
  }

  eager::Operator& op_;
  std::shared_ptr<eager::ArgStore> args_;
  std::vector<bool> needs_;
};

// Backward of a view: its movements the other way.
class ViewNode final : public Node, public Pooled {
 public:
  ViewNode(std::string name, std::shared_ptr<const eager::ViewPlan> plan)
      : name_(std::move(name)), plan_(std::move(plan)) {}
  std::string name() const override { return name_; }

 protected:
  variable_list apply(variable_list&& grads) override;

 private:
  std::string name_;
  std::shared_ptr<const eager::ViewPlan> plan_;
};

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

// Any other movement (sliding windows) by its row's transpose.
Tensor step_backward(const Tensor& ct, const eager::ViewStep& s);

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

Tensor step_backward(const Tensor& ct, const eager::ViewStep& s) {
  if (Recorder::current()) {
    // Only the shape of what was moved matters.
    Tensor moved = eager::call_one("aten::zeros", {IntArrayRef(), ct.scalar_type()})
                       .expand(IntArrayRef(s.from.data(), s.from.size()));
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
  from.dtype = to.dtype = ct.scalar_type();
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

// Backward of as_strided over the memory behind a tensor: the memory's gradient, at the tensor's elements.
class MemoryView final : public Node {
 public:
  MemoryView(const TensorImpl& view, const TensorImpl& self)
      : extent_(static_cast<int64_t>(self.storage->bytes()) / size_of(self.dtype)), view_(view), self_(self) {}
  std::string name() const override { return "AsStridedBackward0"; }

 protected:
  variable_list apply(variable_list&& grads) override {
    if (!grads[0].defined()) return {Tensor()};
    static const ops::Row& row = transforms::vjp_row(ops::at("aten::as_strided"), {true}, {true});
    Tensor memory = eager::call_one("aten::zeros", {IntArrayRef(extent_), grads[0].scalar_type()});
    std::optional<Tensor> ct[] = {grads[0]};
    std::vector<CallArg> args = view_.arguments(memory);
    args.push_back(CallArg(ArrayRef<std::optional<Tensor>>(ct)));
    Tensor all = eager::call_one(eager::op(row), args);
    return {eager::call_one(eager::op("aten::as_strided"), self_.arguments(all))};
  }

 private:
  struct Geometry {
    explicit Geometry(const TensorImpl& t) : sizes(t.sizes.vec()), strides(t.strides.vec()), offset(t.offset) {}
    std::vector<CallArg> arguments(const Tensor& memory) const { return {memory, sizes, strides, offset}; }
    std::vector<int64_t> sizes, strides;
    int64_t offset;
  };
  int64_t extent_;
  Geometry view_, self_;
};

// Backward of a write into a view, seen from the base: the view's part of the gradient goes through the write.
class CopySlices final : public Node {
 public:
  CopySlices(eager::ViewChain view, std::shared_ptr<Node> write, size_t self_edge)
      : view_(std::move(view)), write_(std::move(write)), self_edge_(self_edge) {}
  std::string name() const override { return "CopySlices"; }

 protected:
  variable_list apply(variable_list&& grads) override {
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
  void release_variables() override {
    if (write_) NodeAccess::release(*write_);
    write_.reset();
    internals_->released = true;
  }
  void for_each_saved(const std::function<void(const Tensor&)>& f) const override {
    if (write_) NodeAccess::for_each_saved(*write_, f);
  }
  const Node* inner() const override { return write_.get(); }

 private:
  eager::ViewChain view_;
  std::shared_ptr<Node> write_;
  size_t self_edge_;
};

std::vector<Edge> edges_of(std::span<const Input> inputs, const std::vector<bool>& needs) {
  std::vector<Edge> edges;
  edges.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) edges.push_back(needs[i] ? gradient_edge(*inputs[i].tensor) : Edge{});
  return edges;
}

// Which inputs require a gradient; false if none does.
bool needed(std::span<const Input> inputs, std::vector<bool>& needs) {
  bool any = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    bool wants = wants_gradient(inputs[i]);
    if (wants && !any) needs.assign(inputs.size(), false);
    if (wants) needs[i] = true;
    any = any || wants;
  }
  return any;
}

// The operands of the backward program, as far as its choice of what to read goes.
std::vector<Input> backward_operands(std::span<const Input> inputs, const std::vector<Tensor>& results,
                                     const std::vector<bool>& given) {
  std::vector<Input> out(inputs.begin(), inputs.end());
  for (const Tensor& t : results) out.push_back(t.defined() ? Input::of(t) : Input{});
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i]) out.push_back(Input::of(results[i]));
  return out;
}

std::shared_ptr<Node> recorded_node(eager::Operator& op, eager::CallArgs args, Recorder& recorder) {
  if (!GradMode::is_enabled() || op.row().no_gradient) return nullptr;
  std::vector<bool> needs;
  std::vector<Edge> edges;
  edges.reserve(args.size());
  bool any = false;
  each_tensor(args, [&](const Tensor& t) {
    needs.push_back(takes_part(t));
    edges.push_back(needs.back() ? gradient_edge(t) : Edge{});
    any = any || needs.back();
  });
  if (!any) return nullptr;
  auto store = std::make_shared<eager::ArgStore>(std::span<const CallArg>(args.data(), args.size()));
  for (Tensor& t : store->tensors()) t = recorder.snapshot(t);
  auto node = make_node<RowNode>(op, std::move(store), std::move(needs));
  NodeAccess::edges(*node) = std::move(edges);
  return node;
}

}  // namespace

void attach(const eager::Program& program, const std::string& name, std::span<const Input> inputs,
            eager::Results& results) {
  if (!GradMode::is_enabled()) return;
  std::vector<bool> needs;
  if (!needed(inputs, needs)) return;
  std::vector<Tensor> outputs;
  std::vector<bool> given;
  bool any = false;
  for (size_t i = 0; i < results.size(); ++i) {
    bool same = false;  // a result that is an input keeps that one's history
    for (const Input& in : inputs) same = same || (in.tensor && results[i].defined() && results[i].is_same(*in.tensor));
    given.push_back(results[i].defined() && !same && differentiable(results[i].scalar_type()));
    outputs.push_back(results[i]);
    any = any || given.back();
  }
  if (!any) return;
  const std::vector<bool>& reads = program.backward(needs, given).reads(backward_operands(inputs, outputs, given));
  auto node = make_node<ProgramNode>(program, name, needs);
  node->self = node;
  NodeAccess::edges(*node) = edges_of(inputs, needs);
  for (size_t i = 0; i < inputs.size(); ++i) node->inputs().emplace_back(inputs[i], reads[i]);
  for (size_t i = 0; i < outputs.size(); ++i) {
    node->internals().results.push_back(meta_of_result(outputs[i]));
    if (given[i]) set_history(outputs[i], node, static_cast<uint32_t>(i));
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    node->results().push_back(reads[inputs.size() + i] ? Saved(outputs[i], true)
                              : outputs[i].defined()   ? Saved(Input::of(outputs[i]), false, true)
                                                       : Saved());
}

void attach_view(const Tensor& view) {
  const eager::ViewInfo& info = *impl_of(view)->view;
  if (!differentiable(view.scalar_type())) return;
  auto node = make_node<ViewNode>(eager::op(*info.row).backward_name(), info.plan);
  NodeAccess::edges(*node).push_back(gradient_edge(info.parent));
  node->internals().results.push_back(meta_of_result(view));
  if (Recorder* recorder = Recorder::current()) recorder->made(node, 0, {});
  set_history(view, std::move(node), 0);
}

void attach_memory_view(const Tensor& view, const Tensor& self) {
  if (!differentiable(view.scalar_type())) return;
  auto node = make_node<MemoryView>(*impl_of(view), *impl_of(self));
  NodeAccess::edges(*node).push_back(gradient_edge(self));
  node->internals().results.push_back(meta_of_result(view));
  set_history(view, std::move(node), 0);
}

void attach_recorded(eager::Operator& op, eager::CallArgs args, Recorder& recorder, eager::Results& results) {
  std::shared_ptr<Node> node = recorded_node(op, args, recorder);
  if (!node) return;
  for (size_t i = 0; i < results.size(); ++i) {
    node->internals().results.push_back(meta_of_result(results[i]));
    if (results[i].defined() && differentiable(results[i].scalar_type()))
      set_history(results[i], node, static_cast<uint32_t>(i));
  }
  std::vector<Tensor> all;
  for (size_t i = 0; i < results.size(); ++i) all.push_back(results[i]);
  recorder.made(node, recorder.last_call(), all);
}

static void check_creation(CreationMeta creation) {
  switch (creation) {
    case CreationMeta::DEFAULT: return;
    case CreationMeta::MULTI_OUTPUT_NODE:
      fail(
          "A view that is one of several outputs of an operator (such as split, chunk or unbind) is being modified "
          "inplace with grad mode enabled. Such views are not tracked; replace the inplace operation by an out-of-place "
          "one.");
    case CreationMeta::NO_GRAD_MODE:
      fail(
          "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Move both into the "
          "no_grad block, or both out of it.");
    case CreationMeta::INFERENCE_MODE:
      fail(
          "A view was created in inference mode and is being modified inplace in normal mode. Move both into the "
          "inference_mode block, or both out of it.");
    case CreationMeta::IN_CUSTOM_FUNCTION:
      fail(
          "A view was created inside a custom Function and is being modified inplace. Its backward would be overwritten; "
          "return a clone from the Function.");
  }
}

void check_in_place(const Tensor& self, eager::CallArgs args) {
  if (!GradMode::is_enabled()) return;
  const TensorImpl* impl = impl_of(self);
  // Written to outside of the mode that it was made in, such a view would lack the history of its base.
  if (impl->view && impl->view->differentiable && impl->view->creation != CreationMeta::MULTI_OUTPUT_NODE &&
      differentiable(impl->dtype) && takes_part(impl->view->base))
    check_creation(impl->view->creation);
  BRASA_CHECK(!impl->inference || !self.requires_grad(),
              "Inplace update to inference tensor outside InferenceMode is not allowed.");
  if (self.requires_grad()) {
    BRASA_CHECK(!self.is_leaf(), "a leaf Variable that requires grad is being used in an in-place operation.");
    BRASA_CHECK(
        !impl->view || !impl->view->differentiable || !(impl->view->base.requires_grad() && impl->view->base.is_leaf()),
        "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  }
  if (!differentiable(impl->dtype)) return;
  bool any = false;
  each_tensor(args, [&](const Tensor& t) { any = any || takes_part(t); });
  if (any && impl->view && impl->view->differentiable) check_creation(impl->view->creation);
  BRASA_CHECK(!any || !impl->inference, "Inplace update to inference tensor outside InferenceMode is not allowed.");
}

Pending prepare_recorded(eager::Operator& op, eager::CallArgs args, Recorder& recorder) {
  return {recorded_node(op, args, recorder), recorder.last_call()};
}

void rebase(const Tensor& self, Pending pending, size_t self_edge) {
  if (!pending.node) return;
  TensorImpl* impl = impl_of(self);
  if (pending.node->internals().results.empty()) pending.node->internals().results.push_back(meta_of_result(self));
  Recorder* recorder = Recorder::current();
  if (!impl->view || !impl->view->differentiable) {
    if (recorder) recorder->made(pending.node, pending.call, {&self, 1});
    set_history(self, std::move(pending.node), 0);
    return;
  }
  Tensor base = impl->view->base;
  auto node = make_node<CopySlices>(eager::chain_from_base(self), pending.node, self_edge);
  auto& edges = NodeAccess::edges(*node);
  edges = pending.node->next_edges();
  edges[self_edge] = gradient_edge(base);
  node->internals().results.push_back(meta_of_result(base));
  if (recorder) recorder->made(node, pending.call, {&base, 1});
  set_history(base, std::move(node), 0);
  impl->view->version = impl->storage->version() - 1;  // its own history is made anew from the base's
}

void InPlace::before(const eager::Program& program, std::span<const Input> inputs) {
  program_ = nullptr;
  if (!GradMode::is_enabled() || op_.row().no_gradient || !needed(inputs, needs_)) return;
  program_ = &program;
  std::vector<Tensor> results = {self_};
  std::vector<bool> given = {true};
  reads_ = program.backward(needs_, given).reads(backward_operands(inputs, results, given));
  edges_ = edges_of(inputs, needs_);
  bool overwritten = false;
  for (size_t i = 0; i < inputs.size(); ++i)
    overwritten = overwritten || (reads_[i] && inputs[i].tensor && inputs[i].tensor->is_same(self_));
  if (overwritten) {
    NoGradGuard guard;
    original_ = self_.clone();
  }
}

void InPlace::after(std::span<const Input> inputs) {
  if (!program_) return;
  auto node = make_node<ProgramNode>(*program_, op_.backward_name(), needs_);
  node->self = node;
  NodeAccess::edges(*node) = std::move(edges_);
  for (size_t i = 0; i < inputs.size(); ++i) {
    bool overwritten = reads_[i] && inputs[i].tensor && inputs[i].tensor->is_same(self_);
    node->inputs().emplace_back(overwritten ? Input::of(original_) : inputs[i], reads_[i]);
  }
  node->internals().results.push_back(meta_of_result(self_));
  node->results().push_back(reads_[inputs.size()] ? Saved(self_, true) : Saved(Input::of(self_), false, true));
  rebase(self_, {std::move(node)});
}

}  // namespace brasa::autograd
