#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <brasa/scalar.h>

#include "capture/backend.h"
#include "ir/facts.h"
#include "ops/table.h"
#include "program/variants.h"
#include "support/small_vector.h"
#include "tensor/tensor_impl.h"

namespace brasa::capture {

/// Values of one recording are numbered in the order in which they appear: inputs when they are first read, results of calls.
using Number = uint32_t;
constexpr Number kNoNumber = UINT32_MAX;

/// What an input's tensor must be like for a trace to fit.
struct InputGuard {
  DType dtype = DType::Float32;
  ir::Shape sizes;
  std::vector<ir::Expr> strides;  // empty: contiguous
  bool weak = false;              // a number of the program
  bool by_value = false;          // see ir::Input
};
void append_to(std::string& out, const InputGuard& g);

/// An order of dimensions; empty: as they are.
using Order = SmallVector<int64_t, 6>;

/// Something that happened while recording. Arguments are those of an operator's node, with tensors as `numbered` Values, so
/// that events of different traces compare. Sizes and integers may be expressions of the trace's symbols, and other numbers
/// `argument`s, where calls were seen that differ in them.
struct Event {
  const ops::Row* row = nullptr;  // null: an input
  ir::Args args;
  InputGuard guard;
  Number first = 0;             // number of the first result
  uint32_t count = 1;           // results
  bool general = false;         // holds symbols or arguments
  bool view = false;            // reads a value through a view
  bool backward = false;        // a backward pass made it
  uint32_t checkpoint = 0;      // the checkpointed function that made it, see autograd::checkpoint_number
  std::vector<ir::Fact> facts;  // what the types of the results take for granted
};

/// A number among a call's arguments that is only known when the trace runs: an input of its graph.
struct Argument {
  DType dtype = DType::Int64;
  /// The symbol that has its value, for an integer that sizes are made of; the input then has this size and no elements.
  std::optional<ir::Expr> size;
};

/// What a trace's symbols and arguments are in one call; those that the call has not come to yet are unbound.
struct Binding {
  static constexpr int64_t kUnbound = INT64_MIN;
  std::vector<int64_t> symbols;                // by id
  std::vector<std::optional<Scalar>> numbers;  // by argument; not for sizes

  int64_t operator()(ir::Expr e) const;
  bool holds(const ir::Fact& f) const { return ((*this)(f.left) == (*this)(f.right)) == f.equal; }
};

/// One way from the recorded values to what a run must deliver.
struct Delivery {
  Number number;
  int into;     // index of the input whose memory takes the value, or -1
  Order order;  // of the dimensions in fresh memory, from outside; empty: row-major
  /// The value as the run gives it: row-major.
  ir::Value of(ir::Graph& graph, ir::Value value) const;
};

struct Break;
struct JointSegment;

struct Trace;

/// A point of the function where a segment begins: its start, or behind a graph break. Holds the segments seen there.
struct ResumePoint {
  std::vector<std::unique_ptr<Trace>> traces;  // for ever
  Trace* latest = nullptr;                     // that a call went through; see Path
  const ResumePoint* model = nullptr;          // the same point behind a trace that this one's is a generalisation of
  bool temporary = false;                      // behind a trace that is not kept
  bool warned = false;                         // of the recompile limit
};

/// The events from a place to the next break or the end, and the graphs made of them.
struct Trace {
  std::vector<Event> events;
  std::vector<ir::Type> types;  // by number
  std::vector<Argument> arguments;
  /// Symbols of sizes that are dynamic by themselves, whatever other sizes they equal (see mark_dynamic).
  std::vector<uint32_t> own;
  Binding sample;  // of the call that made it
  /// The trace that it was made from, and the first event that differs.
  Trace* model = nullptr;
  size_t forked_at = static_cast<size_t>(-1);
  program::VariantOwner owner;  // of the segment as programs of operators, by what they deliver
  std::vector<std::shared_ptr<const JointSegment>> joints;  // for the ways that gradients flowed
  ResumePoint next;                                         // behind the break that ends it
  Break* ended = nullptr;                                   // that break when it was last seen
  std::map<std::pair<DType, std::vector<int64_t>>, RowMajor> distinct_shapes;
  /// What ran the last call, and whether the next one begins to run it while it records. `last` and `allowed` are written without a lock.
  struct Ahead {
    const compiler::Executable* last = nullptr;
    bool allowed = false;
    int misses = 0;  // calls that began it in vain
    std::weak_ptr<const compiler::Executable> executable;
  } ahead;

  /// Of a value without symbols in its type, once the trace is finished; else null.
  const RowMajor* shape(Number n) const { return n < shapes.size() ? shapes[n] : nullptr; }
  std::vector<const RowMajor*> shapes;
  void finish();

  /// The events as a graph of operators: its inputs are those of the events and behind them the arguments.
  struct Body {
    std::unique_ptr<ir::Graph> graph;
    std::vector<ir::Value> values, arguments;  // by number, by argument
    ir::Value operator()(ir::Value v) const;   // of an event's argument
  };
  Body body() const;
  /// The same, with these values as outputs.
  std::unique_ptr<ir::Graph> graph(const std::vector<Delivery>& deliveries) const;
  /// The same events, without what was compiled of them.
  Trace copy() const;
  /// The same events for the sizes of one call.
  Trace sized(const Binding& binding) const;
};

/// A tensor among the arguments of an event.
inline ir::Value numbered(Number n) { return {nullptr, n + 1}; }
/// A number among the arguments of an event that is an input of the trace.
ir::Value argument(uint32_t index);
bool is_argument(ir::Value v);

/// Calls f(Number) for each tensor among the arguments of an event, in order.
template <class F>
void each_operand(const Event& e, F f) {
  for (const ir::Arg& a : e.args) {
    if (auto* v = a.get_if<ir::Value>(); v && !is_argument(*v) && v->index > 0) f(v->index - 1);
    if (auto* list = a.get_if<std::vector<ir::Value>>())
      for (ir::Value v : *list)
        if (v.index > 0) f(v.index - 1);
  }
}

/// The arguments of an event with f(Value) in place of each Value, absent ones too.
template <class F>
ir::Args mapped_args(const Event& e, F&& f) {
  ir::Args out;
  for (const ir::Arg& a : e.args) {
    if (auto* v = a.get_if<ir::Value>()) {
      out.push_back(ir::Arg(f(*v)));
    } else if (auto* list = a.get_if<std::vector<ir::Value>>()) {
      std::vector<ir::Value> items;
      for (ir::Value v : *list) items.push_back(f(v));
      out.push_back(ir::Arg(std::move(items)));
    } else {
      out.push_back(a);
    }
  }
  return out;
}

}  // namespace brasa::capture
