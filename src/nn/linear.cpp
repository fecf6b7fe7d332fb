#include <brasa/nn/modules/linear.h>

#include <cmath>
#include <ostream>

#include <brasa/brasa.h>
#include <brasa/nn/functional.h>
#include <brasa/nn/init.h>

#include "nn/print.h"
#include "support/error.h"

namespace brasa::nn {

void IdentityImpl::pretty_print(std::ostream& stream) const { stream << "torch::nn::Identity()"; }

LinearImpl::LinearImpl(int64_t in_features, int64_t out_features)
    : LinearImpl(LinearOptions(in_features, out_features)) {}
LinearImpl::LinearImpl(const LinearOptions& o) : options(o) { LinearImpl::reset(); }

void LinearImpl::reset() {
  BRASA_CHECK(options.in_features() >= 0 && options.out_features() >= 0,
              "Linear: the features must not be negative, got ", options.in_features(), " and ",
              options.out_features());
  weight = register_parameter("weight", brasa::empty({options.out_features(), options.in_features()}));
  bias = register_parameter("bias", options.bias() ? brasa::empty({options.out_features()}) : Tensor(), options.bias());
  reset_parameters();
}

void LinearImpl::reset_parameters() {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  double bound = options.in_features() > 0 ? 1 / std::sqrt(static_cast<double>(options.in_features())) : 0;
  init::uniform_(bias, -bound, bound);
}

void LinearImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::Linear(in_features=" << options.in_features() << ", out_features=" << options.out_features()
         << ", bias=" << word(options.bias()) << ")";
}

Tensor LinearImpl::forward(const Tensor& input) { return functional::linear(input, weight, bias); }

void FlattenImpl::pretty_print(std::ostream& stream) const {
  stream << "torch::nn::Flatten(start_dim=" << options.start_dim() << ", end_dim=" << options.end_dim() << ")";
}
Tensor FlattenImpl::forward(const Tensor& input) { return input.flatten(options.start_dim(), options.end_dim()); }

BilinearImpl::BilinearImpl(int64_t in1_features, int64_t in2_features, int64_t out_features)
    : BilinearImpl(BilinearOptions(in1_features, in2_features, out_features)) {}
BilinearImpl::BilinearImpl(const BilinearOptions& o) : options(o) { BilinearImpl::reset(); }

void BilinearImpl::reset() {
  weight = register_parameter("weight",
                              brasa::empty({options.out_features(), options.in1_features(), options.in2_features()}));
  bias = register_parameter("bias", options.bias() ? brasa::empty({options.out_features()}) : Tensor(), options.bias());
  reset_parameters();
}

void BilinearImpl::reset_parameters() {
  double bound = 1 / std::sqrt(static_cast<double>(weight.size(1)));
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}

void BilinearImpl::pretty_print(std::ostream& stream) const {
  Described(stream, "Bilinear")("in1_features", options.in1_features())("in2_features", options.in2_features())(
      "out_features", options.out_features())("bias", options.bias());
}

Tensor BilinearImpl::forward(const Tensor& input1, const Tensor& input2) {
  return functional::bilinear(input1, input2, weight, bias);
}

UnflattenImpl::UnflattenImpl(int64_t dim, std::vector<int64_t> sizes)
    : Layer(UnflattenOptions(dim, std::move(sizes))) {}
UnflattenImpl::UnflattenImpl(std::string dimname, UnflattenOptions::namedshape_t namedshape)
    : Layer(UnflattenOptions(std::move(dimname), std::move(namedshape))) {}
void UnflattenImpl::pretty_print(std::ostream& stream) const {
  Described d(stream, "Unflatten");
  if (options.namedshape().empty()) {
    std::string sizes;
    for (int64_t size : options.sizes()) sizes += (sizes.empty() ? "{" : ", ") + std::to_string(size);
    d("dim", options.dim())("unflattened_size", sizes + "}");
    return;
  }
  std::string shape = "{";
  for (const auto& [name, size] : options.namedshape())
    shape += (shape.size() > 1 ? ", {\"" : "{\"") + name + "\", " + std::to_string(size) + "}";
  d("dim", "\"" + options.dimname() + "\"")("unflattened_size", shape + "}");
}

Tensor UnflattenImpl::forward(const Tensor& input) {
  BRASA_CHECK(options.namedshape().empty(), "Unflatten: dimension '", options.dimname(),
              "' is given by name, but dimensions have no names");
  return input.unflatten(options.dim(), options.sizes());
}

}  // namespace brasa::nn
