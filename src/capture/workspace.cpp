#include "capture/workspace.h"

#include <utility>
#include <vector>

#include "support/thread_object.h"

#include "tensor/geometry.h"

namespace brasa::capture {

using Spare = ThreadObject<std::vector<Workspace>>;

Order order_of(const Held& h) { return is_row_major(h.sizes(), h.strides()) ? Order() : order_in_memory(h.strides()); }

Layout::Layout(const Held& h) : sizes(h.sizes()), strides(h.strides()) {
  Order order = order_of(h);
  for (size_t k = 0; k < order.size(); ++k) sizes[k] = h.sizes()[order[k]];
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
