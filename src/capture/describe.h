#pragma once

#include <string>

#include "capture/trace.h"

namespace brasa::capture {

/// Why a trace does not fit: what came, and what was expected; null means the end of the segment.
std::string difference(const Event* came, const Event* expected);

}  // namespace brasa::capture
