#include <functional>
#include <set>

#include "tensor/util.h"

#include "ops/table.h"
#include "tensor/sparse/table.h"

namespace brasa {
namespace {

using namespace testing;

// [0 0 4; 4 0 5], with the 4 in two entries.
Tensor sample() {
  return sparse_coo_tensor(tensor({{0, 1, 1, 0}, {2, 0, 2, 2}}), tensor({3.0, 4.0, 5.0, 1.0}), {2, 3});
}
// Also coalesced, as compressed rows, and with a dense dimension.
std::vector<Tensor> matrices() { return {sample(), sample().coalesce(), sample().to_sparse_csr()}; }
Tensor hybrid() { return sparse_coo_tensor(tensor({{0, 2, 0}}), tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}), {3, 2}); }

// f gives of sparse tensors what it gives of dense ones.
void expect_dense(const std::function<Tensor(const Tensor&)>& f, const std::vector<Tensor>& on, const char* what) {
  for (const Tensor& t : on) {
    Tensor got = f(t).to_dense(), want = f(t.to_dense());
    EXPECT_EQ(got.sizes(), want.sizes()) << what;
    EXPECT_EQ(got.scalar_type(), want.scalar_type()) << what;
    EXPECT_TRUE(allclose(got, want, 1e-6, 1e-7, true)) << what << '\n' << t << '\n' << got << '\n' << want;
  }
}
#define EXPECT_DENSE(expression, ...) \
  expect_dense([&](const Tensor& x) { return expression; }, __VA_ARGS__, #expression)

std::vector<Tensor> with(std::vector<Tensor> list, const Tensor& t) {
  list.push_back(t);
  return list;
}

TEST(SparseOperators, EveryFormHasAFunctionAndARow) {
  std::set<ops::Sparse> used;
  for (const ops::Row& row : ops::table().rows()) used.insert(row.sparse);
  for (int i = 1; i < ops::kSparseForms; ++i) {
    auto form = static_cast<ops::Sparse>(i);
    bool lookup = form == ops::Sparse::Embedding || form == ops::Sparse::EmbeddingBag;
    EXPECT_EQ(eager::sparse::function_of(form) != nullptr, !lookup) << i;
    EXPECT_TRUE(used.count(form)) << i;
  }
}

TEST(SparseOperators, FunctionsThatLeaveZeros) {
  const auto all = with(matrices(), hybrid());
  EXPECT_DENSE(-x, all);
  EXPECT_DENSE(x.abs(), all);
  EXPECT_DENSE(x.sin(), all);
  EXPECT_DENSE(x.tanh(), all);
  EXPECT_DENSE(x.sqrt(), all);
  EXPECT_DENSE(x.square(), all);
  EXPECT_DENSE(x.pow(3), all);
  EXPECT_DENSE(x.relu(), all);
  EXPECT_DENSE(x.sign(), all);
  EXPECT_DENSE(x.ceil(), all);
  EXPECT_DENSE(x.floor(), all);
  EXPECT_DENSE(x.expm1(), all);
  EXPECT_DENSE(x.log1p(), all);
  EXPECT_DENSE(x.isnan(), all);
  EXPECT_DENSE(x.to(kDouble), all);
  for (const Tensor& t : all)
    for (auto f : {&Tensor::cos, &Tensor::exp}) EXPECT_TRUE(contains(error_of([&] { (t.*f)(); }), "to_dense()"));
  EXPECT_TRUE(contains(error_of([] { sample().pow(0); }), "greater than 0"));
  EXPECT_TRUE(sample().sin().layout() == kSparse && sample().to_sparse_csr().sin().layout() == kSparseCsr);
  // The two entries of one element are added before.
  expect_values(sample().square().values(), {16, 16, 25});
}

TEST(SparseOperators, SumsAndProducts) {
  const auto all = matrices();
  Tensor d = arange(6).reshape({2, 3}).to(kFloat), row = tensor({1.0, 2.0, 3.0}), column = tensor({{2.0}, {3.0}});
  EXPECT_DENSE(x * 2.5, all);
  EXPECT_DENSE(x / 2, all);
  EXPECT_DENSE(2 * x, all);
  EXPECT_DENSE(x * tensor(3.0), all);
  EXPECT_DENSE(x * d, all);
  EXPECT_DENSE(d * x, all);
  EXPECT_DENSE(x * row, all);
  EXPECT_DENSE(x * column, all);
  EXPECT_DENSE(d + x, all);
  EXPECT_DENSE(d - x, all);
  EXPECT_DENSE(d.add(x, 2), all);
  EXPECT_DENSE(row + x, all);
  EXPECT_DENSE(d.to(kLong) + x, all);
  EXPECT_DENSE(x + x, all);
  EXPECT_DENSE(x.sub(x, 3), all);
  EXPECT_DENSE(x * x, all);
  EXPECT_DENSE(x.div(2, "floor"), all);
  Tensor other = tensor({{1.0, 0.0, 2.0}, {0.0, 3.0, 4.0}});
  for (const Tensor& t : all)
    for (const Tensor& o : {other.to_sparse(), other.to_sparse_csr()}) {
      EXPECT_TRUE(allclose((t + o).to_dense(), t.to_dense() + other));
      EXPECT_TRUE(allclose((t - o).to_dense(), t.to_dense() - other));
      EXPECT_TRUE(allclose((t * o).to_dense(), t.to_dense() * other));
      EXPECT_EQ((t + o).layout(), t.layout());
    }
  expect_values((sample() * other.to_sparse()).coalesce().indices(), {0, 1, 2, 2});
  EXPECT_TRUE(contains(error_of([&] { sample() + d; }), "must be the dense one"));
  EXPECT_TRUE(contains(error_of([&] { sample() + 1; }), "to_dense()"));
  EXPECT_TRUE(contains(error_of([&] { sample() / d; }), "divided by a number"));
  EXPECT_TRUE(contains(error_of([&] { sample() + sparse_coo_tensor({3, 3}, kFloat); }), "equal sizes"));
}

TEST(SparseOperators, InPlace) {
  Tensor d = ones({2, 3});
  d.add_(sample(), 2);
  expect_values(d, {1, 1, 9, 9, 1, 11});
  d.sub_(sample().to_sparse_csr());
  expect_values(d, {1, 1, 5, 5, 1, 6});
  d.t().add_(sample().t());
  expect_values(d, {1, 1, 9, 9, 1, 11});
  d.mul_(0).add_(hybrid().to_dense().t());
  expect_values(d, {6, 0, 3, 8, 0, 4});
  Tensor s = sample();
  s.add_(s).mul_(0.5);
  s.neg_();
  expect_values(s.to_dense(), {0, 0, -4, -4, 0, -5});
  EXPECT_TRUE(contains(error_of([&] { s.add_(ones({2, 3})); }), "must be the dense one"));
  EXPECT_TRUE(contains(error_of([&] { s.mul_(ones({3, 2, 3})); }), ""));
}

TEST(SparseOperators, MatrixProducts) {
  Tensor d = arange(12).reshape({3, 4}).to(kFloat), e = arange(10).reshape({5, 2}).to(kFloat),
         v = tensor({1.0, 2.0, 3.0});
  EXPECT_DENSE(x.mm(d), matrices());
  EXPECT_DENSE(x.matmul(d), matrices());
  EXPECT_DENSE(e.mm(x), matrices());
  EXPECT_DENSE(e.reshape({5, 1, 2}).matmul(x), matrices());
  EXPECT_DENSE(x.mv(v), matrices());
  EXPECT_DENSE(x.matmul(v), matrices());
  EXPECT_DENSE(v.slice(0, 0, 2).matmul(x), matrices());
  EXPECT_DENSE(addmm(ones({2, 4}), x, d, 2, 3), matrices());
  EXPECT_DENSE(addmm(ones({4}), x, d, 1, 1), matrices());
  EXPECT_DENSE(addmm(full({2, 4}, NAN), x, d, 0, 1), matrices());
  EXPECT_DENSE(linear(ones({5, 3}), x, tensor({1.0, 2.0})), matrices());
  EXPECT_DENSE(x.mm(x.t()), matrices());
  EXPECT_DENSE(x.t().mm(x), matrices());
  EXPECT_DENSE(x.to(kDouble).mm(d.to(kDouble)), matrices());
  EXPECT_DENSE(x.to(kLong).mm(d.to(kLong)), matrices());
  EXPECT_DENSE(x.to(kBFloat16).mm(d.to(kBFloat16)), matrices());
  EXPECT_DENSE(x.mm(zeros({3, 0})), matrices());
  expect_values(_sparse_mm(sample(), sample().t()).to_dense(), {16, 20, 20, 41});
  EXPECT_TRUE(_sparse_mm(sample().to_sparse_csr(), sample().t().to_sparse_csr()).is_sparse_csr());
  Tensor batch = stack({sample(), sample() * 2}), dense = arange(12).reshape({2, 3, 2}).to(kFloat);
  EXPECT_TRUE(allclose(batch.bmm(dense), batch.to_dense().bmm(dense)));
  EXPECT_TRUE(contains(error_of([&] { sample().mm(e); }), "cannot be multiplied (2x3 and 5x2)"));
  EXPECT_TRUE(contains(error_of([&] { sample().mm(d.to(kDouble)); }), "one dtype"));
  Tensor wide = zeros({40, 1000}), big = randn({1000, 70});
  for (int64_t k = 0; k < 400; ++k)
    wide.index_put_({k * 7 % 40, k * 31 % 1000}, Scalar(0.25 * static_cast<double>(k % 9)));
  EXPECT_TRUE(allclose(wide.to_sparse().mm(big), wide.mm(big), 1e-4, 1e-4));
  EXPECT_TRUE(allclose(wide.t().to_sparse().t().mm(big), wide.mm(big), 1e-4, 1e-4));
}

TEST(SparseOperators, Reductions) {
  const auto all = with(matrices(), hybrid());
  EXPECT_DENSE(x.sum(), all);
  EXPECT_DENSE(x.sum(0), all);
  EXPECT_DENSE(x.sum(1), all);
  EXPECT_DENSE(x.sum({0, 1}), all);
  EXPECT_DENSE(x.sum(0, true), all);
  EXPECT_DENSE(x.sum(-1, true), all);
  EXPECT_DENSE(x.norm(), all);
  EXPECT_DENSE(x.norm(1), all);
  EXPECT_DENSE(x.to(kInt).sum(0), all);
  EXPECT_TRUE(sample().sum(0).is_sparse());
  EXPECT_FALSE(hybrid().sum(0).is_sparse());
  expect_values(_sparse_sum(hybrid(), {1}).values(), {14, 7});
  expect_values(_sparse_softmax(sample(), 1).values(), {1, 0.26894142, 0.73105858});
  expect_values(_sparse_softmax(sample(), 0).values(), {0.26894142, 1, 0.73105858});
  expect_values(_sparse_log_softmax(sample(), 1).values(), {0, -1.31326169, -0.31326169});
}

TEST(SparseOperators, Shapes) {
  const auto all = matrices();
  EXPECT_DENSE(x.t(), all);
  EXPECT_DENSE(x.transpose(0, -1), all);
  EXPECT_DENSE(x.permute({1, 0}), all);
  EXPECT_DENSE(x.unsqueeze(1), all);
  EXPECT_DENSE(x.unsqueeze(-1), all);
  EXPECT_DENSE(x.select(1, 2), all);
  EXPECT_DENSE(x[-1], all);
  EXPECT_DENSE(x.narrow(1, 1, 2), all);
  EXPECT_DENSE(x.slice(1, -2), all);
  EXPECT_DENSE(x.index_select(1, tensor({2, 0, 2})), with(all, hybrid().index_select(1, tensor({0, 1, 1}))));
  EXPECT_DENSE(cat({x, x}, 0), all);
  EXPECT_DENSE(cat({x, x.t().t(), x * 2}, 1), all);
  EXPECT_DENSE(stack({x, x}, 1), all);
  const std::vector<Tensor> mixed = {hybrid()};
  EXPECT_DENSE(x[0], mixed);
  EXPECT_DENSE(x.select(1, 1), mixed);
  EXPECT_DENSE(x.unsqueeze(2), mixed);
  EXPECT_DENSE(x.narrow(1, 1, 1), mixed);
  EXPECT_DENSE(x.index_select(0, tensor({2, 2, 1})), mixed);
  expect_values(sample().select(1, 2)._values(), {3, 5, 1});
  EXPECT_TRUE(contains(error_of([] { hybrid().t(); }), "cannot change places"));
  EXPECT_TRUE(contains(error_of([] { sample().index_select(1, tensor({3})); }), "out of range"));
  EXPECT_TRUE(contains(error_of([] { sample().reshape({3, 2}); }), "sparse float32[2, 3]"));
}

TEST(SparseOperators, Masks) {
  Tensor d = arange(6).reshape({2, 3}).to(kFloat);
  for (const Tensor& m : matrices()) EXPECT_EQ(d.sparse_mask(m).layout(), m.layout());
  expect_values(d.sparse_mask(sample())._values(), {2, 3, 5, 2});
  expect_values(d.sparse_mask(sample().to_sparse_csr()).values(), {2, 3, 5});
  expect_values(d.to_sparse().sparse_mask(sample().coalesce()).values(), {2, 3, 5});
  EXPECT_TRUE(contains(error_of([&] { d.t().sparse_mask(sample()); }), "incompatible sizes"));
}

}  // namespace
}  // namespace brasa
