#include <gtest/gtest.h>
#include <torch/torch.h>

#include <sstream>

// Small things of ATen and c10 that programs use beside the operators.
namespace {

template <class T>
std::string text(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

template <class scalar_t>
double sum_of(const torch::Tensor& t) {
  torch::Tensor here = t.cpu();
  auto values = here.accessor<scalar_t, 1>();
  double sum = 0;
  for (const auto i : c10::irange(values.size(0))) sum += static_cast<double>(values[i]);
  return sum;
}

TEST(Helpers, DispatchByDtype) {
  auto sum = [](const torch::Tensor& t) {
    return AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, t.scalar_type(), "sum_of",
                                      [&] { return sum_of<scalar_t>(t); });
  };
  for (auto dtype : {torch::kByte, torch::kInt, torch::kLong, torch::kHalf, torch::kBFloat16, torch::kDouble})
    EXPECT_EQ(sum(torch::arange(5).to(dtype)), 10) << dtype;
  try {
    sum(torch::ones({2}, torch::kBool));
    FAIL();
  } catch (const c10::NotImplementedError& e) {
    EXPECT_STREQ(e.what_without_backtrace(), "\"sum_of\" not implemented for 'Bool'");
  }
}

TEST(Helpers, ParallelLoopsCoverTheRange) {
  std::vector<int> seen(1000, 0);
  at::parallel_for(0, 1000, 7, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
  });
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 1000);
  auto add = [](int64_t begin, int64_t end, int64_t sum) {
    for (int64_t i = begin; i < end; ++i) sum += i;
    return sum;
  };
  EXPECT_EQ(at::parallel_reduce(10, 1000, 3, int64_t{0}, add, std::plus<>()), 499455);
  EXPECT_EQ(at::parallel_reduce(5, 5, 3, int64_t{7}, add, std::plus<>()), 7);
}

TEST(Helpers, ResultsOfListsAreWritten) {
  torch::Tensor x = torch::arange(6.0).reshape({2, 3});
  std::vector<torch::Tensor> out = {torch::zeros({3}), torch::zeros({0})};
  at::unbind_copy_out(out, x);
  EXPECT_TRUE(torch::equal(out[1], x[1]));
  at::split_copy_outf(x, 2, 1, out);
  EXPECT_TRUE(torch::equal(out[1], x.narrow(1, 2, 1)));
  EXPECT_THROW(at::unbind_copy_out(out, x, 1), c10::Error);  // three
  out[0] = torch::zeros({3}, torch::kDouble);
  EXPECT_THROW(at::unbind_copy_out(out, x), c10::Error);
}

TEST(Helpers, RandomNumbersAreWrittenByAGenerator) {
  torch::Tensor x = torch::zeros({4}), out = torch::zeros({4}), again = torch::zeros({4});
  auto generator = torch::make_generator<at::CPUGeneratorImpl>(3),
       same = torch::make_generator<at::CPUGeneratorImpl>(3);
  at::rand_like_out(out, x, generator, std::nullopt);
  at::rand_like_outf(x, same, std::nullopt, again);
  EXPECT_TRUE(torch::equal(out, again));
  EXPECT_FALSE(torch::equal(out, x));
  at::randint_like_outf(x, 5, 6, std::nullopt, out);
  EXPECT_TRUE(torch::equal(out, torch::full({4}, 5.0)));
  at::randperm_outf(4, again);
  EXPECT_EQ(again.sum().item<double>(), 6);
}

TEST(Helpers, FunctionsOfIndicesAndGradients) {
  torch::Tensor x = torch::arange(6.0).reshape({2, 3}).requires_grad_(), out = torch::zeros({0});
  c10::List<std::optional<at::Tensor>> mask({x > 2});
  at::index_out(out, x.detach(), mask);
  EXPECT_TRUE(torch::equal(out, torch::tensor({3.0f, 4.0f, 5.0f})));
  at::index_put_outf(x.detach(), mask, torch::tensor(7.0f), true, out);
  EXPECT_EQ(out.sum().item<double>(), 15 + 3 * 7);
  auto gradient = [&](const torch::Tensor& y) { return torch::autograd::grad({y.sum()}, {x})[0]; };
  EXPECT_TRUE(torch::equal(at::trace_backward(torch::ones({}), {2, 3}), gradient(x.trace())));
  torch::Tensor at_ = torch::tensor({{0, 0}, {2, 1}});
  EXPECT_TRUE(torch::equal(at::gather_backward(torch::ones({2, 2}), x, 1, at_, false), gradient(x.gather(1, at_))));
  auto [most, where] = x.max(1);
  EXPECT_TRUE(
      torch::equal(at::value_selecting_reduction_backward(torch::ones({2}), 1, where, {2, 3}, false), gradient(most)));
  torch::Tensor sparse = at::sparse_coo_tensor(torch::tensor({{1}, {2}}), torch::ones({1}), {2, 3}, torch::kDouble,
                                               std::nullopt, std::nullopt, std::nullopt, std::nullopt);
  EXPECT_EQ(sparse.scalar_type(), torch::kDouble);
  EXPECT_EQ(sparse.to_dense()[1][2].item<double>(), 1);
  EXPECT_EQ(torch::_sparse_sum(sparse, {1}).to_dense().sum().item<double>(), 1);
}

TEST(Helpers, ContainersPrint) {
  EXPECT_EQ(text(std::vector<int64_t>{1, 2}), "1 2");
  EXPECT_EQ(text(std::map<std::string, double>{{"a", 1.5}}), "(a, 1.5)");
  EXPECT_EQ(text(c10::SmallVector<int, 4>{3, 4}), "[3, 4]");
  EXPECT_EQ(text(c10::ArrayRef<std::string>({"x", "y"})), "[x, y]");
  EXPECT_EQ(text(at::Half(0.5f) * at::Half(3.0f)), "1.5");
  EXPECT_EQ(at::infer_size({2, 1}, {3}), std::vector<int64_t>({2, 3}));
}

TEST(Helpers, PackedAccessors) {
  torch::Tensor t = torch::arange(6).view({2, 3}).t().cpu();
  torch::PackedTensorAccessor32<int64_t, 2> a = t.packed_accessor32<int64_t, 2>();
  EXPECT_EQ(a[2][1], 5);
  EXPECT_EQ(a.size(0), 3);
  EXPECT_THROW((t.packed_accessor64<int64_t, 1>()), c10::Error);
}

TEST(Helpers, OptionsAndModulesPrint) {
  EXPECT_EQ(text(torch::dtype(torch::kHalf).requires_grad(true)),
            "TensorOptions(dtype=c10::Half, device=" + brasa::get_default_device().str() +
                " (default), layout=Strided (default), requires_grad=true, "
                "pinned_memory=false (default), memory_format=(nullopt))");
  EXPECT_EQ(text(torch::MemoryFormat::ChannelsLast), "ChannelsLast");
  std::ostringstream out;
  out << torch::nn::Linear(1, 1) << ' ' << true;
  EXPECT_EQ(out.str(), "torch::nn::Linear(in_features=1, out_features=1, bias=true) true");
}

TEST(Helpers, MessagesAreTheMistakeAlone) {
  try {
    torch::ones({2, 3}) + torch::ones({4, 5});
    FAIL();
  } catch (const c10::Error& e) {
    EXPECT_STREQ(e.what_without_backtrace(),
                 "The size of tensor a (3) must match the size of tensor b (5) at non-singleton dimension 1");
    EXPECT_NE(std::string(e.what()).find("float32[4, 5]"), std::string::npos);
  }
  try {
    torch::nn::Linear(4, 2)(torch::ones({2, 5, 3}));
    FAIL();
  } catch (const c10::Error& e) {
    EXPECT_STREQ(e.what_without_backtrace(), "addmm: mat1 and mat2 shapes cannot be multiplied (10x3 and 4x2)");
  }
  EXPECT_THROW(torch::nn::BatchNorm1d(3)(torch::ones({1, 3})), c10::Error);
}

TEST(Helpers, GroupsTakeWhatTheyLeaveAtDefaultsFromTheOptimizer) {
  auto p = torch::ones({1}, torch::requires_grad()), q = torch::ones({1}, torch::requires_grad());
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<torch::Tensor>{p}, std::make_unique<torch::optim::AdamOptions>(0.5));
  groups.emplace_back(std::vector<torch::Tensor>{q});
  torch::optim::Adam adam(groups, torch::optim::AdamOptions(0.1).eps(1e-3));
  auto options = [&](size_t g) { return static_cast<torch::optim::AdamOptions&>(adam.param_groups()[g].options()); };
  EXPECT_EQ(options(0).lr(), 0.5);
  EXPECT_EQ(options(0).eps(), 1e-3);
  EXPECT_EQ(options(1).lr(), 0.1);
  (p * q).sum().backward();
  adam.step();
  adam.step();
  EXPECT_EQ(static_cast<torch::optim::AdamParamState&>(*adam.state().at(p.unsafeGetTensorImpl())).step(), 2);
}

TEST(Helpers, Methods) {
  torch::Tensor t = torch::zeros({7, 3});
  t.fill_diagonal_(1, /*wrap=*/true);
  EXPECT_TRUE(t.nonzero().equal(torch::tensor({{0, 0}, {1, 1}, {2, 2}, {4, 0}, {5, 1}, {6, 2}})));
  EXPECT_EQ(torch::zeros({2, 2, 2}).fill_diagonal_(2).sum().item<float>(), 4);
  torch::Tensor m = torch::tensor({{2.0, 0.0}, {0.0, 4.0}});
  EXPECT_EQ(m.det().item<float>(), 8);
  EXPECT_EQ(m.inverse()[1][1].item<float>(), 0.25f);
  EXPECT_EQ(m.index_put({torch::tensor({0})}, torch::ones({2})).sum().item<float>(), 6);
  EXPECT_EQ(m.sum().item<float>(), 6);
  EXPECT_TRUE(m.is_set_to(m.view({2, 2})) && !m.is_set_to(m.t()) && m.is_same_size(m.t()));
  EXPECT_EQ(torch::zeros({2, 3, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast).suggest_memory_format(),
            at::MemoryFormat::ChannelsLast);
}

TEST(Helpers, NewTensorsNeedNoGradientOfWhatTheyAreLike) {
  torch::Tensor t = torch::ones({2}, torch::requires_grad());
  for (const torch::Tensor& made :
       {torch::zeros_like(t), torch::ones_like(t), torch::full_like(t, 2), torch::rand_like(t), t.new_zeros({3})})
    EXPECT_FALSE(made.requires_grad());
}

}  // namespace
