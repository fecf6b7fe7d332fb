#include "ir/text.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <unordered_set>

#include "support/error.h"

namespace brasa::ir {
namespace {

// Symbols print by name; ranges and values carry their extent at first mention, so that text is self-contained.
class Printer {
 public:
  explicit Printer(std::string& out) : out_(out) {}

  void graph(const Graph& g, std::span<const Fact> facts) {
    out_ += str("graph ", name(g.level()), " \"", escape(g.name), "\" {\n");
    std::vector<Expr> symbols = size_symbols(g, facts);
    if (!symbols.empty()) {
      out_ += "  symbols ";
      bool first = true;
      for (Expr s : symbols) {
        if (!first) out_ += ", ";
        first = false;
        append_to(out_, s);
        out_ += str(">=", s->value);
        if (s->multiple != 1) out_ += str("/", s->multiple);
      }
      out_ += '\n';
    }
    for (const Fact& f : facts) {
      out_ += &f == facts.data() ? "  where [" : ", ";
      append_to(out_, f);
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
  static std::vector<Expr> size_symbols(const Graph& g, std::span<const Fact> facts) {
    std::vector<Expr> all;
    auto see = [&](Expr e) { collect_symbols(e, all); };
    for (const Node* n : g.nodes()) {
      for (const Type& t : n->types)
        for (Expr e : t.shape) see(e);
      for (const Arg& a : n->args) {
        if (auto* e = a.get_if<Expr>()) see(*e);
        if (auto* es = a.get_if<std::vector<Expr>>())
          for (Expr e : *es) see(e);
      }
    }
    for (const Input& in : g.inputs())
      for (Expr e : in.strides) see(e);
    for (const Fact& f : facts) {
      see(f.left);
      see(f.right);
    }
    for (size_t i = 0; i < all.size(); ++i)  // extents of ranges; the list grows while it is walked
      if (all[i]->kind != ExprKind::Size) see(all[i]->args[0]);
    std::erase_if(all, [](Expr e) { return e->kind != ExprKind::Size; });
    std::sort(all.begin(), all.end(), [](Expr a, Expr b) { return a->id < b->id; });
    return all;
  }

  void value(Value v) {
    out_ += str("%", v.node->id);
    if (v.index) out_ += str(".", v.index);
  }

  void expr(Expr e) {
    std::vector<Expr> symbols;
    collect_symbols(e, symbols);
    std::string text = str(e);
    for (Expr s : symbols) {
      if (s->kind == ExprKind::Size || !declared_.insert(s.node()).second) continue;
      // Put the extent behind the first mention of this symbol.
      std::string name = str(s);
      size_t at = 0;
      while ((at = text.find(name, at)) != text.npos) {
        size_t end = at + name.size();
        bool whole = (at == 0 || !isalnum(static_cast<unsigned char>(text[at - 1]))) &&
                     (end == text.size() || !isalnum(static_cast<unsigned char>(text[end])));
        if (whole) {
          std::string extent = "<";
          std::swap(out_, hold_);
          out_.clear();
          expr(s->args[0]);
          extent += out_ + ">";
          std::swap(out_, hold_);
          text.insert(end, extent);
          break;
        }
        at = end;
      }
    }
    out_ += text;
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
    else
      out_ += short_name(a.get<DType>());
  }

  std::string& out_;
  std::string hold_;
  std::unordered_set<const ExprNode*> declared_;
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
