#pragma once

#include <optional>
#include <string_view>

#include "compiler/names.h"
#include "ops/scalar_op.h"

// The operators that exist only at the loop level. Effects (`for`, `store`) give a bool that nobody reads.
//
//   loop::for(SymInt range, str kind, int width=1, int unroll=1) -> Tensor
//       Declares r<id>. kind:
//         serial    a loop; `unroll` > 1 asks for that many copies of the body
//         parallel  iterations may run at once on several threads; all parallel ranges come first, and are flattened
//                   row-major into the [begin, end) that the kernel is called with
//         vector    steps of `width` lanes, `unroll` vectors a step; an extent that is no multiple ends with masked lanes
//         unroll    expanded completely; the extent is a constant. With a `width` its iterations are neighbours in memory, and buffers
//                   begin at multiples of 16 bytes
//         block     (GPU) the grid, flattened like parallel
//         thread    (GPU) threads of the block; the extents are constants, their product at most 1024. Neighbouring threads are those of
//                   the innermost loop, or of the one with a `width` above 1
//         call      (GPU) so many calls in one launch, each with slots of its own; nothing depends on it, and the extent is a constant
//   loop::index(SymInt e, Tensor[] values=[]) -> Tensor   i64 value of an expression
//   loop::bind(Tensor value, SymInt symbol, SymInt[] ranges=[]) -> Tensor
//       v<id> := value (i64), anew in each iteration of `ranges`; whoever uses v<id> lists this node in `values`.
//   loop::load(Tensor buffer, SymInt index, Tensor? mask=None, Tensor[] values=[]) -> Tensor
//       buffer: a graph input or a `stage`. Where mask is false memory is not touched and the result is 0.
//   loop::store(Tensor buffer, SymInt index, Tensor value, Tensor? mask=None, Tensor[] values=[], str combine='') -> Tensor
//       combine: '' writes; 'add', 'max', 'min', 'mul' update atomically as far as iterations may run at once.
//   loop::prefetch(Tensor buffer, SymInt index, Tensor[] values=[], SymInt[] ranges=[], int level=1) -> Tensor
//       Asks for the memory at that place, which is read later, into a level of the cache; the place need not exist. It happens inside of
//       the loops of `ranges`, too, once for all lanes of a vector.
//   loop::reduce(Tensor[] items, SymInt[] ranges, str combiner) -> Tensor[]
//       Over all iterations of `ranges`. combiner: add, mul, max, min (NaN wins), and, or on one item (any order, the
//       accumulator has the item's dtype); argmax, argmin on (value, index), whose indices ascend: NaN wins, then the lowest index.
//   loop::scan(Tensor item, SymInt range, str combiner, Tensor? factor=None) -> Tensor
//       In each iteration of `range`, a serial or vector loop with no other loop inside of it around this node: the combination of the items
//       of all its iterations up to this one. combiner: as of a reduction of one item. factor: what a sum is multiplied by before.
//   loop::stage(Tensor value, SymInt[] ranges, str space) -> Tensor
//       Computes `value` for all of `ranges` into a local array, row-major over them, read by `load`. space: local (a
//       thread's own), shared (GPU: of the block; a barrier follows). Its other ranges are serial, parallel or block ones
//       (and thread, for local).
//   loop::unlikely(Tensor condition, Tensor rare, Tensor usual) -> Tensor
//       select(condition, rare, usual) where the condition almost never holds: `rare` may be computed in a branch.
//   loop::pair_product(Tensor a, Tensor b) -> Tensor
//       low · low + high · high of two words (int32): float32 where these hold two bfloat16 each, int32 where they hold integers. Where a
//       reduction adds floats up, the target's instruction may do both; that takes denormal numbers as 0.
//   loop::quad_product(Tensor a, Tensor b) -> Tensor
//       The sum (int32) of the products of the four bytes of a word each (int32): those of `a` are signed, those of `b` are not.
//   loop::scale(Tensor x, Tensor n) -> Tensor
//       x · 2^n, rounded once, by the target's instruction. n: a number of x's dtype without a fraction, or -infinity.
//   loop::table(int[] bits, ScalarType dtype) -> Tensor
//       A constant array given by its elements' bits, read by `load`.
//   loop::tile_product(Tensor a, Tensor b, SymInt a_at, SymInt a_row, SymInt a_step, SymInt b_at, SymInt steps, int rows, int columns, str kind) -> Tensor
//       A product of matrices by the processor's tiles, as a local array of rows x columns (16 or 32 each), read by `load`. A step is 64
//       bytes of each row of `a`, which lie at a_at + row * a_row + step * a_step, and 16 rows of so many columns of words (int32) of
//       `b`, all of them one after the other from b_at on. kind: bf16 (float32 sums of pairs; denormal numbers are 0), ss, su, us, uu
//       (int32 sums of four signed or unsigned bytes of `a` and of `b`).
//   loop::unwritten(Tensor[] buffers) -> Tensor
//       (GPU) Nothing that may still run when the kernel starts writes these buffers: they can be read before that has ended.
namespace brasa::compiler {

enum class LoopOp : uint8_t {
  For,
  Index,
  Bind,
  Load,
  Store,
  Prefetch,
  Reduce,
  Scan,
  Stage,
  Unlikely,
  PairProduct,
  QuadProduct,
  Scale,
  Table,
  TileProduct,
  Unwritten
};

const ir::Op* loop_op(LoopOp op);
/// Which one it is; nothing for a scalar primitive or an input.
std::optional<LoopOp> loop_kind(const ir::Op* op);

/// Whether it is a number that stands in the graph.
bool is_constant(const ir::Node* n);

/// Whether it computes a local array over loops: a stage or a product by tiles.
bool makes_array(const ir::Node* n);

/// Whether it is a stage in memory that a GPU's block shares.
bool is_shared(const ir::Node* array);

/// Of a product by tiles.
const std::string& tile_kind(const ir::Node* product);

/// The scalar operator of a point-wise primitive; None for all others.
ops::ScalarOp scalar_op_of(const ir::Op* op);

/// Every op that a loop graph may hold, by name; null if there is none. For ir::parse.
const ir::Op* find_loop_level_op(std::string_view name);

}  // namespace brasa::compiler
