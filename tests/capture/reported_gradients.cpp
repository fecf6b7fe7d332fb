// Threads about autograd around and inside of compiled functions.
#include <brasa/autograd.h>
#include <brasa/nn.h>

#include "reported.h"

namespace brasa {
namespace {

Tensor plain(int rows, int columns, int k = 0) { return (numbers({rows, columns}) + k).clone(); }
void note_gradient(Seen& seen, const Tensor& t) { seen.note(t.requires_grad() ? "wants a gradient" : "wants none"); }

// Backward exchanges what it received.
struct Mixed : autograd::Function<Mixed> {
  static Tensors forward(autograd::AutogradContext*, const Tensor& x) { return {x * 1, x * 2}; }
  static autograd::variable_list backward(autograd::AutogradContext*, autograd::variable_list g) {
    return {g[0].clone().copy_(g[1]) * 3};
  }
};

const Reported kGradients[] = {
    {176854, "detach_ of an intermediate value",
     [](const Wrap& compile, Seen& seen) {
       auto f = [&](const Tensors& in) -> Tensors {
         Tensor y = in[0] * 2.0;
         y.detach_();
         note_gradient(seen, y);
         return {y + 1, in[0] * y};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(2 + k, 2).requires_grad_()}; });
     }},
    {114338, "gradients switched on inside, off outside",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         AutoGradMode on(true);
         return {in[0] * in[0] + 1};
       });
       for (int k = 0; k < 3; ++k) {
         Tensor x = plain(2 + k, 2).requires_grad_(), y;
         {
           NoGradGuard off;
           y = f({x})[0];
         }
         note_gradient(seen, y);
         if (y.requires_grad()) y.sum().backward();
         seen.add({y, x.grad()});
       }
     }},
    {91468, "retain_grad inside; a hook behind a break on a value of before",
     [](const Wrap& compile, Seen& seen) {
       Tensor number = ones({});
       auto retains = compile([](const Tensors& in) -> Tensors {
         Tensor y = in[0].clone();
         y.retain_grad();
         Tensor z = y.clone();
         z.retain_grad();
         return {z, y};
       });
       auto hooks = compile([&](const Tensors& in) -> Tensors {
         Tensor x = in[0], y = x * x, z = y * x * x * x;
         number.fill_(z.detach().sum().item<double>());
         y.register_hook([](const Tensor& g) { return g * 3.14; });
         return autograd::grad({z.sum()}, {x});
       });
       for (int k = 0; k < 3; ++k) {
         Tensor x = (ones({2 + k}) * 1.5).requires_grad_();
         Tensors out = retains({x});
         out[0].clone().sum().backward();
         seen.add({out[0].grad(), out[1].grad(), x.grad()});
         seen.add(hooks({x}));
         seen.add(number.clone());
       }
     }},
    {99455, "a leaf that is made inside",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         Tensor x = in[0].detach().sin().requires_grad_();
         return {x, x + 2};
       });
       for (int k = 0; k < 3; ++k) {
         Tensors out = f({plain(2 + k, 2)});
         note_gradient(seen, out[0]);
         note_gradient(seen, out[1]);
         seen.add(out);
         seen.attempt([&] { out[1].square().sum().backward(); });
         seen.add(out[0].grad());
       }
     }},
    {100348, "a loss and the same loss detached",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         Tensor loss = in[0].square().mean();
         return {loss, loss.detach()};
       });
       for (int k = 0; k < 3; ++k) {
         Tensor x = plain(2 + k, 4).requires_grad_();
         Tensors out = f({x});
         seen.note(out[0].is_same(out[1]) ? "one tensor" : "two tensors");
         note_gradient(seen, out[0]);
         note_gradient(seen, out[1]);
         out[0].backward();
         seen.add({out[1], x.grad()});
       }
     }},
    {181581, "a gradient that itself has one",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors { return {in[0].pow(3).sum()}; });
       for (int k = 0; k < 3; ++k) {
         Tensor x = plain(2 + k, 2).requires_grad_();
         Tensor g = autograd::grad({f({x})[0]}, {x}, {}, std::nullopt, true)[0];
         note_gradient(seen, g);
         seen.add(g);
         g.square().sum().backward();
         seen.add(x.grad());
       }
     }},
    {91469, "a gradient penalty over two layers",
     [](const Wrap& compile, Seen& seen) {
       Tensor w = plain(4, 4, 1).requires_grad_();
       auto f = compile([&](const Tensors& in) -> Tensors { return {in[0].matmul(w).tanh().matmul(w.t()).sigmoid()}; });
       for (int k = 0; k < 3; ++k) {
         Tensor x = plain(2 + k, 4).requires_grad_(), y = f({x})[0];
         Tensor g = autograd::grad({y}, {x}, {ones_like(y)}, true, true)[0];
         (y.mean() + (g.norm() - 1).square()).backward();
         seen.add({w.grad(), x.grad()});
       }
     }},
    {136662, "the gradient of a write to a column, from another column of the same matrix",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor x = in[0], y = x.clone();
         y.select(1, 0).add_(x.select(1, 2).abs());
         return {autograd::grad({y.sum()}, {x})[0], y};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{(plain(2 + k, 3) - 0.3).detach().requires_grad_()}; });
     }},
    {141111, "a custom function whose backward copies one gradient over another",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensors both = Mixed::apply(in[0]);
         return {both[0].sin(), both[1] * both[0]};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(2 + k, 2).requires_grad_()}; });
     }},
    {128198, "how often batch normalisation writes its buffers",
     [](const Wrap& compile, Seen& seen) {
       nn::BatchNorm1d norm(4);
       auto f = compile([&](const Tensors& in) -> Tensors { return {norm(in[0])}; });
       for (int k = 0; k < 3; ++k) {
         Tensor x = plain(5 + k, 4).requires_grad_();
         f({x})[0].square().sum().backward();
         seen.add(x.grad());
         for (const Tensor& b : norm->buffers()) {
           seen.add(b);
           seen.note("version " + std::to_string(b._version()));
         }
       }
     }},
    {13402, "batch normalisation that evaluates, then trains, before backward",
     [](const Wrap& compile, Seen& seen) {
       nn::BatchNorm2d norm(3);
       auto f = compile([&](const Tensors& in) -> Tensors {
         norm->eval();
         Tensor y = norm(in[0]);
         norm->train();
         return {y, norm(in[0]).detach()};
       });
       for (int k = 0; k < 3; ++k) {
         Tensor x = numbers({2 + k, 3, 1, 2}).clone().requires_grad_();
         Tensors out = f({x});
         seen.add(out);
         seen.add(norm->running_mean);
       }
     }},
    {193061, "norms in a chain that share scale and shift",
     [](const Wrap& compile, Seen& seen) {
       Tensor scale = (ones({6}) * 1.3).requires_grad_(), shift = (ones({6}) * 0.2).requires_grad_();
       auto f = [&](const Tensors& in) -> Tensors {
         Tensor h = in[0];
         for (int i = 0; i < 3; ++i) h = layer_norm(h, {6}, scale, shift).tanh() + h;
         return {h};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(3 + k, 6).requires_grad_()}; });
       seen.add({scale.grad(), shift.grad()});
     }},
};
INSTANTIATE_TEST_SUITE_P(Gradients, ReportedProgram, testing::ValuesIn(kGradients), name_of);

}  // namespace
}  // namespace brasa
