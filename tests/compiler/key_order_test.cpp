#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "compiler/libraries/order.h"

// Parts of the order of elements, as many ways as there are to find it: any number of them, keys of any range.
namespace brasa::compiler {
namespace {

TEST(KeyOrder, PartsOfAStableOrder) {
  std::mt19937_64 random(3);
  KeyOrder order;
  for (size_t n : {1, 2, 17, 95, 96, 97, 128, 129, 200, 256, 257, 600, 2500})
    for (uint64_t range : {uint64_t{1}, uint64_t{2}, uint64_t{5}, uint64_t{90}, uint64_t{700}, uint64_t{100000},
                           uint64_t{1} << 33, uint64_t{1} << 62}) {
      Keys keys(n);
      keys.fill([&](size_t) { return uint64_t{1} << 60 | random() % range; });
      std::vector<int64_t> expected(n);
      std::iota(expected.begin(), expected.end(), int64_t{0});
      std::stable_sort(expected.begin(), expected.end(),
                       [&](int64_t a, int64_t b) { return keys.all[a] < keys.all[b]; });
      for (size_t count : {size_t{1}, n / 5, n / 2, n})
        for (size_t first : {size_t{0}, n / 3, n - count}) {
          if (count == 0 || first + count > n) continue;
          std::vector<int64_t> got(count, -1);
          order.arrange(keys, first, count, got.data());
          for (size_t i = 0; i < count; ++i)
            ASSERT_EQ(got[i], expected[first + i])
                << i << " of " << count << " from " << first << ", " << n << " of " << range << " keys";
        }
    }
}

}  // namespace
}  // namespace brasa::compiler
