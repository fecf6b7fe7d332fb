#pragma once

#include <string>
#include <vector>

#include "compiler/fuse.h"
#include "compiler/machine.h"

namespace brasa::compiler {

/// How one merged dimension of a group's domain is run.
struct Axis {
  ir::Expr extent;
  size_t first, count;  // dimensions of the domain
  bool reduced;
  enum Kind : uint8_t { Parallel, Serial, Vector } kind = Parallel;
  /// Split into parallel pieces of this many iterations; 0 for none.
  int64_t piece = 0;
};

/// The choices for one group. Heuristics write it; lowering obeys it.
struct Schedule {
  std::vector<Axis> axes;               // loops groups: outer first
  int width = 1, unroll = 1;            // of the vector axis
  bool vector_outside = false;          // the vector axis is kept, and reduced ones run inside it
  std::vector<const ir::Node*> staged;  // values kept in local memory between passes over a row

  int rows = 1, vectors = 1;  // contraction: register tile
  int row_blocks = 1;         // tiles that share a panel of the second operand while it is in the cache
  int panel_blocks = 1;       // panels for one parallel iteration; 0 for all of them
  bool stage_rows = false;    // the first operand's rows are computed into local memory first
  int k_unroll = 1;

  int threads = 0;  // GPU: threads of a block
  /// Work of one parallel iteration in simple instructions, for how many of them one thread takes at a time.
  double work = 1;
};
void append_to(std::string& out, const Schedule& s);

Schedule schedule(const Group& group, const Machine& machine);

}  // namespace brasa::compiler
