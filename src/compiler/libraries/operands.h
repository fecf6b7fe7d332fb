#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/fusion/places.h"
#include "compiler/run/size_program.h"

// How a device's library reads operands where they are: through views, in even steps of memory.
namespace brasa::compiler {

/// An operand as places in memory: a step for each of its dimensions.
struct Steps {
  ir::Expr offset;
  std::vector<ir::Expr> of;
};
/// Whether a library can read an operand of this shape so, whatever the sizes.
using Readable = bool (*)(const Steps& steps, const ir::Shape& shape);

/// Without gaps, in the order of the dimensions.
bool is_contiguous(const Steps& steps, const ir::Shape& shape);

/// Nothing where these are no even steps, or not `readable`.
std::optional<Steps> steps_at(ir::Value operand, ir::Expr place, const Index& probe, Readable readable);

/// How the operand lies, if what it ends at goes to memory; `in_memory` ends it too.
std::optional<Steps> steps_in_memory(ir::Value operand, Readable readable, const ir::Graph& graph,
                                     const std::unordered_set<ir::Value>& in_memory);

/// The operand, where something on its way through views (and what widens, if `through`) can be read in memory: that goes to `in_memory`;
/// else a copy of it.
ir::Value placed(ir::Value operand, bool through, Readable readable, const ir::Graph& graph,
                 std::unordered_set<ir::Value>& in_memory);

/// What the operand is read from if these values lie in memory with these strides; null where it cannot be.
using Stored = std::unordered_map<const ir::Node*, std::vector<ir::Expr>>;
ir::Value source_in(const Stored& stored, ir::Value operand, Readable readable);
/// Whether there is one, of the operand's own dtype.
bool reads_in_place(const Stored& stored, ir::Value operand, Readable readable);

/// Which input of the group an operand is.
size_t input_of(const Group& group, ir::Value operand);

/// What a group reads an operand from.
struct Source {
  size_t input;  // of the group
  DType dtype;
  Steps steps;
};
Source source_of(const Group& group, ir::Value operand, Readable readable);

/// Where each run finds an operand or a result among the group's tensors, inputs first.
struct Located {
  Located() = default;
  Located(size_t tensor, DType dtype, const Steps& steps);
  explicit Located(const Source& source) : Located(source.input, source.dtype, source.steps) {}
  std::byte* data(void* const* tensors, const int64_t* symbols) const {
    return static_cast<std::byte*>(tensors[tensor]) + offset(symbols) * size_of(dtype);
  }

  size_t tensor = 0;
  DType dtype{};
  SizeProgram offset;
  std::vector<SizeProgram> steps;  // of its dimensions
};

}  // namespace brasa::compiler
