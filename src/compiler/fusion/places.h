#pragma once

#include <functional>
#include <vector>

#include "compiler/fusion/fuse.h"
#include "compiler/fusion/indexing.h"

namespace brasa::compiler {

/// Ids of ranges that exist only while places are looked at.
constexpr uint32_t kProbeRange = 1u << 20;

/// A range for each dimension of a shape.
Index probe(const ir::Shape& shape);
/// A value that an operand is seen through, and where it is read for the operand's element at the probe.
struct Link {
  ir::Value value;
  Index at;
};
/// From an operand through views down to what is computed, or an input, or the first that `ends` says (none: null); through what widens
/// too, unless `widened` is false.
std::vector<Link> chain_of(ir::Value operand, const std::function<bool(ir::Value)>& ends = nullptr,
                           bool widened = true);
/// One for each dimension of the domain; 0 where that has one element.
Index iteration(const Domain& domain);

/// Every index expression that a group computes with, over one range for each dimension of its domain; of a contraction, what
/// follows the product.
struct Places {
  Index ranges;
  std::vector<ir::Expr> exprs;
  std::vector<ir::Expr> written;  // those that are places in results
  struct Access {
    size_t input;  // of the group
    ir::Expr place;
  };
  std::vector<Access> accesses;  // those of `exprs` that are places in inputs
  struct Pick {
    ir::Expr index;  // a symbol in `exprs`: what is read from an index's tensor
    Index at;        // there, seen through views
  };
  std::vector<Pick> picks;
};
Places places_of(const Group& group);

/// The index in `shape`, which has the elements of the domain's rows, for the iteration `index` of the domain.
Index row_index(const Domain& domain, const Index& index, const ir::Shape& shape);
/// The index of a member of a loops group for the iteration `index` of its domain: for a reduction that of its operand.
Index member_index(const ir::Node* root, const Domain& domain, const Index& index);

}  // namespace brasa::compiler
