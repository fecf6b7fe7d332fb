#pragma once

#include <brasa/nn.h>
#include <brasa/state_dict.h>

namespace models {

struct GPTOptions {
  int64_t depth = 4, width = 384, heads = 6, vocabulary = 8192, context = 256;
};

struct GPTBlockImpl : brasa::nn::Module {
  GPTBlockImpl(int64_t width, int64_t heads);
  brasa::Tensor forward(const brasa::Tensor& x);
  /// Of one token, [1, 1, width]: its keys and values go to `position` of the caches [1, heads, context, width / heads], and it sees
  /// what `seen` says of them.
  brasa::Tensor decode(const brasa::Tensor& x, const brasa::Tensor& position, const brasa::Tensor& seen,
                       brasa::Tensor keys, brasa::Tensor values);
  int64_t heads;
  brasa::nn::LayerNorm l1{nullptr}, l2{nullptr};
  brasa::nn::Linear qkv{nullptr}, o{nullptr}, a{nullptr}, b{nullptr};
};
BRASA_MODULE(GPTBlock);

/// A GPT-2-like language model with an output matrix of its own. Token numbers [n, t] -> scores [n · t, vocabulary].
struct GPTImpl : brasa::nn::Module {
  explicit GPTImpl(const GPTOptions& options = {});
  brasa::Tensor forward(const brasa::Tensor& tokens);
  brasa::nn::Embedding e{nullptr};
  brasa::Tensor p;
  brasa::nn::ModuleList blocks;
  brasa::nn::LayerNorm f{nullptr};
  brasa::nn::Linear head{nullptr};
};
BRASA_MODULE(GPT);

/// transformers' GPT-2 -> names of this model, whose output matrix is a copy of the embedding's.
brasa::io::NameRules gpt2_rules();

/// The same model one token after the other: [1, 1] and its position [1] -> scores [1, vocabulary].
struct GPTDecoderImpl : brasa::nn::Module {
  explicit GPTDecoderImpl(const GPTOptions& options = {});
  brasa::Tensor forward(const brasa::Tensor& token, const brasa::Tensor& position);
  GPT gpt{nullptr};
  brasa::Tensor keys, values;  // [depth, 1, heads, context, width / heads]
};
BRASA_MODULE(GPTDecoder);

}  // namespace models
