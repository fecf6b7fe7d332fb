// Numbers that a function reads from tensors for its sizes and places: exported, and run with others.
#include <brasa/export_program.h>

#include <gtest/gtest.h>

#include <brasa/brasa.h>

#include "error_of.h"
#include "export/loaded.h"

namespace brasa {
namespace {

using Results = std::vector<Tensor>;

Tensor number(int64_t n) { return scalar_tensor(n, kLong); }

TEST(ExportedItems, PartsOfATensorBoundTheNumber) {
  Folder folder;
  auto f = [](const Tensor& x, const Tensor& n) {
    auto k = n.item<int64_t>();
    Tensor first = x.narrow(0, 0, k);
    return Results{first + 1, first.sum(0), x.slice(0, k), x * k, first.matmul(first.t())};
  };
  Loaded program(export_(f, {rand({9, 4}), number(3)}, alone()), folder.path);
  for (int64_t k = 0; k <= 9; ++k) {
    Tensor x = randn({9, 4});
    SCOPED_TRACE(k);
    expect_same(program.give({x, number(k)}), f(x, number(k)));
  }
  for (int64_t k : {-1, 10}) {
    std::string error = program.refusal({rand({9, 4}), number(k)});
    EXPECT_NE(error.find("the number of item()"), error.npos) << error;
    EXPECT_NE(error.find(std::to_string(k)), error.npos) << error;
  }
}

TEST(ExportedItems, SizesThatVaryBoundIt) {
  Folder folder;
  auto f = [](const Tensor& x, const Tensor& n) { return x.narrow(1, 0, n.item<int>()).softmax(1); };
  Loaded program(export_(f, {rand({2, 9}), number(3)}, alone({{0, 0, 1, 8}, {0, 1, 1, 64}})), folder.path);
  for (int64_t size : {1, 2, 9, 64})
    for (int64_t k : {int64_t{1}, size / 2, size}) {
      Tensor x = randn({3, size});
      SCOPED_TRACE(testing::Message() << k << " of " << size);
      expect_same(program.give({x, number(k)}), {f(x, number(k))});
    }
  EXPECT_NE(program.refusal({rand({2, 9}), number(10)}), "");
}

TEST(ExportedItems, Places) {
  Folder folder;
  auto f = [](const Tensor& x, const Tensor& scores) {
    auto best = scores.argmax().item<int64_t>();
    Tensor last = (scores > 0).sum();
    return Results{x.select(0, best), x[last], x.slice(1, 0, last.item<int64_t>()), x.slice(0, best) * best};
  };
  Loaded program(export_(f, {rand({7, 3}), tensor({1.f, -1.f, 1.f, 2.f, 1.f, 0.f, 0.f})}, alone()), folder.path);
  for (int seed = 0; seed < 9; ++seed) {
    manual_seed(seed);
    Tensor x = randn({7, 3}), scores = randn({7});
    scores[0] = -1;
    SCOPED_TRACE(seed);
    expect_same(program.give({x, scores}), f(x, scores));
  }
}

TEST(ExportedItems, BoundsOfTheFunction) {
  Folder folder;
  auto f = [](const Tensor& x, const Tensor& n) {
    int64_t k = item_within(n, 2, 500);
    return Results{zeros({k, 2}) + x, arange(k), x.expand({k, 2}).reshape({2 * k})};
  };
  Loaded program(export_(f, {rand({2}), number(3)}, alone()), folder.path);
  for (int64_t k : {2, 3, 64, 499, 500}) {
    Tensor x = randn({2});
    SCOPED_TRACE(k);
    expect_same(program.give({x, number(k)}), f(x, number(k)));
  }
  for (int64_t k : {-3, 1, 501}) {
    EXPECT_EQ(program.refusal({rand({2}), number(k)}), "item_within: a number is outside of its bounds");
    EXPECT_NE(error_of([&] { f(rand({2}), number(k)); }).find("a number is outside of its bounds"), std::string::npos);
  }
}

// A number that is a branch's or a loop's gives one program for each that the export tries, and no other one.
TEST(ExportedItems, WhatIsNoSize) {
  auto exported = [](auto f) { export_(f, {rand({4}), number(3)}, alone()); };
  std::string floating = error_of([&] { exported([](Tensor x, Tensor) { return x * x.sum().item<float>(); }); });
  EXPECT_NE(floating.find("item() reads a number of float32, which is not known before the program runs"),
            floating.npos)
      << floating;
  std::string branch =
      error_of([&] { exported([](Tensor x, Tensor n) { return n.item<int64_t>() > 3000000 ? x : x + 1; }); });
  EXPECT_NE(branch.find("the number of item()"), branch.npos) << branch;
  EXPECT_NE(branch.find("is no size of the program and no operand"), branch.npos) << branch;
  std::string unbounded = error_of([&] { exported([](Tensor, Tensor n) { return zeros({n.item<int64_t>()}); }); });
  EXPECT_NE(unbounded.find("nothing says how great it may be"), unbounded.npos) << unbounded;

  Folder folder;
  auto f = [](const Tensor& x, const Tensor& n) {
    Tensor y = x;
    for (int64_t k = item_within(n, 0, 6); k > 0; --k) y = y + 1;
    return y;
  };
  Loaded program(export_(f, {rand({4}), number(3)}, alone()), folder.path);
  int64_t known = 0;
  for (int64_t k = 0; k <= 6; ++k) {
    Tensor x = rand({4});
    std::string error = program.refusal({x, number(k)});
    if (!error.empty()) {
      EXPECT_NE(error.find("no code for inputs of these sizes"), error.npos) << error;
      continue;
    }
    ++known;
    expect_same(program.give({x, number(k)}), {f(x, number(k))});
  }
  EXPECT_GE(known, 2);
  // What its language makes of the number is seen where it differs in one of a few, and no run takes another one's code.
  auto odd = [](int64_t k) { return 1 + k % 2; };
  auto one = [](int64_t k) { return k == 7 ? 1 : k; };
  for (auto made : std::initializer_list<int64_t (*)(int64_t)>{odd, one}) {
    auto sliced = [&](const Tensor& y, const Tensor& n) { return y.slice(0, 0, made(item_within(n, 0, 9))) * 2; };
    Folder other;
    Loaded parts(export_(sliced, {rand({9}), number(3)}, alone()), other.path);
    for (int64_t k = 0; k <= 9; ++k) {
      Tensor y = rand({9});
      if (parts.refusal({y, number(k)}).empty()) expect_same(parts.give({y, number(k)}), {sliced(y, number(k))});
    }
  }
}

}  // namespace
}  // namespace brasa
