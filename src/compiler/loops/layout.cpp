#include "compiler/loops/layout.h"

#include <algorithm>

#include "support/error.h"

namespace brasa::compiler {

namespace {

// More would risk the guard page of a small thread stack.
constexpr int64_t kStackBytes = 32 << 10;
// Of a stage that a GPU's code declares: all that it declares must be less than 48 KB.
constexpr int64_t kDeclaredBytes = 32 << 10;

void collect(Expr e, std::vector<Expr>& sizes) {
  for (Expr s : *e->symbols)
    if (s->kind != ir::ExprKind::Size)
      collect(s->args[0], sizes);
    else if (std::find(sizes.begin(), sizes.end(), s) == sizes.end())
      sizes.push_back(s);
}

}  // namespace

size_t addresses_of(const ir::Graph& graph) {
  return static_cast<size_t>(std::count_if(graph.inputs().begin(), graph.inputs().end(),
                                           [](const ir::Input& in) { return type_of(in.value).rank() == 1; }));
}

KernelLayout layout_of(const ir::Graph& graph) {
  KernelLayout out;
  out.addresses = addresses_of(graph);
  out.numbers = graph.inputs().size() - out.addresses;
  int64_t stack = 0;
  for (const ir::Node* n : graph.nodes()) {
    for (const ir::Arg& a : n->args) {
      if (auto* e = a.get_if<Expr>()) collect(*e, out.sizes);
      if (auto* list = a.get_if<std::vector<Expr>>())
        for (Expr e : *list) collect(e, out.sizes);
    }
    for (const ir::Type& t : n->types)
      for (Expr e : t.shape) collect(e, out.sizes);
    auto kind = loop_kind(n->op);
    if (kind == LoopOp::For) {
      Expr extent = n->arg<Expr>(0)->args[0];
      const auto& name = n->arg<std::string>(1);
      if (name == "parallel" || name == "block") out.count = out.count * extent;
      if (name == "thread") out.threads *= extent.constant();
      if (name == "call") out.calls = extent.constant();
    } else if (makes_array(n)) {
      bool shared = is_shared(n);
      Expr bytes = n->types[0].numel() * size_of(n->types[0].dtype);
      bytes = ceildiv(bytes, 64) * 64;
      if (shared && bytes.constant() <= kDeclaredBytes) continue;
      if (!shared && bytes.is_constant() && stack + bytes.constant() <= kStackBytes) {
        stack += bytes.constant();
        out.stack_bytes[n] = bytes.constant();
      } else {
        out.scratch_offsets[n] = out.scratch_bytes;
        out.scratch_bytes = out.scratch_bytes + bytes;
      }
    }
  }
  std::sort(out.sizes.begin(), out.sizes.end(), [](Expr a, Expr b) { return a->id < b->id; });
  return out;
}

}  // namespace brasa::compiler
