#pragma once

#include <brasa/autograd.h>
#include <brasa/nn/module.h>

namespace brasa::nn {

/// Gives `Derived` a clone(). Its reset() registers all parameters, buffers and submodules anew.
template <class Derived, class Base = Module>
class Cloneable : public Base {
 public:
  using Base::Base;
  virtual void reset() = 0;

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override {
    return this->finish_clone(
        new Derived(static_cast<const Derived&>(*this)), [](Module& m) { static_cast<Derived&>(m).reset(); }, device);
  }

 private:
  void clone_(Module& other, const std::optional<Device>& device) final {
    std::shared_ptr<Module> copy = other.clone(device);
    auto* same = dynamic_cast<Derived*>(copy.get());
    if (!same) detail::clone_error("submodules of one type", 1, 0);
    static_cast<Derived&>(*this) = *same;
  }
};

}  // namespace brasa::nn
