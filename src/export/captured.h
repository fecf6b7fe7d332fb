#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <brasa/tensor.h>

#include "export/counts.h"
#include "export/stages.h"
#include "export/surroundings.h"
#include "ir/facts.h"
#include "ir/graph.h"

namespace brasa::exporting {

/// A function recorded for one set of inputs.
struct Captured {
  std::unique_ptr<ir::Graph> graph;
  ir::Facts facts;  // what the symbols were, and what recording took for granted
  struct Source {
    int input = -1;      // of the function, or behind these one of `counts`
    Tensor tensor;       // or what it reads besides: a parameter, a buffer, a constant
    std::string number;  // or a number of the call
    bool written = false;
    bool unknown = false;  // a random key, or a number of the call: a program that reads it cannot run alone
    std::string_view bytes() const;
  };
  /// A size of the function's inputs, of which the integers that it reads are further ones, that recording took for a constant, or that a constant
  /// has too.
  struct Fixed {
    int64_t input, dim, size;
  };
  /// Two sizes of the function's inputs for which there is one symbol.
  struct Equal {
    int64_t input, dim, other_input, other_dim;
  };
  /// All of them where the program depends on them in a way that is not known.
  std::vector<Fixed> fixed() const;
  std::vector<Equal> equal() const;
  /// Those of the facts that are known with the inputs and so many of the integers.
  std::vector<ir::Fact> known_with(const std::vector<ir::Fact>& facts, size_t integers) const;
  /// The integers in this recording as further inputs.
  std::vector<Tensor> integers() const;
  /// Whether the function does for this recording's integers what `general` says for any, as far as that shows.
  bool is_case_of(const Captured& general) const;
  /// The symbol that stands for an integer; nothing where it is a number here.
  std::optional<ir::Expr> symbol_of(size_t integer) const;
  /// Whether the graph is one of inputs of these sizes, as far as `fixed` and `equal` say. Integers that are read may be missing.
  bool takes(const std::vector<Tensor>& inputs) const;
  /// The symbols of a call with these inputs, by id; those that constants have are known.
  std::vector<int64_t> symbols(const std::vector<Tensor>& inputs) const;
  std::vector<Source> sources;              // by input of the graph
  std::vector<std::vector<int64_t>> sizes;  // of the inputs
  /// The integers that the function reads of what it computes; runs read those that `stages` say.
  struct Read {
    std::string reader;  // says in a message whose it is
    ir::Expr least, greatest;
    bool varied = true;  // between the calls; else the recording holds for this one
  };
  std::vector<Read> counts;
  std::vector<CountedValue> counted;  // the values in the graph that these are read of
  /// Sizes that are not negative where the program's assertions hold.
  std::vector<std::pair<ir::Expr, std::string>> requirements;
  Stages stages;
  std::vector<ir::Fact> excluded;  // integers for which other recordings stand
  bool one_graph =
      true;  // whether the examples had this graph and its numbers, but for the first, which may know a number as such
  std::vector<int> outputs;  // by result of the function: which of the outputs that are not written into inputs
};

/// Whether a graph reads the elements of each input. What comes from `empty` has none that mean something.
std::vector<bool> inputs_read(const ir::Graph& graph, ir::Facts facts);

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// brasa::Error with the operator and the reason where the function has no one graph. `kinds`: see Counts.
/// The function runs on each of the examples: integers that it computes from sizes are known as such when they differ. What counts is
/// the last one's recording, which has to be the same when it is called again. Sizes of 1 stay 1: what broadcasts is another program.
/// `of_one_graph`: whether recordings for other sizes were. Where numbers that it has itself lead the function elsewhere, fewer of them may not show it.
Captured capture(const Function& f, const std::vector<std::vector<Tensor>>& examples, Surroundings& surroundings,
                 const std::vector<CountKind>& kinds, bool of_one_graph);

}  // namespace brasa::exporting
