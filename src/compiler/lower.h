#pragma once

#include <memory>
#include <vector>

#include "compiler/schedule.h"

namespace brasa::compiler {

/// A kernel as a loop graph. Its buffers are tensors of the group: input i is i, output i is inputs + i.
struct Lowered {
  std::unique_ptr<ir::Graph> loops;
  std::vector<int> buffers;
  double work = 1;  // of one parallel iteration, in simple instructions
};

/// The elements that a tensor spans in memory; without strides it is contiguous.
ir::Expr span_of(const ir::Type& t, const std::vector<ir::Expr>& strides);

/// The kernels of a group, in the order in which they run.
std::vector<Lowered> lower(const Group& group, const Schedule& schedule, const Machine& machine);

// One function a sort of group; each builds loops that obey the schedule.
void lower_loops(const Group& group, const Schedule& schedule, const Machine& machine, std::vector<Lowered>& out);
void lower_contraction(const Group& group, const Schedule& schedule, const Machine& machine, std::vector<Lowered>& out);
void lower_scan(const Group& group, const Schedule& schedule, const Machine& machine, std::vector<Lowered>& out);
void lower_scatter(const Group& group, const Schedule& schedule, const Machine& machine, std::vector<Lowered>& out);

}  // namespace brasa::compiler
