#include "compiler/passes/attention_caches.h"

#include <optional>

#include "compiler/fusion/indexing.h"
#include "compiler/passes/transform.h"
#include "support/lazy.h"

namespace brasa::compiler {

namespace prim = ops::prim;
using ops::shape_of;
using Dims = std::vector<int64_t>;

namespace {

// [batches, heads, length, features] where row `at` of each head was replaced by one of [batches, heads, 1, features].
struct Written {
  Value before, at, rows;
};
std::optional<Written> written(Value cache) {
  if (prim_of(cache) != Prim::Scatter || !cache.node->arg<std::string>(4).empty()) return std::nullopt;
  const auto& indices = cache.node->arg<std::vector<Value>>(1);
  if (int_args(cache.node, 3) != Dims{2} || !type_of(indices[0]).numel().is(1)) return std::nullopt;
  return Written{cache.node->arg<Value>(0), indices[0], cache.node->arg<Value>(2)};
}

Value row_of_heads(const Written& w) {
  const Shape& cache = shape_of(w.before);
  Value rows = prim::reshape(w.rows, {1, cache[0], cache[1], cache[3]});
  return prim::transpose(rows, {1, 2, 0, 3});
}

}  // namespace

void read_attention_caches(Primitives& p, const PassContext& context) {
  static constinit Lazy<const ops::Row&> row([]() -> auto& { return ops::at("prim::masked_attention"); });
  constexpr size_t kKey = 1, kValue = 2, kAt = 5;
  transform(
      p, context.facts, [](const ir::Node* n) { return n->op == &*row && n->arg(kAt).is_none(); },
      [&](const ir::Node*, ir::Args& args, Primitives&) -> std::vector<Value> {
        auto key = written(args[kKey].get<Value>()), value = written(args[kValue].get<Value>());
        if (!key || !value || !(key->at == value->at)) return {};
        Value key_row = row_of_heads(*key), value_row = row_of_heads(*value);
        ir::Args beside = args;
        beside[kKey] = key->before;
        beside[kValue] = value->before;
        beside[kAt] = key->at;
        beside[kAt + 1] = key_row;
        beside[kAt + 2] = value_row;
        return ops::Builder::current().call(*row, std::move(beside));
      });
}

}  // namespace brasa::compiler
