#include "calls.h"

#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/call.h>

#include <functional>
#include <string>
#include <vector>

namespace brasa::pack {
namespace {

using Function = std::function<Tensor(const std::vector<Tensor>&)>;

// Differentiable functions of one tensor, by their rows' names.
const char* const kUnary[] = {
    "abs",        "acos",     "acosh",       "asin",        "asinh",    "atan",       "atanh",  "cos",
    "cosh",       "deg2rad",  "elu",         "erf",         "erfc",     "exp",        "exp2",   "expm1",
    "frac",       "gelu",     "hardsigmoid", "hardswish",   "hardtanh", "leaky_relu", "lgamma", "log",
    "log10",      "log1p",    "log2",        "log_sigmoid", "logit",    "mish",       "neg",    "rad2deg",
    "reciprocal", "relu",     "relu6",       "rsqrt",       "selu",     "sigmoid",    "silu",   "sin",
    "sinh",       "softplus", "sqrt",        "square",      "tan",      "tanh",
};
const char* const kStepwise[] = {"ceil", "floor", "isfinite", "isinf", "isnan", "round", "sign", "signbit", "trunc"};
const char* const kArithmetic[] = {"add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor"};
const char* const kBinary[] = {
    "atan2",   "fmod.Tensor", "hypot",    "l1_loss",           "logaddexp",
    "maximum", "minimum",     "mse_loss", "pow.Tensor_Tensor", "remainder.Tensor",
};
const char* const kComparison[] = {"eq", "ge", "gt", "le", "lt", "ne"};
const char* const kLogical[] = {"logical_and", "logical_or", "logical_xor"};
const char* const kReduction[] = {"amax", "amin", "mean", "prod", "std", "sum", "var", "max", "min"};
const char* const kTest[] = {"all", "any", "argmax", "argmin"};

std::string aten(const std::string& name) { return "aten::" + name; }
Tensor one(const std::string& name, std::initializer_list<CallArg> args) {
  return call(aten(name), ArrayRef<CallArg>(args.begin(), args.size()))[0];
}
// "add.Tensor" becomes "add_.Tensor".
std::string in_place(const std::string& name) {
  size_t dot = name.find('.');
  return name.substr(0, dot) + "_" + (dot == std::string::npos ? "" : name.substr(dot));
}

// Forward alone, and with the gradients of all inputs.
void both(const std::vector<Tensor>& inputs, const Function& f) {
  {
    NoGradGuard no_grad;
    f(inputs);
  }
  std::vector<Tensor> leaves;
  for (const Tensor& t : inputs) {
    leaves.push_back(t.detach().clone());
    if (t.is_floating_point()) leaves.back().set_requires_grad(true);
  }
  Tensor y = f(leaves);
  y.backward(ones_like(y), true);  // a cotangent in memory
  y.sum().backward();              // and a repeated number
}

void unary(const Tensor& x) {
  for (const char* name : kUnary) both({x}, [&](const auto& in) { return one(name, {in[0]}); });
  for (const char* name : kStepwise) one(name, {x});
}

void binary(const Tensor& x, const Tensor& row, const Tensor& column) {
  for (const char* name : kArithmetic) {
    for (const Tensor& y : {x, row, column}) {
      both({x, y}, [&](const auto& in) { return one(name, {in[0], in[1]}); });
      both({y, x}, [&](const auto& in) { return one(name, {in[0], in[1]}); });
    }
    both({x}, [&](const auto& in) { return one(name, {in[0], Scalar(2.0)}); });
    both({x}, [&](const auto& in) { return one(name, {in[0], Scalar(2)}); });
    NoGradGuard no_grad;
    for (const Tensor& y : {x, row}) one(in_place(name), {x.clone(), y});
    one(in_place(name), {x.clone(), Scalar(2.0)});
  }
  for (const char* name : kBinary) both({x, x.flip({0})}, [&](const auto& in) { return one(name, {in[0], in[1]}); });
  both({x}, [](const auto& in) { return pow(in[0], 2); });
  both({x}, [](const auto& in) { return 1 - in[0]; });
  both({x}, [](const auto& in) { return 1 / in[0]; });
  both({x}, [](const auto& in) { return clamp(in[0], 0.2, 0.8); });
  both({x, x}, [](const auto& in) { return where(in[0] > 0.5, in[0], in[1]); });
}

void whole_numbers(const Tensor& x, const Tensor& i) {
  for (const Tensor& t : {x, i}) {
    for (const char* name : kComparison) {
      one(std::string(name) + ".Tensor", {t, t});
      one(std::string(name) + ".Scalar", {t, Scalar(1)});
    }
    for (const char* name : kLogical) one(name, {t, t});
    (void)logical_not(t);
    for (const char* name : kTest) one(name, {t});
  }
  for (const char* name : {"add.Tensor", "sub.Tensor", "mul.Tensor"}) {
    one(name, {i, i});
    one(name, {i, Scalar(2)});
  }
  (void)i.sum();
  (void)(i == i).sum();
  (void)(i == i).to(kFloat32);
  (void)(i == i).to(kFloat32).mean();
  (void)i.to(kFloat32);
  (void)x.to(kInt64);
  (void)x.to(kFloat64);
}

void reductions(const Tensor& x) {
  for (const char* name : kReduction) both({x}, [&](const auto& in) { return one(name, {in[0]}); });
  for (int64_t dim : {0, 1})
    for (bool keep : {false, true}) {
      both({x}, [=](const auto& in) { return in[0].sum({dim}, keep); });
      both({x}, [=](const auto& in) { return in[0].mean({dim}, keep); });
      both({x}, [=](const auto& in) { return std::get<0>(in[0].max(dim, keep)); });
      (void)x.argmax(dim, keep);
    }
  both({x}, [](const auto& in) { return softmax(in[0], 1); });
  both({x}, [](const auto& in) { return log_softmax(in[0], 1); });
  both({x}, [](const auto& in) { return logsumexp(in[0], {1}); });
  both({x}, [](const auto& in) { return cumsum(in[0], 1); });
}

void layers(const Tensor& x, const Tensor& row) {
  Tensor batch = x.unsqueeze(0).repeat({2, 1, 1}), indices = arange(x.size(0));
  both({x, x}, [](const auto& in) { return mm(in[0], in[1]); });
  both({x, x}, [](const auto& in) { return matmul(in[0], in[1].t()); });
  both({batch, batch}, [](const auto& in) { return bmm(in[0], in[1]); });
  both({x, x, row}, [](const auto& in) { return addmm(in[2], in[0], in[1]); });
  both({x, x, x}, [](const auto& in) { return addmm(in[2], in[0], in[1].t()); });
  both({x, x, row}, [](const auto& in) { return linear(in[0], in[1], in[2]); });
  both({x, x}, [](const auto& in) { return linear(in[0], in[1]); });
  both({batch, x, row}, [](const auto& in) { return linear(in[0], in[1], in[2]); });
  both({x, row, row}, [&](const auto& in) { return layer_norm(in[0], {row.size(0)}, in[1], in[2]); });
  both({x}, [&](const auto& in) { return layer_norm(in[0], {row.size(0)}); });
  both({x}, [&](const auto& in) { return cross_entropy_loss(in[0], indices); });
  both({x}, [&](const auto& in) { return embedding(in[0], indices); });
  both({x}, [&](const auto& in) { return index_select(in[0], 0, indices); });
  both({x, x}, [](const auto& in) { return cat({in[0], in[1]}, 0); });
  both({x, x}, [](const auto& in) { return cat({in[0], in[1]}, 1); });
  both({x, x}, [](const auto& in) { return stack({in[0], in[1]}, 0); });
  both({x}, [](const auto& in) { return tril(in[0]); });
  both({x}, [](const auto& in) { return flip(in[0], {0}); });
  both({x}, [](const auto& in) { return dropout(in[0], 0.5, true); });
  both({x}, [](const auto& in) { return in[0].t().contiguous(); });
}

void fills(const Tensor& x) {
  (void)x.clone();
  (void)zeros_like(x);
  (void)x.clone().fill_(2.0);
  (void)x.clone().zero_();
  (void)rand({4, 4});
  (void)randn({4, 4});
  (void)arange(4);
}

}  // namespace

void call_common_operators() {
  Tensor x = arange(64, kFloat32).reshape({8, 8}) / 70 + 0.05, row = x.select(0, 1).clone(),
         column = x.narrow(1, 0, 1).clone();
  fills(x);
  unary(x);
  binary(x, row, column);
  whole_numbers(x, arange(64).reshape({8, 8}));
  reductions(x);
  layers(x, row);
}

}  // namespace brasa::pack
