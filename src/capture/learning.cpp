// How a call whose body ran becomes a shortcut.
#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>

#include "capture/shortcut.h"
#include "support/error.h"
#include "tensor/autograd/meta.h"
#include "tensor/execute.h"

namespace brasa::capture {

using From = Source::From;

Learning::Learning(Shortcuts& shortcuts, const Surroundings& now, const Arguments& arguments, size_t limit)
    : shortcuts_(shortcuts), now_(now), arguments_(arguments), limit_(limit), last_(shortcuts.find(now, arguments)) {
  for (const Tensor* t : arguments.tensors) arguments_before_.push_back(t->defined() ? before(*t) : Before{});
  if (!last_) return;
  for (const Shortcut::Met& m : last_->met) met_before_.push_back(before(m.tensor));
  for (const Shortcut::Draw& d : last_->draws) streams_before_.push_back(Generator(d.stream).take(0));
}

Learning::Before Learning::before(const Tensor& t) {
  const TensorImpl& impl = *impl_of(t);
  Before b{impl.storage->version(), Gradient(impl), nullptr, t};
  if (impl.autograd) b.history = impl.autograd->grad_fn.get();
  return b;
}

namespace {

// Why it can't be skipped.
struct Refused {
  std::string why;
};
[[noreturn]] void refuse(std::string why) { throw Refused{std::move(why)}; }

// Bytes of a small tensor of the host, to compare what two calls made.
constexpr int64_t kSmall = 4096;
bool same_constant(const Tensor& a, const Tensor& b) {
  const TensorImpl &x = *impl_of(a), &y = *impl_of(b);
  // What others hold, too, as the argument or parameter that `detach` or `data` was asked of, holds the same only by chance.
  if (x.storage->root() != x.storage.get() || x.storage->use_count() > 1) return false;
  return x.device().on_host() && y.device().on_host() && Likeness(x).fits(y) && x.contiguous && !x.sparse &&
         x.numel * size_of(x.dtype) <= kSmall &&
         std::memcmp(x.data(), y.data(), static_cast<size_t>(x.numel * size_of(x.dtype))) == 0;
}

}  // namespace

class Learner {
 public:
  Learner(Learning& of, const std::vector<Tensor>& results)
      : call_(of), watch_(of.watch_), results_(results), out_(std::make_shared<Shortcut>()) {
    out_->surroundings = of.now_;
  }

  std::shared_ptr<Shortcut> operator()() {
    if (!watch_.reason.empty()) refuse(watch_.reason);
    if (!watch_.executable) refuse("no graph ran");
    arguments();
    inputs();
    run();
    for (const Tensor& t : results_) out_->results.push_back(t.defined() ? source(t) : Source{});
    gradients();
    if (watch_.halves) joint();
    check_kept();
    writes();
    check_histories();
    out_->memory = Memories(out_->met.size());
    for (const Shortcut::Met& m : out_->met) out_->memory[m.storage->root()] = true;
    out_->missing = difference();
    return out_;
  }

 private:
  // ---- What is there before the call.

  void arguments() {
    std::vector<const Tensor*> all = call_.arguments_.tensors;
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i]->impl() != call_.arguments_before_[i].tensor.impl())
        refuse("the body makes an argument another tensor");
    if (!have_memories_apart(all, Memories())) refuse("two arguments share memory");
    out_->numbers = call_.arguments_.numbers;
    for (uint32_t i = 0; i < all.size(); ++i) {
      Shortcut::Argument& a = out_->arguments.emplace_back();
      if (!all[i]->defined()) continue;
      const TensorImpl& t = *impl_of(*all[i]);
      if (t.sparse) refuse("an argument is a sparse tensor");
      a.own.emplace(t);
      known_[&t] = {From::Argument, i};
      if (!eager::view_of(t)) continue;
      const TensorImpl& base = *impl_of(eager::base_of(*all[i]));
      a.base.emplace(base);
      known_.try_emplace(&base, Source{From::ArgumentBase, i});
    }
  }

  Source meet(const Tensor& t) {
    const TensorImpl& impl = *impl_of(t);
    if (auto it = known_.find(&impl); it != known_.end()) return it->second;
    if (impl.sparse) refuse("a sparse tensor is met");
    Source s{From::Met, static_cast<uint32_t>(out_->met.size())};
    out_->met.push_back(
        {t, impl.storage.get(), impl.offset * size_of(impl.dtype), impl.moves, autograd_state(impl), {}});
    return known_[&impl] = s;
  }

  void inputs() {
    for (const Watch::Draw& d : watch_.draws) {
      known_[impl_of(d.key)] = {From::Key, static_cast<uint32_t>(out_->draws.size())};
      out_->draws.push_back({d.stream, d.count});
    }
    for (size_t i = 0; i + watch_.given < watch_.inputs.size(); ++i) out_->inputs.push_back(meet(watch_.inputs[i]));
    out_->given.assign(watch_.inputs.end() - static_cast<int64_t>(watch_.given), watch_.inputs.end());
    for (const Tensor& t : watch_.inputs) out_->operands.push_back(eager::operand_of(t));
  }

  void run() {
    Shortcut& s = *out_;
    s.trace = watch_.trace;
    s.device = watch_.device;
    s.executable = watch_.executable;
    s.symbols = watch_.symbols;
    s.halves = watch_.halves;
    s.binding = watch_.binding;
    s.deliveries = watch_.deliveries;
    for (const Fresh& f : watch_.fresh) s.outputs.push_back({f.storage->bytes(), f.dtype, f.at});
    note(reinterpret_cast<uintptr_t>(s.trace));
    note(reinterpret_cast<uintptr_t>(s.executable.get()));
    for (int64_t v : s.symbols) note(static_cast<uint64_t>(v));
    for (const Source& in : s.inputs) note(in);
    note(s.draws.size());
    for (const Shortcut::Draw& d : s.draws) note(d.count);
  }

  // ---- What comes of it.

  // A tensor that the call leaves, by what it is made of.
  Source source(const Tensor& t) {
    const TensorImpl& impl = *impl_of(t);
    if (auto it = known_.find(&impl); it != known_.end()) {
      note(it->second);
      if (it->second.from != From::Key) return it->second;
      refuse("a random key is a result");
    }
    explain_reference(t);
    const Storage* memory = impl.storage.get();
    auto output = std::find_if(watch_.fresh.begin(), watch_.fresh.end(),
                               [&](const Fresh& f) { return f.storage.get() == memory; });
    Shortcut::Made m;
    if (const eager::ViewInfo* view = eager::view_of(impl)) {
      if (t.requires_grad() && !view->base.requires_grad())
        refuse("a result is a view of a tensor that was detached from what it looks at");
      m.base = source(view->base);
      m.way = view->last;
    } else if (output == watch_.fresh.end()) {
      Source s = meet(t);
      note(s);
      return s;
    } else {
      m.output = static_cast<uint32_t>(output - watch_.fresh.begin());
      fresh_tensor(t, m);
    }
    note(m.output, eager::links_to(m.way.get()).size(), static_cast<uint64_t>(impl.offset));
    for (int64_t s : impl.sizes) note(static_cast<uint64_t>(s));
    for (int64_t s : impl.strides) note(static_cast<uint64_t>(s));
    Source made{From::Made, static_cast<uint32_t>(out_->made.size())};
    out_->made.push_back(std::move(m));
    return known_[&impl] = made;
  }

  void fresh_tensor(const Tensor& t, Shortcut::Made& m) {
    const TensorImpl& impl = *impl_of(t);
    m.dtype = impl.dtype;
    m.sizes = impl.sizes;
    m.strides = impl.strides;
    m.offset = impl.offset;
    const autograd::AutogradMeta* meta = impl.autograd.get();
    if (impl.weak || impl.sparse) refuse("a result is a number of the program or sparse");
    if (!meta) return;
    if (meta->requires_grad || meta->retain || meta->hooks || meta->grad.defined())
      refuse("a result is a leaf, has hooks or keeps its gradient");
    if (!meta->grad_fn) return;
    const std::vector<std::shared_ptr<autograd::Node>>& roots = watch_.flow.roots;
    auto root = std::find(roots.begin(), roots.end(), meta->grad_fn);
    if (watch_.halves && root != roots.end()) {
      m.root = static_cast<int>(root - roots.begin());
      m.result = meta->output_nr;
    } else if (!watch_.halves && watch_.spent) {
      m.spent = true;
    } else {
      refuse("a result's gradient goes through the operators' own nodes (" + meta->grad_fn->name() + ")");
    }
    note(static_cast<uint64_t>(m.root), m.result, m.spent);
  }

  void gradients() {
    for (const Tensor& leaf : watch_.graded) {
      const TensorImpl& impl = *impl_of(leaf);
      if (impl.autograd && (impl.autograd->hooks || !impl.autograd->post_hooks.empty())) refuse("a leaf has hooks");
      Source at = meet(leaf);
      bool& seen = graded_[{at.from == From::Argument, at.index}];
      if (std::exchange(seen, true)) continue;
      if (at.from != From::Argument && at.from != From::Met)
        refuse("the gradient of a tensor that the call made is set");
      const Learning::Before* before = before_of(at);
      Gradient& guard = at.from == From::Argument ? out_->arguments[at.index].gradient : out_->met[at.index].gradient;
      if (before) guard = before->gradient;
      const Tensor none, &now = impl.autograd ? impl.autograd->grad : none;
      // One that is not read may be any.
      if (auto it = known_.find(guard.exact); it == known_.end() || it->second.from != From::Met) guard.exact = nullptr;
      note(at);
      if (!now.defined()) {
        note(0);
        out_->gradients.push_back({at, {}});
        continue;
      }
      Source value = source(now);
      if (value.from == From::Made) {
        out_->gradients.push_back({at, value});
      } else if (before && !guard.exact) {
        refuse("a gradient becomes a tensor that was there before");
      }
    }
  }

  const Learning::Before* before_of(const Source& s) const {
    if (s.from == From::Argument) return &call_.arguments_before_[s.index];
    if (!call_.last_) return nullptr;
    const Tensor& t = out_->met[s.index].tensor;
    for (size_t k = 0; k < call_.last_->met.size(); ++k)
      if (call_.last_->met[k].tensor.is_same(t)) return &call_.met_before_[k];
    return nullptr;
  }

  void joint() {
    const JointSegment& joint = *watch_.halves->joint;
    auto any = [](const std::vector<bool>& v) { return std::find(v.begin(), v.end(), true) != v.end(); };
    if (any(joint.views)) refuse("the gradient of one result goes through a view that is another one");
    std::vector<bool> reached(watch_.flow.roots.size());
    for (const Shortcut::Made& m : out_->made)
      if (m.root >= 0) reached[m.root] = true;
    if (std::find(reached.begin(), reached.end(), false) != reached.end())
      refuse("a tensor with a history stays with the program");
    out_->slots = watch_.flow.slots;
    for (const auto& root : watch_.flow.roots) out_->roots.push_back({root->name(), root->internals().results});
    for (const autograd::Edge& leaf : watch_.flow.leaves) out_->leaves.push_back(source_of(leaf));
  }

  Source source_of(const autograd::Edge& leaf) {
    for (const auto& [impl, s] : known_) {
      if (s.from == From::Key || s.from == From::Made) continue;
      const Tensor& t = s.from == From::Met        ? out_->met[s.index].tensor
                        : s.from == From::Argument ? *call_.arguments_.tensors[s.index]
                                                   : eager::base_of(*call_.arguments_.tensors[s.index]);
      if (!t.requires_grad()) continue;
      autograd::Edge edge = autograd::gradient_edge(t);
      if (edge.function == leaf.function && edge.input_nr == leaf.input_nr) return s;
    }
    refuse("a gradient goes to a tensor that is no input");
  }

  // ---- That nothing else of the call stays.

  // A tensor of the call's own memory that is held by something that is known.
  void explain_reference(const Tensor& t) {
    if (!left_.emplace(impl_of(t), 0).second) return;
    if (const auto& view = impl_of(t)->view) explain_reference(view->base);
  }

  void check_kept() {
    for (size_t k = 0; k < watch_.fresh.size(); ++k) {
      uint32_t holders = 1;  // the watch
      for (const auto& [impl, count] : left_) holders += impl->storage.get() == watch_.fresh[k].storage.get();
      if (watch_.halves)
        for (const transforms::Saved& s : watch_.halves->saved)
          holders += s.from == transforms::Saved::From::Output && fresh_of(s.index) == k;
      if (watch_.fresh[k].storage->use_count() != holders)
        refuse("a tensor that the call made stays with the program, beside the results");
    }
  }
  // By delivery: which of those into fresh memory.
  size_t fresh_of(size_t delivery) const {
    auto end = watch_.deliveries.begin() + static_cast<int64_t>(delivery);
    return static_cast<size_t>(
        std::count_if(watch_.deliveries.begin(), end, [](const Delivery& d) { return d.into < 0; }));
  }

  void writes() {
    for (const Delivery& d : watch_.deliveries) {
      if (d.into < 0) continue;
      Source in = out_->inputs[d.into];
      const Tensor& t = watch_.inputs[d.into];
      if (in.from == From::ArgumentBase) {
        // Its version is the argument's.
        in.from = From::Argument;
      }
      const Learning::Before* before = before_of(in);
      uint32_t versions = before ? impl_of(t)->storage->version() - before->version : 1;
      if (versions == 0) refuse("memory is written through another tensor than it is read by");
      out_->writes.push_back({in, versions});
      note(in);
    }
  }

  // Why the last call of this kind did not do the same; empty: it did.
  std::string difference() {
    const Shortcut* last = call_.last_.get();
    if (!last) return "two calls in a row have to do the same first";
    if (last->sameness != out_->sameness) return "calls with the same arguments do not do the same";
    if (std::string why = draws_apart(); !why.empty()) return why;
    for (size_t k = 0; k < out_->given.size(); ++k)
      if (!same_constant(out_->given[k], last->given[k])) return "a number differs though the arguments are the same";
    for (uint32_t k = 0; k < out_->met.size(); ++k) {
      const Tensor &now = out_->met[k].tensor, &then = last->met[k].tensor;
      if (!now.is_same(then) && !(only_read(k) && same_constant(now, then)))
        return str("the body makes or takes another tensor than in the call before: ", now);
    }
    return "";
  }

  bool only_read(uint32_t met) const {
    auto other = [&](const Source& s) { return !(s == Source{From::Met, met}); };
    return std::all_of(out_->writes.begin(), out_->writes.end(), [&](auto& w) { return other(w.input); }) &&
           std::all_of(out_->results.begin(), out_->results.end(), other) &&
           std::all_of(out_->made.begin(), out_->made.end(), [&](auto& m) { return other(m.base); }) &&
           std::all_of(out_->gradients.begin(), out_->gradients.end(), [&](auto& g) { return other(g.leaf); });
  }

  // Keys follow from the streams as they were before the call, and from each other.
  std::string draws_apart() const {
    const std::vector<Watch::Draw>& draws = watch_.draws;
    for (size_t k = 0; k < draws.size(); ++k) {
      if (!(draws[k].stream == call_.last_->draws[k].stream)) return "random numbers come from another stream";
      size_t before = k;
      while (before-- > 0 && !(draws[before].stream == draws[k].stream)) {
      }
      Generator::Key expected = call_.streams_before_[k];
      if (before < k) {
        expected = key_of(draws[before]);
        Generator next(static_cast<uint64_t>(expected.seed));
        next.set_offset(static_cast<uint64_t>(expected.offset));
        next.take(draws[before].count);
        expected = next.take(0);
      }
      Generator::Key came = key_of(draws[k]);
      if (came.seed != expected.seed || came.offset != expected.offset) return "the body seeds random numbers";
    }
    return "";
  }
  static Generator::Key key_of(const Watch::Draw& d) {
    const auto* at = static_cast<const int64_t*>(impl_of(d.key)->data());
    return {at[0], at[1]};
  }

  void check_histories() const {
    auto check = [](const Tensor& t, const Learning::Before* before) {
      if (before && impl_of(t)->autograd && impl_of(t)->autograd->grad_fn.get() != before->history)
        refuse("the history of a tensor that was there before changes");
    };
    for (uint32_t i = 0; i < out_->arguments.size(); ++i)
      if (out_->arguments[i].own) check(*call_.arguments_.tensors[i], before_of({From::Argument, i}));
    for (uint32_t i = 0; i < out_->met.size(); ++i) check(out_->met[i].tensor, before_of({From::Met, i}));
  }

  template <class... T>
  void note(T... words) {
    (out_->sameness.push_back(static_cast<uint64_t>(words)), ...);
  }
  void note(const Source& s) { note(static_cast<uint64_t>(s.from) << 32 | s.index); }

  Learning& call_;
  Watch& watch_;
  const std::vector<Tensor>& results_;
  std::shared_ptr<Shortcut> out_;
  std::unordered_map<const TensorImpl*, Source> known_;
  std::unordered_map<const TensorImpl*, int> left_;
  std::map<std::pair<bool, uint32_t>, bool> graded_;
};

void Learning::end(const std::vector<Tensor>& results) {
  try {
    std::shared_ptr<Shortcut> made = Learner(*this, results)();
    shortcuts_.add(std::move(made), limit_, arguments_);
  } catch (const Refused& r) {
    shortcuts_.refuse(r.why);
  }
}

}  // namespace brasa::capture
