#pragma once

#include <functional>
#include <vector>

#include "compiler/names.h"
#include "ops/index.h"

// What each primitive does to indices, as fusion and lowering ask it.
namespace brasa::compiler {

using ops::delinearise;
using ops::Index;
using ops::linearise;
using ops::reshaped;
using Prim = ops::Kind;
using ops::is_leaf;
using ops::is_view;

/// What a node of a graph of primitives does; brasa::InternalError for a composed row.
Prim prim_of(const ir::Node* n);
inline Prim prim_of(ir::Value v) { return prim_of(v.node); }
/// Whether it gives its operand's elements in another dtype, and whether in float32 what was a narrower float.
bool converts(const ir::Node* n);
bool widens(const ir::Node* n);

/// Where a view (is_view) reads its operand for its result at `index`.
Index view_index(const ir::Node* n, const Index& index);

/// Calls f(Value) for what a node's elements are made of: all operands, but for what `later` waits for.
template <class F>
void each_read(const ir::Node* n, F f) {
  if (prim_of(n) == Prim::Later)
    f(n->arg<ir::Value>(0));
  else
    n->for_each_input(f);
}

/// The value at an index, as a key.
struct Element {
  ir::Value value;
  Index index;
  friend bool operator==(const Element& a, const Element& b) { return a.value == b.value && a.index == b.index; }
};
struct ElementHash {
  size_t operator()(const Element& e) const;
};

/// low <= e < high, or e = 0.
struct Bound {
  ir::Expr e, low, high;
  bool zero = false;
};

/// One operand that an element is made of: which of its elements, and where it is this operand that is read.
struct Read {
  ir::Value operand;
  Index index;
  std::vector<Bound> where;  // all of them; without those that always hold
};
/// What a point-wise primitive, a view, pad, concat or gather reads for its result at `index`, in the order of its operands. Of
/// a gather `pick` says which place the indices name along a dimension of this size; it reads them itself.
using Pick = std::function<ir::Expr(ir::Value indices, const Index& index, ir::Expr size)>;
std::vector<Read> reads(const ir::Node* n, const Index& index, const Pick& pick);

inline bool is_reduction(Prim p) { return p == Prim::Reduce || p == Prim::ArgReduce; }
/// Of a reduction.
std::vector<int64_t> reduced_dims(const ir::Node* n);
/// Of a scan.
size_t scanned_dim(const ir::Node* n);
/// How many reductions over rows must have ended before each node of a group can be computed.
std::vector<int> passes_of(const ir::Graph& group);
/// For each node but reductions: a bit for each pass over a row that computes or reads its elements.
std::vector<uint64_t> passes_that_need(const ir::Graph& group);

std::vector<int64_t> int_args(const ir::Node* n, size_t arg);
/// Dimensions of `rank` that are not in `dims`, in order.
std::vector<int64_t> other_dims(const std::vector<int64_t>& dims, int64_t rank);

/// Coefficient of the symbol in an expression that is linear in it; nothing if it is not linear in it.
std::optional<ir::Expr> coefficient(ir::Expr e, ir::Expr symbol);

}  // namespace brasa::compiler
