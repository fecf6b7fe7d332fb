#pragma once

#include <brasa/amp.h>
#include <brasa/brasa.h>
#include <brasa/checkpoint.h>
#include <brasa/compile.h>
#include <brasa/data.h>
#include <brasa/fft.h>
#include <brasa/nn.h>
#include <brasa/ops_forwarding.h>
#include <brasa/optim.h>
#include <brasa/ordered_dict.h>
#include <brasa/serialize.h>
#include <torch/utilities.h>

// LibTorch's namespaces. Each is a real one, which a program may open, and has the names of the one of Brasa's that it stands for.

namespace brasa::func {}

namespace c10 {
#include <torch/detail/names.h>
template <class T>
using complex = std::complex<T>;
namespace impl {
using GenericList = ::brasa::List<::brasa::IValue>;
using GenericDict = ::brasa::Dict<::brasa::IValue, ::brasa::IValue>;
}  // namespace impl
namespace ivalue = ::brasa::ivalue;
}  // namespace c10

namespace at {
using ::c10::dtype;
#include <torch/detail/names.h>
#include <brasa/operator_names.inc>
namespace autocast = ::brasa::autocast;
namespace indexing = ::brasa::indexing;
}  // namespace at

// Names that LibTorch has beside Brasa's.
namespace brasa::special {
inline Tensor logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim) {
  return brasa::logsumexp(self, dim, keepdim);
}
}  // namespace brasa::special
namespace brasa::autograd {
using tensor_list = variable_list;
using brasa::AutoGradMode;
using brasa::GradMode;
using brasa::InferenceMode;
using brasa::NoGradGuard;
/// A leaf with the data of another tensor.
inline Variable make_variable(const Variable& data, bool requires_grad = false, bool = true) {
  if (!data.defined()) return data;
  Variable out = data.detach();
  out.set_requires_grad(requires_grad);
  return out;
}
}  // namespace brasa::autograd

namespace torch {
using ::c10::dtype;
#include <torch/detail/names.h>
#include <brasa/operator_names.inc>
using ::brasa::pickle_load;
using ::brasa::pickle_save;
using ::brasa::tensor;
using Dtype = ::brasa::DType;
inline constexpr ::brasa::DType kU8 = ::brasa::kUInt8, kI8 = ::brasa::kInt8, kI16 = ::brasa::kInt16,
                                kI32 = ::brasa::kInt32, kI64 = ::brasa::kInt64, kF16 = ::brasa::kFloat16,
                                kF32 = ::brasa::kFloat32, kF64 = ::brasa::kFloat64;
namespace amp = ::brasa::amp;
namespace autocast = ::brasa::autocast;
namespace func = ::brasa::func;
namespace safetensors = ::brasa::safetensors;
namespace indexing = ::brasa::indexing;
namespace enumtype = ::brasa::enumtype;
namespace fft = ::brasa::fft;
namespace special = ::brasa::special;
namespace linalg = ::brasa::linalg;
namespace serialize = ::brasa::serialize;
namespace autograd = ::brasa::autograd;
// One that programs open.
namespace nn {
using namespace ::brasa::nn;
namespace functional = ::brasa::nn::functional;
namespace init = ::brasa::nn::init;
namespace utils = ::brasa::nn::utils;
}  // namespace nn
namespace optim = ::brasa::optim;
namespace data = ::brasa::data;
}  // namespace torch
