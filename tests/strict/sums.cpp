#include <brasa/threads.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/compile.h>

#include "capture/situations.h"
#include "strict/bits.h"
#include "support/str.h"

// The order of a sum follows from its own extents: it is the same eager and compiled, whatever is fused with it, for sizes that are known and
// for symbols, for any layout and any number of threads.
namespace brasa {
namespace {

using T = const Tensor&;
/// Of two matrices of the same sizes; gives one like them.
using Step = std::function<Tensor(T a, T b)>;

Tensor rows_as(T row, T a) { return row.expand({a.size(0), a.size(1)}); }

const std::map<std::string, Step>& steps() {
  static const std::map<std::string, Step> all = {
      // Element by element.
      {"add", [](T a, T b) { return a + b.sin(); }},
      {"mul", [](T a, T b) { return a * b.tanh(); }},
      {"exp", [](T a, T b) { return (a.tanh() - b.sigmoid()).exp(); }},
      {"t", [](T a, T b) { return a.t().contiguous().t() * 1.3 + b; }},
      // Reductions.
      {"sum of rows", [](T a, T b) { return a.sum(1, true) * 0.01 + b; }},
      {"sum of columns", [](T a, T b) { return a.sum(0, true) * 0.01 + b; }},
      {"sum", [](T a, T b) { return (a * b).sum() * 0.001 + a; }},
      {"mean of rows", [](T a, T) { return a - a.mean(1, true); }},
      {"mean of columns", [](T a, T b) { return a - (a * b).mean(0, true); }},
      {"var", [](T a, T b) { return a / (b.var({1}, int64_t{0}, true) + 1); }},
      {"std", [](T a, T) { return a * (a.var({0}, int64_t{0}, true) + 0.1).sqrt(); }},
      {"prod", [](T a, T b) { return (b.sin() * 0.01 + 1).prod(1, true) * a; }},
      {"norm", [](T a, T b) { return a / (linalg_vector_norm(b, 2, {0}, true) + 1); }},
      {"extrema", [](T a, T b) { return a - a.amax({1}, true) + b.amin({0}, true); }},
      {"softmax of rows", [](T a, T b) { return (a * 2).softmax(1) + b; }},
      {"softmax of columns", [](T a, T b) { return a + b.softmax(0); }},
      {"log_softmax", [](T a, T) { return a.log_softmax(1) * 0.1; }},
      {"logsumexp", [](T a, T b) { return a.logsumexp({0}, true) * 0.1 + b; }},
      {"layer_norm", [](T a, T b) { return layer_norm(a, {a.size(1)}, b[0], a[0], 0.1); }},
      {"group_norm",
       [](T a, T b) { return group_norm(a.unsqueeze(0), 1, a.select(1, 0), b.select(1, 0), 0.1).squeeze(0); }},
      {"batch_norm", [](T a, T b) { return batch_norm(a, b[0], {}, {}, {}, true, 0.1, 0.1, false); }},
      {"sums of several",
       [](T a, T b) { return (a.unsqueeze(0) * stack({b, a, b.cos()})).sum({0, 2}).unsqueeze(1) * 0.01 + a; }},
      {"cumsum", [](T a, T b) { return a.cumsum(1) * 0.01 + b.cumsum(0) * 0.02; }},
      {"cumprod", [](T a, T) { return (a.sin() * 0.1 + 1).cumprod(1); }},
      {"argmax", [](T a, T b) { return b.softmax(1) * 0.1 + a.detach().argmax(1, true).to(a.scalar_type()); }},
      // Products.
      {"matmul", [](T a, T b) { return (a.matmul(b.t()) * 0.1).tanh().matmul(a) * 0.01; }},
      {"gram", [](T a, T b) { return b.matmul((a.t().matmul(b) * 0.1).tanh()) * 0.01; }},
      {"matvec", [](T a, T b) { return a.matmul(b[0]).unsqueeze(1) * 0.01 + b; }},
      {"dot", [](T a, T b) { return a[0].dot(b[0]) * 0.01 + a; }},
      {"bmm",
       [](T a, T b) {
         Tensor x = stack({a, b.sin()});
         return (bmm(x, x.transpose(1, 2)) * 0.1).tanh().matmul(a).sum(0) * 0.01;
       }},
      {"einsum", [](T a, T b) { return einsum("ij,ik,jk->ij", {a, b, (a.t().matmul(b) * 0.1).sin()}) * 0.01; }},
      {"linear", [](T a, T b) { return linear(linear(a, b, b.sum(1)).tanh() * 0.1, b.t(), a[0]) * 0.1; }},
      {"attention",
       [](T a, T b) {
         Tensor x = stack({a, b}).unsqueeze(0);
         return scaled_dot_product_attention(x, x.cos(), x.sin(), {}, 0.0, true, 0.3).squeeze(0).sum(0) * 0.1;
       }},
      {"cdist", [](T a, T b) { return a * (cdist(a, b + 3).mean(1, true) * 0.1); }},
      {"cosine_similarity", [](T a, T b) { return a + cosine_similarity(a, b).unsqueeze(1); }},
      // Windows.
      {"conv1d",
       [](T a, T b) {
         Tensor w = stack({b[0], a[0].cos()}).expand({3, 2, a.size(1)}).permute({2, 0, 1});
         return (conv1d(stack({a, b}, 1), w.narrow(0, 0, 1).expand({4, 3, 2}).transpose(1, 2), {}, {1}, {1}) * 0.1)
             .sum(1);
       }},
      {"conv2d",
       [](T a, T b) {
         Tensor w = a[0].sum() * 0.01 + numbers({5, 2, 3, 3}).to(a.scalar_type());
         return conv2d(stack({a, b}).unsqueeze(0), w, {}, {1}, {1}).squeeze(0).mean(0);
       }},
      {"depthwise",
       [](T a, T b) {
         Tensor w = b[0].mean() + numbers({2, 1, 3, 3}).to(a.scalar_type());
         return conv2d(stack({a, b}).unsqueeze(0), w, {}, {1}, {1}, {1}, 2).squeeze(0).sum(0) * 0.1;
       }},
      {"conv_transpose2d",
       [](T a, T b) {
         Tensor w = b[0].mean() + numbers({1, 2, 3, 3}).to(a.scalar_type());
         Tensor wide = conv_transpose2d(a.unsqueeze(0).unsqueeze(0), w, {}, {2}, {1}, {1});
         return avg_pool2d(wide, {2}, {2}, {0}).squeeze(0).sum(0) * 0.1 + b;
       }},
      {"images",
       [](T a, T b) {
         Tensor x = stack({a, b, a * b}).unsqueeze(0).contiguous(MemoryFormat::ChannelsLast);
         Tensor w = b[0].mean() + numbers({4, 3, 3, 3}).to(a.scalar_type());
         Tensor y = batch_norm(conv2d(x, w, {}, {1}, {1}), {}, {}, {}, {}, true, 0.1, 0.1, false);
         return y.squeeze(0).sum(0) * 0.1 + x.sum() * 0.001;
       }},
      {"resample",
       [](T a, T b) {
         Tensor wide = upsample_bilinear2d(a.unsqueeze(0).unsqueeze(0), {2 * a.size(0), a.size(1) + 1}, false);
         return adaptive_avg_pool2d(wide, {a.size(0), a.size(1)}).squeeze(0).squeeze(0) + b;
       }},
      {"avg_pool", [](T a, T b) { return avg_pool2d(a.unsqueeze(0), {3}, {1}, {1}).squeeze(0) + b * 0.5; }},
      {"max_pool", [](T a, T b) { return max_pool2d(a.unsqueeze(0), {3}, {1}, {1}).squeeze(0) - b * 0.5; }},
      // Places.
      {"embedding",
       [](T a, T b) {
         Tensor index = (arange(a.size(0), kInt64) * 7).remainder((a.size(0) + 1) / 2);
         return embedding(a, index) * 0.5 + b;
       }},
      {"index_add",
       [](T a, T b) {
         Tensor index = (arange(a.size(0), kInt64) * 5).remainder((a.size(0) + 2) / 3);
         return a.index_add(0, index, b) * 0.5;
       }},
      {"scatter_add",
       [](T a, T b) {
         Tensor index = (arange(a.numel(), kInt64) * 7).remainder((a.size(0) + 1) / 2).reshape({a.size(0), a.size(1)});
         return a.scatter_add(0, index, b) * 0.5;
       }},
      {"gather", [](T a, T b) { return a.gather(1, b.detach().argsort(int64_t{1})) * 0.7; }},
      // Losses.
      {"mse", [](T a, T b) { return a * mse_loss(a, b.detach()); }},
      {"cross_entropy",
       [](T a, T b) {
         Tensor labels = (arange(a.size(0), kInt64) * 3).remainder(a.size(1));
         return cross_entropy_loss(a, labels) * 0.1 + b;
       }},
      {"smooth_l1", [](T a, T b) { return a.tanh() * smooth_l1_loss(a, b.detach()) + rows_as(b[0], a); }},
  };
  return all;
}

// What has a value for each pair of rows or of columns.
bool makes_pairs(const std::string& step) {
  static const std::set<std::string> those = {"matmul", "gram", "bmm", "einsum", "linear", "attention", "cdist"};
  return those.count(step) > 0;
}

struct Program {
  struct Use {
    std::string step;
    size_t a, b;
  };
  std::vector<Use> uses;
  bool inside = false;  // whether the function itself asks for the gradients

  explicit Program(uint32_t seed) {
    std::mt19937 pick(seed);
    auto below = [&](size_t n) { return pick() % n; };
    for (size_t i = 0, count = 1 + below(5); i < count; ++i) {
      auto it = steps().begin();
      std::advance(it, static_cast<int64_t>(below(steps().size())));
      uses.push_back({it->first, below(2 + i), below(2 + i)});
    }
    inside = below(3) == 0;
  }

  std::string text() const {
    std::string out = inside ? "gradients inside:" : "gradients outside:";
    for (const Use& u : uses) out += str(" ", u.step, "(", u.a, ", ", u.b, ")");
    return out;
  }

  std::vector<Tensor> values(const std::vector<Tensor>& in) const {
    // What gradients inside of a function and outside of it meet in adds up in another order: no input is a result.
    std::vector<Tensor> all = {in[0], in[1] * 1};
    for (const Use& u : uses) all.push_back(steps().at(u.step)(all[u.a], all[u.b]));
    return {all.back(), all[all.size() - 2]};
  }

  static std::vector<Tensor> gradients(const std::vector<Tensor>& out, const std::vector<Tensor>& in) {
    Tensor loss;
    for (T t : out)
      if (t.requires_grad()) loss = loss.defined() ? loss + t.sin().sum() : t.sin().sum();
    if (!loss.defined()) return {};
    std::vector<Tensor> all = out;
    for (T g : autograd::grad({loss}, in, {}, false, false, true))
      if (g.defined()) all.push_back(g);
    return all;
  }

  TensorFunction body() const {
    return [this](const Tensors& in) { return inside ? gradients(values(in), in) : values(in); };
  }
  // What is seen of a call, gradients too.
  Tensors seen(const TensorFunction& f, const Tensors& in) const {
    Tensors out = f(in), all;
    if (!inside) out = gradients(out, in);
    for (T t : out) all.push_back(t.detach());
    return all;
  }
};

struct Drawn {
  int64_t n, m;
  DType dtype;
  int layout;
  uint32_t seed;

  Tensor matrix() const {
    std::mt19937 pick(seed);
    std::uniform_real_distribution<float> spread(-2, 2);
    Tensor t = empty({n * m}, kFloat32);
    for (int64_t i = 0; i < t.numel(); ++i) t.data_ptr<float>()[i] = spread(pick);
    t = t.to(dtype);
    if (layout == 1) return t.reshape({m, n}).t().detach().requires_grad_();
    if (layout == 2) return cat({t, t}).reshape({n, 2 * m}).slice(1, 0, 2 * m, 2).detach().requires_grad_();
    return t.reshape({n, m}).requires_grad_();
  }
};

// A program in all modes, with these numbers of threads, at several sizes.
void compare(uint32_t seed) {
  static constexpr int64_t kSizes[] = {1, 2, 3, 5, 8, 15, 16, 17, 33, 40, 64, 100, 129, 300};
  static constexpr DType kTypes[] = {kFloat32, kFloat32, kFloat32, kFloat64, kBFloat16, kHalf};
  static constexpr int kThreads[] = {1, 2, 16};
  Program p(seed);
  std::mt19937 pick(seed + 1000000);
  auto below = [&](size_t n) { return pick() % n; };
  DType dtype = kTypes[below(std::size(kTypes))];
  bool pairs = std::any_of(p.uses.begin(), p.uses.end(), [](const Program::Use& u) { return makes_pairs(u.step); });
  std::vector<std::array<Drawn, 2>> calls;
  for (int k = 0; k < 4; ++k) {
    int64_t n = kSizes[below(std::size(kSizes))], m = kSizes[below(std::size(kSizes))];
    if (below(12) == 0 && !pairs) (below(2) ? n : m) = 9000 + static_cast<int64_t>(below(20000));
    if (n > 1000) m = std::min<int64_t>(m, 8);
    if (m > 1000) n = std::min<int64_t>(n, 8);
    auto draw = [&] { return Drawn{n, m, dtype, static_cast<int>(below(3)), static_cast<uint32_t>(pick())}; };
    calls.push_back({draw(), draw()});
  }
  int before = get_num_threads();
  std::vector<std::optional<Tensors>> want;
  set_num_threads(1);
  for (const auto& c : calls) {
    try {
      want.emplace_back(p.seen(p.body(), {c[0].matrix(), c[1].matrix()}));
    } catch (const Error&) {
      want.emplace_back();  // of these sizes or this dtype there is none
    }
  }
  for (const Mode& mode : modes()) {
    set_num_threads(kThreads[below(std::size(kThreads))]);
    TensorFunction f = wrap_for(&mode)(p.body());
    for (size_t k = 0; k < calls.size(); ++k) {
      if (!want[k]) continue;
      SCOPED_TRACE(str("seed ", seed, ", ", mode.name, ", ", get_num_threads(), " threads, call ", k, ", ", name(dtype),
                       ", ", calls[k][0].n, " x ", calls[k][0].m, ", ", p.text()));
      Tensors got;
      EXPECT_NO_THROW(got = p.seen(f, {calls[k][0].matrix(), calls[k][1].matrix()}));
      EXPECT_EQ(difference(*want[k], got), "");
    }
  }
  set_num_threads(before);
}

// BRASA_STRICT_SEEDS: the first seed, and how many.
TEST(StrictSums, RandomPrograms) {
  uint32_t first = 1, count = 24;
  if (const char* given = std::getenv("BRASA_STRICT_SEEDS")) std::istringstream(given) >> first >> count;
  for (uint32_t seed = first; seed < first + count; ++seed) compare(seed);
}

}  // namespace
}  // namespace brasa
