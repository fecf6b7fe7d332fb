#include <algorithm>
#include <optional>

#include "compiler/fusion/fuse.h"
#include "compiler/fusion/indexing.h"
#include "ir/text.h"
#include "support/str.h"

namespace brasa::compiler {

using ir::Expr;
using ir::Value;

Domain domain_of(const ir::Shape& dims) { return {dims, std::vector<bool>(dims.size(), false), {}}; }

namespace {

Expr reduced_elements(const Domain& d) {
  Expr out(1);
  for (size_t i = 0; i < d.dims.size(); ++i)
    if (d.reduced[i]) out = out * d.dims[i];
  return out;
}

// What a reduction chooses is the same in whatever order it looks. So it may look along the dimensions that its operand had before some of them
// were taken together: no place is a quotient there. Of numbers that are known the code finds quotients itself.
std::optional<Domain> before_merging(const ir::Node* reduction, const Domain& d) {
  Value v = reduction->arg<Value>(0);
  bool chooses = prim_of(reduction) == Prim::ArgReduce || reduction->arg<std::string>(2) == "max" ||
                 reduction->arg<std::string>(2) == "min";
  if (!chooses || prim_of(v) != Prim::Reshape || reduced_elements(d).is_constant()) return std::nullopt;
  Domain out = domain_of(type_of(v.node->arg<Value>(0)).shape);
  size_t next = 0;
  for (size_t i = 0; i < d.dims.size(); ++i) {
    Expr merged(1);
    do {
      if (next == out.dims.size()) return std::nullopt;
      merged = merged * out.dims[next];
      out.reduced[next++] = d.reduced[i];
    } while (!(merged == d.dims[i]));
  }
  return next == out.dims.size() ? std::optional(out) : std::nullopt;
}

}  // namespace

Domain reduced_domain(const ir::Node* reduction) {
  Domain d = domain_of(type_of(reduction->arg<Value>(0)).shape);
  for (int64_t dim : reduced_dims(reduction)) d.reduced[dim] = true;
  return before_merging(reduction, d).value_or(d);
}

Domain columns_of(const Domain& d) { return {d.dims, d.summed, {}}; }

bool same_blocks(const Domain& a, const Domain& b, bool order) {
  auto blocks = [order](const Domain& d) {
    std::vector<std::pair<Expr, bool>> out;
    for (size_t i = 0; i < d.dims.size(); ++i) {
      if (d.dims[i].is(1)) continue;
      if (!out.empty() && out.back().second == d.reduced[i] && !(order && d.reduced[i]))
        out.back().first = out.back().first * d.dims[i];
      else
        out.push_back({d.dims[i], d.reduced[i]});
    }
    return out;
  };
  return blocks(a) == blocks(b);
}

bool sums_columns(const ir::Node* n, const Domain& d) {
  return !d.summed.empty() && is_reduction(prim_of(n)) && same_blocks(reduced_domain(n), columns_of(d));
}

namespace {
// A GPU's kernel that walks along rows can add up parts of columns on its way, if a few threads hold a row in registers.
std::optional<Domain> rows_and_columns(const Domain& rows, const Domain& parts) {
  constexpr int64_t kNarrowest = 64, kWidest = 2048;
  const std::vector<bool> middle = {false, true, false};
  if (parts.reduced != middle || !parts.numel().is_constant()) return std::nullopt;
  int64_t length = parts.dims[2].constant();
  Domain out{parts.dims, {false, false, true}, middle};
  return length >= kNarrowest && length <= kWidest && same_blocks(rows, out) ? std::optional(out) : std::nullopt;
}
}  // namespace

Domain common_domain(const Domain& a, const Domain& b, bool sum_columns) {
  if (!a.has_reduced() || !b.has_reduced()) return a.has_reduced() || !b.has_reduced() ? a : b;
  if (!a.summed.empty() || !b.summed.empty()) return a.summed.empty() ? b : a;
  if (!sum_columns) return a;
  auto both = rows_and_columns(a, b);
  if (!both) both = rows_and_columns(b, a);
  return both.value_or(a);
}

std::vector<Expr> kept(const Domain& d, const std::vector<Expr>& items) {
  std::vector<Expr> out;
  for (size_t i = 0; i < items.size(); ++i)
    if (!d.reduced[i]) out.push_back(items[i]);
  return out;
}

Expr Domain::rows() const { return ir::product(kept(*this, dims)); }
bool Domain::has_reduced() const { return std::find(reduced.begin(), reduced.end(), true) != reduced.end(); }

void append_to(std::string& out, const Domain& d) {
  out += '[';
  for (size_t i = 0; i < d.dims.size(); ++i) {
    if (i) out += ", ";
    if (d.reduced[i]) out += '~';
    if (d.sums(i)) out += '+';
    if (d.scanned == i) out += '>';
    append_to(out, d.dims[i]);
  }
  out += ']';
}

Value Group::add_input(Value v, const ir::Graph& whole) { return add_input(v, ir::strides_of(whole, v)); }
Value Group::add_input(Value v, std::vector<Expr> strides) {
  inputs.push_back(v);
  return graph->add_input({type_of(v).dtype, type_of(v).shape, false}, "", std::move(strides));
}

Work Group::work() const {
  Work w;
  for (const ir::Node* n : ir::live_nodes(*graph)) {
    const ir::Type& made = n->types[0];
    if (prim_of(n) == Prim::Dot) {
      const ir::Shape& a = type_of(n->arg<Value>(0)).shape;
      w.results = made.numel();
      w.steps = 1;
      for (int64_t dim : int_args(n, 2)) w.steps = w.steps * a[static_cast<size_t>(dim)];
    } else if (is_reduction(prim_of(n))) {
      w.elements = w.elements + type_of(n->arg<Value>(0)).numel();
    } else if (prim_of(n) == Prim::Pointwise && is_floating(made.dtype)) {
      w.elements = w.elements + made.numel();
    }
  }
  return w;
}

std::string_view name(GroupKind kind) {
  constexpr std::string_view kNames[] = {"loops", "contraction", "scatter", "library"};
  return kNames[static_cast<int>(kind)];
}

void append_to(std::string& out, const Group& g) {
  auto values = [&](const char* what, const std::vector<Value>& list) {
    out += what;
    for (Value v : list)
      out += v.index ? str(" %", v.node->id, ".", static_cast<int64_t>(v.index)) : str(" %", v.node->id);
  };
  out += str(name(g.kind), " ", g.domain);
  values(" of", g.inputs);
  values(" to", g.outputs);
  out += "\n" + ir::print(*g.graph);
}

void append_to(std::string& out, const FusedGraph& f) {
  for (const Group& g : f.groups) append_to(out, g);
}

}  // namespace brasa::compiler
