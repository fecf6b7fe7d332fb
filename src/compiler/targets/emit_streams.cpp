#include <llvm/IR/IntrinsicsX86.h>

#include "compiler/targets/emitter.h"

// Results that no cache holds: a loop that does little else than write one goes past the caches, which would read each line first.
namespace brasa::compiler {

using ir::Node;

namespace {

// What a core's caches hold, and what they leave of it for others.
constexpr int64_t kLarge = 16 << 20;
// Pieces of memory that are written whole: lines at their ends are written in parts.
constexpr int64_t kLongRow = 4096;
// Longer bodies do not wait for memory, and would take longer to compile twice.
constexpr size_t kShortBody = 32;

bool is(const Node* n, LoopOp op) { return loop_kind(n->op) == op; }

}  // namespace

// Whether the loop's full steps from `begin` to `end` shall write so, and then which of its stores do: those in `streamed_`, whose vectors
// are whole pieces of memory. Null: never.
llvm::Value* Emitter::streams(const Loop& loop, llvm::Value* begin, llvm::Value* end) {
  streamed_.clear();
  const For& f = analysis_.loops()[loop.loop];
  if (!target_.streams || target_.baseline || f.width == 1 || !loop.closes.empty() || !loop.carries.empty())
    return nullptr;
  Ranges bit = Ranges{1} << loop.loop;
  auto in_loop = std::count_if(graph_.nodes().begin(), graph_.nodes().end(),
                               [&](const Node* n) { return (analysis_.of(n) & bit) != 0; });
  if (in_loop > static_cast<int64_t>(kShortBody)) return nullptr;
  llvm::Value* all = nullptr;
  auto also = [&](llvm::Value* condition) { all = all ? b_.CreateAnd(all, condition) : condition; };
  with_frame([&] {
    enter_vector(loop.loop, f.width, 1, begin);
    for (const Item& item : loop.body)
      if (item.node && is(item.node, LoopOp::Store)) stream(item.node, f.width, also);
    vector_ = {};
  });
  if (!all) return nullptr;
  auto* long_row = b_.CreateICmpSGE(b_.CreateNSWSub(end, begin), i64(kLongRow));
  return b_.CreateAnd(all, long_row);
}

// Adds a store to them, if it can be one, on these conditions.
void Emitter::stream(const Node* store, int lanes, const std::function<void(llvm::Value*)>& also) {
  auto buffer = store->arg<Value>(0);
  BufferRef p = place_of(buffer);
  int64_t bytes = size_of(p.dtype) * lanes;
  bool plain = store->args[3].is_none() && store->arg<std::string>(5).empty();
  if (!plain || bytes < 16 || bytes > 64 || (analysis_.inside(store) & analysis_.kind(ForKind::Unroll))) return;
  LaneIndex index = lane_index(at_copy(store->arg<Expr>(1)));
  Expr elements = type_of(buffer).shape[0];
  bool small = elements.is_constant() && elements.constant() * size_of(p.dtype) < kLarge;
  if (small || !index.linear || !index.stride.is(1)) return;
  std::vector<llvm::Value*> others;
  for (const Node* n : graph_.nodes()) {
    if (!is(n, LoopOp::Load)) continue;
    if (n->arg<Value>(0) == buffer) return;  // it is in the caches
    if (graph_.input_index(n->arg<Value>(0)) >= 0) others.push_back(place_of(n->arg<Value>(0)).base);
  }
  streamed_.insert(store);
  also(b_.CreateICmpSGE(eval_expr(elements), i64(kLarge / size_of(p.dtype))));
  llvm::Value* at = b_.CreatePtrToInt(address(p, index.base), b_.getInt64Ty());
  also(b_.CreateICmpEQ(b_.CreateAnd(at, i64(bytes - 1)), i64(0)));
  for (llvm::Value* other : others) also(b_.CreateICmpNE(other, p.base));
}

// Nobody reads before all of it is in memory.
void Emitter::end_streams() { b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {}); }

}  // namespace brasa::compiler
