#include "ops/quantize.h"
#include "ops/rows.h"

// The operators of quantized_decomposed.
namespace brasa::ops {
namespace {

using Two = std::array<Value, 2>;

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

}  // namespace

void add_quantization(Table& t) {
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
}

}  // namespace brasa::ops
