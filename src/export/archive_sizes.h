#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "export/captured.h"
#include "export/words.h"

namespace brasa::exporting {

/// The sizes of a recorded graph as an archive writes them: those that do not vary are numbers, equal ones one symbol.
class ArchiveSizes {
 public:
  /// brasa::Error where the recording holds for other sizes than the types say.
  ArchiveSizes(const Captured& captured, const std::vector<InputType>& types);

  ir::Expr operator()(ir::Expr e) const;
  /// Of an expression that operator() gave: the value in the example, the text that sympy reads, and whether it is the same for all values.
  int64_t hint(ir::Expr e) const { return captured_.facts.hint(e); }
  std::string text(ir::Expr e) const;
  bool is_known(ir::Expr e) const { return captured_.stages.stage_of(e) == 0; }
  /// The input and dimension that is this symbol.
  std::pair<int, int> place_of(ir::Expr symbol) const { return places_.at(symbol->id); }
  struct Range {
    int64_t least;
    std::optional<int64_t> greatest;
  };
  const std::map<std::string, Range>& ranges() const { return ranges_; }
  /// Of an input that the graph does not read. Its sizes are the example's.
  ir::Shape of_input(size_t i) const;

 private:
  std::string name_of(ir::Expr symbol) const;

  const Captured& captured_;
  std::map<uint32_t, ir::Expr> symbols_;  // what stands for a symbol of the graph
  std::map<uint32_t, std::pair<int, int>> places_;
  std::map<std::string, Range> ranges_;
};

}  // namespace brasa::exporting
