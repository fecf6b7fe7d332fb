#include "ops/norms.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Operators that do two things at once, for parameters that are reparametrised, bounded or sharded.
namespace brasa::ops {
namespace {

// --- weight norm ---

Dims all_but(Value v, int64_t dim) {
  Dims dims = all_dims(v);
  dims.erase(dims.begin() + wrap_dim(dim, rank_of(v)));
  return dims;
}
Value norm_over(Value v, const Dims& dims) {
  return call("aten::linalg_vector_norm", {v, 2, dims.empty() ? Arg() : int_arg(dims), true, Arg()});
}

std::array<Value, 2> weight_norm(Value v, Value g, int64_t dim) {
  BRASA_CHECK(rank_of(v) > 0 && rank_of(g) == rank_of(v),
              "_weight_norm_interface: expected v and g of as many dimensions, got ", type_of(v), " and ", type_of(g));
  Dims dims = all_but(v, dim);
  Value wide = to_opmath(v), norm = dims.empty() ? abs(wide) : norm_over(wide, dims);
  return {convert(wide * (broadcast_to(to_opmath(g), shape_of(norm)) / norm), dtype_of(v)), norm};
}

std::array<Value, 2> weight_norm_backward(Value ct, Value v, Value g, Value norm, int64_t dim) {
  check_same_shape("_weight_norm_interface_backward", ct, v);
  Dims dims = all_but(v, dim);
  Value wide = to_opmath(v), product = sum(to_opmath(ct) * wide, dims, true), n = to_opmath(norm);
  Value dv = to_opmath(g) / n * (to_opmath(ct) - wide * (product / (n * n)));
  return {convert(dv, dtype_of(v)), convert(product / n, dtype_of(g))};
}

// --- bounded norms ---

// The factor that brings a norm above `most` down to it; PyTorch's small number keeps it below.
Value bounding(Value norm, const Number& most) {
  constexpr double kEpsilon = 1e-7;
  // An infinite limit takes no part in the derivative.
  Value limit = constant_like(norm, most), one = constant_like(norm, 1), over = gt(norm, limit);
  return where(over, limit, one) / where(over, norm + kEpsilon, one);
}

Value renorm(Value x, Number p, int64_t dim, Number most) {
  BRASA_CHECK(is_floating(dtype_of(x)) || is_complex(dtype_of(x)),
              "renorm: expected a floating or complex tensor, got ", type_of(x));
  BRASA_CHECK(rank_of(x) > 1, "renorm: input needs at least 2 dimensions, got ", rank_of(x), " dimensions");
  Value norm = call("aten::linalg_vector_norm", {x, p.arg(), int_arg(all_but(x, dim)), true, Arg()});
  return x * bounding(norm, most);
}

Value embedding_renorm(Value weight, Value indices, Number most, Number p) {
  check_rank("embedding_renorm", "weight", weight, 2);
  BRASA_CHECK(dtype_of(indices) == DType::Int64 || dtype_of(indices) == DType::Int32,
              "embedding_renorm: expected dtype int32 or int64 for indices, got ", type_of(indices));
  Value rows = flattened(checked_forward_index(indices, size_of(weight, 0), "embedding_renorm"));
  Value norm = call("aten::linalg_vector_norm", {weight, p.arg(), int_arg({1}), true, Arg()});
  Value named = prim::scatter(full(false, {size_of(weight, 0)}, DType::Bool), {rows},
                              full(true, shape_of(rows), DType::Bool), {0}, "");
  return where(unsqueeze(named, 1), weight * bounding(norm, most), weight);
}

// --- several tensors as one ---

Value chunk_cat(std::vector<Value> tensors, int64_t dim, int64_t chunks) {
  BRASA_CHECK(!tensors.empty(), "_chunk_cat: expects a non-empty input tensor list");
  BRASA_CHECK(chunks >= 1, "_chunk_cat: expects positive num_chunks, got ", chunks);
  dim = wrap_dim(dim, rank_of(tensors[0]));
  std::vector<Value> parts;
  for (Value x : tensors) {
    BRASA_CHECK(!same_size(type_of(x).numel(), 0), "_chunk_cat: expects non-empty tensors, got ", type_of(x));
    BRASA_CHECK(dtype_of(x) == dtype_of(tensors[0]), "_chunk_cat: expects all input tensors with the same dtype, got ",
                name(dtype_of(tensors[0])), " and ", name(dtype_of(x)));
    BRASA_CHECK(rank_of(x) > dim, "_chunk_cat: expects dim < ndim for all input tensors, got dim ", dim, " for ",
                type_of(x));
    for (int64_t d = 0; d < dim; ++d)
      BRASA_CHECK(same_size(size_of(x, d), size_of(tensors[0], d)),
                  "_chunk_cat: expects same sizes of 0,...,dim-1 "
                  "dimensions for all tensors, got ",
                  type_of(tensors[0]), " and ", type_of(x));
    Expr rest = ir::ceildiv(size_of(x, dim), Expr(chunks));
    for (int64_t d = dim + 1; d < rank_of(x); ++d) rest = rest * size_of(x, d);
    Value flat = merge_dims(x, dim, rank_of(x) - 1);
    flat = pad_dim(flat, dim, 0, rest * Expr(chunks) - size_of(flat, dim));
    parts.push_back(split_dim(flat, dim, {Expr(chunks), rest}));
  }
  return prim::concat(parts, dim + 1);
}

Value flatten_dense_tensors(std::vector<Value> tensors) {
  BRASA_CHECK(!tensors.empty(), "flatten_dense_tensors: expected a non-empty list of tensors");
  std::vector<Value> parts;
  for (Value x : tensors) parts.push_back(flattened(x));
  return call("aten::cat", {parts, 0});
}

std::vector<Value> unflatten_dense_tensors(Value flat, std::vector<Value> tensors) {
  check_rank("unflatten_dense_tensors", "flat", flat, 1);
  std::vector<Value> out;
  Expr at(0);
  for (Value x : tensors) {
    Expr n = type_of(x).numel();
    BRASA_CHECK(!is_less(size_of(flat, 0), at + n), "unflatten_dense_tensors: ", type_of(flat),
                " holds fewer elements than the tensors");
    out.push_back(prim::reshape(narrow(flat, 0, at, n), shape_of(x)));
    at = at + n;
  }
  return out;
}

}  // namespace

void add_fused(Table& t) {
  t.op("aten::_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)")
      .doc("g · v/‖v‖, the norm over all dimensions but one (Salimans & Kingma 2016), and that norm.")
      .composed(weight_norm)
      .one_dtype({"v", "g"})
      .samples({{floats(3, 4).in(0.5, 2), floats(3, 1)}});
  for (const char* name : {"_weight_norm_interface_backward", "_weight_norm_differentiable_backward"})
    t.op(str("aten::", name,
             "(Tensor grad_w, Tensor saved_v, Tensor saved_g, Tensor saved_norms, int dim) -> (Tensor, Tensor)"))
        .doc("The derivatives of g · v/‖v‖ by v and g.")
        .composed(weight_norm_backward)
        .samples({{floats(3, 4), floats(3, 4), floats(3, 1), floats(3, 1).in(1, 2), 0}});
  t.op("aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor")
      .doc("Slices along dim whose p-norm is above maxnorm, scaled down to it.")
      .autocast(Autocast::None, Autocast::Float32)
      .composed_in_opmath(renorm)
      .precondition([](Value, const Number& p, int64_t, const Number& most) {
        BRASA_CHECK(!is_complex(p.dtype()) && !is_complex(most.dtype()), "renorm: p and maxnorm must be real-valued");
        BRASA_CHECK(p.as_double() > 0, "renorm: non-positive-norm not supported, got p = ", p.as_double());
        BRASA_CHECK(most.as_double() >= 0, "renorm: expected maxnorm to be >= 0 but got ", most.as_double());
      })
      .special("p", kNormOrders)
      .samples({{floats(3, 4).in(0.5, 2), 2, 0, 1.5}});
  t.op("aten::embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor")
      .doc("The rows that indices name, scaled down to max_norm where their norm is above it.")
      .no_gradient()
      .composed_in_opmath(embedding_renorm)
      .special("norm_type", kNormOrders)
      .samples({{floats(3, 4), ints(2), 1.0, 2.0}});
  t.op("aten::_add_relu.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
      .out(Out::Cast)
      .doc("max(0, self + alpha other).")
      .composed_in_opmath([](Value a, Value b, Number alpha) {
        return call("aten::relu", {call("aten::add.Tensor", {a, b, alpha.arg()})});
      })
      .samples({{floats(3, 4), floats(4), 2}});
  t.op("aten::_add_relu.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor")
      .doc("max(0, self + alpha other).")
      .composed_in_opmath([](Value a, Number b, Number alpha) { return call("aten::relu", {a + b * alpha}); })
      .samples({{floats(3, 4), 0.5, 2}});
  t.op("aten::_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor")
      .out(Out::Cast)
      .doc(
          "Each tensor cut into num_chunks along dim, the last filled with zeros, its further dimensions made one; all beside one another.")
      .composed(chunk_cat)
      .samples({{std::vector{floats(3, 4), floats(3, 2)}, 0, 2}, {std::vector{floats(2, 3)}, 1, 2}});
  t.op("aten::flatten_dense_tensors(Tensor[] tensors) -> Tensor")
      .doc("The elements of all tensors, one behind the other.")
      .composed(flatten_dense_tensors)
      .samples({{std::vector{floats(3, 4), floats(2)}}});
  t.op("aten::unflatten_dense_tensors(Tensor flat, Tensor[] tensors) -> Tensor[]")
      .doc("The elements of a flat tensor in the shapes of the tensors.")
      .composed(unflatten_dense_tensors)
      .samples({{floats(14), std::vector{floats(3, 4), floats(2)}}});
}

}  // namespace brasa::ops
