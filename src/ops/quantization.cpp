#include <cmath>

#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Affine quantisation: q = clamp(round(x / scale) + zero_point), x ≈ (q - zero_point) scale, per tensor, channel, row or
// group. Rounding is to even; 1 / scale is rounded first, as PyTorch does.
namespace brasa::ops {
namespace {

using Two = std::array<Value, 2>;

Value rounded(Value x) { return prim::unary("round", x); }
Value clamped(Value x, const Number& low, const Number& high) {
  return minimum(maximum(x, constant_like(x, low)), constant_like(x, high));
}
// One parameter a channel beside x.
Value by_channel(const char* op, const char* what, Value v, Value x, int64_t axis) {
  BRASA_CHECK(rank_of(v) == 1 && same_size(size_of(v, 0), size_of(x, axis)), op, ": expected ", what, " of ",
              size_of(x, axis), " elements for axis ", axis, " of ", type_of(x), ", got ", type_of(v));
  return broadcast_to(along(v, axis, rank_of(x)), shape_of(x));
}
Value whole_tensor(const char* op, const char* what, Value v, Value x) {
  BRASA_CHECK(same_size(type_of(v).numel(), 1), op, ": expected ", what, " of one element, got ", type_of(v));
  return broadcast_to(prim::reshape(v, {}), shape_of(x));
}

// --- fake quantisation: quantised and back, with the derivative of a clamp ---

void check_range(const char* op, int64_t low, int64_t high) {
  BRASA_CHECK(low <= high, op, ": `quant_min` should be less than or equal to `quant_max`, got ", low, " and ", high);
}

// {(q - zero_point) scale, does x lie in the range?}
Two fake_quantized(const char* op, Value x, Value scale, Value zero_point, int64_t low, int64_t high) {
  check_range(op, low, high);
  BRASA_CHECK(is_floating(dtype_of(x)), op, ": expected a floating tensor, got ", type_of(x));
  DType t = dtype_of(x);
  scale = convert(scale, t);
  bool integral = is_integral(dtype_of(zero_point));
  zero_point = convert(zero_point, t);
  Value scaled = x * (1 / scale);
  Value q = integral ? rounded(scaled) + zero_point : rounded(scaled + zero_point);
  Value inside = logical_and(ge(q, Number(low)), le(q, Number(high)));
  // What is not a number is taken for the lowest.
  Value clean = where(is_nan(q), constant_like(q, Number(low)), q);
  return {(clamped(clean, Number(low), Number(high)) - zero_point) * scale, inside};
}

Value constant(const Number& v, Value x) { return full(v, shape_of(x), opmath(dtype_of(x))); }

Two per_tensor(Value x, const Number& scale, const Number& zero_point, int64_t low, int64_t high) {
  return fake_quantized("fake_quantize_per_tensor_affine", x, constant(scale, x),
                        full(zero_point, shape_of(x), DType::Int64), low, high);
}
void check_zero_point(Value, double, int64_t zero_point, int64_t low, int64_t high) {
  BRASA_CHECK(zero_point >= low && zero_point <= high,
              "fake_quantize_per_tensor_affine: `zero_point` must be between `quant_min` and `quant_max`, got ",
              zero_point, " for [", low, ", ", high, "]");
}
Two per_tensor_of(Value x, Value scale, Value zero_point, int64_t low, int64_t high) {
  constexpr const char* op = "fake_quantize_per_tensor_affine";
  return fake_quantized(op, x, whole_tensor(op, "scale", scale, x), whole_tensor(op, "zero_point", zero_point, x), low,
                        high);
}
Two per_channel(Value x, Value scale, Value zero_point, int64_t axis, int64_t low, int64_t high) {
  constexpr const char* op = "fake_quantize_per_channel_affine";
  BRASA_CHECK(axis >= 0 && axis < rank_of(x), op, ": `axis` must be between 0 and number of dimensions of input, got ",
              axis, " for ", type_of(x));
  if (!is_floating(dtype_of(zero_point)))
    check_values(logical_and(ge(zero_point, Number(low)), le(zero_point, Number(high))),
                 str(op, ": `zero_point` must be between `quant_min` and `quant_max`, ", low, " and ", high));
  return fake_quantized(op, x, by_channel(op, "scale", scale, x, axis),
                        by_channel(op, "zero_point", zero_point, x, axis), low, high);
}
Two checked_per_channel(Value x, Value scale, Value zero_point, int64_t axis, int64_t low, int64_t high) {
  constexpr const char* op = "fake_quantize_per_channel_affine";
  DType s = dtype_of(scale), z = dtype_of(zero_point);
  BRASA_CHECK(is_floating(s), op, ": Scale must be Float or BFloat16, found ", name(s));
  BRASA_CHECK(z == DType::Int32 || is_floating(z), op, ": Zero-point must be Int32, Float or Half, found ", name(z));
  return per_channel(x, scale, zero_point, axis, low, high);
}
// Where `enabled` is 0, x as it is.
Two switched(Value x, Value scale, Value zero_point, Value enabled, int64_t low, int64_t high) {
  Two r = per_tensor_of(x, scale, zero_point, low, high);
  Value on = ne(whole_tensor("fake_quantize_per_tensor_affine", "fake_quant_enabled", enabled, x), 0);
  return {where(on, r[0], x), logical_or(logical_not(on), r[1])};
}

// The mask is the second result, or made again.
std::vector<Value> masked_vjp(const Saved& s) {
  if (!s.ct()) return {};
  return {where(s.out(1), s.ct(), zeros_like(s.ct()))};
}
std::vector<Value> remade_vjp(const Saved& s) {
  Two r = per_tensor(s.in(0), s.arg<Number>(1), s.arg<Number>(2), s.arg<int64_t>(3), s.arg<int64_t>(4));
  return {where(r[1], s.ct(), zeros_like(s.ct()))};
}
std::vector<Value> remade_tensor_vjp(const Saved& s) {
  Two r = per_tensor_of(s.in(0), s.in(1), s.in(2), s.arg<int64_t>(3), s.arg<int64_t>(4));
  return {where(r[1], s.ct(), zeros_like(s.ct()))};
}
std::vector<Value> remade_channel_vjp(const Saved& s) {
  Two r = per_channel(s.in(0), s.in(1), s.in(2), s.arg<int64_t>(3), s.arg<int64_t>(4), s.arg<int64_t>(5));
  return {where(r[1], s.ct(), zeros_like(s.ct()))};
}

// Learned step sizes (Esser et al. 2020): derivatives by x, scale and zero point; parameters have x's shape here.
std::array<Value, 3> learned_pullback(Value g, Value x, Value scale, Value zero_point, int64_t low, int64_t high,
                                      double factor) {
  DType t = dtype_of(x);
  scale = convert(scale, t);
  Value zero = rounded(clamped(convert(zero_point, t), Number(low), Number(high)));
  Value q = rounded(x * (1 / scale) + zero), below = lt(q, Number(low)), above = gt(q, Number(high));
  Value outside = logical_or(below, above), none = zeros_like(g);
  Value back = (clamped(q, Number(low), Number(high)) - zero) * scale;
  Value by_scale = where(below, Number(low) - zero, where(above, Number(high) - zero, (back - x) / scale));
  return {where(outside, none, g), g * by_scale * factor, where(outside, -(g * scale) * factor, none)};
}

Value learned(const char* op, Value x, Value scale, Value zero_point, int64_t low, int64_t high) {
  Value zero = rounded(clamped(convert(zero_point, dtype_of(x)), Number(low), Number(high)));
  return fake_quantized(op, x, scale, zero, low, high)[0];
}

std::array<Value, 3> learned_tensor_pullback(Value g, Value x, Value scale, Value zero, int64_t low, int64_t high,
                                             double factor) {
  constexpr const char* op = "_fake_quantize_learnable_per_tensor_affine";
  auto r = learned_pullback(g, x, whole_tensor(op, "scale", scale, x), whole_tensor(op, "zero_point", zero, x), low,
                            high, factor);
  auto total = [&](Value v, Value like) { return prim::reshape(sum(v, all_dims(v)), shape_of(like)); };
  return {r[0], total(r[1], scale), total(r[2], zero)};
}
std::array<Value, 3> learned_channel_pullback(Value g, Value x, Value scale, Value zero, int64_t axis, int64_t low,
                                              int64_t high, double factor) {
  constexpr const char* op = "_fake_quantize_learnable_per_channel_affine";
  axis = wrap_dim(axis, rank_of(x));
  auto r = learned_pullback(g, x, by_channel(op, "scale", scale, x, axis), by_channel(op, "zero_point", zero, x, axis),
                            low, high, factor);
  Dims others = all_dims(x);
  others.erase(others.begin() + axis);
  return {r[0], sum(r[1], others), sum(r[2], others)};
}

void add_fake(Table& t) {
  constexpr const char* kDoc =
      "x quantised to integers in [quant_min, quant_max] and back; the derivative is 1 inside that range, else 0.";
  const std::string with_mask = str(kDoc, " Also gives where x lies in it.");
  constexpr const char* kRange = "int quant_min, int quant_max";
  const TensorSample x = floats(3, 4), scale = floats(3).in(0.1, 0.5), one = floats(1).in(0.1, 0.5);
  // Beyond the range the results are constant, as their derivatives say.
  const TensorSample far = floats(3, 4).in(100, 101), top = tensor(DType::Int32, {1}).in(7, 8),
                     tops = tensor(DType::Int32, {3}).in(7, 8), seven = floats(1).in(7, 7), sevens = floats(3).in(7, 7);
  t.op(str("aten::fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, ", kRange, ") -> Tensor"))
      .doc(kDoc)
      .autocast(Autocast::Float32, Autocast::None)
      .composed_in_opmath(
          [](Value v, Number s, Number z, int64_t low, int64_t high) { return per_tensor(v, s, z, low, high)[0]; })
      .precondition(check_zero_point)
      .vjp(own_derivative(remade_vjp))
      .samples({{far, 0.5, 7, -8, 7}});
  t.op(str("aten::fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, ",
           kRange, ") -> Tensor"))
      .doc(kDoc)
      .autocast(Autocast::Float32, Autocast::None)
      .composed_in_opmath(
          [](Value v, Value s, Value z, int64_t low, int64_t high) { return per_tensor_of(v, s, z, low, high)[0]; })
      .vjp(own_derivative(remade_tensor_vjp))
      .samples({{far, one, top, -8, 7}});
  t.op(str("aten::fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, ", kRange,
           ") -> (Tensor output, Tensor mask)"))
      .doc(with_mask)
      .composed_in_opmath(per_tensor)
      .vjp(own_derivative(masked_vjp))
      .samples({{far, 0.5, 7, -8, 7}});
  t
      .op(str(
          "aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, Tensor fake_quant_enabled, ",
          kRange, ") -> (Tensor output, Tensor mask)"))
      .doc(str(with_mask, " Where fake_quant_enabled is 0, x as it is."))
      .composed_in_opmath(switched)
      .vjp(own_derivative(masked_vjp))
      .samples({{far, one, top, ints(1).in(1, 2), -8, 7}});
  t.op(str("aten::fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, ", kRange,
           ") -> Tensor"))
      .doc(kDoc)
      .composed_in_opmath([](Value v, Value s, Value z, int64_t axis, int64_t low, int64_t high) {
        return checked_per_channel(v, s, z, axis, low, high)[0];
      })
      .vjp(own_derivative(remade_channel_vjp))
      .samples({{far, scale, tops, 0, -8, 7}});
  t.op(str("aten::fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, ",
           kRange, ") -> (Tensor output, Tensor mask)"))
      .doc(with_mask)
      .composed_in_opmath(checked_per_channel)
      .vjp(own_derivative(masked_vjp))
      .samples({{far, scale, tops, 0, -8, 7}});
  for (const char* name : {"tensor", "channel"})
    t.op(str("aten::fake_quantize_per_", name, "_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor"))
        .doc("The gradient where the mask holds, else 0.")
        .composed([](Value g, Value mask) {
          check_same_shape("fake_quantize_affine_cachemask_backward", g, mask);
          return where(mask, g, zeros_like(g));
        })
        .samples({{x, bools(3, 4)}});
  t.op(str("aten::_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, ", kRange,
           ", float grad_factor=1.0) -> Tensor"))
      .doc("x quantised and back, with derivatives by scale and zero point (Esser et al. 2020) times grad_factor.")
      .composed_in_opmath([](Value v, Value s, Value z, int64_t low, int64_t high, double) {
        constexpr const char* op = "_fake_quantize_learnable_per_tensor_affine";
        return learned(op, v, whole_tensor(op, "scale", s, v), whole_tensor(op, "zero_point", z, v), low, high);
      })
      .vjp(own_derivative([](const Saved& s) {
        auto r = learned_tensor_pullback(s.ct(), s.in(0), s.in(1), s.in(2), s.arg<int64_t>(3), s.arg<int64_t>(4),
                                         s.arg<double>(5));
        return std::vector<Value>(r.begin(), r.end());
      }))
      .samples({{far, one, seven, -8, 7, 0.0}});
  t
      .op(str(
          "aten::_fake_quantize_learnable_per_tensor_affine_backward(Tensor grad, Tensor self, Tensor scale, Tensor zero_point, ",
          kRange, ", float grad_factor=1.0) -> (Tensor, Tensor, Tensor)"))
      .doc("The derivatives of _fake_quantize_learnable_per_tensor_affine by x, scale and zero point.")
      .composed_in_opmath(learned_tensor_pullback)
      .samples({{x, x, one, floats(1).in(0, 3), -8, 7}});
  t.op(str("aten::_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, ",
           kRange, ", float grad_factor=1.0) -> Tensor"))
      .doc("As _fake_quantize_learnable_per_tensor_affine, with a scale and zero point for each index along axis.")
      .composed_in_opmath([](Value v, Value s, Value z, int64_t axis, int64_t low, int64_t high, double) {
        constexpr const char* op = "_fake_quantize_learnable_per_channel_affine";
        axis = wrap_dim(axis, rank_of(v));
        return learned(op, v, by_channel(op, "scale", s, v, axis), by_channel(op, "zero_point", z, v, axis), low, high);
      })
      .vjp(own_derivative([](const Saved& s) {
        auto r = learned_channel_pullback(s.ct(), s.in(0), s.in(1), s.in(2), s.arg<int64_t>(3), s.arg<int64_t>(4),
                                          s.arg<int64_t>(5), s.arg<double>(6));
        return std::vector<Value>(r.begin(), r.end());
      }))
      .samples({{far, scale, sevens, 0, -8, 7, 0.0}});
  t
      .op(str(
          "aten::_fake_quantize_learnable_per_channel_affine_backward(Tensor grad, Tensor self, Tensor scale, Tensor zero_point, int axis, ",
          kRange, ", float grad_factor=1.0) -> (Tensor, Tensor, Tensor)"))
      .doc("The derivatives of _fake_quantize_learnable_per_channel_affine by x, scale and zero point.")
      .composed_in_opmath(learned_channel_pullback)
      .samples({{x, x, scale, floats(3).in(0, 3), 0, -8, 7}});
}

// --- quantised_decomposed ---

void check_target(const char* op, int64_t low, int64_t high, DType dtype) {
  if (!is_integral(dtype) || size_of(dtype) > 4) return;
  int64_t most = (int64_t{1} << info_of(dtype).digits) - 1, least = is_signed(dtype) ? -most - 1 : 0;
  BRASA_CHECK(low >= least && high <= most, op, ": expected a range within [", least, ", ", most, "] of ", name(dtype),
              ", got [", low, ", ", high, "]");
}
Value data(const char* op, Value x) {
  BRASA_CHECK(is_reduced_floating(dtype_of(x)) || dtype_of(x) == DType::Float32, op,
              ": Expecting input to have dtype torch.float32, but got ", name(dtype_of(x)));
  return to_opmath(x);
}
Value codes(const char* op, Value x, DType dtype) {
  BRASA_CHECK(dtype_of(x) == dtype, op, ": Expecting input to have dtype ", name(dtype), ", but got ",
              name(dtype_of(x)));
  return convert(x, DType::Float32);
}

Value quantized(Value x, Value scale, Value zero_point, const Number& low, const Number& high, DType dtype) {
  Value inverse = convert(1 / scale, DType::Float32);
  return convert(clamped(rounded(x * inverse) + convert(zero_point, DType::Float32), low, high), dtype);
}
Value dequantized(Value q, Value scale, Value zero_point, std::optional<DType> out) {
  if (zero_point) q = q - convert(zero_point, DType::Float32);
  return convert(q * convert(scale, DType::Float32), out.value_or(DType::Float32));
}
Value scalar_parameter(const Number& v, Value x) { return full(v, shape_of(x), DType::Float64); }
Number bound(const char* op, Value v) {
  BRASA_CHECK(same_size(type_of(v).numel(), 1), op, ": expected a bound of one element, got ", type_of(v));
  return Number(convert(prim::reshape(v, {}), DType::Float32));
}

// {scale float64 [1], zero point int64 [1]} that cover x's range and zero.
Two chosen(Value x, int64_t low, int64_t high, const Number& eps, DType dtype, bool symmetric) {
  constexpr const char* op = "choose_qparams";
  check_target(op, low, high, dtype);
  BRASA_CHECK(low < high, op, ": qmin must be less than qmax, got ", low, " and ", high);
  Value v = data(op, x), zero = full(0, {}, DType::Float32);
  Value least = prim::reduce(v, all_dims(v), "min"), most = prim::reduce(v, all_dims(v), "max");
  least = minimum(least, zero);
  most = maximum(most, zero);
  auto span = static_cast<double>(high - low);
  Value smallest = full(eps, {}, DType::Float32), scale, point;
  if (symmetric) {
    scale = maximum(maximum(-least, most) / (span / 2), smallest);
    point = full(dtype == DType::UInt8 ? 128 : 0, {}, DType::Int64);
  } else {
    scale = maximum((most - least) / span, smallest);
    point = convert(clamped(Number(low) - rounded(least / scale), Number(low), Number(high)), DType::Int64);
  }
  auto listed = [](Value p, DType t) { return prim::reshape(convert(p, t), {Expr(1)}); };
  return {listed(scale, DType::Float64), listed(point, DType::Int64)};
}

Two chosen_per_token(Value x, DType dtype) {
  BRASA_CHECK(dtype == DType::Int8, "choose_qparams_per_token: unsupported dtype ", name(dtype), ", expected int8");
  BRASA_CHECK(rank_of(x) >= 1, "choose_qparams_per_token: expected a tensor with dimensions, got ", type_of(x));
  Value scale = amax(abs(x), {rank_of(x) - 1}, true);
  if (dtype_of(scale) == DType::Float16) scale = convert(scale, DType::Float32);
  scale = maximum(scale, constant_like(scale, 1e-5)) / 127.0;
  return {scale, zeros_like(scale)};
}
Two chosen_per_token_asymmetric(Value x, DType) {
  BRASA_CHECK(rank_of(x) >= 1, "choose_qparams_per_token_asymmetric: expected a tensor with dimensions, got ",
              type_of(x));
  Dims last = {rank_of(x) - 1};
  Value least = reduce(x, last, true, "min"), most = reduce(x, last, true, "max");
  least = minimum(least, zeros_like(least));
  most = maximum(most, zeros_like(most));
  constexpr double low = -128, high = 127, eps = 0x1p-23;
  Value scale = (most - least) / (high - low);
  scale = maximum(scale, constant_like(scale, eps));
  Value from = least / scale, to = most / scale;
  Value point = where(gt((low + from) + (high + to), 0), low - from, high - to);
  return {convert(scale, DType::Float64), convert(rounded(clamped(point, low, high)), DType::Int64)};
}

void check_tokens(const char* op, Value x, Value scales, Value points) {
  BRASA_CHECK(rank_of(x) >= 1 && rank_of(scales) == rank_of(x) && rank_of(points) == rank_of(x), op,
              ": expected scales and zero points of one element for each row of ", type_of(x), ", got ",
              type_of(scales), " and ", type_of(points));
}
// x [rows, columns] as [groups, group_size] with a parameter for each.
Value in_groups(const char* op, Value x, int64_t group) {
  check_rank(op, "input", x, 2);
  BRASA_CHECK(group > 1 && same_size(ir::mod(size_of(x, 1), Expr(group)), 0), op, ": input ", type_of(x),
              " must be divisible into groups of ", group, ", more than 1");
  return prim::reshape(x, {ir::floordiv(type_of(x).numel(), Expr(group)), Expr(group)});
}
Value as_column(Value v) { return prim::reshape(v, {type_of(v).numel(), Expr(1)}); }
int64_t group_size(Value x, Value scales, int64_t group) {
  bool one = rank_of(scales) > 0 && same_size(size_of(scales, rank_of(scales) - 1), 1);
  return one && rank_of(x) == 2 && is_less(size_of(x, 1), Expr(group)) ? known_size(size_of(x, 1)) : group;
}

void add_decomposed(Table& t) {
  const std::string q = "quantized_decomposed::", target = "ScalarType dtype";
  const TensorSample x = floats(3, 4), i8 = tensor(DType::Int8, {3, 4}).in(-8, 8), scale = floats().in(0.1, 0.5),
                     point = tensor(DType::Int64, {}).in(0, 3), scales = floats(3).in(0.1, 0.5), points = ints(3),
                     token_scales = floats(3, 1).in(0.1, 0.5), token_points = ints(3, 1);
  constexpr const char* kTo = "round(x / scale) + zero_point, clamped to [quant_min, quant_max]";
  constexpr const char* kFrom = "(q - zero_point) scale";
  t.op(q + "quantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, " + target +
       ") -> Tensor")
      .doc(str(kTo, "."))
      .no_gradient()
      .composed([](Value v, Number s, Number z, int64_t low, int64_t high, DType dtype) {
        check_target("quantize_per_tensor", low, high, dtype);
        return quantized(data("quantize_per_tensor", v), scalar_parameter(s, v), full(z, shape_of(v), DType::Int64),
                         Number(low), Number(high), dtype);
      })
      .samples({{x, 0.1, 2, -128, 127, DType::Int8}});
  t.op(q + "quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, " +
       target + ") -> Tensor")
      .doc(str(kTo, "."))
      .no_gradient()
      .composed([](Value v, Value s, Value z, int64_t low, int64_t high, DType dtype) {
        constexpr const char* op = "quantize_per_tensor";
        check_target(op, low, high, dtype);
        return quantized(data(op, v), whole_tensor(op, "scale", s, v), whole_tensor(op, "zero_point", z, v),
                         Number(low), Number(high), dtype);
      })
      .samples({{x, scale, point, -128, 127, DType::Int8}});
  t.op(q +
       "quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, " +
       target + ") -> Tensor")
      .doc(str(kTo, "."))
      .no_gradient()
      .composed([](Value v, Value s, Value z, Value low, Value high, DType dtype) {
        constexpr const char* op = "quantize_per_tensor";
        return quantized(data(op, v), whole_tensor(op, "scale", s, v), whole_tensor(op, "zero_point", z, v),
                         bound(op, low), bound(op, high), dtype);
      })
      .samples(
          {{x, scale, point, tensor(DType::Int64, {}).in(-8, -7), tensor(DType::Int64, {}).in(7, 8), DType::Int8}});
  constexpr const char* kOut = ", *, ScalarType? out_dtype=None) -> Tensor";
  t.op(q + "dequantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, " + target +
       kOut)
      .doc(str(kFrom, "."))
      .no_gradient()
      .composed([](Value v, Number s, Number z, int64_t, int64_t, DType dtype, std::optional<DType> out) {
        return dequantized(codes("dequantize_per_tensor", v, dtype), scalar_parameter(s, v),
                           full(z, shape_of(v), DType::Int64), out);
      })
      .samples({{i8, 0.1, 2, -128, 127, DType::Int8}});
  t.op(q +
       "dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, " +
       target + kOut)
      .doc(str(kFrom, "."))
      .no_gradient()
      .composed([](Value v, Value s, Value z, int64_t, int64_t, DType dtype, std::optional<DType> out) {
        constexpr const char* op = "dequantize_per_tensor";
        return dequantized(codes(op, v, dtype), whole_tensor(op, "scale", s, v), whole_tensor(op, "zero_point", z, v),
                           out);
      })
      .samples({{i8, scale, point, -128, 127, DType::Int8}});
  t.op(q +
       "dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, " +
       target + kOut)
      .doc(str(kFrom, "."))
      .no_gradient()
      .composed([](Value v, Value s, Value z, Value, Value, DType dtype, std::optional<DType> out) {
        constexpr const char* op = "dequantize_per_tensor";
        return dequantized(codes(op, v, dtype), whole_tensor(op, "scale", s, v), whole_tensor(op, "zero_point", z, v),
                           out);
      })
      .samples({{i8, scale, point, point, point, DType::Int8}});
  t.op(q +
       "quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max, " +
       target + ") -> Tensor")
      .doc(str(kTo, ", with a scale and zero point for each index along axis."))
      .no_gradient()
      .composed([](Value v, Value s, Value z, int64_t axis, int64_t low, int64_t high, DType dtype) {
        constexpr const char* op = "quantize_per_channel";
        check_target(op, low, high, dtype);
        axis = wrap_dim(axis, rank_of(v));
        return quantized(data(op, v), by_channel(op, "scales", s, v, axis), by_channel(op, "zero_points", z, v, axis),
                         Number(low), Number(high), dtype);
      })
      .samples({{x, scales, points, 0, -128, 127, DType::Int8}});
  t.op(q +
       "dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, int quant_min, int quant_max, " +
       target + kOut)
      .doc(str(kFrom, ", with a scale and zero point for each index along axis."))
      .no_gradient()
      .composed([](Value v, Value s, Value z, int64_t axis, int64_t, int64_t, DType dtype, std::optional<DType> out) {
        constexpr const char* op = "dequantize_per_channel";
        axis = wrap_dim(axis, rank_of(v));
        return dequantized(codes(op, v, dtype), by_channel(op, "scales", s, v, axis),
                           z ? by_channel(op, "zero_points", z, v, axis) : Value{}, out);
      })
      .samples({{i8, scales, points, 0, -128, 127, DType::Int8}, {i8, scales, ir::None{}, 0, -128, 127, DType::Int8}});
  t.op(q + "quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, " +
       target + ") -> Tensor")
      .doc(
          "round(x / scale + zero_point), clamped to [quant_min, quant_max], with a scale and zero point for each row.")
      .no_gradient()
      .composed([](Value v, Value s, Value z, int64_t low, int64_t high, DType dtype) {
        constexpr const char* op = "quantize_per_token";
        check_target(op, low, high, dtype);
        check_tokens(op, v, s, z);
        return convert(clamped(rounded(v * (1 / s) + z), Number(low), Number(high)), dtype);
      })
      .samples({{x, token_scales, token_points, -128, 127, DType::Int8}});
  t.op(q + "dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, " +
       target + ", ScalarType output_dtype) -> Tensor")
      .doc(str(kFrom, ", with a scale and zero point for each row."))
      .no_gradient()
      .composed([](Value v, Value s, Value z, int64_t, int64_t, DType, DType out) {
        check_tokens("dequantize_per_token", v, s, z);
        return convert((v - z) * s, out);
      })
      .samples({{i8, token_scales, token_points, -128, 127, DType::Int8, DType::Float32}});
  t.op(q +
       "quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, " +
       target + ", int group_size) -> Tensor")
      .doc(
          "round(x / scale + zero_point), clamped to [quant_min, quant_max], with a scale and zero point for each group of a row.")
      .no_gradient()
      .composed([](Value v, Value s, Value z, int64_t low, int64_t high, DType dtype, int64_t group) {
        constexpr const char* op = "quantize_per_channel_group";
        Value groups = in_groups(op, v, group_size(v, s, group));
        Value out =
            convert(clamped(rounded(groups * (1 / as_column(s)) + as_column(z)), Number(low), Number(high)), dtype);
        return prim::reshape(out, shape_of(v));
      })
      .samples({{x, floats(3, 2).in(0.1, 0.5), ints(3, 2), -128, 127, DType::Int8, 2}});
  t.op(q +
       "dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, int quant_min, int quant_max, " +
       target + ", int group_size, ScalarType output_dtype) -> Tensor")
      .doc(str(kFrom, ", with a scale and zero point for each group of a row."))
      .no_gradient()
      .composed([](Value v, Value s, Value z, int64_t, int64_t, DType, int64_t group, DType out) {
        constexpr const char* op = "dequantize_per_channel_group";
        Value groups = in_groups(op, convert(v, DType::Float32), group_size(v, s, group));
        if (z) groups = groups - as_column(convert(z, DType::Float32));
        return prim::reshape(convert(groups * as_column(s), out), shape_of(v));
      })
      .samples({{i8, floats(3, 2).in(0.1, 0.5), ints(3, 2), -128, 127, DType::Int8, 2, DType::Float32}});
  for (bool symmetric : {false, true})
    t.op(q + (symmetric ? "choose_qparams_symmetric" : "choose_qparams") +
         ".tensor(Tensor input, int quant_min, int quant_max, float eps, " + target + ") -> (Tensor, Tensor)")
        .doc(symmetric
                 ? "The scale (at least eps) that covers ± the greatest magnitude, and the zero point in the middle."
                 : "The scale (at least eps) and zero point that cover the range of the elements and zero.")
        .no_gradient()
        .composed(symmetric ? +[](Value v, int64_t low, int64_t high, Number eps,
                                  DType dtype) { return chosen(v, low, high, eps, dtype, true); }
                            : +[](Value v, int64_t low, int64_t high, Number eps,
                                  DType dtype) { return chosen(v, low, high, eps, dtype, false); })
        .samples({{x, -128, 127, 1e-5, DType::Int8}});
  t.op(q + "choose_qparams_per_token(Tensor input, " + target + ") -> (Tensor, Tensor)")
      .doc("A symmetric scale for each row, and zero points of 0.")
      .no_gradient()
      .composed(chosen_per_token)
      .samples({{x, DType::Int8}});
  for (const char* name : {"choose_qparams_per_token_asymmetric", "_choose_qparams_per_token_asymmetric_impl"})
    t.op(q + name + "(Tensor input, " + target + ") -> (Tensor, Tensor)")
        .doc("A scale and zero point for each row that cover its range and zero.")
        .no_gradient()
        .composed(chosen_per_token_asymmetric)
        .samples({{x, DType::Int8}});
  t.op(q +
       "fake_quant_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max) -> Tensor")
      .doc("x quantised and back, with a scale and zero point for each index along axis.")
      .composed([](Value v, Value s, Value z, int64_t axis, int64_t low, int64_t high) {
        return per_channel(v, convert(s, DType::Float32), convert(z, DType::Int32), axis, low, high)[0];
      })
      .vjp(own_derivative(remade_channel_vjp))
      .samples({{floats(3, 4).in(100, 101), scales, tensor(DType::Int64, {3}).in(7, 8), 0, -8, 7}});
}

}  // namespace

void add_quantization(Table& t) {
  add_fake(t);
  add_decomposed(t);
}

}  // namespace brasa::ops
