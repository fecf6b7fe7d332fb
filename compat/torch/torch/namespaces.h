#pragma once

#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/data.h>
#include <brasa/nn.h>
#include <brasa/optim.h>
#include <brasa/ordered_dict.h>
#include <brasa/serialize.h>
#include <torch/utilities.h>

// LibTorch's namespaces. Each is a real one, which a program may open, and sees all of the one of Brasa's that it stands for.

namespace c10 {
using namespace ::brasa;
using ScalarType = ::brasa::DType;
namespace impl {}
namespace ivalue {}
}  // namespace c10

namespace at {
using namespace ::brasa;
using ScalarType = ::brasa::DType;
namespace indexing {
using namespace ::brasa::indexing;
}
}  // namespace at

namespace torch {
using namespace ::brasa;
using Dtype = ::brasa::DType;
using ScalarType = ::brasa::DType;
namespace indexing {
using namespace ::brasa::indexing;
}
namespace enumtype {
using namespace ::brasa::enumtype;
}
namespace autograd {
using namespace ::brasa::autograd;
using Variable = ::brasa::Tensor;
}  // namespace autograd
namespace nn {
using namespace ::brasa::nn;
namespace functional {
using namespace ::brasa::nn::functional;
}
namespace init {
using namespace ::brasa::nn::init;
}
namespace utils {
using namespace ::brasa::nn::utils;
namespace rnn {
using namespace ::brasa::nn::utils::rnn;
}
}
}  // namespace nn
namespace optim {
using namespace ::brasa::optim;
}
namespace data {
using namespace ::brasa::data;
namespace datasets {
using namespace ::brasa::data::datasets;
}
namespace samplers {
using namespace ::brasa::data::samplers;
}
namespace transforms {
using namespace ::brasa::data::transforms;
}
}  // namespace data
namespace serialize {
using namespace ::brasa::serialize;
}
}  // namespace torch
