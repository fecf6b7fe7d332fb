// What a compiled function that ends with an error leaves behind, and what errors cost.
#include <stdexcept>

#include "values.h"

namespace brasa {
namespace {

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

TEST(CompileErrors, WhatEscapedHasItsValue) {
  Tensor kept;
  auto g = compile([&](const Tensor& x) -> Tensor {
    kept = x * 2 + 1;
    throw std::runtime_error("stop");
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(message_of([&] { g(numbers({3, 2}) + i); }), "stop");
    expect_close(kept, (numbers({3, 2}) + i) * 2 + 1);
  }
}

TEST(CompileErrors, SideEffectsBeforeTheErrorHappen) {
  auto f = [](const Tensor& x, const Tensor& log, bool fail) {
    log.narrow(0, 1, 1).add_(x.sum());
    log.narrow(0, 0, 1).fill_(7);
    if (fail) throw std::runtime_error("stop");
    log.mul_(2);
    return log + 1;
  };
  auto g = compile(f);
  Tensor x = numbers({5}), a = numbers({3}).clone(), b = a.clone();
  for (bool fail : {true, false, true, false}) {
    std::string want = message_of([&] { f(x, a, fail); });
    EXPECT_EQ(message_of([&] { g(x, b, fail); }), want);
    expect_close(b, a);
  }
}

TEST(CompileErrors, ABreakUnderFullgraphLosesNothing) {
  Tensor kept;
  auto g = compile(
      [&](const Tensor& x) {
        kept = x + 1;
        return kept.item<float>();
      },
      {.fullgraph = true});
  EXPECT_NE(message_of([&] { g(ones({})); }).find("item"), std::string::npos);
  EXPECT_EQ(kept.item<float>(), 2);
}

TEST(CompileErrors, ACheckThatFailsWhenTheGraphRunsLeavesANamedError) {
  Tensor kept;
  auto g = compile([&](const Tensor& x, const Tensor& i) {
    kept = x.index_select(0, i);
    return kept * 2;
  });
  EXPECT_THROW(g(numbers({3, 2}), tensor(std::vector<int64_t>{0, 7})), IndexError);
  EXPECT_NE(message_of([&] { kept.sum().item<float>(); }).find("ended with an error"), std::string::npos);
  expect_close(g(numbers({3, 2}), tensor(std::vector<int64_t>{0, 2})),
               numbers({3, 2}).index_select(0, tensor(std::vector<int64_t>{0, 2})) * 2);
}

// Such a result is never written over the end of what is given.
TEST(CompileErrors, ResultsInPlaceThatHaveAnotherShape) {
  auto in_place = [](const char* name, const Tensor& x, const Tensor& y) { return call(name, {x, y})[0]; };
  for (const char* backend : {"interpreter", "inductor"})
    for (const char* name : {"aten::mul_.Tensor", "aten::lt_.Tensor", "aten::maximum_"}) {
      auto f = compile([&](const Tensor& x, const Tensor& y) { return in_place(name, x, y); }, {.backend = backend});
      for (int64_t n : {3, 4}) {
        Tensor x = zeros({n, 1});
        std::string said = message_of([&] { f(x, ones({n, 500})); });
        EXPECT_NE(said.find("doesn't match the broadcast shape"), std::string::npos) << backend << name << said;
        expect_close(x, zeros({n, 1}));
        EXPECT_EQ(f(x, ones({n, 1})).sizes(), x.sizes());
      }
    }
}

// A user's error is no graph: it does not count against the limit.
TEST(CompileErrors, CaughtShapeErrorsDoNotEndCompilation) {
  auto f = [](const Tensor& x, int64_t n) {
    try {
      return x.reshape({n, 4}) + 1;
    } catch (const Error&) {
      return x * 2;
    }
  };
  auto g = compile(f, {.recompile_limit = 4});
  Tensor x = numbers({6});
  for (int64_t n = 1; n < 12; ++n) expect_close(g(x, n), f(x, n));
  Explanation e = g.explain();
  EXPECT_EQ(e.graphs.size(), 1u) << e.str();
  EXPECT_TRUE(e.recompiles.empty()) << e.str();
}

}  // namespace
}  // namespace brasa
