#include "vectors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include <brasa/error.h>
#include <brasa/safetensors.h>

#include "files.h"

namespace brasa::verify {

using nlohmann::json;
using tool::read_json;
using tool::special_float;

namespace {

double part(const json& j) { return j.is_object() ? special_float(j["float"]) : j.get<double>(); }
std::complex<double> complex_number(const json& parts) { return {part(parts[0]), part(parts[1])}; }

bool is_tensor(const json& j) { return j.is_object() && j.contains("tensor"); }

template <class T>
Array scalar(DType dtype, T v) {
  Array a{dtype, {}, std::vector<std::byte>(sizeof v), {}};
  std::memcpy(a.bytes.data(), &v, sizeof v);
  return a;
}

// A result that is a number, a bool or a dtype (its number).
std::optional<Array> number(const json& j) {
  if (j.is_null()) return std::nullopt;
  if (j.is_boolean()) return scalar(DType::Bool, static_cast<uint8_t>(j.get<bool>()));
  if (j.is_number_integer()) return scalar(DType::Int64, j.get<int64_t>());
  if (j.is_number()) return scalar(DType::Float64, j.get<double>());
  if (j.is_object() && j.contains("float")) return scalar(DType::Float64, special_float(j["float"]));
  if (j.is_object() && j.contains("complex")) return scalar(DType::Complex128, complex_number(j["complex"]));
  throw Unsupported{"the result " + j.dump()};
}

}  // namespace

struct VectorFile::Impl {
  json calls;
  safetensors::File tensors;

  Array array(const std::string& name, DType dtype) const {
    const safetensors::Entry& t = tensors.at(name);
    std::vector<int64_t> shape = t.shape;
    // Complex numbers are stored as their parts, along one more dimension.
    if (is_complex(dtype) && t.dtype == real_part_of(dtype) && !shape.empty() && shape.back() == 2)
      shape.pop_back();
    else if (t.dtype != dtype)
      throw Unsupported{"dtype of " + name};
    return {dtype, std::move(shape), {t.data.begin(), t.data.end()}, {}};
  }
  Array array(const json& j) const {
    Array a = array(j["tensor"].get<std::string>(), dtype_named(j["dtype"].get<std::string>()));
    a.strides = j["strides"].get<std::vector<int64_t>>();
    return a;
  }
};

namespace {

// Reads the arguments of one call and knows its tensors by name.
struct Reader {
  const std::function<Array(const json&)>& array;
  Entry& entry;
  std::map<std::string, size_t> position;

  Value value(const json& j) {
    if (j.is_null()) return {};
    if (j.is_boolean()) return {j.get<bool>()};
    if (j.is_string()) return {j.get<std::string>()};
    if (j.is_number_integer()) return {j.get<int64_t>()};
    if (j.is_number()) return {j.get<double>()};
    if (j.is_array()) {
      std::vector<Value> items;
      for (const json& item : j) items.push_back(value(item));
      return {std::move(items)};
    }
    if (is_tensor(j)) return {TensorAt{tensor(j)}};
    if (j.contains("float")) return {special_float(j["float"])};
    if (j.contains("complex")) return {complex_number(j["complex"])};
    if (j.contains("dtype")) return {dtype_named(j["dtype"].get<std::string>())};
    if (j.contains("memory_format")) return {MemoryFormatName{j["memory_format"].get<std::string>()}};
    if (j.contains("device")) return {DeviceName{j["device"].get<std::string>()}};
    if (j.contains("layout")) return {LayoutName{j["layout"].get<std::string>()}};
    throw Error("cannot read the argument " + j.dump());
  }

  size_t tensor(const json& j) {
    auto [it, fresh] = position.emplace(j["tensor"].get<std::string>(), entry.tensors.size());
    if (fresh) entry.tensors.push_back(array(j));
    return it->second;
  }

  void arguments(const json& call) {
    for (const json& a : call.at("args")) entry.args.push_back(value(a));
    for (auto& [name, a] : call.at("kwargs").items()) entry.kwargs.emplace_back(name, value(a));
    entry.needs_gradient.assign(entry.tensors.size(), false);
  }
};

}  // namespace

DType dtype_named(const std::string& name) {
  auto t = dtype_of(name);
  if (!t) throw Unsupported{"dtype " + name};
  return *t;
}

Entry read_call(const json& call, const std::function<Array(const json&)>& array) {
  Entry out;
  Reader reader{array, out, {}};
  reader.arguments(call);
  for (const json& name : call.value("gradients", json::array()))
    out.needs_gradient[reader.position.at(name.get<std::string>())] = true;
  return out;
}

VectorFile::VectorFile(const std::string& stem)
    : impl_(new Impl{read_json(stem + ".json"), safetensors::File::open(stem + ".safetensors")}) {}
VectorFile::~VectorFile() = default;
size_t VectorFile::size() const { return impl_->calls.at("entries").size(); }
const json& VectorFile::call(size_t i) const { return impl_->calls.at("entries").at(i); }

Entry VectorFile::entry(size_t i) const {
  const json& j = call(i);
  Entry out;
  const std::function<Array(const json&)> stored = [this](const json& tensor) { return impl_->array(tensor); };
  Reader reader{stored, out, {}};
  reader.arguments(j);

  std::vector<std::string> output_names;
  auto add_output = [&](const json& o) {
    bool tensor = is_tensor(o);
    output_names.push_back(tensor ? o["tensor"].get<std::string>() : "");
    out.numbers.push_back(!tensor && !o.is_null());
    out.outputs.emplace_back(tensor ? std::optional(impl_->array(o)) : number(o));
  };
  for (const json& o : j["outputs"]) {
    if (o.is_array())
      for (const json& item : o) add_output(item);
    else
      add_output(o);
  }
  out.metadata_only = j.value("compare", "") == "metadata";
  if (j.contains("raises")) out.raises = j["raises"].get<std::string>();

  size_t n = out.tensors.size();
  out.gradients.assign(n, std::nullopt);
  out.changed.assign(n, std::nullopt);
  auto same_dtype = [&](const json& name, const Array& like) {
    return impl_->array(name.get<std::string>(), like.dtype);
  };
  if (j.contains("changed"))
    for (auto& [input, after] : j["changed"].items()) {
      size_t at = reader.position.at(input);
      out.changed[at] = same_dtype(after, out.tensors[at]);
    }
  if (!j.contains("gradients")) return out;
  for (auto& [input, gradient] : j["gradients"].items()) {
    size_t at = reader.position.at(input);
    out.needs_gradient[at] = true;
    if (!gradient.is_null()) out.gradients[at] = same_dtype(gradient, out.tensors[at]);
  }
  out.cotangents.assign(output_names.size(), std::nullopt);
  for (auto& [output, cotangent] : j["cotangents"].items()) {
    auto it = std::find(output_names.begin(), output_names.end(), output);
    if (it == output_names.end()) throw Error("a cotangent of the unknown output " + output);
    auto k = static_cast<size_t>(it - output_names.begin());
    out.cotangents[k] = same_dtype(cotangent, *out.outputs[k]);
  }
  return out;
}

std::string operator_name(const std::string& overload) {
  size_t dot = overload.find('.');
  return dot == overload.npos ? overload : overload.substr(0, dot) + "::" + overload.substr(dot + 1);
}

std::map<std::string, Card> read_cards(const std::string& folder) {
  std::map<std::string, Card> out;
  for (const json& j : read_json(folder + "/index.json")) {
    Card& c = out[j.at("overload").get<std::string>()];
    c.ambiguous = j.value("ambiguous", false);
    auto read = [](const json& from, std::map<DType, double>& to) {
      for (auto& [name, value] : from.items())
        if (auto t = dtype_of(name)) to[*t] = value.get<double>();
    };
    read(j.at("tolerance"), c.values);
    read(j.at("gradient_tolerance"), c.gradients);
  }
  return out;
}

}  // namespace brasa::verify
