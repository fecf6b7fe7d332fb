#include <brasa/brasa.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

// Calls that PyTorch refuses because of dtypes, factors or names, which would otherwise give some number.
namespace brasa::test {
namespace {

using Args = std::vector<CallArg>;

// Arguments only point to what they are.
const Tensor& keep(const Tensor& t) {
  static std::deque<Tensor> kept;
  return kept.emplace_back(t);
}
const Tensor& of(DType t, IntArrayRef sizes = {4}) { return keep(ones(sizes, t)); }
CallArg list(std::initializer_list<int64_t> items) {
  static std::deque<std::vector<int64_t>> kept;
  return IntArrayRef(kept.emplace_back(items));
}

struct Refused {
  const char* name;
  Args args;
};

std::vector<Refused> refused() {
  const Tensor &i = of(kInt), &c = of(kComplexFloat), &b = of(kBool), &f = of(kFloat), &d = of(kDouble);
  const Tensor &planes = of(kInt, {1, 1, 4, 4}), &bits = of(kBool, {2, 2}), &rows = of(kFloat, {2, 3}),
               &whole_rows = of(kInt, {2, 3}), &classes = keep(tensor({0, 1})), &m = of(kFloat, {2, 2});
  static constexpr bool kAll[] = {true, true, true};
  static const Scalar kImaginary(std::complex<double>(0, 1));
  static const std::optional<Tensor> kUndefined[1];
  const CallArg none, imaginary(kImaginary);
  std::vector<Refused> out;
  for (const char* name : {"hardshrink", "softshrink", "hardsigmoid", "hardswish", "selu", "glu", "rrelu", "frac"})
    out.push_back({name, {i}});
  for (const char* name : {"deg2rad", "rad2deg", "logit", "glu", "nansum", "special_i0", "i0", "special_i0e",
                           "special_bessel_j0", "special_spherical_bessel_j0", "bernoulli.p"})
    out.push_back({name, {c}});
  for (const char* name : {"hypot", "xlogy.Tensor", "special_xlog1py", "igamma", "igammac", "isin.Tensor_Tensor",
                           "mse_loss", "smooth_l1_loss", "huber_loss"})
    out.push_back({name, {c, c}});
  for (const char* name : {"huber_loss", "binary_cross_entropy", "prelu"}) out.push_back({name, {i, i}});
  for (const char* name : {"bitwise_left_shift.Tensor", "bitwise_right_shift.Tensor", "dot", "vdot"})
    out.push_back({name, {b, b}});
  for (const char* name : {"add.Tensor", "sub.Tensor", "rsub.Tensor"}) out.push_back({name, {f, f, imaginary}});
  for (const char* name : {"mm", "matmul"}) out.push_back({name, {bits, bits}});
  for (const char* name : {"avg_pool2d", "adaptive_avg_pool2d", "adaptive_max_pool2d"})
    out.push_back({name, {planes, list({2, 2})}});
  const std::vector<Refused> more = {
      {"bmm", {of(kBool, {1, 2, 2}), of(kBool, {1, 2, 2})}},
      {"max_pool2d", {of(kBool, {1, 1, 4, 4}), list({2, 2})}},
      {"max_unpool2d", {planes, keep(zeros({1, 1, 4, 4}, kLong)), list({5, 5})}},
      {"max_unpool2d", {of(kFloat, {1, 1, 2, 2}), keep(zeros({1, 1, 2, 2})), list({3, 3})}},
      {"lerp.Tensor", {f, f, d}},
      {"addr", {of(kInt, {4, 4}), i, i, 0.5}},
      {"nll_loss", {whole_rows, classes}},
      {"nll_loss", {rows, classes, of(kDouble, {3})}},
      {"multi_margin_loss", {whole_rows, classes}},
      {"layer_norm", {whole_rows, list({3})}},
      {"layer_norm", {rows, list({3}), of(kDouble, {3})}},
      {"layer_norm", {of(kDouble, {2, 3}), list({3}), of(kFloat, {3})}},
      {"rms_norm", {whole_rows, list({3})}},
      {"group_norm", {of(kInt, {2, 4, 3}), 2}},
      {"group_norm", {of(kDouble, {2, 4, 3}), 2, f}},
      {"batch_norm", {whole_rows, none, none, none, none, true, 0.1, 1e-5, false}},
      {"batch_norm", {rows, of(kDouble, {3}), none, none, none, true, 0.1, 1e-5, false}},
      {"embedding_renorm", {m, of(kFloat, {1}), 1.0, 2.0}},
      {"chain_matmul", {TensorList(&f, 1)}},
      {"fake_quantize_per_channel_affine", {m, of(kFloat, {2}), keep(full({2}, 300, kInt)), 0, 0, 255}},
      {"index_copy", {m, 0, keep(zeros({2}, kInt)), m}},
      {"index_fill.int_Scalar", {m, 0, keep(zeros({2}, kInt)), 1}},
      {"take", {f, keep(zeros({2}, kInt))}},
      {"put", {f, keep(zeros({1}, kInt)), of(kFloat, {1})}},
      {"scatter.value", {f, 0, classes, imaginary}},
      {"segment_reduce", {of(kFloat, {3}), "sum", of(kLong, {2})}},
      {"linalg_svd", {m, true, "fastest"}},
      {"linalg_svdvals", {m, "fastest"}},
      {"column_stack", {ArrayRef<std::optional<Tensor>>(kUndefined)}},
      {"linalg_svd", {keep(full({2, 2}, NAN))}},
      {"native_batch_norm_backward",
       {rows, rows, of(kFloat, {3}), none, none, of(kFloat, {3}), of(kFloat, {3}), true, 1e-5, ArrayRef<bool>()}},
      {"native_batch_norm_backward",
       {rows, rows, keep(ones({3})), none, none, keep(zeros({3})), keep(ones({3})), true, 1e-5, ArrayRef<bool>()}},
      {"_softmax_backward_data", {f, d, 0, kFloat}},
      {"reflection_pad1d_backward", {of(kHalf, {1, 1, 5}), of(kFloat, {1, 1, 3}), list({1, 1})}},
      {"_adaptive_avg_pool2d_backward", {of(kFloat, {1, 1, 2, 2}), of(kDouble, {1, 1, 4, 4})}},
      {"adaptive_max_pool2d_backward", {of(kFloat, {1, 1, 2, 2}), of(kFloat, {1, 1, 4, 4}), of(kInt, {1, 1, 2, 2})}},
      {"max_pool2d_with_indices_backward",
       {of(kFloat, {1, 1, 2, 2}), of(kFloat, {1, 1, 4, 4}), list({0, 2}), list({2, 2}), list({0, 0}), list({1, 1}),
        false, keep(zeros({1, 1, 2, 2}, kLong))}},
      {"binary_cross_entropy", {f, d}},
      {"lerp.Scalar", {of(kHalf), f, 0.5}},
      {"cross", {rows, of(kDouble, {2, 3})}},
      {"grid_sampler", {of(kHalf, {1, 1, 2, 2}), of(kFloat, {1, 2, 2, 2}), 0, 0, false}},
      {"_weight_norm", {rows, keep(ones({2, 3}))}},
      {"kl_div", {whole_rows, rows}},
      {"nll_loss", {rows, of(kShort, {2})}},
      {"_int_mm", {of(kShort, {2, 2}), of(kShort, {2, 2})}},
      {"where.ScalarOther", {i, f, 0}},
      {"native_group_norm", {of(kFloat, {2, 4, 3}), none, none, 2, 4, 2, 2, 1e-5}},
      {"threshold", {f, 1e300, 0.0}},
      {"hardtanh", {f, -1, 1e300}},
      {"addmv", {of(kFloat, {2}), m, of(kFloat, {2}), 1e300, 1}},
      {"pad", {rows, list({1, 1}), "constant", 1e300}},
      {"meshgrid", {TensorList()}},
      {"elu", {c}},
      {"celu", {c}},
      {"softplus", {c}},
      {"max", {c}},
      {"nanmedian.dim", {c, 0}},
      {"hardtanh_backward", {c, c, -1, 1}},
      {"hardtanh_backward", {f, f, -1, 1e300}},
      {"leaky_relu_backward", {c, c, 0.1, false}},
      {"logit_backward", {c, c}},
      {"l1_loss", {b, f}},
      {"pairwise_distance", {bits, m}},
      {"margin_ranking_loss", {b, f, f}},
      {"nll_loss2d", {of(kFloat, {1, 2, 2, 2}), keep(zeros({1, 2, 2}, kByte))}},
      {"nll_loss_backward", {keep(ones({})), rows, keep(tensor({0, 7})), none, 1, -100, keep(ones({}))}},
      {"cross_entropy_loss", {rows, classes, of(kHalf, {3})}},
      {"cross_entropy_loss", {rows, classes, none, 7}},
      {"binary_cross_entropy", {f, keep(full({4}, 2.0))}},
      {"binary_cross_entropy", {f, f, of(kFloat, {2, 4})}},
      {"soft_margin_loss", {keep(ones({})), f, 0}},
      {"index_reduce", {of(kFloat, {1}), 0, keep(zeros({1}, kLong)), keep(ones({})), "amax"}},
      {"fake_quantize_per_channel_affine", {m, of(kFloat, {2}), keep(zeros({2}, kLong)), 0, 0, 255}},
      {"fake_quantize_per_channel_affine", {m, of(kComplexFloat, {2}), keep(zeros({2}, kInt)), 0, 0, 255}},
      {"_pack_padded_sequence", {rows, keep(full({3}, 2, kInt)), false}},
      {"_pad_packed_sequence", {rows, keep(full({1}, 2, kLong)), false, imaginary, 2}},
      {"embedding_dense_backward", {m, of(kBool, {2}), 3, -1, false}},
      {"rnn_relu_cell", {of(kBFloat16, {1, 3}), of(kFloat, {1, 2}), of(kFloat, {2, 3}), m}},
      {"rnn_tanh_cell", {of(kFloat, {1, 3}), of(kFloat, {1, 2}), of(kFloat, {2, 3}), m, of(kBFloat16, {2})}},
      {"linalg_pinv.rcond_tensor", {whole_rows, f}},
      {"linalg_householder_product", {of(kFloat, {2, 1, 3, 2}), of(kFloat, {2, 2, 2})}},
      {"sub.Scalar", {f, true}},
      {"sub.Scalar", {b, 1}},
      {"subtract.Scalar", {f, true}},
      {"rsub.Scalar", {f, true}},
      {"relu6", {of(kComplexFloat, {0})}},
      {"hardtanh", {of(kComplexFloat, {0})}},
      {"clamp_min", {of(kInt, {0}), imaginary}},
      {"clamp_max", {of(kComplexFloat, {0}), 1}},
      {"take_along_dim", {m, keep(zeros({1, 2}, kInt)), 1}},
      {"embedding_bag", {m, keep(zeros({2}, kByte)), keep(zeros({1}, kByte))}},
      {"kthvalue", {keep(ones({})), 2}},
      {"unique_dim", {of(kFloat, {0, 0}), 0}},
      {"masked_scatter_backward", {m, bits, list({3})}},
      {"ctc_loss.IntList", {of(kFloat, {5, 1, 3}), keep(ones({1}, kLong)), list({5}), list({2})}},
      {"linalg_matrix_norm", {of(kFloat, {0, 0}), -1}},
      {"linalg_matrix_norm", {of(kFloat, {3, 0}), -2}},
      {"linalg_pinv.rcond_tensor", {of(kHalf, {3, 0}), of(kHalf, {})}},
      {"max_pool2d", {of(kFloat, {1, 1, 6, 6}), list({3, 3}), list({}), list({2, 2}), list({2, 2})}},
      {"max_pool2d_with_indices_backward",
       {of(kFloat, {1, 1, 3, 3}), of(kFloat, {1, 1, 4, 4}), list({2, 2}), list({2, 2}), list({0, 0}), list({1, 1}),
        false, keep(zeros({1, 1, 3, 3}, kLong))}},
      {"fake_quantize_per_tensor_affine_cachemask", {m, 0.1, 300, 0, 255}},
      {"logit_backward", {f, f, 1e39}},
      {"index_fill.int_Scalar", {f, 0, classes, imaginary}},
      {"index_fill.int_Tensor", {f, 0, classes, of(kComplexFloat, {})}},
      {"masked_fill.Scalar", {f, b, imaginary}},
      {"masked_fill.Tensor", {f, b, of(kComplexFloat, {})}},
      {"gradient.scalarint", {b}},
      {"as_strided_scatter", {f, of(kFloat, {2}), list({2}), list({1}), -1}},
      {"native_batch_norm_backward",
       {rows, rows, none, none, none, m, of(kFloat, {3}), true, 1e-5, ArrayRef<bool>(kAll)}},
      {"renorm", {m, 2, 0, imaginary}},
      {"stft.center", {of(kHalf, {2, 100}), 16, 4, none, none, false, "reflect", false, none, true}},
  };
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

TEST(AcceptedDTypes, AreThoseOfPyTorch) {
  for (const Refused& r : refused()) {
    std::string name = std::string("aten::") + r.name;
    SCOPED_TRACE(name);
    try {
      call(name, r.args);
      ADD_FAILURE() << "was accepted";
    } catch (const Error& e) {
      EXPECT_NE(std::string_view(e.what()).find(name.substr(6, name.find('.') - 6)), std::string_view::npos)
          << e.what();
    }
  }
}

TEST(CallsByName, WriteWhatIsGiven) {
  Tensor rows = arange(6, kFloat).view({2, 3}), m = rows.clone();
  EXPECT_TRUE(call("aten::transpose_.int", {m, 0, 1})[0].is_same(m));
  EXPECT_EQ(m.sizes(), (IntArrayRef{3, 2}));
  EXPECT_EQ(m.strides(), (IntArrayRef{1, 3}));
  EXPECT_TRUE(equal(m, rows.t()));
  call("aten::unsqueeze_", {m, 0});
  EXPECT_EQ(m.sizes(), (IntArrayRef{1, 3, 2}));

  Tensor wide = zeros({0}, kDouble), whole = zeros({2}, kInt);
  const Tensor& two = of(kFloat, {2});
  EXPECT_TRUE(call("aten::add.Tensor", {two, two}, {{"out", wide}})[0].is_same(wide));
  EXPECT_TRUE(equal(wide, full({2}, 2, kDouble)));
  EXPECT_THROW(call("aten::add.Tensor", {two, two}, {{"out", whole}}), Error);
  EXPECT_THROW(call("aten::max.dim", {two, 0}, {{"out", wide}}), Error);
  EXPECT_TRUE(has_operator("aten::add_.Tensor"));
}

// An integer of one element is not of the dtype of the others: it must not wrap in it before both become floating.
TEST(AcceptedDTypes, IntegersBecomeFloatingFromTheirOwn) {
  Tensor bytes = full({2}, 6, kByte), small = full({2}, 6, kChar), minus = tensor(-8), large = tensor(1000);
  auto same = [](const Tensor& got, double expected) {
    EXPECT_EQ(got.scalar_type(), kFloat);
    EXPECT_TRUE(allclose(got, full({2}, expected))) << got << " instead of " << expected;
  };
  same(bytes / minus, -0.75);
  same(small / large, 0.006);
  same(large / bytes, 1000 / 6.);
  same(atan2(bytes, minus), std::atan2(6, -8));
  same(copysign(bytes, minus), -6);
  same(copysign(bytes, -1), -6);
  same(call("aten::xlogy.Tensor", {minus, bytes})[0], -8 * std::log(6));
  same(call("aten::xlogy.Scalar_Self", {-8, bytes})[0], -8 * std::log(6));
  same(call("aten::special_zeta.self_scalar", {2, full({2}, 1, kByte)})[0], 1.6449341);
  // A number is of the tensor's dtype, a tensor of one element is of its own where the others are integers.
  EXPECT_EQ(call("aten::special_zeta.self_scalar", {2.5, tensor(1.5f)})[0].scalar_type(), kFloat);
  EXPECT_EQ(call("aten::special_zeta", {bytes, tensor(1.5, kDouble)})[0].scalar_type(), kDouble);
  EXPECT_EQ(call("aten::special_chebyshev_polynomial_t", {bytes, tensor(1.5, kDouble)})[0].scalar_type(), kDouble);
  EXPECT_EQ(call("aten::igamma", {of(kFloat), tensor(1.5, kDouble)})[0].scalar_type(), kFloat);
}

// Products are made in the dtype of the result, and do not wrap in that of the factors.
TEST(AcceptedDTypes, ProductsAreOfTheCommonDType) {
  Tensor bytes = full({2}, 200, kByte), whole = full({2}, 1, kInt);
  EXPECT_TRUE(equal(call("aten::addcmul", {whole, bytes, bytes})[0], full({2}, 40001, kInt)));
  EXPECT_TRUE(equal(call("aten::addcmul", {of(kFloat, {2}), bytes, bytes})[0], full({2}, 40001.f)));
  EXPECT_TRUE(equal(call("aten::addr", {tensor(1), bytes, bytes})[0], full({2, 2}, 40001, kLong)));
  EXPECT_TRUE(equal(call("aten::tanh_backward", {of(kFloat, {2}), bytes})[0], full({2}, 1 - 40000.f)));
  EXPECT_TRUE(equal(call("aten::sigmoid_backward", {of(kFloat, {2}), bytes})[0], full({2}, -199 * 200.f)));
  EXPECT_EQ(call("aten::float_power.Scalar", {Scalar(std::complex<double>(1.5, 0)), whole})[0].scalar_type(),
            kComplexDouble);
}

TEST(AcceptedDTypes, StayAccepted) {
  const Tensor &i = of(kInt), &half = of(kHalf, {2, 3}), &wide = of(kFloat, {3});
  EXPECT_TRUE(equal(call("aten::deg2rad", {i})[0], call("aten::deg2rad", {of(kFloat)})[0]));
  // Complex parts are as wide as the floating elements that they meet.
  EXPECT_EQ((of(kFloat) * tensor(1.0, kComplexDouble)).scalar_type(), kComplexFloat);
  EXPECT_EQ((of(kDouble) * tensor(1.0, kComplexFloat)).scalar_type(), kComplexDouble);
  EXPECT_EQ(call("aten::threshold_backward", {i, of(kFloat), 0.5})[0].scalar_type(), kFloat);
  EXPECT_TRUE(equal(call("aten::hardtanh", {of(kFloat), 5, 2})[0], full({4}, 2.0)));
  EXPECT_TRUE(equal(call("aten::range.step", {true, 5, 2})[0], tensor({1.0, 3.0, 5.0})));
  EXPECT_EQ(call("aten::xlogy.Tensor", {i, i})[0].scalar_type(), kFloat);
  EXPECT_EQ(call("aten::lerp.Tensor", {of(kFloat), of(kFloat), keep(tensor(0.5, kDouble))})[0].scalar_type(), kFloat);
  EXPECT_EQ(layer_norm(half, IntArrayRef{3}, wide, wide).scalar_type(), kHalf);
  EXPECT_EQ(batch_norm(half, wide, wide, wide, wide, false, 0.1, 1e-5, false).scalar_type(), kHalf);
  EXPECT_EQ(call("aten::leaky_relu_backward", {of(kFloat), i, 0.1, false})[0].scalar_type(), kFloat);
  EXPECT_EQ(call("aten::flatten_dense_tensors", {TensorList({i, of(kFloat)})})[0].scalar_type(), kFloat);
  EXPECT_TRUE(equal(i, of(kFloat)));
  EXPECT_TRUE(allclose(call("aten::renorm", {of(kFloat, {2, 4}), 2, 0, true})[0], full({2, 4}, 0.5)));
  EXPECT_EQ(call("aten::chunk", {i, int64_t{1} << 40})[0].numel(), 1);
  EXPECT_EQ(call("aten::_lu_with_info", {keep(zeros({2, 2}))})[2].item<int64_t>(), 1);
  EXPECT_TRUE(equal(call("aten::histc", {of(kDouble), 1, false, true})[0], tensor({4.0}, kDouble)));
  EXPECT_TRUE(call("aten::nanmedian", {of(kFloat, {3, 0})})[0].isnan().item<bool>());
  EXPECT_EQ(affine_grid_generator(of(kFloat, {0, 2, 3}), {0, 2, 3, 4}, true).sizes(), (IntArrayRef{0, 3, 4, 2}));
  // A label that is the blank.
  EXPECT_NEAR(ctc_loss(full({2, 1, 2}, 0.5).log(), tensor({{1, 0}}), tensor({2}), tensor({2}), 0, 2).item<double>(),
              -std::log(0.25), 1e-6);
  EXPECT_TRUE(hardswish(tensor({-HUGE_VAL})).isnan().item<bool>());
  EXPECT_EQ(call("aten::avg_pool2d", {of(kLong, {1, 1, 2, 2}), list({2, 2})})[0].scalar_type(), kLong);
  EXPECT_EQ(call("aten::segment_reduce", {of(kFloat, {3}), "sum", keep(tensor({1, 2}))})[0].sum().item<double>(), 3);
}

}  // namespace
}  // namespace brasa::test
