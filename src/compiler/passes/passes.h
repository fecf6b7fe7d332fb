#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "compiler/schedules/machine.h"
#include "ir/facts.h"
#include "ir/graph.h"

// The passes over graphs of primitives; the pipeline (pipeline.cpp) lists them in order.
namespace brasa::compiler {

/// Symbols behind those of a graph's inputs, from number `first` on: each is what an expression of those before it gives.
struct DefinedSymbols {
  uint32_t first = 0;
  std::vector<ir::Expr> are;
};

/// An input that no operand is given for: the narrow copy of another one, which the run before left and this one leaves for the next.
struct CarriedCopy {
  uint32_t of, input;
};

/// What passes work on.
struct Primitives {
  std::unique_ptr<ir::Graph> graph;
  /// Values that must go to memory: packed operands of contractions, and what is read in a better order from memory.
  std::unordered_set<ir::Value> in_memory;
  /// Sums down long columns: elements that follow from them, and those that they are made of, are written by kernels of their own.
  std::unordered_set<ir::Value> apart;
  /// Calls of libraries for more than a node; passes that make nodes anew forget them.
  LibraryGroups groups;
  std::vector<CarriedCopy> carried;       // their inputs are the last ones
  std::optional<DefinedSymbols> defined;  // in the sizes of the graph and of what is made of it; absent: there are none
};
void append_to(std::string& out,
               const Primitives& p);  // the graph's text, the values in memory, the calls, and symbols

struct PassContext {
  ir::Facts& facts;
  const Machine& machine;
  bool size_classes = false;       // see CompilerOptions
  std::vector<bool> lasting = {};  // so too, but for what the graph writes
  bool portable = false;           // see CompilerOptions
  /// By input, or empty: it lasts but for what the graph writes there.
  std::vector<bool> rewritten = {};
  int64_t prepared_room = 0;  // bytes that may be kept from run to run
};

using Pass = void (*)(Primitives& p, const PassContext& context);

/// One line of the pipeline.
struct GraphPass {
  std::string_view name;
  /// Others bring a graph into a form that later ones require, and cannot be switched off.
  bool optional;
  Pass run;
};

/// Algebra: see simplify.h.
void simplify(Primitives& p, const PassContext& context);
/// What of a tensor nobody reads is not computed, nor products of zeros around a part.
void drop_unread_parts(Primitives& p, const PassContext& context);
/// On a GPU, of single operators: facts tell apart sizes that are multiples of what a thread reads or writes at once.
void ask_for_whole_accesses(Primitives& p, const PassContext& context);
/// On a CPU, of single operators: facts tell the lengths of short rows apart, where there are many.
void ask_for_short_rows(Primitives& p, const PassContext& context);
/// What is known of sizes put in; results without elements, and reductions of nothing or of one element, need no kernel's loops.
void specialise(Primitives& p, const PassContext& context);
/// What a loop's steps give beside the states and nobody reads is not computed.
void drop_unread_results(Primitives& p, const PassContext& context);
/// Control flow that nothing here runs: a loop becomes its steps, where it is known how many there are, and a branch both of its sides.
void inline_bodies(Primitives& p, const PassContext& context);
/// On a GPU: what is written into part of a tensor is chosen among that and what was there, element by element of the whole, when nothing
/// reads parts of what was written any more.
void choose_written_parts(Primitives& p, const PassContext& context);
/// What is made of a library's convolutions keeps their order of dimensions in memory.
void keep_channels_last(Primitives& p, const PassContext& context);
/// A sum over places of what is not zero at one of them alone, which an index names, is what stands there.
void sum_single_places(Primitives& p, const PassContext& context);
/// Convolutions become contractions that read neighbours where they are in memory, and over sliding windows where steps are unknown.
void lower_convolutions(Primitives& p, const PassContext& context);
/// On a CPU: products that are transposed are products of exchanged operands.
void turn_products(Primitives& p, const PassContext& context);
/// On a CPU: products whose sums are too long for the second cache are made in parts.
void split_products(Primitives& p, const PassContext& context);
/// Contractions become [b,] m, k… · [b,] k…, n; with one row or column a reduction; an operand that is used often, or lies along no
/// vector, is packed into panels first.
void shape_contractions(Primitives& p, const PassContext& context);
/// What is read often of an image with a border goes to memory with it.
void write_borders(Primitives& p, const PassContext& context);
/// On a CPU: a concatenation of whole rows from memory to memory is one of lines.
void join_concatenated_rows(Primitives& p, const PassContext& context);
/// On a CPU: what is read often, in steps, goes to memory in the order of reading.
void gather_strided_reads(Primitives& p, const PassContext& context);
/// On a GPU: products of reduced floats that are widened for them and narrowed afterwards are products of reduced floats.
void narrow_products(Primitives& p, const PassContext& context);
/// On a GPU: products of reduced floats whose rows are no multiple of 16 bytes get longer ones, and convolutions of few channels more of them.
void align_products(Primitives& p, const PassContext& context);
/// What is summed of reduced floats is accumulated in float32.
void widen_accumulators(Primitives& p, const PassContext& context);
/// Numbers that are compared with what is made of them, as the gradient of a maximum does it, go to memory: computed twice, a product and a
/// sum may be one operation here and two there, and nothing would be equal.
void keep_compared(Primitives& p, const PassContext& context);
/// On a CPU: what is computed from lasting inputs alone and then repeated, as a norm's factors for each channel, goes to memory: it is made once.
void keep_lasting_values(Primitives& p, const PassContext& context);
/// On a GPU: narrow copies of parameters that the graph updates are left by the run before, written beside the update.
void carry_narrow_copies(Primitives& p, const PassContext& context);
/// On a GPU: sums that differ alone in factors that are the same for all that is summed become one.
void share_sums(Primitives& p, const PassContext& context);
/// On a GPU: a variance of long columns is made of sums that need no mean, so that one pass over memory makes both.
void expand_squared_differences(Primitives& p, const PassContext& context);
/// Reductions with too little parallel work are split in two.
void split_reductions(Primitives& p, const PassContext& context);
/// On a CPU: what follows from sums down long columns is written along rows, which memory sends ahead.
void keep_columns_apart(Primitives& p, const PassContext& context);
/// A library's operands are contiguous memory, or lie as it can read them.
void place_library_operands(Primitives& p, const PassContext& context);
/// Sizes that are large expressions, as those that nest, get symbols that a run computes once, in place of each kernel.
void define_large_sizes(Primitives& p, const PassContext& context);
/// Several nodes that a library computes in one call.
void group_library_calls(Primitives& p, const PassContext& context);
/// An input that another input receives becomes a value of its own, so that the plan has something to keep where both are
/// overwritten.
void copy_inputs(Primitives& p, const PassContext& context);

/// The dtype in which sums of this dtype accumulate.
DType accumulator_of(DType t);

}  // namespace brasa::compiler
