// Threads about sizes and numbers that change from call to call.
#include <brasa/autocast.h>
#include <brasa/autograd.h>

#include "reported.h"

namespace brasa {
namespace {

Tensor plain(int rows, int columns, int k = 0) { return (numbers({rows, columns}) + k).clone(); }

constexpr int kLengths[] = {5, 8, 3, 1, 12, 2, 7, 8};

// Of a length for each call, 0 and 1 among them.
void see_lengths(const Wrap& compile, Seen& seen, const TensorFunction& f, const std::function<Tensors(int)>& inputs) {
  see_calls(compile, seen, f, [&](int k) { return inputs(kLengths[k]); }, 8);
}

const Reported kSizes[] = {
    {116493, "differences of neighbours",
     [](const Wrap& compile, Seen& seen) {
       see_lengths(
           compile, seen, [](const Tensors& in) -> Tensors { return {diff(in[0], 1, -1).sum(-1), diff(in[0], 2, 0)}; },
           [](int n) { return Tensors{plain(n, 4)}; });
       see_lengths(
           compile, seen, [](const Tensors& in) -> Tensors { return {diff(in[0], 1, -1).sum(-1)}; },
           [](int n) { return Tensors{plain(3, n).requires_grad_()}; });
     }},
    {145587, "a size as a factor",
     [](const Wrap& compile, Seen& seen) {
       see_lengths(
           compile, seen, [](const Tensors& in) -> Tensors { return {in[0].size(0) * in[0] * in[1]}; },
           [](int n) { return Tensors{plain(n, 3), plain(n, 3, 1)}; });
     }},
    {147261, "interpolation by a factor that is no power of two",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         return {upsample_linear1d(in[0], std::nullopt, false, std::vector<double>{1.0 / 30}),
                 upsample_nearest1d(in[0], std::nullopt, std::vector<double>{1.0 / 30})};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{numbers({1, 2, (36 + k) * 30}).clone()}; }, 5);
     }},
    {103892, "adaptive pooling to one element",
     [](const Wrap& compile, Seen& seen) {
       see_lengths(
           compile, seen,
           [](const Tensors& in) -> Tensors {
             auto [most, at] = adaptive_max_pool1d(in[0], {1});
             return {most, at, adaptive_avg_pool1d(in[0], {2})};
           },
           [](int n) { return Tensors{plain(2, n).requires_grad_()}; });
     }},
    {136002, "a branch on one size",
     [](const Wrap& compile, Seen& seen) {
       see_lengths(
           compile, seen, [](const Tensors& in) -> Tensors { return {in[0].size(0) == 5 ? in[0] * 2 : in[0] + 1}; },
           [](int n) { return Tensors{plain(n, 2)}; });
     }},
    {99091, "a loop that reads and writes one column after the other",
     [](const Wrap& compile, Seen& seen) {
       see_lengths(
           compile, seen,
           [](const Tensors& in) -> Tensors {
             Tensor carry = in[0].clone();
             for (int64_t t = 1; t < carry.size(1); ++t) carry.select(1, t).add_(carry.select(1, t - 1) * 0.5);
             return {carry};
           },
           [](int n) { return Tensors{plain(3, n)}; });
     }},
    {105279, "a recurrent cell over sequences of several lengths",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = plain(4, 4).requires_grad_(), u = plain(4, 4, 1).requires_grad_();
       auto f = [&](const Tensors& in) -> Tensors {
         Tensor h = zeros({2, 4});
         for (const Tensor& x : in[0].unbind(0)) h = (x.matmul(w) + h.matmul(u) * 0.1).tanh();
         return {h};
       };
       see_lengths(compile, seen, f, [](int n) { return Tensors{numbers({n, 2, 4}).clone()}; });
       seen.add({w.grad(), u.grad()});
     }},
    {156720, "shapes of a view that come as numbers",
     [](const Wrap& compile, Seen& seen) {
       int rows = 1;
       auto f = [&](const Tensors& in) -> Tensors {
         return {in[0].view({rows, -1}).sum(1), in[0].reshape({-1, rows}).t() * rows};
       };
       see_calls(
           compile, seen, f,
           [&](int k) {
             rows = std::vector<int>{1, 2, 3, 4, 6, 12}[k];
             return Tensors{plain(3, 4 + 4 * (k % 2))};
           },
           6);
     }},
    {120801, "one helper twice in a call, for two sizes",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         auto helper = [](const Tensor& x) { return (x * 2 + 1).softmax(0).cumsum(0); };
         return {helper(in[0]), helper(in[1])};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(4 + k, 3), plain(9 - 2 * k, 3)}; });
     }},
    {194329, "sums under autocast",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = plain(4, 4).requires_grad_();
       auto f = [&](const Tensors& in) -> Tensors {
         AutocastMode on(kBFloat16);
         Tensor y = in[0].matmul(w);
         return {y.sum(), y.softmax(-1).sum(0), y.cumsum(0)};
       };
       see_lengths(compile, seen, f, [](int n) { return Tensors{plain(n, 4)}; });
       seen.add(w.grad());
     }},
    {111580, "differences of order 0 into a given tensor",
     [](const Wrap& compile, Seen& seen) {
       see_lengths(
           compile, seen,
           [](const Tensors& in) -> Tensors {
             Tensor b = empty({0}, kInt64);
             diff_out(b, in[0], 0);
             return {b};
           },
           [](int n) { return Tensors{arange(n, kInt64) * 3}; });
     }},
};
INSTANTIATE_TEST_SUITE_P(Sizes, ReportedProgram, testing::ValuesIn(kSizes), name_of);

// 106067: a size of what is not read guards nothing.
TEST(ReportedSizes, Thread106067) {
  auto f = compile([](const Tensor&, const Tensor& y) { return y + 2; });
  for (int64_t n : {0, 2, 1, 5}) expect_close(f(numbers({n}), numbers({2})), numbers({2}) + 2);
  EXPECT_EQ(f.explain().graphs.size(), 1u) << f.explain().str();
}

}  // namespace
}  // namespace brasa
