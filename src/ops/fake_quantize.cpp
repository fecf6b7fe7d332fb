#include "ops/quantize.h"
#include "ops/rows.h"

// Quantised and back, with the derivative of a clamp.
namespace brasa::ops {
namespace {

using Two = std::array<Value, 2>;

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
std::vector<Value> passed(const Saved& s, Value inside) { return {where(inside, s.ct(), zeros_like(s.ct()))}; }
std::vector<Value> masked_vjp(const Saved& s) {
  if (!s.ct()) return {};
  return passed(s, s.out(1));
}
std::vector<Value> remade_vjp(const Saved& s) {
  Two r = per_tensor(s.in(0), s.arg<Number>(1), s.arg<Number>(2), s.arg<int64_t>(3), s.arg<int64_t>(4));
  return passed(s, r[1]);
}
std::vector<Value> remade_tensor_vjp(const Saved& s) {
  Two r = per_tensor_of(s.in(0), s.in(1), s.in(2), s.arg<int64_t>(3), s.arg<int64_t>(4));
  return passed(s, r[1]);
}
std::vector<Value> remade_channel_vjp(const Saved& s) {
  Two r = per_channel(s.in(0), s.in(1), s.in(2), s.arg<int64_t>(3), s.arg<int64_t>(4), s.arg<int64_t>(5));
  return passed(s, r[1]);
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

}  // namespace

void add_fake_quantization(Table& t) {
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
      .precondition(check_zero_point)
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
  t.op("quantized_decomposed::fake_quant_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max) -> Tensor")
      .doc("x quantised and back, with a scale and zero point for each index along axis.")
      .composed([](Value v, Value s, Value z, int64_t axis, int64_t low, int64_t high) {
        return per_channel(v, convert(s, DType::Float32), convert(z, DType::Int32), axis, low, high)[0];
      })
      .vjp(own_derivative(remade_channel_vjp))
      .samples({{floats(3, 4).in(100, 101), scale, tensor(DType::Int64, {3}).in(7, 8), 0, -8, 7}});
}

}  // namespace brasa::ops
