#include <algorithm>
#include <unordered_set>

#include "io/unpickler.h"
#include "support/error.h"
#include "support/fresh_stack.h"

// From the unpickler's nodes, which change while it runs and may refer to each other in a circle, to values, which do neither.
namespace brasa::io {

using pickle::Value;

namespace {

constexpr int kMaxDepth = 1000, kMaxKeyDepth = 8;
constexpr uint64_t kKeyBytes = 1 << 20, kKeyBytesPerByte = 64;

}  // namespace

Value Unpickler::value(const std::vector<StorageRef>& storages) {
  values_ = &storages;
  return freeze(result_, 0);
}

const Value& Unpickler::freeze(Node* n, int depth) {
  if (n->state == Node::State::Frozen || n->type == Type::Leaf) return n->leaf;
  if (n->state == Node::State::Freezing) error("a container that contains itself");
  if (depth > kMaxDepth) error(str("containers nested deeper than ", kMaxDepth));
  n->state = Node::State::Freezing;
  n->leaf = with_room([&] { return frozen(n, depth + 1); });
  n->state = Node::State::Frozen;
  return n->leaf;
}

Value Unpickler::frozen(Node* n, int depth) {
  auto items = [&] {
    Value::Items out;
    out.reserve(n->items.size());
    for (Node* item : n->items) out.push_back(freeze(item, depth));
    return out;
  };
  auto pairs = [&] {
    Value::Pairs out;
    out.reserve(n->items.size() / 2);
    std::unordered_map<std::string, size_t> place;
    for (size_t i = 0; i < n->items.size(); i += 2) {
      const Value& key = freeze(n->items[i], depth);
      const Value& value = freeze(n->items[i + 1], depth);
      auto [at, fresh] = place.emplace(key_text(key, 0), out.size());
      if (fresh)
        out.emplace_back(key, value);
      else
        out[at->second].second = value;
    }
    return out;
  };
  switch (n->type) {
    case Type::List: return Value::list_of(n->element, items());
    case Type::Tuple: return Value::tuple(items());
    case Type::Set: {
      Value::Items out;
      std::unordered_set<std::string> there;
      for (const Value& item : items())
        if (there.insert(key_text(item, 0)).second) out.push_back(item);
      return Value::set(std::move(out));
    }
    case Type::Dict: return Value::dict(pairs());
    case Type::OrderedDict: return Value::ordered_dict(pairs());
    case Type::Counter: return Value::counter(pairs());
    case Type::Object: return Value::object(n->leaf.text(), pairs());
    case Type::Tensor: return frozen_tensor(tensors_[n->index], depth);
    case Type::Global: error(str("'", n->leaf.text(), "' by itself is no value"));
    case Type::Storage: return frozen_storage(n->index);
    case Type::Leaf: break;
  }
  return n->leaf;
}

// Equal for equal keys only. Its length is bounded as well: a tuple may hold the same long text again and again.
std::string Unpickler::key_text(const Value& v, int depth) {
  std::string out;
  switch (v.kind()) {
    case Value::Kind::None: out = "n"; break;
    case Value::Kind::Bool: out = str("i", v.to_bool() ? 1 : 0); break;
    case Value::Kind::Int: out = str("i", v.to_int()); break;
    case Value::Kind::Float:
    case Value::Kind::Complex: {
      // In Python 1, 1.0 and 1 + 0j are one key.
      double d = v.to_complex().real(), imaginary = v.to_complex().imag();
      if (imaginary != 0) {
        out = str("c", d, ",", imaginary);
        break;
      }
      bool whole = d > -9e15 && d < 9e15 && d == static_cast<double>(static_cast<int64_t>(d));
      out = whole ? str("i", static_cast<int64_t>(d)) : str("f", d);
      break;
    }
    case Value::Kind::BigInt:
    case Value::Kind::String:
    case Value::Kind::Bytes:
    case Value::Kind::DType:
    case Value::Kind::Device:
    case Value::Kind::Constant:
      out = str(int{static_cast<uint8_t>(v.kind())}, ":", v.text().size(), ":", v.text());
      break;
    case Value::Kind::Tuple:
    case Value::Kind::Size:
      if (depth > kMaxKeyDepth) error("a key that nests too deep");
      out = str("(", v.items().size());
      for (const Value& item : v.items()) out += "," + key_text(item, depth + 1);
      break;
    default: error(str("a ", v.kind_name(), " as a key"));
  }
  key_bytes_ += out.size();
  if (key_bytes_ > kKeyBytes + kKeyBytesPerByte * bytes_.size()) error("keys that are longer than the file");
  return out;
}

}  // namespace brasa::io
