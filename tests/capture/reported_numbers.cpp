// Threads about values: dtypes, NaN and infinity, and which of several elements is the largest.
#include <brasa/autograd.h>

#include <cmath>
#include <limits>

#include "reported.h"

namespace brasa {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

Tensor plain(int rows, int columns, int k = 0) { return (numbers({rows, columns}) + k).clone(); }
Tensor special(DType dtype = kFloat32) {
  return tensor(std::vector<double>{-3, kNan, -1, 0, 1, kInf, -kInf, -0.0, 2, kNan}, dtype);
}

const Reported kNumbers[] = {
    {105264, "a sum of bytes is a byte before it is anything wider",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors { return {(in[0] + in[0]).to(kInt16), (in[0] * 3 - 1).to(kInt64)}; };
       see_calls(compile, seen, f, [](int k) { return Tensors{full({k}, 128, kUInt8)}; });
       see_calls(compile, seen, f, [](int k) { return Tensors{(arange(40 + k, kInt64) * 7).to(kUInt8)}; });
     }},
    {131910, "negative numbers as bytes",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors { return {in[0].to(kUInt8), in[0].to(kInt8).to(kFloat32) * 2}; };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(5 + k, 4) * 3}; });
     }},
    {97124, "integers that become floats before a product",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor a = in[0] + in[0];
         return {a.to(kFloat32) * 0.8, a * 0.8, a / 3};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{arange(5 + k, kInt32)}; });
     }},
    {109105, "products of small integers that overflow, factored out or not",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         const Tensor &x = in[0], &y = in[1];
         return {(x * y + x * 6).to(kFloat32), (x * (y + 6)).to(kFloat32), (x * y + x * 6) / 2};
       };
       see_calls(compile, seen, f, [](int k) {
         return Tensors{(arange(30 + k, kInt64) * 5).to(kInt8), (arange(30 + k, kInt64) * 3 - 7).to(kInt8)};
       });
     }},
    {93784, "limits and maxima keep NaN and promote dtypes",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         const Tensor& x = in[0];
         Tensor y = x.flip({0}), whole = arange(10, kInt64);
         return {clamp_min(x, 0.5), clamp_max(x, 0.5), maximum(x, y),  minimum(x, y),
                 fmax(x, y),        fmin(x, y),        relu(x),        clamp_min(whole, 2.5),
                 clamp_min(x, y),   x.clamp(-1, 1),    clamp(x, y, x), hardtanh(x)};
       };
       for (DType d : {kFloat32, kFloat64, kFloat16, kBFloat16})
         see_calls(compile, seen, f, [d](int) { return Tensors{special(d)}; }, 1);
     }},
    {101695, "limits that are infinite",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         return {in[0].clamp(-0.5, kInf).clamp(-kInf, 0.5), hardtanh(in[0], -0.5, kInf), in[0].clamp(kNan, 0.5)};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(3 + k, 4).requires_grad_()}; });
     }},
    {97968, "bitwise_and, then an upper limit, of every integer dtype",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor t = bitwise_and(in[0], in[1]);
         return {clamp_max(t, in[1]), maximum(t, in[1])};
       };
       for (DType d : {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64})
         see_calls(
             compile, seen, f,
             [d](int k) {
               return Tensors{arange(30 + 3 * k, kInt64).reshape({-1, 3, 1}).to(d),
                              (arange(3, kInt64) - 1).reshape({3, 1}).to(d)};
             },
             2);
     }},
    {174172, "copysign with minus zero",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         return {copysign(in[0], -0.0), copysign(in[0], 0.0), copysign(in[0], in[1] * -0.0),
                 copysign(full({}, 1.0), in[1] * 0.0)};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(2 + k, 3), plain(2 + k, 3)}; });
     }},
    {195675, "limits beyond the range of float",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors { return {clamp(in[0], -3.4e39, 3.4e39)}; };
       auto g = [](const Tensors& in) -> Tensors { return {clamp_min(in[0], -3.4e39)}; };
       for (const TensorFunction& h : {TensorFunction(f), TensorFunction(g)})
         see_calls(compile, seen, h, [](int) { return Tensors{special()}; }, 2);
     }},
    {186281, "zero times NaN and infinity",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         const Tensor& x = in[0];
         return {x * 0, x * 0.0, x - x, x / x, 0 / x, x * zeros_like(x) + 1, x.pow(0), (x - x) * 2};
       };
       for (DType d : {kFloat32, kFloat64, kBFloat16})
         see_calls(compile, seen, f, [d](int) { return Tensors{special(d)}; }, 2);
     }},
    {183082, "argmax of what sin_ changed, transposed",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor x = in[0] * 1;
         x.sin_();
         return {x.t().argmax(), x.t().argmin(1), x.t().contiguous().argmax(), std::get<1>(x.t().max(0))};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(6 + k, 7) * 4}; });
     }},
    {193661, "argmax of reductions over the last dimensions of something that is not contiguous",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor x = in[0].permute({0, 3, 1, 2});
         return {x.mean({2, 3}).argmax(1), x.sum({2, 3}).argmax(),
                 x.var({2, 3}).argmin(1),  x.logsumexp({2, 3}).argmax(1),
                 x.amax({2, 3}).argmax(1), in[0].slice(1, 0, 100, 2).amax({1, 2}).argmax(1)};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{numbers({2, 4 + k, 5, 6}).clone()}; });
     }},
    {114229, "argmax of a difference of equal numbers, alone and beside what it is made of",
     [](const Wrap& compile, Seen& seen) {
       auto alone = [](const Tensors& in) -> Tensors {
         Tensor mul = (in[0] / in[0].atan()) * in[1].tan();
         return {(mul - mul).argmax(1)};
       };
       auto beside = [](const Tensors& in) -> Tensors {
         Tensor mul = (in[0] / in[0].atan()) * in[1].tan();
         return {mul, (mul - mul).argmax(1)};
       };
       for (const TensorFunction& f : {TensorFunction(alone), TensorFunction(beside)})
         see_calls(compile, seen, f, [](int k) { return Tensors{plain(4 + k, 9, 2), plain(4 + k, 9)}; });
     }},
    {113013, "argmax over all dimensions, of doubles and with equal elements",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         return {in[0].argmax(), in[0].argmin(), in[0].round().argmax(), in[0].round().argmax(0), in[1].argmax()};
       };
       see_calls(compile, seen, f, [](int k) {
         Tensor x = (numbers({9, 2 + k, 5}) * 3).to(kFloat64);
         return Tensors{x, special().slice(0, k)};
       });
     }},
    {181696, "two norms that evaluate with fixed numbers, on ones",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor t = batch_norm(in[0], {}, {}, zeros({10}), ones({10}), false, 0.1, 1e-5, false);
         t = group_norm(elu(t), 5, {}, {}, 1e-5);
         return {t, log_softmax(t, 1)};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{(ones({3 + k, 10, 4}) + numbers({3 + k, 10, 4}) * k)}; });
     }},
    {100970, "batch_norm with a weight of too many dimensions",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         return {batch_norm(in[0], in[1], numbers({3}) + 2, zeros({3}), ones({3}), false, 0.1, 1e-5, false)};
       };
       see_calls(
           compile, seen, f,
           [](int k) {
             return Tensors{numbers({1 + k, 3, 2, 2}).clone(),
                            k % 2 ? numbers({3}) + 1 : (numbers({3}) + 1).reshape({3, 1, 1, 1})};
           },
           4);
     }},
    {188225, "a softmax of constants that are NaN",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor t = ones({2, in[0].size(1)});
         return {acosh(log2(atan2(t, t))).softmax(1), acosh(log2(atan2(t, t))) + in[0]};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(2, 2 + k)}; });
     }},
    {183761, "a half that is narrowed, chosen and widened again",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor h = where(in[0] > 0, full_like(in[0], 0.1), in[0]).to(kFloat16);
         return {h, h.to(kFloat32) + 1};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(4 + k, 5)}; });
     }},
};
INSTANTIATE_TEST_SUITE_P(Numbers, ReportedProgram, testing::ValuesIn(kNumbers), name_of);

}  // namespace
}  // namespace brasa
