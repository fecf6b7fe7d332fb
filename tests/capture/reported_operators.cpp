// Threads about single families of operators: padding, division, sorting, running sums, scatters.
#include <brasa/autograd.h>

#include <cmath>
#include <limits>

#include "reported.h"

namespace brasa {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor plain(int rows, int columns, int k = 0) { return (numbers({rows, columns}) + k).clone(); }

const Reported kOperators[] = {
    {97117, "a border of nothing is a copy",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor b = pad(in[0], {0, 0});
         if (in[0].mean().item<float>() >= -1e5) in[0].select(0, 0).fill_(1);
         return {b, constant_pad_nd(in[0], {0, 0, 0, 0})};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(2 + k, 3, 2)}; });
     }},
    {144462, "one element with a wide border",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         return {pad(in[0], {10, 10}, "constant", 0), pad(in[0], {3, 4, 1, 2}, "constant", -2.5)};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{numbers({1, 1 + k, 1}).clone().requires_grad_()}; });
     }},
    {189895, "a border around a long sum and its running sums",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor lengths = in[0].sum(IntArrayRef{-1}, false, kInt32);
         return {pad(cumsum(lengths, 0, kInt32), {1, 0}), pad(lengths, {1, 0}), pad(lengths, {2, 1}, "constant", 7)};
       };
       see_calls(compile, seen, f,
                 [](int k) { return Tensors{arange((1 + k) * 16384, kInt64).reshape({1 + k, -1}) % 3 > 0}; });
     }},
    {195582, "normalisation, then a border that takes away",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = numbers({5, 10}).clone(), mean = numbers({6}).clone(), var = numbers({6}).abs() + 0.5;
       auto f = [&](const Tensors& in) -> Tensors {
         Tensor x = batch_norm(in[0], {}, {}, mean, var, false, 0.1, 1e-5, false);
         x = x.view({x.size(0), -1});
         return {pad(x, {0, 10 - x.size(1)}).matmul(w.t()), pad(x, {-3, 10 - x.size(1), -1, 1})};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{numbers({3, 6, 3, 3 + k}).clone().requires_grad_()}; });
     }},
    {97807, "border after border",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor x = pad(pad(in[0], {1, 2}, "constant", 3), {2, -1, 1, 0}, "constant", -1);
         return {x, pad(pad(x, {1, 1}, "reflect"), {0, 2}, "replicate")};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(2, 3 + k).requires_grad_()}; });
     }},
    {184406, "the least integer divided by -1",
     [](const Wrap& compile, Seen& seen) {
       for (DType d : {kInt32, kInt64, kInt16, kInt8}) {
         auto f = [](const Tensors& in) -> Tensors { return {floor_divide(in[0], in[1]), div(in[0], in[1], "trunc")}; };
         auto least = [d] {
           return bitwise_left_shift(ones({3}, d), d == kInt64 ? 63 : d == kInt32 ? 31 : d == kInt16 ? 15 : 7);
         };
         see_calls(compile, seen, f, [&](int) { return Tensors{least(), tensor({-1, 2, -3}, d)}; }, 2);
       }
     }},
    {127804, "remainders of the least integer by -1",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors { return {remainder(in[0], in[1]), fmod(in[0], in[1])}; };
       for (DType d : {kInt32, kInt64})
         see_calls(compile, seen, f, [d](int) {
           Tensor least = bitwise_left_shift(ones({2, 2}, d), d == kInt64 ? 63 : 31);
           return Tensors{least, full({2, 2}, -1, d)};
         });
     }},
    {154420, "remainders by zero",
     [](const Wrap& compile, Seen& seen) {
       for (DType d : {kUInt8, kInt32, kFloat32}) {
         auto by = [](auto op) { return [op](const Tensors& in) -> Tensors { return {op(in[0], in[1])}; }; };
         auto inputs = [d](int k) { return Tensors{tensor({5, 7, 9}, d), tensor({2, k % 2, 3}, d)}; };
         see_calls(compile, seen, by([](const Tensor& a, const Tensor& b) { return fmod(a, b); }), inputs, 4);
         see_calls(compile, seen, by([](const Tensor& a, const Tensor& b) { return remainder(a, b); }), inputs, 4);
       }
     }},
    {197895, "quotients just below an integer",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         const Tensor &a = in[0], &b = in[1];
         return {floor_divide(a, b), div(a, b, "floor"), div(a, b, "trunc"), remainder(a, b), floor_divide(a, 0.1)};
       };
       for (DType d : {kFloat32, kFloat64})
         see_calls(compile, seen, f, [d](int k) {
           Tensor a = tensor({1.0, 0.5, 6.0, 1.0, -1.0, 0.3}, d), b = tensor({0.1, 0.1, 0.2, 1.0 / 3, 0.1, -0.1}, d);
           return Tensors{a.slice(0, k), b.slice(0, k)};
         });
     }},
    {42896, "an integer divided by a tensor of one integer",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         return {floor_divide(full({}, 2401, kInt64), in[0]), full({}, 2401, kInt64) / in[0], in[0] * in[0]};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{full({}, 49 + k, kInt64)}; });
     }},
    {117623, "running sums of floats into integers",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor to = in[0];
         return {cumsum_out(to, in[1], 0)};
       };
       for (DType d : {kInt32, kInt16, kFloat64})
         see_calls(compile, seen, f, [d](int k) { return Tensors{zeros({5 + k}, d), numbers({5 + k}) * 3}; });
     }},
    {174459, "sorts of equal elements",
     [](const Wrap& compile, Seen& seen) {
       for (bool descending : {false, true}) {
         auto f = [descending](const Tensors& in) -> Tensors {
           auto [values, at] = sort(in[0], true, -1, descending);
           auto [columns, rows] = sort(in[0], true, 0, descending);
           return {values, at, columns, rows};
         };
         see_calls(compile, seen, f,
                   [](int k) { return Tensors{arange(24 + 8 * k, kInt64).reshape({8, -1}) * 7 % 3}; });
       }
     }},
    {172062, "gradients of running products, zeros among the factors",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors { return {cumprod(in[0], 1), cumprod(in[0] * 2, 0)}; };
       see_calls(compile, seen, f, [](int k) {
         Tensor x = plain(3, 6 + k);
         x.select(1, 2).fill_(0);
         x.select(0, 1).slice(0, 4).fill_(0);
         return Tensors{x.to(kFloat64).requires_grad_()};
       });
     }},
    {171258, "fractional pooling with given places",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         auto [values, at] = fractional_max_pool2d(in[0], {3, 3}, {5, 4}, in[1]);
         return {values, at};
       };
       see_calls(compile, seen, f, [](int k) {
         return Tensors{numbers({1, 3, 12 + k, 13}).clone().requires_grad_(), numbers({1, 3, 2}).abs() * 0.9};
       });
     }},
    {186018, "sin of atan of NaN",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         return {in[0].atan().sin(), in[0].atan().cos(), in[0].rsqrt().angle().atan().sin(), in[0].exp().log()};
       };
       for (DType d : {kFloat32, kFloat64})
         see_calls(compile, seen, f,
                   [d](int k) { return Tensors{tensor(std::vector<double>{kNan, 1, -2, 0, kNan, 3}, d).slice(0, k)}; });
     }},
    {189801, "a quotient by elu of very small numbers",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         return {1 / elu(in[0]), elu(in[0]).sign(), in[0].expm1().reciprocal()};
       };
       see_calls(compile, seen, f, [](int k) {
         return Tensors{tensor(std::vector<double>{-1e-8, -1e-12, -1e-20, 1e-9, -1e-4, -0.5}, kFloat32).slice(0, k)};
       });
     }},
    {94017, "what is added up in place keeps its dtype",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor low = in[0].clone();
         for (int i = 0; i < 3; ++i) low += in[1] * (i + 1);
         Tensor count = in[2].clone();
         count += in[2] * 100;
         return {low, count};
       };
       for (DType d : {kFloat16, kBFloat16})
         see_calls(compile, seen, f, [d](int k) {
           return Tensors{plain(2 + k, 3).to(d), plain(2 + k, 3), arange(4 + k, kInt64).to(kUInt8)};
         });
     }},
};
INSTANTIATE_TEST_SUITE_P(Operators, ReportedProgram, testing::ValuesIn(kOperators), name_of);

}  // namespace
}  // namespace brasa
