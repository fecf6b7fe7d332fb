#pragma once

#include <brasa/nn.h>

namespace models {

/// A vision transformer's numbers; the defaults are timm's vit_tiny_patch16_224.
struct ViTOptions {
  int64_t image_size = 224, patch_size = 16, channels = 3, classes = 1000;
  int64_t width = 192, depth = 12, heads = 3, mlp_ratio = 4;
  double dropout = 0;
  double init = 0.02;  ///< standard deviation of the weights at the start
};

/// Of 8 × 8 pictures of ten digits.
ViTOptions vit_of_digits();

struct AttentionImpl : brasa::nn::Module {
  AttentionImpl(int64_t width, int64_t heads);
  brasa::Tensor forward(const brasa::Tensor& x);
  int64_t heads;
  brasa::nn::Linear qkv{nullptr}, proj{nullptr};
};
BRASA_MODULE(Attention);

struct MlpImpl : brasa::nn::Module {
  MlpImpl(int64_t width, int64_t hidden);
  brasa::Tensor forward(const brasa::Tensor& x);
  brasa::nn::Linear fc1{nullptr}, fc2{nullptr};
};
BRASA_MODULE(Mlp);

struct TransformerBlockImpl : brasa::nn::Module {
  explicit TransformerBlockImpl(const ViTOptions& options);
  brasa::Tensor forward(const brasa::Tensor& x);
  brasa::nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  Attention attn{nullptr};
  Mlp mlp{nullptr};
  brasa::nn::Dropout drop{nullptr};
};
BRASA_MODULE(TransformerBlock);

/// Dosovitskiy et al. 2021: patches and a class token through pre-norm transformer blocks. [n, channels, size, size] -> [n, classes].
struct ViTImpl : brasa::nn::Module {
  explicit ViTImpl(const ViTOptions& options = {});
  brasa::Tensor forward(const brasa::Tensor& images);
  ViTOptions options;
  brasa::nn::Conv2d patches{nullptr};
  brasa::Tensor cls_token, pos_embed;
  brasa::nn::Dropout drop{nullptr};
  brasa::nn::ModuleList blocks;
  brasa::nn::LayerNorm norm{nullptr};
  brasa::nn::Linear head{nullptr};
};
BRASA_MODULE(ViT);

}  // namespace models
