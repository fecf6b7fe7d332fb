#include "gpt.h"

#include <brasa/brasa.h>

namespace models {

using namespace brasa;

GPTBlockImpl::GPTBlockImpl(int64_t width, int64_t heads) : heads(heads) {
  l1 = register_module("l1", nn::LayerNorm(nn::LayerNormOptions({width})));
  qkv = register_module("qkv", nn::Linear(width, 3 * width));
  o = register_module("o", nn::Linear(width, width));
  l2 = register_module("l2", nn::LayerNorm(nn::LayerNormOptions({width})));
  a = register_module("a", nn::Linear(width, 4 * width));
  b = register_module("b", nn::Linear(4 * width, width));
}

namespace {

// Queries, keys and values by heads.
std::vector<Tensor> projected(GPTBlockImpl& block, const Tensor& x) {
  int64_t n = x.size(0), t = x.size(1), width = x.size(2);
  Tensor all = block.qkv(block.l1(x)).view({n, t, 3, block.heads, width / block.heads});
  return all.permute({2, 0, 3, 1, 4}).unbind(0);
}
Tensor after_attention(GPTBlockImpl& block, const Tensor& x, const Tensor& y) {
  Tensor z = x + block.o(y.transpose(1, 2).reshape(x.sizes()));
  return z + block.b(gelu(block.a(block.l2(z)), "tanh"));
}

}  // namespace

Tensor GPTBlockImpl::forward(const Tensor& x) {
  std::vector<Tensor> p = projected(*this, x);
  return after_attention(*this, x,
                         scaled_dot_product_attention(p[0], p[1], p[2], std::nullopt, 0.0, /*is_causal=*/true));
}

Tensor GPTBlockImpl::decode(const Tensor& x, const Tensor& position, const Tensor& seen, Tensor keys, Tensor values) {
  std::vector<Tensor> p = projected(*this, x);
  keys.index_copy_(2, position, p[1]);
  values.index_copy_(2, position, p[2]);
  return after_attention(*this, x, scaled_dot_product_attention(p[0], keys, values, seen));
}

GPTImpl::GPTImpl(const GPTOptions& options) {
  e = register_module("e", nn::Embedding(options.vocabulary, options.width));
  p = register_parameter("p", randn({options.context, options.width}) * 0.02);
  for (int64_t i = 0; i < options.depth; ++i) blocks->push_back(GPTBlock(options.width, options.heads));
  register_module("blocks", blocks);
  f = register_module("f", nn::LayerNorm(nn::LayerNormOptions({options.width})));
  head = register_module("head", nn::Linear(nn::LinearOptions(options.width, options.vocabulary).bias(false)));
}

Tensor GPTImpl::forward(const Tensor& tokens) {
  Tensor x = e(tokens) + p.slice(0, 0, tokens.size(1));
  for (const auto& block : *blocks) x = block->as<GPTBlock>()->forward(x);
  return head(f(x)).flatten(0, 1);
}

io::NameRules gpt2_rules() {
  io::NameRules rules = io::transformers_gpt2();
  for (io::NameRule rule : {
           io::drop("lm_head.weight"),  // in some files; tied to the embedding
           io::copy("wte.weight", "head.weight"),
           io::rename("wte.weight", "e.weight"),
           io::rename("wpe.weight", "p"),
           io::rename("ln_f.*", "f.*"),
           io::rename("h.*.ln_*.*", "blocks.*.l*.*"),
           io::rename("h.*.attn.c_attn.*", "blocks.*.qkv.*"),
           io::rename("h.*.attn.c_proj.*", "blocks.*.o.*"),
           io::rename("h.*.mlp.c_fc.*", "blocks.*.a.*"),
           io::rename("h.*.mlp.c_proj.*", "blocks.*.b.*"),
       })
    rules.push_back(rule);
  return rules;
}

GPTDecoderImpl::GPTDecoderImpl(const GPTOptions& options) {
  gpt = register_module("gpt", GPT(options));
  std::vector<int64_t> cache = {options.depth, 1, options.heads, options.context, options.width / options.heads};
  keys = register_buffer("keys", zeros(cache));
  values = register_buffer("values", zeros(cache));
}

Tensor GPTDecoderImpl::forward(const Tensor& token, const Tensor& position) {
  Tensor x = gpt->e(token) + gpt->p.index_select(0, position);
  Tensor seen = (arange(keys.size(3), TensorOptions(kInt64).device(token.device())) <= position).view({1, 1, 1, -1});
  for (int64_t i = 0; const auto& block : *gpt->blocks) {
    x = block->as<GPTBlock>()->decode(x, position, seen, keys[i], values[i]);
    ++i;
  }
  return gpt->head(gpt->f(x)).flatten(0, 1);
}

}  // namespace models
