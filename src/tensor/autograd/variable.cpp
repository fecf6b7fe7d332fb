#include <algorithm>
#include <utility>

#include "support/error.h"
#include "support/mutex.h"
#include "tensor/autograd/meta.h"
#include "tensor/autograd/record.h"
#include "tensor/dispatch.h"
#include "tensor/geometry.h"
#include "tensor/recorder.h"
#include "tensor/sparse/sparse.h"
#include "tensor/views.h"

// The part of Tensor that is about autograd.
namespace brasa {

namespace {
BRASA_THREAD_WORD bool grad_mode = true;
BRASA_THREAD_WORD bool inference_mode = false;
const std::shared_ptr<autograd::Node> kNoNode;
const Tensor kNoTensor;
}  // namespace

bool GradMode::is_enabled() { return grad_mode; }
void GradMode::set_enabled(bool enabled) { grad_mode = enabled; }

InferenceMode::InferenceMode(bool enabled) : previous_(inference_mode), previous_grad_(grad_mode) {
  inference_mode = enabled;
  grad_mode = !enabled;
}
InferenceMode::~InferenceMode() {
  inference_mode = previous_;
  grad_mode = previous_grad_;
}
bool InferenceMode::is_enabled() { return inference_mode; }

namespace autograd {
namespace {

// Adds what it receives to the leaf's grad().
class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(Tensor leaf) : leaf_(std::move(leaf)) {
    sequence_nr_ = UINT64_MAX;
    internals_->results.emplace_back(leaf_);
  }
  std::string name() const override { return "torch::autograd::AccumulateGrad"; }
  bool is_watched() const { return internals_->has_hooks() || !meta_of(leaf_).post_hooks.empty(); }

 protected:
  variable_list apply(variable_list&& gradients) override {
    Tensor g = std::move(gradients[0]);
    if (!g.defined()) return {};
    std::lock_guard lock(internals_->mutex);
    AutogradMeta& meta = meta_of(leaf_);
    if (Recorder* recorder = Recorder::current()) recorder->meets_gradient(leaf_);
    if (!meta.grad.defined()) {
      // Nothing writes into the parts of a sparse tensor.
      const TensorImpl* impl = impl_of(g);
      // It lies as the leaf does, if that is dense. The leaf may have got data of other sizes since.
      const TensorImpl* leaf = impl_of(leaf_);
      bool as_leaf = leaf->sizes == impl->sizes && is_dense(leaf->sizes, leaf->strides);
      Sizes strides = as_leaf ? leaf->strides : row_major_strides(impl->sizes);
      bool alone = impl->sparse ||
                   (g.use_count() == 1 && impl->storage->use_count() == 1 && impl->strides == strides && !impl->view);
      Tensor own = GradMode::is_enabled() ? g : g.detach();
      meta.grad = alone ? own : copied(own, strides);
    } else if (GradMode::is_enabled() || (meta.grad.is_sparse() && !g.is_sparse())) {
      meta.grad = sum_of(meta.grad, g);
    } else {
      meta.grad += g;
    }
    for (auto& hook : meta.post_hooks) hook(leaf_);
    return {};
  }

 private:
  Tensor leaf_;
};

// Of a leaf that threads share each may be the first to ask for its accumulator, and all must find one: leaves share a few locks.
Mutex& accumulator_lock(const AutogradMeta& meta) {
  static Mutex locks[64];
  return locks[reinterpret_cast<uintptr_t>(&meta) / sizeof(AutogradMeta) % std::size(locks)];
}

}  // namespace

bool is_watched_leaf(const Node& n) {
  auto* leaf = dynamic_cast<const AccumulateGrad*>(&n);
  return leaf && leaf->is_watched();
}

Tensor sum_of(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() ? a : b;
  return impl_of(a)->sparse ? b + a : a + b;
}

AutogradMeta& meta_of(const Tensor& t) {
  TensorImpl* impl = checked_impl(t);
  if (!impl->autograd) impl->autograd = std::make_unique<AutogradMeta>();
  return *impl->autograd;
}

Edge gradient_edge(const Tensor& t) {
  if (const auto& parts = impl_of(t)->sparse; parts && parts->values.requires_grad())
    return gradient_edge(parts->values);
  if (const auto& fn = grad_fn_of(t)) return {fn, impl_of(t)->autograd->output_nr};
  // A view that was made without recording requires a gradient like its base, and hands none on.
  if (!impl_of(t)->autograd || !impl_of(t)->autograd->requires_grad) return {};
  AutogradMeta& meta = *impl_of(t)->autograd;
  std::lock_guard lock(accumulator_lock(meta));
  std::shared_ptr<Node> accumulator = meta.accumulator.lock();
  if (!accumulator) {
    accumulator = std::make_shared<AccumulateGrad>(t);
    meta.accumulator = accumulator;
    if (meta.hooks) accumulator->internals().tensor_hooks.push_back({0, meta.hooks});
  }
  return {std::move(accumulator), 0};
}

void watch(const Node& node) {
  for (const std::weak_ptr<Node>& weak : std::exchange(node.internals().graphs, {})) {
    std::shared_ptr<Node> graph = weak.lock();
    if (graph && graph->internals().inside) std::exchange(graph->internals().inside, nullptr)->expand();
  }
}

void set_history(const Tensor& t, std::shared_ptr<Node> node, uint32_t output_nr) {
  AutogradMeta& meta = meta_of(t);
  meta.grad_fn = std::move(node);
  meta.output_nr = output_nr;
  meta.requires_grad = false;
  meta.hooks.reset();
  if (meta.retain) {
    // The gradient of the new value is meant from here on.
    meta.retain->impl = nullptr;
    meta.retain.reset();
    t.retain_grad();
  }
}

void set_history(const Tensor& t, std::shared_ptr<Node> node, const Tensor& source) {
  NodeAccess::edges(*node).push_back(gradient_edge(source));
  node->internals().results.emplace_back(t);
  set_history(t, std::move(node), 0);
}

namespace {

bool is_stale(const Tensor& t) {
  const TensorImpl* impl = checked_impl(t);
  return impl->view && impl->view->differentiable && impl->view->version != impl->storage->version();
}

// Makes the node of a view anew whose base was written to.
void renew(const Tensor& t) {
  TensorImpl* impl = checked_impl(t);
  eager::ViewInfo& info = *impl->view;
  bool leaf_view = impl->autograd && impl->autograd->requires_grad;
  info.version = impl->storage->version();
  bool unrecorded = info.creation == CreationMeta::NO_GRAD_MODE || info.creation == CreationMeta::INFERENCE_MODE;
  if (leaf_view || impl->inference || !info.base.requires_grad() || info.base.is_leaf() ||
      (!GradMode::is_enabled() && unrecorded))
    return;
  check_creation(info.creation, "its base or another view of its base has been modified inplace");
  AutoGradMode mode(true);
  attach_view(t, info.base, eager::links_to(info.last.get()));
}

}  // namespace

const std::shared_ptr<Node>& grad_fn_of(const Tensor& t) {
  TensorImpl* impl = checked_impl(t);
  if (impl->sparse) return grad_fn_of(impl->sparse->values);
  if (is_stale(t)) renew(t);
  return impl->autograd ? impl->autograd->grad_fn : kNoNode;
}

}  // namespace autograd

bool Tensor::requires_grad() const {
  const TensorImpl* impl = checked_impl(*this);
  if (impl->autograd && impl->autograd->requires_grad) return true;
  if (impl->sparse) return impl->sparse->values.requires_grad();
  if (impl->view && impl->view->differentiable && !impl->inference && impl->view->base.requires_grad() &&
      autograd::differentiable(impl->dtype))
    return true;
  return impl->autograd && impl->autograd->grad_fn;
}

const Tensor& Tensor::set_requires_grad(bool v) const {
  const TensorImpl* impl = checked_impl(*this);
  BRASA_CHECK(!v || is_floating(impl->dtype) || brasa::is_complex(impl->dtype),
              "Only Tensors of floating point and complex dtype can require gradients, got ", *this);
  BRASA_CHECK(!v || !impl->inference || InferenceMode::is_enabled(),
              "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  if (!v && !impl->autograd) return *this;
  if (!is_leaf()) return *this;
  autograd::meta_of(*this).requires_grad = v;
  return *this;
}

Tensor& Tensor::requires_grad_(bool v) const {
  BRASA_CHECK(v || is_leaf(),
              "you can only change requires_grad flags of leaf variables. detach() gives a tensor without.");
  set_requires_grad(v);
  return const_cast<Tensor&>(*this);
}

bool Tensor::is_leaf() const { return autograd::grad_fn_of(*this) == nullptr; }

const Tensor& Tensor::grad() const {
  const TensorImpl* impl = checked_impl(*this);
  if (Recorder* recorder = Recorder::current()) recorder->meets_gradient(*this);
  return impl->autograd ? impl->autograd->grad : kNoTensor;
}
Tensor& Tensor::mutable_grad() const {
  Tensor& grad = autograd::meta_of(*this).grad;
  if (Recorder* recorder = Recorder::current()) recorder->meets_gradient(*this);
  return grad;
}
const std::shared_ptr<autograd::Node>& Tensor::grad_fn() const { return autograd::grad_fn_of(*this); }
int64_t Tensor::output_nr() const {
  const TensorImpl* impl = checked_impl(*this);
  return impl->autograd ? impl->autograd->output_nr : 0;
}

void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph,
                      std::optional<TensorList> inputs) const {
  checked_impl(*this);
  BRASA_CHECK(!inputs || !inputs->empty(), "'inputs' argument to backward cannot be empty");
  std::vector<Tensor> gradients;
  if (gradient.defined()) gradients.push_back(gradient);
  autograd::backward({*this}, gradients, retain_graph, create_graph, inputs ? inputs->vec() : std::vector<Tensor>());
}

Tensor Tensor::detach() const {
  if (checked_impl(*this)->sparse) return eager::sparse::detached(*this);
  return eager::detached(*this);
}

Tensor& Tensor::detach_() const {
  TensorImpl* impl = checked_impl(*this);
  BRASA_CHECK(!impl->view || !impl->view->differentiable || !impl->view->base.requires_grad(),
              "Can't detach views in-place. Use detach() instead.");
  impl->autograd.reset();
  if (impl->sparse) impl->sparse->values = impl->sparse->values.detach();
  if (Recorder* recorder = Recorder::current()) recorder->detached(*this);
  return const_cast<Tensor&>(*this);
}

void Tensor::retain_grad() const {
  BRASA_CHECK(requires_grad(), "can't retain_grad on Tensor that has requires_grad=False");
  if (is_leaf()) return;
  BRASA_CHECK(!impl_of(*this)->sparse,
              "retain_grad() of a sparse tensor that an operator made is not there: use it on ", "its values()");
  autograd::AutogradMeta& meta = autograd::meta_of(*this);
  if (meta.retain) return;
  meta.retain = std::make_shared<autograd::RetainSlot>();
  meta.retain->impl = impl_of(*this);
  meta.grad_fn->internals().retains.push_back({meta.output_nr, meta.retain});
  autograd::watch(*meta.grad_fn);
}
bool Tensor::retains_grad() const {
  const TensorImpl* impl = checked_impl(*this);
  return impl->autograd && impl->autograd->retain;
}

unsigned Tensor::add_hook(std::function<Tensor(const Tensor&)> hook) const {
  BRASA_CHECK(requires_grad(), "cannot register a hook on a tensor that doesn't require gradient");
  BRASA_CHECK(is_leaf() || !impl_of(*this)->sparse,
              "register_hook() of a sparse tensor that an operator made is not there: use it on its values()");
  autograd::AutogradMeta& meta = autograd::meta_of(*this);
  if (!meta.hooks) {
    meta.hooks = std::make_shared<autograd::HookList>();
    autograd::Edge edge = autograd::gradient_edge(*this);
    BRASA_CHECK(edge.is_valid(), "cannot register a hook on a view that was made without recording gradients");
    auto& listed = edge.function->internals().tensor_hooks;
    // The accumulator took the list itself if it was just made.
    if (std::none_of(listed.begin(), listed.end(), [&](auto& l) { return l.second == meta.hooks; }))
      listed.push_back({edge.input_nr, meta.hooks});
    autograd::watch(*edge.function);
  }
  meta.hooks->hooks.push_back({meta.hooks->next, std::move(hook)});
  return meta.hooks->next++;
}

void Tensor::remove_hook(unsigned handle) const {
  const TensorImpl* impl = checked_impl(*this);
  size_t removed = impl->autograd && impl->autograd->hooks
                       ? std::erase_if(impl->autograd->hooks->hooks, [&](auto& h) { return h.first == handle; })
                       : 0;
  BRASA_CHECK(removed, "Invalid index, no hook at position ", handle);
}

unsigned Tensor::register_post_accumulate_grad_hook(std::function<void(const Tensor&)> hook) const {
  BRASA_CHECK(requires_grad() && is_leaf(), "post accumulate grad hooks cannot be registered on non-leaf tensors");
  auto& hooks = autograd::meta_of(*this).post_hooks;
  hooks.push_back(std::move(hook));
  return static_cast<unsigned>(hooks.size() - 1);
}

int64_t Tensor::_version() const { return checked_impl(*this)->version_counter().current_version(); }
bool Tensor::is_view() const {
  const TensorImpl* impl = checked_impl(*this);
  return impl->view && impl->view->differentiable && !impl->inference;
}
const Tensor& Tensor::_base() const {
  BRASA_CHECK(is_view(), "Can't get base of non-view Tensor");
  return impl_of(*this)->view->base;
}
DispatchKeySet Tensor::key_set() const {
  if (is_inference()) return {DispatchKey::CPU};
  return {DispatchKey::CPU, DispatchKey::AutogradCPU, DispatchKey::ADInplaceOrView};
}
bool Tensor::is_inference() const { return checked_impl(*this)->inference; }

Tensor Tensor::data() const {
  Tensor out = detach();
  impl_of(out)->storage = StorageRef(Storage::alias(impl_of(*this)->storage.get()));
  return out;
}

void Tensor::set_data(const Tensor& o) const {
  TensorImpl* impl = checked_impl(*this);
  const TensorImpl* from = checked_impl(o);
  before_move(*this);
  bool other = impl->dtype != from->dtype || impl->sizes != from->sizes || &impl->device() != &from->device();
  impl->look_at(*from);
  // Where gradients are to be of another kind, new uses get an accumulator of their own.
  if (!impl->autograd || !other) return;
  std::lock_guard lock(autograd::accumulator_lock(*impl->autograd));
  impl->autograd->accumulator.reset();
}

Tensor& Tensor::set_(const Tensor& source) const {
  BRASA_CHECK(!GradMode::is_enabled() || !requires_grad() || !is_leaf(),
              "a leaf Variable that requires grad is being used in an in-place operation.");
  BRASA_CHECK(source.scalar_type() == scalar_type(), "Could not set tensor of type ", source.dtype().name(),
              " to a tensor of type ", dtype().name());
  set_data(source);
  return const_cast<Tensor&>(*this);
}
Tensor& Tensor::set_(const Tensor& source, int64_t storage_offset, IntArrayRef size, IntArrayRef stride) const {
  TensorImpl* from = checked_impl(source);
  if (from->storage->recorder()) from->materialise("a change of memory");
  Sizes strides = stride.empty() ? row_major_strides(size) : Sizes(std::span(stride));
  BRASA_CHECK(strides.size() == size.size(), "set_: ", size.size(), " sizes and ", strides.size(), " strides");
  BRASA_CHECK(storage_offset >= 0, "Tensor: invalid storage offset ", storage_offset);
  int64_t end = checked_add(storage_offset, extent_of(size, strides));
  auto bytes = static_cast<size_t>(checked_mul(end, size_of(from->dtype)));
  if (bytes > from->storage->bytes()) from->storage->allocate(bytes);
  return set_(make_tensor(from->storage, from->dtype, Sizes(std::span(size)), strides, storage_offset));
}
Tensor& Tensor::set_(const TensorStorage& source, int64_t storage_offset, IntArrayRef size, IntArrayRef stride) const {
  return set_(source.tensor(), storage_offset, size, stride);
}
Tensor& Tensor::set_() const {
  TensorImpl* impl = checked_impl(*this);
  return set_(make_tensor(Sizes{0}, impl->dtype, impl->device()));
}

}  // namespace brasa
