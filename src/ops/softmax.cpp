#include "ops/softmax.h"

#include <limits>

#include "ops/rows.h"
#include "support/error.h"

namespace brasa::ops {
Value exp_beside_one(Value x) {
  double least = dtype_of(x) == DType::Float64 ? -707.70 : -86.64;  // twice the least normal number, and more
  return exp(where(lt(x, least), constant_like(x, -std::numeric_limits<double>::infinity()), x));
}

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// The input in the dtype of the result: the given one, else its own.
Value input_for(const char* op, Value x, std::optional<DType> dtype) {
  Value y = dtype ? convert(x, *dtype) : x;
  BRASA_CHECK(is_floating(dtype_of(y)), "\"", op, "\" not implemented for ", name(dtype_of(y)),
              ": expected a floating tensor, or dtype=");
  return y;
}

Value softmax(Value x, int64_t dim) {
  dim = wrap_dim(dim, rank_of(x));
  if (rank_of(x) == 0) return exp(x - x);
  Value e = exp_beside_one(x - amax(x, {dim}, true));
  return e / sum(e, {dim}, true);
}

Value log_softmax(Value x, int64_t dim) {
  dim = wrap_dim(dim, rank_of(x));
  if (rank_of(x) == 0) return x - x;
  Value shifted = x - amax(x, {dim}, true);
  return shifted - log(sum(exp_beside_one(shifted), {dim}, true));
}

std::vector<int64_t> along(Value y, int64_t dim) {
  if (rank_of(y) == 0) return {};
  return {wrap_dim(dim, rank_of(y))};
}

Value softmax_pullback(Value ct, Value y, int64_t dim) {
  Value weighted = ct * y;
  return weighted - y * sum(weighted, along(y, dim), true);
}

Value log_softmax_pullback(Value ct, Value y, int64_t dim) { return ct - exp(y) * sum(ct, along(y, dim), true); }

std::vector<Value> softmax_derivative(const Saved& s) { return {softmax_pullback(s.ct(), s.out(), s.arg<int64_t>(1))}; }
std::vector<Value> log_softmax_derivative(const Saved& s) {
  return {log_softmax_pullback(s.ct(), s.out(), s.arg<int64_t>(1))};
}

void add_forms(Table& t) {
  t.op("aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor")
      .doc("exp(x - max x) / Σ exp(x - max x) along dim; half_to_float gives float32.")
      .composed([](Value x, int64_t dim, bool half_to_float) {
        Value y = softmax(to_opmath(input_for("softmax", x, std::nullopt)), dim);
        return convert(y, half_to_float ? DType::Float32 : dtype_of(x));
      })
      .vjp(own_derivative(softmax_derivative))
      .samples({{floats(3, 5), -1, false}, {floats(3, 1, 4), 0, false}, {floats(0, 3), 1, false}});
  t.op("aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor")
      .doc("x - max x - log Σ exp(x - max x) along dim; half_to_float gives float32.")
      .composed([](Value x, int64_t dim, bool half_to_float) {
        Value y = log_softmax(to_opmath(input_for("log_softmax", x, std::nullopt)), dim);
        return convert(y, half_to_float ? DType::Float32 : dtype_of(x));
      })
      .vjp(own_derivative(log_softmax_derivative))
      .samples({{floats(3, 5), -1, false}, {floats(3, 1, 4), 0, false}, {floats(0, 3), 1, false}});
  t.op("aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
      .out(Out::Own)
      .doc("exp(x) / Σ exp(x) along dim, first converted to dtype.")
      .autocast(Autocast::None, Autocast::Float32ByDefault)
      .sparse(Sparse::Softmax)
      .packed({{floats(8, 8), 1}})
      .composed([](Value x, int64_t dim, std::optional<DType> dtype) {
        return call("aten::_softmax", {input_for("softmax", x, dtype), dim, false});
      })
      .samples({{floats(3, 5), -1}, {ints(3, 4), 0, DType::Float32}, {floats(2).strided(2), 0}});
  t.op("aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
      .out(Out::Own)
      .doc("log softmax along dim, of self first converted to dtype.")
      .autocast(Autocast::None, Autocast::Float32ByDefault)
      .sparse(Sparse::LogSoftmax)
      .packed({{floats(8, 8), 1}})
      .composed([](Value x, int64_t dim, std::optional<DType> dtype) {
        return call("aten::_log_softmax", {input_for("log_softmax", x, dtype), dim, false});
      })
      .samples({{floats(3, 5), -1}, {ints(3, 4), 0, DType::Float32}});
  t.op("aten::special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
      .out(Out::Own)
      .doc("exp(x) / Σ exp(x) along dim, first converted to dtype.")
      .autocast(Autocast::None, Autocast::Float32ByDefault)
      .composed([](Value x, int64_t dim, std::optional<DType> dtype) {
        return call("aten::_softmax", {input_for("softmax", x, dtype), dim, false});
      })
      .samples({{floats(3, 5), -1}});
  t.op("aten::special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor")
      .out(Out::Own)
      .doc("log softmax along dim, of self first converted to dtype.")
      .autocast(Autocast::None, Autocast::Float32ByDefault)
      .composed([](Value x, int64_t dim, std::optional<DType> dtype) {
        return call("aten::_log_softmax", {input_for("log_softmax", x, dtype), dim, false});
      })
      .samples({{floats(3, 5), -1}});
  t.op("aten::softmin.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
      .out(Out::Own)
      .doc("softmax of -self.")
      .not_in_pytorch()
      .composed([](Value x, int64_t dim, std::optional<DType> dtype) {
        return call("aten::_softmax", {-input_for("softmax", x, dtype), dim, false});
      })
      .samples({{floats(3, 5), -1}});
  t.op("aten::_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
      .out(Out::Own)
      .doc("softmax along dim; 0 where all of a row is -inf.")
      .composed([](Value x, int64_t dim, std::optional<DType> dtype) {
        Value in = input_for("softmax", x, dtype);
        Value y = call("aten::_softmax", {in, dim, false});
        Value masked = reduce(eq(in, -kInf), along(in, dim), true, "and");
        return where(masked, zeros_like(y), y);
      })
      .vjp(own_derivative(softmax_derivative))
      .samples({{floats(3, 5), -1}});
}

// Of a softmax that widened its operand; another input_dtype says nothing.
DType operand_dtype(Value ct, DType given) {
  return is_reduced_floating(given) && dtype_of(ct) == DType::Float32 ? given : dtype_of(ct);
}

void add_pullbacks(Table& t) {
  t.op("aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor")
      .doc("The derivative of softmax, from its result.")
      .composed([](Value ct, Value y, int64_t dim, DType dtype) {
        check_same_shape("_softmax_backward_data", ct, y);
        return convert(softmax_pullback(to_opmath(ct), to_opmath(y), dim), operand_dtype(ct, dtype));
      })
      .one_dtype({"grad_output", "output"})
      .samples({{floats(3, 5), floats(3, 5).in(0, 1), -1, DType::Float32}});
  t.op("aten::_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor")
      .doc("The derivative of log_softmax, from its result.")
      .composed([](Value ct, Value y, int64_t dim, DType dtype) {
        check_same_shape("_log_softmax_backward_data", ct, y);
        return convert(log_softmax_pullback(to_opmath(ct), to_opmath(y), dim), operand_dtype(ct, dtype));
      })
      .one_dtype({"grad_output", "output"})
      .samples({{floats(3, 5), floats(3, 5), -1, DType::Float32}});
}

}  // namespace

void add_softmax(Table& t) {
  add_forms(t);
  add_pullbacks(t);
}

}  // namespace brasa::ops
