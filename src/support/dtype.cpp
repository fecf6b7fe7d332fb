#include <brasa/dtype.h>

#include <iterator>

namespace brasa {

std::optional<DType> dtype_of(std::string_view text) {
  for (size_t i = 0; i < std::size(kDTypes); ++i)
    if (!text.empty() && (kDTypes[i].short_name == text || kDTypes[i].name == text)) return static_cast<DType>(i);
  return std::nullopt;
}

DType complex_of(DType t) {
  if (is_complex(t)) return t;
  for (size_t i = 0; i < std::size(kDTypes); ++i)
    if (kDTypes[i].kind == DTypeKind::Complex && kDTypes[i].part == t) return static_cast<DType>(i);
  return DType::Complex64;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_complex(a) || is_complex(b)) {
    DType ra = real_part_of(a), rb = real_part_of(b);
    if (!is_floating(ra)) return b;
    if (!is_floating(rb)) return a;
    return complex_of(promote(ra, rb));
  }
  if (is_floating(a) || is_floating(b)) {
    if (!is_floating(a)) return b;
    if (!is_floating(b)) return a;
    if (is_reduced_floating(a) && is_reduced_floating(b)) return DType::Float32;
    return size_of(a) > size_of(b) ? a : b;
  }
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  // uint8 with a signed type of the same width needs the next wider one.
  if (a == DType::UInt8 || b == DType::UInt8) {
    DType other = a == DType::UInt8 ? b : a;
    return other == DType::Int8 ? DType::Int16 : other;
  }
  return size_of(a) > size_of(b) ? a : b;
}

}  // namespace brasa
