// Flags that change, and what ends a graph.
#include <brasa/control_flow.h>

#include <functional>
#include <map>
#include <optional>
#include <sstream>

#include "user_situations.h"

namespace brasa {
namespace {

namespace F = nn::functional;

const UserProgram kFlags[] = {
    {"TrainAndEvalOfDropoutAndNorm",
     [](const Wrap& compile, Seen& seen) {
       nn::Sequential net(nn::Linear(3, 4), nn::BatchNorm1d(4), nn::ReLU(), nn::Dropout(0.5), nn::Linear(4, 2));
       auto f = compile([&](const Tensors& in) -> Tensors { return {net->forward(in[0])}; });
       for (bool train : {true, true, false, true, false, false}) {
         net->train(train);
         net->zero_grad();
         manual_seed(3);
         f({plain({5, 3})})[0].square().sum().backward();
         seen.add(gradients(*net));
         seen.add(values(net->buffers()));
       }
     }},
    {"AFlagThatTurnsABranchOn",
     [](const Wrap& compile, Seen& seen) {
       bool residual = false;
       nn::Linear a(3, 3);
       auto f = compile([&](const Tensors& in) -> Tensors {
         Tensor y = a->forward(in[0]).relu();
         return {residual ? y + in[0] : y};
       });
       for (bool r : {false, true, true, false, true}) {
         residual = r;
         Tensor x = leaf({2, 3});
         a->zero_grad();
         f({x})[0].sum().backward();
         seen.add(x.grad());
         seen.add(gradients(*a));
       }
     }},
    {"GradModeOnAndOff",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = leaf({3});
       auto f = compile([&](const Tensors& in) -> Tensors { return {in[0] * w, in[0].detach() + w.sum()}; });
       for (int i = 0; i < 6; ++i) {
         AutoGradMode mode(i % 3 != 1);
         std::optional<InferenceMode> inference;
         if (i == 4) inference.emplace();
         seen.add(f({plain({2, 3})}));
       }
     }},
    {"NoGradInsideByAFlag",
     [](const Wrap& compile, Seen& seen) {
       bool frozen = false;
       Tensor w = leaf({3}), v = leaf({3});
       auto f = compile([&](const Tensors& in) -> Tensors {
         Tensor y;
         {
           AutoGradMode mode(!frozen);
           y = in[0] * w;
         }
         return {y * v};
       });
       for (bool now : {false, true, false, true}) {
         frozen = now;
         w.mutable_grad().reset();
         v.mutable_grad().reset();
         f({plain({3})})[0].sum().backward();
         seen.add({w.grad().defined() ? w.grad() : Tensor(), v.grad()});
       }
     }},
    {"FreezingAParameterLater",
     [](const Wrap& compile, Seen& seen) {
       nn::Sequential net(nn::Linear(2, 3), nn::Tanh(), nn::Linear(3, 1));
       auto f = compile([&](const Tensors& in) -> Tensors { return {net->forward(in[0]).sum()}; });
       for (int i = 0; i < 5; ++i) {
         net->parameters()[0].set_requires_grad(i != 2);
         net->parameters()[2].set_requires_grad(i < 3);
         net->zero_grad();
         f({plain({4, 2})})[0].backward();
         seen.add(gradients(*net));
       }
     }},
    {"AnInputThatNeedsGradientsOnlySometimes",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = leaf({2, 2});
       auto f = compile([&](const Tensors& in) -> Tensors { return {in[0].matmul(w).sin(), in[0] * 2}; });
       for (bool needs : {false, true, false, true}) {
         Tensor x = plain({3, 2}).set_requires_grad(needs);
         w.mutable_grad().reset();
         Tensors out = f({x});
         (out[0].sum() + out[1].sum()).backward();
         seen.add({out[0], out[1], w.grad(), x.grad().defined() ? x.grad() : Tensor()});
       }
     }},
    {"AnAbsentOperand",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors { return {F::linear(in[0], in[1], in[2]).relu()}; });
       for (bool bias : {true, false, false, true}) {
         Tensor w = leaf({3, 2}), b = bias ? leaf({3}) : Tensor();
         f({plain({4, 2}), w, b})[0].sum().backward();
         seen.add({w.grad(), bias ? b.grad() : Tensor()});
       }
     }},
    {"AFunctionThatIsSwapped",
     [](const Wrap& compile, Seen& seen) {
       std::function<Tensor(const Tensor&)> activation = [](const Tensor& t) { return t.relu(); };
       auto f = compile([&](const Tensors& in) -> Tensors { return {activation(in[0] * 2)}; });
       for (int i = 0; i < 6; ++i) {
         if (i % 3 == 1) activation = [](const Tensor& t) { return gelu(t); };
         if (i % 3 == 2) activation = [](const Tensor& t) { return t.sigmoid() * t; };
         Tensor x = leaf({5});
         f({x})[0].sum().backward();
         seen.add(x.grad());
       }
     }},
    {"WeightsThatAreReplaced",
     [](const Wrap& compile, Seen& seen) {
       nn::Linear layer(2, 2);
       auto f = compile([&](const Tensors& in) -> Tensors { return {layer->forward(in[0])}; });
       for (int i = 0; i < 4; ++i) {
         if (i == 1) layer->weight.set_data(plain({2, 2}));
         if (i == 2) layer->to(kFloat64);
         if (i == 3) layer->weight = leaf({2, 2}).detach().to(kFloat64).set_requires_grad(true);
         f({plain({3, 2}).to(layer->weight.scalar_type())})[0].sum().backward();
         seen.add({layer->weight.grad(), layer->bias.grad()});
         layer->weight.mutable_grad().reset();
         layer->bias.mutable_grad().reset();
       }
     }},
    {"DefaultDTypeInBetween",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile(
           [](const Tensors& in) -> Tensors { return {in[0] + ones({3}), arange(3) / 2, in[0].to(kInt64) * 0.5}; });
       for (DType d : {kFloat32, kFloat64, kFloat32}) {
         DType before = get_default_dtype();
         set_default_dtype(d);
         Tensors out = f({arange(3, kFloat32)});
         set_default_dtype(before);
         seen.add(out);
       }
     }},
};

const UserProgram kBreaks[] = {
    {"EarlyStopping",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         Tensor x = in[0];
         int steps = 0;
         while (x.norm().item<double>() > 0.5 && steps < 8) {
           x = x * 0.7;
           ++steps;
         }
         return {x, full({}, double(steps))};
       });
       for (double k : {1., 3., 0.2, 8.}) {
         Tensor x = leaf({3});
         Tensors out = f({x * k});
         out[0].sum().backward();
         seen.add({out[0], out[1], x.grad()});
       }
     }},
    {"LoggingInTheMiddle",
     [](const Wrap& compile, Seen& seen) {
       std::vector<double> log;
       Tensor w = leaf({3});
       auto f = compile([&](const Tensors& in) -> Tensors {
         Tensor loss = (in[0] * w).square().sum();
         log.push_back(loss.item<double>());
         return {loss + w.abs().sum()};
       });
       for (int i = 0; i < 4; ++i) {
         w.mutable_grad().reset();
         f({plain({3}) + i})[0].backward();
         seen.add({w.grad(), tensor(log.back())});
       }
     }},
    {"AnErrorThatIsCaughtInside",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         Tensor y = in[0] * 2;
         try {
           y = y + in[1];
         } catch (const Error&) {
           y = y - 1;
         }
         return {y};
       });
       for (int64_t n : {3, 2, 3, 4}) {
         Tensor x = leaf({3});
         f({x, plain({n})})[0].square().sum().backward();
         seen.add(x.grad());
       }
     }},
    {"AnErrorBehindAWrite",
     [](const Wrap& compile, Seen& seen) {
       Tensor count = zeros({1});
       auto f = compile([&](const Tensors& in) -> Tensors {
         count.add_(1);
         return {in[0].matmul(in[1]), count * 1};
       });
       for (int64_t n : {2, 3, 2, 4}) {
         seen.attempt([&] { seen.add(f({plain({2, 2}), plain({n, 2})})); });
         seen.add(count);
       }
     }},
    {"AMapOfTensorsOutside",
     [](const Wrap& compile, Seen& seen) {
       std::map<std::string, Tensor> state;
       auto f = compile([&](const Tensors& in) -> Tensors {
         Tensor& last = state["last"];
         Tensor y = last.defined() ? in[0] + last : in[0] * 1;
         last = y.detach() * 0.5;
         return {y};
       });
       for (int64_t n : {3, 3, 3}) {
         Tensor x = leaf({n});
         f({x})[0].square().sum().backward();
         seen.add({x.grad(), state["last"]});
       }
     }},
    {"NestedCompiledFunctions",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = leaf({3});
       auto inner = compile(
           [&](const Tensors& in) -> Tensors { return {in[0] * w, in[0].sum().item<double>() > 0 ? w : w * 2}; });
       auto outer = compile([&](const Tensors& in) -> Tensors {
         Tensors a = inner({in[0] + 1}), b = inner({a[0] - 2});
         return {a[0] * b[1] + b[0]};
       });
       for (int64_t n : {2, 2, 3}) {
         w.mutable_grad().reset();
         outer({plain({n, 3})})[0].sum().backward();
         seen.add(w.grad());
         seen.add(inner({plain({1, 3})}));
       }
     }},
    {"PrintingAndData",
     [](const Wrap& compile, Seen& seen) {
       std::string text;
       auto f = compile([&](const Tensors& in) -> Tensors {
         Tensor y = in[0] + 1;
         std::ostringstream out;
         out << y.sizes() << y;
         text = out.str();
         return {y * y.detach().data_ptr<float>()[0]};
       });
       for (int64_t n : {2, 3}) {
         Tensor x = leaf({n});
         f({x})[0].sum().backward();
         seen.note(text);
         seen.add(x.grad());
       }
     }},
    {"ABackwardInsideBehindABreak",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = leaf({2});
       auto f = compile([&](const Tensors& in) -> Tensors {
         Tensor loss = (in[0] * w).square().sum();
         if (loss.item<double>() > 0.1) loss = loss * 0.5;
         loss.backward();
         return {w.grad() * 1, loss};
       });
       for (double k : {1., .1, 2.}) {
         w.mutable_grad().reset();
         seen.add(f({plain({2}) * k})[0]);
         seen.add(w.grad());
       }
     }},
    {"UniqueAndItsCounts",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         auto [values, inverse, counts] = _unique2(in[0], true, true, true);
         return {values * 2, inverse, counts};
       });
       for (int64_t n : {3, 5, 5}) seen.add(f({arange(n) % 2}));
     }},
    {"CondOnAValueWithoutABreak",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = leaf({3});
       auto f = compile([&](const Tensors& in) -> Tensors {
         return {cond(in[0].sum() > 0, [&](Tensor x) { return x * w; }, [&](Tensor x) { return x - w.sin(); }, in[0])};
       });
       for (double k : {1., -1., 2., -2.}) {
         w.mutable_grad().reset();
         Tensor x = leaf({3}) * k;
         f({x})[0].square().sum().backward();
         seen.add(w.grad());
       }
     }},
};

INSTANTIATE_TEST_SUITE_P(Flags, UserSituation, ::testing::ValuesIn(kFlags), name_of);
INSTANTIATE_TEST_SUITE_P(Breaks, UserSituation, ::testing::ValuesIn(kBreaks), name_of);

}  // namespace

}  // namespace brasa
