#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <brasa/safetensors.h>
#include "ir/facts.h"
#include "ir/graph.h"
#include "ops/table.h"

// Reference vectors of operators: calls with arguments, results and gradients (docs/verify.md describes the format).
namespace brasa::verify {

/// A tensor of a call. The array is contiguous; an implementation that knows strides makes it with these.
struct CallTensor {
  ops::Array array;
  std::vector<int64_t> strides;
  bool weak = false;  // a number where the schema says Tensor
};

/// An argument: positions in Call::tensors (-1 for an absent one), a list of those, or a literal.
using CallArg = std::variant<ir::Arg, int, std::vector<int>>;

struct Call {
  const ops::Row* row = nullptr;
  std::vector<CallArg> args;  // one for each parameter of the schema, defaults filled in
  std::vector<CallTensor> tensors;
  std::vector<bool> needs_gradient;                   // one a tensor
  std::vector<std::optional<ops::Array>> cotangents;  // one an output; empty without gradients
};

struct Outcome {
  std::vector<ops::Array> outputs;                   // lists flattened
  std::vector<std::optional<ops::Array>> gradients;  // one a tensor; absent means zero
};

/// A way to run a call. brasa::Error where the call fails; Unsupported where the back end has no such dtype or operator.
using Backend = std::function<Outcome(const Call&)>;

/// Not a failure: what the call needs is not there yet.
struct Unsupported {
  std::string reason;
};

/// Evaluates a graph: one array for each of its outputs (of checks, anything), from arrays and the strides that its inputs ask for.
using Evaluate = std::function<std::vector<ops::Array>(const ir::Graph& graph, ir::Facts& facts,
                                                       const std::vector<ops::Array>& inputs)>;
/// The call as a graph of one operator, with its derivative as AOT autograd makes it. `symbolic` gives every dimension its own
/// size symbol, which `evaluate` sees as a constant again.
Outcome run_graph(const Call& call, bool symbolic, bool strided, const Evaluate& evaluate);
/// On the reference interpreter.
Outcome run_interpreter(const Call& call, bool symbolic);
/// Compiled for this machine.
Outcome run_compiled(const Call& call);
/// By the public API: eager operators and their autograd.
Outcome run_eager(const Call& call);

/// The array's elements at these strides in a storage that is just large enough, 0 elsewhere.
std::vector<std::byte> strided_storage(const ops::Array& a, const std::vector<int64_t>& strides);

struct Expected {
  std::vector<std::optional<ops::Array>> outputs;  // absent: nothing to compare
  bool metadata_only = false;
  std::vector<std::optional<ops::Array>> gradients;  // one a tensor; absent where none was asked for or none flows
};

struct Entry {
  Call call;
  Expected expected;
};

using Tolerances = std::map<DType, double>;

/// One overload's card and entries.
class VectorFile {
 public:
  /// `stem` is the path without ".json" and ".safetensors".
  explicit VectorFile(const std::string& stem);
  ~VectorFile();
  const std::string& overload() const { return overload_; }
  size_t size() const;
  /// Throws Unsupported for dtypes that are not there yet.
  Entry entry(size_t i, const ops::Row& row) const;

 private:
  struct Impl;
  std::string overload_;
  std::unique_ptr<Impl> impl_;
};

struct Card {
  std::string overload;
  Tolerances values, gradients;
  bool ambiguous = false;  // another right answer exists, such as another order of equal elements
};
/// The row of an overload as the vectors name it ("aten.abs.default"), or null.
const ops::Row* row_of(const std::string& overload);
/// The cards of a folder's index.json, by overload.
std::map<std::string, Card> read_cards(const std::string& folder);

/// What is wrong, or nothing.
std::optional<std::string> check(const Entry& entry, const Outcome& outcome, const Card& card);

/// An array for people: "[0.5, 1.0, …] float32[3, 5]".
std::string describe(const ops::Array& a, int64_t most = 12);

}  // namespace brasa::verify
