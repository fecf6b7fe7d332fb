#pragma once

#include "capture/trace.h"
#include "export/captured.h"

namespace brasa::exporting {

/// A program has its own stream of random numbers: what the recording knew as keys becomes [seed, offset] of that stream, as far on as the
/// draws before leave it. The state is one more source, which the program moves on.
void keep_random_state(Captured& c, const capture::Trace& trace, const Surroundings& surroundings);

}  // namespace brasa::exporting
