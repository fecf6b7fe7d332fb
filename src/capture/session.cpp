#include "capture/session.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include <brasa/autograd.h>

#include "capture/kept_values.h"
#include "capture/stance.h"
#include "capture/uncompiled.h"
#include "support/epoch.h"
#include "support/error.h"
#include "support/log.h"
#include "support/source_line.h"
#include "tensor/autograd/meta.h"
#include "tensor/dispatch.h"
#include "tensor/execute.h"
#include "tensor/views.h"
#include "transforms/derived.h"

namespace brasa::capture {

using program::Variant;

// A function with more breaks in a call (a loop until a value is small) shares a point for the rest: it repeats itself.
constexpr int kOwnPoints = 64;

Session::Session(detail::CompiledState& state, Watch* watch, Work* work)
    : state_(state), watch_(watch), work_(work), path_(state) {
  Workspace spare = Workspace::take();
  inputs_ = std::move(spare.inputs);
  held_ = std::move(spare.held);
  begin(state.start);
}

Session::~Session() {
  if (!finished_ && !held_.empty()) {
    // The function ended with an error. What it did before happens all the same, without compiling a graph for it.
    try {
      deliver(false);
    } catch (const std::exception&) {
      lose();
    }
  }
  inputs_.clear();
  held_.clear();
  Workspace::give({std::move(held_), std::move(inputs_)});
}

void Session::begin(ResumePoint& point) {
  ++segments_;
  path_.begin(point);
  inputs_.clear();
  snapshots_.clear();
  nodes_.clear();
  position_of_.clear();
  known_nodes_ = 0;
  writes_.clear();
  first_sequence_ = autograd::next_sequence_nr();
  held_.clear();
  device_ = nullptr;
  begin_ahead();
}

// A segment runs on one device: a call on another one begins the next.
void Session::place(std::span<const CallArg> args) {
  runtime::Device& device = eager::common_device(eager::CallArgs(args.data(), args.size()));
  if (device_ && device_ != &device) materialise("an operator on another device");
  device_ = &device;
}

// ---- Tensors and numbers.

Number Session::outside(const Tensor& t) {
  BRASA_CHECK(impl_of(t)->storage->recorder() == nullptr,
              "a tensor of another recording, which has not run yet, was used");
  // Views of a tensor from outside are read through it, so that one memory is one input.
  if (eager::view_of(*impl_of(t))) return view_number(t);
  if (const BoundInputs::Bound* known = inputs_.same_as(*impl_of(t))) return known->number;
  Number n = path_.input(*impl_of(t));
  inputs_.add(t, n);
  if (ahead_) run_ahead(t);
  return n;
}

Held& Session::hold_outside(const Tensor& t) {
  const TensorImpl& impl = *impl_of(t);
  Number n = outside(t);
  int input = inputs_.last_of(impl);
  while (inputs_[input].number != n) input = inputs_[input].before;
  impl.storage->set_recorder(this, static_cast<uint32_t>(held_.size()));
  return held_.emplace_back(impl, n, input);
}

bool Session::may_hold(const Tensor& target, Number& value) {
  const TensorImpl &impl = *impl_of(target), &base = *impl_of(eager::base_of(target));
  int shared = inputs_.last_of(impl);
  if (shared >= 0 && (inputs_[shared].before >= 0 || !inputs_.same_as(base))) {
    // Several inputs look at this memory; they must have been read before it changes.
    Tensor kept = make_recorded(value);
    materialise("a write to memory that several tensors share");
    value = number_of(kept);
  }
  return true;
}

inline Tensor Session::make(Number n) {
  const RowMajor* known = path_.trace().shape(n);
  return known ? hold_new(n, *known, path_.type(n).dtype, device()) : make_sized(n);
}

Tensor Session::make_recorded(Number n) { return make(n); }

Tensor Session::make_sized(Number n) {
  const ir::Type& type = path_.type(n);
  Sizes sizes;
  for (ir::Expr e : type.shape) {
    sizes.push_back(path_.binding()(e));
    // A graph for all sizes is followed at sizes that its operator refuses.
    BRASA_CHECK(sizes.back() >= 0, path_.last().row ? path_.last().row->name() : "compile",
                ": a result's dimension would be ", sizes.back());
  }
  return hold_new(n, RowMajor(sizes, type.dtype), type.dtype, device());
}

void Session::moves(const Tensor& t) {
  if (watch_) watch_->refuse("a tensor comes to look at other memory");
  inputs_.keep(t);
}

void Session::changes(const Held& held) {
  writes_.push_back({path_.position(), static_cast<uint32_t>(&held - held_.data()), held.value});
}

// ---- Calls.

// The rule in a function that was called before: every call is the next one of the trace, of contiguous tensors that it knows. A
// call that reads an input for the first time, through a view or on another device is looked at by `call`.
bool Session::follow(const ops::Row& row, std::span<const CallArg> args, eager::Results& results) {
  const Event* next = path_.expected();
  if (!next || next->row != &row || next->view) return false;
  bool on_device = false;
  constexpr ir::Value kUnknown{nullptr, kNoNumber};
  auto operand = [&](const Tensor& t) __attribute__((always_inline)) {
    const TensorImpl& impl = *impl_of(t);
    if (!impl.contiguous || impl.sparse) return kUnknown;
    const Storage& memory = *impl.storage->root();
    if (Recorder* recorder = memory.recorder()) {
      const Held* known = recorder == this ? &held_[memory.recorder_slot()] : nullptr;
      on_device = true;
      return known && known->covers(impl) ? numbered(known->value) : kUnknown;
    }
    on_device = on_device || &memory.device() == device_;
    const BoundInputs::Bound* bound = eager::view_of(impl) ? nullptr : inputs_.same_as(impl);
    return bound ? numbered(bound->number) : kUnknown;
  };
  Matching matching = path_.matching();
  if (!matching.call(*next, args, operand) || !on_device) {
    matching.undo();
    return false;
  }
  Number first = path_.advance();
  results.resize(next->count);
  for (uint32_t r = 0; r < next->count; ++r) results[r] = make(first + r);
  return true;
}

Number Session::record(const ops::Row& row, std::span<const CallArg> args, const Operands& operands, bool view,
                       uint32_t& count) {
  Number first = path_.call(row, args, operands, view, names_.get());
  count = path_.last().count;
  return first;
}

Number Session::record_put(const ops::Row& view, int result, std::span<const CallArg> args, const Operands& operands,
                           Number value) {
  Event event;
  event.row = &transforms::put_row(view, result);
  event.args = Numbered{view, args, operands, true}.node_args();
  event.args.push_back(ir::Arg(numbered(value)));
  uint64_t exact = names_ ? names_->put_in(event, args) : 0;
  return path_.step(std::move(event), {.exact = exact});
}

Names& Session::know_sizes() {
  names_ = std::make_unique<Names>(*this, path_, [this](const Tensor& t) -> std::optional<Number> {
    const Tensor& base = eager::base_of(t);
    bool known = impl_of(base)->storage->recorder() == this || inputs_.same_as(*impl_of(base));
    return known ? std::optional(number_of(t)) : std::nullopt;
  });
  return *names_;
}

std::unique_ptr<ir::Graph> Session::graph_of(std::span<const Tensor> tensors) {
  std::vector<Delivery> deliveries;
  for (const Tensor& t : tensors) deliveries.push_back({number_of(t), -1, {}});
  return path_.trace().graph(deliveries);
}

void Session::drew(const Tensor& key, const Generator& stream, uint64_t count) {
  if (watch_) watch_->draws.push_back({key, stream, count});
}
void Session::host_reads(const Tensor&, const char* what) {
  if (watch_) watch_->refuse(str(what, " reads a value"));
}
void Session::meets_gradient(const Tensor& leaf) {
  if (!watch_) return;
  // The gradient of what the recording made goes with it.
  const Storage& storage = *impl_of(leaf)->storage.get();
  if (storage.recorder() == this && held_[storage.recorder_slot()].input < 0) return;
  watch_->graded.push_back(leaf);
}

void Session::materialise(const char* reason) {
  if (watch_) watch_->refuse(str("a graph break: ", reason, " needs a value"));
  BRASA_CHECK(!state_.options.fullgraph, "compile: graph break where fullgraph was asked for: ", reason,
              " needs a value while the function is recorded", at_users_line());
  note_break(reason);
  next_segment();
}

void Session::before_opaque_call() {
  if (watch_) watch_->refuse("a function that allow_in_graph gave");
  note_break("");
  next_segment();
}

void Session::next_segment() {
  // Where it ends with an error that the function catches, recording goes on behind it.
  auto go_on = [&] {
    ResumePoint& next = path_.started() ? path_.trace().next : path_.point();
    begin(++breaks_ < kOwnPoints ? next : state_.far);
  };
  try {
    run_segment();
  } catch (...) {
    go_on();
    throw;
  }
  go_on();
}

void Session::note_break(const char* reason) {
  const ResumePoint* place = path_.point().temporary ? nullptr : &path_.point();
  const ops::Row* after = path_.position() ? path_.last().row : nullptr;
  const ir::Type* read = after && path_.last().count == 1 ? &path_.type(path_.last().first) : nullptr;
  bool decides = *reason && read && read->dtype == DType::Bool && read->shape.empty();
  auto is_this = [&](const Break& b) { return b.place == place && b.after == after && b.reason == reason; };
  // A trace mostly ends where it ended the last time.
  Break* known = path_.started() ? std::atomic_ref(path_.trace().ended).load(std::memory_order_acquire) : nullptr;
  if (!known || !is_this(*known)) {
    std::lock_guard lock(state_.mutex);
    auto it = std::find_if(state_.breaks.begin(), state_.breaks.end(), is_this);
    bool fresh = it == state_.breaks.end();
    known = fresh ? &state_.breaks.emplace_back(Break{place, after, reason, call_stack(), decides, 0}) : &*it;
    if (path_.started()) std::atomic_ref(path_.trace().ended).store(known, std::memory_order_release);
  }
  std::atomic_ref(known->count).fetch_add(1, std::memory_order_relaxed);
}

void Session::finish() {
  finished_ = true;
  run_segment();
}

void Session::abandon() {
  finished_ = true;
  lose();
}

// ---- Running.

void Session::run_segment() {
  try {
    if (!path_.end()) return;
    deliver(path_.kept());
  } catch (...) {
    lose();
    throw;
  }
}

// Gives recorded storages that somebody still holds their memory, and inputs that were written their values.
void Session::deliver(bool compile) {
  std::optional<GradientFlow> flow = compile ? find_gradient_flow() : std::nullopt;
  std::shared_ptr<const JointSegment> joint = flow ? joint_for(*flow) : nullptr;
  // The segment's node takes the place of the recorded ones, so that what only they kept is not delivered. Until the run has
  // given it something to keep, the roots lead nowhere.
  if (joint) redirect(*flow, nullptr);
  if (watch_ && !joint)
    for (const RecordedNode& r : nodes_)
      if (auto node = r.node.lock()) watch_->spent = watch_->spent || node->internals().released;
  differentiated_ = !nodes_.empty();
  bool nodes_stay = !joint && keep_results();
  if (work_) work_->backward = work_->backward || joint || nodes_stay;
  nodes_.clear();
  snapshots_.clear();
  std::vector<Delivery> deliveries;
  std::vector<Held*> fresh;
  deliveries.reserve(held_.size());
  for (Held& h : held_) {
    if (h.input >= 0) {
      deliveries.push_back({h.value, h.input, {}});
    } else if (h.storage->use_count() > 1) {
      deliveries.push_back({h.value, -1, order_of(h)});
      fresh.push_back(&h);
    }
  }
  bool any = joint || !deliveries.empty();
  if (any && !(compile && run_compiled(deliveries, fresh, joint, flow))) run_uncompiled(deliveries, joint, flow);
  for (Held& h : held_) h.storage->end_recording();
  held_.clear();
}

// Gives a storage its value; inputs have their memory, and may have it already.
void Session::store(Held& h, const Tensor& value) {
  Recorder::Scope alone(nullptr);
  NoGradGuard guard;
  if (h.input < 0) {
    h.storage->allocate(h.storage->bytes());
  } else if (inputs_[h.input].number == h.value) {
    return;
  }
  // The write was counted when it was recorded.
  Tensor to = make_tensor(StorageRef(Storage::alias(h.storage.get())), h.dtype, h.sizes(), h.strides(), h.offset);
  to.copy_(value);
}

namespace {

constexpr uint64_t kOrder = ~uint64_t{0} << 8;  // no delivery looks like this

// What tells the programs of one segment apart, beside the sizes.
std::vector<uint64_t> signature(const std::vector<Delivery>& deliveries, const JointSegment* joint,
                                const runtime::Device& device) {
  std::vector<uint64_t> words{reinterpret_cast<uintptr_t>(joint), reinterpret_cast<uintptr_t>(&device)};
  for (const Delivery& d : deliveries) {
    words.push_back(uint64_t{d.number} << 32 | static_cast<uint32_t>(d.into));
    if (d.order.empty()) continue;
    words.push_back(kOrder + d.order.size());
    words.insert(words.end(), d.order.begin(), d.order.end());
  }
  return words;
}

}  // namespace

// Null if the limit is reached.
const Variant* Session::variant_for(const std::vector<Delivery>& deliveries,
                                    const std::shared_ptr<const JointSegment>& joint,
                                    std::span<const compiler::Operand> inputs, program::SymbolValues& symbols) {
  std::vector<uint64_t> words = signature(deliveries, joint.get(), device());
  program::VariantKey key(path_.trace().owner, words);
  program::VariantCache& cache = program::VariantCache::get();
  if (const Variant* v = cache.find(key, inputs, symbols)) return v;
  std::lock_guard lock(state_.mutex);
  if (const Variant* v = cache.find(key, inputs, symbols)) return v;
  std::vector<ir::Fact> failed = cache.failed(key, inputs);
  if (!failed.empty()) {
    std::string reason = str("sizes: ", failed.front(), " does not hold");
    if (std::find(state_.recompiles.begin(), state_.recompiles.end(), reason) == state_.recompiles.end())
      state_.recompiles.push_back(reason);
    if (logs("recompiles")) log_line("recompiles", reason);
  }
  if (static_cast<int>(failed.size()) >= state_.options.recompile_limit) return nullptr;
  if (!may_compile(failed.empty() ? "other results are wanted" : str(failed.front(), " does not hold"))) return nullptr;
  const Variant* v = cache.insert(key, compiled(deliveries, joint));
  v->program.bind(inputs, symbols);
  return v;
}

std::shared_ptr<compiler::Executable> Session::executable(const Trace& trace, const std::vector<Delivery>& deliveries,
                                                          const ir::Graph& graph, ir::Facts& facts) {
  // Other backends than those that see primitives get operators.
  bool primitives = is_built_in(state_.options.backend) && state_.options.backend != "eager";
  std::unique_ptr<ir::Graph> recomputing =
      primitives ? recomputing_graph(trace, deliveries, state_.options, facts, device()) : nullptr;
  const ir::Graph& made = recomputing ? *recomputing : graph;
  return state_.backend(made, facts, state_.options, device(), lasting_inputs(made));
}

Variant Session::compiled(const std::vector<Delivery>& deliveries, const std::shared_ptr<const JointSegment>& joint) {
  const Trace& trace = path_.trace();
  const Binding& binding = path_.binding();
  Variant v{program::Program(trace.graph(deliveries), device()), nullptr};
  ir::Facts facts(binding.symbols);
  if (joint) {
    auto halves = std::make_shared<Halves>(joint, deliveries, state_.backend, state_.options, facts, device());
    v.executable = halves->forward.executable;
    v.program.conditions = halves->forward.program.conditions;
    v.attachment = std::move(halves);
    return v;
  }
  Trace of_these_sizes;
  const Trace* source = &trace;
  if (!binding.symbols.empty()) {
    try {
      v.executable = executable(trace, deliveries, *v.program.graph, facts);
      v.program.conditions = program::Conditions(facts.facts());
      return v;
    } catch (const std::exception& e) {
      if (logs("recompiles")) log_line("recompiles", str("the graph is made for these sizes alone: ", e.what()));
    }
    // A backend that needs to know the sizes gets them; the symbols are still those of the segment.
    program::Symbols symbols = std::move(v.program.symbols);
    of_these_sizes = trace.sized(binding);
    source = &of_these_sizes;
    v.program = program::Program(source->graph(deliveries), device());
    v.program.symbols = std::move(symbols);
    std::vector<ir::Fact> sizes;
    for (uint32_t k = 0; k < binding.symbols.size(); ++k)
      sizes.push_back({ir::Expr::size(k), ir::Expr(binding.symbols[k]), true});
    v.program.conditions = program::Conditions(std::move(sizes));
  }
  ir::Facts none;
  v.executable = executable(*source, deliveries, *v.program.graph, none);
  return v;
}

// Modules' tensors, but those that an optimizer outside is about to change.
Lasting Session::lasting_inputs(const ir::Graph& graph) const {
  std::vector<bool> written(graph.inputs().size());
  for (const ir::Output& o : graph.outputs())
    if (o.into >= 0) written[o.into] = true;
  Lasting out;
  for (const BoundInputs::Bound& in : inputs_) {
    const TensorImpl& t = *impl_of(in.tensor);
    bool trained = differentiated_ && t.autograd && t.autograd->requires_grad && !written[out.size()];
    out.push_back(t.registered && !trained);
  }
  return out;
}

// False, with nothing done, if the limit of variants is reached.
bool Session::run_compiled(const std::vector<Delivery>& deliveries, const std::vector<Held*>& fresh,
                           const std::shared_ptr<const JointSegment>& joint, const std::optional<GradientFlow>& flow) {
  std::vector<Tensor> given = argument_tensors(path_.trace(), path_.binding());
  std::vector<compiler::Operand> inputs, outputs;
  inputs.reserve(inputs_.size() + given.size());
  outputs.reserve(fresh.size());
  for (const BoundInputs::Bound& in : inputs_) inputs.push_back(eager::operand_of(in.tensor));
  for (const Tensor& t : given) inputs.push_back(eager::operand_of(t));
  program::SymbolValues symbols;
  Epoch::Reading reading;
  const Variant* variant = variant_for(deliveries, joint, inputs, symbols);
  if (!variant) return false;
  for (uint32_t i : variant->executable->lasting()) {
    inputs[i].content = inputs_[i].content;
    inputs[i].content_after = impl_of(inputs_[i].tensor)->storage->content_delivered();
  }
  // They have their values when the run has ended.
  std::vector<StorageRef> memory;
  std::vector<Fresh> results;
  results.reserve(fresh.size());
  for (Held* h : fresh) {
    memory.emplace_back(Storage::make(h->storage->bytes(), device()));
    const Fresh& result = results.emplace_back(Fresh{h->storage, h->dtype, Layout(*h)});
    outputs.push_back({memory.back()->data(), h->dtype, result.at.sizes, result.at.strides});
  }
  SavedRun kept;
  kept.binding = path_.binding();
  if (joint) {
    // Their memory is read as it is before the run.
    for (Held& h : held_)
      if (h.input >= 0) h.storage->end_recording();
    for (const BoundInputs::Bound& in : inputs_) kept.inputs.push_back(in.tensor);
    kept.inputs.insert(kept.inputs.end(), given.begin(), given.end());
    keep_for_backward(static_cast<const Halves&>(*variant->attachment), deliveries, results, device(), kept, outputs);
  }
  try {
    run(*variant, symbols, inputs, outputs);
  } catch (const Error&) {
    if (joint) redirect(*flow, make_failed_node(*flow));
    deliver_until_error();
    throw;
  }
  for (size_t i = 0; i < fresh.size(); ++i) fresh[i]->storage->take_memory(*memory[i].get());
  auto halves = joint ? std::static_pointer_cast<const Halves>(variant->attachment) : nullptr;
  if (joint) redirect(*flow, make_segment_node(halves, kept, *flow));
  if (work_) count_work(*variant, symbols);
  if (watch_) {
    Watch& w = *watch_;
    w.trace = &path_.trace();
    w.device = &device();
    w.binding = path_.binding();
    for (const BoundInputs::Bound& in : inputs_) w.inputs.push_back(in.tensor);
    w.inputs.insert(w.inputs.end(), given.begin(), given.end());
    w.given = given.size();
    w.symbols = symbols;
    w.executable = variant->executable;
    w.halves = std::move(halves);
    w.deliveries = deliveries;
    w.fresh = std::move(results);
    if (flow) w.flow = *flow;
  }
  return true;
}

void Session::count_work(const Variant& variant, const program::SymbolValues& symbols) {
  work_->ran(variant.executable.get(), {symbols.data(), symbols.size()});
  work_->comparable = work_->comparable && device().on_host();
  if (!work_->weigh) return;
  work_->settled = variant.executable->optimize(false) && work_->settled;
  if (!work_->settled) return;
  for (const Event& e : path_.trace().events) {
    if (!e.row || e.count == 0) continue;
    const ir::Type& t = path_.type(e.first);
    work_->operators.emplace(e.row, t.dtype, t.shape.size());
  }
  for (const ir::Type& t : path_.trace().types) {
    int64_t bytes = size_of(t.dtype);
    for (ir::Expr e : t.shape) bytes *= path_.binding()(e);
    work_->bytes += bytes;
  }
}

}  // namespace brasa::capture
