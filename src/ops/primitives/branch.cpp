#include "ops/branch.h"

#include "ops/primitives/families.h"
#include "ops/primitives/interp.h"
#include "support/error.h"

// One of two graphs, by a value. Its derivatives and its batching are those of its bodies: transforms/branch.h.
namespace brasa::ops {
namespace {

std::vector<Type> cond_types(const Args& args) {
  BranchNode n(args);
  const Type& p = type_of(n.predicate);
  BRASA_CHECK(p.dtype == DType::Bool && p.rank() == 0, "cond: the predicate is ", p, ", expected one bool");
  std::vector<Type> results;
  for (const ir::Graph* body : {&n.yes, &n.no}) {
    check_body("cond", *body, n.operands, n.sizes);
    std::vector<Type> given;
    for (const Type& t : result_types(*body)) given.push_back(outside(t, n.sizes));
    if (body == &n.yes) results = given;
    BRASA_CHECK(given.size() == results.size(), "cond: the bodies give ", results.size(), " and ", given.size(),
                " values");
    for (size_t i = 0; i < given.size(); ++i) {
      BRASA_CHECK(given[i].dtype == results[i].dtype && may_equal(given[i].shape, results[i].shape), "cond: result ", i,
                  " is ", results[i], " or ", given[i]);
    }
  }
  return results;
}

std::vector<Array> evaluate_cond(const Node& node, std::span<const Array* const> in) {
  BranchNode n(node);
  std::vector<Array> operands;
  for (const Array* a : in.subspan(1)) operands.push_back(*a);
  std::vector<Array> out = evaluate_body(*outside(get_int(*in[0], 0) ? n.yes : n.no, n.sizes), std::move(operands));
  out.resize(node.types.size());  // without what became of the checks
  return out;
}

}  // namespace

void add_branch_primitives(Table& t) {
  t.prim("cond(Tensor predicate, Tensor[] operands, SymInt[] sizes, Graph yes, Graph no) -> Tensor[]")
      .kind(Kind::Loop)
      .doc(
          "What the body `yes` makes of the operands where the predicate, one bool, holds, and else what `no` makes. `sizes` says what the "
          "bodies' symbols are. Only one of them runs.")
      .type(cond_types)
      .eval(evaluate_cond);
}

}  // namespace brasa::ops
