#include "ops/number.h"

#include "support/error.h"

namespace brasa::ops {

using ir::Expr;

bool Number::is(double v) const {
  if (auto* d = arg_.get_if<double>()) return *d == v;
  if (auto* e = arg_.get_if<Expr>()) return e->is_constant() && static_cast<double>(e->constant()) == v;
  if (auto* b = arg_.get_if<bool>()) return *b == (v != 0);
  return false;
}

bool Number::is_size() const {
  auto* e = arg_.get_if<Expr>();
  return e && !e->is_constant();
}

bool Number::is_nan() const {
  auto* d = arg_.get_if<double>();
  return d && *d != *d;
}

double Number::as_double() const {
  if (auto* d = arg_.get_if<double>()) return *d;
  if (auto* b = arg_.get_if<bool>()) return *b;
  if (auto* e = arg_.get_if<Expr>(); e && e->is_constant()) return static_cast<double>(e->constant());
  if (arg_.is<std::complex<double>>()) fail("a real number was needed, but a complex one is given");
  fail("a number was needed while the graph is built, but it is only known when the graph runs");
}

int64_t Number::as_int() const {
  if (auto* b = arg_.get_if<bool>()) return *b;
  if (auto* e = arg_.get_if<Expr>(); e && e->is_constant()) return e->constant();
  fail_internal("a number is no integer literal");
}

std::complex<double> Number::as_complex() const {
  if (auto* c = arg_.get_if<std::complex<double>>()) return *c;
  return as_double();
}

DType Number::dtype() const {
  if (auto* v = arg_.get_if<ir::Value>()) return ir::type_of(*v).dtype;
  if (arg_.is<double>()) return DType::Float64;
  if (arg_.is<bool>()) return DType::Bool;
  if (arg_.is<std::complex<double>>()) return DType::Complex128;
  return DType::Int64;
}

}  // namespace brasa::ops
