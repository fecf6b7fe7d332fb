#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <brasa/ordered_dict.h>
#include <brasa/tensor.h>

namespace brasa::serialize {
class OutputArchive;
class InputArchive;
}  // namespace brasa::serialize

namespace brasa::nn {

template <class Contained>
class ModuleHolder;
class AnyValue;
namespace detail {
[[noreturn]] BRASA_API void clone_error(const char* what, size_t expected, size_t got);
/// A copy, on `device` if one is given.
BRASA_API Tensor copied(const Tensor& t, const std::optional<Device>& device);
}  // namespace detail

/// What every layer and model derives from: named parameters, buffers and submodules, train and eval mode. Kept by shared_ptr; a
/// `ModuleHolder` (see BRASA_MODULE) hides that.
class BRASA_API Module : public std::enable_shared_from_this<Module> {
 public:
  explicit Module(std::string name);
  Module() = default;
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;
  Module(Module&&) noexcept = default;
  Module& operator=(Module&&) noexcept = default;
  virtual ~Module();

  /// The name given, or the type's.
  const std::string& name() const noexcept;

  /// A copy with tensors of its own; brasa::Error unless the type derives from Cloneable.
  virtual std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const;

  // This module and everything below it, parents first. Names are joined by dots behind `name_prefix`.
  void apply(const std::function<void(Module&)>& function);
  void apply(const std::function<void(const Module&)>& function) const;
  void apply(const std::function<void(const std::string&, Module&)>& function, const std::string& name_prefix = {});
  void apply(const std::function<void(const std::string&, const Module&)>& function,
             const std::string& name_prefix = {}) const;
  void apply(const std::function<void(const std::shared_ptr<Module>&)>& function) const;
  void apply(const std::function<void(const std::string&, const std::shared_ptr<Module>&)>& function,
             const std::string& name_prefix = {}) const;

  std::vector<Tensor> parameters(bool recurse = true) const;
  OrderedDict<std::string, Tensor> named_parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  OrderedDict<std::string, Tensor> named_buffers(bool recurse = true) const;
  std::vector<std::shared_ptr<Module>> modules(bool include_self = true) const;
  OrderedDict<std::string, std::shared_ptr<Module>> named_modules(const std::string& name_prefix = {},
                                                                  bool include_self = true) const;
  std::vector<std::shared_ptr<Module>> children() const;
  OrderedDict<std::string, std::shared_ptr<Module>> named_children() const;

  virtual void train(bool on = true);
  void eval() { train(false); }
  virtual bool is_training() const noexcept { return is_training_; }

  /// Converts all parameters and buffers, those of integers, too.
  virtual void to(Device device, DType dtype, bool non_blocking = false);
  virtual void to(DType dtype, bool non_blocking = false);
  virtual void to(Device device, bool non_blocking = false);
  virtual void zero_grad(bool set_to_none = true);

  /// Writes parameters, buffers and submodules under their names, and reads them back in place.
  virtual void save(serialize::OutputArchive& archive) const;
  virtual void load(serialize::InputArchive& archive);
  virtual void pretty_print(std::ostream& stream) const;
  virtual bool is_serializable() const { return true; }
  /// See BRASA_FORWARD_DEFAULTS.
  virtual std::vector<std::pair<unsigned, AnyValue>> _forward_default_args();

  /// A leaf that optimizers train. An undefined tensor keeps the name's place and is not listed.
  Tensor& register_parameter(std::string name, Tensor tensor, bool requires_grad = true);
  /// State that is saved but not trained.
  Tensor& register_buffer(std::string name, Tensor tensor);
  template <class M>
  std::shared_ptr<M> register_module(std::string name, std::shared_ptr<M> module) {
    add_child(std::move(name), module);
    return module;
  }
  template <class M>
  std::shared_ptr<M> register_module(std::string name, const ModuleHolder<M>& holder) {
    return register_module(std::move(name), holder.ptr());
  }
  template <class M>
  std::shared_ptr<M> replace_module(const std::string& name, std::shared_ptr<M> module) {
    children_[name] = module;
    return module;
  }
  template <class M>
  std::shared_ptr<M> replace_module(const std::string& name, const ModuleHolder<M>& holder) {
    return replace_module(name, holder.ptr());
  }
  /// brasa::Error if there is none.
  void unregister_module(const std::string& name);

  template <class M>
  typename M::ContainedType* as() noexcept {
    return as<typename M::ContainedType>();
  }
  template <class M>
  const typename M::ContainedType* as() const noexcept {
    return as<typename M::ContainedType>();
  }
  template <class M>
    requires(std::is_base_of_v<Module, M>)
  M* as() noexcept {
    return dynamic_cast<M*>(this);
  }
  template <class M>
    requires(std::is_base_of_v<Module, M>)
  const M* as() const noexcept {
    return dynamic_cast<const M*>(this);
  }

 protected:
  OrderedDict<std::string, Tensor> parameters_{"Parameter"};
  OrderedDict<std::string, Tensor> buffers_{"Buffer"};
  OrderedDict<std::string, std::shared_ptr<Module>> children_{"Submodule"};

 private:
  template <class Derived, class Base>
  friend class Cloneable;
  friend BRASA_API std::ostream& operator<<(std::ostream& stream, const Module& module);

  virtual void clone_(Module& other, const std::optional<Device>& device);
  /// Takes `copy`, which still shares this module's tensors; `reset` makes its own.
  std::shared_ptr<Module> finish_clone(Module* copy, void (*reset)(Module&), const std::optional<Device>& device) const;
  void add_child(std::string name, std::shared_ptr<Module> module);
  void convert(const std::function<Tensor(const Tensor&)>& f);
  void print_tree(std::ostream& stream, const std::string& indentation) const;
  std::shared_ptr<Module> shared() const;
  template <class F>
  void below(const std::string& prefix, const F& f) const;

  mutable std::optional<std::string> name_;
  bool is_training_ = true;
};

BRASA_API std::ostream& operator<<(std::ostream& stream, const Module& module);

}  // namespace brasa::nn
