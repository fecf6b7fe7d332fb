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

Tensor GPTBlockImpl::forward(const Tensor& x) {
  int64_t n = x.size(0), t = x.size(1), width = x.size(2);
  auto parts = qkv(l1(x)).view({n, t, 3, heads, width / heads}).permute({2, 0, 3, 1, 4}).unbind(0);
  Tensor y = scaled_dot_product_attention(parts[0], parts[1], parts[2], std::nullopt, 0.0, /*is_causal=*/true);
  Tensor z = x + o(y.transpose(1, 2).reshape({n, t, width}));
  return z + b(gelu(a(l2(z)), "tanh"));
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

}  // namespace models
