#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <type_traits>
#include <vector>

#include <brasa/export.h>

namespace brasa {

/// A view of consecutive items that somebody else owns. Made from a vector, an array, a braced list or one item, it is meant
/// for parameters: it does not outlive the expression that made it.
template <class T>
class ArrayRef {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;

  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}  // NOLINT
  constexpr ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr ArrayRef(const T* begin, const T* end) : data_(begin), size_(static_cast<size_t>(end - begin)) {}
  ArrayRef(const std::vector<T>& v)  // NOLINT
    requires(!std::is_same_v<T, bool>)
      : data_(v.data()), size_(v.size()) {}
  template <size_t N>
  constexpr ArrayRef(const std::array<T, N>& a) : data_(a.data()), size_(N) {}  // NOLINT
  template <size_t N>
  constexpr ArrayRef(const T (&a)[N]) : data_(a), size_(N) {}  // NOLINT
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
#endif
  constexpr ArrayRef(std::initializer_list<T> items)  // NOLINT
      : data_(items.begin() == items.end() ? nullptr : items.begin()), size_(items.size()) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T* cbegin() const { return data_; }
  constexpr const T* cend() const { return data_ + size_; }
  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  constexpr const T& at(size_t i) const { return data_[i]; }
  constexpr const T& front() const { return data_[0]; }
  constexpr const T& back() const { return data_[size_ - 1]; }
  constexpr ArrayRef slice(size_t start, size_t count) const { return {data_ + start, count}; }
  constexpr ArrayRef slice(size_t start) const { return {data_ + start, size_ - start}; }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  operator std::vector<T>() const { return vec(); }  // NOLINT
  bool equals(ArrayRef o) const {
    if (size_ != o.size_) return false;
    for (size_t i = 0; i < size_; ++i)
      if (!(data_[i] == o.data_[i])) return false;
    return true;
  }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

template <class T>
bool operator==(ArrayRef<T> a, ArrayRef<T> b) {
  return a.equals(b);
}
template <class T>
bool operator==(const std::vector<T>& a, ArrayRef<T> b) {
  return ArrayRef<T>(a).equals(b);
}
template <class T>
bool operator==(ArrayRef<T> a, const std::vector<T>& b) {
  return a.equals(ArrayRef<T>(b));
}

using IntArrayRef = ArrayRef<int64_t>;

/// "[2, 3]".
BRASA_API std::ostream& operator<<(std::ostream& out, IntArrayRef items);
BRASA_API std::ostream& operator<<(std::ostream& out, ArrayRef<double> items);

/// A list that may be missing.
template <class T>
class OptionalArrayRef {
 public:
  constexpr OptionalArrayRef() = default;
  constexpr OptionalArrayRef(std::nullopt_t) {}                                               // NOLINT
  constexpr OptionalArrayRef(ArrayRef<T> items) : items_(items) {}                            // NOLINT
  constexpr OptionalArrayRef(const T& one) : items_(ArrayRef<T>(one)) {}                      // NOLINT
  constexpr OptionalArrayRef(std::initializer_list<T> items) : items_(ArrayRef<T>(items)) {}  // NOLINT
  constexpr OptionalArrayRef(const std::optional<ArrayRef<T>>& items) : items_(items) {}      // NOLINT
  template <class C>
    requires(std::is_convertible_v<const C&, ArrayRef<T>> && !std::is_convertible_v<const C&, T> &&
             !std::is_same_v<C, ArrayRef<T>>)
  constexpr OptionalArrayRef(const C& items) : items_(ArrayRef<T>(items)) {}  // NOLINT

  constexpr bool has_value() const { return items_.has_value(); }
  constexpr explicit operator bool() const { return items_.has_value(); }
  constexpr const ArrayRef<T>& value() const { return items_.value(); }
  constexpr const ArrayRef<T>& operator*() const { return *items_; }
  constexpr const ArrayRef<T>* operator->() const { return &*items_; }

 private:
  std::optional<ArrayRef<T>> items_;
};

using OptionalIntArrayRef = OptionalArrayRef<int64_t>;

}  // namespace brasa
