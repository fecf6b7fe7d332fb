#pragma once

#include "func/body.h"
#include "ops/bodies.h"

namespace brasa::func {

/// Control flow with recorded bodies as a row, so that all that is done with calls of rows is done with it.
struct Flow {
  /// Builds the results from the operands, which are values of the current Builder's graph. `bodies` are functions of all operands.
  using Build = std::vector<ir::Value> (*)(const Flow& flow, const std::vector<ir::Value>& operands,
                                           const std::vector<ops::BodyFunction>& bodies);
  std::string name;  // "cond"
  Build build;
  std::vector<int64_t> attributes;
  std::vector<RecordedBody> bodies;
  size_t along = 0, beyond = 0;  // the operands from `along` to `beyond` are what a loop goes along, an item a step

  bool operator==(const Flow& other) const {
    return build == other.build && attributes == other.attributes && bodies == other.bodies && along == other.along &&
           beyond == other.beyond;
  }
};

/// Calls the row for these bodies, which is made on first use and kept: operands, sizes and numbers are its arguments.
std::vector<Tensor> call(const Flow& flow, const FlowArguments& arguments);

}  // namespace brasa::func
