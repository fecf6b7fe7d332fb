#include "ops/index.h"

#include <algorithm>

namespace brasa::ops {

Expr linearise(const Index& index, const Shape& shape) {
  Expr e(0);
  for (size_t d = 0; d < shape.size(); ++d) e = e * shape[d] + index[d];
  return e;
}

Index delinearise(Expr linear, const Shape& shape) {
  Index out(shape.size());
  size_t first = 0;
  while (first < shape.size() && shape[first].is(1)) ++first;
  for (size_t d = shape.size(); d-- > first;) {
    if (shape[d].is(1) || shape[d].is(0)) continue;  // of an empty dimension there is no element to find
    out[d] = d == first ? linear : mod(linear, shape[d]);
    if (d > first) linear = floordiv(linear, shape[d]);
  }
  return out;
}

namespace {

// Whether a block of so many elements gets another dimension before one of `other` does: the smaller one, where that is known.
bool is_smaller(Expr block, Expr other) {
  auto divides = [](Expr a, Expr b) { return !a.is(0) && mod(b, a).is(0); };
  if (block.is_constant() && other.is_constant()) return block.constant() < other.constant();
  if (divides(block, other) != divides(other, block)) return divides(block, other);
  return block->args.size() <= other->args.size() && provably_less(block, other).value_or(true);
}

}  // namespace

Index reshaped(const Index& index, const Shape& to, const Shape& from) {
  // Blocks of dimensions with equal products map to each other; only inside a block indices have to be put together.
  Index out(from.size());
  size_t t = to.size(), f = from.size();
  while (t > 0 || f > 0) {
    if (f > 0 && from[f - 1].is(1)) {
      out[--f] = Expr(0);
      continue;
    }
    if (t > 0 && to[t - 1].is(1)) {
      --t;
      continue;
    }
    size_t t_end = t, f_end = f;
    Expr tp(1), fp(1);
    if (t > 0) tp = to[--t];
    if (f > 0) fp = from[--f];
    while (!(tp == fp)) {
      if (t > 0 && (f == 0 || is_smaller(tp, fp)))
        tp = to[--t] * tp;
      else if (f > 0)
        fp = from[--f] * fp;
      else
        break;
    }
    Shape to_block(to.begin() + t, to.begin() + t_end), from_block(from.begin() + f, from.begin() + f_end);
    Index part = delinearise(linearise(Index(index.begin() + t, index.begin() + t_end), to_block), from_block);
    std::copy(part.begin(), part.end(), out.begin() + f);
  }
  return out;
}

}  // namespace brasa::ops
