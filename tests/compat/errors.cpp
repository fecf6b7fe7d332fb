#include <gtest/gtest.h>
#include <torch/torch.h>

// Which kind of error a mistake is, and its words where LibTorch's macros make them.
namespace {

template <class Kind, class F>
void expect_kind(F call) {
  try {
    call();
    FAIL();
  } catch (const c10::Error& e) {
    EXPECT_NE(dynamic_cast<const Kind*>(&e), nullptr) << e.what();
    bool index = dynamic_cast<const c10::IndexError*>(&e);
    EXPECT_EQ(index, (std::is_same_v<Kind, c10::IndexError>)) << e.what();
  }
}

TEST(Errors, ChecksOfValuesHaveTheirKinds) {
  torch::Tensor zeros = torch::zeros({2, 2});
  // On a device a check's error comes at the next wait.
  expect_kind<c10::LinAlgError>([&] { torch::linalg_inv(zeros).cpu(); });
  expect_kind<c10::LinAlgError>([] { torch::linalg_cholesky(-torch::eye(2)).cpu(); });
  expect_kind<c10::LinAlgError>([&] { torch::linalg_solve(zeros, torch::ones({2})).cpu(); });
  expect_kind<c10::IndexError>([&] { zeros.index_select(0, torch::tensor({5})).cpu(); });
  expect_kind<c10::IndexError>([&] { torch::nll_loss(zeros, torch::tensor({0, 5})).cpu(); });
  expect_kind<c10::Error>([] { torch::bernoulli(torch::full({2}, 2.0)).cpu(); });
  expect_kind<c10::Error>([] { torch::one_hot(torch::tensor({-1}), 3).cpu(); });
  expect_kind<c10::IndexError>([&] { zeros.index({torch::tensor({0.5})}); });
  expect_kind<c10::IndexError>([&] { torch::tensor(1)[0]; });
  expect_kind<c10::ValueError>([&] { torch::cross_entropy_loss(zeros, torch::tensor({0})); });
  expect_kind<c10::IndexError>([] { torch::zeros({0}).argmax(); });
  torch::Tensor flags = torch::ones({2}, torch::kBool);
  expect_kind<c10::NotImplementedError>([&] { flags - flags; });
  expect_kind<c10::NotImplementedError>([&] { flags - 1.5; });
  expect_kind<c10::NotImplementedError>([&] { -flags; });
  expect_kind<c10::NotImplementedError>([] { torch::ones({2}, torch::kInt).mean(); });
  expect_kind<c10::ValueError>([] { C10_THROW_ERROR(ValueError, "of its own"); });
  expect_kind<c10::ValueError>([&] { zeros.index({torch::indexing::Slice(0, 2, -1)}); });
}

TEST(Errors, MacrosNameBothSides) {
  try {
    TORCH_CHECK_EQ(1 + 1, 3);
    FAIL();
  } catch (const c10::Error& e) {
    EXPECT_STREQ(e.what_without_backtrace(), "Check failed: 1 + 1 == 3 (2 vs. 3). ");
  }
}

TEST(Errors, DevicesWithoutAName) {
  EXPECT_THROW(torch::Device(""), c10::Error);
  try {
    torch::Device("gpu");
    FAIL();
  } catch (const c10::Error& e) {
    EXPECT_STREQ(
        e.what_without_backtrace(),
        "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, "
        "mps, meta, hpu, mtia, privateuseone device type at start of device string: gpu");
  }
}

}  // namespace
