#include "ops/overlap.h"

#include "ops/algebra.h"

namespace brasa::ops {
namespace {

// Windows that lie over an element along a dimension: those that begin in so many steps up to it.
int64_t near_along(const Overlap& o, size_t d) { return (o.sizes[d] + o.steps[d] - 1) / o.steps[d]; }

}  // namespace

int64_t Overlap::near() const {
  int64_t out = 1;
  for (size_t d = 0; d < dims.size(); ++d) out *= near_along(*this, d);
  return out;
}

// An element is as far behind the begin of a step as behind that of each window over it: windows are cut into steps, of which the j-th
// are moved by j steps and added.
Value overlapped(Value ct, const Overlap& o, const Shape& elements) {
  auto n = static_cast<int64_t>(o.dims.size()), first = rank_of(ct) - n;
  for (int64_t d = n; d-- > 0;) {
    int64_t near = near_along(o, d), last = first + d;
    ct = split_dim(pad_dim(ct, last, 0, near * o.steps[d] - o.sizes[d]), last, {Expr(near), Expr(o.steps[d])});
  }
  Value out;
  for (int64_t i = 0, all = o.near(); i < all; ++i) {
    Value part = ct;
    int64_t rest = i;
    for (int64_t d = 0; d < n; ++d) {
      int64_t near = near_along(o, d), j = rest % near;
      rest /= near;
      part = merge_dims(narrow(part, first + d, j, 1), first + d, first + d + 1);
      part = pad_dim(part, o.dims[d], j * o.gaps[d], (near - 1 - j) * o.gaps[d]);
    }
    out = out ? out + part : part;
  }
  for (int64_t d = n; d-- > 0;) {
    int64_t dim = o.dims[d];
    out = merge_dims(move_dims(out, {first + d}, {dim + 1}), dim, dim + 1);
    out = pad_dim(out, dim, 0, ir::max(elements[d] - size_of(out, dim), 0));
    out = narrow(out, dim, 0, elements[d]);
  }
  return out;
}

}  // namespace brasa::ops
