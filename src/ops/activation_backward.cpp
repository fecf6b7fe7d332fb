#include <cmath>
#include <numbers>

#include "ops/accepted.h"
#include "ops/algebra.h"
#include "ops/complex.h"
#include "ops/rows.h"
#include "ops/series.h"
#include "ops/softmax.h"
#include "support/error.h"

// The derivatives of activations as operators of their own: programs captured elsewhere contain them.
namespace brasa::ops {
namespace {

Value zero(Value x) { return zeros_like(x); }

Value pass_where(Value condition, Value ct) { return where(condition, ct, zero(ct)); }

void add_rectified(Table& t) {
  t.op("aten::threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor")
      .doc("The derivative of threshold and, at 0, of relu.")
      .composed([](Value ct, Value x, Number limit) {
        auto [g, y] = promoted(ct, x);
        return where(le(y, limit), zero(g), g);
      })
      .fits("threshold")
      .samples({{floats(3, 5), floats(3, 5), 0.5}});
  t.op("aten::hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor")
      .doc("The derivative of hardtanh.")
      .composed([](Value ct, Value x, Number low, Number high) {
        auto [g, y] = promoted(ct, x);
        return where(logical_or(le(real_only("hardtanh_backward", y), low), ge(y, high)), zero(g), g);
      })
      .fits("min_val")
      .fits("max_val")
      .samples({{floats(3, 5), floats(3, 5), -1, 1}});
  t.op("aten::leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor")
      .doc("The derivative of leaky_relu.")
      .composed_in_opmath([](Value ct, Value x, Number slope, bool) {
        real_only("leaky_relu_backward", ct);
        return where(gt(real_only("leaky_relu_backward", x), 0), ct, ct * slope);
      })
      .samples({{floats(3, 5), floats(3, 5), 0.1, false}});
  t.op("aten::rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, bool training, bool self_is_result) -> Tensor")
      .doc("The derivative of rrelu; noise holds the slopes that training drew.")
      .composed_in_opmath([](Value ct, Value x, Value noise, Number lower, Number upper, bool training, bool) {
        if (training) return ct * noise;
        return where(gt(x, 0), ct, ct * ((lower + upper) / 2));
      })
      .samples({{floats(3, 5), floats(3, 5), floats(3, 5), 0.1, 0.3, true, false}});
  t.op("aten::_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)")
      .doc("The derivative of prelu; the weight's is not summed.")
      .composed_in_opmath([](Value ct, Value x, Value w) {
        Value positive = gt(x, 0);
        return std::array{where(positive, ct, ct * w), where(positive, zero(ct), ct * x)};
      })
      .one_dtype({"grad_output", "self", "weight"})
      .samples({{floats(3, 5), floats(3, 5), floats(5)}});
  for (const char* name : {"hardshrink", "softshrink"})
    t.op(str("aten::", name, "_backward(Tensor ", name[0] == 'h' ? "grad_out" : "grad_output",
             ", Tensor self, Scalar lambd) -> Tensor"))
        .doc(str("The derivative of ", name, "."))
        .composed([](Value ct, Value x, Number l) {
          auto [g, y] = promoted(ct, x);
          return where(logical_and(ge(y, -l), le(y, l)), zero(g), g);
        })
        .fits("lambd")
        .samples({{floats(3, 5), floats(3, 5), 0.5}});
  t.op("aten::hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor")
      .doc("The derivative of hardsigmoid.")
      .composed_in_opmath([](Value ct, Value x) {
        // PyTorch holds the slope in single precision, for float64 too.
        constexpr double kSixth = 1.0f / 6.0f;
        return pass_where(logical_and(gt(x, -3), lt(x, 3)), ct * kSixth);
      })
      .samples({{floats(3, 5), floats(3, 5).in(-4, 4)}});
  t.op("aten::hardswish_backward(Tensor grad_output, Tensor self) -> Tensor")
      .doc("The derivative of hardswish.")
      .composed_in_opmath([](Value ct, Value x) {
        // The slope is finite where x is not.
        Value low = le(x, -3), slope = where(logical_or(low, ge(x, 3)), constant_like(x, 1), x / 3 + 0.5);
        return where(low, zero(ct), ct * slope);
      })
      .samples({{floats(3, 5), floats(3, 5).in(-4, 4)}});
}

// Φ(-a) / e^(-a²/2) by powers of a - 2.75, for float32: a fit by Remez' algorithm with 40 digits on [0, 5.5], of which the error times
// e^(-a²/2) + 1/1000 is at most 2^-25.8.
constexpr double kNormalTail[] = {2.6568812272308934e-08,  1.9429073863035377e-08,  -2.6324229419160534e-07,
                                  -1.2882126946938537e-06, 3.5798734690953908e-06,  -3.46570466108226e-06,
                                  4.143045635499177e-05,   -0.00019485750056733129, 0.0007379330968745761,
                                  -0.0029477466946026304,  0.011129248073518967,    -0.039448099891060684,
                                  0.1307242585998153};
constexpr double kTailEnd = 5.5, kTailMiddle = 2.75;
constexpr double kNormalDensity = 0.39894228040143268;  // at 0

bool is_widened(Value x) {
  return !ir::is_input(x) && row_of(*x.node).scalar == ScalarOp::Convert &&
         is_reduced_floating(dtype_of(x.node->inputs()[0]));
}

// The derivative of x Φ(x) is Φ(x) + x φ(x). In float32 one exponential gives both: at -a they are a product with φ(a), at a 1 less that. The sum
// itself loses digits near its zero, but not those of a reduced float, and x Φ(x) beside it has the same Φ(x).
Value gelu_slope(Value x) {
  Value gauss = exp_beside_one(-0.5 * (x * x));
  if (dtype_of(x) != DType::Float32 || is_widened(x))
    return 0.5 * (1 + erf(x * std::sqrt(0.5))) + x * (kNormalDensity * gauss);
  Value a = abs(x), near = where(lt(a, kTailEnd), a, constant_like(a, kTailEnd));
  Value below = gauss * (polynomial(near - kTailMiddle, kNormalTail) - kNormalDensity * a);
  return where(lt(x, 0), below, 1 - below);
}
Value gelu_curvature(Value x) { return kNormalDensity * exp_beside_one(-0.5 * (x * x)) * (2 - x * x); }

// Of 0.5 x (1 + tanh v), by v' and v''.
struct GeluByTanh {
  static constexpr double kCubic = 0.044715;
  Value x, u, v1, v2;
  explicit GeluByTanh(Value x_) : x(x_) {
    double k = std::sqrt(2 * std::numbers::inv_pi);
    u = tanh(k * (x + kCubic * (x * x * x)));
    v1 = k * (1 + 3 * kCubic * (x * x));
    v2 = 6 * k * kCubic * x;
  }
  Value slope() const { return 0.5 * (1 + u) + 0.5 * x * (1 - u * u) * v1; }
  Value curvature() const { return (1 - u * u) * (v1 + 0.5 * x * v2 - x * u * (v1 * v1)); }
};

Value gelu_backward(Value ct, Value x, const std::string& approximate) {
  BRASA_CHECK(approximate == "none" || approximate == "tanh", "approximate argument must be either none or tanh, got '",
              approximate, "'");
  return ct * (approximate == "none" ? gelu_slope(x) : GeluByTanh(x).slope());
}
std::vector<Value> gelu_backward_vjp(const Saved& s) {
  Value ct = s.in(0), x = s.in(1);
  bool plain = s.args.size() < 3 || s.arg<std::string>(2) == "none";
  return {s.ct() * (plain ? gelu_slope(x) : GeluByTanh(x).slope()),
          s.ct() * ct * (plain ? gelu_curvature(x) : GeluByTanh(x).curvature())};
}

struct Halves {
  Value value, gate;
};
Halves halves(const char* op, Value x, int64_t dim) {
  BRASA_CHECK(rank_of(x) > 0, op, ": does not support tensors without dimensions");
  dim = wrap_dim(dim, rank_of(x));
  Expr half = ir::floordiv(size_of(x, dim), 2);
  return {narrow(x, dim, 0, half), narrow(x, dim, half, half)};
}

Value glu_backward(Value ct, Value x, int64_t dim) {
  auto [a, gate] = halves("glu_backward", x, dim);
  check_same_shape("glu_backward", ct, a);
  Value s = sigmoid(gate);
  return prim::concat({ct * s, ct * a * (s * (1 - s))}, wrap_dim(dim, rank_of(x)));
}

void add_smooth(Table& t) {
  t.op("aten::gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor")
      .doc("The derivative of gelu.")
      .composed_in_opmath([](Value ct, Value x, std::string approximate) { return gelu_backward(ct, x, approximate); })
      .vjp(own_derivative(gelu_backward_vjp))
      .samples({{floats(3, 5), floats(3, 5)}, {floats(4), floats(4), "tanh"}});
  t.op("aten::infinitely_differentiable_gelu_backward(Tensor grad, Tensor self) -> Tensor")
      .doc("The derivative of gelu.")
      .composed_in_opmath([](Value ct, Value x) { return ct * gelu_slope(x); })
      .vjp(own_derivative(gelu_backward_vjp))
      .samples({{floats(3, 5), floats(3, 5)}});
  t.op("aten::silu_backward(Tensor grad_output, Tensor self) -> Tensor")
      .doc("The derivative of silu.")
      .composed_in_opmath([](Value ct, Value x) {
        Value s = sigmoid(x);
        return ct * (s * (1 + x * (1 - s)));
      })
      .samples({{floats(3, 5), floats(3, 5)}});
  t.op("aten::mish_backward(Tensor grad_output, Tensor self) -> Tensor")
      .doc("The derivative of mish.")
      .composed_in_opmath([](Value ct, Value x) {
        Value u = tanh(call("aten::softplus", {x}));
        return ct * (u + x * sigmoid(x) * (1 - u * u));
      })
      .samples({{floats(3, 5), floats(3, 5)}});
  t.op("aten::elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result) -> Tensor")
      .doc("The derivative of elu, from its input or its result.")
      .composed_in_opmath([](Value ct, Number alpha, Number scale, Number input_scale, bool is_result, Value x) {
        Number low = alpha * scale;
        Value negative = le(x, 0);
        Value y = where(negative, x, zero(x));
        Value slope = is_result ? (y + low) * input_scale : exp(y * input_scale) * (input_scale * low);
        return where(negative, ct * slope, ct * scale);
      })
      .samples({{floats(3, 5), 1, 1, 1, false, floats(3, 5)}, {floats(4), 0.5, 2, 1.5, true, floats(4).in(-1, 2)}});
  t.op("aten::softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor")
      .doc("The derivative of softplus.")
      .composed_in_opmath([](Value ct, Value x, Number beta, Number threshold) {
        Value z = x * beta;
        return where(gt(z, threshold), ct, ct * sigmoid(z));
      })
      .samples({{floats(3, 5), floats(3, 5), 1, 20}});
  t.op("aten::log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor")
      .doc("The derivative of log_sigmoid; the buffer is not used.")
      .composed_in_opmath([](Value ct, Value x, Value) { return ct * sigmoid(-x); })
      .one_dtype({"grad_output", "self"})
      .samples({{floats(3, 5), floats(3, 5), floats(0)}});
  t.op("aten::tanh_backward(Tensor grad_output, Tensor output) -> Tensor")
      .doc("The derivative of tanh, from its result.")
      .composed_in_opmath([](Value ct, Value out) {
        auto [g, y] = promoted(ct, out);
        return g * conj(1 - y * y);
      })
      .samples({{floats(3, 5), floats(3, 5)}});
  t.op("aten::sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor")
      .doc("The derivative of sigmoid, from its result.")
      .composed_in_opmath([](Value ct, Value out) {
        auto [g, y] = promoted(ct, out);
        return g * conj((1 - y) * y);
      })
      .samples({{floats(3, 5), floats(3, 5)}});
  t.op("aten::logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor")
      .doc("The derivative of logit.")
      .composed_in_opmath([](Value ct, Value x, std::optional<Number> eps) {
        real_only("logit_backward", ct);
        Value outside = logical_or(lt(real_only("logit_backward", x), eps.value_or(0)), gt(x, 1 - eps.value_or(0)));
        return where(outside, constant_like(ct, eps ? 0 : std::nan("")), ct / (x * (1 - x)));
      })
      .fits("eps")
      .samples({{floats(3, 5), floats(3, 5).in(0.1, 0.9)}, {floats(5), floats(5).in(0.1, 0.9), 0.05}});
  t.op("aten::glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor")
      .doc("The derivative of glu.")
      .composed_in_opmath(glu_backward)
      .one_dtype({"grad_output", "self"})
      .samples({{floats(3, 3), floats(3, 6), -1}});
  t.op("aten::glu_jvp(Tensor glu, Tensor x, Tensor dx, int dim) -> Tensor")
      .doc("The tangent of glu from its result and its input's tangent.")
      .composed_in_opmath([](Value y, Value x, Value dx, int64_t dim) {
        Halves h = halves("glu_jvp", x, dim), d = halves("glu_jvp", dx, dim);
        Value s = sigmoid(h.gate);
        return d.value * s + y * (1 - s) * d.gate;
      })
      .samples({{floats(3, 3), floats(3, 6), floats(3, 6), -1}});
  t.op("aten::glu_backward_jvp(Tensor grad_x, Tensor grad_glu, Tensor x, Tensor dgrad_glu, Tensor dx, int dim) -> Tensor")
      .doc("The tangent of glu_backward, whose result is grad_x, from those of the cotangent and the input.")
      .composed_in_opmath([](Value, Value ct, Value x, Value dct, Value dx, int64_t dim) {
        constexpr const char* op = "glu_backward_jvp";
        Halves h = halves(op, x, dim), d = halves(op, dx, dim);
        Value s = sigmoid(h.gate), slope = s * (1 - s), turn = slope * d.gate;
        Value gate = dct * h.value * slope + ct * (d.value * slope + h.value * (1 - 2 * s) * turn);
        return prim::concat({dct * s + ct * turn, gate}, wrap_dim(dim, rank_of(x)));
      })
      .samples({{floats(3, 6), floats(3, 3), floats(3, 6), floats(3, 3), floats(3, 6), -1}});
}

}  // namespace

void add_activation_backward(Table& t) {
  add_rectified(t);
  add_smooth(t);
}

}  // namespace brasa::ops
