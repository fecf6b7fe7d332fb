#include <algorithm>

#include "ops/complex.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"
#include "support/str.h"

namespace brasa::ops {
namespace {

void check_dtypes(const char* op, Value a, Value b) {
  BRASA_CHECK(dtype_of(a) == dtype_of(b), op, ": expected both operands to have the same dtype, but got ",
              name(dtype_of(a)), " and ", name(dtype_of(b)));
}

// "2x3": sizes in a message.
std::string by(Value v) {
  std::string out;
  for (int64_t d = 0; d < rank_of(v); ++d) out += str(d ? "x" : "", size_of(v, d));
  return out;
}

void check_inner(const char* op, Value a, int64_t a_dim, Value b, int64_t b_dim) {
  check_dtypes(op, a, b);
  BRASA_CHECK(dtype_of(a) != DType::Bool, "\"", op, "\" not implemented for bool");
  BRASA_CHECK(same_size(size_of(a, a_dim), size_of(b, b_dim)), op, ": mat1 and mat2 shapes cannot be multiplied (",
              by(a), " and ", by(b), ")");
}

Value product(Value a, Value b, int64_t a_dim, int64_t b_dim) {
  return prim::dot_general(a, b, {a_dim}, {b_dim}, {}, {});
}

Value mm(Value a, Value b) {
  check_rank("mm", "self", a, 2);
  check_rank("mm", "mat2", b, 2);
  check_inner("mm", a, 1, b, 0);
  return product(a, b, 1, 0);
}

Value mv(Value a, Value b) {
  check_rank("mv", "self", a, 2);
  check_rank("mv", "vec", b, 1);
  check_inner("mv", a, 1, b, 0);
  return product(a, b, 1, 0);
}

Value dot(Value a, Value b) {
  BRASA_CHECK(rank_of(a) == 1 && rank_of(b) == 1, "1D tensors expected, but got ", rank_of(a), "D and ", rank_of(b),
              "D tensors");
  BRASA_CHECK(same_size(size_of(a, 0), size_of(b, 0)), "inconsistent tensor size, expected tensor ", type_of(a),
              " and src ", type_of(b), " to have the same number of elements");
  check_dtypes("dot", a, b);
  BRASA_CHECK(dtype_of(a) != DType::Bool, "\"dot\" not implemented for bool");
  return product(a, b, 0, 0);
}

Value outer(Value a, Value b) {
  BRASA_CHECK(rank_of(a) == 1 && rank_of(b) == 1, "outer: Expected 1-D arguments, but got ", type_of(a), " and ",
              type_of(b));
  return unsqueeze(a, 1) * unsqueeze(b, 0);
}

// In PyTorch's words for bmm and baddbmm.
Value batched(const char* op, Value a, Value b) {
  check_rank(op, "batch1", a, 3);
  check_rank(op, "batch2", b, 3);
  check_inner(op, a, 2, b, 1);
  BRASA_CHECK(same_size(size_of(a, 0), size_of(b, 0)), op,
              ": Expected size for first two dimensions of batch2 tensor to be: [", size_of(a, 0), ", ", size_of(a, 2),
              "] but got: [", size_of(b, 0), ", ", size_of(b, 1), "].");
  return bmm(a, b);
}
Value bmm_(Value a, Value b) { return batched("bmm", a, b); }

// beta · x + alpha · product, where a beta of 0 ignores x, NaN and all.
Value combined(const char* op, Value x, Value product, const Number& beta, const Number& alpha) {
  DType t = dtype_of(product);
  Value out = alpha.is(1) ? product : product * scalar(alpha, t);
  if (beta.is(0)) return out;
  BRASA_CHECK(rank_of(x) <= rank_of(out), op, ": ", type_of(x), " does not broadcast to ", type_of(out));
  x = broadcast_to(x, shape_of(out));
  if (beta.is(1)) return out + x;
  Value factor = scalar(beta, t);
  Value term = x * factor;
  if (beta.is_value()) term = where(eq(factor, scalar(0, t)), scalar(0, t), term);
  return out + term;
}

// The same of operands that have one dtype. Of reduced floats the sum is rounded, the product is not.
template <class Product>
Value plus_product(const char* op, Value x, Product product, Value a, Value b, const Number& beta,
                   const Number& alpha) {
  Value out = product(a, b);
  check_dtypes(op, x, out);
  DType t = dtype_of(out);
  if (is_reduced_floating(t)) out = product(to_opmath(a), to_opmath(b));
  return convert(combined(op, to_opmath(x), out, beta, alpha), t);
}

Value addmm(Value x, Value a, Value b, Number beta, Number alpha) {
  return plus_product("addmm", x, mm, a, b, beta, alpha);
}
Value addmv(Value x, Value a, Value b, Number beta, Number alpha) {
  return plus_product("addmv", x, mv, a, b, beta, alpha);
}
Value baddbmm(Value x, Value a, Value b, Number beta, Number alpha) {
  return plus_product("baddbmm", x, [](Value p, Value q) { return batched("baddbmm", p, q); }, a, b, beta, alpha);
}
Value addbmm(Value x, Value a, Value b, Number beta, Number alpha) {
  return plus_product(
      "addbmm", x,
      [](Value p, Value q) {
        batched("addbmm", p, q);
        // The sum over the batch is part of the contraction.
        return prim::dot_general(p, q, {0, 2}, {0, 1}, {}, {});
      },
      a, b, beta, alpha);
}
Value addr(Value x, Value a, Value b, Number beta, Number alpha) {
  // self is taken in the result's shape, so it counts as a tensor of dimensions.
  DType t = promote(dtype_of(x), promote(dtype_of(a), dtype_of(b)));
  Value p = outer(convert(a, t), convert(b, t));
  for (const Number& n : {beta, alpha})
    BRASA_CHECK(!is_integral(t, true) || is_integral(n.dtype(), true),
                "addr: For integral input tensors, argument beta and alpha must not be floating point numbers");
  return combined("addr", convert(x, t), p, beta, alpha);
}

// Products of reduced floats whose sums are not rounded to these.
Value to_result(const char* op, Value x, DType out) {
  BRASA_CHECK(out == dtype_of(x) || (is_floating(dtype_of(x)) && is_floating(out)), op,
              ": out_dtype must be the input's dtype, or floating as it is, got ", name(out), " for ", type_of(x));
  return convert(x, out);
}
Value mm_as(Value a, Value b, DType out) { return mm(to_result("mm", a, out), to_result("mm", b, out)); }
Value bmm_as(Value a, Value b, DType out) { return batched("bmm", to_result("bmm", a, out), to_result("bmm", b, out)); }
Value addmm_as(Value x, Value a, Value b, DType out, Number beta, Number alpha) {
  return combined("addmm", convert(x, out), mm_as(a, b, out), beta, alpha);
}
Value baddbmm_as(Value x, Value a, Value b, DType out, Number beta, Number alpha) {
  return combined("baddbmm", convert(x, out), bmm_as(a, b, out), beta, alpha);
}

// [rows…, k] as [rows, k].
Value as_rows(Value x) { return rank_of(x) == 2 ? x : merge_dims(x, 0, rank_of(x) - 2); }

// The rows of `x` times a matrix whose dimension b_dim is contracted; the batch dimensions of x are rows of one product.
Value rows_product(Value x, Value b, int64_t b_dim) {
  Shape shape = shape_of(x);
  shape.back() = size_of(b, 1 - b_dim);
  return prim::reshape(product(as_rows(x), b, 1, b_dim), shape);
}

Value linear(Value x, Value w, Value bias) {
  BRASA_CHECK(rank_of(x) >= 1, "linear: input must have a dimension or more, got ", type_of(x));
  BRASA_CHECK(rank_of(w) == 1 || rank_of(w) == 2, "linear: weight must be a matrix or a vector, got ", type_of(w));
  check_dtypes("linear", x, w);
  BRASA_CHECK(same_size(size_of(x, rank_of(x) - 1), size_of(w, rank_of(w) - 1)), bias ? "addmm" : "mm",
              ": mat1 and mat2 shapes cannot be multiplied (", by(rank_of(x) > 1 ? as_rows(x) : x), " and ",
              rank_of(w) == 2 ? str(size_of(w, 1), "x", size_of(w, 0)) : by(w), ")");
  int64_t last = rank_of(x) - 1;
  DType t = dtype_of(x);
  if (bias) {
    check_dtypes("linear", x, bias);
    // The sum is rounded once.
    x = to_opmath(x), w = to_opmath(w), bias = to_opmath(bias);
  }
  auto with_bias = [&](Value out) {
    if (!bias) return out;
    BRASA_CHECK(rank_of(bias) <= rank_of(out), "linear: bias ", type_of(bias), " does not fit results of shape ",
                shape_of(out));
    return out + broadcast_to(bias, shape_of(out));
  };
  if (rank_of(w) == 1 || last == 0) return convert(with_bias(product(x, w, last, rank_of(w) - 1)), t);
  Shape shape = shape_of(x);
  shape.back() = size_of(w, 0);
  Value out = product(as_rows(x), w, 1, 1);
  if (bias && rank_of(bias) > 1) return convert(with_bias(prim::reshape(out, shape)), t);
  return convert(prim::reshape(with_bias(out), shape), t);
}

Value matmul(Value a, Value b) {
  int64_t ra = rank_of(a), rb = rank_of(b);
  BRASA_CHECK(ra > 0 && rb > 0, "both arguments to matmul need to be at least 1D, but they are ", ra, "D and ", rb,
              "D");
  check_inner(ra == 2 && rb == 2 ? "mm" : "matmul", a, ra - 1, b, std::max<int64_t>(rb - 2, 0));
  if (ra <= 2 && rb <= 2) return product(a, b, ra - 1, std::max<int64_t>(rb - 2, 0));
  if (rb == 2) return rows_product(a, b, 0);
  if (rb == 1) return product(a, b, ra - 1, 0);
  if (ra == 1) return prim::dot_general(b, a, {rb - 2}, {0}, {}, {});
  Shape batch = broadcast_shapes(Shape(shape_of(a).begin(), shape_of(a).end() - 2),
                                 Shape(shape_of(b).begin(), shape_of(b).end() - 2));
  auto expanded = [&](Value v) {
    Shape shape = batch;
    shape.insert(shape.end(), shape_of(v).end() - 2, shape_of(v).end());
    return broadcast_to(v, shape);
  };
  auto n = static_cast<int64_t>(batch.size());
  return prim::dot_general(expanded(a), expanded(b), {n + 1}, {n}, counted(0, n), counted(0, n));
}

Value inner(Value a, Value b) {
  if (rank_of(a) == 0 || rank_of(b) == 0) return a * b;
  check_inner("inner", a, rank_of(a) - 1, b, rank_of(b) - 1);
  return product(a, b, rank_of(a) - 1, rank_of(b) - 1);
}

Value tensordot(Value a, Value b, Dims a_dims, Dims b_dims) {
  BRASA_CHECK(a_dims.size() == b_dims.size(), "both dimension lists should have same length, got ", a_dims, " and ",
              b_dims);
  check_dtypes("tensordot", a, b);
  a_dims = wrap_dims(a_dims, rank_of(a));
  b_dims = wrap_dims(b_dims, rank_of(b));
  for (size_t i = 0; i < a_dims.size(); ++i) {
    // A dimension of size 1 stands for any size: it is summed over as if broadcast.
    Expr sa = size_of(a, a_dims[i]), sb = size_of(b, b_dims[i]);
    if (same_size(sa, sb)) continue;
    BRASA_CHECK(is_one(sa) || is_one(sb), "contracted dimensions need to match, but first has size ", sa, " in dim ",
                a_dims[i], " and second has size ", sb, " in dim ", b_dims[i]);
    if (is_one(sa))
      b = sum(b, {b_dims[i]}, true);
    else
      a = sum(a, {a_dims[i]}, true);
  }
  return prim::dot_general(a, b, a_dims, b_dims, {}, {});
}

Value vecdot(Value a, Value b, int64_t dim) {
  auto [x, y] = promoted(a, b);
  return sum(conj(x) * y, {wrap_dim(dim, rank_of(x))});
}

Value trace(Value x) {
  check_rank("trace", "a matrix", x, 2);
  Value d = diagonal(x, 0, 0, 1);
  return sum(is_integral(dtype_of(d), true) ? convert(d, DType::Int64) : d, {0});
}

Value int_mm(Value a, Value b) {
  for (Value x : {a, b})
    BRASA_CHECK(dtype_of(x) == DType::Int8 || dtype_of(x) == DType::UInt8, "_int_mm: expected int8 or uint8, got ",
                type_of(x));
  return mm(convert(a, DType::Int32), convert(b, DType::Int32));
}

Value addmm_activation(Value x, Value a, Value b, Number beta, Number alpha, bool use_gelu) {
  Value y = plus_product("_addmm_activation", x, mm, a, b, beta, alpha);
  return use_gelu ? call("aten::gelu", {y, "none"}) : call("aten::relu", {y});
}

void add_products(Table& t) {
  t.op("aten::mm(Tensor self, Tensor mat2) -> Tensor")
      .doc("Matrix product.")
      .autocast(Autocast::Lower)
      .sparse(Sparse::MatrixMatrix)
      .packed({{floats(8, 8), floats(8, 8)}})
      .composed(mm)
      .samples({{floats(2, 3), floats(3, 4)}, {floats(1, 0), floats(0, 2)}, {floats(3, 2).strided(2), floats(2, 1)}});
  TensorSample half = tensor(DType::BFloat16, {3, 3}), halves = tensor(DType::BFloat16, {2, 3, 3});
  const char* wide = "The product computed and kept in out_dtype, such as float32 for float16 and bfloat16.";
  t.op("aten::mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor")
      .doc(wide)
      .autocast(Autocast::Lower, Autocast::None)
      .composed(mm_as)
      .samples({{half, half, DType::Float32}, {floats(2, 3), floats(3, 1), DType::Float32}});
  t.op("aten::bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor")
      .doc(wide)
      .autocast(Autocast::Lower, Autocast::None)
      .composed(bmm_as)
      .samples({{halves, halves, DType::Float32}});
  t.op("aten::addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
      .doc(wide)
      .autocast(Autocast::Lower, Autocast::None)
      .composed(addmm_as)
      .samples({{floats(3), half, half, DType::Float32, 0.5, 2}});
  t.op("aten::baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
      .doc(wide)
      .autocast(Autocast::Lower, Autocast::None)
      .composed(baddbmm_as)
      .samples({{floats(3), halves, halves, DType::Float32, 0.5, 2}});
  t.op("aten::_int_mm(Tensor self, Tensor mat2) -> Tensor")
      .doc("Product of int8 matrices, in int32.")
      .composed(int_mm)
      .samples({{tensor(DType::Int8, {2, 3}), tensor(DType::Int8, {3, 2})}});
  t.op("aten::bmm(Tensor self, Tensor mat2) -> Tensor")
      .doc("Matrix products of a batch.")
      .backward_node("BmmBackward0")
      .autocast(Autocast::Lower)
      .sparse(Sparse::BatchMatrix)
      .packed({{floats(2, 8, 8), floats(2, 8, 8)}})
      .composed(bmm_)
      .samples({{floats(2, 3, 4), floats(2, 4, 1)}, {floats(0, 1, 2), floats(0, 2, 3)}});
  t.op("aten::mv(Tensor self, Tensor vec) -> Tensor")
      .doc("Matrix times vector.")
      .autocast(Autocast::None, Autocast::Lower)
      .sparse(Sparse::MatrixVector)
      .composed(mv)
      .samples({{floats(2, 3), floats(3)}});
  t.op("aten::dot(Tensor self, Tensor tensor) -> Tensor")
      .doc("Sum of products of two vectors.")
      .autocast(Autocast::None, Autocast::Widest)
      .composed(dot)
      .samples({{floats(3), floats(3)}, {floats(0), floats(0)}});
  t.op("aten::vdot(Tensor self, Tensor other) -> Tensor")
      .doc("Sum of products of two vectors, the first conjugated.")
      .autocast(Autocast::None, Autocast::Widest)
      .composed([](Value a, Value b) { return dot(conj(a), b); })
      .samples({{floats(3), floats(3)}});
  t.op("aten::outer(Tensor self, Tensor vec2) -> Tensor")
      .out(Out::Cast)
      .doc("All products of two vectors' elements.")
      .backward_node("MulBackward0")
      .composed(outer)
      .samples({{floats(2), floats(3)}});
  t.alias("aten::ger", "aten::outer");
  t.op("aten::inner(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc("Contracts the last dimensions.")
      .autocast(Autocast::None, Autocast::Widest)
      .composed(inner)
      .samples({{floats(2, 3), floats(4, 3)}, {floats(), floats(2)}});
  const std::vector<Sample> pairs = {{floats(2, 3), floats(3, 4)},
                                     {floats(5, 2, 3), floats(3, 4)},
                                     {floats(2, 1, 2, 3), floats(4, 3, 2)},
                                     {floats(3), floats(3)}};
  t.op("aten::matmul(Tensor self, Tensor other) -> Tensor")
      .doc("Matrix product over the last two dimensions; the others broadcast.")
      .autocast(Autocast::Lower)
      .sparse(Sparse::Matmul)
      .backward_node("MmBackward0")
      .composed(matmul)
      .samples(pairs);
  t.op("aten::linalg_matmul(Tensor self, Tensor other) -> Tensor")
      .doc("As matmul.")
      .autocast(Autocast::Lower)
      .composed(matmul)
      .samples(pairs);
  t.op("aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor")
      .doc("input · weightᵀ + bias.")
      .autocast(Autocast::Lower)
      .sparse(Sparse::LinearLayer)
      .backward_node("AddmmBackward0")
      .packed({{floats(8, 8), floats(8, 8), floats(8)},
               {floats(8, 8), floats(8, 8)},
               {floats(2, 8, 8), floats(8, 8), floats(8)}})
      .composed(linear)
      .samples({{floats(2, 3), floats(4, 3), floats(4)},
                {floats(2, 5, 3), floats(1, 3)},
                {floats(0, 3), floats(4, 3), floats(4)}});
  t.op("aten::linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor")
      .doc("Sums of products along a dimension, the first factor conjugated.")
      .autocast(Autocast::Lower)
      .composed(vecdot)
      .one_dtype({"x", "y"})
      .samples({{floats(2, 3), floats(2, 3)}});
}

void add_sums_of_products(Table& t) {
  t.op("aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
      .doc("beta · self + alpha · mat1 · mat2.")
      .autocast(Autocast::Lower)
      .sparse(Sparse::AddMatrix)
      .packed({{floats(8), floats(8, 8), floats(8, 8)}})
      .composed(addmm)
      .fits("beta")
      .fits("alpha")
      .samples({{floats(4), floats(2, 3), floats(3, 4)}, {floats(2, 4), floats(2, 3), floats(3, 4), 0, 2.0}});
  t.op("aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
      .doc("beta · self + alpha · mat · vec.")
      .autocast(Autocast::None, Autocast::Lower)
      .sparse(Sparse::AddVector)
      .composed(addmv)
      .fits("beta")
      .fits("alpha")
      .samples({{floats(2), floats(2, 3), floats(3), 0.5, 2.0}});
  t.op("aten::addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
      .out(Out::Cast)
      .doc("beta · self + alpha · vec1 ⊗ vec2.")
      .autocast(Autocast::None, Autocast::Lower)
      .composed_in_opmath(addr)
      .samples({{floats(2, 3), floats(2), floats(3)}});
  t.op("aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
      .doc("beta · self + alpha · batch1 · batch2 for each of a batch.")
      .backward_node("BaddbmmBackward0")
      .autocast(Autocast::Lower)
      .composed(baddbmm)
      .fits("beta")
      .fits("alpha")
      .samples({{floats(1, 4), floats(2, 3, 5), floats(2, 5, 4)}});
  t.op("aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
      .doc("beta · self + alpha · the sum of batch1 · batch2 over the batch.")
      .autocast(Autocast::Lower)
      .composed(addbmm)
      .samples({{floats(3, 4), floats(2, 3, 5), floats(2, 5, 4)}});
}

void add_contractions(Table& t) {
  t.op("aten::tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor")
      .doc("Contracts these dimensions of both.")
      .autocast(Autocast::Lower, Autocast::Widest)
      .composed(tensordot)
      .samples({{floats(2, 3, 4), floats(4, 3), list({1, 2}), list({1, 0})}});
  t.op("aten::_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False) -> Tensor")
      .doc("relu, or gelu, of addmm.")
      .autocast(Autocast::Lower, Autocast::None)
      .composed(addmm_activation)
      .samples({{floats(4), floats(2, 3), floats(3, 4)}});
  t.op("aten::trace(Tensor self) -> Tensor")
      .doc("Sum of a matrix's diagonal.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed(trace)
      .samples({{floats(3, 2)}});
}

}  // namespace

void add_contraction(Table& t) {
  add_products(t);
  add_sums_of_products(t);
  add_contractions(t);
}

}  // namespace brasa::ops
