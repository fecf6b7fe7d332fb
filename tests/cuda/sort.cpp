#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <gtest/gtest.h>

#include <cmath>

#include "../ptxas.h"
#include "fake.h"
#include "runtime/cuda/sort.h"
#include "support/str.h"

// Sorts by kernels of our own, whose text the fake driver runs: nothing else computes anything there.
namespace brasa {
namespace {

const bool kFakes = (test::use_fakes(), true);

constexpr DType kSorted[] = {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64};

using runtime::cuda::Sort;
using runtime::cuda::SortStep;

struct Case {
  std::vector<int64_t> sizes;  // outer, length, inner
  int64_t first, count;
  bool descending = false;
  int different = 0;  // about so many values; 0: any
};

// Numbers of the whole range, or few; some are NaN, infinite, or zeros of both signs.
Tensor numbers(const Case& c, DType dtype) {
  Tensor x = c.different ? randint(-c.different / 2, (c.different + 1) / 2, c.sizes).to(kFloat64)
                         : randn(c.sizes).to(kFloat64) * 3e4;
  if (dtype == kBool) return x > 0;
  if (dtype == kUInt8) x = x.abs().remainder(256);
  if (dtype == kInt8) x = x.remainder(256) - 128;
  if (dtype == kInt64) x = x * 0x1p40;
  if (is_floating(dtype)) {
    Tensor odd = randint(0, 40, c.sizes);
    float given[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f};
    for (int i = 0; i < 5; ++i) x = x.masked_fill(odd == i, given[i]);
  }
  return x.to(dtype);
}

void check(const Case& c, DType dtype) {
  Tensor x = numbers(c, dtype), there = x.to(kCUDA);
  auto [values, places] = x.sort(1, c.descending);
  std::vector<int64_t> sizes = c.sizes;
  sizes[1] = c.count;
  Tensor got = empty(sizes, TensorOptions(kCUDA).dtype(dtype)),
         got_places = empty(sizes, TensorOptions(kCUDA).dtype(kInt64));
  runtime::cuda::run_sort({dtype, c.descending, c.sizes[0], c.sizes[1], c.sizes[2], c.first, c.count, there.data_ptr(),
                           got.data_ptr(), got_places.data_ptr()},
                          runtime::device_of(kCUDA), runtime::kDefaultStream);
  std::string what =
      str(name(dtype), " ", c.sizes, " from ", c.first, " ", c.count, c.descending ? " down" : "", " of ", c.different);
  auto part = [&](const Tensor& t) { return t.slice(1, c.first, c.first + c.count); };
  EXPECT_TRUE(got_places.cpu().equal(part(places))) << what;
  // Bit for bit: which zero and which NaN it is.
  auto bits = [](const Tensor& t) {
    Tensor all = t.contiguous();
    return std::string(static_cast<const char*>(all.data_ptr()),
                       static_cast<size_t>(all.numel() * size_of(all.scalar_type())));
  };
  EXPECT_EQ(bits(got.cpu()), bits(part(values))) << what;
}

TEST(Sort, ShortLines) {
  for (DType dtype : kSorted)
    for (bool down : {false, true}) {
      check({{7, 100, 1}, 0, 100, down}, dtype);
      check({{2, 37, 3}, 0, 37, down, 5}, dtype);
      check({{300, 5, 1}, 1, 3, down}, dtype);
    }
  for (int64_t n : {1, 2, 3, 31, 32, 33, 64, 65, 127, 128, 1000, 1024, 1025, 2049, 4096})
    for (DType dtype : {kInt32, kFloat64}) check({{2, n, 1}, 0, n, n % 2 == 0, n % 3 == 0 ? 7 : 0}, dtype);
  check({{1, 1, 1}, 0, 1}, kFloat32);
  check({{1000, 1, 2}, 0, 1}, kFloat32);
  check({{3, 0, 2}, 0, 0}, kFloat32);
  check({{0, 5, 2}, 0, 5}, kFloat32);
  check({{3, 5, 0}, 2, 1}, kFloat32);
}

TEST(Sort, LongLines) {
  for (DType dtype : kSorted) check({{1, 5000, 1}, 0, 5000, false}, dtype);
  for (DType dtype : {kUInt8, kBFloat16, kFloat32, kInt64}) check({{2, 4500, 2}, 0, 4500, true, 100}, dtype);
  check({{1, 9000, 1}, 3000, 4000, true}, kFloat32);
  check({{1, 20000, 1}, 0, 20000, false, 3}, kInt16);
}

// More lines than blocks: each has one block, which goes from tile to tile.
TEST(Sort, ManyLongLines) {
  check({{529, 4097, 1}, 2000, 2097}, kUInt8);
  check({{3, 8200, 1}, 0, 8200, true}, kBool);
}

TEST(Sort, PartOfALongLine) {
  for (DType dtype : kSorted)
    for (bool down : {false, true}) {
      check({{2, 4200, 1}, 0, 50, down}, dtype);
      check({{1, 5000, 2}, 2500, 1, down, 9}, dtype);
    }
  for (DType dtype : {kFloat32, kInt64})
    for (int different : {0, 30})
      for (auto [first, count] : {std::pair<int64_t, int64_t>{0, 2048}, {4999, 1}, {2952, 2048}})
        check({{1, 5000, 1}, first, count, different == 30, different}, dtype);
}

// The first ones of a line that several blocks have parts of, the last of which is shorter.
TEST(Sort, FirstOnesOfAVeryLongLine) {
  for (DType dtype : {kUInt8, kBFloat16, kFloat32, kInt64})
    for (auto [count, different] : {std::pair<int64_t, int>{1, 0}, {100, 0}, {100, 1}, {600, 30}})
      check({{1, 40000, 1}, 0, count, different == 1, different}, dtype);
  check({{2, 33001, 2}, 0, 33, true}, kFloat32);
  check({{1, 4 * 8192 + 5, 1}, 0, 1000}, kFloat32);
}

// What the compiler makes of the operators: no step on the host.
TEST(Sort, OperatorsStayOnTheDevice) {
  Tensor x = randn({3, 50, 2}), there = x.to(kCUDA);
  int64_t before = runtime::host_steps();
  auto same = [](const auto& got, const auto& want) {
    EXPECT_TRUE(std::get<0>(got).cpu().equal(std::get<0>(want)));
    EXPECT_TRUE(std::get<1>(got).cpu().equal(std::get<1>(want)));
  };
  same(there.sort(1), x.sort(1));
  same(there.sort(1, true), x.sort(1, true));
  same(compile([](const Tensor& t) { return t.topk(7, 1); })(there), x.topk(7, 1));
  same(there.topk(5, 1, false), x.topk(5, 1, false));
  for (int64_t n : {0, 1, 40, 41, 5000}) {
    Tensor line = randn({n});
    same(line.to(kCUDA).sort(0), line.sort(0));
  }
  EXPECT_EQ(runtime::host_steps(), before);
}

// Launches that are kept, of tensors that lie elsewhere in each call, and in every way to sort.
TEST(Sort, KeptLaunches) {
  CompileOptions options;
  options.mode = "reduce-overhead";
  auto sorted = compile([](const Tensor& t) { return t.sort(0); }, options);
  auto best = compile([](const Tensor& t) { return t.topk(9, 0); }, options);
  for (int64_t n : {100, 5000, 40000})
    for (int i = 0; i < 4; ++i) {
      Tensor x = randn({n}), there = x.to(kCUDA);
      auto a = sorted(there), b = best(there);
      EXPECT_TRUE(std::get<1>(a).cpu().equal(std::get<1>(x.sort(0)))) << n << " " << i;
      EXPECT_TRUE(std::get<1>(b).cpu().equal(std::get<1>(x.topk(9, 0)))) << n << " " << i;
    }
  EXPECT_GT(test::fake_driver().calls("cuGraphLaunch"), 0);
}

TEST(Sort, Assembles) {
  if (!test::have_ptxas()) GTEST_SKIP() << "there is no ptxas";
  std::vector<runtime::cuda::SortKind> kinds = {{SortStep::Begin, kInt32}};
  for (DType dtype : kSorted)
    for (bool many : {false, true}) {
      kinds.push_back({SortStep::Lines, dtype, many, many});
      kinds.push_back({SortStep::Select, dtype, many, many, true, true});
      kinds.push_back({SortStep::Select, dtype, many, false, true, false});
      kinds.push_back({SortStep::Select, dtype, false, false, false, true});
      kinds.push_back({SortStep::Count, dtype, many, false, true});
      kinds.push_back({SortStep::Move, dtype, many, false, true, many});
      kinds.push_back({SortStep::Move, dtype, false, false, false, true});
    }
  for (DType dtype : {kInt32, kInt64}) {
    kinds.push_back({SortStep::Count, dtype});
    kinds.push_back({SortStep::Move, dtype});
  }
  for (const auto& kind : kinds)
    for (const char* target : {"sm_80", "sm_90a"})
      EXPECT_TRUE(test::assembles(runtime::cuda::sort_kernel(kind).text,
                                  str("-arch=", target, " --warn-on-spills --warning-as-error")))
          << static_cast<int>(kind.step) << " " << name(kind.dtype) << " " << target;
}

}  // namespace
}  // namespace brasa
