#include "compiler/fusion/repeats.h"

#include "compiler/fusion/indexing.h"

namespace brasa::compiler {

namespace {

constexpr int64_t kMany = 16;

}  // namespace

bool differs_along_rows(const Node* broadcast) {
  const std::vector<int64_t> dims = int_args(broadcast, 2);
  return !dims.empty() && dims.back() + 1 == broadcast->types[0].rank() &&
         !type_of(broadcast->arg<Value>(0)).shape.back().is(1);
}

bool repeats_often(const Node* broadcast) {
  const ir::Type &whole = broadcast->types[0], &part = type_of(broadcast->arg<Value>(0));
  const std::vector<int64_t> dims = int_args(broadcast, 2);
  Expr times(1);
  for (int64_t d = 0, next = 0; d < whole.rank(); ++d) {
    bool has = next < std::ssize(dims) && dims[next] == d;
    if (!has || part.shape[next].is(1)) times = times * whole.shape[d];
    next += has;
  }
  return !times.is_constant() || times.constant() >= kMany;
}

bool far_fewer(Expr few, Expr many) {
  return few.is_constant() && many.is_constant() && few.constant() <= many.constant() / kMany;
}

bool is_by_channel(const ir::Type& part, const ir::Type& whole) {
  Expr few = part.numel();
  return whole.rank() > 0 && far_fewer(few, whole.numel()) &&
         provably_less(whole.shape.back(), few) == std::optional(false);
}

}  // namespace brasa::compiler
