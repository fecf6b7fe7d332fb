#pragma once

#include <vector>

#include "capture/joint.h"

namespace brasa::capture {

/// What lies around the nodes of a replay.
struct Ends {
  std::vector<autograd::Edge> leaves;  // where gradients leave the segment
  /// By slot: the root whose result it is, from outside. What the node keeps of its results comes from there.
  std::vector<autograd::Edge> roots;
  std::vector<autograd::Edge> through,
      views;              // if not empty, nodes that gradients flow through on the way, by slot and by held view
  bool in_place = false;  // the nodes run where those of the recording would have: between the roots
};

/// Runs the segment's forward part again, operator by operator, with gradients flowing where they flowed when it was recorded:
/// for derivatives of derivatives. Gives the values of `JointSegment::roots`.
std::vector<Tensor> replay(const JointSegment& joint, const Binding& binding, const std::vector<Tensor>& inputs,
                           const Ends& ends);
/// The inputs that it reads.
std::vector<bool> inputs_of_replay(const JointSegment& joint);

}  // namespace brasa::capture
