#pragma once

#include <functional>
#include <string>
#include <vector>

#include "export/archive_nodes.h"
#include "ir/graph.h"

namespace brasa::exporting {

/// A primitive in PyTorch's operators; the names of its results. brasa::Error where it has no form in them. `name_of` gives those of
/// operands.
std::vector<std::string> write_primitive(ArchiveNodes& to, const ir::Node& node,
                                         const std::function<std::string(ir::Value)>& name_of);

/// The same of those that a library computes: factorisations and Fourier transforms; nothing for others.
std::vector<std::string> write_factorisation(ArchiveNodes& to, const ir::Node& node,
                                             const std::function<std::string(ir::Value)>& name_of);

}  // namespace brasa::exporting
