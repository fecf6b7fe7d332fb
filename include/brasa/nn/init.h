#pragma once

#include <cstdint>
#include <tuple>

#include <brasa/enum.h>
#include <brasa/tensor.h>

/// Fills tensors in place, without autograd, and returns them.
namespace brasa::nn::init {

using NonlinearityType = Choice<enumtype::kLinear, enumtype::kConv1D, enumtype::kConv2D, enumtype::kConv3D,
                                enumtype::kSigmoid, enumtype::kTanh, enumtype::kReLU, enumtype::kLeakyReLU>;
using FanModeType = Choice<enumtype::kFanIn, enumtype::kFanOut>;

/// The factor by which a nonlinearity's input may be larger than its output; `param` is leaky ReLU's slope.
BRASA_API double calculate_gain(NonlinearityType nonlinearity, double param = 0.01);

BRASA_API Tensor constant_(Tensor tensor, Scalar value);
BRASA_API Tensor zeros_(Tensor tensor);
BRASA_API Tensor ones_(Tensor tensor);
BRASA_API Tensor eye_(Tensor matrix);
BRASA_API Tensor uniform_(Tensor tensor, double low = 0, double high = 1);
BRASA_API Tensor normal_(Tensor tensor, double mean = 0, double std = 1);
/// Normal, cut to [a, b] through the inverse of the distribution function.
BRASA_API Tensor trunc_normal_(Tensor tensor, double mean = 0, double std = 1, double a = -2, double b = 2);
/// A (half) orthogonal matrix of rows and all other dimensions, times gain (Saxe et al. 2013).
BRASA_API Tensor orthogonal_(Tensor tensor, double gain = 1);
/// Normal, and of each column this share of elements, taken at random, 0 (Martens 2010).
BRASA_API Tensor sparse_(Tensor matrix, double sparsity, double std = 0.01);
/// Of weights of a convolution with 3 to 5 dimensions: what passes its input on, as far as there are channels.
BRASA_API Tensor dirac_(Tensor tensor);
/// He et al. 2015: bound gain · sqrt(3 / fan).
BRASA_API Tensor kaiming_uniform_(Tensor tensor, double a = 0, FanModeType mode = kFanIn,
                                  NonlinearityType nonlinearity = kLeakyReLU);
BRASA_API Tensor kaiming_normal_(Tensor tensor, double a = 0, FanModeType mode = kFanIn,
                                 NonlinearityType nonlinearity = kLeakyReLU);
/// Glorot & Bengio 2010: std gain · sqrt(2 / (fan_in + fan_out)).
BRASA_API Tensor xavier_uniform_(Tensor tensor, double gain = 1);
BRASA_API Tensor xavier_normal_(Tensor tensor, double gain = 1);
/// {fan_in, fan_out} of a weight [out, in, kernel…]; brasa::Error below two dimensions.
BRASA_API std::tuple<int64_t, int64_t> _calculate_fan_in_and_fan_out(const Tensor& tensor);

}  // namespace brasa::nn::init
