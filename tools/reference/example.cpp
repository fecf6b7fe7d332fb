#include "example.h"

#include <algorithm>
#include <cmath>

#include "facts.h"
#include "support/error.h"
#include "support/str.h"

namespace brasa::reference {
namespace {

using ir::Param;
using ir::ParamType;
using ops::SampleArg;
using ops::TensorSample;

// A reader follows this many numbers; more are drawn at random, and of more results only the sizes are shown.
constexpr int64_t kReadable = 24;

int64_t numel(const TensorSample& s) {
  int64_t n = 1;
  for (int64_t d : s.shape) n *= d;
  return n;
}

template <class T, class F>
std::string braced(const T& items, F text) {
  std::string out = "{";
  for (size_t i = 0; i < items.size(); ++i) out += str(i ? ", " : "", text(items[i]));
  return out + "}";
}

// The name of the enumerator: DType::Float32.
std::string dtype_text(DType t) { return str("brasa::DType::", info_of(t).enumerator); }

std::string number_text(double v) {
  if (std::isnan(v)) return "NAN";
  if (std::isinf(v)) return v > 0 ? "INFINITY" : "-INFINITY";
  std::string out = str(v);
  return out.find_first_of(".e") == out.npos ? out + ".0" : out;
}

// Multiples of the golden ratio between the sample's bounds, with two decimals.
std::string element_text(const TensorSample& s, int64_t i) {
  double part = std::fmod(0.137 + 0.6180339887498949 * static_cast<double>(i + 1), 1.0);
  double v = s.low + (s.high - s.low) * part;
  if (s.dtype == DType::Bool) return std::floor(v) != 0 ? "true" : "false";
  if (is_integral(s.dtype, true)) return str(static_cast<int64_t>(std::floor(v)));
  double rounded = std::ceil(v * 100) / 100;
  return number_text(rounded < s.high ? rounded : v);
}

std::string nested(const TensorSample& s, size_t dim, int64_t& at) {
  if (dim == s.shape.size()) return element_text(s, at++);
  std::string out = "{";
  for (int64_t i = 0; i < s.shape[dim]; ++i) out += str(i ? ", " : "", nested(s, dim + 1, at));
  return out + "}";
}

std::string tensor_text(const TensorSample& s) {
  std::string sizes = braced(s.shape, [](int64_t n) { return str(n); });
  bool natural = s.dtype == DType::Float32 || s.dtype == DType::Int64 || s.dtype == DType::Bool;
  int64_t n = numel(s), at = 0;
  if (n == 0)
    return str("brasa::zeros(", sizes, natural && s.dtype == DType::Float32 ? "" : ", " + dtype_text(s.dtype), ")");
  if (n <= kReadable) return str("brasa::tensor(", nested(s, 0, at), natural ? "" : ", " + dtype_text(s.dtype), ")");
  std::string drawn = str("brasa::rand(", sizes, ")");
  double width = s.high - s.low;
  if (s.dtype == DType::Bool) return drawn + " < 0.5";
  if (width != 1) drawn += str(" * ", width);
  if (s.low != 0) drawn += str(s.low < 0 ? " - " : " + ", std::abs(s.low));
  if (s.dtype == DType::Float32) return drawn;
  if (is_integral(s.dtype, true)) return str("(", drawn, ").floor().to(", dtype_text(s.dtype), ")");
  return str("(", drawn, ").to(", dtype_text(s.dtype), ")");
}

std::string literal_text(const ir::Arg& a, const Param& p) {
  if (a.is_none()) return "std::nullopt";
  if (auto* e = a.get_if<ir::Expr>()) return p.type == ParamType::Float ? str(e->constant(), ".0") : str(e->constant());
  if (auto* d = a.get_if<double>()) return number_text(*d);
  if (auto* b = a.get_if<bool>()) return *b ? "true" : "false";
  if (auto* c = a.get_if<std::complex<double>>())
    return str("std::complex<double>(", number_text(c->real()), ", ", number_text(c->imag()), ")");
  if (auto* t = a.get_if<DType>()) return dtype_text(*t);
  if (auto* s = a.get_if<std::string>()) return str('"', *s, '"');
  if (auto* v = a.get_if<std::vector<ir::Expr>>()) return braced(*v, [](ir::Expr e) { return str(e.constant()); });
  if (auto* v = a.get_if<std::vector<double>>()) return braced(*v, number_text);
  if (auto* v = a.get_if<std::vector<bool>>()) return braced(*v, [](bool b) { return b ? "true" : "false"; });
  return "{}";
}

// The smallest sample that is not empty, the plainest of these: they are written in that order.
const ops::Sample* telling(const ops::Row& row) {
  const ops::Sample* best = nullptr;
  int64_t least = 0;
  for (const ops::Sample& s : row.samples) {
    int64_t most = 1;
    auto add = [&](const TensorSample& t) { most = std::max(most, numel(t) == 0 ? int64_t{1} << 40 : numel(t)); };
    for (const SampleArg& a : s.args) {
      if (auto* one = std::get_if<TensorSample>(&a)) add(*one);
      if (auto* list = std::get_if<std::vector<TensorSample>>(&a)) std::for_each(list->begin(), list->end(), add);
    }
    most = std::max(most, kReadable);
    if (!best || most < least) best = &s, least = most;
  }
  return best;
}

class Example {
 public:
  Example(const ops::Row& row, const ops::Sample& sample, const gen::Signature* function)
      : row_(row), sample_(sample), function_(function) {}

  std::string text() {
    std::string call = function_ ? str("brasa::", function_->name, "(", arguments(), ")")
                                 : str("brasa::call(\"", row_.name(), "\", {", by_name(), "})");
    bool drawn = row_.random || variables_.find("brasa::rand(") != variables_.npos;
    return str(drawn ? "brasa::manual_seed(0);\n" : "", variables_, print(call));
  }

 private:
  // Variables for the tensors of one argument, and what stands for them in the call.
  std::string tensors(size_t i, std::string name, std::string_view list_type) {
    if (auto* one = std::get_if<TensorSample>(&sample_.args[i])) {
      variables_ += str("auto ", name, " = ", tensor_text(*one), ";\n");
      return name;
    }
    std::string out;
    int k = 0;
    for (const TensorSample& s : std::get<std::vector<TensorSample>>(sample_.args[i])) {
      variables_ += str("auto ", name, k, " = ", tensor_text(s), ";\n");
      out += str(k ? ", " : "", name, k);
      ++k;
    }
    return str(list_type, "{", out, "}");
  }

  std::string arguments() {
    std::string out;
    size_t at = 0;
    const auto& params = row_.schema.params;
    for (const gen::Parameter& p : function_->params) {
      // One C++ parameter may stand for several of the schema: TensorOptions.
      size_t count = 1 + static_cast<size_t>(std::count(p.argument.begin(), p.argument.end(), ','));
      bool options = p.type == "const TensorOptions&";
      std::string text;
      for (size_t k = 0; k < count && at < sample_.args.size(); ++k, ++at) {
        auto* literal = std::get_if<ir::Arg>(&sample_.args[at]);
        if (options && (!literal || !literal->is<DType>())) continue;
        text = literal ? literal_text(*literal, params[at]) : tensors(at, p.name, "");
      }
      if (options && text.empty()) text = at < sample_.args.size() ? "{}" : "";
      if (text.empty()) break;
      out += str(out.empty() ? "" : ", ", text);
    }
    return out;
  }

  std::string by_name() {
    std::string out;
    for (size_t i = 0; i < sample_.args.size(); ++i) {
      const Param& p = row_.schema.params[i];
      std::string text;
      if (auto* literal = std::get_if<ir::Arg>(&sample_.args[i])) {
        text = literal_text(*literal, p);
        if (literal->is<std::vector<ir::Expr>>()) text = "brasa::IntArrayRef(" + text + ")";
        if (literal->is<std::vector<double>>()) text = "brasa::ArrayRef<double>(" + text + ")";
        if (literal->is<std::vector<bool>>()) text = "brasa::ArrayRef<bool>(" + text + ")";
      } else {
        text = tensors(i, p.name,
                       p.optional_items ? "std::vector<std::optional<brasa::Tensor>>" : "std::vector<brasa::Tensor>");
        if (p.optional_items) text = "brasa::ArrayRef<std::optional<brasa::Tensor>>(" + text + ")";
      }
      out += str(i ? ", " : "", text);
    }
    return out;
  }

  std::string print(const std::string& call) const {
    bool readable = true;
    for (const ir::Type& t : result_types(row_, sample_)) {
      int64_t n = 1;
      for (ir::Expr d : t.shape) n *= d.constant();
      readable = readable && n <= 2 * kReadable;
    }
    std::string shown = readable ? "" : ".sizes()";
    if (function_ && function_->result == gen::Result::Tensor) return str("std::cout << ", call, shown, " << '\\n';\n");
    if (function_ && function_->result == gen::Result::Tuple) {
      std::string names, prints;
      for (size_t i = 0; i < function_->results; ++i) {
        const std::string& given = row_.schema.returns[i].name;
        std::string name = given.empty() || row_.schema.index_of(given) >= 0 ? str("result", i) : given;
        names += str(i ? ", " : "", name);
        prints += str(" << ", name, shown, " << '\\n'");
      }
      return str("auto [", names, "] = ", call, ";\nstd::cout", prints, ";\n");
    }
    return str("for (const brasa::Tensor& t : ", call, ") std::cout << t", shown, " << '\\n';\n");
  }

  const ops::Row& row_;
  const ops::Sample& sample_;
  const gen::Signature* function_;
  std::string variables_;
};

}  // namespace

std::optional<std::string> example_of(const ops::Row& row, const gen::Signature* function) {
  const ops::Sample* sample = telling(row);
  if (!sample || row.is_primitive()) return std::nullopt;
  return Example(row, *sample, function).text();
}

}  // namespace brasa::reference
