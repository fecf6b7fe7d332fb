#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "ir/facts.h"
#include "ops/table.h"

namespace brasa::ops {

/// What becomes of primitives that have a composition, too.
enum class Whole : uint8_t {
  Expanded,  // into others, for whatever works on those
  AsTarget,  // kept where the target takes them
};

/// While one lives, graphs that this thread makes are for a target that computes some calls whole of primitives
/// that have a composition, too. Compositions ask for them, and `decompose` keeps them.
class TargetScope {
 public:
  using Takes = std::function<bool(const Row&, const Args&)>;
  explicit TargetScope(Takes takes);
  ~TargetScope();
  TargetScope(const TargetScope&) = delete;

  /// Whether the innermost scope's target takes this call; false without one.
  static bool takes(const Row& row, const Args& args);

 private:
  friend void decompose(const ir::Graph&, const std::vector<ir::Value>&, ir::Graph&, ir::ValueMap&, ir::Facts&,
                        const std::function<bool(const Row&)>&, Whole);
  Takes takes_;
  const TargetScope* outer_;
};
/// What a primitive that has a composition, too, gives: by a call where the target takes it, else by its composition.
std::vector<ir::Value> taken_or_composed(const char* name, ir::Args args);

/// A copy of the graph in which composed operators are expanded until only primitives, and rows that `keep` holds on to, are
/// left. Dead nodes are not copied. New facts go to `facts`. Checks that compositions make become outputs of the copy.
std::unique_ptr<ir::Graph> decompose(const ir::Graph& graph, ir::Facts& facts,
                                     const std::function<bool(const Row&)>& keep = nullptr,
                                     Whole whole = Whole::Expanded);
/// Adds to `out` what `values` of the graph are made of, down to what `map` has, which then has that, too. Checks become outputs of `out`.
void decompose(const ir::Graph& graph, const std::vector<ir::Value>& values, ir::Graph& out, ir::ValueMap& map,
               ir::Facts& facts, const std::function<bool(const Row&)>& keep = nullptr, Whole whole = Whole::Expanded);

}  // namespace brasa::ops
