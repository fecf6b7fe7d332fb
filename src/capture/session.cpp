#include "capture/session.h"

#include <algorithm>

#include <brasa/autograd.h>

#include "capture/uncompiled.h"
#include "support/error.h"
#include "support/log.h"
#include "tensor/autograd/meta.h"
#include "tensor/geometry.h"
#include "tensor/views.h"
#include "transforms/derived.h"

namespace brasa::capture {
namespace {

// Of tensors that share memory.
bool same_place(const TensorImpl& a, const TensorImpl& b) {
  return a.dtype == b.dtype && a.offset == b.offset && a.sizes == b.sizes && a.strides == b.strides;
}

// How a tensor lies in a storage whose value begins at `origin`, as arguments of as_strided.
class Geometry {
 public:
  Geometry(const TensorImpl& t, int64_t origin)
      : args_{CallArg(), IntArrayRef(t.sizes.data(), t.sizes.size()), IntArrayRef(t.strides.data(), t.strides.size()),
              CallArg(t.offset - origin)} {}
  std::span<const CallArg> args() const { return args_; }

 private:
  CallArg args_[4];
};

}  // namespace

Session::Session(detail::CompiledState& state) : state_(state), own_path_(state) { begin(state.start); }

Session::~Session() {
  if (finished_ || held_.empty()) return;
  // The function ended with an error. What it did before happens all the same, without compiling a graph for it.
  try {
    deliver(false);
  } catch (const std::exception&) {
    lose();
  }
  path_->abandon();
}

void Session::begin(Place& place) {
  path_->begin(place);
  inputs_.clear();
  inputs_of_.clear();
  snapshots_.clear();
  nodes_.clear();
  first_sequence_ = autograd::next_sequence_nr();
  held_.clear();
}

// ---- Tensors and numbers.

bool Session::covers(const Held& held, const TensorImpl& t) const {
  return held.dtype == t.dtype && held.offset == t.offset && held.sizes == t.sizes && held.strides == t.strides;
}

// Whether the held value has all elements that the tensor looks at.
bool Session::holds(const Held& held, const TensorImpl& t) const {
  int64_t begin = t.offset - held.offset;
  return held.dtype == t.dtype && is_row_major(held.sizes, held.strides) && begin >= 0 &&
         begin + extent_of(t.sizes, t.strides) <= product(held.sizes);
}

Session::Held* Session::held(const Storage& storage) {
  return storage.recorder() == this ? &held_[storage.recorder_slot()] : nullptr;
}

Number Session::number_of(const Tensor& t) {
  const TensorImpl& impl = *checked_impl(t);
  const Held* known = held(*impl.storage.get());
  if (!known) {
    if (impl.storage->recorder() == Recorder::lost()) impl.materialise("an operator");
    BRASA_CHECK(impl.storage->recorder() == nullptr, "a tensor of another recording, which has not run yet, was used");
    // Views of a tensor from outside are read through it, so that one memory is one input.
    return impl.view ? view_number(t) : input_number(t);
  }
  return covers(*known, impl) ? known->value : view_number(t);
}

Number Session::input_number(const Tensor& t) {
  const TensorImpl& impl = *impl_of(t);
  SmallVector<int, 2>& known = inputs_of_[impl.storage->root()];
  for (int i : known)
    if (same_place(*impl_of(inputs_[i].tensor), impl)) return inputs_[i].number;
  Number n = path_->input(impl);
  known.push_back(static_cast<int>(inputs_.size()));
  inputs_.push_back({t, n});
  return n;
}

// A tensor that looks at part of a storage whose value is held: its chain of views, replayed from that value.
Number Session::view_number(const Tensor& t) {
  const eager::ViewInfo* view = impl_of(t)->view.get();
  if (!view) {
    if (const Held* known = held(*impl_of(t)->storage.get()); holds(*known, *impl_of(t))) {
      static const ops::Row& row = ops::at("aten::as_strided");
      Geometry g(*impl_of(t), known->offset);
      return follow(row, g.args(), known->value);
    }
    materialise("a tensor that shares memory with a recorded one without being its view");
    return input_number(t);
  }
  return follow(*view->row, view->args->args(), number_of(view->parent)) + static_cast<Number>(view->result);
}

// From now on the value of the tensor's storage is held here; what was saved of it before keeps the present one.
Session::Held& Session::hold(const Tensor& t) {
  const TensorImpl& impl = *checked_impl(t);
  if (Held* known = held(*impl.storage.get())) return *known;
  if (impl.view) return hold(impl.view->base);
  Number n = input_number(t);
  const auto& inputs = inputs_of_.at(impl.storage->root());
  int input = *std::find_if(inputs.begin(), inputs.end(), [&](int i) { return inputs_[i].number == n; });
  impl.storage->set_recorder(this, static_cast<uint32_t>(held_.size()));
  return held_.emplace_back(Held{impl.storage, n, impl.dtype, impl.sizes, impl.strides, impl.offset, input});
}

void Session::keep_snapshots(const Storage* storage) {
  auto it = snapshots_.find(storage);
  if (it == snapshots_.end()) return;
  std::vector<Tensor> tensors = std::move(it->second);
  snapshots_.erase(it);
  for (Tensor& t : tensors) {
    if (t.use_count() == 1) continue;  // only this list knows it
    Tensor copy = make_recorded(number_of(t));
    TensorImpl &to = *impl_of(t), &from = *impl_of(copy);
    to.storage = from.storage;
    to.offset = 0;
    to.strides = from.strides;
    to.view.reset();
    to.refresh();
  }
}

void Session::put(const Tensor& target, Number value) {
  const TensorImpl& impl = *checked_impl(target);
  keep_snapshots(impl.storage.get());
  if (!held(*impl.storage.get())) {
    auto shared = inputs_of_.find(impl.storage->root());
    const TensorImpl& base = *impl_of(impl.view ? impl.view->base : target);
    if (shared != inputs_of_.end() &&
        (shared->second.size() > 1 || !same_place(*impl_of(inputs_[shared->second[0]].tensor), base))) {
      // Several inputs look at this memory; they must have been read before it changes.
      Tensor kept = make_recorded(value);
      materialise("a write to memory that several tensors share");
      value = number_of(kept);
    }
  }
  if (Held& known = hold(target); covers(known, impl)) {
    known.value = value;
    return;
  }
  const eager::ViewInfo* view = impl.view.get();
  Event event;
  if (!view) {
    Held& known = hold(target);
    if (!holds(known, impl)) {
      Tensor kept = make_recorded(value);
      materialise("a write through a tensor that shares memory with a recorded one without being its view");
      return put(target, number_of(kept));
    }
    Geometry g(impl, known.offset);
    event.row = &transforms::put_row(ops::at("aten::as_strided"), 0);
    ir::Value whole[] = {numbered(known.value)};
    event.args = Numbered{ops::at("aten::as_strided"), g.args(), whole, true}.node_args();
    event.args.push_back(ir::Arg(numbered(value)));
    known.value = path_->step(std::move(event));
    return;
  }
  event.row = &transforms::put_row(*view->row, view->result);
  auto args = view->args->args();
  event.args = Numbered{*view->row, args, operands(args, number_of(view->parent)), true}.node_args();
  event.args.push_back(ir::Arg(numbered(value)));
  put(view->parent, path_->step(std::move(event)));
}

Tensor Session::make_recorded(Number n) {
  const ir::Type& type = path_->type(n);
  Sizes sizes;
  int64_t bytes = size_of(type.dtype);
  for (ir::Expr e : type.shape) {
    sizes.push_back(path_->binding()(e));
    bytes *= sizes.back();
  }
  StorageRef storage(Storage::recorded(static_cast<size_t>(bytes), this, static_cast<uint32_t>(held_.size())));
  Sizes strides = row_major_strides(sizes);
  held_.push_back(Held{storage, n, type.dtype, sizes, strides, 0, -1});
  return make_tensor(std::move(storage), type.dtype, std::move(sizes), std::move(strides), 0);
}

// ---- The Recorder.

// `first` takes the place of the first argument.
Session::Operands Session::operands(std::span<const CallArg> args, Number first) {
  Operands out;
  auto add = [&](const Tensor& t) { out.push_back(t.defined() ? numbered(number_of(t)) : ir::Value{}); };
  for (size_t i = 0; i < args.size(); ++i) {
    const CallArg& a = args[i];
    if (i == 0 && first != kNoNumber) {
      out.push_back(numbered(first));
      continue;
    }
    switch (a.kind) {
      case CallArg::Kind::Tensor: add(*a.tensor); break;
      case CallArg::Kind::Tensors:
        for (uint32_t k = 0; k < a.size; ++k) add(a.tensor[k]);
        break;
      case CallArg::Kind::OptionalTensors:
        for (uint32_t k = 0; k < a.size; ++k)
          a.optional_tensor[k] ? add(*a.optional_tensor[k]) : out.push_back(ir::Value{});
        break;
      default: break;
    }
  }
  return out;
}

Number Session::follow(const ops::Row& row, std::span<const CallArg> args, Number first) {
  Operands values = operands(args, first);
  return path_->call(row, args, values, first != kNoNumber);
}

void Session::call(const ops::Row& row, std::span<const CallArg> args, std::vector<Tensor>& results) {
  Number first = follow(row, args);
  uint32_t count = path_->last().count;
  for (uint32_t r = 0; r < count; ++r) results.push_back(make_recorded(first + r));
}

void Session::write(const Tensor& target, const Tensor& value) { put(target, number_of(value)); }

// Shares the storage until that is written (see keep_snapshots).
Tensor Session::snapshot(const Tensor& t) {
  Tensor copy = shallow_copy(t);
  if (const auto& view = impl_of(t)->view) impl_of(copy)->view = std::make_unique<eager::ViewInfo>(*view);
  snapshots_[checked_impl(t)->storage.get()].push_back(copy);
  return copy;
}

void Session::materialise(const char* reason) {
  BRASA_CHECK(!state_.options.fullgraph, "compile: graph break where fullgraph was asked for: ", reason,
              " needs a value while the function is recorded");
  if (std::find(state_.breaks.begin(), state_.breaks.end(), reason) == state_.breaks.end())
    state_.breaks.emplace_back(reason);
  run_segment();
  begin(path_->started() ? path_->trace().next : path_->place());
}

void Session::finish() {
  finished_ = true;
  run_segment();
}

// ---- Running.

void Session::run_segment() {
  if (!path_->end()) return;
  try {
    deliver(path_->kept());
  } catch (...) {
    lose();
    throw;
  }
}

// Gives recorded storages that somebody still holds their memory, and inputs that were written their values.
void Session::deliver(bool compile) {
  std::optional<GradientFlow> flow = compile ? find_gradient_flow() : std::nullopt;
  std::shared_ptr<const Joint> joint = flow ? joint_for(*flow) : nullptr;
  // The segment's node takes the place of the recorded ones, so that what only they kept is not delivered. Until the run has
  // given it something to keep, the roots lead nowhere.
  if (joint) redirect(*flow, nullptr);
  nodes_.clear();
  snapshots_.clear();
  std::vector<Delivery> deliveries;
  std::vector<Held*> fresh;
  for (Held& h : held_) {
    if (h.input >= 0) {
      deliveries.push_back({h.value, h.input});
    } else if (h.storage->use_count() > 1) {
      deliveries.push_back({h.value, -1});
      fresh.push_back(&h);
    }
  }
  if (!deliveries.empty()) {
    Variant* variant = compile ? variant_for(deliveries, joint) : nullptr;
    if (variant)
      run(*variant, fresh, joint ? &*flow : nullptr);
    else
      run_uncompiled(deliveries);
  }
  for (Held& h : held_) h.storage->end_recording();
  held_.clear();
}

void Session::lose() {
  for (Held& h : held_) {
    if (h.input >= 0 || h.storage->recorder() != this)
      h.storage->end_recording();
    else
      h.storage->set_recorder(Recorder::lost(), 0);
  }
  held_.clear();
}

// Null if the limit is reached.
Variant* Session::variant_for(const std::vector<Delivery>& deliveries, const std::shared_ptr<const Joint>& joint) {
  Trace& trace = path_->trace();
  const Binding& binding = path_->binding();
  int same = 0;
  const ir::Fact* failed = nullptr;
  for (Variant& v : trace.variants) {
    if (v.deliveries != deliveries || (v.halves ? v.halves->joint : nullptr) != joint) continue;
    auto wrong = std::find_if(v.facts.begin(), v.facts.end(), [&](const ir::Fact& f) { return !binding.holds(f); });
    if (wrong == v.facts.end()) return &v;
    failed = &*wrong;
    ++same;
  }
  if (failed) {
    std::string reason = str("sizes: ", *failed, " does not hold");
    if (std::find(state_.recompiles.begin(), state_.recompiles.end(), reason) == state_.recompiles.end())
      state_.recompiles.push_back(reason);
    if (logs("recompiles")) log_line("recompiles", reason);
  }
  if (same >= state_.options.recompile_limit) return nullptr;
  trace.variants.push_back(compiled(deliveries, joint));
  return &trace.variants.back();
}

Variant Session::compiled(const std::vector<Delivery>& deliveries, const std::shared_ptr<const Joint>& joint) {
  const Trace& trace = path_->trace();
  const Binding& binding = path_->binding();
  Variant v;
  v.deliveries = deliveries;
  v.graph = trace.graph(deliveries);
  if (joint) {
    v.halves = compiled_halves(joint, deliveries, v.facts);
    v.executable = v.halves->forward;
    return v;
  }
  if (!binding.symbols.empty()) {
    ir::Facts facts(binding.symbols);
    try {
      v.executable = state_.backend(*v.graph, facts, state_.options);
      v.facts = facts.facts();
      return v;
    } catch (const std::exception& e) {
      if (logs("recompiles")) log_line("recompiles", str("the graph is made for these sizes alone: ", e.what()));
    }
    // A backend that needs to know the sizes gets them.
    v.graph = trace.sized(binding).graph(deliveries);
    for (uint32_t k = 0; k < binding.symbols.size(); ++k)
      v.facts.push_back({ir::Expr::size(k), ir::Expr(binding.symbols[k]), true});
  }
  ir::Facts none;
  v.executable = state_.backend(*v.graph, none, state_.options);
  return v;
}

void Session::run(const Variant& variant, const std::vector<Held*>& fresh, const GradientFlow* flow) {
  const compiler::Executable& executable = *variant.executable;
  std::vector<Tensor> given = argument_tensors(path_->trace(), path_->binding());
  std::vector<compiler::Operand> inputs, outputs;
  for (const BoundInput& in : inputs_) inputs.push_back(operand_of(in.tensor));
  for (const Tensor& t : given) inputs.push_back(operand_of(t));
  // They have their values when the run has ended.
  std::vector<StorageRef> memory;
  for (Held* h : fresh) {
    memory.emplace_back(Storage::make(h->storage->bytes()));
    outputs.push_back({memory.back()->data(), h->dtype, h->sizes, h->strides});
  }
  SavedRun kept;
  kept.binding = path_->binding();
  if (flow) {
    // Their memory is read as it is before the run.
    for (Held& h : held_)
      if (h.input >= 0) h.storage->end_recording();
    for (const BoundInput& in : inputs_) kept.inputs.push_back(in.tensor);
    kept.inputs.insert(kept.inputs.end(), given.begin(), given.end());
    keep_for_backward(variant, fresh, kept, outputs);
  }
  SmallVector<int64_t, 8> symbols(executable.symbol_count());
  executable.bind(inputs, symbols.data());
  executable.run(symbols.data(), inputs, outputs);
  for (size_t i = 0; i < fresh.size(); ++i) fresh[i]->storage->take_memory(*memory[i].get());
  if (flow) redirect(*flow, make_segment_node(variant.halves, kept, *flow));
}

void Session::run_uncompiled(const std::vector<Delivery>& deliveries) {
  std::vector<Tensor> inputs;
  for (const BoundInput& in : inputs_) inputs.push_back(in.tensor);
  for (Held& h : held_)
    if (h.input >= 0) h.storage->end_recording();
  std::vector<Tensor> values =
      capture::run_uncompiled(path_->trace(), path_->position(), path_->binding(), inputs, deliveries);
  Recorder::Scope alone(nullptr);
  NoGradGuard guard;
  size_t i = 0;
  for (Held& h : held_) {
    if (h.input >= 0) {
      // The write was counted when it was recorded.
      Tensor to = make_tensor(StorageRef(Storage::alias(h.storage.get())), h.dtype, h.sizes, h.strides, h.offset);
      to.copy_(values[i++]);
    } else if (h.storage->use_count() > 1) {
      h.storage->allocate(h.storage->bytes());
      Tensor to = make_tensor(h.storage, h.dtype, h.sizes, h.strides, 0);
      to.copy_(values[i++]);
    }
  }
}

}  // namespace brasa::capture
