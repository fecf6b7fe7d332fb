#pragma once

#include <brasa/nn/cloneable.h>
#include <brasa/nn/pimpl.h>

namespace brasa::nn {

/// Parameters by name, in the order of insertion.
class BRASA_API ParameterDictImpl : public Cloneable<ParameterDictImpl> {
 public:
  using Iterator = OrderedDict<std::string, Tensor>::Iterator;
  using ConstIterator = OrderedDict<std::string, Tensor>::ConstIterator;

  ParameterDictImpl() = default;
  explicit ParameterDictImpl(const OrderedDict<std::string, Tensor>& parameters);

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override { parameters_.clear(); }
  void pretty_print(std::ostream& stream) const override;

  Tensor& insert(const std::string& key, const Tensor& parameter) {
    return register_parameter(key, parameter, parameter.requires_grad());
  }
  /// Takes the parameter out; brasa::Error if there is none of this name.
  Tensor pop(const std::string& key);
  std::vector<std::string> keys() const;
  std::vector<Tensor> values() const;
  Iterator begin() { return parameters_.begin(); }
  Iterator end() { return parameters_.end(); }
  ConstIterator begin() const { return parameters_.begin(); }
  ConstIterator end() const { return parameters_.end(); }
  size_t size() const noexcept { return parameters_.size(); }
  bool empty() const noexcept { return parameters_.is_empty(); }
  void clear() { parameters_.clear(); }
  bool contains(const std::string& key) const noexcept { return parameters_.contains(key); }
  /// Replaces those of the same name; brasa::Error if there is none. `Container`: items of key and value.
  template <class Container>
  void update(const Container& container) {
    for (const auto& item : container) parameters_[item.key()] = item.value();
  }
  Tensor& get(const std::string& key) { return parameters_[key]; }
  const Tensor& get(const std::string& key) const { return parameters_[key]; }
  Tensor& operator[](const std::string& key) { return parameters_[key]; }
  const Tensor& operator[](const std::string& key) const { return parameters_[key]; }
};

class ParameterDict : public ModuleHolder<ParameterDictImpl> {
 public:
  using ModuleHolder<ParameterDictImpl>::ModuleHolder;
  using Impl = ParameterDictImpl;
  ParameterDict() = default;
  BRASA_API ParameterDict(std::initializer_list<OrderedDict<std::string, Tensor>::Item> items);
};

/// Parameters that are registered under their index.
class BRASA_API ParameterListImpl : public Cloneable<ParameterListImpl> {
 public:
  using Iterator = OrderedDict<std::string, Tensor>::Iterator;
  using ConstIterator = OrderedDict<std::string, Tensor>::ConstIterator;

  ParameterListImpl() = default;
  template <class... Tensors>
    requires(sizeof...(Tensors) > 0 && (std::is_convertible_v<Tensors, Tensor> && ...))
  explicit ParameterListImpl(Tensors&&... parameters) {
    (append(std::forward<Tensors>(parameters)), ...);
  }

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override { parameters_.clear(); }
  void pretty_print(std::ostream& stream) const override;

  void append(const Tensor& parameter) {
    register_parameter(std::to_string(size()), parameter, parameter.requires_grad());
  }
  void append(const OrderedDict<std::string, Tensor>::Item& item) { append(item.value()); }
  template <class Container>
  void extend(const Container& container) {
    for (const auto& item : container) append(item);
  }
  Iterator begin() { return parameters_.begin(); }
  Iterator end() { return parameters_.end(); }
  ConstIterator begin() const { return parameters_.begin(); }
  ConstIterator end() const { return parameters_.end(); }
  /// brasa::Error outside.
  Tensor& at(size_t index);
  const Tensor& at(size_t index) const { return const_cast<ParameterListImpl&>(*this).at(index); }
  ParameterListImpl& operator+=(const ParameterListImpl& o) {
    extend(o);
    return *this;
  }
  Tensor& operator[](size_t index) { return at(index); }
  const Tensor& operator[](size_t index) const { return at(index); }
  size_t size() const noexcept { return parameters_.size(); }
  bool is_empty() const noexcept { return parameters_.is_empty(); }
};
BRASA_MODULE(ParameterList);

}  // namespace brasa::nn
