#pragma once

#include <initializer_list>
#include <ostream>

#include <brasa/nn/any.h>
#include <brasa/nn/cloneable.h>

namespace brasa::nn {

/// A module with the name it gets in a Sequential: `Sequential({{"fc", Linear(2, 3)}, {"act", ReLU()}})`.
class NamedAnyModule {
 public:
  template <class M>
  NamedAnyModule(std::string name, const ModuleHolder<M>& holder) : name_(std::move(name)), module_(holder) {}
  template <class M>
    requires(std::is_base_of_v<Module, M>)
  NamedAnyModule(std::string name, std::shared_ptr<M> module) : name_(std::move(name)), module_(std::move(module)) {}
  template <class M>
    requires(std::is_base_of_v<Module, std::decay_t<M>>)
  NamedAnyModule(std::string name, M&& module) : name_(std::move(name)), module_(std::forward<M>(module)) {}
  NamedAnyModule(std::string name, AnyModule module) : name_(std::move(name)), module_(std::move(module)) {}
  const std::string& name() const noexcept { return name_; }
  AnyModule& module() noexcept { return module_; }
  const AnyModule& module() const noexcept { return module_; }

 private:
  std::string name_;
  AnyModule module_;
};

/// Modules called one after the other, each with what the one before gave.
class BRASA_API SequentialImpl : public Cloneable<SequentialImpl> {
 public:
  using Iterator = std::vector<AnyModule>::iterator;
  using ConstIterator = std::vector<AnyModule>::const_iterator;

  SequentialImpl() = default;
  template <class... Modules>
    requires(sizeof...(Modules) > 0)
  explicit SequentialImpl(Modules&&... modules) {
    modules_.reserve(sizeof...(Modules));
    (push_back(std::forward<Modules>(modules)), ...);
  }
  explicit SequentialImpl(OrderedDict<std::string, AnyModule>&& modules);
  explicit SequentialImpl(std::initializer_list<NamedAnyModule> modules);

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  template <class Result = Tensor, class... A>
  Result forward(A&&... inputs) {
    if (modules_.empty()) detail::any_empty_error("forward()", "Sequential");
    AnyValue value = modules_.front().any_forward(std::forward<A>(inputs)...);
    for (size_t i = 1; i < modules_.size(); ++i) value = modules_[i].any_forward(std::move(value));
    if (Result* result = value.try_get<Result>()) return std::move(*result);
    detail::any_return_error(typeid(Result), value.type_info());
  }

  template <class M>
    requires(std::is_base_of_v<Module, M>)
  void push_back(std::shared_ptr<M> module) {
    push_back(std::to_string(modules_.size()), std::move(module));
  }
  template <class M>
    requires(std::is_base_of_v<Module, M>)
  void push_back(std::string name, std::shared_ptr<M> module) {
    push_back(std::move(name), AnyModule(std::move(module)));
  }
  template <class M>
    requires(std::is_base_of_v<Module, std::decay_t<M>>)
  void push_back(M&& module) {
    push_back(std::make_shared<std::decay_t<M>>(std::forward<M>(module)));
  }
  template <class M>
    requires(std::is_base_of_v<Module, std::decay_t<M>>)
  void push_back(std::string name, M&& module) {
    push_back(std::move(name), std::make_shared<std::decay_t<M>>(std::forward<M>(module)));
  }
  template <class M>
  void push_back(const ModuleHolder<M>& holder) {
    push_back(holder.ptr());
  }
  template <class M>
  void push_back(std::string name, const ModuleHolder<M>& holder) {
    push_back(std::move(name), holder.ptr());
  }
  void push_back(AnyModule module) { push_back(std::to_string(modules_.size()), std::move(module)); }
  void push_back(std::string name, AnyModule module);
  template <class Container>
  void extend(const Container& container) {
    for (const auto& module : container) push_back(module);
  }

  Iterator begin() { return modules_.begin(); }
  Iterator end() { return modules_.end(); }
  ConstIterator begin() const { return modules_.begin(); }
  ConstIterator end() const { return modules_.end(); }
  /// brasa::Error outside, or for another type.
  template <class M>
  M& at(size_t index) {
    return checked(index).get<M>();
  }
  template <class M>
  const M& at(size_t index) const {
    return checked(index).get<M>();
  }
  std::shared_ptr<Module> ptr(size_t index) const { return checked(index).ptr(); }
  template <class M>
  std::shared_ptr<M> ptr(size_t index) const {
    return checked(index).ptr<M>();
  }
  std::shared_ptr<Module> operator[](size_t index) const { return ptr(index); }
  size_t size() const noexcept { return modules_.size(); }
  bool is_empty() const noexcept { return modules_.empty(); }

 private:
  AnyModule& checked(size_t index);
  const AnyModule& checked(size_t index) const;
  std::vector<AnyModule> modules_;
};

class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  using ModuleHolder<SequentialImpl>::ModuleHolder;
  using Impl = SequentialImpl;
  Sequential() = default;
  BRASA_API Sequential(std::initializer_list<NamedAnyModule> modules);
};

/// A list of modules that are registered under their index and called by the owner.
class BRASA_API ModuleListImpl : public Cloneable<ModuleListImpl> {
 public:
  using Iterator = std::vector<std::shared_ptr<Module>>::iterator;
  using ConstIterator = std::vector<std::shared_ptr<Module>>::const_iterator;

  ModuleListImpl() = default;
  template <class... Modules>
    requires(sizeof...(Modules) > 0)
  explicit ModuleListImpl(Modules&&... modules) {
    modules_.reserve(sizeof...(Modules));
    (push_back(std::forward<Modules>(modules)), ...);
  }

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  void push_back(std::shared_ptr<Module> module);
  template <class M>
    requires(std::is_base_of_v<Module, std::decay_t<M>>)
  void push_back(M&& module) {
    push_back(std::static_pointer_cast<Module>(std::make_shared<std::decay_t<M>>(std::forward<M>(module))));
  }
  template <class M>
  void push_back(const ModuleHolder<M>& holder) {
    push_back(std::static_pointer_cast<Module>(holder.ptr()));
  }
  template <class Container>
  void extend(const Container& container) {
    for (const auto& module : container) push_back(module);
  }
  void insert(size_t index, std::shared_ptr<Module> module);
  template <class M>
    requires(std::is_base_of_v<Module, std::decay_t<M>>)
  void insert(size_t index, M&& module) {
    insert(index, std::shared_ptr<Module>(std::make_shared<std::decay_t<M>>(std::forward<M>(module))));
  }
  template <class M>
  void insert(size_t index, const ModuleHolder<M>& holder) {
    insert(index, std::shared_ptr<Module>(holder.ptr()));
  }

  Iterator begin() { return modules_.begin(); }
  Iterator end() { return modules_.end(); }
  ConstIterator begin() const { return modules_.begin(); }
  ConstIterator end() const { return modules_.end(); }
  const std::shared_ptr<Module>& ptr(size_t index) const;
  template <class M>
  std::shared_ptr<M> ptr(size_t index) const {
    const Module& module = *ptr(index);
    auto p = std::dynamic_pointer_cast<M>(ptr(index));
    if (!p) detail::any_module_error(typeid(M), typeid(module));
    return p;
  }
  template <class M>
  M& at(size_t index) const {
    return *ptr<M>(index);
  }
  std::shared_ptr<Module> operator[](size_t index) const { return ptr(index); }
  size_t size() const noexcept { return modules_.size(); }
  bool is_empty() const noexcept { return modules_.empty(); }

 private:
  std::vector<std::shared_ptr<Module>> modules_;
};
BRASA_MODULE(ModuleList);

/// Modules by name, in the order of insertion.
class BRASA_API ModuleDictImpl : public Cloneable<ModuleDictImpl> {
 public:
  using Item = OrderedDict<std::string, std::shared_ptr<Module>>::Item;

  ModuleDictImpl() = default;
  explicit ModuleDictImpl(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules);
  explicit ModuleDictImpl(const OrderedDict<std::string, std::shared_ptr<Module>>& modules);

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;

  std::vector<std::string> keys() const;
  std::vector<std::shared_ptr<Module>> values() const;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> items() const;
  auto begin() { return children_.begin(); }
  auto end() { return children_.end(); }
  auto begin() const { return children_.begin(); }
  auto end() const { return children_.end(); }
  size_t size() const noexcept { return children_.size(); }
  bool empty() const noexcept { return children_.is_empty(); }
  bool contains(const std::string& key) const noexcept { return children_.contains(key); }
  void clear() { children_.clear(); }
  std::shared_ptr<Module> pop(const std::string& key);
  void update(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules);
  void update(const OrderedDict<std::string, std::shared_ptr<Module>>& modules);
  void update(const ModuleDictImpl& other) { update(other.children_); }
  std::shared_ptr<Module> operator[](const std::string& key) const { return children_[key]; }
  template <class M>
  M& at(const std::string& key) const {
    Module& module = *children_[key];
    auto* p = dynamic_cast<M*>(&module);
    if (!p) detail::any_module_error(typeid(M), typeid(module));
    return *p;
  }
};
BRASA_MODULE(ModuleDict);

}  // namespace brasa::nn
