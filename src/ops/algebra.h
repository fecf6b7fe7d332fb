#pragma once

#include "ops/primitives.h"

// What compositions are written in: values with PyTorch's broadcasting and type promotion.
namespace brasa::ops {

using ir::type_of;

inline const Shape& shape_of(Value v) { return type_of(v).shape; }
inline DType dtype_of(Value v) { return type_of(v).dtype; }
inline int64_t rank_of(Value v) { return type_of(v).rank(); }
/// brasa::Error: an absent tensor, or one with fewer dimensions than its use needs.
[[noreturn]] void fail_dim(Value v, int64_t dim);
inline void check_dim(Value v, int64_t dim) {
  if (!v || dim < 0 || dim >= rank_of(v)) [[unlikely]]
    fail_dim(v, dim);
}
inline Expr size_of(Value v, int64_t dim) {
  check_dim(v, dim);
  return type_of(v).shape[dim];
}

/// A dimension in [0, rank), negative ones counted from the end; brasa::IndexError otherwise.
int64_t wrap_dim(int64_t dim, int64_t rank);
std::vector<int64_t> wrap_dims(const std::vector<int64_t>& dims, int64_t rank);
/// As wrap_dims; all dimensions if there are none, as reductions take it.
std::vector<int64_t> reduced_dims(const std::optional<std::vector<int64_t>>& dims, int64_t rank);

/// Sizes equal? Decided by proof, or by this call's sizes and a fact (see ir/facts.h).
bool same_size(Expr a, Expr b);
/// As same_size, for type rules, which also run where no sizes of a call are known: what nothing decides may be equal.
bool may_equal(Expr a, Expr b);
bool may_equal(const Shape& a, const Shape& b);
inline bool is_one(Expr e) { return same_size(e, Expr(1)); }
/// brasa::Error naming both shapes if they differ.
void check_same_shape(const char* op, Value a, Value b);
void check_rank(const char* op, const char* what, Value v, int64_t rank);

/// A check of values, made when the graph runs: brasa::Error with this message unless all of `ok` is true.
void check_values(Value ok, std::string message);

Shape broadcast_shapes(const Shape& a, const Shape& b);
Value broadcast_to(Value x, const Shape& shape);

/// PyTorch's result type of values: dimensioned tensors before rank-0 tensors before numbers of the program.
DType result_type(const std::vector<Value>& values);
/// A number as a weak rank-0 value.
Value to_value(const Number& n);
/// A constant of x's shape and dtype.
Value constant_like(Value x, const Number& n);
Value full(const Number& n, const Shape& shape, DType dtype);
Value zeros_like(Value x);
Value scalar(const Number& n, DType dtype);

Value convert(Value x, DType dtype);
/// x itself if floating or complex, else float32.
Value to_float(Value x);
/// Equal shapes and dtypes, by broadcasting and promotion.
std::array<Value, 2> promoted(Value a, Value b);
/// The number as a tensor of a's shape; both in a's dtype if the number's category allows, as in PyTorch.
std::array<Value, 2> promoted(Value a, const Number& b);
/// The bit of the sign, of -0.0 and NaN too.
Value sign_bit(Value x);

Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
/// True division: integers become floating.
Value operator/(Value a, Value b);
Value operator-(Value a);
// Numbers of the program, known now or at run time.
Number operator+(const Number& a, const Number& b);
Number operator-(const Number& a, const Number& b);
Number operator*(const Number& a, const Number& b);
Number operator/(const Number& a, const Number& b);
Number operator-(const Number& a);
// A number takes x's dtype if its category allows, as in PyTorch.
Value operator+(Value a, const Number& b);
Value operator+(const Number& a, Value b);
Value operator-(Value a, const Number& b);
Value operator-(const Number& a, Value b);
Value operator*(Value a, const Number& b);
Value operator*(const Number& a, Value b);
Value operator/(Value a, const Number& b);
Value operator/(const Number& a, Value b);

/// A point-wise primitive of two operands after promotion, such as "max", "pow", "lt".
Value pointwise(const char* primitive, Value a, Value b);
Value pointwise(const char* primitive, Value a, const Number& b);
inline Value eq(Value a, Value b) { return pointwise("eq", a, b); }
inline Value eq(Value a, const Number& b) { return pointwise("eq", a, b); }
inline Value ne(Value a, Value b) { return pointwise("ne", a, b); }
inline Value ne(Value a, const Number& b) { return pointwise("ne", a, b); }
inline Value lt(Value a, Value b) { return pointwise("lt", a, b); }
inline Value lt(Value a, const Number& b) { return pointwise("lt", a, b); }
inline Value le(Value a, Value b) { return pointwise("le", a, b); }
inline Value le(Value a, const Number& b) { return pointwise("le", a, b); }
inline Value gt(Value a, Value b) { return pointwise("gt", a, b); }
inline Value gt(Value a, const Number& b) { return pointwise("gt", a, b); }
inline Value ge(Value a, Value b) { return pointwise("ge", a, b); }
inline Value ge(Value a, const Number& b) { return pointwise("ge", a, b); }
inline Value is_nan(Value x) { return ne(x, x); }
Value maximum(Value a, Value b);
Value minimum(Value a, Value b);
Value logical_and(Value a, Value b);
Value logical_or(Value a, Value b);
Value logical_not(Value a);
Value where(Value condition, Value a, Value b);

// Floating functions; integers become float32 first.
Value exp(Value x);
Value log(Value x);
Value log1p(Value x);
Value expm1(Value x);
Value sqrt(Value x);
Value rsqrt(Value x);
Value tanh(Value x);
Value erf(Value x);
Value sin(Value x);
Value cos(Value x);
Value sigmoid(Value x);
Value pow(Value x, const Number& e);
Value abs(Value x);
inline Value square(Value x) { return x * x; }

/// Over dims, keeping them with size 1 if keep.
Value sum(Value x, const std::vector<int64_t>& dims, bool keep = false);
Value mean(Value x, const std::vector<int64_t>& dims, bool keep = false);
Value amax(Value x, const std::vector<int64_t>& dims, bool keep = false);
/// Any combiner of prim::reduce, with `keep`.
Value reduce(Value x, const std::vector<int64_t>& dims, bool keep, const std::string& combiner);
/// Product of the sizes of dims, as a rank-0 value of this dtype.
Value count(Value x, const std::vector<int64_t>& dims, DType dtype);
/// Sums over what broadcasting repeated, back to `shape`.
Value sum_to(Value x, const Shape& shape);
/// A value without dims, put back as dimensions of size 1.
Value keep_dims(Value reduced, const Shape& whole, const std::vector<int64_t>& dims);
/// float32 for float16 and bfloat16, else itself.
inline DType opmath(DType t) { return is_reduced_floating(t) ? DType::Float32 : t; }
inline Value to_opmath(Value x) { return convert(x, opmath(dtype_of(x))); }

/// Indices of the elements along `dim` that `index` (int64, in range, x's rank) names, as prim::gather and scatter take them.
std::vector<Value> indices_along(const Shape& shape, int64_t dim, Value index);
/// out[i, j, …] = x[i, index[i, j, …], …] for index of x's rank, no larger than x outside `dim`; indices in range.
Value gather_along(Value x, int64_t dim, Value index);

/// What a composed row's own derivative sees: arguments, results and their cotangents, with reduced floats widened.
struct Saved {
  Args args;
  std::vector<Value> outs, cts;
  Value in(size_t i) const { return detail::From<Value>::get(args[i]); }
  template <class T>
  T arg(size_t i) const {
    return detail::From<T>::get(args[i]);
  }
  Value out(size_t i = 0) const { return outs[i]; }
  Value ct(size_t i = 0) const { return cts[i]; }
};
/// `f` gives a cotangent for each parameter, absent for zero; missing ones at the end are zero. They may have the shape that
/// broadcasting gave and the type of the computation: both are brought back to the operand's.
Vjp own_derivative(std::vector<Value> (*f)(const Saved&));
/// The derivative of a step function: zero.
Vjp zero_derivative();

Value unsqueeze(Value x, int64_t dim);
Value squeeze(Value x, int64_t dim);
Value expand(Value x, const Shape& shape);
Value transpose(Value x, int64_t a, int64_t b);
/// x[start : start + size] along dim.
Value narrow(Value x, int64_t dim, Expr start, Expr size);
Value slice(Value x, int64_t dim, Expr start, Expr end, Expr step);
/// Zeros around one dimension.
Value pad_dim(Value x, int64_t dim, Expr low, Expr high, const Number& value = 0);
Value matmul2(Value a, Value b);  // [m, k] · [k, n]
Value bmm(Value a, Value b);      // [b, m, k] · [b, k, n]

/// All indices along `dim` of `size` in [0, n)? Adds a check to the graph, and gives the indices wrapped (negative ones
/// count from the end) as int64.
Value checked_index(Value index, Expr n, const char* op);
/// Uniform in [0, 1), float32 (24 bits) or float64 (53 bits), from the generator's key (int64 [seed, offset]).
Value uniform(Value key, const Shape& shape, DType dtype);

}  // namespace brasa::ops
