#include <limits>

#include "ops/norms.h"
#include "ops/rows.h"
#include "ops/standardize.h"

// Norms over the last dimensions.
namespace brasa::ops {
namespace {

using Three = std::array<Value, 3>;

Three standardize(Value x, Dims dims, const Number& eps) {
  Value m = mean(x, dims, true), centred = x - m;
  Value rstd = rsqrt(mean(centred * centred, dims, true) + eps);
  return {centred * rstd, m, rstd};
}

// With y = (x - m) r: ∂L/∂x = r (g - mean(g) - y mean(g y)) + ∂L/∂m / n - ∂L/∂r r² y / n.
std::vector<Value> standardize_vjp(const Saved& s) {
  Dims dims = s.arg<Dims>(1);
  Value y = s.out(), rstd = s.out(2), out;
  auto add = [&](Value v) { out = out ? out + v : v; };
  if (Value g = s.ct()) add(rstd * (g - mean(g, dims, true) - y * mean(g * y, dims, true)));
  Value n = count(y, dims, dtype_of(y));
  if (Value g = s.ct(1)) add(g / n);
  if (Value g = s.ct(2)) add(-(g * rstd * rstd / n * y));
  return {out};
}

// Beside standardize_vjp's first and last term, forward: with dy = r (dx - mean(dx) - y mean(dx y)) goes dr = -r² mean(dx y).
std::vector<Value> standardize_again_vjp(const Saved& s) {
  Dims dims = s.arg<Dims>(1);
  Value y = s.out(), rstd = s.out(1), out;
  if (Value g = s.ct()) out = rstd * (g - mean(g, dims, true) - y * mean(g * y, dims, true));
  if (Value g = s.ct(1)) {
    Value by_rstd = -(g * rstd * rstd / count(y, dims, dtype_of(y)) * y);
    out = out ? out + by_rstd : by_rstd;
  }
  return {out};
}
std::vector<Value> standardize_again_jvp(const Node& n, std::span<const Value> tangents) {
  Value y = const_cast<Node&>(n).out(0), rstd = const_cast<Node&>(n).out(1), t = tangents[0];
  if (!t) return {{}, {}};
  Dims dims = detail::From<Dims>::get(n.args[1]);
  Value along_y = mean(t * y, dims, true), about_mean = t - mean(t, dims, true);
  return {rstd * (about_mean - y * along_y), -(rstd * rstd * along_y)};
}

Value scaled(Value y, Value weight, Value bias) {
  if (weight) y = y * to_opmath(weight);
  if (bias) y = y + to_opmath(bias);
  return y;
}

Dims trailing_dims(const char* op, Value x, const Shape& shape) {
  auto n = static_cast<int64_t>(shape.size());
  BRASA_CHECK(n >= 1, op, ": expected normalized_shape to be at least 1-dimensional");
  bool fits = rank_of(x) >= n;
  for (int64_t d = 0; fits && d < n; ++d) fits = same_size(size_of(x, rank_of(x) - n + d), shape[d]);
  BRASA_CHECK(fits, "Given normalized_shape=", shape, ", expected input with shape [*, ", str(shape).substr(1),
              ", but got input of size", shape_of(x));
  return counted(rank_of(x) - n, n);
}

Three native_layer_norm(Value x, Shape shape, Value weight, Value bias, const Number& eps) {
  Dims dims = trailing_dims("layer_norm", x, shape);
  check_parameter("layer_norm", "weight", weight, shape);
  check_parameter("layer_norm", "bias", bias, shape);
  check_dtypes("layer_norm", x, {weight, bias});
  std::vector<Value> s = standardized(to_opmath(x), dims, eps);
  DType kept = statistics_dtype(x, weight, bias);
  return {convert(scaled(s[0], weight, bias), dtype_of(x)), convert(s[1], kept), convert(s[2], kept)};
}

std::vector<Value> layer_norm_backward(Value g, Value x, Shape shape, Value m, Value rstd, Value weight, Value bias,
                                       std::vector<bool> mask) {
  Dims dims = trailing_dims("native_layer_norm_backward", x, shape);
  check_same_shape("native_layer_norm_backward", g, x);
  check_parameter("native_layer_norm_backward", "weight", weight, shape);
  DType own = dtype_of(x), parameters = weight ? dtype_of(weight) : bias ? dtype_of(bias) : own;
  g = to_opmath(g);
  Standardized s = standardized_again(to_opmath(x), dims, to_opmath(m), to_opmath(rstd));
  Value y = s.y;
  std::vector<Value> out = {no_result(own), no_result(parameters), no_result(parameters)};
  if (mask[0]) {
    Value h = weight ? g * to_opmath(weight) : g;
    out[0] = convert(s.rstd * (h - mean(h, dims, true) - y * mean(h * y, dims, true)), own);
  }
  // Parameters that are not there have no gradient.
  if (mask[1] && weight) out[1] = convert(sum_to(g * y, shape), parameters);
  if (mask[2] && bias) out[2] = convert(sum_to(g, shape), parameters);
  return out;
}

// --- norms without a mean ---

std::array<Value, 2> rms(Value x, const Shape& shape, Value weight, const std::optional<Number>& eps) {
  Dims dims = trailing_dims("rms_norm", floating_only("rms_norm", x), shape);
  check_parameter("rms_norm", "weight", weight, shape);
  double least =
      dtype_of(x) == DType::Float64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  Value wide = to_opmath(x), r = rsqrt(mean(wide * wide, dims, true) + eps.value_or(least));
  return {convert(scaled(wide * r, weight, {}), dtype_of(x)), r};
}

// All but `dim`, where -1 stands for none.
Dims dims_except(Value v, int64_t dim) {
  Dims dims;
  dim = dim == -1 ? -1 : wrap_dim(dim, rank_of(v));
  for (int64_t d = 0; d < rank_of(v); ++d)
    if (d != dim) dims.push_back(d);
  return dims;
}

Value weight_norm(Value v, Value g, int64_t dim) {
  Value norm = sqrt(sum(v * v, dims_except(v, dim), true));
  return v * (broadcast_to(g, shape_of(norm)) / norm);
}

Value norm_except_dim(Value v, Number p, int64_t dim) {
  if (dim == -1) return call("aten::norm.Scalar", {v, p.arg()});
  return call("aten::norm.ScalarOpt_dim", {v, p.arg(), int_arg(dims_except(v, dim)), true});
}

}  // namespace

void add_normalization(Table& t) {
  t.op("brasa::standardize(Tensor x, int[] dims, float eps) -> (Tensor y, Tensor mean, Tensor rstd)")
      .doc("(x - mean) · rstd over dims, with rstd = 1/√(variance + eps); the statistics keep dims with size 1.")
      .composed(standardize)
      .vjp(own_derivative(standardize_vjp))
      .samples({{floats(3, 5), list({1}), 1e-5}, {floats(2, 3, 4), list({0, 2}), 1e-5}});
  t.op("brasa::standardize_again(Tensor x, int[] dims, Tensor mean, Tensor rstd) -> (Tensor y, Tensor rstd)")
      .doc(
          "(x - mean) · rstd, and rstd, for statistics of x over dims that brasa::standardize gave. They follow x: its derivative counts "
          "what it does to them, and they have none of their own.")
      .composed([](Value x, Dims, Value m, Value rstd) { return std::array<Value, 2>{(x - m) * rstd, rstd}; })
      .vjp(own_derivative(standardize_again_vjp))
      .jvp(standardize_again_jvp)
      .samples({{floats(3, 5), list({1}), floats(3, 1), floats(3, 1).in(0.5, 2)}});
  t.op("aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)")
      .doc("layer_norm, with the mean and 1/√(variance + eps) of each row.")
      .autocast(Autocast::None, Autocast::Float32)
      .gradients_together()
      .composed(native_layer_norm)
      .samples({{floats(3, 5), list({5}), floats(5), floats(5), 1e-5},
                {floats(2, 3, 4), list({3, 4}), ir::None{}, ir::None{}, 1e-5}});
  t.op("aten::native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)")
      .doc("The gradients of layer_norm's input, weight and bias.")
      .composed(layer_norm_backward)
      .samples({{floats(2, 3), floats(2, 3), list({3}), floats(2, 1), floats(2, 1), floats(3), floats(3),
                 std::vector<bool>{true, true, true}}});
  t.op("aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor")
      .doc("(x - mean)/√(variance + eps) · weight + bias over the last dimensions (Ba et al. 2016).")
      .autocast(Autocast::None, Autocast::Float32)
      .backward_node("NativeLayerNormBackward0")
      .gradients_together()
      .packed({{floats(8, 8), list({8}), floats(8), floats(8)}, {floats(8, 8), list({8})}})
      .composed([](Value x, Shape shape, Value w, Value b, Number eps, bool) {
        return call_all("aten::native_layer_norm", {x, shape, w ? Arg(w) : Arg(), b ? Arg(b) : Arg(), eps})[0];
      })
      .samples({{floats(3, 5), list({5}), floats(5), floats(5)}, {floats(2, 1), list({1})}, {floats(0, 4), list({4})}});
  t.op("aten::rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor")
      .doc("x/√(mean of x² + eps) · weight over the last dimensions (Zhang & Sennrich 2019).")
      .keeps_memory_format()
      .autocast(Autocast::None, Autocast::Float32)
      .composed([](Value x, Shape shape, Value w, std::optional<Number> eps) { return rms(x, shape, w, eps)[0]; })
      .samples({{floats(3, 5), list({5}), floats(5)}, {floats(2, 3), list({2, 3})}});
  t.op("aten::_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)")
      .doc("rms_norm, with 1/√(mean of x² + eps) of each row.")
      .keeps_memory_format()
      .composed([](Value x, Shape shape, Value w, std::optional<Number> eps) { return rms(x, shape, w, eps); })
      .samples({{floats(3, 5), list({5}), floats(5), 1e-5}});
  t.op("aten::_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor")
      .doc("g · v/‖v‖, the norm over all dimensions but one (Salimans & Kingma 2016).")
      .composed(weight_norm)
      .one_dtype({"v", "g"})
      .samples({{floats(3, 4), floats(3, 1)}});
  t.op("aten::norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor")
      .doc("Norms over all dimensions but one, which are kept with size 1; over all, without dimensions, for -1.")
      .composed(norm_except_dim)
      .special("pow", kNormOrders)
      .samples({{floats(3, 4, 2)}, {floats(3, 4), 1, 1}, {floats(3, 4), 2, -1}});
}

}  // namespace brasa::ops
