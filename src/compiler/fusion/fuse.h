#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "compiler/libraries/library.h"
#include "compiler/schedules/machine.h"
#include "ir/graph.h"

namespace brasa::compiler {

/// The iterations that the members of a group share. A member either has an element for each of them, or one for each
/// iteration of the dimensions that are not reduced (a row). Beside sums of rows there may be sums of columns, over `summed` dimensions and not
/// over the reduced ones.
struct Domain {
  ir::Shape dims;
  std::vector<bool> reduced;
  std::vector<bool> summed = {};  // or empty
  bool sums(size_t dim) const { return !summed.empty() && summed[dim]; }
  /// The dimension that runs in order, as its iterations need what came before them; then none is reduced.
  std::optional<size_t> scanned = std::nullopt;
  /// Whether one result, or one run of them, takes all iterations along a dimension.
  bool folds(size_t dim) const { return reduced[dim] || scanned == dim; }
  bool folds() const { return has_reduced() || scanned; }
  ir::Expr numel() const { return ir::product(dims); }
  ir::Expr rows() const;
  bool has_reduced() const;
};
/// Without reduced dimensions.
Domain domain_of(const ir::Shape& dims);
/// Of a reduction's operand.
Domain reduced_domain(const ir::Node* reduction);
/// As the sums of columns have it.
Domain columns_of(const Domain& d);
/// Equal after neighbouring dimensions of one sort are taken together; where the `order` of sums matters, none that are reduced.
bool same_blocks(const Domain& a, const Domain& b, bool order = false);
/// Whether a reduction is one of columns in this domain of sums of both sorts.
bool sums_columns(const ir::Node* n, const Domain& d);
/// Of two kernels in one. `sum_columns`: where one adds up rows, it may add up parts of columns for the other on its way.
Domain common_domain(const Domain& a, const Domain& b, bool sum_columns);
/// Those of `items` (one a dimension) whose dimensions are not reduced.
std::vector<ir::Expr> kept(const Domain& d, const std::vector<ir::Expr>& items);
/// "[8, +197, ~192]": ~ before reduced dimensions, + before summed ones, > before a scanned one
void append_to(std::string& out, const Domain& d);

enum class GroupKind : uint8_t { Loops, Contraction, Scatter, Library };
std::string_view name(GroupKind kind);

/// What a group computes: elements that are summed or that floating point-wise primitives make, and `steps` multiplications and
/// additions for each of a product's `results`. Apart, because the number of all may be no int64.
struct Work {
  ir::Expr elements = 0, results = 0, steps = 0;
};

/// What becomes one kernel (a scatter: two), or one call of a library. `graph` is a small graph of primitives on its own; its inputs and outputs are
/// tensors in memory.
struct Group {
  GroupKind kind = GroupKind::Loops;
  const Implementation* library = nullptr;  // that computes it
  Domain domain;
  std::unique_ptr<ir::Graph> graph = std::make_unique<ir::Graph>(ir::Level::Primitives);
  std::vector<ir::Value> inputs, outputs;  // of the whole graph, as the graph's
  /// Strides of outputs that are not contiguous.
  std::vector<std::vector<ir::Expr>> output_strides;
  /// By input, or empty: the host has its few elements, and kernels get them as numbers (see CompilerOptions).
  std::vector<bool> by_value;
  /// By input, or empty: nothing of the run writes it before the group does.
  std::vector<bool> unwritten;
  /// By output, or empty: which input lies in the same memory, element for element; -1 for none.
  std::vector<int> overwritten;
  /// One more input: its value in `graph`.
  ir::Value add_input(ir::Value v, const ir::Graph& whole);
  ir::Value add_input(ir::Value v, std::vector<ir::Expr> strides);
  bool takes_value(size_t input) const { return input < by_value.size() && by_value[input]; }
  Work work() const;
};

struct FusedGraph {
  std::vector<Group> groups;  // in an order that respects their dependences
};

void append_to(std::string& out, const Group& g);
void append_to(std::string& out, const FusedGraph& f);

/// Decides which values go to memory, and what is computed together. `materialised` values go to memory in any case; the machine's libraries
/// compute what they take, and `groups`. Nothing that has as many elements as what the sums `apart` are made of is written beside these.
FusedGraph fuse(const ir::Graph& graph, const std::unordered_set<ir::Value>& materialised, const Machine& machine,
                const LibraryGroups& groups = {}, const std::unordered_set<ir::Value>& apart = {});

}  // namespace brasa::compiler
