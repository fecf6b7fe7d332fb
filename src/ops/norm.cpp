#include <algorithm>

#include "ops/algebra.h"
#include "ops/complex.h"
#include "ops/norms.h"
#include "ops/rows.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

using Dims = std::optional<std::vector<int64_t>>;

bool is_single(Value x, const std::vector<int64_t>& dims) {
  return std::all_of(dims.begin(), dims.end(), [&](int64_t d) { return is_one(size_of(x, d)); });
}

Value norm(Value x, const Number& p, const std::vector<int64_t>& dims, bool keep) {
  if (p.is(0)) return sum(convert(ne(x, 0), dtype_of(x)), dims, keep);
  // Of one element it is the size for every order, whether or not its powers are numbers.
  if (is_single(x, dims)) return sum(abs(x), dims, keep);
  if (p.is(1)) return sum(abs(x), dims, keep);
  if (p.is(2)) return sqrt(sum(x * x, dims, keep));
  if (is_infinite(p)) return reduce(abs(x), dims, keep, p.as_double() > 0 ? "max" : "min");
  return pow(sum(pow(abs(x), p), dims, keep), 1.0 / p);
}

Value guarded_quotient(Value a, Value y) { return where(eq(y, 0), zeros_like(y), a / y); }

// The conventions at kinks are PyTorch's: 0 where the norm is 0, shared equally among extrema.
Value norm_pullback(Value x, Value y, Value ct, const Number& p, const std::vector<int64_t>& dims) {
  Value norm = keep_dims(y, shape_of(x), dims), g = keep_dims(ct, shape_of(x), dims);
  Value sign = prim::unary("sign", x);
  if (p.is(0)) return zeros_like(x);
  if (p.is(1)) return g * sign;
  if (p.is(2)) return x * guarded_quotient(g, norm);
  if (is_infinite(p)) {
    Value size = abs(x);
    Value mine = convert(logical_or(eq(size, norm), logical_and(is_nan(size), is_nan(norm))), dtype_of(x));
    return sign * mine * (g / sum(mine, dims, true));
  }
  Value zero = eq(x, 0);
  // For p < 1 the slope at 0 is infinite, and taken for 0.
  Value slope = where(zero, zeros_like(x), sign * pow(where(zero, constant_like(x, 1), abs(x)), p - 1));
  Value none = eq(norm, 0), safe = where(none, constant_like(norm, 1), norm);
  return slope * where(none, zeros_like(g), g / pow(safe, p - 1));
}

// |x| of a complex x, which has the same norms.
Value real_sizes(Value x) { return is_complex(dtype_of(x)) ? magnitude(x) : x; }

// The sum of the partials times the directions, with the conventions of the pullback.
std::vector<Value> norm_pushforward(const Node& n, std::span<const Value> tangents) {
  const Saved s{n.args, {const_cast<Node&>(n).out()}, {}};
  if (!tangents[0]) return {{}};
  Value z = s.in(0), x = convert(real_sizes(z), dtype_of(s.out())), t = tangents[0];
  if (is_complex(dtype_of(z))) t = guarded_quotient(real(conj(z) * t), x);
  std::vector<int64_t> dims = reduced_dims(s.arg<Dims>(2), rank_of(x));
  Value partials = norm_pullback(x, s.out(), constant_like(s.out(), 1), s.arg<Number>(1), dims);
  return {sum(partials * convert(t, dtype_of(x)), dims, s.arg<bool>(3))};
}

// Nothing has no least or greatest element, and 0 no negative power.
void check_order(const char* op, const Number& p, Value v, int64_t d) {
  if (p.is_known() && !(p.as_double() < 0 || is_infinite(p))) return;
  if (!same_size(size_of(v, d), 0)) return;
  std::string problem = str(op, " cannot compute the ", p.is_known() ? str(p.as_double()) : std::string("negative"),
                            " norm on an empty dimension, got ", type_of(v));
  if (p.is_known()) fail(problem);
  check_values(logical_not(lt(to_value(p), 0)), problem);
}

Value vector_norm(const char* op, Value v, const Number& p, const Dims& dim, bool keep, std::optional<DType> dtype) {
  bool complex = is_complex(dtype_of(v));
  BRASA_CHECK(!is_complex(p.dtype()), op, ": expected a real order");
  BRASA_CHECK(is_floating(dtype_of(v)) || complex, op, ": Expected a floating point or complex tensor as input. Got ",
              name(dtype_of(v)));
  BRASA_CHECK(!dtype || (complex ? is_complex(*dtype) : is_floating(*dtype)), op, ": dtype should be ",
              complex ? "complex for complex inputs" : "floating point", ", but got ", name(*dtype));
  BRASA_CHECK(!dtype || promote(dtype_of(v), *dtype) == *dtype, op, ": the dtype of the input (", name(dtype_of(v)),
              ") should be convertible without narrowing to the specified dtype (", name(*dtype), ")");
  Value given = real_sizes(convert(v, dtype.value_or(dtype_of(v))));
  DType out = dtype_of(given);
  Value x = convert(given, opmath(out));
  std::vector<int64_t> dims = reduced_dims(dim, rank_of(x));
  for (int64_t d : dims) check_order(op, p, v, d);
  return convert(norm(x, p, dims, keep), out);
}

Value general(Value x, const std::optional<Number>& p, const Dims& dim, bool keep, Arg dtype) {
  return call("aten::linalg_vector_norm",
              {x, p ? p->arg() : Arg(2), dim ? int_arg(*dim) : Arg(), keep, std::move(dtype)});
}

}  // namespace

void add_norm(Table& t) {
  t.op("aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .out(Out::Own)
      .doc("(Σ|x|^ord)^(1/ord) along dim; ord 0 counts what is not 0, ±inf takes the greatest or smallest |x|.")
      .autocast(Autocast::None, Autocast::Float32ByDefault)
      .composed([](Value x, Number p, Dims dim, bool keep, std::optional<DType> dtype) {
        return vector_norm("linalg.vector_norm", x, p, dim, keep, dtype);
      })
      .vjp(own_derivative([](const Saved& s) {
        Value z = s.in(0), x = convert(real_sizes(z), dtype_of(s.out()));
        std::vector<int64_t> dims = reduced_dims(s.arg<Dims>(2), rank_of(x));
        Value g = norm_pullback(x, s.out(), s.ct(), s.arg<Number>(1), dims);
        return std::vector{is_complex(dtype_of(z)) ? z * guarded_quotient(g, x) : g};
      }))
      .jvp(norm_pushforward)
      .special("ord", kNormOrders)
      .samples({{floats(3, 5)},
                {floats(3, 5), 1, list({1})},
                {floats(2, 3, 4), 3.5, list({0, 2}), true},
                {floats(4), std::numeric_limits<double>::infinity()}});
  t.op("aten::linalg__powsum(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .out(Out::Own)
      .doc("Σ|x|^ord along dim: a power of linalg_vector_norm.")
      .composed([](Value v, Number p, Dims dim, bool keep, std::optional<DType> dtype) {
        Value x = real_sizes(convert(v, dtype.value_or(dtype_of(v))));
        Value wide = to_opmath(x), power = p.is(2) ? wide * wide : pow(abs(wide), p);
        return convert(sum(power, reduced_dims(dim, rank_of(x)), keep), dtype_of(x));
      })
      .samples({{floats(3, 5)}, {floats(3, 5), 3.5, list({1}), true}, {floats(4), 1}});
  t.op("aten::norm.Scalar(Tensor self, Scalar p=2) -> Tensor")
      .doc("The p-norm of all elements.")
      .autocast(Autocast::None, Autocast::Float32)
      .sparse(Sparse::Norm)
      .composed([](Value x, Number p) { return general(x, p, std::nullopt, false, {}); })
      .special("p", kNormOrders)
      .samples({{floats(3, 5)}, {floats(4), 1}});
  t.op("aten::norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor")
      .doc("The p-norm of all elements, of self first converted to dtype.")
      .sparse(Sparse::Norm)
      .composed([](Value x, std::optional<Number> p, DType dtype) { return general(x, p, std::nullopt, false, dtype); })
      .special("p", kNormOrders)
      .samples({{floats(3, 5), 2, DType::Float64}});
  t.op("aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor")
      .doc("p-norms along dim.")
      .autocast(Autocast::None, Autocast::Float32)
      .composed([](Value x, std::optional<Number> p, std::vector<int64_t> dim, bool keep) {
        return general(x, p, dim, keep, {});
      })
      .special("p", kNormOrders)
      .samples({{floats(3, 5), 2, list({1})}, {floats(3, 5), ir::Arg(), list({0}), true}});
  t.op("aten::norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor")
      .doc("p-norms along dim, of self first converted to dtype.")
      .composed([](Value x, std::optional<Number> p, std::vector<int64_t> dim, bool keep, DType dtype) {
        return general(x, p, dim, keep, dtype);
      })
      .special("p", kNormOrders)
      .samples({{floats(3, 5), 2, list({1}), false, DType::Float64}});
  t.op("aten::frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor")
      .doc("2-norms along dim.")
      .autocast(Autocast::None, Autocast::Float32)
      .composed([](Value x, std::vector<int64_t> dim, bool keep) { return general(x, Number(2), dim, keep, {}); })
      .samples({{floats(3, 5), list({0, 1})}});
  t.op("aten::dist(Tensor self, Tensor other, Scalar p=2) -> Tensor")
      .doc("The p-norm of self - other.")
      .autocast(Autocast::None, Autocast::Float32)
      .composed([](Value a, Value b, Number p) { return general(a - b, p, std::nullopt, false, {}); })
      .special("p", kNormOrders)
      .samples({{floats(3, 5), floats(5)}, {floats(4), floats(4), 1}});
}

}  // namespace brasa::ops
