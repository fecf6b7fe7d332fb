#include "ops/algebra.h"
#include "ops/rows.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

// 1 - beta^step without the cancellation that subtracting has for beta near 1
Value bias_correction(Value step, Number log_beta) { return -expm1(step * log_beta); }

}  // namespace

// The parts of an optimizer's step that are no operators of PyTorch; numbers that change from step to step are operands.
void add_optimizer(Table& t) {
  t.op("aten::_adam_scales(Tensor step, Scalar lr, Scalar log_beta1, Scalar log_beta2, *, ScalarType dtype) -> (Tensor, Tensor)")
      .doc("Adam's step size lr / (1 - beta1^step) and sqrt(1 - beta2^step) (Kingma & Ba 2015, section 2).")
      .composed([](Value step, Number lr, Number log_beta1, Number log_beta2, DType dtype) {
        Value n = convert(step, dtype);
        return std::array{lr / bias_correction(n, log_beta1), sqrt(bias_correction(n, log_beta2))};
      })
      .samples({{tensor(DType::Float32, {}).in(1, 9), 1e-3, -0.105, -1e-3, DType::Float32}})
      .no_gradient()
      .not_in_pytorch();
  t.op("aten::_adam_second_moment(Tensor self, Tensor grad, float beta2) -> Tensor")
      .doc("beta2 * self + (1 - beta2) * grad².")
      .composed_in_opmath([](Value v, Value grad, Number beta2) { return v * beta2 + grad * grad * (1 - beta2); })
      .samples({{floats(3, 5), floats(3, 5), 0.9}, {floats(0), floats(0), 0.5}})
      .no_gradient()
      .not_in_pytorch();
  t.op("aten::_adam_update(Tensor self, Tensor exp_avg, Tensor exp_avg_sq, Tensor step_size, Tensor correction, float eps) -> Tensor")
      .doc("self - step_size * exp_avg / (sqrt(exp_avg_sq) / correction + eps).")
      .composed_in_opmath([](Value p, Value m, Value v, Value step_size, Value correction, Number eps) {
        return p - step_size * m / (sqrt(v) / correction + eps);
      })
      .samples({{floats(3, 5), floats(3, 5), floats(3, 5).in(0, 1), floats().in(0, 1), floats().in(0.5, 1), 1e-8}})
      .no_gradient()
      .not_in_pytorch();
}

}  // namespace brasa::ops
