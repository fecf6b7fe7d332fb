// Numbers and lengths that change.
#include <limits>

#include "user_situations.h"

namespace brasa {
namespace {

namespace F = nn::functional;

const UserProgram kNumbers[] = {
    {"ATemperatureThatDecays",
     [](const Wrap& compile, Seen& seen) {
       double temperature = 4;
       auto f = compile([&](const Tensors& in) -> Tensors { return {(in[0] / temperature).softmax(-1)}; });
       for (int i = 0; i < 6; ++i, temperature *= 0.7) {
         Tensor x = leaf({2, 3});
         Tensor y = f({x})[0];
         y.select(1, 0).sum().backward();
         seen.add({y, x.grad()});
       }
     }},
    {"AnIntegerThatBecomesAFraction",
     [](const Wrap& compile, Seen& seen) {
       Scalar k = 2;
       auto f = compile([&](const Tensors& in) -> Tensors { return {in[0] * k, in[0].pow(k)}; });
       for (Scalar next : {Scalar(2), Scalar(3), Scalar(2.5), Scalar(2), Scalar(0)}) {
         k = next;
         Tensor x = leaf({3}) + 1;
         seen.add(f({x}));
         seen.add(f({arange(1, 4)})[0]);
       }
     }},
    {"ABetaOfZeroFirst",
     [](const Wrap& compile, Seen& seen) {
       double beta = 0;
       Tensor w = leaf({3});
       auto f = compile([&](const Tensors& in) -> Tensors {
         return {(in[0] * w).sum() + beta * w.square().sum() + beta * beta * w.abs().sum()};
       });
       for (double b : {0., 0., .5, 1., 0., -1.}) {
         beta = b;
         w.mutable_grad().reset();
         f({plain({3})})[0].backward();
         seen.add(w.grad());
       }
     }},
    {"AlphasOfAddAndSub",
     [](const Wrap& compile, Seen& seen) {
       double alpha = 1;
       auto f = compile([&](const Tensors& in) -> Tensors {
         return {in[0].add(in[1], alpha), in[0].sub(in[1], alpha + 1), in[0].addcmul(in[1], in[0], alpha)};
       });
       for (; alpha < 4; alpha += 1.25) {
         Tensor a = leaf({2, 2}), b = leaf({2});
         Tensors out = f({a, b});
         (out[0] * out[1] + out[2]).sum().backward();
         seen.add({a.grad(), b.grad()});
       }
     }},
    {"AnInfiniteBoundThatGetsFinite",
     [](const Wrap& compile, Seen& seen) {
       double high = std::numeric_limits<double>::infinity();
       auto f = compile([&](const Tensors& in) -> Tensors { return {in[0].clamp(-0.1, high)}; });
       for (double h : {high, high, 0.2, -0.05, high}) {
         high = h;
         Tensor x = leaf({5});
         f({x})[0].sum().backward();
         seen.add({f({x})[0], x.grad()});
       }
     }},
    {"AnAxisThatChanges",
     [](const Wrap& compile, Seen& seen) {
       int64_t axis = 0;
       auto f = compile([&](const Tensors& in) -> Tensors {
         return {in[0].sum(axis), in[0].softmax(axis), in[0].cumsum(axis), in[0].select(axis, 1)};
       });
       for (int64_t a : {0, 1, -1, 0, 2}) {
         axis = a;
         Tensor x = leaf({2, 3, 4});
         Tensors out = f({x});
         seen.add(out);
         (out[1] * out[2]).sum().backward();
         seen.add(x.grad());
       }
     }},
    {"ANumberOfItem",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         auto k = in[0].sum().item<double>();
         return {in[1] * k, in[1] + int64_t(k * 10)};
       });
       for (int i = 1; i < 5; ++i) {
         Tensor x = leaf({3});
         Tensors out = f({plain({3}) * double(i), x});
         (out[0] * out[1]).sum().backward();
         seen.add({out[0], out[1], x.grad()});
       }
     }},
    {"ACountOfItemAsASize",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         auto n = in[0].gt(0).sum().item<int64_t>();
         return {in[1].narrow(0, 0, n) * 2, zeros({n, 2}) + 1, full({2}, double(n))};
       });
       for (int i = 0; i < 5; ++i) {
         Tensor x = leaf({6});
         Tensors out = f({numbers({6}) - 0.3 * i + 0.4, x});
         out[0].sum().backward();
         seen.add(out);
         seen.add(x.grad());
       }
     }},
    {"ASeedOfDropout",
     [](const Wrap& compile, Seen& seen) {
       double p = 0.5;
       auto f =
           compile([&](const Tensors& in) -> Tensors { return {F::dropout(in[0], F::DropoutFuncOptions().p(p))}; });
       for (double q : {0.5, 0.5, 0.25, 0.0, 0.9}) {
         p = q;
         manual_seed(7);
         Tensor x = leaf({4, 5}), y = f({x})[0];
         y.sum().backward();
         seen.add({y, x.grad()});
       }
     }},
    {"LabelSmoothingThatChanges",
     [](const Wrap& compile, Seen& seen) {
       double smoothing = 0;
       auto f = compile([&](const Tensors& in) -> Tensors {
         return {F::cross_entropy(in[0], in[1], F::CrossEntropyFuncOptions().label_smoothing(smoothing))};
       });
       for (double s : {0.0, 0.1, 0.2, 0.0}) {
         smoothing = s;
         Tensor x = leaf({3, 4});
         Tensor loss = f({x, tensor({0, 3, 1})})[0];
         loss.backward();
         seen.add({loss, x.grad()});
       }
     }},
    {"ANumberInsideOfALoopOfChangingLength",
     [](const Wrap& compile, Seen& seen) {
       int steps = 1;
       auto f = compile([&](const Tensors& in) -> Tensors {
         Tensor y = in[0];
         for (int i = 0; i < steps; ++i) y = y * (0.5 + i) + in[0];
         return {y};
       });
       for (int s : {1, 2, 3, 2, 0, 3}) {
         steps = s;
         Tensor x = leaf({4});
         f({x})[0].sum().backward();
         seen.add(x.grad());
       }
     }},
    {"BoolsAndSmallIntegersAsNumbers",
     [](const Wrap& compile, Seen& seen) {
       Scalar k = true;
       auto f = compile(
           [&](const Tensors& in) -> Tensors { return {in[0] + k, in[0] * k, in[0].eq(k), full_like(in[0], k)}; });
       for (Scalar next : {Scalar(true), Scalar(false), Scalar(1), Scalar(3), Scalar(0.5)}) {
         k = next;
         for (DType dtype : {kFloat32, kFloat64, kInt64})
           if (dtype != kInt64 || !k.isFloatingPoint()) seen.add(f({arange(3).to(dtype)}));
       }
     }},
};

const UserProgram kSizes[] = {
    {"LengthsInRandomOrder",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = leaf({3, 3});
       auto f = compile([&](const Tensors& in) -> Tensors { return {(in[0].matmul(w)).tanh().mean(0)}; });
       for (int64_t n : {5, 1, 7, 2, 0, 5, 3}) {
         w.mutable_grad().reset();
         f({plain({n, 3})})[0].sum().backward();
         seen.add(w.grad());
       }
     }},
    {"TwoLengthsThatMeet",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         return {cat({in[0], in[1]}), in[0].size(0) == in[1].size(0) ? in[0] + in[1] : in[0]};
       });
       for (auto [n, m] : {std::pair<int64_t, int64_t>(3, 4), {4, 4}, {4, 3}, {1, 4}, {4, 1}, {2, 2}}) {
         Tensor a = leaf({n}), b = leaf({m});
         Tensors out = f({a, b});
         (out[0].sum() + out[1].square().sum()).backward();
         seen.add({out[0], out[1], a.grad(), b.grad().defined() ? b.grad() : Tensor()});
       }
     }},
    {"BroadcastAgainstOne",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors { return {in[0] * in[1] + in[1]}; });
       for (auto [n, m] : {std::pair<int64_t, int64_t>(3, 3), {3, 1}, {1, 3}, {5, 5}, {5, 1}, {1, 1}}) {
         Tensor a = leaf({n, 2}), b = leaf({m, 2});
         f({a, b})[0].square().sum().backward();
         seen.add({a.grad(), b.grad()});
       }
     }},
    {"APaddingUpToAMultiple",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         int64_t n = in[0].size(1), more = (4 - n % 4) % 4;
         Tensor y = F::pad(in[0], F::PadFuncOptions({0, more}));
         return {y.view({in[0].size(0), -1, 4}).sum(1)};
       });
       for (int64_t n : {4, 5, 7, 8, 3, 1}) {
         Tensor x = leaf({2, n});
         f({x})[0].square().sum().backward();
         seen.add(x.grad());
       }
     }},
    {"HalvesOfOddSizes",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         Tensors parts = in[0].chunk(2, 1);
         return {parts[0].sum() * parts.back(), in[0].tensor_split(3, 1)[1]};
       });
       for (int64_t n : {6, 5, 4, 7, 2}) {
         Tensor x = leaf({2, n});
         Tensors out = f({x});
         (out[0].sum() + out[1].square().sum()).backward();
         seen.add({out[0], out[1], x.grad()});
       }
     }},
    {"AMaskOfTheLengths",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         Tensor mask = arange(in[0].size(1)).unsqueeze(0) < in[1].unsqueeze(1);
         return {in[0].masked_fill(mask.logical_not(), -1e9).softmax(1), (in[0] * mask).sum(1) / in[1]};
       });
       for (int64_t n : {3, 4, 6, 2}) {
         Tensor x = leaf({2, n});
         Tensors out = f({x, tensor({int64_t(1), n})});
         (out[0] * numbers({2, n})).sum().backward();
         seen.add({out[0], out[1], x.grad()});
       }
     }},
    {"WindowsByUnfold",
     [](const Wrap& compile, Seen& seen) {
       int64_t size = 2;
       auto f = compile([&](const Tensors& in) -> Tensors { return {in[0].unfold(0, size, 2).amax(1)}; });
       for (int64_t n : {4, 5, 6, 7}) {
         size = n / 2;
         Tensor x = leaf({n});
         f({x})[0].sum().backward();
         seen.add(x.grad());
       }
     }},
    {"AnIndexThatFollowsFromTheSize",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         Tensor last = in[0].select(0, in[0].size(0) - 1), middle = in[0].select(0, in[0].size(0) / 2);
         return {last * middle, in[0].flip(0).narrow(0, 0, (in[0].size(0) + 1) / 2)};
       });
       for (int64_t n : {3, 4, 1, 6, 2}) {
         Tensor x = leaf({n, 2});
         Tensors out = f({x});
         (out[0].sum() + out[1].square().sum()).backward();
         seen.add({x.grad()});
       }
     }},
    {"ACacheThatGrows",
     [](const Wrap& compile, Seen& seen) {
       Tensor keys = zeros({0, 3});
       auto f = compile([&](const Tensors& in) -> Tensors {
         keys = cat({keys, in[0]});
         return {in[0].matmul(keys.t()).softmax(-1).matmul(keys)};
       });
       for (int i = 0; i < 6; ++i) seen.add(f({plain({1, 3}) + 0.1 * i}));
       seen.add(keys);
     }},
    {"ABatchOfListsOfChangingNumber",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         Tensor sum = in[0];
         for (size_t i = 1; i < in.size(); ++i) sum = sum + in[i] * double(i);
         return {sum, stack(in).amax(0)};
       });
       for (size_t n : {2, 3, 2, 1, 4}) {
         Tensors xs;
         for (size_t i = 0; i < n; ++i) xs.push_back(leaf({2 + int64_t(n % 2)}));
         Tensors out = f(xs);
         (out[0] * out[1]).sum().backward();
         for (const Tensor& x : xs) seen.add(x.grad());
       }
     }},
    {"ARankThatChanges",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile(
           [](const Tensors& in) -> Tensors { return {in[0].flatten().cumsum(0), in[0].sum(-1) + in[0].dim()}; });
       for (int rank : {1, 2, 3, 2, 1}) {
         Tensor x = leaf(std::vector<int64_t>(size_t(rank), 2));
         Tensors out = f({x});
         (out[0].sum() * out[1].sum()).backward();
         seen.add({out[0], out[1], x.grad()});
       }
     }},
    {"DTypesThatChange",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors { return {in[0] * 2 + in[1], in[0].mean()}; });
       for (DType d : {kFloat32, kFloat64, kBFloat16, kFloat32, kFloat16}) {
         Tensor x = plain({4}).to(d).set_requires_grad(true);
         Tensors out = f({x, ones({4})});
         (out[0].to(kFloat32).sum() * out[1].to(kFloat32)).backward();
         seen.add({out[0].detach().to(kFloat32), x.grad().to(kFloat32)});
       }
     }},
};

INSTANTIATE_TEST_SUITE_P(Numbers, UserSituation, ::testing::ValuesIn(kNumbers), name_of);
INSTANTIATE_TEST_SUITE_P(Sizes, UserSituation, ::testing::ValuesIn(kSizes), name_of);

}  // namespace

}  // namespace brasa
