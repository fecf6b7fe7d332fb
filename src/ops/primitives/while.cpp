#include "ops/while.h"

#include "ops/primitives/families.h"
#include "ops/primitives/interp.h"
#include "support/error.h"

// A loop that goes on as long as a value says so: transforms/while.h has its derivative and its batching.
namespace brasa::ops {
namespace {

std::vector<Type> while_types(const Args& args) {
  std::optional<int64_t> carried = args[2].get<Expr>().maybe_constant();
  BRASA_CHECK(carried && *carried >= 0 && *carried <= static_cast<int64_t>(args[0].get<std::vector<Value>>().size()),
              "while_loop: there are no ", args[2].get<Expr>(), " states among the operands");
  WhileNode n(args);
  for (const ir::Graph* body : {&n.go_on, &n.step}) check_body("while_loop", *body, n.operands, n.sizes);
  std::vector<Type> truth = result_types(n.go_on), after = result_types(n.step), out;
  BRASA_CHECK(truth.size() == 1 && truth[0].dtype == DType::Bool && truth[0].rank() == 0,
              "while_loop: the condition does not give one bool");
  BRASA_CHECK(after.size() == n.carried, "while_loop: a step gives ", after.size(), " of ", n.carried, " states");
  for (size_t i = 0; i < n.carried; ++i) {
    const Type& before = type_of(n.step.inputs()[i].value);
    BRASA_CHECK(after[i].dtype == before.dtype && may_equal(after[i].shape, before.shape), "while_loop: state ", i,
                " is ", before, " before a step, and ", after[i], " after it");
    out.push_back(outside(before, n.sizes));
  }
  return out;
}

std::vector<Array> evaluate_while(const Node& node, std::span<const Array* const> in) {
  WhileNode n(node);
  std::unique_ptr<ir::Graph> go_on = outside(n.go_on, n.sizes), step = outside(n.step, n.sizes);
  std::vector<Array> operands;
  for (const Array* a : in) operands.push_back(*a);
  while (get_int(evaluate_body(*go_on, operands)[0], 0)) {
    std::vector<Array> next = evaluate_body(*step, operands);
    for (size_t i = 0; i < n.carried; ++i) operands[i] = std::move(next[i]);
  }
  operands.resize(n.carried);
  return operands;
}

}  // namespace

void add_while_primitives(Table& t) {
  t.prim("while_loop(Tensor[] operands, SymInt[] sizes, SymInt carried, Graph go_on, Graph body) -> Tensor[]")
      .kind(Kind::Loop)
      .doc(
          "Of the operands the first `carried` are states. As long as `go_on` of all operands, one bool, holds, the body makes the next states "
          "of them. `sizes` says what the bodies' symbols are. The results are the last states.")
      .type(while_types)
      .eval(evaluate_while);
}

}  // namespace brasa::ops
