#include "tensor/util.h"

namespace brasa {
namespace {

using namespace testing;

Tensor sample() {
  return sparse_coo_tensor(tensor({{0, 1, 1, 0}, {2, 0, 2, 2}}), tensor({3.0, 4.0, 5.0, 1.0}), {2, 3});
}

TEST(SparseLayouts, PartsOfCoordinateFormat) {
  Tensor s = sample();
  EXPECT_EQ(s.layout(), kSparse);
  EXPECT_TRUE(s.is_sparse());
  EXPECT_FALSE(s.is_sparse_csr());
  EXPECT_EQ(s.sizes(), IntArrayRef({2, 3}));
  EXPECT_EQ(s.numel(), 6);
  EXPECT_EQ(s._nnz(), 4);
  EXPECT_EQ(s.sparse_dim(), 2);
  EXPECT_EQ(s.dense_dim(), 0);
  EXPECT_FALSE(s.is_coalesced());
  EXPECT_EQ(s.scalar_type(), kFloat);
  EXPECT_EQ(s.options().layout(), kSparse);
  EXPECT_FALSE(tensor({1.0}).is_sparse());
  expect_values(s._values(), {3, 4, 5, 1});
  EXPECT_TRUE(contains(error_of([&] { s.values(); }), "uncoalesced"));
  EXPECT_TRUE(contains(error_of([&] { s.indices(); }), "uncoalesced"));
  Tensor c = s.coalesce();
  EXPECT_TRUE(c.is_coalesced());
  expect_values(c.indices(), {0, 1, 1, 2, 0, 2});
  expect_values(c.values(), {4, 4, 5});
  EXPECT_TRUE(c.coalesce().is_same(c));
  expect_values(s.to_dense(), {0, 0, 4, 4, 0, 5});
}

TEST(SparseLayouts, InferredAndEmptySizes) {
  Tensor s = sparse_coo_tensor(tensor({{0, 3}}), tensor({{1.0, 2.0}, {3.0, 4.0}}));
  EXPECT_EQ(s.sizes(), IntArrayRef({4, 2}));
  EXPECT_EQ(s.dense_dim(), 1);
  expect_values(s.to_dense(), {1, 2, 0, 0, 0, 0, 3, 4});
  Tensor e = sparse_coo_tensor({2, 3}, kDouble);
  EXPECT_EQ(e._nnz(), 0);
  EXPECT_TRUE(e.is_coalesced());
  EXPECT_EQ(e.scalar_type(), kDouble);
  expect_values(e.to_dense(), {0, 0, 0, 0, 0, 0});
  expect_values((e + e).coalesce().to_dense(), {0, 0, 0, 0, 0, 0});
  EXPECT_EQ(sparse_coo_tensor({0, 3}, kFloat).to_dense().sizes(), IntArrayRef({0, 3}));
  EXPECT_EQ(zeros({0, 2}).to_sparse()._nnz(), 0);
  expect_values(sparse_coo_tensor(tensor({{1}}), tensor(2.0), {3}).to_dense(), {0, 2, 0});
}

TEST(SparseLayouts, WrongPartsAreRejected) {
  Tensor i = tensor({{0, 1, 1}, {2, 0, 2}}), v = tensor({3.0, 4.0, 5.0});
  auto coo = [](const Tensor& a, const Tensor& b, IntArrayRef size) {
    return error_of([&] { sparse_coo_tensor(a, b, size); });
  };
  EXPECT_TRUE(contains(coo(tensor({0, 1, 1}), v, {2, 3}), "sparse_dim x nnz"));
  EXPECT_TRUE(contains(coo(i, tensor({1.0, 2.0}), {2, 3}), "same nnz"));
  EXPECT_TRUE(contains(coo(i, v, {2, 2}), "for dim 1, size is 2 but found index 2"));
  EXPECT_TRUE(contains(coo(-i, v, {2, 3}), "negative index -1 for dim 0"));
  EXPECT_TRUE(contains(coo(i, v, {2, 3, 4}), "len(size) = 3, sparse_dim = 2, dense_dim = 0"));
  EXPECT_TRUE(contains(coo(i.to(kFloat), v, {2, 3}), "integer dtype"));
  EXPECT_TRUE(contains(coo(i, ones({3, 2}), {2, 3, 5}), "incorrect size"));
  EXPECT_TRUE(contains(error_of([&] { sparse_coo_tensor(-i, v); }), "negative index"));
  EXPECT_TRUE(contains(error_of([&] { sparse_coo_tensor(i.flip(1), v, {2, 3}, {}, true); }), "do not ascend"));
  EXPECT_TRUE(contains(error_of([&] { v.values(); }), "Strided"));
  EXPECT_TRUE(contains(error_of([&] { sample().crow_indices(); }), "crow_indices expected"));
  EXPECT_TRUE(contains(error_of([&] { sample().data_ptr(); }), "doesn't have storage"));
  EXPECT_TRUE(contains(error_of([&] { sample().strides(); }), "do not have strides"));

  auto csr = [&](const Tensor& crow, const Tensor& columns, const Tensor& values, IntArrayRef size) {
    return error_of([&] { sparse_csr_tensor(crow, columns, values, size); });
  };
  EXPECT_TRUE(contains(csr(tensor({0, 2, 1}), tensor({0}), ones({1}), {2, 3}), "never fall"));
  EXPECT_TRUE(contains(csr(tensor({0, 1, 2}), tensor({0, 3}), ones({2}), {2, 3}), "col_indices < ncols"));
  EXPECT_TRUE(contains(csr(tensor({0, 1}), tensor({0, 0}), ones({2}), {2, 3}), "rows + 1 (=3), but got 2"));
  EXPECT_TRUE(contains(csr(tensor({1, 1, 2}), tensor({0, 1}), ones({2}), {2, 3}), "crow_indices[..., 0] == 0"));
  EXPECT_TRUE(contains(csr(tensor({0, 1, 1}), tensor({0, 1}), ones({2}), {2, 3}), "-1] == nnz"));
  EXPECT_TRUE(contains(csr(tensor({0, 1, 2}), tensor({0}), ones({2}), {2, 3}), "must be nnz"));
}

TEST(SparseLayouts, CompressedRows) {
  Tensor c = sparse_csr_tensor(tensor({0, 1, 3}), tensor({2, 0, 2}), tensor({3.0, 4.0, 5.0}), {2, 3});
  EXPECT_TRUE(c.is_sparse_csr());
  EXPECT_FALSE(c.is_sparse());
  EXPECT_EQ(c._nnz(), 3);
  expect_values(c.to_dense(), {0, 0, 3, 4, 0, 5});
  Tensor s = c.to_sparse_coo();
  expect_values(s.indices(), {0, 1, 1, 2, 0, 2});
  Tensor back = sample().to_sparse_csr();
  expect_values(back.crow_indices(), {0, 1, 3});
  expect_values(back.col_indices(), {2, 0, 2});
  expect_values(back.values(), {4, 4, 5});
  EXPECT_EQ(sparse_csr_tensor(tensor({0, 0, 1}), tensor({4}), tensor({1.0})).sizes(), IntArrayRef({2, 5}));
  EXPECT_EQ(zeros({3, 2}).to_sparse_csr()._nnz(), 0);
  expect_values(sparse_compressed_tensor(tensor({0, 1}), tensor({1}), tensor({2.0}), {1, 2}, kSparseCsr).to_dense(),
                {0, 2});
  // Columns of a row in any order, and twice.
  Tensor any = sparse_csr_tensor(tensor({0, 3}), tensor({2, 0, 2}), tensor({1.0, 2.0, 3.0}), {1, 3});
  expect_values(any.to_dense(), {2, 0, 4});
}

TEST(SparseLayouts, FromDense) {
  Tensor d = tensor({{0.0, 1.0, 0.0}, {2.0, 0.0, 3.0}});
  Tensor s = d.to_sparse();
  expect_values(s.indices(), {0, 1, 1, 1, 0, 2});
  expect_values(s.values(), {1, 2, 3});
  EXPECT_TRUE(d.to_sparse().to_dense().equal(d));
  Tensor rows = tensor({{0.0, 0.0}, {1.0, 0.0}, {0.0, 2.0}}).to_sparse(1);
  expect_values(rows.indices(), {1, 2});
  expect_values(rows.values(), {1, 0, 0, 2});
  EXPECT_EQ(d.to_sparse_csr().to_dense().equal(d), true);
  EXPECT_TRUE(d.to_dense().is_same(d));
  EXPECT_TRUE(s.equal(d.to_sparse_csr()));
  EXPECT_TRUE(allclose(s, d));
  Tensor b = d.ne(0).to_sparse();
  EXPECT_EQ(b.scalar_type(), kBool);
  EXPECT_TRUE(b.to_dense().equal(d.ne(0)));
  Tensor three = arange(24).reshape({2, 3, 4}).remainder(5).to(kDouble);
  for (int64_t dims : {1, 2, 3}) EXPECT_TRUE(three.to_sparse(dims).to_dense().equal(three)) << dims;
  EXPECT_TRUE(contains(error_of([&] { d.to_sparse(3); }), "at most the dimensions"));
}

TEST(SparseLayouts, ClonesCopiesAndDtypes) {
  Tensor s = sample(), c = s.clone();
  c.mul_(2);
  expect_values(c.to_dense(), {0, 0, 8, 8, 0, 10});
  expect_values(s.to_dense(), {0, 0, 4, 4, 0, 5});
  EXPECT_EQ(s.to(kDouble).scalar_type(), kDouble);
  EXPECT_FALSE(s.to(kDouble).is_coalesced());
  Tensor z = zeros_like(s);
  EXPECT_EQ(z._nnz(), 0);
  z.copy_(s);
  expect_values(z.to_dense(), {0, 0, 4, 4, 0, 5});
  z.zero_();
  EXPECT_EQ(z._nnz(), 0);
  expect_values(zeros({2, 3}).copy_(s), {0, 0, 4, 4, 0, 5});
  EXPECT_EQ(zeros_like(s.to_sparse_csr()).crow_indices().size(0), 3);
  EXPECT_TRUE(contains(error_of([&] { z.copy_(ones({2, 3})); }), "to_dense()"));
}

TEST(SparseLayouts, Text) {
  Tensor s = sparse_coo_tensor(tensor({{0, 1, 1}, {2, 0, 2}}), tensor({3.0, 4.0, 5.0}), {2, 3});
  EXPECT_EQ(text(s),
            "[ SparseCPUFloatType{}\nindices:\n 0  1  1\n 2  0  2\n[ CPULongType{2,3} ]\nvalues:\n 3\n 4\n 5\n"
            "[ CPUFloatType{3} ]\nsize:\n[2, 3]\n]");
  EXPECT_TRUE(contains(text(s.to_sparse_csr()), "[ SparseCsrCPUFloatType{}\ncrow_indices:\n 0\n 1\n 3\n"));
}

}  // namespace
}  // namespace brasa
