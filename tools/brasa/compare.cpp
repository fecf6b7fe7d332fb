#include "compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>

#include <brasa/elements.h>

namespace brasa::verify {
namespace {

int64_t numel(const Array& a) { return static_cast<int64_t>(a.bytes.size()) / size_of(a.dtype); }

template <class T>
T read(const Array& a, int64_t i) {
  T v;
  std::memcpy(&v, a.bytes.data() + i * static_cast<int64_t>(sizeof v), sizeof v);
  return v;
}

bool by_int(DType t) { return is_integral(t, true); }

int64_t get_int(const Array& a, int64_t i) {
  return visit_dtype(a.dtype, [&](auto type) -> int64_t {
    using T = typename decltype(type)::type;
    if constexpr (std::is_integral_v<T>)
      return static_cast<int64_t>(read<std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>(a, i));
    else
      return 0;
  });
}

}  // namespace

std::complex<double> element(const Array& a, int64_t i) {
  return visit_dtype(a.dtype, [&](auto type) -> std::complex<double> {
    using T = typename decltype(type)::type;
    if constexpr (std::is_same_v<T, bool>)
      return read<uint8_t>(a, i);
    else if constexpr (std::is_convertible_v<T, double>)
      return static_cast<double>(read<T>(a, i));
    else
      return static_cast<std::complex<double>>(read<T>(a, i));
  });
}

namespace {

double get(const Array& a, int64_t i) { return element(a, i).real(); }

std::string number_text(const Array& a, int64_t i) {
  if (by_int(a.dtype)) return fmt::format("{}", get_int(a, i));
  if (!is_complex(a.dtype)) return fmt::format("{}", get(a, i));
  std::complex<double> v = element(a, i);
  return fmt::format("{}{:+}i", v.real(), v.imag());
}

bool close(double a, double b, double tolerance) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= tolerance + tolerance * std::fabs(b);
}
// Of the complex plane: a small part may carry the error of a large one.
bool close(std::complex<double> a, std::complex<double> b, double tolerance) {
  if (std::abs(a - b) <= tolerance + tolerance * std::abs(b)) return true;
  return close(a.real(), b.real(), tolerance) && close(a.imag(), b.imag(), tolerance);
}

std::string type_of(const Array& a) { return fmt::format("{}[{}]", name(a.dtype), fmt::join(a.shape, ", ")); }

std::optional<std::string> differs(const std::string& what, const Array& got, const Array& want, double tolerance) {
  if (got.dtype != want.dtype || got.shape != want.shape)
    return fmt::format("{}: got {}, expected {}", what, type_of(got), type_of(want));
  for (int64_t i = 0; i < numel(want); ++i) {
    bool same = by_int(want.dtype)       ? get_int(got, i) == get_int(want, i)
                : is_complex(want.dtype) ? close(element(got, i), element(want, i), tolerance)
                                         : close(get(got, i), get(want, i), tolerance);
    if (!same)
      return fmt::format("{}: element {} is {}, expected {}{}", what, i, number_text(got, i), number_text(want, i),
                         by_int(want.dtype) ? "" : fmt::format(", tolerance {}", tolerance));
  }
  return std::nullopt;
}

// Dtype, shape, and where the outcome knows them, strides.
std::optional<std::string> differs_in_layout(const std::string& what, const Array& got, const Array& want) {
  if (got.dtype != want.dtype || got.shape != want.shape)
    return fmt::format("{}: got {}, expected {}", what, type_of(got), type_of(want));
  if (numel(want) > 1 && got.strides.size() == want.strides.size() && got.strides != want.strides)
    return fmt::format("{}: strides [{}], expected [{}]", what, fmt::join(got.strides, ", "),
                       fmt::join(want.strides, ", "));
  return std::nullopt;
}

// A result that is a number comes as a tensor without dimensions, in any dtype of the number's category.
Array as_number(const Array& a, DType wanted) {
  if (is_complex(wanted)) {
    std::complex<double> v = element(a, 0);
    Array out{DType::Complex128, {}, std::vector<std::byte>(sizeof v), {}};
    std::memcpy(out.bytes.data(), &v, sizeof v);
    return a.dtype == DType::Complex64 && a.shape.empty() && wanted == DType::Complex128 ? out : a;
  }
  bool fits = a.shape.empty() && (wanted == DType::Float64 ? is_floating(a.dtype)
                                  : wanted == DType::Int64 ? is_integral(a.dtype, false)
                                                           : a.dtype == wanted);
  if (!fits) return a;
  Array out{wanted, {}, std::vector<std::byte>(static_cast<size_t>(size_of(wanted))), {}};
  double real = wanted == DType::Float64 ? get(a, 0) : 0;
  int64_t whole = wanted == DType::Float64 ? 0 : get_int(a, 0);
  std::memcpy(out.bytes.data(), wanted == DType::Float64 ? static_cast<void*>(&real) : &whole, out.bytes.size());
  return out;
}

Array zeros_like(const Array& a) { return {a.dtype, a.shape, std::vector<std::byte>(a.bytes.size()), {}}; }

}  // namespace

std::string describe(const Array& a, int64_t most) {
  std::string s = "[";
  for (int64_t i = 0; i < std::min(numel(a), most); ++i) {
    if (i) s += ", ";
    s += by_int(a.dtype) || is_complex(a.dtype) ? number_text(a, i) : fmt::format("{:.6g}", get(a, i));
  }
  return s + (numel(a) > most ? ", …] " : "] ") + type_of(a);
}

std::optional<std::string> check(const Entry& expected, const Outcome& got, const Card& card) {
  // The coarsest floating type among inputs and outputs decides.
  double values = 0, gradients = 0;
  auto coarsen = [&](const Array& a) {
    DType t = is_complex(a.dtype) ? real_part_of(a.dtype) : a.dtype;
    if (auto it = card.values.find(t); it != card.values.end()) values = std::max(values, it->second);
    if (auto it = card.gradients.find(t); it != card.gradients.end()) gradients = std::max(gradients, it->second);
  };
  for (const Array& t : expected.tensors) coarsen(t);
  for (auto& o : expected.outputs)
    if (o) coarsen(*o);

  if (got.outputs.size() != expected.outputs.size())
    return fmt::format("got {} results, expected {}", got.outputs.size(), expected.outputs.size());
  for (size_t i = 0; i < expected.outputs.size(); ++i) {
    if (!expected.outputs[i]) continue;
    const Array& want = *expected.outputs[i];
    // Which of several equal elements an index names is open.
    if (card.ambiguous && i > 0 && want.dtype == DType::Int64) continue;
    std::string what = fmt::format("result {}", i);
    if (!got.outputs[i]) return what + " is undefined";
    if (i < expected.numbers.size() && expected.numbers[i]) {
      if (auto d = differs(what, as_number(*got.outputs[i], want.dtype), want, values)) return d;
      continue;
    }
    if (auto d = expected.metadata_only ? differs_in_layout(what, *got.outputs[i], want)
                                        : differs(what, *got.outputs[i], want, values))
      return d;
  }
  for (size_t i = 0; i < got.inputs_after.size(); ++i) {
    const Array& want = expected.changed[i] ? *expected.changed[i] : expected.tensors[i];
    if (auto d = differs(fmt::format("tensor {} after the call", i), got.inputs_after[i], want, values)) return d;
  }
  if (expected.cotangents.empty()) return std::nullopt;
  for (size_t i = 0; i < expected.tensors.size(); ++i) {
    if (!expected.needs_gradient[i]) continue;
    Array zero = zeros_like(expected.tensors[i]);
    const Array& want = expected.gradients[i] ? *expected.gradients[i] : zero;
    const Array& is = got.gradients[i] ? *got.gradients[i] : zero;
    if (auto d = differs(fmt::format("gradient of tensor {}", i), is, want, gradients)) return d;
  }
  return std::nullopt;
}

}  // namespace brasa::verify
