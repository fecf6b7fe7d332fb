#include "ops/positions.h"

#include "support/error.h"

namespace brasa::ops {

Value with_sizes(Value v, const Shape& shape) {
  if (shape_of(v) == shape) return v;
  BRASA_CHECK(rank_of(v) == static_cast<int64_t>(shape.size()), "expected a tensor of shape ", shape, ", got ",
              type_of(v));
  for (int64_t d = 0; d < rank_of(v); ++d)
    BRASA_CHECK(same_size(size_of(v, d), shape[d]), "expected a tensor of shape ", shape, ", got ", type_of(v));
  return prim::slice(v, std::vector<Expr>(shape.size(), Expr(0)), shape, std::vector<Expr>(shape.size(), Expr(1)));
}

Value segment_starts(Value lengths) {
  int64_t last = rank_of(lengths) - 1;
  return pad_dim(prim::scan(convert(lengths, DType::Int64), last, "add"), last, 1, 0);
}

Value segment_of(Value starts, Expr n) {
  int64_t last = rank_of(starts) - 1;
  Shape shape = shape_of(starts), wide = shape;
  wide[last] = n + 1;
  // Starts at the very end, of empty segments, are counted in a place of their own.
  Value marks =
      prim::scatter(full(0, wide, DType::Int64), indices_along(shape, last, minimum(starts, size_tensor(n, shape))),
                    full(1, shape, DType::Int64), counted(0, last + 1), "add");
  return narrow(prim::scan(marks, last, "add"), last, 0, n) - 1;
}

}  // namespace brasa::ops
