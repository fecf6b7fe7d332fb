#include <algorithm>
#include <bit>

#include "compiler/fusion/indexing.h"
#include "compiler/targets/emitter.h"

// Loads whose lanes lie far apart, while what an unrolled loop reads lies side by side: such neighbours are read as vectors, one for
// each lane, and transposed in registers.
namespace brasa::compiler {

namespace {

constexpr int64_t kMostApart = 4;  // elements between the unrolled loop's iterations
constexpr int64_t kFewest = 4;     // of these; fewer than there are lanes are read through a mask

// The matrix whose rows these vectors of words are, of so many to 128 bits. Each step pairs rows whose numbers differ in one bit, and afterwards that
// bit of a row's number is the same bit of its words' columns: first within 128 bits, then such parts as wholes, as processors have both.
void transpose(llvm::IRBuilder<>& b, std::vector<llvm::Value*>& rows, int words) {
  const auto lanes = static_cast<int>(rows.size());
  auto pair_rows = [&](int bit, auto word) {  // the word of both rows, one behind the other, that place i gets
    for (int row = 0; row < lanes; ++row) {
      if (row & bit) continue;
      std::vector<int> lower(lanes), upper(lanes);
      for (int i = 0; i < lanes; ++i) {
        lower[i] = word(i, 0);
        upper[i] = word(i, 1);
      }
      llvm::Value *x = rows[row], *y = rows[row | bit];
      rows[row] = b.CreateShuffleVector(x, y, lower);
      rows[row | bit] = b.CreateShuffleVector(x, y, upper);
    }
  };
  const int within = std::min(words, lanes);
  for (int bit = within / 2; bit > 0; bit /= 2)
    pair_rows(bit, [&](int i, int half) {
      return i % 2 * lanes + i / within * within + half * (within / 2) + i % within / 2;
    });
  for (int bit = within; bit < lanes; bit *= 2)
    pair_rows(bit, [&](int i, int odd) { return (i / within * 2 + odd) * within + i % within; });
}

// That each of these indices is positive is what a mask asks for; false where it asks for something else.
bool positive_indices(Value mask, std::vector<Expr>& out) {
  const Node* n = mask.node;
  if (loop_kind(n->op) || ir::is_input(mask)) return false;
  ScalarOp op = scalar_op_of(n->op);
  if (op == ScalarOp::BitAnd) return positive_indices(n->arg<Value>(0), out) && positive_indices(n->arg<Value>(1), out);
  if (op != ScalarOp::Lt && op != ScalarOp::Ge) return false;
  Expr sides[2];
  for (size_t i : {0, 1}) {
    const Node* side = n->arg<Value>(i).node;
    if (loop_kind(side->op) != LoopOp::Index) return false;
    sides[i] = side->arg<Expr>(0);
  }
  out.push_back(op == ScalarOp::Lt ? sides[1] - sides[0] : sides[0] - sides[1] + 1);
  return true;
}

}  // namespace

bool Emitter::terms_of_mask(const Node* load, std::vector<Expr>& out) {
  if (load->args[2].is_none()) return true;
  auto mask = load->arg<Value>(2);
  auto it = decided_.find(mask.node);
  return (it != decided_.end() && it->second == b_.getTrue()) || positive_indices(mask, out);
}

// For as many iterations of the unrolled loop at once as a vector has lanes; false where the load is another one.
bool Emitter::load_transposed(const Node* n) {
  const int lanes = vector_.lanes;
  const BufferRef p = place_of(n->arg<Value>(0));
  const int64_t bytes = size_of(p.dtype);
  if (target_.gpu || lanes < (bytes == 8 ? 4 : 8) || lanes > 16) return false;
  const Expr place = n->arg<Expr>(1);
  // The loop, and how far apart its iterations read.
  int loop = -1, first = 0;
  int64_t apart = 0, iterations = 0;
  bool backwards = false;
  for (Ranges r = analysis_.of(place) & analysis_.kind(ForKind::Unroll); r; r &= r - 1) {
    const For& f = analysis_.loops()[std::countr_zero(r)];
    auto step = coefficient(place, f.range);
    if (!f.extent().is_constant() || !step || !step->is_constant()) continue;
    loop = std::countr_zero(r);
    first = unrolled_[loop] / lanes * lanes;
    iterations = std::min<int64_t>(f.extent().constant() - first, lanes);
    apart = iterations < (target_.masks ? kFewest : lanes) ? 0 : std::abs(step->constant());
    backwards = step->constant() < 0;
    if (apart >= 1 && apart <= kMostApart) break;
    loop = -1;
  }
  const int64_t word = apart * bytes % 4 == 0 ? std::max<int64_t>(bytes, 4) : bytes;
  if (loop < 0 || (word < 4 && apart > 1)) return false;
  const Expr range = analysis_.loops()[loop].range;
  auto at_first = [&](Expr e) {
    int kept = std::exchange(unrolled_[loop], first + (backwards ? static_cast<int>(iterations) - 1 : 0));
    Expr out = at_copy(e);
    unrolled_[loop] = kept;
    return out;
  };
  // Each lane's window of elements begins so many before the load's own first one, where loads of what lies between begin, too.
  LaneIndex index = lane_index(at_first(place));
  if (!index.linear || index.stride.is(0) || index.stride.is(1) || varies(index.base)) return false;
  int64_t constant = index.base->kind == ir::ExprKind::Add || index.base.is_constant() ? index.base->value : 0;
  const int64_t before = ((constant % apart) + apart) % apart;
  // A mask leaves out lanes, or the ends of their windows; else what lies between must be read, too.
  std::vector<Expr> terms, of_lanes, of_window;
  if (!terms_of_mask(n, terms)) return false;
  for (Expr term : terms) {
    auto step = coefficient(term, range);
    LaneIndex t = lane_index(at_first(term));
    if (!step || !step->is_constant() || !t.linear || varies(t.base)) return false;
    if (step->is(0))
      of_lanes.push_back(at_first(term));
    else if (step->is(-apart) && t.stride.is(0) && !backwards)
      of_window.push_back(t.base + before);
    else if (step->is(-1) && t.stride.is(0) && !backwards)  // whole iterations
      of_window.push_back(t.base * apart);
    else
      return false;
  }
  if (!of_window.empty() && !target_.has_masks(bytes)) return false;
  for (int64_t i = 0; i < apart && of_window.empty(); ++i) {
    auto reads = [&](const Node* other) {
      std::vector<Expr> its;
      return loop_kind(other->op) == LoopOp::Load && other->arg<Value>(0) == n->arg<Value>(0) &&
             other->arg<Expr>(1) == place - before + i && terms_of_mask(other, its) && its == terms;
    };
    if (std::none_of(graph_.nodes().begin(), graph_.nodes().end(), reads)) return false;
  }

  const int64_t per_vector = lanes * word / bytes, vectors = apart * bytes / word;
  auto count = static_cast<unsigned>(per_vector);
  auto* type = llvm::FixedVectorType::get(memory_type(p.dtype), count);
  auto* words = llvm::FixedVectorType::get(b_.getIntNTy(static_cast<unsigned>(8 * word)), static_cast<unsigned>(lanes));
  llvm::Value* left = nullptr;  // elements of the window that are there
  if (iterations < lanes) left = i64(apart * (iterations - 1) + before + 1);
  for (Expr e : of_window) {
    llvm::Value* v = eval_expr(e);
    left = left ? intrinsic(llvm::Intrinsic::smin, {left, v}) : v;
  }
  if (left) left = in_32_bits(left);
  std::vector<std::vector<llvm::Value*>> columns(vectors);
  for (int64_t v = 0; v < vectors; ++v) {
    llvm::Value* mask = nullptr;
    if (left) {
      std::vector<llvm::Constant*> places;
      for (int64_t i = 0; i < per_vector; ++i)
        places.push_back(llvm::ConstantInt::get(b_.getInt32Ty(), static_cast<uint64_t>(v * per_vector + i)));
      mask = b_.CreateICmpSLT(llvm::ConstantVector::get(places), b_.CreateVectorSplat(count, left));
    }
    for (int lane = 0; lane < lanes; ++lane) {
      auto of_lane = [&](const LaneIndex& i) { return i.base + i.stride * lane; };
      llvm::Value* at = address(p, of_lane(index) - before + v * per_vector);
      llvm::Value* there = vector_.mask ? b_.CreateExtractElement(vector_.mask, lane) : nullptr;
      for (Expr e : of_lanes) {
        llvm::Value* positive = b_.CreateICmpSGT(eval_expr(of_lane(lane_index(e))), i64(0));
        there = there ? b_.CreateAnd(there, positive) : positive;
      }
      if (there) at = b_.CreateSelect(there, at, zeros());
      llvm::Align align(static_cast<uint64_t>(bytes));
      llvm::Value* x = mask ? static_cast<llvm::Value*>(
                                  b_.CreateMaskedLoad(type, at, align, mask, llvm::Constant::getNullValue(type)))
                            : b_.CreateAlignedLoad(type, at, align);
      columns[v].push_back(b_.CreateBitCast(x, words));
    }
    transpose(b_, columns[v], static_cast<int>(16 / word));
  }
  auto* result = llvm::FixedVectorType::get(memory_type(p.dtype), static_cast<unsigned>(lanes));
  const int kept = unrolled_[loop];
  for (int i = 0; i < iterations; ++i) {
    int64_t byte = (apart * i + before) * bytes;
    llvm::Value* x = columns[byte / word / lanes][byte / word % lanes];
    if (byte % word) x = b_.CreateLShr(x, number(words, byte % word * 8));
    if (bytes < word)
      x = b_.CreateTrunc(
          x, llvm::FixedVectorType::get(b_.getIntNTy(static_cast<unsigned>(8 * bytes)), static_cast<unsigned>(lanes)));
    unrolled_[loop] = first + static_cast<int>(backwards ? iterations - 1 - i : i);
    set_result(n, {from_memory(b_.CreateBitCast(x, result), p.dtype)});
  }
  unrolled_[loop] = kept;
  return true;
}

}  // namespace brasa::compiler
