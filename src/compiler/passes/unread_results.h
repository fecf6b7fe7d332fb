#pragma once

#include "compiler/passes/passes.h"

namespace brasa::compiler {

/// What a loop's steps give beside the states and nobody reads is not computed.
void drop_unread_results(Primitives& p, const PassContext& context);

}  // namespace brasa::compiler
