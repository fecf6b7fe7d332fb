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

  void graph(const Graph& g) {
    out_ += str("graph ", name(g.level()), " \"", escape(g.name), "\" {\n");
    std::vector<Expr> symbols = size_symbols(g);
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
      return;
    }
    out_ += n.op->name();
    out_ += '(';
    bool first = true;
    const auto& params = n.op->schema.params;
    for (size_t i = 0; i < n.args.size(); ++i) {
      const Arg& a = n.args[i];
      bool operand = a.is<Value>() || a.is<std::vector<Value>>();
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
  static std::vector<Expr> size_symbols(const Graph& g) {
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

class Parser {
 public:
  Parser(std::string_view text, const OpFinder& find) : text_(text), find_(find) {}

  std::unique_ptr<Graph> graph() {
    expect("graph");
    std::string_view level = word();
    bool known = false;
    Level l = Level::Operators;
    for (Level candidate : {Level::Operators, Level::Primitives, Level::Loops})
      if (name(candidate) == level) {
        l = candidate;
        known = true;
      }
    require(known, str("unknown level '", level, "'"));
    graph_ = std::make_unique<Graph>(l);
    graph_->name = string();
    expect("{");
    if (accept("symbols")) {
      do symbol();
      while (accept(","));
    }
    while (!accept("return")) node();
    if (peek() != '}') {
      do {
        Value v = value();
        int into = -1;
        if (accept("else")) {
          graph_->add_check(v, string());
          continue;
        }
        if (accept("->")) {
          into = static_cast<int>(integer());
          require(into >= 0 && into < static_cast<int>(graph_->inputs().size()), "no such input");
        }
        graph_->add_output(v, into);
      } while (accept(","));
    }
    expect("}");
    skip();
    require(at_ == text_.size(), "text after the graph");
    return std::move(graph_);
  }

 private:
  static constexpr int kMaxDepth = 200;

  void require(bool ok, const std::string& what) {
    if (ok) return;
    auto line = 1 + std::count(text_.begin(), text_.begin() + std::min(at_, text_.size()), '\n');
    fail(str("graph text, line ", line, ": ", what));
  }
  void skip() {
    while (at_ < text_.size() && isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  static bool is_word(char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_'; }
  bool accept(std::string_view t) {
    skip();
    if (text_.substr(at_, t.size()) != t) return false;
    if (is_word(t.back()) && at_ + t.size() < text_.size() && is_word(text_[at_ + t.size()])) return false;
    at_ += t.size();
    return true;
  }
  void expect(std::string_view t) { require(accept(t), str("expected '", t, "'")); }
  std::string_view word() {
    skip();
    size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    require(at_ > begin, "expected a word");
    return text_.substr(begin, at_ - begin);
  }
  std::string string() {
    expect("\"");
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        ++at_;
        out += text_[at_] == 'n' ? '\n' : text_[at_];
      } else {
        out += text_[at_];
      }
      ++at_;
    }
    require(at_ < text_.size(), "unfinished string");
    ++at_;
    return out;
  }
  int64_t integer() {
    skip();
    int64_t v = 0;
    auto r = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    require(r.ec == std::errc(), "expected an integer");
    at_ = r.ptr - text_.data();
    return v;
  }

  void symbol() {
    expect_symbol('s');
    auto id = static_cast<uint32_t>(integer());
    expect(">=");
    int64_t min = integer(), multiple = 1;
    if (accept("/")) multiple = integer();
    require(min >= 0 && multiple >= 1, "bad bounds of a symbol");
    sizes_.insert_or_assign(id, Expr::size(id, min, multiple));
  }
  void expect_symbol(char c) {
    require(peek() == c, str("expected '", c, "'"));
    ++at_;
  }

  Expr expr(int depth = 0) {
    require(depth < kMaxDepth, "an expression is nested too deeply");
    Expr left = term(depth);
    for (;;) {
      if (accept("+"))
        left = left + term(depth);
      else if (peek() == '-' && text_.substr(at_, 2) != "->" && accept("-"))
        left = left - term(depth);
      else
        return left;
    }
  }
  Expr term(int depth) {
    Expr left = atom(depth);
    for (;;) {
      if (accept("//"))
        left = divided(left, atom(depth), true);
      else if (accept("*"))
        left = left * atom(depth);
      else if (accept("%"))
        left = divided(left, atom(depth), false);
      else
        return left;
    }
  }
  Expr divided(Expr a, Expr b, bool quotient) {
    require(!b.is_constant() || b.constant() > 0, "division by a number below 1");
    return quotient ? floordiv(a, b) : mod(a, b);
  }
  Expr atom(int depth) {
    if (accept("(")) {
      Expr e = expr(depth + 1);
      expect(")");
      return e;
    }
    if (accept("min(") || accept("max(")) {
      bool smaller = text_[at_ - 4] == 'm' && text_[at_ - 3] == 'i';
      Expr a = expr(depth + 1);
      expect(",");
      Expr b = expr(depth + 1);
      expect(")");
      return smaller ? min(a, b) : max(a, b);
    }
    char c = peek();
    if (c == 's' || c == 'r' || c == 'v') {
      ++at_;
      auto id = static_cast<uint32_t>(integer());
      if (c == 's') {
        auto it = sizes_.find(id);
        require(it != sizes_.end(), str("s", id, " was not declared"));
        return it->second;
      }
      auto& table = c == 'r' ? ranges_ : values_;
      if (accept("<")) {
        Expr extent = expr(depth + 1);
        expect(">");
        table.insert_or_assign(id, c == 'r' ? Expr::range(id, extent) : Expr::value(id, extent));
      }
      auto it = table.find(id);
      require(it != table.end(), str(c, id, " has no extent"));
      return it->second;
    }
    return Expr(integer());
  }

  Type type() {
    std::string_view w = word();
    auto dtype = dtype_of(w);
    require(dtype.has_value(), str("unknown dtype '", w, "'"));
    Type t{*dtype, {}, false};
    expect("[");
    while (!accept("]")) {
      t.shape.push_back(expr());
      accept(",");
    }
    if (accept("!")) t.weak = true;
    return t;
  }

  Value value() {
    expect("%");
    int64_t id = integer();
    require(id >= 0 && id < static_cast<int64_t>(graph_->nodes().size()), str("%", id, " is not defined yet"));
    Node* n = graph_->nodes()[id];
    uint32_t index = 0;
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      index = static_cast<uint32_t>(integer());
    }
    require(index < n->types.size(), str("%", id, " has no result ", index));
    return {n, index};
  }

  double number() {
    skip();
    double v = 0;
    auto r = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    require(r.ec == std::errc(), "expected a number");
    at_ = r.ptr - text_.data();
    return v;
  }
  // A number written by print holds a point, an exponent, inf or nan exactly if it is a double.
  bool at_double() {
    skip();
    size_t i = at_;
    if (i < text_.size() && text_[i] == '-') ++i;
    if (text_.substr(i, 3) == "inf" || text_.substr(i, 3) == "nan") return true;
    if (i >= text_.size() || !isdigit(static_cast<unsigned char>(text_[i]))) return false;
    while (i < text_.size() && isdigit(static_cast<unsigned char>(text_[i]))) ++i;
    return i < text_.size() && (text_[i] == '.' || text_[i] == 'e');
  }

  Arg arg(const Param& p) {
    char c = peek();
    if (c == '%') return Arg(value());
    if (c == '"') return Arg(string());
    if (accept("none")) return Arg(None{});
    if (accept("true")) return Arg(true);
    if (accept("false")) return Arg(false);
    if (accept("complex(")) {
      double re = number();
      expect(",");
      double im = number();
      expect(")");
      return Arg(std::complex<double>(re, im));
    }
    if (c == '[') return list(p);
    if (at_double()) return Arg(number());
    if (p.type == ParamType::DType || p.type == ParamType::Scalar) {
      size_t mark = at_;
      if (isalpha(static_cast<unsigned char>(c)))
        if (auto d = dtype_of(word())) return Arg(*d);
      at_ = mark;
    }
    return Arg(expr());
  }

  Arg list(const Param& p) {
    expect("[");
    if (p.type == ParamType::Tensor) {
      std::vector<Value> items;
      while (!accept("]")) {
        items.push_back(accept("none") ? Value{} : value());
        accept(",");
      }
      return Arg(std::move(items));
    }
    if (p.type == ParamType::Bool) {
      std::vector<bool> items;
      while (!accept("]")) {
        bool t = accept("true");
        if (!t) expect("false");
        items.push_back(t);
        accept(",");
      }
      return Arg(std::move(items));
    }
    if (p.type == ParamType::Float || at_double()) {
      std::vector<double> items;
      while (!accept("]")) {
        items.push_back(number());
        accept(",");
      }
      return Arg(std::move(items));
    }
    std::vector<Expr> items;
    while (!accept("]")) {
      items.push_back(expr());
      accept(",");
    }
    return Arg(std::move(items));
  }

  static const Param& stride_param() {
    static const Param p = [] {
      Param q;
      q.type = ParamType::Int;
      q.list = true;
      return q;
    }();
    return p;
  }

  void node() {
    expect("%");
    int64_t id = integer();
    require(id == static_cast<int64_t>(graph_->nodes().size()), str("expected %", graph_->nodes().size()));
    expect("=");
    if (accept("input")) {
      expect(":");
      Type t = type();
      std::string input_name = string();
      std::vector<Expr> strides;
      if (accept("strides")) {
        expect("=");
        strides = list(stride_param()).get<std::vector<Expr>>();
        require(strides.size() == t.shape.size(), "as many strides as dimensions");
      }
      graph_->add_input(std::move(t), std::move(input_name), std::move(strides));
      return;
    }
    skip();
    size_t paren = text_.find('(', at_);
    require(paren != text_.npos, "expected an operator");
    std::string_view op_name = text_.substr(at_, paren - at_);
    const Op* op = find_(op_name);
    require(op != nullptr, str("unknown operator '", op_name, "'"));
    at_ = paren + 1;
    const auto& params = op->schema.params;
    Args args(params.size());
    std::vector<bool> given(params.size());
    for (size_t i = 0; i < params.size(); ++i)
      if (params[i].default_value) args[i] = *params[i].default_value;
    size_t position = 0;
    while (!accept(")")) {
      size_t slot = position;
      size_t mark = at_;
      if (isalpha(static_cast<unsigned char>(peek())) || peek() == '_') {
        std::string_view w = word();
        if (peek() == '=') {
          ++at_;
          int found = op->schema.index_of(w);
          require(found >= 0, str(op_name, " has no parameter '", w, "'"));
          slot = found;
        } else {
          at_ = mark;
        }
      }
      require(slot < params.size() && !given[slot], str(op_name, ": too many arguments"));
      args[slot] = arg(params[slot]);
      given[slot] = true;
      position = slot + 1;
      accept(",");
    }
    for (size_t i = 0; i < params.size(); ++i)
      require(given[i] || params[i].default_value || params[i].optional,
              str(op_name, ": no value for '", params[i].name, "'"));
    expect(":");
    std::vector<Type> types;
    if (accept("(")) {
      while (!accept(")")) {
        types.push_back(type());
        accept(",");
      }
    } else {
      types.push_back(type());
    }
    Node* n = graph_->add(op, std::move(args), std::move(types));
    require(n->id == id, str("%", id, " repeats %", n->id));
  }

  std::string_view text_;
  const OpFinder& find_;
  size_t at_ = 0;
  std::unique_ptr<Graph> graph_;
  std::map<uint32_t, Expr> sizes_, ranges_, values_;
};

}  // namespace

std::string print(const Graph& graph) {
  std::string out;
  Printer(out).graph(graph);
  return out;
}

std::string print(const Node& node) {
  std::string out;
  Printer(out).node(node);
  return out;
}

std::unique_ptr<Graph> parse(std::string_view text, const OpFinder& find) { return Parser(text, find).graph(); }

}  // namespace brasa::ir
