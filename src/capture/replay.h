#pragma once

#include <vector>

#include "capture/joint.h"

namespace brasa::capture {

/// Runs the segment's forward part again, operator by operator, with gradients flowing where they flowed when it was recorded:
/// for derivatives of derivatives. Gives the values of `JointSegment::roots`. `written` marks inputs that no longer have the value
/// that the segment read; brasa::Error if a root depends on one. `leaves` is where gradients leave the segment.
std::vector<Tensor> replay(const JointSegment& joint, const Binding& binding, const std::vector<Tensor>& inputs,
                           const std::vector<bool>& written, const std::vector<autograd::Edge>& leaves);

}  // namespace brasa::capture
