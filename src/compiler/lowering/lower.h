#pragma once

#include <memory>
#include <vector>

#include "compiler/schedules/schedule.h"

namespace brasa::compiler {

/// A kernel as a loop graph. Its buffers are tensors of the group: input i is i, output i is inputs + i. Its numbers are elements of
/// inputs.
struct Lowered {
  std::unique_ptr<ir::Graph> loops;
  std::vector<int> buffers;
  struct Number {
    int input;
    int64_t element;
  };
  std::vector<Number> numbers;
  int64_t grain = 1, beside = 0;  // of its schedule
};

/// The elements that a tensor spans in memory; without strides it is contiguous.
ir::Expr span_of(const ir::Type& t, const std::vector<ir::Expr>& strides);

/// The kernels of a group, in the order in which they run.
std::vector<Lowered> lower(const Group& group, const Schedule& schedule);

/// The tensor that a scatter starts from, as a group on its own that fills the result.
Group initial_value(const Group& scatter);

// One function a sort of group; each builds loops that obey the schedule.
void lower_loops(const Group& group, const Schedule& schedule, std::vector<Lowered>& out);
void lower_contraction(const Group& group, const Schedule& schedule, std::vector<Lowered>& out);
void lower_scatter(const Group& group, const Schedule& schedule, std::vector<Lowered>& out);

}  // namespace brasa::compiler
