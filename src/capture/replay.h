#pragma once

#include <vector>

#include "capture/joint.h"

namespace brasa::capture {

/// Runs the segment's forward part again, operator by operator, with gradients flowing where they flowed when it was recorded:
/// for derivatives of derivatives. Gives the values of `JointSegment::roots`. `leaves` is where gradients leave the segment; `roots` and
/// `views`, if not empty, are nodes that they flow through on the way, by slot and by held view.
std::vector<Tensor> replay(const JointSegment& joint, const Binding& binding, const std::vector<Tensor>& inputs,
                           const std::vector<autograd::Edge>& leaves, const std::vector<autograd::Edge>& roots,
                           const std::vector<autograd::Edge>& views);
/// The inputs that it reads.
std::vector<bool> inputs_of_replay(const JointSegment& joint);

}  // namespace brasa::capture
