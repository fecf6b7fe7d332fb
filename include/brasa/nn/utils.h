#pragma once

#include <iosfwd>
#include <utility>
#include <vector>

#include <brasa/scalar.h>
#include <brasa/tensor.h>

namespace brasa::nn::utils {

/// Scales the gradients in place so that the norm over all of them is at most max_norm, and returns what it was, as a rank-0
/// tensor. Parameters without a gradient are left out.
BRASA_API Tensor clip_grad_norm_tensor_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2.0);

/// A norm that is read where a number is wanted of it. Who does not look at it waits for no device, and ends no graph of compile().
class TotalNorm {
 public:
  explicit TotalNorm(Tensor norm) : norm_(std::move(norm)) {}
  /// Rank 0.
  const Tensor& tensor() const { return norm_; }
  operator double() const { return norm_.item<double>(); }        // NOLINT: LibTorch's is a double
  operator Scalar() const { return static_cast<double>(*this); }  // NOLINT

 private:
  Tensor norm_;
};

BRASA_API std::ostream& operator<<(std::ostream& out, const TotalNorm& n);

/// As above, as a number. With `error_if_nonfinite` a norm of inf or nan is a brasa::Error, for which it is read.
BRASA_API TotalNorm clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2.0,
                                    bool error_if_nonfinite = false);
BRASA_API TotalNorm clip_grad_norm_(const Tensor& parameter, double max_norm, double norm_type = 2.0,
                                    bool error_if_nonfinite = false);
BRASA_API void clip_grad_value_(const Tensor& parameter, double clip_value);
BRASA_API void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);
/// One long vector of all, and back.
BRASA_API Tensor parameters_to_vector(const std::vector<Tensor>& parameters);
BRASA_API void vector_to_parameters(const Tensor& vec, const std::vector<Tensor>& parameters);

}  // namespace brasa::nn::utils
