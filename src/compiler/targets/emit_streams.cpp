#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <utility>

#include "compiler/targets/emitter.h"

// Results that no cache holds: a loop that does little else than write one goes past the caches, which would read each line first.
namespace brasa::compiler {

using ir::Node;

namespace {

// What a core's caches leave of it for others: smaller results, such as zeros that something is added to, are often used at once.
constexpr int64_t kLarge = 16 << 20;
// Elements of a piece that is written whole: lines at its ends, where these lie within lines, are written in parts.
constexpr int64_t kLongRow = 4096;
constexpr int64_t kLine = 64;
// Longer bodies do not wait for memory, and would take longer to compile twice.
constexpr int64_t kShortBody = 32;

bool is(const Node* n, LoopOp op) { return loop_kind(n->op) == op; }

// A sum, or what a tile has of one.
bool is_sum(const Node* n) {
  if (is(n, LoopOp::Load)) n = n->arg<Value>(0).node;
  if (is(n, LoopOp::Stage)) n = n->arg<Value>(0).node;
  return is(n, LoopOp::Reduce);
}

}  // namespace

// Calls f for stores of the loop that may go past the caches, in a vector that begins there.
void Emitter::each_streamable(const Loop& loop, llvm::Value* begin, const std::function<void(const Node*)>& f) {
  streamed_.clear();
  const For& vectors = analysis_.loops()[loop.loop];
  if (vectors.width == 1 || in_lines_ || !loop.closes.empty() || !loop.carries.empty()) return;
  with_frame([&] {
    enter_vector(loop.loop, vectors.width, 1, begin);
    for (const Item& item : loop.body) {
      if (!item.node || !is(item.node, LoopOp::Store) || !may_stream(item.node)) continue;
      if (item.node->args[3].is_none() || decided(item.node->arg<Value>(3).node)) f(item.node);
    }
    vector_ = {};
  });
}

// Whether the loop's full steps from `begin` to `end` shall write so, and then which of its stores do: those in `streamed_`, whose vectors
// are whole pieces of memory. Null: never.
llvm::Value* Emitter::streams(const Loop& loop, llvm::Value* begin, llvm::Value* end) {
  llvm::Value *all = nullptr, *count = b_.CreateNSWSub(end, begin);
  each_streamable(loop, begin, [&](const Node* store) {
    std::optional<Streamed> p = streamed(store);
    if (!p) return;
    auto multiple = [&](llvm::Value* v, int64_t of) { return b_.CreateICmpEQ(b_.CreateAnd(v, i64(of - 1)), i64(0)); };
    llvm::Value* lines = b_.CreateAnd(multiple(p->at, kLine), multiple(count, kLine / p->size));
    llvm::Value* pieces = b_.CreateAnd(multiple(p->at, p->bytes), b_.CreateICmpSGE(count, i64(kLongRow)));
    all = all_of(all, b_.CreateAnd(is_far(store), b_.CreateOr(lines, pieces)));
  });
  streams_ = streams_ || all;
  return all;
}

// Whether rows up to `end` are as long as several lines of memory, which lie alike for all of its stores, and `before`: how many elements lie in
// front of the first line. Null: never.
llvm::Value* Emitter::streams_lines(const Loop& loop, llvm::Value* end, llvm::Value*& before) {
  constexpr int64_t kLeastLines = 4;
  llvm::Value* all = nullptr;
  each_streamable(loop, i64(0), [&](const Node* store) {
    std::optional<Streamed> p = streamed(store);
    if (!p) return;
    auto behind = [&](llvm::Value* at) { return b_.CreateAnd(b_.CreateNeg(at), i64(kLine - 1)); };
    if (!before) before = b_.CreateExactSDiv(behind(p->at), i64(p->size));
    llvm::Value* line = b_.CreateAdd(p->at, b_.CreateNSWMul(before, i64(p->size)));
    llvm::Value* lies_so = b_.CreateICmpEQ(behind(line), i64(0));
    llvm::Value* is_long = b_.CreateICmpSGE(end, i64(kLeastLines * kLine / p->size));
    all = all_of(all, b_.CreateAnd(is_far(store), b_.CreateAnd(lies_so, is_long)));
  });
  streams_ = streams_ || all;
  return all;
}

// Whole lines past the caches; what lies in front of them and behind them is in lines of the rows beside this one, too.
void Emitter::emit_lines(const std::vector<Border>& borders, const Loop& loop, llvm::Value* begin, llvm::Value* end) {
  const For& f = analysis_.loops()[loop.loop];
  const auto streamed = std::exchange(streamed_, {});
  auto few = [&](llvm::Value* from, llvm::Value* to) {
    emit_if(b_.CreateICmpSLT(from, to), [&] {
      with_frame([&] {
        target_.masks ? emit_vector_part(loop, from, to, f.width, 1, to, -1) : emit_part(loop, from, to, f.width, 1);
      });
    });
  };
  anywhere_ = true;
  few(i64(0), begin);
  llvm::Value* done = begin;
  int of_line = 1;
  for (const Node* store : streamed)
    of_line = std::max(of_line, static_cast<int>(kLine / (size_of(type_of(store->arg<Value>(0)).dtype) * f.width)));
  std::vector<int> steps = {of_line};
  if (f.unroll > of_line) steps.insert(steps.begin(), f.unroll / of_line * of_line);
  for (int copies : steps) {
    streamed_ = streamed;
    anywhere_ = true;
    llvm::Value* stop = b_.CreateNSWAdd(done, whole_steps(b_.CreateNSWSub(end, done), int64_t{f.width} * copies));
    borders.empty() ? emit_vector_part(loop, done, stop, f.width, copies, nullptr, -1)
                    : emit_between(borders, loop, done, stop, copies);
    done = stop;
  }
  streamed_.clear();
  few(done, end);
  anywhere_ = false;
}

// As far as the store itself tells.
bool Emitter::may_stream(const Node* store) const {
  if (!target_.streams || target_.baseline || !store->arg<std::string>(5).empty()) return false;
  auto buffer = store->arg<Value>(0);
  Expr elements = type_of(buffer).shape[0];
  if (elements.is_constant() && elements.constant() * size_of(type_of(buffer).dtype) < kLarge) return false;
  const Ranges around = analysis_.inside(store), loops = around & analysis_.kind(ForKind::Vector);
  int64_t in_loop = 0;
  for (const Node* n : graph_.nodes()) {
    if ((analysis_.of(n) & loops) == 0) continue;
    // A tile of sums is written in pieces of several rows in turn: more lines than a core gathers at once.
    if (is_sum(n)) return false;
    ++in_loop;
  }
  if (in_loop > kShortBody || (around & analysis_.kind(ForKind::Unroll))) return false;
  return std::none_of(graph_.nodes().begin(), graph_.nodes().end(), [&](const Node* n) {
    return is(n, LoopOp::Load) && n->arg<Value>(0) == buffer;  // it is in the caches
  });
}

// Whether a mask is one number for all lanes here.
bool Emitter::decided(const Node* mask) const {
  if (scalar_op_of(mask->op) == ScalarOp::BitAnd)
    return decided(mask->arg<Value>(0).node) && decided(mask->arg<Value>(1).node);
  return decided_.count(mask) > 0;
}

// Notes a store as one of them, if its vectors are pieces of lines.
std::optional<Emitter::Streamed> Emitter::streamed(const Node* store) {
  BufferRef p = place_of(store->arg<Value>(0));
  int64_t size = size_of(p.dtype), bytes = size * vector_.lanes;
  LaneIndex index = lane_index(at_copy(store->arg<Expr>(1)));
  if (bytes < 16 || bytes > kLine || !index.linear || !index.stride.is(1)) return std::nullopt;
  streamed_.insert(store);
  return Streamed{b_.CreatePtrToInt(address(p, index.base), b_.getInt64Ty()), size, bytes};
}

llvm::Value* Emitter::all_of(llvm::Value* before, llvm::Value* condition) {
  return before ? b_.CreateAnd(before, condition) : condition;
}

// Whether its buffer is as large, and none of those that are read.
llvm::Value* Emitter::is_far(const Node* store) {
  auto buffer = store->arg<Value>(0);
  BufferRef p = place_of(buffer);
  llvm::Value* far = b_.CreateICmpSGE(eval_expr(type_of(buffer).shape[0]), i64(kLarge / size_of(p.dtype)));
  for (const Node* n : graph_.nodes())
    if (is(n, LoopOp::Load) && graph_.input_index(n->arg<Value>(0)) >= 0)
      far = b_.CreateAnd(far, b_.CreateICmpNE(place_of(n->arg<Value>(0)).base, p.base));
  return far;
}

// What is to be asked for in place of lines that are written past the caches: what is there in any case.
llvm::Value* Emitter::unless_streamed(Value buffer, llvm::Value* at) {
  for (const Node* n : graph_.nodes()) {
    if (!is(n, LoopOp::Store) || n->arg<Value>(0) != buffer || !may_stream(n)) continue;
    llvm::Value* within = b_.CreateAnd(b_.CreatePtrToInt(at, b_.getInt64Ty()), i64(kLine - 1));
    return b_.CreateSelect(b_.CreateAnd(is_far(n), b_.CreateICmpEQ(within, i64(0))), function_->getArg(0), at);
  }
  return at;
}

// Nobody reads before all of it is in memory.
void Emitter::end_streams() {
  if (streams_) b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
}

}  // namespace brasa::compiler
