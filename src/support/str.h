#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace brasa {

// `append_to` is the one customisation point of `str(...)`; types add overloads beside their definition.
void append_to(std::string& out, int64_t v);
void append_to(std::string& out, uint64_t v);
/// Shortest text that reads back to the same double, always with a point, an exponent, inf or nan.
void append_to(std::string& out, double v);
inline void append_to(std::string& out, std::string_view v) { out += v; }
inline void append_to(std::string& out, const char* v) { out += v; }
inline void append_to(std::string& out, const std::string& v) { out += v; }
inline void append_to(std::string& out, char v) { out += v; }
inline void append_to(std::string& out, bool v) { out += v ? "true" : "false"; }
template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char>)
void append_to(std::string& out, T v) {
  if constexpr (std::is_signed_v<T>)
    append_to(out, static_cast<int64_t>(v));
  else
    append_to(out, static_cast<uint64_t>(v));
}

template <class T>
concept Range = requires(const T& t) {
  t.begin();
  t.end();
} && !std::is_convertible_v<const T&, std::string_view>;

template <Range T>
void append_to(std::string& out, const T& items) {
  out += '[';
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ", ";
    first = false;
    append_to(out, item);
  }
  out += ']';
}

template <class... A>
std::string str(const A&... a) {
  std::string out;
  (append_to(out, a), ...);
  return out;
}

}  // namespace brasa
