#pragma once

#include "ir/graph.h"

namespace brasa::compiler {

// Of the IR, what the compiler calls by its name alone.
using ir::Expr;
using ir::Node;
using ir::Shape;
using ir::Value;

}  // namespace brasa::compiler
