#pragma once

#include <mutex>
#include <string>
#include <vector>

#include <brasa/compile.h>

#include "capture/backend.h"
#include "capture/trace.h"
#include "capture/workspace.h"

namespace brasa::detail {

/// What stays of a compiled function between calls.
struct CompiledState {
  CompileOptions options;
  capture::Backend backend;
  capture::Place start;
  std::vector<std::string> breaks, recompiles;
  capture::Workspace workspace;  // empty while a call runs
  std::recursive_mutex mutex;    // the function may ask for its own explanation
};

}  // namespace brasa::detail
