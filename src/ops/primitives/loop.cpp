#include "ops/loop.h"

#include <algorithm>

#include "ops/primitives/families.h"
#include "ops/primitives/interp.h"
#include "support/error.h"

// A loop over the items of tensors. Its derivatives and its batching are those of its body: transforms/loop.h.
namespace brasa::ops {
namespace {

// Text may hold any arguments, so everything that LoopNode relies on is looked at.
void check_arguments(const Args& args) {
  const auto& operands = args[0].get<std::vector<Value>>();
  const ir::Graph& body = *args[6].get<ir::Body>();
  std::optional<int64_t> carried = args[3].get<Expr>().maybe_constant(), along = args[4].get<Expr>().maybe_constant();
  auto count = static_cast<int64_t>(operands.size());
  BRASA_CHECK(carried && along && *carried >= 0 && *along >= 0 && *carried <= count && *along <= count - *carried,
              "scan_loop: of ", count, " operands ", args[3].get<Expr>(), " cannot be states and ", args[4].get<Expr>(),
              " be gone along");
  check_body("scan_loop", body, operands.size(), args[2].get<std::vector<Expr>>());
}

std::vector<Type> loop_types(const Args& args) {
  check_arguments(args);
  LoopNode n(args, 0);
  auto outside = [&](const Type& t, std::optional<Expr> first) {
    Type out = ops::outside(t, n.sizes);
    if (first) out.shape.insert(out.shape.begin(), *first);
    return out;
  };
  for (size_t i = 0; i < n.operands.size(); ++i) {
    bool item = i >= n.carried && i < n.carried + n.along;
    Type want = outside(type_of(n.body.inputs()[i].value), item ? std::optional(n.steps) : std::nullopt);
    const Type& got = type_of(n.operands[i]);
    BRASA_CHECK(got.dtype == want.dtype && may_equal(got.shape, want.shape), "scan_loop: operand ", i, " is ", got,
                ", expected ", want);
  }
  std::vector<Type> states, results;
  for (const Type& after : ops::result_types(n.body)) {
    if (states.size() == n.carried) {
      results.push_back(outside(after, n.steps));
      continue;
    }
    const Type& before = type_of(n.body.inputs()[states.size()].value);
    BRASA_CHECK(after.dtype == before.dtype && may_equal(after.shape, before.shape), "scan_loop: state ", states.size(),
                " is ", before, " before a step, and ", after, " after it");
    states.push_back(outside(before, n.steps + 1));
  }
  BRASA_CHECK(states.size() == n.carried, "scan_loop: a step gives ", states.size(), " of ", n.carried, " states");
  states.insert(states.end(), results.begin(), results.end());
  return states;
}

Array item(const Array& all, int64_t at) {
  Array out = make_array(all.dtype, {all.shape.begin() + 1, all.shape.end()});
  std::copy_n(all.data.begin() + static_cast<std::ptrdiff_t>(at * static_cast<int64_t>(out.data.size())),
              out.data.size(), out.data.begin());
  return out;
}
void set_item(Array& all, int64_t at, const Array& one) {
  std::copy(one.data.begin(), one.data.end(),
            all.data.begin() + static_cast<std::ptrdiff_t>(at * static_cast<int64_t>(one.data.size())));
}

std::vector<Array> evaluate_loop(const Node& node, std::span<const Array* const> in) {
  LoopNode n(node);
  std::unique_ptr<ir::Graph> body = n.body_outside();
  int64_t steps = n.steps.constant();
  std::vector<Array> out, operands;
  for (size_t r = 0; r < node.types.size(); ++r) out.push_back(result_array(node, r));
  for (const Array* a : in) operands.push_back(*a);
  for (size_t i = 0; i < n.carried; ++i) set_item(out[i], n.reverse ? steps : 0, operands[i]);
  for (int64_t k = 0; k < steps; ++k) {
    int64_t t = n.reverse ? steps - 1 - k : k;
    for (size_t i = n.carried; i < n.carried + n.along; ++i) operands[i] = item(*in[i], t);
    std::vector<Array> results = evaluate_body(*body, operands);
    for (size_t i = 0; i < out.size(); ++i) {
      set_item(out[i], i < n.carried && !n.reverse ? t + 1 : t, results[i]);
      if (i < n.carried) operands[i] = std::move(results[i]);
    }
  }
  return out;
}

}  // namespace

void add_loop_primitives(Table& t) {
  t.prim(
       "scan_loop(Tensor[] operands, SymInt steps, SymInt[] sizes, SymInt carried, SymInt along, bool reverse, Graph body)"
       " -> Tensor[]")
      .kind(Kind::Loop)
      .doc(
          "Of the operands the first `carried` are states, the next `along` give each step one item of their first dimension, and each "
          "step sees the rest. The body makes of states, items and rest the next states, and more; `sizes` says what its symbols "
          "are. The results are the trace of each state, one longer than there are steps, and what the steps gave.")
      .type(loop_types)
      .eval(evaluate_loop);
}

}  // namespace brasa::ops
