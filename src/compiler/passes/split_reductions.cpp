#include <algorithm>
#include <unordered_set>
#include <vector>

#include "compiler/fusion/indexing.h"
#include "compiler/passes/contraction.h"
#include "compiler/passes/transform.h"

namespace brasa::compiler {

namespace prim = ops::prim;
using ops::shape_of;
using Dims = std::vector<int64_t>;

namespace {

// A reduction is split so that about this many elements stay in each part.
constexpr int64_t kPart = 8192;

// About `wanted` parts of equal length if there is such a number near: rather more of them, or fewer.
int64_t parts_of(int64_t length, int64_t wanted, bool fewer = false) {
  wanted = std::max<int64_t>(wanted, 1);
  auto up = [&] {
    for (int64_t p = wanted; p <= wanted * 2; ++p)
      if (length % p == 0) return p;
    return int64_t{0};
  };
  auto down = [&] {
    for (int64_t p = wanted; p >= wanted / 2 && p > 1; --p)
      if (length % p == 0) return p;
    return int64_t{0};
  };
  if (int64_t p = fewer ? down() : up()) return p;
  if (int64_t p = fewer ? up() : down()) return p;
  return wanted;
}

// What keeps a machine busy: rows that are not split, and columns that run side by side.
struct Enough {
  int64_t rows, columns, side_by_side;
};
Enough enough_for(const Machine& m) {
  if (!m.gpu) return {4 * m.threads, 4 * m.threads, 64};
  // Two blocks a processor; of columns four, and more where that gives parts of one length (see parts_of_columns).
  return {2 * m.processors, 4 * m.processors, 256};
}

// Whether this is made of at most so many tensors of its size.
bool reads_few(Value x, size_t most) {
  std::unordered_set<const Node*> seen, tensors;
  std::vector<const Node*> rest{x.node};
  while (!rest.empty() && tensors.size() <= most) {
    const Node* n = rest.back();
    rest.pop_back();
    if (!seen.insert(n).second || !(n->types[0].numel() == type_of(x).numel())) continue;
    if (prim_of(n) == Prim::Pointwise || prim_of(n) == Prim::Reshape || prim_of(n) == Prim::Transpose)
      n->for_each_input([&](Value v) { rest.push_back(v.node); });
    else if (prim_of(n) != Prim::Broadcast && !is_leaf(prim_of(n)))
      tensors.insert(n);
  }
  return tensors.size() <= most;
}

// On a GPU long sums of few tensors take so few registers that three blocks of each processor, or somewhat fewer, run at once: then no processor
// has blocks left when others have none. `apart`: no kernel of rows adds up other columns of as many elements, which has parts of its own.
int64_t parts_of_columns(Value x, int64_t length, int64_t tasks, bool apart, const Machine& m) {
  constexpr size_t kFewTensors = 2;
  constexpr int64_t kAtOnce = 3, kLeastLength = 32, kLongColumn = 1 << 16;
  bool at_once = m.gpu && apart && length >= kLongColumn && reads_few(x, kFewTensors);
  int64_t blocks = at_once ? kAtOnce * m.processors : enough_for(m).columns;
  return parts_of(length, std::min((blocks + tasks - 1) / tasks, length / kLeastLength), at_once);
}

// Of unknown sizes: what is long, and in how many parts it is summed up; in more where there are few columns, so that each part of one
// has a thread.
constexpr int64_t kLong = 1024, kParts = 512, kThreads = 1 << 18;

// On a GPU sums on both sides of what is kept go along rows first, and then down columns, unless what is kept is enough for all threads.
Value rows_first(Value x, const Dims& kept, const Dims& reduced, Expr rows, const std::string& combiner,
                 const PassContext& context) {
  auto inner = std::upper_bound(reduced.begin(), reduced.end(), kept.back());
  int64_t enough = 16 * enough_for(context.machine).rows;
  if (!context.machine.gpu || inner == reduced.begin() || inner == reduced.end()) return {};
  if (rows.is_constant() && rows.constant() >= enough) return {};
  return prim::reduce(prim::reduce(x, Dims(inner, reduced.end()), combiner), Dims(reduced.begin(), inner), combiner);
}

// Parts of all elements that end where rows do: along them places in what a gather reads, and in what is repeated, are even, while each lane would
// find its place along all dimensions by divisions. Rows are as few of the last dimensions as are long.
Value parts_of_rows(Value x, const Dims& reduced, const std::string& combiner, const PassContext& context) {
  constexpr int64_t kLongRow = 64;  // its end takes as long as some divisions
  if (context.machine.gpu) return {};
  Shape s = pick(shape_of(x), reduced);
  auto is_long_row = [&](Expr row) {
    return row.is_constant() ? row.constant() >= kLongRow : at_least(row, kLongRow, context);
  };
  Expr row(1);
  size_t outer = s.size();
  while (outer > 0 && !is_long_row(row)) row = row * s[--outer];
  if (outer == 0) return {};
  Expr rows = product(Shape(s.begin(), s.begin() + outer)), parts = ceildiv(row, Expr(2 * kPart)),
       part = ir::max(ceildiv(row, parts), 1);
  Value none = identity(combiner, ops::dtype_of(x));
  Value v = prim::pad(prim::reshape(x, {rows, row}), none, {0, 0}, {0, parts * part - row}, {0, 0});
  return prim::reduce(prim::reduce(prim::reshape(v, {rows, parts, part}), {2}, combiner), {0, 1}, combiner);
}

// In two steps where one would leave threads without work; an absent Value where it would not.
Value split(Value x, const Dims& kept, const Dims& reduced, const std::string& combiner, bool apart,
            const PassContext& context) {
  Enough enough = enough_for(context.machine);
  Shape s = shape_of(x);
  Expr rows = product(pick(s, kept)), length = product(pick(s, reduced));
  Dims kept_real;
  for (int64_t d : kept)
    if (!s[d].is(1)) kept_real.push_back(d);
  // On a GPU columns may be those of several matrices.
  auto first_column = std::upper_bound(kept_real.begin(), kept_real.end(), reduced.back());
  bool between = first_column == kept_real.begin() || (context.machine.gpu && *(first_column - 1) < reduced.front());
  bool columns = first_column != kept_real.end() && between;
  Expr matrices = product(pick(s, Dims(kept_real.begin(), first_column)));
  bool of_rows = kept_real.empty() || kept_real.back() < reduced.front();
  if (Value out = kept_real.empty() ? Value{} : rows_first(x, kept_real, reduced, rows, combiner, context)) return out;
  bool unknown = !rows.is_constant() || (!length.is_constant() && !rows.is(1));
  Expr parts(1);
  if (unknown) {
    // On a GPU, a thread that sums up a long column alone takes far longer than all others together.
    if (!context.machine.gpu || !columns || !matrices.is(1) || !at_least(length, kLong, context)) return {};
    parts = ir::max(Expr(kParts), ceildiv(Expr(kThreads), rows));
  } else if (of_rows) {
    if (length.is_constant() ? length.constant() < 2 * kPart || rows.constant() >= enough.rows : false) return {};
    parts = length.is_constant() ? Expr(parts_of(length.constant(), (length.constant() + kPart - 1) / kPart))
                                 : ceildiv(length, Expr(2 * kPart));
  } else if (columns) {
    int64_t tasks = (rows.constant() + enough.side_by_side - 1) / enough.side_by_side;
    if (tasks >= enough.columns || length.constant() < 128 || rows.constant() * length.constant() < 2 * kPart)
      return {};
    // Threads share those of several matrices, unless there are too few for that.
    if (!matrices.is(1) && rows.constant() >= enough.columns) return {};
    parts = Expr(parts_of_columns(x, length.constant(), tasks, apart, context.machine));
  } else {
    return {};
  }
  // At least one, so that places are known to be no less than 0.
  Expr part = ir::max(ceildiv(length, parts), 1);
  Shape flat, pieces;
  if (!of_rows && !matrices.is(1)) flat = pieces = {matrices};
  if (of_rows) flat = pieces = {rows};
  auto at = static_cast<int64_t>(flat.size());
  flat.push_back(length);
  pieces.insert(pieces.end(), {parts, part});
  for (Shape* shape : {&flat, &pieces})
    if (columns) shape->push_back(floordiv(rows, matrices));
  Value v = prim::reshape(x, flat);
  std::vector<Expr> zeros(flat.size(), 0), high = zeros;
  high[at] = parts * part - length;
  v = prim::pad(v, identity(combiner, ops::dtype_of(x)), zeros, high, zeros);
  return prim::reduce(prim::reduce(prim::reshape(v, pieces), {at + 1}, combiner), {at}, combiner);
}

// Where the order of sums matters: blocks of so many elements are summed, and then their sums.
constexpr int64_t kBlock = 8192;

// Asked where it is not known, as a sum that is no longer needs no blocks. Of programs that run alone nothing is asked.
bool is_long(Expr size, const PassContext& context) {
  Expr larger = max(size, kBlock);
  if (larger.is_constant()) return !larger.is(kBlock);
  return context.portable || !context.facts.has_hint(size) || !context.facts.equal(larger, kBlock);
}

// A dimension as blocks, the last one filled up.
Value in_blocks(Value x, int64_t dim, const std::string& combiner) {
  Shape s = shape_of(x);
  Expr blocks = ceildiv(s[dim], kBlock);
  std::vector<Expr> zeros(s.size(), 0), high = zeros;
  high[dim] = blocks * kBlock - s[dim];
  x = prim::pad(x, identity(combiner, ops::dtype_of(x)), zeros, high, zeros);
  s[dim] = blocks;
  s.insert(s.begin() + dim + 1, kBlock);
  return prim::reshape(x, s);
}

// The order of a sum follows from its extents: inner dimensions are summed first, each in blocks. Schedules keep to that within a kernel
// (Schedule::chains), so that the outermost dimension has a kernel of its own where threads would be without work. Absent: as it is.
Value ordered(Value x, Dims dims, const std::string& combiner, const PassContext& context) {
  Shape s = shape_of(x), kept = pick(s, other_dims(dims, ops::rank_of(x)));
  Expr length = product(pick(s, dims)), rows = product(kept);
  bool asks = !context.portable && context.facts.has_hint(length);
  if (asks && context.facts.equal(length, 1)) return prim::reshape(x, kept);
  const Value whole = x;
  for (size_t i = 0; i < dims.size(); ++i)
    while (is_long(shape_of(x)[dims[i]], context)) {
      x = in_blocks(x, dims[i], combiner);
      for (size_t d = i + 1; d < dims.size(); ++d) ++dims[d];
      dims.insert(dims.begin() + static_cast<int64_t>(i) + 1, dims[i] + 1);
      if (!asks) break;
    }
  bool few = rows.is_constant() && rows.constant() < enough_for(context.machine).rows;
  if (dims.size() > 1 && few && (!length.is_constant() || length.constant() >= 2 * kPart))
    return prim::reduce(prim::reduce(x, Dims(dims.begin() + 1, dims.end()), combiner), {dims[0]}, combiner);
  return x == whole ? Value{} : prim::reduce(x, dims, combiner);
}

}  // namespace

void split_reductions(Primitives& p, const PassContext& context) {
  std::vector<Expr>
      in_steps;  // numbers of elements that gathers fetch along several dimensions, or that are repeated ones
  std::vector<Expr> in_rows;  // of what is reduced along its last dimension alone
  for (const ir::Node* n : p.graph->nodes()) {
    bool repeats = prim_of(n) == Prim::Broadcast && !type_of(n->arg<Value>(0)).numel().is(1);
    if ((prim_of(n) == Prim::Gather && n->types[0].rank() > 1) || repeats) in_steps.push_back(n->types[0].numel());
    if (prim_of(n) == Prim::Reduce && int_args(n, 1) == Dims{ops::rank_of(n->arg<Value>(0)) - 1})
      in_rows.push_back(type_of(n->arg<Value>(0)).numel());
  }
  transform(
      p, context.facts, [](const ir::Node* n) { return prim_of(n) == Prim::Reduce; },
      [&](const ir::Node* n, ir::Args& args, Primitives&) -> std::vector<Value> {
        Value x = args[0].get<Value>();
        const Shape& s = shape_of(x);
        Dims dims = int_args(n, 1), kept = other_dims(dims, ops::rank_of(x));
        std::erase_if(dims, [&](int64_t d) { return s[d].is(1); });
        if (dims.empty()) return {};
        const auto& combiner = args[2].get<std::string>();
        bool order = context.machine.orders_sums() && is_floating(ops::dtype_of(x));
        bool all = product(pick(s, kept)).is(1);
        bool apart = std::find(in_rows.begin(), in_rows.end(), product(s)) == in_rows.end();
        bool uneven = all && std::find(in_steps.begin(), in_steps.end(), product(s)) != in_steps.end();
        Value out;
        if (uneven && !order) out = parts_of_rows(x, dims, combiner, context);
        if (!out) out = order ? ordered(x, dims, combiner, context) : split(x, kept, dims, combiner, apart, context);
        // Others that are made beside these are added up with them, in one launch.
        if (Value sums = out && combiner == "add" ? context.machine.libraries.first_sums(x, dims) : Value())
          out = prim::reduce(sums, {0, 1}, combiner);
        if (!out) return {};
        return {prim::reshape(out, pick(s, kept))};
      });
}

}  // namespace brasa::compiler
