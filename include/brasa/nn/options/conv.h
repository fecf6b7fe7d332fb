#pragma once

#include <brasa/arg.h>
#include <brasa/enum.h>
#include <brasa/expanding_array.h>
#include <brasa/tensor.h>

namespace brasa::nn {

using ConvPaddingMode = Choice<enumtype::kZeros, enumtype::kReflect, enumtype::kReplicate, enumtype::kCircular>;

/// Numbers for each side, or a word: kValid is none, kSame what keeps the sizes.
template <size_t D>
class ConvPadding {
 public:
  template <class T>
    requires(std::is_convertible_v<T, ExpandingArray<D>>)
  ConvPadding(const T& sizes) : sizes_(sizes) {}                        // NOLINT
  ConvPadding(std::initializer_list<int64_t> sizes) : sizes_(sizes) {}  // NOLINT
  ConvPadding(enumtype::kValid word) : sizes_(0), word_(word) {}        // NOLINT
  ConvPadding(enumtype::kSame word) : sizes_(0), word_(word) {}         // NOLINT
  /// nullptr if it is a word.
  const ExpandingArray<D>* sizes() const { return word_.template is<enumtype::kNone>() ? &sizes_ : nullptr; }
  bool is_same() const { return word_.template is<enumtype::kSame>(); }

 private:
  ExpandingArray<D> sizes_;
  Choice<enumtype::kNone, enumtype::kValid, enumtype::kSame> word_ = kNone;
};

template <size_t D>
struct ConvOptions {
  using padding_mode_t = ConvPaddingMode;
  using padding_t = ConvPadding<D>;
  ConvOptions(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(kernel_size) {}
  BRASA_ARG(int64_t, in_channels);
  BRASA_ARG(int64_t, out_channels);
  BRASA_ARG(ExpandingArray<D>, kernel_size);
  BRASA_ARG(ExpandingArray<D>, stride) = 1;
  BRASA_ARG(padding_t, padding) = 0;
  BRASA_ARG(ExpandingArray<D>, dilation) = 1;
  BRASA_ARG(int64_t, groups) = 1;
  BRASA_ARG(bool, bias) = true;
  BRASA_ARG(padding_mode_t, padding_mode) = kZeros;
};
using Conv1dOptions = ConvOptions<1>;
using Conv2dOptions = ConvOptions<2>;
using Conv3dOptions = ConvOptions<3>;

template <size_t D>
struct ConvTransposeOptions {
  using padding_mode_t = ConvPaddingMode;
  ConvTransposeOptions(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(kernel_size) {}
  BRASA_ARG(int64_t, in_channels);
  BRASA_ARG(int64_t, out_channels);
  BRASA_ARG(ExpandingArray<D>, kernel_size);
  BRASA_ARG(ExpandingArray<D>, stride) = 1;
  BRASA_ARG(ExpandingArray<D>, padding) = 0;
  BRASA_ARG(ExpandingArray<D>, output_padding) = 0;
  BRASA_ARG(int64_t, groups) = 1;
  BRASA_ARG(bool, bias) = true;
  BRASA_ARG(ExpandingArray<D>, dilation) = 1;
  BRASA_ARG(padding_mode_t, padding_mode) = kZeros;
};
using ConvTranspose1dOptions = ConvTransposeOptions<1>;
using ConvTranspose2dOptions = ConvTransposeOptions<2>;
using ConvTranspose3dOptions = ConvTransposeOptions<3>;

struct FoldOptions {
  FoldOptions(ExpandingArray<2> output_size, ExpandingArray<2> kernel_size)
      : output_size_(output_size), kernel_size_(kernel_size) {}
  BRASA_ARG(ExpandingArray<2>, output_size);
  BRASA_ARG(ExpandingArray<2>, kernel_size);
  BRASA_ARG(ExpandingArray<2>, dilation) = 1;
  BRASA_ARG(ExpandingArray<2>, padding) = 0;
  BRASA_ARG(ExpandingArray<2>, stride) = 1;
};
struct UnfoldOptions {
  UnfoldOptions(ExpandingArray<2> kernel_size) : kernel_size_(kernel_size) {}  // NOLINT
  BRASA_ARG(ExpandingArray<2>, kernel_size);
  BRASA_ARG(ExpandingArray<2>, dilation) = 1;
  BRASA_ARG(ExpandingArray<2>, padding) = 0;
  BRASA_ARG(ExpandingArray<2>, stride) = 1;
};

namespace functional {

template <size_t D>
struct ConvFuncOptions {
  using padding_t = ConvPadding<D>;
  BRASA_ARG(Tensor, bias) = Tensor();
  BRASA_ARG(ExpandingArray<D>, stride) = 1;
  BRASA_ARG(padding_t, padding) = 0;
  BRASA_ARG(ExpandingArray<D>, dilation) = 1;
  BRASA_ARG(int64_t, groups) = 1;
};
using Conv1dFuncOptions = ConvFuncOptions<1>;
using Conv2dFuncOptions = ConvFuncOptions<2>;
using Conv3dFuncOptions = ConvFuncOptions<3>;

template <size_t D>
struct ConvTransposeFuncOptions {
  BRASA_ARG(Tensor, bias) = Tensor();
  BRASA_ARG(ExpandingArray<D>, stride) = 1;
  BRASA_ARG(ExpandingArray<D>, padding) = 0;
  BRASA_ARG(ExpandingArray<D>, output_padding) = 0;
  BRASA_ARG(int64_t, groups) = 1;
  BRASA_ARG(ExpandingArray<D>, dilation) = 1;
};
using ConvTranspose1dFuncOptions = ConvTransposeFuncOptions<1>;
using ConvTranspose2dFuncOptions = ConvTransposeFuncOptions<2>;
using ConvTranspose3dFuncOptions = ConvTransposeFuncOptions<3>;

using FoldFuncOptions = FoldOptions;
using UnfoldFuncOptions = UnfoldOptions;

}  // namespace functional
}  // namespace brasa::nn
