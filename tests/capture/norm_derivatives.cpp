#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

// Backward operators of norms take statistics that were saved. They are those of the input, so that second derivatives by the input go
// through them. Third ones take them as constants, as in PyTorch.
namespace brasa {
namespace {

using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

Tensor numbers(IntArrayRef sizes, double phase) {
  Tensor t = empty(sizes, kDouble);
  int64_t n = t.numel();
  return (arange(n, kDouble) * 1.7 + phase).sin().reshape(sizes);
}

// {grad_out, input, weight} -> the gradients that the backward operator gives.
Tensors layer_norm_gradients(const Tensors& in, bool affine) {
  const int64_t shape[] = {4, 5};
  const bool mask[] = {true, affine, affine};
  CallArg weight = affine ? CallArg(in[2]) : CallArg();
  Tensors saved = call("aten::native_layer_norm", {in[1].detach(), IntArrayRef(shape), weight, weight, 1e-5});
  Tensors out = call("aten::native_layer_norm_backward",
                     {in[0], in[1], IntArrayRef(shape), saved[1], saved[2], weight, weight, ArrayRef<bool>(mask)});
  if (!affine) out.resize(1);
  return out;
}
Tensors group_norm_gradients(const Tensors& in, bool) {
  const bool mask[] = {true, true, true};
  Tensors saved = call("aten::native_group_norm", {in[1].detach(), in[2], in[2], 3, 4, 5, 2, 1e-5});
  return call("aten::native_group_norm_backward",
              {in[0], in[1], saved[1], saved[2], in[2], 3, 4, 5, 2, ArrayRef<bool>(mask)});
}

// A number that depends on all results, unevenly.
Tensor weighed(const Tensors& results) {
  Tensor sum = zeros({}, kDouble);
  double phase = 0.2;
  for (const Tensor& r : results) sum = sum + (r * numbers(r.sizes(), phase += 0.4)).sum();
  return sum;
}

// The gradients of f's number by all of its inputs, as tensors that have derivatives themselves.
Function gradients_of(const Function& f) {
  return [f](const Tensors& in) { return autograd::grad({weighed(f(in))}, in, {}, true, true, true); };
}

// What f's number does along a direction, measured, and by its gradients.
void expect_right_gradients(const Function& f, const Tensors& at) {
  constexpr double kStep = 1e-5;
  auto asked = [](const Tensors& list, double step) {
    Tensors out;
    double phase = 0.9;
    for (const Tensor& t : list) out.push_back((t.detach() + step * numbers(t.sizes(), phase += 1.1)).requires_grad_());
    return out;
  };
  Tensors in = asked(at, 0), gradients = gradients_of(f)(in);
  double expected = 0, phase = 0.9;
  for (size_t i = 0; i < in.size(); ++i) {
    phase += 1.1;
    if (gradients[i].defined()) expected += (gradients[i] * numbers(in[i].sizes(), phase)).sum().item<double>();
  }
  double up = weighed(f(asked(at, kStep))).item<double>(), down = weighed(f(asked(at, -kStep))).item<double>();
  EXPECT_NEAR(expected, (up - down) / (2 * kStep), 1e-6 * (1 + std::fabs(expected)));
}

void expect_derivatives(Tensors (*backward)(const Tensors&, bool), bool affine, const Tensors& at) {
  Function first = [=](const Tensors& in) { return backward(in, affine); };
  auto second = [first](const Tensors& in) {
    Tensors out;
    for (const Tensor& t : gradients_of(first)(in))
      if (t.defined()) out.push_back(t);
    return out;
  };
  expect_right_gradients(first, at);
  Tensors in;
  for (const Tensor& t : at) in.push_back(t.clone().requires_grad_());
  Tensors eager = second(in), compiled = compile(Function(second))(in);
  ASSERT_EQ(eager.size(), compiled.size());
  for (size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(allclose(eager[i], compiled[i], 1e-9, 1e-11)) << i;
}

TEST(LayerNormBackward, HasTheDerivativesOfLayerNorm) {
  Tensor g = numbers({3, 4, 5}, 0.1), x = numbers({3, 4, 5}, 0.5) * 2, w = numbers({4, 5}, 0.8) + 1.5;
  expect_derivatives(layer_norm_gradients, true, {g, x, w});
  expect_derivatives(layer_norm_gradients, false, {g, x});
}

TEST(LayerNormBackward, IsWhatTwoDerivativesOfLayerNormGive) {
  const int64_t shape[] = {4, 5};
  Tensor g = numbers({3, 4, 5}, 0.1).requires_grad_(), x = (numbers({3, 4, 5}, 0.5) * 2).requires_grad_(),
         w = (numbers({4, 5}, 0.8) + 1.5).requires_grad_();
  Tensors in{g, x, w};
  Tensors native = gradients_of([](const Tensors& t) { return Tensors{layer_norm_gradients(t, true)[0]}; })(in);
  Tensor y = layer_norm(x, IntArrayRef(shape), w, w);
  Tensors by = autograd::grad({y}, {x}, {g}, true, true);
  Tensors whole = autograd::grad({weighed(by)}, in, {}, true, true, true);
  for (size_t i = 0; i < in.size(); ++i) EXPECT_TRUE(allclose(native[i], whole[i], 1e-9, 1e-11)) << i;
}

TEST(GroupNormBackward, HasTheDerivativesOfGroupNorm) {
  Tensor g = numbers({3, 4, 5}, 0.1), x = numbers({3, 4, 5}, 0.5) * 2, w = numbers({4}, 0.8) + 1.5;
  expect_derivatives(group_norm_gradients, true, {g, x, w});
}

}  // namespace
}  // namespace brasa
