#pragma once

#include "compiler/schedules/schedule.h"

namespace brasa::compiler {

struct ProductSchedule {
  Schedule schedule;
  double work;  // of one parallel iteration, in simple instructions
};
/// Of a product of matrices on a CPU: its tile of registers, what is staged, and which rows and columns are a task.
ProductSchedule schedule_product(const Group& group, const Machine& machine);

}  // namespace brasa::compiler
