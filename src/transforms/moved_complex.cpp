#include <algorithm>
#include <array>
#include <bit>
#include <complex>

#include "ir/copy.h"
#include "ops/builder.h"
#include "ops/number.h"
#include "ops/primitives.h"
#include "transforms/complex.h"

namespace brasa::transforms {
namespace {

using ir::Node;
using ops::Kind;

// The only complex dtype that has an integer of as many bits.
constexpr DType kMoved = DType::Complex64, kWord = DType::Int64;

bool only_moves(const Node& n) {
  const ops::Row& row = ops::row_of(n);
  switch (row.kind) {
    case Kind::Full:
    case Kind::Pad:
    case Kind::Concat:
    case Kind::Gather: return true;
    case Kind::Pointwise: return row.scalar == ops::ScalarOp::Select;
    case Kind::Scatter: return n.arg<std::string>(4).empty();
    default: return ops::is_view(row.kind) && row.kind != Kind::Later;
  }
}

// Whether the graph has numbers of that dtype, and neither computes with them nor takes them by value.
bool only_moves(const ir::Graph& graph) {
  bool any = false;
  for (const ir::Input& in : graph.inputs())
    if (in.by_value && is_complex(type_of(in.value).dtype)) return false;
  for (const Node* n : live_nodes(graph)) {
    bool moved = false, others = false;
    auto note = [&](const ir::Type& t) { (t.dtype == kMoved ? moved : others) |= is_complex(t.dtype); };
    for (const ir::Type& t : n->types) note(t);
    n->for_each_input([&](ir::Value v) { note(type_of(v)); });
    if (others || (moved && n->op != ir::input_op() && !only_moves(*n))) return false;
    any = any || moved;
  }
  return any;
}

int64_t bits_of(const ops::Number& number) {
  std::complex<float> z(number.as_complex());
  return std::bit_cast<int64_t>(std::array<float, 2>{z.real(), z.imag()});
}

}  // namespace

std::unique_ptr<ir::Graph> moved_as_words(const ir::Graph& graph, ir::Facts& facts) {
  if (!only_moves(graph)) return nullptr;
  auto out = std::make_unique<ir::Graph>(graph.level());
  out->name = graph.name;
  ops::Builder builder(*out, facts);
  ir::ValueMap map;
  for (const ir::Input& in : graph.inputs()) {
    ir::Type t = type_of(in.value);
    if (t.dtype == kMoved) t.dtype = kWord;
    map.set(in.value, out->add_input(std::move(t), in.name, in.strides, in.by_value));
  }
  for (Node* n : live_nodes(graph)) {
    if (n->op == ir::input_op()) continue;
    if (n->types[0].dtype != kMoved)
      ir::copy_node(*out, *n, map);
    else if (ops::row_of(*n).kind == Kind::Full)
      map.set(n->out(), ops::prim::full(bits_of(ops::Number(n->arg(0))), n->types[0].shape, kWord));
    else
      map.set(n->out(), builder.call(ops::row_of(*n), ir::mapped(n->args, map))[0]);
  }
  for (const ir::Output& o : graph.outputs()) out->outputs().push_back({map(o.value), o.into, o.check});
  return out;
}

}  // namespace brasa::transforms
