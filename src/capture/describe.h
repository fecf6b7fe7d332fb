#pragma once

#include <string>
#include <vector>

#include "capture/trace.h"

namespace brasa::capture {

/// Why a trace does not fit: what came, and what was expected under its binding; null means the end of the segment.
std::string difference(const Event* came, const Event* expected, size_t position, const Binding& binding);
/// What the inputs of a trace must be like.
std::vector<std::string> guards_of(const Trace& trace);

}  // namespace brasa::capture
