#include <gtest/gtest.h>

#include <ostream>

#include "fuzz/readers/target.h"

namespace brasa::fuzz {

void PrintTo(const Target& t, std::ostream* out) { *out << t.name; }

namespace {

class Readers : public testing::TestWithParam<Target> {};

TEST_P(Readers, ReadWhatTheyShould) {
  GetParam().run(GetParam().seeds()[0]);  // tables that are made once count for no input
  size_t read = 0, seeds = 0;
  for (const std::string& seed : GetParam().seeds()) {
    Outcome out = tried(GetParam(), seed);
    EXPECT_EQ(out.failure, "") << seed;
    read += out.read;
    ++seeds;
  }
  EXPECT_GE(2 * read, seeds);
}

TEST_P(Readers, TakeWhateverTheyAreGiven) {
  for (uint32_t number = 0; number < 1500; ++number) {
    std::string bytes = mutated(target(GetParam().name), 1, number);
    EXPECT_EQ(tried(GetParam(), bytes).failure, "") << "seed 1, number " << number;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Readers, testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace brasa::fuzz
