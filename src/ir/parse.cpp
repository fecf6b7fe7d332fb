#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>

#include "ir/text.h"
#include "support/error.h"
#include "support/lazy.h"

namespace brasa::ir {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const OpFinder& find) : text_(text), find_(find) {}

  std::unique_ptr<Graph> whole(std::vector<Fact>* facts) {
    std::unique_ptr<Graph> out = graph(facts);
    skip();
    require(at_ == text_.size(), "text after the graph");
    return out;
  }

 private:
  std::unique_ptr<Graph> graph(std::vector<Fact>* facts) {
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
    if (accept("let")) {
      expect("[");
      do definition();
      while (accept(","));
      expect("]");
    }
    if (facts && accept("where")) {
      expect("[");
      do facts->push_back(fact());
      while (accept(","));
      expect("]");
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
    return std::move(graph_);
  }

  // A graph among the arguments of a node, with symbols of its own.
  Arg body() {
    require(depth_ < kMaxGraphs, "graphs are nested too deeply");
    Parser inner(text_, find_);
    inner.at_ = at_;
    inner.depth_ = depth_ + 1;
    std::shared_ptr<const Graph> graph = inner.graph(nullptr);
    at_ = inner.at_;
    return Arg(Body(std::move(graph)));
  }

  static constexpr int kMaxDepth = 200, kMaxGraphs = 16;

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
  void definition() {
    expect_symbol('e');
    require(integer() == static_cast<int64_t>(defined_.size()), str("expected e", defined_.size()));
    expect("=");
    defined_.push_back(expr());
  }
  Fact fact() {
    Expr left = expr();
    bool equal = accept("==");
    if (!equal) expect("!=");
    return {left, expr(), equal};
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
    if (c == 'e') {
      ++at_;
      int64_t id = integer();
      require(id >= 0 && id < static_cast<int64_t>(defined_.size()), str("e", id, " is not defined"));
      return defined_[id];
    }
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
    if (p.type == ParamType::Graph) return body();
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
    if (p.type == ParamType::Float || (p.type == ParamType::Scalar && at_double())) {
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

  // Whether a parameter may have such an argument; rows read it without asking again.
  static bool suits(const Arg& a, const Param& p) {
    if (a.is_none()) return p.optional;
    bool number = a.is<Expr>() || a.is<double>() || a.is<bool>() || a.is<std::complex<double>>();
    if (p.list) {
      // An empty list looks the same whatever its items would be.
      if (auto* items = a.get_if<std::vector<Expr>>(); items && items->empty()) return true;
      switch (p.type) {
        case ParamType::Tensor: return a.is<std::vector<Value>>();
        case ParamType::Bool: return a.is<std::vector<bool>>();
        case ParamType::Float: return a.is<std::vector<double>>();
        case ParamType::Scalar: return a.is<std::vector<double>>() || a.is<std::vector<Expr>>();
        default: return a.is<std::vector<Expr>>();
      }
    }
    switch (p.type) {
      case ParamType::Tensor:
      case ParamType::Scalar:
      case ParamType::Float: return a.is<Value>() || number;
      case ParamType::Int: return a.is<Value>() || a.is<Expr>();
      case ParamType::Bool: return a.is<bool>() || a.is<Value>();
      case ParamType::DType: return a.is<DType>();
      case ParamType::Generator: return a.is<Value>();
      case ParamType::Graph: return a.is<Body>();
      default: return a.is<std::string>();
    }
  }

  static const Param& stride_param() {
    static constinit Lazy<Param> p([] {
      Param q;
      q.type = ParamType::Int;
      q.list = true;
      return q;
    });
    return *p;
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
      bool by_value = accept("by");
      if (by_value) expect("value");
      graph_->add_input(std::move(t), std::move(input_name), std::move(strides), by_value);
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
      require(suits(args[slot], params[slot]), str(op_name, ": no value for '", params[slot].name, "'"));
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
  int depth_ = 0;  // of the graph in others
  std::unique_ptr<Graph> graph_;
  std::map<uint32_t, Expr> sizes_, ranges_, values_;
  std::vector<Expr> defined_;
};

}  // namespace

std::unique_ptr<Graph> parse(std::string_view text, const OpFinder& find, std::vector<Fact>* facts) {
  return Parser(text, find).whole(facts);
}

}  // namespace brasa::ir
