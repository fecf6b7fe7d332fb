#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/run/assemble.h"
#include "compiler/schedules/machine.h"

// Assembled graphs on disk, from process to process: for one that is there no pass runs.
namespace brasa::compiler {

/// An entry's name: a hash of all that the pipeline reads, and of its sources.
std::string graph_key(const ir::Graph& graph, const ir::Facts& facts, const CompilerOptions& options,
                      const runtime::Device& device, const Machine& machine);

/// `learned`: how many facts there were before calls of libraries added theirs; `known`: before all.
std::string assembled_bytes(const Assembled& made, const Plan& plan, const ir::Facts& facts, size_t known,
                            size_t learned);
/// Reads what `assembled_bytes` wrote for this graph; an exception for anything else. Adds the facts again.
Assembled read_assembled(std::string_view bytes, const ir::Graph& graph, const CompilerOptions& options,
                         ir::Facts& facts);

/// Nothing where the disk cache does not have it.
std::optional<Assembled> find_assembled(const std::string& key, const ir::Graph& graph, const CompilerOptions& options,
                                        ir::Facts& facts);

/// How many were found, for tests.
int64_t assembled_graphs_found();

}  // namespace brasa::compiler
