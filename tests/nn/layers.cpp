#include <cmath>
#include <functional>
#include <sstream>

#include <brasa/brasa.h>
#include <brasa/memory.h>
#include <brasa/nn.h>
#include <gtest/gtest.h>

#include "small_stack.h"

namespace brasa::nn {
namespace {

template <class M>
std::string text(const M& module) {
  std::ostringstream out;
  out << module;
  return out.str();
}

TEST(Layers, PrintTheirOptions) {
  EXPECT_EQ(text(ELU(ELUOptions().alpha(2))), "torch::nn::ELU(alpha=2)");
  EXPECT_EQ(text(ReLU6(true)), "torch::nn::ReLU6(inplace=true)");
  EXPECT_EQ(text(Softshrink(0.25)), "torch::nn::Softshrink(0.25)");
  EXPECT_EQ(text(Threshold(1, 2)), "torch::nn::Threshold(threshold=1, value=2)");
  EXPECT_EQ(text(Conv2d(Conv2dOptions(4, 6, {3, 5}).padding(kSame).bias(false))),
            "torch::nn::Conv2d(4, 6, kernel_size=[3, 5], stride=[1, 1], padding='same', bias=false)");
  EXPECT_EQ(text(ConvTranspose1d(ConvTranspose1dOptions(2, 3, 4).output_padding(1).stride(2))),
            "torch::nn::ConvTranspose1d(2, 3, kernel_size=4, stride=2, output_padding=1)");
  EXPECT_EQ(text(InstanceNorm1d(3)),
            "torch::nn::InstanceNorm1d(3, eps=1e-05, momentum=0.1, affine=false, track_running_stats=false)");
  EXPECT_EQ(text(LPPool1d(2, 3)), "torch::nn::LPPool1d(norm_type=2, kernel_size=3, stride=3, ceil_mode=false)");
  EXPECT_EQ(text(ConstantPad1d(ConstantPad1dOptions({1, 2}, 3.5))),
            "torch::nn::ConstantPad1d(padding=[1, 2], value=3.5)");
  EXPECT_EQ(text(TripletMarginLoss()), "torch::nn::TripletMarginLoss(margin=1, p=2, eps=1e-06, swap=false)");
}

TEST(Layers, PaddingModesOfAConvolution) {
  // A kernel of one 1 at its first place shifts the padded input.
  for (ConvPaddingMode mode :
       {ConvPaddingMode(kZeros), ConvPaddingMode(kReflect), ConvPaddingMode(kReplicate), ConvPaddingMode(kCircular)}) {
    Conv1d conv(Conv1dOptions(1, 1, 3).padding(1).bias(false).padding_mode(mode));
    NoGradGuard no_grad;
    conv->weight.copy_(tensor({1.f, 0.f, 0.f}).view({1, 1, 3}));
    float before = conv(tensor({1.f, 2.f, 3.f}).view({1, 1, 3}))[0][0][0].item<float>();
    constexpr float expected[] = {0, 2, 1, 3};
    EXPECT_EQ(before, expected[mode.index()]) << enumtype::get_enum_name(mode);
  }
}

TEST(Layers, TransposedConvolutionOfAGivenSize) {
  ConvTranspose1d up(ConvTranspose1dOptions(1, 1, 2).stride(3));
  Tensor x = randn({1, 1, 4});
  EXPECT_EQ(up(x).size(2), 11);
  EXPECT_EQ(up->forward(x, IntArrayRef({13})).size(2), 13);
  EXPECT_THROW(up->forward(x, IntArrayRef({14})), Error);
}

TEST(Layers, UnpoolingPutsMaximaBack) {
  Tensor x = randn({1, 1, 4, 4});
  MaxPool2d pool(2);
  MaxUnpool2d unpool(2);
  auto [values, where] = pool->forward_with_indices(x);
  Tensor back = unpool(values, where);
  EXPECT_TRUE(back.sum().allclose(values.sum()));
  EXPECT_TRUE(pool(back.masked_fill(back == 0, -INFINITY)).equal(values));
}

TEST(Layers, InstanceNormMovesRunningStatistics) {
  InstanceNorm1d norm(InstanceNormOptions(2).track_running_stats(true).momentum(0.5));
  Tensor x = tensor({{{0.f, 2.f}, {4.f, 4.f}}, {{2.f, 4.f}, {8.f, 8.f}}});
  Tensor y = norm(x);
  EXPECT_TRUE(y.mean(2).allclose(zeros({2, 2}), 0, 1e-5));
  EXPECT_TRUE(norm->running_mean.allclose(tensor({1.f, 3.f})));
  EXPECT_TRUE(norm->running_var.allclose(tensor({1.5f, 0.5f})));
}

TEST(Layers, LossesAndReductions) {
  namespace F = functional;
  Tensor x = tensor({0.5f, -1.f, 2.f}), target = tensor({1.f, 0.f, 1.f});
  Tensor each = F::multilabel_soft_margin_loss(x.unsqueeze(0), target.unsqueeze(0), {});
  Tensor bce = F::binary_cross_entropy_with_logits(x, target);
  EXPECT_TRUE(each.allclose(bce));
  Tensor log_p = x.log_softmax(0), q = target.softmax(0);
  EXPECT_TRUE((F::kl_div(log_p.unsqueeze(0), q.unsqueeze(0), F::KLDivFuncOptions(kBatchMean)))
                  .allclose(F::kl_div(log_p, q, F::KLDivFuncOptions(kSum))));
}

TEST(Layers, EmbeddingsAreRenormalised) {
  Embedding embedding(EmbeddingOptions(3, 2).max_norm(1.0));
  {
    NoGradGuard no_grad;
    embedding->weight.fill_(3);
  }
  Tensor rows = embedding(tensor({0, 2}));
  EXPECT_TRUE(rows.norm(2.0, {1}).allclose(ones({2})));
  EXPECT_EQ(embedding->weight[1][0].item<float>(), 3);
}

TEST(Layers, AttentionWithAndWithoutWeightsAgrees) {
  manual_seed(3);
  MultiheadAttention attention(MultiheadAttentionOptions(8, 2).kdim(6).vdim(4).add_bias_kv(true).add_zero_attn(true));
  Tensor q = randn({3, 2, 8}), k = randn({5, 2, 6}), v = randn({5, 2, 4});
  Tensor padding = zeros({2, 5}, kBool);
  padding.index_put_({1, 4}, true);
  auto [y, weights] = attention(q, k, v, padding);
  auto [z, none] = attention(q, k, v, padding, false);
  EXPECT_EQ(weights.sizes(), IntArrayRef({2, 3, 7}));
  EXPECT_TRUE(weights.sum(-1).allclose(ones({2, 3})));
  EXPECT_EQ(weights[1][0][4].item<float>(), 0);
  EXPECT_FALSE(none.defined());
  EXPECT_TRUE(y.allclose(z, 1e-4, 1e-5));
}

// Masks of every kind, of drawn sizes, short and long enough for attention by blocks; no row is without a key.
TEST(Layers, AttentionWithoutWeightsTakesMasks) {
  for (int64_t seed = 0; seed < 8; ++seed) {
    manual_seed(seed);
    auto drawn = [](int64_t least, int64_t most) { return randint(least, most + 1, {}, kInt64).item<int64_t>(); };
    int64_t batch = drawn(1, 3), heads = drawn(1, 3), length = seed % 4 ? drawn(1, 40) : drawn(512, 530),
            keys = seed % 4 ? drawn(1, 40) : drawn(512, 700), e = heads * drawn(1, 5);
    auto first_key = [&](const Tensor& hides) { return hides.logical_and(arange(keys).gt(0)); };
    Tensor of_all = first_key(rand({length, keys}) > 0.6),
           of_heads = first_key(rand({batch * heads, length, keys}) > 0.6),
           padding = first_key(rand({batch, keys}) > 0.5);
    auto as_floats = [](const Tensor& hides) { return randn(hides.sizes(), kFloat64).masked_fill(hides, -HUGE_VAL); };
    const Tensor masks[] = {Tensor(), of_all, of_heads, as_floats(of_all), as_floats(of_heads)},
                 paddings[] = {Tensor(), padding, as_floats(padding)};
    MultiheadAttention attention(MultiheadAttentionOptions(e, heads).add_zero_attn(seed % 2 == 1));
    attention->to(kFloat64);
    for (const Tensor& mask : masks)
      for (const Tensor& hidden : paddings) {
        auto given = [](const Tensor& m) {
          return !m.defined() ? "none" : m.scalar_type() == kBool ? "bools" : "floats";
        };
        SCOPED_TRACE("seed " + std::to_string(seed) + ", mask of " + given(mask) + ", padding of " + given(hidden));
        std::vector<Tensor> in = {randn({length, batch, e}, kFloat64), randn({keys, batch, e}, kFloat64),
                                  randn({keys, batch, e}, kFloat64)};
        for (Tensor& x : in) x.requires_grad_(true);
        Tensor y = std::get<0>(attention(in[0], in[1], in[2], hidden, true, mask)),
               z = std::get<0>(attention(in[0], in[1], in[2], hidden, false, mask)), ct = randn_like(y);
        EXPECT_TRUE(y.allclose(z, 1e-10, 1e-12));
        auto by_y = autograd::grad({y}, in, {ct}), by_z = autograd::grad({z}, in, {ct});
        for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(by_y[i].allclose(by_z[i], 1e-10, 1e-12)) << i;
      }
  }
}

// As in Python, where a layer asks for no weights; LibTorch's gives NaN.
TEST(Layers, ARowOfPaddingAttendsToNothing) {
  manual_seed(5);
  TransformerEncoderLayer layer(TransformerEncoderLayerOptions(8, 2).dropout(0));
  Tensor x = randn({5, 2, 8}), padding = zeros({2, 5}, kBool);
  padding[0].fill_(true);
  for (const Tensor& given : {padding, zeros({2, 5}).masked_fill(padding, -HUGE_VAL)}) {
    Tensor alone = layer->norm1(x + layer->self_attn->out_proj->bias);
    Tensor wanted = layer->norm2(alone + layer->linear2(relu(layer->linear1(alone))));
    Tensor y = layer(x, Tensor(), given);
    EXPECT_TRUE(y.select(1, 0).allclose(wanted.select(1, 0), 1e-5, 1e-6));
    EXPECT_FALSE(y.isnan().any().item<bool>());
  }
}

TEST(Layers, AnEncoderLayerHasNoMatrixOfScores) {
  int64_t length = 768, heads = 8;
  TransformerEncoderLayer layer(TransformerEncoderLayerOptions(16, heads).dim_feedforward(16).dropout(0));
  Tensor x = randn({length, 1, 16}), mask = TransformerImpl::generate_square_subsequent_mask(length);
  auto step = [&] { layer(x, mask).sum().backward(); };
  step();
  reset_peak_memory_stats();
  int64_t before = memory_stats().allocated;
  step();
  EXPECT_LT(memory_stats().peak - before, heads * length * length * 4 / 2);
}

TEST(Layers, CausalMaskHidesTheFuture) {
  manual_seed(1);
  TransformerEncoder encoder(TransformerEncoderOptions(
      TransformerEncoderLayer(TransformerEncoderLayerOptions(4, 2).dim_feedforward(8).dropout(0)), 2));
  encoder->eval();
  Tensor x = randn({3, 1, 4}), mask = TransformerImpl::generate_square_subsequent_mask(3);
  Tensor y = encoder(x, mask);
  Tensor changed = x.clone();
  changed[2].fill_(1);
  Tensor z = encoder(changed, mask);
  EXPECT_TRUE(y.slice(0, 0, 2).allclose(z.slice(0, 0, 2)));
  EXPECT_FALSE(y[2].allclose(z[2]));
}

TEST(Layers, DefaultArgumentsInASequential) {
  Sequential net(Linear(2, 4), TransformerEncoderLayer(TransformerEncoderLayerOptions(4, 2).dropout(0)));
  EXPECT_EQ(net->forward(randn({3, 1, 2})).sizes(), IntArrayRef({3, 1, 4}));
}

TEST(Layers, ParameterContainersCopyTheirTensors) {
  ParameterDict dict{{"a", ones({2})}, {"b", zeros({1})}};
  auto copy = std::dynamic_pointer_cast<ParameterDictImpl>(dict->clone());
  (*copy)["a"].detach().fill_(5);
  EXPECT_EQ(dict["a"][0].item<float>(), 1);
  EXPECT_EQ(copy->keys(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(text(ParameterList(ones({2}))),
            "torch::nn::ParameterList(\n(0): Parameter containing: [Float of size [2]]\n)");
}

// Norms keep their statistics for their derivatives, which are differentiated through these. Steps of 1e-5 leave out their square times a
// derivative more, in groups of few numbers 2e-7 of the value.
TEST(Layers, NormsHaveSecondDerivatives) {
  constexpr double kStep = 1e-5, kTolerance = 1e-6;
  manual_seed(9041);
  SCOPED_TRACE("seed 9041");
  const TensorOptions doubles = TensorOptions().dtype(kDouble);
  Tensor weight = randn({4}, doubles), bias = randn({4}, doubles), mean = zeros({4}, doubles), var = ones({4}, doubles);
  const std::vector<std::function<Tensor(const Tensor&)>> norms = {
      [&](const Tensor& x) { return layer_norm(x, {4}, weight, bias); },
      [&](const Tensor& x) { return group_norm(x, 2, weight, bias); },
      [&](const Tensor& x) { return batch_norm(x, weight, bias, {}, {}, true, 0.1, 1e-5, false); },
      [&](const Tensor& x) { return batch_norm(x, weight, bias, mean, var, true, 0.1, 1e-5, false); },
  };
  Tensor at = randn({5, 4}, doubles), direction = randn({5, 4}, doubles);
  for (size_t i = 0; i < norms.size(); ++i) {
    auto slope = [&](const Tensor& x, bool again) {
      Tensor g = autograd::grad({norms[i](x).sin().sum()}, {x}, {}, true, again)[0];
      return (g * direction).sum();
    };
    Tensor x = at.clone().requires_grad_();
    Tensor second = autograd::grad({slope(x, true)}, {x})[0];
    auto moved = [&](double by) { return slope((at + by * direction).requires_grad_(), false).item<double>(); };
    double expected = (moved(kStep) - moved(-kStep)) / (2 * kStep);
    EXPECT_NEAR((second * direction).sum().item<double>(), expected, kTolerance * std::abs(expected)) << i;
  }
}

TEST(Layers, ConvertAllBuffersAsLibTorch) {
  BatchNorm1d norm(2);
  norm->to(kDouble);
  for (const Tensor& t : norm->buffers()) EXPECT_EQ(t.scalar_type(), kDouble);
  norm->to(Device(kCPU), kFloat);
  for (const Tensor& t : norm->buffers()) EXPECT_EQ(t.scalar_type(), kFloat);
  norm->forward(ones({3, 2}));
  EXPECT_EQ(norm->num_batches_tracked.item<float>(), 1);
}

TEST(Layers, InsertedModulesHaveTheNamesOfTheirPlaces) {
  ModuleList list(Linear(1, 2), Linear(2, 3));
  list->insert(0, Linear(3, 4));
  std::vector<int64_t> sizes;
  for (const auto& item : list->named_parameters()) sizes.push_back(item.value().size(0));
  EXPECT_EQ(list->named_children().keys(), (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_EQ(sizes, (std::vector<int64_t>{4, 4, 2, 2, 3, 3}));
}

TEST(Layers, NestAsDeepAsAProgramMakesThem) {
  test::on_small_stack([] {
    constexpr int kDepth = 3000;
    auto root = std::make_shared<Module>("root"), at = root;
    for (int i = 0; i < kDepth; ++i) at = at->register_module("m", std::make_shared<Module>("m"));
    at->register_parameter("w", ones({2}));
    EXPECT_EQ(root->modules().size(), kDepth + 1u);
    EXPECT_EQ(root->parameters().size(), 1u);
    root->eval();
    root->zero_grad();
    root->to(kDouble);
    EXPECT_EQ(at->parameters()[0].scalar_type(), kDouble);
    EXPECT_FALSE(at->is_training());
    EXPECT_GT(text(*root).size(), size_t{kDepth} * kDepth);
  });
}

}  // namespace
}  // namespace brasa::nn
