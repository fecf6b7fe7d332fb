#pragma once

#include <optional>
#include <string>

#include <brasa/arg.h>
#include <brasa/tensor.h>

namespace brasa::nn {

struct ELUOptions {
  BRASA_ARG(double, alpha) = 1.0;
  BRASA_ARG(bool, inplace) = false;
};
struct SELUOptions {
  SELUOptions(bool inplace = false) : inplace_(inplace) {}  // NOLINT
  BRASA_ARG(bool, inplace);
};
struct GLUOptions {
  GLUOptions(int64_t dim = -1) : dim_(dim) {}  // NOLINT
  BRASA_ARG(int64_t, dim);
};
struct GELUOptions {
  /// "none": x·Φ(x); "tanh": the cubic approximation.
  BRASA_ARG(std::string, approximate) = "none";
};
struct HardshrinkOptions {
  HardshrinkOptions(double lambda = 0.5) : lambda_(lambda) {}  // NOLINT
  BRASA_ARG(double, lambda);
};
struct HardtanhOptions {
  BRASA_ARG(double, min_val) = -1.0;
  BRASA_ARG(double, max_val) = 1.0;
  BRASA_ARG(bool, inplace) = false;
};
struct LeakyReLUOptions {
  BRASA_ARG(double, negative_slope) = 1e-2;
  BRASA_ARG(bool, inplace) = false;
};
struct SoftmaxOptions {
  SoftmaxOptions(int64_t dim) : dim_(dim) {}  // NOLINT
  BRASA_ARG(int64_t, dim);
};
using SoftminOptions = SoftmaxOptions;
using LogSoftmaxOptions = SoftmaxOptions;
struct PReLUOptions {
  BRASA_ARG(int64_t, num_parameters) = 1;
  BRASA_ARG(double, init) = 0.25;
};
struct ReLUOptions {
  ReLUOptions(bool inplace = false) : inplace_(inplace) {}  // NOLINT
  BRASA_ARG(bool, inplace);
};
struct ReLU6Options {
  ReLU6Options(bool inplace = false) : inplace_(inplace) {}  // NOLINT
  BRASA_ARG(bool, inplace);
};
struct RReLUOptions {
  BRASA_ARG(double, lower) = 1.0 / 8.0;
  BRASA_ARG(double, upper) = 1.0 / 3.0;
  BRASA_ARG(bool, inplace) = false;
};
struct CELUOptions {
  BRASA_ARG(double, alpha) = 1.0;
  BRASA_ARG(bool, inplace) = false;
};
struct SoftplusOptions {
  BRASA_ARG(double, beta) = 1.0;
  BRASA_ARG(double, threshold) = 20.0;
};
struct SoftshrinkOptions {
  SoftshrinkOptions(double lambda = 0.5) : lambda_(lambda) {}  // NOLINT
  BRASA_ARG(double, lambda);
};
struct ThresholdOptions {
  ThresholdOptions(double threshold, double value) : threshold_(threshold), value_(value) {}
  BRASA_ARG(double, threshold);
  BRASA_ARG(double, value);
  BRASA_ARG(bool, inplace) = false;
};

struct DropoutOptions {
  DropoutOptions(double p = 0.5) : p_(p) {}  // NOLINT
  BRASA_ARG(double, p);
  BRASA_ARG(bool, inplace) = false;
};
using Dropout2dOptions = DropoutOptions;
using Dropout3dOptions = DropoutOptions;
using AlphaDropoutOptions = DropoutOptions;
using FeatureAlphaDropoutOptions = DropoutOptions;

struct MultiheadAttentionOptions {
  MultiheadAttentionOptions(int64_t embed_dim, int64_t num_heads)
      : embed_dim_(embed_dim), num_heads_(num_heads), kdim_(embed_dim), vdim_(embed_dim) {}
  BRASA_ARG(int64_t, embed_dim);
  BRASA_ARG(int64_t, num_heads);
  BRASA_ARG(double, dropout) = 0.0;
  BRASA_ARG(bool, bias) = true;
  /// A learnt key and value behind those given.
  BRASA_ARG(bool, add_bias_kv) = false;
  /// A key and a value of zeros behind those given.
  BRASA_ARG(bool, add_zero_attn) = false;
  /// Sizes of key and value, where they are not embed_dim.
  BRASA_ARG(int64_t, kdim);
  BRASA_ARG(int64_t, vdim);
};

namespace functional {

using ELUFuncOptions = ELUOptions;
using SELUFuncOptions = SELUOptions;
using GLUFuncOptions = GLUOptions;
using GELUFuncOptions = GELUOptions;
using HardshrinkFuncOptions = HardshrinkOptions;
using HardtanhFuncOptions = HardtanhOptions;
using LeakyReLUFuncOptions = LeakyReLUOptions;
using ReLUFuncOptions = ReLUOptions;
using ReLU6FuncOptions = ReLU6Options;
using CELUFuncOptions = CELUOptions;
using SoftplusFuncOptions = SoftplusOptions;
using SoftshrinkFuncOptions = SoftshrinkOptions;
using ThresholdFuncOptions = ThresholdOptions;

struct SoftmaxFuncOptions {
  SoftmaxFuncOptions(int64_t dim) : dim_(dim) {}                              // NOLINT
  SoftmaxFuncOptions(const SoftmaxOptions& options) : dim_(options.dim()) {}  // NOLINT
  BRASA_ARG(int64_t, dim);
  BRASA_ARG(std::optional<DType>, dtype) = std::nullopt;
};
using SoftminFuncOptions = SoftmaxFuncOptions;
using LogSoftmaxFuncOptions = SoftmaxFuncOptions;

struct GumbelSoftmaxFuncOptions {
  BRASA_ARG(double, tau) = 1.0;
  /// One-hot forward, the soft gradient backward.
  BRASA_ARG(bool, hard) = false;
  BRASA_ARG(int, dim) = -1;
};
struct RReLUFuncOptions {
  BRASA_ARG(double, lower) = 1.0 / 8.0;
  BRASA_ARG(double, upper) = 1.0 / 3.0;
  BRASA_ARG(bool, training) = false;
  BRASA_ARG(bool, inplace) = false;
};

struct DropoutFuncOptions {
  BRASA_ARG(double, p) = 0.5;
  BRASA_ARG(bool, training) = false;
  BRASA_ARG(bool, inplace) = false;
};
using Dropout2dFuncOptions = DropoutFuncOptions;
using Dropout3dFuncOptions = DropoutFuncOptions;
using AlphaDropoutFuncOptions = DropoutFuncOptions;
using FeatureAlphaDropoutFuncOptions = DropoutFuncOptions;

/// Everything that attention of several heads takes beside query, key and value.
struct MultiheadAttentionForwardFuncOptions {
  MultiheadAttentionForwardFuncOptions(int64_t embed_dim_to_check, int64_t num_heads, Tensor in_proj_weight,
                                       Tensor in_proj_bias, Tensor bias_k, Tensor bias_v, bool add_zero_attn,
                                       double dropout_p, Tensor out_proj_weight, Tensor out_proj_bias)
      : embed_dim_to_check_(embed_dim_to_check),
        num_heads_(num_heads),
        in_proj_weight_(std::move(in_proj_weight)),
        in_proj_bias_(std::move(in_proj_bias)),
        bias_k_(std::move(bias_k)),
        bias_v_(std::move(bias_v)),
        add_zero_attn_(add_zero_attn),
        dropout_p_(dropout_p),
        out_proj_weight_(std::move(out_proj_weight)),
        out_proj_bias_(std::move(out_proj_bias)) {}
  BRASA_ARG(int64_t, embed_dim_to_check);
  BRASA_ARG(int64_t, num_heads);
  BRASA_ARG(Tensor, in_proj_weight);
  BRASA_ARG(Tensor, in_proj_bias);
  BRASA_ARG(Tensor, bias_k);
  BRASA_ARG(Tensor, bias_v);
  BRASA_ARG(bool, add_zero_attn);
  BRASA_ARG(double, dropout_p);
  BRASA_ARG(Tensor, out_proj_weight);
  BRASA_ARG(Tensor, out_proj_bias);
  BRASA_ARG(bool, training) = true;
  BRASA_ARG(Tensor, key_padding_mask) = Tensor();
  BRASA_ARG(bool, need_weights) = true;
  BRASA_ARG(Tensor, attn_mask) = Tensor();
  /// Weights of its own for query, key and value instead of in_proj_weight.
  BRASA_ARG(bool, use_separate_proj_weight) = false;
  BRASA_ARG(Tensor, q_proj_weight) = Tensor();
  BRASA_ARG(Tensor, k_proj_weight) = Tensor();
  BRASA_ARG(Tensor, v_proj_weight) = Tensor();
  /// Projected keys and values [N * heads, S, head_dim] in place of those computed.
  BRASA_ARG(Tensor, static_k) = Tensor();
  BRASA_ARG(Tensor, static_v) = Tensor();
  BRASA_ARG(bool, average_attn_weights) = true;
};

}  // namespace functional
}  // namespace brasa::nn
