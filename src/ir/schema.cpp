#include "ir/schema.h"

#include <charconv>

#include "support/error.h"

namespace brasa::ir {
namespace {

struct TypeName {
  std::string_view text;
  ParamType type;
  bool symbolic;
};

constexpr TypeName kTypes[] = {
    {"Tensor", ParamType::Tensor, false},
    {"Scalar", ParamType::Scalar, false},
    {"SymInt", ParamType::Int, true},
    {"int", ParamType::Int, false},
    {"float", ParamType::Float, false},
    {"bool", ParamType::Bool, false},
    {"str", ParamType::Str, false},
    {"ScalarType", ParamType::DType, false},
    {"Layout", ParamType::Layout, false},
    {"Device", ParamType::Device, false},
    {"MemoryFormat", ParamType::MemoryFormat, false},
    {"Generator", ParamType::Generator, false},
    {"Graph", ParamType::Graph, false},
    {"complex", ParamType::Scalar, false},
    {"Dimname", ParamType::Str, false},
};

constexpr int kMostItems = 64;

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Schema schema() {
    Schema s;
    size_t paren = text_.find('(');
    require(paren != text_.npos, "no parameter list");
    s.name = std::string(text_.substr(0, paren));
    at_ = paren + 1;
    size_t ns = s.name.find("::");
    std::string local = ns == s.name.npos ? s.name : s.name.substr(ns + 2);
    size_t dot = local.find('.');
    // A leading underscore pair as in __and__.Tensor holds no dot of its own.
    s.base = local.substr(0, dot);
    s.overload = dot == local.npos ? "" : local.substr(dot + 1);
    bool keyword = false;
    while (!accept(')')) {
      if (accept('*')) {
        keyword = true;
      } else {
        s.params.push_back(param(keyword));
      }
      accept(',');
    }
    skip();
    require(accept_text("->"), "no '->'");
    if (accept('(')) {
      while (!accept(')')) {
        s.returns.push_back(result());
        accept(',');
      }
    } else {
      s.returns.push_back(result());
    }
    return s;
  }

 private:
  template <class... What>
  void require(bool ok, const What&... what) {
    if (!ok) fail(str("schema '", text_, "': ", what..., " at ", at_));
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ < text_.size() && text_[at_] == c) {
      ++at_;
      return true;
    }
    return false;
  }
  bool accept_text(std::string_view t) {
    skip();
    if (text_.substr(at_, t.size()) != t) return false;
    at_ += t.size();
    return true;
  }
  std::string_view word() {
    skip();
    size_t begin = at_;
    while (at_ < text_.size() && (isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  // The part common to parameters and results: a type with its marks.
  Param type() {
    Param p;
    std::string_view w = word();
    bool found = false;
    for (const TypeName& t : kTypes)
      if (t.text == w) {
        p.type = t.type;
        p.symbolic = t.symbolic;
        found = true;
      }
    require(found, "unknown type '", w, "'");
    if (accept('(')) {
      p.aliased = true;
      while (!accept(')')) {
        require(at_ < text_.size(), "unfinished alias mark");
        if (text_[at_] == '!') p.mutated = true;
        ++at_;
      }
    }
    if (accept('?')) p.optional = true;
    if (accept('[')) {
      p.list = true;
      p.optional_items = p.optional;
      p.optional = false;
      std::string_view n = word();
      if (!n.empty()) std::from_chars(n.data(), n.data() + n.size(), p.list_size);
      require(p.list_size >= 0 && p.list_size <= kMostItems, "a list of that size");
      require(accept(']'), "no ']'");
      if (accept('?')) p.optional = true;
    }
    return p;
  }

  Param param(bool keyword) {
    Param p = type();
    p.keyword_only = keyword;
    p.name = std::string(word());
    require(!p.name.empty(), "a parameter without a name");
    if (accept('=')) p.default_value = literal(p);
    return p;
  }

  Return result() {
    Param p = type();
    return {p.type, p.list, p.mutated, p.aliased, std::string(word())};
  }

  double number(std::string_view token) {
    double v = 0;
    auto r = std::from_chars(token.data(), token.data() + token.size(), v);
    require(r.ec == std::errc() && r.ptr == token.data() + token.size(), "bad number '", token, "'");
    return v;
  }

  std::string_view token() {
    skip();
    size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ')' && text_[at_] != ']') ++at_;
    return text_.substr(begin, at_ - begin);
  }

  Arg scalar(ParamType type, std::string_view t) {
    require(!t.empty(), "a default is missing");
    if (t == "None") return Arg(None{});
    if (t == "True" || t == "False") return Arg(t == "True");
    if (t == "Mean") return Arg(int64_t{1});
    if (t == "contiguous_format") return Arg("contiguous_format");
    if (t == "long") return Arg(DType::Int64);
    if (type == ParamType::DType)
      if (auto d = dtype_of(t)) return Arg(*d);
    if (type == ParamType::Layout || type == ParamType::Device || type == ParamType::MemoryFormat)
      return Arg(std::string(t));
    if (type == ParamType::Float || t.find_first_of(".e") != t.npos || t == "inf") return Arg(number(t));
    int64_t v = 0;
    auto r = std::from_chars(t.data(), t.data() + t.size(), v);
    require(r.ec == std::errc() && r.ptr == t.data() + t.size(), "bad default '", t, "'");
    return Arg(v);
  }

  Arg literal(const Param& p) {
    skip();
    if (accept('\'') || accept('"')) {
      char quote = text_[at_ - 1];
      size_t end = text_.find(quote, at_);
      require(end != text_.npos, "unfinished string");
      std::string s(text_.substr(at_, end - at_));
      at_ = end + 1;
      return Arg(std::move(s));
    }
    if (accept('[')) {
      std::vector<Arg> items;
      while (!accept(']')) {
        items.push_back(scalar(p.type, token()));
        accept(',');
      }
      return list(p, items);
    }
    Arg one = scalar(p.type, token());
    if (p.list && !one.is_none()) return list(p, std::vector<Arg>(p.list_size ? p.list_size : 1, one));
    return one;
  }

  template <class T>
  Arg list_of(const std::vector<Arg>& items) {
    std::vector<T> out;
    for (const Arg& a : items) {
      require(a.is<T>(), "an item of another type than the list's");
      out.push_back(a.get<T>());
    }
    return Arg(std::move(out));
  }
  Arg list(const Param& p, const std::vector<Arg>& items) {
    switch (p.type) {
      case ParamType::Float: return list_of<double>(items);
      case ParamType::Bool: return list_of<bool>(items);
      case ParamType::Tensor: return Arg(std::vector<Value>{});
      default: return list_of<Expr>(items);
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

std::string_view type_name(ParamType type, bool symbolic) {
  for (const TypeName& t : kTypes)
    if (t.type == type && t.symbolic == symbolic) return t.text;
  return "?";
}

void append_default(std::string& out, const Param& p) {
  const Arg& a = *p.default_value;
  auto number = [&](const auto& v) { append_to(out, v); };
  if (a.is_none())
    out += "None";
  else if (auto* s = a.get_if<std::string>())
    out += p.type == ParamType::Str ? str("'", *s, "'") : *s;
  else if (auto* b = a.get_if<bool>())
    out += *b ? "True" : "False";
  else if (auto* e = a.get_if<Expr>())
    number(*e);
  else if (auto* d = a.get_if<double>())
    number(*d);
  else if (auto* es = a.get_if<std::vector<Expr>>())
    number(*es);
  else if (auto* ds = a.get_if<std::vector<double>>())
    number(*ds);
  else if (auto* bs = a.get_if<std::vector<bool>>())
    number(*bs);
  else if (auto* t = a.get_if<DType>())
    out += name(*t);
  else
    out += "[]";
}

}  // namespace

int Schema::index_of(std::string_view param) const {
  for (size_t i = 0; i < params.size(); ++i)
    if (params[i].name == param) return static_cast<int>(i);
  return -1;
}

Schema parse_schema(std::string_view text) { return Reader(text).schema(); }

void append_to(std::string& out, const Schema& s) {
  out += s.name;
  out += '(';
  bool keyword = false;
  for (size_t i = 0; i < s.params.size(); ++i) {
    const Param& p = s.params[i];
    if (i) out += ", ";
    if (p.keyword_only && !keyword) {
      out += "*, ";
      keyword = true;
    }
    out += type_name(p.type, p.symbolic);
    if (p.mutated)
      out += "(a!)";
    else if (p.aliased)
      out += "(a)";
    if (p.optional_items || (p.optional && !p.list)) out += '?';
    if (p.list) out += p.list_size ? str("[", p.list_size, "]") : "[]";
    if (p.optional && p.list) out += '?';
    out += ' ';
    out += p.name;
    if (p.default_value) {
      out += '=';
      append_default(out, p);
    }
  }
  out += ") -> ";
  bool many = s.returns.size() != 1;
  if (many) out += '(';
  for (size_t i = 0; i < s.returns.size(); ++i) {
    const Return& r = s.returns[i];
    if (i) out += ", ";
    out += type_name(r.type, false);
    if (r.mutated)
      out += "(a!)";
    else if (r.aliased)
      out += "(a)";
    if (r.list) out += "[]";
    if (!r.name.empty()) out += str(" ", r.name);
  }
  if (many) out += ')';
}

}  // namespace brasa::ir
