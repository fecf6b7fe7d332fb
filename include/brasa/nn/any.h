#pragma once

#include <any>
#include <functional>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include <brasa/nn/pimpl.h>

namespace brasa::nn {

namespace detail {
[[noreturn]] BRASA_API void any_arity_error(const std::type_info& module, size_t expected, size_t defaults, size_t got);
[[noreturn]] BRASA_API void any_argument_error(const std::type_info& expected, const std::type_info& got, size_t index);
[[noreturn]] BRASA_API void any_value_error(const std::type_info& expected, const std::type_info& got);
[[noreturn]] BRASA_API void any_return_error(const std::type_info& expected, const std::type_info& got);
[[noreturn]] BRASA_API void any_module_error(const std::type_info& expected, const std::type_info& got);
[[noreturn]] BRASA_API void any_empty_error(const char* method, const char* what = "AnyModule");
}  // namespace detail

/// What AnyModule's forward gives: a value whose type must be named to get it.
class AnyValue {
 public:
  AnyValue() = default;
  template <class T>
    requires(!std::is_same_v<std::decay_t<T>, AnyValue>)
  explicit AnyValue(T&& value) : value_(std::forward<T>(value)) {}
  template <class T>
  T get() {
    if (T* p = std::any_cast<T>(&value_)) return *p;
    detail::any_value_error(typeid(T), value_.type());
  }
  template <class T>
  T* try_get() {
    return std::any_cast<T>(&value_);
  }
  const std::type_info& type_info() const { return value_.type(); }
  std::any& any() { return value_; }

 private:
  std::any value_;
};

namespace detail {

/// Appends default arguments up to `count`; brasa::Error if there are not enough.
BRASA_API void fill_arguments(Module& module, const std::type_info& type, std::vector<std::any>& arguments,
                              size_t count);

template <class F>
struct ForwardSignature;
template <class C, class R, class... A>
struct ForwardSignature<R (C::*)(A...)> {
  using Result = R;
  template <class M, size_t... I>
  static std::any call(M& module, std::vector<std::any>& arguments, std::index_sequence<I...>) {
    if (arguments.size() != sizeof...(A)) fill_arguments(module, typeid(M), arguments, sizeof...(A));
    if constexpr (std::is_void_v<R>) {
      module.forward(get<std::decay_t<A>>(arguments[I], I)...);
      return {};
    } else {
      return std::any(std::decay_t<R>(module.forward(get<std::decay_t<A>>(arguments[I], I)...)));
    }
  }
  template <class T>
  static T get(std::any& value, size_t index) {
    if (T* p = std::any_cast<T>(&value)) return std::move(*p);
    any_argument_error(typeid(T), value.type(), index);
  }
  template <class M>
  static std::any call(M& module, std::vector<std::any>& arguments) {
    return call(module, arguments, std::index_sequence_for<A...>());
  }
};
template <class C, class R, class... A>
struct ForwardSignature<R (C::*)(A...) const> : ForwardSignature<R (C::*)(A...)> {};

}  // namespace detail

/// A module of any type, called through its forward() with values of exactly its parameters' types (references aside).
class AnyModule {
 public:
  AnyModule() = default;
  template <class M>
    requires(std::is_base_of_v<Module, M>)
  explicit AnyModule(std::shared_ptr<M> module)
      : module_(std::move(module)), type_(&typeid(M)), call_([](Module& m, std::vector<std::any>& arguments) {
          return detail::ForwardSignature<decltype(&M::forward)>::call(static_cast<M&>(m), arguments);
        }) {}
  template <class M>
    requires(std::is_base_of_v<Module, std::decay_t<M>>)
  explicit AnyModule(M&& module) : AnyModule(std::make_shared<std::decay_t<M>>(std::forward<M>(module))) {}
  template <class M>
  explicit AnyModule(const ModuleHolder<M>& holder) : AnyModule(holder.ptr()) {}

  template <class M>
    requires(std::is_base_of_v<Module, M>)
  AnyModule& operator=(std::shared_ptr<M> module) {
    return *this = AnyModule(std::move(module));
  }

  AnyModule clone(std::optional<Device> device = std::nullopt) const {
    AnyModule copy = *this;
    if (module_) copy.module_ = module_->clone(device);
    return copy;
  }

  template <class... A>
  AnyValue any_forward(A&&... arguments) {
    std::vector<std::any> packed;
    packed.reserve(sizeof...(A));
    (packed.push_back(pack(std::forward<A>(arguments))), ...);
    return call(packed);
  }
  template <class Result = Tensor, class... A>
  Result forward(A&&... arguments) {
    return any_forward(std::forward<A>(arguments)...).template get<Result>();
  }
  AnyValue call(std::vector<std::any>& arguments) {
    if (!module_) detail::any_empty_error("forward()");
    return AnyValue(call_(*module_, arguments));
  }

  template <class M>
    requires(std::is_base_of_v<Module, M>)
  M& get() {
    if (!module_) detail::any_empty_error("get()");
    return *ptr<M>();
  }
  template <class M>
    requires(std::is_base_of_v<Module, M>)
  const M& get() const {
    if (!module_) detail::any_empty_error("get()");
    return *ptr<M>();
  }
  template <class Holder>
    requires(is_module_holder<Holder>)
  Holder get() const {
    return Holder(ptr<typename Holder::ContainedType>());
  }
  std::shared_ptr<Module> ptr() const {
    if (!module_) detail::any_empty_error("ptr()");
    return module_;
  }
  template <class M>
    requires(std::is_base_of_v<Module, M>)
  std::shared_ptr<M> ptr() const {
    if (!module_) detail::any_empty_error("ptr()");
    auto p = std::dynamic_pointer_cast<M>(module_);
    if (!p) detail::any_module_error(typeid(M), *type_);
    return p;
  }
  const std::type_info& type_info() const {
    if (!module_) detail::any_empty_error("type_info()");
    return *type_;
  }
  bool is_empty() const noexcept { return module_ == nullptr; }

 private:
  template <class T>
  static std::any pack(T&& value) {
    if constexpr (std::is_same_v<std::decay_t<T>, AnyValue>)
      return value.any();
    else
      return std::any(std::decay_t<T>(std::forward<T>(value)));
  }

  std::shared_ptr<Module> module_;
  const std::type_info* type_ = nullptr;
  std::any (*call_)(Module&, std::vector<std::any>&) = nullptr;
};

}  // namespace brasa::nn

/// In a module's class: what forward's last parameters are when AnyModule or Sequential calls it with fewer, as {position, AnyValue(value)}.
#define BRASA_FORWARD_DEFAULTS(...) \
  std::vector<std::pair<unsigned, ::brasa::nn::AnyValue>> _forward_default_args() override { return {__VA_ARGS__}; }
