#include <brasa/brasa.h>
#include <brasa/call.h>

#include <string>
#include <vector>

#include "bench_workloads.h"

namespace brasa::tool {
namespace {

// Names as in the table; each operator counts once.
const char* const kUnary[] = {
    "abs",     "acos",        "asin",     "atan",      "ceil",  "cos",        "cosh",  "erf",      "erfc",
    "exp",     "expm1",       "floor",    "frac",      "gelu",  "log",        "log10", "log1p",    "log2",
    "neg",     "relu",        "silu",     "round",     "rsqrt", "sigmoid",    "sign",  "sin",      "sinh",
    "sqrt",    "square",      "tan",      "tanh",      "trunc", "reciprocal", "isnan", "isfinite", "isinf",
    "signbit", "softplus",    "hardtanh", "hardswish", "elu",   "leaky_relu", "mish",  "selu",     "hardsigmoid",
    "relu6",   "log_sigmoid", "deg2rad",  "asinh",     "atanh",
};
const char* const kBinary[] = {
    "add.Tensor",        "sub.Tensor", "mul.Tensor",  "div.Tensor",       "maximum",   "minimum",
    "pow.Tensor_Tensor", "atan2",      "eq.Tensor",   "ne.Tensor",        "lt.Tensor", "le.Tensor",
    "gt.Tensor",         "ge.Tensor",  "fmod.Tensor", "remainder.Tensor", "logaddexp", "hypot",
    "mse_loss",          "l1_loss",    "logical_and", "logical_or",
};
const char* const kReduction[] = {"sum",    "mean",   "amax", "amin", "prod", "all", "any",
                                  "argmax", "argmin", "var",  "std",  "max",  "min"};

// One hundred distinct operators, each called once.
void call_all(const Tensor& x, const Tensor& y, const Tensor& indices) {
  NoGradGuard no_grad;
  for (const char* name : kUnary) call(std::string("aten::") + name, {x});
  for (const char* name : kBinary) call(std::string("aten::") + name, {x, y});
  for (const char* name : kReduction) call(std::string("aten::") + name, {x});
  (void)softmax(x, 1);
  (void)log_softmax(x, 1);
  (void)matmul(x, y.t());
  (void)addmm(y.matmul(y.t()), x, y.t());
  (void)linear(x, y);
  (void)layer_norm(x, {x.size(1)});
  (void)cat({x, y}, 0);
  (void)stack({x, y}, 0);
  (void)where(x > y, x, y);
  (void)cumsum(x, 1);
  (void)index_select(x, 0, indices);
  (void)embedding(x, indices);
  (void)tril(x);
  (void)flip(x, {0});
  (void)clamp(x, -1, 1);
}

}  // namespace

Prepared hundred_operators() {
  Tensor x = rand({8, 8}) * 0.8 + 0.1, y = rand({8, 8}) * 0.8 + 0.1, indices = arange(8);
  return {[=] { call_all(x, y, indices); }, 0, nullptr};
}

}  // namespace brasa::tool
