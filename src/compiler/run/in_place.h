#pragma once

#include "compiler/fusion/fuse.h"

namespace brasa::compiler {

/// The group's own input for a value of the whole graph; absent where it reads none such.
ir::Value input_for(const Group& g, ir::Value whole);
/// Whether every read of `old` in the group is of the element that the same iteration makes, so that its result may lie in the same memory.
bool same_elements(const Group& g, ir::Value old);

}  // namespace brasa::compiler
