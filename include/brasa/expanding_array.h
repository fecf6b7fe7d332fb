#pragma once

#include <array>
#include <initializer_list>
#include <iosfwd>
#include <vector>

#include <brasa/array_ref.h>
#include <brasa/error.h>

namespace brasa {

namespace detail {
[[noreturn]] BRASA_API void expanding_array_error(size_t expected, size_t got);
}

/// D numbers, made from D of them or from one that stands for all: `Conv2dOptions(3, 8, 3)`, `.stride({2, 1})`.
template <size_t D, class T = int64_t>
class ExpandingArray {
 public:
  ExpandingArray(T all) { values_.fill(all); }                                          // NOLINT
  ExpandingArray(std::initializer_list<T> list) : ExpandingArray(ArrayRef<T>(list)) {}  // NOLINT
  ExpandingArray(const std::vector<T>& list) : ExpandingArray(ArrayRef<T>(list)) {}     // NOLINT
  ExpandingArray(const std::array<T, D>& values) : values_(values) {}                   // NOLINT
  ExpandingArray(ArrayRef<T> list) {                                                    // NOLINT
    if (list.size() != D) detail::expanding_array_error(D, list.size());
    for (size_t i = 0; i < D; ++i) values_[i] = list[i];
  }
  std::array<T, D>& operator*() { return values_; }
  const std::array<T, D>& operator*() const { return values_; }
  std::array<T, D>* operator->() { return &values_; }
  const std::array<T, D>* operator->() const { return &values_; }
  operator ArrayRef<T>() const { return ArrayRef<T>(values_); }  // NOLINT
  size_t size() const { return D; }

 private:
  std::array<T, D> values_;
};

/// "[3, 3]", or "3" of one number.
template <size_t D, class T>
std::ostream& operator<<(std::ostream& out, const ExpandingArray<D, T>& a) {
  if constexpr (D == 1)
    return out << (*a)[0];
  else
    return out << ArrayRef<T>(a);
}

/// As above, where an element may be missing.
template <size_t D, class T = int64_t>
class ExpandingArrayWithOptionalElem : public ExpandingArray<D, std::optional<T>> {
 public:
  using Base = ExpandingArray<D, std::optional<T>>;
  using Base::Base;
  ExpandingArrayWithOptionalElem(T all) : Base(std::optional<T>(all)) {}  // NOLINT
  ExpandingArrayWithOptionalElem(std::initializer_list<T> list)           // NOLINT
      : Base(std::vector<std::optional<T>>(list.begin(), list.end())) {}
  ExpandingArrayWithOptionalElem(const std::vector<T>& list)  // NOLINT
      : Base(std::vector<std::optional<T>>(list.begin(), list.end())) {}
  ExpandingArrayWithOptionalElem(const std::array<T, D>& values)  // NOLINT
      : Base(std::vector<std::optional<T>>(values.begin(), values.end())) {}
};

/// "[3, None]", or "None" of one.
template <size_t D, class T>
std::ostream& operator<<(std::ostream& out, const ExpandingArrayWithOptionalElem<D, T>& a) {
  for (size_t i = 0; i < D; ++i) {
    out << (i ? ", " : D == 1 ? "" : "[");
    if ((*a)[i])
      out << *(*a)[i];
    else
      out << "None";
  }
  return out << (D == 1 ? "" : "]");
}

}  // namespace brasa
