#include "tensor/result_order.h"

#include <algorithm>
#include <numeric>

#include "support/lazy.h"
#include "tensor/tensor_impl.h"

namespace brasa::eager {
namespace {

using Kind = CallArg::Kind;

const TensorImpl* tensor_at(CallArgs args, size_t i) {
  return i < args.size() && args[i].kind == Kind::Tensor && args[i].tensor->defined() ? impl_of(*args[i].tensor)
                                                                                      : nullptr;
}

// Where PyTorch has a kernel for it: batch dimensions that agree, features of one size beside each other.
bool has_kernel(const TensorImpl& q, const TensorImpl& k, const TensorImpl& v, bool grouped_heads) {
  int64_t rank = q.rank(), heads = rank - 3;
  if ((rank != 3 && rank != 4) || k.rank() != rank || v.rank() != rank || k.sizes[rank - 2] == 0) return false;
  for (const TensorImpl* t : {&k, &v}) {
    if (t->strides[rank - 1] != 1 || t->sizes[rank - 1] != q.sizes[rank - 1]) return false;
    for (int64_t d = 0; d < rank - 2; ++d)
      if (t->sizes[d] != q.sizes[d] && !(grouped_heads && d == heads)) return false;
  }
  return q.strides[rank - 1] == 1 && !may_overlap_itself(q.sizes, q.strides);
}

struct Attention {
  const ops::Row *any = &ops::at("aten::scaled_dot_product_attention"),
                 *kernel = &ops::at("aten::_scaled_dot_product_flash_attention_for_cpu");
};

bool is_attention_with_kernel(const Operator& op, CallArgs args) {
  static constinit Lazy<Attention> attention;
  if (&op.row() != attention->any && &op.row() != attention->kernel) return false;
  const TensorImpl *q = tensor_at(args, 0), *k = tensor_at(args, 1), *v = tensor_at(args, 2);
  if (!q || !k || !v || q->contiguous) return false;
  bool flag = args.size() > 7 && args[7].kind == Kind::Bool && args[7].integer;
  if (!has_kernel(*q, *k, *v, &op.row() == attention->any && flag)) return false;
  if (&op.row() == attention->kernel) return true;
  const TensorImpl* mask = tensor_at(args, 3);
  bool drops = args.size() > 4 && is_number(args[4]) && number_of(args[4]).toDouble() != 0;
  return !drops && (!mask || mask->rank() == 2 || mask->rank() == 4);
}

}  // namespace

Sizes order_of_result(const Operator& op, CallArgs args) {
  if (!is_attention_with_kernel(op, args)) return {};
  const Sizes& strides = impl_of(*args[0].tensor)->strides;
  Sizes order(strides.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return strides[a] > strides[b]; });
  return std::is_sorted(order.begin(), order.end()) ? Sizes() : order;
}

Sizes order_of_result(const Orders& orders, size_t r) {
  return orders.results.empty() ? Sizes() : orders.results[std::min(r, orders.results.size() - 1)];
}

void name_in_order(const Tensor& t, const Sizes& order) {
  TensorImpl& impl = *impl_of(t);
  Sizes sizes = impl.sizes, strides = impl.strides;
  for (size_t k = 0; k < order.size(); ++k) {
    impl.sizes[order[k]] = sizes[k];
    impl.strides[order[k]] = strides[k];
  }
  if (is_row_major(impl.sizes, impl.strides)) impl.strides = row_major_strides(impl.sizes);
  impl.refresh();
}

}  // namespace brasa::eager
