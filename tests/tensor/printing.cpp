#include <limits>
#include <sstream>

#include "tensor/util.h"

namespace brasa {
namespace {

using testing::text;

TEST(Printing, IntegersShareAWidth) {
  EXPECT_EQ(text(tensor({0, 1, 2})), " 0\n 1\n 2\n[ CPULongType{3} ]");
  EXPECT_EQ(text(tensor({{1, 0, 1, 0, 3}})), " 1  0  1  0  3\n[ CPULongType{1,5} ]");
  EXPECT_EQ(text(tensor({{3, 0}, {10, 11}})), "  3   0\n 10  11\n[ CPULongType{2,2} ]");
}

TEST(Printing, FloatsHaveFourDigits) {
  EXPECT_EQ(text(tensor({{1.5, 2.0}, {-2.75, 3.25}})), " 1.5000  2.0000\n-2.7500  3.2500\n[ CPUFloatType{2,2} ]");
  EXPECT_EQ(text(tensor({0.25, 0.5})), " 0.2500\n 0.5000\n[ CPUFloatType{2} ]");
  EXPECT_EQ(text(tensor({1.0, 2.0}, kDouble)), " 1\n 2\n[ CPUDoubleType{2} ]");
}

TEST(Printing, LargeAndSmallNumbers) {
  EXPECT_EQ(text(tensor({123456.5, 100000.0})), "100000 *\n 1.2346\n 1.0000\n[ CPUFloatType{2} ]");
  EXPECT_EQ(text(tensor({1e-6, 2.5}, kDouble)), " 1.0000e-06\n 2.5000e+00\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(text(tensor({std::numeric_limits<double>::infinity(), 1.5})), "    inf\n 1.5000\n[ CPUFloatType{2} ]");
}

// Numbers are aligned to the right, however the stream aligns what comes before and after.
TEST(Printing, StreamsThatAlignToTheLeft) {
  std::ostringstream plain, left;
  left << std::left;
  for (std::ostringstream* out : {&plain, &left}) *out << tensor({1, 22}) << tensor({{1.5, 22.0}});
  EXPECT_EQ(left.str(), plain.str());
  EXPECT_TRUE(left.flags() & std::ios::left);
}

TEST(Printing, OtherRanks) {
  EXPECT_EQ(text(tensor(2.5)), "2.5\n[ CPUFloatType{} ]");
  EXPECT_EQ(text(Tensor()), "[ Tensor (undefined) ]");
  EXPECT_EQ(text(empty({0})), "[ CPUFloatType{0} ]");
  EXPECT_EQ(text(arange(8).view({2, 2, 2})),
            "(1,.,.) = \n 0  1\n  2  3\n\n(2,.,.) = \n 4  5\n  6  7\n[ CPULongType{2,2,2} ]");
  EXPECT_EQ(text(tensor({true, false})), " 1\n 0\n[ CPUBoolType{2} ]");
}

TEST(Printing, TypesAndSizes) {
  std::ostringstream out;
  out << arange(2).dtype() << ' ' << kFloat << ' ' << ones({2, 3}).sizes() << ' ' << Device("cuda:1") << ' '
      << Scalar(1.5);
  EXPECT_EQ(out.str(), "long int Float [2, 3] cuda:1 1.5");
}

}  // namespace
}  // namespace brasa
