#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/lowering/lower.h"
#include "compiler/passes/passes.h"
#include "compiler/run/plan.h"

namespace brasa::compiler {

/// A group's kernels, made once for all groups that are the same.
struct GroupKernels {
  Schedule schedule;
  std::vector<Lowered> lowered;
  std::unordered_map<size_t, std::vector<size_t>>
      kernels;  // by calls in a launch: positions among all distinct kernels
};

/// A graph as loops, kernel by kernel, before there is code.
struct LoweredGraph {
  std::unique_ptr<ir::Graph> graph;  // of primitives; the plan names its values
  DefinedSymbols defined;            // in the plan's sizes
  Plan plan;
  std::unordered_map<std::string, GroupKernels> made;
  std::vector<GroupKernels*> of_step;  // of the plan
  std::vector<size_t> calls;           // by step: those from it on that are one launch; 0: of one that began before
  std::vector<std::string> texts;      // of each distinct kernel
};

}  // namespace brasa::compiler
