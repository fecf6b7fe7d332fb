#include <brasa/brasa.h>

#include <functional>
#include <vector>

#include "bench_workloads.h"

namespace brasa::tool {
namespace {

using Call = std::function<void(const Tensor& x, double v, int64_t n)>;

// Operators with a number that differs from call to call: v grows from 0 to 1, n from 1 to 200.
const Call kCalls[] = {
    [](const Tensor& x, double v, int64_t) { (void)x.clone().normal_(0, v + 0.1); },
    [](const Tensor& x, double v, int64_t) { (void)x.clone().uniform_(-v, v + 1); },
    [](const Tensor& x, double v, int64_t) { (void)x.clone().bernoulli_(v); },
    [](const Tensor& x, double v, int64_t) { (void)x.clone().exponential_(v + 0.1); },
    [](const Tensor& x, double v, int64_t) { (void)x.clone().cauchy_(v, v + 1); },
    [](const Tensor& x, double v, int64_t) { (void)x.clone().log_normal_(v, v + 1); },
    [](const Tensor& x, double v, int64_t) { (void)x.clone().geometric_(v * 0.9 + 0.05); },
    [](const Tensor& x, double v, int64_t) { (void)dropout(x, v * 0.9, true); },
    [](const Tensor& x, double v, int64_t) { (void)alpha_dropout(x, v * 0.9, true); },
    [](const Tensor& x, double v, int64_t) { (void)(x * v); },
    [](const Tensor& x, double v, int64_t) { (void)(x + v); },
    [](const Tensor& x, double v, int64_t) { (void)(v - x); },
    [](const Tensor& x, double v, int64_t) { (void)(x / (v + 1)); },
    [](const Tensor& x, double v, int64_t) { (void)x.pow(v + 0.01); },
    [](const Tensor& x, double v, int64_t) { (void)x.clamp(Scalar(-v), Scalar(v)); },
    [](const Tensor& x, double v, int64_t) { (void)leaky_relu(x, v); },
    [](const Tensor& x, double v, int64_t) { (void)elu(x, v + 1); },
    [](const Tensor& x, double v, int64_t) { (void)softplus(x, v + 1); },
    [](const Tensor& x, double v, int64_t) { (void)threshold(x, v, 0); },
    [](const Tensor& x, double v, int64_t) { (void)hardshrink(x, v); },
    [](const Tensor& x, double v, int64_t) { (void)softshrink(x, v); },
    [](const Tensor& x, double v, int64_t) { (void)lerp(x, x, v); },
    [](const Tensor& x, double v, int64_t) { (void)addcmul(x, x, x, v); },
    [](const Tensor& x, double v, int64_t) { (void)add(x, x, v); },
    [](const Tensor& x, double v, int64_t) { (void)huber_loss(x, x, 1, v + 0.1); },
    [](const Tensor& x, double v, int64_t) { (void)layer_norm(x, {8}, {}, {}, v + 1e-5); },
    [](const Tensor& x, double v, int64_t) { (void)quantile(x, v); },
    [](const Tensor& x, double v, int64_t) { (void)full_like(x, v); },
    [](const Tensor& x, double v, int64_t) { (void)x.clone().fill_(v); },
    [](const Tensor& x, double v, int64_t) { (void)nan_to_num(x, v); },
    [](const Tensor&, double v, int64_t n) { (void)linspace(0, v + 1, n); },
    [](const Tensor&, double v, int64_t n) { (void)logspace(0, v + 1, n); },
    [](const Tensor&, double, int64_t n) { (void)arange(n); },
    [](const Tensor&, double v, int64_t) { (void)arange(0, v + 1, 0.1); },
    [](const Tensor&, double, int64_t n) { (void)eye(n); },
    [](const Tensor&, double, int64_t n) { (void)randperm(n); },
    [](const Tensor&, double, int64_t n) { (void)randint(n, {4}); },
    [](const Tensor&, double, int64_t n) { (void)hann_window(n); },
    [](const Tensor& x, double, int64_t n) { (void)x.roll(n); },
    [](const Tensor& x, double, int64_t n) { (void)x.topk(n % 8 + 1); },
};

}  // namespace

Prepared forty_operators_with_numbers() {
  Tensor x = rand({8, 8}) * 0.8 + 0.1;
  return {[=] {
            NoGradGuard no_grad;
            for (const Call& call : kCalls)
              for (int64_t k = 0; k < 200; ++k) call(x, static_cast<double>(k) / 200, k + 1);
          },
          0, nullptr};
}

}  // namespace brasa::tool
