#include <brasa/autograd.h>

#include "compiler/run/memory.h"
#include "support/error.h"
#include "tensor/autograd/meta.h"
#include "tensor/recorder.h"
#include "tensor/tensor_impl.h"

// Tensors on their way between devices.
namespace brasa {

namespace {

// Through the host's memory, which neither device's work reads behind its back.
void copy_between(runtime::Device& to, void* at, runtime::Device& from, const void* source, size_t bytes) {
  compiler::Memory staging(runtime::host(), bytes, runtime::kDefaultStream);
  from.download(staging.data, source, bytes, current_stream(from));
  to.upload(at, staging.data, bytes, current_stream(to));
}

// Gives the gradient back to where the value came from.
class MoveNode final : public autograd::Node, public Pooled {
 public:
  explicit MoveNode(runtime::Device& from) : from_(from) {}
  std::string name() const override { return "ToCopyBackward0"; }

 protected:
  autograd::variable_list apply(autograd::variable_list&& grads) override {
    autograd::variable_list out(1);
    if (grads[0].defined()) out[0] = moved(grads[0], from_);
    return out;
  }

 private:
  runtime::Device& from_;
};

}  // namespace

Tensor transferred(const Tensor& t, runtime::Device& device, bool non_blocking, bool pinned) {
  const TensorImpl* impl = checked_impl(t);
  runtime::Device& from = impl->device();
  if (&from == &device && !pinned) return t;
  BRASA_CHECK(!impl->sparse, "sparse tensors live on the CPU alone: ", t, " cannot go to device '", device.str(), "'");
  if (impl->storage->recorder()) impl->materialise("a copy between devices");
  if (Recorder* recorder = Recorder::current()) recorder->host_reads(t, "a copy between devices");
  Recorder::Scope alone(nullptr);
  NoGradGuard guard;
  Tensor source = t.detach().contiguous();
  Tensor out = pinned ? pinned_tensor(impl->sizes, impl->dtype) : make_tensor(impl->sizes, impl->dtype, device);
  size_t bytes = t.nbytes();
  if (bytes == 0) return out;
  const TensorImpl& s = *impl_of(source);
  void *at = impl_of(out)->data(), *begin = s.data();
  if (from.on_host() && device.on_host()) {
    device.copy(at, begin, bytes, runtime::kDefaultStream);
  } else if (from.on_host()) {
    bool wait = s.storage->is_pinned() && !non_blocking;
    device.upload(at, begin, bytes, current_stream(device), s.storage->is_pinned());
    if (wait) device.synchronize(current_stream(device));
  } else if (device.on_host()) {
    from.download(at, begin, bytes, current_stream(from), non_blocking && pinned);
  } else {
    copy_between(device, at, from, begin, bytes);
  }
  return out;
}

Tensor moved(const Tensor& t, runtime::Device& device, bool non_blocking) {
  if (&checked_impl(t)->device() == &device) return t;
  Tensor out = transferred(t, device, non_blocking);
  impl_of(out)->weak = impl_of(t)->weak;
  if (!GradMode::is_enabled() || !t.requires_grad() || !autograd::differentiable(t.scalar_type())) return out;
  auto node = autograd::make_node<MoveNode>(impl_of(t)->device());
  autograd::set_history(out, std::move(node), t);
  return out;
}

Tensor Tensor::pin_memory(std::optional<Device>) const {
  BRASA_CHECK(checked_impl(*this)->device().on_host(), "cannot pin ", *this, ": only dense CPU tensors can be pinned");
  return is_pinned() ? *this : transferred(*this, runtime::host(), false, true);
}

}  // namespace brasa
