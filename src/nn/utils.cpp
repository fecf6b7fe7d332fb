#include <brasa/nn/utils.h>

#include <cmath>
#include <limits>

#include <brasa/brasa.h>

#include "support/error.h"

namespace brasa::nn::utils {
namespace {

std::vector<Tensor> gradients(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> out;
  for (const Tensor& p : parameters)
    if (p.grad().defined()) out.push_back(p.grad());
  return out;
}

Tensor norm_over_all(const std::vector<Tensor>& tensors, double norm_type) {
  std::vector<Tensor> parts;
  if (norm_type == std::numeric_limits<double>::infinity()) {
    for (const Tensor& t : tensors) parts.push_back(t.detach().abs().max());
    return stack(parts).max();
  }
  if (norm_type == 2.0) {
    for (const Tensor& t : tensors) parts.push_back((t.detach() * t.detach()).sum());
    return stack(parts).sum().sqrt();
  }
  for (const Tensor& t : tensors) parts.push_back(linalg::vector_norm(t.detach(), norm_type));
  return linalg::vector_norm(stack(parts), norm_type);
}

}  // namespace

Tensor clip_grad_norm_tensor_(const std::vector<Tensor>& parameters, double max_norm, double norm_type) {
  NoGradGuard no_grad;
  std::vector<Tensor> grads = gradients(parameters);
  if (grads.empty()) return scalar_tensor(0.0);
  Tensor norm = norm_over_all(grads, norm_type);
  Tensor factor = (max_norm / (norm + 1e-6)).clamp_max(1.0);
  for (Tensor& g : grads) g.mul_(factor);
  return norm;
}

std::ostream& operator<<(std::ostream& out, const TotalNorm& n) { return out << static_cast<double>(n); }

TotalNorm clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                          bool error_if_nonfinite) {
  if (error_if_nonfinite) {
    NoGradGuard no_grad;
    std::vector<Tensor> grads = gradients(parameters);
    double norm = grads.empty() ? 0.0 : norm_over_all(grads, norm_type).item<double>();
    BRASA_CHECK(std::isfinite(norm), "clip_grad_norm_: the norm of the gradients is ", norm,
                ", so it cannot be clipped");
  }
  return TotalNorm(clip_grad_norm_tensor_(parameters, max_norm, norm_type));
}
TotalNorm clip_grad_norm_(const Tensor& parameter, double max_norm, double norm_type, bool error_if_nonfinite) {
  return clip_grad_norm_(std::vector<Tensor>{parameter}, max_norm, norm_type, error_if_nonfinite);
}

void clip_grad_value_(const Tensor& parameter, double clip_value) {
  clip_grad_value_(std::vector<Tensor>{parameter}, clip_value);
}
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  NoGradGuard no_grad;
  for (Tensor& g : gradients(parameters)) g.clamp_(-clip_value, clip_value);
}

Tensor parameters_to_vector(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> flat;
  for (const Tensor& p : parameters) flat.push_back(p.reshape({-1}));
  return cat(flat);
}

void vector_to_parameters(const Tensor& vec, const std::vector<Tensor>& parameters) {
  int64_t at = 0;
  for (const Tensor& p : parameters) {
    p.set_data(vec.slice(0, at, at + p.numel()).view(p.sizes()).clone());
    at += p.numel();
  }
}

}  // namespace brasa::nn::utils
