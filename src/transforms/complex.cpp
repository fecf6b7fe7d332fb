#include "transforms/complex.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "ir/copy.h"
#include "ops/complex.h"
#include "ops/shapes.h"
#include "support/error.h"

namespace brasa::transforms {
namespace {

using ir::Arg;
using ir::Expr;
using ir::Node;
using ir::Shape;
using ir::Value;
using namespace ops;  // NOLINT: the algebra on Values
// The operators below hide none of those on Values.
using ops::operator+;
using ops::operator-;
using ops::operator*;
using ops::operator/;

// A complex value as its parts. Written as formulas on complex numbers where there is no shorter way.
struct Z {
  Value re, im;
};

Value prim1(const char* name, Value x) { return prim::unary(name, x); }
Z real_z(Value x) { return {x, zeros_like(x)}; }
Z like(Z z, double re, double im = 0) { return {constant_like(z.re, re), constant_like(z.re, im)}; }

Z operator+(Z a, Z b) { return {a.re + b.re, a.im + b.im}; }
Z operator-(Z a, Z b) { return {a.re - b.re, a.im - b.im}; }
Z operator-(Z a) { return {-a.re, -a.im}; }
// Products one after another: in one expression their order, and with it the graph, would be the C++ compiler's.
Z operator*(Z a, Z b) {
  Value rr = a.re * b.re, ii = a.im * b.im, ri = a.re * b.im, ir = a.im * b.re;
  return {rr - ii, ri + ir};
}
Z operator*(Z a, double s) { return {a.re * s, a.im * s}; }
// R. L. Smith, Algorithm 116 (1962): without overflow of the divisor's square.
Z operator/(Z a, Z b) {
  Value wide = ge(ops::abs(b.re), ops::abs(b.im));
  Value large = where(wide, b.re, b.im), small = where(wide, b.im, b.re);
  Value nothing = logical_and(eq(b.re, 0), eq(b.im, 0));
  Value r = where(nothing, zeros_like(large), small / large), d = large + small * r;
  Value p = where(wide, a.re + a.im * r, a.re * r + a.im), q = where(wide, a.im - a.re * r, a.im * r - a.re);
  return {p / d, q / d};
}
Z times_i(Z z) { return {-z.im, z.re}; }
Z chosen(Value c, Z a, Z b) { return {where(c, a.re, b.re), where(c, a.im, b.im)}; }

Z exp_z(Z z) {
  Value e = ops::exp(z.re);
  Value plain = eq(z.im, 0);  // no NaN from infinity times sin 0
  return {where(plain, e, e * ops::cos(z.im)), where(plain, z.im, e * ops::sin(z.im))};
}
// e^z - 1 = (e^a - 1) cos b - 2 sin²(b / 2) + i e^a sin b: no ones that cancel.
Z expm1_z(Z z) {
  Value real = ops::expm1(z.re), half = ops::sin(0.5 * z.im);
  return {where(eq(z.im, 0), real, real * ops::cos(z.im) - 2 * (half * half)), exp_z(z).im};
}
// ln|z| near |z| = 1 from |z|² - 1 = (a - 1)(a + 1) + b², a the larger part.
Z log_z(Z z, Value modulus) {
  Value a = maximum(ops::abs(z.re), ops::abs(z.im)), b = minimum(ops::abs(z.re), ops::abs(z.im));
  Value near = logical_and(gt(modulus, 0.5), lt(modulus, 2));
  Value close = 0.5 * ops::log1p(where(near, (a - 1) * (a + 1) + b * b, zeros_like(a)));
  return {where(near, close, ops::log(modulus)), pointwise("atan2", z.im, z.re)};
}
Z sqrt_z(Z z, Value m) {
  Value nothing = eq(m, 0), safe = where(nothing, constant_like(m, 1), m);
  Value t = ops::sqrt(0.5 * safe + 0.5 * ops::abs(z.re)), half = 0.5 * ops::abs(z.im) / t;
  Value right = ge(z.re, 0);
  Value re = where(right, t, half), im = where(right, half, t);
  im = where(sign_bit(z.im), -im, im);
  return {where(nothing, zeros_like(re), re), where(nothing, z.im, im)};
}
Z sinh_z(Z z) { return {prim1("sinh", z.re) * ops::cos(z.im), prim1("cosh", z.re) * ops::sin(z.im)}; }
Z cosh_z(Z z) { return {prim1("cosh", z.re) * ops::cos(z.im), prim1("sinh", z.re) * ops::sin(z.im)}; }
// W. Kahan (1987): (t + i u) with t = tan y: (sinh x cosh x (1 + t²) + i t) / (1 + sinh² x (1 + t²)); its limit for large x.
Z tanh_z(Z z) {
  Value large = gt(ops::abs(z.re), 20);
  Value x = where(large, zeros_like(z.re), z.re);
  Value t = prim1("tan", z.im), beta = 1 + t * t, s = prim1("sinh", x), rho = ops::sqrt(1 + s * s);
  Value d = 1 + beta * (s * s);
  Value decay = 4 * ops::sin(z.im) * ops::cos(z.im) * ops::exp(-2 * ops::abs(z.re));
  return {where(large, prim1("sign", z.re), beta * rho * s / d), where(large, decay, t / d)};
}

// Strides of a complex value as those of its parts.
std::vector<Expr> strides_of_parts(const std::vector<Expr>& strides) {
  std::vector<Expr> out;
  for (Expr s : strides) out.push_back(s * 2);
  if (!strides.empty()) out.push_back(Expr(1));
  return out;
}

class Splitter {
 public:
  Splitter(const ir::Graph& from, ir::Facts& facts, bool asks)
      : from_(from), out_(std::make_unique<ir::Graph>(from.level())), builder_(*out_, facts), asks_(asks) {}

  std::unique_ptr<ir::Graph> run() {
    out_->name = from_.name;
    std::vector<Value> inputs;
    for (const ir::Input& in : from_.inputs()) inputs.push_back(input(in));
    for (size_t i = 0; i < inputs.size(); ++i) note_input(from_.inputs()[i].value, inputs[i]);
    for (Node* n : live_nodes(from_))
      if (n->op != ir::input_op()) node(n);
    for (const ir::Output& o : from_.outputs()) {
      if (!is_complex(type_of(o.value).dtype)) {
        out_->outputs().push_back({real_(o.value), o.into, o.check});
        continue;
      }
      out_->add_output(whole(o.value), o.into);
    }
    return std::move(out_);
  }

 private:
  Value input(const ir::Input& in) {
    ir::Type t = type_of(in.value);
    if (!is_complex(t.dtype)) return out_->add_input(std::move(t), in.name, in.strides, in.by_value);
    t.dtype = real_part_of(t.dtype);
    t.shape.push_back(Expr(2));
    t.weak = false;
    return out_->add_input(std::move(t), in.name, strides_of_parts(in.strides), in.by_value);
  }

  void note_input(Value from, Value v) {
    if (!is_complex(type_of(from).dtype)) return real_.set(from, v);
    parts_[from] = taken_apart(v);
    whole_[from] = v;
  }

  // With the parts as a last dimension.
  Value whole(Value v) const {
    auto it = whole_.find(v);
    return it != whole_.end() ? it->second : interleaved(parts(v));
  }

  // The parts as a last dimension, and back.
  static Value interleaved(Z z) {
    int64_t last = rank_of(z.re);
    return prim::concat({unsqueeze(z.re, last), unsqueeze(z.im, last)}, last);
  }
  static Z taken_apart(Value v) {
    int64_t last = rank_of(v) - 1;
    return {squeeze(narrow(v, last, 0, 1), last), squeeze(narrow(v, last, 1, 1), last)};
  }

  Z parts(Value v) const {
    auto it = parts_.find(v);
    BRASA_ASSERT(it != parts_.end(), "a complex value was used before it was split");
    return it->second;
  }

  // The node on real operands: of a list, or one by one.
  Value again(const Node* n, bool imaginary) {
    ir::Args args;
    for (const Arg& a : n->args) {
      auto side = [&](Value v) {
        if (!v || !is_complex(type_of(v).dtype)) return v ? real_(v) : v;
        return imaginary ? parts(v).im : parts(v).re;
      };
      if (auto* v = a.get_if<Value>()) {
        args.push_back(Arg(side(*v)));
      } else if (auto* list = a.get_if<std::vector<Value>>()) {
        std::vector<Value> items;
        for (Value v : *list) items.push_back(side(v));
        args.push_back(Arg(std::move(items)));
      } else {
        args.push_back(a);
      }
    }
    return builder_.call(row_of(*n), std::move(args))[0];
  }
  Z both(const Node* n) { return {again(n, false), again(n, true)}; }

  void node(Node* n) {
    std::vector<Value> in = n->inputs();
    bool reads = std::any_of(in.begin(), in.end(), [](Value v) { return is_complex(type_of(v).dtype); });
    bool writes = std::any_of(n->types.begin(), n->types.end(), [](const ir::Type& t) { return is_complex(t.dtype); });
    if (!reads && !writes) {
      ir::copy_node(*out_, *n, real_);
      return;
    }
    if (n->op->name() == "prim::as_real")
      real_.set(n->out(), whole(in[0]));
    else if (n->op->name() == "prim::as_complex")
      parts_[n->out()] = taken_apart(real_(in[0]));
    else if (row_of(*n).kind == Kind::Whole)
      whole_node(n);
    else if (writes)
      parts_[n->out()] = complex_node(n);
    else
      real_.set(n->out(), real_node(n));
  }

  // A library's function takes and gives complex numbers as they are.
  void whole_node(Node* n) {
    ir::Args args;
    for (const Arg& a : n->args) {
      auto* v = a.get_if<Value>();
      if (v && *v && is_complex(type_of(*v).dtype)) {
        Z z = parts(*v);
        args.push_back(call("prim::join_parts", {z.re, z.im}));
      } else {
        args.push_back(real_(a));
      }
    }
    Node* copy = out_->add(n->op, std::move(args), n->types);
    for (uint32_t r = 0; r < n->types.size(); ++r) {
      if (is_complex(n->types[r].dtype)) {
        std::vector<Value> both = call_all("prim::split_parts", {copy->out(r)});
        parts_[n->out(r)] = {both[0], both[1]};
      } else {
        real_.set(n->out(r), copy->out(r));
      }
    }
  }

  std::string name_of(const Node* n) const { return n->op->name().substr(6); }

  // Complex operands, a real result. What waits for a complex number may be real itself.
  Value real_node(const Node* n) {
    std::string op = name_of(n);
    if (op == "later") return call("prim::later", {real_(n->arg<Value>(0)), parts(n->arg<Value>(1)).re});
    Z a = parts(n->arg<Value>(0));
    if (op == "real") return a.re;
    if (op == "imag") return a.im;
    if (op == "convert") {
      DType t = n->arg<DType>(1);
      if (t == DType::Bool) return logical_or(ne(a.re, 0), ne(a.im, 0));
      return prim::convert(a.re, t);
    }
    if (op == "eq" || op == "ne") {
      Z b = parts(n->arg<Value>(1));
      return op == "eq" ? logical_and(eq(a.re, b.re), eq(a.im, b.im)) : logical_or(ne(a.re, b.re), ne(a.im, b.im));
    }
    unknown(n);
  }

  Z complex_node(Node* n) {
    switch (n->op == ir::input_op() ? Kind::Input : row_of(*n).kind) {
      case Kind::Full: {
        Number v(n->arg(0));
        DType t = real_part_of(n->types[0].dtype);
        const Shape& shape = n->types[0].shape;
        return {prim::full(v.as_complex().real(), shape, t), prim::full(v.as_complex().imag(), shape, t)};
      }
      case Kind::Pointwise: return pointwise_node(n);
      case Kind::Reduce:
      case Kind::Scan:
        if (n->arg<std::string>(2) == "mul") return product(n);
        if (n->arg<std::string>(2) != "add") unknown(n);
        return is_of_columns(n) ? sum_of_columns(n) : both(n);
      case Kind::Scatter:
        if (const auto& how = n->arg<std::string>(4); how != "add" && !how.empty()) unknown(n);
        return both(n);
      case Kind::Dot:
        if (is_of_matrices(n)) return one_product(n);
        [[fallthrough]];
      case Kind::Convolution: {
        Z a = parts(n->arg<Value>(0)), b = parts(n->arg<Value>(1));
        auto product = [&](Value x, Value y) {
          ir::Args args = n->args;
          args[0] = Arg(x);
          args[1] = Arg(y);
          return builder_.call(row_of(*n), std::move(args))[0];
        };
        return {product(a.re, b.re) - product(a.im, b.im), product(a.re, b.im) + product(a.im, b.re)};
      }
      case Kind::ArgReduce: unknown(n);
      default: return both(n);  // movement
    }
  }

  // Operands as they lie in memory, of several columns, and of rows enough for the columns to be written down twice, unless these are few.
  bool is_of_matrices(const Node* n) const {
    constexpr int64_t kManyRows = 16, kFew = 4096;
    auto elements = [&](size_t operand, bool summed) {
      const Shape& shape = type_of(n->arg<Value>(operand)).shape;
      auto others = n->arg<std::vector<Expr>>(4 + operand), contracted = n->arg<std::vector<Expr>>(2 + operand);
      if (!summed) others.insert(others.end(), contracted.begin(), contracted.end());
      Expr count(1);
      for (size_t d = 0; d < shape.size(); ++d)
        if (std::find(others.begin(), others.end(), Expr(static_cast<int64_t>(d))) == others.end())
          count = count * shape[d];
      return count;
    };
    auto fewer = [&](Expr e, int64_t than) {
      std::optional<bool> known = provably_less(e, than);
      return known ? *known : asks_ && is_less(e, than);
    };
    bool known = whole_.count(n->arg<Value>(0)) && whole_.count(n->arg<Value>(1));
    return known && !elements(1, false).is(1) &&
           (fewer(elements(1, true), kFew) || !fewer(elements(0, false), kManyRows));
  }

  // One product of real matrices, whose rows are those of a as they lie in memory: (re, im) · ((re, im), (-im, re)).
  Z one_product(const Node* n) {
    Value a = n->arg<Value>(0), b = n->arg<Value>(1);
    Z z = parts(b);
    int64_t rank = rank_of(z.re);
    Value by_re = unsqueeze(whole(b), rank), by_im = unsqueeze(interleaved({-z.im, z.re}), rank);
    ir::Args args = n->args;
    args[0] = Arg(whole(a));
    args[1] = Arg(prim::concat({by_re, by_im}, rank));
    for (size_t i : {2, 3}) {
      auto dims = n->arg<std::vector<Expr>>(i);
      dims.push_back(Expr(i == 2 ? type_of(a).rank() : rank));
      args[i] = Arg(std::move(dims));
    }
    Value product = builder_.call(row_of(*n), std::move(args))[0];
    whole_[const_cast<Node*>(n)->out()] = product;
    return taken_apart(product);
  }

  // Whether an operand as it lies in memory is summed, and not along its rows.
  bool is_of_columns(const Node* n) const {
    if (row_of(*n).kind != Kind::Reduce || !whole_.count(n->arg<Value>(0))) return false;
    const auto& dims = n->arg<std::vector<Expr>>(1);
    return std::find(dims.begin(), dims.end(), Expr(type_of(n->arg<Value>(0)).rank() - 1)) == dims.end();
  }

  // Twice as many columns of real numbers.
  Z sum_of_columns(Node* n) {
    ir::Args args = n->args;
    args[0] = Arg(whole(n->arg<Value>(0)));
    Value sums = builder_.call(row_of(*n), std::move(args))[0];
    whole_[n->out()] = sums;
    return taken_apart(sums);
  }

  // Sizes multiply and angles add up, each by a reduction of real numbers; in double precision, because angles' errors add up too.
  Z product(const Node* n) {
    Z z = parts(n->arg<Value>(0));
    DType t = type_of(z.re).dtype;
    Value re = prim::convert(z.re, DType::Float64), im = prim::convert(z.im, DType::Float64);
    auto reduced = [&](Value x, const char* how) {
      ir::Args args = n->args;
      args[0] = Arg(x);
      args[2] = Arg(how);
      return builder_.call(row_of(*n), std::move(args))[0];
    };
    Value size = reduced(magnitude(re, im), "mul"), angle = reduced(prim::binary("atan2", im, re), "add");
    return {prim::convert(size * ops::cos(angle), t), prim::convert(size * ops::sin(angle), t)};
  }

  Z pointwise_node(const Node* n) {
    std::string op = name_of(n);
    if (op == "select") return both(n);
    if (op == "complex") return {real_(n->arg<Value>(0)), real_(n->arg<Value>(1))};
    if (op == "convert") {
      DType t = real_part_of(n->types[0].dtype);
      Value x = n->arg<Value>(0);
      if (!is_complex(type_of(x).dtype)) return real_z(prim::convert(real_(x), t));
      return {prim::convert(parts(x).re, t), prim::convert(parts(x).im, t)};
    }
    // Halves are computed in single precision and rounded once, as kernels do.
    DType t = real_part_of(n->types[0].dtype);
    auto wide = [&](size_t i) {
      Z z = parts(n->arg<Value>(i));
      return Z{to_opmath(z.re), to_opmath(z.im)};
    };
    Z z = formula(n, op, wide(0), n->args.size() > 1 ? wide(1) : Z{});
    return {prim::convert(z.re, t), prim::convert(z.im, t)};
  }

  Z log(Z z) { return log_z(z, magnitude(z.re, z.im)); }
  Z sqrt(Z z) { return sqrt_z(z, magnitude(z.re, z.im)); }
  Z asinh(Z z) { return log(z + sqrt(z * z + like(z, 1))); }
  Z atanh(Z z) { return (log(like(z, 1) + z) - log(like(z, 1) - z)) * 0.5; }

  Z formula(const Node* n, const std::string& op, Z a, Z b) {
    constexpr double kLn2 = 0.69314718055994531, kLn10 = 2.3025850929940457, kHalfPi = 1.5707963267948966;
    if (op == "neg") return -a;
    if (op == "add") return a + b;
    if (op == "sub") return a - b;
    if (op == "mul") return a * b;
    if (op == "div") return a / b;
    if (op == "exp") return exp_z(a);
    if (op == "exp2") return exp_z(a * kLn2);
    if (op == "expm1") return expm1_z(a);
    if (op == "log") return log(a);
    if (op == "log2") return log(a) * (1 / kLn2);
    if (op == "log10") return log(a) * (1 / kLn10);
    if (op == "log1p") return log(a + like(a, 1));
    if (op == "sqrt") return sqrt(a);
    if (op == "rsqrt") return like(a, 1) / sqrt(a);
    if (op == "sinh") return sinh_z(a);
    if (op == "cosh") return cosh_z(a);
    if (op == "tanh") return tanh_z(a);
    if (op == "sin") return -times_i(sinh_z(times_i(a)));
    if (op == "cos") return cosh_z(times_i(a));
    if (op == "tan") return -times_i(tanh_z(times_i(a)));
    if (op == "asinh") return asinh(a);
    if (op == "acosh") return log(a + sqrt(a + like(a, 1)) * sqrt(a - like(a, 1)));
    if (op == "atanh") return atanh(a);
    if (op == "asin") return -times_i(asinh(times_i(a)));
    if (op == "acos") return like(a, kHalfPi) + times_i(asinh(times_i(a)));
    if (op == "atan") return -times_i(atanh(times_i(a)));
    if (op == "pow") {
      // 0^b is 1 for b = 0 and else 0.
      Value zero_base = logical_and(eq(a.re, 0), eq(a.im, 0)), zero_power = logical_and(eq(b.re, 0), eq(b.im, 0));
      Z base = chosen(zero_base, like(a, 1), a);
      Z r = chosen(zero_base, like(a, 0), exp_z(b * log(base)));
      return chosen(zero_power, like(a, 1), r);
    }
    unknown(n);
  }

  [[noreturn]] void unknown(const Node* n) const {
    fail(str("compiled code has no ", n->op->name(), " of complex numbers, got ", type_of(n->inputs()[0])));
  }

  const ir::Graph& from_;
  std::unique_ptr<ir::Graph> out_;
  Builder builder_;
  const bool asks_;
  ir::ValueMap real_;
  std::unordered_map<Value, Z> parts_;
  std::unordered_map<Value, Value> whole_;  // of those that lie in memory so
};

}  // namespace

std::unique_ptr<ir::Graph> split_complex(const ir::Graph& graph, ir::Facts& facts, bool size_classes) {
  if (auto moved = moved_as_words(graph, facts)) return moved;
  return Splitter(graph, facts, size_classes).run();
}

}  // namespace brasa::transforms
