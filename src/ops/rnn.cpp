#include "ops/loop.h"
#include "ops/positions.h"
#include "ops/random_key.h"
#include "ops/rows.h"
#include "support/checked.h"
#include "support/error.h"

// Recurrent layers: loops over the steps; the products with the input are one for all steps.
namespace brasa::ops {
namespace {

enum class Cell { Tanh, Relu, Gru, Lstm };

struct Weights {
  Value ih, hh, b_ih, b_hh;
  Value hr;  // the projection of an LSTM's hidden state
};
struct State {
  Value h, c;
};

Value linear(Value x, Value w, Value b) { return call("aten::linear", {x, w, b ? Arg(b) : Arg()}); }

int64_t gates_of(Cell cell) { return cell == Cell::Lstm ? 4 : cell == Cell::Gru ? 3 : 1; }

Value gate(Value all, int64_t i, Expr size) { return narrow(all, rank_of(all) - 1, size * Expr(i), size); }

// One step from the input's and the hidden state's share of the gates, [batch…, gates · hidden]. `kept`: what its derivative reads beside the
// states, which would take the products again.
template <Cell cell>
State step(Value from_input, Value from_hidden, State s, Value hr, std::vector<Value>& kept) {
  Expr size = ir::floordiv(size_of(from_hidden, rank_of(from_hidden) - 1), Expr(gates_of(cell)));
  if constexpr (cell == Cell::Tanh || cell == Cell::Relu) {
    Value all = from_input + from_hidden;
    kept = {cell == Cell::Tanh ? tanh(all) : call("aten::relu", {all})};
    return {kept[0], {}};
  }
  if constexpr (cell == Cell::Gru) {
    Value r = sigmoid(gate(from_input, 0, size) + gate(from_hidden, 0, size));
    Value z = sigmoid(gate(from_input, 1, size) + gate(from_hidden, 1, size));
    Value hidden = gate(from_hidden, 2, size), n = tanh(gate(from_input, 2, size) + r * hidden);
    kept = {r, z, n, hidden};
    return {(s.h - n) * z + n, {}};
  }
  if constexpr (cell == Cell::Lstm) {
    Value all = from_input + from_hidden;
    Value i = sigmoid(gate(all, 0, size)), f = sigmoid(gate(all, 1, size)), g = tanh(gate(all, 2, size)),
          o = sigmoid(gate(all, 3, size));
    Value c = f * s.c + i * g, t = tanh(c), h = o * t;
    kept = {i, f, g, o, t};
    return {hr ? linear(h, hr, {}) : h, c};
  }
}

void check_weights(const char* op, Cell cell, Value x, State s, const Weights& w) {
  Value h = s.h, hidden = s.c ? s.c : s.h;
  auto last = [](Value v) { return size_of(v, rank_of(v) - 1); };
  Expr rows = last(hidden) * Expr(gates_of(cell));
  BRASA_CHECK(rank_of(w.ih) == 2 && same_size(size_of(w.ih, 1), size_of(x, rank_of(x) - 1)), op,
              ": input has inconsistent input_size: got ", type_of(x), " for weights ", type_of(w.ih));
  BRASA_CHECK(rank_of(w.hh) == 2 && same_size(size_of(w.hh, 1), size_of(h, rank_of(h) - 1)) &&
                  same_size(size_of(w.hh, 0), rows) && same_size(size_of(w.ih, 0), rows),
              op, ": hidden state ", type_of(h), " and weights ", type_of(w.ih), " and ", type_of(w.hh),
              " do not fit together");
  for (Value b : {w.b_ih, w.b_hh})
    BRASA_CHECK(!b || (rank_of(b) == 1 && same_size(size_of(b, 0), rows)), op, ": expected biases of ", rows,
                " elements, got ", type_of(b));
  BRASA_CHECK(
      !w.hr || (rank_of(w.hr) == 2 && same_size(size_of(w.hr, 0), last(h)) && same_size(last(w.hr), last(hidden))), op,
      ": expected a projection from ", last(hidden), " to ", last(h), " elements, got ", type_of(w.hr));
}

// --- cells ---

template <Cell cell>
State cell_step(const char* op, Value x, State s, Weights w) {
  BRASA_CHECK((rank_of(x) == 1 || rank_of(x) == 2) && rank_of(s.h) == rank_of(x), op,
              ": expected input and hidden state of 1 or 2 dimensions, got ", type_of(x), " and ", type_of(s.h));
  for (Value state : {s.h, s.c})
    BRASA_CHECK(!state || (rank_of(state) == rank_of(x) &&
                           same_size(size_of(state, 0), size_of(rank_of(x) == 2 ? x : s.h, 0)) &&
                           same_size(size_of(state, rank_of(x) - 1), size_of(s.h, rank_of(x) - 1))),
                op, ": state ", type_of(state), " does not go with input ", type_of(x), " and state ", type_of(s.h));
  check_weights(op, cell, x, s, w);
  std::vector<Value> kept;
  Value from_input = linear(x, w.ih, w.b_ih), from_hidden = linear(s.h, w.hh, w.b_hh);
  return step<cell>(from_input, from_hidden, s, w.hr, kept);
}

template <Cell cell>
Value one_state_cell(Value x, Value h, Value w_ih, Value w_hh, Value b_ih, Value b_hh) {
  const char* op = cell == Cell::Tanh ? "rnn_tanh_cell" : cell == Cell::Relu ? "rnn_relu_cell" : "gru_cell";
  return cell_step<cell>(op, x, {h, {}}, {w_ih, w_hh, b_ih, b_hh, {}}).h;
}
std::array<Value, 2> lstm_cell(Value x, std::vector<Value> hx, Value w_ih, Value w_hh, Value b_ih, Value b_hh) {
  BRASA_CHECK(hx.size() == 2, "lstm_cell: expected two hidden states, got ", hx.size());
  State s = cell_step<Cell::Lstm>("lstm_cell", x, {hx[0], hx[1]}, {w_ih, w_hh, b_ih, b_hh, {}});
  return {s.h, s.c};
}

// --- layers ---

struct Layers {
  const char* op;
  bool biases;
  int64_t count;
  double dropout;
  bool train, bidirectional;
  Value random;
  int64_t directions() const { return bidirectional ? 2 : 1; }
  int64_t states() const { return checked_mul(count, directions()); }
};

std::vector<Weights> weights_of(const Layers& l, const std::vector<Value>& params, bool projects) {
  size_t each = 2 + (l.biases ? 2 : 0) + (projects ? 1 : 0);
  auto n = static_cast<size_t>(l.states());
  BRASA_CHECK(l.count > 0 && n <= params.size() && params.size() == each * n, l.op, ": expected ", each,
              " parameters for each of ", n, " layers and directions, got ", params.size());
  std::vector<Weights> out(n);
  for (size_t i = 0; i < n; ++i) {
    const Value* p = params.data() + i * each;
    out[i] = {p[0], p[1], l.biases ? p[2] : Value{}, l.biases ? p[3] : Value{}, projects ? p[each - 1] : Value{}};
  }
  return out;
}

Value at_step(Value x, int64_t t) { return squeeze(narrow(x, 0, t, 1), 0); }
Value stacked(const std::vector<Value>& items) {
  std::vector<Value> parts;
  for (Value v : items) parts.push_back(unsqueeze(v, 0));
  return prim::concat(parts, 0);
}

// x [steps, batch, features]; where `valid` [steps, batch] does not hold, the state stays.
template <Cell cell>
Value run_layer(Value x, State& s, const Weights& w, bool backwards, Value valid) {
  // The weights are transposed once, not in each step.
  LoopOperands loop{{s.h}, {linear(x, w.ih, w.b_ih)}, {transpose(w.hh, 0, 1)}, size_of(x, 0), backwards};
  if (s.c) loop.carried.push_back(s.c);
  if (valid) loop.along.push_back(valid);
  for (Value v : {w.b_hh, w.hr})
    if (v) loop.others.push_back(v);
  auto one = [&](std::span<const Value> states, std::span<const Value> items, std::span<const Value> others) {
    Value from_hidden = matmul2(states[0], others[0]);
    if (w.b_hh) from_hidden = from_hidden + others[1];
    State before{states[0], s.c ? states[1] : Value{}};
    std::vector<Value> kept, out;
    State after = step<cell>(items[0], from_hidden, before, w.hr ? others.back() : Value{}, kept);
    if (valid) {
      Value here = unsqueeze(items[1], 1);
      after.h = where(here, after.h, before.h);
      if (after.c) after.c = where(here, after.c, before.c);
    }
    out.push_back(after.h);
    if (after.c) out.push_back(after.c);
    out.insert(out.end(), kept.begin(), kept.end());
    return out;
  };
  std::vector<Value> traces = scan_loop(loop, one);
  s = {last_state(traces[0], loop), s.c ? last_state(traces[1], loop) : Value{}};
  return states_after(traces[0], loop);
}

// {output [steps, batch, directions · hidden], last hidden states, last cell states}
template <Cell cell>
std::vector<Value> run(const Layers& l, Value x, State initial, const std::vector<Value>& params, Value valid) {
  int64_t states = l.states();
  for (Value h : {initial.h, initial.c})
    BRASA_CHECK(!h || (rank_of(h) == 3 && same_size(size_of(h, 0), states) && same_size(size_of(h, 1), size_of(x, 1))),
                l.op, ": Expected hidden size (", states, ", ", size_of(x, 1), ", …), got ", h ? shape_of(h) : Shape{});
  for (Value h : {initial.h, initial.c})
    BRASA_CHECK(!h || dtype_of(h) == dtype_of(x), l.op,
                ": Input and hidden tensors are not the same dtype, found input tensor with ", name(dtype_of(x)),
                " and hidden tensor with ", name(dtype_of(h)));
  BRASA_CHECK(is_less(0, size_of(x, 0)), l.op, ": Expected sequence length to be larger than 0 in RNN, got ",
              type_of(x));
  bool projects = initial.c && !same_size(size_of(initial.h, 2), size_of(initial.c, 2));
  std::vector<Weights> weights = weights_of(l, params, projects);
  std::vector<Value> hidden, cells;
  bool drops = l.train && l.dropout != 0 && l.count > 1;
  BRASA_CHECK(!drops || (l.dropout >= 0 && l.dropout <= 1), l.op,
              ": dropout probability has to be between 0 and 1, but got ", l.dropout);
  BRASA_CHECK(!drops || l.random, l.op, ": dropout needs a generator");
  Value numbers;
  for (int64_t layer = 0; layer < l.count; ++layer) {
    std::vector<Value> outs;
    for (int64_t d = 0; d < l.directions(); ++d) {
      int64_t i = layer * l.directions() + d;
      State s{at_step(initial.h, i), initial.c ? at_step(initial.c, i) : Value{}};
      check_weights(l.op, cell, x, s, weights[i]);
      outs.push_back(run_layer<cell>(x, s, weights[i], d == 1, valid));
      hidden.push_back(s.h);
      cells.push_back(s.c);
    }
    x = outs.size() == 1 ? outs[0] : prim::concat(outs, 2);
    if (!drops || layer + 1 == l.count) continue;
    if (!numbers) {
      Shape shape = shape_of(x);
      shape.insert(shape.begin(), Expr(l.count - 1));
      numbers = uniform(derived_key(l.random), shape, DType::Float32);
    }
    Value kept = ge(at_step(numbers, layer), l.dropout);
    x = where(kept, x, zeros_like(x)) * (l.dropout < 1 ? 1 / (1 - l.dropout) : 0.0);
  }
  std::vector<Value> out = {x, stacked(hidden)};
  if (initial.c) out.push_back(stacked(cells));
  return out;
}

template <Cell cell>
std::vector<Value> run_padded(const Layers& l, Value x, State initial, const std::vector<Value>& params,
                              bool batch_first) {
  check_rank(l.op, "input", x, 3);
  std::vector<Value> out = run<cell>(l, batch_first ? transpose(x, 0, 1) : x, initial, params, {});
  if (batch_first) out[0] = transpose(out[0], 0, 1);
  return out;
}

// --- packed sequences: the batch shrinks from step to step ---

struct Packing {
  Value index, valid;  // [steps, batch]: the row of each step and sample, and whether there is one
  Value step, sample;  // [rows]
};

Packing packing(const char* op, Value batch_sizes, Expr batch, Expr rows) {
  BRASA_CHECK(rank_of(batch_sizes) == 1 && is_integral(dtype_of(batch_sizes)), op,
              ": expected batch_sizes of 1 dimension and an integer dtype, got ", type_of(batch_sizes));
  Value sizes = convert(batch_sizes, DType::Int64);
  Expr steps = size_of(sizes, 0);
  Value starts = segment_starts(sizes);
  check_values(prim::reshape(eq(narrow(starts, 0, steps, 1), size_tensor(rows, {Expr(1)})), {}),
               str(op, ": the sum of batch_sizes must be the number of rows, ", rows));
  starts = narrow(starts, 0, 0, steps);
  Shape shape = {steps, batch};
  Packing p;
  Value sample = prim::iota(shape, 1, DType::Int64);
  p.index = prim::broadcast(starts, shape, {0}) + sample;
  p.valid = lt(sample, prim::broadcast(sizes, shape, {0}));
  p.step = segment_of(starts, rows);
  p.sample = prim::iota({rows}, 0, DType::Int64) - prim::gather(starts, {p.step}, {0});
  return p;
}

template <Cell cell>
std::vector<Value> run_packed(const Layers& l, Value data, Value batch_sizes, State initial,
                              const std::vector<Value>& params) {
  check_rank(l.op, "data", data, 2);
  check_rank(l.op, "hx", initial.h, 3);
  check_rank(l.op, "batch_sizes", batch_sizes, 1);
  Expr steps = size_of(batch_sizes, 0);
  if (is_less(0, steps)) {
    auto check = [&](Value v, const char* what) { check_values(v, str(l.op, ": ", what)); };
    check(ge(narrow(batch_sizes, 0, 0, steps - 1), narrow(batch_sizes, 0, 1, steps - 1)), "batch_sizes must not rise");
    check(gt(batch_sizes, 0), "batch_sizes must be positive");
    check(le(narrow(batch_sizes, 0, 0, 1), size_tensor(size_of(initial.h, 1), {Expr(1)})),
          "the first of batch_sizes must be at most the batch of the states");
  }
  Packing p = packing(l.op, batch_sizes, size_of(initial.h, 1), size_of(data, 0));
  std::vector<Value> out = run<cell>(l, prim::gather(data, {p.index}, {0}), initial, params, p.valid);
  out[0] = prim::gather(out[0], {p.step, p.sample}, {0, 1});
  return out;
}

Value pack_padded_sequence_backward(Value g, Shape input_size, Value batch_sizes, bool batch_first) {
  BRASA_CHECK(input_size.size() >= 2,
              "_pack_padded_sequence_backward: expected an input_size of at least two numbers, got ", input_size);
  Expr batch = input_size[batch_first ? 0 : 1];
  Packing p = packing("_pack_padded_sequence_backward", batch_sizes, batch, size_of(g, 0));
  Value padded = prim::gather(g, {p.index}, {0});
  padded = prim::select(prim::broadcast(p.valid, shape_of(padded), {0, 1}), padded, zeros_like(padded));
  Expr steps = input_size[batch_first ? 1 : 0];
  BRASA_CHECK(!is_less(steps, size_of(batch_sizes, 0)), "_pack_padded_sequence_backward: an input of ", steps,
              " steps cannot have ", size_of(batch_sizes, 0), " batch sizes");
  padded = pad_dim(padded, 0, 0, steps - size_of(batch_sizes, 0));
  return batch_first ? transpose(padded, 0, 1) : padded;
}

// --- rows ---

State pair(const char* op, const std::vector<Value>& hx) {
  BRASA_CHECK(hx.size() == 2, op, ": lstm expects two hidden states, got ", hx.size());
  return {hx[0], hx[1]};
}

constexpr const char* kOptions = "bool has_biases, int num_layers, float dropout, bool train, bool bidirectional";
constexpr const char* kPacked =
    " The rows of all steps lie behind one another; batch_sizes holds how many each step has.";

template <Cell cell>
void add_one_state(Table& t, const char* name, const char* formula) {
  constexpr int64_t g = cell == Cell::Gru ? 3 : 1;
  std::vector<TensorSample> layer = {floats(2 * g, 3), floats(2 * g, 2), floats(2 * g), floats(2 * g)}, two = layer;
  two.insert(two.end(), layer.begin(), layer.end());
  static const char* kName;
  kName = name;
  // PyTorch makes these of listed operators, and what is added to float32 states is float32; a GPU computes all layers in
  // one call of its own.
  constexpr Autocast kPolicy = cell == Cell::Gru ? Autocast::Widest : Autocast::Lower;
  t.op(str("aten::", name,
           "_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor"))
      .doc(str("One step of a recurrent layer: ", formula, "."))
      .autocast(kPolicy, Autocast::Lower)
      .composed_in_opmath(one_state_cell<cell>)
      .one_dtype({"input", "w_ih", "b_ih"})
      .one_dtype({"hx", "w_hh", "b_hh"})
      .samples({{floats(2, 3), floats(2, 2), layer[0], layer[1], layer[2], layer[3]},
                {floats(2, 3), floats(2, 2), layer[0], layer[1]}});
  t.op(str("aten::", name, ".input(Tensor input, Tensor hx, Tensor[] params, ", kOptions,
           ", bool batch_first) -> (Tensor, Tensor)"))
      .doc(str("Recurrent layers: ", formula, " at each step; the outputs of all steps and the last states."))
      .autocast(kPolicy, Autocast::Lower)
      .random()
      .composed_in_opmath([](Value x, Value h, std::vector<Value> params, bool biases, int64_t layers, double dropout,
                             bool train, bool bidirectional, bool batch_first, Value key) {
        return run_padded<cell>({kName, biases, layers, dropout, train, bidirectional, key}, x, {h, {}}, params,
                                batch_first);
      })
      .samples({{floats(3, 2, 3), floats(1, 2, 2), layer, true, 1, 0.0, false, false, false},
                {floats(2, 3, 3), floats(2, 2, 2), two, true, 1, 0.0, true, true, true}});
  t.op(str("aten::", name, ".data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, ", kOptions,
           ") -> (Tensor, Tensor)"))
      .doc(str("Recurrent layers on packed sequences: ", formula, " at each step.", kPacked))
      .autocast(kPolicy, Autocast::Lower)
      .random()
      .composed_in_opmath([](Value x, Value sizes, Value h, std::vector<Value> params, bool biases, int64_t layers,
                             double dropout, bool train, bool bidirectional, Value key) {
        return run_packed<cell>({kName, biases, layers, dropout, train, bidirectional, key}, x, sizes, {h, {}}, params);
      })
      .samples({{floats(2, 3), ints(2).in(1, 2), floats(1, 1, 2), layer, true, 1, 0.0, false, false}});
}

void add_lstm(Table& t) {
  const std::vector<TensorSample> layer = {floats(8, 3), floats(8, 2), floats(8), floats(8)},
                                  states = {floats(1, 2, 2), floats(1, 2, 2)};
  constexpr const char* kFormula =
      "c' = σ(f) c + σ(i) tanh(g), h' = σ(o) tanh(c'), where i, f, g, o = W x + b + U h + b'";
  t.op("aten::lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)")
      .doc(str("One step of a long short-term memory: ", kFormula, "."))
      .autocast(Autocast::Widest, Autocast::Lower)
      .composed_in_opmath(lstm_cell)
      .one_dtype({"input", "w_ih", "b_ih"})
      .one_dtype({"w_hh", "b_hh"})
      .samples({{floats(2, 3), std::vector{floats(2, 2), floats(2, 2)}, layer[0], layer[1], layer[2], layer[3]}});
  t.op(str("aten::lstm.input(Tensor input, Tensor[] hx, Tensor[] params, ", kOptions,
           ", bool batch_first) -> (Tensor, Tensor, Tensor)"))
      .doc(str("Long short-term memory (Hochreiter & Schmidhuber 1997): ", kFormula,
               ". The outputs of all steps, the last hidden and the last cell states."))
      .autocast(Autocast::Lower)
      .random()
      .composed_in_opmath([](Value x, std::vector<Value> hx, std::vector<Value> params, bool biases, int64_t layers,
                             double dropout, bool train, bool bidirectional, bool batch_first, Value key) {
        return run_padded<Cell::Lstm>({"lstm", biases, layers, dropout, train, bidirectional, key}, x, pair("lstm", hx),
                                      params, batch_first);
      })
      .samples({{floats(3, 2, 3), states, layer, true, 1, 0.0, false, false, false},
                {floats(2, 2, 3), states, std::vector{layer[0], layer[1]}, false, 1, 0.0, true, false, true}});
  t.op(str("aten::lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, ", kOptions,
           ") -> (Tensor, Tensor, Tensor)"))
      .doc(str("Long short-term memory on packed sequences: ", kFormula, ".", kPacked))
      .autocast(Autocast::Lower)
      .random()
      .composed_in_opmath([](Value x, Value sizes, std::vector<Value> hx, std::vector<Value> params, bool biases,
                             int64_t layers, double dropout, bool train, bool bidirectional, Value key) {
        return run_packed<Cell::Lstm>({"lstm", biases, layers, dropout, train, bidirectional, key}, x, sizes,
                                      pair("lstm", hx), params);
      })
      .samples({{floats(2, 3), ints(2).in(1, 2), std::vector{floats(1, 1, 2), floats(1, 1, 2)}, layer, true, 1, 0.0,
                 false, false}});
}

}  // namespace

void add_rnn(Table& t) {
  add_one_state<Cell::Tanh>(t, "rnn_tanh", "h' = tanh(W x + b + U h + b')");
  add_one_state<Cell::Relu>(t, "rnn_relu", "h' = max(0, W x + b + U h + b')");
  add_one_state<Cell::Gru>(
      t, "gru", "h' = (1 - z) n + z h, where r, z = σ(W x + b + U h + b'), n = tanh(W x + b + r (U h + b'))");
  add_lstm(t);
  t.op("aten::_pack_padded_sequence_backward(Tensor grad, SymInt[] input_size, Tensor batch_sizes, bool batch_first) -> Tensor")
      .doc("The rows of packed sequences put back at their steps and samples, zeros elsewhere.")
      .composed(pack_padded_sequence_backward)
      .samples({{floats(2, 3), list({2, 1, 3}), ints(2).in(1, 2), false}});
}

}  // namespace brasa::ops
