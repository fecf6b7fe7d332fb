#include "capture/session.h"

#include <algorithm>

#include "capture/describe.h"
#include "ops/builder.h"
#include "runtime/cpu/allocator.h"
#include "support/error.h"
#include "support/hash.h"
#include "tensor/args.h"
#include "tensor/autograd/meta.h"
#include "tensor/geometry.h"
#include "tensor/views.h"
#include "transforms/derived.h"

namespace brasa::capture {
namespace {

uint64_t hash_of(const Event& e) {
  uint64_t h = reinterpret_cast<uint64_t>(e.row);
  for (const ir::Arg& a : e.args) h = mix(h, a.hash());
  if (!e.row) {
    h = mix(h, static_cast<uint64_t>(e.guard.kind) * 128 + e.guard.weak * 64 + static_cast<uint64_t>(e.guard.dtype));
    for (int64_t s : e.guard.sizes) h = mix(h, static_cast<uint64_t>(s));
    for (int64_t s : e.guard.strides) h = mix(h, static_cast<uint64_t>(s) + 1);
  }
  return h;
}

bool same(const Event& a, const Event& b) { return a.row == b.row && a.args == b.args && a.guard == b.guard; }

ir::Shape shape_of(const Sizes& sizes) { return ir::Shape(sizes.begin(), sizes.end()); }

Sizes contiguous_strides(const Sizes& sizes) {
  Sizes strides(sizes.size());
  int64_t run = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = run;
    run *= std::max<int64_t>(sizes[d], 1);
  }
  return strides;
}

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

// A call whose tensors have numbers. The operand of a view's chain stands in for the first argument, which is empty.
struct Numbered {
  const ops::Row& row;
  std::span<const CallArg> args;
  std::span<const ir::Value> operands;
  bool view;

  CallArg::Kind kind(size_t i) const { return view && i == 0 ? CallArg::Kind::Tensor : args[i].kind; }
  bool is_list(size_t i) const {
    return kind(i) == CallArg::Kind::Tensors || kind(i) == CallArg::Kind::OptionalTensors;
  }
  // How many operands an argument takes.
  size_t count(size_t i) const { return is_list(i) ? args[i].size : kind(i) == CallArg::Kind::Tensor; }

  ir::Args node_args() const {
    ir::Args out;
    out.reserve(row.schema.params.size());
    const ir::Value* at = operands.data();
    for (size_t i = 0; i < args.size(); at += count(i++)) {
      if (kind(i) == CallArg::Kind::Tensor)
        out.push_back(ir::Arg(*at));
      else if (is_list(i))
        out.push_back(ir::Arg(std::vector<ir::Value>(at, at + args[i].size)));
      else
        out.push_back(eager::literal(args[i], row.schema.params[i], row));
    }
    ops::complete_args(row, out);
    return out;
  }

  // Whether they surely are `known`.
  bool agrees(const ir::Args& known) const {
    const auto& params = row.schema.params;
    if (args.size() > known.size()) return false;
    const ir::Value* at = operands.data();
    for (size_t i = 0; i < args.size(); at += count(i++)) {
      if (kind(i) == CallArg::Kind::Tensor) {
        auto* v = known[i].get_if<ir::Value>();
        if (!v || !(*v == *at)) return false;
      } else if (is_list(i)) {
        auto* list = known[i].get_if<std::vector<ir::Value>>();
        if (!list || list->size() != args[i].size || !std::equal(list->begin(), list->end(), at)) return false;
      } else if (!eager::surely_equal(args[i], params[i], known[i])) {
        return false;
      }
    }
    for (size_t i = args.size(); i < known.size(); ++i)
      if (params[i].default_value ? !(known[i] == *params[i].default_value) : !known[i].is_none()) return false;
    return true;
  }
};

}  // namespace

Session::Session(detail::CompiledState& state) : state_(state) { begin(state.start); }

Session::~Session() {
  // Only after an error: what was recorded but not run has no value.
  for (Held& held : held_)
    if (held.storage->recorder() == this) held.storage->end_recording();
}

void Session::begin(Place& place) {
  place_ = &place;
  trace_ = nullptr;
  position_ = 0;
  prefix_ = 0;
  making_ = false;
  numbers_ = 0;
  inputs_.clear();
  inputs_of_.clear();
  snapshots_.clear();
  nodes_.clear();
  first_sequence_ = autograd::next_sequence_nr();
  held_.clear();
  random_key_ = kNoNumber;
  random_taken_ = 0;
  random_input_ = -1;
}

// ---- Events.

Number Session::follow(Event event) {
  event.first = numbers_;
  if (!making_ && !trace_ && !place_->traces.empty())
    trace_ = place_->traces[std::min(place_->latest, place_->traces.size() - 1)].get();
  bool agrees = !making_ && trace_ && position_ < trace_->events.size() && same(trace_->events[position_], event);
  uint64_t prefix = agrees ? trace_->events[position_].prefix : mix(prefix_, hash_of(event));
  if (!making_ && !agrees) {
    Trace* other = nullptr;
    for (const auto& t : place_->traces)
      if (t->events.size() > position_ && t->events[position_].prefix == prefix && same(t->events[position_], event))
        other = t.get();
    if (other)
      trace_ = other;
    else
      fork(&event);
  }
  if (making_) {
    event.prefix = prefix;
    std::vector<ir::Type> types;
    if (event.row) {
      types = types_of(event);
      event.count = static_cast<uint32_t>(types.size());
    } else {
      types = {{event.guard.dtype, shape_of(event.guard.sizes), event.guard.weak}};
    }
    trace_->types.insert(trace_->types.end(), types.begin(), types.end());
    trace_->events.push_back(std::move(event));
  }
  const Event& known = trace_->events[position_++];
  prefix_ = prefix;
  numbers_ += known.count;
  return known.first;
}

// From here on a new trace: the events so far are those of the one followed. `came` is null at the end of a segment.
void Session::fork(const Event* came) {
  auto fresh = std::make_unique<Trace>();
  if (trace_) {
    fresh->events.assign(trace_->events.begin(), trace_->events.begin() + static_cast<int64_t>(position_));
    fresh->types.assign(trace_->types.begin(), trace_->types.begin() + numbers_);
  }
  if (!place_->traces.empty()) {
    const Event* expected = trace_ && position_ < trace_->events.size() ? &trace_->events[position_] : nullptr;
    state_.recompiles.push_back(difference(came, expected));
    if (static_cast<int>(place_->traces.size()) >= state_.options.recompile_limit) state_.over_limit = true;
  }
  place_->traces.push_back(std::move(fresh));
  trace_ = place_->traces.back().get();
  making_ = true;
}

std::vector<ir::Type> Session::types_of(const Event& event) const {
  ir::Graph side;
  ir::Facts facts;
  std::unordered_map<uint32_t, ir::Value> values;
  auto mapped = [&](ir::Value v) {
    if (v.index == 0) return ir::Value{};
    auto [it, fresh] = values.try_emplace(v.index);
    if (fresh) it->second = side.add_input(trace_->types.at(v.index - 1));
    return it->second;
  };
  ir::Args args;
  for (const ir::Arg& a : event.args) {
    if (auto* v = a.get_if<ir::Value>()) {
      args.push_back(ir::Arg(mapped(*v)));
    } else if (auto* list = a.get_if<std::vector<ir::Value>>()) {
      std::vector<ir::Value> items;
      for (ir::Value v : *list) items.push_back(mapped(v));
      args.push_back(ir::Arg(std::move(items)));
    } else {
      args.push_back(a);
    }
  }
  return ops::result_types(*event.row, args, facts);
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
  Event event;
  event.guard = {InputGuard::Kind::Tensor, impl.dtype, impl.sizes, impl.strides, impl.weak};
  known.push_back(static_cast<int>(inputs_.size()));
  inputs_.push_back({t, follow(std::move(event))});
  return inputs_.back().number;
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
    known.value = follow(std::move(event));
    return;
  }
  event.row = &transforms::put_row(*view->row, view->result);
  auto args = view->args->args();
  event.args = Numbered{*view->row, args, operands(args, number_of(view->parent)), true}.node_args();
  event.args.push_back(ir::Arg(numbered(value)));
  put(view->parent, follow(std::move(event)));
}

Tensor Session::make_recorded(Number n) {
  const ir::Type& type = trace_->types[n];
  Sizes sizes;
  int64_t bytes = size_of(type.dtype);
  for (ir::Expr e : type.shape) {
    sizes.push_back(e.constant());
    bytes *= e.constant();
  }
  StorageRef storage(Storage::recorded(static_cast<size_t>(bytes), this, static_cast<uint32_t>(held_.size())));
  Sizes strides = contiguous_strides(sizes);
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

// Calls are compared with what is known before anything is made of them: agreeing is the rule.
Number Session::follow(const ops::Row& row, std::span<const CallArg> args, Number first) {
  Operands values = operands(args, first);
  Numbered call{row, args, values, first != kNoNumber};
  if (!making_ && trace_ && position_ < trace_->events.size()) {
    const Event& known = trace_->events[position_];
    if (known.row == &row && call.agrees(known.args)) {
      ++position_;
      prefix_ = known.prefix;
      numbers_ += known.count;
      return known.first;
    }
  }
  Event event;
  event.row = &row;
  event.args = call.node_args();
  return follow(std::move(event));
}

void Session::call(const ops::Row& row, std::span<const CallArg> args, std::vector<Tensor>& results) {
  Number first = follow(row, args);
  last_call_ = static_cast<uint32_t>(position_ - 1);
  uint32_t count = trace_->events[position_ - 1].count;
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

Tensor Session::random_key() {
  if (random_key_ == kNoNumber) {
    Event event;
    event.guard = {InputGuard::Kind::RandomKey, DType::Int64, {2}, {1}, false};
    random_input_ = static_cast<int>(inputs_.size());
    random_key_ = follow(std::move(event));
    inputs_.push_back({Tensor(), random_key_});
  }
  if (random_taken_ == 0) return make_recorded(random_key_);
  Event event;
  event.row = &ops::at("brasa::advance_key");
  event.args = {ir::Arg(numbered(random_key_)), ir::Arg(random_taken_)};
  return make_recorded(follow(std::move(event)));
}

void Session::advance_random(int64_t numbers) { random_taken_ += (numbers + 3) / 4 * 4; }

void Session::made(const std::shared_ptr<autograd::Node>& node, uint32_t call, std::span<const Tensor> results) {
  RecordedNode recorded{node, call, {}};
  for (const Tensor& t : results) {
    bool carries = t.defined() && (is_floating(t.scalar_type()) || brasa::is_complex(t.scalar_type()));
    recorded.results.push_back(carries ? number_of(t) : kNoNumber);
  }
  nodes_.push_back(std::move(recorded));
}

void Session::materialise(const char* reason) {
  BRASA_CHECK(!state_.options.fullgraph, "compile: graph break where fullgraph was asked for: ", reason,
              " needs a value while the function is recorded");
  if (std::find(state_.breaks.begin(), state_.breaks.end(), reason) == state_.breaks.end())
    state_.breaks.emplace_back(reason);
  run_segment();
  begin(trace_ ? trace_->next : *place_);
}

void Session::finish() {
  run_segment();
  begin(*place_);
}

// ---- Running.

Variant& Session::variant_for(const std::vector<Delivery>& deliveries, const std::shared_ptr<const Joint>& joint) {
  for (Variant& v : trace_->variants)
    if (v.deliveries == deliveries && (v.halves ? v.halves->joint : nullptr) == joint) return v;
  Variant v;
  v.deliveries = deliveries;
  v.graph = trace_->graph(deliveries);
  if (joint) {
    v.halves = compile_halves(joint, deliveries, state_.backend, state_.options.mode);
    v.executable = v.halves->forward;
  } else {
    v.executable = state_.backend(*v.graph, state_.options.mode);
  }
  trace_->variants.push_back(std::move(v));
  return trace_->variants.back();
}

std::optional<GradientFlow> Session::find_gradient_flow() {
  // A pass that is under way goes through the nodes themselves.
  if (nodes_.empty() || autograd::in_backward() || state_.options.backend == "eager") return std::nullopt;
  std::vector<const Tensor*> own;
  for (const auto& [storage, tensors] : snapshots_)
    for (const Tensor& t : tensors) own.push_back(&t);
  for (const BoundInput& in : inputs_) own.push_back(&in.tensor);
  return gradient_flow(nodes_, own, first_sequence_);
}

std::shared_ptr<const Joint> Session::joint_for(const GradientFlow& flow) {
  auto it = std::find_if(trace_->joints.begin(), trace_->joints.end(),
                         [&](const auto& joint) { return joint->key == flow.key; });
  if (it == trace_->joints.end()) it = trace_->joints.insert(it, record_joint(flow));
  return (*it)->roots.empty() ? nullptr : *it;
}

// Records the backward pass behind the segment's own events, in a trace of its own. Without roots if there is none.
std::shared_ptr<const Joint> Session::record_joint(const GradientFlow& flow) {
  auto joint = std::make_shared<Joint>();
  joint->key = flow.key;
  joint->trace.events = trace_->events;
  joint->trace.types = trace_->types;
  joint->inputs = inputs_.size();
  joint->events = trace_->events.size();
  joint->needs.insert(flow.needs.begin(), flow.needs.end());
  Trace* const trace = std::exchange(trace_, &joint->trace);
  const bool making = std::exchange(making_, true);
  const size_t position = position_, held = held_.size();
  const Number numbers = numbers_;
  const uint64_t prefix = prefix_;
  const int64_t random = random_taken_;
  // Their hooks are for the gradients of a real pass.
  std::vector<autograd::Node::Internals> hooks(flow.roots.size());
  auto swap_hooks = [&] {
    for (size_t i = 0; i < hooks.size(); ++i) {
      autograd::Node::Internals& in = flow.roots[i]->internals();
      std::swap(in.tensor_hooks, hooks[i].tensor_hooks);
      std::swap(in.pre_hooks, hooks[i].pre_hooks);
      std::swap(in.retains, hooks[i].retains);
    }
  };
  swap_hooks();
  try {
    std::vector<autograd::Edge> from;
    std::vector<Tensor> cts;
    for (const GradientFlow::Slot& s : flow.slots) {
      const ir::Type& type = trace_->types[s.number];
      Event event;
      for (ir::Expr e : type.shape) event.guard.sizes.push_back(e.constant());
      event.guard.strides = contiguous_strides(event.guard.sizes);
      event.guard.dtype = type.dtype;
      joint->roots.push_back(s.number);
      from.push_back({flow.roots[s.root], s.result});
      cts.push_back(make_recorded(follow(std::move(event))));
    }
    for (const Tensor& g : autograd::gradients(from, cts, flow.leaves, false))
      joint->gradients.push_back(g.defined() ? number_of(g) : kNoNumber);
    if (inputs_.size() != joint->inputs || random_taken_ != random) joint->roots.clear();
  } catch (const Error&) {
    joint->roots.clear();  // an operator without a derivative: the error comes if the pass really runs
  }
  swap_hooks();
  for (size_t i = held; i < held_.size(); ++i) held_[i].storage->end_recording();
  held_.erase(held_.begin() + static_cast<int64_t>(held), held_.end());
  trace_ = trace;
  making_ = making;
  position_ = position;
  numbers_ = numbers;
  prefix_ = prefix;
  random_taken_ = random;
  return joint;
}

// Memory for what the forward half leaves for backward, and operands for what it has to compute for that.
void Session::keep_for_backward(const Variant& variant, const std::vector<Held*>& fresh, const int64_t* symbols,
                                SavedRun& run, std::vector<compiler::Operand>& outputs) {
  Recorder::Scope alone(nullptr);
  NoGradGuard guard;
  auto intermediate = variant.halves->intermediates.begin();
  for (const transforms::Saved& s : variant.halves->saved) {
    switch (s.from) {
      case transforms::Saved::From::Input:
        run.saved.push_back(variant.halves->written[s.index] ? run.inputs[s.index].clone() : run.inputs[s.index]);
        break;
      case transforms::Saved::From::Output: {
        auto end = variant.deliveries.begin() + s.index;
        const Held& h =
            *fresh[std::count_if(variant.deliveries.begin(), end, [](const Delivery& d) { return d.into < 0; })];
        run.saved.push_back(make_tensor(h.storage, h.dtype, h.sizes, h.strides, 0));
        break;
      }
      case transforms::Saved::From::Intermediate: {
        Sizes sizes;
        for (ir::Expr e : intermediate->shape) sizes.push_back(variant.executable->evaluate(e, symbols));
        run.saved.push_back(make_tensor(sizes, intermediate++->dtype));
        outputs.push_back(operand_of(run.saved.back()));
        break;
      }
    }
  }
}

void Session::run_segment() {
  if (!trace_) return;
  place_->latest = static_cast<size_t>(
      std::find_if(place_->traces.begin(), place_->traces.end(), [&](const auto& t) { return t.get() == trace_; }) -
      place_->traces.begin());
  // A followed trace that went on beyond this point is another one.
  if (!making_ && position_ < trace_->events.size()) {
    Trace* shorter = nullptr;
    for (const auto& t : place_->traces)
      if (t->events.size() == position_ && (position_ == 0 || t->events.back().prefix == prefix_)) shorter = t.get();
    if (shorter) {
      trace_ = shorter;
    } else {
      fork(nullptr);
    }
  }
  std::optional<GradientFlow> flow = find_gradient_flow();
  std::shared_ptr<const Joint> joint = flow ? joint_for(*flow) : nullptr;
  // The segment's node takes the place of the recorded ones, so that what only they kept is not delivered. Until the run has
  // given it something to keep, the roots lead nowhere.
  if (joint) redirect(*flow, nullptr);
  nodes_.clear();
  snapshots_.clear();
  // Recorded storages that somebody still holds, and inputs that were written.
  std::vector<Delivery> deliveries;
  std::vector<Held*> fresh;
  for (Held& h : held_) {
    if (h.input >= 0)
      deliveries.push_back({h.value, h.input});
    else if (h.storage->use_count() > 1) {
      deliveries.push_back({h.value, -1});
      fresh.push_back(&h);
    }
  }
  if (!deliveries.empty()) {
    Variant& variant = variant_for(deliveries, joint);
    const compiler::Executable& executable = *variant.executable;
    std::vector<compiler::Operand> inputs, outputs;
    Generator::Key key{0, 0};
    if (random_input_ >= 0) key = default_generator().take(static_cast<uint64_t>(random_taken_));
    int64_t key_data[2] = {key.seed, key.offset};
    static constexpr int64_t kTwo[1] = {2}, kOne[1] = {1};
    for (const BoundInput& in : inputs_) {
      if (!in.tensor.defined()) {
        inputs.push_back({key_data, DType::Int64, kTwo, kOne});
        continue;
      }
      const TensorImpl& impl = *impl_of(in.tensor);
      inputs.push_back({static_cast<char*>(impl.storage->data()) + impl.offset * size_of(impl.dtype), impl.dtype,
                        impl.sizes, impl.strides});
    }
    for (Held* h : fresh) {
      h->storage->end_recording();
      h->storage->allocate(h->storage->bytes());
      outputs.push_back({h->storage->data(), h->dtype, h->sizes, h->strides});
    }
    SmallVector<int64_t, 8> symbols(executable.symbol_count());
    executable.bind(inputs, symbols.data());
    SavedRun kept;
    if (joint) {
      // Their memory is read as it is before the run.
      for (Held& h : held_) h.storage->end_recording();
      for (const BoundInput& in : inputs_) {
        kept.inputs.push_back(in.tensor);
        if (in.tensor.defined()) continue;
        kept.inputs.back() = make_tensor(kTwo, DType::Int64);
        std::copy(key_data, key_data + 2, static_cast<int64_t*>(impl_of(kept.inputs.back())->storage->data()));
      }
      keep_for_backward(variant, fresh, symbols.data(), kept, outputs);
    }
    executable.run(symbols.data(), inputs, outputs);
    if (joint) redirect(*flow, make_segment_node(variant.halves, kept, *flow));
  }
  for (Held& h : held_) h.storage->end_recording();
}

}  // namespace brasa::capture
