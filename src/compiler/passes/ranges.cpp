#include "compiler/passes/ranges.h"

#include <algorithm>

namespace brasa::compiler {
namespace {

// Neighbouring dimensions in the order in which a reshape counts them; absent where their elements are not evenly apart.
std::optional<Range> joined(const Range* ranges, const Expr* extents, size_t count) {
  Range out;
  Expr inner = 1;
  for (size_t d = count; d-- > 0; inner = inner * extents[d]) {
    const Range& r = ranges[d];
    if (extents[d].is(1)) continue;
    if (out.size.is(1))
      out = {r.start * inner + out.start, r.size, r.step * inner};
    else if (r.size.is(1))
      out.start = r.start * inner + out.start;
    else if (r.step * inner == out.step * out.size)
      out = {r.start * inner + out.start, r.size * out.size, out.step};
    else
      return std::nullopt;
  }
  return out;
}
// The other way round.
bool split(Range r, const Expr* extents, size_t count, Range* to) {
  for (size_t d = count; d-- > 1;) {
    Expr e = extents[d];
    bool known = e.is_constant() && e.constant() > 0;
    auto divides = [&](Expr x) { return x == e || (known && ir::mod(x, e).is(0)); };
    if (!known && !r.start.is(0)) return false;
    Expr place = r.start.is(0) ? Expr(0) : ir::mod(r.start, e),
         row = r.start.is(0) ? Expr(0) : ir::floordiv(r.start, e);
    auto over = [&](Expr x) { return x == e ? Expr(1) : ir::floordiv(x, e); };
    if (e.is(1)) {
      to[d] = {};
    } else if (r.size.is(1) || divides(r.step)) {
      to[d] = {place, 1, 1};
      r = {row, r.size, r.size.is(1) ? Expr(1) : over(r.step)};
    } else if (r.step.is(1) && place.is(0) && divides(r.size)) {
      to[d] = {0, e, 1};
      r = {row, over(r.size), 1};
    } else {
      return false;
    }
  }
  to[0] = r;
  return true;
}
}  // namespace

bool is_whole(const Part& part, const Shape& shape) {
  for (size_t d = 0; d < shape.size(); ++d)
    if (!part[d].is_whole(shape[d])) return false;
  return true;
}
Part whole_of(const Shape& shape) {
  Part out;
  for (Expr e : shape) out.push_back({0, e, 1});
  return out;
}
Shape sizes_of(const Part& part) {
  Shape out;
  for (const Range& r : part) out.push_back(r.size);
  return out;
}
std::vector<Expr> starts_of(const Part& part) {
  std::vector<Expr> out;
  for (const Range& r : part) out.push_back(r.start);
  return out;
}
std::vector<Expr> steps_of(const Part& part) {
  std::vector<Expr> out;
  for (const Range& r : part) out.push_back(r.step);
  return out;
}
std::optional<Part> reshaped(const Part& part, const Shape& from, const Shape& to) {
  Part out(to.size());
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    // The fewest dimensions of both that have as many elements.
    size_t in = 0, of = 0;
    bool found = false;
    for (size_t both = 1; !found && both <= from.size() - i + to.size() - j; ++both)
      for (in = both < to.size() - j ? 0 : both - (to.size() - j); in <= std::min(both, from.size() - i); ++in) {
        of = both - in;
        auto count = [](const Shape& s, size_t first, size_t n) {
          return ir::product(Shape(s.begin() + static_cast<long>(first), s.begin() + static_cast<long>(first + n)));
        };
        if ((found = count(from, i, in) == count(to, j, of))) break;
      }
    if (!found) return std::nullopt;
    bool all = true;
    for (size_t d = i; d < i + in; ++d) all = all && part[d].is_whole(from[d]);
    if (all) {
      for (size_t d = j; d < j + of; ++d) out[d] = {0, to[d], 1};
    } else {
      std::optional<Range> one = joined(&part[i], &from[i], in);
      if (!one || of == 0 || !split(*one, &to[j], of, &out[j])) return std::nullopt;
    }
    i += in, j += of;
  }
  return out;
}

}  // namespace brasa::compiler
