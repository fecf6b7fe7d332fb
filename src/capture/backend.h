#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compiler/executable.h"

namespace brasa::capture {

/// Makes a captured graph of operators (constant sizes) ready to run.
using Backend = std::function<std::shared_ptr<compiler::Executable>(const ir::Graph& graph, const std::string& mode)>;

/// brasa::Error that lists the names if there is none of this one.
Backend find_backend(const std::string& name);
std::vector<std::string> backend_names();
void register_backend(std::string name, Backend backend);

}  // namespace brasa::capture
