#pragma once

#include <memory>

#include "compiler/run/executable.h"

namespace brasa::eager {

/// Makes an eager graph ready to run: the compiler, or the reference interpreter if BRASA_EAGER_BACKEND=interpreter.
std::shared_ptr<compiler::Executable> executable_of(const ir::Graph& graph, ir::Facts& facts, runtime::Device& device);

}  // namespace brasa::eager
