#include <limits>

#include "ops/accepted.h"
#include "ops/algebra.h"
#include "ops/literal.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

using Dims = std::optional<std::vector<int64_t>>;

// Sums and products of integers and bools are int64.
DType sum_type(Value x, std::optional<DType> dtype) {
  if (dtype) return *dtype;
  return is_integral(dtype_of(x), true) ? DType::Int64 : dtype_of(x);
}

Value accumulated(Value x, const std::vector<int64_t>& dims, bool keep, std::optional<DType> dtype,
                  const char* combiner) {
  DType t = sum_type(x, dtype);
  return convert(reduce(convert(x, opmath(t)), dims, keep, combiner), t);
}

Value sum_of(Value x, const Dims& dims, bool keep, std::optional<DType> dtype) {
  return accumulated(x, reduced_dims(dims, rank_of(x)), keep, dtype, "add");
}

Value mean_of(Value x, const Dims& dims, bool keep, std::optional<DType> dtype) {
  DType t = dtype.value_or(dtype_of(x));
  BRASA_CHECK_AS(
      NotImplementedError, is_floating(t) || is_complex(t),
      "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: ",
      name(t));
  return convert(mean(convert(x, opmath(t)), reduced_dims(dims, rank_of(x)), keep), t);
}

Value not_nan(Value x) { return is_floating(dtype_of(x)) ? eq(x, x) : full(true, shape_of(x), DType::Bool); }

void add_sums(Table& t) {
  t.op("aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor")
      .out(Out::Own)
      .doc("The sum of all elements; of integers and bools in int64.")
      .autocast(Autocast::None, Autocast::Float32ByDefault)
      .sparse(Sparse::Sum)
      .packed({{floats(8, 8)}, {ints(8)}, {bools(8)}})
      .composed([](Value x, std::optional<DType> dtype) { return sum_of(x, std::nullopt, false, dtype); })
      .samples({{floats(3, 5)}, {bools(4)}, {floats(0)}, {floats(4).strided(2), DType::Float64}});
  t.op("aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .doc("Sums along dim, or all dimensions if there is none.")
      .autocast(Autocast::None, Autocast::Float32ByDefault)
      .sparse(Sparse::SumOver)
      .packed({{floats(8, 8), list({0}), false},
               {floats(8, 8), list({0}), true},
               {floats(8, 8), list({1}), false},
               {floats(8, 8), list({1}), true}})
      .composed([](Value x, Dims dim, bool keep, std::optional<DType> dtype) { return sum_of(x, dim, keep, dtype); })
      .samples({{floats(3, 5), list({1})}, {floats(2, 3, 4), list({0, -1}), true}, {ints(0, 3), list({0})}});
  t.op("aten::sum_to_size(Tensor self, SymInt[] size) -> Tensor")
      .doc("The sum over the dimensions along which a tensor of this size would be broadcast to self's.")
      .composed([](Value x, Shape size) {
        int64_t more = rank_of(x) - static_cast<int64_t>(size.size());
        bool fits = more >= 0;
        for (size_t d = 0; fits && d < size.size(); ++d)
          fits = is_one(size[d]) || same_size(size[d], size_of(x, more + static_cast<int64_t>(d)));
        BRASA_CHECK(fits, "size ", size, " is not expandable to size ", shape_of(x));
        bool sums = more > 0;
        for (size_t d = 0; !sums && d < size.size(); ++d)
          sums = !same_size(size[d], size_of(x, static_cast<int64_t>(d)));
        return sums && is_integral(dtype_of(x), true) ? sum_to(convert(x, DType::Int64), size) : sum_to(x, size);
      })
      .samples({{floats(2, 3, 5), list({3, 1})}, {floats(3), list({3})}});
  t.op("aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor")
      .doc("The mean of all elements.")
      .packed({{floats(8, 8)}})
      .composed([](Value x, std::optional<DType> dtype) { return mean_of(x, std::nullopt, false, dtype); })
      .samples({{floats(3, 5)}, {ints(4), DType::Float32}});
  t.op("aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .doc("Means along dim, or of all dimensions if there is none.")
      .packed({{floats(8, 8), list({0}), false},
               {floats(8, 8), list({0}), true},
               {floats(8, 8), list({1}), false},
               {floats(8, 8), list({1}), true}})
      .composed([](Value x, Dims dim, bool keep, std::optional<DType> dtype) { return mean_of(x, dim, keep, dtype); })
      .samples({{floats(3, 5), list({1})}, {floats(2, 3, 4), list({0, -1}), true}});
  t.op("aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor")
      .out(Out::Own)
      .doc("The product of all elements.")
      .autocast(Autocast::Float32, Autocast::Float32ByDefault)
      .packed({{floats(8, 8)}})
      .composed([](Value x, std::optional<DType> dtype) {
        return accumulated(x, reduced_dims(std::nullopt, rank_of(x)), false, dtype, "mul");
      })
      .samples({{floats(3, 2)}, {ints(4).in(1, 4)}, {floats(0)}});
  t.op("aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .doc("Products along dim.")
      .autocast(Autocast::Float32, Autocast::Float32ByDefault)
      .composed([](Value x, int64_t dim, bool keep, std::optional<DType> dtype) {
        return accumulated(x, wrap_dims({dim}, rank_of(x)), keep, dtype, "mul");
      })
      .samples({{floats(3, 5), 1}, {floats(2, 3), 0, true}});
  t.op("aten::nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .doc("The sum with NaN as 0.")
      .composed([](Value x, Dims dim, bool keep, std::optional<DType> dtype) {
        return sum_of(where(not_nan(real_only("nansum", x)), x, zeros_like(x)), dim, keep, dtype);
      })
      .samples({{floats(3, 5), list({1})}, {ints(4)}});
  t.op("aten::nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .doc("The mean of what is not NaN.")
      .composed([](Value x, Dims dim, bool keep, std::optional<DType> dtype) {
        BRASA_CHECK(is_floating(dtype_of(x)),
                    "nanmean(): expected input to have floating point or complex dtype but got ", name(dtype_of(x)));
        DType out = dtype.value_or(dtype_of(x));
        Value total = sum_of(where(not_nan(x), x, zeros_like(x)), dim, keep, opmath(out));
        return convert(total / sum_of(convert(not_nan(x), opmath(out)), dim, keep, std::nullopt), out);
      })
      .samples({{floats(3, 5), list({1})}, {floats(4)}});
  t.op("aten::count_nonzero(Tensor self, int? dim=None) -> Tensor")
      .doc("The number of elements that are not 0.")
      .composed([](Value x, std::optional<int64_t> dim) {
        return sum_of(ne(x, 0), dim ? Dims(std::vector{*dim}) : Dims(), false, std::nullopt);
      })
      .samples({{ints(3, 5)}, {floats(3, 5), 1}});
  t.op("aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor")
      .doc("The number of elements along dim that are not 0.")
      .composed([](Value x, std::vector<int64_t> dim) { return sum_of(ne(x, 0), dim, false, std::nullopt); })
      .samples({{ints(3, 5), list({0})}});
}

template <bool every>
Value truth(Value x, const std::vector<int64_t>& dims, bool keep) {
  Value r = reduce(convert(x, DType::Bool), dims, keep, every ? "and" : "or");
  return dtype_of(x) == DType::UInt8 ? convert(r, DType::UInt8) : r;
}

template <bool every>
void add_truth(Table& t, const char* name, const char* doc) {
  t.op(str("aten::", name, "(Tensor self) -> Tensor"))
      .doc(doc)
      .sparse(every ? Sparse::None : Sparse::Any)
      .packed({{floats(8)}, {ints(8)}, {bools(8)}})
      .composed([](Value x) { return truth<every>(x, reduced_dims(std::nullopt, rank_of(x)), false); })
      .samples({{bools(3, 5)}, {floats(0)}});
  t.op(str("aten::", name, ".dim(Tensor self, int dim, bool keepdim=False) -> Tensor"))
      .doc(doc)
      .composed([](Value x, int64_t dim, bool keep) { return truth<every>(x, wrap_dims({dim}, rank_of(x)), keep); })
      .samples({{bools(3, 5), 1}, {ints(2, 3), 0, true}});
  t.op(str("aten::", name, ".dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor"))
      .doc(doc)
      .composed([](Value x, Dims dim, bool keep) {
        if (dim && dim->empty()) {  // an empty list reduces nothing
          Value r = convert(x, DType::Bool);
          return dtype_of(x) == DType::UInt8 ? convert(r, DType::UInt8) : r;
        }
        return truth<every>(x, reduced_dims(dim, rank_of(x)), keep);
      })
      .samples({{bools(3, 5), list({0, 1})}, {bools(2, 3)}});
}

void check_nonempty(const char* op, Value x, const std::vector<int64_t>& dims) {
  for (int64_t d : dims)
    BRASA_CHECK(!same_size(size_of(x, d), 0), op, "(): Expected reduction dim ", d, " to have non-zero size, got ",
                type_of(x));
}

template <Literal which>
Value extremum(const char* op, Value x, const std::vector<int64_t>& dims, bool keep) {
  check_nonempty(op, real_only(op, x), dims);
  return reduce(x, dims, keep, which.text);
}

// Value and index of the extremum; the gradient goes to that element alone.
template <Literal which>
std::array<Value, 2> with_index(Value x, int64_t dim, bool keep) {
  dim = wrap_dim(dim, rank_of(x));
  real_only(which.text, x);
  if (rank_of(x) == 0) return {x, full(0, {}, DType::Int64)};
  check_nonempty(which.text, x, {dim});
  Value index = prim::arg_reduce(x, dim, which.text);
  return {reduce(x, {dim}, keep, which.text), keep ? unsqueeze(index, dim) : index};
}

std::vector<Value> selected_derivative(const Saved& s) {
  Value x = s.in(0), ct = s.ct();
  if (rank_of(x) == 0 || !ct) return {ct};
  int64_t dim = wrap_dim(s.arg<int64_t>(1), rank_of(x));
  Value chosen = eq(prim::iota(shape_of(x), dim, DType::Int64), keep_dims(s.out(1), shape_of(x), {dim}));
  Value wide = broadcast_to(keep_dims(ct, shape_of(x), {dim}), shape_of(x));
  return {where(chosen, wide, zeros_like(wide))};
}

template <Literal which>
Value index_of_extremum(const char* op, Value x, std::optional<int64_t> dim, bool keep) {
  BRASA_CHECK(dtype_of(x) != DType::Bool, "\"", op, "_cpu\" not implemented for 'Bool'");
  int64_t rank = rank_of(x);
  if (!dim) {
    Expr n = type_of(x).numel();
    BRASA_CHECK_AS(
        IndexError, !same_size(n, 0), op,
        "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.");
    Value r = prim::arg_reduce(prim::reshape(x, {n}), 0, which.text);
    return keep ? prim::reshape(r, Shape(rank, Expr(1))) : r;
  }
  int64_t d = wrap_dim(*dim, rank);
  if (rank == 0) return full(0, {}, DType::Int64);
  check_nonempty(op, x, {d});
  Value r = prim::arg_reduce(x, d, which.text);
  return keep ? unsqueeze(r, d) : r;
}

template <Literal which>
void add_extremum(Table& t, const char* size) {
  auto op = [&](const char* schema) { return t.op(str("aten::", schema)); };
  bool max = which.text[1] == 'a';
  op(max ? "amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor"
         : "amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor")
      .doc(str("The ", size, " element along dim; equal ones share the gradient."))
      .packed({{floats(8, 8)}})
      .composed([](Value x, std::vector<int64_t> dim, bool keep) {
        return extremum<which>(which.text[1] == 'a' ? "amax" : "amin", x, reduced_dims(dim, rank_of(x)), keep);
      })
      .samples({{floats(3, 5), list({1})}, {floats(2, 3, 4), list({0, 2}), true}, {ints(4)}});
  op(str(which.text, "(Tensor self) -> Tensor").c_str())
      .doc(str("The ", size, " element; equal ones share the gradient."))
      .backward_node(max ? "MaxBackward1" : "MinBackward1")
      .out(Out::Cast)
      .packed({{floats(8, 8)}})
      .composed([](Value x) { return extremum<which>(which.text, x, reduced_dims(std::nullopt, rank_of(x)), false); })
      .samples({{floats(3, 5)}, {ints(1)}});
  op(str(which.text, ".dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)").c_str())
      .doc(str("The ", size, " element along dim, and the index of the first such; it gets all of the gradient."))
      .backward_node(max ? "MaxBackward0" : "MinBackward0")
      .packed({{floats(8, 8), 0}, {floats(8, 8), 1}})
      .composed([](Value x, int64_t dim, bool keep) { return with_index<which>(x, dim, keep); })
      .vjp(own_derivative(selected_derivative))
      .samples({{floats(3, 5), 1}, {floats(2, 3, 4), 0, true}, {ints(3, 1), -1}});
  op(str("arg", which.text, "(Tensor self, int? dim=None, bool keepdim=False) -> Tensor").c_str())
      .doc(str("The index of the first ", size, " element along dim, or of the flattened tensor."))
      .packed({{floats(8, 8)}, {ints(8)}, {floats(8, 8), 0}, {floats(8, 8), 1}})
      .composed([](Value x, std::optional<int64_t> dim, bool keep) {
        return index_of_extremum<which>(which.text[1] == 'a' ? "argmax" : "argmin", x, dim, keep);
      })
      .samples({{floats(3, 5)}, {floats(3, 5), 1, true}, {ints(4), 0}});
}

std::array<Value, 2> both_extrema(Value x, std::optional<int64_t> dim, bool keep) {
  std::vector<int64_t> dims = reduced_dims(dim ? Dims(std::vector{*dim}) : Dims(), rank_of(x));
  return {extremum<"min">("aminmax", x, dims, keep), extremum<"max">("aminmax", x, dims, keep)};
}

// The smallest element not below k others along dim, with its index.
std::array<Value, 2> ranked(Value x, int64_t dim, Expr k, bool keep) {
  auto [v, i] = prim::sort(x, dim, false, k, 1);
  return {keep ? v : squeeze(v, dim), keep ? i : squeeze(i, dim)};
}

// The lower of two middle elements; where a NaN is, the NaN.
std::array<Value, 2> median(Value x, int64_t dim, bool keep) {
  dim = wrap_dim(dim, rank_of(x));
  if (rank_of(x) == 0) return {x, full(0, {}, DType::Int64)};
  check_nonempty("median", x, {dim});
  auto [v, i] = ranked(x, dim, ir::floordiv(size_of(x, dim) - 1, 2), keep);
  if (!is_floating(dtype_of(x))) return {v, i};
  Value at = unsqueeze(prim::arg_reduce(x, dim, "max"), dim), greatest = gather_along(x, dim, at);
  Value first = keep ? at : squeeze(at, dim), last = keep ? greatest : squeeze(greatest, dim), nan = is_nan(last);
  return {where(nan, last, v), where(nan, first, i)};
}

// Of nothing it is NaN.
Value median_of_all(Value x) {
  if (is_floating(dtype_of(x)) && same_size(type_of(x).numel(), 0))
    return full(std::numeric_limits<double>::quiet_NaN(), {}, dtype_of(x));
  return median(prim::reshape(x, {type_of(x).numel()}), 0, false)[0];
}

void add_order(Table& t) {
  t.op("aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)")
      .doc("amin and amax at once.")
      .composed([](Value x, std::optional<int64_t> dim, bool keep) { return both_extrema(x, dim, keep); })
      .samples({{floats(3, 5)}, {floats(3, 5), 1, true}});
  t.op("aten::_aminmax(Tensor self) -> (Tensor, Tensor)")
      .doc("amin and amax of all elements.")
      .composed([](Value x) { return both_extrema(x, std::nullopt, false); })
      .samples({{floats(3, 5)}});
  t.op("aten::_aminmax.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)")
      .doc("amin and amax along dim.")
      .composed([](Value x, int64_t dim, bool keep) { return both_extrema(x, dim, keep); })
      .samples({{floats(3, 5), 1}});
  t.op("aten::kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)")
      .doc("The k-th smallest element along dim (counted from 1), and its index.")
      .composed([](Value x, Expr k, int64_t dim, bool keep) {
        dim = wrap_dim(dim, rank_of(x));
        BRASA_CHECK(!is_less(k, 1) && !is_less(rank_of(x) == 0 ? Expr(1) : size_of(x, dim), k),
                    "kthvalue(): selected number k out of range for dimension ", dim, ": ", k, " of ", type_of(x));
        if (rank_of(x) == 0) return std::array{x, full(0, {}, DType::Int64)};
        return ranked(x, dim, k - 1, keep);
      })
      .vjp(own_derivative([](const Saved& s) {
        Saved inner = s;
        inner.args[1] = s.args[2];
        return selected_derivative(inner);
      }))
      .samples({{floats(3, 5), 2}, {floats(4, 2), 1, 0, true}});
  t.op("aten::median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
      .doc("The lower median along dim, and its index; NaN wins.")
      .composed([](Value x, int64_t dim, bool keep) { return median(x, dim, keep); })
      .vjp(own_derivative(selected_derivative))
      .samples({{floats(3, 5), 1}, {floats(4, 2), 0, true}});
  t.op("aten::median(Tensor self) -> Tensor")
      .doc("The lower median of all elements; NaN wins. Equal ones share the gradient.")
      .composed(median_of_all)
      .vjp(own_derivative([](const Saved& s) {
        Value y = s.out(), x = s.in(0);
        Value mine = convert(logical_or(eq(x, y), logical_and(is_nan(x), is_nan(y))), dtype_of(s.ct()));
        return std::vector{mine * (s.ct() / sum(mine, reduced_dims(std::nullopt, rank_of(mine))))};
      }))
      .samples({{floats(3, 5)}, {ints(4)}});
}

}  // namespace

void add_reduction(Table& t) {
  add_sums(t);
  add_truth<true>(t, "all", "Are all of them not 0?");
  add_truth<false>(t, "any", "Is any of them not 0?");
  add_extremum<"max">(t, "greatest");
  add_extremum<"min">(t, "smallest");
  add_order(t);
}

}  // namespace brasa::ops
