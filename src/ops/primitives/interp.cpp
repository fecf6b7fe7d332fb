#include "ops/primitives/interp.h"

#include <cstring>
#include <limits>

#include <brasa/elements.h>

#include "support/error.h"

namespace brasa::ops {
namespace {

template <class T>
T load(const Array& a, int64_t i) {
  if constexpr (std::is_same_v<T, bool>) return load<uint8_t>(a, i) != 0;
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
  return visit_dtype(a.dtype, [&](auto type) -> double {
    using T = typename decltype(type)::type;
    if constexpr (std::is_convertible_v<T, double>) return static_cast<double>(load<T>(a, i));
    fail(str("expected a real number, got ", name(a.dtype)));
  });
}

int64_t get_int(const Array& a, int64_t i) {
  return visit_dtype(a.dtype, [&](auto type) -> int64_t {
    using T = typename decltype(type)::type;
    if constexpr (std::is_integral_v<T>) return static_cast<int64_t>(load<T>(a, i));
    return truncated(get(a, i));
  });
}

void set(Array& a, int64_t i, double v) {
  visit_dtype(a.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_same_v<T, bool>) {
      store(a, i, v != 0);
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      store(a, i, v >= 0x1p63 && v < 0x1p64 ? static_cast<uint64_t>(v) : static_cast<uint64_t>(truncated(v)));
    } else if constexpr (std::is_integral_v<T>) {
      store(a, i, static_cast<T>(truncated(v)));
    } else if constexpr (ReducedFloat<T>) {
      store(a, i, T::rounded(v));
    } else {
      store(a, i, T(v));
    }
  });
}

void set_int(Array& a, int64_t i, int64_t v) {
  visit_dtype(a.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_same_v<T, bool>)
      store(a, i, v != 0);
    else if constexpr (std::is_integral_v<T> || std::is_same_v<T, float>)
      store(a, i, static_cast<T>(v));  // rounded once, not through double
    else if constexpr (ReducedFloat<T>)
      store(a, i, T::rounded(static_cast<double>(v)));
    else
      store(a, i, T(static_cast<double>(v)));
  });
}

std::complex<double> get_complex(const Array& a, int64_t i) {
  return visit_dtype(a.dtype, [&](auto type) -> std::complex<double> {
    using T = typename decltype(type)::type;
    if constexpr (std::is_convertible_v<T, double>)
      return static_cast<double>(load<T>(a, i));
    else
      return static_cast<std::complex<double>>(load<T>(a, i));
  });
}

void set_complex(Array& a, int64_t i, std::complex<double> v) {
  visit_dtype(a.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_same_v<T, bool>)
      store(a, i, v != 0.0);
    else if constexpr (std::is_convertible_v<T, double>)
      set(a, i, v.real());
    else
      store(a, i, T(v));
  });
}

void convert_element(Array& a, int64_t i, const Array& b, int64_t j) {
  if (is_complex(b.dtype))
    set_complex(a, i, get_complex(b, j));
  else if (!by_int(b.dtype) || (b.dtype == DType::UInt64 && !by_int(a.dtype)))
    set(a, i, get(b, j));
  else
    set_int(a, i, get_int(b, j));
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
