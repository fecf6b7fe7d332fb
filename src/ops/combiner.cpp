#include "ops/combiner.h"

#include <cmath>
#include <limits>

#include "support/error.h"

namespace brasa::ops {
namespace {

constexpr std::string_view kNames[] = {"", "add", "mul", "max", "min", "and", "or"};
constexpr ScalarOp kScalarOps[] = {ScalarOp::None, ScalarOp::Add,    ScalarOp::Mul,  ScalarOp::Max,
                                   ScalarOp::Min,  ScalarOp::BitAnd, ScalarOp::BitOr};

int64_t least(DType t) { return is_signed(t) ? std::numeric_limits<int64_t>::min() >> (64 - 8 * size_of(t)) : 0; }
int64_t greatest(DType t) {
  if (t == DType::Bool) return 1;
  return is_signed(t) ? ~least(t) : (int64_t{1} << 8 * size_of(t)) - 1;
}

}  // namespace

Combiner combiner_of(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == name) return static_cast<Combiner>(i);
  fail_internal(str("there is no combiner '", name, "'"));
}

std::string_view name(Combiner c) { return kNames[static_cast<size_t>(c)]; }
ScalarOp scalar_op(Combiner c) { return kScalarOps[static_cast<size_t>(c)]; }

void check_combiner(Combiner c, DType t) {
  if (c != Combiner::Replace && !computes(t))
    throw NotImplementedError(str('"', name(c), "\" not implemented for '", info_of(t).scalar_type, "'"));
  bool ordered = c == Combiner::Max || c == Combiner::Min, logical = c == Combiner::And || c == Combiner::Or;
  BRASA_CHECK(!(is_complex(t) && ordered) && !(logical && !is_integral(t, true)), name(c), " is not defined for ",
              brasa::name(t));
}

Number identity(Combiner c, DType t) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  bool integer = is_integral(t, true);
  switch (c) {
    case Combiner::Add:
    case Combiner::Or: return 0;
    case Combiner::Mul: return 1;
    case Combiner::And: return t == DType::Bool ? Number(true) : Number(-1);
    case Combiner::Max: return integer ? Number(least(t)) : Number(-inf);
    case Combiner::Min: return integer ? Number(greatest(t)) : Number(inf);
    case Combiner::Replace: break;
  }
  fail_internal("no element changes nothing where it replaces another");
}

double combine(Combiner c, double a, double b) {
  switch (c) {
    case Combiner::Replace: return b;
    case Combiner::Add: return a + b;
    case Combiner::Mul: return a * b;
    case Combiner::Max: return std::isnan(a) || a > b ? a : b;
    case Combiner::Min: return std::isnan(a) || a < b ? a : b;
    default: fail_internal(str("no combiner '", name(c), "' of floating numbers"));
  }
}

std::complex<double> combine(Combiner c, std::complex<double> a, std::complex<double> b) {
  switch (c) {
    case Combiner::Replace: return b;
    case Combiner::Add: return a + b;
    case Combiner::Mul: return a * b;
    default: fail_internal(str("no combiner '", name(c), "' of complex numbers"));
  }
}

int64_t combine(Combiner c, int64_t a, int64_t b) {
  auto u = [](int64_t v) { return static_cast<uint64_t>(v); };
  switch (c) {
    case Combiner::Replace: return b;
    case Combiner::Add: return static_cast<int64_t>(u(a) + u(b));
    case Combiner::Mul: return static_cast<int64_t>(u(a) * u(b));
    case Combiner::Max: return a > b ? a : b;
    case Combiner::Min: return a < b ? a : b;
    case Combiner::And: return a & b;
    case Combiner::Or: return a | b;
  }
  return b;
}

}  // namespace brasa::ops
