#include <algorithm>

#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Finite differences and the trapezoidal rule.
namespace brasa::ops {
namespace {

Value part(Value x, int64_t dim, Expr start, Expr size) { return narrow(x, dim, start, size); }
// x[1:] and x[:-1] along dim, empty where there is one element or none.
Expr less_one(Value x, int64_t dim) { return ir::max(size_of(x, dim) - 1, 0); }
Value later(Value x, int64_t dim) { return part(x, dim, ir::min(Expr(1), size_of(x, dim)), less_one(x, dim)); }
Value earlier(Value x, int64_t dim) { return part(x, dim, 0, less_one(x, dim)); }

Value diff(Value x, int64_t n, int64_t dim, Value prepend, Value append) {
  BRASA_CHECK(rank_of(x) > 0, "diff expects input to be at least one-dimensional");
  BRASA_CHECK(n >= 0, "order must be non-negative but got ", n);
  dim = wrap_dim(dim, rank_of(x));
  for (Value other : {prepend, append}) {
    if (!other) continue;
    BRASA_CHECK(rank_of(other) == rank_of(x), "diff expects prepend or append to be the same dimension as input, got ",
                type_of(other), " and ", type_of(x));
    for (int64_t d = 0; d < rank_of(x); ++d)
      BRASA_CHECK(
          d == dim || same_size(size_of(other, d), size_of(x, d)),
          "diff expects the shape of tensor to prepend or append to match that of input except along the differencing "
          "dimension; input.size(",
          d, ") = ", size_of(x, d), ", but got ", size_of(other, d));
  }
  if (n == 0) return x;
  std::vector<Value> pieces;
  if (prepend) pieces.push_back(prepend);
  pieces.push_back(x);
  if (append) pieces.push_back(append);
  Value y = pieces.size() == 1 ? x : call("aten::cat", {pieces, dim});
  // Nothing is left, without a pass for each order; a common n asks no question about the size.
  constexpr int64_t kCommon = 64;
  if (n > kCommon && is_less(size_of(y, dim), n)) return narrow(y, dim, 0, 0);
  bool truth = dtype_of(y) == DType::Bool;
  for (int64_t i = 0; i < n; ++i) {
    Value a = later(y, dim), b = earlier(y, dim);
    y = truth ? ne(a, b) : a - b;
    if (is_less(size_of(y, dim), 1)) break;
  }
  return y;
}

// --- gradient

struct Axis {
  int64_t dim;
  std::optional<Number> step;  // equal distances
  Value distances;             // else those between neighbours
};

Value joined(int64_t dim, Value first, Value centre, Value last) {
  return call("aten::cat", {std::vector<Value>{first, centre, last}, dim});
}

// Second order inside, and one-sided of order `edge` at both ends (Fornberg 1988 for distances that differ).
Value gradient_along(Value x, const Axis& axis, int64_t edge) {
  BRASA_CHECK(dtype_of(x) != DType::Bool, "gradient: Subtraction with two bool tensors is not supported, got ",
              type_of(x));
  int64_t dim = axis.dim;
  Expr n = size_of(x, dim), inner = n - 2;
  auto at = [&](Expr i) { return part(x, dim, i, 1); };
  Value left = part(x, dim, 0, inner), middle = part(x, dim, 1, inner), right = part(x, dim, 2, inner);
  if (axis.step) {
    const Number& h = *axis.step;
    Value centre = (right - left) / (2 * h);
    if (edge == 1) return joined(dim, (at(1) - at(0)) / h, centre, (at(n - 1) - at(n - 2)) / h);
    return joined(dim, (-1.5 * at(0) + 2.0 * at(1) - 0.5 * at(2)) / h, centre,
                  (0.5 * at(n - 3) - 2.0 * at(n - 2) + 1.5 * at(n - 1)) / h);
  }
  int64_t rank = rank_of(x);
  auto distances = [&](Expr from, Expr size) { return narrow(axis.distances, 0, from, size); };
  auto placed = [&](Value d) { return along(d, dim, rank); };
  Value d1 = distances(0, inner), d2 = distances(1, inner);
  Value centre = placed(-d2 / (d1 * (d1 + d2))) * left + placed((d2 - d1) / (d1 * d2)) * middle +
                 placed(d1 / (d2 * (d1 + d2))) * right;
  Value first = distances(0, 1), last = distances(n - 2, 1);
  if (edge == 1) return joined(dim, (at(1) - at(0)) / placed(first), centre, (at(n - 1) - at(n - 2)) / placed(last));
  Value second = distances(1, 1), before = distances(n - 3, 1);
  Value low = placed(-(2.0 * first + second) / (first * (first + second))) * at(0) +
              placed((first + second) / (first * second)) * at(1) - placed(first / (second * (first + second))) * at(2);
  Value high = placed(last / (before * (last + before))) * at(n - 3) -
               placed((last + before) / (last * before)) * at(n - 2) +
               placed((2.0 * last + before) / (last * (last + before))) * at(n - 1);
  return joined(dim, low, centre, high);
}

Dims gradient_dims(Value x, const std::optional<std::vector<int64_t>>& dims) {
  return dims ? wrap_dims(*dims, rank_of(x)) : all_dims(x);
}

std::vector<Value> gradients(Value x, const std::vector<Axis>& axes, int64_t edge) {
  BRASA_CHECK(dtype_of(x) != DType::UInt8, "torch.gradient does not support uint8 input.");
  BRASA_CHECK(edge == 1 || edge == 2, "torch.gradient only supports edge_order=1 and edge_order=2, got ", edge);
  std::vector<Value> out;
  for (const Axis& a : axes) {
    BRASA_CHECK(!is_less(size_of(x, a.dim), edge + 1),
                "torch.gradient expected each dimension size to be at least edge_order+1, got ", shape_of(x));
    out.push_back(gradient_along(x, a, edge));
  }
  return out;
}

void check_count(size_t spacing, size_t dims) {
  BRASA_CHECK(spacing == dims, "torch.gradient expected spacing to be unspecified, a scalar, or a list of ", dims,
              " items, but got ", spacing);
}

std::vector<Value> evenly_spaced(Value x, const std::vector<Number>& spacing,
                                 const std::optional<std::vector<int64_t>>& dim, int64_t edge) {
  Dims dims = gradient_dims(x, dim);
  check_count(spacing.size(), dims.size());
  std::vector<Axis> axes;
  for (size_t i = 0; i < dims.size(); ++i) axes.push_back({dims[i], spacing[i], {}});
  return gradients(x, axes, edge);
}

std::vector<Value> at_points(Value x, const std::vector<Value>& points, const std::optional<std::vector<int64_t>>& dim,
                             int64_t edge) {
  Dims dims = gradient_dims(x, dim);
  BRASA_CHECK(points.size() == dims.size(),
              "torch.gradient expected spacing and dim arguments to have the same length, got ", points.size(), " and ",
              dims.size());
  std::vector<Axis> axes;
  for (size_t i = 0; i < dims.size(); ++i) {
    Value p = points[i];
    BRASA_CHECK(rank_of(p) == 1 && same_size(size_of(p, 0), size_of(x, dims[i])),
                "torch.gradient expected a vector of ", size_of(x, dims[i]), " coordinates for dimension ", dims[i],
                ", got ", type_of(p));
    axes.push_back({dims[i], std::nullopt, later(p, 0) - earlier(p, 0)});
  }
  return gradients(x, axes, edge);
}

// The items of a Scalar[].
std::vector<Number> numbers(const Number& list) {
  std::vector<Number> out;
  if (auto* reals = list.arg().get_if<std::vector<double>>()) return {reals->begin(), reals->end()};
  for (Expr e : list.arg().get<std::vector<Expr>>()) out.emplace_back(static_cast<double>(e.constant()));
  return out;
}

using OptDim = std::optional<int64_t>;
using OptDims = std::optional<std::vector<int64_t>>;
OptDims one(const OptDim& d) { return d ? OptDims(std::vector{*d}) : std::nullopt; }

void add_gradient(Table& t) {
  const char* doc =
      "Central differences of second order along each dimension, one-sided at the ends; one tensor a dimension.";
  t.op("aten::gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[]")
      .doc(doc)
      .composed_in_opmath([](Value x, std::optional<Number> spacing, OptDim dim, int64_t edge) {
        size_t count = dim ? 1 : static_cast<size_t>(rank_of(x));
        return evenly_spaced(x, std::vector(count, spacing.value_or(Number(1.0))), one(dim), edge);
      })
      .samples({{floats(5)}, {floats(4, 5), 2.0, 1, 2}, {ints(4)}});
  t.op("aten::gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> Tensor[]")
      .doc(doc)
      .composed_in_opmath([](Value x, Number spacing, std::vector<int64_t> dim, int64_t edge) {
        return evenly_spaced(x, std::vector(dim.size(), spacing), dim, edge);
      })
      .samples({{floats(4, 5), 2.0, list({0, 1})}});
  t.op("aten::gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]")
      .doc(doc)
      .composed_in_opmath([](Value x, std::vector<int64_t> dim, int64_t edge) {
        return evenly_spaced(x, std::vector(dim.size(), Number(1)), dim, edge);
      })
      .samples({{floats(4, 5), list({1})}});
  t.op("aten::gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1) -> Tensor[]")
      .doc(doc)
      .composed_in_opmath([](Value x, Number spacing, OptDim dim, int64_t edge) {
        return evenly_spaced(x, numbers(spacing), one(dim), edge);
      })
      .known({"spacing"})
      .samples({{floats(4, 5), ir::Arg(std::vector<double>{0.5, 2})}});
  t.op("aten::gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) -> Tensor[]")
      .doc(doc)
      .composed_in_opmath([](Value x, Number spacing, std::vector<int64_t> dim, int64_t edge) {
        return evenly_spaced(x, numbers(spacing), dim, edge);
      })
      .known({"spacing"})
      .samples({{floats(4, 5), ir::Arg(std::vector<double>{0.5, 2}), list({0, 1}), 2}});
  t.op("aten::gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) -> Tensor[]")
      .doc(doc)
      .composed_in_opmath([](Value x, std::vector<Value> spacing, OptDim dim, int64_t edge) {
        return at_points(x, spacing, one(dim), edge);
      })
      .samples({{floats(4, 5), std::vector<TensorSample>{floats(5)}, 1}});
  t.op("aten::gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> Tensor[]")
      .doc(doc)
      .composed_in_opmath([](Value x, std::vector<Value> spacing, std::vector<int64_t> dim, int64_t edge) {
        return at_points(x, spacing, dim, edge);
      })
      .samples({{floats(4, 5), std::vector<TensorSample>{floats(4), floats(5)}, list({0, 1}), 2}});
}

// --- the trapezoidal rule

Value distances_between(Value y, Value x, int64_t dim, const char* op) {
  if (rank_of(x) == 1) {
    BRASA_CHECK(same_size(size_of(x, 0), size_of(y, dim)), op,
                ": There must be one `x` value for each sample point, got ", type_of(x), " for ", type_of(y));
    x = along(x, dim, rank_of(y));
  }
  while (rank_of(x) < rank_of(y)) x = unsqueeze(x, 0);
  return later(x, dim) - earlier(x, dim);
}

void check_no_bool(const char* op, Value x) {
  BRASA_CHECK(dtype_of(x) != DType::Bool, op, ": received a bool input for `x` or `y`, but bool is not supported");
}

Value without(Value y, int64_t dim) {
  Shape shape = shape_of(y);
  shape.erase(shape.begin() + dim);
  return full(0, shape, dtype_of(y));
}

Value pairs(Value y, int64_t dim) { return earlier(y, dim) + later(y, dim); }

int64_t sampled_dim(const char* op, Value y, int64_t dim) {
  BRASA_CHECK(rank_of(y) > 0, op, ": expected at least one dimension, got ", type_of(y));
  return wrap_dim(dim, rank_of(y));
}

Value trapezoid_x(Value y, Value x, int64_t dim) {
  dim = sampled_dim("trapezoid", y, dim);
  if (is_less(size_of(y, dim), 1)) return without(y, dim);
  check_no_bool("trapezoid", y);
  check_no_bool("trapezoid", x);
  Value each = pairs(y, dim) * distances_between(y, x, dim, "trapezoid");
  return call("aten::sum.dim_IntList", {each, int_arg({dim})}) / 2.0;
}

Value trapezoid_dx(Value y, Number dx, int64_t dim) {
  dim = sampled_dim("trapezoid", y, dim);
  if (is_less(size_of(y, dim), 1)) return without(y, dim);
  check_no_bool("trapezoid", y);
  Value ends = narrow(y, dim, 0, 1) + narrow(y, dim, size_of(y, dim) - 1, 1);
  Value total = call("aten::sum.dim_IntList", {y, int_arg({dim})});
  return (total - squeeze(ends, dim) * 0.5) * dx;
}

Value cumulative_x(Value y, Value x, int64_t dim) {
  dim = sampled_dim("cumulative_trapezoid", y, dim);
  check_no_bool("cumulative_trapezoid", y);
  check_no_bool("cumulative_trapezoid", x);
  Value each = distances_between(y, x, dim, "cumulative_trapezoid") * pairs(y, dim);
  return call("aten::cumsum", {each, dim}) / 2.0;
}

Value cumulative_dx(Value y, Number dx, int64_t dim) {
  dim = sampled_dim("cumulative_trapezoid", y, dim);
  check_no_bool("cumulative_trapezoid", y);
  BRASA_CHECK(!is_complex(dx.dtype()) && dx.dtype() != DType::Bool,
              "cumulative_trapezoid: Currently, we only support dx as a real number.");
  return call("aten::cumsum", {pairs(y, dim) * (dx / Number(2.0)), dim});
}

void add_trapezoid(Table& t) {
  for (const char* name : {"trapezoid", "trapz"}) {
    t.op(str("aten::", name, ".x(Tensor y, Tensor x, *, int dim=-1) -> Tensor"))
        .doc("The integral of y over x along dim by the trapezoidal rule.")
        .composed(trapezoid_x)
        .samples({{floats(3, 5), floats(5)}, {floats(3, 2), floats(3, 2), 0}, {floats(0), floats(0)}});
    bool is_float = std::string_view(name) == "trapz";
    t.op(str("aten::", name, ".dx(Tensor y, *, ", is_float ? "float dx=1" : "Scalar dx=1", ", int dim=-1) -> Tensor"))
        .doc("The integral of y along dim by the trapezoidal rule, for points at the distance dx.")
        .composed(trapezoid_dx)
        .samples({{floats(3, 5), 0.5}, {floats(3, 2), 2.0, 0}, {ints(4)}});
  }
  t.op("aten::cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor")
      .doc("The running integral of y over x along dim by the trapezoidal rule.")
      .composed(cumulative_x)
      .samples({{floats(3, 5), floats(5)}, {floats(3, 2), floats(3, 2), 0}});
  t.op("aten::cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor")
      .doc("The running integral of y along dim by the trapezoidal rule, for points at the distance dx.")
      .composed(cumulative_dx)
      .samples({{floats(3, 5), 0.5}, {floats(3, 2), 2, 0}, {ints(4)}});
}

}  // namespace

void add_differences(Table& t) {
  t.op("aten::diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor")
      .doc(
          "The n-th differences of neighbours along dim, after prepend and append were joined; of bools whether they differ.")
      .out(Out::Cast)
      .keeps_memory_format()
      .composed(diff)
      .samples({{floats(3, 5)},
                {floats(5), 2},
                {floats(3, 4), 1, 0, floats(1, 4), floats(2, 4)},
                {bools(4)},
                {floats(2), 4}});
  add_gradient(t);
  add_trapezoid(t);
}

}  // namespace brasa::ops
