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

#define BRASA_IVALUE(T, Result, name, getter)                                  \
  IValue::IValue(T v) : value_(std::make_shared<const Value>(std::move(v))) {} \
  Result IValue::getter() const { return as<T>(value_.get(), name); }
BRASA_IVALUE(double, double, "Double", toDouble)
BRASA_IVALUE(int64_t, int64_t, "Int", toInt)
BRASA_IVALUE(bool, bool, "Bool", toBool)
BRASA_IVALUE(std::string, const std::string&, "String", toStringRef)
BRASA_IVALUE(Tensor, const Tensor&, "Tensor", toTensor)
BRASA_IVALUE(std::vector<int64_t>, const std::vector<int64_t>&, "IntList", toIntVector)
BRASA_IVALUE(std::vector<double>, const std::vector<double>&, "DoubleList", toDoubleVector)
BRASA_IVALUE(std::vector<Tensor>, const std::vector<Tensor>&, "TensorList", toTensorVector)
#undef BRASA_IVALUE
IValue::IValue(int v) : IValue(int64_t{v}) {}
IValue::IValue(const char* v) : IValue(std::string(v)) {}

bool IValue::isDouble() const { return value_ && value_->index() == 0; }
bool IValue::isInt() const { return value_ && value_->index() == 1; }
bool IValue::isBool() const { return value_ && value_->index() == 2; }
bool IValue::isString() const { return value_ && value_->index() == 3; }
bool IValue::isTensor() const { return value_ && value_->index() == 4; }

}  // namespace brasa::autograd
