#pragma once

#include <brasa/arg.h>
#include <brasa/enum.h>
#include <brasa/tensor.h>

namespace brasa::nn {

using RNNNonlinearity = Choice<enumtype::kTanh, enumtype::kReLU>;

namespace detail {

/// What the three recurrent layers share.
struct RNNOptionsBase {
  using rnn_options_base_mode_t = Choice<enumtype::kLSTM, enumtype::kGRU, enumtype::kRNN_TANH, enumtype::kRNN_RELU>;
  RNNOptionsBase(rnn_options_base_mode_t mode, int64_t input_size, int64_t hidden_size)
      : mode_(mode), input_size_(input_size), hidden_size_(hidden_size) {}
  BRASA_ARG(rnn_options_base_mode_t, mode);
  BRASA_ARG(int64_t, input_size);
  BRASA_ARG(int64_t, hidden_size);
  BRASA_ARG(int64_t, num_layers) = 1;
  BRASA_ARG(bool, bias) = true;
  BRASA_ARG(bool, batch_first) = false;
  BRASA_ARG(double, dropout) = 0.0;
  BRASA_ARG(bool, bidirectional) = false;
  BRASA_ARG(int64_t, proj_size) = 0;
};

}  // namespace detail

struct RNNOptions {
  RNNOptions(int64_t input_size, int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {}
  BRASA_ARG(int64_t, input_size);
  BRASA_ARG(int64_t, hidden_size);
  BRASA_ARG(int64_t, num_layers) = 1;
  BRASA_ARG(RNNNonlinearity, nonlinearity) = kTanh;
  BRASA_ARG(bool, bias) = true;
  BRASA_ARG(bool, batch_first) = false;
  /// Of every layer's output but the last.
  BRASA_ARG(double, dropout) = 0.0;
  BRASA_ARG(bool, bidirectional) = false;
};
struct LSTMOptions {
  LSTMOptions(int64_t input_size, int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {}
  BRASA_ARG(int64_t, input_size);
  BRASA_ARG(int64_t, hidden_size);
  BRASA_ARG(int64_t, num_layers) = 1;
  BRASA_ARG(bool, bias) = true;
  BRASA_ARG(bool, batch_first) = false;
  BRASA_ARG(double, dropout) = 0.0;
  BRASA_ARG(bool, bidirectional) = false;
  /// The size that the hidden state is projected to; 0: not at all.
  BRASA_ARG(int64_t, proj_size) = 0;
};
struct GRUOptions {
  GRUOptions(int64_t input_size, int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {}
  BRASA_ARG(int64_t, input_size);
  BRASA_ARG(int64_t, hidden_size);
  BRASA_ARG(int64_t, num_layers) = 1;
  BRASA_ARG(bool, bias) = true;
  BRASA_ARG(bool, batch_first) = false;
  BRASA_ARG(double, dropout) = 0.0;
  BRASA_ARG(bool, bidirectional) = false;
};

struct RNNCellOptions {
  RNNCellOptions(int64_t input_size, int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {}
  BRASA_ARG(int64_t, input_size);
  BRASA_ARG(int64_t, hidden_size);
  BRASA_ARG(bool, bias) = true;
  BRASA_ARG(RNNNonlinearity, nonlinearity) = kTanh;
};
struct LSTMCellOptions {
  LSTMCellOptions(int64_t input_size, int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {}
  BRASA_ARG(int64_t, input_size);
  BRASA_ARG(int64_t, hidden_size);
  BRASA_ARG(bool, bias) = true;
};
using GRUCellOptions = LSTMCellOptions;

}  // namespace brasa::nn
