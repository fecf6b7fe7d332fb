#pragma once

#include <deque>
#include <vector>

#include <brasa/export_program.h>

#include "export/captured.h"
#include "export/words.h"

namespace brasa::exporting {

/// A tensor that a user's module or optimizer has.
struct NamedTensor {
  std::string name;
  Tensor tensor;
  bool parameter = false;
};
/// Those of the modules and optimizers that the options list, then those of `program`.
std::vector<NamedTensor> named_tensors(const ExportOptions& options, const nn::Module* program);

/// What the captures write, and what they read of the modules and optimizers that the options list, with names: the listed ones first, in
/// their order. What they write of `program` has its names.
std::vector<StateTensor> state_of(const std::deque<Captured>& captured, const Surroundings& surroundings,
                                  const ExportOptions& options, const nn::Module* program);

}  // namespace brasa::exporting
