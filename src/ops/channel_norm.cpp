#include "ops/rows.h"
#include "ops/standardize.h"

// Norms of images' channels: over a batch, an instance, or groups of channels.
namespace brasa::ops {
namespace {

using Three = std::array<Value, 3>;

// A value per channel beside [N, C, …].
Value by_channel(Value v, Value x) { return along(to_opmath(v), 1, rank_of(x)); }

Value channels_scaled(Value y, Value weight, Value bias) {
  if (weight) y = y * by_channel(weight, y);
  if (bias) y = y + by_channel(bias, y);
  return y;
}

Dims all_but_channels(Value x) {
  BRASA_CHECK(rank_of(x) >= 2, "batch_norm: expected at least 2D input (got ", type_of(x), ")");
  Dims dims = {0};
  for (int64_t d = 2; d < rank_of(x); ++d) dims.push_back(d);
  return dims;
}

struct BatchNorm {
  Value out, mean, rstd, running_mean, running_var;
};

// A running statistic after it was moved towards its present value, where there is one.
Value moved(Value running, Value now, Expr elements, const Number& momentum) {
  if (same_size(elements, 0)) return running;
  Value next = convert(to_opmath(running) * (1 - momentum) + call("aten::detach", {now}) * momentum, dtype_of(running));
  if (elements.is_constant()) return next;
  return where(eq(size_tensor(elements, shape_of(running)), 0), running, next);
}
Value unbiased_variance(Value x, Value mean, const Dims& dims) {
  Value centred = x - mean;
  return sum(centred * centred, dims) / (count(x, dims, dtype_of(x)) - 1);
}

BatchNorm batch_normalized(Value x, Value weight, Value bias, Value running_mean, Value running_var, bool training,
                           const Number& momentum, const Number& eps) {
  if (rank_of(x) == 1 && same_size(size_of(x, 0), 0)) return {x, x, x, running_mean, running_var};
  Dims dims = all_but_channels(x);
  Expr channels = size_of(x, 1);
  for (auto& [p, what] :
       {std::pair{weight, "weight"}, {bias, "bias"}, {running_mean, "running_mean"}, {running_var, "running_var"}})
    check_parameter("batch_norm", what, p, {channels});
  check_dtypes("batch_norm", x, {weight, bias, running_mean, running_var});
  Value wide = to_opmath(x);
  DType kept = statistics_dtype(x, weight, bias);
  if (!training) {
    BRASA_CHECK(running_mean && running_var,
                "batch_norm: expected running_mean and running_var to be defined when training=False");
    // x times a factor and plus an addend, both computed once for a channel.
    Value factor = rsqrt(to_opmath(running_var) + eps);
    if (weight) factor = factor * to_opmath(weight);
    Value addend = -to_opmath(running_mean) * factor;
    if (bias) addend = to_opmath(bias) + addend;
    Value none = prim::full(0, {Expr(0)}, kept);
    return {convert(channels_scaled(wide, factor, addend), dtype_of(x)), none, none, running_mean, running_var};
  }
  std::vector<Value> s = standardized(wide, dims, eps);
  Value m = prim::reshape(s[1], {channels}), rstd = prim::reshape(s[2], {channels});
  BatchNorm r{convert(channels_scaled(s[0], weight, bias), dtype_of(x)), convert(m, kept), convert(rstd, kept), {}, {}};
  Expr elements = type_of(x).numel();
  if (running_mean) r.running_mean = moved(running_mean, m, elements, momentum);
  if (running_var) {
    Value variance = prim::reshape(unbiased_variance(wide, s[1], dims), {channels});
    r.running_var = moved(running_var, variance, elements, momentum);
  }
  return r;
}

// The results, and behind them the new values of the running statistics where the call changes these.
std::vector<Value> with_updates(std::vector<Value> results, const BatchNorm& r, bool training) {
  if (training && r.running_mean && r.running_var) results.insert(results.end(), {r.running_mean, r.running_var});
  return results;
}

std::vector<Value> native_batch_norm(Value x, Value w, Value b, Value rm, Value rv, bool training,
                                     const Number& momentum, const Number& eps) {
  BatchNorm r = batch_normalized(x, w, b, rm, rv, training, momentum, eps);
  return with_updates({r.out, r.mean, r.rstd}, r, training);
}

// ∂L/∂(input, weight, bias) of a norm with these statistics per channel; in evaluation they are constants.
std::vector<Value> batch_norm_backward(Value g, Value x, Value weight, Value m, Value rstd, bool training,
                                       const std::vector<bool>& mask) {
  Dims dims = all_but_channels(x);
  constexpr const char* op = "batch_norm_backward";
  check_same_shape(op, g, x);
  for (auto& [p, what] : {std::pair{weight, "weight"}, {m, "mean"}, {rstd, "rstd"}})
    check_parameter(op, what, p, {size_of(x, 1)});
  DType parameters = weight ? dtype_of(weight) : dtype_of(x), own = dtype_of(x);
  g = to_opmath(g);
  x = to_opmath(x);
  rstd = by_channel(rstd, x);
  Value y = (x - by_channel(m, x)) * rstd;
  std::vector<Value> out = {no_result(own), no_result(parameters), no_result(parameters)};
  if (mask[0]) {
    // The sums are those of the other gradients.
    Value h = training ? g - mean(g, dims, true) - y * mean(g * y, dims, true) : g;
    out[0] = convert(h * (weight ? rstd * by_channel(weight, x) : rstd), own);
  }
  if (mask[1]) out[1] = convert(sum(g * y, dims), parameters);
  if (mask[2]) out[2] = convert(sum(g, dims), parameters);
  return out;
}

std::vector<Value> native_batch_norm_backward(Value g, Value x, Value weight, Value rm, Value rv, Value saved_mean,
                                              Value saved_rstd, bool training, const Number& eps,
                                              std::vector<bool> mask) {
  constexpr const char* op = "native_batch_norm_backward";
  check_dtypes(op, x, {weight, rm, rv});
  Value m, rstd;
  if (training) {
    check_parameter(op, "save_mean", saved_mean, {size_of(x, 1)});
    check_parameter(op, "save_invstd", saved_rstd, {size_of(x, 1)});
    // From x again, not from what was saved: they depend on x in a second derivative.
    std::vector<Value> s = standardized(to_opmath(x), all_but_channels(x), eps);
    m = prim::reshape(s[1], {size_of(x, 1)});
    rstd = prim::reshape(s[2], {size_of(x, 1)});
  } else {
    m = rm;
    rstd = rsqrt(to_opmath(rv) + eps);
  }
  return batch_norm_backward(g, x, weight, m, rstd, training, mask);
}

void check_groups(Value x, Expr groups) {
  BRASA_CHECK(rank_of(x) >= 2, "Expected at least 2 dimensions for input tensor but received ", rank_of(x));
  BRASA_CHECK(is_less(0, groups) && same_size(ir::mod(size_of(x, 1), groups), 0),
              "Expected number of channels in input to be divisible by num_groups, but got input of shape ",
              shape_of(x), " and num_groups=", groups);
}

// [N, C, …] as [N, G, C/G · …].
Value grouped(Value x, Expr groups) {
  Expr inner(1);
  for (int64_t d = 1; d < rank_of(x); ++d) inner = inner * size_of(x, d);
  return prim::reshape(x, {size_of(x, 0), groups, ir::floordiv(inner, groups)});
}

Three group_normalized(Value x, Value weight, Value bias, Expr groups, const Number& eps) {
  check_groups(x, groups);
  for (int64_t d = 1; d < rank_of(x); ++d)
    BRASA_CHECK(!same_size(size_of(x, d), 0), d == 1 ? "Expected number of channels" : "Expected HxW",
                " to be greater than 0, got an input of shape ", shape_of(x));
  check_parameter("group_norm", "weight", weight, {size_of(x, 1)});
  check_parameter("group_norm", "bias", bias, {size_of(x, 1)});
  check_dtypes("group_norm", x, {weight, bias});
  // [N, G, C/G, …], in which nothing is found by a division.
  Expr n = size_of(x, 0), each = ir::floordiv(size_of(x, 1), groups), rest(1);
  for (int64_t d = 2; d < rank_of(x); ++d) rest = rest * size_of(x, d);
  std::vector<Value> s = standardized(prim::reshape(to_opmath(x), {n, groups, each, rest}), {2, 3}, eps);
  auto in_groups = [&](Value p) { return prim::reshape(to_opmath(p), {Expr(1), groups, each, Expr(1)}); };
  Value y = s[0];
  if (weight) y = y * in_groups(weight);
  if (bias) y = y + in_groups(bias);
  DType kept = statistics_dtype(x, weight, bias);
  auto statistics = [&](Value v) { return convert(prim::reshape(v, {n, groups}), kept); };
  return {convert(prim::reshape(y, shape_of(x)), dtype_of(x)), statistics(s[1]), statistics(s[2])};
}

void check_elements(const char* op, Value x, Expr count) {
  BRASA_CHECK(same_size(type_of(x).numel(), count), op, ": expected N * C * HxW elements, ", count, ", got ",
              type_of(x));
}

std::vector<Value> group_norm_backward(Value g, Value x, Value m, Value rstd, Value weight, Expr n, Expr c, Expr rest,
                                       Expr groups, std::vector<bool> mask) {
  check_groups(x, groups);
  check_elements("native_group_norm_backward", x, n * c * rest);
  check_dtypes("native_group_norm_backward", x, {m, rstd, weight});
  Dims dims = all_but_channels(x);
  DType parameters = weight ? dtype_of(weight) : dtype_of(x), own = dtype_of(x);
  Shape shape = shape_of(x);
  check_same_shape("native_group_norm_backward", g, x);
  check_parameter("native_group_norm_backward", "weight", weight, {size_of(x, 1)});
  g = to_opmath(g);
  Value centre = unsqueeze(to_opmath(m), 2), scale = unsqueeze(to_opmath(rstd), 2);
  Standardized s = standardized_again(grouped(to_opmath(x), groups), {2}, centre, scale);
  Value y = s.y;
  std::vector<Value> out = {no_result(own), no_result(parameters), no_result(parameters)};
  if (mask[0]) {
    Value h = grouped(weight ? g * by_channel(weight, g) : g, groups);
    h = s.rstd * (h - mean(h, {2}, true) - y * mean(h * y, {2}, true));
    out[0] = convert(prim::reshape(h, shape), own);
  }
  if (mask[1]) out[1] = convert(sum(g * prim::reshape(y, shape), dims), parameters);
  if (mask[2]) out[2] = convert(sum(g, dims), parameters);
  return out;
}

std::vector<Value> instance_norm(Value x, Value weight, Value bias, Value rm, Value rv, bool use_input_stats,
                                 const Number& momentum, const Number& eps, bool) {
  if (!use_input_stats) return {batch_normalized(x, weight, bias, rm, rv, false, momentum, eps).out};
  BRASA_CHECK(rank_of(x) >= 3, "instance_norm: expected at least 3D input (got ", type_of(x), ")");
  for (auto& [p, what] : {std::pair{weight, "weight"}, {bias, "bias"}, {rm, "running_mean"}, {rv, "running_var"}})
    check_parameter("instance_norm", what, p, {size_of(x, 1)});
  check_dtypes("instance_norm", x, {weight, bias});
  Value wide = to_opmath(x);
  Dims dims = counted(2, rank_of(x) - 2);
  std::vector<Value> s = standardized(wide, dims, eps);
  BatchNorm r{convert(channels_scaled(s[0], weight, bias), dtype_of(x)), {}, {}, {}, {}};
  // The running statistics are those of the average sample.
  Shape each = {size_of(x, 0), size_of(x, 1)};
  if (rm) r.running_mean = moved(rm, mean(prim::reshape(s[1], each), {0}, false), type_of(x).numel(), momentum);
  if (rv)
    r.running_var = moved(rv, mean(unbiased_variance(wide, s[1], dims), {0}, false), type_of(x).numel(), momentum);
  return with_updates({r.out}, r, true);
}

const std::vector<Sample> kBatchNorm = {
    {floats(3, 2, 4), floats(2), floats(2), floats(2), floats(2).in(0.5, 2), true, 0.0, 1e-5},
    {floats(3, 2), floats(2), floats(2), floats(2), floats(2).in(0.5, 2), false, 0.1, 1e-5}};

void add_batch_norms(Table& t) {
  t.op("aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!)? running_mean, Tensor(b!)? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)")
      .doc("batch_norm, with the batch's mean and 1/√(variance + eps) of each channel (empty when not training).")
      .keeps_memory_format()
      .gradients_together()
      .composed(native_batch_norm)
      .samples(kBatchNorm);
  t.op("aten::_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)")
      .doc("native_batch_norm with running statistics.")
      .keeps_memory_format()
      .gradients_together()
      .composed(native_batch_norm)
      .samples(kBatchNorm);
  const std::vector<Sample> updated = {
      {floats(3, 2, 4), floats(2), floats(2), floats(2), floats(2).in(0.5, 2), 0.0, 1e-5}};
  const char* training =
      "native_batch_norm in training, and what another implementation would keep for its derivative (nothing)";
  t.op("aten::_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)")
      .doc(str(training, "."))
      .keeps_memory_format()
      .composed([](Value x, Value w, Value b, Value rm, Value rv, Number momentum, Number eps) {
        BatchNorm r = batch_normalized(x, w, b, rm, rv, true, momentum, eps);
        return with_updates({r.out, r.mean, r.rstd, no_result(DType::UInt8)}, r, true);
      })
      .samples(updated);
  t.op("aten::_batch_norm_with_update_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)")
      .doc(str(training, ", and the new running statistics."))
      .keeps_memory_format()
      .composed([](Value x, Value w, Value b, Value rm, Value rv, Number momentum, Number eps) {
        BatchNorm r = batch_normalized(x, w, b, rm, rv, true, momentum, eps);
        return std::array{r.out, r.mean, r.rstd, no_result(DType::UInt8), r.running_mean, r.running_var};
      })
      .samples(updated);
  t.op("aten::_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)")
      .doc("native_batch_norm by the running statistics, and what another implementation would keep (nothing).")
      .keeps_memory_format()
      .composed([](Value x, Value w, Value b, Value rm, Value rv, Number momentum, Number eps) {
        BatchNorm r = batch_normalized(x, w, b, rm, rv, false, momentum, eps);
        return std::array{r.out, r.mean, r.rstd, no_result(DType::UInt8)};
      })
      .samples(updated);
  t.op("aten::_batch_norm_impl_index(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!)? running_mean, Tensor(b!)? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> (Tensor, Tensor, Tensor, Tensor, int)")
      .doc(
          "native_batch_norm, what another implementation would keep for its derivative (nothing), and which one it is (0).")
      .keeps_memory_format()
      .composed([](Value x, Value w, Value b, Value rm, Value rv, bool training, Number momentum, Number eps, bool) {
        BatchNorm r = batch_normalized(x, w, b, rm, rv, training, momentum, eps);
        return with_updates({r.out, r.mean, r.rstd, no_result(DType::UInt8), scalar(0, DType::Int64)}, r, training);
      })
      .samples({{floats(3, 2), floats(2), floats(2), floats(2), floats(2).in(0.5, 2), false, 0.1, 1e-5, true}});
  t.op("aten::_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)")
      .doc("native_batch_norm, and the new running statistics.")
      .backward_node("NativeBatchNormBackward0")
      .gradients_together()
      .keeps_memory_format()
      .composed([](Value x, Value w, Value b, Value rm, Value rv, bool training, Number momentum, Number eps) {
        BatchNorm r = batch_normalized(x, w, b, rm, rv, training, momentum, eps);
        return std::array<Value, 5>{r.out, r.mean, r.rstd, r.running_mean, r.running_var};
      })
      // No gradient flows through the running statistics; with a momentum of 0 they do not depend on the input.
      .samples({{floats(3, 2, 4), floats(2), floats(2), floats(2), floats(2).in(0.5, 2), true, 0.0, 1e-5},
                {floats(3, 2), floats(2), floats(2), floats(2), floats(2).in(0.5, 2), false, 0.1, 1e-5}});
  t.op("aten::_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)")
      .doc("batch_norm by the running statistics.")
      .keeps_memory_format()
      .gradients_together()
      .composed([](Value x, Value w, Value b, Value rm, Value rv, Number momentum, Number eps) {
        return native_batch_norm(x, w, b, rm, rv, false, momentum, eps);
      })
      .samples({{floats(3, 2, 4), floats(2), floats(2), floats(2), floats(2).in(0.5, 2), 0.1, 1e-5}});
  t.op("aten::_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)")
      .doc("batch_norm by the batch's own statistics.")
      .keeps_memory_format()
      .gradients_together()
      .composed([](Value x, Value w, Value b, bool training, Number momentum, Number eps) {
        return native_batch_norm(x, w, b, {}, {}, training, momentum, eps);
      })
      .samples({{floats(3, 2, 4), floats(2), floats(2), true, 0.1, 1e-5}});
  t.op("aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!)? running_mean, Tensor(b!)? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor")
      .doc(
          "(x - mean)/√(variance + eps) · weight + bias of each channel (Ioffe & Szegedy 2015), by the batch's or the running "
          "statistics. Training moves the latter towards the former, in place.")
      .backward_node("NativeBatchNormBackward0")
      .gradients_together()
      .keeps_memory_format()
      .composed([](Value x, Value w, Value b, Value rm, Value rv, bool training, Number momentum, Number eps, bool) {
        BatchNorm r = batch_normalized(x, w, b, rm, rv, training, momentum, eps);
        return with_updates({r.out}, r, training);
      })
      .samples({{floats(3, 2, 4), floats(2), floats(2), floats(2), floats(2).in(0.5, 2), true, 0.0, 1e-5, true}});
  t.op("aten::instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!)? running_mean, Tensor(b!)? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor")
      .doc("batch_norm of each sample by itself (Ulyanov et al. 2016).")
      .gradients_together()
      .composed(instance_norm)
      .samples({{floats(3, 2, 4), floats(2), floats(2), ir::None{}, ir::None{}, true, 0.1, 1e-5, true}});
  t.op("aten::native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)")
      .doc("The gradients of batch_norm's input, weight and bias.")
      .composed(native_batch_norm_backward)
      .one_dtype({"grad_out", "input"})
      .samples({{floats(3, 2, 4), floats(3, 2, 4), floats(2), floats(2), floats(2).in(0.5, 2), floats(2), floats(2),
                 true, 1e-5, std::vector<bool>{true, true, true}}});
  t.op("aten::batch_norm_backward(Tensor grad_out, Tensor input, Tensor weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_var, bool update, float eps, bool[3] output_mask, Tensor reserve) -> (Tensor, Tensor, Tensor)")
      .doc("The gradients of batch_norm's input, weight and bias; save_var holds 1/√(variance + eps).")
      .composed([](Value g, Value x, Value w, Value rm, Value rv, Value m, Value rstd, bool training, Number eps,
                   std::vector<bool> mask,
                   Value) { return native_batch_norm_backward(g, x, w, rm, rv, m, rstd, training, eps, mask); })
      .one_dtype({"grad_out", "input"})
      .samples({{floats(3, 2, 4), floats(3, 2, 4), floats(2), floats(2), floats(2).in(0.5, 2), floats(2), floats(2),
                 true, 1e-5, std::vector<bool>{true, true, true}, tensor(DType::UInt8, {0})}});
}

void add_group_norms(Table& t) {
  t.op("aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)")
      .doc("group_norm, with the mean and 1/√(variance + eps) of each group.")
      .keeps_memory_format()
      .gradients_together()
      .composed([](Value x, Value w, Value b, Expr n, Expr c, Expr rest, Expr groups, Number eps) {
        check_elements("native_group_norm", x, n * c * rest);
        return group_normalized(x, w, b, groups, eps);
      })
      .samples({{floats(2, 4, 3), floats(4), floats(4), 2, 4, 3, 2, 1e-5}});
  t.op("aten::native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)")
      .doc("The gradients of group_norm's input, weight and bias.")
      .composed(group_norm_backward)
      .one_dtype({"grad_out", "input"})
      .samples({{floats(2, 4, 3), floats(2, 4, 3), floats(2, 2), floats(2, 2), floats(4), 2, 4, 3, 2,
                 std::vector<bool>{true, true, true}}});
  t.op("aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor")
      .doc(
          "(x - mean)/√(variance + eps) over groups of channels, then a scale and shift of each channel (Wu & He 2018).")
      .keeps_memory_format()
      .autocast(Autocast::None, Autocast::Float32)
      .backward_node("NativeGroupNormBackward0")
      .gradients_together()
      .composed([](Value x, Expr groups, Value w, Value b, Number eps, bool) {
        return group_normalized(x, w, b, groups, eps)[0];
      })
      .samples({{floats(2, 4, 3), 2, floats(4), floats(4)}, {floats(2, 3), 1}});
}

}  // namespace

void add_channel_norms(Table& t) {
  add_batch_norms(t);
  add_group_norms(t);
}

}  // namespace brasa::ops
