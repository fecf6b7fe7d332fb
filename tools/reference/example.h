#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/table.h"
#include "signature.h"

namespace brasa::reference {

/// A call of the row on its most telling sample, as C++ that prints the results; nothing without samples. `function` is the
/// row's C++ function, null where it has none.
std::optional<std::string> example_of(const ops::Row& row, const gen::Signature* function);

}  // namespace brasa::reference
