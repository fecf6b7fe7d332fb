#include <cmath>

#include "ops/attention.h"
#include "ops/attention_math.h"
#include "ops/decompose.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "ops/softmax.h"
#include "support/error.h"

// Attention as PyTorch's own kernels name it, with its derivative, and as a target may compute it whole.
namespace brasa::ops {
namespace {

// --- flash attention ---

void check_without_dropout(double dropout) {
  BRASA_CHECK(dropout == 0, "_scaled_dot_product_flash_attention_for_cpu: Currently do not support dropout > 0, got ",
              dropout);
}

// Where it is not known, the example's answer becomes a fact.
bool is_long(Expr length, bool causal) {
  int64_t least = long_attention(causal);
  return same_size(ir::min(length, least), least);
}

// A call of prim::attention or its derivative, if the target takes one; its scale is given here. `heads` are operands [N, heads, length,
// features]. Kernels are made for a number of features: where it is not known, the example's becomes a fact.
std::optional<std::vector<Value>> by_target(const Row& row, Args args, const std::vector<size_t>& heads,
                                            std::optional<double> scale) {
  ir::Facts& facts = Builder::current().facts();
  auto at = [&](size_t i) { return args[i].get<Value>(); };
  AttentionNode call(args);
  Value q = at(call.query), k = at(call.query + 1);
  Expr features = facts.known(size_of(q, 3));
  if (!features.is_constant() && !facts.has_hint(features)) return std::nullopt;
  if (!features.is_constant()) features = facts.hint(features);
  args[call.scale] = scale.value_or(1 / std::sqrt(static_cast<double>(features.constant())));
  auto with_features = [](Value x, Expr count) {
    Shape shape = shape_of(x);
    shape[3] = count;
    return shape;
  };
  auto takes = [&](Expr count, std::optional<Expr> length = {}) {
    ir::Graph side;
    Args sample = args;
    for (size_t i = 0; i < args.size(); ++i)
      if (args[i].is<Value>()) sample[i] = side.add_input(type_of(at(i)));
    for (size_t i : heads) {
      Shape shape = with_features(at(i), count);
      if (length) shape[2] = *length;
      sample[i] = side.add_input({dtype_of(at(i)), shape, false});
    }
    return TargetScope::takes(row, sample);
  };
  if (!takes(features)) {
    // A program without the kernel is not one for fewer features: those have it, and a backward pass that reads other values.
    if (takes(1)) same_size(size_of(q, 3), features);
    return std::nullopt;
  }
  if (!takes(features, 1) && !(is_long(size_of(q, 2), call.causal) && is_long(size_of(k, 2), call.causal)))
    return std::nullopt;
  for (size_t i : heads) {
    if (!same_size(size_of(at(i), 3), features)) return std::nullopt;
    args[i] = prim::reshape(at(i), with_features(at(i), features));
  }
  return Builder::current().call(row, std::move(args));
}
Arg optional_arg(Value v) { return v ? Arg(v) : Arg(); }
Value optional_value(const Arg& a) { return a.is_none() ? Value{} : a.get<Value>(); }
Arg mask_of_scores(Value mask, const Shape& scores) { return mask ? Arg(broadcast_to(mask, scores)) : Arg(); }

std::array<Value, 2> attended(const HeadAttention& a) {
  AttentionOperands o = attention_operands(a);
  if (auto whole = attention_of_target(a)) return *whole;
  return attention_by_scores(o, a.query, a.value);
}

std::array<Value, 4> cotangents(const HeadAttention& a, const AttentionOperands& o, Value g, Value log_sum,
                                Value inner) {
  auto [dq, dk, dv, added] = attention_cotangents(o, g, log_sum, inner);
  return {convert(dq, dtype_of(a.query)), convert(dk, dtype_of(a.key)), convert(dv, dtype_of(a.value)), added};
}

// --- attention that a target computes whole: prim::attention and its derivative, with heads beside each other in their results ---

Value heads_inside(Value v) { return transpose(v, 1, 2); }
// The same of what a target gave, whose number of features is known.
Value heads_inside(Value v, const Shape& shape) { return prim::reshape(heads_inside(v), shape); }

std::array<Value, 2> whole(Value q, Value k, Value v, Value mask, Value random, bool causal, double scale,
                           double dropout) {
  HeadAttention a{q, k, v, mask, causal, scale, random, dropout};
  auto [out, log_sum] = attention_by_scores(attention_operands(a), q, v);
  return {heads_inside(out), log_sum};
}
std::vector<Value> whole_backward(Value g, Value q, Value k, Value v, Value out, Value log_sum, Value mask,
                                  Value random, bool causal, double scale, double dropout,
                                  std::optional<std::vector<int64_t>> summed) {
  HeadAttention a{q, k, v, mask, causal, scale, random, dropout};
  auto [dq, dk, dv, added] = cotangents(a, attention_operands(a), g, log_sum, attention_inner(g, {}, out));
  std::vector<Value> all = {heads_inside(dq), heads_inside(dk), heads_inside(dv)};
  if (summed) all.push_back(summed->empty() ? added : sum(added, *summed, true));
  return all;
}

// --- derivatives: of operands as they are, as a target multiplies narrow floats as such ---

// The dimensions of the scores that a mask has not, or has only one of.
std::vector<Expr> summed_for(Value mask, const Shape& scores) {
  std::vector<Expr> dims;
  int64_t missing = 4 - rank_of(mask);
  for (int64_t d = 0; d < 4; ++d)
    if (d < missing || (same_size(size_of(mask, d - missing), 1) && !same_size(scores[d], 1))) dims.emplace_back(d);
  return dims;
}

// The cotangents of query, key and value, and of an added mask if it needs one.
std::array<Value, 4> pulled_back(const HeadAttention& a, Value g, Value out, Value log_sum, bool needs_mask) {
  constexpr const char* op = "_scaled_dot_product_flash_attention_for_cpu_backward";
  const auto& [q, k, v] = std::tie(a.query, a.key, a.value);
  AttentionOperands o = attention_operands(a);
  for (Value x : {g, out}) check_same_shape(op, x, q);
  check_rank(op, "logsumexp", log_sum, 3);
  for (int64_t d = 0; d < 3; ++d)
    BRASA_CHECK(same_size(size_of(log_sum, d), size_of(q, d)), op, ": expected a logarithm for each row of ",
                type_of(q), ", got ", type_of(log_sum));
  Arg summed = needs_mask ? Arg(summed_for(a.mask, o.scores)) : Arg();
  auto of_mask = [&](Value sum) { return convert(sum_to(sum, shape_of(a.mask)), dtype_of(a.mask)); };
  Args args = {
      g,        q,     k,         v,     out, log_sum, mask_of_scores(a.mask, o.scores), optional_arg(a.random),
      a.causal, Arg(), a.dropout, summed};
  if (auto by = by_target(at("prim::attention_backward"), std::move(args), {1, 2, 3, 0, 4}, a.scale))
    return {heads_inside((*by)[0], shape_of(q)), heads_inside((*by)[1], shape_of(k)),
            heads_inside((*by)[2], shape_of(v)), needs_mask ? of_mask((*by)[3]) : Value{}};
  auto [dq, dk, dv, added] = cotangents(a, o, g, log_sum, attention_inner(g, {}, out));
  return {dq, dk, dv, needs_mask ? of_mask(added) : Value{}};
}

// The logarithms' cotangent adds to what the output's gives, so that all that this reads is read with it, too. That is computed from all
// scores.
std::vector<Value> differentiated(const HeadAttention& a, Value out, Value log_sum, std::span<const Value> cts,
                                  bool needs_mask) {
  needs_mask = needs_mask && a.mask && is_floating(dtype_of(a.mask));
  Value g = cts[0] ? convert(cts[0], dtype_of(a.query)) : zeros_like(out);
  auto all = pulled_back(a, g, out, log_sum, needs_mask);
  if (cts[1]) {
    Value none = zeros_like(g);
    auto by_log = cotangents(a, attention_operands(a), none, log_sum, attention_inner(none, cts[1], out));
    for (size_t i : {0, 1}) all[i] = all[i] + by_log[i];
    if (needs_mask) all[3] = all[3] + convert(sum_to(by_log[3], shape_of(a.mask)), dtype_of(a.mask));
  }
  std::vector<Value> each(all.begin(), all.begin() + 3);
  if (a.mask) each.push_back(all[3]);
  if (a.random) each.emplace_back();
  return each;
}

Value result(const Node& n, uint32_t i) { return const_cast<Node&>(n).out(i); }

std::vector<Value> whole_vjp(const Node& n, std::span<const Value> cts, const std::vector<bool>& needs) {
  AttentionNode call(n.args);
  HeadAttention a{n.arg<Value>(0),
                  n.arg<Value>(1),
                  n.arg<Value>(2),
                  optional_value(n.args[call.mask]),
                  call.causal,
                  n.arg<double>(call.scale),
                  optional_value(n.args[call.random]),
                  call.dropout};
  const Value inside[] = {cts[0] ? heads_inside(cts[0]) : Value{}, cts[1]};
  return differentiated(a, heads_inside(result(n, 0)), result(n, 1), inside, a.mask && needs[3]);
}

std::array<Value, 2> flash(Value q, Value k, Value v, double dropout, bool causal, Value mask,
                           std::optional<double> scale) {
  check_without_dropout(dropout);
  return attended({q, k, v, mask, causal, scale});
}
std::array<Value, 3> flash_backward(Value g, Value q, Value k, Value v, Value out, Value log_sum, double dropout,
                                    bool causal, Value mask, std::optional<double> scale) {
  check_without_dropout(dropout);
  auto [dq, dk, dv, none] = pulled_back({q, k, v, mask, causal, scale}, g, out, log_sum, false);
  return {dq, dk, dv};
}
std::vector<Value> flash_vjp(const Node& n, std::span<const Value> cts, const std::vector<bool>& needs) {
  HeadAttention a{n.arg<Value>(0),           n.arg<Value>(1), n.arg<Value>(2),
                  optional_value(n.args[5]), n.arg<bool>(4),  detail::From<std::optional<double>>::get(n.args[6])};
  return differentiated(a, result(n, 0), result(n, 1), cts, needs.back());
}

// With dropout, of which PyTorch has no such row.
std::array<Value, 2> with_dropout(Value q, Value k, Value v, Value mask, Value random, double dropout, bool causal,
                                  std::optional<double> scale) {
  return attended({q, k, v, mask, causal, scale, random, dropout});
}
std::vector<Value> with_dropout_vjp(const Node& n, std::span<const Value> cts, const std::vector<bool>& needs) {
  HeadAttention a{n.arg<Value>(0),           n.arg<Value>(1), n.arg<Value>(2),
                  optional_value(n.args[3]), n.arg<bool>(6),  detail::From<std::optional<double>>::get(n.args[7]),
                  n.arg<Value>(4),           n.arg<double>(5)};
  return differentiated(a, result(n, 0), result(n, 1), cts, a.mask && needs[3]);
}

// --- masked attention that a target computes whole; `at` names a row of keys and values in whose place others stand ---

Value with_row(Value x, Value at, Value row) {
  Value place = prim::reshape(at, {1}), update = prim::transpose(row, {2, 0, 1, 3});
  return prim::scatter(x, {place}, update, {2}, "");
}
Value masked(Value q, Value k, Value v, Value mask, double scale, Value at, Value key_row, Value value_row) {
  if (at) {
    k = with_row(k, at, key_row);
    v = with_row(v, at, value_row);
  }
  return heads_inside(attention_by_scores(attention_operands({q, k, v, mask, false, scale}), q, v)[0]);
}

Type heads_type(const Type& t) { return {t.dtype, {t.shape[0], t.shape[2], t.shape[1], t.shape[3]}, false}; }
void check_mask(const char* primitive, const Arg& mask) {
  if (mask.is_none()) return;
  const Type& t = ir::type_of(mask.get<Value>());
  BRASA_CHECK(t.rank() == 4 && (t.dtype == DType::Bool || is_floating(t.dtype)), primitive,
              ": expected a mask of the scores' 4 dimensions of bools or floats, got ", t);
}
std::vector<Type> whole_type(const Args& args) {
  const Type& q = ir::type_of(args[0].get<Value>());
  BRASA_CHECK(q.rank() == 4, "prim::attention: expected heads of 4 dimensions, got ", q);
  check_mask("prim::attention", args[3]);
  return {heads_type(q), {opmath(q.dtype), {q.shape[0], q.shape[1], q.shape[2]}, false}};
}
std::vector<Type> whole_backward_type(const Args& args) {
  AttentionNode call(args);
  check_mask("prim::attention_backward", args[call.mask]);
  std::vector<Type> out;
  for (size_t i : {1, 2, 3}) {
    const Type& t = ir::type_of(args[i].get<Value>());
    BRASA_CHECK(t.rank() == 4, "prim::attention_backward: expected heads of 4 dimensions, got ", t);
    out.push_back(heads_type(t));
  }
  if (!call.summed) return out;
  BRASA_CHECK(!args[call.mask].is_none(), "prim::attention_backward: expected a mask to sum up a gradient for");
  Type by_mask = ir::type_of(args[call.mask].get<Value>());
  by_mask.dtype = opmath(ir::type_of(args[call.query].get<Value>()).dtype);
  for (int64_t d : *call.summed) by_mask.shape.at(static_cast<size_t>(d)) = 1;
  out.push_back(by_mask);
  return out;
}

std::vector<Type> masked_type(const Args& args) {
  const Type &q = ir::type_of(args[0].get<Value>()), &mask = ir::type_of(args[3].get<Value>());
  BRASA_CHECK(q.rank() == 4 && mask.rank() == 4 && mask.dtype == DType::Bool,
              "prim::masked_attention: expected heads of 4 dimensions and a mask of bools, got ", q, " and ", mask);
  return {heads_type(q)};
}

// What other kernels give beside these: nothing for cumulated lengths, and no random numbers were drawn.
Value nothing() { return no_result(DType::Int64); }
Value no_seed() { return full(0, {}, DType::Int64); }

std::vector<Value> on_cpu(Value q, Value k, Value v, double dropout, bool causal, Value mask,
                          std::optional<double> scale) {
  Arg factor = scale ? Arg(*scale) : Arg();
  return call_all("aten::_scaled_dot_product_flash_attention_for_cpu",
                  {q, k, v, dropout, causal, mask ? Arg(mask) : Arg(), factor});
}

std::vector<Value> flash_of_gpu(Value q, Value k, Value v, double dropout, bool causal, bool,
                                std::optional<double> scale) {
  std::vector<Value> r = on_cpu(q, k, v, dropout, causal, {}, scale);
  return {r[0],
          r[1],
          nothing(),
          nothing(),
          size_tensor(size_of(q, 2), {}),
          size_tensor(size_of(k, 2), {}),
          no_seed(),
          no_seed(),
          no_result(dtype_of(q))};
}

std::array<Value, 4> efficient(Value q, Value k, Value v, Value bias, bool, double dropout, bool causal,
                               std::optional<double> scale) {
  std::vector<Value> r = on_cpu(q, k, v, dropout, causal, bias, scale);
  return {r[0], r[1], no_seed(), no_seed()};
}

std::vector<Value> efficient_backward(Value g, Value q, Value k, Value v, Value bias, Value out, Value log_sum, Value,
                                      Value, double dropout, std::vector<bool> mask, bool causal,
                                      std::optional<double> scale) {
  check_without_dropout(dropout);
  bool needs_mask = mask.at(3) && bias;
  auto all = pulled_back({q, k, v, bias, causal, scale}, g, out, log_sum, needs_mask);
  Value none = no_result(dtype_of(q));
  return {mask[0] ? all[0] : none, mask[1] ? all[1] : none, mask[2] ? all[2] : none, needs_mask ? all[3] : none};
}

}  // namespace

AttentionNode::AttentionNode(const Args& args)
    : backward(args.size() > 8),
      query(backward ? 1 : 0),
      mask(backward ? 6 : 3),
      random(mask + 1),
      scale(mask + 3),
      causal(args[mask + 2].get<bool>()),
      dropout(args[mask + 4].get<double>()) {
  if (backward) summed = detail::From<std::optional<std::vector<int64_t>>>::get(args[mask + 5]);
}

std::optional<std::array<Value, 2>> attention_of_target(const HeadAttention& a) {
  const auto& [q, k, v] = std::tie(a.query, a.key, a.value);
  if (rank_of(q) != 4 || rank_of(k) != 4 || rank_of(v) != 4) return std::nullopt;
  if (a.mask && (rank_of(a.mask) > 4 || !is_mask_for(dtype_of(a.mask), dtype_of(q)))) return std::nullopt;
  if (!same_size(size_of(q, 3), size_of(v, 3))) return std::nullopt;
  for (int64_t d = 0; d < 2; ++d)
    if (!same_size(size_of(q, d), size_of(k, d)) || !same_size(size_of(q, d), size_of(v, d))) return std::nullopt;
  Shape scores = {size_of(q, 0), size_of(q, 1), size_of(q, 2), size_of(k, 2)};
  Args args = {q, k, v, mask_of_scores(a.mask, scores), optional_arg(a.random), a.causal, Arg(), a.dropout};
  auto whole = by_target(at("prim::attention"), std::move(args), {0, 1, 2}, a.scale);
  if (!whole) return std::nullopt;
  return std::array{heads_inside((*whole)[0], shape_of(q)), (*whole)[1]};
}

std::optional<Value> masked_attention_of_target(Value q, Value k, Value v, Value mask, std::optional<double> scale) {
  const Row& row = at("prim::masked_attention");
  if (rank_of(q) != 4 || rank_of(k) != 4 || rank_of(v) != 4 || rank_of(mask) > 4) return std::nullopt;
  auto features = size_of(q, 3).maybe_constant();
  while (rank_of(mask) < 4) mask = unsqueeze(mask, 0);
  if (dtype_of(mask) != DType::Bool || !features || *features == 0) return std::nullopt;
  Args args = {q, k, v, mask, scale.value_or(1 / std::sqrt(static_cast<double>(*features))), Arg(), Arg(), Arg()};
  if (!TargetScope::takes(row, args)) return std::nullopt;
  for (int64_t d = 0; d < 2; ++d)
    if (!same_size(size_of(q, d), size_of(k, d)) || !same_size(size_of(q, d), size_of(v, d))) return std::nullopt;
  args[3] = broadcast_to(mask, {size_of(q, 0), size_of(q, 1), size_of(q, 2), size_of(k, 2)});
  return heads_inside(Builder::current().call(row, std::move(args))[0]);
}

void add_attention_kernels(Table& t) {
  const TensorSample q = floats(2, 2, 3, 4), k = floats(2, 2, 5, 4);
  t.prim(
       "attention(Tensor query, Tensor key, Tensor value, Tensor? mask, Tensor? random, bool causal, float scale, float dropout) -> (Tensor output, Tensor log_sum)")
      .doc(
          "softmax(query · keyᵀ · scale + mask) · value as [N, length, heads, features], and the logarithms of the sums of exponentials. A mask of bools is true where to attend; `random` is the key of the numbers that dropout draws, one for each score.")
      .kind(Kind::Whole)
      .type(whole_type)
      .composed(whole)
      .vjp(whole_vjp)
      .samples({{q, k, k, ir::None{}, ir::None{}, false, 0.5, 0.0},
                {q, q, q, ir::None{}, ir::None{}, true, 0.5, 0.0},
                {q, k, k, bools(2, 2, 3, 5), ir::None{}, false, 0.5, 0.0},
                {q, k, k, floats(2, 2, 3, 5), ints(2), false, 0.5, 0.25}});
  t.prim(
       "attention_backward(Tensor ct, Tensor query, Tensor key, Tensor value, Tensor output, Tensor log_sum, Tensor? mask, Tensor? random, bool causal, float scale, float dropout, int[]? summed) -> (Tensor by_query, Tensor by_key, Tensor by_value)")
      .doc(
          "The cotangents of query, key and value for `ct` of attention's output; behind them that of an added mask, summed up over these dimensions, if they are given.")
      .kind(Kind::Whole)
      .type(whole_backward_type)
      .composed(whole_backward)
      .samples({{q, q, k, k, q, floats(2, 2, 3).in(2, 3), ir::None{}, ir::None{}, false, 0.5, 0.0, ir::None{}},
                {q, q, k, k, q, floats(2, 2, 3).in(2, 3), bools(2, 2, 3, 5), ints(2), false, 0.5, 0.25, ir::None{}},
                {q, q, k, k, q, floats(2, 2, 3).in(2, 3), floats(2, 2, 3, 5), ir::None{}, false, 0.5, 0.0,
                 std::vector<Expr>{0, 2}}});
  t.prim(
       "masked_attention(Tensor query, Tensor key, Tensor value, Tensor mask, float scale, Tensor? at=None, Tensor? key_row=None, Tensor? value_row=None) -> Tensor")
      .doc(
          "softmax(query · keyᵀ · scale) · value over what the mask is true for, as [N, length, heads, features]; with key_row and value_row in the place of row `at` of keys and values.")
      .kind(Kind::Whole)
      .type(masked_type)
      .composed(masked)
      .samples({{q, k, k, bools(2, 2, 3, 5), 0.5, ir::None{}, ir::None{}, ir::None{}}});
  t.op("aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)")
      .doc("softmax(query · keyᵀ · scale + mask) · value, and the logarithm of each row's sum of exponentials.")
      .costly()
      .composed(flash)
      .vjp(flash_vjp)
      .samples({{q, k, k}, {q, q, q, 0.0, true, floats(3, 3), 0.5}});
  t.op("aten::_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)")
      .doc("The derivatives of attention by query, key and value (Dao et al. 2022).")
      .composed(flash_backward)
      .samples({{q, q, k, k, q, floats(2, 2, 3).in(2, 3), 0.0, true}});
  t.op("brasa::attention_with_dropout(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, Tensor random, float dropout_p, bool is_causal=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp)")
      .doc(
          "dropout(softmax(query · keyᵀ · scale + mask)) · value, and the logarithm of each row's sum of exponentials; `random` is the key of the numbers that are drawn.")
      .costly()
      .composed(with_dropout)
      .vjp(with_dropout_vjp)
      .samples({{q, k, k, ir::None{}, ints(2), 0.25}, {q, q, q, floats(3, 3), ints(2), 0.5, true, 0.5}});
  const char* gpu = "As _scaled_dot_product_flash_attention_for_cpu, as graphs for a GPU name it; without dropout.";
  const char* gpu_backward = "The derivatives of attention by query, key and value, as graphs for a GPU name it.";
  const TensorSample none = tensor(DType::Int64, {0}), seed = tensor(DType::Int64, {});
  t.op("aten::_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor rng_state, Tensor unused, Tensor debug_attn_mask)")
      .doc(gpu)
      .autocast(Autocast::None, Autocast::Lower)
      .composed(flash_of_gpu)
      .samples({{q, k, k}, {q, q, q, 0.0, true, false, 0.5}});
  t.op("aten::_scaled_dot_product_flash_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool is_causal, Tensor philox_seed, Tensor philox_offset, *, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)")
      .doc(gpu_backward)
      .composed([](Value g, Value q, Value k, Value v, Value out, Value log_sum, Value, Value, Expr, Expr,
                   double dropout, bool causal, Value, Value, std::optional<double> scale) {
        return flash_backward(g, q, k, v, out, log_sum, dropout, causal, {}, scale);
      })
      .samples({{q, q, k, k, q, floats(2, 2, 3).in(2, 3), none, none, 3, 5, 0.0, true, seed, seed}});
  t.op("aten::_scaled_dot_product_efficient_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool compute_log_sumexp, float dropout_p=0.0, bool is_causal=False, *, float? scale=None) -> (Tensor output, Tensor log_sumexp, Tensor philox_seed, Tensor philox_offset)")
      .doc(gpu)
      .composed(efficient)
      .samples({{q, k, k, ir::None{}, true}, {q, q, q, floats(3, 3), true, 0.0, true, 0.5}});
  t.op("aten::_scaled_dot_product_efficient_attention_backward(Tensor grad_out_, Tensor query, Tensor key, Tensor value, Tensor? attn_bias, Tensor out, Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, float dropout_p, bool[4] grad_input_mask, bool is_causal=False, *, float? scale=None) -> (Tensor, Tensor, Tensor, Tensor)")
      .doc(gpu_backward)
      .composed(efficient_backward)
      .samples({{q, q, k, k, floats(3, 5), q, floats(2, 2, 3).in(2, 3), seed, seed, 0.0,
                 std::vector<bool>{true, true, true, true}}});
  add_multi_head(t);
}

}  // namespace brasa::ops
