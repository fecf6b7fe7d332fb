#pragma once

#include <memory>
#include <type_traits>

#include <brasa/nn/module.h>
#include <brasa/serialize/archive.h>

namespace brasa::nn {

namespace detail {
struct ModuleHolderIndicator {};
[[noreturn]] BRASA_API void empty_holder();
}  // namespace detail

template <class T>
inline constexpr bool is_module_holder = std::is_base_of_v<detail::ModuleHolderIndicator, std::decay_t<T>>;
template <class T, class Contained>
inline constexpr bool is_holder_of =
    requires { requires std::is_same_v<typename std::decay_t<T>::ContainedType, Contained>; };

/// A module by shared reference that reads like a value: `Linear fc(2, 3); fc(x); fc->weight`. `Linear fc{nullptr}` is empty.
template <class Contained>
class ModuleHolder : detail::ModuleHolderIndicator {
 public:
  using ContainedType = Contained;

  ModuleHolder() : impl_(default_construct()) {}
  ModuleHolder(std::nullptr_t) : impl_(nullptr) {}  // NOLINT
  template <class Head, class... Tail>
    requires(!(is_holder_of<Head, Contained> && sizeof...(Tail) == 0) &&
             !(std::is_convertible_v<Head, std::shared_ptr<Contained>> && sizeof...(Tail) == 0))
  explicit ModuleHolder(Head&& head, Tail&&... tail)
      : impl_(std::make_shared<Contained>(std::forward<Head>(head), std::forward<Tail>(tail)...)) {}
  ModuleHolder(std::shared_ptr<Contained> module) : impl_(std::move(module)) {}  // NOLINT

  explicit operator bool() const noexcept { return !is_empty(); }
  Contained* operator->() { return get(); }
  const Contained* operator->() const { return get(); }
  Contained& operator*() { return *get(); }
  const Contained& operator*() const { return *get(); }
  std::shared_ptr<Contained> ptr() const {
    if (!impl_) detail::empty_holder();
    return std::static_pointer_cast<Contained>(impl_);
  }
  Contained* get() {
    if (!impl_) detail::empty_holder();
    return static_cast<Contained*>(impl_.get());
  }
  const Contained* get() const {
    if (!impl_) detail::empty_holder();
    return static_cast<const Contained*>(impl_.get());
  }
  template <class... A, class C = Contained>
  auto operator()(A&&... args) -> decltype(std::declval<C&>().forward(std::forward<A>(args)...)) {
    return get()->forward(std::forward<A>(args)...);
  }
  template <class Arg>
  decltype(auto) operator[](Arg&& arg) {
    return (*get())[std::forward<Arg>(arg)];
  }
  bool is_empty() const noexcept { return impl_ == nullptr; }

 protected:
  // A Module's, not a Contained's: that template would be made for every layer in every program.
  std::shared_ptr<Module> impl_;

 private:
  static std::shared_ptr<Contained> default_construct() {
    if constexpr (std::is_default_constructible_v<Contained>)
      return std::make_shared<Contained>();
    else
      return nullptr;
  }
};

template <class Contained>
std::ostream& operator<<(std::ostream& stream, const ModuleHolder<Contained>& module) {
  return stream << static_cast<const Module&>(*module);
}

template <class Contained>
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const ModuleHolder<Contained>& module) {
  module->save(archive);
  return archive;
}
template <class Contained>
serialize::InputArchive& operator>>(serialize::InputArchive& archive, ModuleHolder<Contained>& module) {
  module->load(archive);
  return archive;
}
inline serialize::OutputArchive& operator<<(serialize::OutputArchive& archive, const std::shared_ptr<Module>& module) {
  module->save(archive);
  return archive;
}
inline serialize::InputArchive& operator>>(serialize::InputArchive& archive, const std::shared_ptr<Module>& module) {
  module->load(archive);
  return archive;
}

}  // namespace brasa::nn

/// `BRASA_MODULE(Net);` after `struct NetImpl : nn::Module {…}` makes Net, its holder.
#define BRASA_MODULE(Name)                                     \
  class Name : public ::brasa::nn::ModuleHolder<Name##Impl> {  \
   public:                                                     \
    using ::brasa::nn::ModuleHolder<Name##Impl>::ModuleHolder; \
    using Impl = Name##Impl;                                   \
  }
