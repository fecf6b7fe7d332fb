#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <brasa/compile.h>

#include "capture/backend.h"
#include "capture/pace.h"
#include "capture/shortcut.h"
#include "capture/trace.h"
#include "support/mutex.h"

namespace brasa::capture {

/// A place where a segment ended, because a value had to be known or at an opaque call.
struct Break {
  const ResumePoint* place;  // where the segment began; null: that is not kept
  const ops::Row* after;     // the last operator; null: there is none
  std::string reason;        // empty: an opaque call
  std::vector<void*> stack;  // of the first time
  bool decides;              // what was read says yes or no: a branch, as far as one can see
  int64_t count = 0;         // written without a lock
};

}  // namespace brasa::capture

namespace brasa::detail {

/// What stays of a compiled function between calls. Calls may overlap: the mutex is held while something of this is looked up or
/// added (also while a graph is compiled), not while a call records, finds what it knows already, or runs.
struct CompiledState : std::enable_shared_from_this<CompiledState> {
  CompileOptions options;
  capture::Backend backend;
  uint64_t resets = 0;  // what `reset` had counted when it was made
  capture::ResumePoint start;
  capture::ResumePoint far;           // behind more breaks than have points of their own
  std::deque<capture::Break> breaks;  // each stays where it is
  std::vector<std::string> recompiles;
  capture::Shortcuts shortcuts;
  std::optional<capture::Pace> pace;  // absent: every call is recorded
  RecursiveMutex mutex;               // a backend's function may ask for an explanation
};

}  // namespace brasa::detail
