#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/algebra.h"
#include "ops/combiner.h"
#include "ops/complex.h"
#include "ops/primitives/families.h"
#include "ops/primitives/interp.h"
#include "ops/primitives/rules.h"
#include "ops/running.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

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
  if (is_integral(dtype_of(x), true)) return {Value{}};
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
  return {spread(ct, x, dims) * conj(where(eq(spread(zeros, x, dims), 0), plain, lone))};
}

std::vector<Value> reduce_jvp(const Node& n, std::span<const Value> tangents) {
  Value y = n.graph->nodes()[n.id]->out(), t = tangents[0];
  std::vector<int64_t> dims = int_args(n, 1);
  Combiner how = combiner_of(n.arg<std::string>(2));
  if (how == Combiner::Add) return {sum(t, dims)};
  // The derivative by each element is its cotangent for 1.
  Value ones = constant_like(y, 1);
  Value slope = conj(reduce_vjp(n, std::span(&ones, 1), {true})[0]);
  return {sum(slope * t, dims)};
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

// The index along dim where a running extremum last was reached.
Value reached(Value x, Value y, int64_t dim) {
  Value here = prim::iota(shape_of(x), dim, DType::Int64);
  Value mine = logical_or(eq(x, y), is_nan(x));
  return prim::scan(where(mine, here, zeros_like(here)), dim, "max");
}

// Zeros of a running product: before the first one of a line nothing is special, from it on only its own slope counts.
struct Zeros {
  Value zero, first, none_yet, healed;  // healed: the product with 1 in place of the first zero
};
Zeros zeros_of(Value x, int64_t dim) {
  Zeros z;
  z.zero = eq(x, 0);
  Value seen = prim::scan(convert(z.zero, DType::Int64), dim, "add");
  z.first = logical_and(z.zero, eq(seen, 1));
  z.none_yet = eq(seen, 0);
  z.healed = prim::scan(where(z.first, constant_like(x, 1), x), dim, "mul");
  return z;
}

// The factors of a scan, if it has some.
Value factor_of(const Node& n) { return n.arg(3).is_none() ? Value{} : n.arg<Value>(3); }

std::vector<Value> scan_vjp(const Node& n, std::span<const Value> cts, const std::vector<bool>& needs) {
  Value x = n.arg<Value>(0), y = n.graph->nodes()[n.id]->out(), ct = cts[0];
  int64_t dim = n.arg<Expr>(1).constant();
  auto reversed = [&](Value v) { return prim::reverse(v, {dim}); };
  auto from_the_end = [&](Value v) { return reversed(prim::scan(reversed(v), dim, "add")); };
  if (Value factor = factor_of(n)) {
    // An element reaches the next result by the next factor.
    Value next = previous(reversed(factor), dim, 0);
    Value reaches = reversed(prim::recurrence(reversed(ct), next, dim)), by_factor;
    if (needs[1]) {
      by_factor = reaches * conj(previous(y, dim, 0));
      if (is_complex(dtype_of(x))) by_factor = real(by_factor);
    }
    return {reaches, by_factor};
  }
  switch (combiner_of(n.arg<std::string>(2))) {
    case Combiner::Add: return {from_the_end(ct)};
    case Combiner::Mul: {
      // Before the first zero of a line: Σ over k >= i of ct_k y_k / x_i. At it: the same with it replaced by 1. Behind it: 0.
      Zeros z = zeros_of(x, dim);
      Value before = from_the_end(ct * conj(y)) / conj(where(z.zero, constant_like(x, 1), x));
      return {where(z.first, from_the_end(ct * conj(z.healed)), where(z.none_yet, before, zeros_like(x)))};
    }
    default: {
      std::vector<int64_t> dims;
      for (int64_t d = 0; d < rank_of(x); ++d) dims.push_back(d);
      return {prim::scatter(zeros_like(ct), indices_along(shape_of(x), dim, reached(x, y, dim)), ct, dims, "add")};
    }
  }
}

std::vector<Value> scan_jvp(const Node& n, std::span<const Value> tangents) {
  Value x = n.arg<Value>(0), y = n.graph->nodes()[n.id]->out(), t = tangents[0];
  int64_t dim = n.arg<Expr>(1).constant();
  if (Value factor = factor_of(n)) {
    if (tangents[1]) {
      Value by_factor = tangents[1] * previous(y, dim, 0);
      t = t ? t + by_factor : by_factor;
    }
    return {prim::recurrence(t, factor, dim)};
  }
  switch (combiner_of(n.arg<std::string>(2))) {
    case Combiner::Add: return {prim::scan(t, dim, "add")};
    case Combiner::Mul: {
      Zeros z = zeros_of(x, dim);
      Value before = y * prim::scan(t / where(z.zero, constant_like(x, 1), x), dim, "add");
      Value after = z.healed * prim::scan(where(z.first, t, zeros_like(t)), dim, "add");
      return {where(z.none_yet, before, after)};
    }
    default: return {gather_along(t, dim, reached(x, y, dim))};
  }
}

void add_scan(Table& t) {
  t.prim("scan(Tensor x, int dim, str combiner, Tensor? factor=None) -> Tensor")
      .kind(Kind::Scan)
      .batched([](const Node& n, std::span<const Value> in, const std::vector<bool>& mapped, Expr count) {
        auto each = [&](size_t i) {
          if (mapped[i]) return in[i];
          Shape shape = {count};
          shape.insert(shape.end(), shape_of(in[i]).begin(), shape_of(in[i]).end());
          return broadcast_to(in[i], shape);
        };
        int64_t dim = n.arg<Expr>(1).constant() + 1;
        if (in.size() == 1) return std::vector{prim::scan(in[0], dim, n.arg<std::string>(2))};
        Value x = each(0), factor = each(1);
        return std::vector{prim::recurrence(x, factor, dim)};
      })
      .jvp(scan_jvp)
      .doc(
          "Inclusive running combination along a dimension; what has run up to an element is multiplied by its factor first, which sums can have.")
      .type([](const Args& args) {
        Combiner how = combiner_of(args[2].get<std::string>());
        check_combiner(how, operand(args).dtype);
        if (!args[3].is_none()) {
          const Type& factor = ir::type_of(args[3].get<Value>());
          BRASA_CHECK(how == Combiner::Add, "factors belong to running sums, got ", args[2].get<std::string>());
          BRASA_CHECK(factor.dtype == real_part_of(operand(args).dtype) && factor.shape == operand(args).shape,
                      "a running sum of ", operand(args), " has real factors of its shape, got ", factor);
        }
        return std::vector<Type>{{operand(args).dtype, operand(args).shape, false}};
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        Array out = result_array(n);
        Combiner how = combiner_of(n.arg<std::string>(2));
        if (out.numel() > 0)
          each_line(out.shape, n.arg<Expr>(1).constant(), [&](const std::vector<int64_t>& line) {
            auto run = [&](auto read, auto write) {
              auto sum = read(*in[0], line[0]);
              write(out, line[0], sum);
              for (size_t k = 1; k < line.size(); ++k) {
                if (in.size() == 2) sum = sum * get(*in[1], line[k]);
                sum = combine(how, sum, read(*in[0], line[k]));
                write(out, line[k], sum);
              }
            };
            if (by_int(out.dtype))
              run(get_int, set_int);
            else if (is_complex(out.dtype))
              run(get_complex, set_complex);
            else
              run(get, set);
          });
        return std::vector<Array>{std::move(out)};
      })
      .vjp(scan_vjp);
}

void add_sort(Table& t) {
  t.prim("sort(Tensor x, int dim, bool descending, SymInt first, SymInt count) -> (Tensor values, Tensor indices)")
      .kind(Kind::Whole)
      .costly()
      .batched([](const Node& n, std::span<const Value> in, const std::vector<bool>&, Expr) {
        auto [values, indices] =
            prim::sort(in[0], n.arg<Expr>(1).constant() + 1, n.arg<bool>(2), n.arg<Expr>(3), n.arg<Expr>(4));
        return std::vector{values, indices};
      })
      .jvp([](const Node& n, std::span<const Value> tangents) {
        Value sorted = gather_along(tangents[0], n.arg<Expr>(1).constant(), n.graph->nodes()[n.id]->out(1));
        return std::vector{sorted, Value{}};
      })
      .doc("What stands at [first, first + count) of each line's order. Stable; NaN is the greatest.")
      .type([](const Args& args) {
        const Type& x = operand(args);
        BRASA_CHECK(!is_complex(x.dtype), "sort is not defined for ", x);
        Shape shape = x.shape;
        shape[args[1].get<Expr>().constant()] = args[4].get<Expr>();
        return std::vector<Type>{{x.dtype, shape, false}, {DType::Int64, shape, false}};
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        Array values = result_array(n, 0), indices = result_array(n, 1);
        bool descending = n.arg<bool>(2);
        int64_t dim = n.arg<Expr>(1).constant(), first = n.arg<Expr>(3).constant();
        std::vector<std::vector<int64_t>> results;
        if (values.numel() == 0) return std::vector<Array>{std::move(values), std::move(indices)};
        each_line(values.shape, dim, [&](const std::vector<int64_t>& line) { results.push_back(line); });
        size_t next = 0;
        each_line(in[0]->shape, dim, [&](const std::vector<int64_t>& line) {
          std::vector<int64_t> order(line.size());
          std::iota(order.begin(), order.end(), 0);
          std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
            return descending ? less(*in[0], line[j], line[i]) : less(*in[0], line[i], line[j]);
          });
          int64_t at = first;
          for (int64_t to : results[next++]) {
            copy_element(values, to, *in[0], line[order[at]]);
            set_int(indices, to, order[at++]);
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
          index.push_back(d == dim ? n.graph->nodes()[n.id]->out(1) : prim::iota(shape_of(ct), d, DType::Int64));
          dims.push_back(d);
        }
        return std::vector<Value>{prim::scatter(full(0, shape_of(x), dtype_of(ct)), index, ct, dims, "add")};
      });
}

}  // namespace

void add_reduction_primitives(Table& t) {
  t.prim("reduce(Tensor x, int[] dims, str combiner) -> Tensor")
      .kind(Kind::Reduce)
      .batched([](const Node& n, std::span<const Value> in, const std::vector<bool>&, Expr) {
        std::vector<int64_t> dims = int_args(n, 1);
        for (int64_t& d : dims) ++d;
        return std::vector{prim::reduce(in[0], dims, n.arg<std::string>(2))};
      })
      .jvp(reduce_jvp)
      .doc("Combines all elements along dims, and removes them.")
      .type([](const Args& args) {
        check_combiner(combiner_of(args[2].get<std::string>()), operand(args).dtype);
        return std::vector<Type>{
            {operand(args).dtype, without(operand(args).shape, constants(args[1].get<std::vector<Expr>>())), false}};
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        const Array& x = *in[0];
        Combiner how = combiner_of(n.arg<std::string>(2));
        std::vector<int64_t> dims = int_args(n, 1);
        Array out = result_array(n);
        // Floating sums accumulate in double and are rounded once.
        Array wide = is_floating(x.dtype)  ? make_array(DType::Float64, out.shape)
                     : is_complex(x.dtype) ? make_array(DType::Complex128, out.shape)
                                           : out;
        for (int64_t i = 0; i < out.numel(); ++i) set_literal(wide, i, identity(how, x.dtype).arg());
        std::vector<int64_t> at(x.shape.size()), strides = row_major(out.shape);
        int64_t i = 0;
        if (x.numel() > 0) do {
            int64_t s = 0;
            size_t k = 0;
            for (size_t d = 0; d < at.size(); ++d)
              if (std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) == dims.end()) s += at[d] * strides[k++];
            if (by_int(x.dtype))
              set_int(wide, s, combine(how, get_int(wide, s), get_int(x, i)));
            else if (is_complex(x.dtype))
              set_complex(wide, s, combine(how, get_complex(wide, s), get_complex(x, i)));
            else
              set(wide, s, combine(how, get(wide, s), get(x, i)));
            ++i;
          } while (next_index(at, x.shape));
        for (int64_t j = 0; j < out.numel(); ++j)
          by_int(out.dtype) ? set_int(out, j, get_int(wide, j)) : set_complex(out, j, get_complex(wide, j));
        return std::vector<Array>{std::move(out)};
      })
      .vjp(reduce_vjp);

  t.prim("arg_reduce(Tensor x, int dim, str which) -> Tensor")
      .kind(Kind::ArgReduce)
      .batched([](const Node& n, std::span<const Value> in, const std::vector<bool>&, Expr) {
        return std::vector{prim::arg_reduce(in[0], n.arg<Expr>(1).constant() + 1, n.arg<std::string>(2))};
      })
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

Value previous(Value x, int64_t dim, const Number& first) {
  return narrow(pad_dim(x, dim, 1, 0, first), dim, 0, size_of(x, dim));
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
Value recurrence(Value x, Value factor, int64_t dim) { return call("prim::scan", {x, dim, "add", factor}); }
std::array<Value, 2> sort(Value x, int64_t dim, bool descending) {
  return sort(x, dim, descending, 0, size_of(x, dim));
}
std::array<Value, 2> sort(Value x, int64_t dim, bool descending, Expr first, Expr count) {
  std::vector<Value> r = call_all("prim::sort", {x, dim, descending, first, count});
  return {r[0], r[1]};
}

}  // namespace prim
}  // namespace brasa::ops
