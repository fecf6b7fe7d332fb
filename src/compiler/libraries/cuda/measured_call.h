#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "compiler/kernels/measured_ways.h"
#include "compiler/libraries/library.h"

namespace brasa::compiler {

/// A call of a library that may measure the ways it knows.
class MeasuredCall : public DeviceCall {
 protected:
  explicit MeasuredCall(std::shared_ptr<MeasuredWays> ways) : ways_(std::move(ways)) {
    if (ways_) ways_->expect();
  }
  /// What measures them, in a run; null where nothing does. `what` is for a person.
  runtime::Measuring* measuring(const char* what) const {
    if (ways_) std::call_once(begun_, [&] { ways_->begin(what); });
    return ways_.get();
  }

 private:
  std::shared_ptr<MeasuredWays> ways_;
  mutable std::once_flag begun_;
};

}  // namespace brasa::compiler
