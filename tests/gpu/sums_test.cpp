#include <gtest/gtest.h>

#include <brasa/brasa.h>
#include <brasa/compile.h>

#include "gpu/on_device.h"
#include "support/str.h"

// Eager sums over the first dimensions, whose sizes the code does not know: short and long columns on an emulated GPU, and on a GPU where
// there is one.
namespace brasa {
namespace {

class Sums : public OnDevice {};

TEST_P(Sums, OfColumns) {
  for (DType dtype : {kFloat32, kBFloat16})
    for (std::vector<int64_t> shape :
         {std::vector<int64_t>{3, 5}, {1023, 5}, {1024, 5}, {5000, 33}, {1, 1}, {0, 4}, {2100, 0}}) {
      Tensor x = randn(shape).to(dtype), got = x.to(device_).sum(0).cpu().to(kFloat64), want = x.to(kFloat64).sum(0);
      double bound = dtype == kFloat32 ? 1e-4 : 2e-2;
      EXPECT_TRUE(allclose(got, want, bound, bound * 20)) << name(dtype) << " " << str(shape);
    }
  Tensor x = randn({40, 51, 7}), got = x.to(device_).sum({0, 1}).cpu();
  EXPECT_TRUE(allclose(got, x.to(kFloat64).sum({0, 1}).to(kFloat32), 1e-4, 1e-4));
  EXPECT_TRUE(allclose(x.to(device_).amax({0, 1}).cpu(), x.amax({0, 1})));
}

// On both sides of what is kept, as norms of channels sum; and along rows of unknown lengths, multiples of 16 bytes or not.
TEST_P(Sums, OfChannelsAndRows) {
  for (std::vector<int64_t> shape :
       {std::vector<int64_t>{4, 3, 5, 7}, {33, 2, 16, 16}, {1, 5, 3, 8}, {7, 1, 1, 1}, {2, 3, 0, 4}}) {
    Tensor x = randn(shape), want = x.to(kFloat64).sum({0, 2, 3}).to(kFloat32);
    EXPECT_TRUE(allclose(x.to(device_).sum({0, 2, 3}).cpu(), want, 1e-4, 1e-4)) << str(shape);
    EXPECT_TRUE(
        allclose(compile([](const Tensor& t) { return t.sum({0, 2, 3}); })(x.to(device_)).cpu(), want, 1e-4, 1e-4))
        << str(shape);
  }
  for (int64_t length : {1, 8, 120, 1000, 1001, 4096}) {
    Tensor x = randn({5, length});
    EXPECT_TRUE(allclose(x.to(device_).softmax(1).cpu(), x.softmax(1), 1e-5, 1e-6)) << length;
  }
}

// Of rows too long for registers, of which much or all may be -inf.
TEST_P(Sums, OfExponentialsOfLongRows) {
  constexpr int64_t kLength = 33024;
  Tensor x = randn({6, kLength}) * 3;
  x.select(0, 1).slice(0, 0, 20000).fill_(-INFINITY);
  x.select(0, 2).fill_(-INFINITY);
  x.select(0, 3).select(0, 77).fill_(INFINITY);
  x.select(0, 4).select(0, kLength - 1).fill_(NAN);
  auto shares = [](const Tensor& t) {
    return std::vector<Tensor>{t.log_softmax(1).slice(1, 0, std::nullopt, 1000), t.logsumexp(1)};
  };
  for (DType dtype : {kFloat32, kFloat64}) {
    std::vector<Tensor> want = shares(x.to(dtype)), got = compile(shares)(x.to(dtype).to(device_));
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(allclose(got[i].cpu(), want[i], 1e-5, 1e-5, /*equal_nan=*/true)) << name(dtype) << " " << i;
  }
}

// Rows of which several passes read more than registers hold stay in memory that a block shares; a loss and its derivative walk along them once.
TEST_P(Sums, OfLongRowsThatAreKept) {
  for (int64_t length : {36008, 40001}) {
    std::vector<Tensor> x = {randn({7, length}).to(kBFloat16) * 3, randint(0, length, {7})};
    auto gradient = [](const Tensor& scores, const Tensor& labels) {
      Tensor z = scores.detach().set_requires_grad(true), loss = cross_entropy_loss(z.to(kFloat32), labels);
      return std::vector<Tensor>{loss.detach(), autograd::grad({loss}, {z})[0]};
    };
    auto there = compile(gradient);
    std::vector<Tensor> want = gradient(x[0], x[1]), got = there(x[0].to(device_), x[1].to(device_));
    EXPECT_TRUE(allclose(got[0].cpu(), want[0], 1e-5, 1e-5)) << length;
    // A bfloat16 has 8 bits: what differs in the last digit of a float32 may be rounded to the next one.
    EXPECT_TRUE(allclose(got[1].cpu(), want[1], 1.0 / 128, 1e-9)) << length;
  }
}

// Maxima and minima of bfloat16, which a GPU compares in pairs, and labels that are no place at all.
TEST_P(Sums, OfLongRowsOfPairs) {
  constexpr int64_t kLength = 33024;
  Tensor x = (randn({6, kLength}) * 3).to(kBFloat16);
  x.select(0, 1).fill_(-INFINITY);
  x.select(0, 2).fill_(-0.0);
  x.select(0, 3).select(0, 4097).fill_(NAN);
  x.select(0, 4).select(0, kLength - 1).fill_(INFINITY);
  auto ends = [](const Tensor& t) { return std::vector<Tensor>{t.amax(-1), t.to(kFloat32).amin(-1), t.softmax(-1)}; };
  std::vector<Tensor> want = ends(x), got = compile(ends)(x.to(device_));
  // A share of a row differs in a bfloat16's last digit where the sum does.
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_TRUE(allclose(got[i].cpu().to(kFloat32), want[i].to(kFloat32), i < 2 ? 0 : 1.0 / 128, 0, /*equal_nan=*/true))
        << i;
  std::vector<int64_t> labels = {-1, int64_t{1} << 32, 0, kLength - 1, INT64_MIN, 4096};
  auto place = [](const Tensor& t, const Tensor& at) {
    return (arange(t.size(1), t.options().dtype(kInt64)) == at.unsqueeze(1)).to(kFloat32) - t;
  };
  Tensor at = tensor(labels), y = x.slice(0, 2, 3).to(kFloat32).expand({6, kLength});
  EXPECT_TRUE(equal(compile(place)(y.to(device_).contiguous(), at.to(device_)).cpu(), place(y, at)));
}

// Of equal ones the first, and the first NaN, whatever threads share a row.
TEST_P(Sums, PlacesOfEqualMaxima) {
  for (int64_t columns : {31, 32, 33, 70, 1000, 5000}) {
    Tensor x = randint(-3, 3, {9, columns}).to(kFloat32);
    x.select(0, 4).slice(0, columns / 2).fill_(NAN);
    auto places = [](const Tensor& t) { return std::vector<Tensor>{t.argmax(1), t.argmin(1), std::get<1>(t.max(1))}; };
    std::vector<Tensor> want = places(x), got = compile(places)(x.to(device_)), eager = places(x.to(device_));
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_TRUE(equal(got[i].cpu(), want[i])) << columns << " " << i;
      EXPECT_TRUE(equal(eager[i].cpu(), want[i])) << columns << " " << i;
    }
  }
}

// Copies between orders of dimensions go through memory that a block shares: of any sizes, and of sizes that the code does not know.
TEST_P(Sums, OfTransposedCopies) {
  for (std::vector<int64_t> shape :
       {std::vector<int64_t>{2, 40, 9, 13}, {1, 64, 64}, {3, 8, 100}, {5, 1, 70}, {2, 33, 0}})
    for (DType dtype : {kFloat32, kBFloat16, kUInt8, kFloat64}) {
      Tensor x = (rand(shape) * 100).to(dtype);
      auto moved = [](const Tensor& t) { return t.movedim(1, -1).contiguous(); };
      EXPECT_TRUE(equal(moved(x.to(device_)).cpu(), moved(x))) << name(dtype) << " " << str(shape);
      auto back = [&](const Tensor& t) { return -moved(t).transpose(-1, -2).contiguous(); };
      EXPECT_TRUE(equal(compile(back)(x.to(device_)).cpu(), back(x))) << name(dtype) << " " << str(shape);
    }
}

// A norm's gradients are sums of rows and of columns, which one kernel makes: of rows that warps share unevenly, too.
TEST_P(Sums, OfRowsAndColumns) {
  auto gradients = [](const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& ct) {
    // No row has a variance near 0, where differences of the sum's last digits would be seen.
    Tensor z = layer_norm(x * (x + x.sum(-1, true) * 0.1).tanh(), {x.size(-1)}, w, b);
    return autograd::grad({z}, {x, w, b}, {ct});
  };
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{640, 64}, {1024, 72}, {4480, 96}, {640, 65}}) {
    auto numbers = [&](std::vector<int64_t> shape) { return randn(shape).set_requires_grad(true); };
    std::vector<Tensor> x = {numbers({rows, columns}), numbers({columns}), numbers({columns}), randn({rows, columns})};
    std::vector<Tensor> there;
    for (const Tensor& t : x) there.push_back(t.detach().to(device_).set_requires_grad(t.requires_grad()));
    std::vector<Tensor> want = gradients(x[0], x[1], x[2], x[3]);
    std::vector<Tensor> got = compile(gradients)(there[0], there[1], there[2], there[3]);
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(allclose(got[i].cpu(), want[i], 1e-3, 1e-3)) << i << " of " << rows << " x " << columns;
  }
}

// Columns of several matrices, few of them and long; and variances of what lies far from zero, as one pass over memory sums them.
TEST_P(Sums, OfSeveralMatricesAndSquares) {
  auto products = [](const Tensor& p, const Tensor& v) { return (p.unsqueeze(-1) * v).sum(1); };
  Tensor p = rand({3, 700}), v = randn({3, 700, 16});
  EXPECT_TRUE(allclose(compile(products)(p.to(device_), v.to(device_)).cpu(), products(p, v), 1e-4, 1e-4));
  auto variance = [](const Tensor& x) { return x.var(std::vector<int64_t>{0}, false); };
  Tensor x = randn({16384, 64}) + 1000;
  x.select(1, 3).fill_(7);
  Tensor got = compile(variance)(x.to(device_)).cpu();
  EXPECT_TRUE(allclose(got, variance(x.to(kFloat64)).to(kFloat32), 1e-3, 1e-6));
  EXPECT_EQ(got[3].item<float>(), 0);
}

// In place, what stays as it is is neither read nor written; many rows are added to a few places of a table.
TEST_P(Sums, OfWhatChanges) {
  Tensor x = randn({6, 5, 8}), y = randn({5, 8}), at = tensor({3}, kInt64);
  auto change = [](const Tensor& t, const Tensor& row, const Tensor& place) {
    t.mul_(1);
    t.select(0, 2).copy_(row);
    t.index_copy_(1, place, row.sum(0).expand({6, 1, 8}));
    return t.sum();
  };
  Tensor here = x.clone(), there = x.to(device_);
  Tensor want = change(here, y, at), got = compile(change)(there, y.to(device_), at.to(device_)).cpu();
  EXPECT_TRUE(allclose(got, want, 1e-4, 1e-4));
  EXPECT_TRUE(allclose(there.cpu(), here));
  Tensor index = randint(20, {1500}, kInt64), rows = randn({1500, 40});
  auto add = [](const Tensor& i, const Tensor& r) {
    return zeros({20, 40}, TensorOptions(r.device())).index_add(0, i, r);
  };
  EXPECT_TRUE(allclose(compile(add)(index.to(device_), rows.to(device_)).cpu(), add(index, rows), 1e-3, 1e-3));
}

// Batch norm, residual, relu, and their gradients: what a relu let pass is computed again from the norm's operand, which its gradient reads in any
// case, and not kept; what the sums and the gradient both need of several tensors goes to memory as the bfloat16 that it is.
TEST_P(Sums, OfABatchNormsGradientsReadLittle) {
  constexpr int64_t kImages = 8, kChannels = 64, kEdge = 48;
  auto f = compile([](const Tensor& y, const Tensor& skip, const Tensor& ct, const Tensor& other, const Tensor& w) {
    Tensor wide = y.to(kFloat32), mean = wide.mean({0, 1, 2}), centred = wide - mean;
    Tensor rstd = ((centred * centred).mean({0, 1, 2}) + 1e-5).rsqrt(), unit = centred * rstd;
    Tensor out = ((unit * w).to(kBFloat16) + skip).relu();
    Tensor g = where(((unit * w).to(kBFloat16) + skip) > 0, ct + other, zeros_like(ct)), wide_g = g.to(kFloat32);
    Tensor both = (wide_g * unit).mean({0, 1, 2});
    Tensor by_y = ((wide_g - wide_g.mean({0, 1, 2}) - unit * both) * rstd * w).to(kBFloat16);
    return std::vector<Tensor>{out, by_y, (wide_g * by_y).sum({0, 1, 2})};
  });
  auto image = [&] { return randn({kImages, kEdge, kEdge, kChannels}).to(kBFloat16).to(device_); };
  Tensor y = image(), skip = image(), ct = image(), other = image();
  f(y, skip, ct, other, randn({kChannels}).to(device_));
  const Explanation e = f.explain();
  ASSERT_EQ(e.graphs.size(), 1u);
  // Sums of y; y and skip to out; y, skip, ct and other to g and its sums; y and g to the gradient and its sum; and sums of parts.
  constexpr int64_t kTensors = 1 + 3 + 5 + 3;
  EXPECT_LT(e.graphs[0].bytes_after, (kTensors + 1) * 2 * y.numel()) << e.str(true);
}

// A thread has its neighbours of several rows, where these are many, and reads what is the same in all rows once.
TEST_P(Sums, RowsShareWhatIsByChannel) {
  constexpr int64_t kRows = 1 << 17;
  for (int64_t rows : {kRows, kRows + 2, kRows + 1}) {
    auto f = compile([](const Tensor& x, const Tensor& w, const Tensor& b) {
      return std::vector<Tensor>{(x * w + b).to(kBFloat16), (x - b).to(kBFloat16)};
    });
    Tensor x = randn({rows, 64}).to(kBFloat16), w = randn({64}), b = randn({64});
    std::vector<Tensor> got = f(x.to(device_), w.to(device_), b.to(device_));
    bool shares = f.explain().str(true).find("in pieces of") != std::string::npos;
    EXPECT_EQ(shares, rows % 2 == 0) << f.explain().str(true);
    EXPECT_TRUE(allclose(got[0].cpu().to(kFloat32), x.to(kFloat32) * w + b, 0x1p-8, 0x1p-8)) << rows;
    EXPECT_TRUE(allclose(got[1].cpu().to(kFloat32), x.to(kFloat32) - b, 0x1p-8, 0x1p-8)) << rows;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Sums, testing::Values("emu", "cuda"));

}  // namespace
}  // namespace brasa
