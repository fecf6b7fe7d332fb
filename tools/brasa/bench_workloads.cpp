#include "bench_workloads.h"

#include <brasa/autocast.h>
#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/device.h>
#include <brasa/nn.h>
#include <brasa/optim.h>

#include "models/blocks.h"
#include "models/gpt.h"
#include "models/mobilenet.h"
#include "models/resnet.h"
#include "models/unet.h"
#include "models/vit.h"

namespace brasa::tool {
namespace {

int64_t count(const std::vector<Tensor>& parameters) {
  int64_t n = 0;
  for (const Tensor& p : parameters) n += p.numel();
  return n;
}

template <class... Inputs, class F>
std::function<void(Inputs...)> in_mode(F f, const std::string& mode, bool pure = false) {
  if (mode == "eager") return [f](Inputs... inputs) mutable { (void)f(inputs...); };
  return [compiled = compile(f, {.mode = mode, .pure = pure})](Inputs... inputs) { (void)compiled(inputs...); };
}

// What the matrices of a workload are computed in, as torch's switches have it.
enum class Arithmetic : uint8_t { Float32, Tf32, Autocast };

// Forward, backward and the optimizer's update, all of it in the compiled function.
template <class Optimizer, class Options, class Loss>
Prepared steps_of(const Options& options, const std::vector<Tensor>& parameters, Loss loss, const std::string& mode,
                  Arithmetic arithmetic) {
  if (arithmetic == Arithmetic::Tf32) set_float32_matmul_precision("high");
  auto optimizer = std::make_shared<Optimizer>(parameters, options);
  DeviceType device = parameters.front().device().type();
  auto step = [=]() mutable {
    optimizer->zero_grad();
    Tensor value;
    {
      AutocastMode autocast(device, kBFloat16, arithmetic == Arithmetic::Autocast);
      value = loss();
    }
    value.backward();
    optimizer->step();
    return value.detach();
  };
  return {in_mode(step, mode), count(parameters), optimizer};
}
template <class Optimizer, class Model, class Options>
Prepared training_by(const Options& options, Model model, Tensor x, Tensor target, const std::string& mode,
                     Arithmetic arithmetic) {
  auto loss = [=]() mutable { return nn::functional::cross_entropy(model(x), target); };
  return steps_of<Optimizer>(options, model->parameters(), loss, mode, arithmetic);
}
template <class Model>
Prepared training(Model model, Tensor x, Tensor target, const std::string& mode,
                  Arithmetic arithmetic = Arithmetic::Float32) {
  return training_by<optim::Adam>(optim::AdamOptions(1e-4), model, x, target, mode, arithmetic);
}

template <class Model, class Input, class... Inputs>
Prepared inference_as(Arithmetic arithmetic, Model model, const std::string& mode, Input input, Inputs... inputs) {
  model->eval();
  auto forward = [=]() mutable {
    AutocastMode autocast(input.device().type(), kBFloat16, arithmetic == Arithmetic::Autocast);
    return model(input, inputs...);
  };
  // Its body does nothing to the host, as the peers take it without a promise.
  return {[run = in_mode(forward, mode, true)] {
            InferenceMode guard;
            run();
          },
          count(model->parameters()), nullptr};
}

template <class Model, class... Inputs>
Prepared inference(Model model, const std::string& mode, Inputs... inputs) {
  return inference_as(Arithmetic::Float32, model, mode, inputs...);
}

// Making the model with the weights that it starts with.
template <class Make>
Prepared construction(Make make) {
  return {[make] { (void)make(); }, 0, nullptr};
}

Tensor images(int64_t n, int64_t size = 224) { return randn({n, 3, size, size}); }
Tensor classes(int64_t n, int64_t limit = 1000) { return randint(limit, {n}, kInt64); }
Tensor tokens(int64_t n) { return randint(8192, {n, 256}, kInt64); }

models::ResNet resnet50() { return models::ResNet(std::vector<int64_t>{3, 4, 6, 3}, true); }
// Images and weights have their channels last, as the peers' have.
Prepared resnet50_training(const std::string& mode) {
  models::ResNet model = resnet50();
  for (Tensor& p : model->parameters())
    if (p.dim() == 4) p.set_data(p.contiguous(MemoryFormat::ChannelsLast));
  return training_by<optim::SGD>(optim::SGDOptions(0.1).momentum(0.9), model,
                                 images(128).contiguous(MemoryFormat::ChannelsLast), classes(128), mode,
                                 Arithmetic::Autocast);
}
// GPT-2's sizes; the vocabulary is a multiple of 64.
constexpr models::GPTOptions kGpt2 = {.depth = 12, .width = 768, .heads = 12, .vocabulary = 50304, .context = 1024};
Prepared gpt2_training(const std::string& mode) {
  Tensor text = randint(kGpt2.vocabulary, {8, kGpt2.context}, kInt64);
  return training_by<optim::AdamW>(optim::AdamWOptions(1e-4), models::GPT(kGpt2), text,
                                   classes(text.numel(), kGpt2.vocabulary), mode, Arithmetic::Autocast);
}
Prepared gpt2_decoding(const std::string& mode) {
  models::GPTDecoder model(kGpt2);
  model->to(kBFloat16);
  return inference(model, mode, zeros({1, 1}, kInt64), full({1}, 512, kInt64));
}
Prepared small_mlp_training(const std::string& mode) {
  nn::Sequential model(nn::Linear(256, 256), nn::GELU(), nn::LayerNorm(nn::LayerNormOptions({256})),
                       nn::Linear(256, 256), nn::GELU(), nn::Linear(256, 10));
  return training_by<optim::Adam>(optim::AdamOptions(1e-3), model, randn({128, 256}), classes(128, 10), mode,
                                  Arithmetic::Tf32);
}

models::ViT vit_b16() { return models::ViT(models::ViTOptions{.width = 768, .heads = 12}); }
Prepared vit_b16_training(const std::string& mode, Arithmetic arithmetic) {
  return training(vit_b16(), images(64), classes(64), mode, arithmetic);
}

// A student learns to give what a teacher of twice its depth gives.
Prepared vit_b16_distillation(const std::string& mode) {
  models::ViT student = vit_b16(), teacher(models::ViTOptions{.width = 768, .depth = 24, .heads = 12});
  Tensor x = images(64);
  auto loss = [=]() mutable {
    Tensor given = student(x), wanted;
    {
      NoGradGuard constant;
      wanted = teacher(x);
    }
    return nn::functional::mse_loss(given, wanted);
  };
  return steps_of<optim::Adam>(optim::AdamOptions(1e-4), student->parameters(), loss, mode, Arithmetic::Autocast);
}

// An optimizer's step alone, of parameters whose gradients stand there.
Prepared adam_step_of(const std::vector<Tensor>& parameters, const std::string& mode) {
  for (Tensor p : parameters) p.mutable_grad() = randn_like(p);
  auto optimizer = std::make_shared<optim::Adam>(parameters, optim::AdamOptions(1e-4));
  return {in_mode(
              [optimizer] {
                optimizer->step();
                return Tensor();
              },
              mode),
          count(parameters), optimizer};
}

// Forward and backward of sequences of all lengths from 1 to 200, one after the other in random order.
Prepared lstm_of_all_lengths(int64_t batch, const std::string& mode) {
  nn::LSTM lstm(64, 64);
  std::vector<Tensor> sequences;
  Tensor lengths = randperm(200) + 1;
  for (int64_t i = 0; i < lengths.numel(); ++i) sequences.push_back(randn({lengths[i].item<int64_t>(), batch, 64}));
  auto step = [=](const Tensor& x) mutable {
    lstm->zero_grad();
    Tensor loss = std::get<0>(lstm(x)).sum();
    loss.backward();
    return loss.detach();
  };
  auto run = in_mode<const Tensor&>(step, mode);
  return {[=] {
            for (const Tensor& x : sequences) run(x);
          },
          count(lstm->parameters()), nullptr};
}

// A recurrent layer whose steps are written out.
struct WrittenRnnImpl : nn::Module {
  explicit WrittenRnnImpl(int64_t width) : cell(register_module("cell", nn::RNNCell(width, width))) {}
  Tensor forward(const Tensor& xs) {
    Tensor h;
    for (const Tensor& x : xs.unbind(0)) h = cell(x, h);
    return h;
  }
  nn::RNNCell cell;
};
BRASA_MODULE(WrittenRnn);

// A function of a tensor as a module.
template <Tensor (*function)(const Tensor&)>
struct FunctionModule {
  FunctionModule* operator->() { return this; }
  void eval() {}
  std::vector<Tensor> parameters() { return {}; }
  Tensor operator()(const Tensor& x) { return function(x); }
};
Tensor sum_of_squares(const Tensor& x) { return (x * x).sum(); }
Tensor order_of_rows(const Tensor& x) { return std::get<1>(x.sort(-1)); }
template <int64_t k>
Tensor largest_of_rows(const Tensor& x) {
  return std::get<1>(x.topk(k, -1));
}
Tensor median_of_rows(const Tensor& x) { return std::get<0>(x.median(-1)); }
Tensor rows_joined(const Tensor& x) { return cat(x.unbind(0), 0); }
Tensor long_chain(const Tensor& x) {
  Tensor y = x;
  for (int i = 0; i < 2500; ++i) y = y * 0.5 + x;
  return y;
}

Prepared pointwise(int64_t n, const std::string& mode) {
  return inference(models::Pointwise(), mode, randn({n}), randn({n}), randn({n}));
}

}  // namespace

const std::vector<Workload>& workloads() {
  using Mode = const std::string&;
  static const std::vector<Workload> all = {
      {"vit_tiny_train_b8", "timm's vit_tiny_patch16_224, 8 images, Adam",
       [](Mode m) { return training(models::ViT(), images(8), classes(8), m); }},
      {"vit_tiny_infer_b8", "the same, forward only", [](Mode m) { return inference(models::ViT(), m, images(8)); }},
      {"vit_tiny_train_b8_bf16", "the training step with bf16 autocast",
       [](Mode m) { return training(models::ViT(), images(8), classes(8), m, Arithmetic::Autocast); }},
      {"vit_tiny_infer_b8_bf16", "forward only with bf16 autocast",
       [](Mode m) { return inference_as(Arithmetic::Autocast, models::ViT(), m, images(8)); }},
      {"vit_tiny_infer_b1", "one image", [](Mode m) { return inference(models::ViT(), m, images(1)); }},
      {"vit_b16_train_b64", "ViT-B/16, 64 images, bf16 autocast, Adam",
       [](Mode m) { return vit_b16_training(m, Arithmetic::Autocast); }},
      {"vit_b16_train_b64_fp32", "the same in float32",
       [](Mode m) { return vit_b16_training(m, Arithmetic::Float32); }},
      {"vit_b16_train_b64_tf32", "the same with products in TF32",
       [](Mode m) { return vit_b16_training(m, Arithmetic::Tf32); }},
      {"vit_b16_infer_b64", "the same, bf16 autocast, forward only",
       [](Mode m) { return inference_as(Arithmetic::Autocast, vit_b16(), m, images(64)); }},
      {"vit_b16_distill_b64", "the training step towards a ViT-B of 24 blocks, which makes no gradients",
       vit_b16_distillation},
      {"adam_86M", "Adam's step of the 86 M parameters of ViT-B/16",
       [](Mode m) { return adam_step_of(vit_b16()->parameters(), m); }},
      {"gpt_train_b4_t256", "a GPT of 4 blocks, width 384, 4 texts of 256 tokens, Adam",
       [](Mode m) { return training(models::GPT(), tokens(4), classes(1024, 8192), m); }},
      {"gpt_infer_b1_t256", "the same, one text, forward only",
       [](Mode m) { return inference(models::GPT(), m, tokens(1)); }},
      {"resnet18_infer_b8", "ResNet-18, 8 images, forward only",
       [](Mode m) { return inference(models::ResNet(), m, images(8)); }},
      {"resnet18_train_b8", "ResNet-18, 8 images, Adam",
       [](Mode m) { return training(models::ResNet(), images(8), classes(8), m); }},
      {"resnet50_train_b128", "ResNet-50, 128 images, bf16 autocast, SGD with momentum", resnet50_training},
      {"gpt2_train_b8_t1024", "GPT-2's sizes, 8 texts of 1024 tokens, bf16 autocast, AdamW", gpt2_training},
      {"gpt2_decode_b1", "one token of GPT-2 in bf16 against a cache of 1024 places", gpt2_decoding},
      {"mlp_small_train", "three linear layers, 128 rows of 256, GELU and a norm, Adam", small_mlp_training},
      {"mobilenet_v3_infer_b8", "MobileNetV3-Large, 8 images, forward only",
       [](Mode m) { return inference(models::MobileNetV3(), m, images(8)); }},
      {"unet_infer_b1", "a U-Net of 32 to 512 channels, one image of 256 x 256, forward only",
       [](Mode m) { return inference(models::UNet(), m, images(1, 256)); }},
      {"unet_train_b2", "the same, two images of 128 x 128, Adam",
       [](Mode m) { return training(models::UNet(), images(2, 128), randint(2, {2, 128, 128}, kInt64), m); }},
      {"lstm_train_b16_t128", "two LSTM layers of 256, 16 sequences of 128 steps of 64 numbers, Adam",
       [](Mode m) {
         return training(models::SequenceClassifier(64, 256, 10), randn({16, 128, 64}), classes(16, 10), m);
       }},
      {"lstm_lengths_b1", "an LSTM layer of 64, 64 inputs, forward and backward, every length from 1 to 200",
       [](Mode m) { return lstm_of_all_lengths(1, m); }},
      {"lstm_lengths_b16", "the same for 16 sequences", [](Mode m) { return lstm_of_all_lengths(16, m); }},
      {"rnn_500_steps_train", "a recurrent cell of 32, 500 steps written out, 4 sequences, Adam",
       [](Mode m) { return training(WrittenRnn(32), randn({500, 4, 32}), classes(4, 32), m); }},
      {"chain_5000", "5000 point-wise operators in a row on 64 elements",
       [](Mode m) { return inference(FunctionModule<long_chain>(), m, randn({64})); }},
      {"construct_resnet50", "a ResNet-50 with its weights at the start", [](Mode) { return construction(resnet50); }},
      {"construct_vit_b16", "a ViT-B of patches of 16 with its weights at the start",
       [](Mode) { return construction(vit_b16); }},
      {"mlp_block_infer", "x + b(gelu(a(norm(x)))), 512 rows of 512, hidden 2048",
       [](Mode m) { return inference(models::MlpBlock(), m, randn({512, 512})); }},
      {"mlp_infer_b8", "three linear layers, 8 rows of 64, hidden 128, 10 classes",
       [](Mode m) { return inference(models::Perceptron(64, 128, 10), m, randn({8, 64})); }},
      {"mlp_train_b8", "the same, Adam",
       [](Mode m) { return training(models::Perceptron(64, 128, 10), randn({8, 64}), classes(8, 10), m); }},
      {"pointwise_4M", "nine point-wise operators on 4 Mi elements", [](Mode m) { return pointwise(4 << 20, m); }},
      {"pointwise_64M", "the same on 64 Mi elements", [](Mode m) { return pointwise(64 << 20, m); }},
      {"layernorm_softmax_65536x2048", "softmax(layer_norm(x) / 8), 65536 rows of 2048",
       [](Mode m) { return inference(models::SoftmaxNorm(2048), m, randn({65536, 2048})); }},
      {"sumsq_128M", "the sum of the squares of 128 Mi elements",
       [](Mode m) { return inference(FunctionModule<sum_of_squares>(), m, randn({128 << 20})); }},
      {"sort_16M", "the order of 16 Mi floats",
       [](Mode m) { return inference(FunctionModule<order_of_rows>(), m, randn({1 << 24})); }},
      {"sort_16384x1024", "the order of each of 16384 rows of 1024",
       [](Mode m) { return inference(FunctionModule<order_of_rows>(), m, randn({16384, 1024})); }},
      {"sort_64x50257", "the order of each of 64 rows of 50257",
       [](Mode m) { return inference(FunctionModule<order_of_rows>(), m, randn({64, 50257})); }},
      {"topk_64x50257", "the 50 largest of each of 64 rows of 50257",
       [](Mode m) { return inference(FunctionModule<largest_of_rows<50>>(), m, randn({64, 50257})); }},
      {"topk_16M", "the 100 largest of 16 Mi floats",
       [](Mode m) { return inference(FunctionModule<largest_of_rows<100>>(), m, randn({1 << 24})); }},
      {"median_4096x4097", "the median of each of 4096 rows of 4097",
       [](Mode m) { return inference(FunctionModule<median_of_rows>(), m, randn({4096, 4097})); }},
      {"cat_100x65536", "100 tensors of 65536 floats one behind the other",
       [](Mode m) { return inference(FunctionModule<rows_joined>(), m, randn({100, 65536})); }},
      {"layernorm_softmax_4096x1024", "softmax(layer_norm(x) / 8), 4096 rows of 1024",
       [](Mode m) { return inference(models::SoftmaxNorm(1024), m, randn({4096, 1024})); }},
      {"numbers_40x200", "forty operators with a number, 200 values of it each, on 8 x 8 elements",
       [](const std::string&) { return forty_operators_with_numbers(); }},
      {"operators_100", "a hundred distinct operators on 8 x 8 elements; first_s is a program's cold start",
       [](Mode) { return hundred_operators(); }},
      {"pointwise_64", "the same on 64 elements", [](Mode m) { return pointwise(64, m); }},
  };
  return all;
}

}  // namespace brasa::tool
