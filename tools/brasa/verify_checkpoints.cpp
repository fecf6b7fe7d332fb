#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include <brasa/brasa.h>
#include <brasa/error.h>
#include <brasa/pickle.h>
#include <brasa/serialize.h>

#include "commands.h"
#include "files.h"

namespace brasa::tool {
namespace {

using nlohmann::json;
using pickle::Value;

// Compares a checkpoint with its JSON and its tensors, up to the first difference.
class Check {
 public:
  explicit Check(const safetensors::File* tensors) : tensors_(tensors) {}

  std::optional<std::string> value(const Value& got, const json& want, const std::string& at) {
    auto kind = [&](Value::Kind k) { return got.kind() == k; };
    auto differs = [&] { return at + ": got a " + std::string(got.kind_name()) + ", expected " + want.dump(); };
    auto require = [&](bool same) { return same ? std::nullopt : std::optional(differs()); };
    if (want.is_null()) return require(got.is_none());
    if (want.is_boolean()) return require(kind(Value::Kind::Bool) && got.to_bool() == want.get<bool>());
    if (want.is_number_integer()) return require(kind(Value::Kind::Int) && got.to_int() == want.get<int64_t>());
    if (want.is_number()) return require(kind(Value::Kind::Float) && same(got.to_double(), want.get<double>()));
    if (want.is_string()) return require(got.is_string() && got.text() == want.get<std::string>());
    if (want.contains("sparse")) return got.is_tensor() ? sparse(got.to_tensor(), want, at) : differs();
    if (want.contains("computed")) return got.is_tensor() ? computed(got.to_tensor(), want, at) : differs();
    if (want.contains("tensor")) return got.is_tensor() ? tensor(got.stored(), want, at) : differs();
    if (want.contains("Storage"))
      return got.kind() == Value::Kind::Storage ? storage(got.stored(), want, at) : differs();
    const std::string name = want.items().begin().key();
    const json& inner = want.items().begin().value();
    if (name == "int")
      return require((kind(Value::Kind::BigInt) && got.text() == inner.get<std::string>()) ||
                     (kind(Value::Kind::Int) && std::to_string(got.to_int()) == inner.get<std::string>()));
    if (name == "float") return require(kind(Value::Kind::Float) && same(got.to_double(), tool::special_float(inner)));
    if (name == "complex")
      return require(kind(Value::Kind::Complex) && same(got.to_complex().real(), part(inner[0])) &&
                     same(got.to_complex().imag(), part(inner[1])));
    if (name == "text") return require(got.is_string() && hex(got.text()) == inner.get<std::string>());
    if (name == "bytes") return require(kind(Value::Kind::Bytes) && hex(got.text()) == inner.get<std::string>());
    if (name != got.kind_name()) return differs();
    if (name == "dtype" || name == "device" || name == "constant")
      return require(got.text() == inner.get<std::string>());
    if (got.is_dict()) {
      if (got.pairs().size() != inner.size()) return differs();
      for (size_t i = 0; i < inner.size(); ++i) {
        const auto& [k, v] = got.pairs()[i];
        std::string where = at + "[" + inner[i][0].dump() + "]";
        if (auto d = value(k, inner[i][0], where)) return d;
        if (auto d = value(v, inner[i][1], where)) return d;
      }
      return std::nullopt;
    }
    if (got.items().size() != inner.size()) return differs();
    for (size_t i = 0; i < inner.size(); ++i)
      if (auto d = value(got.items()[i], inner[i], at + "[" + std::to_string(i) + "]")) return d;
    return std::nullopt;
  }

 private:
  static bool same(double a, double b) {
    return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
  }
  static double part(const json& j) { return j.is_object() ? tool::special_float(j["float"]) : j.get<double>(); }
  static std::string hex(const std::string& bytes) {
    std::string out;
    for (char c : bytes) {
      char two[3];
      std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(c));
      out += two;
    }
    return out;
  }

  std::optional<std::string> tensor(const Value::StoredTensor& got, const json& want, const std::string& at) {
    const Tensor& t = got.tensor;
    json is = {{"tensor", want["tensor"]},     {"dtype", got.dtype},
               {"shape", t.sizes().vec()},     {"stride", t.strides().vec()},
               {"offset", t.storage_offset()}, {"storage", want["storage"]},
               {"parameter", got.parameter},   {"requires_grad", t.requires_grad()}};
    if (got.quantizer) {
      const auto& [scale, zero_point, axis] = *got.quantizer;
      for (const char* same : {"scale", "zero_point", "dequantized"}) is[same] = want[same];
      is["axis"] = axis ? json(*axis) : json();
      if (list(scale, axis.has_value()) != want["scale"] || list(zero_point, axis.has_value()) != want["zero_point"])
        return at + ": other scales or zero points";
      if (auto d = values(got.dequantize(), want["dequantized"], at)) return d;
    }
    if (is != want) return at + ": got the tensor " + is.dump() + ", expected " + want.dump();
    if (auto d = memory(t, want, at)) return d;
    return values(t, want["tensor"], at);
  }

  static json list(const Tensor& t, bool several) {
    Tensor flat = t.to(kFloat64).reshape({-1}).contiguous();
    if (!several) return json(flat.item<double>());
    return json(std::vector<double>(flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()));
  }
  // That it shares memory with those of its number, and no others.
  std::optional<std::string> memory(const Tensor& t, const json& want, const std::string& at) {
    if (t.storage().nbytes() == 0) return std::nullopt;
    void* memory = t.storage().data();
    auto [by_number, fresh] = memory_.emplace(want["storage"].get<int>(), memory);
    auto [by_memory, new_memory] = number_.emplace(memory, want["storage"].get<int>());
    if (by_number->second != memory || fresh != new_memory) return at + ": it shares memory with other tensors";
    return std::nullopt;
  }
  std::optional<std::string> values(const Tensor& t, const json& name, const std::string& at) {
    const safetensors::Entry& entry = tensors_->at(name.get<std::string>());
    Tensor rows = t.detach().contiguous();
    if (rows.nbytes() != entry.data.size() ||
        (rows.nbytes() > 0 && std::memcmp(rows.const_data_ptr(), entry.data.data(), rows.nbytes()) != 0))
      return at + ": other values";
    return std::nullopt;
  }
  std::optional<std::string> storage(const Value::StoredTensor& got, const json& want, const std::string& at) {
    if (got.dtype != want["dtype"].get<std::string>()) return at + ": a storage of " + got.dtype;
    if (auto d = memory(got.tensor, want, at)) return d;
    return values(got.tensor, want["Storage"], at);
  }
  static bool is_of(const Tensor& t, const json& want) {
    return name(t.scalar_type()) == want["dtype"].get<std::string>() && json(t.sizes().vec()) == want["shape"];
  }
  std::optional<std::string> computed(const Tensor& t, const json& want, const std::string& at) {
    if (!is_of(t, want)) return at + ": another dtype or shape";
    return values(t, want["computed"], at);
  }
  std::optional<std::string> sparse(const Tensor& t, const json& want, const std::string& at) {
    bool coordinates = want["sparse"] == "sparse_coo";
    if (!is_of(t, want) || t.layout() != (coordinates ? kSparse : kSparseCsr))
      return at + ": another dtype, shape or layout";
    std::vector<Tensor> parts = coordinates ? std::vector{t._indices(), t._values()}
                                            : std::vector{t.crow_indices(), t.col_indices(), t.values()};
    for (size_t i = 0; i < parts.size(); ++i)
      if (auto d = values(parts[i], want["parts"][i], at)) return d;
    return std::nullopt;
  }

  const safetensors::File* tensors_;
  std::map<int, void*> memory_;
  std::map<void*, int> number_;
};

// A safetensors file without a checkpoint beside it: metadata, and values as a list.
std::optional<std::string> check_safetensors(const std::string& path, const json& want) {
  safetensors::File file = safetensors::File::open(path);
  json metadata = file.metadata().empty() ? json() : json(file.metadata());
  if (metadata != want["metadata"]) return "metadata " + metadata.dump() + ", expected " + want["metadata"].dump();
  TensorDict tensors = load_tensors(path);
  if (tensors.size() != want["tensors"].size()) return std::to_string(tensors.size()) + " tensors";
  for (const auto& [name, expected] : want["tensors"].items()) {
    if (!tensors.contains(name)) return "no tensor " + name;
    const Tensor& t = tensors[name];
    if (brasa::name(t.scalar_type()) != expected["dtype"].get<std::string>() ||
        json(t.sizes().vec()) != expected["shape"])
      return name + ": another dtype or shape";
    Tensor flat = t.to(kFloat64).reshape({-1});
    for (int64_t i = 0; i < flat.numel(); ++i) {
      const json& v = expected["values"][static_cast<size_t>(i)];
      if (flat.data_ptr<double>()[i] != (v.is_boolean() ? v.get<bool>() : v.get<double>()))
        return name + ": other values";
    }
  }
  return std::nullopt;
}

std::optional<std::string> check_good(const std::string& folder, const std::string& file) {
  std::string path = folder + "/good/" + file, stem = path.substr(0, path.rfind('.'));
  json want = read_json(stem + ".json");
  if (file.ends_with(".safetensors")) return check_safetensors(path, want);
  safetensors::File tensors = safetensors::File::open(stem + ".safetensors");
  return Check(&tensors).value(pickle::load(path), want["value"], "value");
}

int64_t peak_kilobytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// A file that must be refused: quickly, and without much memory.
std::optional<std::string> check_bad(const std::string& path, bool may_load, std::string& message) {
  constexpr double kSeconds = 1;
  constexpr int64_t kKilobytes = 32 << 10;
  auto begin = std::chrono::steady_clock::now();
  int64_t before = peak_kilobytes();
  bool refused = false;
  try {
    if (path.ends_with(".safetensors"))
      load_tensors(path);
    else
      pickle::load(path);
  } catch (const Error& e) {
    refused = true;
    message = e.what();
  }
  if (!refused && !may_load) return "it was not refused";
  if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > kSeconds)
    return "it took more than a second";
  if (peak_kilobytes() - before > kKilobytes) return "it took more than 32 MB";
  return std::nullopt;
}

int verify_checkpoints(const std::string& folder, bool as_json) {
  Counter count(as_json);
  for (const json& item : read_json(folder + "/good/index.json")) {
    std::string file = item["file"].get<std::string>();
    count.run("good/" + file, [&](std::string&) { return check_good(folder, file); });
  }
  for (const json& item : read_json(folder + "/bad/index.json")) {
    std::string file = item["file"].get<std::string>();
    bool may_load = item["expected"].get<std::string>() != "refuse";
    count.run("bad/" + file, [&](std::string& note) { return check_bad(folder + "/bad/" + file, may_load, note); });
  }
  return count.finish();
}

}  // namespace

void add_verify_checkpoints(CLI::App& verify) {
  auto* sub = verify.add_subcommand(
      "checkpoints",
      "Checkpoints and safetensors: those of good/ must be equal to their JSON, those of bad/ be refused");
  auto folder = std::make_shared<std::string>();
  auto as_json = std::make_shared<bool>(false);
  sub->add_option("folder", *folder, "Folder with good/index.json and bad/index.json")->required();
  sub->add_flag("--json", *as_json, "One line of JSON");
  sub->callback([folder, as_json] {
    if (int status = verify_checkpoints(*folder, *as_json)) throw CLI::RuntimeError(status);
  });
}

}  // namespace brasa::tool
