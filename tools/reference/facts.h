#pragma once

#include <string>
#include <vector>

#include "ops/table.h"

namespace brasa::reference {

/// What the rules of a row say about its samples.
struct Facts {
  std::vector<DType> dtypes;  // that its tensors may have; empty if it takes none
  bool differentiable = false;
};
Facts facts_of(const ops::Row& row);

/// The types of a sample's results; brasa::Error if the row does not take it. `dtype` stands for the one of the sample's
/// first tensor.
std::vector<ir::Type> result_types(const ops::Row& row, const ops::Sample& sample, std::optional<DType> dtype = {});

}  // namespace brasa::reference
