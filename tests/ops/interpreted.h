#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/facts.h"
#include "ops/table.h"

// A call of a row on the reference interpreter, with its derivative.
namespace brasa::test {

struct CallTensor {
  ops::Array array;
  bool weak = false;  // a number where the schema says Tensor
};

/// An argument: positions in Call::tensors (-1 for an absent one), a list of those, or a literal.
using CallArg = std::variant<ir::Arg, int, std::vector<int>>;

struct Call {
  const ops::Row* row = nullptr;
  std::vector<CallArg> args;  // one for each parameter of the schema, defaults filled in
  std::vector<CallTensor> tensors;
  std::vector<bool> needs_gradient;                   // one a tensor
  std::vector<std::optional<ops::Array>> cotangents;  // one an output, missing ones absent; empty without gradients
};

struct Outcome {
  std::vector<ops::Array> outputs;  // lists flattened; then new values of operands that the row changes
  std::vector<std::optional<ops::Array>> gradients;  // one a tensor; absent means zero
};

/// A graph of one operator, with what its inputs are.
struct Recorded {
  std::unique_ptr<ir::Graph> graph = std::make_unique<ir::Graph>();
  std::vector<int64_t> hints;  // of the size symbols
  ir::Facts facts;
  std::vector<ops::Array> arrays;
};
/// `symbolic` gives every dimension its own size symbol.
Recorded record(const Call& call, bool symbolic);
/// Runs a graph made from the recorded one.
std::vector<ops::Array> evaluate(const ir::Graph& graph, const Recorded& recorded,
                                 const std::vector<ops::Array>& arrays);

/// As a graph of one operator, with its derivative as AOT autograd makes it. `symbolic` gives every dimension its own size
/// symbol while the graph is made.
Outcome run_interpreter(const Call& call, bool symbolic);

/// An array for people.
std::string describe(const ops::Array& a);

}  // namespace brasa::test
