#pragma once

#include "compiler/loops/linearize.h"

namespace brasa::compiler {

/// What a loop graph must be like beyond the types of its nodes; brasa::InternalError with its text if it is not.
void check_loops(const LoopAnalysis& analysis);

}  // namespace brasa::compiler
