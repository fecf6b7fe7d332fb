// Functions whose sizes depend on values: exported, and run at counts of none, one, some and all.
#include <brasa/export_program.h>

#include <gtest/gtest.h>

#include <thread>

#include <brasa/brasa.h>
#include <brasa/control_flow.h>
#include <brasa/nn.h>

#include "error_of.h"
#include "export/loaded.h"

namespace brasa {
namespace {

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// Masks of n elements, of which none, one, two, most and all hold.
std::vector<Tensor> masks(int64_t n) {
  std::vector<Tensor> out = {zeros({n}, kBool), ones({n}, kBool)};
  for (int64_t k : {int64_t{1}, int64_t{2}, n - 1}) {
    Tensor m = zeros({n}, kBool);
    m.slice(0, n - std::min(k, n)).fill_(true);
    out.push_back(m);
  }
  out.push_back(arange(n).remainder(3).eq(1));
  return out;
}

TEST(ExportedCounts, ElementwiseAndSumsBehindNonzero) {
  Folder folder;
  auto f = [](const Tensor& x) {
    Tensor places = x.nonzero();
    return std::vector<Tensor>{places, (places.to(kFloat32) * 2).sum(), (places + 1).cumsum(0)};
  };
  ExportedProgram exported = export_(f, {rand({9})}, alone());
  // The most that runs need, which no value changes, is a constant.
  EXPECT_NE(exported.header().find("ALONE_MEMORY_BYTES"), std::string::npos);
  Loaded program(exported, folder.path);
  for (const Tensor& m : masks(9)) {
    Tensor x = m.to(kFloat32) * 3;
    expect_same(program.give({x}), f(x));
  }
}

TEST(ExportedCounts, MasksOfRows) {
  Folder folder;
  manual_seed(1);
  nn::Linear layer(4, 3);
  auto f = [&](const Tensor& x, const Tensor& mask) {
    NoGradGuard no_grad;
    Tensor rows = x.index({mask}), all = layer(rows);
    Tensor put = x.index_put({mask}, rows * 2);
    return std::vector<Tensor>{all.softmax(1), rows.matmul(rows.t()), masked_select(x, x > 0), put};
  };
  Loaded program(export_(f, {rand({7, 4}), ones({7}, kBool)}, alone()), folder.path);
  for (const Tensor& m : masks(7)) {
    Tensor x = randn({7, 4});
    expect_same(program.give({x, m}), f(x, m));
  }
  for (double value : {-1.0, 1.0}) {
    Tensor x = full({7, 4}, value), m = ones({7}, kBool);
    expect_same(program.give({x, m}), f(x, m));
  }
}

TEST(ExportedCounts, OneBehindTheOtherOfAnySize) {
  Folder folder;
  auto f = [](const Tensor& x) {
    Tensor a = x.index({x.select(1, 0) > 0}), b = a.index({a.select(1, 1) > 0}), other = x.index({x.select(1, 2) > 0});
    return std::vector<Tensor>{a + 1, b.sum(), b.matmul(other.t()), x - x.mean()};
  };
  Loaded program(export_(f, {rand({5, 3})}, alone({{0, 0, 1, 100}})), folder.path);
  for (int64_t n : {1, 2, 5, 31, 100})
    for (double shift : {-9.0, -0.5, 0.0, 9.0}) {
      Tensor x = randn({n, 3}) + shift;
      SCOPED_TRACE(testing::Message() << n << ", " << shift);
      expect_same(program.give({x}), f(x));
    }
}

TEST(ExportedCounts, DistinctValuesAndRepeats) {
  Folder folder;
  auto f = [](const Tensor& x, const Tensor& y) {
    auto [values, inverse, counts] = _unique2(x, true, true, true);
    Tensor times = x.clamp(0, 3);
    return std::vector<Tensor>{values,          inverse,
                               counts,          y.repeat_interleave(times, 0),
                               bincount(times), std::get<0>(unique_consecutive(times))};
  };
  Loaded program(export_(f, {arange(6), rand({6, 2})}, alone()), folder.path);
  for (const std::vector<int64_t>& items : {std::vector<int64_t>{0, 0, 0, 0, 0, 0},
                                            {5, 4, 3, 2, 1, 0},
                                            {3, 3, 3, 3, 3, 3},
                                            {0, 0, 1, 0, 0, 0},
                                            {-7, 2, 2, -7, 1, 1}}) {
    Tensor x = tensor(items), y = randn({6, 2});
    expect_same(program.give({x, y}), f(x, y));
  }
}

// What the function computes of such a size in its own language.
TEST(ExportedCounts, IntegersOfTheFunction) {
  Folder folder;
  auto f = [](const Tensor& x) {
    Tensor rows = x.index({x.select(1, 0) > 0});
    int64_t n = rows.size(0);
    return std::vector<Tensor>{rows.reshape({n * 3}) + arange(3 * n).to(kFloat32), zeros({n, 2}) + n, x.slice(0, n)};
  };
  Loaded program(export_(f, {rand({8, 3})}, alone()), folder.path);
  for (int64_t n = 0; n <= 8; ++n) {
    Tensor x = randn({8, 3});
    x.select(1, 0).copy_(where(arange(8) < n, ones({8}), zeros({8})));
    SCOPED_TRACE(n);
    expect_same(program.give({x}), f(x));
  }
}

// What a run changes it changes once, also where it went over to other code.
TEST(ExportedCounts, StateAndSizes) {
  Folder folder;
  Tensor seen = zeros({});
  auto f = [&](const Tensor& x) {
    Tensor rows = x.index({x > 0});
    seen.add_(rows.numel() ? rows.sum() : zeros({}) + 1);
    return std::vector<Tensor>{rows + seen};
  };
  Loaded program(export_(f, {rand({5})}, alone()), folder.path);
  for (double shift : {-9.0, 9.0, 0.0, -9.0}) {
    Tensor x = randn({5}) + shift;
    expect_same(program.give({x}), f(x));
  }
}

TEST(ExportedCounts, ContextsOfThreads) {
  Folder folder;
  auto f = [](const Tensor& x) {
    Tensor rows = x.index({x > 0});
    return std::vector<Tensor>{rows * 2, rows.sum()};
  };
  Loaded program(export_(f, {rand({50})}, alone()), folder.path);
  std::vector<std::thread> threads;
  std::vector<std::string> errors(4);
  for (size_t t = 0; t < errors.size(); ++t)
    threads.emplace_back([&, t] {
      alone_context c = program.context;
      for (int64_t k = 0; k <= 50; ++k) {
        std::vector<float> x(50, -1), y(50);
        for (int64_t i = 0; i < k; ++i) x[static_cast<size_t>(i)] = static_cast<float>(t + 1);
        float sum = 0;
        alone_tensor in{x.data(), 200, {50}}, out[2] = {{y.data(), 200, {0}}, {&sum, 4, {0}}};
        std::vector<char> memory;
        program.at<decltype(alone_memory)>("alone_memory")(&c, &in, &c.memory_bytes);
        memory.resize(c.memory_bytes);
        c.memory = memory.data();
        if (program.at<decltype(alone_run)>("alone_run")(&c, &in, out)) errors[t] = c.message;
        auto want = static_cast<float>(k * static_cast<int64_t>(t + 1));
        if (out[0].sizes[0] != k || sum != want) errors[t] = "a run is wrong";
      }
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& e : errors) EXPECT_EQ(e, "");
}

TEST(ExportedCounts, RoomForResultsIsThatOfTheRun) {
  Folder folder;
  auto f = [](const Tensor& x) { return std::vector<Tensor>{x.index({x > 0})}; };
  Loaded program(export_(f, {rand({6})}, alone()), folder.path);
  Tensor x = tensor({1.f, -1.f, 2.f, -1.f, 3.f, -1.f});
  std::vector<Tensor> room = {full({3}, -9.0)};
  ASSERT_EQ(program.run({x}, room), ALONE_OK) << program.context.message;
  EXPECT_TRUE(room[0].equal(tensor({1.f, 2.f, 3.f})));
  room = {full({2}, -9.0)};
  EXPECT_EQ(program.run({x}, room), ALONE_MEMORY);
  EXPECT_STREQ(program.context.message, "output 0 has 8 bytes, expected 12");
  EXPECT_TRUE(room[0].equal(full({2}, -9.0)));
}

TEST(ExportedCounts, SizesWithoutBoundAreRefused) {
  auto f = [](const Tensor& x) { return bincount(x); };
  std::string unbounded = error_of([&] { export_(f, {arange(4)}, alone()); });
  EXPECT_TRUE(
      unbounded.starts_with("export: the size of the result of aten::bincount depends on values, and nothing says how "
                            "great it may be"))
      << unbounded;
  Folder folder;
  // 8 bits are a bound.
  Loaded program(export_(f, {arange(4).to(kUInt8)}, alone()), folder.path);
  Tensor x = tensor({7, 200, 7, 0}).to(kUInt8);
  EXPECT_TRUE(program.give({x})[0].equal(bincount(x)));
}

// What a body makes of what no step changes is known before its branch or loop.
TEST(ExportedCounts, InBranchesAndLoops) {
  auto branch = [](const Tensor& x, const Tensor& n) {
    auto part = [&](Tensor t) { return t.narrow(0, 0, n.item<int64_t>()).sum(); };
    auto negative = [](Tensor t) { return t.masked_select(t < 0).sum(); };
    return std::vector<Tensor>{cond(x.select(0, 0) > 0, part, negative, x)};
  };
  auto nested = [](const Tensor& x, const Tensor&) {
    auto step = [&](Tensor h, Tensor item) {
      h = h * 0.5 + item;
      return std::pair(h, cond(h > 0, [&](Tensor t) { return t + x.nonzero().sum(); }, [](Tensor t) { return -t; }, h));
    };
    auto [last, all] = scan(step, zeros({}), x);
    return std::vector<Tensor>{last, all};
  };
  auto loop = [](const Tensor& x, const Tensor&) {
    auto step = [&](Tensor t) { return t * 2 + x.masked_select(x > 0).numel(); };
    return std::vector<Tensor>{while_loop([](Tensor t) { return t < 100; }, step, ones({}))};
  };
  for (const std::function<std::vector<Tensor>(Tensor, Tensor)>& f :
       std::initializer_list<std::function<std::vector<Tensor>(Tensor, Tensor)>>{branch, nested, loop}) {
    Folder folder;
    Loaded program(export_(f, {rand({6}), scalar_tensor(2, kLong)}, alone()), folder.path);
    for (const Tensor& m : masks(6))
      for (int64_t n : {0, 1, 3, 6}) {
        Tensor x = m.to(kFloat32) * 2 - 0.5, count = scalar_tensor(n, kLong);
        expect_same(program.give({x, count}), f(x, count));
      }
  }
  auto changing = [](const Tensor& x) {
    return std::get<0>(
        scan([](Tensor h, Tensor item) { return std::pair(h + item.index({item > 0}).sum(), h); }, zeros({}), x));
  };
  EXPECT_EQ(error_of([&] { export_(changing, {rand({3, 4})}, alone()); }),
            "scan: combine_fn: a size that depends on values is known before the loop only where no step changes "
            "these values");
}

}  // namespace
}  // namespace brasa
