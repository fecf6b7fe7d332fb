#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/call.h>
#include <gtest/gtest.h>

#include "ops/builder.h"
#include "ops/table.h"
#include "support/str.h"

// Gradients of pools and of interpolation: which elements they reach, for windows of any kind and sizes that do not divide each other.
namespace brasa::test {
namespace {

using Sizes = std::vector<int64_t>;

struct Pool {
  Sizes size, kernel, stride, padding, dilation;
  bool ceil_mode;
};
// Strides beyond the kernel and below it, windows over the border, holes, one element.
const std::vector<Pool> kPools = {
    {{9, 11}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, false}, {{8, 8}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false},
    {{10, 7}, {2, 3}, {5, 4}, {1, 0}, {1, 1}, true},  {{9, 10}, {3, 2}, {1, 3}, {1, 1}, {2, 3}, true},
    {{1, 5}, {1, 4}, {1, 1}, {0, 2}, {1, 1}, false},  {{14, 13}, {12, 11}, {2, 3}, {6, 5}, {1, 1}, false},
};

Tensor numbers(const Sizes& sizes, DType dtype = kDouble) {
  Tensor x = arange(0, ones(sizes).numel(), TensorOptions(kDouble)).reshape(sizes);
  return (x * 12.9898).sin().to(dtype);
}

std::vector<Tensor> pooled(const Tensor& x, const Pool& p) {
  return call("aten::max_pool2d_with_indices", {x, p.kernel, p.stride, p.padding, p.dilation, p.ceil_mode});
}

// The gradient is put where the indices point, also of what has equal elements and NaN.
TEST(Windows, MaximaTakeTheGradient) {
  for (const Pool& p : kPools)
    for (bool special : {false, true}) {
      Tensor x = numbers({2, 3, p.size[0], p.size[1]});
      if (special) {
        x = (x * 2).round();
        x.index_put_({0, 0}, std::numeric_limits<double>::quiet_NaN());
        x.index_put_({1, 2, 0, 0}, std::numeric_limits<double>::quiet_NaN());
      }
      x.requires_grad_();
      std::vector<Tensor> plain = pooled(x.detach(), p);
      Tensor g = numbers(plain[0].sizes().vec());
      Tensor y = call("aten::max_pool2d", {x, p.kernel, p.stride, p.padding, p.dilation, p.ceil_mode})[0];
      EXPECT_TRUE(allclose(y.detach(), plain[0], 0, 0, true));
      y.backward(g);
      Tensor expected = zeros({6, p.size[0] * p.size[1]}, kDouble);
      expected.scatter_add_(1, plain[1].reshape({6, -1}), g.reshape({6, -1}));
      EXPECT_TRUE(allclose(x.grad().reshape({6, -1}), expected, 1e-12, 1e-12)) << "stride " << p.stride[0];
    }
}

// What the gradient needs of the elements was kept by the pool.
TEST(Windows, MaximaAreFoundOnce) {
  Tensor leaf = numbers({1, 2, 6, 6}).requires_grad_(), x = leaf * 1.0, y = max_pool2d(x, {2, 2});
  {
    NoGradGuard guard;
    x.zero_();
  }
  y.sum().backward();
  EXPECT_EQ(leaf.grad().sum().item<double>(), 18);
  EXPECT_TRUE(allclose((leaf.detach() * leaf.grad()).sum(), y.detach().sum(), 1e-14, 0));
}

// How many elements the operator scatters at a time; 0: it has no scatter.
int64_t most_scattered(const char* op, const std::vector<Sizes>& operands, ir::Args rest, std::vector<int64_t> hints) {
  ir::Graph graph(ir::Level::Primitives);
  ir::Facts facts(std::move(hints));
  ops::Builder builder(graph, facts);
  ir::Args args;
  for (const Sizes& s : operands) args.emplace_back(graph.add_input({kFloat, ir::Shape(s.begin(), s.end()), false}));
  args.insert(args.end(), rest.begin(), rest.end());
  ops::call_all(op, std::move(args));
  int64_t most = 0;
  for (const ir::Node* n : graph.nodes())
    if (n->op->name() == "prim::scatter")
      most = std::max(most, ir::type_of(n->args[2].get<ir::Value>()).numel().constant());
  return most;
}

struct Filter {
  const char* name;
  bool aligns;
};
const std::vector<Filter> kFilters = {{"upsample_nearest2d", false},     {"_upsample_nearest_exact2d", false},
                                      {"upsample_bilinear2d", true},     {"upsample_bicubic2d", true},
                                      {"_upsample_bilinear2d_aa", true}, {"_upsample_bicubic2d_aa", true},
                                      {"_upsample_lanczos2d_aa", true}};

Tensor upsampled(const Filter& f, const Tensor& x, const Sizes& out, bool align, std::optional<double> factor) {
  std::vector<CallArg> args = {x, out};
  if (f.aligns) args.emplace_back(align);
  args.emplace_back(factor);
  args.emplace_back(factor);
  return call(str("aten::", f.name), args)[0];
}

// ⟨g, A x⟩ = ⟨Aᵀ g, x⟩, whatever the sizes.
TEST(Windows, InterpolationIsTransposed) {
  auto check = [](const Filter& f, Sizes in, const Sizes& out, bool align, std::optional<double> factor) {
    Tensor x = numbers({1, 2, in[0], in[1]}).requires_grad_(), y = upsampled(f, x, out, align, factor);
    Tensor g = numbers({1, 2, out[0], out[1]});
    y.backward(g);
    double there = (g * y.detach()).sum().item<double>(), back = (x.grad() * x.detach()).sum().item<double>();
    EXPECT_NEAR(there, back, 1e-10) << f.name << " " << in[0] << " " << out[0] << " " << align;
    // Each element by itself: a sum of gradients that is right may have taken another way.
    Tensor one = zeros({1, 2, in[0], in[1]}, kDouble);
    one.select(1, 1).select(1, in[0] - 1).select(1, in[1] / 2).fill_(1);
    double of_one = (g * upsampled(f, one, out, align, factor)).sum().item<double>();
    EXPECT_NEAR(of_one, (x.grad() * one).sum().item<double>(), 1e-10) << f.name << " " << in[0] << " " << out[0];
  };
  for (const Filter& f : kFilters)
    for (bool align : {false, true}) {
      if (align && !f.aligns) continue;
      for (auto [a, b] : {std::pair{1, 1}, {1, 7}, {7, 1}, {2, 13}, {13, 2}, {5, 6}, {6, 5}, {3, 9}, {9, 3}, {17, 40}})
        check(f, {a, b}, {b, a}, align, std::nullopt);
    }
  for (const Filter& f : kFilters) {
    check(f, {6, 5}, {9, 7}, false, 1.5);
    check(f, {8, 9}, {4, 4}, false, 0.5);
    if (!std::string_view(f.name).ends_with("_aa")) check(f, {4, 5}, {13, 13}, false, 2.0);  // more than it gives
  }
}

TEST(Windows, GradientsOfInterpolationAreGathered) {
  auto expr = [](const Sizes& s) { return ir::Arg(std::vector<ir::Expr>(s.begin(), s.end())); };
  EXPECT_EQ(most_scattered("aten::upsample_bilinear2d_backward", {{2, 3, 12, 10}},
                           {expr({12, 10}), expr({2, 3, 6, 5}), ir::Arg(false)}, {}),
            0);
  EXPECT_EQ(most_scattered("aten::upsample_bilinear2d_backward", {{2, 3, 6, 5}},
                           {expr({6, 5}), expr({2, 3, 9, 7}), ir::Arg(false)}, {}),
            0);
  // Rows become far fewer, columns more: the gradient has 5 columns when its rows' two neighbours are scattered.
  EXPECT_EQ(most_scattered("aten::upsample_bilinear2d_backward", {{2, 3, 4, 10}},
                           {expr({4, 10}), expr({2, 3, 9, 5}), ir::Arg(false)}, {}),
            2 * 3 * 4 * 5 * 2);
}

// Of sizes that are symbols, as long as an element is part of few results.
TEST(Windows, GradientsOfInterpolationSumKnownWindows) {
  using ir::Expr;
  for (int64_t times : {2, 3, 40}) {
    ir::Graph graph(ir::Level::Primitives);
    ir::Facts facts({2, 3, 10, 10 * times});
    ops::Builder builder(graph, facts);
    ir::Shape in = {Expr::size(0), Expr::size(1), Expr::size(2)}, out = {in[0], in[1], Expr::size(3)};
    ir::Value g = graph.add_input({kFloat, out, false});
    ops::call_all("aten::upsample_nearest1d_backward",
                  {g, std::vector<Expr>{out[2]}, std::vector<Expr>(in.begin(), in.end())});
    bool known = true;
    for (const ir::Node* n : graph.nodes())
      if (n->op->name() == "prim::reduce")
        for (Expr d : n->args[1].get<std::vector<Expr>>())
          known = known && ir::type_of(n->args[0].get<ir::Value>()).shape[d.constant()].is_constant();
    EXPECT_EQ(known, times < 16) << times;
  }
}

// Means of windows that begin at every element: the gradient is sums of windows again.
TEST(Windows, MeansAtEveryElement) {
  for (int64_t k : {1, 2, 3, 5, 6})
    for (bool count_padding : {false, true})
      for (bool channels_last : {false, true}) {
        const Sizes kernel{k, k + 1}, padding{k / 2, (k + 1) / 2};
        Tensor x = numbers({2, 3, 9, 8});
        if (channels_last) x = x.contiguous(MemoryFormat::ChannelsLast);
        x.requires_grad_();
        auto sums = [&](const Tensor& t) {
          Tensor wide = constant_pad_nd(t, {padding[1], padding[1], padding[0], padding[0]});
          return wide.unfold(2, kernel[0], 1).unfold(3, kernel[1], 1).sum({-2, -1});
        };
        Tensor elements = sums(ones_like(x));
        auto expected = [&](const Tensor& t) {
          return count_padding ? sums(t) / static_cast<double>(k * (k + 1)) : sums(t) / elements;
        };
        Tensor y = avg_pool2d(x, kernel, {1}, padding, false, count_padding), g = numbers(y.sizes());
        EXPECT_TRUE(allclose(y, expected(x), 1e-12, 1e-12)) << k;
        auto gradient = [&](const Tensor& of) { return autograd::grad({of}, {x}, {g})[0]; };
        EXPECT_TRUE(allclose(gradient(y), gradient(expected(x)), 1e-12, 1e-12)) << k;
      }
}

// Means of windows that overlap or leave nothing out, and their transpose.
TEST(Windows, AdaptiveMeans) {
  for (int64_t n : {1, 2, 5, 12, 40})
    for (int64_t o : {1, 2, 3, 5, 7, 17}) {
      Tensor x = numbers({2, 3, n}).requires_grad_(), y = adaptive_avg_pool1d(x, o), g = numbers({2, 3, o});
      Tensor expected = zeros({2, 3, o}, kDouble), back = zeros({2, 3, n}, kDouble);
      for (int64_t i = 0; i < o; ++i) {
        int64_t first = i * n / o, end = ((i + 1) * n + o - 1) / o;
        expected.select(2, i).copy_(x.detach().narrow(2, first, end - first).mean(2));
        back.narrow(2, first, end - first).add_(g.narrow(2, i, 1) / static_cast<double>(end - first));
      }
      EXPECT_TRUE(allclose(y.detach(), expected, 1e-12, 1e-12)) << n << " " << o;
      y.backward(g);
      EXPECT_TRUE(allclose(x.grad(), back, 1e-12, 1e-12)) << n << " " << o;
      if (n < 2) continue;
      auto most = call("aten::adaptive_max_pool1d", {x.detach(), Sizes{o}});
      EXPECT_TRUE(equal(most[0], x.detach().gather(2, most[1]))) << n << " " << o;
      for (int64_t i = 0; i < o; ++i) {
        int64_t first = i * n / o, end = ((i + 1) * n + o - 1) / o;
        EXPECT_TRUE(equal(most[0].select(2, i), x.detach().narrow(2, first, end - first).amax(2))) << n << " " << o;
      }
    }
}

// Of elements that are equal, NaN too, the first one in the plane is taken: windows that are even, of two lengths, and more than there are elements.
TEST(Windows, AdaptiveMaxima) {
  using Planes = std::pair<Sizes, Sizes>;
  for (const Planes& planes :
       {Planes{{6, 8, 10}, {3, 2, 5}}, {{7, 9, 11}, {3, 4, 5}}, {{3, 1, 4}, {5, 2, 6}}, {{5, 4, 5}, {5, 1, 2}}}) {
    const Sizes &size = planes.first, &out = planes.second;
    Tensor x = (numbers({2, size[0], size[1], size[2]}) * 2).round();
    for (int64_t i : {1, 4, 7}) x.flatten()[x.numel() / 9 * i].fill_(std::numeric_limits<double>::quiet_NaN());
    std::vector<Tensor> got = call("aten::adaptive_max_pool3d", {x, out});
    auto* values = x.data_ptr<double>();
    int64_t at = 0;
    Tensor most = got[0].flatten(), places = got[1].flatten();
    auto begin = [&](size_t d, int64_t i) { return i * size[d] / out[d]; };
    auto end = [&](size_t d, int64_t i) { return ((i + 1) * size[d] + out[d] - 1) / out[d]; };
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t i = 0; i < out[0]; ++i)
        for (int64_t j = 0; j < out[1]; ++j)
          for (int64_t k = 0; k < out[2]; ++k, ++at) {
            int64_t first = -1;
            const double* plane = values + b * size[0] * size[1] * size[2];
            for (int64_t p = begin(0, i); p < end(0, i); ++p)
              for (int64_t q = begin(1, j); q < end(1, j); ++q)
                for (int64_t r = begin(2, k); r < end(2, k); ++r) {
                  int64_t place = (p * size[1] + q) * size[2] + r;
                  bool more = first < 0 || plane[place] > plane[first] ||
                              (std::isnan(plane[place]) && !std::isnan(plane[first]));
                  if (more) first = place;
                }
            ASSERT_EQ(places[at].item<int64_t>(), first) << "window " << at << " of " << str(out);
            double expected = plane[first], value = most[at].item<double>();
            ASSERT_TRUE(value == expected || (std::isnan(value) && std::isnan(expected))) << value << ", " << expected;
          }
  }
}

}  // namespace
}  // namespace brasa::test
