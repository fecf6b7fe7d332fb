#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/fusion/fuse.h"
#include "compiler/schedules/machine.h"

namespace brasa::compiler {

/// How one merged dimension of a group's domain is run.
struct Axis {
  ir::Expr extent;
  size_t first, count;  // dimensions of the domain
  bool reduced;
  /// Single: not at all; the kernel is at the one place that changes along it (changed_place.h).
  enum Kind : uint8_t { Parallel, Serial, Vector, Single } kind = Parallel;
  /// Split into parallel pieces of this many iterations; 0 for none.
  int64_t piece = 0;
  bool summed = false;
  /// If not 0: so many iterations side by side are spelled out, some of a piece's; without pieces all of them.
  int64_t spelled_out = 0;
  /// The last ones spelled out are the axis' last ones, and may have been computed before.
  bool again = false;
};

/// All choices for one group, as data: heuristics write it, lowering obeys it and looks at nothing else. schedule_text.cpp names
/// each choice once, for the printer and the parser.
struct Schedule {
  std::vector<Axis> axes;        // outer first
  int width = 1, unroll = 1;     // of the vector axis
  int serial_unroll = 1;         // of serial axes
  bool vector_outside = false;   // the vector axis is kept, and reduced ones run inside it
  std::vector<uint32_t> staged;  // nodes kept in memory between passes over a row, on a GPU in what a block shares

  /// Along each reduced axis element i belongs to sum i % chains, each of which adds up its elements in order; these sums are added up in
  /// order, too, those of inner axes first. So no other choice gives other bits. 0: any order.
  int chains = 0;
  /// How many of them an axis has elements for, as far as that is known.
  ir::Expr chains_of(const Axis& axis) const;

  int rows = 1, vectors = 1;  // contraction: register tile
  int rest = 0;               // if not 0: the columns behind the last whole panel are one of so many vectors
  bool along_k = false;       // its vectors run along k: a tile has so many columns as it has vectors
  int neighbours = 1;         // so many along k are one step, a word of each operand
  bool matrix_tiles = false;  // rows x vectors are tiles of the processor's
  int row_blocks = 1;         // tiles that share a panel of the second operand while it is in the cache
  int64_t row_bytes = 0;      // if not 0: no more of them than whose rows these bytes hold,
  int row_least = 1;          // though so many in any case,
  int row_pieces = 1;         // and no more than leave so many tasks
  int panel_blocks = 1;       // panels for one parallel iteration; 0 for all of them
  int k_unroll = 1;
  /// Whether a step of the register tile is long beside a loop's end: copies of it gain nothing, and LLVM would keep in registers what
  /// neighbouring ones read alike, as windows that overlap do.
  bool long_step() const { return rows * vectors >= 8; }
  bool next_panel = false;  // each tile's sum asks for its part of the next panel
  bool stage_rows = false;  // the first operand's rows are computed into local memory first
  bool stage_tile = false;  // what follows the product reads the finished tile from local memory

  // GPU: threads of a block, each with `width` neighbours; and those that share a row, `unroll` times so many elements each, in
  // registers, or a column.
  int threads = 0, row_threads = 0;
  // Edge of a square of the last axis and another one, along which what is read are neighbours: it goes through memory that a block shares.
  int tile = 0, across = 0;
  bool atomic = false;  // GPU's scatter: updates run beside each other, in any order
  int parts = 1;        // GPU's scatter: of the places along the first indexed dimension, each with all its updates

  int64_t grain = 1;   // parallel iterations that one thread takes at a time
  int64_t beside = 0;  // with fewer iterations than this it shares one start of threads with its neighbours

  std::vector<Schedule> before;  // scatter: of the kernel that fills the result first
};
/// "parallel d0 [8] in pieces of 8; vector d1 [100] reduced; width 8; unroll 4; stage %4; grain 12"; usual choices are left out.
void append_to(std::string& out, const Schedule& s);
/// What append_to wrote of a group over this domain; brasa::Error on other text.
Schedule parse_schedule(std::string_view text, const Domain& domain);

/// The choices of the heuristics; a device's row says which of the two it wants.
Schedule schedule(const Group& group, const Machine& machine);
Schedule schedule_cpu(const Group& group, const Machine& machine);
Schedule schedule_gpu(const Group& group, const Machine& machine);

/// What a measurement may find faster: sets of schedules, each of which differ from `first` in one choice. None gives other bits.
std::vector<std::vector<Schedule>> candidates(const Group& group, const Machine& machine, const Schedule& first);

}  // namespace brasa::compiler
