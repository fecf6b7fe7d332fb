#include "tensor/autocast.h"

#include <brasa/autocast.h>
#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "ops/table.h"

namespace brasa {
namespace {

Tensor weight(IntArrayRef sizes) { return randn(sizes).set_requires_grad(true); }

// PyTorch's lists name operators without their overloads.
TEST(Autocast, OverloadsShareAPolicy) {
  std::map<std::string_view, ops::Autocast> policies;
  for (const ops::Row& row : ops::table().rows()) {
    if (row.is_primitive()) continue;
    auto it = policies.emplace(row.schema.base, row.autocast).first;
    EXPECT_EQ(it->second, row.autocast) << row.name();
  }
  EXPECT_EQ(policies["mm"], ops::Autocast::Lower);
  EXPECT_EQ(policies["mse_loss"], ops::Autocast::Float32);
  EXPECT_EQ(policies["cat"], ops::Autocast::Widest);
  EXPECT_EQ(policies["add"], ops::Autocast::None);
}

// The lists of PyTorch 2.15 for CUDA, as its dispatcher has them, and what it composes of listed operators alone.
TEST(Autocast, PoliciesOnGpusAreThoseOfCuda) {
  using ops::Autocast;
  const std::pair<Autocast, const char*> lists[] = {
      {Autocast::Lower,
       "_convolution_mode _scaled_dot_product_flash_attention addbmm addmm addmv addr baddbmm bmm chain_matmul conv1d "
       "conv1d.padding conv2d conv2d.padding conv3d conv3d.padding conv_tbc conv_transpose1d conv_transpose2d.input "
       "conv_transpose3d.input convolution einsum gru.data gru.input gru_cell linalg_matmul linalg_multi_dot "
       "linalg_vecdot linear lstm.data lstm.input lstm_cell matmul mm mv prelu rnn_relu.data rnn_relu.input "
       "rnn_relu_cell rnn_tanh.data rnn_tanh.input rnn_tanh_cell scaled_dot_product_attention"},
      {Autocast::Float32,
       "_upsample_bicubic2d_aa _upsample_bicubic2d_aa.vec _upsample_bilinear2d_aa _upsample_bilinear2d_aa.vec "
       "_upsample_nearest_exact1d _upsample_nearest_exact1d.vec _upsample_nearest_exact2d "
       "_upsample_nearest_exact2d.vec _upsample_nearest_exact3d _upsample_nearest_exact3d.vec acos arccos arcsin asin "
       "binary_cross_entropy_with_logits cdist cosh cosine_embedding_loss cosine_similarity cross_entropy_loss dist "
       "erfinv exp expm1 linalg_matrix_sqrth pdist special_erfinv special_expm1 special_log1p special_logsumexp frobenius_norm.dim group_norm hinge_embedding_loss huber_loss kl_div l1_loss layer_norm log "
       "log10 log1p log2 logsumexp margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss "
       "native_layer_norm nll_loss nll_loss2d nll_loss_nd norm.Scalar norm.ScalarOpt_dim nuclear_norm nuclear_norm.dim "
       "pairwise_distance _pdist_forward poisson_nll_loss pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor reciprocal "
       "renorm rms_norm rsqrt sinh smooth_l1_loss soft_margin_loss softplus square tan triplet_margin_loss "
       "upsample_bicubic2d upsample_bicubic2d.vec upsample_bilinear2d upsample_bilinear2d.vec upsample_linear1d "
       "upsample_linear1d.vec upsample_nearest1d upsample_nearest1d.vec upsample_nearest2d upsample_nearest2d.vec "
       "upsample_nearest3d upsample_nearest3d.vec upsample_trilinear3d upsample_trilinear3d.vec"},
      {Autocast::Float32ByDefault,
       "cumprod cumsum linalg_matrix_norm linalg_matrix_norm.str_ord linalg_norm linalg_norm.ord_str "
       "linalg_vector_norm log_softmax.int prod prod.dim_int softmax.int special_log_softmax special_softmax sum "
       "sum.dim_IntList"},
      {Autocast::Widest,
       "addcdiv addcmul arctan2 atan2 bilinear cross dot grid_sampler index_put inner scatter_add tensordot vdot"},
      {Autocast::Refused, "binary_cross_entropy"}};
  std::map<std::string, Autocast> expected;
  for (auto& [policy, names] : lists) {
    std::istringstream words(names);
    for (std::string name; words >> name;) expected["aten::" + name] = policy;
  }
  size_t found = 0;
  for (const ops::Row& row : ops::table().rows()) {
    if (row.is_primitive()) continue;
    auto it = expected.find(row.name());
    found += it != expected.end();
    EXPECT_EQ(row.autocast_on_gpus, it == expected.end() ? Autocast::None : it->second) << row.name();
  }
  EXPECT_EQ(found, expected.size());
}

TEST(Autocast, DtypesOfResultsOnGpus) {
  TensorOptions there{Device("emu")};
  Tensor wide = rand({4, 4}).to(Device("emu")) + 0.1;
  for (DType dtype : {kBFloat16, kFloat16}) {
    Tensor low = wide.to(dtype), volume = rand({1, 1, 4, 4, 4}).to(Device("emu")).to(dtype);
    AutocastMode guard(Device("emu").type(), dtype);
    // Lower.
    EXPECT_EQ(wide.mv(wide[0]).scalar_type(), dtype);
    EXPECT_EQ(wide.matmul(wide).scalar_type(), dtype);
    // Float32, unlike the CPU's list.
    EXPECT_EQ(low.exp().scalar_type(), kFloat32);
    EXPECT_EQ(low.rsqrt().scalar_type(), kFloat32);
    EXPECT_EQ(low.pow(2).scalar_type(), kFloat32);
    EXPECT_EQ(layer_norm(low, {4}).scalar_type(), kFloat32);
    EXPECT_EQ(cross_entropy_loss(low, zeros({4}, there.dtype(kInt64))).scalar_type(), kFloat32);
    EXPECT_TRUE(low.exp().cpu().equal(low.cpu().to(kFloat32).exp()));
    // … unless a dtype is named.
    EXPECT_EQ(low.sum().scalar_type(), kFloat32);
    EXPECT_EQ(low.sum({1}, false, dtype).scalar_type(), dtype);
    EXPECT_EQ(low.softmax(1).scalar_type(), kFloat32);
    EXPECT_EQ(low.softmax(1, dtype).scalar_type(), dtype);
    EXPECT_EQ(wide.softmax(1, kFloat64).scalar_type(), kFloat64);
    // The widest.
    EXPECT_EQ(addcmul(low, low, wide).scalar_type(), kFloat32);
    EXPECT_EQ(addcmul(low, low, low).scalar_type(), dtype);
    EXPECT_EQ(low[0].dot(wide[0]).scalar_type(), kFloat32);
    // On the CPU's list alone.
    EXPECT_EQ(avg_pool3d(volume, {2, 2, 2}).scalar_type(), dtype);
    EXPECT_EQ(cat({low, low}).scalar_type(), dtype);
    // Neither list, and other dtypes.
    EXPECT_EQ(low.sin().scalar_type(), dtype);
    EXPECT_EQ(wide.to(kFloat64).exp().scalar_type(), kFloat64);
    EXPECT_EQ(arange(3, there).sum().scalar_type(), kInt64);
    Tensor sum = low.clone();
    sum.exp_();
    EXPECT_EQ(sum.scalar_type(), dtype);
    EXPECT_EQ(low.cpu().exp().scalar_type(), dtype);
  }
}

TEST(Autocast, BinaryCrossEntropyIsRefusedOnGpus) {
  Tensor p = rand({4}).to(Device("emu")), y = ones({4}).to(Device("emu"));
  {
    AutocastMode guard(Device("emu").type(), kFloat16);
    try {
      binary_cross_entropy(p, y);
      FAIL();
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("binary_cross_entropy_with_logits"), std::string::npos);
    }
    EXPECT_EQ(binary_cross_entropy_with_logits(p, y).scalar_type(), kFloat32);
    AutocastMode off(Device("emu").type(), kFloat16, false);
    EXPECT_NO_THROW(binary_cross_entropy(p, y));
  }
  AutocastMode guard(kCUDA, kFloat16);
  EXPECT_NO_THROW(binary_cross_entropy(p, y));
}

TEST(Autocast, DtypesOfResults) {
  Tensor x = randn({2, 3}), image = randn({1, 2, 5, 5});
  Tensor low = x.to(kBFloat16);
  AutocastMode guard;
  EXPECT_EQ(x.matmul(x.t()).scalar_type(), kBFloat16);
  EXPECT_EQ(linear(x, randn({4, 3}), randn({4})).scalar_type(), kBFloat16);
  EXPECT_EQ(conv2d(image, randn({3, 2, 3, 3})).scalar_type(), kBFloat16);
  EXPECT_EQ(addmm(randn({2}), x, randn({3, 2})).scalar_type(), kBFloat16);
  EXPECT_EQ(einsum("ij,kj->ik", {x, x}).scalar_type(), kBFloat16);
  EXPECT_EQ(rnn_tanh_cell(x, zeros({2, 4}), randn({4, 3}), randn({4, 4})).scalar_type(), kBFloat16);
  Tensor w = weight({16, 3}), state = zeros({1, 2, 4});
  auto [steps, h, c] = lstm(x.unsqueeze(0), {state, state}, {w, weight({16, 4})}, false, 1, 0.0, false, false, false);
  EXPECT_EQ(steps.scalar_type(), kBFloat16);
  EXPECT_EQ(c.scalar_type(), kBFloat16);
  steps.sum().backward();
  EXPECT_EQ(w.grad().scalar_type(), kFloat32);
  EXPECT_EQ(mse_loss(low, x).scalar_type(), kFloat32);
  EXPECT_EQ(low.prod().scalar_type(), kFloat32);
  EXPECT_EQ(cat({low, x}).scalar_type(), kFloat32);
  EXPECT_EQ(cat({low, low}).scalar_type(), kBFloat16);
  EXPECT_EQ(stack({low, low}).scalar_type(), kBFloat16);
  // Neither list, float64, integers, in place, out=: as without autocast.
  EXPECT_EQ((low + low).scalar_type(), kBFloat16);
  EXPECT_EQ((low + x).scalar_type(), kFloat32);
  EXPECT_EQ(x.softmax(-1).scalar_type(), kFloat32);
  EXPECT_EQ(x.to(kFloat64).matmul(x.to(kFloat64).t()).scalar_type(), kFloat64);
  EXPECT_EQ(ones({2, 2}, kInt64).matmul(ones({2, 2}, kInt64)).scalar_type(), kInt64);
  Tensor sum = zeros({2, 2}), out = zeros({2, 2});
  sum.addmm_(x, x.t());
  EXPECT_EQ(sum.scalar_type(), kFloat32);
  EXPECT_TRUE(sum.equal([&] {
    AutocastMode off(kBFloat16, false);
    return x.matmul(x.t());
  }()));
  matmul_out(out, x, x.t());
  EXPECT_EQ(out.scalar_type(), kFloat32);
}

TEST(Autocast, GuardsNestAndEnd) {
  Tensor x = randn({2, 2});
  DeviceType here = x.device().type();
  EXPECT_FALSE(autocast::is_autocast_enabled(here));
  {
    AutocastMode half(here, kFloat16);
    EXPECT_EQ(x.mm(x).scalar_type(), kFloat16);
    {
      AutocastMode off(here, kFloat16, false);
      EXPECT_EQ(x.mm(x).scalar_type(), kFloat32);
      AutocastMode brain(here, kBFloat16);
      EXPECT_EQ(x.mm(x).scalar_type(), kBFloat16);
    }
    EXPECT_EQ(x.mm(x).scalar_type(), kFloat16);
  }
  EXPECT_EQ(x.mm(x).scalar_type(), kFloat32);
  autocast::set_autocast_enabled(here, true);
  EXPECT_EQ(x.mm(x).scalar_type(), autocast::get_autocast_dtype(here));
  autocast::set_autocast_enabled(here, false);
  AutocastMode gpu(kCUDA, kFloat16);
  EXPECT_EQ(x.mm(x).scalar_type(), kFloat32);
}

TEST(Autocast, OtherDtypesWarnAndStayOff) {
  struct Handler : WarningHandler {
    void process(const SourceLocation&, const std::string& message, bool) override { said = message; }
    std::string said;
  } handler;
  Warning::set_warning_handler(&handler);
  {
    AutocastMode guard(kFloat64);
    EXPECT_FALSE(autocast::is_autocast_enabled(kCPU));
  }
  Warning::set_warning_handler(nullptr);
  EXPECT_NE(handler.said.find("not supported"), std::string::npos);
}

TEST(Autocast, GradientsHaveTheWeightsDtypeAndBackwardThatOfForward) {
  manual_seed(1);
  Tensor x = randn({4, 3}), w = weight({5, 3}), b = weight({5});
  Tensor y;
  {
    AutocastMode guard;
    y = linear(x, w, b);
  }
  y.sum().backward();
  EXPECT_EQ(w.grad().scalar_type(), kFloat32);
  // As by hand: the products of bfloat16 numbers, rounded to bfloat16.
  Tensor by_hand = ones({5, 4}).mm(x.to(kBFloat16).to(kFloat32)).to(kBFloat16).to(kFloat32);
  EXPECT_TRUE(w.grad().equal(by_hand)) << w.grad() << by_hand;
  // A backward inside the guard is the same.
  Tensor first = w.grad().clone();
  w.mutable_grad().reset();
  {
    AutocastMode guard;
    linear(x, w, b).sum().backward();
  }
  EXPECT_TRUE(w.grad().equal(first));
}

// The nodes between a result and its weight.
std::shared_ptr<autograd::Node> cast_of(const Tensor& product) { return product.grad_fn()->next_edge(1).function; }

TEST(Autocast, AWeightIsConvertedOnceInTheOutermostGuard) {
  Tensor x = randn({2, 3}), w = weight({3, 3});
  std::shared_ptr<autograd::Node> first;
  {
    AutocastMode guard;
    first = cast_of(x.mm(w));
    {
      AutocastMode inner;
      EXPECT_EQ(cast_of(x.mm(w)), first);
    }
    EXPECT_EQ(cast_of(x.mm(w)), first);
    {
      NoGradGuard no_grad;
      EXPECT_FALSE(x.mm(w).requires_grad());
    }
    EXPECT_TRUE(x.mm(w).requires_grad());
    // A weight that changed is converted again.
    Tensor before = x.mm(w).detach();
    {
      NoGradGuard no_grad;
      w.mul_(2);
    }
    EXPECT_FALSE(x.mm(w).equal(before));
    AutocastMode uncached(kBFloat16, true, false);
    EXPECT_NE(cast_of(x.mm(w)), cast_of(x.mm(w)));
  }
  AutocastMode guard;
  EXPECT_NE(cast_of(x.mm(w)), first);
}

TEST(Autocast, OneConvertedWeightServesTwoBackwards) {
  Tensor x = randn({2, 3}), w = weight({3, 3});
  AutocastMode guard;
  Tensor first = x.mm(w).sum(), second = x.mm(w).exp().sum();
  first.backward();
  Tensor once = w.grad().clone();
  second.backward();
  EXPECT_FALSE(w.grad().equal(once));
  // What reads values still has none for a second time.
  EXPECT_THROW(second.backward(), Error);
}

TEST(Autocast, CachedCast) {
  Tensor w = weight({2, 2});
  EXPECT_TRUE(autocast::cached_cast(kFloat32, w).is_same(w));
  AutocastMode guard;
  Tensor low = autocast::cached_cast(kBFloat16, w);
  EXPECT_TRUE(autocast::cached_cast(kBFloat16, w).is_same(low));
  Tensor wide = ones({2}, kFloat64);
  EXPECT_TRUE(autocast::cached_cast(kBFloat16, wide).is_same(wide));
}

TEST(Autocast, BiasIsAddedBeforeRounding) {
  manual_seed(2);
  Tensor x = randn({64, 16}).to(kBFloat16), w = randn({8, 16}).to(kBFloat16), b = randn({8}).to(kBFloat16);
  Tensor exact = x.to(kFloat32).mm(w.to(kFloat32).t()) + b.to(kFloat32);
  EXPECT_TRUE(linear(x, w, b).equal(exact.to(kBFloat16)));
  Tensor image = randn({2, 3, 8, 8}).to(kBFloat16), kernel = randn({4, 3, 4, 4}).to(kBFloat16),
         bias = randn({4}).to(kBFloat16);
  Tensor wide = conv2d(image.to(kFloat32), kernel.to(kFloat32), bias.to(kFloat32), {4, 4});
  EXPECT_TRUE(conv2d(image, kernel, bias, {4, 4}).equal(wide.to(kBFloat16)));
}

}  // namespace
}  // namespace brasa
