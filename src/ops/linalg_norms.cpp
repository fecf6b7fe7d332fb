#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/linear_algebra.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Norms of matrices and the condition numbers that follow from them.
namespace brasa::ops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

using OptionalDims = std::optional<Dims>;

Value vector_norm(Value x, Arg ord, const OptionalDims& dim, bool keep, Arg dtype) {
  return call("aten::linalg_vector_norm", {x, std::move(ord), dim ? int_arg(*dim) : Arg(), keep, std::move(dtype)});
}
Dims matrix_dims(const Dims& dim, Value x) {
  BRASA_CHECK(dim.size() == 2, "linalg.matrix_norm: dim must be a 2-tuple, got ", dim.size(), " dimensions");
  BRASA_CHECK(rank_of(x) >= 2, "linalg.matrix_norm: The input tensor must have at least 2 dimensions, got ",
              type_of(x));
  Dims d = wrap_dims(dim, rank_of(x));
  BRASA_CHECK(d[0] != d[1], "linalg.matrix_norm: dims must be different, got ", dim[0], " and ", dim[1]);
  return d;
}
// f of the singular values of the matrices in two dimensions.
template <class F>
Value of_singular_values(Value x, const Dims& d, bool keep, F f) {
  Value r = f(singular_values(move_dims(x, d, {rank_of(x) - 2, rank_of(x) - 1})));
  return keep ? keep_dims(r, shape_of(x), d) : r;
}

Value matrix_norm(Value v, double ord, const Dims& dim, bool keep, std::optional<DType> dtype) {
  Dims d = matrix_dims(dim, v);
  Value x = dtype ? convert(v, *dtype) : v;
  double size = std::fabs(ord);
  BRASA_CHECK(size == 1 || size == 2 || size == kInf, "linalg.matrix_norm: Order ", ord, " not supported.");
  const char* how = ord > 0 ? "max" : "min";
  auto check_least = [&](int64_t of) {
    if (ord < 0 && same_size(size_of(x, of), 0))
      fail_index(
          str("linalg.matrix_norm: Expected dim ", of, " to have non-zero size for order ", ord, ", got ", type_of(x)));
  };
  if (size == 2) {
    for (int64_t of : d) check_least(of);
    return of_singular_values(x, d, keep, [&](Value s) { return reduce(s, {rank_of(s) - 1}, false, how); });
  }
  int64_t summed = size == 1 ? d[0] : d[1], other = size == 1 ? d[1] : d[0];
  check_least(other);
  Value sums = vector_norm(x, 1, Dims{summed}, true, {});
  Value r = reduce(sums, {other}, true, how);
  Dims sorted = {std::max(d[0], d[1]), std::min(d[0], d[1])};
  return keep ? r : squeeze(squeeze(r, sorted[0]), sorted[1]);
}
Value matrix_norm_named(Value v, const std::string& ord, const Dims& dim, bool keep, std::optional<DType> dtype) {
  BRASA_CHECK(ord == "fro" || ord == "nuc", "linalg.matrix_norm: Order ", ord, " not supported.");
  Dims d = matrix_dims(dim, v);
  Value x = dtype ? convert(v, *dtype) : v;
  if (ord == "fro") return vector_norm(x, 2, d, keep, {});
  return of_singular_values(x, d, keep, [](Value s) { return sum(s, {rank_of(s) - 1}); });
}
const Dims kLastTwo = {-2, -1};

// All that matrices have are special numbers of the row.
double matrix_order(const Number& ord) {
  BRASA_CHECK(ord.is_known(), "linalg.matrix_norm: Order not supported, expected 1, -1, 2, -2, inf or -inf.");
  return ord.as_double();
}

Value norm(Value x, std::optional<Number> ord, const OptionalDims& dim, bool keep, std::optional<DType> dtype) {
  Arg type = dtype ? Arg(*dtype) : Arg();
  if (dim)
    BRASA_CHECK(dim->size() == 1 || dim->size() == 2 || !ord,
                "linalg.norm: If dim is specified, it must be of "
                "length 1 or 2. Got ",
                dim->size(), " dimensions");
  if (!ord) {
    Value r = vector_norm(dim ? x : flattened(x), 2, dim, dim ? keep : false, type);
    if (dim || !keep) return r;
    return prim::reshape(r, Shape(rank_of(x), Expr(1)));
  }
  BRASA_CHECK(dim || rank_of(x) == 1 || rank_of(x) == 2,
              "linalg.norm: If dim is not specified but ord is, the input must be "
              "1D or 2D. Got ",
              type_of(x));
  if (dim ? dim->size() == 2 : rank_of(x) == 2)
    return matrix_norm(x, matrix_order(*ord), dim.value_or(kLastTwo), keep, dtype);
  return vector_norm(x, ord->arg(), dim ? dim : OptionalDims(Dims{0}), keep, type);
}

Value cond(Value a, std::optional<Number> p) {
  double ord = p ? p->as_double() : 2;
  if (std::fabs(ord) == 2) {
    Value s = singular_values(a);
    if (is_empty(s)) return sum(s, {rank_of(s) - 1});
    Value greatest = amax(s, {rank_of(s) - 1}, false), least = reduce(s, {rank_of(s) - 1}, false, "min");
    return ord > 0 ? greatest / least : least / greatest;
  }
  if (is_empty(a)) return sum(a, {rank_of(a) - 2, rank_of(a) - 1});
  Value both = matrix_norm(a, ord, kLastTwo, false, {}) *
               matrix_norm(call_all("aten::linalg_inv_ex", {a})[0], ord, kLastTwo, false, {});
  return where(is_nan(both), constant_like(both, kInf), both);
}
Value cond_named(Value a, const std::string& p) {
  if (is_empty(a)) return sum(a, {rank_of(a) - 2, rank_of(a) - 1});
  return matrix_norm_named(a, p, kLastTwo, false, {}) *
         matrix_norm_named(call_all("aten::linalg_inv_ex", {a})[0], p, kLastTwo, false, {});
}

}  // namespace

void add_linalg_norms(Table& t) {
  t.op("aten::linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .out(Out::Own)
      .doc(
          "The norm of a matrix as a map of vectors with the 1-, 2- or inf-norm; negative ord: the least singular value or sum.")
      .autocast(Autocast::None, Autocast::Float32ByDefault)
      .composed([](Value x, Number ord, Dims dim, bool keep, std::optional<DType> dtype) {
        return matrix_norm(x, ord.as_double(), dim, keep, dtype);
      })
      .known({"ord"})
      .samples({{floats(3, 4), 2}, {floats(2, 3, 4), 1, list({0, 1}), true}, {floats(3, 4), -kInf}});
  t.op("aten::linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .out(Out::Own)
      .doc("'fro': the root of the sum of squares; 'nuc': the sum of singular values.")
      .autocast(Autocast::None, Autocast::Float32ByDefault)
      .composed(matrix_norm_named)
      .samples({{floats(3, 4)}, {floats(2, 3, 4), "nuc", list({1, 2}), true}});
  t.op("aten::nuclear_norm(Tensor self, bool keepdim=False) -> Tensor")
      .doc("The sum of a matrix's singular values.")
      .autocast(Autocast::None, Autocast::Float32)
      .composed([](Value a, bool keep) { return matrix_norm_named(a, "nuc", {0, 1}, keep, std::nullopt); })
      .samples({{floats(3, 4)}});
  t.op("aten::nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor")
      .doc("The sums of singular values of the matrices in two dimensions.")
      .autocast(Autocast::None, Autocast::Float32)
      .composed([](Value a, std::vector<int64_t> dim, bool keep) {
        return matrix_norm_named(a, "nuc", std::move(dim), keep, std::nullopt);
      })
      .samples({{floats(2, 3, 4), list({1, 2}), true}});
  t.op("aten::linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .out(Out::Own)
      .doc("The vector norm along one dimension, or of all elements without ord; the matrix norm along two.")
      .autocast(Autocast::None, Autocast::Float32ByDefault)
      .composed(norm)
      .special("ord", {0, 1, -1, 2, -2, kInf, -kInf})
      .samples({{floats(3, 4)}, {floats(3, 4), 2}, {floats(5), 1}, {floats(3, 4), ir::Arg(), list({1}), true}});
  t.op("aten::linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
      .out(Out::Own)
      .doc("As linalg_matrix_norm.")
      .autocast(Autocast::None, Autocast::Float32ByDefault)
      .composed([](Value x, std::string ord, OptionalDims dim, bool keep, std::optional<DType> dtype) {
        return matrix_norm_named(x, ord, dim.value_or(kLastTwo), keep, dtype);
      })
      .samples({{floats(3, 4), "fro"}, {floats(3, 4), "nuc"}});
  t.op("aten::linalg_cond(Tensor self, Scalar? p=None) -> Tensor")
      .out(Out::Cast)
      .doc("The norm of A times that of A⁻¹; by default the greatest singular value by the least.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed(cond)
      .known({"p"})
      .samples({{floats(3, 2)}, {floats(2, 2), 1}});
  t.op("aten::linalg_cond.p_str(Tensor self, str p) -> Tensor")
      .doc("The norm of A times that of A⁻¹.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed(cond_named)
      .samples({{floats(2, 2), "fro"}});
}

}  // namespace brasa::ops
