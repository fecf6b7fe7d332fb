#include "compiler/schedules/axes.h"

#include <algorithm>

#include "compiler/fusion/places.h"
#include "compiler/lowering/expressions.h"

namespace brasa::compiler {

using ir::Expr;

namespace {
bool same(const std::optional<Expr>& a, const std::optional<Expr>& b) { return a && b && *a == *b; }
}  // namespace

MergedAxes merged_axes(const Group& group) {
  MergedAxes out;
  bool loops = group.kind == GroupKind::Loops;
  Places places;
  if (loops) places = places_of(group);
  const Domain& d = group.domain;
  for (size_t i = 0; i < d.dims.size(); ++i) {
    if (d.dims[i].is(1)) continue;
    bool joined = false;
    if (!out.axes.empty() && out.axes.back().reduced == d.reduced[i] && loops) {
      Axis& before = out.axes.back();
      Expr outer = places.ranges[before.first + before.count - 1], inner = places.ranges[i];
      joined = std::all_of(places.exprs.begin(), places.exprs.end(), [&](Expr e) {
        auto a = coefficient(e, outer), b = coefficient(e, inner);
        return a && b && same(a, *b * d.dims[i]);
      });
      // Only neighbours: dimensions of one element between them have no part in any index.
      if (joined) {
        before.extent = before.extent * d.dims[i];
        before.count = i + 1 - before.first;
      }
    }
    if (!joined) out.axes.push_back({d.dims[i], i, 1, d.reduced[i], Axis::Parallel, 0});
  }
  if (out.axes.empty()) return out;
  const Axis& last = out.axes.back();
  for (Expr e : places.exprs) {
    auto step = coefficient(e, places.ranges[last.first + last.count - 1]);
    out.strided += !step || !(step->is(0) || step->is(1));
  }
  return out;
}

}  // namespace brasa::compiler
