#pragma once

#include <string>
#include <utility>
#include <vector>

#include "export/captured.h"

namespace brasa::exporting {

/// Says in what was recorded which integers the function reads, and cuts the graph into stages. `outputs`: by integer, which of the graph's outputs
/// in fresh memory it is read of; those that are no results besides are outputs no more. `requirements`: what assertions say.
void take_integers(Captured& out, const std::vector<Count>& counts, const std::vector<int>& outputs,
                   const std::vector<std::pair<ir::Expr, std::string>>& requirements);

}  // namespace brasa::exporting
