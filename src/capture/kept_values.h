#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "capture/trace.h"
#include "transforms/cut.h"

namespace brasa::capture {

/// The part of the memory for values between a forward and a backward pass that these options leave, if they say it.
std::optional<double> memory_budget_of(const CompileOptions& options);

/// What checkpointed functions and options say of the values of a trace, and which belong to its forward part, by node of `primitives`.
/// `value` gives the primitive value of a number, absent where there is none.
struct KeptValues {
  KeptValues(const Trace& trace, const ir::Graph& primitives, const std::function<ir::Value(Number)>& value,
             const CompileOptions& options);

  transforms::Keeping keeping;
  std::vector<bool> forward;
};

/// The graph of a trace that has its backward pass, as primitives that compute again what is not to be kept. Null: there is nothing
/// of the kind.
std::unique_ptr<ir::Graph> recomputing_graph(const Trace& trace, const std::vector<Delivery>& deliveries,
                                             const CompileOptions& options, ir::Facts& facts, runtime::Device& device);

}  // namespace brasa::capture
