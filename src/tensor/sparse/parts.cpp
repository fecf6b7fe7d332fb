#include "tensor/sparse/parts.h"

#include <brasa/factories.h>
#include <brasa/ops_generated.h>

#include "support/error.h"
#include "support/mutex.h"
#include "tensor/autograd/meta.h"
#include "tensor/geometry.h"
#include "tensor/recorder.h"

// Sparse tensors as objects: their parts, and how a gradient comes back to a leaf.
namespace brasa::eager::sparse {

bool any_in_list(const CallArg& a) {
  for (uint32_t i = 0; i < a.size; ++i) {
    if (a.kind == CallArg::Kind::Tensors && is_sparse(a.tensor[i])) return true;
    if (a.kind == CallArg::Kind::OptionalTensors && a.optional_tensor[i] && is_sparse(*a.optional_tensor[i]))
      return true;
  }
  return false;
}

const SparseParts& parts_of(const Tensor& t) {
  const TensorImpl* impl = checked_impl(t);
  BRASA_CHECK(impl->sparse, "expected a sparse tensor, got ", t);
  return *impl->sparse;
}

namespace {

Tensor make(std::vector<int64_t> sizes, SparseParts parts) {
  BRASA_CHECK(impl_of(parts.values)->device().on_host(), "sparse tensors live on the CPU alone, got values ",
              parts.values);
  auto* impl = new TensorImpl;
  Tensor out(impl);
  impl->storage = StorageRef(Storage::make(0));
  impl->dtype = parts.values.scalar_type();
  impl->sizes.assign(sizes.data(), sizes.size());
  impl->strides.assign(std::vector<int64_t>(sizes.size(), 0).data(), sizes.size());
  impl->numel = product(impl->sizes);
  impl->contiguous = false;
  impl->inference = InferenceMode::is_enabled();
  impl->sparse = std::make_unique<SparseParts>(std::move(parts));
  return out;
}

// The gradient of a leaf has the leaf's pattern.
class LeafValues final : public autograd::Node {
 public:
  explicit LeafValues(const Tensor& leaf) : sizes_(leaf.sizes()), parts_(parts_of(leaf)) {
    next_edges_.push_back(autograd::gradient_edge(leaf));
    internals_->results.emplace_back(parts_.values);
    parts_.values.reset();
    // As a leaf it is outside of any recording.
    sequence_nr_ = 0;
  }
  std::string name() const override { return "SparseValuesBackward"; }

 protected:
  autograd::variable_list apply(autograd::variable_list&& gradients) override {
    if (!gradients[0].defined()) return {Tensor()};
    SparseParts parts = parts_;
    parts.values = std::move(gradients[0]);
    return {make(sizes_, std::move(parts))};
  }

 private:
  std::vector<int64_t> sizes_;
  SparseParts parts_;
};

}  // namespace

Tensor values_of(const Tensor& t) {
  const SparseParts& parts = parts_of(t);
  const auto& meta = impl_of(t)->autograd;
  if (!GradMode::is_enabled() || !meta || !meta->requires_grad) return parts.values;
  Tensor out = parts.values.detach();
  autograd::set_history(out, autograd::make_node<LeafValues>(t), 0);
  return out;
}

Tensor rows_of(const Tensor& t) {
  SparseParts& parts = *impl_of(t)->sparse;
  if (parts.layout == kSparse) return parts.indices.select(0, 0);
  // Tensors may be read by several threads.
  static Mutex mutex;
  {
    std::lock_guard lock(mutex);
    if (parts.rows.defined()) return parts.rows;
  }
  NoGradGuard guard;
  // Outside of a recording, unless it made the tensor: the next one would make them again.
  bool recorded = impl_of(parts.crow)->storage->recorder() != nullptr;
  Recorder::Scope scope(recorded ? Recorder::current() : nullptr);
  int64_t rows = t.size(0), entries = parts.values.size(0);
  // One where each row but the first begins; behind the last entry there is one place more.
  Tensor starts = zeros({entries + 1}, kLong);
  if (rows > 1) starts.index_add_(0, parts.crow.slice(0, 1, rows), ones({rows - 1}, kLong));
  Tensor out = starts.slice(0, 0, entries).cumsum(0);
  std::lock_guard lock(mutex);
  if (!recorded) parts.rows = out;
  return out;
}

Tensor coordinate(const Tensor& t, int64_t dim) {
  const SparseParts& parts = parts_of(t);
  if (parts.layout == kSparse) return parts.indices.select(0, dim);
  return dim == 0 ? rows_of(t) : parts.indices;
}

Tensor make_coo(std::vector<int64_t> sizes, Tensor indices, Tensor values, bool coalesced) {
  SparseParts parts;
  parts.sparse_dim = indices.size(0);
  parts.coalesced = coalesced;
  parts.indices = std::move(indices);
  parts.values = std::move(values);
  return make(std::move(sizes), std::move(parts));
}

Tensor make_csr(std::vector<int64_t> sizes, Tensor crow, Tensor columns, Tensor values) {
  SparseParts parts;
  parts.layout = kSparseCsr;
  parts.sparse_dim = 2;
  parts.coalesced = true;
  parts.crow = std::move(crow);
  parts.indices = std::move(columns);
  parts.values = std::move(values);
  return make(std::move(sizes), std::move(parts));
}

Tensor with_values(const Tensor& t, const Tensor& values) {
  SparseParts parts = parts_of(t);
  parts.values = values;
  return make(t.sizes(), std::move(parts));
}

Tensor detached(const Tensor& t) { return with_values(t, parts_of(t).values.detach()); }

int64_t product_of(IntArrayRef sizes) { return product({sizes.data(), sizes.size()}); }

Tensor counting(int64_t n) { return ones({n}, kLong).cumsum(0) - 1; }

Tensor positions(const Tensor& mask) { return mask.nonzero().select(1, 0); }

Tensor flat_index(const Tensor& indices, IntArrayRef sizes) {
  if (sizes.empty()) return zeros({indices.size(1)}, kLong);
  Tensor out = indices.select(0, 0);
  for (size_t d = 1; d < sizes.size(); ++d) out = out * sizes[d] + indices.select(0, static_cast<int64_t>(d));
  return out;
}

Tensor add_up(const Tensor& values, const Tensor& group, int64_t groups) {
  if (values.scalar_type() == kBool) return add_up(values.to(kInt), group, groups).ne(0);
  std::vector<int64_t> sizes = values.sizes();
  sizes[0] = groups;
  return zeros(sizes, values.options()).index_add_(0, group, values);
}

Pairs pairs(const Tensor& key, const Tensor& wanted) {
  NoGradGuard guard;
  auto [sorted, order] = key.sort();
  Tensor first = searchsorted(sorted, wanted), counts = searchsorted(sorted, wanted, false, true) - first;
  Tensor from = repeat_interleave(counts);
  Tensor within = counting(from.size(0)) - (counts.cumsum(0) - counts).index_select(0, from);
  return {from, order.index_select(0, first.index_select(0, from) + within)};
}

}  // namespace brasa::eager::sparse
