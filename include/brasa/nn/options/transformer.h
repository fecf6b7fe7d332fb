#pragma once

#include <functional>

#include <brasa/arg.h>
#include <brasa/enum.h>
#include <brasa/nn/any.h>
#include <brasa/tensor.h>

namespace brasa::nn {

/// kReLU, kGELU or a function of one's own.
class activation_t {
 public:
  using Function = std::function<Tensor(const Tensor&)>;
  activation_t(enumtype::kReLU word) : word_(word) {}  // NOLINT
  activation_t(enumtype::kGELU word) : word_(word) {}  // NOLINT
  template <class F>
    requires(std::is_invocable_r_v<Tensor, F, const Tensor&>)
  activation_t(F function) : function_(std::move(function)) {}  // NOLINT
  /// Empty if it is a word.
  const Function& function() const { return function_; }
  Choice<enumtype::kReLU, enumtype::kGELU> word() const { return word_; }

 private:
  Choice<enumtype::kReLU, enumtype::kGELU> word_ = kReLU;
  Function function_;
};

struct TransformerEncoderLayerOptions {
  TransformerEncoderLayerOptions(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}
  BRASA_ARG(int64_t, d_model);
  BRASA_ARG(int64_t, nhead);
  BRASA_ARG(int64_t, dim_feedforward) = 2048;
  BRASA_ARG(double, dropout) = 0.1;
  BRASA_ARG(activation_t, activation) = kReLU;
};
using TransformerDecoderLayerOptions = TransformerEncoderLayerOptions;

/// num_layers copies of a layer, and what follows them.
template <class Layer>
struct TransformerCoderOptions {
  TransformerCoderOptions(Layer layer, int64_t num_layers) : layer_(std::move(layer)), num_layers_(num_layers) {}
  /// Of a new layer with these options.
  template <class O>
    requires(std::is_same_v<O, TransformerEncoderLayerOptions>)
  TransformerCoderOptions(const O& options, int64_t num_layers) : layer_(Layer(options)), num_layers_(num_layers) {}
  BRASA_ARG(Layer, layer) = nullptr;
  BRASA_ARG(int64_t, num_layers);
  BRASA_ARG(AnyModule, norm);

 public:
  decltype(auto) encoder_layer(Layer l) { return layer(std::move(l)); }
  Layer& encoder_layer() { return layer_; }
  const Layer& encoder_layer() const { return layer_; }
  decltype(auto) decoder_layer(Layer l) { return layer(std::move(l)); }
  Layer& decoder_layer() { return layer_; }
  const Layer& decoder_layer() const { return layer_; }
};

struct TransformerOptions {
  TransformerOptions() = default;
  TransformerOptions(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}
  TransformerOptions(int64_t d_model, int64_t nhead, int64_t num_encoder_layers, int64_t num_decoder_layers)
      : d_model_(d_model),
        nhead_(nhead),
        num_encoder_layers_(num_encoder_layers),
        num_decoder_layers_(num_decoder_layers) {}
  BRASA_ARG(int64_t, d_model) = 512;
  BRASA_ARG(int64_t, nhead) = 8;
  BRASA_ARG(int64_t, num_encoder_layers) = 6;
  BRASA_ARG(int64_t, num_decoder_layers) = 6;
  BRASA_ARG(int64_t, dim_feedforward) = 2048;
  BRASA_ARG(double, dropout) = 0.1;
  BRASA_ARG(activation_t, activation) = kReLU;
  BRASA_ARG(AnyModule, custom_encoder);
  BRASA_ARG(AnyModule, custom_decoder);
};

}  // namespace brasa::nn
