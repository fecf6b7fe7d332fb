#pragma once

#include "compiler/passes/passes.h"

namespace brasa::compiler {

/// Attention to caches of keys and values into which a row was written reads the caches as they were before, and the row beside them: the
/// written caches need not be in memory for it.
void read_attention_caches(Primitives& p, const PassContext& context);

}  // namespace brasa::compiler
