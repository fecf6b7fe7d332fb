#pragma once

#include "compiler/fusion/fuse.h"

namespace brasa::compiler {

/// The group's own input for a value of the whole graph; absent where it reads none such.
ir::Value input_for(const Group& g, ir::Value whole);
/// Whether every read of `old` in the group is of the element that the same iteration makes, so that its result may lie in the same memory.
bool same_elements(const Group& g, ir::Value old);
/// Puts the outputs of a group, each of which may overwrite one of its inputs, in an order in which every input is loaded before it is overwritten:
/// by the output itself, or an earlier one. False if there is none. Through a reshape the same element may be loaded anew, as another expression of
/// the indices.
bool order_stores(Group& g, const std::vector<ir::Value>& overwritten);

}  // namespace brasa::compiler
