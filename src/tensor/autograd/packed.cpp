#include "tensor/autograd/packed.h"

#include <brasa/saved_tensors.h>

#include "support/error.h"
#include "tensor/autograd/meta.h"
#include "tensor/recorder.h"

namespace brasa::autograd {
namespace {

struct Functions {
  SavedTensorsHooks::Pack pack;
  SavedTensorsHooks::Unpack unpack;
};

// The innermost ones of this thread; null: none.
thread_local const std::shared_ptr<const Functions>* hooks = nullptr;

struct Packed final : Elsewhere {
  Packed(std::shared_ptr<const Functions> f, const Tensor& t) : functions(std::move(f)), kept(functions->pack(t)) {}
  Tensor value(const std::string& name) override {
    Recorder::Scope eager(nullptr);
    NoGradGuard guard;
    Tensor out = functions->unpack(kept);
    BRASA_CHECK(out.defined(), "unpack of hooks for saved tensors gave no tensor for ", name);
    return out;
  }
  void forget() override { kept.reset(); }
  std::shared_ptr<const Functions> functions;
  std::any kept;
};

// Ends what is being recorded; null.
Recorder* ended(const char* reason) {
  if (Recorder* recorder = Recorder::current()) recorder->materialise(reason);
  return nullptr;
}

}  // namespace

std::unique_ptr<Elsewhere> packed(const Tensor& t) {
  if (!hooks || impl_of(t)->weak) return nullptr;
  NoGradGuard guard;
  return std::make_unique<Packed>(*hooks, t.detach());
}

// In a function that is recorded, nodes would save what has no value yet: from here on it runs as it is written.
struct SavedTensorsHooks::Impl {
  explicit Impl(std::shared_ptr<const Functions> f)
      : eager(ended("hooks for saved tensors")), functions(std::move(f)), scope(hooks, &functions) {}
  Recorder::Scope eager;
  std::shared_ptr<const Functions> functions;
  Scoped<const std::shared_ptr<const Functions>*> scope;
};

SavedTensorsHooks::SavedTensorsHooks(Pack pack, Unpack unpack) {
  BRASA_CHECK(pack && unpack, "SavedTensorsHooks: pack and unpack are expected");
  impl_ = std::make_unique<Impl>(std::make_shared<Functions>(Functions{std::move(pack), std::move(unpack)}));
}
SavedTensorsHooks::~SavedTensorsHooks() = default;

}  // namespace brasa::autograd
