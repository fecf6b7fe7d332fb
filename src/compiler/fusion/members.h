#pragma once

#include <functional>
#include <optional>
#include <unordered_set>
#include <vector>

#include "compiler/fusion/fuse.h"
#include "compiler/fusion/places.h"

namespace brasa::compiler {

/// What a root has in a kernel over a domain: an element for each iteration, one a row, a sum over a row's or a column's; or it has no place there.
enum class Member { Full, Row, Reduce, Columns, None };

/// What the roots of kernels read in each iteration of a domain. `in_memory`, by node id: its results are read from there.
class Members {
 public:
  Members(const std::vector<bool>& in_memory, const Machine& machine) : in_memory_(in_memory), machine_(machine) {}

  Member of(const ir::Node* root, const Domain& d) const;
  /// Whether every read of the results `made` by `readers` is of the element that the same iteration (or its row) made.
  bool aligned(const std::vector<ir::Node*>& made, const std::vector<ir::Node*>& readers, const Domain& d);
  /// Whether what they read lies at even steps along the last dimension. Else a place is found by divisions for each lane, where
  /// a kernel of its own would walk along rows. On a CPU steps are short, too: each element of a vector would come from another cache line,
  /// where a kernel of its own turns squares.
  bool read_evenly(const std::vector<ir::Node*>& readers, const Domain& d);
  /// By how much the place of each of their reads of `value`, or of anything, grows along the last dimension; nothing where that is no fixed step.
  std::vector<std::optional<ir::Expr>> steps(const std::vector<ir::Node*>& readers, const ir::Node* value,
                                             const Domain& d);

 private:
  using Access = std::function<void(ir::Value, const Index&)>;
  using Seen = std::unordered_set<Element, ElementHash>;
  void walk(ir::Value v, const Index& index, const Access& access, Seen& seen, bool top);

  const std::vector<bool>& in_memory_;
  const Machine& machine_;
  uint32_t next_value_ = 0;
};

}  // namespace brasa::compiler
