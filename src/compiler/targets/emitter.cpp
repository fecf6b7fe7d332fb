#include "compiler/targets/emitter.h"

#include <algorithm>
#include <bit>

#include "support/error.h"

namespace brasa::compiler {

namespace {

// Stands for the loop whose lanes a function is called for.
constexpr int kCallersLoop = 63;

bool is(const Node* n, LoopOp op) { return loop_kind(n->op) == op; }

// By node: all are live, though nothing is an output.
std::unordered_map<const Node*, int> uses_in(const ir::Graph& loops) {
  std::unordered_map<const Node*, int> uses;
  for (Node* n : loops.nodes()) n->for_each_input([&](Value v) { ++uses[v.node]; });
  return uses;
}

}  // namespace

Emitter::Emitter(llvm::Module& module, const Target& target, const ExpandedMath& kernel)
    : module_(module),
      target_(target),
      kernel_(kernel),
      graph_(*kernel.graph),
      exact_(kernel.exact),
      branches_(target.gpu ? std::map<Branch, std::vector<Value>>() : branches_of(graph_)),
      uses_(uses_in(graph_)),
      nest_(linearize(graph_)),
      analysis_(*nest_.analysis),
      layout_(layout_of(graph_)),
      b_(module.getContext()) {
  auto any = [&](auto which) { return std::any_of(graph_.nodes().begin(), graph_.nodes().end(), which); };
  flushes_ = any([&](const Node* n) {
    return (target.pairs && is(n, LoopOp::PairProduct) && is_floating(n->types[0].dtype)) ||
           (is(n, LoopOp::TileProduct) && tile_kind(n) == "bf16");
  });
  tiles_ = any([](const Node* n) { return is(n, LoopOp::TileProduct); });
  // What is fused on a CPU is said here, so that it does not depend on how LLVM optimizes.
  fuses_ = target.fma && !target.strict;
  if (!target.strict) {
    flags_.setAllowContract(target.gpu);
    flags_.setAllowReciprocal(target.fast);
    flags_.setNoSignedZeros(target.fast);
    b_.setFastMathFlags(flags_);
  }
}

void Emitter::run() {
  range_values_.assign(analysis_.loops().size(), nullptr);
  unrolled_.assign(analysis_.loops().size(), 0);
  if (target_.gpu)
    set_up_gpu_kernel();
  else
    set_up_function();
  if (tiles_) configure_tiles();
  with_frame([&] {
    if (target_.early) start_early();
    emit_block(nest_.body);
  });
  if (tiles_) release_tiles();
  end_streams();
  b_.CreateRetVoid();
}

llvm::Function* Emitter::run_as_function(const std::string& name, int lanes) {
  auto type_in_lanes = [&](Value v) {
    llvm::Type* t = register_type(type_of(v).dtype);
    return lanes == 1 ? t : llvm::FixedVectorType::get(t, static_cast<unsigned>(lanes));
  };
  std::vector<llvm::Type*> parameters;
  const Node* store = nullptr;
  for (const Node* n : graph_.nodes())
    if (is(n, LoopOp::Store)) store = n;
  for (size_t i = layout_.addresses; i < graph_.inputs().size(); ++i)
    parameters.push_back(type_in_lanes(graph_.inputs()[i].value));
  start_function(name, type_in_lanes(store->arg<Value>(2)), parameters);
  function_->setLinkage(llvm::GlobalValue::InternalLinkage);
  function_->addFnAttr(llvm::Attribute::NoInline);
  function_->addFnAttr(llvm::Attribute::WillReturn);
  function_->setDoesNotAccessMemory();
  enter_vector(kCallersLoop, lanes, 1, nullptr);
  with_frame([&] {
    for (size_t i = 0; i < parameters.size(); ++i)
      frames_.back().values[graph_.inputs()[layout_.addresses + i].value.node] = {
          function_->getArg(static_cast<unsigned>(i))};
    b_.CreateRet(splat(eval(store->arg<Value>(2)), lanes));
  });
  return function_;
}

void Emitter::start_function(const std::string& name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> parameters) {
  auto* type = llvm::FunctionType::get(result, parameters, false);
  function_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module_);
  set_attributes(*function_, target_);
  entry_ = llvm::BasicBlock::Create(b_.getContext(), "entry", function_);
  auto* start = llvm::BasicBlock::Create(b_.getContext(), "start", function_);
  b_.SetInsertPoint(entry_);
  b_.CreateBr(start);
  b_.SetInsertPoint(start);
}

void Emitter::set_up_function() {
  auto* pointer = b_.getPtrTy();
  start_function(graph_.name, b_.getVoidTy(), {pointer, b_.getInt64Ty(), b_.getInt64Ty(), pointer});
  auto slot = [&](llvm::Type* type, size_t i) {
    return b_.CreateLoad(type, b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), function_->getArg(0), i));
  };
  size_t at = 0;
  for (; at < layout_.addresses; ++at) buffers_.push_back(slot(pointer, at));
  for (; at < graph_.inputs().size(); ++at) buffers_.push_back(slot(b_.getInt64Ty(), at));
  for (ir::Expr s : layout_.sizes) sizes_[s] = slot(b_.getInt64Ty(), at++);
  begin_ = function_->getArg(1);
  end_ = function_->getArg(2);
  scratch_ = function_->getArg(3);
}

void Emitter::with_frame(const std::function<void()>& f) {
  frames_.emplace_back();
  f();
  frames_.pop_back();
}

void Emitter::for_combinations(Ranges ranges, bool copies, const std::function<void()>& f) {
  std::function<void(Ranges)> step = [&](Ranges rest) {
    if (!rest) {
      if (!copies) return f();
      for (vector_.copy = 0; vector_.copy < vector_.copies; ++vector_.copy) f();
      vector_.copy = 0;
      return;
    }
    int loop = std::countr_zero(rest);
    int64_t extent = analysis_.loops()[loop].extent().constant();
    for (unrolled_[loop] = 0; unrolled_[loop] < extent; ++unrolled_[loop]) step(rest & (rest - 1));
    unrolled_[loop] = 0;
  };
  step(ranges & analysis_.kind(ForKind::Unroll));
}

void Emitter::emit_if(llvm::Value* condition, const std::function<void()>& body) {
  auto* then = llvm::BasicBlock::Create(b_.getContext(), "then", function_);
  auto* join = llvm::BasicBlock::Create(b_.getContext(), "join", function_);
  b_.CreateCondBr(condition, then, join);
  b_.SetInsertPoint(then);
  body();
  b_.CreateBr(join);
  b_.SetInsertPoint(join);
}

void Emitter::emit_block(const Block& block) {
  for (size_t i = 0; i < block.size();) {
    if (block[i].loop) {
      emit_loop(*block[i++].loop);
      continue;
    }
    size_t end = i;
    while (end < block.size() && block[end].node) ++end;
    emit_nodes(block, i, end);
    i = end;
  }
}

// Neighbours that are repeated for the same combinations are emitted combination by combination, so that what they share
// stays in registers. On a GPU what they write is written behind all that they read.
void Emitter::emit_nodes(const Block& block, size_t begin, size_t end) {
  auto repeats = [&](const Node* n) { return analysis_.inside(n) & analysis_.kind(ForKind::Unroll); };
  auto read_later = [&](const Node* store) {
    for (const Node* n : graph_.nodes())
      if (n->id > store->id && is(n, LoopOp::Load) && n->arg<Value>(0) == store->arg<Value>(0)) return true;
    return false;
  };
  while (begin < end) {
    const Node* first = block[begin].node;
    if (is(first, LoopOp::Reduce) && !accumulators_.count(first)) {
      if (target_.gpu) read_first();
      for_combinations(analysis_.of(first), in_vector(analysis_.of(first)), [&] { emit_small_reduce(first); });
      ++begin;
      continue;
    }
    bool small_stage = makes_array(first) && !analysis_.nested(analysis_.closed(first));
    if (small_stage) start_stage(first);
    size_t stop = begin + 1;
    auto groups = [&](const Node* n) {
      if (makes_array(n) || is(n, LoopOp::Prefetch)) return false;
      return is(n, LoopOp::Store) ? !read_later(n) : accumulators_.count(n) > 0;
    };
    bool vector = in_vector(is(first, LoopOp::Prefetch) ? analysis_.of(first->arg<Expr>(1)) : analysis_.inside(first));
    if (small_stage && target_.gpu) {
      emit_whole_stage(first);
      begin = stop;
      continue;
    }
    auto written_last = [&](const Node* n) { return target_.gpu && groups(n) && plain_store(n); };
    std::vector<const Node*> now, last;
    auto add = [&](const Node* n) { (written_last(n) ? last : now).push_back(n); };
    auto goes_with = [&](const Node* n) {
      return written_last(n) || now.empty() ||
             (repeats(n) == repeats(now[0]) && in_vector(analysis_.inside(n)) == vector);
    };
    if (is(first, LoopOp::Store) && vector && store_interleaved(first)) {
      begin = stop;
      continue;
    }
    add(first);
    if (groups(first))
      for (; stop < end && groups(block[stop].node) && goes_with(block[stop].node); ++stop) add(block[stop].node);
    if (vector && !repeats(now[0])) compute_together(now);
    for_combinations(now.empty() ? 0 : repeats(now[0]), vector, [&] {
      for (const Node* n : now) {
        if (is(n, LoopOp::Store))
          emit_store(n);
        else if (is(n, LoopOp::Prefetch))
          emit_prefetch(n);
        else if (is(n, LoopOp::Reduce))
          accumulate(n);
        else if (is(n, LoopOp::Scan))
          emit_scan(n);
        else if (is(n, LoopOp::TileProduct))
          emit_tile_product(n);
        else
          emit_stage_element(n);
      }
    });
    emit_stores(last);
    begin = stop;
  }
}

void Emitter::emit_loop(const Loop& loop) {
  for (const Node* n : loop.hoisted)
    for_combinations(analysis_.of(n), in_vector(analysis_.of(n)), [&] { eval(Value{const_cast<Node*>(n), 0}); });
  for (const Node* n : loop.closes) is(n, LoopOp::Reduce) ? start_reduce(n) : start_stage(n);
  for (const Node* n : loop.carries) start_scan(n);
  const For& f = analysis_.loops()[loop.loop];
  if (f.kind == ForKind::Vector)
    target_.baseline ? emit_elements(loop) : emit_vector(loop);
  else if (f.kind == ForKind::Serial)
    emit_serial(loop);
  else
    emit_flat(loop);
  for (const Node* n : loop.closes) {
    if (is(n, LoopOp::Reduce))
      finish_reduce(n);
    else if (is_shared(n))
      barrier();
  }
}

void Emitter::emit_counted(llvm::Value* begin, llvm::Value* end, llvm::Value* step, bool at_least_once,
                           const std::function<void(llvm::Value*)>& body) {
  auto* before = b_.GetInsertBlock();
  auto* loop = llvm::BasicBlock::Create(b_.getContext(), "loop", function_);
  auto* exit = llvm::BasicBlock::Create(b_.getContext(), "exit", function_);
  if (at_least_once) {
    b_.CreateBr(loop);
  } else {
    // A block of its own for what is hoisted out of the loop.
    auto* enter = llvm::BasicBlock::Create(b_.getContext(), "enter", function_);
    b_.CreateCondBr(b_.CreateICmpSLT(begin, end), enter, exit);
    b_.SetInsertPoint(enter);
    b_.CreateBr(loop);
    before = enter;
  }
  b_.SetInsertPoint(loop);
  auto* i = b_.CreatePHI(b_.getInt64Ty(), 2);
  i->addIncoming(begin, before);
  with_frame([&] { body(i); });
  auto* next = b_.CreateNSWAdd(i, step);
  i->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), loop, exit);
  b_.SetInsertPoint(exit);
}

// Quotients and remainders in places of what a loop loads, where the loop does not change them: LLVM would leave the divisions inside.
void Emitter::divide_before(const Loop& loop) {
  auto is_known = [&](Expr s) {
    if (s == vector_.symbol) return vector_.loop >= 0;
    return s != vector_.lane &&
           (s->kind == ir::ExprKind::Size || (s->kind == ir::ExprKind::Range && range_values_[analysis_.loop_of(s)]));
  };
  std::function<void(Expr)> divide = [&](Expr e) {
    bool division = e->kind == ir::ExprKind::FloorDiv || e->kind == ir::ExprKind::Mod;
    if (division && std::all_of(e->symbols->begin(), e->symbols->end(), is_known))
      eval_expr(e);
    else
      for (Expr a : e->args) divide(a);
  };
  for (const Node* n : graph_.nodes()) {
    if (!is(n, LoopOp::Load) || !(analysis_.of(n) >> loop.loop & 1)) continue;
    for_combinations(analysis_.of(n), false, [&] { divide(at_copy(n->arg<Expr>(1))); });
  }
}

// Where each flattened loop is in iteration `at` of them all.
std::function<void(llvm::Value* at)> Emitter::flat_places() {
  std::vector<int> flat;
  for (size_t i = 0; i < analysis_.loops().size(); ++i)
    if (analysis_.flat() >> i & 1) flat.push_back(static_cast<int>(i));
  Values extents;
  for (int i : flat) extents.push_back(extent_of(i));
  return [this, flat, extents](llvm::Value* at) {
    for (size_t i = flat.size(); i-- > 1;) {
      range_values_[flat[i]] = b_.CreateURem(at, extents[i]);
      at = b_.CreateUDiv(at, extents[i]);
    }
    if (!flat.empty()) range_values_[flat[0]] = at;
  };
}

void Emitter::emit_flat(const Loop& loop) {
  std::function<void(llvm::Value*)> place = flat_places();
  auto body = [&](llvm::Value* at) {
    place(at);
    emit_block(loop.body);
  };
  if (target_.gpu)
    with_frame([&] { body(begin_); });
  else
    emit_counted(begin_, end_, i64(1), false, body);
}

void Emitter::emit_serial(const Loop& loop) {
  Expr n = at_copy(analysis_.loops()[loop.loop].extent());
  divide_before(loop);
  if (emit_rows_in_parts(loop)) return;
  emit_iterations(loop, n);
  range_values_[loop.loop] = nullptr;
}

void Emitter::emit_iterations(const Loop& loop, Expr n) {
  const For& f = analysis_.loops()[loop.loop];
  auto once = [&](llvm::Value* i) {
    range_values_[loop.loop] = i;
    emit_block(loop.body);
  };
  if (n.is_constant() && n.constant() <= (target_.baseline ? 1 : f.unroll)) {
    Values all;
    for (int64_t i = 0; i < n.constant(); ++i) all.push_back(i64(i));
    return emit_copies(loop, all);
  }
  llvm::Value* end = eval_expr(n);
  if (f.unroll == 1 || target_.baseline) return emit_counted(i64(0), end, i64(1), n->min >= 1, once);
  llvm::Value* whole = b_.CreateNSWSub(end, b_.CreateURem(end, i64(f.unroll)));
  emit_counted(i64(0), whole, i64(f.unroll), n->min >= f.unroll, [&](llvm::Value* i) {
    Values copies;
    for (int c = 0; c < f.unroll; ++c) copies.push_back(b_.CreateNSWAdd(i, i64(c)));
    emit_copies(loop, copies);
  });
  if (provably_divisible(n, f.unroll)) return;
  if (!target_.gpu || !n.is_constant()) return emit_counted(whole, end, i64(1), false, once);
  Values rest;
  for (int64_t i = n.constant() - n.constant() % f.unroll; i < n.constant(); ++i) rest.push_back(i64(i));
  emit_copies(loop, rest);
}

// A GPU's thread reads for several of them before it computes: what one writes stands between it and what the next one reads.
void Emitter::emit_copies(const Loop& loop, const Values& iterations) {
  for (size_t i = 0; i < iterations.size();) {
    range_values_[loop.loop] = iterations[i];
    auto together = static_cast<size_t>(iterations_to_read(loop.loop, static_cast<int>(iterations.size() - i)));
    std::vector<Frame> read(together);
    for (size_t c = 0; c < together && target_.gpu; ++c)
      with_frame([&] {
        range_values_[loop.loop] = iterations[i + c];
        read_first();
        read[c] = std::move(frames_.back());
      });
    for (Frame& frame : read) {
      range_values_[loop.loop] = iterations[i++];
      frames_.push_back(std::move(frame));
      emit_block(loop.body);
      frames_.pop_back();
    }
  }
}

}  // namespace brasa::compiler
