#include "ops/algebra.h"

#include <algorithm>

#include "ops/complex.h"
#include "ops/promotion.h"
#include "ops/random_key.h"
#include "support/error.h"

namespace brasa::ops {

int64_t wrap_dim(int64_t dim, int64_t rank) {
  int64_t span = std::max<int64_t>(rank, 1);
  if (dim < -span || dim >= span)
    fail_index(
        str("Dimension out of range (expected to be in range of [", -span, ", ", span - 1, "], but got ", dim, ")"));
  return dim < 0 ? dim + span : dim;
}

std::vector<int64_t> wrap_dims(const std::vector<int64_t>& dims, int64_t rank) {
  std::vector<int64_t> out;
  for (int64_t d : dims) {
    d = wrap_dim(d, rank);
    BRASA_CHECK(std::find(out.begin(), out.end(), d) == out.end(), "dim ", d,
                " appears multiple times in the list of dims");
    if (rank > 0) out.push_back(d);
  }
  return out;
}

std::vector<int64_t> reduced_dims(const std::optional<std::vector<int64_t>>& dims, int64_t rank) {
  if (dims && !dims->empty()) return wrap_dims(*dims, rank);
  std::vector<int64_t> all(rank);
  for (int64_t i = 0; i < rank; ++i) all[i] = i;
  return all;
}

void fail_dim(Value v, int64_t dim) {
  if (!v) fail("a tensor is missing");
  fail(str("expected a tensor with more dimensions: there is no dimension ", dim, " of ", type_of(v)));
}

bool same_size(Expr a, Expr b) { return Builder::current().facts().equal(a, b); }

bool may_equal(Expr a, Expr b) {
  if (auto known = ir::provably_equal(a, b)) return *known;
  Builder* builder = Builder::current_or_null();
  if (!builder || !builder->facts().has_hint(a) || !builder->facts().has_hint(b)) return true;
  return builder->facts().equal(a, b);
}
bool may_equal(const Shape& a, const Shape& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](Expr x, Expr y) { return may_equal(x, y); });
}

void check_same_shape(const char* op, Value a, Value b) {
  bool same = rank_of(a) == rank_of(b);
  for (int64_t i = 0; same && i < rank_of(a); ++i) same = same_size(size_of(a, i), size_of(b, i));
  BRASA_CHECK(same, op, ": expected equal shapes, got ", type_of(a), " and ", type_of(b));
}

void check_rank(const char* op, const char* what, Value v, int64_t rank) {
  BRASA_CHECK(rank_of(v) == rank, op, ": expected ", what, " with ", rank, " dimensions, got ", type_of(v));
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape out = longer;
  size_t lead = longer.size() - shorter.size();
  for (size_t i = shorter.size(); i-- > 0;) {
    Expr x = longer[lead + i], y = shorter[i];
    if (x == y || y.is(1)) continue;
    if (x.is(1)) {
      out[lead + i] = y;
    } else if (same_size(x, y)) {
      out[lead + i] = x.is_constant() ? x : y.is_constant() ? y : x;
    } else if (is_one(x)) {
      out[lead + i] = y;
    } else {
      BRASA_CHECK(is_one(y), "The size of tensor a (", a[i + lead - (longer.size() - a.size())],
                  ") must match the size of tensor b (", b[i + lead - (longer.size() - b.size())],
                  ") at non-singleton dimension ", lead + i);
    }
  }
  return out;
}

Value broadcast_to(Value x, const Shape& shape) {
  const Shape from = shape_of(x);
  if (from == shape) return x;
  BRASA_CHECK(from.size() <= shape.size(), "cannot broadcast shape ", from, " to ", shape);
  std::vector<int64_t> dims;
  for (size_t i = 0; i < from.size(); ++i) {
    size_t to = i + shape.size() - from.size();
    dims.push_back(static_cast<int64_t>(to));
    // A 1 goes with every size, another 1 too: that asks nothing.
    if (from[i].is(1) || from[i] == shape[to] || same_size(from[i], shape[to])) continue;
    BRASA_CHECK(is_one(from[i]), "cannot broadcast shape ", from, " to ", shape);
    // What a fact says of a symbol, it becomes; a size that is computed has to be made a 1.
    bool computed = !from[i].is_constant() && from[i]->kind != ir::ExprKind::Size;
    if (computed) x = narrow(x, static_cast<int64_t>(i), 0, 1);
  }
  return prim::broadcast(x, shape, dims);
}

DType result_type(const std::vector<Value>& values) {
  // Three classes, in falling rank: tensors with dimensions, without, numbers. A lower class matters only if its category
  // (bool < integer < floating < complex) is higher; a number then brings its category's default type. Complex parts beside
  // floating elements of a higher class are as wide as these.
  auto category = [](DType t) { return is_complex(t) ? 3 : is_floating(t) ? 2 : t == DType::Bool ? 0 : 1; };
  std::optional<DType> classes[3];
  for (Value v : values) {
    if (!v) continue;
    const Type& t = type_of(v);
    int c = t.weak ? 2 : t.shape.empty() ? 1 : 0;
    DType d = t.dtype;
    if (t.weak && is_floating(d)) d = DType::Float32;
    if (t.weak && is_complex(d)) d = DType::Complex64;
    classes[c] = classes[c] ? promote(*classes[c], d) : d;
  }
  std::optional<DType> out;
  for (auto& c : classes) {
    if (!c) continue;
    if (!out)
      out = c;
    else if (category(*c) > category(*out))
      out = is_complex(*c) && is_floating(*out) ? promote(complex_of(*out), DType::Complex64) : *c;
  }
  BRASA_ASSERT(out, "result type of no values");
  return *out;
}

Value to_value(const Number& n) {
  if (n.is_value()) return n.arg().get<Value>();
  // A literal is a constant of the widest type of its category; Type::weak is a property of graph inputs alone, so a
  // literal joins promotion through the overloads that take a Number.
  return prim::full(n, {}, n.dtype());
}

namespace {

// A complex literal without an imaginary part stands for a real one.
Number literal_of(const Number& n, DType dtype) {
  if (is_complex(dtype) || !is_complex(n.dtype())) return n;
  std::complex<double> v = n.as_complex();
  BRASA_CHECK(v.imag() == 0, "value cannot be converted to type ", name(dtype), " without overflow: ", v.real(),
              v.imag() < 0 ? "" : "+", v.imag(), "j");
  return v.real();
}

}  // namespace

Value scalar(const Number& n, DType dtype) {
  if (n.is_value()) return convert(n.arg().get<Value>(), dtype);
  if (n.is_size()) return convert(prim::size_value(n.arg().get<Expr>()), dtype);
  return prim::full(literal_of(n, dtype), {}, dtype);
}

Value full(const Number& n, const Shape& shape, DType dtype) {
  if (n.is_value() || n.is_size()) return broadcast_to(scalar(n, dtype), shape);
  return prim::full(literal_of(n, dtype), shape, dtype);
}

Value constant_like(Value x, const Number& n) { return full(n, shape_of(x), dtype_of(x)); }
Value zeros_like(Value x) { return constant_like(x, 0); }

Value convert(Value x, DType dtype) { return prim::convert(x, dtype); }

Value to_float(Value x) {
  DType t = dtype_of(x);
  return is_floating(t) || is_complex(t) ? x : convert(x, DType::Float32);
}

namespace {

// x's dtype if the number's category is not above it, else the category's default.
DType with_number(DType x, const Number& n) {
  DType d = n.dtype();
  if (is_complex(d) && !is_complex(x)) return promote(is_floating(x) ? x : DType::Float32, DType::Complex64);
  if (is_floating(d) && !is_floating(x) && !is_complex(x)) return DType::Float32;
  if (d == DType::Int64 && x == DType::Bool) return DType::Int64;
  return x;
}

}  // namespace

std::array<Value, 2> promoted(Value a, const Number& b) {
  DType t = with_number(dtype_of(a), b);
  Value x = convert(a, t);
  return {x, full(b, shape_of(x), t)};
}

Value sign_bit(Value x) {
  DType t = dtype_of(x);
  if (!is_floating(t)) return t == DType::Bool || t == DType::UInt8 ? full(false, shape_of(x), DType::Bool) : lt(x, 0);
  DType bits = t == DType::Float64 ? DType::Int64 : t == DType::Float32 ? DType::Int32 : DType::Int16;
  return lt(prim::bitcast(x, bits), 0);
}

namespace {

std::array<Value, 2> broadcast_as(DType t, Value a, Value b) {
  Shape shape = broadcast_shapes(shape_of(a), shape_of(b));
  return {broadcast_to(convert(a, t), shape), broadcast_to(convert(b, t), shape)};
}

}  // namespace

std::array<Value, 2> promoted(Value a, Value b) { return broadcast_as(result_type({a, b}), a, b); }
std::array<Value, 2> promoted_to_float(Value a, Value b) {
  DType t = result_type({a, b});
  return broadcast_as(is_floating(t) || is_complex(t) ? t : DType::Float32, a, b);
}
std::array<Value, 2> promoted_to_float(Value a, const Number& b) { return promoted(to_float(a), b); }

Value pointwise(const char* primitive, Value a, Value b) {
  auto [x, y] = promoted(a, b);
  return prim::binary(primitive, x, y);
}
Value pointwise(const char* primitive, Value a, const Number& b) {
  auto [x, y] = promoted(a, b);
  return prim::binary(primitive, x, y);
}

Value operator+(Value a, Value b) { return pointwise("add", a, b); }
Value operator-(Value a, Value b) { return pointwise("sub", a, b); }
Value operator*(Value a, Value b) { return pointwise("mul", a, b); }
Value operator/(Value a, Value b) {
  auto [x, y] = promoted_to_float(a, b);
  return prim::binary("div", x, y);
}
Value operator-(Value a) { return prim::unary("neg", a); }
Value operator+(Value a, const Number& b) { return pointwise("add", a, b); }
Value operator+(const Number& a, Value b) { return b + a; }
Value operator-(Value a, const Number& b) { return pointwise("sub", a, b); }
Value operator-(const Number& a, Value b) {
  auto [y, x] = promoted(b, a);
  return prim::binary("sub", x, y);
}
Value operator*(Value a, const Number& b) { return pointwise("mul", a, b); }
Value operator*(const Number& a, Value b) { return b * a; }
Value operator/(Value a, const Number& b) {
  auto [x, y] = promoted_to_float(a, b);
  return prim::binary("div", x, y);
}
Value operator/(const Number& a, Value b) {
  auto [y, x] = promoted_to_float(b, a);
  return prim::binary("div", x, y);
}

namespace {

// Integers stay integers, wrapping as int64 does; what is only known when the graph runs becomes a value of the category.
template <class F>
Number on_numbers(const Number& a, const Number& b, bool divides, F f) {
  bool integer = !divides && is_integral(a.dtype(), true) && is_integral(b.dtype(), true);
  if (!a.is_known() || !b.is_known()) {
    DType t = integer ? DType::Int64 : promote(DType::Float64, promote(a.dtype(), b.dtype()));
    return Number(f(scalar(a, t), scalar(b, t)));
  }
  if (integer)
    return Number(static_cast<int64_t>(f(static_cast<uint64_t>(a.as_int()), static_cast<uint64_t>(b.as_int()))));
  if (is_complex(a.dtype()) || is_complex(b.dtype())) return Number(f(a.as_complex(), b.as_complex()));
  return Number(f(a.as_double(), b.as_double()));
}

}  // namespace

Number operator+(const Number& a, const Number& b) {
  return on_numbers(a, b, false, [](auto x, auto y) { return x + y; });
}
Number operator-(const Number& a, const Number& b) {
  return on_numbers(a, b, false, [](auto x, auto y) { return x - y; });
}
Number operator*(const Number& a, const Number& b) {
  return on_numbers(a, b, false, [](auto x, auto y) { return x * y; });
}
Number operator/(const Number& a, const Number& b) {
  return on_numbers(a, b, true, [](auto x, auto y) { return x / y; });
}
Number operator-(const Number& a) { return is_integral(a.dtype(), true) ? Number(0) - a : Number(-0.0) - a; }

Value maximum(Value a, Value b) { return pointwise("max", a, b); }
Value minimum(Value a, Value b) { return pointwise("min", a, b); }

namespace {
Value to_bool(Value x) { return convert(x, DType::Bool); }
}  // namespace

Value logical_and(Value a, Value b) { return pointwise("bit_and", to_bool(a), to_bool(b)); }
Value logical_or(Value a, Value b) { return pointwise("bit_or", to_bool(a), to_bool(b)); }
Value logical_not(Value a) { return prim::unary("bit_not", to_bool(a)); }

Value where(Value condition, Value a, Value b) {
  auto [x, y] = promoted(a, b);
  Shape shape = broadcast_shapes(shape_of(x), shape_of(condition));
  return prim::select(broadcast_to(to_bool(condition), shape), broadcast_to(x, shape), broadcast_to(y, shape));
}

Value exp(Value x) { return prim::unary("exp", to_float(x)); }
Value log(Value x) { return prim::unary("log", to_float(x)); }
Value log1p(Value x) { return prim::unary("log1p", to_float(x)); }
Value expm1(Value x) { return prim::unary("expm1", to_float(x)); }
Value sqrt(Value x) { return prim::unary("sqrt", to_float(x)); }
Value rsqrt(Value x) { return prim::unary("rsqrt", to_float(x)); }
Value tanh(Value x) { return prim::unary("tanh", to_float(x)); }
Value erf(Value x) { return prim::unary("erf", to_float(x)); }
Value sin(Value x) { return prim::unary("sin", to_float(x)); }
Value cos(Value x) { return prim::unary("cos", to_float(x)); }
Value abs(Value x) { return is_complex(dtype_of(x)) ? magnitude(x) : prim::unary("abs", x); }
Value sigmoid(Value x) { return call("aten::sigmoid", {x}); }
Value pow(Value x, const Number& e) {
  if (e.is(2)) return x * x;
  if (e.is(1)) return x;
  return pointwise("pow", x, e);
}

Value reduce(Value x, const std::vector<int64_t>& dims, bool keep, const std::string& combiner) {
  if (dims.empty()) return x;
  Value r = prim::reduce(x, dims, combiner);
  if (!keep) return r;
  Shape shape = shape_of(x);
  for (int64_t d : dims) shape[d] = Expr(1);
  return prim::reshape(r, shape);
}
Value sum(Value x, const std::vector<int64_t>& dims, bool keep) { return reduce(x, dims, keep, "add"); }
Value amax(Value x, const std::vector<int64_t>& dims, bool keep) { return reduce(x, dims, keep, "max"); }

Value count(Value x, const std::vector<int64_t>& dims, DType dtype) {
  Expr n(1);
  for (int64_t d : dims) n = n * size_of(x, d);
  if (n.is_constant()) return prim::full(Number(n.constant()), {}, dtype);
  return convert(prim::size_value(n), dtype);
}

Value mean(Value x, const std::vector<int64_t>& dims, bool keep) {
  return sum(x, dims, keep) / count(x, dims, dtype_of(x));
}

Value sum_to(Value x, const Shape& shape) {
  const Shape& from = shape_of(x);
  if (from == shape) return x;
  size_t lead = from.size() - shape.size();
  std::vector<int64_t> dims;
  for (size_t d = 0; d < from.size(); ++d)
    if (d < lead || (!(from[d] == shape[d - lead]) && !same_size(from[d], shape[d - lead])))
      dims.push_back(static_cast<int64_t>(d));
  return prim::reshape(sum(x, dims), shape);
}

Value keep_dims(Value reduced, const Shape& whole, const std::vector<int64_t>& dims) {
  Shape shape = whole;
  for (int64_t d : dims) shape[d] = Expr(1);
  return prim::reshape(reduced, shape);
}

std::vector<Value> indices_along(const Shape& shape, int64_t dim, Value index) {
  std::vector<Value> out;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d)
    out.push_back(d == dim ? index : prim::iota(shape, d, DType::Int64));
  return out;
}

Value gather_along(Value x, int64_t dim, Value index) {
  std::vector<int64_t> dims(rank_of(x));
  for (size_t d = 0; d < dims.size(); ++d) dims[d] = static_cast<int64_t>(d);
  if (dims.empty()) return broadcast_to(x, shape_of(index));
  return prim::gather(x, indices_along(shape_of(index), dim, index), dims);
}

Vjp own_derivative(std::vector<Value> (*f)(const Saved&)) {
  return [f](const Node& n, std::span<const Value> cts, const std::vector<bool>& needs) {
    auto wide = [](Value v) { return v ? to_opmath(v) : v; };
    Saved s;
    for (const Arg& a : n.args) s.args.push_back(a.is<Value>() ? Arg(wide(a.get<Value>())) : a);
    for (uint32_t i = 0; i < n.types.size(); ++i) {
      s.outs.push_back(wide(n.graph->nodes()[n.id]->out(i)));
      s.cts.push_back(wide(cts[i]));
    }
    std::vector<Value> found = f(s), out;
    for (size_t i = 0; i < n.args.size(); ++i) {
      n.args[i].for_each_value([&](Value operand) {
        Value ct = n.args[i].is<Value>() && i < found.size() && needs[out.size()] ? found[i] : Value{};
        if (ct) ct = convert(sum_to(ct, shape_of(operand)), dtype_of(operand));
        out.push_back(ct);
      });
    }
    return out;
  };
}

Vjp zero_derivative() {
  return [](const Node& n, std::span<const Value>, const std::vector<bool>&) {
    return std::vector<Value>(n.inputs().size());
  };
}

Value unsqueeze(Value x, int64_t dim) {
  if (dim != 0 && dim != rank_of(x)) check_dim(x, dim);
  Shape shape = shape_of(x);
  shape.insert(shape.begin() + dim, Expr(1));
  return prim::reshape(x, shape);
}

Value squeeze(Value x, int64_t dim) {
  check_dim(x, dim);
  Shape shape = shape_of(x);
  shape.erase(shape.begin() + dim);
  return prim::reshape(x, shape);
}

Value expand(Value x, const Shape& shape) { return broadcast_to(x, shape); }

Value transpose(Value x, int64_t a, int64_t b) {
  check_dim(x, a);
  check_dim(x, b);
  std::vector<int64_t> dims(rank_of(x));
  for (size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<int64_t>(i);
  std::swap(dims[a], dims[b]);
  return prim::transpose(x, dims);
}

Value slice(Value x, int64_t dim, Expr start, Expr end, Expr step) {
  check_dim(x, dim);
  std::vector<Expr> starts(rank_of(x), Expr(0)), steps(rank_of(x), Expr(1));
  Shape size = shape_of(x);
  starts[dim] = start;
  steps[dim] = step;
  size[dim] = ir::ceildiv(end - start, step);
  return prim::slice(x, starts, size, steps);
}

Value narrow(Value x, int64_t dim, Expr start, Expr size) { return slice(x, dim, start, start + size, 1); }

Value pad_dim(Value x, int64_t dim, Expr low, Expr high, const Number& value) {
  check_dim(x, dim);
  std::vector<Expr> lo(rank_of(x), Expr(0)), hi = lo, none = lo;
  lo[dim] = low;
  hi[dim] = high;
  return prim::pad(x, scalar(value, dtype_of(x)), lo, hi, none);
}

Value matmul2(Value a, Value b) { return prim::dot_general(a, b, {1}, {0}, {}, {}); }
Value bmm(Value a, Value b) { return prim::dot_general(a, b, {2}, {1}, {0}, {0}); }

void check_values(Value ok, std::string message) {
  Value all = reduce(ok, reduced_dims(std::nullopt, rank_of(ok)), false, "and");
  Builder::current().graph().add_check(all, std::move(message));
}

Value checked_index(Value index, Expr n, const char* op) {
  Value i = convert(index, DType::Int64);
  Value size = n.is_constant() ? prim::full(Number(n.constant()), {}, DType::Int64) : prim::size_value(n);
  Value ok = logical_and(ge(i, -size), lt(i, size));
  check_values(ok, str(op, ": index out of range for a dimension of size ", n));
  return where(lt(i, 0), i + size, i);
}

Value uniform(Value key, const Shape& shape, DType dtype) {
  Expr n = ir::product(shape);
  Value seed = broadcast_to(squeeze(narrow(key, 0, 0, 1), 0), {n});
  Value offset = broadcast_to(squeeze(narrow(key, 0, 1, 1), 0), {n});
  Value bits = prim::reshape(prim::philox(seed, offset, prim::iota({n}, 0, DType::Int64)), shape);
  return uniform_of(
      pointwise("bit_and", convert(bits, DType::Int64), full(Number(int64_t{0xffffffff}), shape, DType::Int64)), dtype);
}

}  // namespace brasa::ops
