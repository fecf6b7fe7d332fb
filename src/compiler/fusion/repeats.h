#pragma once

#include "ir/graph.h"

// What broadcasts repeat, and how often.
namespace brasa::compiler {

/// Whether a broadcast gives elements of a row different values.
bool differs_along_rows(const ir::Node* broadcast);
/// Whether each element is read for many, of whole dimensions that it does not have. A size that nobody knows is thought to be no small one.
bool repeats_often(const ir::Node* broadcast);

/// Of known numbers.
bool far_fewer(ir::Expr few, ir::Expr many);
/// Whether `part` has far fewer elements than `whole`, and no more than a row of it.
bool is_by_channel(const ir::Type& part, const ir::Type& whole);

}  // namespace brasa::compiler
