#include "compiler/schedules/schedule.h"

namespace brasa::compiler {

Schedule schedule(const Group& group, const Machine& machine) {
  return machine.gpu ? schedule_gpu(group, machine) : schedule_cpu(group, machine);
}

ir::Expr Schedule::chains_of(const Axis& axis) const {
  bool few = axis.extent.is_constant() && axis.extent.constant() <= chains;
  return few ? axis.extent : ir::Expr(chains);
}

}  // namespace brasa::compiler
