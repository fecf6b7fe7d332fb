#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <brasa/dtype.h>

#include "ir/expr.h"

namespace brasa::ir {

struct Node;

/// One result of a node.
struct Value {
  Node* node = nullptr;
  uint32_t index = 0;

  explicit operator bool() const { return node != nullptr; }
  friend bool operator==(Value a, Value b) { return a.node == b.node && a.index == b.index; }
};

class Graph;

/// A graph as an argument: what a loop does in each step. Its symbols are its own. Two are equal if they print the same.
class Body {
 public:
  explicit Body(std::shared_ptr<const Graph> graph);
  const Graph& operator*() const { return *printed_->graph; }
  const std::string& text() const { return printed_->text; }
  friend bool operator==(const Body& a, const Body& b) { return a.printed_ == b.printed_ || a.text() == b.text(); }

 private:
  struct Printed {
    std::shared_ptr<const Graph> graph;
    std::string text;
  };
  std::shared_ptr<const Printed> printed_;  // small, as every Arg has room for it
};

struct None {
  friend bool operator==(None, None) { return true; }
};

/// An argument of a node: an operand or an attribute. A list of Values may hold absent ones (Tensor?[]).
class Arg {
 public:
  using Variant = std::variant<None, Value, std::vector<Value>, Expr, std::vector<Expr>, double, std::vector<double>,
                               bool, std::vector<bool>, std::complex<double>, std::string, DType, Body>;
  Arg() = default;
  template <class T>
    requires std::is_constructible_v<Variant, T&&> && (!std::is_arithmetic_v<std::decay_t<T>>) &&
             (!std::is_same_v<std::decay_t<T>, Arg>)
  Arg(T&& v) : v_(std::forward<T>(v)) {}      // NOLINT
  Arg(double v) : v_(v) {}                    // NOLINT
  Arg(bool v) : v_(v) {}                      // NOLINT
  Arg(int64_t v) : v_(Expr(v)) {}             // NOLINT
  Arg(int v) : v_(Expr(v)) {}                 // NOLINT
  Arg(const char* v) : v_(std::string(v)) {}  // NOLINT

  bool is_none() const { return std::holds_alternative<None>(v_); }
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&v_);
  }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(v_);
  }
  /// The alternative T; brasa::InternalError if another is held.
  template <class T>
  const T& get() const {
    if (const T* p = std::get_if<T>(&v_)) return *p;
    wrong_kind();
  }
  const Variant& variant() const { return v_; }
  Variant& variant() { return v_; }
  friend bool operator==(const Arg& a, const Arg& b);
  uint64_t hash() const;

  /// Calls f(Value) for every operand in it (absent ones left out), in order.
  template <class F>
  void for_each_value(F f) const {
    if (auto* v = get_if<Value>()) {
      if (*v) f(*v);
    } else if (auto* list = get_if<std::vector<Value>>()) {
      for (Value item : *list)
        if (item) f(item);
    }
  }

 private:
  [[noreturn]] void wrong_kind() const;
  Variant v_;
};

using Args = std::vector<Arg>;

}  // namespace brasa::ir

template <>
struct std::hash<brasa::ir::Value> {
  size_t operator()(brasa::ir::Value v) const { return (reinterpret_cast<size_t>(v.node) >> 4) * 31 + v.index; }
};
