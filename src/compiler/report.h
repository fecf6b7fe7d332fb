#pragma once

#include "compiler/compile.h"
#include "compiler/run/plan.h"
#include "compiler/schedules/schedule.h"

// What a Report says of graphs and groups.
namespace brasa::compiler {

/// "loops [8, ~16]: 2x mul reduce  {schedule}"
std::string describe(const Group& g, const Schedule& s);
/// Adds up what there would be without fusion: one kernel a primitive, each reading and writing memory.
void count_before(const ir::Graph& g, Report& report);
/// Adds what one group reads and writes.
void count_after(const Group& g, Report& report);
/// The plan's values in memory of the graph's own.
void report_memory(const Plan& p, Report& report);

}  // namespace brasa::compiler
