#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Windows of signal processing.
namespace brasa::ops {
namespace {

using OptDType = std::optional<DType>;
using Text = std::optional<std::string>;
using Flag = std::optional<bool>;
constexpr double kPi = 3.14159265358979323846;

#define BRASA_OPTIONS "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"

// `f` gives the symmetric window from positions 0 … last; a periodic one leaves the last position out.
template <class F>
Value window(const char* op, Expr length, bool periodic, OptDType dtype, F f) {
  DType t = dtype.value_or(DType::Float32);
  BRASA_CHECK(is_floating(t), op, " expects floating point dtypes, got ", name(t));
  BRASA_CHECK(!length.is_constant() || length.constant() >= 0, op, " requires non-negative window_length, got ",
              length);
  DType work = opmath(t);
  Value last = size_tensor(ir::max(periodic ? length : length - 1, 1), {}, work);
  Value w = f(prim::iota({length}, 0, work), last);
  Value single = eq(size_tensor(length, shape_of(w)), 1);  // a window of one is 1
  return convert(where(single, full(1, shape_of(w), work), w), t);
}

Value hamming(const char* op, Expr n, bool periodic, const Number& alpha, const Number& beta, OptDType dtype) {
  return window(op, n, periodic, dtype,
                [&](Value i, Value last) { return cos(i * ((2 * kPi) / last)) * -beta + alpha; });
}
Value blackman(Expr n, bool periodic, OptDType dtype) {
  return window("blackman_window", n, periodic, dtype, [](Value i, Value last) {
    Value w = i * (kPi / last);
    return cos(w * 4.0) * 0.08 - cos(w * 2.0) * 0.5 + 0.42;
  });
}
Value bartlett(Expr n, bool periodic, OptDType dtype) {
  return window("bartlett_window", n, periodic, dtype, [](Value i, Value last) {
    Value w = i * (2.0 / last);
    return where(le(i, prim::unary("floor", last / 2.0)), w, 2.0 - w);
  });
}
Value kaiser(Expr n, bool periodic, const Number& beta, OptDType dtype) {
  return window("kaiser_window", n, periodic, dtype, [&](Value i, Value last) {
    Value w = i * (2.0 / last) - 1.0, inside = 1.0 - w * w;
    Value y = beta * sqrt(where(lt(inside, 0), zeros_like(inside), inside));
    return call("aten::special_i0", {y}) / call("aten::special_i0", {constant_like(y, beta)});
  });
}

}  // namespace

void add_windows(Table& t) {
  auto op = [&](const char* name, const char* params, const char* doc) {
    RowBuilder row = t.op(str("aten::", name, "(int window_length, ", params, "*, " BRASA_OPTIONS ") -> Tensor"));
    row.doc(doc);
    return row;
  };
  const char* hann_doc = "(1 - cos(2πi / N)) / 2, N = window_length if periodic, else one less.";
  op("hann_window", "", hann_doc)
      .composed([](Expr n, OptDType d, Text, Text, Flag) { return hamming("hann_window", n, true, 0.5, 0.5, d); })
      .samples({{5}, {1}, {0}, {4, DType::Float64}});
  op("hann_window.periodic", "bool periodic, ", hann_doc)
      .composed([](Expr n, bool p, OptDType d, Text, Text, Flag) { return hamming("hann_window", n, p, 0.5, 0.5, d); })
      .samples({{5, false}, {4, true}});
  const char* hamming_doc = "alpha - beta cos(2πi / N), N = window_length if periodic, else one less.";
  op("hamming_window", "", hamming_doc)
      .composed([](Expr n, OptDType d, Text, Text, Flag) { return hamming("hamming_window", n, true, 0.54, 0.46, d); })
      .samples({{5}, {0}});
  op("hamming_window.periodic", "bool periodic, ", hamming_doc)
      .composed(
          [](Expr n, bool p, OptDType d, Text, Text, Flag) { return hamming("hamming_window", n, p, 0.54, 0.46, d); })
      .samples({{5, false}});
  op("hamming_window.periodic_alpha", "bool periodic, float alpha, ", hamming_doc)
      .composed([](Expr n, bool p, Number a, OptDType d, Text, Text, Flag) {
        return hamming("hamming_window", n, p, a, 0.46, d);
      })
      .samples({{5, false, 0.6}});
  op("hamming_window.periodic_alpha_beta", "bool periodic, float alpha, float beta, ", hamming_doc)
      .composed([](Expr n, bool p, Number a, Number b, OptDType d, Text, Text, Flag) {
        return hamming("hamming_window", n, p, a, b, d);
      })
      .samples({{5, true, 0.6, 0.4}});
  const char* blackman_doc =
      "0.42 - cos(2πi / N) / 2 + 0.08 cos(4πi / N), N = window_length if periodic, else one less.";
  op("blackman_window", "", blackman_doc)
      .composed([](Expr n, OptDType d, Text, Text, Flag) { return blackman(n, true, d); })
      .samples({{5}, {1}});
  op("blackman_window.periodic", "bool periodic, ", blackman_doc)
      .composed([](Expr n, bool p, OptDType d, Text, Text, Flag) { return blackman(n, p, d); })
      .samples({{5, false}});
  const char* bartlett_doc = "1 - |2i / N - 1|, N = window_length if periodic, else one less.";
  op("bartlett_window", "", bartlett_doc)
      .composed([](Expr n, OptDType d, Text, Text, Flag) { return bartlett(n, true, d); })
      .samples({{5}, {1}});
  op("bartlett_window.periodic", "bool periodic, ", bartlett_doc)
      .composed([](Expr n, bool p, OptDType d, Text, Text, Flag) { return bartlett(n, p, d); })
      .samples({{4, false}});
  const char* kaiser_doc =
      "I₀(beta sqrt(1 - (2i / N - 1)²)) / I₀(beta), N = window_length if periodic, else one less; beta is 12 if not given.";
  op("kaiser_window", "", kaiser_doc)
      .composed([](Expr n, OptDType d, Text, Text, Flag) { return kaiser(n, true, 12, d); })
      .samples({{5}, {1}});
  op("kaiser_window.periodic", "bool periodic, ", kaiser_doc)
      .composed([](Expr n, bool p, OptDType d, Text, Text, Flag) { return kaiser(n, p, 12, d); })
      .samples({{5, false}});
  op("kaiser_window.beta", "bool periodic, float beta, ", kaiser_doc)
      .composed([](Expr n, bool p, Number beta, OptDType d, Text, Text, Flag) { return kaiser(n, p, beta, d); })
      .samples({{5, true, 3.0}});
}

}  // namespace brasa::ops
