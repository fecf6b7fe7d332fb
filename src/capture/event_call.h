#pragma once

#include <forward_list>
#include <functional>
#include <optional>
#include <vector>

#include "capture/trace.h"
#include "tensor/args.h"
#include "tensor/dispatch.h"

namespace brasa::capture {

/// The arguments of a recorded event as a call has them: for running it again. They point into this.
class EventCall {
 public:
  /// `value` gives the event's tensors, in order.
  EventCall(const Event& e, const Binding& binding, const std::function<Tensor(Number)>& value);
  EventCall(const EventCall&) = delete;
  EventCall& operator=(const EventCall&) = delete;
  eager::CallArgs args() const { return eager::CallArgs(args_.data(), args_.size()); }

 private:
  CallArg of(const ir::Arg& a, const ir::Param& p, const Binding& binding, const std::function<Tensor(Number)>& value);

  std::vector<CallArg> args_;
  std::forward_list<Tensor> tensors_;
  std::forward_list<std::vector<Tensor>> lists_;
  std::forward_list<std::vector<std::optional<Tensor>>> optionals_;
  std::forward_list<std::vector<int64_t>> ints_;
  std::forward_list<Scalar> scalars_;
  eager::Literals literals_;
};

}  // namespace brasa::capture
