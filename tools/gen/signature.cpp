#include "signature.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "support/str.h"

namespace brasa::gen {
namespace {

using ir::Param;
using ir::ParamType;

// Operators that <brasa/tensor.h> and <brasa/factories.h> declare by hand: what they do is about memory, aliasing or values
// on the host, beyond what a row says.
constexpr std::string_view kByHand[] = {
    "to",          "contiguous",    "clone",      "copy",        "detach",        "index",
    "index_put",   "item",          "equal",      "empty",       "empty_like",    "empty_strided",
    "one_hot",     "scalar_tensor", "is_nonzero", "allclose",    "data",          "is_floating_point",
    "size",        "stride",        "dim",        "numel",       "requires_grad", "backward",
    "lift_fresh",  "print",         "cpu",        "resize",      "type_as",       "promote_types",
    "result_type", "is_complex",    "output_nr",  "retain_grad", "set_data",
};

constexpr std::string_view kKeywords[] = {"and",    "or",     "not",      "xor",   "union", "default",
                                          "new",    "delete", "operator", "class", "int",   "float",
                                          "double", "bool",   "long",     "short", "char",  "register"};

std::string safe_name(const std::string& name) {
  bool keyword = std::find(std::begin(kKeywords), std::end(kKeywords), name) != std::end(kKeywords);
  return keyword ? name + "_" : name;
}

std::string dtype_literal(DType t) { return str("DType::", info_of(t).enumerator); }

std::string number_text(double v) {
  if (v != v) return "NAN";
  if (v == std::numeric_limits<double>::infinity()) return "HUGE_VAL";
  if (v == -std::numeric_limits<double>::infinity()) return "-HUGE_VAL";
  return str(v);
}

template <class T, class F>
std::string braced(const std::vector<T>& items, F text) {
  std::string out = "{";
  for (size_t i = 0; i < items.size(); ++i) out += str(i ? ", " : "", text(items[i]));
  return out + "}";
}

// The C++ form of a schema's default.
std::string literal(const Param& p) {
  if (!p.default_value) return "";
  const ir::Arg& a = *p.default_value;
  if (a.is_none()) return "{}";
  if (auto* e = a.get_if<ir::Expr>()) return p.type == ParamType::Float ? str(e->constant(), ".0") : str(e->constant());
  if (auto* d = a.get_if<double>()) return number_text(*d);
  if (auto* b = a.get_if<bool>()) return *b ? "true" : "false";
  if (auto* t = a.get_if<DType>()) return dtype_literal(*t);
  if (auto* s = a.get_if<std::string>()) return p.type == ParamType::Str ? str('"', *s, '"') : "{}";
  if (auto* v = a.get_if<std::vector<ir::Expr>>())
    return v->size() == 1 ? str((*v)[0].constant()) : braced(*v, [](ir::Expr e) { return str(e.constant()); });
  if (auto* v = a.get_if<std::vector<double>>()) return braced(*v, number_text);
  if (auto* v = a.get_if<std::vector<bool>>()) {
    std::string out = "{";
    for (size_t i = 0; i < v->size(); ++i) out += str(i ? ", " : "", (*v)[i] ? "true" : "false");
    return out + "}";
  }
  return "{}";
}

std::string type_of(const Param& p) {
  auto optional = [&](const char* t) { return p.optional ? str("std::optional<", t, ">") : std::string(t); };
  auto optional_reference = [&](const char* t) {
    return p.optional ? str("const std::optional<", t, ">&") : str("const ", t, "&");
  };
  if (p.list) switch (p.type) {
      case ParamType::Tensor: return p.optional_items ? "ArrayRef<std::optional<Tensor>>" : optional("TensorList");
      case ParamType::Int: return p.optional ? "OptionalIntArrayRef" : "IntArrayRef";
      case ParamType::Float: return p.optional ? "OptionalArrayRef<double>" : "ArrayRef<double>";
      case ParamType::Bool: return "ArrayRef<bool>";
      case ParamType::Scalar: return "ArrayRef<Scalar>";
      default: return "";
    }
  switch (p.type) {
    case ParamType::Tensor: return optional_reference("Tensor");
    case ParamType::Scalar: return optional_reference("Scalar");
    case ParamType::Int: return optional("int64_t");
    case ParamType::Float: return optional("double");
    case ParamType::Bool: return optional("bool");
    case ParamType::Str: return optional("std::string_view");
    case ParamType::DType: return optional("DType");
    case ParamType::Layout: return optional("Layout");
    case ParamType::Device: return optional("Device");
    case ParamType::MemoryFormat: return optional("MemoryFormat");
    case ParamType::Generator: return "std::optional<Generator>";
    case ParamType::Graph: break;  // of primitives alone
  }
  return "";
}

bool is_option(const Param& p) {
  return p.type == ParamType::Layout || p.type == ParamType::Device || p.name == "pin_memory" ||
         (p.type == ParamType::DType && p.name == "dtype");
}

bool is_in_place_name(std::string_view name) { return name.ends_with("_") && !name.ends_with("__"); }

std::optional<Signature> signature(const ops::Row& row, size_t index) {
  const ir::Schema& s = row.schema;
  if (row.is_primitive() || !s.name.starts_with("aten::")) return std::nullopt;
  Signature out;
  out.by_hand = std::find(std::begin(kByHand), std::end(kByHand), s.base) != std::end(kByHand);
  out.index = index;
  out.row = &row;
  out.name = safe_name(s.base);
  for (const ir::Return& r : s.returns)
    if (r.type != ParamType::Tensor) return std::nullopt;
  if (s.returns.size() == 1 && s.returns[0].list) {
    out.result = Result::List;
  } else if (s.returns.size() != 1) {
    bool lists = std::any_of(s.returns.begin(), s.returns.end(), [](const ir::Return& r) { return r.list; });
    if (s.returns.empty() || lists) return std::nullopt;
    out.result = Result::Tuple;
    out.results = s.returns.size();
  }
  bool tensors =
      std::any_of(s.params.begin(), s.params.end(), [](const Param& p) { return p.type == ParamType::Tensor; });
  out.options = std::any_of(s.params.begin(), s.params.end(), [&](const Param& p) {
    return p.keyword_only && is_option(p) && (!tensors || p.type != ParamType::DType);
  });
  bool options_added = false;
  for (const Param& p : s.params) {
    if (out.options && is_option(p)) {
      const char* argument = p.type == ParamType::DType    ? "options.dtype_opt()"
                             : p.type == ParamType::Layout ? "options.layout_opt()"
                             : p.type == ParamType::Device ? "options.device_opt()"
                                                           : "options.pinned_memory_opt()";
      if (!options_added) {
        out.params.push_back({"const TensorOptions&", "options", p.default_value || p.optional ? "{}" : "", argument});
      } else {
        out.params.back().argument += str(", ", argument);
      }
      options_added = true;
      continue;
    }
    Parameter q;
    q.type = type_of(p);
    if (q.type.empty()) return std::nullopt;
    q.name = safe_name(p.name);
    q.default_value = literal(p);
    q.argument = q.name;
    if (p.name == "self" && p.type == ParamType::Tensor && !p.list && !p.optional) {
      out.self = static_cast<int>(out.params.size());
      q.default_value.clear();
    }
    out.params.push_back(std::move(q));
  }
  // C++ wants the defaults at the end.
  for (size_t i = out.params.size(); i-- > 0;)
    if (out.params[i].default_value.empty())
      for (size_t j = 0; j < i; ++j) out.params[j].default_value.clear();
  // Masks among indices become positions on another way, see <brasa/call.h>.
  bool writes = !row.view && !is_in_place_name(s.base) && !(out.by_hand && row.masks);
  out.has_out = writes && (out.result != Result::List || out.self == 0);
  out.in_place = writes && out.result == Result::Tensor && !out.by_hand && !out.options && !s.params.empty() &&
                 s.params[0].type == ParamType::Tensor && !s.params[0].list && !s.params[0].optional;
  return out;
}

size_t required(const Signature& s) {
  size_t n = 0;
  while (n < s.params.size() && s.params[n].default_value.empty()) ++n;
  return n;
}

bool same_types(const Signature& a, const Signature& b, size_t n) {
  if (a.params.size() < n || b.params.size() < n) return false;
  for (size_t i = 0; i < n; ++i)
    if (a.params[i].type != b.params[i].type) return false;
  return true;
}

// A call with n arguments that fits two overloads equally: one of them asks for one argument more. That is the one whose next
// parameter is a plain flag (std(self, bool unbiased)), or which has more parameters.
void separate(Signature& a, Signature& b) {
  size_t least = std::max(required(a), required(b)), most = std::min(a.params.size(), b.params.size());
  Signature* loser = nullptr;
  for (size_t n = least; n <= most; ++n) {
    if (n < required(a) || n < required(b) || !same_types(a, b, n)) continue;
    bool a_can = a.params.size() > n, b_can = b.params.size() > n;
    bool a_flag = a_can && a.params[n].type == "bool";
    // The one that has lost defaults loses others.
    if (!loser || loser->params.size() <= n) loser = a_can && (a_flag || !b_can) ? &a : &b;
    if (loser->params.size() <= n) return;
    for (size_t i = 0; i <= n; ++i) loser->params[i].default_value.clear();
  }
}

void separate_all(std::vector<Signature>& all, const std::vector<size_t>& overloads) {
  for (size_t i = 0; i < overloads.size(); ++i)
    for (size_t j = i + 1; j < overloads.size(); ++j) separate(all[overloads[i]], all[overloads[j]]);
}

}  // namespace

std::vector<Signature> signatures(const ops::Table& table) {
  std::vector<Signature> out;
  std::map<std::string, std::vector<size_t>> by_name;
  size_t index = 0;
  for (const ops::Row& row : table.rows()) {
    auto s = signature(row, index++);
    if (!s) continue;
    auto& overloads = by_name[s->name];
    bool twin = std::any_of(overloads.begin(), overloads.end(), [&](size_t i) {
      return out[i].params.size() == s->params.size() && same_types(out[i], *s, s->params.size());
    });
    if (twin) continue;
    overloads.push_back(out.size());
    out.push_back(std::move(*s));
  }
  for (auto& [name, overloads] : by_name) separate_all(out, overloads);
  return out;
}

std::vector<Signature> out_signatures(const std::vector<Signature>& all) {
  std::vector<Signature> out;
  std::map<std::string, std::vector<size_t>> by_name;
  for (const Signature& given : all) {
    if (!given.has_out) continue;
    Signature s = given;
    auto options = std::find_if(s.params.begin(), s.params.end(), is_options);
    if (options != s.params.end()) {
      // Where the options' arguments were, nothing is given.
      auto commas = std::count(options->argument.begin(), options->argument.end(), ',');
      for (auto i = 0; i <= commas; ++i) (options - 1)->argument += ", std::nullopt";
      s.params.erase(options);
    }
    by_name[s.name].push_back(out.size());
    out.push_back(std::move(s));
  }
  for (auto& [name, overloads] : by_name) separate_all(out, overloads);
  return out;
}

}  // namespace brasa::gen
