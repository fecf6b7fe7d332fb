#include <brasa/nn/modules/rnn.h>

#include <cmath>

#include <brasa/brasa.h>
#include <brasa/nn/init.h>

#include "nn/optional.h"
#include "nn/print.h"
#include "support/error.h"

namespace brasa::nn {
namespace detail {
namespace {

// The numbers of sequences, which live on the CPU, where the layer runs.
Tensor there(const utils::rnn::PackedSequence& input) { return input.batch_sizes().to(input.data().device()); }

template <class E>
bool is(const RNNOptionsBase& o) {
  return holds_alternative<E>(o.mode());
}
const char* layer_name(const RNNOptionsBase& o) {
  return is<enumtype::kLSTM>(o) ? "LSTM" : is<enumtype::kGRU>(o) ? "GRU" : "RNN";
}
int64_t gates(const RNNOptionsBase& o) { return is<enumtype::kLSTM>(o) ? 4 : is<enumtype::kGRU>(o) ? 3 : 1; }
Tensor ordered(const Tensor& state, const Tensor& order) {
  return order.defined() && state.defined() ? state.index_select(1, order) : state;
}

}  // namespace

void RNNBase::register_weights() {
  const RNNOptionsBase& o = options_base;
  BRASA_CHECK(o.dropout() >= 0 && o.dropout() <= 1, layer_name(o), ": dropout must lie in [0, 1], got ", o.dropout());
  BRASA_CHECK(o.hidden_size() > 0, layer_name(o), ": hidden_size must be positive, got ", o.hidden_size());
  BRASA_CHECK(o.num_layers() > 0, layer_name(o), ": num_layers must be positive, got ", o.num_layers());
  BRASA_CHECK(o.proj_size() >= 0 && o.proj_size() < o.hidden_size(), layer_name(o),
              ": proj_size has to be smaller than hidden_size ", o.hidden_size(), ", got ", o.proj_size());
  flat_weights_.clear();
  int64_t rows = gates(o) * o.hidden_size(), out = o.proj_size() > 0 ? o.proj_size() : o.hidden_size();
  int64_t directions = o.bidirectional() ? 2 : 1;
  for (int64_t layer = 0; layer < o.num_layers(); ++layer)
    for (int64_t direction = 0; direction < directions; ++direction) {
      std::string suffix = "_l" + std::to_string(layer) + (direction ? "_reverse" : "");
      auto add = [&](const char* name, IntArrayRef sizes) {
        flat_weights_.push_back(register_parameter(name + suffix, brasa::empty(sizes)));
      };
      add("weight_ih", {rows, layer == 0 ? o.input_size() : out * directions});
      add("weight_hh", {rows, out});
      if (o.bias()) {
        add("bias_ih", {rows});
        add("bias_hh", {rows});
      }
      if (o.proj_size() > 0) add("weight_hr", {o.proj_size(), o.hidden_size()});
    }
  reset_parameters();
}

void RNNBase::reset_parameters() {
  double bound = 1.0 / std::sqrt(static_cast<double>(options_base.hidden_size()));
  for (Tensor& w : flat_weights_) init::uniform_(w, -bound, bound);
}

std::vector<Tensor> RNNBase::all_weights() const { return flat_weights_; }

void RNNBase::pretty_print(std::ostream& stream) const {
  const RNNOptionsBase& o = options_base;
  Described d(stream, layer_name(o));
  d("input_size", o.input_size())("hidden_size", o.hidden_size())("num_layers", o.num_layers())("bias", o.bias());
  d("batch_first", o.batch_first())("dropout", o.dropout())("bidirectional", o.bidirectional());
  if (o.proj_size() > 0) d("proj_size", o.proj_size());
}

void RNNBase::check_input(const Tensor& input, int64_t rank) const {
  BRASA_CHECK(input.dim() == rank, layer_name(options_base), ": expected an input of ", rank, " dimensions, got ",
              input.sizes());
  BRASA_CHECK(input.size(-1) == options_base.input_size(), layer_name(options_base),
              ": expected an input whose last size is ", options_base.input_size(), ", got ", input.sizes());
}
void RNNBase::check_state(const Tensor& state, const std::vector<int64_t>& sizes, const char* name) const {
  BRASA_CHECK(state.sizes() == IntArrayRef(sizes), layer_name(options_base), ": expected ", name, " of sizes ",
              IntArrayRef(sizes), ", got ", state.sizes());
}
std::vector<int64_t> RNNBase::state_sizes(int64_t batch, bool cell) const {
  const RNNOptionsBase& o = options_base;
  return {o.num_layers() * (o.bidirectional() ? 2 : 1), batch,
          o.proj_size() > 0 && !cell ? o.proj_size() : o.hidden_size()};
}

std::tuple<Tensor, Tensor> RNNBase::run(const Tensor& input, Tensor hx) const {
  const RNNOptionsBase& o = options_base;
  check_input(input, 3);
  std::vector<int64_t> sizes = state_sizes(input.size(o.batch_first() ? 0 : 1));
  if (!hx.defined()) hx = zeros(sizes, input.options());
  check_state(hx, sizes, "a state");
  auto call = [&](auto f) {
    return f(input, hx, flat_weights_, o.bias(), o.num_layers(), o.dropout(), is_training(), o.bidirectional(),
             o.batch_first());
  };
  if (is<enumtype::kGRU>(o)) return call([](auto&&... a) { return gru(a...); });
  if (is<enumtype::kRNN_TANH>(o)) return call([](auto&&... a) { return rnn_tanh(a...); });
  return call([](auto&&... a) { return rnn_relu(a...); });
}

std::tuple<utils::rnn::PackedSequence, Tensor> RNNBase::run(const utils::rnn::PackedSequence& input, Tensor hx) const {
  const RNNOptionsBase& o = options_base;
  check_input(input.data(), 2);
  std::vector<int64_t> sizes = state_sizes(input.batch_sizes()[0].item<int64_t>());
  hx = hx.defined() ? ordered(hx, input.sorted_indices()) : zeros(sizes, input.data().options());
  check_state(hx, sizes, "a state");
  auto call = [&](auto f) -> std::tuple<Tensor, Tensor> {
    return f(input.data(), there(input), hx, flat_weights_, o.bias(), o.num_layers(), o.dropout(), is_training(),
             o.bidirectional());
  };
  auto [out, state] = is<enumtype::kGRU>(o)        ? call([](auto&&... a) { return gru(a...); })
                      : is<enumtype::kRNN_TANH>(o) ? call([](auto&&... a) { return rnn_tanh(a...); })
                                                   : call([](auto&&... a) { return rnn_relu(a...); });
  return {utils::rnn::PackedSequence(out, input.batch_sizes(), input.sorted_indices(), input.unsorted_indices()),
          ordered(state, input.unsorted_indices())};
}

}  // namespace detail

namespace {

template <class Options>
detail::RNNOptionsBase base(const Options& o, detail::RNNOptionsBase::rnn_options_base_mode_t mode) {
  return detail::RNNOptionsBase(mode, o.input_size(), o.hidden_size())
      .num_layers(o.num_layers())
      .bias(o.bias())
      .batch_first(o.batch_first())
      .dropout(o.dropout())
      .bidirectional(o.bidirectional());
}
detail::RNNOptionsBase base(const RNNOptions& o) {
  if (holds_alternative<enumtype::kTanh>(o.nonlinearity())) return base(o, kRNN_TANH);
  return base(o, kRNN_RELU);
}

}  // namespace

RNNImpl::RNNImpl(int64_t input_size, int64_t hidden_size) : RNNImpl(RNNOptions(input_size, hidden_size)) {}
RNNImpl::RNNImpl(const RNNOptions& o) : RNNImplBase(base(o)), options(o) { RNNImpl::reset(); }
GRUImpl::GRUImpl(int64_t input_size, int64_t hidden_size) : GRUImpl(GRUOptions(input_size, hidden_size)) {}
GRUImpl::GRUImpl(const GRUOptions& o) : RNNImplBase(base(o, kGRU)), options(o) { GRUImpl::reset(); }
LSTMImpl::LSTMImpl(int64_t input_size, int64_t hidden_size) : LSTMImpl(LSTMOptions(input_size, hidden_size)) {}
LSTMImpl::LSTMImpl(const LSTMOptions& o) : RNNImplBase(base(o, kLSTM).proj_size(o.proj_size())), options(o) {
  LSTMImpl::reset();
}

std::vector<Tensor> LSTMImpl::initial(const std::optional<State>& state, const Tensor& like, int64_t batch,
                                      const Tensor& order) const {
  std::vector<Tensor> out;
  for (bool cell : {false, true}) {
    std::vector<int64_t> sizes = state_sizes(batch, cell);
    Tensor s = !state ? zeros(sizes, like.options()) : cell ? std::get<1>(*state) : std::get<0>(*state);
    if (state) check_state(s, sizes, cell ? "a cell state" : "a hidden state");
    out.push_back(state ? detail::ordered(s, order) : s);
  }
  return out;
}

std::tuple<Tensor, LSTMImpl::State> LSTMImpl::forward(const Tensor& input, std::optional<State> hx_opt) {
  const detail::RNNOptionsBase& o = options_base;
  check_input(input, 3);
  auto [out, h, c] = lstm(input, initial(hx_opt, input, input.size(o.batch_first() ? 0 : 1), {}), flat_weights_,
                          o.bias(), o.num_layers(), o.dropout(), is_training(), o.bidirectional(), o.batch_first());
  return {out, State(h, c)};
}

std::tuple<utils::rnn::PackedSequence, LSTMImpl::State> LSTMImpl::forward_with_packed_input(
    const utils::rnn::PackedSequence& input, std::optional<State> hx_opt) {
  const detail::RNNOptionsBase& o = options_base;
  check_input(input.data(), 2);
  auto [out, h, c] = lstm(input.data(), detail::there(input),
                          initial(hx_opt, input.data(), input.batch_sizes()[0].item<int64_t>(), input.sorted_indices()),
                          flat_weights_, o.bias(), o.num_layers(), o.dropout(), is_training(), o.bidirectional());
  return {utils::rnn::PackedSequence(out, input.batch_sizes(), input.sorted_indices(), input.unsorted_indices()),
          State(detail::ordered(h, input.unsorted_indices()), detail::ordered(c, input.unsorted_indices()))};
}

namespace detail {

void RNNCellBase::register_weights() {
  weight_ih = register_parameter("weight_ih", brasa::empty({gates_ * hidden_size_, input_size_}));
  weight_hh = register_parameter("weight_hh", brasa::empty({gates_ * hidden_size_, hidden_size_}));
  bias_ih = register_parameter("bias_ih", bias_ ? brasa::empty({gates_ * hidden_size_}) : Tensor(), bias_);
  bias_hh = register_parameter("bias_hh", bias_ ? brasa::empty({gates_ * hidden_size_}) : Tensor(), bias_);
  reset_parameters();
}

void RNNCellBase::reset_parameters() {
  double bound = 1.0 / std::sqrt(static_cast<double>(hidden_size_));
  for (Tensor& w : parameters()) init::uniform_(w, -bound, bound);
}

void RNNCellBase::pretty_print(std::ostream& stream) const {
  const char* names[] = {"RNNCell", "GRUCell", "LSTMCell"};
  Described d(stream, names[gates_ == 1 ? 0 : gates_ - 2]);
  d.value(input_size_).value(hidden_size_);
  if (!bias_) d("bias", false);
  if (std::string word = nonlinearity(); !word.empty() && word != "kTanh") d("nonlinearity", word);
}

Tensor RNNCellBase::checked(const Tensor& input, const Tensor& state, const char* name) const {
  BRASA_CHECK(input.dim() >= 1 && input.size(-1) == input_size_, "RNNCell: expected an input whose last size is ",
              input_size_, ", got ", input.sizes());
  std::vector<int64_t> sizes = input.sizes().vec();
  sizes.back() = hidden_size_;
  if (!state.defined()) return zeros(sizes, input.options());
  BRASA_CHECK(state.sizes() == IntArrayRef(sizes), "RNNCell: expected ", name, " of sizes ", IntArrayRef(sizes),
              ", got ", state.sizes());
  return state;
}

}  // namespace detail

RNNCellImpl::RNNCellImpl(int64_t input_size, int64_t hidden_size)
    : RNNCellImpl(RNNCellOptions(input_size, hidden_size)) {}
RNNCellImpl::RNNCellImpl(const RNNCellOptions& o)
    : RNNCellImplBase(o.input_size(), o.hidden_size(), o.bias(), 1), options(o) {
  RNNCellImpl::reset();
}
std::string RNNCellImpl::nonlinearity() const { return enumtype::get_enum_name(options.nonlinearity()); }
Tensor RNNCellImpl::forward(const Tensor& input, Tensor hx) {
  hx = checked(input, hx, "a state");
  if (holds_alternative<enumtype::kTanh>(options.nonlinearity()))
    return rnn_tanh_cell(input, hx, weight_ih, weight_hh, optional(bias_ih), optional(bias_hh));
  return rnn_relu_cell(input, hx, weight_ih, weight_hh, optional(bias_ih), optional(bias_hh));
}

LSTMCellImpl::LSTMCellImpl(int64_t input_size, int64_t hidden_size)
    : LSTMCellImpl(LSTMCellOptions(input_size, hidden_size)) {}
LSTMCellImpl::LSTMCellImpl(const LSTMCellOptions& o)
    : RNNCellImplBase(o.input_size(), o.hidden_size(), o.bias(), 4), options(o) {
  LSTMCellImpl::reset();
}
LSTMCellImpl::State LSTMCellImpl::forward(const Tensor& input, std::optional<State> hx_opt) {
  auto [h, c] = hx_opt ? *hx_opt : State();
  std::vector<Tensor> state{checked(input, h, "a hidden state"), checked(input, c, "a cell state")};
  return lstm_cell(input, state, weight_ih, weight_hh, optional(bias_ih), optional(bias_hh));
}

GRUCellImpl::GRUCellImpl(int64_t input_size, int64_t hidden_size)
    : GRUCellImpl(GRUCellOptions(input_size, hidden_size)) {}
GRUCellImpl::GRUCellImpl(const GRUCellOptions& o)
    : RNNCellImplBase(o.input_size(), o.hidden_size(), o.bias(), 3), options(o) {
  GRUCellImpl::reset();
}
Tensor GRUCellImpl::forward(const Tensor& input, Tensor hx) {
  return gru_cell(input, checked(input, hx, "a state"), weight_ih, weight_hh, optional(bias_ih), optional(bias_hh));
}

}  // namespace brasa::nn
