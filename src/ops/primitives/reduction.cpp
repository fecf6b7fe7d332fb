#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/algebra.h"
#include "ops/primitives/families.h"
#include "ops/primitives/interp.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

const Type& operand(const Args& args) { return ir::type_of(args[0].get<Value>()); }

Shape without(const Shape& shape, const std::vector<int64_t>& dims) {
  Shape out;
  for (size_t d = 0; d < shape.size(); ++d)
    if (std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) == dims.end()) out.push_back(shape[d]);
  return out;
}

// A reduced value put back beside the elements that it came from.
Value spread(Value reduced, Value x, const std::vector<int64_t>& dims) {
  std::vector<int64_t> kept;
  for (int64_t d = 0; d < rank_of(x); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) kept.push_back(d);
  return prim::broadcast(reduced, shape_of(x), kept);
}

std::vector<Value> reduce_vjp(const Node& n, std::span<const Value> cts, const std::vector<bool>&) {
  Value x = n.arg<Value>(0), y = n.graph->nodes()[n.id]->out(), ct = cts[0];
  std::vector<int64_t> dims = int_args(n, 1);
  const auto& how = n.arg<std::string>(2);
  if (!is_floating(dtype_of(x))) return {Value{}};
  if (how == "add") return {spread(ct, x, dims)};
  if (how == "max" || how == "min") {
    // Elements that equal the extremum share the gradient equally, as PyTorch's amax does.
    Value wide = spread(y, x, dims);
    Value same = convert(logical_or(eq(x, wide), logical_and(ne(x, x), ne(wide, wide))), dtype_of(x));
    return {same * spread(ct / sum(same, dims), x, dims)};
  }
  // mul: the product of all others, without dividing by zero. Two zeros make every gradient 0; one zero leaves only its own.
  Value zero = eq(x, 0);
  Value zeros = sum(convert(zero, dtype_of(x)), dims);
  Value others = prim::reduce(where(zero, constant_like(x, 1), x), dims, "mul");
  Value plain = spread(y, x, dims) / where(zero, constant_like(x, 1), x);
  Value lone = where(zero, spread(where(eq(zeros, 1), others, zeros_like(others)), x, dims), zeros_like(x));
  return {spread(ct, x, dims) * where(eq(spread(zeros, x, dims), 0), plain, lone)};
}

// Calls f(line) with the positions of each line of elements along dim.
template <class F>
void each_line(const std::vector<int64_t>& shape, int64_t dim, F f) {
  int64_t inner = 1, outer = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (static_cast<int64_t>(d) < dim) outer *= shape[d];
    if (static_cast<int64_t>(d) > dim) inner *= shape[d];
  }
  std::vector<int64_t> line(shape[dim]);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      for (int64_t k = 0; k < shape[dim]; ++k) line[k] = (o * shape[dim] + k) * inner + i;
      f(line);
    }
}

// NaN is the greatest of all.
bool less(const Array& a, int64_t i, int64_t j) {
  if (by_int(a.dtype)) return get_int(a, i) < get_int(a, j);
  double x = get(a, i), y = get(a, j);
  if (std::isnan(x)) return false;
  return std::isnan(y) || x < y;
}

void add_scan(Table& t) {
  t.prim("scan(Tensor x, int dim, str combiner) -> Tensor")
      .doc("Inclusive running combination along a dimension.")
      .type([](const Args& args) { return std::vector<Type>{{operand(args).dtype, operand(args).shape, false}}; })
      .eval([](const Node& n, std::span<const Array* const> in) {
        Array out = result_array(n);
        const auto& how = n.arg<std::string>(2);
        if (out.numel() > 0)
          each_line(out.shape, n.arg<Expr>(1).constant(), [&](const std::vector<int64_t>& line) {
            if (by_int(out.dtype)) {
              int64_t run = 0;
              for (size_t k = 0; k < line.size(); ++k) {
                run = k ? combine_int(how, run, get_int(*in[0], line[k])) : get_int(*in[0], line[k]);
                set_int(out, line[k], run);
              }
            } else {
              double run = 0;
              for (size_t k = 0; k < line.size(); ++k) {
                run = k ? combine(how, run, get(*in[0], line[k])) : get(*in[0], line[k]);
                set(out, line[k], run);
              }
            }
          });
        return std::vector<Array>{std::move(out)};
      })
      .vjp([](const Node& n, std::span<const Value> cts, const std::vector<bool>&) {
        Value x = n.arg<Value>(0), y = n.graph->nodes()[n.id]->out(), ct = cts[0];
        int64_t dim = n.arg<Expr>(1).constant();
        const auto& how = n.arg<std::string>(2);
        auto from_the_end = [&](Value v) {
          return prim::reverse(prim::scan(prim::reverse(v, {dim}), dim, "add"), {dim});
        };
        if (how == "add") return std::vector<Value>{from_the_end(ct)};
        if (how == "mul") {
          // Before the first zero of a line: Σ over k >= i of ct_k y_k / x_i. At it: the same with it replaced by 1. Behind it: 0.
          Value zero = eq(x, 0), zeros = prim::scan(convert(zero, DType::Int64), dim, "add");
          Value first = logical_and(zero, eq(zeros, 1)), one = constant_like(x, 1);
          Value healed = prim::scan(where(first, one, x), dim, "mul");
          Value before = from_the_end(ct * y) / where(zero, one, x);
          return std::vector<Value>{
              where(first, from_the_end(ct * healed), where(eq(zeros, 0), before, zeros_like(x)))};
        }
        fail(str("the derivative of a running ", how, " is not there yet"));
      });
}

void add_sort(Table& t) {
  t.prim("sort(Tensor x, int dim, bool descending) -> (Tensor values, Tensor indices)")
      .doc("Stable; NaN is the greatest.")
      .type([](const Args& args) {
        return std::vector<Type>{{operand(args).dtype, operand(args).shape, false},
                                 {DType::Int64, operand(args).shape, false}};
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        Array values = result_array(n, 0), indices = result_array(n, 1);
        bool descending = n.arg<bool>(2);
        if (values.numel() > 0)
          each_line(values.shape, n.arg<Expr>(1).constant(), [&](const std::vector<int64_t>& line) {
            std::vector<int64_t> order(line.size());
            std::iota(order.begin(), order.end(), 0);
            std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
              return descending ? less(*in[0], line[j], line[i]) : less(*in[0], line[i], line[j]);
            });
            for (size_t k = 0; k < line.size(); ++k) {
              copy_element(values, line[k], *in[0], line[order[k]]);
              set_int(indices, line[k], order[k]);
            }
          });
        return std::vector<Array>{std::move(values), std::move(indices)};
      })
      .vjp([](const Node& n, std::span<const Value> cts, const std::vector<bool>&) {
        Value x = n.arg<Value>(0), ct = cts[0];
        if (!ct) return std::vector<Value>{Value{}};
        int64_t dim = n.arg<Expr>(1).constant();
        std::vector<Value> index;
        std::vector<int64_t> dims;
        for (int64_t d = 0; d < rank_of(x); ++d) {
          index.push_back(d == dim ? n.graph->nodes()[n.id]->out(1) : prim::iota(shape_of(x), d, DType::Int64));
          dims.push_back(d);
        }
        return std::vector<Value>{prim::scatter(zeros_like(ct), index, ct, dims, "add")};
      });
}

}  // namespace

void add_reduction_primitives(Table& t) {
  t.prim("reduce(Tensor x, int[] dims, str combiner) -> Tensor")
      .doc("Combines all elements along dims, and removes them.")
      .type([](const Args& args) {
        return std::vector<Type>{
            {operand(args).dtype, without(operand(args).shape, constants(args[1].get<std::vector<Expr>>())), false}};
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        const Array& x = *in[0];
        const auto& how = n.arg<std::string>(2);
        std::vector<int64_t> dims = int_args(n, 1);
        Array out = result_array(n);
        // Floating sums accumulate in double and are rounded once.
        Array wide = is_floating(x.dtype) ? make_array(DType::Float64, out.shape) : out;
        for (int64_t i = 0; i < out.numel(); ++i) set_identity(how, wide, i);
        std::vector<int64_t> at(x.shape.size()), strides = row_major(out.shape);
        int64_t i = 0;
        if (x.numel() > 0) do {
            int64_t s = 0;
            size_t k = 0;
            for (size_t d = 0; d < at.size(); ++d)
              if (std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) == dims.end()) s += at[d] * strides[k++];
            if (by_int(x.dtype))
              set_int(wide, s, combine_int(how, get_int(wide, s), get_int(x, i)));
            else
              set(wide, s, combine(how, get(wide, s), get(x, i)));
            ++i;
          } while (next_index(at, x.shape));
        for (int64_t j = 0; j < out.numel(); ++j)
          by_int(out.dtype) ? set_int(out, j, get_int(wide, j)) : set(out, j, get(wide, j));
        return std::vector<Array>{std::move(out)};
      })
      .vjp(reduce_vjp);

  t.prim("arg_reduce(Tensor x, int dim, str which) -> Tensor")
      .doc("Index of the first greatest or smallest element; NaN wins.")
      .no_gradient()
      .type([](const Args& args) {
        return std::vector<Type>{{DType::Int64, without(operand(args).shape, {args[1].get<Expr>().constant()}), false}};
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        Array out = result_array(n);
        bool greatest = n.arg<std::string>(2) == "max";
        int64_t i = 0;
        if (in[0]->numel() > 0)
          each_line(in[0]->shape, n.arg<Expr>(1).constant(), [&](const std::vector<int64_t>& line) {
            size_t best = 0;
            for (size_t k = 1; k < line.size(); ++k) {
              bool best_nan = !by_int(in[0]->dtype) && std::isnan(get(*in[0], line[best]));
              bool nan = !by_int(in[0]->dtype) && std::isnan(get(*in[0], line[k]));
              bool better = greatest ? less(*in[0], line[best], line[k]) : less(*in[0], line[k], line[best]);
              if (!best_nan && (nan || better)) best = k;
            }
            set_int(out, i++, static_cast<int64_t>(best));
          });
        return std::vector<Array>{std::move(out)};
      });

  add_scan(t);
  add_sort(t);
}

namespace prim {

Value reduce(Value x, const std::vector<int64_t>& dims, const std::string& combiner) {
  if (dims.empty()) return x;
  std::vector<int64_t> sorted = dims;
  std::sort(sorted.begin(), sorted.end());
  return call("prim::reduce", {x, int_arg(sorted), combiner});
}
Value arg_reduce(Value x, int64_t dim, const std::string& which) { return call("prim::arg_reduce", {x, dim, which}); }
Value scan(Value x, int64_t dim, const std::string& combiner) { return call("prim::scan", {x, dim, combiner}); }
std::array<Value, 2> sort(Value x, int64_t dim, bool descending) {
  std::vector<Value> r = call_all("prim::sort", {x, dim, descending});
  return {r[0], r[1]};
}

}  // namespace prim
}  // namespace brasa::ops
