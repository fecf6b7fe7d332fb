#pragma once

#include <string_view>

#include "ops/table.h"

namespace brasa::eager {

/// What a name calls: "aten::add_.Tensor" is the in-place form of "aten::add.Tensor".
struct Target {
  const ops::Row* row = nullptr;
  bool in_place = false;
};
/// brasa::Error if there is no such operator.
Target target_of(std::string_view name);

}  // namespace brasa::eager
