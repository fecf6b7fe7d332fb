#include <brasa/nn/functional.h>

#include <brasa/brasa.h>

#include "nn/optional.h"
#include "support/error.h"

namespace brasa::nn::functional {

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  return brasa::linear(input, weight, optional(bias));
}
Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias) {
  return brasa::bilinear(input1, input2, weight, optional(bias));
}

namespace {

// Scales the rows that will be read, in place, to a norm of at most max_norm.
void renormalize(const Tensor& weight, const Tensor& input, double max_norm, double norm_type) {
  NoGradGuard no_grad;
  Tensor indices = input.reshape({-1});
  Tensor read = weight.index_select(0, indices);
  Tensor norms = linalg_vector_norm(read, norm_type, 1, true);
  Tensor scale = where(norms.gt(max_norm), max_norm / (norms + 1e-7), ones_like(norms));
  Tensor target = weight;
  target.index_copy_(0, indices, read * scale);
}

}  // namespace

Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingFuncOptions& o) {
  int64_t rows = weight.size(0), pad = o.padding_idx().value_or(-1);
  if (o.padding_idx()) {
    BRASA_CHECK(-rows <= pad && pad < rows, "Padding_idx must be within num_embeddings: got ", pad, " of ", rows);
    if (pad < 0) pad += rows;
  }
  if (o.max_norm()) renormalize(weight, input, *o.max_norm(), o.norm_type());
  return brasa::embedding(weight, input, pad, o.scale_grad_by_freq(), o.sparse());
}

Tensor embedding_bag(const Tensor& input, const Tensor& weight, const EmbeddingBagFuncOptions& o) {
  Tensor indices = input, offsets = o.offsets(), weights = o.per_sample_weights();
  BRASA_CHECK(!weights.defined() || weights.sizes() == input.sizes(), "embedding_bag: If per_sample_weights (",
              weights.defined() ? weights.sizes() : IntArrayRef(),
              ") is not null, then it must have the same shape as the input (", input.sizes(), ")");
  if (input.dim() == 2) {
    BRASA_CHECK(!offsets.defined(),
                "If input is 2D, then offsets has to be null, as input is treated is a mini-batch of fixed length "
                "sequences. However, found offsets of sizes ",
                offsets.defined() ? offsets.sizes() : IntArrayRef());
    offsets = arange(0, input.numel(), input.size(1), input.options());
    indices = input.reshape({-1});
    if (weights.defined()) weights = weights.reshape({-1});
  } else {
    BRASA_CHECK(input.dim() == 1, "input has to be 1D or 2D Tensor, but got Tensor of dimension ", input.dim());
    BRASA_CHECK(offsets.defined() && offsets.dim() == 1, "offsets has to be a 1D Tensor");
  }
  size_t mode = o.mode().index();
  bool max = holds_alternative<enumtype::kMax>(o.mode());
  BRASA_CHECK(!max || !o.scale_grad_by_freq(), "max mode does not support scaling the gradient by the frequency");
  BRASA_CHECK(!max || !o.sparse(), "max mode does not support sparse weights");
  BRASA_CHECK(
      !weights.defined() || holds_alternative<enumtype::kSum>(o.mode()),
      "embedding_bag: per_sample_weights was not null. per_sample_weights is only supported for mode='kSum' (got "
      "mode='",
      enumtype::get_enum_name(o.mode()), "')");
  if (o.max_norm()) renormalize(weight, indices, *o.max_norm(), o.norm_type());
  return std::get<0>(brasa::embedding_bag(weight, indices, offsets, o.scale_grad_by_freq(), static_cast<int64_t>(mode),
                                          o.sparse(), optional(weights), o.include_last_offset(), o.padding_idx()));
}

namespace {

template <size_t D, class Conv>
Tensor conv(const Conv& f, const Tensor& input, const Tensor& weight, const ConvFuncOptions<D>& o) {
  if (const auto* padding = o.padding().sizes())
    return f(input, weight, optional(o.bias()), o.stride(), *padding, o.dilation(), o.groups());
  std::string_view name = o.padding().is_same() ? "same" : "valid";
  return f(input, weight, optional(o.bias()), o.stride(), name, o.dilation(), o.groups());
}

}  // namespace

#define BRASA_CONV(D)                                                                                                  \
  Tensor conv##D##d(const Tensor& input, const Tensor& weight, const Conv##D##dFuncOptions& o) {                       \
    return conv<D>([](auto&&... a) { return brasa::conv##D##d(a...); }, input, weight, o);                             \
  }                                                                                                                    \
  Tensor conv_transpose##D##d(const Tensor& input, const Tensor& weight, const ConvTranspose##D##dFuncOptions& o) {    \
    return brasa::conv_transpose##D##d(input, weight, optional(o.bias()), o.stride(), o.padding(), o.output_padding(), \
                                       o.groups(), o.dilation());                                                      \
  }
BRASA_CONV(1)
BRASA_CONV(2)
BRASA_CONV(3)
#undef BRASA_CONV

Tensor fold(const Tensor& input, const FoldFuncOptions& o) {
  BRASA_CHECK(input.dim() == 2 || input.dim() == 3, "Input Error: Only 3D input Tensors are supported (got ",
              input.dim(), "D)");
  return col2im(input, o.output_size(), o.kernel_size(), o.dilation(), o.padding(), o.stride());
}
Tensor unfold(const Tensor& input, const UnfoldFuncOptions& o) {
  BRASA_CHECK(input.dim() == 4, "Input Error: Only 4D input Tensors are supported (got ", input.dim(), "D)");
  return im2col(input, o.kernel_size(), o.dilation(), o.padding(), o.stride());
}

Tensor pad(const Tensor& input, const PadFuncOptions& o) {
  constexpr const char* modes[] = {"constant", "reflect", "replicate", "circular"};
  size_t mode = o.mode().index();
  BRASA_CHECK(mode == 0 || o.value() == 0, "pad: mode ", modes[mode], " takes no value, got ", o.value());
  return brasa::pad(input, o.pad(), modes[mode], mode == 0 ? std::optional<double>(o.value()) : std::nullopt);
}

Tensor pixel_shuffle(const Tensor& input, const PixelShuffleFuncOptions& o) {
  return brasa::pixel_shuffle(input, o.upscale_factor());
}
Tensor pixel_unshuffle(const Tensor& input, const PixelUnshuffleFuncOptions& o) {
  return brasa::pixel_unshuffle(input, o.downscale_factor());
}

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, const CosineSimilarityFuncOptions& o) {
  return brasa::cosine_similarity(x1, x2, o.dim(), o.eps());
}
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, const PairwiseDistanceFuncOptions& o) {
  return brasa::pairwise_distance(x1, x2, o.p(), o.eps(), o.keepdim());
}
Tensor pdist(const Tensor& input, double p) { return brasa::pdist(input, p); }

namespace {

void check_probability(const char* name, double p) {
  BRASA_CHECK(p >= 0 && p <= 1, name, ": the probability must lie in [0, 1], got ", p);
}

}  // namespace

#define BRASA_DROPOUT(name, op)                                     \
  Tensor name(Tensor input, const DropoutFuncOptions& o) {          \
    check_probability(#name, o.p());                                \
    if (!o.inplace()) return brasa::op(input, o.p(), o.training()); \
    return brasa::op##_(input, o.p(), o.training());                \
  }
BRASA_DROPOUT(dropout, dropout)
BRASA_DROPOUT(dropout2d, feature_dropout)
BRASA_DROPOUT(dropout3d, feature_dropout)
BRASA_DROPOUT(alpha_dropout, alpha_dropout)
BRASA_DROPOUT(feature_alpha_dropout, feature_alpha_dropout)
#undef BRASA_DROPOUT

}  // namespace brasa::nn::functional
