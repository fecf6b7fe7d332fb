// Threads about writes, views and shared memory.
#include <brasa/autograd.h>

#include "reported.h"

namespace brasa {
namespace {

// No view, and another size for every call.
Tensor plain(int rows, int columns, int k = 0) { return (numbers({rows, columns}) + k).clone(); }
Tensor places(std::initializer_list<int64_t> at) { return tensor(std::vector<int64_t>(at), kInt64); }

const Reported kWrites[] = {
    {198102, "a write through windows with gaps between them",
     [](const Wrap& compile, Seen& seen) {
       auto columns = [](const Tensors& in) -> Tensors {
         Tensor v = in[0].unfold(1, 1, 5);
         v.add_(v);
         return {in[0]};
       };
       auto flat = [](const Tensors& in) -> Tensors {
         in[0].view({-1}).unfold(0, 8, 24).index_fill_(1, places({0, 3}), -1);
         return {in[0] * 2};
       };
       see_calls(compile, seen, columns,
                 [](int k) { return Tensors{arange(24 + 6 * k, kInt64).reshape({4 + k, 6}).clone()}; });
       see_calls(compile, seen, flat, [](int k) { return Tensors{plain(4 + k, 6)}; });
     }},
    {165409, "abs_ of overlapping windows",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors { return {(in[0] + in[0]).unfold(1, 3, 2).abs_()}; };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(2, 5 + 2 * k, k - 1)}; });
     }},
    {136064, "a write through a view of the tensor's own dtype",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         in[0].view(kFloat32).copy_(in[1]);
         return {};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(3, 4 + k), plain(3, 4 + k, 7)}; });
     }},
    {104463, "a write to the diagonal of an input that is returned",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor d = in[0].diagonal();
         d.add_(1.0);
         return {in[0]};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(2 + k, 4)}; });
     }},
    {94777, "a result that an operator in place comes after",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor y = in[0].log();
         in[0].log_();
         return {y};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{full({}, 3.0 + k, kFloat32)}; });
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(2 + k, 3, 4)}; });
     }},
    {133512, "as_strided_copy of a stepped input that was written",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         in[0].add_(1);
         return {as_strided_copy(in[0], {3}, {2})};
       };
       see_calls(compile, seen, f,
                 [](int k) { return Tensors{arange(10 + 2 * k, kInt64).slice(0, 0, 10 + 2 * k, 2)}; });
     }},
    {198095, "a view of an input that lies inside another input, which is written",
     [](const Wrap& compile, Seen& seen) {
       auto row = [](const Tensors& in) -> Tensors {
         in[0].add_(100);
         return {in[1].select(0, 0)};
       };
       auto flat = [](const Tensors& in) -> Tensors {
         in[0].mul_(3);
         return {in[1].view({-1})};
       };
       for (const TensorFunction& f : {TensorFunction(row), TensorFunction(flat)})
         see_calls(compile, seen, f, [](int k) {
           Tensor base = plain(4 + k, 6);
           return Tensors{base, base.slice(0, 1)};
         });
     }},
    {197829, "rows that move one place in the tensor itself",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor x = in[0];
         x.slice(0, 1).copy_(x.slice(0, 0, -1).clone());
         return {x};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(3 + 40 * k, 16)}; });
     }},
    {198131, "a copy into an input whose source is written afterwards",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         in[0].slice(0, 0).copy_(in[1].slice(0, 0));
         in[1].add_(1);
         return {in[1]};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{zeros({3 + k, 4}), plain(3 + k, 4)}; });
     }},
    {198270, "index_put_, then a sum with the reversed tensor in place",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor x = in[0];
         x.index_put_({arange(x.size(0), kInt64)}, x * 2.0, false);
         x.add_(x.flip({0}));
         return {x};
       };
       auto g = [](const Tensors& in) -> Tensors {
         Tensor x = in[0];
         x.index_copy_(0, arange(x.size(0), kInt64).flip({0}), x * 2.0);
         x.copy_(x.flip({0}));
         return {x};
       };
       for (const TensorFunction& h : {TensorFunction(f), TensorFunction(g)})
         see_calls(compile, seen, h, [](int k) { return Tensors{plain(4 + 30 * k, 8)}; });
     }},
    {101950, "flip into the tensor that is flipped",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor y = in[0].sin();
         y.copy_(y.flip({0, 1}));
         in[0].copy_(in[0].flip({1}));
         return {y};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(5 + k, 6)}; });
     }},
    {94693, "a copy into an input at the end of what was computed from it at other places",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor x = in[0], middle = x.slice(1, 2, 6);
         Tensor padded = constant_pad_nd(middle * 2, {2, x.size(1) - 6}, 1.0);
         x.copy_(cat({padded.slice(1, 3), padded.slice(1, 0, 3)}, 1) + x.flip({1}));
         return {};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(4, 8 + k)}; });
     }},
    {138908, "y[x] += y[x] where x names one row twice",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor x = in[0] + 10, y = in[1];
         y.index_put_({x}, y.index({x}) * 2, false);
         return {};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{full({1, 2}, -10 + k % 2, kInt64), plain(2, 32 + k)}; });
     }},
    {174074, "x[[0, 0]] += x[[0, 0]]",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor x = in[0], at = places({0, 0});
         x.index_put_({at}, x.index({at}) + x.index({at}), false);
         return {x};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(3 + k, 4)}; });
     }},
    {93363, "a write to an input that is a view of a tensor with a gradient",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         in[0].mul_(2.0);
         return {};
       });
       for (int k = 0; k < 3; ++k) {
         Tensor leaf = ones({4 + k}).requires_grad_(), a = leaf.add(0.5);
         f({a.slice(0, 0, a.size(0), 2)});
         seen.add(a);
         a.square().sum().backward();
         seen.add(leaf.grad());
       }
     }},
    {90507, "a result that unsqueeze_ shaped is no view",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         Tensor out = in[0] * 2;
         out.unsqueeze_(0);
         return {out};
       });
       for (int k = 0; k < 3; ++k) {
         Tensor x = ones({2 + k}).requires_grad_();
         Tensor y = f({x})[0];
         seen.note(y.is_view() ? "a view" : "no view");
         seen.attempt([&] { y.mul_(2).sum().backward(); });
         seen.add({y, x.grad()});
       }
     }},
    {92129, "writes in turn through an overlay, to its base and through a part of the overlay",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor e = in[0].as_strided({2, 2}, {4, 2}, 0);
         e.add_(1.0);
         in[0].mul_(2.0);
         e.slice(0, 1, 2).fill_(3.0);
         return {e.slice(0, 1, 2, 2), in[1] * e};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(2 + k, 4), plain(2, 2).requires_grad_()}; });
     }},
    {104505, "a result that is a view of an input",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors { return {in[0].slice(1, 1, 2)}; });
       for (int k = 0; k < 3; ++k) {
         Tensor x = plain(3 + k, 4), y = f({x})[0];
         seen.add(y);
         y.fill_(7);
         seen.add({x, y});
       }
     }},
    {183575, "a moment that lerp_ updates and the parameter's step reads",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor y = in[2].matmul(in[0]), g1 = in[2].t().matmul(y), g2 = g1.to(kBFloat16).to(kFloat32).cos();
         in[3].lerp_(g1, 0.05);
         in[4].lerp_(g2, 0.05);
         in[0].add_(in[3], -0.01);
         in[1].add_(in[4], -0.01);
         return {g2};
       };
       see_calls(compile, seen, f, [](int k) {
         return Tensors{plain(6, 6), plain(6, 6, 1), plain(3 + k, 6), plain(6, 6, 2), plain(6, 6, 3)};
       });
     }},
    {183986, "index_add, index_copy, index_fill and index_put of an expanded tensor",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor x = in[0].expand({4, in[0].size(1)}), at = places({0, 2}), rows = in[1];
         return {x.index_add(0, at, rows), x.index_copy(0, at, rows), x.index_fill(0, at, 5.0),
                 x.index_put({at}, rows)};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(1, 3 + k), plain(2, 3 + k, 4)}; });
     }},
    {197408, "diagonal_scatter into a view of another dtype",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor bits = in[0].view(kInt32);
         Tensor out = diagonal_scatter(bits, bits.diagonal() * 0 + 1);
         out.add_(1);
         return {out};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(3, 3 + k)}; });
     }},
    {191571, "rows that are scattered into one row and gathered from it again",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor x = in[0], at = in[1], sums = zeros({1, x.size(1)});
         sums.scatter_add_(0, at.unsqueeze(-1).expand({-1, x.size(1)}), x);
         return {index_select(sums, 0, at)};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(8 + k, 4), zeros({8 + k}, kInt64)}; });
     }},
    {178871, "a number that all elements share, added before they are summed by scatter_reduce",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor values = in[0] + in[1], out = zeros({1, 1});
         return {out.scatter_reduce(0, in[2].unsqueeze(-1).expand_as(values), values, "sum", true)};
       };
       see_calls(
           compile, seen, f,
           [](int k) { return Tensors{plain(1 + 7 * k, 1), full({1}, 0.02, kFloat32), zeros({1 + 7 * k}, kInt64)}; },
           6);
     }},
    {156786, "columns of an embedding that index_copy puts in another order",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor e = embedding(in[0], in[1]);
         return {index_copy(e, 1, in[2], e)};
       };
       see_calls(compile, seen, f, [](int k) {
         return Tensors{plain(10, 4).requires_grad_(), arange(4 + k, kInt64) * 2 % 10, places({3, 1, 0, 2})};
       });
     }},
    {198364, "strides of what is computed from a transposed tensor",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         const Tensor &a = in[0], &b = in[1];
         return {copysign(a, b - 1.5),
                 floor_divide(a, b),
                 div(a, b, "floor"),
                 addr(a, b.select(1, 0), b.select(0, 0), 0.0),
                 put(a, places({0, 7}), tensor(std::vector<double>{1, 2}, kFloat32)),
                 a.clone(),
                 zeros_like(a),
                 a * b};
       };
       see_calls(compile, seen, f,
                 [](int k) { return Tensors{plain(6 + k, 5).t(), (plain(5, 6 + k).abs() + 1).clone()}; });
     }},
    {114646, "a write without recording to a tensor that has a history",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         in[0].mul_(2);
         return {};
       });
       for (int k = 0; k < 3; ++k) {
         Tensor leaf = plain(2 + k, 2).requires_grad_(), x = leaf.clone();
         {
           NoGradGuard guard;
           f({x});
         }
         seen.add(x);
         x.sum().backward();
         seen.add(leaf.grad());
       }
     }},
    {88817, "writes to the first and the last input",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor a = in[0] * 1, c = in[2] * 1;
         a.mul_(2);
         c.mul_(3).mul_(a);
         in[3].add_(a.detach());
         return {a * in[1] + c};
       };
       see_calls(compile, seen, f, [](int k) {
         return Tensors{plain(2 + k, 3).requires_grad_(), plain(2 + k, 3, 1).requires_grad_(),
                        plain(2 + k, 3, 2).requires_grad_(), plain(2 + k, 3)};
       });
     }},
    {97083, "one tensor as both inputs, one of which is written and returned",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         in[0].add_(1);
         return {in[1], in[0] * in[1]};
       });
       for (int k = 0; k < 4; ++k) {
         Tensor x = plain(2 + k, 3), other = plain(2 + k, 3, 5);
         Tensors out = f({x, k % 2 ? other : x});
         seen.note(out[0].is_same(k % 2 ? other : x) ? "the input itself" : "another tensor");
         seen.add(out);
         seen.add(x);
       }
     }},
    {113793, "a function of views that were written before",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors { return {(in[0] * in[1]).sum() * in[2]}; };
       see_calls(compile, seen, f, [](int k) {
         Tensor base = plain(4 + k, 6), a = base.view({-1}).slice(0, 3, 9), b = base.t().select(0, 2);
         a.mul_(2);
         b.add_(1);
         return Tensors{a, a.view({2, 3}).select(0, 1).unsqueeze(1), b};
       });
     }},
    {96064, "a loop whose rows are written at computed places and read again",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor out = zeros({5, in[0].size(0)}), last = zeros({in[0].size(0)});
         for (int i = 0; i < 3; ++i) {
           Tensor at = in[1] + i;
           out.index_put_({at}, in[0] * (i + 1), false);
           last = last + out.index({at}).squeeze(0) + out.select(0, 0);
         }
         return {out, last};
       };
       see_calls(compile, seen, f,
                 [](int k) { return Tensors{plain(1, 4 + k).select(0, 0).clone(), places({k % 2})}; });
     }},
    {183696, "scattering into a wider buffer",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor x = in[0], wide = zeros({x.size(0), 2 * x.size(1) + 1}), at = arange(x.size(1), kInt64) * 2 + 1;
         Tensor scattered = wide.scatter(1, at.unsqueeze(0).expand_as(x), x.sin());
         wide.index_copy_(1, at, x * 2);
         return {scattered + 1, wide * 3};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(3 + k, 5 + 3 * k).requires_grad_()}; });
     }},
    {197431, "as_strided over a whole that a repeat made, given a part of it",
     [](const Wrap& compile, Seen& seen) {
       auto f = [](const Tensors& in) -> Tensors {
         Tensor all = in[0].repeat({3, 2});
         return {as_strided(all.slice(1, 0, 2, 2), {3, 2}, all.strides())};
       };
       see_calls(compile, seen, f, [](int k) { return Tensors{plain(1, 1, k)}; });
     }},
    {110337, "add_ and mul_ of an input that is given again",
     [](const Wrap& compile, Seen& seen) {
       auto f = compile([](const Tensors& in) -> Tensors {
         in[0].add_(1);
         in[0].mul_(2);
         return {in[0]};
       });
       Tensor x = full({1}, 3.0, kFloat32);
       for (int k = 0; k < 4; ++k) seen.add(f({x})[0].clone());
       seen.add(x);
     }},
};
INSTANTIATE_TEST_SUITE_P(Writes, ReportedProgram, testing::ValuesIn(kWrites), name_of);

}  // namespace
}  // namespace brasa
