#include <array>

#include <brasa/brasa.h>
#include <brasa/pickle.h>

#include "support/error.h"
#include "support/fresh_stack.h"

namespace brasa::pickle {

struct Value::Attributes {
  std::string type;
  Pairs pairs;
};

namespace {

// Containers nest as deep as a program makes them, and go one inside the other.
template <class T>
std::shared_ptr<const T> shared(T v) {
  return {new T(std::move(v)), [](const T* held) { with_room([held] { delete held; }); }};
}

}  // namespace

Value::Value(Kind kind, Items v) : kind_(kind), held_(shared(std::move(v))) {}
Value::Value(Kind kind, Pairs v) : kind_(kind), held_(shared(std::move(v))) {}
Value::Value(const Tensor& v) : Value(stored({v, std::string(name(v.scalar_type())), false})) {}
Value::Value(brasa::DType v) : Value(dtype(std::string(name(v)))) {}
Value::Value(const brasa::Device& v) : Value(device(v.str())) {}

Value Value::list_of(Kind element, Items v) {
  Value out = list(std::move(v));
  out.element_ = element;
  return out;
}
Value Value::size(IntArrayRef sizes) { return {Kind::Size, Items(sizes.begin(), sizes.end())}; }
Value Value::stored(StoredTensor v) {
  Value out;
  out.kind_ = Kind::Tensor;
  out.held_ = std::make_shared<const StoredTensor>(std::move(v));
  return out;
}
Value Value::storage(StoredTensor v) {
  BRASA_CHECK(v.tensor.dim() == 1, "checkpoint: a storage has one dimension, not ", v.tensor.dim());
  Value out = stored(std::move(v));
  out.kind_ = Kind::Storage;
  return out;
}
Value Value::parameter(const Tensor& v) { return stored({v, std::string(name(v.scalar_type())), true}); }
Value Value::object(std::string type, Pairs attributes) {
  Value out;
  out.kind_ = Kind::Object;
  out.held_ = shared(Attributes{std::move(type), std::move(attributes)});
  return out;
}

std::string_view Value::kind_name() const {
  static constexpr std::array kNames{"None",  "bool",  "int",         "int",      "float",  "complex", "str",
                                     "bytes", "dtype", "device",      "constant", "list",   "tuple",   "set",
                                     "Size",  "dict",  "OrderedDict", "Counter",  "tensor", "Storage", "object"};
  return kNames[static_cast<size_t>(kind_)];
}

void Value::wrong_kind(const char* wanted) const {
  fail(str("checkpoint: the value is a ", kind_name(), ", expected a ", wanted));
}

bool Value::to_bool() const {
  if (kind_ != Kind::Bool) wrong_kind("bool");
  return std::get<bool>(held_);
}
int64_t Value::to_int() const {
  if (kind_ != Kind::Int) wrong_kind("int of 64 bits");
  return std::get<int64_t>(held_);
}
double Value::to_double() const {
  if (kind_ == Kind::Int) return static_cast<double>(std::get<int64_t>(held_));
  if (kind_ != Kind::Float) wrong_kind("float");
  return std::get<double>(held_);
}
std::complex<double> Value::to_complex() const {
  if (kind_ != Kind::Complex) return to_double();
  return std::get<std::complex<double>>(held_);
}
const std::string& Value::text() const {
  if (kind_ == Kind::Object) return std::get<std::shared_ptr<const Attributes>>(held_)->type;
  if (auto* p = std::get_if<std::shared_ptr<const std::string>>(&held_)) return **p;
  wrong_kind("str");
}
const Value::Items& Value::items() const {
  if (auto* p = std::get_if<std::shared_ptr<const Items>>(&held_)) return **p;
  wrong_kind("list");
}
const Value::Pairs& Value::pairs() const {
  if (kind_ == Kind::Object) return std::get<std::shared_ptr<const Attributes>>(held_)->pairs;
  if (auto* p = std::get_if<std::shared_ptr<const Pairs>>(&held_)) return **p;
  wrong_kind("dict");
}
const Value::StoredTensor& Value::stored() const {
  if (auto* p = std::get_if<std::shared_ptr<const StoredTensor>>(&held_)) return **p;
  wrong_kind("tensor");
}
const Tensor& Value::to_tensor() const {
  const StoredTensor& s = stored();
  BRASA_CHECK(s.dtype == name(s.tensor.scalar_type()), "checkpoint: a tensor is of dtype ", s.dtype,
              ", which Brasa has not");
  return s.tensor;
}

Tensor Value::StoredTensor::dequantize() const {
  BRASA_CHECK(quantizer, "checkpoint: a tensor of dtype ", dtype, " is not quantised");
  auto along = [&](const Tensor& t) {
    if (!quantizer->axis) return t.reshape({});
    std::vector<int64_t> sizes(static_cast<size_t>(tensor.dim()), 1);
    sizes[static_cast<size_t>(*quantizer->axis)] = -1;
    return t.reshape(sizes);
  };
  return (tensor.to(kInt64) - along(quantizer->zero_point)).to(kFloat32) * along(quantizer->scale).to(kFloat32);
}

const Value* Value::find(std::string_view key) const {
  for (const auto& [k, v] : pairs())
    if (k.is_string() && k.text() == key) return &v;
  return nullptr;
}
const Value& Value::at(std::string_view key) const {
  if (const Value* v = find(key)) return *v;
  std::vector<std::string> keys;
  for (const auto& [k, v] : pairs()) {
    if (keys.size() == 20) break;
    if (k.is_string()) keys.push_back(k.text());
  }
  fail(str("checkpoint: there is no key '", key, "' among the ", pairs().size(), ": ", keys));
}

const void* Value::identity() const {
  return std::visit(
      [](const auto& v) -> const void* {
        if constexpr (requires { v.get(); })
          return v.get();
        else
          return nullptr;
      },
      held_);
}

}  // namespace brasa::pickle
