#include <brasa/brasa.h>
#include <gtest/gtest.h>

namespace brasa {
namespace {

struct Heard : WarningHandler {
  Heard() : before(Warning::get_warning_handler()) { Warning::set_warning_handler(this); }
  ~Heard() override { Warning::set_warning_handler(before); }
  void process(const SourceLocation&, const std::string& message, bool) override { messages.push_back(message); }
  WarningHandler* before;
  std::vector<std::string> messages;
};

TEST(Anomaly, NamesTheForwardCallOfANan) {
  autograd::DetectAnomalyGuard guard;
  Heard heard;
  Tensor x = tensor({0.0}, requires_grad());
  Tensor dx = autograd::grad({x.pow(1.5)}, {x}, {}, true, true)[0];
  EXPECT_THROW(autograd::grad({dx}, {x}, {tensor({0.0})}), Error);
  ASSERT_EQ(heard.messages.size(), 2u);
  EXPECT_NE(heard.messages[0].find("forward call that caused"), std::string::npos);
  EXPECT_NE(heard.messages[1].find("forward call that induced"), std::string::npos);
}

TEST(Anomaly, IsSilentWithout) {
  Heard heard;
  Tensor x = tensor({0.0}, requires_grad());
  x.sqrt().backward(tensor({0.0}));
  EXPECT_TRUE(heard.messages.empty());
  EXPECT_FALSE(autograd::AnomalyMode::is_enabled());
}

TEST(InPlaceViews, KeepMemoryAndHistory) {
  Tensor x = arange(6, kFloat).reshape({2, 3}).clone();
  const void* memory = x.data_ptr();
  x.transpose_(0, 1).unsqueeze_(0);
  EXPECT_EQ(x.sizes(), IntArrayRef({1, 3, 2}));
  EXPECT_EQ(x.data_ptr(), memory);
  Tensor leaf = ones({2, 3}, requires_grad());
  EXPECT_THROW(leaf.t_(), Error);
  Tensor y = leaf * tensor({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});
  y.t_();
  (y * tensor({{1.f, 0.f}, {0.f, 0.f}, {0.f, 1.f}})).sum().backward();
  EXPECT_TRUE(leaf.grad().equal(tensor({{1.f, 0.f, 0.f}, {0.f, 0.f, 6.f}})));
}

TEST(Storages, AreShared) {
  Tensor x = arange(6, kFloat), row = x.slice(0, 2, 4);
  EXPECT_EQ(row.storage().data(), x.data_ptr());
  EXPECT_EQ(row.storage().nbytes(), 24u);
}

}  // namespace
}  // namespace brasa
