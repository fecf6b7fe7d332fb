#include <cmath>
#include <numbers>

#include "ops/literal.h"
#include "ops/resample.h"
#include "ops/rows.h"
#include "support/error.h"

// Interpolation to another size, dimension by dimension. Element i of the result lies at (i + 1/2) * scale - 1/2 of the input,
// or with align_corners at i * scale; scale is 1 / (the factor given), or the quotient of the sizes.
namespace brasa::ops {
namespace {

enum class Filter { Nearest, NearestExact, Linear, Cubic, Lanczos };
constexpr double kCubic = -0.75, kCubicAntialiased = -0.5;  // PyTorch's parameters of the cubic kernel

constexpr double kLanczosRadius = 3;

using Scale = std::optional<double>;
using Scales = std::vector<Scale>;

struct Axis {
  Expr in, out;
  bool align_corners = false;
  Scale factor;
  bool given() const { return factor && *factor > 0; }
};

// floor(size * factor), where a factor of few binary digits keeps the size symbolic.
std::optional<Expr> scaled_size(Expr size, double factor) {
  constexpr double kDigits = 1024;
  if (size.is_constant()) {
    double scaled = std::floor(static_cast<double>(size.constant()) * factor);
    BRASA_CHECK(std::abs(scaled) < 0x1p62, "a scale factor of ", factor, " makes no size of ", size);
    return Expr(static_cast<int64_t>(scaled));
  }
  if (factor * kDigits != std::floor(factor * kDigits) || factor >= kDigits) return std::nullopt;
  return ir::floordiv(size * Expr(static_cast<int64_t>(factor * kDigits)), Expr(static_cast<int64_t>(kDigits)));
}

Value scale_of(const Axis& a, DType t) {
  if (a.align_corners) return (size_tensor(a.in, {}, t) - 1) / maximum(size_tensor(a.out, {}, t) - 1, full(1, {}, t));
  if (a.given()) return full(1 / *a.factor, {}, t);
  return size_tensor(a.in, {}, t) / size_tensor(a.out, {}, t);
}

// 0, 1, … along a dimension of n.
Value steps(Expr n, DType t) { return convert(prim::iota({n}, 0, DType::Int64), t); }
Value last(Expr size, DType t) { return size_tensor(size - 1, {}, t); }
// Beside which results lie.
Value taps(Expr n, DType t) { return unsqueeze(steps(n, t), 1); }

// An axis, and what its transpose is made of: the last element of each result, and within how many elements the results lie that one is
// part of.
struct Sampled {
  Resampling by;
  Value last;
  double within;
};

Value last_of(Value index) { return squeeze(narrow(index, 0, size_of(index, 0) - 1, 1), 0); }

// How many results an element is part of at most, one more for rounding, which makes more of very many; none where results may reach beyond
// the input's end.
std::optional<Expr> most_results(const Axis& a, double within) {
  constexpr int64_t kRounded = 1 << 20;
  if (!is_less(a.out, kRounded)) return std::nullopt;
  auto elements = static_cast<int64_t>(std::ceil(within));
  if (a.align_corners) return ir::ceildiv((a.out - 1) * elements, ir::max(a.in - 1, 1)) + 1;
  if (!a.given()) return ir::ceildiv(a.out * elements, a.in) + 1;
  if (!(*a.factor < kRounded)) return std::nullopt;
  std::optional<Expr> out = scaled_size(a.in, *a.factor);
  if (!out || !same_size(*out, a.out)) return std::nullopt;
  return Expr(static_cast<int64_t>(std::ceil(*a.factor * within)) + 1);
}

// Computed in float32 whatever the data, as PyTorch does.
Sampled nearest(const Axis& a, int64_t dim, bool exact) {
  Value i = steps(a.out, DType::Float32);
  Value at = prim::unary("floor", (exact ? i + 0.5 : i) * scale_of(a, DType::Float32));
  Value index = index_below(minimum(at, last(a.in, DType::Float32)), a.in);
  return {{dim, index, {}}, index, 1};
}

Value position(const Axis& a, DType t) {
  Value i = steps(a.out, t), scale = scale_of(a, t);
  return a.align_corners ? i * scale : (i + 0.5) * scale - 0.5;
}

Sampled linear(const Axis& a, int64_t dim, DType t) {
  Value at = position(a, t), zero = full(0, {}, t), one = full(1, {}, t);
  at = maximum(at, zero);
  Value low = minimum(prim::unary("floor", at), last(a.in, t));
  Value fraction = minimum(maximum(at - low, zero), one), tap = taps(2, t);
  Value index = index_below(minimum(low + tap, last(a.in, t)), a.in);
  Value end = minimum(where(gt(fraction, 0), low + 1, low), last(a.in, t));
  return {{dim, index, where(eq(tap, 0), 1 - fraction, fraction)}, index_below(end, a.in), 2};
}

Sampled cubic(const Axis& a, int64_t dim, DType t) {
  Value at = position(a, t), zero = full(0, {}, t), one = full(1, {}, t);
  Value low = minimum(prim::unary("floor", at), last(a.in, t));
  Value fraction = minimum(maximum(at - low, zero), one), tap = taps(4, t) - 1;
  Value index = index_below(minimum(maximum(low + tap, zero), last(a.in, t)), a.in);
  return {{dim, index, cubic_kernel(fraction - tap, kCubic)}, last_of(index), 4};
}

// sinc(x) sinc(x / 3) within 3 of the middle.
Value lanczos_kernel(Value x) {
  auto sinc = [](Value v) {
    Value angle = v * std::numbers::pi;
    return where(eq(v, 0), constant_like(v, 1), sin(angle) / angle);
  };
  return where(lt(abs(x), kLanczosRadius), sinc(x) * sinc(x / kLanczosRadius), zeros_like(x));
}

// The kernel stretched by the scale where that is greater than 1, so that every input element takes part.
Sampled antialiased(const Axis& a, int64_t dim, DType t, Filter filter) {
  double radius = filter == Filter::Lanczos ? kLanczosRadius : filter == Filter::Cubic ? 2 : 1;
  auto in = static_cast<double>(known_size(a.in)), out = static_cast<double>(known_size(a.out));
  double s = a.align_corners ? (out > 1 ? (in - 1) / (out - 1) : 0) : a.given() ? 1 / *a.factor : in / out;
  if (t == DType::Float32) s = static_cast<float>(s);
  double support = s >= 1 ? radius * s : radius, inverse = s >= 1 ? 1 / s : 1;
  auto width = static_cast<int64_t>(std::ceil(support)) * 2 + 1, elements = known_size(a.in);
  // A kernel as wide as the input is given by element, and all of them are read in order.
  bool whole = width >= elements;
  Value centre = (steps(a.out, t) + 0.5) * full(s, {}, t), zero = full(0, {}, t);
  auto truncated = [&](Value v) { return prim::unary("trunc", v); };
  Value from = maximum(truncated(centre - support + 0.5), zero);
  Value to = minimum(truncated(centre + support + 0.5), size_tensor(a.in, {}, t));
  Value at = whole ? zeros_like(from) + taps(elements, t) : from + taps(width, t);
  Value distance = (at - centre + 0.5) * inverse;
  Value weight = filter == Filter::Lanczos ? lanczos_kernel(distance)
                 : filter == Filter::Cubic ? cubic_kernel(distance, kCubicAntialiased)
                                           : maximum(1 - abs(distance), zero);
  Value inside = lt(at, to);
  if (whole) inside = logical_and(inside, ge(at, from));
  weight = where(inside, weight, zero);
  Value end = maximum(to - 1, zero);
  Value index = whole ? prim::iota(shape_of(at), 0, DType::Int64) : index_below(minimum(at, end), a.in);
  return {{dim, index, weight / sum(weight, {0}, true)}, index_below(end, a.in), 2 * support};
}

Sampled sampled(const Axis& a, int64_t dim, Filter filter, bool antialias, DType t) {
  if (antialias) return antialiased(a, dim, t, filter);
  if (filter == Filter::Linear) return linear(a, dim, t);
  return filter == Filter::Cubic ? cubic(a, dim, t) : nearest(a, dim, filter == Filter::NearestExact);
}

// What is to be done along each dimension whose size changes.
struct Step {
  Axis axis;
  Sampled sampled;
};
std::vector<Step> steps_of(const Shape& in, const Shape& out, bool align_corners, const Scales& factors, Filter filter,
                           bool antialias, DType t) {
  std::vector<Step> steps;
  for (size_t d = 0; d < out.size(); ++d) {
    Axis a{in[d + 2], out[d], align_corners, factors[d]};
    bool keeps = filter != Filter::Cubic && !antialias && a.given() && !align_corners && same_size(a.in, a.out);
    if (!keeps && !(a.in == a.out)) steps.push_back({a, sampled(a, static_cast<int64_t>(d) + 2, filter, antialias, t)});
  }
  return steps;
}

void check_sizes(const char* op, const Shape& in, const Shape& out) {
  for (size_t d = 0; d < out.size(); ++d)
    BRASA_CHECK(is_less(0, in[d + 2]) && is_less(0, out[d]), op,
                ": Input and output sizes should be greater than 0, but got input ", in, " and output_size ", out);
}

Value upsampled(const char* op, Value x, const Shape& out, bool align_corners, const Scales& factors, Filter filter,
                bool antialias) {
  size_t n = factors.size();
  BRASA_CHECK(out.size() == n, op, ": It is expected output_size equals to ", n, ", but got size ", out.size());
  BRASA_CHECK(rank_of(x) == static_cast<int64_t>(n) + 2, op, ": It is expected input to have ", n + 2,
              " dimensions, but got ", type_of(x));
  check_sizes(op, shape_of(x), out);
  BRASA_CHECK(!same_size(size_of(x, 1), 0), op, ": Non-empty ", n + 2, "D data tensor expected but got ", type_of(x));
  DType t = dtype_of(x);
  bool interpolates = filter != Filter::Nearest && filter != Filter::NearestExact;
  BRASA_CHECK(is_floating(t) || t == DType::UInt8, op, ": not implemented for ", name(t), " tensors");
  Value wide = interpolates ? (t == DType::UInt8 ? to_float(x) : to_opmath(x)) : x;
  bool rounds = interpolates && t == DType::UInt8;
  std::vector<Step> steps = steps_of(shape_of(x), out, align_corners, factors, filter, antialias,
                                     interpolates ? dtype_of(wide) : DType::Float32);
  if (!rounds) {
    // One dimension after the other where an antialiased kernel is wide; else each element is read once.
    std::vector<Resampling> together;
    for (const Step& s : steps) {
      if (antialias)
        wide = resampled(wide, {s.sampled.by});
      else
        together.push_back(s.sampled.by);
    }
    return convert(resampled(wide, together), t);
  }
  // PyTorch's: the last dimension first, and after each one 8 bits again, halves rounded up.
  Value least = full(0, {}, DType::Float32), greatest = full(255, {}, DType::Float32);
  for (auto s = steps.rbegin(); s != steps.rend(); ++s)
    wide = minimum(maximum(prim::unary("floor", resampled(wide, {s->sampled.by}) + 0.5), least), greatest);
  return convert(wide, t);
}

Value upsampled_backward(const char* op, Value g, const Shape& out, const Shape& in, bool align_corners,
                         const Scales& factors, Filter filter, bool antialias) {
  size_t n = factors.size();
  BRASA_CHECK(out.size() == n && in.size() == n + 2, op, ": expected ", n, " output sizes and ", n + 2,
              " input sizes, got ", out, " and ", in);
  BRASA_CHECK(is_floating(dtype_of(g)) || dtype_of(g) == DType::UInt8, op, ": not implemented for ", name(dtype_of(g)),
              " tensors");
  check_sizes(op, in, out);
  Shape want = {in[0], in[1]};
  want.insert(want.end(), out.begin(), out.end());
  bool fits = rank_of(g) == static_cast<int64_t>(n) + 2;
  for (size_t d = 0; fits && d < want.size(); ++d) fits = same_size(size_of(g, static_cast<int64_t>(d)), want[d]);
  BRASA_CHECK(fits, op, ": Expected grad_output of shape ", want, ", but got ", type_of(g));
  Value wide = to_opmath(g);
  // The gradient's own sizes, which may be other symbols than those given.
  Shape shape = shape_of(g);
  std::vector<Step> steps =
      steps_of(in, Shape(shape.begin() + 2, shape.end()), align_corners, factors, filter, antialias, dtype_of(wide));
  // Where results are at least two thirds as many as elements, each element looks for its results; along the other dimensions each result looks
  // for its elements.
  std::vector<Resampling> scattered;
  for (const Step& s : steps) {
    std::optional<Expr> most;
    if (!is_less(s.axis.out * Expr(3), s.axis.in * Expr(2))) most = most_results(s.axis, s.sampled.within);
    if (most)
      wide = resampled(wide, {transposed(s.sampled.by, s.sampled.last, s.axis.in, *most)});
    else
      scattered.push_back(s.sampled.by);
  }
  shape = shape_of(wide);
  while (!scattered.empty()) {
    std::vector<Resampling> next(antialias ? scattered.end() - 1 : scattered.begin(), scattered.end());
    scattered.resize(scattered.size() - next.size());
    for (const Resampling& a : next) shape[a.dim] = in[a.dim];
    wide = resampled_transposed(wide, shape, next);
  }
  return convert(wide, dtype_of(g));
}

struct Target {
  Shape out;
  Scales factors;
};
Target target(const char* op, Value x, const std::optional<Shape>& out,
              const std::optional<std::vector<double>>& factors, size_t n) {
  BRASA_CHECK(out.has_value() != factors.has_value(), op,
              ": Must specify exactly one of output_size and scale_factors");
  if (out) return {*out, Scales(n)};
  BRASA_CHECK(factors->size() == n && rank_of(x) == static_cast<int64_t>(n) + 2, op, ": expected ", n,
              " scale factors for an input of ", n + 2, " dimensions, got ", factors->size(), " for ", type_of(x));
  Target t;
  for (size_t d = 0; d < n; ++d) {
    Expr size = size_of(x, static_cast<int64_t>(d) + 2);
    std::optional<Expr> scaled = scaled_size(size, (*factors)[d]);
    t.out.push_back(scaled ? *scaled : *scaled_size(known_size(size), (*factors)[d]));
    t.factors.emplace_back((*factors)[d]);
  }
  return t;
}

TensorSample planes(int n, int64_t size) {
  std::vector<int64_t> shape = {2, 3};
  shape.insert(shape.end(), n, size);
  return tensor(DType::Float32, shape);
}
ir::Arg sizes(int n, int64_t size) { return ir::Arg(std::vector<Expr>(n, Expr(size))); }
ir::Arg input_sizes(int n, int64_t size) {
  std::vector<Expr> out = {Expr(2), Expr(3)};
  out.insert(out.end(), n, Expr(size));
  return ir::Arg(std::move(out));
}
ir::Arg factors(int n, double f) { return ir::Arg(std::vector<double>(n, f)); }

std::string scale_parameters(int n) {
  if (n == 1) return "float? scales=None";
  std::string out;
  for (const char* d : {"d", "h", "w"})
    if (n == 3 || *d != 'd') out += str(out.empty() ? "" : ", ", "float? scales_", d, "=None");
  return out;
}

// The rows of one filter; `align` says whether they have the parameter align_corners.
template <Literal name, int n, Filter filter, bool antialias>
void add_filter(Table& t, const char* doc) {
  constexpr bool align = filter != Filter::Nearest && filter != Filter::NearestExact;
  std::string corners = align ? "bool align_corners, " : "", size = str("SymInt[", n, "]"),
              op = str("aten::", static_cast<const char*>(name.text));
  static constexpr auto run = [](Value x, const Shape& out, bool corners, const Scales& f) {
    return upsampled(name.text, x, out, corners, f, filter, antialias);
  };
  static constexpr auto run_back = [](Value g, const Shape& out, const Shape& in, bool corners, const Scales& f) {
    return upsampled_backward(name.text, g, out, in, corners, f, filter, antialias);
  };
  std::string schema = str(op, "(Tensor self, ", size, " output_size, ", corners, scale_parameters(n), ") -> Tensor");
  std::string vec = str(op, ".vec(Tensor input, SymInt[]? output_size, ", corners, "float[]? scale_factors) -> Tensor");
  std::string back = str(op, "_backward(Tensor grad_output, ", size, " output_size, SymInt[", n + 2, "] input_size, ",
                         corners, scale_parameters(n), ") -> Tensor");
  static constexpr auto scales_at = [](const Saved& s, size_t first) {
    Scales out;
    for (size_t d = 0; d < n; ++d) out.push_back(s.arg<Scale>(first + d));
    return out;
  };
  // The sizes are those that tensors have, whatever expressions were given.
  static constexpr auto pulled = [](const Saved& s, bool corners, const Scales& f) {
    const Shape& out = shape_of(s.ct());
    return std::vector{run_back(s.ct(), Shape(out.begin() + 2, out.end()), shape_of(s.in(0)), corners, f)};
  };
  RowBuilder row = t.op(schema), vector = t.op(vec), gradient = t.op(back);
  row.vjp(own_derivative([](const Saved& s) -> std::vector<Value> {
    if (!s.ct()) return {};
    return pulled(s, align && s.arg<bool>(2), scales_at(s, align ? 3 : 2));
  }));
  vector.vjp(own_derivative([](const Saved& s) -> std::vector<Value> {
    if (!s.ct()) return {};
    auto f = s.arg<std::optional<std::vector<double>>>(align ? 3 : 2);
    return pulled(s, align && s.arg<bool>(2), target(name.text, s.in(0), s.arg<std::optional<Shape>>(1), f, n).factors);
  }));
  constexpr Autocast kOnGpus = filter == Filter::Lanczos ? Autocast::None : Autocast::Float32;
  for (RowBuilder* r : {&row, &vector}) r->autocast(Autocast::None, kOnGpus).keeps_memory_format();
  row.doc(doc);
  vector.doc(str(doc, " The size is given, or a factor for each dimension."));
  gradient.doc(str("The transpose of ", static_cast<const char*>(name.text), "."));
  if constexpr (align) {
    if constexpr (n == 1) {
      row.composed([](Value x, Shape o, bool c, Scale s) { return run(x, o, c, {s}); });
      gradient.composed([](Value g, Shape o, Shape i, bool c, Scale s) { return run_back(g, o, i, c, {s}); });
    } else if constexpr (n == 2) {
      row.composed([](Value x, Shape o, bool c, Scale h, Scale w) { return run(x, o, c, {h, w}); });
      gradient.composed(
          [](Value g, Shape o, Shape i, bool c, Scale h, Scale w) { return run_back(g, o, i, c, {h, w}); });
    } else {
      row.composed([](Value x, Shape o, bool c, Scale d, Scale h, Scale w) { return run(x, o, c, {d, h, w}); });
      gradient.composed(
          [](Value g, Shape o, Shape i, bool c, Scale d, Scale h, Scale w) { return run_back(g, o, i, c, {d, h, w}); });
    }
    vector.composed([](Value x, std::optional<Shape> o, bool c, std::optional<std::vector<double>> f) {
      Target to = target(name.text, x, o, f, n);
      return run(x, to.out, c, to.factors);
    });
    row.samples({{planes(n, 4), sizes(n, 6), false}, {planes(n, 5), sizes(n, 3), true}});
    vector.samples({{planes(n, 4), ir::None{}, false, factors(n, 1.5)}, {planes(n, 3), sizes(n, 5), true, ir::None{}}});
    gradient.samples({{planes(n, 6), sizes(n, 6), input_sizes(n, 4), false}});
  } else {
    if constexpr (n == 1) {
      row.composed([](Value x, Shape o, Scale s) { return run(x, o, false, {s}); });
      gradient.composed([](Value g, Shape o, Shape i, Scale s) { return run_back(g, o, i, false, {s}); });
    } else if constexpr (n == 2) {
      row.composed([](Value x, Shape o, Scale h, Scale w) { return run(x, o, false, {h, w}); });
      gradient.composed([](Value g, Shape o, Shape i, Scale h, Scale w) { return run_back(g, o, i, false, {h, w}); });
    } else {
      row.composed([](Value x, Shape o, Scale d, Scale h, Scale w) { return run(x, o, false, {d, h, w}); });
      gradient.composed(
          [](Value g, Shape o, Shape i, Scale d, Scale h, Scale w) { return run_back(g, o, i, false, {d, h, w}); });
    }
    vector.composed([](Value x, std::optional<Shape> o, std::optional<std::vector<double>> f) {
      Target to = target(name.text, x, o, f, n);
      return run(x, to.out, false, to.factors);
    });
    row.samples({{planes(n, 4), sizes(n, 6)}, {planes(n, 5), sizes(n, 3)}});
    vector.samples({{planes(n, 4), ir::None{}, factors(n, 1.5)}, {planes(n, 3), sizes(n, 5), ir::None{}}});
    gradient.samples({{planes(n, 6), sizes(n, 6), input_sizes(n, 4)}});
  }
  // How many neighbours take part follows from the sizes.
  if (std::string_view(name.text).ends_with("_aa")) {
    row.known({"output_size"});
    vector.known({"output_size"});
  }
}

constexpr const char* kNearest = "The element at floor(i * scale).";
constexpr const char* kNearestExact = "The element at floor((i + 1/2) * scale), the nearest to the middle.";
constexpr const char* kLinear = "Linear interpolation of the two neighbours in each dimension.";
constexpr const char* kCubicDoc =
    "Cubic convolution (Keys 1981, a = -0.75) of the four neighbours in each dimension; the edges repeat.";

}  // namespace

void add_upsample(Table& t) {
  add_filter<"upsample_nearest1d", 1, Filter::Nearest, false>(t, kNearest);
  add_filter<"upsample_nearest2d", 2, Filter::Nearest, false>(t, kNearest);
  add_filter<"upsample_nearest3d", 3, Filter::Nearest, false>(t, kNearest);
  add_filter<"_upsample_nearest_exact1d", 1, Filter::NearestExact, false>(t, kNearestExact);
  add_filter<"_upsample_nearest_exact2d", 2, Filter::NearestExact, false>(t, kNearestExact);
  add_filter<"_upsample_nearest_exact3d", 3, Filter::NearestExact, false>(t, kNearestExact);
  add_filter<"upsample_linear1d", 1, Filter::Linear, false>(t, kLinear);
  add_filter<"upsample_bilinear2d", 2, Filter::Linear, false>(t, kLinear);
  add_filter<"upsample_trilinear3d", 3, Filter::Linear, false>(t, kLinear);
  add_filter<"upsample_bicubic2d", 2, Filter::Cubic, false>(t, kCubicDoc);
  add_filter<"_upsample_bilinear2d_aa", 2, Filter::Linear, true>(
      t, "Linear interpolation, its kernel stretched by the scale where the result is smaller.");
  add_filter<"_upsample_bicubic2d_aa", 2, Filter::Cubic, true>(
      t, "Cubic convolution (Keys 1981, a = -0.5), stretched by the scale where the result is smaller.");
  add_filter<"_upsample_lanczos2d_aa", 2, Filter::Lanczos, true>(
      t, "The windowed sinc of Lanczos with three lobes, stretched by the scale where the result is smaller.");
}

}  // namespace brasa::ops
