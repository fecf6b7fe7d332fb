#include <algorithm>
#include <array>

#include "io/unpickler.h"
#include "support/error.h"

// The classes and functions that a checkpoint may name, and what a call of each builds. Nothing else that a file names has a meaning here.
namespace brasa::io {

using pickle::Value;

namespace {

constexpr std::array<std::string_view, 27> kKnown{
    "collections.OrderedDict",
    "collections.Counter",
    "builtins.set",
    "__builtin__.set",
    "builtins.complex",
    "__builtin__.complex",
    "builtins.bytearray",
    "__builtin__.bytearray",
    "_codecs.encode",
    "torch.serialization._get_layout",
    "torch.Size",
    "torch.device",
    "torch.Tensor",
    "torch.nn.parameter.Parameter",
    "torch.storage.UntypedStorage",
    "torch.UntypedStorage",
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_qtensor",
    "torch._utils._rebuild_sparse_tensor",
    "torch._utils._rebuild_device_tensor_from_cpu_tensor",
    "torch._utils._rebuild_meta_tensor_no_storage",
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch._tensor._rebuild_from_type_v2",
};
constexpr std::array<std::string_view, 5> kQuantization{"per_tensor_affine", "per_tensor_symmetric",
                                                        "per_channel_affine", "per_channel_symmetric",
                                                        "per_channel_affine_float_qparams"};
// Of TorchScript's pickles: lists of one type, and a value with the name of its type.
constexpr std::string_view kTypeTag = "torch.jit._pickle.restore_type_tag";

bool starts(std::string_view name, std::string_view prefix) { return name.starts_with(prefix); }
bool is_in(const auto& list, std::string_view name) { return std::find(list.begin(), list.end(), name) != list.end(); }
// The name that PyTorch itself has, behind "torch.".
bool is_torch(std::string_view full, auto is_known) { return starts(full, "torch.") && is_known(full.substr(6)); }
std::optional<Value::Kind> element_of_script_list(std::string_view name) {
  for (const auto& [function, element] : kScriptLists)
    if (function == name) return element;
  return std::nullopt;
}
bool names_scheme(std::string_view name) { return is_in(kQuantization, name); }

// "torch.FloatStorage", "torch.cuda.FloatStorage".
bool names_storage(std::string_view name) {
  return starts(name, "torch.") && stored_dtype_of_storage(name.substr(name.rfind('.') + 1));
}

// The numbers below 256 that UTF-8 has as one byte or two, which is how protocol 2 writes bytes.
std::string latin1_of(const std::string& utf8, bool& fits) {
  std::string out;
  for (size_t i = 0; i < utf8.size(); ++i) {
    auto c = static_cast<unsigned char>(utf8[i]);
    if (c >= 0xc2 && c <= 0xc3 && i + 1 < utf8.size())
      out += static_cast<char>((c & 3) << 6 | (utf8[++i] & 0x3f));
    else if (c < 0x80)
      out += utf8[i];
    else
      fits = false;
  }
  return out;
}

}  // namespace

bool Unpickler::known(const std::string& name) const {
  return is_in(kKnown, name) || name == kTypeTag || element_of_script_list(name) || names_storage(name) ||
         is_torch(name, names_dtype) || is_torch(name, names_scheme) ||
         (options_.objects && starts(name, "__torch__."));
}

void Unpickler::push_global(const std::string& module, const std::string& name) {
  std::string full = module + "." + name;
  if (!known(full)) error(str("it names '", full, "', which is not among what a checkpoint may name"));
  if (is_torch(full, names_dtype)) return push(Value::dtype(name));
  if (is_torch(full, names_scheme)) return push(Value::constant(name));
  Node* n = make(Type::Global);
  n->leaf = full;
  push(n);
}

const std::string& Unpickler::string_of(const Node* n, const char* what) const {
  if (n->type != Type::Leaf || !n->leaf.is_string()) error(str(what, " is no string"));
  return n->leaf.text();
}
int64_t Unpickler::int_of(const Node* n, const char* what) const {
  if (n->type != Type::Leaf || n->leaf.kind() != Value::Kind::Int) error(str(what, " is no integer of 64 bits"));
  return n->leaf.to_int();
}
bool Unpickler::bool_of(const Node* n, const char* what) const {
  if (n->type != Type::Leaf || n->leaf.kind() != Value::Kind::Bool) error(str(what, " is no bool"));
  return n->leaf.to_bool();
}
std::vector<int64_t> Unpickler::ints_of(const Node* n, const char* what) const {
  if (n->type != Type::Tuple && n->type != Type::List && n->leaf.kind() != Value::Kind::Size)
    error(str(what, " are no tuple"));
  std::vector<int64_t> out;
  if (n->type == Type::Leaf)
    for (const Value& v : n->leaf.items()) out.push_back(v.to_int());
  for (const Node* item : n->items) out.push_back(int_of(item, what));
  return out;
}

Unpickler::Node* Unpickler::call(Node* function, Node* arguments) {
  if (function->type != Type::Global) error("a call of what is no function");
  if (arguments->type != Type::Tuple) error("a call without a tuple of arguments");
  return call(function->leaf.text(), arguments->items);
}

Unpickler::Node* Unpickler::call(const std::string& name, Arguments a) {
  std::string_view last = std::string_view(name).substr(name.rfind('.') + 1);
  auto refuse = [&](const char* why) { error(str(why, " for '", name, "'")); };
  auto takes = [&](size_t least, size_t most) {
    if (a.size() < least || a.size() > most) error(str(a.size(), " arguments for '", name, "'"));
  };
  if (starts(name, "__torch__.")) {
    takes(0, 0);
    Node* n = make(Type::Object);
    n->leaf = name;
    return n;
  }
  if (starts(name, "torch.jit._pickle.")) {
    takes(1, 2);
    if (auto element = element_of_script_list(name)) {
      if (a[0]->type != Type::List) refuse("no list");
      a[0]->element = *element;
    }
    return a[0];
  }
  if (last == "OrderedDict") {
    takes(0, 1);
    Node* n = make(Type::OrderedDict);
    if (a.size() == 1) {
      if (a[0]->type != Type::List) refuse("no list of pairs");
      for (Node* pair : a[0]->items) {
        if (pair->items.size() != 2) refuse("no pair");
        set_items(n, pair->items);
      }
    }
    return n;
  }
  if (last == "Counter") {
    takes(0, 1);
    Node* n = make(Type::Counter);
    if (a.size() == 1) {
      if (a[0]->type != Type::Dict) refuse("no dictionary");
      n->items = a[0]->items;
    }
    return n;
  }
  if (last == "set") {
    takes(0, 1);
    Node* n = make(Type::Set);
    if (a.size() == 1) {
      if (a[0]->type != Type::List && a[0]->type != Type::Tuple) refuse("no list");
      n->items = a[0]->items;
    }
    return n;
  }
  if (last == "complex") {
    takes(0, 2);
    double parts[2] = {};
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i]->type != Type::Leaf ||
          (a[i]->leaf.kind() != Value::Kind::Float && a[i]->leaf.kind() != Value::Kind::Int))
        refuse("no number");
      parts[i] = a[i]->leaf.to_double();
    }
    return leaf(std::complex<double>(parts[0], parts[1]));
  }
  if (last == "encode" || last == "bytearray") {
    takes(0, 2);
    if (a.empty()) return leaf(Value::bytes(""));
    if (a[0]->type == Type::Leaf && a[0]->leaf.kind() == Value::Kind::Bytes) return a[0];
    const std::string& text = string_of(a[0], "a text of bytes");
    if (last == "bytearray" && a.size() == 1) refuse("a text without its encoding");
    std::string encoding = a.size() == 2 ? string_of(a[1], "an encoding") : "utf-8";
    if (encoding == "utf-8") return leaf(Value::bytes(text));
    if (encoding != "latin1") refuse("an encoding other than latin1 and utf-8");
    bool fits = true;
    std::string bytes = latin1_of(text, fits);
    if (!fits) refuse("characters beyond latin1");
    return leaf(Value::bytes(std::move(bytes)));
  }
  if (last == "Size") {
    takes(0, 1);
    return leaf(Value::size(a.empty() ? std::vector<int64_t>() : ints_of(a[0], "sizes")));
  }
  if (last == "device") {
    takes(1, 2);
    std::string device = string_of(a[0], "a device");
    if (a.size() == 2) device += str(":", int_of(a[1], "a device's index"));
    try {
      static_cast<void>(Device(device));
    } catch (const Error& e) {
      error(e.what());
    }
    return leaf(Value::device(std::move(device)));
  }
  if (last == "_get_layout") {
    takes(1, 1);
    std::string layout = string_of(a[0], "a layout");
    if (!is_torch(layout, is_layout)) refuse("an unknown layout");
    return leaf(Value::constant(layout.substr(6)));
  }
  if (last == "_rebuild_from_type_v2") {
    takes(3, 4);
    if (a[1]->type != Type::Global) refuse("no class");
    const std::string& type = a[1]->leaf.text();
    if (type != "torch.Tensor" && type != "torch.nn.parameter.Parameter") refuse("a class that is no tensor");
    return call(a[0], a[2]);
  }
  if (Node* n = tensor(name, a)) return n;
  error(str("'", name, "' cannot be called"));
}

}  // namespace brasa::io
