// Threads about aliases, and about what a program has besides its tensors: modes, defaults, variables, closures.
#include <brasa/autocast.h>
#include <brasa/autograd.h>
#include <brasa/nn.h>
#include <brasa/optim.h>

#include "reported.h"

namespace brasa {
namespace {

Tensor plain(int rows, int columns, int k = 0) { return (numbers({rows, columns}) + k).clone(); }

// A product that writes into its input on the way, and back.
struct ProductInPlace : autograd::Function<ProductInPlace> {
  static Tensor forward(autograd::AutogradContext* ctx, Tensor x, const Tensor& w) {
    ctx->save_for_backward({x.clone(), w});
    x.copy_(x.matmul(w).relu());
    return x.matmul(w);
  }
  static autograd::variable_list backward(autograd::AutogradContext* ctx, autograd::variable_list g) {
    auto saved = ctx->get_saved_variables();
    Tensor h = saved[0].matmul(saved[1]), dw = h.relu().t().matmul(g[0]);
    Tensor dh = g[0].matmul(saved[1].t());
    dh.mul_(h > 0);
    dw.addmm_(saved[0].t(), dh);
    return {dh.matmul(saved[1].t()), dw};
  }
};

const Reported kState[] = {
    {198094, "a scatter, then a write to what it came from",
     [](const Wrap& compile, Seen& seen) {
       auto slices = [](const Tensors& in) -> Tensors {
         Tensor y = slice_scatter(in[0], in[1].slice(0, 1, 3), 0, 1, 3);
         in[0].zero_();
         return {y};
       };
       auto nothing = [](const Tensors& in) -> Tensors {
         Tensor y = diagonal_scatter(in[0], in[0].diagonal());
         in[0].fill_(2);
         return {y};
       };
       auto clones = [](const Tensors& in) -> Tensors {
         in[0].index_fill_(0, tensor(std::vector<int64_t>{0, 2}, kInt64), 9);
         Tensor y = in[0].clone();
         in[0].clamp_(-5, 5);
         return {y, select_scatter(in[0], in[1].select(0, 0), 0, 1)};
       };
       for (const TensorFunction& f : {TensorFunction(slices), TensorFunction(nothing), TensorFunction(clones)})
         see_calls(compile, seen, f, [](int k) {
           return Tensors{arange(24 + 6 * k, kInt64).reshape({-1, 6}).clone(),
                          (arange(24 + 6 * k, kInt64) - 12).reshape({-1, 6})};
         });
     }},
    {198101, "what was computed from a view of another dtype, before a write",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor y = in[0].view(kInt32) * 2;
         y.sub_(-4);
         in[0].slice(1, 2, 5).fill_(2);
         return {y.view(kInt64)};
       };
       see_calls(compile, seen, f,
                 [](int k) { return Tensors{(arange(24 + 6 * k, kInt64) - 12).reshape({-1, 6}).clone()}; });
     }},
    {191449, "resize_ of a view leaves its base",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor base = in[0] + 1, alias = base.view({-1});
         alias.resize_({2});
         return {base + 1, alias};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{zeros({4 + k})}; });
     }},
    {81385, "resize_ of a tensor that has a view",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor y = in[0].clone(), z = y.view({-1});
         y.resize_({20 + in[0].size(0)});
         y.zero_();
         return {y, z};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{numbers({k}).clone()}; });
     }},
    {94773, "an alias of a tensor that comes to look at other memory",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor x = in[0], alias = x.slice(0);
         x.set_data(ones({3, 4}));
         return {alias, x + 1};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(2 + k, 3)}; });
     }},
    {131192, "a function that writes into a row of an input",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor row = in[0].select(0, 0);
         row.sin_();
         return {};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(2 + k, 3)}; });
     }},
    {158561, "copy_ where no gradient is asked for",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = plain(3, 3).requires_grad_(), buffer = zeros({2, 3});
       auto f = [&](const Tensors& in) -> Tensors {
         buffer.copy_(in[0] * 2);
         Tensor y = (buffer * 1).matmul(w);
         buffer.copy_(in[0]);
         return {y};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(2, 3, k)}; });
       seen.add({w.grad(), buffer});
     }},
    {185497, "an interpolation of what is then written in place",
     [](const Wrap& compile, Seen& seen) {
       Tensor mean = numbers({3, 1, 1}).clone().requires_grad_(),
              scale = (numbers({3, 1, 1}).abs() + 1).detach().requires_grad_();
       auto f = compile([&](const Tensors& in) -> Tensors {
         Tensor x = in[0];
         Tensor y = upsample_bilinear2d(x.slice(1, 0, 6).slice(2, 0, 6).unsqueeze(0), {4, 3}, false);
         x.sub_(mean).div_(scale);
         return {y, x};
       });
       for (int k = 0; k < 3; ++k) {
         Tensor base = numbers({1, 3, 8, 8 + k}).clone().requires_grad_();
         Tensors out = f({(base * 1.0).squeeze(0)});
         seen.attempt([&] { (out[0].sum() + out[1].square().sum()).backward(); });
         seen.add(out);
         seen.add({base.grad(), mean.grad(), scale.grad()});
       }
     }},
    {146212, "retain_grad of an input that is no leaf",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         in[1].retain_grad();
         return {in[1].sin() + in[0]};
       });
       for (int k = 0; k < 3; ++k) {
         Tensor x = plain(2 + k, 2).requires_grad_(), y = x.cos();
         f({x, y})[0].sum().backward();
         seen.add({x.grad(), y.grad()});
       }
     }},
    {184113, "a custom function whose products are made in place",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = plain(3, 3).requires_grad_();
       auto f = compile([&](const Tensors& in) -> Tensors { return {ProductInPlace::apply(in[0] * 1.5, w)}; });
       for (int k = 0; k < 3; ++k) {
         Tensor x = plain(2 + k, 3).requires_grad_(), y = f({x})[0];
         seen.attempt([&] { y.sin().sum().backward(); });
         seen.add({y, x.grad(), w.grad()});
       }
     }},
    {128016, "gradients on for one of two results, off around the call",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         Tensor a = in[0].sin();
         AutoGradMode on(true);
         return {a, in[0].cos()};
       });
       for (int k = 0; k < 3; ++k) {
         Tensor x = plain(2 + k, 2).requires_grad_();
         Tensors out;
         {
           NoGradGuard off;
           out = f({x});
         }
         (out[0] + out[1]).sum().backward();
         seen.add(out);
         seen.add(x.grad());
       }
     }},
    {112396, "grad mode that a function leaves switched",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         Tensor a = in[0] * 2;
         GradMode::set_enabled(!GradMode::is_enabled());
         return {a, in[0] * 3};
       });
       for (int k = 0; k < 4; ++k) {
         seen.add(f({plain(2 + k, 2).requires_grad_()}));
         seen.note(GradMode::is_enabled() ? "on" : "off");
       }
       GradMode::set_enabled(true);
     }},
    {179804, "autocast switched off inside of autocast, backward outside",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = plain(8, 8).requires_grad_();
       auto f = compile([&](const Tensors& in) -> Tensors {
         AutocastMode off(kBFloat16, false);
         return {in[0].to(kFloat32).matmul(w.t())};
       });
       for (int k = 0; k < 3; ++k) {
         Tensor h = plain(4 + k, 8).to(kBFloat16).requires_grad_(), y;
         {
           AutocastMode on(kBFloat16);
           y = f({h})[0];
         }
         y.sum().backward();
         seen.add({y, h.grad(), w.grad()});
       }
     }},
    {102414, "autocast in a part of the function that breaks",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor z = in[0].matmul(in[1]), inner;
         {
           AutocastMode on(kBFloat16);
           inner = in[0].matmul(in[1]);
           if (inner.sum().item<float>() > 1e6) return {};
           inner = inner.matmul(in[1]).sin();
         }
         return {z + inner, inner, in[0].matmul(in[1])};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(2 + k, 3), plain(3, 3, 1)}; });
     }},
    {112787, "a default dtype that is set for each of several operators",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor t = in[0], made;
         for (int i = 0; i < 4; ++i) {
           auto before = get_default_dtype();
           set_default_dtype(i % 2 ? kFloat64 : before);
           t = t.add(i);
           made = ones({2}) * i;
           set_default_dtype(before);
         }
         return {t, made, ones({2})};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{arange(2 + k, kInt64)}; });
     }},
    {191821, "a helper that reads a variable which changes between its calls",
     [](const Wrap& compile, Seen& seen) {
       Tensor current;
       auto f = [&](const Tensors& in) -> Tensors {
         auto region = [&] { return current + 1; };
         Tensor hidden = in[0];
         for (int i = 0; i < 2; ++i) {
           current = hidden;
           hidden = region();
         }
         return {hidden};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(2 + k, 2)}; });
       seen.add(current);
     }},
    {120861, "two names of one list, and then lists of their own",
     [](const Wrap& compile, Seen& seen) {
       std::vector<int64_t> global{1, 2, 3};
       const std::vector<int64_t>* list = &global;
       auto f = compile([&](const Tensors& in) -> Tensors { return {in[0] + global.back() + list->back()}; });
       std::vector<int64_t> reversed{3, 2, 1}, shorter{1, 2}, longer{1, 2, 3, 2};
       for (const auto* l :
            {&std::as_const(global), &std::as_const(reversed), &std::as_const(shorter), &std::as_const(longer)}) {
         list = l;
         seen.add(f({ones({1})}));
       }
     }},
    {116494, "a closure that a step calls",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = plain(2, 3).requires_grad_();
       optim::SGD optimizer({w}, optim::SGDOptions(0.1));
       auto f = compile([&](const Tensors& in) -> Tensors {
         return {optimizer.step([&] {
           optimizer.zero_grad();
           Tensor loss = (w * in[0]).square().sum();
           loss.backward();
           return loss;
         })};
       });
       for (int k = 0; k < 4; ++k) seen.add({f({plain(2, 3, k)})[0].detach(), w});
     }},
    {141225, "a size of two, then of one",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors { return {in[0].softmax(0) + in[0].mean(0), in[0].squeeze(0)}; };
       for (std::vector<int> sizes : {std::vector<int>{2, 1, 3, 1}, std::vector<int>{1, 2, 1, 5}})
         see_calls(compile, seen, f, [&](int k) { return Tensors{plain(sizes[k], 3).requires_grad_()}; }, 4);
     }},
    {123810, "a whole of a size that comes from the input alone",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         int64_t n = in[0].size(1);
         return {full({n, n}, -65504.0, kFloat16).triu(1), full({n}, n, kInt64)};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(2, std::vector<int>{3, 4, 1, 5, 0}[k])}; }, 5);
     }},
};
INSTANTIATE_TEST_SUITE_P(State, ReportedProgram, testing::ValuesIn(kState), name_of);

}  // namespace
}  // namespace brasa
