#include <algorithm>

#include <brasa/autograd.h>
#include <brasa/factories.h>
#include <brasa/ops_generated.h>
#include <brasa/sparse.h>

#include "support/error.h"
#include "tensor/parse.h"
#include "tensor/recorder.h"
#include "tensor/sparse/parts.h"
#include "tensor/sparse/sparse.h"

// Sparse tensors from their parts.
namespace brasa {

using namespace eager::sparse;

namespace {

Tensor index_tensor(const char* op, const char* what, const Tensor& t) {
  BRASA_CHECK(is_integral(t.scalar_type()) && !eager::sparse::is_sparse(t), op, ": expected ", what,
              " of an integer dtype, got ", t);
  return t.to(kLong).detach();
}

bool readable(const Tensor& t) { return !impl_of(t)->storage->recorder(); }

// The index as plain numbers, row by row.
const int64_t* numbers(Tensor& holder) {
  NoGradGuard guard;
  Recorder::Scope none(nullptr);
  holder = holder.contiguous();
  return holder.data_ptr<int64_t>();
}

// The values as part of the tensor: its own leaf, or with the history of what the caller gave.
Tensor own_values(const Tensor& values, const TensorOptions& options) {
  Tensor v = values.to(options.dtype_opt().value_or(values.scalar_type()));
  if (v.dim() == 0) v = v.expand({1});
  if (options.requires_grad() || !v.requires_grad() || !GradMode::is_enabled()) return v.detach();
  return v.is_same(values) ? eager::call_one("aten::alias", {v}) : v;
}

Tensor finished(Tensor t, const TensorOptions& options) {
  BRASA_CHECK(options.device().is_cpu(), "sparse tensors live on the CPU alone, not on device '",
              options.device().str(), "'");
  return options.requires_grad() ? t.set_requires_grad(true) : t;
}

void check_layout(const char* op, const TensorOptions& options, Layout expected) {
  BRASA_CHECK(!options.has_layout() || options.layout() == expected, op, ": expected a ",
              expected == kSparse ? "Sparse" : "SparseCsr", " layout in the options");
}

void check_on_host(const char* op, const Tensor& t) {
  BRASA_CHECK(impl_of(t)->device().on_host(), op, ": sparse tensors live on the CPU alone, got ", t);
}

struct Coo {
  Tensor indices, values;
};

Coo checked_parts(const Tensor& indices, const Tensor& values, const TensorOptions& options) {
  constexpr const char* kOp = "sparse_coo_tensor";
  check_layout(kOp, options, kSparse);
  BRASA_CHECK(values.defined() && indices.defined(), kOp, ": indices or values are undefined");
  check_on_host(kOp, indices);
  check_on_host(kOp, values);
  Coo c{index_tensor(kOp, "indices", indices), own_values(values, options)};
  BRASA_CHECK(indices.dim() == 2, "indices must be sparse_dim x nnz, but got: ", indices.sizes().vec());
  BRASA_CHECK(c.indices.size(1) == c.values.size(0),
              "indices and values must have same nnz, but got nnz from indices: ", c.indices.size(1),
              ", nnz from values: ", c.values.size(0));
  return c;
}

void check_sizes(const Coo& c, IntArrayRef size) {
  int64_t sparse = c.indices.size(0), dense = c.values.dim() - 1, rank = static_cast<int64_t>(size.size());
  BRASA_CHECK(rank == sparse + dense, "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = ", rank,
              ", sparse_dim = ", sparse, ", dense_dim = ", dense);
  for (int64_t s : size) BRASA_CHECK(s >= 0, "sparse_coo_tensor: negative size in ", size.vec());
  BRASA_CHECK(c.values.sizes().slice(1) == size.slice(static_cast<size_t>(sparse)),
              "sparse_coo_tensor: values have incorrect size, expected [nnz, ...] followed by the dense sizes of ",
              size.vec(), ", got ", c.values);
}

// Also says whether the indices ascend and are distinct.
bool check_values(Coo& c, IntArrayRef size) {
  int64_t dims = c.indices.size(0), n = c.indices.size(1);
  const int64_t* at = numbers(c.indices);
  for (int64_t d = 0; d < dims; ++d)
    for (int64_t e = 0; e < n; ++e) {
      int64_t i = at[d * n + e];
      BRASA_CHECK(i >= 0, "found negative index ", i, " for dim ", d);
      BRASA_CHECK(i < size[d], "size is inconsistent with indices: for dim ", d, ", size is ", size[d],
                  " but found index ", i);
    }
  auto less = [&](int64_t a, int64_t b) {
    for (int64_t d = 0; d < dims; ++d)
      if (at[d * n + a] != at[d * n + b]) return at[d * n + a] < at[d * n + b];
    return false;
  };
  for (int64_t e = 1; e < n; ++e)
    if (!less(e - 1, e)) return false;
  return true;
}

Tensor coo(Coo c, IntArrayRef size, const TensorOptions& options, std::optional<bool> is_coalesced, bool check) {
  check_sizes(c, size);
  if (check && readable(c.indices)) {
    bool ascending = check_values(c, size);
    BRASA_CHECK(ascending || !is_coalesced.value_or(false),
                "sparse_coo_tensor: is_coalesced is true, but the indices do not ascend, or repeat");
  }
  bool flag = is_coalesced.value_or(c.indices.size(1) < 2);
  return finished(make_coo(size.vec(), std::move(c.indices), std::move(c.values), flag), options);
}

}  // namespace

Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, const TensorOptions& options,
                         std::optional<bool> is_coalesced) {
  Coo c = checked_parts(indices, values, options);
  std::vector<int64_t> size;
  int64_t dims = c.indices.size(0), n = c.indices.size(1);
  const int64_t* at = numbers(c.indices);
  for (int64_t d = 0; d < dims; ++d) size.push_back(n ? *std::max_element(at + d * n, at + (d + 1) * n) + 1 : 0);
  for (int64_t d = 0; d < dims; ++d) size[d] = std::max<int64_t>(size[d], 0);
  for (int64_t s : c.values.sizes().slice(1)) size.push_back(s);
  return coo(std::move(c), size, options, is_coalesced, true);
}

Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, IntArrayRef size, const TensorOptions& options,
                         std::optional<bool> is_coalesced) {
  return coo(checked_parts(indices, values, options), size, options, is_coalesced, true);
}

Tensor sparse_coo_tensor(IntArrayRef size, const TensorOptions& options) {
  int64_t dims = static_cast<int64_t>(size.size());
  return sparse_coo_tensor(zeros({dims, 0}, kLong), zeros({0}, options.dtype()), size, options, true);
}

Tensor eager::sparse::without_entries(IntArrayRef sizes, const TensorOptions& options) {
  if (options.layout() == kSparse) return sparse_coo_tensor(sizes, options);
  BRASA_CHECK(sizes.size() >= 2, "a tensor of compressed rows has at least two dimensions, got ", sizes.vec());
  Tensor none = brasa::zeros({0}, kLong), crow = brasa::zeros({sizes[sizes.size() - 2] + 1}, kLong);
  return sparse_csr_tensor(crow, none, brasa::zeros({0}, options.dtype()), sizes, options);
}

void eager::sparse::call_factory(Operator& op, CallArgs args, Results& results) {
  TensorOptions options;
  std::optional<IntArrayRef> sizes;
  for (const CallArg& a : args) {
    if (a.kind == CallArg::Kind::Tensor) sizes = a.tensor->sizes(), options = a.tensor->options();
    if (a.kind == CallArg::Kind::Ints) sizes = IntArrayRef(a.ints, a.size);
    if (a.kind == CallArg::Kind::DType) options = options.dtype(static_cast<DType>(a.integer));
    if (a.kind == CallArg::Kind::Layout) options = options.layout(static_cast<Layout>(a.integer));
  }
  if (op.row().sparse != ops::Sparse::Zeros || !sizes)
    throw NotImplementedError(
        str(op.row().name(), " makes no sparse tensors: make a strided one, and take its to_sparse()"));
  if (runtime::Device* place = named_place(args)) options = options.device(place->id());
  results.resize(1);
  results[0] = without_entries(*sizes, options);
}

Tensor _sparse_coo_tensor_unsafe(const Tensor& indices, const Tensor& values, IntArrayRef size,
                                 const TensorOptions& options, std::optional<bool> is_coalesced) {
  return coo(checked_parts(indices, values, options), size, options, is_coalesced, false);
}

namespace {

Tensor csr(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values,
           std::optional<IntArrayRef> given, const TensorOptions& options) {
  constexpr const char* kOp = "sparse_csr_tensor";
  check_layout(kOp, options, kSparseCsr);
  BRASA_CHECK(crow_indices.defined() && col_indices.defined() && values.defined(), kOp, ": a part is undefined");
  for (const Tensor* part : {&crow_indices, &col_indices, &values}) check_on_host(kOp, *part);
  Tensor crow = index_tensor(kOp, "crow_indices", crow_indices),
         columns = index_tensor(kOp, "col_indices", col_indices), own = own_values(values, options);
  BRASA_CHECK(
      crow.dim() == 1 && columns.dim() == 1 && own.dim() >= 1 && crow.size(0) >= 1, kOp,
      ": expected vectors of crow_indices (rows + 1) and col_indices (nnz), and a value for each entry, without "
      "batches; got ",
      crow, ", ", columns, " and ", own);
  int64_t rows = crow.size(0) - 1, n = own.size(0);
  BRASA_CHECK(columns.size(0) == n, kOp, ": number of elements in col_indices must be nnz, the first size of values, ",
              n, ", but got ", columns.size(0));
  std::vector<int64_t> size;
  bool known = readable(crow) && readable(columns);
  if (given) {
    size = given->vec();
  } else {
    const int64_t* c = numbers(columns);
    size = {rows, n ? *std::max_element(c, c + n) + 1 : 0};
    for (int64_t s : own.sizes().slice(1)) size.push_back(s);
  }
  BRASA_CHECK(size.size() >= 2 && static_cast<int64_t>(size.size()) == 1 + own.dim() &&
                  own.sizes().slice(1) == IntArrayRef(size).slice(2),
              kOp, ": expected size [rows, columns] and the dense sizes of values ", own, ", got ", size);
  BRASA_CHECK(size[0] == rows, "crow_indices.shape[-1] must be equal to the number of rows + 1 (=", size[0] + 1,
              "), but got ", rows + 1);
  bool ascending = false;
  if (known) {
    const int64_t *r = numbers(crow), *c = numbers(columns);
    BRASA_CHECK(r[0] == 0, "`crow_indices[..., 0] == 0` is not satisfied: it is ", r[0]);
    for (int64_t i = 0; i < rows; ++i)
      BRASA_CHECK(r[i] <= r[i + 1],
                  "crow_indices must never fall: `0 <= crow_indices[..., i] - crow_indices[..., i - 1]` ",
                  "is not satisfied for i = ", i + 1, ", ", r[i], " is followed by ", r[i + 1]);
    BRASA_CHECK(r[rows] == n, "`crow_indices[..., -1] == nnz` is not satisfied: it is ", r[rows], " for nnz ", n);
    for (int64_t e = 0; e < n; ++e)
      BRASA_CHECK(c[e] >= 0 && c[e] < size[1], "`0 <= col_indices < ncols` is not satisfied: ", c[e], " for ", size[1],
                  " columns");
    ascending = true;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t e = r[i] + 1; e < r[i + 1]; ++e) ascending = ascending && c[e - 1] < c[e];
  }
  Tensor out = make_csr(std::move(size), std::move(crow), std::move(columns), std::move(own));
  impl_of(out)->sparse->coalesced = ascending;
  return finished(std::move(out), options);
}

}  // namespace

Tensor sparse_csr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values, IntArrayRef size,
                         const TensorOptions& options) {
  return csr(crow_indices, col_indices, values, size, options);
}
Tensor sparse_csr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values,
                         const TensorOptions& options) {
  return csr(crow_indices, col_indices, values, std::nullopt, options);
}
Tensor sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain_indices, const Tensor& values,
                                IntArrayRef size, const TensorOptions& options) {
  return csr(compressed_indices, plain_indices, values, size, options);
}
Tensor sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain_indices, const Tensor& values,
                                const TensorOptions& options) {
  return csr(compressed_indices, plain_indices, values, std::nullopt, options);
}

// ---- The parts.

namespace {

const SparseParts& coo_parts(const Tensor& t, const char* what) {
  BRASA_CHECK(is_coo(t), what, " expected sparse coordinate tensor layout but got ",
              eager::sparse::is_sparse(t) ? "SparseCsr" : "Strided", ": ", t);
  return parts_of(t);
}
const SparseParts& csr_parts(const Tensor& t, const char* what) {
  BRASA_CHECK(is_csr(t), what, " expected sparse row compressed tensor layout but got ",
              eager::sparse::is_sparse(t) ? "Sparse" : "Strided", ": ", t);
  return parts_of(t);
}
void check_coalesced(const Tensor& t, const char* what) {
  BRASA_CHECK(!is_coo(t) || parts_of(t).coalesced, "Cannot get ", what,
              " on an uncoalesced tensor, please call .coalesce() first");
}

}  // namespace

Layout Tensor::layout() const {
  const auto& parts = checked_impl(*this)->sparse;
  return parts ? parts->layout : kStrided;
}
bool Tensor::is_coalesced() const { return coo_parts(*this, "is_coalesced").coalesced; }
Tensor Tensor::_indices() const { return coo_parts(*this, "_indices").indices; }
Tensor Tensor::indices() const {
  const SparseParts& parts = coo_parts(*this, "indices");
  check_coalesced(*this, "indices");
  return parts.indices;
}
Tensor Tensor::values() const {
  BRASA_CHECK(eager::sparse::is_sparse(*this), "values expected sparse tensor layout but got Strided: ", *this);
  check_coalesced(*this, "values");
  return values_of(*this);
}
Tensor Tensor::_values() const { return parts_of(*this).values.detach(); }
Tensor Tensor::crow_indices() const { return csr_parts(*this, "crow_indices").crow; }
Tensor Tensor::col_indices() const { return csr_parts(*this, "col_indices").indices; }
int64_t Tensor::_nnz() const { return nnz_of(*this); }
int64_t Tensor::sparse_dim() const {
  const auto& parts = checked_impl(*this)->sparse;
  return parts ? parts->sparse_dim : 0;
}
int64_t Tensor::dense_dim() const { return dim() - sparse_dim(); }
Tensor& Tensor::_coalesced_(bool coalesced) const {
  coo_parts(*this, "_coalesced_");
  impl_of(*this)->sparse->coalesced = coalesced;
  return const_cast<Tensor&>(*this);
}

}  // namespace brasa
