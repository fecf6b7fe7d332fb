#include "compiler/schedules/axes.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "compiler/fusion/places.h"
#include "compiler/lowering/expressions.h"

namespace brasa::compiler {

namespace {

// Places a·q + b·m where an index of neighbours is row·q + m: over how many elements a vector of them reaches at most.
int64_t reach(int64_t a, int64_t b, int64_t row, int lanes) {
  int64_t most = 0;
  for (int64_t phase = 0; phase < row; ++phase) {
    int64_t low = 0, high = 0;
    for (int64_t i = phase; i < phase + lanes; ++i) {
      int64_t at = a * (i / row) + b * (i % row - phase);
      low = std::min(low, at);
      high = std::max(high, at);
    }
    most = std::max(most, high - low + 1);
  }
  return most;
}

// Takes the last axis, a short row, and the one around it as one, where that costs no more than vectors of what lies near each other.
void join_rows(MergedAxes& out, const Places& places, int lanes) {
  size_t count = out.axes.size();
  if (count < 2 || out.vector + 1 != count) return;
  Axis &rows = out.axes[count - 2], &last = out.axes[count - 1];
  constexpr int64_t kShort = 8, kFar = 1 << 20;
  if (!last.extent.is_constant()) return;
  int64_t row = last.extent.constant();
  if (row >= std::max<int64_t>(lanes, kShort) || row % lanes == 0) return;
  if (rows.extent.is_constant() && rows.extent.constant() < lanes) return;
  Expr outer = places.ranges[rows.first + rows.count - 1], inner = places.ranges[last.first + last.count - 1];
  enum { Linear, Repeated, Uneven };
  auto sort_of = [&](Expr e, int64_t farthest) {
    auto a = coefficient(e, outer), b = coefficient(e, inner);
    if (!a || !b) return Uneven;
    if (*a == *b * last.extent) return Linear;
    if (!a->is_constant() || !b->is_constant()) return Uneven;
    int64_t most = std::max(std::abs(a->constant()), std::abs(b->constant()));
    return most < kFar && reach(a->constant(), b->constant(), row, lanes) <= farthest ? Repeated : Uneven;
  };
  for (const Places::Pick& p : places.picks)
    for (Expr at : p.at)
      if (contains_symbol(at, outer) || contains_symbol(at, inner)) return;
  for (Expr e : places.written)
    if (sort_of(e, kFar) != Linear) return;
  for (const Places::Access& a : places.accesses)
    if (sort_of(a.place, 2 * lanes) == Uneven) return;
  for (Expr e : places.exprs)
    if (sort_of(e, kFar * kFar) == Uneven) return;
  out.row = row;
  rows.extent = rows.extent * last.extent;
  rows.count = last.first + last.count - rows.first;
  out.axes.pop_back();
  out.vector = out.axes.size() - 1;
}

// None where a place takes uneven steps.
std::optional<Expr> step_along(const Places& places, Expr place, const Axis& a) {
  Expr along = places.ranges[a.first + a.count - 1];
  auto varies = [&](Expr e) { return contains_symbol(e, along); };
  for (const Places::Pick& p : places.picks)
    if (contains_symbol(place, p.index) && std::any_of(p.at.begin(), p.at.end(), varies)) return std::nullopt;
  return coefficient(place, along);
}

// How many steps of one another one is; 0 where it is no multiple of it, or that is not known.
int64_t times(Expr step, Expr of) {
  constexpr int64_t kFew = 4;
  for (int64_t k = 1; k <= kFew && !of.is(0); ++k)
    if (step == of * k) return k;
  bool known = step.is_constant() && of.is_constant() && !of.is(0);
  return known && step.constant() % of.constant() == 0 ? step.constant() / of.constant() : 0;
}

// Along the innermost axis that is kept, but for the vector axis: some of what sums go through stays where it is, and the rest goes on in even
// steps.
std::optional<MergedAxes::Again> read_again(const MergedAxes& merged, const Places& places, const Domain& d) {
  std::optional<MergedAxes::Again> found;
  for (size_t i = 0; i < merged.axes.size(); ++i)
    if (i != merged.vector && !d.folds(merged.axes[i].first)) found = {i};
  if (!found) return std::nullopt;
  const Axis& beside = merged.axes[found->axis];
  auto is_summed = [&](const Places::Access& read) {
    return std::any_of(merged.axes.begin(), merged.axes.end(), [&](const Axis& a) {
      return d.folds(a.first) && step_along(places, read.place, a) != std::optional(Expr(0));
    });
  };
  bool stays = false, goes_on = false, repeats = places.picks.empty();
  for (const Places::Access& read : places.accesses) {
    std::optional<Expr> on = step_along(places, read.place, beside);
    if (!is_summed(read)) {
      repeats = repeats && on == std::optional(Expr(0));
      continue;
    }
    if (!on) return std::nullopt;
    (on->is(0) ? stays : goes_on) = true;
    for (const Axis& window : merged.axes) {
      if (on->is(0) || !d.folds(window.first) || !window.extent.is_constant()) continue;
      std::optional<Expr> tap = step_along(places, read.place, window);
      int64_t taps_on = tap ? times(*on, *tap) : 0;
      if (taps_on > 0 && taps_on < window.extent.constant()) found = {found->axis, window.extent.constant(), taps_on};
    }
  }
  found->repeats = repeats && found->step > 0;
  return stays && goes_on ? found : std::nullopt;
}

// See MergedAxes::rows.
std::optional<size_t> rows_of_matrix(const MergedAxes& merged, const Places& places, const Group& g) {
  const Domain& d = g.domain;
  const Axis& summed = merged.axes[merged.vector];
  if (!summed.reduced || merged.vector == 0 || d.scanned || !d.summed.empty()) return std::nullopt;
  size_t at = merged.vector - 1;
  const Axis& rows = merged.axes[at];
  auto sums = [](const Node* n) { return is_reduction(prim_of(n)); };
  if (std::count_if(g.graph->nodes().begin(), g.graph->nodes().end(), sums) != 1) return std::nullopt;
  // Elements that are results as well are gone through once more, when the sum is there.
  for (const ir::Output& o : g.graph->outputs())
    if (!(type_of(o.value).numel() == d.rows())) return std::nullopt;
  bool stays = false, goes_on = false;
  for (const Places::Access& read : places.accesses) {
    std::optional<Expr> along = step_along(places, read.place, summed), on = step_along(places, read.place, rows);
    if (along && along->is(0)) continue;  // once a row, as what is added to its sum
    if (!along || !along->is(1) || !on) return std::nullopt;
    (on->is(0) ? stays : goes_on) = true;
  }
  bool alone = std::none_of(merged.axes.begin(), merged.axes.end(),
                            [&](const Axis& a) { return &a != &summed && d.folds(a.first); });
  return stays && goes_on && alone ? std::optional(at) : std::nullopt;
}

// See MergedAxes::shared. Of one operand more than once nothing is gained.
std::optional<size_t> shared_axis(const MergedAxes& merged, const Places& places, const Group& g) {
  constexpr int64_t kFew = 8, kSmall = 256;
  if (g.domain.folds() || !g.domain.summed.empty() || !places.picks.empty()) return std::nullopt;
  for (size_t i = 0; i < merged.axes.size(); ++i) {
    const Axis& a = merged.axes[i];
    if (i == merged.vector || !a.extent.is_constant() || a.extent.constant() > kFew) continue;
    size_t stays = 0, moves = 0;
    for (const Places::Access& read : places.accesses) {
      Expr elements = ir::type_of(g.inputs[read.input]).numel();
      if (elements.is_constant() && elements.constant() <= kSmall) continue;
      ++(step_along(places, read.place, a) == std::optional(Expr(0)) ? stays : moves);
    }
    if (stays > 1 && moves == 0) return i;
  }
  return std::nullopt;
}

// See MergedAxes::picked_once.
std::optional<size_t> picked_once(const MergedAxes& merged, const Places& places, const Group& g) {
  if (places.picks.empty() || g.domain.folds() || !g.domain.summed.empty()) return std::nullopt;
  std::optional<size_t> found;
  for (size_t i = 0; i < merged.axes.size(); ++i) {
    const Axis& a = merged.axes[i];
    Expr along = places.ranges[a.first + a.count - 1];
    bool picks = std::any_of(places.picks.begin(), places.picks.end(), [&](const Places::Pick& p) {
      return std::any_of(p.at.begin(), p.at.end(), [&](Expr e) { return contains_symbol(e, along); });
    });
    if (picks) continue;
    if (found || i == merged.vector) return std::nullopt;
    found = i;
  }
  if (!found) return std::nullopt;
  constexpr int64_t kMany = 8;
  int64_t stays = std::count_if(places.accesses.begin(), places.accesses.end(), [&](const Places::Access& read) {
    return step_along(places, read.place, merged.axes[*found]) == std::optional(Expr(0));
  });
  return stays >= kMany ? found : std::nullopt;
}

}  // namespace

MergedAxes merged_axes(const Group& group, int lanes, bool order) {
  MergedAxes out;
  bool loops = group.kind == GroupKind::Loops;
  Places places;
  if (loops) places = places_of(group);
  const Domain& d = group.domain;
  for (size_t i = 0; i < d.dims.size(); ++i) {
    if (d.dims[i].is(1)) continue;
    bool joined = false;
    auto same_sort = [&](const Axis& a) {
      return a.reduced == d.reduced[i] && a.summed == d.sums(i) && d.scanned != i && d.scanned != a.first &&
             !(order && a.reduced);
    };
    if (!out.axes.empty() && same_sort(out.axes.back()) && loops) {
      Axis& before = out.axes.back();
      Expr outer = places.ranges[before.first + before.count - 1], inner = places.ranges[i];
      joined = std::all_of(places.exprs.begin(), places.exprs.end(), [&](Expr e) {
        auto a = coefficient(e, outer), b = coefficient(e, inner);
        return a && b && *a == *b * d.dims[i];
      });
      // Only neighbours: dimensions of one element between them have no part in any index.
      if (joined) {
        before.extent = before.extent * d.dims[i];
        before.count = i + 1 - before.first;
      }
    }
    if (!joined) out.axes.push_back({d.dims[i], i, 1, d.reduced[i], Axis::Parallel, 0, d.sums(i)});
  }
  if (out.axes.empty()) return out;
  auto is_short = [&](const Axis& a) { return a.extent.is_constant() && a.extent.constant() < lanes; };
  out.vector = out.axes.size() - 1;
  auto step = [&](Expr place, const Axis& a) { return step_along(places, place, a); };
  // Lanes that lie farther apart are fetched one by one, which costs more than short vectors where each sums many of them.
  constexpr int64_t kNear = 4;
  auto is_near = [&](const Axis& a) {
    return std::all_of(places.exprs.begin(), places.exprs.end(), [&](Expr e) {
      auto s = step(e, a);
      return s && s->is_constant() && s->constant() <= kNear;
    });
  };
  Expr summed(1);
  for (const Axis& a : out.axes)
    if (d.folds(a.first)) summed = summed * a.extent;
  bool few = summed.is_constant() && summed.constant() < 2 * lanes;
  // Places in several dimensions of windows that are counted as one: quotients, of which each lane would have its own.
  bool uneven =
      std::any_of(places.exprs.begin(), places.exprs.end(), [&](Expr e) { return !step(e, out.axes.back()); });
  bool short_row = is_short(out.axes.back());
  // What is read along the last axis is fetched one by one anyway, but for weights that other rows read, too: along another axis no vector
  // needs to be summed up. Sums that are long, or may be, gain nothing from it.
  constexpr int kLongSum = 4;  // vectors
  auto is_fetched = [&](const Places::Access& read) {
    auto s = step(read.place, out.axes.back());
    if (!s || s->is(0)) return true;
    return std::any_of(out.axes.begin(), out.axes.end(), [&](const Axis& a) {
      return !d.folds(a.first) && step(read.place, a) == std::optional(Expr(0));
    });
  };
  bool scattered = uneven && summed.is_constant() && summed.constant() < kLongSum * lanes &&
                   std::all_of(places.accesses.begin(), places.accesses.end(), is_fetched);
  // Rows of a matrix that are added up, as its columns lie beside each other.
  bool far = std::any_of(places.accesses.begin(), places.accesses.end(), [&](const Places::Access& read) {
    auto s = step(read.place, out.axes.back());
    return s && !(s->is_constant() && s->constant() <= kNear);
  });
  if (lanes > 0 && d.folds(out.axes.back().first) && (uneven || short_row || far)) {
    std::optional<size_t> near, kept;
    for (size_t i = 0; i < out.axes.size(); ++i)
      if (const Axis& a = out.axes[i]; !d.folds(a.first) && !is_short(a)) {
        kept = i;
        if ((short_row && few) || is_near(a)) near = i;
      }
    if (scattered && !near) near = kept;
    if (near) out.vector = *near;
  }
  // Few neighbours make no good vector.
  if (short_row && !d.folds(out.axes.back().first))
    for (size_t i = 0; i < out.axes.size(); ++i)
      if (const Axis& a = out.axes[i]; !d.folds(a.first) && !is_short(a) && is_near(a)) out.vector = i;
  if (loops && lanes > 0 && !d.folds() && d.summed.empty()) join_rows(out, places, lanes);
  if (out.row) return out;
  for (Expr e : places.exprs) {
    auto last = step(e, out.axes[out.vector]);
    if (last && (last->is(0) || last->is(1))) continue;
    if (last && last->is(-1)) {
      ++out.reversed;
      continue;
    }
    ++out.strided;
    if (!last || !last->is_constant() || std::abs(last->constant()) > kNear) ++out.gathered;
    for (size_t i = 0; i < out.axes.size(); ++i)
      if (auto s = step(e, out.axes[i]);
          i != out.vector && s && s->is_constant() && !s->is(0) && std::abs(s->constant()) <= kNear)
        out.neighbours = i;
  }
  if (d.has_reduced()) out.again = read_again(out, places, d);
  if (loops && d.has_reduced()) out.rows = rows_of_matrix(out, places, group);
  if (loops) out.shared = shared_axis(out, places, group);
  if (loops) out.picked_once = picked_once(out, places, group);
  // As many stores that differ by one place are vectors of neighbours.
  constexpr int64_t kMostInterleaved = 4;
  const Axis& pieces = out.axes.back();
  if (pieces.extent.is_constant() && pieces.extent.constant() <= kMostInterleaved && !d.folds() &&
      std::has_single_bit(static_cast<uint64_t>(pieces.extent.constant())) && out.vector + 1 < out.axes.size())
    for (Expr e : places.exprs)
      if (step(e, pieces) == std::optional(Expr(1)) && step(e, out.axes[out.vector]) == std::optional(pieces.extent))
        out.interleaved = out.axes.size() - 1;
  const Axis& vector = out.axes[out.vector];
  for (const Places::Access& a : places.accesses) {
    if (step(a.place, vector) != std::optional(Expr(1))) continue;
    for (size_t i = 0; i < out.vector; ++i)
      if (step(a.place, out.axes[i]) == std::optional(vector.extent)) out.continued = i;
  }
  for (const Places::Access& a : places.accesses) out.repeated.insert(a.input);
  for (const Places::Access& a : places.accesses)
    if (auto last = step(a.place, out.axes[out.vector]); !last || !last->is(0)) out.repeated.erase(a.input);
  return out;
}

bool once_a_sum(const Group& group, const Node* n) {
  const auto& nodes = group.graph->nodes();
  if (!group.domain.has_reduced()) return false;
  if (std::any_of(nodes.begin(), nodes.end(), [](const Node* x) { return prim_of(x) == Prim::Window; })) return false;
  Expr count = n->types[0].numel();
  return count.is(1) || count == group.domain.rows();
}

std::vector<Axis> free_axes(const Group& scatter, int64_t piece) {
  const ir::Node* n = scatter.graph->outputs()[0].value.node;
  const ir::Shape& shape = n->types[0].shape;
  std::vector<Axis> out;
  for (int64_t d : other_dims(int_args(n, 3), n->types[0].rank()))
    out.push_back({shape[d], static_cast<size_t>(d), 1, false, Axis::Parallel, 0});
  if (!out.empty()) {
    out.back().kind = Axis::Vector;
    out.back().piece = piece;
  }
  return out;
}

}  // namespace brasa::compiler
