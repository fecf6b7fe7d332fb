#pragma once

#include "ops/table.h"

namespace brasa::transforms {

/// What rows of other primitives say of themselves, for those of Kind::Loop: it follows from their bodies.
struct ControlFlow {
  std::vector<ir::Value> (*vjp)(const ir::Node& n, std::span<const ir::Value> cts, const std::vector<bool>& needs);
  std::vector<ir::Value> (*jvp)(const ir::Node& n, std::span<const ir::Value> tangents);
  std::vector<ir::Value> (*batch)(const ir::Node& n, std::span<const ir::Value> operands,
                                  const std::vector<bool>& mapped, ir::Expr count);
};
const ControlFlow& control_flow(const ops::Row& row);

}  // namespace brasa::transforms
