#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/fusion/indexing.h"
#include "compiler/loops/builder.h"

namespace brasa::compiler {

/// Builds the scalar expression of one element of a value, by going through its primitives down to memory: point-wise ones
/// keep the index, movement ones compute another.
class Expressions {
 public:
  /// Input i of the group is buffers[i], with the strides that the graph states, or, where that is absent, the elements numbers[i].
  Expressions(const ir::Graph& group, LoopBuilder& builder, std::vector<ir::Value> buffers,
              std::vector<std::vector<ir::Value>> numbers);

  /// The element of `v` at `index`. Memory is only touched where `mask` (absent: everywhere) is true.
  ir::Value at(ir::Value v, const Index& index, ir::Value mask = {});

  /// Asked first for each node but leaves; an absent Value means the usual expression. Every heavy primitive must
  /// be answered.
  using Hook = std::function<ir::Value(ir::Value v, const Index& index, ir::Value mask)>;
  void set_hook(Hook hook) { hook_ = std::move(hook); }
  /// Values of different passes over the same loops are not the same: later ones may be read back from memory.
  void set_pass(int pass) { pass_ = pass; }
  int pass() const { return pass_; }

  /// low <= e < high as a value; absent if it is always so.
  ir::Value within(ir::Expr e, ir::Expr low, ir::Expr high);
  ir::Value both(ir::Value a, ir::Value b);
  /// An integer value as an index expression, where it is one.
  std::optional<ir::Expr> as_index(ir::Value v, const Index& index);
  /// The indices that a gather or scatter picks at this place: clamped to the dimension.
  ir::Expr picked(ir::Value indices, const Index& index, ir::Expr size, ir::Value mask);

 private:
  struct Key {
    ir::Value value, mask;
    Index index;
    int pass;
    friend bool operator==(const Key& a, const Key& b) {
      return a.value == b.value && a.mask == b.mask && a.pass == b.pass && a.index == b.index;
    }
  };
  struct Hash {
    size_t operator()(const Key& k) const;
  };
  ir::Value compute(ir::Value v, const Index& index, ir::Value mask);
  ir::Value leaf(const ir::Node* n, const Index& index);
  ir::Value pad(const ir::Node* n, const Index& index, ir::Value mask);
  ir::Value concat(const ir::Node* n, const Index& index, ir::Value mask);
  /// The element of a concatenation by its place in the one value that all parts look at; absent where they look at several, or where
  /// lanes would have places of their own.
  ir::Value part_of_one(const ir::Node* n, const Index& index, ir::Value mask);
  /// An index that was computed, between 0 and `size`.
  ir::Expr bound_place(ir::Value place, ir::Expr size);
  ir::Value gather(const ir::Node* n, const Index& index, ir::Value mask);
  ir::Value pick_number(const std::vector<ir::Value>& numbers, ir::Expr place);
  ir::Value holds(const std::vector<Bound>& where);
  /// Whether the value has an element there; absent if it always does.
  ir::Value inside(ir::Value v, const Index& index);

  const ir::Graph& group_;
  LoopBuilder& b_;
  std::vector<ir::Value> buffers_;
  std::vector<std::vector<ir::Value>> numbers_;
  Hook hook_;
  int pass_ = 0;
  std::unordered_map<Key, ir::Value, Hash> memo_;
  std::unordered_set<Key, Hash> masked_;  // what was asked for under a mask; without it
  std::unordered_map<ir::Value, ir::Expr> bound_;
};

/// Where the element at `index` lies, with these strides, or row-major without.
ir::Expr place_of(const Index& index, const ir::Shape& shape, const std::vector<ir::Expr>& strides);
/// With the strides that the graph states of an input.
ir::Expr place_in(const ir::Graph& graph, ir::Value v, const Index& index);

}  // namespace brasa::compiler
