#include <array>
#include <sstream>

#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/memory.h>
#include <brasa/nn.h>
#include <brasa/stats.h>
#include <gtest/gtest.h>

namespace brasa::nn {
namespace {

namespace packing = utils::rnn;

TEST(Recurrent, LayerIsItsCellOnEveryStep) {
  NoGradGuard no_grad;
  LSTM layer(3, 4);
  LSTMCell cell(3, 4);
  cell->weight_ih.copy_(layer->named_parameters()["weight_ih_l0"]);
  cell->weight_hh.copy_(layer->named_parameters()["weight_hh_l0"]);
  cell->bias_ih.copy_(layer->named_parameters()["bias_ih_l0"]);
  cell->bias_hh.copy_(layer->named_parameters()["bias_hh_l0"]);
  Tensor x = randn({5, 2, 3});
  auto [out, state] = layer(x);
  std::optional<std::tuple<Tensor, Tensor>> step;
  for (int64_t t = 0; t < 5; ++t) {
    step = cell(x[t], step);
    EXPECT_TRUE(out[t].allclose(std::get<0>(*step), 1e-4, 1e-5));
  }
  EXPECT_TRUE(std::get<1>(state)[0].allclose(std::get<1>(*step), 1e-4, 1e-5));
}

// Lengths and batches in any order: loops of the graph, whose code does not know how many steps there are.
template <class Step>
void expect_few_compilations(const char* what, Step step) {
  std::vector<std::array<int64_t, 2>> sizes{{3, 2}, {29, 4}, {1, 4}, {29, 1}, {1, 1}};
  for (int64_t i = 0; i < 25; ++i) sizes.push_back({(i * 7 + 5) % 29 + 2, (i * 5) % 3 + 2});
  int64_t warm = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i == 5) warm = stats().compilations;
    step(sizes[i][0], sizes[i][1]);
  }
  EXPECT_LE(stats().compilations - warm, 2) << what;
}

TEST(Recurrent, OneCompilationForAllLengths) {
  LSTM lstm(LSTMOptions(3, 4).num_layers(2).bidirectional(true));
  GRU gru(3, 4);
  RNN rnn(3, 4);
  auto loss = [&](const Tensor& x) {
    return std::get<0>(lstm(x)).square().sum() + std::get<0>(gru(x)).sum() + std::get<0>(rnn(x)).sum();
  };
  std::vector<Tensor> weights = lstm->parameters();
  for (const Tensor& w : gru->parameters()) weights.push_back(w);
  auto compiled = compile([&](const Tensor& x) { return loss(x); });
  std::vector<Tensor> expected;
  Tensor x;
  expect_few_compilations("eager", [&](int64_t steps, int64_t batch) {
    x = randn({steps, batch, 3});
    expected = autograd::grad({loss(x)}, weights);
  });
  std::vector<Tensor> got;
  expect_few_compilations("compiled", [&](int64_t steps, int64_t batch) {
    x = randn({steps, batch, 3});
    got = autograd::grad({compiled(x)}, weights);
  });
  expected = autograd::grad({loss(x)}, weights);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i].allclose(expected[i], 1e-4, 1e-4)) << i;
}

// Eager loops leave what they gave to their derivatives, and derivatives of these lead through it.
TEST(Recurrent, SecondDerivativesAreThoseOfItsCell) {
  for (const auto& [layer, gates] : {std::pair("lstm", 4), {"gru", 3}, {"rnn_tanh", 1}, {"rnn_relu", 1}}) {
    std::string name = layer;
    bool two = gates == 4;
    std::vector<Tensor> params;
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{gates * 4, 3}, {gates * 4, 4}, {gates * 4}, {gates * 4}})
      params.push_back((randn(shape, kDouble) * 0.5).set_requires_grad(true));
    Tensor x = randn({5, 2, 3}, kDouble).set_requires_grad(true), h = randn({2, 4}, kDouble),
           c = randn({2, 4}, kDouble);
    auto of_layer = [&](const Tensor& x) {
      std::vector<Tensor> states{h.unsqueeze(0), c.unsqueeze(0)};
      CallArg state = two ? CallArg(ArrayRef<Tensor>(states)) : CallArg(states[0]);
      return call("aten::" + name + ".input",
                  {x, state, ArrayRef<Tensor>(params), true, 1, 0.0, true, false, false})[0];
    };
    auto of_cells = [&](const Tensor& x) {
      std::vector<Tensor> outs, states{h, c};
      for (int64_t t = 0; t < 5; ++t) {
        CallArg state = two ? CallArg(ArrayRef<Tensor>(states)) : CallArg(states[0]);
        std::vector<Tensor> made =
            call("aten::" + name + "_cell", {x[t], state, params[0], params[1], params[2], params[3]});
        std::copy(made.begin(), made.end(), states.begin());
        outs.push_back(made[0]);
      }
      return stack(outs);
    };
    auto derivatives = [&](const auto& f) {
      std::vector<Tensor> of = params;
      of.push_back(x);
      std::vector<Tensor> first = autograd::grad({f(x).sin().sum()}, of, {}, true, true);
      Tensor penalty = zeros({}, kDouble);
      for (const Tensor& g : first) penalty = penalty + g.square().sum();
      std::vector<Tensor> second = autograd::grad({penalty}, of);
      first.insert(first.end(), second.begin(), second.end());
      return first;
    };
    std::vector<Tensor> expected = derivatives(of_cells), eager = derivatives(of_layer),
                        outside = derivatives(compile(of_layer)), inside = compile([&](const Tensor&) {
                                                                    std::vector<Tensor> all = derivatives(of_layer);
                                                                    for (Tensor& t : all) t = t.detach();
                                                                    return all;
                                                                  })(x);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(eager[i].allclose(expected[i], 1e-7, 1e-9)) << name << i;
      EXPECT_TRUE(outside[i].allclose(expected[i], 1e-7, 1e-9)) << name << i;
      EXPECT_TRUE(inside[i].allclose(expected[i], 1e-7, 1e-9)) << name << i;
    }
  }
}

TEST(Recurrent, OneCompilationForAllAlignments) {
  expect_few_compilations("ctc_loss", [](int64_t steps, int64_t batch) {
    Tensor x = randn({steps, batch, 5}).log_softmax(2).detach().requires_grad_();
    Tensor lengths = full({batch}, steps, kInt64), labels = ones({batch, 1}, kInt64);
    ctc_loss(x, labels, lengths, ones({batch}, kInt64)).backward();
    EXPECT_TRUE(x.grad().isfinite().all().item<bool>());
  });
}

TEST(Recurrent, LossOfPaddedTargetsIsOneGraph) {
  Tensor x = randn({4, 2, 3}).log_softmax(2), labels = tensor({1, 2, 2, 1}).view({2, 2});
  auto loss = [&](const Tensor& x, const Tensor& lengths) {
    return functional::ctc_loss(x, labels, full({2}, 4, kInt64), lengths);
  };
  auto compiled = compile(loss, {.fullgraph = true});
  EXPECT_TRUE(compiled(x, tensor({1, 2})).allclose(loss(x, tensor({1, 2}))));
  EXPECT_THROW(compiled(x, tensor({1, 3})).item<float>(), Error);
  EXPECT_THROW(loss(x, tensor({1, 3})).item<float>(), Error);
}

// Of targets one after the other, and of such with room behind them, no more is computed than the longest asks for.
TEST(Recurrent, LengthsInTensorsBoundTheLoss) {
  Tensor lengths = tensor({3, 1}), steps = tensor({6, 5}), rows = tensor({1, 2, 2, 3, 0, 0}).view({2, 3});
  Tensor room = cat({rows, zeros({2, 5000}, kInt64)}, 1), behind = tensor({1, 2, 2, 3});
  std::vector<Tensor> results, gradients;
  Tensor values = randn({8, 2, 4}).log_softmax(2);
  auto keep = [&](auto&&... operands) {
    Tensor x = values.clone().requires_grad_();
    Tensor loss = ctc_loss(x, operands..., 0, 2);
    loss.backward();
    results.push_back(loss.detach());
    gradients.push_back(x.grad());
  };
  keep(rows, IntArrayRef{6, 5}, IntArrayRef{3, 1});
  keep(rows, steps, lengths);
  keep(behind, steps, lengths);
  reset_peak_memory_stats();
  int64_t before = memory_stats().peak;
  keep(room, steps, lengths);
  // α of all places would be 8 steps of 2 rows of 10,007 numbers.
  EXPECT_LT(memory_stats().peak - before, 8 * 2 * 10007 * 4);
  for (size_t i = 1; i < results.size(); ++i) {
    EXPECT_TRUE(results[i].allclose(results[0]));
    EXPECT_TRUE(gradients[i].allclose(gradients[0], 1e-5, 1e-6));
  }
  EXPECT_THROW(ctc_loss(values, rows, steps, tensor({4, 1})), Error);
  EXPECT_THROW(ctc_loss(values, rows, tensor({9, 5}), lengths), Error);
  EXPECT_THROW(ctc_loss(values, behind, steps, tensor({3, 2})), Error);
}

TEST(Recurrent, NoSequencesHaveNoGradients) {
  LSTM layer(3, 4);
  auto gradients =
      compile([&](const Tensor& x) { return autograd::grad({std::get<0>(layer(x)).sum()}, layer->parameters()); });
  for (const Tensor& g : gradients(ones({5, 0, 3}))) EXPECT_TRUE(g.eq(0).all().item<bool>());
}

TEST(Recurrent, PackedStepsGiveWhatEachSequenceGivesAlone) {
  NoGradGuard no_grad;
  GRU layer(GRUOptions(3, 4).num_layers(2).bidirectional(true));
  std::vector<Tensor> sequences{randn({2, 3}), randn({5, 3}), randn({4, 3})};
  auto [packed, state] = layer->forward_with_packed_input(packing::pack_sequence(sequences, false));
  auto [padded, lengths] = packing::pad_packed_sequence(packed);
  EXPECT_TRUE(lengths.equal(tensor({2, 5, 4}, kCPU)));
  for (int64_t n = 0; n < 3; ++n) {
    const Tensor& alone = sequences[static_cast<size_t>(n)];
    auto [out, last] = layer(alone.unsqueeze(1));
    EXPECT_TRUE(padded.select(1, n).slice(0, 0, alone.size(0)).allclose(out.squeeze(1), 1e-4, 1e-5)) << n;
    EXPECT_TRUE(state.select(1, n).allclose(last.squeeze(1), 1e-4, 1e-5)) << n;
  }
}

TEST(Recurrent, PackingIsUndone) {
  Tensor padded = arange(12, kFloat).reshape({4, 3});
  auto packed = packing::pack_padded_sequence(padded, tensor({4, 3, 1}));
  EXPECT_TRUE(packed.batch_sizes().equal(tensor({3, 2, 2, 1}, kCPU)));
  auto [back, lengths] = packing::pad_packed_sequence(packed, false, -1.0, 5);
  EXPECT_EQ(back.sizes(), IntArrayRef({5, 3}));
  EXPECT_EQ(back[0][2].item<float>(), 2.f);
  EXPECT_EQ(back[1][2].item<float>(), -1.f);
  EXPECT_THROW(packing::pack_padded_sequence(padded, tensor({1, 4, 3})), Error);
  EXPECT_THROW(packing::pad_packed_sequence(packed, false, 0.0, 3), Error);
}

TEST(Recurrent, WrongSizesAreNamed) {
  RNN layer(3, 4);
  EXPECT_THROW(layer(randn({5, 2, 4})), Error);
  EXPECT_THROW(layer(randn({5, 2, 3}), randn({1, 3, 4})), Error);
  EXPECT_THROW(LSTM(LSTMOptions(3, 4).proj_size(4)), Error);
  auto cell = [](IntArrayRef x, IntArrayRef h, IntArrayRef c, IntArrayRef w_ih, IntArrayRef w_hh, IntArrayRef bias) {
    std::vector<Tensor> states{randn(h), randn(c)};
    return call("aten::lstm_cell",
                {randn(x), ArrayRef<Tensor>(states), randn(w_ih), randn(w_hh), randn(bias), randn(bias)});
  };
  EXPECT_EQ(cell({2, 3}, {2, 4}, {2, 4}, {16, 3}, {16, 4}, {16}).size(), 2u);
  EXPECT_THROW(cell({2, 3}, {1, 4}, {1, 4}, {16, 3}, {16, 4}, {16}), Error);
  EXPECT_THROW(cell({2, 3}, {2, 4}, {2, 1}, {16, 3}, {16, 4}, {16}), Error);
  EXPECT_THROW(cell({2, 3}, {2, 4}, {2, 4}, {4, 3}, {4, 4}, {4}), Error);
  EXPECT_THROW(cell({2, 3}, {2, 4}, {2, 4}, {16, 3}, {16, 4}, {1}), Error);
}

TEST(Recurrent, CopiesHaveWeightsOfTheirOwn) {
  RNN layer(2, 3);
  auto copy = std::dynamic_pointer_cast<RNNImpl>(layer->clone());
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->all_weights().size(), 4u);
  EXPECT_FALSE(copy->all_weights()[0].is_alias_of(layer->all_weights()[0]));
  EXPECT_TRUE(copy->all_weights()[0].equal(layer->all_weights()[0]));
}

TEST(AdaptiveLogSoftmax, ProbabilitiesSumToOneAndForwardPicksThem) {
  NoGradGuard no_grad;
  AdaptiveLogSoftmaxWithLoss layer(AdaptiveLogSoftmaxWithLossOptions(8, 10, {3, 6}).div_value(2));
  Tensor x = randn({4, 8}), target = tensor({0, 3, 5, 9});
  Tensor log_prob = layer->log_prob(x);
  EXPECT_TRUE(log_prob.exp().sum(1).allclose(ones({4}), 1e-4, 1e-4));
  EXPECT_TRUE(layer(x, target).output.allclose(log_prob.gather(1, target.unsqueeze(1)).squeeze(1), 1e-4, 1e-4));
  EXPECT_THROW(layer(x, tensor({0, 3, 5, 10})), Error);
}

TEST(EmbeddingBags, SumRowsOfEachBag) {
  EmbeddingBag bag =
      EmbeddingBag::from_pretrained(arange(8, kFloat).reshape({4, 2}), EmbeddingBagFromPretrainedOptions().mode(kSum));
  Tensor out = bag(tensor({0, 1, 3}), tensor({0, 2}));
  EXPECT_TRUE(out.allclose(tensor({{2.f, 4.f}, {6.f, 7.f}})));
  EXPECT_THROW(bag(tensor({0, 1, 3})), Error);
}

TEST(Interpolation, SizesOrFactorsButNotBoth) {
  Tensor x = arange(4, kFloat).reshape({1, 1, 4});
  Tensor doubled =
      functional::interpolate(x, functional::InterpolateFuncOptions().scale_factor(std::vector<double>{2}));
  EXPECT_TRUE(doubled.flatten().allclose(tensor({0.f, 0.f, 1.f, 1.f, 2.f, 2.f, 3.f, 3.f})));
  auto both = functional::InterpolateFuncOptions().size(std::vector<int64_t>{8}).scale_factor(std::vector<double>{2});
  EXPECT_THROW(functional::interpolate(x, both), Error);
  EXPECT_THROW(functional::interpolate(x, functional::InterpolateFuncOptions()), Error);
}

}  // namespace
}  // namespace brasa::nn
