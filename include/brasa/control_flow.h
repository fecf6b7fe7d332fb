#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <brasa/tensor.h>

/// Branches and loops whose functions are in the graph that `brasa::compile` makes, under the names of torch._higher_order_ops. Eagerly they
/// run as they are written; inside a compiled function, and inside func::vmap, jvp and vjp, each function runs once on tensors that only
/// record, and what it did becomes part of the graph: no graph break, and one graph for all numbers of steps.
///
/// The functions take and give Tensors or std::vector<Tensor>s. They may read other tensors, parameters too, and gradients flow to
/// those. Recorded they must be pure: where one needs a value (`item`, printing), writes in place into a tensor from outside or into an
/// argument, or draws random numbers, func's transformations and exports throw brasa::Error, and in a compiled function it is a graph break
/// and runs as it is written. Lambdas say the types of their parameters: `[](Tensor x)`, not `[](auto x)`.
///
///     Tensor y = cond(x.sum() > 0, [&] { return net(x); }, [&] { return x * 2; });
///     auto [h, outputs] = scan([&](Tensor h, Tensor x) {
///       h = (x + h.matmul(w)).tanh();
///       return std::pair(h, h * 2);
///     }, h0, xs);
namespace brasa {

namespace detail {

using TensorVector = std::vector<Tensor>;
using TensorFunction = std::function<TensorVector(const TensorVector&)>;

// What functions take and give as one list of tensors: a Tensor, a std::vector<Tensor>, a std::pair or std::tuple of such.
inline void flatten(TensorVector& out, const Tensor& t) { out.push_back(t); }
inline void flatten(TensorVector& out, const TensorVector& list) { out.insert(out.end(), list.begin(), list.end()); }
template <class A, class B>
void flatten(TensorVector& out, const std::pair<A, B>& p) {
  flatten(out, p.first);
  flatten(out, p.second);
}
template <class... A>
void flatten(TensorVector& out, const std::tuple<A...>& t) {
  std::apply([&](const A&... items) { (flatten(out, items), ...); }, t);
}
template <class... A>
TensorVector flat(const A&... items) {
  TensorVector out;
  (flatten(out, items), ...);
  return out;
}

// The next tensors of a list in the form of `like`.
using TensorIterator = TensorVector::const_iterator;
inline void refill(Tensor& like, TensorIterator& next) { like = *next++; }
inline void refill(TensorVector& like, TensorIterator& next) {
  for (Tensor& t : like) t = *next++;
}
template <class A, class B>
void refill(std::pair<A, B>& like, TensorIterator& next) {
  refill(like.first, next);
  refill(like.second, next);
}
template <class... A>
void refill(std::tuple<A...>& like, TensorIterator& next) {
  std::apply([&](A&... items) { (refill(items, next), ...); }, like);
}
template <class T>
T refilled(T like, const TensorVector& list) {
  TensorIterator next = list.begin();
  refill(like, next);
  return like;
}

// A function of things like `arguments` as one of a list; `result` keeps what it gave last.
template <class R, class F, class... A>
TensorFunction listed(F& f, std::optional<R>& result, const A&... arguments) {
  return [&f, &result, like = std::tuple<A...>(arguments...)](const TensorVector& list) {
    result = std::apply(f, refilled(like, list));
    return flat(*result);
  };
}
template <class F, class... A>
using ResultOf = std::decay_t<std::invoke_result_t<F&, const A&...>>;

BRASA_API TensorVector cond(const Tensor& predicate, const TensorFunction& true_fn, const TensorFunction& false_fn,
                            const TensorVector& operands);
// `step` takes states and items, and gives the next states and what else the step gives.
BRASA_API TensorVector scan(std::string_view name, const TensorFunction& step, const TensorVector& init,
                            const TensorVector& xs, const TensorVector& others, bool reverse);
BRASA_API TensorVector associative_scan(const TensorFunction& combine, const TensorVector& xs, bool reverse);
BRASA_API TensorVector while_loop(const TensorFunction& cond_fn, const TensorFunction& body_fn,
                                  const TensorVector& carried);

}  // namespace detail

/// true_fn(operands…) where `predicate`, a tensor of one element, is true, else false_fn(operands…). Only one of them runs. Recorded, both
/// must give as many tensors, of equal dtypes and sizes (brasa::Error names both). A gradient is that of the branch taken, and zero for what
/// it does not read. Under vmap with predicates that differ both are computed, and each element selected.
template <class T, class F, class... A>
auto cond(const Tensor& predicate, T true_fn, F false_fn, const A&... operands) {
  using R = detail::ResultOf<T, A...>;
  static_assert(std::is_same_v<R, detail::ResultOf<F, A...>>, "both branches give the same type");
  std::optional<R> result;
  detail::TensorVector all = detail::cond(predicate, detail::listed(true_fn, result, operands...),
                                          detail::listed(false_fn, result, operands...), detail::flat(operands...));
  return detail::refilled(std::move(*result), all);
}

/// A loop over the items of the first dimension of `xs` (of all its tensors): combine_fn(carry, x) gives the pair of the next carry, of the
/// same dtypes and sizes, and an output y. Gives the last carry, and the outputs stacked along a new first dimension. With `reverse` it goes from
/// the last item to the first, and output t still belongs to item t. There must be at least one item.
template <class F, class C, class X>
auto scan(F combine_fn, const C& init, const X& xs, bool reverse = false) {
  using R = detail::ResultOf<F, C, X>;
  std::optional<R> result;
  detail::TensorVector all = detail::scan("scan", detail::listed(combine_fn, result, init, xs), detail::flat(init),
                                          detail::flat(xs), {}, reverse);
  return detail::refilled(std::move(*result), all);
}

/// f(x, others…) for each item of the first dimension of `xs`, one after the other; the results stacked along a new first dimension. There must
/// be at least one item.
template <class F, class X, class... A>
auto map(F f, const X& xs, const A&... others) {
  using R = detail::ResultOf<F, X, A...>;
  std::optional<R> result;
  detail::TensorVector all = detail::scan("map", detail::listed(f, result, xs, others...), {}, detail::flat(xs),
                                          detail::flat(others...), false);
  return detail::refilled(std::move(*result), all);
}

/// The partial results of an associative function along the first dimension: item t of the result is x_0 ∘ x_1 ∘ … ∘ x_t, where
/// combine_fn(a, b) = a ∘ b takes and gives what an item of `xs` is; with `reverse` x_t ∘ … ∘ x_n as combine_fn(x_n, …), from the last item on.
template <class F, class X>
X associative_scan(F combine_fn, const X& xs, bool reverse = false) {
  std::optional<X> result;
  return detail::refilled(
      xs, detail::associative_scan(detail::listed(combine_fn, result, xs, xs), detail::flat(xs), reverse));
}

/// carried = body_fn(carried…) as long as cond_fn(carried…), a tensor of one element, is true; gives what is carried in the end, as body_fn
/// gives it. Eagerly it has gradients. In a compiled function a loop through which gradients flow is a graph break, as how many steps it takes
/// is not known; under func::vmap, jvp and vjp it is an error.
template <class C, class F, class... A>
auto while_loop(C cond_fn, F body_fn, const A&... carried) {
  using R = detail::ResultOf<F, A...>;
  std::optional<Tensor> goes_on;
  std::optional<R> result;
  detail::TensorVector all = detail::while_loop(detail::listed(cond_fn, goes_on, carried...),
                                                detail::listed(body_fn, result, carried...), detail::flat(carried...));
  if constexpr (sizeof...(A) == 1 && std::is_same_v<std::tuple<R>, std::tuple<A...>>)
    return detail::refilled(R(carried...), all);
  else
    return detail::refilled(result ? std::move(*result) : R(carried...), all);
}

}  // namespace brasa
