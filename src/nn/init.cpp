#include <brasa/nn/init.h>

#include <cmath>

#include <brasa/brasa.h>

#include "support/error.h"

namespace brasa::nn::init {
namespace {

double fan_of(const Tensor& tensor, FanModeType mode) {
  auto [fan_in, fan_out] = _calculate_fan_in_and_fan_out(tensor);
  return static_cast<double>(holds_alternative<enumtype::kFanIn>(mode) ? fan_in : fan_out);
}

double kaiming_std(const Tensor& tensor, double a, FanModeType mode, NonlinearityType nonlinearity) {
  return calculate_gain(nonlinearity, a) / std::sqrt(fan_of(tensor, mode));
}

double xavier_std(const Tensor& tensor, double gain) {
  auto [fan_in, fan_out] = _calculate_fan_in_and_fan_out(tensor);
  return gain * std::sqrt(2.0 / static_cast<double>(fan_in + fan_out));
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

}  // namespace

double calculate_gain(NonlinearityType nonlinearity, double param) {
  if (holds_alternative<enumtype::kTanh>(nonlinearity)) return 5.0 / 3.0;
  if (holds_alternative<enumtype::kReLU>(nonlinearity)) return std::sqrt(2.0);
  if (holds_alternative<enumtype::kLeakyReLU>(nonlinearity)) return std::sqrt(2.0 / (1 + param * param));
  return 1.0;
}

Tensor constant_(Tensor tensor, Scalar value) {
  NoGradGuard no_grad;
  return tensor.fill_(value);
}
Tensor zeros_(Tensor tensor) { return constant_(std::move(tensor), 0); }
Tensor ones_(Tensor tensor) { return constant_(std::move(tensor), 1); }

Tensor eye_(Tensor matrix) {
  BRASA_CHECK(matrix.dim() == 2, "eye_: expected a tensor of 2 dimensions, got ", matrix.sizes());
  NoGradGuard no_grad;
  return matrix.copy_(eye(matrix.size(0), matrix.size(1), matrix.options()));
}

Tensor uniform_(Tensor tensor, double low, double high) {
  NoGradGuard no_grad;
  return tensor.uniform_(low, high);
}
Tensor normal_(Tensor tensor, double mean, double std) {
  NoGradGuard no_grad;
  return tensor.normal_(mean, std);
}

Tensor trunc_normal_(Tensor tensor, double mean, double std, double a, double b) {
  BRASA_CHECK(std > 0 && a < b, "trunc_normal_: expected std > 0 and a < b, got std ", std, ", a ", a, ", b ", b);
  NoGradGuard no_grad;
  double low = normal_cdf((a - mean) / std), high = normal_cdf((b - mean) / std);
  tensor.uniform_(2 * low - 1, 2 * high - 1);
  return tensor.copy_(tensor.erfinv().mul(std * std::sqrt(2.0)).add(mean).clamp(a, b));
}

Tensor orthogonal_(Tensor tensor, double gain) {
  BRASA_CHECK(tensor.dim() >= 2, "Only tensors with 2 or more dimensions are supported, got ", tensor.sizes());
  NoGradGuard no_grad;
  if (tensor.numel() == 0) return tensor;
  int64_t rows = tensor.size(0), columns = tensor.numel() / rows;
  Tensor drawn = randn({rows, columns}, tensor.options().requires_grad(false));
  if (rows < columns) drawn = drawn.t();
  auto [q, r] = linalg::qr(drawn);
  // Signs that make the distribution uniform (Mezzadri 2006).
  q = q * r.diag().sign();
  if (rows < columns) q = q.t();
  return tensor.copy_(q.reshape(tensor.sizes()) * gain);
}

Tensor sparse_(Tensor matrix, double sparsity, double std) {
  BRASA_CHECK(matrix.dim() == 2, "Only tensors with 2 dimensions are supported, got ", matrix.sizes());
  NoGradGuard no_grad;
  int64_t rows = matrix.size(0);
  auto zeros = static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(rows)));
  Tensor place = rand(matrix.sizes(), matrix.options().requires_grad(false)).argsort(int64_t{0}).argsort(int64_t{0});
  matrix.normal_(0, std);
  return matrix.masked_fill_(place < zeros, 0);
}

Tensor dirac_(Tensor tensor) {
  BRASA_CHECK(tensor.dim() >= 3 && tensor.dim() <= 5, "Only tensors with 3, 4, or 5 dimensions are supported, got ",
              tensor.sizes());
  NoGradGuard no_grad;
  tensor.zero_();
  Tensor middle = tensor;
  while (middle.dim() > 2) middle = middle.select(2, middle.size(2) / 2);
  middle.diagonal().fill_(1);
  return tensor;
}

Tensor kaiming_uniform_(Tensor tensor, double a, FanModeType mode, NonlinearityType nonlinearity) {
  if (tensor.numel() == 0) return tensor;
  double bound = std::sqrt(3.0) * kaiming_std(tensor, a, mode, nonlinearity);
  return uniform_(std::move(tensor), -bound, bound);
}
Tensor kaiming_normal_(Tensor tensor, double a, FanModeType mode, NonlinearityType nonlinearity) {
  if (tensor.numel() == 0) return tensor;
  double std = kaiming_std(tensor, a, mode, nonlinearity);
  return normal_(std::move(tensor), 0, std);
}
Tensor xavier_uniform_(Tensor tensor, double gain) {
  double bound = std::sqrt(3.0) * xavier_std(tensor, gain);
  return uniform_(std::move(tensor), -bound, bound);
}
Tensor xavier_normal_(Tensor tensor, double gain) {
  double std = xavier_std(tensor, gain);
  return normal_(std::move(tensor), 0, std);
}

std::tuple<int64_t, int64_t> _calculate_fan_in_and_fan_out(const Tensor& tensor) {
  BRASA_CHECK(tensor.dim() >= 2, "fan in and fan out need a tensor of at least 2 dimensions, got ", tensor.sizes());
  int64_t field = 1;
  for (int64_t d = 2; d < tensor.dim(); ++d) field *= tensor.size(d);
  return {tensor.size(1) * field, tensor.size(0) * field};
}

}  // namespace brasa::nn::init
