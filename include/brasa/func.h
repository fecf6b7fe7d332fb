#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <brasa/tensor.h>

/// Transformations of functions of tensors, under torch.func's names. They nest in any order, work inside `brasa::compile`, and what
/// they give has derivatives of its own. A function takes Tensors and gives a Tensor or a std::vector<Tensor>; it may read other
/// tensors, which count as constants.
///
///     auto f = [](Tensor x) { return x.sin().sum(); };
///     Tensor g = func::grad(f)(x);                 // cos(x)
///     Tensor h = func::hessian(f)(x);              // diag(-sin(x))
///     Tensor rows = func::vmap(func::grad(f))(xs); // a gradient for each row of xs
///
/// In-place writes to tensors from outside are errors under vmap and jvp, and under vmap random operators are unless it says what
/// they mean.
namespace brasa::func {

namespace detail {

using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

BRASA_API Tensors vmap(const Function& f, const Tensors& inputs, const std::vector<std::optional<int64_t>>& in_dims,
                       int64_t out_dim, std::string_view randomness = "error");
BRASA_API std::pair<Tensors, Tensors> jvp(const Function& f, const Tensors& primals, const Tensors& tangents);
BRASA_API std::pair<Tensors, std::function<Tensors(const Tensors&)>> vjp(const Function& f, const Tensors& primals);
BRASA_API Tensor grad(const Function& f, const Tensors& inputs, size_t argnum);
BRASA_API Tensor jacrev(const Function& f, const Tensors& inputs, size_t argnum);
BRASA_API Tensor jacfwd(const Function& f, const Tensors& inputs, size_t argnum);

template <class F, size_t... I>
decltype(auto) call(const F& f, const Tensors& inputs, std::index_sequence<I...>) {
  return f(inputs[I]...);
}

template <size_t N, class F>
Function function_of(F f) {
  return [f = std::move(f)](const Tensors& inputs) -> Tensors {
    auto result = call(f, inputs, std::make_index_sequence<N>());
    if constexpr (std::is_convertible_v<decltype(result), Tensor>)
      return {result};
    else
      return result;
  };
}

template <class F, class... A>
constexpr bool gives_tensor = std::is_convertible_v<std::invoke_result_t<const F&, const A&...>, Tensor>;

}  // namespace detail

/// f for every slice of its inputs at once: what f sees of input i lacks dimension in_dims[i] (0 where none are given; none
/// for an input that is the same in every call), and its results have dimension `out_dim` more. Sizes of those dimensions must agree.
/// What f draws at random is an "error", "different" in each call, or the "same" in all.
template <class F>
auto vmap(F f, std::vector<std::optional<int64_t>> in_dims = {}, int64_t out_dim = 0,
          std::string randomness = "error") {
  return [f = std::move(f), in_dims = std::move(in_dims), out_dim,
          randomness = std::move(randomness)](const auto&... inputs) {
    auto all = detail::vmap(detail::function_of<sizeof...(inputs)>(f), {inputs...}, in_dims, out_dim, randomness);
    if constexpr (detail::gives_tensor<F, std::decay_t<decltype(inputs)>...>)
      return all[0];
    else
      return all;
  };
}

/// f(primals) and the derivative of f there in the direction `tangents`: two lists, one entry for each result of f.
template <class F>
std::pair<std::vector<Tensor>, std::vector<Tensor>> jvp(F f, const Tensor& primal, const Tensor& tangent) {
  return detail::jvp(detail::function_of<1>(std::move(f)), {primal}, {tangent});
}
template <class F>
std::pair<std::vector<Tensor>, std::vector<Tensor>> jvp(F f, const Tensor& x, const Tensor& y, const Tensor& x_tangent,
                                                        const Tensor& y_tangent) {
  return detail::jvp(detail::function_of<2>(std::move(f)), {x, y}, {x_tangent, y_tangent});
}

/// f(primals) and a function from cotangents of its results, a list, to cotangents of the primals, a list.
template <class F, class... A>
auto vjp(F f, const A&... primals) {
  return detail::vjp(detail::function_of<sizeof...(A)>(std::move(f)), {primals...});
}

/// The gradient with respect to input `argnum` of a function that gives one number (rank 0).
template <class F>
auto grad(F f, size_t argnum = 0) {
  return [f = std::move(f), argnum](const auto&... inputs) {
    return detail::grad(detail::function_of<sizeof...(inputs)>(f), {inputs...}, argnum);
  };
}

/// The Jacobian of a function that gives one Tensor: sizes of the result, then sizes of input `argnum`. Row by row in one pass
/// backwards; better than jacfwd where the result has fewer elements than the input.
template <class F>
auto jacrev(F f, size_t argnum = 0) {
  return [f = std::move(f), argnum](const auto&... inputs) {
    return detail::jacrev(detail::function_of<sizeof...(inputs)>(f), {inputs...}, argnum);
  };
}

/// The same, column by column in one pass forwards.
template <class F>
auto jacfwd(F f, size_t argnum = 0) {
  return [f = std::move(f), argnum](const auto&... inputs) {
    return detail::jacfwd(detail::function_of<sizeof...(inputs)>(f), {inputs...}, argnum);
  };
}

/// The second derivatives of a function that gives one number: sizes of input `argnum` twice.
template <class F>
auto hessian(F f, size_t argnum = 0) {
  return jacfwd(jacrev(std::move(f), argnum), argnum);
}

}  // namespace brasa::func
