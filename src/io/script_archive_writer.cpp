#include <algorithm>
#include <map>
#include <tuple>

#include <brasa/brasa.h>
#include <brasa/pickle.h>

#include "io/pickler.h"
#include "io/tensors.h"
#include "io/zip.h"
#include "support/error.h"

// LibTorch's archives: a checkpoint whose value is an object of a TorchScript class, with the code that declares the attributes' types. Every
// object has a class of its own, as in LibTorch's.
namespace brasa::io {
namespace {

using pickle::Value;
using Kind = Value::Kind;

// What a text of an archive says (tensor/archive.cpp).
Value value_of(const serialize::InputArchive& archive, const std::string& name) {
  autograd::IValue v;
  archive.read(name, v);
  if (v.isInt()) return v.toInt();
  if (v.isDouble()) return v.toDouble();
  if (v.isBool()) return v.toBool();
  return v.toStringRef();
}

// Names with dots as objects in objects.
struct Tree {
  std::map<std::string, Tree> parts;
  std::map<std::string, Value> leaves;

  Tree& part(std::string_view name) {
    size_t dot = name.find('.');
    Tree& first = parts[std::string(name.substr(0, dot))];
    return dot == name.npos ? first : first.part(name.substr(dot + 1));
  }
  void put(const std::string& name, Value value) {
    size_t dot = name.rfind('.');
    Tree& within = dot == name.npos ? *this : part(std::string_view(name).substr(0, dot));
    within.leaves.emplace(name.substr(dot == name.npos ? 0 : dot + 1), std::move(value));
  }
  // `prefix`: what this tree is named, with a dot.
  Value object(const serialize::Order& order, const std::string& prefix = "") const {
    std::vector<std::tuple<size_t, std::string, Value>> placed;
    for (const auto& [name, value] : leaves) placed.emplace_back(order.place(prefix + name), name, value);
    for (const auto& [name, tree] : parts) {
      BRASA_CHECK(!leaves.contains(name), "archive: '", name, "' is a value and holds others, too");
      placed.emplace_back(order.place(prefix + name), name, tree.object(order, prefix + name + "."));
    }
    std::stable_sort(placed.begin(), placed.end(),
                     [](const auto& a, const auto& b) { return std::get<size_t>(a) < std::get<size_t>(b); });
    Value::Pairs out;
    for (auto& [place, name, value] : placed) out.emplace_back(std::move(name), std::move(value));
    return Value::object("", std::move(out));
  }
};

Value object_of(const serialize::Contents& contents) {
  Tree tree;
  for (const std::string& name : contents.parts) tree.part(name);
  for (const auto& [name, tensor] : contents.tensors) {
    Tensor t = tensor.detach();
    tree.put(name, contents.parameters.contains(name) ? t.set_requires_grad(true) : t);
  }
  serialize::InputArchive archive(contents);
  for (const auto& [name, text] : contents.texts) tree.put(name, value_of(archive, name));
  return tree.object(contents.order);
}

std::string quoted(const std::string& name) {
  std::string out = "\"";
  for (char c : name) {
    BRASA_CHECK(c != '\n' && c != '\0', "archive: a name with a line's end has no form in LibTorch's archives");
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// Gives objects their classes.
class Classes {
 public:
  Value declared(const Value& object) {
    std::string in = count_ == 0 ? "__torch__" : str("__torch__.___torch_mangle_", count_ - 1);
    size_t place = count_++;
    std::string parameters, buffers, types;
    Value::Pairs attributes;
    for (const auto& [key, value] : object.pairs()) {
      Value v = value.kind() == Kind::Object ? declared(value) : value;
      std::string name = quoted(key.text());
      if (v.is_tensor()) (v.to_tensor().requires_grad() ? parameters : buffers) += name + ", ";
      types += str("  __annotations__[", name, "] = ", type_of(v), "\n");
      attributes.emplace_back(key, std::move(v));
    }
    code_[place] = {in, str("class Module(Module):\n  __parameters__ = [", parameters, "]\n  __buffers__ = [", buffers,
                            "]\n  __annotations__ = []\n", types)};
    return Value::object(in + ".Module", std::move(attributes));
  }
  void write(ZipWriter& zip) const {
    for (const auto& [place, file] : code_) {
      std::string path = file.first;
      for (char& c : path)
        if (c == '.') c = '/';
      zip.add(str("archive/code/", path, ".py"), file.second);
    }
  }

 private:
  static std::string type_of(const Value& v) {
    switch (v.kind()) {
      case Kind::Object: return v.text();
      case Kind::Tensor: return "Tensor";
      case Kind::List: return "List[Tensor]";
      case Kind::Tuple: return "Tuple[float, float]";
      case Kind::Int: return "int";
      case Kind::Float: return "float";
      case Kind::Bool: return "bool";
      case Kind::String: return "str";
      case Kind::None: return "NoneType";
      default: fail(str("archive: a ", v.kind_name(), " has no form in LibTorch's archives"));
    }
  }

  size_t count_ = 0;
  std::map<size_t, std::pair<std::string, std::string>> code_;  // module and text
};

}  // namespace

void write_script_archive(const serialize::Contents& contents, const std::string& target,
                          const std::function<void(const void*, size_t)>& sink) {
  for (const auto& [name, tensor] : contents.tensors) {
    auto dtype = stored_dtype(brasa::name(tensor.scalar_type()));
    BRASA_CHECK(dtype && !dtype->storage.empty() && tensor.layout() == kStrided, target, ": '", name, "' is a ",
                tensor.layout() == kStrided ? "" : "sparse ", "tensor of ", brasa::name(tensor.scalar_type()),
                ", for which LibTorch's archives have no form");
  }
  Classes classes;
  Value root = classes.declared(is_optimizer(contents) ? libtorch_optimizer(contents, target) : object_of(contents));
  ZipWriter zip(sink);
  Pickler pickler(/*script=*/true);
  add_checkpoint(zip, pickler, root);
  classes.write(zip);
  zip.add("archive/constants.pkl", std::string_view("\x80\x02).", 4));
  zip.finish();
}

}  // namespace brasa::io
