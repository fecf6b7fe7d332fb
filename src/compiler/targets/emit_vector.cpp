#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "compiler/targets/emitter.h"

// Vector loops: full steps of several vectors, and what is left of the last one.
namespace brasa::compiler {

namespace {

// Ids of the symbols that stand for a vector's start and lane; no graph has as many sizes or loops.
constexpr uint32_t kStartId = 0xF0000000, kLaneId = 0xF0000001;

bool is(const Node* n, LoopOp op) { return loop_kind(n->op) == op; }

}  // namespace

bool reads_values(Expr place) {
  return std::any_of(place->symbols->begin(), place->symbols->end(),
                     [](Expr s) { return s->kind == ir::ExprKind::Value; });
}

void Emitter::emit_vector(const Loop& loop) {
  auto steps = [&] { emit_steps(loop); };
  if (const std::vector<Border> asked = asked_of_copies(loop); !asked.empty()) return emit_decided(asked, steps, steps);
  std::unordered_set<const Node*> loads;
  llvm::Value* all_short = places_are_short(loop, loads);
  if (!all_short) return steps();
  emit_if(all_short, [&] {
    short_ = std::move(loads);
    with_frame(steps);
    short_.clear();
  });
  emit_if(b_.CreateNot(all_short), [&] { with_frame(steps); });
}

void Emitter::emit_steps(const Loop& loop) {
  const std::vector<Border> borders = borders_of(loop);
  borders_ = !borders.empty();
  const For& f = analysis_.loops()[loop.loop];
  Expr n = at_copy(f.extent());
  llvm::Value* end = eval_expr(n);
  bool evenly = goes_evenly(loop) && asked_of_tile(loop, f.unroll).empty();
  // What goes past the caches is written in whole lines of memory.
  llvm::Value* before = nullptr;
  llvm::Value* far = evenly && !is_long(loop.loop) ? streams_lines(loop, end, before) : nullptr;
  if (!far) return emit_near_steps(loop, borders, n, end, evenly);
  emit_if(far, [&] { with_frame([&] { emit_lines(borders, loop, before, end); }); });
  streamed_.clear();
  in_lines_ = true;
  emit_if(b_.CreateNot(far), [&] { with_frame([&] { emit_near_steps(loop, borders, n, end, evenly); }); });
  in_lines_ = false;
}

// Steps whose results stay in the caches, or are known to be whole lines.
void Emitter::emit_near_steps(const Loop& loop, const std::vector<Border>& borders, Expr n, llvm::Value* end,
                              bool evenly) {
  const std::vector<Expr> parts = parts_of(borders);
  bool in_parts = borders.empty() ? ends_overlapped(loop, n) : !parts.empty() && !is_long(loop.loop);
  if (!in_parts || !evenly) return emit_even_steps(loop, borders, n, end);
  parts.empty() ? emit_part(loop, i64(0), end) : emit_parts(borders, parts, loop, end);
}

llvm::Value* Emitter::whole_steps(llvm::Value* count, int64_t width) {
  return b_.CreateNSWSub(count, b_.CreateURem(count, i64(width)));
}

void Emitter::emit_even_steps(const Loop& loop, const std::vector<Border>& borders, Expr n, llvm::Value* end) {
  const For& f = analysis_.loops()[loop.loop];
  llvm::Value* done = i64(0);
  auto trips = [&](int64_t from, int64_t width) { return n.is_constant() ? (n.constant() - from) / width : -1; };
  int64_t from = 0;
  auto full = [&](int copies) {
    int64_t width = int64_t{f.width} * copies, count = trips(from, width);
    if (count == 0) return;
    llvm::Value* stop = n.is_constant() ? i64(from + count * width) : whole_steps(end, width);
    auto alike = [&] { emit_vector_part(loop, done, stop, f.width, copies, nullptr, count); };
    auto steps = [&] { borders.empty() ? alike() : emit_between(borders, loop, done, stop, copies); };
    auto emit = [&](const std::function<void()>& part) {
      if (!streamed_.empty()) {
        part();
        return streamed_.clear();
      }
      llvm::Value* far = copies == f.unroll ? streams(loop, done, stop) : nullptr;
      if (!far) return part();
      emit_if(far, [&] { with_frame(part); });
      streamed_.clear();
      emit_if(b_.CreateNot(far), [&] { with_frame(part); });
    };
    if (const std::vector<Border> asked = asked_of_tile(loop, copies); !asked.empty())
      emit_decided(asked, [&] { emit(alike); }, steps);
    else
      emit(steps);
    done = stop;
    if (n.is_constant()) from += count * width;
  };
  // Full steps, then single vectors, then what is left of the last one; masked single vectors do the last two in one, but where they read
  // elements that lie apart. A long body is emitted once: masks cost it little, and a copy of it as much to compile as itself.
  bool masked = f.width > 1 && !provably_divisible(n, int64_t{f.width} * f.unroll) && ends_masked(loop.loop);
  bool once = masked && f.unroll == 1 && is_long(loop.loop), rows = repeats(loop);
  // Where masks are registers, rows of less than two steps have a whole vector in front of the masked one, too.
  bool cheap = target_.masks && borders.empty() && !is_long(loop.loop);
  bool single = f.unroll > 1 && !rows && (!masked || cheap || reads_apart(loop.loop));
  if (!once) full(f.unroll);
  if (provably_divisible(n, int64_t{f.width} * f.unroll)) return;
  if (single) {
    full(1);
    if (provably_divisible(n, f.width)) return;
  }
  if (f.width == 1) return;
  if (masked && rows) {
    emit_rest(loop, done, end, n.is_constant() ? n.constant() - from : -1);
  } else if (masked) {
    int64_t count = n.is_constant() ? (n.constant() - from + f.width - 1) / f.width : -1;
    if (count == 0) return;
    if (count < 0 && (single || f.unroll == 1) && !once)
      // At most one.
      emit_if(b_.CreateICmpSLT(done, end), [&] { emit_vector_part(loop, done, end, f.width, 1, end, 1); });
    else
      emit_vector_part(loop, done, end, f.width, 1, end, count, once);
  } else {
    int64_t count = n.is_constant() ? n.constant() - from : -1;
    if (count != 0) emit_vector_part(loop, done, end, 1, 1, nullptr, count);
  }
}

// What is left of the last step of several copies, `count` elements (-1: unknown): masked vectors, each as far behind the step's begin as its
// copy would be.
void Emitter::emit_rest(const Loop& loop, llvm::Value* start, llvm::Value* end, int64_t count) {
  const For& f = analysis_.loops()[loop.loop];
  int64_t step = int64_t{f.width} * f.unroll;
  for (int64_t first = 0; first < step && (count < 0 || first < count); first += f.width) {
    auto vector = [&] {
      with_frame([&] {
        enter_vector(loop.loop, f.width, 1, start, step);
        vector_.first = first;
        mask_end(b_.CreateNSWSub(end, b_.CreateNSWAdd(start, i64(first))), true);
        emit_block(loop.body);
        vector_ = {};
      });
    };
    count < 0 ? emit_if(b_.CreateICmpSLT(b_.CreateNSWAdd(start, i64(first)), end), vector) : vector();
  }
}

// Whether lanes have known places behind the first one's in steps of all copies, and not in single vectors.
bool Emitter::repeats(const Loop& loop) {
  const For& f = analysis_.loops()[loop.loop];
  if (f.unroll == 1 || f.width == 1 || !loop.closes.empty() || !loop.carries.empty()) return false;
  auto known = [&](Expr place, int copies) {
    enter_vector(loop.loop, f.width, copies, nullptr);
    LaneIndex index = lane_index(at_copy(place));
    vector_ = {};
    return index.linear || !index.offsets.empty();
  };
  return std::any_of(graph_.nodes().begin(), graph_.nodes().end(), [&](const Node* n) {
    if (!is(n, LoopOp::Load) || !(analysis_.of(n) >> loop.loop & 1)) return false;
    Expr place = n->arg<Expr>(1);
    return !reads_values(place) && known(place, f.unroll) && !known(place, 1);
  });
}

// Whether a mask covers what a vector loop's last vector lacks. Masks of 32 and 64 bits alone do where all memory of the loop has
// such elements, and is written where it lies.
bool Emitter::ends_masked(int loop) {
  if (target_.masks || !target_.wide_masks) return target_.masks;
  Ranges bit = Ranges{1} << loop;
  enter_vector(loop, analysis_.loops()[loop].width, 1, nullptr);
  auto fits = [&](const Node* n) {
    auto kind = loop_kind(n->op);
    if (!kind || !((analysis_.of(n) | analysis_.inside(n)) & bit)) return true;
    if (kind == LoopOp::Load || kind == LoopOp::Stage) return size_of(n->types[0].dtype) >= 4;
    if (kind != LoopOp::Store) return true;
    Expr index = n->arg<Expr>(1);
    if (size_of(type_of(n->arg<Value>(0)).dtype) < 4 || !n->arg<std::string>(5).empty() ||
        std::any_of(index->symbols->begin(), index->symbols->end(),
                    [](Expr s) { return s->kind == ir::ExprKind::Value; }))
      return false;
    LaneIndex lanes = lane_index(at_copy(index));
    return lanes.linear && (lanes.stride.is(0) || lanes.stride.is(1));
  };
  bool all = std::all_of(graph_.nodes().begin(), graph_.nodes().end(), fits);
  vector_ = {};
  return all;
}

// Whether what rows lack of whole vectors is best made by one more that ends with them: without masks in registers, of a short body.
bool Emitter::ends_overlapped(const Loop& loop, Expr n) {
  const For& f = analysis_.loops()[loop.loop];
  bool short_row = n.is_constant() && n.constant() < f.width;
  return f.width > 1 && !target_.gpu && !target_.masks && !target_.baseline && !short_row &&
         !provably_divisible(n, f.width) && !is_long(loop.loop) && may_repeat(loop);
}

bool Emitter::reads_apart(int loop) {
  enter_vector(loop, analysis_.loops()[loop].width, 1, nullptr);
  bool found = std::any_of(graph_.nodes().begin(), graph_.nodes().end(), [&](const Node* n) {
    if (!is(n, LoopOp::Load) || !(analysis_.of(n) >> loop & 1)) return false;
    Expr place = n->arg<Expr>(1);
    return !reads_values(place) && few_steps(lane_index(at_copy(place)));
  });
  vector_ = {};
  return found;
}

bool Emitter::is_long(int loop) const {
  constexpr int kLong = 64;
  Ranges bit = Ranges{1} << loop;
  return std::count_if(graph_.nodes().begin(), graph_.nodes().end(),
                       [&](const Node* n) { return (analysis_.of(n) & bit) != 0; }) > kLong;
}

void Emitter::enter_vector(int loop, int lanes, int copies, llvm::Value* start, int64_t step) {
  vector_ = {};
  vector_.loop = loop;
  vector_.lanes = lanes;
  vector_.copies = copies;
  vector_.start = start;
  vector_.symbol = Expr::size(kStartId, 0, anywhere_ ? 1 : step ? step : int64_t{lanes} * copies);
  vector_.lane = lanes > 1 ? Expr::range(kLaneId, lanes) : Expr(0);
}

// More than 0 are left; if full steps went before, few.
void Emitter::mask_end(llvm::Value* left, bool mostly_whole) {
  int lanes = vector_.lanes;
  if (mostly_whole) left = intrinsic(llvm::Intrinsic::umin, {left, i64(lanes)});
  left = b_.CreateTrunc(left, b_.getInt32Ty());
  vector_.mask = b_.CreateICmpSLT(lane_numbers(lanes, b_.getInt32Ty()), splat(left, lanes));
  if (mostly_whole) vector_.whole = b_.CreateICmpEQ(left, b_.getInt32(lanes));
}

void Emitter::emit_vector_part(const Loop& loop, llvm::Value* begin, llvm::Value* end, int lanes, int copies,
                               llvm::Value* mask_limit, int64_t constant_trips, bool mostly_whole) {
  auto body = [&](llvm::Value* start) {
    enter_vector(loop.loop, lanes, copies, start);
    if (mask_limit) mask_end(b_.CreateNSWSub(mask_limit, start), mostly_whole);
    emit_block(loop.body);
    vector_ = {};
  };
  if (constant_trips == 1)
    with_frame([&] { body(begin); });
  else
    emit_counted(begin, end, i64(int64_t{lanes} * copies), constant_trips > 0, body);
}

}  // namespace brasa::compiler
