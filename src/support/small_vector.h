#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <vector>

namespace brasa {

/// A vector of trivial items whose first N live inside it: sizes and strides, without an allocation.
template <class T, size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  SmallVector() {}  // NOLINT: were it defaulted, {} would clear all of inline_
  explicit SmallVector(size_t n, T value = T()) { resize(n, value); }
  SmallVector(std::initializer_list<T> items) { assign(items.begin(), items.size()); }
  SmallVector(std::span<const T> items) { assign(items.data(), items.size()); }     // NOLINT
  SmallVector(const std::vector<T>& items) { assign(items.data(), items.size()); }  // NOLINT
  SmallVector(const SmallVector& o) { copy(o); }
  SmallVector(SmallVector&& o) noexcept { take(o); }
  SmallVector& operator=(const SmallVector& o) {
    if (this != &o) copy(o);
    return *this;
  }
  SmallVector& operator=(SmallVector&& o) noexcept {
    if (this != &o) {
      release();
      take(o);
    }
    return *this;
  }
  ~SmallVector() { release(); }

  T* data() { return heap_ ? heap_ : reinterpret_cast<T*>(inline_); }
  const T* data() const { return heap_ ? heap_ : reinterpret_cast<const T*>(inline_); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  operator std::span<const T>() const { return {data(), size_}; }  // NOLINT
  std::vector<T> vec() const { return {begin(), end()}; }

  void push_back(T v) {
    if (size_ == capacity_) grow(size_ + 1);
    data()[size_++] = v;
  }
  void resize(size_t n, T value = T()) {
    if (n > capacity_) grow(n);
    for (size_t i = size_; i < n; ++i) data()[i] = value;
    size_ = n;
  }
  void assign(const T* items, size_t n) {
    if (n > capacity_) grow(n);
    if (n) std::memmove(data(), items, n * sizeof(T));
    size_ = n;
  }
  void insert(size_t at, T v) {
    push_back(v);
    std::rotate(begin() + at, end() - 1, end());
  }
  void erase(size_t at) {
    std::move(begin() + at + 1, end(), begin() + at);
    --size_;
  }
  void clear() { size_ = 0; }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    if (a.size_ != b.size_) return false;
    const T *x = a.data(), *y = b.data();
    for (size_t i = 0; i < a.size_; ++i)
      if (!(x[i] == y[i])) return false;
    return true;
  }

 private:
  // A few items are copied as a block of fixed size, which costs less than a call with their number; some may not be set.
#if !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
  static constexpr bool kSmallBlock = N * sizeof(T) <= 64;
  void copy(const SmallVector& o) {
    if (!kSmallBlock || heap_ || o.heap_) return copy_items(o);
    std::memcpy(inline_, o.inline_, sizeof inline_);
    size_ = o.size_;
  }
  [[gnu::noinline]] void copy_items(const SmallVector& o) { assign(o.data(), o.size_); }
  void grow(size_t n) {
    size_t capacity = std::max(n, 2 * capacity_);
    T* bigger = new T[capacity];
    std::copy(begin(), end(), bigger);
    delete[] heap_;
    heap_ = bigger;
    capacity_ = capacity;
  }
  void release() {
    delete[] heap_;
    heap_ = nullptr;
    capacity_ = N;
    size_ = 0;
  }
  void take(SmallVector& o) {
    size_ = o.size_;
    if (o.heap_) {
      heap_ = o.heap_;
      capacity_ = o.capacity_;
      o.heap_ = nullptr;
      o.capacity_ = N;
    } else {
      std::memcpy(inline_, o.inline_, kSmallBlock ? sizeof inline_ : o.size_ * sizeof(T));
    }
    o.size_ = 0;
  }
#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif

  T* heap_ = nullptr;
  size_t size_ = 0, capacity_ = N;
  alignas(T) std::byte inline_[N * sizeof(T)];  // bytes, so that no item is set before it is used
};

using Sizes = SmallVector<int64_t, 6>;

}  // namespace brasa
