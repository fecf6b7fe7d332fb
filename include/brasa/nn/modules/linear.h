#pragma once

#include <brasa/nn/modules/layer.h>

namespace brasa::nn {

/// Gives its input: a place holder.
class BRASA_API IdentityImpl : public Cloneable<IdentityImpl> {
 public:
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input) { return input; }
};
BRASA_MODULE(Identity);

/// y = x · weightᵀ + bias; weight [out_features, in_features], bias [out_features], uniform in ±1/sqrt(in_features).
class BRASA_API LinearImpl : public Cloneable<LinearImpl> {
 public:
  LinearImpl(int64_t in_features, int64_t out_features);
  explicit LinearImpl(const LinearOptions& options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);

  LinearOptions options;
  Tensor weight, bias;
};
BRASA_MODULE(Linear);

/// y = x1ᵀ · weight · x2 + bias; weight [out_features, in1_features, in2_features].
class BRASA_API BilinearImpl : public Cloneable<BilinearImpl> {
 public:
  BilinearImpl(int64_t in1_features, int64_t in2_features, int64_t out_features);
  explicit BilinearImpl(const BilinearOptions& options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input1, const Tensor& input2);

  BilinearOptions options;
  Tensor weight, bias;
};
BRASA_MODULE(Bilinear);

BRASA_LAYER(Flatten, const Tensor& input);

class BRASA_API UnflattenImpl : public detail::Layer<UnflattenImpl, UnflattenOptions> {
 public:
  using detail::Layer<UnflattenImpl, UnflattenOptions>::Layer;
  UnflattenImpl(int64_t dim, std::vector<int64_t> sizes);
  UnflattenImpl(std::string dimname, UnflattenOptions::namedshape_t namedshape);
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);
};
BRASA_MODULE(Unflatten);

}  // namespace brasa::nn
