#include <brasa/brasa.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string_view>

// Mistakes that users make, and what each is told: the operator, what it was given, what it takes.
namespace brasa::test {
namespace {

constexpr int64_t kHuge = int64_t{1} << 62, kLowest = std::numeric_limits<int64_t>::min();

struct Mistake {
  const char* code;
  void (*call)();
  const char* says;
};

Tensor written(DType into, const Tensor& a, const Tensor& b) {
  Tensor out = empty({2}, into);
  return add_out(out, a, b);
}

#define MISTAKE(code, says) {#code, [] { (void)(code); }, says}

const Mistake kMistakes[] = {
    // Sizes.
    MISTAKE(zeros(IntArrayRef{-1, 2}), "negative dimension -1"),
    MISTAKE(empty(IntArrayRef{kHuge, 4}), "[4611686018427387904, 4]"),
    MISTAKE(empty(IntArrayRef{0, kHuge, 4}), "[0, 4611686018427387904, 4]"),
    MISTAKE(zeros(IntArrayRef{kHuge, kHuge}), "zeros"),
    MISTAKE(arange(0, 10, Scalar(0)), "step must be nonzero"),
    MISTAKE(arange(0, 10, Scalar(-1)), "inconsistent with step sign"),
    MISTAKE(arange(0, 1e300, Scalar(1)), "too long"),
    MISTAKE(linspace(0, 1, -3), "-3"),
    MISTAKE(randperm(-1), "-1"),
    MISTAKE(randint(7, 5, IntArrayRef{3}), "from=7 >= to=5"),
    MISTAKE(bernoulli(full(IntArrayRef{3}, 2.0)), "[0, 1]"),
    MISTAKE(ones({2}).resize_(IntArrayRef{-1}), "negative size in [-1]"),
    MISTAKE(ones({2}).resize_(IntArrayRef{kHuge}), "64 bits"),
    MISTAKE(ones({2}).repeat(IntArrayRef{kHuge}), "repeat"),
    MISTAKE(ones({1}).expand(IntArrayRef{kHuge, 4}), "expand"),
    MISTAKE(ones({2, 3}).reshape(IntArrayRef{kHuge, 4}), "reshape"),
    MISTAKE(pad(ones({4}), IntArrayRef{kHuge, kHuge}), "pad"),
    MISTAKE(diagonal(ones({2, 3}), 0, 0, 0), "cannot be identical"),
    MISTAKE(diag_embed(ones({2}), kLowest), "diag_embed"),
    // Shapes that do not fit.
    MISTAKE(ones({2, 3}) + ones({2, 4}), "(3) must match the size of tensor b (4)"),
    MISTAKE(ones({2, 3}).add_(ones({4, 2, 3})), "doesn't match the broadcast shape [4, 2, 3]"),
    MISTAKE(matmul(ones({2, 3}), ones({4, 5})), "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
    MISTAKE(bmm(ones({3, 4}), ones({4, 5})), "3 dimensions"),
    MISTAKE(linear(ones({2, 3}), ones({4, 3}), ones({5})), "[5] to [2, 4]"),
    MISTAKE(linear(ones({2, 3}), ones({4, 3}), ones({2, 1, 3, 2, 4})), "bias"),
    MISTAKE(ones({3}).expand(IntArrayRef{2, 4}), "(4) must match the existing size (3)"),
    MISTAKE(ones({2, 3}).view(IntArrayRef{4, 2}), "'[4, 2]' is invalid for input of size 6"),
    MISTAKE(ones({2, 3}).view(IntArrayRef{-1, -1}), "only one dimension can be inferred"),
    MISTAKE(ones({2, 3}).t().view(IntArrayRef{6}), "Use .reshape"),
    MISTAKE(ones({2, 3}).as_strided(IntArrayRef{3, 3}, IntArrayRef{3, 1}), "need 9 elements, but the tensor has 6"),
    MISTAKE(ones({2, 3}).as_strided(IntArrayRef{kHuge}, IntArrayRef{kHuge}), "as_strided"),
    MISTAKE(ones({5}).unfold(0, 6, 1), "size is 6"),
    MISTAKE(ones({2, 3}).narrow(0, -3, 1), "start (-3) + length (1)"),
    MISTAKE(cat(TensorList()), "non-empty list"),
    MISTAKE(cat({ones({2, 3}), ones({2})}), "got 2 and 1"),
    MISTAKE(cat({ones({2, 3}), Tensor()}), "undefined"),
    MISTAKE(stack({ones({2}), ones({3})}), "[2] at entry 0 and [3] at entry 1"),
    MISTAKE(split(ones({4}), 0), "split_size"),
    MISTAKE(einsum("ij,jk->ik", {ones({2, 3}), ones({4, 5})}), "subscript j"),
    MISTAKE(einsum("ij->ii", {ones({2, 3})}), "more than once"),
    MISTAKE(mse_loss(ones({2, 3}), ones({3, 3})), "(2) must match"),
    MISTAKE(batch_norm(ones({2, 3}), {}, {}, ones({2}), ones({2}), false, 0.1, 1e-5, false), "running_mean"),
    MISTAKE(linalg_solve(eye(2), ones({3, 1})), "f32[2, 2] and f32[3, 1]"),
    // Dimensions.
    MISTAKE(ones({2, 3}).sum(2), "[-2, 1], but got 2"),
    MISTAKE(ones({2, 3}).sum(IntArrayRef{0, -2}), "dim 0 appears multiple times"),
    MISTAKE(ones({2, 3}).unsqueeze(kLowest), "-9223372036854775808"),
    MISTAKE(ones({2, 3}).permute(IntArrayRef{0, 5}), "but got 5"),
    MISTAKE(ones({0, 3}).max(0), "non-zero size"),
    MISTAKE(ones({2, 3}).topk(4), "k is 4"),
    // Indices: the message says which there are and which there may be.
    MISTAKE((ones({2, 3})[5]), "index 5 out of range for tensor of size [2, 3] at dimension 0"),
    MISTAKE(ones({2, 3}).index({tensor({0, 5})}),
            "dimension of size 2 (called with float32[2, 3] int64[2] from 0 to 5)"),
    MISTAKE(gather(ones({2, 3}), 1, full(IntArrayRef{2, 1}, 4, kLong)),
            "size 3 (called with float32[2, 3] int64[2, 1] from 4"),
    MISTAKE(index_select(ones({2, 3}), 0, tensor({-1})), "from -1 to -1"),
    MISTAKE(embedding(ones({3, 2}), tensor({0, 3})), "size 3 (called with float32[3, 2] int64[2] from 0 to 3)"),
    MISTAKE(nll_loss(ones({2, 3}), tensor({0, 3})), "[0, 3)"),
    MISTAKE(one_hot(tensor({0, 5}), 3), "smaller than num_classes, which is 3"),
    MISTAKE(one_hot(tensor({0, -1}), 3), "non-negative"),
    MISTAKE(one_hot(tensor({0, -1})), "non-negative"),
    MISTAKE(one_hot(zeros({0}, kLong)), "from empty tensor"),
    MISTAKE(one_hot(tensor({0}), 0), "num_classes of 1 or more"),
    MISTAKE(one_hot(tensor({0}), -2), "num_classes of 1 or more"),
    MISTAKE(one_hot(ones({2})), "index tensor"),
    MISTAKE(repeat_interleave(ones({2}), tensor({5, 5}), 0, 2), "allocated size 2"),
    MISTAKE(ones({3}).index_put({ones({3}, kBool)}, ones({2})), "value tensor of shape [2]"),
    MISTAKE(ones({3}).index_put({ones({2}, kBool)}, ones({2})), "mask [2]"),
    MISTAKE(ones({3}).masked_scatter(ones({3}, kBool), ones({2})), "source, 2,"),
    MISTAKE(ctc_loss(ones({5, 1, 3}), tensor({{1, 2}}), IntArrayRef{6}, IntArrayRef{2}), "between 0 and 5"),
    // Windows.
    MISTAKE(conv2d(ones({1, 3, 4, 4}), ones({2, 4, 3, 3})), "to have 4 channels, but got 3"),
    MISTAKE(conv2d(ones({1, 3, 4, 4}), ones({2, 3, 5, 5})), "Kernel size: (5)"),
    MISTAKE(conv2d(ones({1, 3, 4, 4}), ones({2, 3, 3, 3}), {}, 0), "stride"),
    MISTAKE(conv2d(ones({1, 4, 4, 4}), ones({3, 2, 3, 3}), {}, 1, IntArrayRef{0}, 1, 2), "divisible by 2"),
    MISTAKE(conv_transpose2d(ones({1, 3, 4, 4}), ones({3, 2, 3, 3}), {}, 1, 0, 2), "output padding"),
    MISTAKE(conv2d(ones({1, 3, 4, 4}), ones({2, 3, 0, 3})), "kernel size should be greater than zero"),
    MISTAKE(conv2d(ones({1, 3, 4, 4}), ones({0, 3, 3, 3})), "at least 1 at dimension 0"),
    MISTAKE(conv_transpose2d(ones({1, 3, 4, 4}), ones({3, 2, 3, 0})), "kernel size should be greater than zero"),
    MISTAKE(conv_transpose2d(ones({1, 3, 1, 1}), ones({3, 2, 2, 2}), {}, 1, 1), "Output size is too small"),
    MISTAKE(max_pool2d(ones({1, 1, 4, 4}), 5), "too small"),
    MISTAKE(max_pool2d(ones({1, 1, 4, 4}), 2, 0), "greater than zero"),
    MISTAKE(max_pool2d(ones({1, 0, 4, 4}), 2), "non-zero size"),
    MISTAKE(pad(ones({1, 1, 4}), IntArrayRef{4, 0}, "reflect"), "padding (4, 0)"),
    MISTAKE(pad(ones({1, 1, 4}), IntArrayRef{1, 1}, "mirror"), "mirror"),
    // Types and values.
    MISTAKE(ones({3}, kInt).add_(1.5), "Float can't be cast to the desired output type Int"),
    MISTAKE(ones({3}, kComplexFloat).abs_(), "in-place form is not supported for complex tensors"),
    MISTAKE(ones({3}, kBool) - ones({3}, kBool), "two bool tensors"),
    MISTAKE(pow(ones({3}, kLong), -1), "negative integer powers"),
    MISTAKE(mean(ones({3}, kLong)), "int64"),
    MISTAKE(mm(ones({2, 3}), ones({3, 2}, kDouble)), "float32 and float64"),
    MISTAKE(binary_cross_entropy(full(IntArrayRef{2}, 2.0), ones({2})), "between 0 and 1"),
    MISTAKE(dropout(ones({3}), 1.5, true), "1.5"),
    MISTAKE(Tensor() + 1, "undefined"),
    // Numbers that a dtype does not hold.
    MISTAKE(full({2}, 300, kByte), "uint8_t without overflow: 300"),
    MISTAKE(full({2}, -300, kByte), "without overflow"),
    MISTAKE(full({2}, 1e300, kInt), "int32_t without overflow"),
    MISTAKE(full({2}, 1e300, kFloat), "float32 without overflow"),
    MISTAKE(full({2}, std::nan(""), kLong), "int64_t without overflow"),
    MISTAKE(ones({2}, kInt).fill_(std::nan("")), "without overflow"),
    MISTAKE(ones({2}, kLong).fill_(1e30), "int64_t without overflow"),
    MISTAKE(ones({2}, kLong).fill_(-HUGE_VAL), "int64_t without overflow"),
    MISTAKE(full_like(ones({2}, kByte), 300), "without overflow"),
    MISTAKE(ones({2}, kByte).new_full({2}, 300), "without overflow"),
    MISTAKE(masked_fill(ones({2}, kHalf), ones({2}, kBool), -1e9), "float16 without overflow"),
    MISTAKE(index_fill(ones({2}, kByte), 0, tensor({0}), 300), "without overflow"),
    MISTAKE(constant_pad_nd(ones({2}, kByte), {1, 1}, 300), "without overflow"),
    MISTAKE(tensor({300}, kByte), "uint8_t without overflow"),
    MISTAKE(scalar_tensor(300, kByte), "uint8_t without overflow"),
    MISTAKE(tensor({300.5}).item<uint8_t>(), "uint8_t without overflow: 300.5"),
    MISTAKE(tensor({-1.0}).item<uint8_t>(), "uint8_t without overflow"),
    MISTAKE(tensor({200}).item<int8_t>(), "int8_t without overflow"),
    MISTAKE(tensor({1e30}).item<int64_t>(), "int64_t without overflow"),
    MISTAKE(tensor({1e300}, kDouble).item<float>(), "float without overflow"),
    // Results that must not be written into tensors of a narrower kind.
    MISTAKE(written(kInt, ones({2}), ones({2})), "Float can't be cast to the desired output type Int"),
    MISTAKE(written(kBool, ones({2}, kLong), ones({2}, kLong)), "Long can't be cast to the desired output type Bool"),
    MISTAKE(written(kFloat, ones({2}, kComplexFloat), ones({2})), "can't be cast"),
    // Weights that are no probabilities.
    MISTAKE(multinomial(tensor({-1.0, 2.0}), 1), "element < 0"),
    MISTAKE(multinomial(tensor({std::nan(""), 2.0}), 1, true), "nan"),
    MISTAKE(multinomial(tensor({HUGE_VAL, 2.0}), 1), "inf"),
    MISTAKE(multinomial(tensor({{1.0, 2.0}, {0.0, 0.0}}), 1), "sum of probabilities <= 0"),
    // Random numbers that a dtype or a distribution does not have.
    MISTAKE(randperm(300, kByte), "n = 300 is too large for uint8"),
    MISTAKE(randint(0, 300, {2}, kByte), "to - 1 = 299 is out of bounds for uint8"),
    MISTAKE(randint(-1, 3, {2}, kByte), "from=-1 is out of bounds for uint8"),
    MISTAKE(ones({2}, kByte).random_(300), "to - 1 = 299 is out of bounds for uint8"),
    MISTAKE(ones({2}, kByte).random_(-1, 3), "from=-1 is out of bounds for uint8"),
    MISTAKE(ones({2}, kChar).random_(-129, 3), "from=-129 is out of bounds for int8"),
    MISTAKE(ones({2}, kShort).random_(40000, 50000), "from=40000 is out of bounds for int16"),
    MISTAKE(ones({2}, kBool).random_(3), "to - 1 = 2 is out of bounds for bool"),
    MISTAKE(ones({2}, kHalf).random_(70000), "to - 1 = 69999 is out of bounds for float16"),
    MISTAKE(ones({2}, kHalf).random_(2049, 2050), "casted to dtype"),
    MISTAKE(ones({2}, kFloat).random_((int64_t{1} << 40) + 1, (int64_t{1} << 40) + 3), "casted to dtype"),
    MISTAKE(ones({2}, kComplexFloat).random_(3), "complex64"),
    MISTAKE(ones({2}).random_(3, 3), "from=3 >= to=3"),
    MISTAKE(randint_like(ones({2}, kByte), 300), "to - 1 = 299 is out of bounds for uint8"),
    MISTAKE(randint_like(ones({2}, kByte), -1, 4), "from=-1 is out of bounds for uint8"),
    MISTAKE(randint_like(ones({2}), 300, kChar), "to - 1 = 299 is out of bounds for int8"),
    MISTAKE(randint_like(ones({2}, kByte), tensor(300)), "out of bounds for uint8"),
    MISTAKE(randint(3, {2}, kBool), "to - 1 = 2 is out of bounds for bool"),
    MISTAKE(randint(3, {2}, kComplexFloat), "complex64"),
    MISTAKE(normal(tensor({0.0}), tensor({-1.0})), "std >= 0"),
    MISTAKE(normal(0.0, tensor({1.0, std::nan("")})), "std >= 0"),
    MISTAKE(scaled_dot_product_attention(ones({1, 2, 3}), ones({1, 2, 3}), ones({1, 2, 3}), ones({2, 2}, kLong)),
            "attn_mask dtype"),
    MISTAKE(ones({0}).norm(-HUGE_VAL), "-inf norm on an empty dimension"),
    // Layouts.
    MISTAKE(ones({2}, kSparse), "aten::ones makes no sparse tensors"),
    MISTAKE(rand({2}, kSparse), "aten::rand makes no sparse tensors"),
};

TEST(BadInputCalls, SayWhatIsWrong) {
  for (const Mistake& m : kMistakes) {
    SCOPED_TRACE(m.code);
    try {
      m.call();
      ADD_FAILURE() << "was accepted";
    } catch (const Error& e) {
      EXPECT_NE(std::string_view(e.what()).find(m.says), std::string_view::npos) << e.what();
    }
  }
}

TEST(BadInputCalls, WhatPyTorchTakesIsTaken) {
  EXPECT_EQ(full({1}, -1, kByte).item<int64_t>(), 255);
  EXPECT_EQ(full({1}, 2.5, kInt).item<int64_t>(), 2);
  EXPECT_EQ(full({1}, HUGE_VAL, kHalf).item<double>(), HUGE_VAL);
  EXPECT_TRUE(std::isnan(full({1}, std::nan(""), kFloat).item<float>()));
  EXPECT_EQ(tensor({-1}).item<uint8_t>(), 255);
  EXPECT_TRUE(equal(clamp(tensor({0, 200}, kByte), -1, 300), tensor({0, 200}, kByte)));
  EXPECT_EQ(written(kDouble, ones({2}, kLong), ones({2}, kLong)).sum().item<double>(), 4);
  EXPECT_EQ(multinomial(tensor({0.0, 1.0, 0.0}), 1).item<int64_t>(), 1);
  EXPECT_EQ(randperm(256, kByte).sum().item<int64_t>(), 255 * 128);
  EXPECT_EQ(randint(255, 256, {2}, kByte).sum().item<int64_t>(), 510);
  EXPECT_EQ(randint(-128, -127, {2}, kChar).sum().item<int64_t>(), -256);
  EXPECT_EQ(normal(1.0, zeros({2})).sum().item<double>(), 2);
  EXPECT_EQ(ones({50}, kByte).random_(255, 256).sum().item<int64_t>(), 50 * 255);
  EXPECT_EQ(ones({50}, kChar).random_(-128, -127).sum().item<int64_t>(), 50 * -128);
  EXPECT_EQ(randint_like(ones({50}), 1, 2, kBool).sum().item<int64_t>(), 50);
  EXPECT_LE(ones({5000}, kByte).random_().max().item<int64_t>(), 255);
  EXPECT_GT(ones({5000}, kByte).random_().max().item<int64_t>(), 250);
  EXPECT_LT(ones({5000}, kHalf).random_(0, 2052).max().item<double>(), 2052);
  EXPECT_GE(ones({5000}, kHalf).random_(2049, 2056).min().item<double>(), 2050);
  EXPECT_LE(ones({5000}, kHalf).random_().max().item<double>(), 2048);
  EXPECT_LT(ones({5000}).random_(-(int64_t{1} << 40) - (1 << 20), -(int64_t{1} << 40)).max().item<double>(), -0x1p40);
  EXPECT_EQ(conv2d(ones({0, 3, 4, 4}), ones({2, 3, 3, 3})).sizes(), (IntArrayRef{0, 2, 2, 2}));
  EXPECT_TRUE(equal(ones({2}, kComplexFloat).abs(), ones({2})));
  EXPECT_TRUE(equal(repeat_interleave(tensor({3, 4}), tensor({1, 2}), 0, 3), tensor({3, 4, 4})));
  for (Layout layout : {kSparse, kSparseCsr})
    for (const Tensor& t :
         {empty({2, 3}, TensorOptions(kDouble).layout(layout)), zeros({2, 3}, TensorOptions(kDouble).layout(layout)),
          zeros_like(ones({2, 3}, kDouble), layout), ones({2}, kDouble).new_zeros({2, 3}, layout)}) {
      EXPECT_EQ(t.layout(), layout);
      EXPECT_EQ(t.scalar_type(), kDouble);
      EXPECT_TRUE(equal(t.to_dense(), zeros({2, 3}, kDouble)));
    }
  EXPECT_EQ(max_pool2d(ones({0, 1, 4, 4}), 2).sizes(), (IntArrayRef{0, 1, 2, 2}));
  EXPECT_EQ(adaptive_avg_pool2d(ones({1, 0, 4, 4}), 2).sizes(), (IntArrayRef{1, 0, 2, 2}));
  EXPECT_TRUE(ones({0}).median().isnan().item<bool>());
  EXPECT_EQ(linear(ones({5, 2, 3}), ones({4, 3}), ones({5, 2, 4})).sizes(), (IntArrayRef{5, 2, 4}));
  EXPECT_EQ(ones({2, 3}).diagonal(100, 0, 1).numel(), 0);
  EXPECT_TRUE(equal(matrix_power(eye(2), kLowest), eye(2)));
  EXPECT_TRUE(equal(matrix_power(eye(2), kHuge), eye(2)));
}

}  // namespace
}  // namespace brasa::test
