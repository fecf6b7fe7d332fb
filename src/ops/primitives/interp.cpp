#include "ops/primitives/interp.h"

#include <cstring>
#include <limits>

#include "support/error.h"
#include "support/half.h"

namespace brasa::ops {
namespace {

template <class T>
T load(const Array& a, int64_t i) {
  T v;
  std::memcpy(&v, a.data.data() + i * sizeof(T), sizeof(T));
  return v;
}
template <class T>
void store(Array& a, int64_t i, T v) {
  std::memcpy(a.data.data() + i * sizeof(T), &v, sizeof(T));
}

}  // namespace

int64_t Array::numel() const {
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  return n;
}

Array make_array(DType dtype, std::vector<int64_t> shape) {
  Array a{dtype, std::move(shape), {}};
  a.data.resize(a.numel() * size_of(dtype));
  return a;
}

double get(const Array& a, int64_t i) {
  BRASA_CHECK(!is_complex(a.dtype), "expected a real number, got ", name(a.dtype));
  switch (a.dtype) {
    case DType::Float32: return load<float>(a, i);
    case DType::Float64: return load<double>(a, i);
    case DType::Float16: return half_to_float(load<uint16_t>(a, i));
    case DType::BFloat16: return bfloat16_to_float(load<uint16_t>(a, i));
    default: return static_cast<double>(get_int(a, i));
  }
}

int64_t get_int(const Array& a, int64_t i) {
  switch (a.dtype) {
    case DType::UInt8:
    case DType::Bool: return load<uint8_t>(a, i);
    case DType::Int8: return load<int8_t>(a, i);
    case DType::Int16: return load<int16_t>(a, i);
    case DType::Int32: return load<int32_t>(a, i);
    case DType::Int64: return load<int64_t>(a, i);
    default: {
      double v = get(a, i);
      // Truncation; what does not fit (and NaN) becomes the smallest number, as x86 converts.
      if (!(v >= -0x1p63 && v < 0x1p63)) return std::numeric_limits<int64_t>::min();
      return static_cast<int64_t>(v);
    }
  }
}

void set(Array& a, int64_t i, double v) {
  if (is_complex(a.dtype)) return set_complex(a, i, v);
  switch (a.dtype) {
    case DType::Float32: return store(a, i, static_cast<float>(v));
    case DType::Float64: return store(a, i, v);
    case DType::Float16: return store(a, i, double_to_half(v));
    case DType::BFloat16: return store(a, i, double_to_bfloat16(v));
    case DType::Bool: return store<uint8_t>(a, i, v != 0);
    default: {
      Array one = make_array(DType::Float64, {1});
      store(one, 0, v);
      return set_int(a, i, get_int(one, 0));
    }
  }
}

void set_int(Array& a, int64_t i, int64_t v) {
  if (is_complex(a.dtype)) return set_complex(a, i, static_cast<double>(v));
  switch (a.dtype) {
    case DType::UInt8: return store(a, i, static_cast<uint8_t>(v));
    case DType::Int8: return store(a, i, static_cast<int8_t>(v));
    case DType::Int16: return store(a, i, static_cast<int16_t>(v));
    case DType::Int32: return store(a, i, static_cast<int32_t>(v));
    case DType::Int64: return store(a, i, v);
    case DType::Bool: return store<uint8_t>(a, i, v != 0);
    case DType::Float32: return store(a, i, static_cast<float>(v));
    default: return set(a, i, static_cast<double>(v));
  }
}

std::complex<double> get_complex(const Array& a, int64_t i) {
  switch (a.dtype) {
    case DType::Complex32:
      return {half_to_float(load<uint16_t>(a, 2 * i)), half_to_float(load<uint16_t>(a, 2 * i + 1))};
    case DType::Complex64: return {load<float>(a, 2 * i), load<float>(a, 2 * i + 1)};
    case DType::Complex128: return {load<double>(a, 2 * i), load<double>(a, 2 * i + 1)};
    default: return is_integral(a.dtype, true) ? static_cast<double>(get_int(a, i)) : get(a, i);
  }
}

void set_complex(Array& a, int64_t i, std::complex<double> v) {
  switch (a.dtype) {
    case DType::Complex32:
      store(a, 2 * i, double_to_half(v.real()));
      return store(a, 2 * i + 1, double_to_half(v.imag()));
    case DType::Complex64:
      store(a, 2 * i, static_cast<float>(v.real()));
      return store(a, 2 * i + 1, static_cast<float>(v.imag()));
    case DType::Complex128: store(a, 2 * i, v.real()); return store(a, 2 * i + 1, v.imag());
    case DType::Bool: return set_int(a, i, v != 0.0);
    default: return set(a, i, v.real());
  }
}

void copy_element(Array& a, int64_t i, const Array& b, int64_t j) {
  BRASA_ASSERT(a.dtype == b.dtype && i < a.numel() && j < b.numel());
  int64_t n = size_of(a.dtype);
  std::memcpy(a.data.data() + i * n, b.data.data() + j * n, n);
}

std::vector<int64_t> constants(const std::vector<Expr>& exprs) {
  std::vector<int64_t> out;
  for (Expr e : exprs) out.push_back(e.constant());
  return out;
}
std::vector<int64_t> int_args(const Node& n, size_t arg) { return constants(n.arg<std::vector<Expr>>(arg)); }

std::vector<int64_t> row_major(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t run = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = run;
    run *= shape[i];
  }
  return strides;
}

bool next_index(std::vector<int64_t>& index, const std::vector<int64_t>& shape) {
  for (size_t d = index.size(); d-- > 0;) {
    if (++index[d] < shape[d]) return true;
    index[d] = 0;
  }
  return false;
}

std::vector<int64_t> result_shape(const Node& n, size_t i) { return constants(n.types[i].shape); }
Array result_array(const Node& n, size_t i) { return make_array(n.types[i].dtype, result_shape(n, i)); }

void set_literal(Array& a, int64_t i, const Arg& literal) {
  if (auto* e = literal.get_if<Expr>())
    set_int(a, i, e->constant());
  else if (auto* b = literal.get_if<bool>())
    set_int(a, i, *b);
  else if (auto* c = literal.get_if<std::complex<double>>())
    set_complex(a, i, *c);
  else
    set(a, i, literal.get<double>());
}

}  // namespace brasa::ops
