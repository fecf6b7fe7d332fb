// What a function may do, with each of the ways in which its arguments may lie and take part in autograd.
#include <brasa/autograd.h>

#include <ostream>

#include "reported.h"

namespace brasa {
namespace {

struct Body {
  const char* name;
  Tensors (*run)(const Tensor& a, const Tensor& b);
};

const Body kBodies[] = {
    {"WritesAnArgument",
     [](const Tensor& a, const Tensor& b) -> Tensors {
       a.mul_(2);
       return {a + b};
     }},
    {"WritesARow",
     [](const Tensor& a, const Tensor& b) -> Tensors {
       Tensor y = a * 2;
       y.select(0, 0).add_(b.select(0, 0));
       return {y};
     }},
    {"WritesThroughATransposedView",
     [](const Tensor& a, const Tensor& b) -> Tensors {
       Tensor y = a.clone(), v = y.t();
       v.mul_(b.t());
       return {y, v};
     }},
    {"WritesWithoutGradients",
     [](const Tensor& a, const Tensor& b) -> Tensors {
       {
         NoGradGuard guard;
         a.add_(1);
       }
       return {a * b};
     }},
    {"WritesThroughADetachedTensor",
     [](const Tensor& a, const Tensor& b) -> Tensors {
       a.detach().mul_(3);
       return {a + b};
     }},
    {"GivesItsArguments", [](const Tensor& a, const Tensor& b) -> Tensors { return {a, b, a.t(), b.slice(1, 1)}; }},
    {"GivesOneTensorTwice",
     [](const Tensor& a, const Tensor& b) -> Tensors {
       Tensor y = a * b;
       return {y, y, y.view({-1})};
     }},
    {"GivesNothingInBetween", [](const Tensor& a, const Tensor&) -> Tensors { return {a * 2, Tensor(), a.detach()}; }},
    {"BranchesOnAValue",
     [](const Tensor& a, const Tensor& b) -> Tensors {
       Tensor y = a * 2;
       if (y.sum().item<double>() > 0) return {y * b};
       return {y - b};
     }},
    {"BranchesOnASize",
     [](const Tensor& a, const Tensor& b) -> Tensors {
       if (a.size(0) > 3) return {a * b};
       return {a - b};
     }},
    {"RepeatsForEachRow",
     [](const Tensor& a, const Tensor& b) -> Tensors {
       Tensor sum = zeros_like(b.select(1, 0));
       for (int64_t i = 0; i < a.size(1); ++i) sum = sum + a.select(1, i) * (i + 1);
       return {sum};
     }},
    {"CatchesAnError",
     [](const Tensor& a, const Tensor& b) -> Tensors {
       Tensor y = a * 2;
       try {
         return {y.select(0, 100)};
       } catch (const Error&) {
         return {y + b};
       }
     }},
    {"EndsWithAnError",
     [](const Tensor& a, const Tensor& b) -> Tensors {
       a.detach().add_(1);
       return {a.matmul(b)};
     }},
    {"HasAHookInside",
     [](const Tensor& a, const Tensor& b) -> Tensors {
       Tensor y = a * b;
       if (y.requires_grad()) y.register_hook([](const Tensor& g) { return g * 10; });
       return {y * y};
     }},
    {"DerivesInside",
     [](const Tensor& a, const Tensor& b) -> Tensors {
       Tensor x = a.detach().requires_grad_();
       Tensor g = autograd::grad({(x * x * b).sum()}, {x}, {}, std::nullopt, true)[0];
       return {g * 2};
     }},
    {"ChangesTheDType",
     [](const Tensor& a, const Tensor& b) -> Tensors { return {a.to(kDouble) * 2, (b > 0).to(kFloat), b.to(kLong)}; }},
    {"SharesMemoryBetweenResults",
     [](const Tensor& a, const Tensor& b) -> Tensors {
       Tensor y = a + b, top = y.slice(0, 0, 1);
       y.mul_(2);
       return {y, top, top.squeeze(0)};
     }},
    {"ReadsWhatItMasks",
     [](const Tensor& a, const Tensor& b) -> Tensors {
       return {a.masked_fill(b > 0, 0.5), where(a > b, a, b), a.masked_select(b > 0)};
     }},
    {"Broadcasts",
     [](const Tensor& a, const Tensor& b) -> Tensors {
       return {a.unsqueeze(0) * b.unsqueeze(1), a.sum(0) + b, a.amax(1, true) - b};
     }},
    {"UsesItsSizesAsNumbers",
     [](const Tensor& a, const Tensor& b) -> Tensors {
       int64_t n = a.size(0);
       return {a * n + b / static_cast<double>(n + 1), arange(n), full({n, 2}, n)};
     }},
    {"ResizesAndSetsData",
     [](const Tensor& a, const Tensor& b) -> Tensors {
       Tensor y = (a * 2).detach();
       y.set_data(b.detach() * 3);
       y.add_(1);
       return {y, a + 1};
     }},
    {"CallsACompiledFunction",
     [](const Tensor& a, const Tensor& b) -> Tensors {
       auto inner = brasa::compile([](const Tensor& t) { return t.sin() + t; });
       return {inner(a) * b, inner(b)};
     }},
};

struct Inputs {
  const char* name;
  Tensors (*make)(int64_t rows);
};

const Inputs kInputs[] = {
    {"Plain", [](int64_t n) -> Tensors { return {numbers({n, 4}).clone(), numbers({n, 4}) + 1}; }},
    {"Leaves",
     [](int64_t n) -> Tensors {
       return {numbers({n, 4}).clone().requires_grad_(), (numbers({n, 4}) + 1).requires_grad_()};
     }},
    {"OneWithAHistory",
     [](int64_t n) -> Tensors { return {numbers({n, 4}).clone().requires_grad_() * 1, numbers({n, 4}).clone()}; }},
    {"Transposed", [](int64_t n) -> Tensors { return {numbers({4, n}).clone().t(), numbers({4, n}).clone().t() + 1}; }},
    {"PartsOfOne",
     [](int64_t n) -> Tensors {
       Tensor all = numbers({2 * n, 5}).clone();
       return {all.slice(0, 0, n).slice(1, 1), all.slice(0, n).slice(1, 0, 4)};
     }},
    {"TheSame",
     [](int64_t n) -> Tensors {
       Tensor x = numbers({n, 4}).clone();
       return {x, x};
     }},
    {"AViewOfTheOther",
     [](int64_t n) -> Tensors {
       Tensor x = numbers({n, 4}).clone();
       return {x, x.view({-1}).view({n, 4})};
     }},
    {"WithoutRows", [](int64_t n) -> Tensors { return {zeros({n == 4 ? 0 : n, 4}), ones({n == 4 ? 0 : n, 4})}; }},
};

struct Situation {
  const Body* body;
  const Inputs* inputs;
};
void PrintTo(const Situation& s, std::ostream* out) { *out << s.body->name << " of " << s.inputs->name; }

class SituationTable : public testing::TestWithParam<Situation> {};

TEST_P(SituationTable, IsEager) {
  const Situation& s = GetParam();
  expect_as_eager(
      [&](const Wrap& compile, Seen& seen) {
        auto body = [&](const Tensors& in) { return s.body->run(in[0], in[1]); };
        constexpr int64_t kRows[] = {3, 4, 6, 3};
        see_calls(compile, seen, body, [&](int k) { return s.inputs->make(kRows[k]); }, std::size(kRows));
      },
      1e-5, "interpreter");
}

std::vector<Situation> all_situations() {
  std::vector<Situation> out;
  for (const Body& b : kBodies)
    for (const Inputs& i : kInputs) out.push_back({&b, &i});
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, SituationTable, testing::ValuesIn(all_situations()), [](const auto& info) {
  return std::string(info.param.body->name) + "Of" + info.param.inputs->name;
});

}  // namespace
}  // namespace brasa
