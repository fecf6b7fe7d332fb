#include "io/stored_dtype.h"

#include <algorithm>
#include <iterator>

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
    {"float4_e2m1fn_x2", "", DType::UInt8},
    {"qint8", "QInt8Storage", DType::Int8},
    {"quint8", "QUInt8Storage", DType::UInt8},
    {"qint32", "QInt32Storage", DType::Int32},
};
// No tensor of a checkpoint is of these.
constexpr std::string_view kOnlyNames[] = {"quint4x2", "quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16",
                                           "uint1",    "uint2",    "uint3",   "uint4",   "uint5",   "uint6", "uint7",
                                           "int1",     "int2",     "int3",    "int4",    "int5",    "int6",  "int7"};

constexpr std::string_view kLayouts[] = {"strided",    "sparse_coo", "sparse_csr", "sparse_csc",
                                         "sparse_bsr", "sparse_bsc", "jagged"};

bool is_in(const auto& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

bool is_layout(std::string_view name) { return is_in(kLayouts, name); }

bool names_dtype(std::string_view name) { return stored_dtype(name) || is_in(kOnlyNames, name); }

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
