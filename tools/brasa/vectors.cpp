#include "vectors.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "ops/primitives/interp.h"
#include "support/error.h"

namespace brasa::verify {

using ir::Arg;
using ir::Expr;
using ir::ParamType;
using nlohmann::json;
using ops::Array;

namespace {

json read_json(const std::string& path) {
  std::ifstream in(path);
  BRASA_CHECK(in, "cannot open '", path, "'");
  json j = json::parse(in, nullptr, false);
  BRASA_CHECK(!j.is_discarded(), "'", path, "' is not JSON");
  return j;
}

DType dtype_named(const std::string& name) {
  auto t = dtype_of(name);
  if (!t || is_complex(*t)) throw Unsupported{str("dtype ", name)};
  return *t;
}

double special_float(const json& j) {
  const auto& s = j.get_ref<const std::string&>();
  return s == "nan" ? std::nan("") : s == "inf" ? INFINITY : -INFINITY;
}

}  // namespace

struct VectorFile::Impl {
  json calls;
  safetensors::File tensors;

  Array array(const std::string& name, DType dtype) const {
    const safetensors::Entry& t = tensors.at(name);
    if (t.dtype != dtype) throw Unsupported{str("dtype of ", name)};
    return {dtype, t.shape, {t.data.begin(), t.data.end()}};
  }

  static bool is_tensor(const json& j) { return j.is_object() && j.contains("tensor"); }

  int add_tensor(Call& call, std::map<std::string, int>& position, const json& j) const {
    CallTensor t;
    std::string name;
    if (is_tensor(j)) {
      name = j["tensor"].get<std::string>();
      if (auto it = position.find(name); it != position.end()) return it->second;
      t.array = array(name, dtype_named(j["dtype"].get<std::string>()));
      t.strides = j["strides"].get<std::vector<int64_t>>();
    } else {
      Arg a = literal(j, ParamType::Scalar);
      t.weak = true;
      if (a.is<bool>()) {
        t.array = ops::make_array(DType::Bool, {});
        ops::set_int(t.array, 0, a.get<bool>());
      } else if (auto* e = a.get_if<Expr>()) {
        t.array = ops::make_array(DType::Int64, {});
        ops::set_int(t.array, 0, e->constant());
      } else {
        t.array = ops::make_array(DType::Float64, {});
        ops::set(t.array, 0, a.get<double>());
      }
    }
    int at = static_cast<int>(call.tensors.size());
    call.tensors.push_back(std::move(t));
    if (!name.empty()) position[name] = at;
    return at;
  }

  static Arg literal(const json& j, ParamType type) {
    if (j.is_null()) return Arg();
    if (j.is_boolean()) return Arg(j.get<bool>());
    if (j.is_string()) return Arg(j.get<std::string>());
    if (j.is_number_integer()) return type == ParamType::Float ? Arg(j.get<double>()) : Arg(j.get<int64_t>());
    if (j.is_number()) return Arg(j.get<double>());
    if (j.is_object()) {
      if (j.contains("float")) return Arg(special_float(j["float"]));
      if (j.contains("dtype")) return Arg(dtype_named(j["dtype"].get<std::string>()));
      for (const char* kind : {"memory_format", "layout", "device"})
        if (j.contains(kind)) return Arg(j[kind].get<std::string>());
      throw Unsupported{str("argument ", j.dump())};
    }
    if (j.is_array()) {
      bool all_int = type != ParamType::Float, all_bool = true;
      for (const json& item : j) {
        all_int = all_int && item.is_number_integer();
        all_bool = all_bool && item.is_boolean();
      }
      if (all_bool && (!j.empty() || type == ParamType::Bool)) return Arg(j.get<std::vector<bool>>());
      if (all_int) {
        std::vector<Expr> items;
        for (const json& item : j) items.emplace_back(item.get<int64_t>());
        return Arg(std::move(items));
      }
      std::vector<double> items;
      for (const json& item : j) {
        BRASA_CHECK(item.is_number() || (item.is_object() && item.contains("float")), "cannot read the list ",
                    j.dump());
        items.push_back(item.is_number() ? item.get<double>() : special_float(item["float"]));
      }
      return Arg(std::move(items));
    }
    fail(str("cannot read the argument ", j.dump()));
  }

  CallArg argument(Call& call, std::map<std::string, int>& position, const json& j, const ir::Param& p) const {
    if (p.type != ParamType::Tensor) {
      if (is_tensor(j)) throw Unsupported{"a tensor where the schema says a number"};
      if (p.list && j.is_number()) return literal(json::array_t(std::max(p.list_size, 1), j), p.type);
      return literal(j, p.type);
    }
    if (j.is_null()) return -1;
    if (!p.list) return add_tensor(call, position, j);
    std::vector<int> items;
    for (const json& item : j) items.push_back(item.is_null() ? -1 : add_tensor(call, position, item));
    return items;
  }
};

VectorFile::VectorFile(const std::string& stem)
    : impl_(new Impl{read_json(stem + ".json"), safetensors::File::open(stem + ".safetensors")}) {
  overload_ = impl_->calls.at("overload").get<std::string>();
}
VectorFile::~VectorFile() = default;
size_t VectorFile::size() const { return impl_->calls.at("entries").size(); }

Entry VectorFile::entry(size_t i, const ops::Row& row) const {
  const json& j = impl_->calls.at("entries").at(i);
  Entry out;
  out.call.row = &row;
  std::map<std::string, int> position;
  const auto& params = row.schema.params;
  for (size_t k = 0; k < params.size(); ++k) {
    const ir::Param& p = params[k];
    if (k < j["args"].size()) {
      out.call.args.push_back(impl_->argument(out.call, position, j["args"][k], p));
    } else if (j["kwargs"].contains(p.name)) {
      out.call.args.push_back(impl_->argument(out.call, position, j["kwargs"][p.name], p));
    } else if (p.type == ParamType::Tensor) {
      BRASA_CHECK(p.optional || p.default_value, "no value for '", p.name, "'");
      out.call.args.emplace_back(p.list ? CallArg(std::vector<int>{}) : CallArg(-1));
    } else {
      BRASA_CHECK(p.optional || p.default_value || p.type == ParamType::Generator, "no value for '", p.name, "'");
      out.call.args.emplace_back(p.default_value ? *p.default_value : Arg());
    }
  }
  BRASA_CHECK(j["args"].size() <= params.size(), "more arguments than ", row.name(), " has parameters");

  std::vector<std::string> output_names;
  auto add_output = [&](const json& o) {
    output_names.push_back(Impl::is_tensor(o) ? o["tensor"].get<std::string>() : "");
    if (o.is_null())
      out.expected.outputs.emplace_back();
    else if (Impl::is_tensor(o))
      out.expected.outputs.emplace_back(impl_->array(output_names.back(), dtype_named(o["dtype"].get<std::string>())));
    else
      throw Unsupported{"a result that is no tensor"};
  };
  for (const json& o : j["outputs"]) {
    if (o.is_array())
      for (const json& item : o) add_output(item);
    else
      add_output(o);
  }
  out.expected.metadata_only = j.value("compare", "") == "metadata";

  size_t n = out.call.tensors.size();
  out.call.needs_gradient.assign(n, false);
  out.expected.gradients.assign(n, std::nullopt);
  if (j.contains("gradients")) {
    for (auto& [input, gradient] : j["gradients"].items()) {
      int at = position.at(input);
      out.call.needs_gradient[at] = true;
      if (!gradient.is_null())
        out.expected.gradients[at] = impl_->array(gradient.get<std::string>(), out.call.tensors[at].array.dtype);
    }
    out.call.cotangents.assign(output_names.size(), std::nullopt);
    for (auto& [output, cotangent] : j["cotangents"].items()) {
      auto it = std::find(output_names.begin(), output_names.end(), output);
      BRASA_CHECK(it != output_names.end(), "a cotangent of the unknown output ", output);
      size_t k = it - output_names.begin();
      out.call.cotangents[k] = impl_->array(cotangent.get<std::string>(), out.expected.outputs[k]->dtype);
    }
  }
  return out;
}

const ops::Row* row_of(const std::string& overload) {
  size_t dot = overload.find('.');
  return dot == overload.npos ? nullptr : ops::find(overload.substr(0, dot) + "::" + overload.substr(dot + 1));
}

std::map<std::string, Card> read_cards(const std::string& folder) {
  std::map<std::string, Card> out;
  for (const json& j : read_json(folder + "/index.json")) {
    Card c;
    c.overload = j.at("overload").get<std::string>();
    c.ambiguous = j.value("ambiguous", false);
    auto read = [](const json& from, Tolerances& to) {
      for (auto& [name, value] : from.items())
        if (auto t = dtype_of(name)) to[*t] = value.get<double>();
    };
    read(j.at("tolerance"), c.values);
    read(j.at("gradient_tolerance"), c.gradients);
    out[c.overload] = std::move(c);
  }
  return out;
}

std::string describe(const Array& a, int64_t most) {
  std::string s = "[";
  for (int64_t i = 0; i < std::min(a.numel(), most); ++i) {
    if (i) s += ", ";
    s += ops::by_int(a.dtype) ? str(ops::get_int(a, i)) : str(ops::get(a, i));
  }
  return str(s, a.numel() > most ? ", …] " : "] ", name(a.dtype), a.shape);
}

namespace {

std::optional<std::string> differs(const std::string& what, const Array& got, const Array& want, double tolerance,
                                   bool metadata_only) {
  if (got.dtype != want.dtype || got.shape != want.shape)
    return str(what, ": got ", name(got.dtype), got.shape, ", expected ", name(want.dtype), want.shape);
  if (metadata_only) return std::nullopt;
  for (int64_t i = 0; i < want.numel(); ++i) {
    if (ops::by_int(want.dtype)) {
      if (ops::get_int(got, i) != ops::get_int(want, i))
        return str(what, ": element ", i, " is ", ops::get_int(got, i), ", expected ", ops::get_int(want, i));
      continue;
    }
    double a = ops::get(got, i), b = ops::get(want, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::fabs(a - b) <= tolerance + tolerance * std::fabs(b)))
      return str(what, ": element ", i, " is ", a, ", expected ", b, ", tolerance ", tolerance);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> check(const Entry& entry, const Outcome& outcome, const Card& card) {
  // The coarsest floating type among inputs and outputs decides.
  double values = 0, gradients = 0;
  auto coarsen = [&](const Array& a) {
    if (auto it = card.values.find(a.dtype); it != card.values.end()) values = std::max(values, it->second);
    if (auto it = card.gradients.find(a.dtype); it != card.gradients.end()) gradients = std::max(gradients, it->second);
  };
  for (const CallTensor& t : entry.call.tensors)
    if (!t.weak) coarsen(t.array);
  const Expected& expected = entry.expected;
  for (auto& o : expected.outputs)
    if (o) coarsen(*o);

  if (outcome.outputs.size() != expected.outputs.size())
    return str("got ", outcome.outputs.size(), " results, expected ", expected.outputs.size());
  for (size_t i = 0; i < expected.outputs.size(); ++i)
    // Which of several equal elements an index names is open.
    if (expected.outputs[i] && !(card.ambiguous && i > 0 && expected.outputs[i]->dtype == DType::Int64))
      if (auto d = differs(str("result ", i), outcome.outputs[i], *expected.outputs[i], values, expected.metadata_only))
        return d;
  if (entry.call.cotangents.empty()) return std::nullopt;
  for (size_t i = 0; i < entry.call.tensors.size(); ++i) {
    if (!entry.call.needs_gradient[i]) continue;
    const Array& like = entry.call.tensors[i].array;
    Array zero = ops::make_array(like.dtype, like.shape);
    const Array& want = expected.gradients[i] ? *expected.gradients[i] : zero;
    const Array& got = outcome.gradients[i] ? *outcome.gradients[i] : zero;
    if (auto d = differs(str("gradient of tensor ", i), got, want, gradients, false)) return d;
  }
  return std::nullopt;
}

}  // namespace brasa::verify
