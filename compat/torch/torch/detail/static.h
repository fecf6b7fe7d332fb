#pragma once

#include <type_traits>
#include <utility>

#include <brasa/nn/module.h>

// LibTorch's questions about types, which programs use in templates of their own.
namespace torch {

template <bool... values>
using all_of = std::bool_constant<(values && ...)>;
template <bool... values>
using any_of = std::bool_constant<(values || ...)>;
template <bool condition, class T = void>
using enable_if_t = std::enable_if_t<condition, T>;
template <bool condition, class T = void>
using disable_if_t = std::enable_if_t<!condition, T>;

template <class F, class... A>
void apply(F function, A&&... items) {
  (function(std::forward<A>(items)), ...);
}

namespace detail {

template <class T>
using is_module = std::is_base_of<::brasa::nn::Module, std::decay_t<T>>;
template <class M, class T = void>
using enable_if_module_t = std::enable_if_t<is_module<M>::value, T>;
template <class M, class T = void>
using disable_if_module_t = std::enable_if_t<!is_module<M>::value, T>;

template <class... T>
constexpr bool check_not_lvalue_references() {
  return (!std::is_lvalue_reference_v<T> && ...);
}

/// What M's forward gives for these arguments; void if M has none.
template <class M, class... A>
struct return_type_of_forward {
  using type = void;
};
template <class M, class... A>
  requires requires(M& module, A&&... arguments) { module.forward(std::forward<A>(arguments)...); }
struct return_type_of_forward<M, A...> {
  using type = decltype(std::declval<M&>().forward(std::declval<A>()...));
};
template <class M, class... A>
using return_type_of_forward_t = typename return_type_of_forward<M, A...>::type;

}  // namespace detail
}  // namespace torch
