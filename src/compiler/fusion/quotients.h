#pragma once

#include "compiler/fusion/fuse.h"

namespace brasa::compiler {

/// The group's domain with dimensions cut where places along them are quotients and remainders, so that each piece takes even steps: a
/// result's dimension that a reshape made of several is these again. Only of elements without sums, and never the last dimension, which
/// vectors run along.
Domain without_quotients(const Group& group);

}  // namespace brasa::compiler
