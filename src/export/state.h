#pragma once

#include <deque>
#include <vector>

#include <brasa/export_program.h>

#include "export/captured.h"
#include "export/words.h"

namespace brasa::exporting {

/// What the captures write, and what they read of the modules and optimizers that the options list, with names: the listed ones first, in
/// their order. What they write of `program` has its names.
std::vector<StateTensor> state_of(const std::deque<Captured>& captured, const Surroundings& surroundings,
                                  const ExportOptions& options, const nn::Module* program);

}  // namespace brasa::exporting
