#pragma once

#include <tuple>

#include <brasa/nn/any.h>
#include <brasa/nn/modules/layer.h>
#include <brasa/nn/options/rnn.h>
#include <brasa/nn/utils/rnn.h>

namespace brasa::nn {

namespace detail {

/// Parameters of layer k and, with suffix _reverse, of its backward direction: weight_ih_l{k} [gates · hidden, input],
/// weight_hh_l{k}, bias_ih_l{k}, bias_hh_l{k}, and weight_hr_l{k} of a projection; uniform in ±1/sqrt(hidden_size).
class BRASA_API RNNBase : public Module {
 public:
  explicit RNNBase(RNNOptionsBase options) : options_base(std::move(options)) {}
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  /// Nothing to do: the parameters are read where they lie.
  void flatten_parameters() {}
  std::vector<Tensor> all_weights() const;

  RNNOptionsBase options_base;

 protected:
  void register_weights();
  /// The step's kind among rnn_tanh, rnn_relu and gru.
  std::tuple<Tensor, Tensor> run(const Tensor& input, Tensor hx) const;
  std::tuple<utils::rnn::PackedSequence, Tensor> run(const utils::rnn::PackedSequence& input, Tensor hx) const;
  void check_input(const Tensor& input, int64_t rank) const;
  void check_state(const Tensor& state, const std::vector<int64_t>& sizes, const char* name) const;
  std::vector<int64_t> state_sizes(int64_t batch, bool cell = false) const;

  std::vector<Tensor> flat_weights_;
};

}  // namespace detail

template <class Derived>
class RNNImplBase : public Cloneable<Derived, detail::RNNBase> {
 public:
  using Cloneable<Derived, detail::RNNBase>::Cloneable;
  void reset() override { this->register_weights(); }
};

#define BRASA_RECURRENT(Name)                                                                                         \
  class BRASA_API Name##Impl : public RNNImplBase<Name##Impl> {                                                       \
   public:                                                                                                            \
    Name##Impl(int64_t input_size, int64_t hidden_size);                                                              \
    explicit Name##Impl(const Name##Options& options);                                                                \
    /** {outputs of the last layer [L, N, D · hidden], last states [D · layers, N, hidden]}. */                       \
    std::tuple<Tensor, Tensor> forward(const Tensor& input, Tensor hx = {}) { return run(input, hx); }                \
    std::tuple<utils::rnn::PackedSequence, Tensor> forward_with_packed_input(const utils::rnn::PackedSequence& input, \
                                                                             Tensor hx = {}) {                        \
      return run(input, hx);                                                                                          \
    }                                                                                                                 \
    Name##Options options;                                                                                            \
                                                                                                                      \
   protected:                                                                                                         \
    BRASA_FORWARD_DEFAULTS({1, AnyValue(Tensor())})                                                                   \
  };                                                                                                                  \
  BRASA_MODULE(Name)
/// Elman's: h ← tanh(W_ih x + b_ih + W_hh h + b_hh), or relu.
BRASA_RECURRENT(RNN);
/// Cho et al. 2014.
BRASA_RECURRENT(GRU);
#undef BRASA_RECURRENT

/// Hochreiter & Schmidhuber 1997, with a forget gate; the state is {h, c}.
class BRASA_API LSTMImpl : public RNNImplBase<LSTMImpl> {
 public:
  using State = std::tuple<Tensor, Tensor>;
  LSTMImpl(int64_t input_size, int64_t hidden_size);
  explicit LSTMImpl(const LSTMOptions& options);
  std::tuple<Tensor, State> forward(const Tensor& input, std::optional<State> hx_opt = {});
  std::tuple<utils::rnn::PackedSequence, State> forward_with_packed_input(const utils::rnn::PackedSequence& input,
                                                                          std::optional<State> hx_opt = {});
  LSTMOptions options;

 protected:
  BRASA_FORWARD_DEFAULTS({1, AnyValue(std::optional<State>())})

 private:
  std::vector<Tensor> initial(const std::optional<State>& state, const Tensor& like, int64_t batch,
                              const Tensor& order) const;
};
BRASA_MODULE(LSTM);

namespace detail {

/// One step of one layer: weight_ih, weight_hh, bias_ih, bias_hh.
class BRASA_API RNNCellBase : public Module {
 public:
  RNNCellBase(int64_t input_size, int64_t hidden_size, bool bias, int64_t gates)
      : input_size_(input_size), hidden_size_(hidden_size), gates_(gates), bias_(bias) {}
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  Tensor weight_ih, weight_hh, bias_ih, bias_hh;

 protected:
  void register_weights();
  virtual std::string nonlinearity() const { return {}; }
  /// The state, zeros if it is undefined; brasa::Error if input or state do not fit.
  Tensor checked(const Tensor& input, const Tensor& state, const char* name) const;
  int64_t input_size_, hidden_size_, gates_;
  bool bias_;
};

}  // namespace detail

template <class Derived>
class RNNCellImplBase : public Cloneable<Derived, detail::RNNCellBase> {
 public:
  using Cloneable<Derived, detail::RNNCellBase>::Cloneable;
  void reset() override { this->register_weights(); }
};

class BRASA_API RNNCellImpl : public RNNCellImplBase<RNNCellImpl> {
 public:
  RNNCellImpl(int64_t input_size, int64_t hidden_size);
  explicit RNNCellImpl(const RNNCellOptions& options);
  Tensor forward(const Tensor& input, Tensor hx = {});
  RNNCellOptions options;

 protected:
  BRASA_FORWARD_DEFAULTS({1, AnyValue(Tensor())})
  std::string nonlinearity() const override;
};
BRASA_MODULE(RNNCell);

class BRASA_API LSTMCellImpl : public RNNCellImplBase<LSTMCellImpl> {
 public:
  using State = std::tuple<Tensor, Tensor>;
  LSTMCellImpl(int64_t input_size, int64_t hidden_size);
  explicit LSTMCellImpl(const LSTMCellOptions& options);
  State forward(const Tensor& input, std::optional<State> hx_opt = {});
  LSTMCellOptions options;

 protected:
  BRASA_FORWARD_DEFAULTS({1, AnyValue(std::optional<State>())})
};
BRASA_MODULE(LSTMCell);

class BRASA_API GRUCellImpl : public RNNCellImplBase<GRUCellImpl> {
 public:
  GRUCellImpl(int64_t input_size, int64_t hidden_size);
  explicit GRUCellImpl(const GRUCellOptions& options);
  Tensor forward(const Tensor& input, Tensor hx = {});
  GRUCellOptions options;

 protected:
  BRASA_FORWARD_DEFAULTS({1, AnyValue(Tensor())})
};
BRASA_MODULE(GRUCell);

}  // namespace brasa::nn
