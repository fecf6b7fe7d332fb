#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <brasa/compile.h>

#include "compiler/compile.h"
#include "compiler/run/executable.h"

namespace brasa::capture {

/// By input of a graph, or empty: see compiler::CompilerOptions.
using Lasting = std::vector<bool>;

/// Makes a captured graph of operators ready to run on a device. What it assumes of the sizes goes to `facts`, which knows those of this
/// call; an exception where sizes are symbolic asks for a graph with constant ones.
using Backend = std::function<std::shared_ptr<compiler::Executable>(const ir::Graph& graph, ir::Facts& facts,
                                                                    const CompileOptions& options,
                                                                    runtime::Device& device, const Lasting& lasting)>;

/// A backend of the program's own, which errors call `name`.
Backend adapted(const std::string& name, brasa::Backend backend);
/// brasa::Error that lists the names if there is none of this one.
Backend find_backend(const std::string& name);
std::vector<std::string> backend_names();
void register_backend(std::string name, Backend backend);
bool is_built_in(const std::string& name);
/// What these options say, or what holds without them.
compiler::Numbers numbers_of(const CompileOptions& options);
bool traces_nan(const CompileOptions& options);
/// brasa::Error where a backend of Brasa's own does not know an option.
void check_options(const CompileOptions& options);

}  // namespace brasa::capture
