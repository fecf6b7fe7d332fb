// Shared leaves, hooks, second derivatives, views and writes.
#include <brasa/checkpoint.h>

#include <optional>

#include "cube.h"
#include "user_situations.h"

namespace brasa {
namespace {

namespace F = nn::functional;

const UserProgram kAutograd[] = {
    {"ATiedWeight",
     [](const Wrap& compile, Seen& seen) {
       Tensor table = leaf({5, 3});
       auto f = compile([&](const Tensors& in) -> Tensors {
         Tensor h = F::embedding(in[0], table).tanh();
         return {F::cross_entropy(h.matmul(table.t()), in[0])};
       });
       for (int64_t n : {3, 2, 4}) {
         table.mutable_grad().reset();
         f({arange(n)})[0].backward();
         seen.add(table.grad());
       }
     }},
    {"AccumulationOverMicroBatches",
     [](const Wrap& compile, Seen& seen) {
       nn::Linear net(3, 2);
       auto f = compile([&](const Tensors& in) -> Tensors { return {net->forward(in[0]).square().mean() / 3}; });
       for (int step = 0; step < 3; ++step) {
         net->zero_grad(step % 2 == 0);
         for (int64_t n : {2, 2, 1}) f({plain({n, 3}) + 0.1 * step})[0].backward();
         seen.add(gradients(*net));
       }
     }},
    {"ASiameseNet",
     [](const Wrap& compile, Seen& seen) {
       nn::Linear net(3, 2);
       auto f = compile([&](const Tensors& in) -> Tensors { return {net->forward(in[0]).tanh()}; });
       for (int i = 0; i < 3; ++i) {
         net->zero_grad();
         Tensor a = f({plain({2, 3})})[0], b = f({plain({2, 3}) + i})[0];
         (a - b).square().sum().backward();
         seen.add(gradients(*net));
       }
     }},
    {"ACellOverTime",
     [](const Wrap& compile, Seen& seen) {
       nn::GRUCell cell(2, 3);
       auto f = compile([&](const Tensors& in) -> Tensors { return {cell->forward(in[0], in[1])}; });
       for (int64_t steps : {1, 3, 2}) {
         cell->zero_grad();
         Tensor h = zeros({2, 3});
         for (int64_t t = 0; t < steps; ++t) h = f({plain({2, 2}) + 0.1 * t, h})[0];
         h.sum().backward();
         seen.add(gradients(*cell));
       }
     }},
    {"TruncatedBackpropagation",
     [](const Wrap& compile, Seen& seen) {
       nn::RNNCell cell(2, 3);
       auto f = compile([&](const Tensors& in) -> Tensors { return {cell->forward(in[0], in[1])}; });
       Tensor h = zeros({1, 3});
       for (int t = 0; t < 5; ++t) {
         cell->zero_grad();
         h = f({plain({1, 2}) + 0.2 * t, h.detach()})[0];
         h.square().sum().backward();
         seen.add(gradients(*cell));
       }
     }},
    {"AGradientPenalty",
     [](const Wrap& compile, Seen& seen) {
       nn::Sequential critic(nn::Linear(2, 4), nn::Tanh(), nn::Linear(4, 1));
       auto f = compile([&](const Tensors& in) -> Tensors { return {critic->forward(in[0])}; });
       for (int64_t n : {3, 3, 2}) {
         critic->zero_grad();
         Tensor x = leaf({n, 2}), y = f({x})[0].sum();
         Tensor g = autograd::grad({y}, {x}, {}, true, true)[0];
         (y + (g.norm(2, 1) - 1).square().mean()).backward();
         seen.add(gradients(*critic));
       }
     }},
    {"AGradientPenaltyInside",
     [](const Wrap& compile, Seen& seen) {
       nn::Sequential critic(nn::Linear(2, 4), nn::Softplus(), nn::Linear(4, 1));
       auto f = compile([&](const Tensors& in) -> Tensors {
         Tensor y = critic->forward(in[0]).sum();
         Tensor g = autograd::grad({y}, {in[0]}, {}, true, true)[0];
         return {y + (g.square().sum(1) - 1).square().mean()};
       });
       for (int64_t n : {3, 2, 3}) {
         critic->zero_grad();
         f({leaf({n, 2})})[0].backward();
         seen.add(gradients(*critic));
       }
     }},
    {"MetaLearning",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = leaf({3}), rate = tensor(0.1).set_requires_grad(true);
       auto f = compile([&](const Tensors& in) -> Tensors {
         Tensor loss = (in[0] * in[1]).sum().square();
         return {in[0] - autograd::grad({loss}, {in[0]}, {}, true, true)[0] * rate};
       });
       for (int i = 0; i < 3; ++i) {
         Tensor fast = f({w, plain({3})})[0];
         fast = f({fast, plain({3}) + 0.1 * i})[0];
         Tensors g = autograd::grad({fast.square().sum()}, {w, rate});
         seen.add(g);
       }
     }},
    {"AStraightThroughEstimator",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         Tensor hard = in[0].gt(0.2).to(kFloat32);
         return {hard + in[0] - in[0].detach()};
       });
       for (int64_t n : {4, 5, 2}) {
         Tensor x = leaf({n});
         Tensor y = f({x})[0];
         (y * numbers({n})).sum().backward();
         seen.add({y, x.grad()});
       }
     }},
    {"AReversedGradient",
     [](const Wrap& compile, Seen& seen) {
       struct Reverse : autograd::Function<Reverse> {
         static Tensor forward(autograd::AutogradContext* c, const Tensor& t, double k) {
           c->saved_data["k"] = k;
           return t.view_as(t);
         }
         static autograd::variable_list backward(autograd::AutogradContext* c, autograd::variable_list g) {
           return {g[0] * -c->saved_data["k"].toDouble(), Tensor()};
         }
       };
       double k = 1;
       auto f = compile([&](const Tensors& in) -> Tensors { return {Reverse::apply(in[0] * 2, k).sin()}; });
       for (; k < 3; k += 0.75) {
         Tensor x = leaf({3});
         f({x})[0].sum().backward();
         seen.add(x.grad());
       }
     }},
    {"CheckpointsInside",
     [](const Wrap& compile, Seen& seen) {
       nn::Linear a(3, 3);
       auto f = compile([&](const Tensors& in) -> Tensors {
         Tensor y = checkpoint([&](const Tensor& t) { return a->forward(t).tanh(); }, in[0]);
         return {y * in[0]};
       });
       for (int64_t n : {2, 3, 2}) {
         a->zero_grad();
         Tensor x = leaf({n, 3});
         f({x})[0].sum().backward();
         seen.add(x.grad());
         seen.add(gradients(*a));
       }
     }},
    {"ACheckpointedFunctionOfTheUsers",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         return {checkpoint([](const Tensor& t) { return Cube::apply(t.exp() * 0.5, 1.0); }, in[0])};
       });
       for (int64_t n : {2, 3, 2}) {
         Tensor x = leaf({n});
         f({x})[0].sum().backward();
         seen.add(x.grad());
       }
     }},
    {"AFunctionOfGradients",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         Tensor y = (in[0].sin() * in[1]).sum();
         Tensors g = autograd::grad({y}, {in[0], in[1]}, {}, true);
         return {g[0].norm(), g[1] / (g[0].abs().max() + 1)};
       });
       for (int64_t n : {3, 4, 3, 1}) seen.add(f({leaf({n}), leaf({n})}));
     }},
    {"SelectedGradients",
     [](const Wrap& compile, Seen& seen) {
       Tensor a = leaf({3}), b = leaf({3}), c = leaf({3});
       auto f = compile([&](const Tensors& in) -> Tensors { return {a * in[0], (b * in[0]).exp() * a, c + b}; });
       for (int k = 0; k < 6; ++k) {
         Tensors out = f({plain({3})});
         seen.add(autograd::grad({out[size_t(k % 3)].sum()}, {a, b, c}, {}, k % 2 == 0, false, true));
         if (k % 2 == 0) seen.add(autograd::grad({out[1].sum()}, {b}));
       }
     }},
    {"HooksThatComeAndGo",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = leaf({3});
       auto f = compile([&](const Tensors& in) -> Tensors { return {in[0] * w, (in[0] + w).sin()}; });
       std::optional<unsigned> hook;
       for (int i = 0; i < 6; ++i) {
         if (i == 1) hook = w.register_hook([](const Tensor& g) { return g.clamp(-0.1, 0.1); });
         if (i == 4) w.remove_hook(*hook);
         w.mutable_grad().reset();
         Tensors out = f({plain({3})});
         if (i % 2) out[0].register_hook([](const Tensor& g) { return g * 3; });
         (out[0] * out[1]).sum().backward();
         seen.add(w.grad());
       }
     }},
    {"RetainedOfEveryResult",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         Tensor a = in[0] * 2, b = a.sin(), c = b + a;
         return {a, b, c};
       });
       for (int64_t n : {2, 3, 2}) {
         Tensor x = leaf({n});
         Tensors out = f({x});
         for (const Tensor& t : out) t.retain_grad();
         out[2].square().sum().backward();
         seen.add({x.grad(), out[0].grad(), out[1].grad(), out[2].grad()});
       }
     }},
    {"AnomalyMode",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors { return {(in[0] - in[0]).sqrt() * in[0]}; });
       for (bool on : {false, true}) {
         autograd::AnomalyMode::set_enabled(on);
         Tensor x = leaf({3});
         seen.attempt([&] { f({x})[0].sum().backward(); });
         autograd::AnomalyMode::set_enabled(false);
       }
     }},
    {"ComplexGradients",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         Tensor z = complex(in[0], in[1]);
         return {(z * z.conj()).abs(), real(z.exp())};
       });
       for (int64_t n : {2, 3}) {
         Tensor a = leaf({n}), b = leaf({n});
         Tensors out = f({a, b});
         (out[0].sum() + out[1].sum()).backward();
         seen.add({a.grad(), b.grad()});
       }
     }},
    {"VectorJacobianProductsOfACompiledFunction",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors { return {in[0].matmul(in[0].t()).tanh()}; });
       for (int64_t n : {2, 3}) {
         Tensor x = leaf({n, 2});
         Tensor y = f({x})[0], ct = numbers({n, n});
         seen.add(autograd::grad({y}, {x}, {ct}, true)[0]);
         seen.add(autograd::grad({y}, {x}, {ct * 2})[0]);
       }
     }},
    {"ALeafMadeInside",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         Tensor inner = in[0].detach().clone().set_requires_grad(true);
         Tensor loss = (inner * inner).sum();
         loss.backward();
         return {inner.grad() + in[0], inner};
       });
       for (int64_t n : {2, 3, 2}) {
         Tensor x = leaf({n});
         Tensors out = f({x});
         (out[0].sum() + out[1].sum()).backward();
         seen.add({x.grad(), out[1].grad()});
       }
     }},
    {"BackwardOfAResultThatIsAnInput",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors { return {in[0], in[0].view({-1}), in[0] * 1}; });
       for (int64_t n : {2, 3}) {
         Tensor x = leaf({n, 2});
         Tensors out = f({x});
         (out[0].sum() * out[1].sum() + out[2].sum()).backward();
         seen.add({x.grad(), tensor(out[0].is_same(x))});
       }
     }},
};

const UserProgram kMemory[] = {
    {"ARunningAverage",
     [](const Wrap& compile, Seen& seen) {
       Tensor mean = zeros({3});
       double momentum = 0.1;
       auto f = compile([&](const Tensors& in) -> Tensors {
         {
           NoGradGuard guard;
           mean.mul_(1 - momentum).add_(in[0].mean(0), momentum);
         }
         return {in[0] - mean};
       });
       for (int64_t n : {2, 3, 4}) {
         Tensor x = leaf({n, 3});
         f({x})[0].square().sum().backward();
         seen.add({mean, x.grad()});
         momentum += 0.2;
       }
     }},
    {"ACacheThatIsWrittenByIndex",
     [](const Wrap& compile, Seen& seen) {
       Tensor cache = zeros({4, 2});
       int64_t at = 0;
       auto f = compile([&](const Tensors& in) -> Tensors {
         cache.select(0, at).copy_(in[0]);
         return {cache.narrow(0, 0, at + 1).sum(0)};
       });
       for (at = 0; at < 4; ++at) seen.add(f({plain({2}) + double(at)}));
       seen.add(cache);
     }},
    {"IndexPutAndScatterIntoAnArgument",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         in[0].index_add_(0, in[1], in[2]);
         in[0].scatter_(0, in[1].unsqueeze(1), 5.0);
         return {in[0] * 2};
       });
       for (int64_t n : {1, 2, 3}) {
         Tensor memory = zeros({4, 2});
         seen.add(f({memory, arange(n), plain({n, 2})}));
         seen.add(memory);
       }
     }},
    {"SwappingTwoBuffers",
     [](const Wrap& compile, Seen& seen) {
       Tensor a = plain({3}), b = plain({3}) + 1;
       auto f = compile([&](const Tensors& in) -> Tensors {
         Tensor before = a.clone();
         a.copy_(b + in[0]);
         b.copy_(before);
         std::swap(a, b);
         return {a - b};
       });
       for (int i = 0; i < 4; ++i) seen.add(f({ones({3}) * i}));
       seen.add({a, b});
     }},
    {"AViewThatOutlivesTheCall",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         Tensor y = in[0] * 2;
         return {y.select(0, 0), y.t(), y};
       });
       for (int64_t n : {2, 3}) {
         Tensors out = f({plain({n, 2})});
         out[0].add_(10);
         out[2].select(1, 1).zero_();
         seen.add(out);
       }
     }},
    {"OverlappingArguments",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         in[0].add_(in[1]);
         return {in[1] * 2, in[0].sum()};
       });
       for (int64_t n : {4, 5, 6}) {
         Tensor base = plain({n});
         seen.add(f({base.narrow(0, 0, n - 2), base.narrow(0, 2, n - 2).clone()}));
         seen.add(f({base.narrow(0, 0, n - 1), base.narrow(0, 0, n - 1)}));
         seen.add(f({base, base}));
         seen.add(base);
       }
     }},
    {"StridedArguments",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors { return {in[0] + 1, in[0].sum(0), in[0].reshape({-1})}; });
       Tensor base = leaf({4, 6});
       for (const Tensor& x : {base * 1, (base * 1).t(), (base * 1).slice(1, 0, 6, 2), (base * 1).narrow(0, 1, 2),
                               base.select(1, 0).unsqueeze(1).expand({4, 3})}) {
         base.mutable_grad().reset();
         Tensors out = f({x});
         (out[1].square().sum() + out[2].sum()).backward();
         seen.add(out);
         seen.add(base.grad());
       }
     }},
    {"AResizedInput",
     [](const Wrap& compile, Seen& seen) {
       Tensor x = plain({2, 3});
       auto f = compile([&](const Tensors& in) -> Tensors { return {x * 2 + in[0]}; });
       seen.add(f({ones({1})}));
       x.resize_({1, 3});
       seen.add(f({ones({1})}));
       x.set_data(plain({4, 2}));
       seen.add(f({ones({1})}));
     }},
    {"FillAndZeroOfGradients",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = leaf({3});
       auto f = compile([&](const Tensors& in) -> Tensors {
         (w * in[0]).sum().backward();
         Tensor g = w.grad().clone();
         w.mutable_grad().zero_();
         return {g};
       });
       for (int i = 0; i < 4; ++i) seen.add(f({plain({3}) + i}));
       seen.add(w.grad());
     }},
    {"ClipInPlace",
     [](const Wrap& compile, Seen& seen) {
       nn::Linear net(2, 2);
       auto f = compile([&](const Tensors& in) -> Tensors {
         net->zero_grad();
         net->forward(in[0]).square().sum().backward();
         nn::utils::clip_grad_value_(net->parameters(), 0.2);
         return {full({}, nn::utils::clip_grad_norm_(net->parameters(), 0.1))};
       });
       for (int64_t n : {2, 3, 1}) {
         seen.add(f({plain({n, 2})}));
         seen.add(gradients(*net));
       }
     }},
    {"SortAndGatherBack",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         auto [sorted, order] = in[0].sort(1, true);
         return {zeros_like(in[0]).scatter(1, order, sorted * 2), sorted};
       });
       for (int64_t n : {3, 5, 1}) {
         Tensor x = leaf({2, n});
         Tensors out = f({x});
         (out[0] * out[1]).sum().backward();
         seen.add({out[0], out[1], x.grad()});
       }
     }},
    {"TopKOfAChangingNumber",
     [](const Wrap& compile, Seen& seen) {
       int64_t k = 1;
       auto f = compile([&](const Tensors& in) -> Tensors {
         auto [values, indices] = in[0].topk(k);
         return {values, indices, std::get<0>(in[0].kthvalue(k))};
       });
       for (k = 1; k < 5; ++k) {
         Tensor x = leaf({2, 5});
         Tensors out = f({x});
         out[0].sum().backward();
         seen.add({out[0], out[1], out[2], x.grad()});
       }
     }},
    {"MasksAsIndices",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         Tensor y = in[0].clone();
         y.masked_fill_(in[1], 0.5);
         return {y, in[0].masked_select(in[1]) * 2, in[1].nonzero()};
       });
       for (double t : {0.0, 0.2, 2.0, -2.0}) {
         Tensor x = leaf({3, 3});
         Tensors out = f({x, x.detach() > t});
         (out[0].sum() + out[1].sum()).backward();
         seen.add(out);
         seen.add(x.grad());
       }
     }},
};

INSTANTIATE_TEST_SUITE_P(Autograd, UserSituation, ::testing::ValuesIn(kAutograd), name_of);
INSTANTIATE_TEST_SUITE_P(Memory, UserSituation, ::testing::ValuesIn(kMemory), name_of);

}  // namespace

}  // namespace brasa
