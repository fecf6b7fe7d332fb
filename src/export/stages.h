#pragma once

#include <map>
#include <memory>
#include <vector>

#include "ir/graph.h"

namespace brasa::exporting {

/// What of a graph can be computed when the integers are known that the stages before it gave.
struct Stage {
  /// Its inputs are those of the whole graph, and behind them values of earlier stages.
  std::unique_ptr<ir::Graph> graph;
  std::vector<size_t> takes;  // by input of the latter sort: which value it is among all that are kept
  std::vector<size_t> keeps;  // by output: the same; none in the last stage, whose outputs are the whole graph's
  std::vector<size_t> reads;  // integers, by number, that are read when it begins
};

/// A value from which an integer is read that is the size of an input of the graph; the integers are numbered.
struct CountedValue {
  size_t number;
  ir::Value value;
  int input;
};

/// A graph in the parts that run one after the other. Without such values it is one.
struct Stages {
  std::vector<Stage> list;
  std::vector<ir::Type> kept;  // what earlier stages keep for later ones
  /// By number of an integer that is read: which of `kept` has it, and the stage that begins with it.
  std::map<size_t, size_t> kept_count, read_in;
  /// By symbol: the first stage in which it is known. Symbols beyond are known at once.
  std::vector<size_t> known_in;
  size_t stage_of(const ir::Expr& e) const;
};
Stages stages_of(const ir::Graph& graph, const std::vector<CountedValue>& counts);

}  // namespace brasa::exporting
