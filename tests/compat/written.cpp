#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

// LibTorch's functions that write into tensors that are given, and the other orders of parameters that it has.
namespace {

using torch::Tensor;

Tensor x() { return torch::tensor({{3.f, 1.f, 2.f}, {6.f, 5.f, 4.f}}); }

Tensor& emptied(Tensor& t) {
  t.resize_({0});
  return t;
}

TEST(Written, Lists) {
  Tensor out = torch::empty({0}), a = torch::ones({2}), b = torch::zeros({2});
  Tensor& same = torch::cat_out(out, {a, b});
  EXPECT_EQ(&same, &out);
  EXPECT_TRUE(out.equal(torch::tensor({1.f, 1.f, 0.f, 0.f})));
  EXPECT_TRUE(torch::stack_out(emptied(out), {a, b}, 1).equal(torch::stack({a, b}, 1)));
  Tensor wide = torch::empty({0}, torch::kDouble);
  EXPECT_TRUE(torch::hstack_out(wide, {a, b}).equal(torch::hstack({a, b}).to(torch::kDouble)));
  EXPECT_TRUE(torch::cat_outf({a, b}, 0, wide).equal(torch::cat({a, b}).to(torch::kDouble)));
}

TEST(Written, FactoriesComputeInTheTensorsDtype) {
  auto into = [](torch::ScalarType t) { return torch::empty({0}, t); };
  Tensor i = into(torch::kInt), d = into(torch::kDouble), f = into(torch::kFloat);
  EXPECT_TRUE(torch::zeros_out(i, {2, 2}).equal(torch::zeros({2, 2}, torch::kInt)));
  EXPECT_TRUE(torch::full_out(d, {2}, 0.1).equal(torch::full({2}, 0.1, torch::kDouble)));
  EXPECT_TRUE(torch::arange_out(emptied(i), 0, 5, 2).equal(torch::tensor({0, 2, 4}, torch::kInt)));
  EXPECT_TRUE(torch::arange_out(f, 3).equal(torch::tensor({0.f, 1.f, 2.f})));
  EXPECT_TRUE(torch::linspace_out(emptied(f), 0, 1, 3).equal(torch::tensor({0.f, 0.5f, 1.f})));
  EXPECT_TRUE(torch::eye_out(emptied(i), 2, 3).equal(torch::eye(2, 3, torch::kInt)));
  EXPECT_EQ(torch::randperm_out(emptied(f), 5).sum().item<float>(), 10);
  auto generator = torch::make_generator<at::CPUGeneratorImpl>(7);
  Tensor first = torch::randn({4}, generator);
  generator.set_current_seed(7);
  EXPECT_TRUE(torch::randn_out(emptied(f), {4}, generator).equal(first));
  Tensor like = into(torch::kDouble);
  EXPECT_TRUE(torch::zeros_like_out(like, x()).equal(torch::zeros({2, 3}, torch::kDouble)));
  EXPECT_EQ(torch::empty_out(emptied(f), {5}).size(0), 5);
}

TEST(Written, SeveralResults) {
  Tensor values = torch::empty({0}), indices = torch::empty({0}, torch::kLong);
  auto results = torch::sort_out(values, indices, x(), 1);
  EXPECT_EQ(&std::get<0>(results), &values);
  EXPECT_EQ(&std::get<1>(results), &indices);
  EXPECT_TRUE(values.equal(torch::tensor({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}})));
  EXPECT_TRUE(indices.equal(torch::tensor({{1, 2, 0}, {2, 1, 0}})));
  torch::max_out(emptied(values), emptied(indices), x(), 1);
  EXPECT_TRUE(values.equal(torch::tensor({3.f, 6.f})));
  EXPECT_TRUE(indices.equal(torch::tensor({0, 0})));
  torch::topk_out(emptied(values), emptied(indices), x(), 2);
  EXPECT_TRUE(values.equal(torch::tensor({{3.f, 2.f}, {6.f, 5.f}})));
  // None is there yet: they become the results.
  Tensor u, s, v, q, r;
  torch::linalg_svd_out(u, s, v, x(), false);
  EXPECT_TRUE(torch::allclose(u.matmul(torch::diag(s)).matmul(v), x(), 1e-4, 1e-5));
  torch::linalg_qr_out(q, r, x());
  EXPECT_TRUE(torch::allclose(q.matmul(r), x(), 1e-4, 1e-5));
  Tensor deviation, mean;
  torch::std_mean_out(deviation, mean, x(), {1}, true, false);
  EXPECT_TRUE(mean.equal(torch::tensor({2.f, 5.f})));
  EXPECT_TRUE(torch::special::gammaln_out(emptied(mean), torch::ones({1})).equal(torch::zeros({1})));
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
    return "taken";
  } catch (const c10::Error& e) {
    return e.what();
  }
}

TEST(Written, RefusalsAreLibTorchs) {
  Tensor f = torch::empty({0}), d = torch::empty({0}, torch::kDouble), i = torch::empty({0}, torch::kInt),
         l = torch::empty({0}, torch::kLong), grad = torch::ones({2}, torch::requires_grad()), y = x();
  const std::pair<std::function<void()>, const char*> cases[] = {
      {[&] { torch::cat_out(i, {y, y}); }, "can't be cast to the desired output type Int"},
      {[&] { torch::sort_out(d, l, y); }, "Expected out tensor to have dtype float, but got double instead"},
      {[&] { torch::sort_out(f, i, y); }, "Expected out tensor to have dtype long int, but got int instead"},
      {[&] { torch::cat_out(f, {grad}); }, "don't support automatic differentiation"},
      {[&] { torch::sort_out(f, l, grad); }, "don't support automatic differentiation"},
      {[&] { torch::add_out(grad, f, f); }, "don't support automatic differentiation"},
      {[&] { torch::zeros_out(grad, {2}); }, "don't support automatic differentiation"},
      {[&] {
         Tensor shared = torch::zeros({1}).expand({2});
         torch::arange_out(shared, 2);
       },
       "more than one element of the written-to tensor"}};
  for (const auto& [call, says] : cases) EXPECT_NE(refusal(call).find(says), std::string::npos) << refusal(call);
}

struct Heard final : c10::WarningHandler {
  void process(const brasa::SourceLocation&, const std::string& message, bool) override { text += message; }
  std::string text;
};

TEST(Written, AnotherShapeIsWarnedOf) {
  Heard heard;
  c10::Warning::set_warning_handler(&heard);
  Tensor out = torch::zeros({3}), empty = torch::empty({0});
  torch::zeros_out(empty, {2});
  EXPECT_EQ(heard.text, "");
  torch::cat_out(out, {torch::ones({4})});
  c10::Warning::set_warning_handler(nullptr);
  EXPECT_EQ(
      heard.text.find("An output with one or more elements was resized since it had shape [3], which does not match "
                      "the required output shape [4]."),
      0u);
  EXPECT_TRUE(out.equal(torch::ones({4})));
}

TEST(Written, OptionsOneByOne) {
  Tensor a = at::zeros({2}, torch::kInt, torch::kStrided, c10::nullopt, c10::nullopt);
  EXPECT_EQ(a.scalar_type(), torch::kInt);
  EXPECT_EQ(at::empty({2}, torch::kHalf, c10::nullopt, c10::nullopt, false, c10::nullopt).scalar_type(), torch::kHalf);
  EXPECT_EQ(a.new_full({1}, 2, torch::kDouble, c10::nullopt, c10::nullopt, c10::nullopt).scalar_type(), torch::kDouble);
  auto generator = torch::make_generator<at::CPUGeneratorImpl>(1);
  EXPECT_EQ(torch::rand({2}, generator, torch::kDouble).scalar_type(), torch::kDouble);
  EXPECT_EQ(torch::randint(10, {2}, generator).scalar_type(), torch::kLong);
  EXPECT_EQ(torch::stft(torch::ones({8}), 4, c10::nullopt, c10::nullopt, {}, true, "reflect", false, true, true).dim(),
            2);
}

TEST(Functions, OfWhatHadMethodsAlone) {
  Tensor a = torch::ones({2, 2});
  EXPECT_TRUE(torch::zero(a).equal(torch::zeros({2, 2})));
  EXPECT_TRUE(torch::fill(a, 3).equal(torch::full({2, 2}, 3.f)));
  EXPECT_TRUE(torch::copy(a, torch::tensor(2.f)).equal(torch::full({2, 2}, 2.f)));
  EXPECT_TRUE(a.equal(torch::ones({2, 2})));
  EXPECT_EQ(&torch::fill_(a, 3), &a);
  EXPECT_EQ(&torch::zero_(a), &a);
  EXPECT_EQ(a.sum().item<float>(), 0);
  EXPECT_EQ(torch::result_type(1.5, torch::ones({1}, torch::kInt)), torch::kFloat);
  EXPECT_EQ(torch::result_type(1, 2.5), torch::kFloat);
}

TEST(Functions, MemoryOfAnother) {
  Tensor a = torch::arange(6, torch::kFloat), b = torch::zeros({2});
  b.set_(a);
  b[0] = 9;
  EXPECT_EQ(a[0].item<float>(), 9);
  b.set_(a, 1, {2, 2}, {1, 2});
  EXPECT_TRUE(b.equal(torch::tensor({{1.f, 3.f}, {2.f, 4.f}})));
  b.set_(a.storage(), 2, {2, 2});
  EXPECT_TRUE(b.equal(torch::tensor({{2.f, 3.f}, {4.f, 5.f}})));
  EXPECT_EQ(b.set_().numel(), 0);
  EXPECT_NE(refusal([&] {
              torch::zeros({1}, torch::kInt).set_(a);
            }).find("Could not set tensor of type float to a tensor of type int"),
            std::string::npos);
  Tensor c = torch::arange(6).as_strided_({2, 2}, {1, 2});
  EXPECT_TRUE(c.equal(torch::tensor({{0, 2}, {1, 3}})));
  EXPECT_EQ(torch::zeros({1}).resize_({2, 2, 2, 2}, torch::MemoryFormat::ChannelsLast).stride(1), 1);
  EXPECT_EQ(torch::zeros({1, 2, 1, 3}).squeeze_(torch::IntArrayRef({0, 2})).dim(), 2);
}

TEST(Functions, FilesAsTensors) {
  auto path = std::filesystem::temp_directory_path() / "brasa_from_file.bin";
  std::filesystem::remove(path);
  std::string name = path.string();
  auto options = torch::TensorOptions().dtype(torch::kInt);
  EXPECT_NE(refusal([&] { torch::from_file(name, false, 2, options); }).find("No such file"), std::string::npos);
  torch::from_file(name, true, 4, options).copy_(torch::arange(4));
  EXPECT_TRUE(torch::from_file(name, c10::nullopt, 4, options).equal(torch::arange(4, torch::kInt)));
  torch::from_file(name, false, 4, options).fill_(7);  // its own copy
  EXPECT_TRUE(torch::from_file(name, true, 2, options).equal(torch::arange(2, torch::kInt)));
  EXPECT_NE(refusal([&] {
              torch::from_file(name, false, 8, options);
            }).find("size <16> is smaller than the required mapping size <32>"),
            std::string::npos);
  EXPECT_EQ(torch::from_file(name).numel(), 0);
  std::filesystem::remove(path);
}

}  // namespace
