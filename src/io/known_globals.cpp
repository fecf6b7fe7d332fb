#include <algorithm>
#include <array>

#include "io/unpickler.h"
#include "support/error.h"

// The classes and functions that a checkpoint may name, and what a call of each builds. Nothing else that a file names has a meaning here.
namespace brasa::io {

using pickle::Value;

namespace {

constexpr std::array<std::string_view, 22> kKnown{
    "collections.OrderedDict",
    "builtins.set",
    "__builtin__.set",
    "builtins.frozenset",
    "__builtin__.frozenset",
    "builtins.complex",
    "__builtin__.complex",
    "builtins.bytearray",
    "__builtin__.bytearray",
    "_codecs.encode",
    "torch.Size",
    "torch.device",
    "torch.Tensor",
    "torch.nn.parameter.Parameter",
    "torch.storage.UntypedStorage",
    "torch.UntypedStorage",
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch._tensor._rebuild_from_type_v2",
};
// Of TorchScript's pickles: lists of one type, and a value with the name of its type.
constexpr std::array<std::string_view, 5> kScript{
    "torch.jit._pickle.build_intlist",    "torch.jit._pickle.build_doublelist", "torch.jit._pickle.build_boollist",
    "torch.jit._pickle.build_tensorlist", "torch.jit._pickle.restore_type_tag",
};

bool starts(std::string_view name, std::string_view prefix) { return name.starts_with(prefix); }

// "torch.FloatStorage", "torch.cuda.FloatStorage".
bool names_storage(std::string_view name) {
  return starts(name, "torch.") && stored_dtype_of_storage(name.substr(name.rfind('.') + 1));
}
bool names_dtype(std::string_view name) { return starts(name, "torch.") && stored_dtype(name.substr(6)); }

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
  auto is_in = [&](const auto& list) { return std::find(list.begin(), list.end(), name) != list.end(); };
  return is_in(kKnown) || is_in(kScript) || names_storage(name) || names_dtype(name) ||
         (options_.objects && starts(name, "__torch__."));
}

void Unpickler::push_global(const std::string& module, const std::string& name) {
  std::string full = module + "." + name;
  if (!known(full)) error(str("it names '", full, "', which is not among what a checkpoint may name"));
  if (names_dtype(full)) return push(Value::dtype(name));
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
  if (last == "set" || last == "frozenset") {
    takes(0, 1);
    Node* n = make(Type::Set);
    if (a.size() == 1) {
      if (a[0]->type != Type::List && a[0]->type != Type::Tuple) refuse("no list");
      n->items = a[0]->items;
    }
    return n;
  }
  if (last == "complex") {
    takes(2, 2);
    for (Node* part : a)
      if (part->type != Type::Leaf || part->leaf.kind() != Value::Kind::Float) refuse("no float");
    return leaf(std::complex<double>(a[0]->leaf.to_double(), a[1]->leaf.to_double()));
  }
  if (last == "encode" || last == "bytearray") {
    takes(0, 2);
    if (a.empty()) return leaf(Value::bytes(""));
    if (a[0]->type == Type::Leaf && a[0]->leaf.kind() == Value::Kind::Bytes) return a[0];
    if (a.size() != 2 || string_of(a[1], "an encoding") != "latin1") refuse("an encoding other than latin1");
    bool fits = true;
    std::string bytes = latin1_of(string_of(a[0], "a text of bytes"), fits);
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
    return leaf(Value::device(std::move(device)));
  }
  if (last == "_rebuild_from_type_v2") {
    takes(3, 4);
    if (a[1]->type != Type::Global) refuse("no class");
    const std::string& type = a[1]->leaf.text();
    if (type != "torch.Tensor" && type != "torch.nn.parameter.Parameter") refuse("a class that is no tensor");
    return call(a[0], a[2]);
  }
  if (last == "_rebuild_parameter" || last == "_rebuild_parameter_with_state") return parameter(name, a);
  if (last.starts_with("_rebuild_tensor")) return tensor(name, a);
  error(str("'", name, "' cannot be called"));
}

// (storage, offset, sizes, strides[, requires_grad, hooks[, dtype][, metadata]])
Unpickler::Node* Unpickler::tensor(const std::string& name, Arguments a) {
  bool v1 = name.ends_with("_tensor"), v3 = name.ends_with("_v3");
  size_t least = v1 ? 4 : v3 ? 7 : 6;
  if (a.size() < least || a.size() > (v1 ? least : least + 1)) error(str(a.size(), " arguments for '", name, "'"));
  if (a[0]->type != Type::Storage) error("a tensor without a storage");
  // A conjugate or negated view, say.
  if (a.size() > least && !(a.back()->type == Type::Dict && a.back()->items.empty()) &&
      !(a.back()->type == Type::Leaf && a.back()->leaf.is_none()))
    error("a tensor with metadata");
  std::optional<StoredDType> dtype;
  if (v3) {
    if (a[6]->type != Type::Leaf || a[6]->leaf.kind() != Value::Kind::DType) error("a tensor without a dtype");
    dtype = stored_dtype(a[6]->leaf.text());
  } else {
    dtype = storage_dtypes_[a[0]->index];
  }
  if (!dtype) error("a tensor without a dtype");
  Node* n = make(Type::Tensor);
  n->index = static_cast<uint32_t>(tensors_.size());
  tensors_.push_back({a[0]->index,
                      {*dtype, int_of(a[1], "a storage offset"), ints_of(a[2], "sizes"), ints_of(a[3], "strides")},
                      !v1 && bool_of(a[4], "requires_grad"),
                      false});
  return n;
}

// (tensor, requires_grad, hooks[, state])
Unpickler::Node* Unpickler::parameter(const std::string& name, Arguments a) {
  if (a.size() < 3 || a.size() > 4) error(str(a.size(), " arguments for '", name, "'"));
  if (a[0]->type != Type::Tensor) error("a parameter that is no tensor");
  Node* n = make(Type::Tensor);
  n->index = static_cast<uint32_t>(tensors_.size());
  tensors_.push_back(tensors_[a[0]->index]);
  tensors_.back().requires_grad = bool_of(a[1], "requires_grad");
  tensors_.back().parameter = true;
  return n;
}

}  // namespace brasa::io
