#include "io/stored_dtype.h"

namespace brasa::io {
namespace {

constexpr StoredDType kStored[] = {
    {"float64", "DoubleStorage", DType::Float64},
    {"float32", "FloatStorage", DType::Float32},
    {"float16", "HalfStorage", DType::Float16},
    {"bfloat16", "BFloat16Storage", DType::BFloat16},
    {"int64", "LongStorage", DType::Int64},
    {"int32", "IntStorage", DType::Int32},
    {"int16", "ShortStorage", DType::Int16},
    {"int8", "CharStorage", DType::Int8},
    {"uint8", "ByteStorage", DType::UInt8},
    {"bool", "BoolStorage", DType::Bool},
    {"complex128", "ComplexDoubleStorage", DType::Complex128},
    {"complex64", "ComplexFloatStorage", DType::Complex64},
    {"complex32", "", DType::Complex32},
    {"uint64", "", DType::UInt64},
    {"float8_e4m3fn", "", DType::Float8_e4m3fn},
    {"float8_e5m2", "", DType::Float8_e5m2},
    // Brasa has not these.
    {"uint16", "", DType::Int16},
    {"uint32", "", DType::Int32},
    {"float8_e4m3fnuz", "", DType::UInt8},
    {"float8_e5m2fnuz", "", DType::UInt8},
    {"float8_e8m0fnu", "", DType::UInt8},
};

}  // namespace

std::optional<StoredDType> stored_dtype(std::string_view name) {
  for (const StoredDType& s : kStored)
    if (s.name == name) return s;
  return std::nullopt;
}

std::optional<StoredDType> stored_dtype_of_storage(std::string_view storage_class) {
  for (const StoredDType& s : kStored)
    if (!storage_class.empty() && s.storage == storage_class) return s;
  return std::nullopt;
}

}  // namespace brasa::io
