#pragma once

#include <functional>
#include <string_view>

#include "ir/facts.h"
#include "ops/table.h"

namespace brasa::ops {

/// Where compositions and primitives' functions (primitives.h) put their nodes: the innermost Builder of this thread.
class Builder {
 public:
  /// `keep` says which composed rows stay whole when another composition calls them; by default none.
  explicit Builder(ir::Graph& graph, ir::Facts& facts, std::function<bool(const Row&)> keep = nullptr);
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  static Builder& current();
  static Builder* current_or_null();
  ir::Graph& graph() { return graph_; }
  ir::Facts& facts() { return facts_; }

  /// Whether this composed row stays whole.
  bool keeps(const Row& row) const { return keep_ && keep_(row); }

  /// Adds a primitive's node, or expands or keeps a composed row. `args` in the schema's order, defaults may be missing.
  std::vector<Value> call(const Row& row, Args args);
  /// Adds the node of a composed row without expanding it.
  std::vector<Value> record(const Row& row, Args args);

 private:
  ir::Graph& graph_;
  ir::Facts& facts_;
  std::function<bool(const Row&)> keep_;
  Builder* outer_;
};

/// The row of this name, called in the current Builder.
std::vector<Value> call_all(std::string_view name, Args args);
Value call(std::string_view name, Args args);

/// Result types of a call without adding it anywhere: a primitive's rule, or the composition run on the side.
std::vector<Type> result_types(const Row& row, const Args& args, ir::Facts& facts);

/// Fills defaults in; brasa::Error on a missing argument, and where literal numbers are against the row's precondition.
void complete_args(const Row& row, Args& args);
/// Runs the precondition of a row that has one; the numbers among `args` are literals.
void check_numbers(const Row& row, Args args);

}  // namespace brasa::ops
