#include "ir/legality.h"

#include <unordered_set>

#include "ir/copy.h"
#include "ir/text.h"
#include "support/error.h"

namespace brasa::ir {
namespace {

class Checker {
 public:
  Checker(const Graph& g, uint32_t first_defined) : g_(g), first_defined_(first_defined) {}

  void run() {
    for (size_t i = 0; i < g_.inputs().size(); ++i) input(i);
    for (size_t i = 0; i < g_.nodes().size(); ++i) {
      const Node& n = *g_.nodes()[i];
      if (n.id != i || n.graph != &g_) bad(&n, "it is not at its place");
      n.for_each_input([&](Value v) {
        if (v.node->graph != &g_ || v.node->id >= n.id) bad(&n, "an operand does not come before it");
        if (v.index >= v.node->types.size()) bad(&n, str("%", v.node->id, " has no result ", v.index));
      });
      if (n.op != input_op()) node(n);
    }
    for (const Output& o : g_.outputs()) output(o);
  }

 private:
  [[noreturn]] void bad(const Node* n, std::string what) const {
    fail_internal(str("graph of ", name(g_.level()), ": ", what, n ? str("\n  at ", print(*n)) : "", "\n", print(g_)));
  }

  void input(size_t i) {
    const Input& in = g_.inputs()[i];
    if (!in.value || in.value.node->graph != &g_ || g_.input_index(in.value) != static_cast<int>(i))
      bad(nullptr, str("input ", i, " is not at its place"));
    const Type& t = type_of(in.value);
    if (!in.strides.empty() && in.strides.size() != t.shape.size()) bad(in.value.node, "one stride a dimension");
    std::vector<Expr> symbols;
    for (Expr e : t.shape) collect_symbols(e, symbols);
    for (Expr e : in.strides) collect_symbols(e, symbols);
    bound_.insert(symbols.begin(), symbols.end());
  }

  void node(const Node& n) {
    if (!n.op->legal_at(g_.level())) bad(&n, str("graphs of ", name(g_.level()), " do not hold ", n.op->name()));
    if (n.args.size() != n.op->schema.params.size())
      bad(&n, str(n.op->name(), " takes ", n.op->schema.params.size(), " arguments, it has ", n.args.size()));
    if (auto types = n.op->infer(n.args)) {
      if (types->size() != n.types.size()) bad(&n, str("it has ", types->size(), " results"));
      for (size_t r = 0; r < types->size(); ++r)
        if (!agree((*types)[r], n.types[r])) bad(&n, str("its result is ", (*types)[r]));
    }
    if (g_.level() == Level::Loops) return;  // ranges and values are declared by nodes of their own: compiler/loops
    each_size(n, [&](Expr e) { symbols(n, e); });
  }

  // A size may be spelled differently where a fact makes both equal; two different numbers never are.
  static bool agree(const Type& a, const Type& b) {
    if (a.dtype != b.dtype || a.weak != b.weak || a.shape.size() != b.shape.size()) return false;
    for (size_t d = 0; d < a.shape.size(); ++d)
      if (a.shape[d].is_constant() && b.shape[d].is_constant() && !(a.shape[d] == b.shape[d])) return false;
    return true;
  }

  void symbols(const Node& n, Expr e) {
    if (e.is_constant()) return;
    std::vector<Expr> found;
    collect_symbols(e, found);
    for (Expr s : found)
      if (!bound_.count(s) && !(s->kind == ExprKind::Size && s->id >= first_defined_))
        bad(&n, str("no input shows ", s));
  }

  void output(const Output& o) const {
    if (!o.value || o.value.node->graph != &g_ || o.value.index >= o.value.node->types.size())
      bad(nullptr, "an output is no value of it");
    const Type& t = type_of(o.value);
    if (!o.check.empty()) {
      if (g_.level() == Level::Loops) bad(o.value.node, "loops have no checks");
      if (t.dtype != DType::Bool || t.rank() != 0 || o.into >= 0)
        bad(o.value.node, str("a check is one bool, not ", t));
    }
    if (o.into < 0) return;
    if (o.into >= static_cast<int>(g_.inputs().size())) bad(o.value.node, str("there is no input ", o.into));
    if (type_of(g_.inputs()[o.into].value).dtype != t.dtype)
      bad(o.value.node, str("it does not fit into input ", o.into));
  }

  const Graph& g_;
  const uint32_t first_defined_;
  std::unordered_set<Expr> bound_;
};

}  // namespace

void check_legal(const Graph& graph, uint32_t first_defined) { Checker(graph, first_defined).run(); }

}  // namespace brasa::ir
