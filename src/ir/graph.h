#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <brasa/dtype.h>

#include "ir/arg.h"
#include "ir/schema.h"

namespace brasa::ir {

using Shape = std::vector<Expr>;

/// The type of a value: a tensor's dtype and sizes. A scalar at the loop level has no dimensions.
struct Type {
  DType dtype = DType::Float32;
  Shape shape;
  /// A number of the program ("wrapped number"): takes part in promotion by its category alone.
  bool weak = false;

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  Expr numel() const { return product(shape); }
  friend bool operator==(const Type& a, const Type& b) {
    return a.dtype == b.dtype && a.shape == b.shape && a.weak == b.weak;
  }
};
void append_to(std::string& out, const Type& t);  // "f32[s0, 64]", "i64[]!" for a weak one

/// The level of a graph says which nodes are legal in it (see legality.h).
enum class Level : uint8_t { Operators, Primitives, Loops };
std::string_view name(Level level);

/// What every row of an operator table has. The folders above add what their level needs.
struct Op {
  Schema schema;
  const std::string& name() const { return schema.name; }
  virtual ~Op() = default;

  /// Whether graphs of this level may hold it.
  virtual bool legal_at(Level) const { return true; }
  /// The types of the results, where the arguments alone give them.
  virtual std::optional<std::vector<Type>> infer(const Args&) const { return std::nullopt; }
  /// f(a, b) = f(b, a), to the bit.
  virtual bool commutes() const { return false; }
};

class Graph;

struct Node {
  const Op* op;
  Args args;
  std::vector<Type> types;  // one a result
  Graph* graph;
  uint32_t id;  // position in its graph
  uint64_t hash;

  Value out(uint32_t i = 0) { return {this, i}; }
  /// Argument by the schema's position.
  const Arg& arg(size_t i) const { return args[i]; }
  template <class T>
  const T& arg(size_t i) const {
    return args[i].get<T>();
  }
  template <class F>
  void for_each_input(F f) const {
    for (const Arg& a : args) a.for_each_value(f);
  }
  std::vector<Value> inputs() const;
};

inline const Type& type_of(Value v) { return v.node->types[v.index]; }

struct Input {
  Value value;
  std::string name;
  /// Strides in elements; empty means contiguous (row-major).
  std::vector<Expr> strides;
  /// The operand is in the host's memory whatever the device: a number or a random key, constantly many elements. It is read when a
  /// run is asked for, and kernels get it among their arguments.
  bool by_value = false;
};

struct Output {
  Value value;
  /// Index of the input whose memory receives the value when the graph ends, or -1 for fresh memory.
  int into = -1;
  /// Not empty: no result but a check. The value is one bool; where it is false the run ends with the error of fail_checked
  /// and this message.
  std::string check;
};

/// A pure program in SSA form. Nodes are immutable and interned: adding an equal node gives the existing one. They
/// stay in creation order, which is a topological order. Not thread-safe.
class Graph {
 public:
  explicit Graph(Level level = Level::Operators) : level_(level) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  Level level() const { return level_; }
  Value add_input(Type type, std::string name = "", std::vector<Expr> strides = {}, bool by_value = false);
  /// Adds (or finds) a node; `types` are its results' types, given by the op's type rule.
  Node* add(const Op* op, Args args, std::vector<Type> types);
  void add_output(Value value, int into = -1) { outputs_.push_back({value, into, ""}); }
  /// Adds a check once (see Output::check).
  void add_check(Value value, std::string message);

  const std::vector<Node*>& nodes() const { return order_; }
  const std::vector<Input>& inputs() const { return inputs_; }
  const std::vector<Output>& outputs() const { return outputs_; }
  std::vector<Output>& outputs() { return outputs_; }
  /// The position of an input value, or -1.
  int input_index(Value v) const;

  /// A name that text and errors show; no meaning.
  std::string name;

 private:
  Level level_;
  std::deque<Node> storage_;
  std::vector<Node*> order_;
  std::unordered_multimap<uint64_t, Node*> interned_;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
};

/// The node of a graph input has this op and no arguments beyond its position.
const Op* input_op();
inline bool is_input(Value v) { return v.node->op == input_op(); }

/// Nodes that the outputs reach, in topological order (inputs included only if reached).
std::vector<Node*> live_nodes(const Graph& graph);
/// Adds all that these nodes (by id) are made of.
void add_operands(const Graph& graph, std::vector<bool>& nodes);
/// Number of uses of each node by live nodes and outputs.
std::unordered_map<const Node*, int> count_uses(const Graph& graph);

/// Maps values of one graph to values of another while copying.
class ValueMap {
 public:
  Value operator()(Value v) const;  // InternalError if unmapped
  Value find(Value v) const;        // absent Value if unmapped
  void set(Value from, Value to) { map_[from] = to; }
  Arg operator()(const Arg& a) const;

 private:
  std::unordered_map<Value, Value> map_;
};

/// The strides of an input; empty (row-major) for one without, and for every other value.
const std::vector<Expr>& strides_of(const Graph& graph, Value v);
/// Row-major strides of a shape.
std::vector<Expr> contiguous_strides(const Shape& shape);

}  // namespace brasa::ir
