#include <brasa/nn/modules/transformer.h>

#include <cmath>

#include <brasa/brasa.h>
#include <brasa/nn/functional.h>
#include <brasa/nn/init.h>

#include "support/error.h"

namespace brasa::nn {
namespace {

Tensor activated(const activation_t& activation, const Tensor& x) {
  if (activation.function()) return activation.function()(x);
  return activation.word().is<enumtype::kReLU>() ? relu(x) : gelu(x);
}

MultiheadAttention attention(const TransformerEncoderLayerOptions& o) {
  return MultiheadAttention(MultiheadAttentionOptions(o.d_model(), o.nhead()).dropout(o.dropout()));
}

LayerNorm norm_of(const TransformerEncoderLayerOptions& o) {
  return LayerNorm(LayerNormOptions(std::vector<int64_t>{o.d_model()}));
}

void spread(const std::vector<Tensor>& parameters) {
  for (const Tensor& p : parameters)
    if (p.dim() > 1) init::xavier_uniform_(p);
}

}  // namespace

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(int64_t d_model, int64_t nhead)
    : TransformerEncoderLayerImpl(TransformerEncoderLayerOptions(d_model, nhead)) {}
TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(TransformerEncoderLayerOptions o) : options(std::move(o)) {
  TransformerEncoderLayerImpl::reset();
}

void TransformerEncoderLayerImpl::reset() {
  self_attn = register_module("self_attn", attention(options));
  linear1 = register_module("linear1", Linear(options.d_model(), options.dim_feedforward()));
  dropout = register_module("dropout", Dropout(options.dropout()));
  linear2 = register_module("linear2", Linear(options.dim_feedforward(), options.d_model()));
  norm1 = register_module("norm1", norm_of(options));
  norm2 = register_module("norm2", norm_of(options));
  dropout1 = register_module("dropout1", Dropout(options.dropout()));
  dropout2 = register_module("dropout2", Dropout(options.dropout()));
}

void TransformerEncoderLayerImpl::reset_parameters() {
  linear1->reset_parameters();
  linear2->reset_parameters();
  norm1->reset_parameters();
  norm2->reset_parameters();
}

Tensor TransformerEncoderLayerImpl::forward(const Tensor& src, const Tensor& src_mask,
                                            const Tensor& src_key_padding_mask) {
  Tensor attended = std::get<0>(self_attn(src, src, src, src_key_padding_mask, false, src_mask));
  Tensor x = norm1(src + dropout1(attended));
  return norm2(x + dropout2(linear2(dropout(activated(options.activation(), linear1(x))))));
}

TransformerDecoderLayerImpl::TransformerDecoderLayerImpl(int64_t d_model, int64_t nhead)
    : TransformerDecoderLayerImpl(TransformerDecoderLayerOptions(d_model, nhead)) {}
TransformerDecoderLayerImpl::TransformerDecoderLayerImpl(TransformerDecoderLayerOptions o) : options(std::move(o)) {
  TransformerDecoderLayerImpl::reset();
}

void TransformerDecoderLayerImpl::reset() {
  self_attn = register_module("self_attn", attention(options));
  multihead_attn = register_module("multihead_attn", attention(options));
  linear1 = register_module("linear1", Linear(options.d_model(), options.dim_feedforward()));
  dropout = register_module("dropout", Dropout(options.dropout()));
  linear2 = register_module("linear2", Linear(options.dim_feedforward(), options.d_model()));
  norm1 = register_module("norm1", norm_of(options));
  norm2 = register_module("norm2", norm_of(options));
  norm3 = register_module("norm3", norm_of(options));
  dropout1 = register_module("dropout1", Dropout(options.dropout()));
  dropout2 = register_module("dropout2", Dropout(options.dropout()));
  dropout3 = register_module("dropout3", Dropout(options.dropout()));
}

void TransformerDecoderLayerImpl::reset_parameters() {
  linear1->reset_parameters();
  linear2->reset_parameters();
  norm1->reset_parameters();
  norm2->reset_parameters();
  norm3->reset_parameters();
}

Tensor TransformerDecoderLayerImpl::forward(Tensor tgt, const Tensor& memory, const Tensor& tgt_mask,
                                            const Tensor& memory_mask, const Tensor& tgt_key_padding_mask,
                                            const Tensor& memory_key_padding_mask) {
  Tensor own = std::get<0>(self_attn(tgt, tgt, tgt, tgt_key_padding_mask, false, tgt_mask));
  Tensor x = norm1(tgt + dropout1(own));
  Tensor other = std::get<0>(multihead_attn(x, memory, memory, memory_key_padding_mask, false, memory_mask));
  x = norm2(x + dropout2(other));
  return norm3(x + dropout3(linear2(dropout(activated(options.activation(), linear1(x))))));
}

TransformerEncoderImpl::TransformerEncoderImpl(TransformerEncoderLayer layer, int64_t num_layers)
    : TransformerEncoderImpl(TransformerEncoderOptions(std::move(layer), num_layers)) {}
TransformerEncoderImpl::TransformerEncoderImpl(TransformerEncoderOptions o) : options(std::move(o)) {
  TransformerEncoderImpl::reset();
}

void TransformerEncoderImpl::reset() {
  layers = register_module("layers", ModuleList());
  for (int64_t i = 0; i < options.num_layers(); ++i) layers->push_back(options.layer()->clone());
  if (!options.norm().is_empty()) {
    norm = options.norm().clone();
    register_module("norm", norm.ptr());
  }
}

void TransformerEncoderImpl::reset_parameters() {
  BRASA_CHECK(layers->size() == static_cast<size_t>(options.num_layers()), "TransformerEncoder should have ",
              options.num_layers(), " encoder layers, but got ", layers->size());
  for (size_t i = 0; i < layers->size(); ++i) layers->at<TransformerEncoderLayerImpl>(i).reset_parameters();
  if (!norm.is_empty()) norm.get<LayerNorm>()->reset_parameters();
}

Tensor TransformerEncoderImpl::forward(const Tensor& src, const Tensor& src_mask, const Tensor& src_key_padding_mask) {
  BRASA_CHECK(layers->size() > 0, "TransformerEncoder: it has no layers");
  Tensor x = src;
  for (size_t i = 0; i < layers->size(); ++i)
    x = layers->at<TransformerEncoderLayerImpl>(i).forward(x, src_mask, src_key_padding_mask);
  return norm.is_empty() ? x : norm.forward<Tensor>(x);
}

TransformerDecoderImpl::TransformerDecoderImpl(TransformerDecoderLayer layer, int64_t num_layers)
    : TransformerDecoderImpl(TransformerDecoderOptions(std::move(layer), num_layers)) {}
TransformerDecoderImpl::TransformerDecoderImpl(TransformerDecoderOptions o) : options(std::move(o)) {
  TransformerDecoderImpl::reset();
}

void TransformerDecoderImpl::reset() {
  layers = register_module("layers", ModuleList());
  for (int64_t i = 0; i < options.num_layers(); ++i) layers->push_back(options.layer()->clone());
  if (!options.norm().is_empty()) {
    norm = options.norm().clone();
    register_module("norm", norm.ptr());
  }
}

void TransformerDecoderImpl::reset_parameters() {
  BRASA_CHECK(layers->size() == static_cast<size_t>(options.num_layers()), "TransformerDecoder should have ",
              options.num_layers(), " decoder layers, but got ", layers->size());
  for (size_t i = 0; i < layers->size(); ++i) layers->at<TransformerDecoderLayerImpl>(i).reset_parameters();
  if (!norm.is_empty()) norm.get<LayerNorm>()->reset_parameters();
}

Tensor TransformerDecoderImpl::forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask,
                                       const Tensor& memory_mask, const Tensor& tgt_key_padding_mask,
                                       const Tensor& memory_key_padding_mask) {
  BRASA_CHECK(layers->size() > 0, "TransformerDecoder: it has no layers");
  Tensor x = tgt;
  for (size_t i = 0; i < layers->size(); ++i)
    x = layers->at<TransformerDecoderLayerImpl>(i).forward(x, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                                                           memory_key_padding_mask);
  return norm.is_empty() ? x : norm.forward<Tensor>(x);
}

TransformerImpl::TransformerImpl(TransformerOptions o) : options(std::move(o)) { TransformerImpl::reset(); }

void TransformerImpl::reset() {
  auto layer = TransformerEncoderLayerOptions(options.d_model(), options.nhead())
                   .dim_feedforward(options.dim_feedforward())
                   .dropout(options.dropout())
                   .activation(options.activation());
  auto norm = [&] { return AnyModule(norm_of(layer)); };
  encoder =
      options.custom_encoder().is_empty()
          ? AnyModule(TransformerEncoder(
                TransformerEncoderOptions(TransformerEncoderLayer(layer), options.num_encoder_layers()).norm(norm())))
          : options.custom_encoder().clone();
  register_module("encoder", encoder.ptr());
  decoder =
      options.custom_decoder().is_empty()
          ? AnyModule(TransformerDecoder(
                TransformerDecoderOptions(TransformerDecoderLayer(layer), options.num_decoder_layers()).norm(norm())))
          : options.custom_decoder().clone();
  register_module("decoder", decoder.ptr());
  reset_parameters();
}

void TransformerImpl::reset_parameters() { spread(parameters()); }

Tensor TransformerImpl::forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask, const Tensor& tgt_mask,
                                const Tensor& memory_mask, const Tensor& src_key_padding_mask,
                                const Tensor& tgt_key_padding_mask, const Tensor& memory_key_padding_mask) {
  BRASA_CHECK(src.dim() == 3 && tgt.dim() == 3, "Transformer: src and tgt should have 3 dimensions, got ", src.sizes(),
              " and ", tgt.sizes());
  BRASA_CHECK(src.size(1) == tgt.size(1), "Transformer: src and tgt should have equal batch size, got ", src.size(1),
              " and ", tgt.size(1));
  BRASA_CHECK(src.size(2) == options.d_model() && tgt.size(2) == options.d_model(),
              "Transformer: src and tgt should have same feature size as d_model ", options.d_model(), ", got ",
              src.size(2), " and ", tgt.size(2));
  Tensor memory = encoder.forward<Tensor>(src, src_mask, src_key_padding_mask);
  return decoder.forward<Tensor>(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask);
}

Tensor TransformerImpl::generate_square_subsequent_mask(int64_t size) {
  BRASA_CHECK(size >= 0, "generate_square_subsequent_mask: the size must not be negative, got ", size);
  return triu(full({size, size}, -HUGE_VAL), 1);
}

}  // namespace brasa::nn
