#pragma once

#include <brasa/tensor.h>

#include <optional>
#include <vector>

namespace brasa::eager {

using OptionalTensors = std::vector<std::optional<Tensor>>;

/// A mask among indices: bool, or uint8 as in old programs.
bool is_mask(const Tensor& index);

/// What `indices` of `self` read: integers as they are, in place of each mask the positions where it holds, one index for each of its
/// dimensions. Those of the host go to self's device. brasa::IndexError for a mask of another shape.
OptionalTensors read_positions(const Tensor& self, ArrayRef<std::optional<Tensor>> indices);

/// As read_positions, for writing: one bool mask alone stays, since index_put takes it without knowing how often it holds.
OptionalTensors written_positions(const Tensor& self, ArrayRef<std::optional<Tensor>> indices);

}  // namespace brasa::eager
