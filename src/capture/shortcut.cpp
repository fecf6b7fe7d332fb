#include "capture/shortcut.h"

#include <algorithm>
#include <utility>

#include "capture/matching.h"
#include "runtime/device.h"
#include "support/error.h"
#include "support/pooled.h"
#include "tensor/autograd/checkpoint.h"
#include "tensor/autograd/meta.h"
#include "tensor/execute.h"
#include "tensor/program_state.h"
#include "tensor/recorded_call.h"
#include "tensor/recorder.h"

namespace brasa::capture {

std::optional<Surroundings> Surroundings::now() {
  if (autograd::in_backward() || autograd::in_checkpoint() || autograd::AnomalyMode::is_enabled()) return std::nullopt;
  Surroundings s{GradMode::is_enabled(),
                 InferenceMode::is_enabled(),
                 get_default_dtype(),
                 get_default_device(),
                 eager::scoped_device(),
                 std::nullopt,
                 program_state.load(std::memory_order_relaxed)};
  if (eager::autocasting()) s.autocast.emplace();
  return s;
}

uint8_t autograd_state(const TensorImpl& t) {
  if (!t.autograd) return 0;
  return static_cast<uint8_t>(t.autograd->requires_grad | (t.autograd->grad_fn != nullptr) << 1);
}

Gradient::Gradient(const TensorImpl& leaf) : matters(true) {
  if (!leaf.autograd || !leaf.autograd->grad.defined()) return;
  defined = true;
  exact = impl_of(leaf.autograd->grad);
}

bool Gradient::holds(const TensorImpl& leaf) const {
  if (!matters) return true;
  const autograd::AutogradMeta* meta = leaf.autograd.get();
  if (!meta) return !defined;
  // Their functions would see what the recording's operators give.
  if (meta->hooks || !meta->post_hooks.empty()) return false;
  return meta->grad.defined() == defined && (!exact || impl_of(meta->grad) == exact);
}

Likeness::Likeness(const TensorImpl& t)
    : dtype(t.dtype),
      sizes(t.sizes),
      strides(t.strides),
      offset(t.offset),
      device(&t.device()),
      autograd(autograd_state(t)),
      weak(t.weak),
      inference(t.inference),
      travels(t.storage->travels()) {}

bool Likeness::fits(const TensorImpl& t) const {
  return dtype == t.dtype && sizes == t.sizes && strides == t.strides && offset == t.offset && device == &t.device() &&
         autograd == autograd_state(t) && weak == t.weak && inference == t.inference && !t.sparse &&
         travels == t.storage->travels() && !t.storage->recorder();
}

namespace {

const Storage* memory_of(const Tensor& t) { return impl_of(t)->storage->root(); }

}  // namespace

bool have_memories_apart(std::span<const Tensor* const> tensors, const Memories& others) {
  constexpr size_t kFew = 8;
  Memories seen(tensors.size() > kFew ? tensors.size() : 0);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i]->defined()) continue;
    const Storage* s = memory_of(*tensors[i]);
    if (others.find(s)) return false;
    if (tensors.size() > kFew) {
      if (std::exchange(seen[s], true)) return false;
      continue;
    }
    for (size_t k = 0; k < i; ++k)
      if (tensors[k]->defined() && memory_of(*tensors[k]) == s) return false;
  }
  return true;
}

bool Shortcut::is_called_with(const Surroundings& now, const Arguments& given_arguments) const {
  if (!(surroundings == now) || given_arguments.tensors.size() != arguments.size() ||
      !std::equal(numbers.begin(), numbers.end(), given_arguments.numbers.begin(), given_arguments.numbers.end(),
                  same_number))
    return false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Argument& a = arguments[i];
    const Tensor& t = *given_arguments.tensors[i];
    if (!a.own || !t.defined()) {
      if (a.own || t.defined()) return false;
      continue;
    }
    const TensorImpl& impl = *impl_of(t);
    if (!a.own->fits(impl)) return false;
    bool view = eager::view_of(impl) != nullptr;
    if (view != a.base.has_value()) return false;
    if (view && !a.base->fits(*impl_of(eager::base_of(t)))) return false;
  }
  return true;
}

bool Shortcut::finds_all_as_it_was() const {
  for (const Met& m : met) {
    const TensorImpl& t = *impl_of(m.tensor);
    if (t.moves != m.moves || t.storage.get() != m.storage || autograd_state(t) != m.autograd ||
        m.storage->recorder() || !m.gradient.holds(t))
      return false;
  }
  return true;
}

namespace {

// Hands on to the segment's node, as the node of the operator does that a recorded result comes from.
class ResultNode final : public autograd::Node, public Pooled {
 public:
  ResultNode(const Shortcut::Root& root, size_t edges) : name_(root.name) {
    next_edges_.resize(edges);
    internals_->results = root.results;
    internals_->forwards = true;
  }
  std::string name() const override { return name_; }

 protected:
  variable_list apply(variable_list&& gradients) override { return std::move(gradients); }

 private:
  std::string name_;
};

// One call that skips the body.
class Run {
 public:
  Run(const Shortcut& shortcut, const Arguments& arguments) : is_(shortcut), arguments_(arguments) {}

  std::vector<Tensor> operator()() {
    draw();
    compute();
    make();
    std::vector<Tensor> out;
    out.reserve(is_.results.size());
    for (const Source& s : is_.results) out.push_back(s.from == Source::From::None ? Tensor() : at(s));
    return out;
  }

 private:
  const Tensor& at(const Source& s) const {
    switch (s.from) {
      case Source::From::Argument: return *arguments_.tensors[s.index];
      case Source::From::ArgumentBase: return eager::base_of(*arguments_.tensors[s.index]);
      case Source::From::Met: return is_.met[s.index].tensor;
      case Source::From::Key: return keys_[s.index];
      default: return made_[s.index];
    }
  }

  void draw() {
    for (const Shortcut::Draw& d : is_.draws) {
      keys_.push_back(eager::new_key());
      Generator stream = d.stream;
      eager::fill(keys_.back(), stream.take(d.count));
    }
  }

  void count_writes() {
    for (const Shortcut::Write& w : is_.writes)
      for (uint32_t k = 0; k < w.versions; ++k) impl_of(at(w.input))->storage->bump_version();
  }

  void compute() {
    std::vector<compiler::Operand> inputs = is_.operands, outputs;
    outputs.reserve(is_.outputs.size());
    for (size_t i = 0; i < is_.inputs.size(); ++i) {
      const Source& s = is_.inputs[i];
      if (s.from == Source::From::Met)
        inputs[i].data = static_cast<char*>(is_.met[s.index].storage->data()) + is_.met[s.index].offset;
      else
        inputs[i] = eager::operand_of(at(s));
    }
    auto content = [&](uint32_t i) { return impl_of(at(is_.inputs[i]))->storage->content(); };
    for (uint32_t i : is_.executable->lasting()) inputs[i].content = content(i);
    for (const Shortcut::Output& o : is_.outputs) {
      memory_.emplace_back(Storage::make(o.bytes, *is_.device));
      outputs.push_back({memory_.back()->data(), o.dtype, o.at.sizes, o.at.strides});
    }
    if (!is_.halves) {
      count_writes();
      for (uint32_t i : is_.executable->lasting()) inputs[i].content_after = content(i);
      return is_.executable->run(is_.symbols.data(), inputs, outputs);
    }
    for (uint32_t i : is_.executable->lasting()) inputs[i].content_after = inputs[i].content;
    SavedRun kept;
    kept.binding = is_.binding;
    for (const Source& s : is_.inputs) kept.inputs.push_back(at(s));
    kept.inputs.insert(kept.inputs.end(), is_.given.begin(), is_.given.end());
    std::vector<Fresh> fresh;
    for (size_t k = 0; k < is_.outputs.size(); ++k)
      fresh.push_back({memory_[k], is_.outputs[k].dtype, is_.outputs[k].at});
    keep_for_backward(*is_.halves, is_.deliveries, fresh, *is_.device, kept, outputs);
    is_.executable->run(is_.symbols.data(), inputs, outputs);
    GradientFlow flow;
    flow.slots = is_.slots;
    for (const Source& s : is_.leaves) flow.leaves.push_back(autograd::gradient_edge(at(s)));
    for (const Shortcut::Root& r : is_.roots)
      flow.roots.push_back(autograd::make_node<ResultNode>(r, r.results.size()));
    std::shared_ptr<autograd::Node> segment = make_segment_node(is_.halves, kept, flow);
    for (size_t k = 0; k < flow.slots.size(); ++k)
      autograd::NodeAccess::edges(*flow.roots[flow.slots[k].root])[flow.slots[k].result] = {segment,
                                                                                            static_cast<uint32_t>(k)};
    roots_ = std::move(flow.roots);
    count_writes();
  }

  void make() {
    for (const Shortcut::Made& m : is_.made) {
      if (m.base.from != Source::From::None) {
        made_.push_back(eager::replay(m.way.get(), at(m.base)));
        continue;
      }
      Tensor t = make_tensor(memory_[m.output], m.dtype, m.sizes, m.strides, m.offset);
      if (m.root >= 0) autograd::set_history(t, roots_[m.root], m.result);
      if (m.spent) {
        std::shared_ptr<autograd::Node> node = make_failing_node(autograd::second_time("CompiledBackward"));
        node->internals().results.emplace_back(t);
        autograd::set_history(t, std::move(node), 0);
      }
      made_.push_back(std::move(t));
    }
    for (const Shortcut::SetGradient& g : is_.gradients)
      autograd::meta_of(at(g.leaf)).grad = g.value.from == Source::From::None ? Tensor() : at(g.value);
  }

  const Shortcut& is_;
  const Arguments& arguments_;
  std::vector<Tensor> keys_, made_;
  std::vector<StorageRef> memory_;
  std::vector<std::shared_ptr<autograd::Node>> roots_;
};

}  // namespace

std::vector<Tensor> Shortcut::run(const Arguments& given_arguments) const { return Run(*this, given_arguments)(); }

// ---- Those of a function.

std::shared_ptr<const Shortcuts::List> Shortcuts::list() const {
  std::lock_guard lock(mutex_);
  return list_;
}

bool Shortcuts::run(const Arguments& arguments, std::vector<Tensor>& results) {
  std::shared_ptr<const List> known = list();
  if (!known) return false;
  std::optional<Surroundings> now = Surroundings::now();
  if (!now) return false;
  for (const auto& s : *known) {
    if (!s->missing.empty() || !s->is_called_with(*now, arguments) || !s->finds_all_as_it_was()) continue;
    for (size_t i = 0; i < s->arguments.size(); ++i)
      if (s->arguments[i].own && !s->arguments[i].gradient.holds(*impl_of(*arguments.tensors[i]))) return false;
    if (!have_memories_apart(arguments.tensors, s->memory)) return false;
    std::vector<uint64_t> offsets;
    for (const Shortcut::Draw& d : s->draws) offsets.push_back(d.stream.offset());
    try {
      results = s->run(arguments);
    } catch (const Error&) {
      // Nothing was written. The body runs up to the operator that fails.
      for (size_t k = s->draws.size(); k-- > 0;) Generator(s->draws[k].stream).set_offset(offsets[k]);
      return false;
    }
    skipped_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  return false;
}

std::shared_ptr<const Shortcut> Shortcuts::find(const Surroundings& now, const Arguments& arguments) const {
  std::shared_ptr<const List> known = list();
  if (known)
    for (const auto& s : *known)
      if (s->is_called_with(now, arguments)) return s;
  return nullptr;
}

// In place of one for the same calls.
void Shortcuts::add(std::shared_ptr<const Shortcut> shortcut, size_t limit, const Arguments& arguments) {
  std::lock_guard lock(mutex_);
  auto fresh = std::make_shared<List>();
  fresh->push_back(shortcut);
  if (list_)
    for (const auto& s : *list_)
      if (fresh->size() < limit && !s->is_called_with(shortcut->surroundings, arguments)) fresh->push_back(s);
  list_ = std::move(fresh);
  reason_ = shortcut->missing;
}

void Shortcuts::refuse(const std::string& reason) {
  std::lock_guard lock(mutex_);
  reason_ = reason;
}
std::string Shortcuts::reason() const {
  std::lock_guard lock(mutex_);
  return reason_;
}

}  // namespace brasa::capture
