#include "vit.h"

#include <brasa/brasa.h>

namespace models {

using namespace brasa;

ViTOptions vit_of_digits() {
  ViTOptions o;
  o.image_size = 8;
  o.patch_size = 2;
  o.channels = 1;
  o.classes = 10;
  o.width = 64;
  o.depth = 4;
  o.heads = 4;
  o.dropout = 0.1;
  o.init = 0.125;  // one over the root of the width
  return o;
}

AttentionImpl::AttentionImpl(int64_t width, int64_t heads) : heads(heads) {
  qkv = register_module("qkv", nn::Linear(width, 3 * width));
  proj = register_module("proj", nn::Linear(width, width));
}

Tensor AttentionImpl::forward(const Tensor& x) {
  int64_t n = x.size(0), tokens = x.size(1), width = x.size(2);
  auto parts = qkv(x).reshape({n, tokens, 3, heads, width / heads}).permute({2, 0, 3, 1, 4}).unbind(0);
  Tensor y = scaled_dot_product_attention(parts[0], parts[1], parts[2]);
  return proj(y.transpose(1, 2).reshape({n, tokens, width}));
}

MlpImpl::MlpImpl(int64_t width, int64_t hidden) {
  fc1 = register_module("fc1", nn::Linear(width, hidden));
  fc2 = register_module("fc2", nn::Linear(hidden, width));
}

Tensor MlpImpl::forward(const Tensor& x) { return fc2(gelu(fc1(x))); }

TransformerBlockImpl::TransformerBlockImpl(const ViTOptions& o) {
  auto norm = [&] { return nn::LayerNorm(nn::LayerNormOptions({o.width}).eps(1e-6)); };
  norm1 = register_module("norm1", norm());
  attn = register_module("attn", Attention(o.width, o.heads));
  norm2 = register_module("norm2", norm());
  mlp = register_module("mlp", Mlp(o.width, o.width * o.mlp_ratio));
  drop = register_module("drop", nn::Dropout(o.dropout));
}

Tensor TransformerBlockImpl::forward(const Tensor& x) {
  Tensor y = x + drop(attn(norm1(x)));
  return y + drop(mlp(norm2(y)));
}

ViTImpl::ViTImpl(const ViTOptions& o) : options(o) {
  int64_t side = o.image_size / o.patch_size;
  auto embed = std::make_shared<nn::SequentialImpl>();
  patches = nn::Conv2d(nn::Conv2dOptions(o.channels, o.width, o.patch_size).stride(o.patch_size));
  embed->push_back("proj", patches);
  register_module("patch_embed", embed);
  cls_token = register_parameter("cls_token", empty({1, 1, o.width}));
  pos_embed = register_parameter("pos_embed", empty({1, side * side + 1, o.width}));
  drop = register_module("pos_drop", nn::Dropout(o.dropout));
  for (int64_t i = 0; i < o.depth; ++i) blocks->push_back(TransformerBlock(o));
  register_module("blocks", blocks);
  norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({o.width}).eps(1e-6)));
  head = register_module("head", nn::Linear(o.width, o.classes));

  nn::init::normal_(cls_token, 0, 1e-6);
  nn::init::trunc_normal_(pos_embed, 0, o.init);
  apply([&](nn::Module& m) {
    if (auto* linear = m.as<nn::Linear>()) {
      nn::init::trunc_normal_(linear->weight, 0, o.init);
      nn::init::zeros_(linear->bias);
    }
  });
}

Tensor ViTImpl::forward(const Tensor& images) {
  Tensor x = patches(images).flatten(2).transpose(1, 2);
  x = drop(cat({cls_token.expand({x.size(0), -1, -1}), x}, 1) + pos_embed);
  for (const auto& block : *blocks) x = block->as<TransformerBlock>()->forward(x);
  return head(norm(x).select(1, 0));
}

}  // namespace models
