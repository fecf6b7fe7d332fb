#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "compiler/loops/ops.h"

namespace brasa::compiler {

enum class ForKind : uint8_t { Serial, Parallel, Vector, Unroll, Block, Thread, Call };

struct For {
  ir::Expr range;
  ForKind kind;
  int width, unroll;
  ir::Expr extent() const { return range->args[0]; }
};

/// A set of declared loops, one bit each.
using Ranges = uint64_t;

/// What a loop graph says about its loops.
class LoopAnalysis {
 public:
  /// `repeated` has, for each node, loops in whose iterations a reduction or a stage is made anew though it does not depend on them.
  LoopAnalysis(const ir::Graph& graph, const std::vector<Ranges>& repeated);
  const ir::Graph& graph() const { return graph_; }
  const std::vector<For>& loops() const { return loops_; }
  /// Index of the declared loop; brasa::InternalError if there is none.
  int loop_of(ir::Expr range) const;
  Ranges of(ir::Expr e) const;
  /// The loops that a node's result depends on: those it closes are not among them.
  Ranges of(const ir::Node* n) const { return free_[n->id]; }
  /// The loops in which the operands of a reduce or a stage, or a store, are computed.
  Ranges inside(const ir::Node* n) const { return inside_[n->id]; }
  Ranges closed(const ir::Node* n) const { return inside_[n->id] & ~free_[n->id]; }

  /// All loops of the kinds that are flattened into [begin, end): parallel or block.
  Ranges flat() const { return flat_; }
  /// Loops that become loops in the code, with all flat ones shown by the lowest of their bits; without unroll and
  /// thread.
  Ranges nested(Ranges r) const;
  Ranges kind(ForKind k) const { return kinds_[static_cast<int>(k)]; }
  /// The bind node of each v<id>.
  const std::unordered_map<ir::Expr, const ir::Node*>& binds() const { return binds_; }

 private:
  const ir::Graph& graph_;
  std::vector<For> loops_;
  std::unordered_map<ir::Expr, int> index_;
  std::unordered_map<ir::Expr, const ir::Node*> binds_;
  std::vector<Ranges> free_, inside_;
  Ranges flat_ = 0, kinds_[7] = {};
};

struct Loop;
/// A reduce, scan, stage, store or prefetch whose operands are to be computed here, or a loop.
struct Item {
  const ir::Node* node = nullptr;
  std::unique_ptr<Loop> loop;
};
using Block = std::vector<Item>;

struct Loop {
  int loop;  // index in LoopAnalysis::loops(); the first flat one stands for all
  Block body;
  std::vector<const ir::Node*> hoisted;  // pure nodes to compute before it
  std::vector<const ir::Node*> closes;   // reduces and stages whose outermost closed loop it is
  std::vector<const ir::Node*> carries;  // scans along it
};

struct Nest {
  std::unique_ptr<LoopAnalysis> analysis;
  Block body;
};

/// Checks the graph (brasa::InternalError with its text) and lays it out as loops.
Nest linearize(const ir::Graph& graph);

/// The nest as indented text, for `BRASA_LOGS=loops` and tests.
std::string print(const Nest& nest);

}  // namespace brasa::compiler
