#pragma once

#include <brasa/nn/modules/attention.h>
#include <brasa/nn/modules/container.h>
#include <brasa/nn/modules/dropout.h>
#include <brasa/nn/modules/norm.h>
#include <brasa/nn/options/transformer.h>

// Vaswani et al. 2017. Sequences are [length, batch, d_model]; masks as in MultiheadAttention.
namespace brasa::nn {

class BRASA_API TransformerEncoderLayerImpl : public Cloneable<TransformerEncoderLayerImpl> {
 public:
  TransformerEncoderLayerImpl(int64_t d_model, int64_t nhead);
  explicit TransformerEncoderLayerImpl(TransformerEncoderLayerOptions options);
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& src, const Tensor& src_mask = {}, const Tensor& src_key_padding_mask = {});

  TransformerEncoderLayerOptions options;
  MultiheadAttention self_attn{nullptr};
  Linear linear1{nullptr}, linear2{nullptr};
  Dropout dropout{nullptr}, dropout1{nullptr}, dropout2{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr};

 protected:
  BRASA_FORWARD_DEFAULTS({1, AnyValue(Tensor())}, {2, AnyValue(Tensor())})
};
BRASA_MODULE(TransformerEncoderLayer);

class BRASA_API TransformerDecoderLayerImpl : public Cloneable<TransformerDecoderLayerImpl> {
 public:
  TransformerDecoderLayerImpl(int64_t d_model, int64_t nhead);
  explicit TransformerDecoderLayerImpl(TransformerDecoderLayerOptions options);
  void reset() override;
  void reset_parameters();
  Tensor forward(Tensor tgt, const Tensor& memory, const Tensor& tgt_mask = {}, const Tensor& memory_mask = {},
                 const Tensor& tgt_key_padding_mask = {}, const Tensor& memory_key_padding_mask = {});

  TransformerDecoderLayerOptions options;
  MultiheadAttention self_attn{nullptr}, multihead_attn{nullptr};
  Linear linear1{nullptr}, linear2{nullptr};
  Dropout dropout{nullptr}, dropout1{nullptr}, dropout2{nullptr}, dropout3{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr}, norm3{nullptr};

 protected:
  BRASA_FORWARD_DEFAULTS({2, AnyValue(Tensor())}, {3, AnyValue(Tensor())}, {4, AnyValue(Tensor())},
                         {5, AnyValue(Tensor())})
};
BRASA_MODULE(TransformerDecoderLayer);

using TransformerEncoderOptions = TransformerCoderOptions<TransformerEncoderLayer>;
using TransformerDecoderOptions = TransformerCoderOptions<TransformerDecoderLayer>;

class BRASA_API TransformerEncoderImpl : public Cloneable<TransformerEncoderImpl> {
 public:
  TransformerEncoderImpl(TransformerEncoderLayer layer, int64_t num_layers);
  explicit TransformerEncoderImpl(TransformerEncoderOptions options);
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& src, const Tensor& src_mask = {}, const Tensor& src_key_padding_mask = {});

  TransformerEncoderOptions options;
  ModuleList layers{nullptr};
  AnyModule norm;

 protected:
  BRASA_FORWARD_DEFAULTS({1, AnyValue(Tensor())}, {2, AnyValue(Tensor())})
};
BRASA_MODULE(TransformerEncoder);

class BRASA_API TransformerDecoderImpl : public Cloneable<TransformerDecoderImpl> {
 public:
  TransformerDecoderImpl(TransformerDecoderLayer layer, int64_t num_layers);
  explicit TransformerDecoderImpl(TransformerDecoderOptions options);
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {}, const Tensor& memory_mask = {},
                 const Tensor& tgt_key_padding_mask = {}, const Tensor& memory_key_padding_mask = {});

  TransformerDecoderOptions options;
  ModuleList layers{nullptr};
  AnyModule norm;

 protected:
  BRASA_FORWARD_DEFAULTS({2, AnyValue(Tensor())}, {3, AnyValue(Tensor())}, {4, AnyValue(Tensor())},
                         {5, AnyValue(Tensor())})
};
BRASA_MODULE(TransformerDecoder);

class BRASA_API TransformerImpl : public Cloneable<TransformerImpl> {
 public:
  explicit TransformerImpl(TransformerOptions options = {});
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask = {}, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& src_key_padding_mask = {},
                 const Tensor& tgt_key_padding_mask = {}, const Tensor& memory_key_padding_mask = {});
  /// [size, size]: -inf above the diagonal, 0 elsewhere.
  static Tensor generate_square_subsequent_mask(int64_t size);

  TransformerOptions options;
  AnyModule encoder, decoder;

 protected:
  BRASA_FORWARD_DEFAULTS({2, AnyValue(Tensor())}, {3, AnyValue(Tensor())}, {4, AnyValue(Tensor())},
                         {5, AnyValue(Tensor())}, {6, AnyValue(Tensor())}, {7, AnyValue(Tensor())})
};
BRASA_MODULE(Transformer);

}  // namespace brasa::nn
