#include <cmath>
#include <limits>

#include <brasa/brasa.h>
#include <brasa/nn.h>
#include <gtest/gtest.h>

namespace brasa::nn {
namespace {

namespace F = functional;

template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
    synchronize(get_default_device());
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}
bool contains(const std::string& text, const char* part) { return text.find(part) != text.npos; }

TEST(Functional, AttentionAddsTheZeroKeyToKeysThatAreGiven) {
  int64_t batch = 2, heads = 2, embed = 6, source = 4;
  Tensor q = randn({1, batch, embed}), k = randn({batch * heads, source, 3}), v = randn({batch * heads, source, 3});
  Tensor identity = eye(embed), three = cat({identity, identity, identity});
  auto options = F::MultiheadAttentionForwardFuncOptions(embed, heads, three, zeros({3 * embed}), {}, {}, true, 0.0,
                                                         identity, zeros({embed}))
                     .training(false)
                     .key_padding_mask(zeros({batch, source}, kBool))
                     .static_k(k)
                     .static_v(v);
  auto [out, weights] = F::multi_head_attention_forward(q, q, q, options);
  EXPECT_EQ(weights.sizes(), IntArrayRef({batch, 1, source + 1}));
  Tensor scores = q.view({batch * heads, 1, 3}).bmm(k.transpose(1, 2)) / std::sqrt(3.0);
  Tensor shares = softmax(constant_pad_nd(scores, {0, 1}), -1);
  EXPECT_TRUE(allclose(weights, shares.view({batch, heads, 1, source + 1}).mean(1), 1e-4, 1e-5));
  EXPECT_TRUE(allclose(out.view({batch * heads, 1, 3}), shares.slice(2, 0, source).bmm(v), 1e-4, 1e-5));
}

TEST(Functional, NormsOfGradients) {
  Tensor p = zeros({3}, requires_grad());
  auto norm = [&](double type) {
    p.mutable_grad() = tensor({3.f, 0.f, -4.f});
    return utils::clip_grad_norm_({p}, 100.0, type);
  };
  EXPECT_NEAR(norm(2), 5, 1e-5);
  EXPECT_NEAR(norm(1), 7, 1e-5);
  EXPECT_NEAR(norm(std::numeric_limits<double>::infinity()), 4, 1e-5);
  EXPECT_NEAR(norm(0), 1, 1e-5);  // of the one tensor's norm, which is 2
  EXPECT_NEAR(norm(3), std::cbrt(91.0), 1e-4);
}

TEST(Functional, ErrorsSayWhatWasGiven) {
  EXPECT_TRUE(contains(error_of([] {
                         F::interpolate(ones({1, 1, 4}),
                                        F::InterpolateFuncOptions().scale_factor(std::vector<double>{3, 2}));
                       }),
                       "Input is 1D, scale_factor size is [3, 2]"));
  EXPECT_TRUE(contains(error_of([] { im2col(ones({1, 1, 2, 2}), {2, 3}, {1, 1}, {0, 0}, {1, 1}); }),
                       "sliding blocks as (1, 0)"));
  EXPECT_TRUE(contains(error_of([] { utils::rnn::pack_padded_sequence(ones({0, 0}), zeros({0})); }), "empty"));
  Tensor x = arange(4);
  EXPECT_TRUE(contains(error_of([&] { x.index_put_({x > -1}, tensor({1, 2, 3})); }), "shape mismatch"));
  EXPECT_TRUE(
      contains(error_of([] { empty({3, 0}).index({indexing::Slice(), tensor({0, 1})}); }), "dimension with size 0"));
}

TEST(Functional, UnfoldTakesBatchesOfPlanesAlone) {
  EXPECT_NE(error_of([] { F::unfold(ones({1, 4, 4}), F::UnfoldFuncOptions(2)); }).find("Only 4D"), std::string::npos);
}

}  // namespace
}  // namespace brasa::nn
