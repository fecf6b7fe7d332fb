#include "capture/workspace.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "support/thread_object.h"

#include "tensor/geometry.h"

namespace brasa::capture {

using Spare = ThreadObject<std::vector<Workspace>>;

Order order_of(const Held& h) {
  if (is_row_major(h.sizes, h.strides)) return {};
  Order order(h.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return h.strides[a] > h.strides[b]; });
  return order;
}

Layout::Layout(const Held& h) : sizes(h.sizes), strides(h.strides) {
  Order order = order_of(h);
  for (size_t k = 0; k < order.size(); ++k) sizes[k] = h.sizes[order[k]];
  if (!order.empty()) strides = row_major_strides(sizes);
}

Workspace Workspace::take() {
  std::vector<Workspace>* spare = Spare::get();
  if (!spare || spare->empty()) return {};
  Workspace out = std::move(spare->back());
  spare->pop_back();
  return out;
}

void Workspace::give(Workspace workspace) {
  if (std::vector<Workspace>* spare = Spare::get()) spare->push_back(std::move(workspace));
}

}  // namespace brasa::capture
