#include "transforms/control_flow.h"

#include "support/error.h"
#include "support/lazy.h"
#include "transforms/branch.h"
#include "transforms/loop.h"
#include "transforms/while.h"

namespace brasa::transforms {

const ControlFlow& control_flow(const ops::Row& row) {
  static constinit Lazy<std::unordered_map<std::string_view, ControlFlow>> kRules([] {
    return std::unordered_map<std::string_view, ControlFlow>{
        {"prim::scan_loop", {loop_vjp, loop_jvp, batched_loop}},
        {"prim::cond", {branch_vjp, branch_jvp, batched_branch}},
        {"prim::while_loop", {while_vjp, while_jvp, batched_while}},
    };
  });
  auto it = kRules->find(row.name());
  BRASA_ASSERT(it != kRules->end(), row.name(), " has no rules");
  return it->second;
}

}  // namespace brasa::transforms
