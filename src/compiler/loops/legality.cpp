#include "compiler/loops/legality.h"

#include <bit>

#include "compiler/loops/layout.h"
#include "ir/text.h"
#include "support/error.h"

namespace brasa::compiler {

namespace {

class Checker {
 public:
  explicit Checker(const LoopAnalysis& a) : a_(a) {}

  void run() {
    size_t buffers = addresses_of(a_.graph());
    for (size_t i = 0; i < a_.graph().inputs().size(); ++i)
      if ((type_of(a_.graph().inputs()[i].value).rank() == 1) != (i < buffers))
        bad(a_.graph().inputs()[i].value.node, "buffers, of one dimension, come first, then numbers");
    bool inner = false;
    for (const For& f : a_.loops()) {
      if (f.kind == ForKind::Call) continue;
      bool flat = f.kind == ForKind::Parallel || f.kind == ForKind::Block;
      if (flat && inner) bad(nullptr, str("the flattened loop ", f.range, " comes after another kind"));
      inner |= !flat;
      if ((f.kind == ForKind::Unroll || f.kind == ForKind::Thread) && !f.extent().is_constant())
        bad(nullptr, str("loop ", f.range, " needs a constant extent, it has ", f.extent()));
      if (f.width < 1 || f.unroll < 1) bad(nullptr, str("loop ", f.range, ": width and unroll start at 1"));
    }
    for (const Node* n : a_.graph().nodes()) node(n);
  }

 private:
  [[noreturn]] void bad(const Node* n, std::string what) const {
    fail_internal(str("loop graph: ", what, n ? str("\n  at ", ir::print(*n)) : "", "\n", ir::print(a_.graph())));
  }

  void expr(const Node* n, Expr e) const {
    for (Expr s : *e->symbols)
      if (s->kind == ir::ExprKind::Value) {
        auto it = a_.binds().find(s);
        if (it == a_.binds().end()) bad(n, str("nothing binds ", s));
        bool listed = false;
        n->for_each_input([&](Value v) { listed |= v.node == it->second; });
        if (!listed) bad(n, str(s, " is used, but its loop::bind is not an operand"));
      }
  }

  void node(const Node* n) const {
    if (is_input(Value{const_cast<Node*>(n), 0})) return;
    auto kind = loop_kind(n->op);
    if (!kind && !n->op->name().starts_with("prim::")) bad(n, "this op does not exist at the loop level");
    if (kind == LoopOp::For) return;
    for (const ir::Arg& a : n->args)
      if (auto* e = a.get_if<Expr>();
          e && (kind == LoopOp::Index || kind == LoopOp::Load || kind == LoopOp::Store || kind == LoopOp::Prefetch))
        expr(n, *e);
    if (std::popcount(a_.inside(n) & a_.kind(ForKind::Vector)) > 1) bad(n, "it depends on two vector loops");
    if (kind == LoopOp::Load || kind == LoopOp::Store || kind == LoopOp::Prefetch) {
      Value buffer = n->arg<Value>(0);
      auto from = loop_kind(buffer.node->op);
      bool array = (is_input(buffer) && type_of(buffer).rank() == 1) ||
                   (kind == LoopOp::Load && (makes_array(buffer.node) || from == LoopOp::Table));
      if (!array) bad(n, "it does not read or write a buffer");
      if (kind == LoopOp::Store && type_of(n->arg<Value>(2)).dtype != type_of(buffer).dtype)
        bad(n, "the stored value has another dtype than the buffer");
    }
    if (kind == LoopOp::Unwritten)
      for (Value buffer : n->arg<std::vector<Value>>(0))
        if (!is_input(buffer) || type_of(buffer).rank() != 1) bad(n, "it names what is no buffer");
    if (kind == LoopOp::Prefetch && a_.of(n->arg<Expr>(1)) & a_.kind(ForKind::Vector))
      bad(n, "a prefetch's place is that of no lane");
    if (kind == LoopOp::Reduce || kind == LoopOp::Stage) {
      Ranges closed = 0;
      for (Expr r : n->arg<std::vector<Expr>>(1)) closed |= Ranges{1} << a_.loop_of(r);
      if (closed & a_.flat()) bad(n, "a flattened loop cannot be reduced or staged over");
      // Otherwise an accumulator would need one value for each iteration of a loop inside.
      Ranges open = a_.nested(a_.inside(n) & ~closed), shut = a_.nested(closed);
      if (shut && open && std::countl_zero(open) < std::countl_zero(shut & -shut))
        bad(n, "the loops that it closes are not its innermost ones");
    }
    if (kind == LoopOp::Scan) {
      int loop = a_.loop_of(n->arg<Expr>(1));
      if (!(a_.nested(Ranges{1} << loop) & ~a_.flat()))
        bad(n, "it runs along a loop that is neither serial nor a vector");
      if (a_.nested(a_.inside(n)) >> loop > 1) bad(n, "the loop that it runs along is not its innermost one");
    }
    if (kind == LoopOp::TileProduct) {
      if (a_.inside(n) & (a_.kind(ForKind::Vector) | a_.kind(ForKind::Unroll))) bad(n, "tiles are in no vector");
      for (size_t i : {7, 8})
        if (int64_t size = n->arg<Expr>(i).constant(); size != 16 && size != 32)
          bad(n, "a tile has 16 rows and columns, and there are one or two across and along");
    }
    if (kind == LoopOp::Stage) {
      for (Expr r : n->arg<std::vector<Expr>>(1))
        if (a_.of(r->args[0])) bad(n, "a staged range's extent depends on a loop");
      Ranges free = a_.of(n) & (a_.kind(ForKind::Vector) | a_.kind(ForKind::Unroll));
      if (free) bad(n, "a stage inside a vector or unroll loop must close it");
    }
    if (kind == LoopOp::Store && !n->arg<std::string>(5).empty()) {
      // It would be combined once for each iteration of the loops that it does not mention.
      Ranges own = 0;
      n->for_each_input([&](Value v) { own |= a_.of(v.node); });
      own |= a_.of(n->arg<Expr>(1));
      if (a_.flat() & ~own) bad(n, "a combining store must depend on every flattened loop");
    }
  }

  const LoopAnalysis& a_;
};

}  // namespace

void check_loops(const LoopAnalysis& analysis) { Checker(analysis).run(); }

}  // namespace brasa::compiler
