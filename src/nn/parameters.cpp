#include <brasa/nn/modules/parameters.h>

#include <ostream>

#include <brasa/brasa.h>

#include "support/error.h"

namespace brasa::nn {
namespace {

const char* dtype_word(const Tensor& t) { return toString(t.scalar_type()); }

void print(std::ostream& stream, const char* name, const OrderedDict<std::string, Tensor>& parameters) {
  stream << "torch::nn::" << name << "(" << '\n';
  for (const auto& item : parameters) {
    stream << "(" << item.key() << "): Parameter containing: [" << dtype_word(item.value()) << " of size "
           << item.value().sizes() << "]" << '\n';
  }
  stream << ")";
}

}  // namespace

ParameterDictImpl::ParameterDictImpl(const OrderedDict<std::string, Tensor>& parameters) { parameters_ = parameters; }
std::vector<std::string> ParameterDictImpl::keys() const { return parameters_.keys(); }
std::vector<Tensor> ParameterDictImpl::values() const { return parameters_.values(); }

std::shared_ptr<Module> ParameterDictImpl::clone(const std::optional<Device>& device) const {
  NoGradGuard no_grad;
  auto copy = std::make_shared<ParameterDictImpl>();
  for (const auto& item : parameters_)
    copy->register_parameter(item.key(), detail::copied(item.value(), device), item.value().requires_grad());
  copy->train(is_training());
  return copy;
}

void ParameterDictImpl::pretty_print(std::ostream& stream) const { print(stream, "ParameterDict", parameters_); }

Tensor ParameterDictImpl::pop(const std::string& key) {
  Tensor out = parameters_[key];
  parameters_.erase(key);
  return out;
}

Tensor& ParameterListImpl::at(size_t index) {
  BRASA_CHECK(index < size(), "Index out of range: ParameterList has no element ", index, " among ", size());
  return parameters_[std::to_string(index)];
}

ParameterDict::ParameterDict(std::initializer_list<OrderedDict<std::string, Tensor>::Item> items)
    : ModuleHolder(std::make_shared<ParameterDictImpl>(OrderedDict<std::string, Tensor>(items))) {}

std::shared_ptr<Module> ParameterListImpl::clone(const std::optional<Device>& device) const {
  NoGradGuard no_grad;
  auto copy = std::make_shared<ParameterListImpl>();
  for (const auto& item : parameters_)
    copy->register_parameter(item.key(), detail::copied(item.value(), device), item.value().requires_grad());
  copy->train(is_training());
  return copy;
}

void ParameterListImpl::pretty_print(std::ostream& stream) const { print(stream, "ParameterList", parameters_); }

}  // namespace brasa::nn
