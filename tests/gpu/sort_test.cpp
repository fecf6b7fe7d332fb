#include <gtest/gtest.h>

#include <cmath>

#include <brasa/brasa.h>
#include <brasa/compile.h>

#include "gpu/on_device.h"
#include "runtime/device.h"
#include "support/str.h"

// Sorts and what is made of them against the host's, element for element: lines of every length at which another kernel sorts.
namespace brasa {
namespace {

class Sorts : public OnDevice {
 protected:
  // On a GPU nothing goes to the host.
  void SetUp() override {
    OnDevice::SetUp();
    manual_seed(3);
    before_ = runtime::host_steps();
  }
  void TearDown() override {
    if (!device_.is_cuda()) return;
    EXPECT_EQ(runtime::host_steps(), before_);
  }
  int64_t before_ = 0;
};

constexpr DType kSorted[] = {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64};

// Of the whole range, or few different ones; some are NaN, infinite, or zeros of both signs.
Tensor numbers(const std::vector<int64_t>& sizes, DType dtype, int64_t different = 0) {
  Tensor x =
      different ? randint(-different / 2, (different + 1) / 2, sizes).to(kFloat64) : randn(sizes).to(kFloat64) * 3e4;
  if (dtype == kBool) return x > 0;
  if (dtype == kUInt8) x = x.abs().remainder(256);
  if (dtype == kInt8) x = x.remainder(256) - 128;
  if (dtype == kInt16) x = x.clamp(-32768, 32767);
  if (dtype == kInt64) x = x * 0x1p40;
  if (is_floating(dtype)) {
    Tensor odd = randint(0, 200, sizes);
    float given[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f};
    for (int i = 0; i < 5; ++i) x = x.masked_fill(odd == i, given[i]);
  }
  return x.to(dtype);
}

template <class Got, class Want>
void expect_same(const Got& got, const Want& want, const std::string& what) {
  EXPECT_TRUE(std::get<1>(got).cpu().equal(std::get<1>(want))) << what << ": places";
  Tensor a = std::get<0>(got).cpu(), b = std::get<0>(want);
  if (is_floating(a.scalar_type())) {
    EXPECT_TRUE(a.isnan().equal(b.isnan())) << what << ": NaN";
    a = a.nan_to_num();
    b = b.nan_to_num();
  }
  EXPECT_TRUE(a.equal(b)) << what << ": values";
}

TEST_P(Sorts, ShortLines) {
  for (DType dtype : kSorted)
    for (bool down : {false, true})
      for (const std::vector<int64_t>& sizes : std::initializer_list<std::vector<int64_t>>{
               {1000, 100, 1}, {70, 37, 3}, {9, 1024, 1}, {5, 1025, 2}, {3, 4096, 1}, {20000, 5, 1}, {3, 1, 4}}) {
        Tensor x = numbers(sizes, dtype), few = numbers(sizes, dtype, 7);
        std::string what = str(name(dtype), " ", sizes, down ? " down" : "");
        expect_same(x.to(device_).sort(1, down), x.sort(1, down), what);
        expect_same(few.to(device_).sort(1, down), few.sort(1, down), what + " of few");
      }
  for (int64_t n : {1, 2, 3, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000, 2049}) {
    Tensor x = numbers({40, n}, kFloat32);
    expect_same(x.to(device_).sort(1), x.sort(1), str(n));
  }
}

TEST_P(Sorts, LongLines) {
  for (DType dtype : kSorted)
    for (bool down : {false, true})
      for (const std::vector<int64_t>& sizes :
           std::initializer_list<std::vector<int64_t>>{{1, 100000, 1}, {3, 4097, 2}, {600, 5000, 1}, {1, 8192, 1}}) {
        Tensor x = numbers(sizes, dtype), few = numbers(sizes, dtype, 7);
        std::string what = str(name(dtype), " ", sizes, down ? " down" : "");
        expect_same(x.to(device_).sort(1, down), x.sort(1, down), what);
        expect_same(few.to(device_).sort(1, down), few.sort(1, down), what + " of few");
      }
}

TEST_P(Sorts, OneLongLine) {
  constexpr int64_t kLength = (1 << 22) + 77;
  for (DType dtype : {kUInt8, kFloat16, kFloat32, kInt64}) {
    Tensor x = numbers({kLength}, dtype);
    expect_same(x.to(device_).sort(0), x.sort(0), str(name(dtype)));
  }
  Tensor sorted = arange(kLength).to(kFloat32), same = ones({kLength});
  expect_same(sorted.to(device_).sort(0, true), sorted.sort(0, true), "sorted");
  expect_same(same.to(device_).sort(0), same.sort(0), "all the same");
}

TEST_P(Sorts, PartsOfLines) {
  for (DType dtype : kSorted)
    for (int64_t n : {50, 3000, 50257})
      for (int64_t different : {0, 5}) {
        Tensor x = numbers({12, n}, dtype, different), there = x.to(device_);
        std::string what = str(name(dtype), " ", n, " of ", different);
        for (bool largest : {false, true})
          for (int64_t k : {int64_t{1}, int64_t{40}, std::min<int64_t>(n, 2500)})
            expect_same(there.topk(k, 1, largest), x.topk(k, 1, largest), str(what, " topk ", k, largest));
        expect_same(there.kthvalue(n / 3 + 1, 1), x.kthvalue(n / 3 + 1, 1), what + " kthvalue");
        if (dtype != kBool) expect_same(there.median(1), x.median(1), what + " median");
      }
  Tensor line = numbers({1 << 20}, kFloat32), there = line.to(device_);
  expect_same(there.topk(100, 0), line.topk(100, 0), "topk of a long line");
  expect_same(there.kthvalue(1000, 0), line.kthvalue(1000, 0), "kthvalue of a long line");
}

TEST_P(Sorts, ViewsAndEmptyOnes) {
  Tensor x = numbers({6, 50, 40}, kFloat32), there = x.to(device_);
  auto seen = [](const Tensor& t) { return t.transpose(0, 2).slice(1, 3, 47, 2); };
  for (int64_t dim : {0, 1, 2})
    for (bool down : {false, true})
      expect_same(seen(there).sort(dim, down), seen(x).sort(dim, down), str("view along ", dim));
  expect_same(there.expand({3, 6, 50, 40}).sort(2), x.expand({3, 6, 50, 40}).sort(2), "expanded");
  for (const std::vector<int64_t>& sizes :
       std::initializer_list<std::vector<int64_t>>{{0}, {1}, {3, 0}, {0, 3}, {1, 1}}) {
    Tensor e = numbers(sizes, kFloat32);
    expect_same(e.to(device_).sort(-1), e.sort(-1), str(sizes));
  }
  Tensor scalar = full({}, 2.5f);
  expect_same(scalar.to(device_).sort(0), scalar.sort(0), "scalar");
}

// One program for all lengths, which decides in each call how lines are sorted.
TEST_P(Sorts, SizesThatChange) {
  auto sorted = compile([](const Tensor& t) { return (t * 2).sort(1, true); });
  auto best = compile([](const Tensor& t) { return t.topk(3, 1); });
  for (int64_t n : {10, 11, 1500, 5000, 40, 3, 70000})
    for (int64_t lines : {4, 300}) {
      Tensor x = numbers({lines, n}, kFloat32);
      expect_same(sorted(x.to(device_)), (x * 2).sort(1, true), str("sort ", lines, " ", n));
      expect_same(best(x.to(device_)), x.topk(3, 1), str("topk ", lines, " ", n));
    }
  auto kept = [](const Tensor& t) { return t.topk(5, 1); };
  CompileOptions options;
  options.mode = "reduce-overhead";
  auto quick = compile(kept, options);
  for (int i = 0; i < 4; ++i)
    for (int64_t n : {200, 20000}) {
      Tensor x = numbers({8, n}, kFloat32);
      expect_same(quick(x.to(device_)), kept(x), str("kept ", n));
    }
}

TEST_P(Sorts, OperatorsMadeOfThem) {
  Tensor x = randint(0, 50, {20000}), there = x.to(device_);
  EXPECT_TRUE(there.argsort(0, true).cpu().equal(x.argsort(0, true)));
  manual_seed(7);
  Tensor order = randperm(5000, TensorOptions(device_)).cpu();
  EXPECT_TRUE(std::get<0>(order.sort(0)).equal(arange(5000)));
  Tensor drawn = multinomial(ones({30, 6000}).to(device_), 6000, false).cpu();
  EXPECT_TRUE(std::get<0>(drawn.sort(1)).equal(arange(6000).expand({30, 6000})));
  Tensor y = randn({100, 300});
  EXPECT_TRUE(allclose(y.to(device_).quantile(0.3, 1).cpu(), y.quantile(0.3, 1)));
}

// The gradient goes to where the elements came from.
TEST_P(Sorts, Gradients) {
  Tensor x = randn({30, 5000}), ct = randn({30, 20});
  auto gradient = [&](const Tensor& given, const Tensor& c) {
    Tensor t = given.detach();
    t.requires_grad_();
    std::get<0>(t.topk(20, 1)).backward(c);
    return t.grad();
  };
  EXPECT_TRUE(gradient(x.to(device_), ct.to(device_)).cpu().equal(gradient(x, ct)));
}

// Of more tensors than a generated kernel takes, from anywhere in memory.
TEST_P(Sorts, ConcatenationsOfManyTensors) {
  for (DType dtype : {kBool, kInt16, kFloat32, kInt64, DType::Complex64, DType::Complex128})
    for (int64_t dim : {0, 1, 2})
      for (int count : {9, 40, 150}) {
        std::vector<Tensor> here, there;
        for (int i = 0; i < count; ++i) {
          std::vector<int64_t> sizes = {7, 33, 12};
          sizes[dim] = i % 5 * (count == 40 ? 8 : 3);
          here.push_back(randint(0, 100, sizes).to(dtype));
          there.push_back(here.back().to(device_));
        }
        auto joined = [=](const std::vector<Tensor>& x) { return cat(x, dim); };
        std::string what = str(name(dtype), " along ", dim, " ", count);
        EXPECT_TRUE(joined(there).cpu().equal(joined(here))) << what;
        EXPECT_TRUE(compile(joined)(there).cpu().equal(joined(here))) << what;
        if (is_complex(dtype) || dtype == kBool) continue;
        auto seen = [=](const std::vector<Tensor>& x) {
          std::vector<Tensor> views;
          for (const Tensor& t : x) views.push_back((t * 2).transpose(0, dim));
          return cat(views, 0);
        };
        EXPECT_TRUE(compile(seen)(there).cpu().equal(seen(here))) << what << " views";
      }
}

INSTANTIATE_TEST_SUITE_P(Devices, Sorts, testing::Values("emu", "cuda"));

}  // namespace
}  // namespace brasa
