#include <brasa/nn/modules/container.h>
#include <brasa/nn/modules/functional.h>

#include "support/error.h"

namespace brasa::nn {

SequentialImpl::SequentialImpl(OrderedDict<std::string, AnyModule>&& modules) {
  for (auto& item : modules) push_back(item.key(), std::move(item.value()));
}
SequentialImpl::SequentialImpl(std::initializer_list<NamedAnyModule> modules) {
  for (const NamedAnyModule& m : modules) push_back(m.name(), m.module());
}

FunctionalImpl::FunctionalImpl(Function function) : function_(std::move(function)) {}
Tensor FunctionalImpl::forward(Tensor input) { return function_(std::move(input)); }
void FunctionalImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::Functional()"; }

std::shared_ptr<Module> SequentialImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<SequentialImpl>();
  for (size_t i = 0; i < modules_.size(); ++i) copy->push_back(children_[i].key(), modules_[i].clone(device));
  copy->train(is_training());
  return copy;
}

void SequentialImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::Sequential"; }

void SequentialImpl::push_back(std::string name, AnyModule module) {
  register_module(std::move(name), module.ptr());
  modules_.push_back(std::move(module));
}

AnyModule& SequentialImpl::checked(size_t index) {
  BRASA_CHECK(index < modules_.size(), "Index out of range: Sequential has no element ", index, " among ",
              modules_.size(), " modules");
  return modules_[index];
}
const AnyModule& SequentialImpl::checked(size_t index) const {
  return const_cast<SequentialImpl&>(*this).checked(index);
}

std::shared_ptr<Module> ModuleListImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ModuleListImpl>();
  for (const auto& m : modules_) copy->push_back(m->clone(device));
  copy->train(is_training());
  return copy;
}

void ModuleListImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::ModuleList"; }

void ModuleListImpl::push_back(std::shared_ptr<Module> module) {
  register_module(std::to_string(modules_.size()), module);
  modules_.push_back(std::move(module));
}

void ModuleListImpl::insert(size_t index, std::shared_ptr<Module> module) {
  BRASA_CHECK(index <= modules_.size(), "Index out of range: ModuleList has no element ", index, " among ",
              modules_.size(), " modules");
  modules_.insert(modules_.begin() + static_cast<ptrdiff_t>(index), std::move(module));
  children_.clear();
  for (size_t i = 0; i < modules_.size(); ++i) register_module(std::to_string(i), modules_[i]);
}

const std::shared_ptr<Module>& ModuleListImpl::ptr(size_t index) const {
  BRASA_CHECK(index < modules_.size(), "Index out of range: ModuleList has no element ", index, " among ",
              modules_.size(), " modules");
  return modules_[index];
}

ModuleDictImpl::ModuleDictImpl(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules) {
  update(modules);
}
ModuleDictImpl::ModuleDictImpl(const OrderedDict<std::string, std::shared_ptr<Module>>& modules) {
  update(modules.pairs());
}

std::shared_ptr<Module> ModuleDictImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ModuleDictImpl>();
  for (const auto& item : children_) copy->register_module(item.key(), item.value()->clone(device));
  copy->train(is_training());
  return copy;
}

void ModuleDictImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::ModuleDict"; }

std::shared_ptr<Module> ModuleDictImpl::pop(const std::string& key) {
  std::shared_ptr<Module> module = children_[key];
  children_.erase(key);
  return module;
}

void ModuleDictImpl::update(const OrderedDict<std::string, std::shared_ptr<Module>>& modules) {
  update(modules.pairs());
}
void ModuleDictImpl::update(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules) {
  for (const auto& [name, module] : modules) {
    if (children_.contains(name))
      replace_module(name, module);
    else
      register_module(name, module);
  }
}

Sequential::Sequential(std::initializer_list<NamedAnyModule> modules)
    : ModuleHolder(std::make_shared<SequentialImpl>(modules)) {}

std::vector<std::string> ModuleDictImpl::keys() const { return children_.keys(); }
std::vector<std::shared_ptr<Module>> ModuleDictImpl::values() const { return children_.values(); }
std::vector<std::pair<std::string, std::shared_ptr<Module>>> ModuleDictImpl::items() const { return children_.pairs(); }

}  // namespace brasa::nn
