#pragma once

#include <forward_list>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include <brasa/call.h>

#include "import/graph.h"
#include "import/number.h"
#include "tensor/known_sizes.h"

namespace brasa::import {

/// A running graph. A node reads and writes its values here.
class Frame {
 public:
  Frame(const Graph& graph, const Program& program)
      : graph_(graph), program_(program), values_(graph.slots.size()), known_sizes_(KnownSizes::current()) {}

  /// Binds the inputs, runs the nodes, gives the outputs.
  std::vector<Value> run(std::vector<Value> inputs);

  const Program& program() const { return program_; }
  std::vector<Value> run_graph(const Graph& graph, std::vector<Value> inputs) const {
    return Frame(graph, program_).run(std::move(inputs));
  }

  // What an argument is; brasa::Error for another kind.
  const Argument& argument(const Node& node, size_t i) const;
  const Argument* named(const Node& node, std::string_view name) const;
  Value value(const Argument& a) const;
  std::vector<Value> values(const Argument& a) const;
  Tensor tensor(const Argument& a) const;
  Scalar number(const Argument& a) const;
  Number exact_number(const Argument& a) const;
  /// The recording that knows what numbers are for other sizes; null: nobody asks.
  KnownSizes* known_sizes() const { return known_sizes_; }
  const Graph& graph(const Argument& a) const;

  void set(const Node& node, size_t i, Value v) {
    if (i < node.outputs.size() && node.outputs[i] >= 0) values_[static_cast<size_t>(node.outputs[i])] = std::move(v);
  }
  void set_all(const Node& node, std::vector<Value> v);
  const Value& at(int slot) const { return values_[static_cast<size_t>(slot)]; }

  const std::vector<Node>& nodes() const { return graph_.nodes; }
  /// Runs the nodes from `first` to `end`; those that `done` gives true for have been done by it.
  void run_nodes(size_t first, size_t end, const std::function<bool(const Node&)>& done = nullptr);
  /// For the node that runs: the next one is that behind `node`.
  void go_on_behind(size_t node) { next_ = node + 1; }

 private:
  Number literal(const Scalar& s) const;

  const Graph& graph_;
  const Program& program_;
  std::vector<Value> values_;
  KnownSizes* known_sizes_;
  size_t next_ = 0;  // node
};

/// A call of the operator table.
void run_operator(Frame& frame, const Node& node);
/// A call of `node.op` for each item of the lists among its arguments: aten::_foreach_mul as aten::mul.
void run_for_each(Frame& frame, const Node& node);
/// A target's handlers by name; nullptr for other names.
using Handlers = std::map<std::string_view, Handler>;
inline Handler find(const Handlers& handlers, std::string_view name) {
  auto at = handlers.find(name);
  return at == handlers.end() ? nullptr : at->second;
}
/// The same behind a prefix that all of them have.
inline Handler find(const Handlers& handlers, std::string_view prefix, std::string_view target) {
  return target.starts_with(prefix) ? find(handlers, target.substr(prefix.size())) : nullptr;
}

/// Arithmetic of sizes and other numbers; nullptr for other targets (number_operators.cpp).
Handler number_handler(const std::string& target);
/// Copies, conversions and views; nullptr for other targets (copies.cpp).
Handler copy_handler(const std::string& target);
/// Branches, loops and other operators that take graphs; nullptr for other targets (control_flow.cpp).
Handler graph_handler(const std::string& target);
/// Operators that are done for many calls at once; nullptr for other targets (many_calls.cpp).
Handler many_calls_handler(const std::string& target);
/// Operators of other libraries; nullptr for other targets (library_operators.cpp).
Handler library_handler(const std::string& target);

/// A number as it is, the number in a tensor of one element.
Scalar number_of(const Value& v);
/// A list of integers among a node's arguments, as a call takes it.
class NamedInts {
 public:
  NamedInts(const Frame& frame, const Argument& a);
  CallArg argument() const;

 private:
  size_t size_;
  std::vector<int64_t> items_;  // and behind them their names in the recording, where any has one
};
bool truth_of(const Value& v);

}  // namespace brasa::import
