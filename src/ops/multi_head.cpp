#include <cmath>

#include "ops/attention.h"
#include "ops/attention_math.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// The multi-head attention of nn.TransformerEncoder, and the masked softmax in it.
namespace brasa::ops {
namespace {

// --- masked softmax: a mask is true where nothing is attended to ---

// A mask of type 0 is [length, length] and one of type 1 [batch, length], for scores [batch, heads, length, length].
Value full_mask(Value mask, Value x, std::optional<int64_t> type) {
  BRASA_CHECK(dtype_of(mask) == DType::Bool, "_masked_softmax: Mask should be a boolean tensor, got ", type_of(mask));
  if (type && rank_of(mask) == 2 && rank_of(x) == 4) {
    bool padding = *type == 1;
    Shape shape = {padding ? size_of(mask, 0) : Expr(1), Expr(1), padding ? Expr(1) : size_of(mask, 0),
                   size_of(mask, 1)};
    mask = prim::reshape(mask, shape);
  }
  bool same = rank_of(mask) == rank_of(x);
  for (int64_t d = 0; same && d < rank_of(x); ++d) same = same_size(size_of(mask, d), size_of(x, d));
  BRASA_CHECK(type.value_or(2) != 2 || same,
              "_masked_softmax: For mask_type == 2 mask shape should match input shape, got ", type_of(mask), " and ",
              type_of(x));
  return broadcast_to(mask, shape_of(x));
}

Value masked_softmax(Value x, Value mask, std::optional<int64_t> dim, std::optional<int64_t> type) {
  BRASA_CHECK(is_floating(dtype_of(x)), "_masked_softmax: expected floating scores, got ", type_of(x));
  Value hidden = full_mask(mask, x, type);
  if (rank_of(x) == 0) return call("aten::softmax.int", {x, 0, Arg()});
  Value masked = where(hidden, constant_like(x, -kInfinity), x);
  return call("aten::softmax.int", {masked, wrap_dim(dim.value_or(rank_of(x) - 1), rank_of(x)), Arg()});
}

Value masked_softmax_backward(Value g, Value out, Value mask, std::optional<int64_t> dim) {
  check_same_shape("_masked_softmax_backward", g, out);
  Value wide = broadcast_to(mask, shape_of(out)), none = zeros_like(out);
  Value product = where(wide, none, g * out);
  if (rank_of(out) == 0) return none;
  Value total = sum(product, {wrap_dim(dim.value_or(rank_of(out) - 1), rank_of(out))}, true);
  return where(wide, none, product - out * total);
}

// --- multi-head attention ---

std::array<Value, 2> multi_head(Value q, Value k, Value v, int64_t embed, int64_t heads, Value qkv_weight,
                                Value qkv_bias, Value proj_weight, Value proj_bias, Value mask, bool need_weights,
                                bool average, std::optional<int64_t> mask_type) {
  constexpr const char* op = "_native_multi_head_attention";
  for (Value x : {q, k, v})
    BRASA_CHECK(rank_of(x) == 3 && same_size(size_of(x, 2), embed), op, ": expected 3-D query, key and value with ",
                embed, " features, got ", type_of(x));
  BRASA_CHECK(heads > 0 && embed % heads == 0, op, ": embed_dim ", embed, " must be divisible by num_head ", heads);
  BRASA_CHECK(rank_of(qkv_weight) == 2 && same_size(size_of(qkv_weight, 0), 3 * embed) && rank_of(qkv_bias) == 1 &&
                  same_size(size_of(qkv_bias, 0), 3 * embed),
              op, ": expected qkv_weight and qkv_bias of ", 3 * embed, " rows, got ", type_of(qkv_weight), " and ",
              type_of(qkv_bias));
  auto projected = [&](Value x, int64_t part) {
    Value y =
        call("aten::linear", {x, narrow(qkv_weight, 0, part * embed, embed), narrow(qkv_bias, 0, part * embed, embed)});
    return transpose(split_dim(y, 2, {Expr(heads), Expr(embed / heads)}), 1, 2);
  };
  Value query = projected(q, 0) * (1 / std::sqrt(static_cast<double>(embed / heads)));
  Value s = prim::dot_general(query, projected(k, 1), {3}, {3}, {0, 1}, {0, 1});
  Value p = mask ? masked_softmax(s, mask, 3, mask_type) : call("aten::softmax.int", {s, 3, Arg()});
  Value out = prim::dot_general(p, projected(v, 2), {3}, {2}, {0, 1}, {0, 1});
  out = merge_dims(transpose(out, 1, 2), 2, 3);
  out = call("aten::linear", {out, proj_weight, proj_bias});
  if (!need_weights) return {out, no_result(dtype_of(out))};
  return {out, average ? mean(p, {1}) : p};
}

// nn.TransformerEncoderLayer without dropout.
Value encoder_layer(Value x, int64_t embed, int64_t heads, Value qkv_weight, Value qkv_bias, Value proj_weight,
                    Value proj_bias, bool use_gelu, bool norm_first, double eps, Value norm_weight_1, Value norm_bias_1,
                    Value norm_weight_2, Value norm_bias_2, Value weight_1, Value bias_1, Value weight_2, Value bias_2,
                    Value mask, std::optional<int64_t> mask_type) {
  auto norm = [&](Value v, Value weight, Value bias) {
    return call("aten::layer_norm", {v, std::vector<Expr>{Expr(embed)}, weight, bias, eps});
  };
  auto attended = [&](Value v) {
    return multi_head(v, v, v, embed, heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, false, true,
                      mask_type)[0];
  };
  auto forward = [&](Value v) {
    Value y = call("aten::linear", {v, weight_1, bias_1});
    return call("aten::linear",
                {use_gelu ? call("aten::gelu", {y, "none"}) : call("aten::relu", {y}), weight_2, bias_2});
  };
  if (norm_first) {
    x = x + attended(norm(x, norm_weight_1, norm_bias_1));
    return x + forward(norm(x, norm_weight_2, norm_bias_2));
  }
  x = norm(x + attended(x), norm_weight_1, norm_bias_1);
  return norm(x + forward(x), norm_weight_2, norm_bias_2);
}

std::array<Value, 3> rescaled_qkv(Value qkv, Value bias, int64_t heads) {
  constexpr const char* op = "_transform_bias_rescale_qkv";
  check_rank(op, "qkv", qkv, 3);
  BRASA_CHECK(rank_of(bias) == 1 && same_size(size_of(bias, 0), size_of(qkv, 2)) && heads > 0 &&
                  same_size(ir::mod(size_of(qkv, 2), Expr(heads) * 3), 0),
              op, ": expected a bias for each feature and features for ", heads, " heads of q, k and v, got ",
              type_of(qkv), " and ", type_of(bias));
  Expr features = ir::floordiv(size_of(qkv, 2), Expr(heads) * 3);
  Value all = split_dim(qkv + bias, 2, {Expr(3), Expr(heads), features});
  std::array<Value, 3> out;
  for (int64_t i = 0; i < 3; ++i) out[i] = transpose(squeeze(narrow(all, 2, i, 1), 2), 1, 2);
  out[0] = out[0] * rsqrt(size_tensor(features, {}, dtype_of(out[0])));
  return out;
}

}  // namespace

void add_multi_head(Table& t) {
  t.op("aten::_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor")
      .doc("The softmax of what the mask leaves; it is true where nothing is attended to.")
      .composed_in_opmath(masked_softmax)
      .samples({{floats(3, 4), tensor(DType::Bool, {3, 4}).in(0, 1), 1},
                {floats(2, 1, 3, 3), tensor(DType::Bool, {3, 3}).in(0, 1), 3, 0}});
  t.op("aten::_masked_softmax_backward(Tensor grad_output, Tensor output, Tensor mask, int? dim=None) -> Tensor")
      .doc("The derivative of _masked_softmax.")
      .composed_in_opmath(masked_softmax_backward)
      .samples({{floats(3, 4), floats(3, 4), bools(3, 4), 1}});
  t.op("aten::_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)")
      .doc("Multi-head attention (Vaswani et al. 2017), batch first, and its weights, of all heads or their mean.")
      .autocast(Autocast::Lower, Autocast::None)
      .composed_in_opmath(multi_head)
      .samples({{floats(2, 3, 4), floats(2, 3, 4), floats(2, 3, 4), 4, 2, floats(12, 4), floats(12), floats(4, 4),
                 floats(4)}});
  const TensorSample row = floats(4), matrix = floats(4, 4);
  t.op("aten::_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor")
      .doc("nn.TransformerEncoderLayer in evaluation (Vaswani et al. 2017), batch first.")
      .composed_in_opmath(encoder_layer)
      .samples({{floats(2, 3, 4), 4, 2, floats(12, 4), floats(12), matrix, row, true, false, 1e-5, row, row, row, row,
                 matrix, row, matrix, row},
                {floats(1, 3, 4), 4, 2, floats(12, 4), floats(12), matrix, row, false, true, 1e-5, row, row, row, row,
                 matrix, row, matrix, row}});
  t.op("aten::_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, int num_heads) -> (Tensor, Tensor, Tensor)")
      .doc("qkv + bias as query, key and value by heads; the query divided by the root of its features.")
      .composed_in_opmath(rescaled_qkv)
      .samples({{floats(2, 3, 12), floats(12), 2}});
}

}  // namespace brasa::ops
