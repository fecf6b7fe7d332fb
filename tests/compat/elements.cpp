#include <torch/torch.h>

#include <gtest/gtest.h>

// Dtypes and random numbers as LibTorch's names give them; and what its headers bring of the standard library, none of it included here.
namespace {

TEST(Elements, TensorsKeepTheDtypeOfNarrowAndComplexData) {
  EXPECT_EQ(torch::tensor({c10::complex<double>(1, 2)}).scalar_type(), torch::kComplexDouble);
  EXPECT_EQ(torch::tensor(c10::complex<float>(1, 2)).scalar_type(), torch::kComplexFloat);
  EXPECT_EQ(torch::tensor(at::Half(2)).scalar_type(), torch::kHalf);
  EXPECT_EQ(torch::tensor(std::vector<int16_t>{1, 2}).scalar_type(), torch::kShort);
  EXPECT_EQ(torch::tensor({uint8_t{3}}).scalar_type(), torch::kByte);
  EXPECT_EQ(torch::tensor({1, 2}).scalar_type(), torch::kLong);
  EXPECT_EQ(torch::tensor({1.5}).scalar_type(), torch::kFloat);
  EXPECT_EQ(torch::tensor(std::vector<double>{}).scalar_type(), torch::kFloat);
}

TEST(Elements, DtypesOfTypes) {
  EXPECT_EQ(torch::ones(2, torch::dtype<int>()).scalar_type(), torch::kInt);
  EXPECT_EQ(at::dtype<double>().dtype(), torch::kDouble);
  c10::ScalarType t = c10::CppTypeToScalarType<int64_t>();
  EXPECT_EQ(t, torch::kLong);
}

TEST(Elements, Generators) {
  at::Generator generator = at::detail::createCPUGenerator(5);
  torch::Tensor first = torch::rand({3}, generator);
  generator.set_current_seed(5);
  EXPECT_TRUE(torch::equal(first, torch::rand({3}, generator)));
  EXPECT_EQ(at::detail::createCPUGenerator().current_seed(), c10::default_rng_seed_val);
  torch::manual_seed(7);
  EXPECT_EQ(at::detail::getDefaultCPUGenerator().current_seed(), 7u);
}

TEST(Elements, NodesOfPlainProductsComeFirst) {
  torch::Tensor x = torch::ones({1, 2, 2}, torch::requires_grad());
  EXPECT_EQ(torch::bmm(x, x).grad_fn()->name(), "BmmBackward0");
  EXPECT_EQ(torch::baddbmm(x, x, x).grad_fn()->name(), "BaddbmmBackward0");
}

TEST(Elements, StandardLibrary) {
  std::ostringstream out;
  out << std::setw(4) << std::setprecision(2) << std::fixed << 1.234;
  EXPECT_EQ(out.str(), "1.23");
  std::queue<int> numbers;
  std::thread([&] { numbers.push(3); }).join();
  int copy = 0;
  std::memcpy(&copy, &numbers.front(), sizeof copy);
  EXPECT_EQ(copy, 3);
  EXPECT_GE(std::chrono::steady_clock::now().time_since_epoch().count(), 0);
}

}  // namespace
