#pragma once

#include <utility>

/// A member of an options struct with LibTorch's setter and getter: `LinearOptions(2, 3).bias(false)`, `options.bias()`.
#define BRASA_ARG(T, name)                                 \
 public:                                                   \
  auto name(T new_##name) -> decltype(*this) {             \
    this->name##_ = std::move(new_##name);                 \
    return *this;                                          \
  }                                                        \
  const T& name() const noexcept { return this->name##_; } \
  T& name() noexcept { return this->name##_; }             \
                                                           \
 private:                                                  \
  T name##_
