#include "compiler/fusion/indexing.h"
#include "compiler/passes/transform.h"
#include "ops/running.h"

namespace brasa::compiler {

namespace prim = ops::prim;

DType accumulator_of(DType t) { return is_reduced_floating(t) ? DType::Float32 : t; }

namespace {

bool sums_reduced_floats(const Node* n) {
  Prim p = prim_of(n);
  if (p != Prim::Reduce && p != Prim::ArgReduce && p != Prim::Scatter && p != Prim::Scan) return false;
  return is_reduced_floating(type_of(n->arg<Value>(0)).dtype);
}

}  // namespace

void widen_accumulators(Primitives& p, const PassContext& context) {
  transform(
      p, context.facts, sums_reduced_floats, [](const Node* n, ir::Args& args, Primitives&) -> std::vector<Value> {
        auto wide = [](const ir::Arg& a) {
          Value v = a.get<Value>();
          return prim::convert(v, accumulator_of(ops::dtype_of(v)));
        };
        DType t = ops::dtype_of(args[0].get<Value>());
        switch (prim_of(n)) {
          case Prim::Reduce:
            return {prim::convert(prim::reduce(wide(args[0]), int_args(n, 1), args[2].get<std::string>()), t)};
          case Prim::ArgReduce:
            return {prim::arg_reduce(wide(args[0]), n->arg<ir::Expr>(1).constant(), args[2].get<std::string>())};
          case Prim::Scan: {
            int64_t dim = n->arg<ir::Expr>(1).constant();
            Value x = wide(args[0]);
            if (args[3].is_none()) return {prim::convert(prim::scan(x, dim, args[2].get<std::string>()), t)};
            return {prim::convert(prim::recurrence(x, wide(args[3]), dim), t)};
          }
          default: {
            const auto& how = args[4].get<std::string>();
            if (how.empty()) return {};
            return {prim::convert(
                prim::scatter(wide(args[0]), args[1].get<std::vector<Value>>(), wide(args[2]), int_args(n, 3), how),
                t)};
          }
        }
      });
}

}  // namespace brasa::compiler
