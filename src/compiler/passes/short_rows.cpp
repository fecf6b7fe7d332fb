#include "compiler/fusion/indexing.h"
#include "compiler/passes/contraction.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/transform.h"

namespace brasa::compiler {

using ir::Expr;

namespace {

// A row of fewer elements is shorter than a vector, whose loop's begin and end would take longer than the row.
constexpr int64_t kShort = 8;
// Fewer elements do not make up for the time that code for one length more takes to compile.
constexpr int64_t kMany = 1 << 14;

void ask(Expr size, const PassContext& context) {
  if (size.is_constant()) return;
  for (Expr s : *size->symbols) context.facts.equal(s, context.facts.hint(s));
}

// Whether the rows' length is, or becomes, known.
bool ask_of(const ir::Shape& shape, const PassContext& context) {
  if (shape.size() < 2) return false;
  ir::Facts& facts = context.facts;
  Expr last = facts.known(shape.back());
  if (last.is_constant() || at_least(last, kShort, context)) return false;
  if (!at_least(facts.known(ir::product(shape)), kMany, context)) return false;
  ask(last, context);
  return true;
}

// So few short rows one behind the other that they are no vector's either, and so few such planes: of many elements the outermost are not few.
// Whether there is such a plane.
bool ask_of_few(const ir::Shape& shape, const PassContext& context) {
  size_t known = 1;
  for (; known + 1 < shape.size(); ++known) {
    Expr few = context.facts.known(shape[shape.size() - 1 - known]);
    if (at_least(few, kShort, context)) break;
    ask(few, context);
  }
  return known > 1;
}

// Whether a transposition's rows are as long as a vector that is transposed in registers is short: no vector is wider then.
void ask_of_turned(const ir::Graph& graph, const PassContext& context) {
  constexpr int64_t kFewLanes = 8;
  auto moves_last = [](const ir::Node* n) {
    if (prim_of(n) != Prim::Transpose) return false;
    std::vector<int64_t> dims = int_args(n, 1);
    return !dims.empty() && dims.back() + 1 != std::ssize(dims);
  };
  auto lies_turned = [&](const ir::Input& in) { return !in.strides.empty() && !in.strides.back().is(1); };
  bool turned = std::any_of(graph.nodes().begin(), graph.nodes().end(), moves_last) ||
                std::any_of(graph.inputs().begin(), graph.inputs().end(), lies_turned);
  for (const ir::Output& out : graph.outputs()) {
    const ir::Shape& shape = type_of(out.value).shape;
    if (!turned || shape.size() < 2) continue;
    Expr last = context.facts.known(shape.back());
    if (!last.is_constant() && at_least(context.facts.known(ir::product(shape)), kMany, context))
      context.facts.equal(last, kFewLanes);
  }
}

// How far apart rows lie that follow each other, or nearly: a vector takes neighbouring ones.
void ask_of_steps(const ir::Input& in, const PassContext& context) {
  const ir::Shape& shape = type_of(in.value).shape;
  if (shape.size() < 2 || in.strides.empty() || !context.facts.known(shape.back()).is_constant()) return;
  for (Expr s : in.strides)
    if (ir::is_symbol(s) && context.facts.hint(s) < 2 * kShort) context.facts.equal(s, context.facts.hint(s));
}

// A tile that is made for few rows, or for few columns too, leaves no part of it empty and reads the columns once.
void ask_of_product(const ir::Node* n, const PassContext& context) {
  constexpr int64_t kFewColumns = 64, kManyProducts = 1 << 19;
  auto free = [&](size_t operand) {
    return context.facts.known(
        free_size(n->arg<ir::Value>(operand), int_args(n, 2 + operand), int_args(n, 4 + operand)));
  };
  Expr rows = free(0), columns = free(1);
  // First of all products, so that small ones are of one class.
  Expr products = ir::product(n->types[0].shape);
  for (int64_t d : int_args(n, 2)) products = products * type_of(n->arg<ir::Value>(0)).shape[d];
  if (!at_least(context.facts.known(products), kManyProducts, context) || at_least(rows, kPackingRows, context)) return;
  ask(rows, context);
  // A single row's columns, such as a token's scores of all before it, may be one more in each call.
  bool single = context.facts.known(rows).is(1);
  if (!single && !at_least(columns, kFewColumns, context)) ask(columns, context);
}

}  // namespace

void ask_for_short_rows(Primitives& p, const PassContext& context) {
  if (context.machine.gpu || !context.size_classes) return;
  bool planes = false;
  for (const ir::Input& in : p.graph->inputs())
    if (ask_of(type_of(in.value).shape, context)) planes = ask_of_few(type_of(in.value).shape, context) || planes;
  // Sizes of results may be a call's numbers: code for each pair of them is worth it where planes become planes alone.
  for (const ir::Output& out : p.graph->outputs())
    if (ask_of(type_of(out.value).shape, context) && planes) ask_of_few(type_of(out.value).shape, context);
  // Rows of what is in no memory: sums along them, such as of the differences of pairs of short rows, and what is repeated along them.
  for (const ir::Node* n : p.graph->nodes()) {
    bool sums = prim_of(n) == Prim::Reduce;
    if (!sums && prim_of(n) != Prim::Broadcast) continue;
    const ir::Shape& shape = type_of(sums ? n->arg<ir::Value>(0) : ir::Value{const_cast<ir::Node*>(n), 0}).shape;
    if (!shape.empty() && ir::is_symbol(shape.back())) ask_of(shape, context);
  }
  for (const ir::Node* n : p.graph->nodes())
    if (prim_of(n) == Prim::Dot) ask_of_product(n, context);
  for (const ir::Input& in : p.graph->inputs()) ask_of_steps(in, context);
  ask_of_turned(*p.graph, context);
}

}  // namespace brasa::compiler
