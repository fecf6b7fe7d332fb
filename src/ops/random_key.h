#pragma once

#include "ir/graph.h"

namespace brasa::ops {

/// A generator's key of its own, drawn from a row's share of the stream, for more numbers than that share.
ir::Value derived_key(ir::Value key);

}  // namespace brasa::ops
