// A small language model of characters (Radford et al. 2019), its attention written out.
#include "program.h"

namespace nn = torch::nn;

struct BlockImpl : nn::Module {
  BlockImpl(int64_t width, int64_t heads_, int64_t length)
      : heads(heads_),
        norm1(nn::LayerNormOptions({width})),
        norm2(nn::LayerNormOptions({width})),
        qkv(width, 3 * width),
        out(width, width),
        mlp(nn::Linear(width, 4 * width), nn::GELU(), nn::Linear(4 * width, width)) {
    register_module("norm1", norm1);
    register_module("norm2", norm2);
    register_module("qkv", qkv);
    register_module("out", out);
    register_module("mlp", mlp);
    later = register_buffer("later", torch::ones({length, length}).triu(1).to(torch::kBool));
  }
  Tensor attention(const Tensor& x) {
    int64_t batch = x.size(0), length = x.size(1), width = x.size(2);
    auto parts = qkv(x).split(width, 2);
    for (Tensor& part : parts) part = part.view({batch, length, heads, width / heads}).transpose(1, 2);
    Tensor scores = torch::matmul(parts[0], parts[1].transpose(-2, -1)) / std::sqrt(static_cast<double>(width / heads));
    scores = torch::softmax(scores.masked_fill(later, -INFINITY), -1);
    return out(torch::matmul(scores, parts[2]).transpose(1, 2).contiguous().view({batch, length, width}));
  }
  Tensor forward(Tensor x) {
    x = x + attention(norm1(x));
    return x + mlp->forward(norm2(x));
  }
  int64_t heads;
  nn::LayerNorm norm1, norm2;
  nn::Linear qkv, out;
  nn::Sequential mlp;
  Tensor later;
};
TORCH_MODULE(Block);

struct GPTImpl : nn::Module {
  GPTImpl(int64_t words, int64_t length, int64_t width, int64_t heads, int layers)
      : tokens(words, width), places(length, width), norm(nn::LayerNormOptions({width})), head(width, words) {
    register_module("tokens", tokens);
    register_module("places", places);
    for (int i = 0; i < layers; ++i) blocks->push_back(Block(width, heads, length));
    register_module("blocks", blocks);
    register_module("norm", norm);
    register_module("head", head);
  }
  Tensor forward(const Tensor& ids) {
    Tensor x = tokens(ids) + places(torch::arange(ids.size(1), torch::kLong));
    x = blocks->forward(x);
    return head(norm(x));
  }
  nn::Embedding tokens, places;
  nn::Sequential blocks;
  nn::LayerNorm norm;
  nn::Linear head;
};
TORCH_MODULE(GPT);

int main(int argc, char** argv) {
  const int64_t batch = 4, length = 128, words = 256;
  GPT net(words, length, 192, 6, 4);
  init_weights(*net);
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(3e-4).weight_decay(0.1));
  Tensor text = (waves({batch, length + 1}).abs() * (words - 0.1)).to(torch::kLong);

  auto step = [&] {
    optimizer.zero_grad();
    Tensor logits = net(text.slice(1, 0, -1));
    Tensor loss = torch::nn::functional::cross_entropy(logits.reshape({-1, words}), text.slice(1, 1).reshape({-1}));
    loss.backward();
    torch::nn::utils::clip_grad_norm_(net->parameters(), 1.0);
    optimizer.step();
    return loss.detach();
  };
  return run({.name = "gpt", .step = step}, argc, argv);
}
