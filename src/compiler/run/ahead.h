#pragma once

#include <memory>
#include <span>

#include "compiler/run/executable.h"

namespace brasa::compiler {

/// A run that begins before all of its inputs are known, so that a device has work while the host still finds out the rest. What it
/// does ahead of time writes into memory of its own alone: it may be given up at any time.
class RunAhead {
 public:
  virtual ~RunAhead();
  virtual const Executable& executable() const = 0;
  /// The next input, in order, and where it lives; what needs no others is given to the device. Does not fail: `finish` does.
  virtual void add(const Operand& input, const runtime::Device& place) = 0;
  /// All of it, as Executable::run. What was done ahead counts where the inputs are those that were added.
  virtual void finish(const int64_t* symbols, std::span<const Operand> inputs, std::span<const Operand> outputs) = 0;
};

/// Null where nothing can be done ahead: on the host, or because sizes are symbols.
std::unique_ptr<RunAhead> run_ahead(std::shared_ptr<const Executable> executable);

}  // namespace brasa::compiler
