#pragma once

#include <optional>

#include "compiler/fusion/fuse.h"
#include "compiler/fusion/indexing.h"

namespace brasa::compiler {

/// A dimension of a group's domain along which its results differ from what they overwrite at one place at most: where the element `index`
/// of `at`, a value of the group, says.
struct ChangedPlace {
  size_t dim;
  ir::Value at;
  Index index;
  friend bool operator==(const ChangedPlace&, const ChangedPlace&) = default;
};
/// Of a group all of whose results overwrite inputs (Group::overwritten): the first such dimension.
std::optional<ChangedPlace> changed_place(const Group& group);

}  // namespace brasa::compiler
