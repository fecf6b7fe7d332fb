#include <brasa/nn/module.h>

#include <ostream>
#include <typeinfo>
#include <utility>

#include <brasa/autograd.h>
#include <brasa/expanding_array.h>
#include <brasa/nn/any.h>
#include <brasa/nn/cloneable.h>
#include <brasa/nn/pimpl.h>
#include <brasa/serialize/archive.h>
#include <brasa/warning.h>

#include "support/error.h"
#include "support/fresh_stack.h"
#include "tensor/program_state.h"
#include "tensor/tensor_impl.h"

namespace brasa {
namespace detail {

void dict_error(const std::string& subject, const std::string& key, const char* what) {
  fail(str(subject, " '", key, "' ", what));
}
void empty_dict_error(const char* method) { fail(str("Called ", method, " on an empty OrderedDict")); }
void expanding_array_error(size_t expected, size_t got) {
  fail(str("Expected ", static_cast<uint64_t>(expected), " values, but instead got ", static_cast<uint64_t>(got)));
}

}  // namespace detail

namespace nn {
namespace detail {

void clone_error(const char* what, size_t expected, size_t got) {
  fail(str("clone: the copy has ", got, " ", what, ", the module ", expected,
           ". reset() must register all parameters, buffers and submodules, and nothing else may."));
}
Tensor copied(const Tensor& t, const std::optional<Device>& device) {
  return device && !(t.device() == *device) ? t.to(*device) : t.clone();
}
void empty_holder() { fail("Accessing empty ModuleHolder"); }
void any_arity_error(const std::type_info& module, size_t expected, size_t defaults, size_t got) {
  std::string name = autograd::detail::demangled(module.name());
  if (defaults > 0)
    fail(str(name, "'s forward() method expects at least ", expected - defaults, " argument(s) and at most ", expected,
             " argument(s), but received ", got, "."));
  std::string text = str(name, "'s forward() method expects ", expected, " argument(s), but received ", got, ".");
  if (got < expected)
    text += str(" If ", name, "'s forward() method has default arguments, please make sure the forward() method is ",
                "declared with a corresponding `FORWARD_HAS_DEFAULT_ARGS` macro.");
  fail(text);
}
void fill_arguments(Module& module, const std::type_info& type, std::vector<std::any>& arguments, size_t count) {
  auto defaults = module._forward_default_args();
  size_t given = arguments.size();
  if (given < count)
    for (auto& [position, value] : defaults)
      if (position == arguments.size()) arguments.push_back(value.any());
  if (arguments.size() != count) any_arity_error(type, count, defaults.size(), given);
}
namespace {
// A C++ type, in LibTorch's words.
std::string type_name(const std::type_info& type) {
  std::string name = autograd::detail::demangled(type.name());
  for (auto [own, theirs] : {std::pair{"brasa::Tensor", "at::Tensor"}, std::pair{"brasa::", "torch::"}})
    for (size_t at = 0; (at = name.find(own, at)) != name.npos;) name.replace(at, std::string_view(own).size(), theirs);
  return name;
}
}  // namespace
void any_argument_error(const std::type_info& expected, const std::type_info& got, size_t index) {
  fail(str("Expected argument #", index, " to be of type ", type_name(expected), ", but received value of type ",
           type_name(got)));
}
void any_value_error(const std::type_info& expected, const std::type_info& got) {
  fail(str("Attempted to cast AnyValue to ", type_name(expected), ", but its actual type is ", type_name(got)));
}
void any_return_error(const std::type_info& expected, const std::type_info& got) {
  fail(str("The type of the return value is ", type_name(got), ", but you asked for type ", type_name(expected)));
}
void any_module_error(const std::type_info& expected, const std::type_info& got) {
  fail(str("Attempted to cast module of type ", type_name(got), " to type ", type_name(expected)));
}
void any_empty_error(const char* method, const char* what) { fail(str("Cannot call ", method, " on an empty ", what)); }

}  // namespace detail

namespace {

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

}  // namespace

Module::Module(std::string name) : name_(std::move(name)) {}
// Modules nest as deep as a program makes them.
Module::~Module() {
  with_room([this] { children_.clear(); });
}

const std::string& Module::name() const noexcept {
  if (!name_) {
    name_ = autograd::detail::demangled(typeid(*this).name());
    // Brasa's own layers are called as LibTorch's are.
    constexpr std::string_view own = "brasa::";
    if (name_->starts_with(own)) name_->replace(0, own.size(), "torch::");
  }
  return *name_;
}

std::shared_ptr<Module> Module::clone(const std::optional<Device>&) const {
  fail(str("clone() has not been implemented for ", name(), ". Subclass torch::nn::Cloneable<", name(),
           "> instead of torch::nn::Module to inherit the ability to clone."));
}
void Module::clone_(Module&, const std::optional<Device>&) {}

namespace {

void copy_tensors(OrderedDict<std::string, Tensor>& to, const OrderedDict<std::string, Tensor>& from, const char* what,
                  const std::optional<Device>& device) {
  if (to.size() != from.size()) detail::clone_error(what, from.size(), to.size());
  for (const auto& item : from) {
    const Tensor& t = item.value();
    Tensor& target = to[item.key()];
    if (t.defined()) target.set_data(detail::copied(t, device));
  }
}

}  // namespace

std::shared_ptr<Module> Module::finish_clone(Module* made, void (*reset)(Module&),
                                             const std::optional<Device>& device) const {
  std::shared_ptr<Module> copy(made);
  NoGradGuard no_grad;
  copy->parameters_.clear();
  copy->buffers_.clear();
  copy->children_.clear();
  reset(*copy);
  copy_tensors(copy->parameters_, parameters_, "parameters", device);
  copy_tensors(copy->buffers_, buffers_, "buffers", device);
  if (copy->children_.size() != children_.size())
    detail::clone_error("submodules", children_.size(), copy->children_.size());
  for (const auto& item : children_) with_room([&] { copy->children_[item.key()]->clone_(*item.value(), device); });
  return copy;
}

std::shared_ptr<Module> Module::shared() const {
  auto p = std::const_pointer_cast<Module>(weak_from_this().lock());
  BRASA_CHECK(
      p,
      "It looks like you attempted to retrieve your top-level module as a shared_ptr, but it is not stored in a "
      "shared_ptr. Use std::make_shared<",
      name(), "> or its holder instead of creating it on the stack");
  return p;
}

template <class F>
void Module::below(const std::string& prefix, const F& f) const {
  for (const auto& child : children_) {
    std::string name = joined(prefix, child.key());
    f(name, child.value());
    with_room([&] { child.value()->below(name, f); });
  }
}

void Module::apply(const std::function<void(Module&)>& function) {
  function(*this);
  below("", [&](const std::string&, const std::shared_ptr<Module>& m) { function(*m); });
}
void Module::apply(const std::function<void(const Module&)>& function) const {
  function(*this);
  below("", [&](const std::string&, const std::shared_ptr<Module>& m) { function(*m); });
}
void Module::apply(const std::function<void(const std::string&, Module&)>& function, const std::string& name_prefix) {
  function(name_prefix, *this);
  below(name_prefix, [&](const std::string& name, const std::shared_ptr<Module>& m) { function(name, *m); });
}
void Module::apply(const std::function<void(const std::string&, const Module&)>& function,
                   const std::string& name_prefix) const {
  function(name_prefix, *this);
  below(name_prefix, [&](const std::string& name, const std::shared_ptr<Module>& m) { function(name, *m); });
}
void Module::apply(const std::function<void(const std::shared_ptr<Module>&)>& function) const {
  function(shared());
  below("", [&](const std::string&, const std::shared_ptr<Module>& m) { function(m); });
}
void Module::apply(const std::function<void(const std::string&, const std::shared_ptr<Module>&)>& function,
                   const std::string& name_prefix) const {
  function(name_prefix, shared());
  below(name_prefix, function);
}

OrderedDict<std::string, Tensor> Module::named_parameters(bool recurse) const {
  OrderedDict<std::string, Tensor> result;
  for (const auto& p : parameters_)
    if (p.value().defined()) result.insert(p.key(), p.value());
  if (recurse)
    below("", [&](const std::string& name, const std::shared_ptr<Module>& m) {
      for (const auto& p : m->parameters_)
        if (p.value().defined()) result.insert(joined(name, p.key()), p.value());
    });
  return result;
}
std::vector<std::pair<unsigned, AnyValue>> Module::_forward_default_args() { return {}; }

std::vector<Tensor> Module::parameters(bool recurse) const { return named_parameters(recurse).values(); }

OrderedDict<std::string, Tensor> Module::named_buffers(bool recurse) const {
  OrderedDict<std::string, Tensor> result;
  for (const auto& b : buffers_)
    if (b.value().defined()) result.insert(b.key(), b.value());
  if (recurse)
    below("", [&](const std::string& name, const std::shared_ptr<Module>& m) {
      for (const auto& b : m->buffers_)
        if (b.value().defined()) result.insert(joined(name, b.key()), b.value());
    });
  return result;
}
std::vector<Tensor> Module::buffers(bool recurse) const { return named_buffers(recurse).values(); }

std::vector<std::shared_ptr<Module>> Module::modules(bool include_self) const {
  std::vector<std::shared_ptr<Module>> result;
  if (include_self) result.push_back(shared());
  below("", [&](const std::string&, const std::shared_ptr<Module>& m) { result.push_back(m); });
  return result;
}
OrderedDict<std::string, std::shared_ptr<Module>> Module::named_modules(const std::string& name_prefix,
                                                                        bool include_self) const {
  OrderedDict<std::string, std::shared_ptr<Module>> result;
  if (include_self) result.insert(name_prefix, shared());
  below(name_prefix, [&](const std::string& name, const std::shared_ptr<Module>& m) { result.insert(name, m); });
  return result;
}
std::vector<std::shared_ptr<Module>> Module::children() const { return children_.values(); }
OrderedDict<std::string, std::shared_ptr<Module>> Module::named_children() const { return children_; }

void Module::train(bool on) {
  for (auto& child : children_) with_room([&] { child.value()->train(on); });
  if (std::exchange(is_training_, on) != on) program_state.fetch_add(1, std::memory_order_relaxed);
}

void Module::convert(const std::function<Tensor(const Tensor&)>& f) {
  for (auto& child : children_) with_room([&] { child.value()->convert(f); });
  NoGradGuard no_grad;
  for (auto* tensors : {&parameters_, &buffers_})
    for (auto& item : *tensors)
      if (item.value().defined()) item.value().set_data(f(item.value()));
}

void Module::to(Device device, DType dtype, bool non_blocking) {
  convert([&](const Tensor& t) { return t.to(device, dtype, non_blocking); });
}
void Module::to(DType dtype, bool non_blocking) {
  convert([&](const Tensor& t) { return t.to(dtype, non_blocking); });
}
void Module::to(Device device, bool non_blocking) {
  convert([&](const Tensor& t) { return t.to(device, t.scalar_type(), non_blocking); });
}

void Module::zero_grad(bool set_to_none) {
  for (auto& child : children_) with_room([&] { child.value()->zero_grad(set_to_none); });
  for (auto& p : parameters_) {
    if (!p.value().defined() || !p.value().grad().defined()) continue;
    if (set_to_none) {
      p.value().mutable_grad().reset();
    } else {
      p.value().mutable_grad().detach_();
      p.value().mutable_grad().zero_();
    }
  }
}

void Module::save(serialize::OutputArchive& archive) const {
  for (const auto& p : parameters_) archive.write(p.key(), p.value());
  for (const auto& b : buffers_) archive.write(b.key(), b.value(), true);
  for (const auto& child : children_) {
    if (!child.value()->is_serializable()) continue;
    serialize::OutputArchive nested;
    with_room([&] { child.value()->save(nested); });
    archive.write(child.key(), nested);
  }
}

void Module::load(serialize::InputArchive& archive) {
  for (auto& p : parameters_)
    if (p.value().defined()) archive.read(p.key(), p.value());
  for (auto& b : buffers_)
    if (b.value().defined()) archive.read(b.key(), b.value(), true);
  for (const auto& child : children_) {
    if (!child.value()->is_serializable()) continue;
    serialize::InputArchive nested;
    if (!archive.try_read(child.key(), nested)) {
      // One without tensors leaves nothing in a file.
      if (child.value()->parameters().empty() && child.value()->buffers().empty()) continue;
      archive.read(child.key(), nested);
    }
    with_room([&] { child.value()->load(nested); });
  }
}

namespace {
void check_name(const char* what, const std::string& name) {
  BRASA_CHECK(!name.empty(), what, " name must not be empty");
  BRASA_CHECK(name.find('.') == std::string::npos, what, " name must not contain a dot (got '", name, "')");
}
}  // namespace

Tensor& Module::register_parameter(std::string name, Tensor tensor, bool requires_grad) {
  check_name("Parameter", name);
  if (!tensor.defined() && requires_grad) {
    Warning::warn({__func__, __FILE__, __LINE__},
                  "An undefined tensor cannot require grad. Ignoring the `requires_grad=true` function parameter.",
                  false);
  }
  if (tensor.defined()) {
    bool differentiable = is_floating(tensor.scalar_type()) || is_complex(tensor.scalar_type());
    BRASA_CHECK(differentiable || !requires_grad, "parameter '", name, "': a tensor of dtype ",
                brasa::name(tensor.scalar_type()), " cannot require gradients");
    tensor.set_requires_grad(requires_grad);
    impl_of(tensor)->registered = true;
  }
  return parameters_.insert(std::move(name), std::move(tensor));
}

Tensor& Module::register_buffer(std::string name, Tensor tensor) {
  check_name("Buffer", name);
  if (tensor.defined()) impl_of(tensor)->registered = true;
  return buffers_.insert(std::move(name), std::move(tensor));
}

void Module::add_child(std::string name, std::shared_ptr<Module> module) {
  check_name("Submodule", name);
  BRASA_CHECK(module, "submodule '", name, "' is empty");
  children_.insert(std::move(name), std::move(module));
}

void Module::unregister_module(const std::string& name) {
  BRASA_CHECK(children_.contains(name), "No Module with name `", name, "` is registered");
  children_.erase(name);
}

void Module::pretty_print(std::ostream& stream) const { stream << name(); }

void Module::print_tree(std::ostream& stream, const std::string& indentation) const {
  pretty_print(stream);
  if (children_.is_empty()) return;
  stream << "(\n";
  std::string deeper = indentation + "  ";
  for (const auto& child : children_) {
    stream << deeper << "(" << child.key() << "): ";
    with_room([&] { child.value()->print_tree(stream, deeper); });
    stream << '\n';
  }
  stream << indentation << ")";
}

std::ostream& operator<<(std::ostream& stream, const Module& module) {
  module.print_tree(stream, "");
  return stream;
}

}  // namespace nn
}  // namespace brasa
