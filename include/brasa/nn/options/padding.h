#pragma once

#include <vector>

#include <brasa/arg.h>
#include <brasa/enum.h>
#include <brasa/expanding_array.h>

// Padding is given for the last dimension first: {left, right, top, bottom, front, back}.
namespace brasa::nn {

template <size_t D>
struct PadOptions {
  PadOptions(ExpandingArray<D * 2> padding) : padding_(padding) {}  // NOLINT
  BRASA_ARG(ExpandingArray<D * 2>, padding);
};
template <size_t D>
struct ConstantPadOptions {
  ConstantPadOptions(ExpandingArray<D * 2> padding, double value) : padding_(padding), value_(value) {}
  BRASA_ARG(ExpandingArray<D * 2>, padding);
  BRASA_ARG(double, value);
};

using ReflectionPad1dOptions = PadOptions<1>;
using ReflectionPad2dOptions = PadOptions<2>;
using ReflectionPad3dOptions = PadOptions<3>;
using ReplicationPad1dOptions = PadOptions<1>;
using ReplicationPad2dOptions = PadOptions<2>;
using ReplicationPad3dOptions = PadOptions<3>;
using ZeroPad1dOptions = PadOptions<1>;
using ZeroPad2dOptions = PadOptions<2>;
using ZeroPad3dOptions = PadOptions<3>;
using ConstantPad1dOptions = ConstantPadOptions<1>;
using ConstantPad2dOptions = ConstantPadOptions<2>;
using ConstantPad3dOptions = ConstantPadOptions<3>;

namespace functional {

using PadMode = Choice<enumtype::kConstant, enumtype::kReflect, enumtype::kReplicate, enumtype::kCircular>;
struct PadFuncOptions {
  PadFuncOptions(std::vector<int64_t> pad) : pad_(std::move(pad)) {}  // NOLINT
  BRASA_ARG(std::vector<int64_t>, pad);
  BRASA_ARG(PadMode, mode) = kConstant;
  BRASA_ARG(double, value) = 0;
};

}  // namespace functional
}  // namespace brasa::nn
