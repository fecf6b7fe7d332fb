#include <algorithm>

#include "ops/complex.h"
#include "ops/fourier.h"
#include "ops/shapes.h"
#include "support/error.h"

// Every transform is prim::fft on pairs of reals, one dimension after the other.
namespace brasa::ops {
namespace {

using OptExpr = std::optional<Expr>;
using OptShape = std::optional<Shape>;
using OptDims = std::optional<Dims>;
using OptDType = std::optional<DType>;
using Mode = std::optional<std::string>;
using Text = std::optional<std::string>;
using Flag = std::optional<bool>;

Parts parts(Value x) { return {real(x), imag(x)}; }

Parts transformed(Parts z, const Dims& dims, bool forward) {
  for (int64_t d : dims) {
    auto [re, im] = prim::fft(z.re, z.im, d, forward);
    z = {re, im};
  }
  return z;
}

Value scaled(Value x, int64_t norm, Value n) {
  if (norm == kNormNone) return x;
  return norm == kNormByRoot ? x / sqrt(n) : x / n;
}
Parts scaled(Parts z, int64_t norm, Value n) { return {scaled(z.re, norm, n), scaled(z.im, norm, n)}; }

Value floating(const char* op, Value x) {
  x = to_float(x);
  DType part = real_part_of(dtype_of(x));
  BRASA_CHECK(part == DType::Float32 || part == DType::Float64, op, ": Unsupported dtype ", type_of(x),
              "; transforms take float32 and float64 and their complex numbers");
  return x;
}
Value real_floating(const char* op, Value x) {
  BRASA_CHECK(!is_complex(dtype_of(x)), op, " expects a real input tensor, but got ", type_of(x));
  return floating(op, x);
}

int64_t norm_of(const char* op, const Mode& mode, bool forward) {
  if (!mode || *mode == "backward") return forward ? kNormNone : kNormBySize;
  if (*mode == "forward") return forward ? kNormBySize : kNormNone;
  BRASA_CHECK(*mode == "ortho", op, ": Invalid normalization mode: \"", *mode, "\"");
  return kNormByRoot;
}

void check_norm(int64_t norm) { BRASA_CHECK(norm >= 0 && norm <= 2, "Unsupported normalization type, got ", norm); }

void check_points(const char* op, Expr n) {
  BRASA_CHECK(is_less(0, n), op, ": Invalid number of data points (", n, ") specified");
}

// Cut, or filled up with zeros.
Value resized(Value x, int64_t dim, Expr n) {
  Expr size = size_of(x, dim);
  if (same_size(n, size)) return x;
  return is_less(n, size) ? narrow(x, dim, 0, n) : pad_dim(x, dim, 0, n - size);
}

Expr half(Expr n) { return ir::floordiv(n, 2) + 1; }

// The dimensions of a transform and how many points it takes along each.
struct Extent {
  Shape sizes;
  Dims dims;
};

// Where the last size is not given and the transform starts `from_half` of the frequencies, it is 2 (n - 1).
Extent extent(const char* op, Value x, const OptShape& s, const OptDims& dim, bool from_half = false) {
  int64_t rank = rank_of(x);
  Extent e;
  if (dim) {
    e.dims = wrap_dims(*dim, rank);
    Dims sorted = e.dims;
    std::sort(sorted.begin(), sorted.end());
    BRASA_CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(), op, ": FFT dims must be unique, got ",
                *dim);
    BRASA_CHECK(!s || s->size() == dim->size(), op,
                ": When given, dim and shape arguments must have the same length, got ", *dim, " and ", *s);
  } else {
    auto given = s ? static_cast<int64_t>(s->size()) : rank;
    BRASA_CHECK(given <= rank, op, ": Got shape with ", given, " values but input tensor only has ", rank,
                " dimensions.");
    e.dims = counted(rank - given, given);
  }
  for (size_t i = 0; i < e.dims.size(); ++i) {
    Expr n = size_of(x, e.dims[i]);
    if (from_half && i + 1 == e.dims.size()) n = (n - 1) * 2;
    if (s && !(*s)[i].is(-1)) n = (*s)[i];
    check_points(op, n);
    e.sizes.push_back(n);
  }
  return e;
}

Value resized(Value x, const Extent& e) {
  for (size_t i = 0; i < e.dims.size(); ++i) x = resized(x, e.dims[i], e.sizes[i]);
  return x;
}
// All but the last dimension, and of that the frequencies that decide n reals.
Value resized_to_half(Value x, Extent e) {
  e.sizes.back() = half(e.sizes.back());
  return resized(x, e);
}

Extent along_one(const char* op, Value x, const OptExpr& n, int64_t dim, bool from_half = false) {
  BRASA_CHECK(rank_of(x) > 0, op, ": Dimension specified as ", dim, " but tensor has no dimensions");
  if (n) check_points(op, *n);  // of several sizes, -1 stands for the tensor's
  return extent(op, x, n ? OptShape(Shape{*n}) : OptShape(), Dims{dim}, from_half);
}

Value complex_to_complex(const char* op, Value x, const Extent& e, const Mode& mode, bool forward) {
  x = floating(op, x);
  return fft_c2c(resized(x, e), e.dims, norm_of(op, mode, forward), forward);
}

// rfft, and ihfft with forward = false: the conjugates.
Value real_to_complex(const char* op, Value x, const Extent& e, const Mode& mode, bool forward) {
  x = real_floating(op, x);
  BRASA_CHECK(!e.dims.empty(), op, " must transform at least one axis");
  int64_t norm = norm_of(op, mode, forward);
  Dims last = {e.dims.back()}, others(e.dims.begin(), e.dims.end() - 1);
  Value z = fft_r2c(resized(x, e), last, norm, true);
  return fft_c2c(forward ? z : conj(z), others, norm, forward);
}

// irfft, and hfft with forward = true.
Value complex_to_real(const char* op, Value x, const Extent& e, const Mode& mode, bool forward) {
  x = floating(op, x);
  BRASA_CHECK(!e.dims.empty(), op, " must transform at least one axis");
  int64_t norm = norm_of(op, mode, forward);
  Dims last = {e.dims.back()}, others(e.dims.begin(), e.dims.end() - 1);
  Value z = fft_c2c(resized_to_half(x, e), others, norm, forward);
  return fft_c2r(forward ? conj(z) : z, last, norm, e.sizes.back());
}

using Transform = Value (*)(const char* op, Value x, const Extent& e, const Mode& mode, bool forward);

template <const char* const& name, Transform f, bool kForward, bool kFromHalf>
void add_transform(Table& t, const char* doc) {
  static constexpr const char* op = name;
  const std::vector<Sample> one = {{floats(3, 5)},
                                   {floats(4)},
                                   {floats(2, 3), 7, 0, "ortho"},
                                   {floats(6), 4},
                                   {floats(3).strided(2)},
                                   {floats(2, 11), ir::Arg(), 1, "forward"}};
  const std::vector<Sample> many = {
      {floats(3, 4)}, {floats(2, 3, 4), list({5, 2})}, {floats(3, 2).strided(2), ir::Arg(), ir::Arg(), "ortho"}};
  const std::vector<Sample> two = {{floats(3, 4)}, {floats(2, 3, 4), list({5, 2}), list({0, 1}), "forward"}};
  t.op(str("aten::", op, "(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor"))
      .out(Out::Cast)
      .doc(str(doc, " Along one dimension, of n points: cut or filled with zeros."))
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value x, OptExpr n, int64_t dim, Mode norm) {
        return f(op, x, along_one(op, x, n, dim, kFromHalf), norm, kForward);
      })
      .samples(one);
  t.op(str("aten::", op, "2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor"))
      .out(Out::Cast)
      .doc(str(doc, " Along two dimensions."))
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value x, OptShape s, Dims dim, Mode norm) {
        return f(op, x, extent(op, x, s, dim, kFromHalf), norm, kForward);
      })
      .samples(two);
  t.op(str("aten::", op, "n(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor"))
      .out(Out::Cast)
      .doc(str(doc, " Along several dimensions, by default all, or as many of the last as s has."))
      .autocast(Autocast::Float32, Autocast::None)
      .composed([](Value x, OptShape s, OptDims dim, Mode norm) {
        return f(op, x, extent(op, x, s, dim, kFromHalf), norm, kForward);
      })
      .samples(many);
}

constexpr const char* kFft = "fft_fft";
constexpr const char* kIfft = "fft_ifft";
constexpr const char* kRfft = "fft_rfft";
constexpr const char* kIrfft = "fft_irfft";
constexpr const char* kHfft = "fft_hfft";
constexpr const char* kIhfft = "fft_ihfft";

void add_transforms(Table& t) {
  add_transform<kFft, complex_to_complex, true, false>(t, "Σ_j x[j] exp(-2πi jk/n).");
  add_transform<kIfft, complex_to_complex, false, false>(t, "The inverse of fft: 1/n Σ_j x[j] exp(2πi jk/n).");
  add_transform<kRfft, real_to_complex, true, false>(
      t, "fft of real numbers, the first n/2 + 1 frequencies of the last dimension; the others are their conjugates.");
  add_transform<kIrfft, complex_to_real, false, true>(t, "The inverse of rfft; n is 2 (size - 1) if not given.");
  add_transform<kHfft, complex_to_real, true, true>(
      t, "fft of a signal that is Hermitian in the last dimension, of which the first n/2 + 1 elements are given.");
  add_transform<kIhfft, real_to_complex, false, false>(t, "The inverse of hfft.");
}

Value of_parts(Value x, const Dims& dims, int64_t norm, bool forward) {
  Parts z = parts(x);
  if (!dims.empty()) z = scaled(transformed(z, dims, forward), norm, count(z.re, dims, dtype_of(z.re)));
  return complex(z.re, z.im);
}
// The transform is symmetric: its adjoint is the other direction, a single step from complex numbers to complex numbers, too.
std::vector<Value> complex_derivative(const Saved& s) {
  if (!s.ct()) return {};
  return {fft_c2c(s.ct(), wrap_dims(s.arg<Dims>(1), rank_of(s.in(0))), s.arg<int64_t>(2), !s.arg<bool>(3))};
}

void add_internal(Table& t) {
  auto complexes = [](int64_t n) { return tensor(DType::Complex64, {2, n}); };
  t.op("aten::_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor")
      .out(Out::Cast)
      .doc("Complex to complex; normalization 0: none, 1: by the root of the number of points, 2: by it.")
      .composed([](Value x, Dims dim, int64_t norm, bool forward) {
        BRASA_CHECK(is_complex(dtype_of(x)), "_fft_c2c: expected a complex tensor, got ", type_of(x));
        check_norm(norm);
        return of_parts(floating("_fft_c2c", x), wrap_dims(dim, rank_of(x)), norm, forward);
      })
      .vjp(own_derivative(complex_derivative))
      .samples({{complexes(5), list({1}), 0, true}, {complexes(4), list({0, 1}), 2, false}});
  t.op("aten::_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor")
      .out(Out::Cast)
      .doc("Real to complex, forward; of the last of dim only the first n/2 + 1 frequencies if onesided.")
      .composed([](Value x, Dims dim, int64_t norm, bool onesided) {
        return fft_r2c(real_floating("_fft_r2c", x), wrap_dims(dim, rank_of(x)), norm, onesided);
      })
      .samples({{floats(2, 5), list({1}), 0, true}, {floats(2, 4), list({0, 1}), 1, false}});
  t.op("aten::_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor")
      .out(Out::Cast)
      .doc("Complex to real, backward, from the first n/2 + 1 frequencies of the last of dim.")
      .composed([](Value x, Dims dim, int64_t norm, Expr n) {
        BRASA_CHECK(is_complex(dtype_of(x)), "_fft_c2r: expected a complex tensor, got ", type_of(x));
        return fft_c2r(floating("_fft_c2r", x), wrap_dims(dim, rank_of(x)), norm, n);
      })
      .samples({{complexes(3), list({1}), 2, 5}, {complexes(3), list({0, 1}), 0, 4}});
}

Value shifted(Value x, const OptDims& dim, bool back) {
  for (int64_t d : dim ? wrap_dims(*dim, rank_of(x)) : all_dims(x)) {
    Expr n = size_of(x, d), middle = ir::floordiv(n, 2);
    // n/2 to the right, or to the left.
    Expr start = back ? middle : n - middle;
    x = prim::concat({narrow(x, d, start, n - start), narrow(x, d, 0, start)}, d);
  }
  return x;
}

DType frequency_dtype(const OptDType& dtype) { return dtype.value_or(DType::Float32); }

Number frequency_step(Expr n, const Number& d) { return 1.0 / (1.0 * Number(ir::Arg(n)) * d); }

void add_frequencies(Table& t) {
  const char* options = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None";
  t.op(str("aten::fft_fftfreq(int n, float d=1., *, ", options, ") -> Tensor"))
      .doc("The frequencies of fft's n results, for samples d apart: 0, 1, …, -n/2, …, -1, over n d.")
      .composed([](Expr n, Number d, OptDType dtype, Text, Text, Flag) {
        Value i = prim::iota({n}, 0, DType::Int64), upper = ge(i, Number(ir::Arg(ir::floordiv(n + 1, 2))));
        return convert(where(upper, i - Number(ir::Arg(n)), i), frequency_dtype(dtype)) * frequency_step(n, d);
      })
      .samples({{5}, {4, 0.5, DType::Float64}, {1}});
  t.op(str("aten::fft_rfftfreq(int n, float d=1., *, ", options, ") -> Tensor"))
      .doc("The frequencies of rfft's results: 0, 1, …, n/2, over n d.")
      .composed([](Expr n, Number d, OptDType dtype, Text, Text, Flag) {
        Value i = prim::iota({ir::floordiv(n, 2) + 1}, 0, DType::Int64);
        return convert(i, frequency_dtype(dtype)) * frequency_step(n, d);
      })
      .samples({{5}, {4, 0.5, DType::Float64}, {1}});
  const std::vector<Sample> shifts = {{floats(5)}, {floats(4, 3), list({0})}, {floats(2, 0)}, {ints(3, 4)}};
  t.op("aten::fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor")
      .doc("Rolled so that frequency 0 is in the middle.")
      .composed([](Value x, OptDims dim) { return shifted(x, dim, false); })
      .samples(shifts);
  t.op("aten::fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor")
      .doc("fftshift undone.")
      .composed([](Value x, OptDims dim) { return shifted(x, dim, true); })
      .samples(shifts);
}

}  // namespace

Value fft_c2c(Value x, const Dims& dims, int64_t norm, bool forward) {
  check_norm(norm);
  return is_complex(dtype_of(x)) ? call("aten::_fft_c2c", {x, int_arg(dims), norm, forward})
                                 : of_parts(x, dims, norm, forward);
}

Value fft_r2c(Value x, const Dims& dims, int64_t norm, bool onesided) {
  check_norm(norm);
  BRASA_CHECK(!dims.empty(), "_fft_r2c: must transform at least one axis");
  Value n = count(x, dims, dtype_of(x));
  int64_t last = dims.back();
  Parts z = transformed({x, zeros_like(x)}, {last}, true);
  BRASA_CHECK(!same_size(size_of(x, last), 0), "_fft_r2c: Invalid number of data points (0) along dimension ", last,
              " of ", type_of(x));
  if (onesided) {
    Expr kept = half(size_of(x, last));
    z = {narrow(z.re, last, 0, kept), narrow(z.im, last, 0, kept)};
  }
  z = scaled(transformed(z, Dims(dims.begin(), dims.end() - 1), true), norm, n);
  return complex(z.re, z.im);
}

Value fft_c2r(Value x, const Dims& dims, int64_t norm, Expr n) {
  check_norm(norm);
  BRASA_CHECK(!dims.empty(), "_fft_c2r: must transform at least one axis");
  check_points("_fft_c2r", n);
  int64_t last = dims.back();
  x = resized(x, last, half(n));
  Dims others(dims.begin(), dims.end() - 1);
  Parts z = transformed(parts(x), others, false);
  DType t = dtype_of(z.re);
  Value points = count(z.re, others, t) * size_tensor(n, {}, t);
  Value scale = norm == kNormNone ? Value{} : scaled(constant_like(points, 1), norm, points);
  return prim::fft_real(z.re, z.im, last, n, scale);
}

void add_fft(Table& t) {
  add_internal(t);
  add_transforms(t);
  add_frequencies(t);
}

}  // namespace brasa::ops
