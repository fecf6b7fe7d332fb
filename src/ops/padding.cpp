#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

// PyTorch lists pairs {before, after} from the last dimension on.
struct Side {
  int64_t dim;
  Expr low, high;
};
std::vector<Side> sides(const char* op, Value x, const Shape& pad) {
  BRASA_CHECK(pad.size() % 2 == 0 && static_cast<int64_t>(pad.size()) <= 2 * rank_of(x), op,
              ": expected pairs of numbers, at most one for each dimension of ", type_of(x), ", got ", pad);
  std::vector<Side> out;
  for (size_t i = 0; i < pad.size() / 2; ++i)
    out.push_back({rank_of(x) - 1 - static_cast<int64_t>(i), pad[2 * i], pad[2 * i + 1]});
  return out;
}

// Negative padding cuts elements off.
Value cropped(const char* op, Value x, const Side& s) {
  Expr low = is_less(s.low, 0) ? -s.low : Expr(0), high = is_less(s.high, 0) ? -s.high : Expr(0),
       size = size_of(x, s.dim);
  BRASA_CHECK(!is_less(size + s.low + s.high, 0), op, ": The input size ", size, ", plus negative padding ", s.low,
              " and ", s.high, " resulted in a negative output size, which is invalid. Check dimension ", s.dim,
              " of your input.");
  return narrow(x, s.dim, ir::min(low, size), ir::max(size - low - high, 0));
}
Expr positive(Expr e) { return is_less(e, 0) ? Expr(0) : e; }

Value constant_pad(Value x, Shape pad, Number value) {
  std::vector<Expr> low(rank_of(x), Expr(0)), high = low, none = low;
  for (const Side& s : sides("pad", x, pad)) {
    x = cropped("pad", x, s);
    low[s.dim] = positive(s.low);
    high[s.dim] = positive(s.high);
  }
  return prim::pad(x, scalar(value, dtype_of(x)), low, high, none);
}

Value pad_sequence(std::vector<Value> xs, bool batch_first, Number value, std::string side) {
  BRASA_CHECK(!xs.empty(), "pad_sequence: received an empty list of sequences");
  BRASA_CHECK(side == "left" || side == "right",
              "pad_sequence: expected padding_side to be one of left or right, but got ", side, ".");
  // Which one is the longest is a fact of the call: the maximum of many unknown sizes would be in every index.
  Expr longest(0);
  for (Value x : xs)
    if (is_less(longest, size_of(x, 0))) longest = size_of(x, 0);
  for (Value& x : xs) {
    Expr more = longest - size_of(x, 0);
    x = side == "left" ? pad_dim(x, 0, more, 0, value) : pad_dim(x, 0, 0, more, value);
  }
  return call("aten::stack", {xs, batch_first ? 0 : 1});
}

enum class Mode { Reflect, Replicate, Circular };

// What goes before or after the `n` elements of a dimension; each is a chain of movements from x.
Value border(Value x, int64_t dim, Expr n, Mode mode, bool before) {
  Expr size = size_of(x, dim);
  switch (mode) {
    case Mode::Reflect: return prim::reverse(narrow(x, dim, before ? Expr(1) : size - 1 - n, n), {dim});
    case Mode::Circular: return narrow(x, dim, before ? size - n : Expr(0), n);
    case Mode::Replicate: break;
  }
  Shape shape = shape_of(x);
  shape[dim] = n;
  return broadcast_to(narrow(x, dim, before ? Expr(0) : size - 1, 1), shape);
}

void check_side(const char* op, Value x, const Side& s, Mode mode) {
  Expr size = size_of(x, s.dim);
  for (Expr n : {s.low, s.high}) {
    if (mode == Mode::Reflect)
      BRASA_CHECK(is_less(n, size),
                  "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (",
                  s.low, ", ", s.high, ") at dimension ", s.dim, " of input ", shape_of(x));
    if (mode == Mode::Circular)
      BRASA_CHECK(!is_less(size, n), "Padding value causes wrapping around more than once: padding (", s.low, ", ",
                  s.high, ") at dimension ", s.dim, " of input ", shape_of(x));
    if (mode == Mode::Replicate)
      BRASA_CHECK(is_less(0, size), op, ": Expected a non-empty dimension ", s.dim, ", but got ", type_of(x));
  }
  BRASA_CHECK(mode == Mode::Circular || is_less(0, size + s.low + s.high), op, ": input ", type_of(x),
              " is too small for padding (", s.low, ", ", s.high, "): nothing is left of dimension ", s.dim);
}

Value padded(const char* op, Value x, const Shape& pad, Mode mode) {
  for (const Side& s : sides(op, x, pad)) {
    check_side(op, x, s, mode);
    Expr low = positive(s.low), high = positive(s.high);
    // A circle is closed by what is kept.
    Value kept = cropped(op, x, s), source = mode == Mode::Circular ? kept : x;
    std::vector<Value> parts;
    if (!low.is(0)) parts.push_back(border(source, s.dim, low, mode, true));
    parts.push_back(kept);
    if (!high.is(0)) parts.push_back(border(source, s.dim, high, mode, false));
    x = prim::concat(parts, s.dim);
  }
  return x;
}

// The gradient of `padded`: what lies in a border goes back to where it came from.
Value padded_backward(const char* op, Value g, Value x, const Shape& pad, Mode mode) {
  std::vector<Side> all = sides(op, x, pad);
  Shape shape = shape_of(x);
  std::vector<Shape> before;  // the shape that each dimension's padding started from
  for (const Side& s : all) {
    before.push_back(shape);
    shape[s.dim] = shape[s.dim] + s.low + s.high;
  }
  check_shape(op, "grad_output", g, shape);
  for (size_t i = all.size(); i-- > 0;) {
    const Side& s = all[i];
    // A value to pull back to; its own elements do not matter.
    Value start = prim::unary("neg", full(0, before[i], dtype_of(g))), sum;
    check_side(op, start, s, mode);
    Expr at(0);
    auto take = [&](Value part) {
      Expr n = size_of(part, s.dim);
      Value piece = prim::reshape(pulled_through(start, part, narrow(g, s.dim, at, n)), before[i]);
      at = at + n;
      sum = sum ? sum + piece : piece;
    };
    Expr low = positive(s.low), high = positive(s.high);
    Value kept = cropped(op, start, s), source = mode == Mode::Circular ? kept : start;
    if (!low.is(0)) take(border(source, s.dim, low, mode, true));
    take(kept);
    if (!high.is(0)) take(border(source, s.dim, high, mode, false));
    g = sum;
  }
  return g;
}

void check_pad_rank(const char* op, Value x, size_t n) {
  auto spatial = static_cast<int64_t>(n);
  BRASA_CHECK(rank_of(x) == spatial + 1 || rank_of(x) == spatial + 2, op, ": Expected ", spatial + 1, "D or ",
              spatial + 2, "D (batch mode) tensor, but got ", type_of(x));
}

template <Mode kMode>
Value pad_by(Value x, Shape pad) {
  constexpr const char* op = kMode == Mode::Reflect ? "reflection_pad" : "replication_pad";
  check_pad_rank(op, x, pad.size() / 2);
  return padded(op, x, pad, kMode);
}
template <Mode kMode>
Value pad_by_backward(Value g, Value x, Shape pad) {
  constexpr const char* op = kMode == Mode::Reflect ? "reflection_pad_backward" : "replication_pad_backward";
  check_pad_rank(op, x, pad.size() / 2);
  return padded_backward(op, g, x, pad, kMode);
}

Value pad(Value x, Shape pads, std::string mode, std::optional<Number> value) {
  if (mode == "constant") return constant_pad(x, pads, value.value_or(Number(0.0)));
  BRASA_CHECK(!value || value->is(0), "Padding mode \"", mode, "\" doesn't take in value argument");
  if (mode == "reflect") return pad_by<Mode::Reflect>(x, pads);
  if (mode == "replicate") return pad_by<Mode::Replicate>(x, pads);
  BRASA_CHECK(mode == "circular", "Unrecognised padding mode ", mode,
              ", expected constant, reflect, replicate or circular");
  check_pad_rank("pad", x, pads.size() / 2);
  return padded("pad", x, pads, Mode::Circular);
}
Value pad_enum(Value x, Shape pads, int64_t mode, std::optional<Number> value) {
  constexpr const char* kModes[] = {"reflect", "replicate", "circular", "constant"};
  BRASA_CHECK(mode >= 0 && mode < 4, "Unrecognised padding mode ", mode);
  return pad(x, pads, kModes[mode], value);
}

template <Mode kMode>
void add_pads(Table& t, const char* name, const char* what) {
  for (int n : {1, 2, 3}) {
    std::vector<int64_t> shape = {2, 3};
    std::vector<Expr> pads;
    shape.insert(shape.end(), n, 4);
    for (int i = 0; i < 2 * n; ++i) pads.emplace_back(i % 2 + 1);
    std::vector<int64_t> wide = shape;
    for (int i = 0; i < n; ++i) wide[2 + i] += 3;
    t.op(str("aten::", name, "_pad", n, "d(Tensor self, SymInt[", 2 * n, "] padding) -> Tensor"))
        .doc(str("Around the last ", n, " dimensions, ", what, "."))
        .autocast(Autocast::Float32, Autocast::None)
        .keeps_memory_format()
        .composed(pad_by<kMode>)
        .samples({{tensor(DType::Float32, shape), Arg(pads)}});
    t.op(str("aten::", name, "_pad", n, "d_backward(Tensor grad_output, Tensor self, SymInt[", 2 * n,
             "] padding) -> Tensor"))
        .doc(str("The gradient of ", name, "_pad", n, "d's input."))
        .composed(pad_by_backward<kMode>)
        .one_dtype({"grad_output", "self"})
        .samples({{tensor(DType::Float32, wide), tensor(DType::Float32, shape), Arg(pads)}});
  }
}

}  // namespace

void add_padding(Table& t) {
  t.op("aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor")
      .doc(
          "One number around the last dimensions, listed from the last one as pairs (before, after); negative ones cut off.")
      .keeps_memory_format()
      .composed(constant_pad)
      .fits("value")
      .samples({{floats(2, 3), list({1, 2}), 0.5}, {floats(4, 3), list({0, 0, -1, 2})}, {floats(0), list({1, 1})}});
  t.op("aten::pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor")
      .doc("Pads the last dimensions: 'constant', 'reflect', 'replicate' or 'circular'.")
      .keeps_memory_format()
      .composed(pad)
      .special("value", {0})
      .fits("value")
      .samples({{floats(2, 3), list({1, 2})}, {floats(1, 2, 4), list({1, 2}), "circular"}});
  t.op("aten::pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0., str padding_side=\"right\") -> Tensor")
      .doc("Tensors [length, …] padded to the longest one, as [longest, N, …] or [N, longest, …].")
      .composed(pad_sequence)
      .samples({{std::vector<TensorSample>{floats(2, 3), floats(4, 3)}},
                {std::vector<TensorSample>{floats(0), floats(2)}, true, 0.5, "left"}});
  t.op("aten::_pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor")
      .doc("pad, the mode as a number.")
      .composed(pad_enum)
      .special("value", {0})
      .samples({{floats(1, 2, 4), list({1, 2}), 0}});
  add_pads<Mode::Reflect>(t, "reflection", "mirrored at the border elements");
  add_pads<Mode::Replicate>(t, "replication", "the border elements repeated");
}

}  // namespace brasa::ops
