#include "ir/text.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "ir/copy.h"
#include "support/error.h"
#include "support/fresh_stack.h"

namespace brasa::ir {
namespace {

// Symbols print by name; ranges and values carry their extent at first mention, so that text is self-contained.
class Printer {
 public:
  explicit Printer(std::string& out) : out_(out) {}

  void graph(const Graph& g, std::span<const Fact> facts) {
    out_ += str("graph ", name(g.level()), " \"", escape(g.name), "\" {\n");
    std::vector<Expr> all = expressions(g, facts), symbols = size_symbols(all);
    if (g.level() == Level::Loops)
      for (Expr s : symbols) numbers_.emplace(s.node(), numbers_.size());
    if (!symbols.empty()) {
      out_ += "  symbols ";
      bool first = true;
      for (Expr s : symbols) {
        if (!first) out_ += ", ";
        first = false;
        expr(s);
        out_ += str(">=", s->value);
        if (s->multiple != 1) out_ += str("/", s->multiple);
      }
      out_ += '\n';
    }
    define(all);
    for (const Fact& f : facts) {
      out_ += &f == facts.data() ? "  where [" : ", ";
      expr(f.left);
      out_ += f.equal ? " == " : " != ";
      expr(f.right);
    }
    if (!facts.empty()) out_ += "]\n";
    for (const Node* n : g.nodes()) {
      out_ += "  ";
      node(*n);
      out_ += '\n';
    }
    out_ += "  return";
    bool first = true;
    for (const Output& o : g.outputs()) {
      out_ += first ? " " : ", ";
      first = false;
      value(o.value);
      if (o.into >= 0) out_ += str(" -> ", o.into);
      if (!o.check.empty()) out_ += str(" else \"", escape(o.check), "\"");
    }
    out_ += "\n}\n";
  }

  void node(const Node& n) {
    out_ += str("%", n.id, " = ");
    if (n.op == input_op()) {
      const Input& in = n.graph->inputs()[n.arg<Expr>(0).constant()];
      out_ += "input: ";
      type(n.types[0]);
      out_ += str(" \"", escape(in.name), "\"");
      if (!in.strides.empty()) {
        out_ += " strides=";
        list(in.strides);
      }
      if (in.by_value) out_ += " by value";
      return;
    }
    out_ += n.op->name();
    out_ += '(';
    bool first = true;
    const auto& params = n.op->schema.params;
    for (size_t i = 0; i < n.args.size(); ++i) {
      const Arg& a = n.args[i];
      bool operand = a.is<Value>() || a.is<std::vector<Value>>();
      if (i >= params.size()) {  // an illegal node, shown in a message
        out_ += i ? ", " : "";
        arg(a);
        continue;
      }
      if (params[i].default_value && *params[i].default_value == a) continue;
      if (a.is_none() && !params[i].default_value && params[i].optional) continue;
      if (!first) out_ += ", ";
      first = false;
      // An operand may stand by position only if nothing before it was left out; names are always unambiguous.
      if (!operand || !positional(n, i)) out_ += params[i].name + "=";
      arg(a);
    }
    out_ += "): ";
    if (n.types.size() == 1) {
      type(n.types[0]);
    } else {
      out_ += '(';
      for (size_t i = 0; i < n.types.size(); ++i) {
        if (i) out_ += ", ";
        type(n.types[i]);
      }
      out_ += ')';
    }
  }

 private:
  static std::string escape(const std::string& s) {
    std::string r;
    for (char c : s) {
      if (c == '"' || c == '\\') r += '\\';
      if (c == '\n') {
        r += "\\n";
        continue;
      }
      r += c;
    }
    return r;
  }
  static bool positional(const Node& n, size_t i) {
    for (size_t k = 0; k < i; ++k)
      if (!n.args[k].is<Value>() && !n.args[k].is<std::vector<Value>>()) return false;
    return true;
  }
  static std::vector<Expr> expressions(const Graph& g, std::span<const Fact> facts) {
    std::vector<Expr> all;
    auto see = [&](const std::vector<Expr>& list) { all.insert(all.end(), list.begin(), list.end()); };
    for (const Node* n : g.nodes()) each_size(*n, [&](Expr e) { all.push_back(e); });
    for (const Input& in : g.inputs()) see(in.strides);
    for (const Fact& f : facts) see({f.left, f.right});
    return all;
  }
  static std::vector<Expr> size_symbols(const std::vector<Expr>& expressions) {
    std::vector<Expr> all;
    for (Expr e : expressions) collect_symbols(e, all);
    for (size_t i = 0; i < all.size(); ++i)  // extents of ranges; the list grows while it is walked
      if (all[i]->kind != ExprKind::Size) collect_symbols(all[i]->args[0], all);
    std::erase_if(all, [](Expr e) { return e->kind != ExprKind::Size; });
    std::sort(all.begin(), all.end(), [](Expr a, Expr b) { return a->id < b->id; });
    return all;
  }

  void value(Value v) {
    out_ += str("%", v.node->id);
    if (v.index) out_ += str(".", v.index);
  }

  void expr(Expr e) {
    append_to(out_, e, [&](Expr part) {
      if (auto it = defined_.find(part.node()); it != defined_.end()) {
        out_ += str("e", it->second);
        return true;
      }
      if (auto it = numbers_.find(part.node()); it != numbers_.end()) {
        out_ += str("s", it->second);
        return true;
      }
      // A range or a value has its extent behind its first mention.
      if (part->kind != ExprKind::Range && part->kind != ExprKind::Value) return false;
      out_ += str(part);
      if (declared_.insert(part.node()).second) {
        out_ += '<';
        expr(part->args[0]);
        out_ += '>';
      }
      return true;
    });
  }

  // Long expressions get names, each behind what it is made of: text grows with the parts, which expressions share.
  void define(const std::vector<Expr>& expressions) {
    constexpr uint32_t kLong = 64;
    bool any = false;
    std::unordered_set<const ExprNode*> seen;
    std::function<void(Expr)> visit = [&](Expr e) {
      if (!seen.insert(e.node()).second) return;
      for (Expr s : *e->symbols)
        if (s->kind != ExprKind::Size) visit(s->args[0]);
      if (e->weight <= kLong) return;
      for (Expr a : e->args) with_room([&] { visit(a); });
      out_ += any ? ", " : "  let [";
      any = true;
      out_ += str("e", defined_.size(), " = ");
      expr(e);
      defined_.emplace(e.node(), defined_.size());
    };
    for (Expr e : expressions) visit(e);
    if (any) out_ += "]\n";
  }

  template <class T>
  void list(const std::vector<T>& items) {
    out_ += '[';
    bool first = true;
    for (const auto& item : items) {
      if (!first) out_ += ", ";
      first = false;
      if constexpr (std::is_same_v<T, Expr>)
        expr(item);
      else if constexpr (std::is_same_v<T, Value>) {
        if (item)
          value(item);
        else
          out_ += "none";
      } else if constexpr (std::is_same_v<T, bool>)
        append_to(out_, static_cast<bool>(item));
      else
        append_to(out_, item);
    }
    out_ += ']';
  }

  void type(const Type& t) {
    out_ += short_name(t.dtype);
    list(t.shape);
    if (t.weak) out_ += '!';
  }

  void arg(const Arg& a) {
    if (a.is_none())
      out_ += "none";
    else if (auto* v = a.get_if<Value>())
      value(*v);
    else if (auto* e = a.get_if<Expr>())
      expr(*e);
    else if (auto* vs = a.get_if<std::vector<Value>>())
      list(*vs);
    else if (auto* es = a.get_if<std::vector<Expr>>())
      list(*es);
    else if (auto* ds = a.get_if<std::vector<double>>())
      list(*ds);
    else if (auto* bs = a.get_if<std::vector<bool>>())
      list(*bs);
    else if (auto* d = a.get_if<double>())
      append_to(out_, *d);
    else if (auto* b = a.get_if<bool>())
      append_to(out_, *b);
    else if (auto* c = a.get_if<std::complex<double>>())
      out_ += str("complex(", c->real(), ", ", c->imag(), ")");
    else if (auto* s = a.get_if<std::string>())
      out_ += str("\"", escape(*s), "\"");
    else if (auto* body = a.get_if<Body>())
      out_.append(body->text(), 0, body->text().size() - 1);  // without the line break behind it
    else
      out_ += short_name(a.get<DType>());
  }

  std::string& out_;
  std::unordered_set<const ExprNode*> declared_;
  std::unordered_map<const ExprNode*, size_t> defined_;
  // Kernels number their sizes from 0, in the same order: those that differ in nothing else are compiled once.
  std::unordered_map<const ExprNode*, size_t> numbers_;
};

}  // namespace

std::string print(const Graph& graph, std::span<const Fact> facts) {
  std::string out;
  Printer(out).graph(graph, facts);
  return out;
}

std::string print(const Node& node) {
  std::string out;
  Printer(out).node(node);
  return out;
}

}  // namespace brasa::ir
