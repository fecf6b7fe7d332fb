#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <utility>

#include "compiler/fusion/changed_place.h"
#include "compiler/fusion/indexing.h"
#include "compiler/fusion/places.h"
#include "compiler/lowering/expressions.h"
#include "compiler/lowering/lower.h"
#include "compiler/passes/pass_runner.h"
#include "compiler/schedules/axes.h"
#include "support/error.h"

// Schedules for a GPU: threads take 16 bytes of neighbours at a time where that is possible; rows stay in the registers of a few
// threads, which are half a warp, a warp or a block.
namespace brasa::compiler {

using ir::Expr;

namespace {

// Threads of a block, as a rule; of one that walks along rows; of a product's tile.
constexpr int kThreads = 256, kBlockOfRows = 128, kProduct = 64, kMostThreads = 1024, kWarp = 32;
constexpr int kProductRows = 8;
// What one access reads or writes.
constexpr int64_t kAccessBytes = 16;
// Elements of a row in one thread: as many as leave room for what is made of them.
constexpr int64_t kMostInRegisters = 32;
// Additions of a column whose loads are under way together.
constexpr int kColumnUnroll = 8;
// Steps along a long row that are spelled out.
constexpr int kMostStepsSpelledOut = 8;
// Neighbours of a thread that sums up columns: more leave too few threads beside each other (an H100: 10 % slower with 8).
constexpr int kColumns = 4;
// A row of so few elements, which are no neighbours, is one thread's, with those of so many neighbours.
constexpr int64_t kShortRow = 16;
constexpr int kRowsBeside = 8;
// Elements of one thread where each takes its place apart.
constexpr int kPlacesBeside = 4;
constexpr int64_t kThreadsOfProcessor = 2048;

// Neighbours for one thread: along the axis of vectors they are neighbours in memory, or one and the same, everywhere.
int neighbours(const Group& g, const MergedAxes& merged, const Machine& m) {
  if (!m.aligned || merged.strided > 0) return 1;
  int64_t smallest = kAccessBytes, largest = 1;
  auto tensor = [&](const ir::Type& t) {
    if (t.rank() == 0) return;
    smallest = std::min(smallest, size_of(t.dtype));
    largest = std::max(largest, size_of(t.dtype));
  };
  for (size_t i = 0; i < g.graph->inputs().size(); ++i)
    if (!merged.repeated.count(i)) tensor(type_of(g.graph->inputs()[i].value));
  for (const ir::Output& out : g.graph->outputs()) tensor(type_of(out.value));
  // With two accesses for the widest.
  int64_t width = std::min(kAccessBytes / smallest, 2 * kAccessBytes / largest);
  while (width > 1 && !provably_divisible(merged.axes[merged.vector].extent, width)) width /= 2;
  return static_cast<int>(width);
}

// Elements of one thread where some are read at places that are found by divisions: it finds what they have in common once, and writes together.
int elements_in_places(const Group& g, const MergedAxes& merged, const Machine& m) {
  const Axis& last = merged.axes[merged.vector];
  if (!m.aligned || merged.vector + 1 != merged.axes.size() || PassRunner::switched_off("places_beside")) return 1;
  Places places = places_of(g);
  Expr along = places.ranges[last.first + last.count - 1];
  bool divided = std::any_of(places.accesses.begin(), places.accesses.end(), [&](const Places::Access& read) {
    bool picked = std::any_of(places.picks.begin(), places.picks.end(),
                              [&](const Places::Pick& p) { return contains_symbol(read.place, p.index); });
    return !picked && !coefficient(read.place, along);
  });
  int64_t width = divided ? kPlacesBeside : 1;
  for (const ir::Output& out : g.graph->outputs())
    width = std::min(width, kAccessBytes / size_of(type_of(out.value).dtype));
  while (width > 1 && !provably_divisible(last.extent, width)) width /= 2;
  return static_cast<int>(width);
}

// Rows of this many elements in registers, if they are few enough. Where each thread keeps sums of its columns, a warp's threads share a row:
// more would wait for each other in every row.
bool rows_in_registers(Schedule& s, int64_t elements, int64_t tensors, bool with_columns) {
  int64_t chunks = elements / s.width;
  auto threads_with = [&](int64_t most) {
    int64_t out = 1;
    while (out < kMostThreads && chunks > out * std::max<int64_t>(most / s.width, 1)) out *= 2;
    return out;
  };
  // With fewer each, more rows are under way; but no thread should be without an element.
  int64_t half = threads_with(kMostInRegisters / 2);
  bool whole = with_columns || (tensors <= 2 && chunks % half != 0);
  int64_t threads = whole ? threads_with(kMostInRegisters) : tensors <= 4 ? half : threads_with(kMostInRegisters / 4);
  // A warp's threads work in step anyway.
  threads = std::min<int64_t>(std::max<int64_t>(threads, kWarp),
                              static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(chunks))));
  int64_t unroll = (chunks + threads - 1) / threads;
  // A block of so many threads leaves no room for another one that reads while it computes.
  if (unroll * s.width > (threads == kMostThreads ? 1 : 2) * kMostInRegisters) return false;
  s.row_threads = static_cast<int>(threads);
  s.unroll = static_cast<int>(unroll);
  s.threads = static_cast<int>(std::max<int64_t>(threads, kBlockOfRows));
  return true;
}

// Threads that share a column, where each would have too much of it: the others of a block read neighbours, of as much memory as lies
// together, unless that leaves processors without work.
void share_columns(Schedule& s, const Domain& d, const Machine& m) {
  constexpr int64_t kFew = 4, kUsual = 16, kMany = 64;
  int64_t most = kUsual;
  Expr length(1);
  for (size_t i = 0; i < d.dims.size(); ++i)
    if (d.reduced[i]) length = length * d.dims[i];
  s.threads = kBlockOfRows;
  Expr least = ir::min(length, Expr(kColumnUnroll * kMany));  // of some unknown ones it is known that they are long
  if (!least.is_constant()) return;
  if (!length.is_constant()) most = kMany;
  Expr beside = s.axes.back().extent, rows = d.rows();
  if (beside.is_constant() && rows.is_constant()) {
    most = std::max(kFew, kThreads * s.width / std::max<int64_t>(beside.constant(), 1));
    while (most < kMany && rows.constant() / s.width * most < int64_t{kThreads} * m.processors) most *= 2;
    most = std::min(most, kMany);
  }
  int64_t shared = 1;
  while (shared < most && least.constant() > kColumnUnroll * shared) shared *= 2;
  s.threads = kThreads;
  s.row_threads = static_cast<int>(shared);
}

// Of unknown sizes there may be few columns, but each may be summed up in parts, of which it is known that there are many.
bool in_many_parts(const Domain& d) {
  constexpr int64_t kParts = 512;
  for (size_t i = 0; i + 1 < d.dims.size(); ++i)
    if (!d.reduced[i] && ir::min(d.dims[i], Expr(kParts)).is(kParts)) return true;
  return false;
}

// The axis along which all that is read are neighbours, or one and the same, where that is not so along the last one: what is written are
// neighbours there.
std::optional<size_t> transposed_axis(const Group& g, const std::vector<Axis>& axes) {
  constexpr int64_t kShort = 8;
  Places places = places_of(g);
  auto step = [&](const Places::Access& p, const Axis& a) {
    return coefficient(p.place, places.ranges[a.first + a.count - 1]);
  };
  auto beside = [](const std::optional<Expr>& s) { return s && (s->is(0) || s->is(1)); };
  auto is_short = [](const Axis& a) { return a.extent.is_constant() && a.extent.constant() < kShort; };
  constexpr size_t kMostOutputs = 4;
  bool rows = std::all_of(g.output_strides.begin(), g.output_strides.end(), [](const auto& s) { return s.empty(); });
  if (!rows || g.outputs.size() > kMostOutputs) return std::nullopt;
  for (size_t a = 0; a + 1 < axes.size(); ++a) {
    bool all = !is_short(axes[a]) && !is_short(axes.back()), strided = false;
    for (const Places::Access& p : places.accesses) {
      auto across = step(p, axes[a]);
      all = all && beside(across);
      strided |= across && across->is(1) && !beside(step(p, axes.back()));
    }
    if (all && strided) return a;
  }
  return std::nullopt;
}

// The same of rows that a thread has each of its own.
int rows_beside(const Group& g, const Machine& m) {
  MergedAxes merged = merged_axes(g, kShortRow);
  for (size_t i = merged.vector; i < merged.axes.size(); ++i)
    if (merged.axes[i].reduced == (i == merged.vector)) return 1;
  return std::min(neighbours(g, merged, m), kRowsBeside);
}

// How many neighbours along an axis read one element of something: a number that their place is divided by. 1: none do.
int64_t sharing(const Places& places, const Axis& a) {
  constexpr int64_t kMost = 4;
  if (a.count != 1) return 1;
  Expr along = places.ranges[a.first];
  int64_t found = 1;
  std::function<void(Expr)> look = [&](Expr e) {
    if (e->kind == ir::ExprKind::FloorDiv && e->args[1].is_constant() && e->args[1].constant() <= kMost)
      if (auto step = coefficient(e->args[0], along); step && step->is(1))
        found = std::max(found, e->args[1].constant());
    for (Expr part : e->args) look(part);
  };
  for (const Places::Access& read : places.accesses) look(read.place);
  return found;
}

// Elements that lie in the same windows are one thread's, as long as that leaves threads enough: what it reads of the windows it reads once.
void share_windows(Schedule& s, const Group& g, const Machine& m) {
  constexpr int64_t kMostElements = 4;
  if (s.width == 1 || !g.domain.rows().is_constant() || PassRunner::switched_off("share_windows")) return;
  Places places = places_of(g);
  int64_t threads = g.domain.rows().constant() / s.width, elements = 1;
  // The innermost one has the neighbours.
  bool innermost = true;
  for (size_t i = s.axes.size(); i-- > 0;) {
    Axis& a = s.axes[i];
    if (a.reduced || std::exchange(innermost, false)) continue;
    int64_t count = sharing(places, a);
    bool fits = provably_divisible(a.extent, count) && elements * count <= kMostElements;
    if (count == 1 || !fits || threads / count < kThreadsOfProcessor * m.processors) continue;
    threads /= count;
    elements *= count;
    a.spelled_out = a.piece = count;
  }
}

// Squares of so many elements to an edge: 128 bytes are read and written together.
int edge_of_tile(const Group& g) {
  int64_t largest = 2;
  for (const ir::Output& out : g.graph->outputs()) largest = std::max(largest, size_of(type_of(out.value).dtype));
  return largest > 2 ? 32 : 64;
}

// Threads of a block that walks along rows too long for registers. Where it does so again, the cache has the row still if the rows that are
// under way fit there together.
int threads_along_rows(const Group& g, Expr length, const Machine& m) {
  // Of unknown length most rows are short.
  if (!length.is_constant()) return kBlockOfRows;
  constexpr int64_t kCacheBytes = int64_t{32} << 20;
  int64_t bytes = 0, threads = kThreads;
  for (const ir::Input& in : g.graph->inputs())
    if (type_of(in.value).numel() == g.domain.numel()) bytes += size_of(type_of(in.value).dtype) * length.constant();
  std::vector<int> passes = passes_of(*g.graph);
  bool again = std::any_of(g.graph->nodes().begin(), g.graph->nodes().end(),
                           [&](const Node* n) { return passes[n->id] > 0 && n->types[0].numel() == g.domain.numel(); });
  auto under_way = [&] { return m.processors * (kThreadsOfProcessor / threads) * bytes; };
  while (again && threads < kMostThreads && under_way() > kCacheBytes && !PassRunner::switched_off("cached_rows"))
    threads *= 2;
  return static_cast<int>(threads);
}

// What several passes read of a row that is too long for registers stays in memory that a block shares, if two blocks have room for theirs: one
// of them reads while the other one computes.
bool keep_rows(Schedule& s, const Group& g, Expr length, const Machine& m) {
  constexpr int64_t kThreadsOfTwo = 512;
  constexpr int64_t kReserved = 2048;  // of each block, for the driver and for what sums exchange
  if (!length.is_constant() || PassRunner::switched_off("kept_rows")) return false;
  int64_t steps = (length.constant() / s.width + kThreadsOfTwo - 1) / kThreadsOfTwo, bytes = kReserved;
  std::vector<uint64_t> needed = passes_that_need(*g.graph);
  for (const ir::Input& in : g.graph->inputs()) {
    const ir::Type& t = type_of(in.value);
    if (!(t.numel() == g.domain.numel()) || std::popcount(needed[in.value.node->id]) < 2) continue;
    s.staged.push_back(in.value.node->id);
    bytes += steps * kThreadsOfTwo * s.width * size_of(t.dtype);
  }
  if (s.staged.empty() || 2 * bytes > m.shared_bytes) {
    s.staged.clear();
    return false;
  }
  s.threads = kThreadsOfTwo;
  s.serial_unroll = kMostStepsSpelledOut;
  return true;
}

// A thread that takes its neighbours of several rows reads what is the same in all rows once, as long as that leaves threads enough.
void share_rows(Schedule& s, const Group& g, const Machine& m) {
  constexpr int64_t kMostRows = 4;
  size_t axes = s.axes.size();
  if (s.width == 1 || axes < 2 || PassRunner::switched_off("share_rows")) return;
  Axis& rows = s.axes[axes - 2];
  Expr length = s.axes.back().extent;
  if (!g.domain.numel().is_constant() || !length.is_constant()) return;
  const auto& inputs = g.graph->inputs();
  bool shared = std::any_of(inputs.begin(), inputs.end(), [&](const ir::Input& in) {
    Expr elements = type_of(in.value).numel();
    return elements == length && !(length == g.domain.numel());
  });
  if (!shared) return;
  int64_t threads = g.domain.numel().constant() / s.width, count = 1;
  while (count < kMostRows && rows.extent.constant() % (2 * count) == 0 &&
         threads / (2 * count) >= kThreadsOfProcessor * m.processors)
    count *= 2;
  if (count > 1) rows.piece = count;
}

// Where all but one place along an axis keeps what it has, as a cache of keys does at a token, the kernel is at that place alone.
bool goes_to_changed_place(Schedule& s, const Group& g) {
  auto changed = changed_place(g);
  if (!changed) return false;
  auto axis = std::find_if(s.axes.begin(), s.axes.end(),
                           [&](const Axis& a) { return a.first == changed->dim && a.count == 1; });
  if (axis == s.axes.end()) return false;
  axis->kind = Axis::Single;
  if (axis + 1 == s.axes.end()) s.width = 1;
  return true;
}

Schedule loops(const Group& g, const Machine& m) {
  Schedule s;
  MergedAxes merged = merged_axes(g);
  s.axes = merged.axes;
  if (s.axes.empty()) return s;
  s.threads = kThreads;
  if (g.domain.scanned) {
    // Along its dimension one after the other, a thread each of the others.
    for (Axis& a : s.axes)
      if (a.first == *g.domain.scanned) a.kind = Axis::Serial;
    s.threads = kBlockOfRows;
    s.vector_outside = true;
    return s;
  }
  s.width = neighbours(g, merged, m);
  if (!g.domain.has_reduced()) {
    if (goes_to_changed_place(s, g)) return s;
    if (merged.strided == 0) share_rows(s, g, m);
    if (merged.strided == 0 || PassRunner::switched_off("tiles")) return s;
    if (auto across = transposed_axis(g, s.axes)) {
      s.across = static_cast<int>(*across);
      s.tile = edge_of_tile(g);
    } else {
      s.width = elements_in_places(g, merged, m);
    }
    return s;
  }
  Axis& last = s.axes.back();
  int64_t reduced = 0, tensors = 0;
  Expr length(1);
  bool with_columns = false;
  for (Axis& a : s.axes) {
    if (a.reduced || a.summed) a.kind = Axis::Serial;
    with_columns |= a.summed;
    if (!a.reduced) continue;
    ++reduced;
    length = length * a.extent;
  }
  if (!last.reduced) {
    s.vector_outside = true;
    s.width = g.domain.rows().is_constant() || in_many_parts(g.domain) ? std::min(s.width, kColumns) : 1;
    s.serial_unroll = kColumnUnroll;
    share_columns(s, g.domain, m);
    return s;
  }
  bool scattered = reduced > 1 || merged.strided > 0;
  if (scattered && length.is_constant() && length.constant() <= kShortRow) {
    s.vector_outside = true;
    s.width = PassRunner::switched_off("rows_beside") ? 1 : rows_beside(g, m);
    s.serial_unroll = kShortRow;
    share_windows(s, g, m);
    return s;
  }
  for (const ir::Input& in : g.graph->inputs()) tensors += type_of(in.value).numel() == g.domain.numel();
  if (with_columns) {
    BRASA_ASSERT(reduced == 1 && last.extent.is_constant(), "sums of columns beside those of rows of unknown length");
    rows_in_registers(s, last.extent.constant(), tensors, true);
    return s;
  }
  if (reduced == 1 && last.extent.is_constant() && last.extent.constant() > 0 &&
      rows_in_registers(s, last.extent.constant(), tensors, false))
    return s;
  last.kind = Axis::Vector;
  if (reduced == 1 && keep_rows(s, g, last.extent, m)) return s;
  s.threads = threads_along_rows(g, last.extent, m);
  // Of few steps it is known for each whether the row may end in it.
  Expr steps = ceildiv(floordiv(last.extent, s.width), s.threads);
  if (steps.is_constant() && steps.constant() <= kMostStepsSpelledOut) s.serial_unroll = kMostStepsSpelledOut;
  return s;
}

// Whether so many updates are added up in any order, by threads that stand beside each other along what the indices leave free.
bool adds_at_once(const ir::Node* n, const std::vector<Axis>& free, Expr updates, const Machine& m) {
  constexpr int64_t kMany = 1024;
  bool adds = n->arg<std::string>(4) == "add" && n->types[0].dtype == DType::Float32 && !m.one_order;
  bool wide = !free.empty() && free.back().extent.is_constant() && free.back().extent.constant() >= kWarp;
  return adds && wide && updates.is_constant() && updates.constant() >= kMany;
}

// Updates of one place follow each other, unless there are too many. What the indices leave free is parallel, and where updates are many, so
// are parts of the places: each goes through all updates and makes its own.
Schedule scatter(const Group& g, const Machine& m) {
  constexpr int64_t kPiece = 4, kMostColumns = 64, kMostParts = 64, kUpdates = 16;
  Schedule s;
  s.before.push_back(schedule(initial_value(g), m));
  s.threads = 1;
  s.axes = free_axes(g, kPiece);
  const ir::Node* n = g.graph->outputs()[0].value.node;
  Expr updates = type_of(n->arg<std::vector<ir::Value>>(1)[0]).numel();
  if (adds_at_once(n, s.axes, updates, m)) {
    s.atomic = true;
    s.axes.back().piece = 0;
    s.threads =
        static_cast<int>(std::min<int64_t>(kThreads, (s.axes.back().extent.constant() + kWarp - 1) / kWarp * kWarp));
    return s;
  }
  if (!s.axes.empty() && s.axes.back().extent.is_constant()) {
    int64_t pieces = (s.axes.back().extent.constant() + kPiece - 1) / kPiece;
    while (s.threads < kMostColumns && pieces > 0 && pieces % (2 * s.threads) == 0) s.threads *= 2;
  }
  if (updates.is_constant())
    while (s.parts < kMostParts && updates.constant() > kUpdates * s.parts) s.parts *= 2;
  return s;
}

Schedule contraction() {
  Schedule s;
  s.rows = kProductRows;
  s.threads = kProduct;
  return s;
}

}  // namespace

Schedule schedule_gpu(const Group& group, const Machine& machine) {
  switch (group.kind) {
    case GroupKind::Contraction: return contraction();
    case GroupKind::Scatter: return scatter(group, machine);
    case GroupKind::Library: return {};
    default: return loops(group, machine);
  }
}

}  // namespace brasa::compiler
