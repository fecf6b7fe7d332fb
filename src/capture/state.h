#pragma once

#include <mutex>
#include <string>
#include <vector>

#include <brasa/compile.h>

#include "capture/backend.h"
#include "capture/trace.h"

namespace brasa::detail {

/// What stays of a compiled function between calls. Calls may overlap: the mutex is held while something of this is looked up or
/// added (also while a graph is compiled), not while a call records, finds what it knows already, or runs.
struct CompiledState {
  CompileOptions options;
  capture::Backend backend;
  capture::ResumePoint start;
  std::vector<std::string> breaks, recompiles;
  std::recursive_mutex mutex;  // a backend's function may ask for an explanation
};

}  // namespace brasa::detail
