#pragma once

#include <brasa/autograd.h>
#include <brasa/nn/module.h>

namespace brasa::nn {

namespace detail {
[[noreturn]] BRASA_API void clone_error(const char* what, size_t expected, size_t got);
BRASA_API Tensor copied(const Tensor& t, const std::optional<Device>& device);
}  // namespace detail

/// Gives `Derived` a clone(). Its reset() registers all parameters, buffers and submodules anew.
template <class Derived>
class Cloneable : public Module {
 public:
  using Module::Module;
  virtual void reset() = 0;

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override {
    NoGradGuard no_grad;
    auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this));
    copy->parameters_.clear();
    copy->buffers_.clear();
    copy->children_.clear();
    copy->reset();
    if (copy->parameters_.size() != parameters_.size())
      detail::clone_error("parameters", parameters_.size(), copy->parameters_.size());
    for (const auto& item : parameters_) {
      Tensor& target = copy->parameters_[item.key()];
      if (item.value().defined()) target.set_data(detail::copied(item.value(), device));
    }
    if (copy->buffers_.size() != buffers_.size())
      detail::clone_error("buffers", buffers_.size(), copy->buffers_.size());
    for (const auto& item : buffers_) {
      Tensor& target = copy->buffers_[item.key()];
      if (item.value().defined()) target.set_data(detail::copied(item.value(), device));
    }
    if (copy->children_.size() != children_.size())
      detail::clone_error("submodules", children_.size(), copy->children_.size());
    for (const auto& item : children_) copy->children_[item.key()]->clone_(*item.value(), device);
    return copy;
  }

 private:
  void clone_(Module& other, const std::optional<Device>& device) final {
    auto copy = std::dynamic_pointer_cast<Derived>(other.clone(device));
    if (!copy) detail::clone_error("submodules of one type", 1, 0);
    static_cast<Derived&>(*this) = *copy;
  }
};

}  // namespace brasa::nn
