#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/executable.h"
#include "ir/facts.h"
#include "ops/table.h"
#include "support/small_vector.h"

namespace brasa::capture {

/// Values of one recording are numbered in the order in which they appear: inputs when they are first read, results of calls.
using Number = uint32_t;
constexpr Number kNoNumber = UINT32_MAX;

/// What an input's tensor must be like for a trace to fit.
struct InputGuard {
  enum class Kind : uint8_t { Tensor, RandomKey } kind = Kind::Tensor;
  DType dtype = DType::Float32;
  Sizes sizes, strides;
  bool weak = false;  // a number of the program
  friend bool operator==(const InputGuard& a, const InputGuard& b) = default;
};
void append_to(std::string& out, const InputGuard& g);

/// Something that happened while recording. Arguments are those of an operator's node, with tensors as Values
/// {nullptr, Number + 1}, so that events of different traces compare.
struct Event {
  const ops::Row* row = nullptr;  // null: an input
  ir::Args args;
  InputGuard guard;
  Number first = 0;     // number of the first result
  uint32_t count = 1;   // results
  uint64_t prefix = 0;  // hash of this event and all before it
};

/// One way from the recorded values to what a run must deliver.
struct Delivery {
  Number number;
  int into;  // index of the input whose memory takes the value, or -1
  friend bool operator==(const Delivery& a, const Delivery& b) = default;
};

struct Halves;
struct Joint;

struct Variant {
  std::vector<Delivery> deliveries;
  std::shared_ptr<const Halves> halves;  // where results want gradients: `executable` is the forward half
  std::shared_ptr<compiler::Executable> executable;
  std::unique_ptr<ir::Graph> graph;  // operators, for explain
};

struct Trace;

/// A point of the function where a segment begins: its start, or behind a graph break. Holds the segments seen there.
struct Place {
  std::vector<std::unique_ptr<Trace>> traces;
  size_t latest = 0;
};

/// The events from a place to the next break or the end, and the graphs made of them.
struct Trace {
  std::vector<Event> events;
  std::vector<ir::Type> types;  // by number
  std::vector<Variant> variants;
  std::vector<std::shared_ptr<const Joint>> joints;  // one for each way that gradients flowed
  Place next;                                        // behind the break that ends it

  /// The events as a graph of operators that delivers these values.
  std::unique_ptr<ir::Graph> graph(const std::vector<Delivery>& deliveries) const;
};

/// A tensor among the arguments of an event.
inline ir::Value numbered(Number n) { return {nullptr, n + 1}; }

}  // namespace brasa::capture
