#pragma once

#include <span>
#include <vector>

#include <brasa/tensor.h>

#include "capture/trace.h"

namespace brasa::capture {

/// The arguments of a trace as the tensors that its graph reads.
std::vector<Tensor> argument_tensors(const Trace& trace, const Binding& binding);

/// Runs the first `events` of a trace operator by operator, as eager does; gives the delivered values in order, in memory of
/// their own. Random rows find their keys among the inputs.
std::vector<Tensor> run_uncompiled(const Trace& trace, size_t events, const Binding& binding,
                                   std::span<const Tensor> inputs, const std::vector<Delivery>& deliveries);

/// The same events as eager runs them, up to the first that fails: `reached` becomes its number. By number; absent behind it.
std::vector<Tensor> values_until_error(const Trace& trace, const Binding& binding, std::span<const Tensor> inputs,
                                       size_t& reached);

}  // namespace brasa::capture
