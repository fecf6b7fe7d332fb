#include <unordered_map>

#include <brasa/brasa.h>
#include <brasa/containers.h>
#include <brasa/pickle.h>
#include <brasa/serialize.h>

#include "io/pickler.h"
#include "io/zip.h"
#include "support/error.h"
#include "support/fresh_stack.h"

// LibTorch's values from those of a checkpoint, and back. What was shared stays shared.
namespace brasa {
namespace {

using pickle::Value;
using Kind = Value::Kind;
using Tag = IValue::Tag;

constexpr int kMaxDepth = 1000;

Tag tag_of(Kind element) {
  switch (element) {
    case Kind::Int: return Tag::Int;
    case Kind::Float: return Tag::Double;
    case Kind::Bool: return Tag::Bool;
    case Kind::Tensor: return Tag::Tensor;
    default: return Tag::None;
  }
}
Kind kind_of(Tag element) {
  for (Kind k : {Kind::Int, Kind::Float, Kind::Bool, Kind::Tensor})
    if (tag_of(k) == element) return k;
  return Kind::None;
}

class FromCheckpoint {
 public:
  IValue value(const Value& v) {
    if (!v.identity()) return made(v);
    auto known = made_.find(v.identity());
    if (known != made_.end()) return known->second;
    return made_.emplace(v.identity(), made(v)).first->second;
  }

 private:
  std::vector<IValue> items(const Value& v) {
    std::vector<IValue> out;
    for (const Value& item : v.items()) out.push_back(value(item));
    return out;
  }
  IValue made(const Value& v) {
    switch (v.kind()) {
      case Kind::None: return {};
      case Kind::Bool: return v.to_bool();
      case Kind::Int: return v.to_int();
      case Kind::Float: return v.to_double();
      case Kind::Complex: return v.to_complex();
      case Kind::String:
      case Kind::Bytes: return v.text();
      case Kind::Device: return Device(v.text());
      case Kind::Tensor: return v.to_tensor();
      case Kind::Tuple: return ivalue::Tuple::create(items(v));
      case Kind::Size:
      case Kind::List: {
        auto out = std::make_shared<ivalue::ListItems>();
        out->of = v.kind() == Kind::Size ? Tag::Int : tag_of(v.element_kind());
        out->items = items(v);
        return IValue(std::move(out));
      }
      case Kind::Dict:
      case Kind::OrderedDict:
      case Kind::Counter: {
        Dict<IValue, IValue> out;
        for (const auto& [key, item] : v.pairs()) {
          IValue k = value(key);
          out.insert_or_assign(k, value(item));
        }
        return out;
      }
      case Kind::DType:
        if (auto dtype = dtype_of(v.text())) return *dtype;
        break;
      case Kind::Object:
        fail(str("pickle_load: an object of class ", v.text(),
                 "; TorchScript's classes are read by load and load_tensors"));
      default: break;
    }
    fail(str("pickle_load: a ", v.kind_name(), v.kind() == Kind::DType ? " " + v.text() : "",
             " has no form as an IValue"));
  }

  std::unordered_map<const void*, IValue> made_;
};

class ToCheckpoint {
 public:
  Value value(const IValue& v, int depth = 0) {
    BRASA_CHECK(depth <= kMaxDepth, "pickle_save: containers nested deeper than ", kMaxDepth);
    const void* place = v.identity();
    if (!place) return made(v, depth);
    auto known = made_.find(place);
    if (known != made_.end()) return known->second;
    return made_.emplace(place, with_room([&] { return made(v, depth); })).first->second;
  }

 private:
  Value::Items items(const std::vector<IValue>& values, int depth) {
    Value::Items out;
    for (const IValue& v : values) out.push_back(value(v, depth + 1));
    return out;
  }
  Value made(const IValue& v, int depth) {
    switch (v.tag()) {
      case Tag::None: return {};
      case Tag::Double: return v.toDouble();
      case Tag::Int: return v.toInt();
      case Tag::Bool: return v.toBool();
      case Tag::String: return v.toStringRef();
      case Tag::ComplexDouble: return v.toComplexDouble();
      case Tag::Device: return v.toDevice();
      case Tag::Tensor: BRASA_CHECK(v.toTensor().defined(), "pickle_save: a tensor is undefined"); return v.toTensor();
      case Tag::Tuple: return Value::tuple(items(v.toTupleRef().elements(), depth));
      case Tag::GenericList: return Value::list_of(kind_of(v.toList().element_tag()), items(v.toListRef(), depth));
      case Tag::GenericDict: {
        Value::Pairs out;
        for (const auto& entry : v.toGenericDict()) {
          Value key = value(entry.key(), depth + 1);
          out.emplace_back(key, value(entry.value(), depth + 1));
        }
        return Value::dict(std::move(out));
      }
    }
    return {};
  }

  std::unordered_map<const void*, Value> made_;
};

}  // namespace

IValue pickle_load(const std::vector<char>& data) {
  return FromCheckpoint().value(pickle::parse(std::as_bytes(std::span(data)), "pickle_load"));
}

std::vector<char> pickle_save(const IValue& value) {
  std::vector<char> out;
  io::ZipWriter zip([&](const void* data, size_t size) {
    const char* bytes = static_cast<const char*>(data);
    out.insert(out.end(), bytes, bytes + size);
  });
  io::Pickler pickler(/*script=*/true);
  add_checkpoint(zip, pickler, ToCheckpoint().value(value));
  zip.finish();
  return out;
}

}  // namespace brasa
