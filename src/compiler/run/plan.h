#pragma once

#include <functional>
#include <vector>

#include "compiler/fusion/fuse.h"
#include "compiler/passes/passes.h"

namespace brasa::compiler {

/// Where a tensor of a step lies when the executable runs.
struct Place {
  enum Kind : uint8_t { Input, Output, Arena, Prepared } kind = Arena;
  int index = 0;        // of the input or output operand
  ir::Expr offset = 0;  // in the arena, what is prepared, or the operand, bytes
  friend bool operator==(const Place&, const Place&) = default;
};

void append_to(std::string& out, const Place& p);  // "input 0", "output 2", "arena + 64"

/// The order in which groups run, and the memory of everything they read and write.
struct Plan {
  std::vector<Group> steps;
  std::vector<std::vector<Place>> places;  // by step: inputs, then outputs
  struct Check {
    size_t after;  // step, or -1 before all
    Place place;
    std::string message;
  };
  std::vector<Check> checks;
  ir::Expr arena_bytes = 0;
  /// So many first steps read nothing but lasting inputs. What others read of them lies in memory of its own, which may be kept. Copies that are
  /// carried lie there, too, and later steps write what the next run finds.
  size_t prepared = 0;
  ir::Expr prepared_bytes = 0;
};

void append_to(std::string& out, const Plan& p);

/// What stands for the size of memory, which may be a large expression.
using Shortened = std::function<ir::Expr(const ir::Expr&)>;

/// Inputs that stay the same from run to run; of what is made of them alone so many bytes are kept.
struct LastingInputs {
  std::vector<bool> are;  // by input, or empty
  int64_t most_bytes = 0;
  std::vector<CarriedCopy> carried = {};
};

/// Which groups that are the same stand side by side, for launches and calls of several: where that costs little memory, or products for which
/// nobody waits, too, whose operands then live longer.
enum class Together : uint8_t { None, WhereSmall, Products };

Plan plan(
    const ir::Graph& graph, FusedGraph fused, Together together = Together::None, LastingInputs lasting = {},
    Shortened shortened = [](const ir::Expr& e) { return e; });

/// What a scatter or a library made and a reshape alone reads, whose result is a new tensor, has all its elements in that order: it is made
/// in the result's memory, and not copied there.
void drop_reshapes(const ir::Graph& graph, std::vector<Group>& groups);

/// Gives kernels what they read of a tensor from a constant place on as an operand.
void read_windows(Plan& p);

/// Whether neither step writes what the other one reads or writes.
bool independent(const Plan& p, size_t a, size_t b);

}  // namespace brasa::compiler
