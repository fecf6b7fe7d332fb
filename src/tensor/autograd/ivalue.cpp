#include <brasa/autograd.h>

#include <variant>

#include "support/error.h"

namespace brasa::autograd {

struct IValue::Value : std::variant<double, int64_t, bool, std::string, Tensor, std::vector<int64_t>,
                                    std::vector<double>, std::vector<Tensor>> {
  using variant::variant;
};

namespace {

constexpr const char* kNames[] = {"Double", "Int", "Bool", "String", "Tensor", "IntList", "DoubleList", "TensorList"};

template <class T, class V>
const T& as(const V* value, const char* wanted) {
  const T* p = value ? std::get_if<T>(value) : nullptr;
  BRASA_CHECK(p, "Expected ", wanted, " but got ", value ? kNames[value->index()] : "None");
  return *p;
}

}  // namespace

#define BRASA_IVALUE(T) \
  IValue::IValue(T v) : value_(std::make_shared<const Value>(std::move(v))) {}
BRASA_IVALUE(double)
BRASA_IVALUE(int64_t)
BRASA_IVALUE(bool)
BRASA_IVALUE(std::string)
BRASA_IVALUE(Tensor)
BRASA_IVALUE(std::vector<int64_t>)
BRASA_IVALUE(std::vector<double>)
BRASA_IVALUE(std::vector<Tensor>)
#undef BRASA_IVALUE
IValue::IValue(int v) : IValue(int64_t{v}) {}
IValue::IValue(const char* v) : IValue(std::string(v)) {}

bool IValue::isDouble() const { return value_ && value_->index() == 0; }
bool IValue::isInt() const { return value_ && value_->index() == 1; }
bool IValue::isBool() const { return value_ && value_->index() == 2; }
bool IValue::isString() const { return value_ && value_->index() == 3; }
bool IValue::isTensor() const { return value_ && value_->index() == 4; }
double IValue::toDouble() const { return as<double>(value_.get(), "Double"); }
int64_t IValue::toInt() const { return as<int64_t>(value_.get(), "Int"); }
bool IValue::toBool() const { return as<bool>(value_.get(), "Bool"); }
const std::string& IValue::toStringRef() const { return as<std::string>(value_.get(), "String"); }
const Tensor& IValue::toTensor() const { return as<Tensor>(value_.get(), "Tensor"); }
const std::vector<int64_t>& IValue::toIntVector() const { return as<std::vector<int64_t>>(value_.get(), "IntList"); }
const std::vector<double>& IValue::toDoubleVector() const {
  return as<std::vector<double>>(value_.get(), "DoubleList");
}
const std::vector<Tensor>& IValue::toTensorVector() const {
  return as<std::vector<Tensor>>(value_.get(), "TensorList");
}

}  // namespace brasa::autograd
