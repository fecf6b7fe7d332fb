// Optimizers, schedules, autocast and modules.
#include <brasa/autocast.h>
#include <brasa/optim.h>

#include "user_situations.h"

namespace brasa {
namespace {

namespace F = nn::functional;

template <class Optimizer, class Options>
void trains(const Wrap& compile, Seen& seen, const Options& options, bool step_inside) {
  nn::Sequential net(nn::Linear(3, 4), nn::Tanh(), nn::Linear(4, 1));
  Optimizer optimizer(net->parameters(), options);
  auto f = compile([&](const Tensors& in) -> Tensors {
    optimizer.zero_grad();
    Tensor loss = F::mse_loss(net->forward(in[0]), in[1]);
    loss.backward();
    if (step_inside) optimizer.step();
    return {loss.detach()};
  });
  for (int64_t n : {4, 4, 3, 4}) {
    seen.add(f({plain({n, 3}), plain({n, 1})}));
    if (!step_inside) optimizer.step();
  }
  seen.add(values(net->parameters()));
}

const UserProgram kTraining[] = {
    {"SgdWithNesterov",
     [](const Wrap& compile, Seen& seen) {
       trains<optim::SGD>(compile, seen, optim::SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.01), true);
     }},
    {"AdamWOutside",
     [](const Wrap& compile, Seen& seen) { trains<optim::AdamW>(compile, seen, optim::AdamWOptions(0.01), false); }},
    {"AmsGrad", [](const Wrap& compile,
                   Seen& seen) { trains<optim::Adam>(compile, seen, optim::AdamOptions(0.01).amsgrad(true), true); }},
    {"RmsPropCentered",
     [](const Wrap& compile, Seen& seen) {
       trains<optim::RMSprop>(compile, seen, optim::RMSpropOptions(0.01).centered(true).momentum(0.5), true);
     }},
    {"AScheduleOfRates",
     [](const Wrap& compile, Seen& seen) {
       nn::Linear net(3, 1);
       optim::Adam optimizer(net->parameters(), optim::AdamOptions(0.1));
       optim::StepLR schedule(optimizer, 2, 0.5);
       auto f = compile([&](const Tensors& in) -> Tensors {
         optimizer.zero_grad();
         Tensor loss = net->forward(in[0]).square().mean();
         loss.backward();
         optimizer.step();
         return {loss.detach()};
       });
       for (int i = 0; i < 7; ++i) {
         seen.add(f({plain({2, 3})}));
         schedule.step();
       }
       seen.add(values(net->parameters()));
     }},
    {"TwoOptimizersInTurn",
     [](const Wrap& compile, Seen& seen) {
       nn::Linear maker(2, 3), critic(3, 1);
       optim::SGD a(maker->parameters(), optim::SGDOptions(0.1)), b(critic->parameters(), optim::SGDOptions(0.2));
       auto f = compile([&](const Tensors& in) -> Tensors {
         b.zero_grad();
         Tensor loss = critic->forward(maker->forward(in[0]).detach()).square().sum();
         loss.backward();
         b.step();
         a.zero_grad();
         Tensor second = -critic->forward(maker->forward(in[0])).sum();
         second.backward();
         a.step();
         return {loss.detach(), second.detach()};
       });
       for (int64_t n : {2, 2, 3}) seen.add(f({plain({n, 2})}));
       seen.add(values(maker->parameters()));
       seen.add(values(critic->parameters()));
     }},
    {"ParameterGroupsThatGrow",
     [](const Wrap& compile, Seen& seen) {
       Tensor a = leaf({2}), b = leaf({2});
       optim::SGD optimizer(std::vector<Tensor>{a}, optim::SGDOptions(0.1).momentum(0.9));
       auto f = compile([&](const Tensors& in) -> Tensors {
         optimizer.zero_grad();
         (a * b * in[0]).sum().backward();
         optimizer.step();
         return {a + b};
       });
       for (int i = 0; i < 4; ++i) {
         if (i == 2) optimizer.add_param_group(optim::OptimizerParamGroup({b}));
         seen.add(f({plain({2})}));
       }
     }},
    {"AWeightAverage",
     [](const Wrap& compile, Seen& seen) {
       nn::Linear net(2, 2);
       Tensors average = values(net->parameters());
       double decay = 0.5;
       auto f = compile([&](const Tensors& in) -> Tensors {
         NoGradGuard guard;
         Tensors now = net->parameters();
         for (size_t i = 0; i < now.size(); ++i) {
           now[i].add_(in[0].sum(), 0.1);
           average[i].lerp_(now[i], 1 - decay);
         }
         return average;
       });
       for (; decay < 1; decay += 0.2) seen.add(values(f({plain({2})})));
     }},
    {"AutocastOnAndOff",
     [](const Wrap& compile, Seen& seen) {
       nn::Linear net(4, 4);
       auto f = compile([&](const Tensors& in) -> Tensors {
         Tensor y = net->forward(in[0]);
         return {y, y.softmax(-1), y.matmul(y.t())};
       });
       for (bool on : {false, true, true, false}) {
         net->zero_grad();
         Tensors out;
         {
           AutocastMode autocast(kCPU, kBFloat16, on);
           out = f({plain({2, 4})});
         }
         (out[1].to(kFloat32).square().sum() + out[2].to(kFloat32).sum()).backward();
         for (const Tensor& t : out) seen.note(std::to_string(static_cast<int>(t.scalar_type())));
         seen.add(gradients(*net));
       }
     }},
    {"AutocastInsideWithASharedWeight",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = leaf({3, 3});
       auto f = compile([&](const Tensors& in) -> Tensors {
         Tensor y;
         {
           AutocastMode autocast(kCPU, kBFloat16, true);
           y = in[0].matmul(w).matmul(w);
         }
         return {y.to(kFloat32).matmul(w)};
       });
       for (int64_t n : {2, 2, 3}) {
         w.mutable_grad().reset();
         f({plain({n, 3})})[0].sum().backward();
         seen.add(w.grad());
       }
     }},
    {"LossesScaledByAChangingNumber",
     [](const Wrap& compile, Seen& seen) {
       nn::Linear net(2, 1);
       double scale = 1024;
       auto f = compile([&](const Tensors& in) -> Tensors {
         net->zero_grad();
         (net->forward(in[0]).sum() * scale).backward();
         Tensor bad = zeros({});
         for (const Tensor& p : net->parameters()) {
           bad = bad + p.grad().isfinite().logical_not().sum();
           p.mutable_grad().mul_(1 / scale);
         }
         return {bad};
       });
       for (double k : {1., 1e38, 2., 1.}) {
         seen.add(f({plain({2, 2}) * k}));
         seen.add(gradients(*net));
         scale /= 2;
       }
     }},
};

const UserProgram kModules[] = {
    {"AConvolutionOfChangingImages",
     [](const Wrap& compile, Seen& seen) {
       nn::Sequential net(nn::Conv2d(nn::Conv2dOptions(2, 3, 3).padding(1)), nn::ReLU(), nn::AdaptiveAvgPool2d(1),
                          nn::Flatten());
       auto f = compile([&](const Tensors& in) -> Tensors { return {net->forward(in[0])}; });
       for (int64_t n : {4, 5, 6}) {
         net->zero_grad();
         f({plain({1, 2, n, n + 1})})[0].sum().backward();
         seen.add(gradients(*net));
       }
     }},
    {"AttentionWithAMask",
     [](const Wrap& compile, Seen& seen) {
       nn::MultiheadAttention attention(4, 2);
       auto f = compile([&](const Tensors& in) -> Tensors {
         int64_t n = in[0].size(0);
         Tensor mask = ones({n, n}, kBool).triu(1);
         auto [y, weights] = attention->forward(in[0], in[0], in[0], {}, true, mask);
         return {y, weights};
       });
       for (int64_t n : {3, 4, 2}) {
         attention->zero_grad();
         Tensors out = f({plain({n, 2, 4})});
         out[0].square().sum().backward();
         seen.add(out);
         seen.add(gradients(*attention));
       }
     }},
    {"AnLstmWithItsState",
     [](const Wrap& compile, Seen& seen) {
       nn::LSTM lstm(2, 3);
       auto f = compile([&](const Tensors& in) -> Tensors {
         auto [y, state] = lstm->forward(in[0], std::tuple(in[1], in[2]));
         return {y, std::get<0>(state), std::get<1>(state)};
       });
       Tensor h = zeros({1, 2, 3}), c = zeros({1, 2, 3});
       for (int64_t n : {2, 3, 1}) {
         lstm->zero_grad();
         Tensors out = f({plain({n, 2, 2}), h, c});
         (out[0].sum() + out[2].square().sum()).backward();
         h = out[1].detach(), c = out[2].detach();
         seen.add({out[0], h, c});
         seen.add(gradients(*lstm));
       }
     }},
    {"AnEncoderLayerTrainedAndNot",
     [](const Wrap& compile, Seen& seen) {
       nn::TransformerEncoderLayer layer(nn::TransformerEncoderLayerOptions(4, 2).dim_feedforward(6).dropout(0.25));
       auto f = compile([&](const Tensors& in) -> Tensors { return {layer->forward(in[0])}; });
       for (bool train : {true, false, true}) {
         layer->train(train);
         layer->zero_grad();
         manual_seed(5);
         Tensor y = f({plain({3, 2, 4})})[0];
         y.square().sum().backward();
         seen.add(y);
         seen.add(gradients(*layer));
       }
     }},
    {"NormsOfOneSampleAndOfMany",
     [](const Wrap& compile, Seen& seen) {
       nn::Sequential net(nn::Conv1d(2, 4, 1), nn::GroupNorm(2, 4), nn::ReLU());
       nn::LayerNorm last(nn::LayerNormOptions({5}));
       auto f = compile([&](const Tensors& in) -> Tensors { return {last->forward(net->forward(in[0]))}; });
       for (int64_t n : {2, 1, 3}) {
         net->zero_grad();
         last->zero_grad();
         (f({plain({n, 2, 5})})[0] * numbers({n, 4, 5})).sum().backward();
         seen.add(gradients(*net));
         seen.add(gradients(*last));
       }
     }},
    {"AnEmbeddingBagOfChangingOffsets",
     [](const Wrap& compile, Seen& seen) {
       nn::EmbeddingBag bag(nn::EmbeddingBagOptions(6, 3).mode(brasa::kMean));
       auto f = compile([&](const Tensors& in) -> Tensors { return {bag->forward(in[0], in[1])}; });
       for (int64_t n : {2, 3, 4}) {
         bag->zero_grad();
         f({arange(n + 2) % 6, arange(n)})[0].square().sum().backward();
         seen.add(gradients(*bag));
       }
     }},
    {"AnEnsembleOfModules",
     [](const Wrap& compile, Seen& seen) {
       std::vector<nn::Linear> nets;
       for (int i = 0; i < 3; ++i) nets.push_back(nn::Linear(2, 2));
       size_t used = 1;
       auto f = compile([&](const Tensors& in) -> Tensors {
         Tensors out;
         for (size_t i = 0; i < used; ++i) out.push_back(nets[i]->forward(in[0]));
         return {stack(out).mean(0)};
       });
       for (size_t n : {1, 2, 3, 2}) {
         used = n;
         for (auto& net : nets) net->zero_grad();
         f({plain({2, 2})})[0].sum().backward();
         for (auto& net : nets) seen.add(gradients(*net));
       }
     }},
    {"OneFunctionForTwoModels",
     [](const Wrap& compile, Seen& seen) {
       nn::Linear a(2, 2), b(2, 3);
       nn::Linear* now = &a;
       auto f = compile([&](const Tensors& in) -> Tensors { return {(*now)->forward(in[0]).tanh()}; });
       for (int i = 0; i < 5; ++i) {
         now = i % 2 ? &b : &a;
         (*now)->zero_grad();
         f({plain({3, 2})})[0].sum().backward();
         seen.add(gradients(**now));
       }
     }},
    {"SpectralAndOtherFactorisations",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         Tensor s = in[0].matmul(in[0].t()) + eye(in[0].size(0));
         return {linalg_cholesky(s).sum(), linalg_solve(s, in[0]).square().sum(), linalg_eigvalsh(s).log().sum()};
       });
       for (int64_t n : {2, 3, 2}) {
         Tensor x = leaf({n, 3});
         Tensors out = f({x});
         (out[0] + out[1] + out[2]).backward();
         seen.add({out[0], out[1], out[2], x.grad()});
       }
     }},
    {"InterpolationByAChangingFactor",
     [](const Wrap& compile, Seen& seen) {
       std::vector<int64_t> size{4, 4};
       auto f = compile([&](const Tensors& in) -> Tensors {
         return {
             F::interpolate(in[0], F::InterpolateFuncOptions().size(size).mode(brasa::kBilinear).align_corners(false))};
       });
       for (int64_t n : {4, 6, 3}) {
         size = {n, n + 1};
         Tensor x = leaf({1, 2, 3, n});
         f({x})[0].square().sum().backward();
         seen.add(x.grad());
       }
     }},
};

INSTANTIATE_TEST_SUITE_P(Training, UserSituation, ::testing::ValuesIn(kTraining), name_of);
INSTANTIATE_TEST_SUITE_P(Modules, UserSituation, ::testing::ValuesIn(kModules), name_of);

}  // namespace

}  // namespace brasa
