#pragma once

#include <functional>
#include <vector>

#include "capture/trace.h"

namespace brasa::capture {

/// Runs a recorded event again, as eager does; `value` gives its tensors, in order.
std::vector<Tensor> run_event(const Event& e, const Binding& binding, const std::function<Tensor(Number)>& value);

}  // namespace brasa::capture
