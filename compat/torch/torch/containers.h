#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <ostream>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include <brasa/array_ref.h>
#include <brasa/scalar.h>
#include <torch/macros.h>

// c10's containers, and the text of the standard library's, which LibTorch's headers give to every program.
namespace c10 {

/// The integers of [begin, end), of the type of `end`.
template <class I>
class integer_range {
 public:
  struct iterator {
    using iterator_category = std::input_iterator_tag;
    using value_type = I;
    using difference_type = std::ptrdiff_t;
    using pointer = const I*;
    using reference = I;
    I at;
    I operator*() const { return at; }
    iterator& operator++() {
      ++at;
      return *this;
    }
    iterator operator++(int) { return {at++}; }
    bool operator==(const iterator& o) const { return at == o.at; }
  };
  integer_range(I begin, I end) : begin_{begin}, end_{end < begin ? begin : end} {}
  iterator begin() const { return begin_; }
  iterator end() const { return end_; }

 private:
  iterator begin_, end_;
};
template <class A, class B>
integer_range<B> irange(A begin, B end) {
  return {static_cast<B>(begin), end};
}
template <class I>
integer_range<I> irange(I end) {
  return {I(), end};
}

/// A vector; how many items lie in the object itself is up to the standard library's.
template <class T, unsigned = 6>
class SmallVector : public std::vector<T> {
 public:
  using Base = std::vector<T>;
  using Base::Base;
  SmallVector() = default;
  SmallVector(std::initializer_list<T> items) : Base(items) {}
  explicit SmallVector(::brasa::ArrayRef<T> items) : Base(items.begin(), items.end()) {}
  template <class Iterator>
  void append(Iterator begin, Iterator end) {
    this->insert(this->end(), begin, end);
  }
  void append(size_t count, const T& item) { this->insert(this->end(), count, item); }
  void append(std::initializer_list<T> items) { append(items.begin(), items.end()); }
  T pop_back_val() {
    T last = std::move(this->back());
    this->pop_back();
    return last;
  }
};
template <class T, unsigned N>
std::ostream& operator<<(std::ostream& out, const SmallVector<T, N>& items) {
  return out << ::brasa::ArrayRef<T>(items);
}
using DimVector = SmallVector<int64_t, 5>;

template <class Items>
int64_t multiply_integers(const Items& items) {
  return std::accumulate(std::begin(items), std::end(items), int64_t{1}, std::multiplies<>());
}
template <class Items>
int64_t sum_integers(const Items& items) {
  return std::accumulate(std::begin(items), std::end(items), int64_t{0});
}
template <class T>
::brasa::ArrayRef<T> makeArrayRef(const std::vector<T>& items) {
  return items;
}
template <class T>
::brasa::ArrayRef<T> makeArrayRef(const T& item) {
  return item;
}

template <class... F>
struct overloaded : F... {
  explicit overloaded(F... f) : F(std::move(f))... {}
  using F::operator()...;
};

template <class Iterator>
void PrintSequence(std::ostream& out, Iterator begin, Iterator end) {
  constexpr int most = 100;
  for (int i = 0; begin != end; ++begin, ++i) {
    if (i == most) {
      out << " ...";
      return;
    }
    if (i > 0) out << ' ';
    out << *begin;
  }
}

}  // namespace c10

// Found by argument-dependent lookup, thus beside their argument's type.
namespace brasa {
template <class T>
std::ostream& operator<<(std::ostream& out, ArrayRef<T> items) {
  out << '[';
  for (size_t i = 0; i < items.size(); ++i) out << (i ? ", " : "") << items[i];
  return out << ']';
}
inline std::ostream& operator<<(std::ostream& out, const Half& v) { return out << static_cast<float>(v); }
inline std::ostream& operator<<(std::ostream& out, const BFloat16& v) { return out << static_cast<float>(v); }
}  // namespace brasa
namespace std {
template <>
struct numeric_limits<brasa::Half> : numeric_limits<float> {
  static constexpr int digits = 11, digits10 = 3, max_digits10 = 5;
  static brasa::Half max() { return 65504.0f; }
  static brasa::Half lowest() { return -65504.0f; }
  static brasa::Half min() { return 6.103515625e-05f; }
  static brasa::Half denorm_min() { return 5.9604644775390625e-08f; }
  static brasa::Half epsilon() { return 0.0009765625f; }
  static brasa::Half infinity() { return numeric_limits<float>::infinity(); }
  static brasa::Half quiet_NaN() { return numeric_limits<float>::quiet_NaN(); }
};
template <>
struct numeric_limits<brasa::BFloat16> : numeric_limits<float> {
  static constexpr int digits = 8, digits10 = 2, max_digits10 = 4;
  static brasa::BFloat16 max() { return 3.3895313892515355e38f; }
  static brasa::BFloat16 lowest() { return -3.3895313892515355e38f; }
  static brasa::BFloat16 min() { return numeric_limits<float>::min(); }
  static brasa::BFloat16 denorm_min() { return 9.1835496157991212e-41f; }
  static brasa::BFloat16 epsilon() { return 0.0078125f; }
  static brasa::BFloat16 infinity() { return numeric_limits<float>::infinity(); }
  static brasa::BFloat16 quiet_NaN() { return numeric_limits<float>::quiet_NaN(); }
};
template <class A, class B>
ostream& operator<<(ostream& out, const pair<A, B>& items);
template <class... T>
ostream& operator<<(ostream& out, const vector<T...>& items) {
  c10::PrintSequence(out, items.begin(), items.end());
  return out;
}
template <class... T>
ostream& operator<<(ostream& out, const map<T...>& items) {
  c10::PrintSequence(out, items.begin(), items.end());
  return out;
}
template <class... T>
ostream& operator<<(ostream& out, const set<T...>& items) {
  c10::PrintSequence(out, items.begin(), items.end());
  return out;
}
template <class A, class B>
ostream& operator<<(ostream& out, const pair<A, B>& items) {
  return out << '(' << items.first << ", " << items.second << ')';
}
}  // namespace std
