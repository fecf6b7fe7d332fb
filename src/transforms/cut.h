#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/facts.h"
#include "ir/graph.h"

namespace brasa::transforms {

/// What may be kept of a graph's forward part until its backward part reads it.
struct Keeping {
  static constexpr uint32_t kDerived = UINT32_MAX;
  /// By node: the checkpointed function that it computes a value of, 0 for none, or that it is of a derivative. Such a function's values are
  /// computed again, but for those that others take. Empty: there is none.
  std::vector<uint32_t> origin;
  /// The part of the memory, beyond what is needed at least, that may be used: less costs time.
  double budget = 1;
  /// Without such a budget: what is done again if the whole then takes clearly less memory.
  enum class Spare : uint8_t {
    Nothing,
    /// Activations between products: the kernels of their derivatives, which read the same, make them on their way. A normalisation's derivative
    /// sums, and takes longer for one more result than another kernel takes to read it.
    Activations,
    AllCheap,
  };
  Spare spare = Spare::Nothing;
  /// By output, empty where there are none: an operator with a derivative of its own gives it, which may read it.
  std::vector<bool> published;
  /// Whether cheap work outside of checkpointed functions is done again where that saves memory.
  bool repeats_cheap = true;
};

struct Cut {
  std::vector<ir::Value> kept;
  std::vector<bool> again;  // by node: the backward part computes it again
};

/// How much memory a cut takes, in bytes.
using Measure = std::function<int64_t(const Cut&)>;

/// The forward nodes' (`forward`, by node id) values of least bytes from which `gradients` can be computed: a minimum cut. Inputs and
/// `outputs`, which are there anyway, cost nothing. `facts` gives example sizes. A budget below 1 is one of what `measure` says, or else of the
/// bytes that wait.
Cut cut(const ir::Graph& graph, const std::vector<bool>& forward, const std::vector<ir::Value>& outputs,
        const std::vector<ir::Value>& gradients, const ir::Facts& facts, const Keeping& keeping,
        const Measure& measure = {});

}  // namespace brasa::transforms
