#include "compiler/schedules/schedule.h"

namespace brasa::compiler {

Schedule schedule(const Group& group, const Machine& machine) {
  return machine.gpu ? schedule_gpu(group, machine) : schedule_cpu(group, machine);
}

}  // namespace brasa::compiler
