#include "ops/complex.h"
#include "ops/fourier.h"
#include "ops/shapes.h"
#include "support/error.h"

// Transforms of windows of a signal, and the signal from them.
namespace brasa::ops {
namespace {

using OptInt = std::optional<int64_t>;
using Flag = std::optional<bool>;

struct Frames {
  int64_t size, hop, window;
};

Frames frames(const char* op, int64_t n_fft, OptInt hop, OptInt win) {
  Frames f{n_fft, hop.value_or(n_fft / 4), win.value_or(n_fft)};
  BRASA_CHECK(f.hop > 0, op, ": expected hop_length > 0, but got hop_length=", f.hop);
  BRASA_CHECK(f.window > 0 && f.window <= n_fft, op,
              ": expected 0 < win_length <= n_fft, but got win_length=", f.window, " and n_fft=", n_fft);
  return f;
}

// The window in the middle of a frame, or absent for all ones.
Value whole_window(const char* op, Value window, const Frames& f, DType dtype) {
  BRASA_CHECK(!window || (rank_of(window) == 1 && same_size(size_of(window, 0), f.window)), op,
              ": expected a 1D window tensor of size equal to win_length=", f.window, ", but got window with ",
              window ? str(type_of(window)) : "");
  if (!window && f.window == f.size) return {};
  Value w = window ? window : full(1, {Expr(f.window)}, dtype);
  int64_t left = (f.size - f.window) / 2;
  return pad_dim(w, 0, left, f.size - f.window - left);
}

Value framed(Value x, const Frames& f) { return prim::window(x, 1, Expr(f.size), Expr(f.hop), Expr(1)); }

Value stft(Value x, int64_t n_fft, OptInt hop, OptInt win, Value window, bool center, std::string pad_mode,
           bool normalized, Flag onesided, Flag return_complex, Flag align_to_window) {
  bool complexes = is_complex(dtype_of(x)) || (window && is_complex(dtype_of(window)));
  BRASA_CHECK(return_complex || complexes,
              "stft requires the return_complex parameter be given for real inputs, and will further require that "
              "return_complex=True in a future PyTorch release.");
  BRASA_CHECK(is_floating(dtype_of(x)) || is_complex(dtype_of(x)),
              "stft: expected a tensor of floating point or complex values, got ", type_of(x));
  BRASA_CHECK(rank_of(x) == 1 || rank_of(x) == 2, "stft: expected a 1D or 2D tensor, got ", type_of(x));
  BRASA_CHECK(!align_to_window.value_or(false), "stft: align_to_window=True is not supported");
  Frames f = frames("stft", n_fft, hop, win);
  Value signal = rank_of(x) == 1 ? unsqueeze(x, 0) : x;
  if (center) signal = call("aten::pad", {signal, list({n_fft / 2, n_fft / 2}), pad_mode});
  BRASA_CHECK(n_fft > 0 && !is_less(size_of(signal, 1), n_fft), "stft: expected 0 < n_fft <= ", size_of(signal, 1),
              ", but got n_fft=", n_fft);
  Value w = whole_window("stft", window, f, dtype_of(x)), y = framed(signal, f);
  if (w) y = y * w;
  int64_t norm = normalized ? kNormByRoot : kNormNone;
  BRASA_CHECK(!(complexes && onesided.value_or(false)), "Cannot have onesided output if window or input is complex");
  y = complexes ? fft_c2c(y, {2}, norm, true) : fft_r2c(y, {2}, norm, onesided.value_or(true));
  y = transpose(y, 1, 2);
  if (rank_of(x) == 1) y = squeeze(y, 0);
  return return_complex.value_or(true) ? y : call("aten::view_as_real", {y});
}

Value stft_uncentred(Value x, int64_t n_fft, OptInt hop, OptInt win, Value window, bool normalized, Flag onesided,
                     Flag return_complex, Flag align_to_window) {
  return stft(x, n_fft, hop, win, window, false, "reflect", normalized, onesided, return_complex, align_to_window);
}

// Frames added where they overlap: the transpose of taking them.
Value overlapped(Value y, const Frames& f) {
  Expr length = (size_of(y, 1) - 1) * f.hop + f.size;
  Value start = prim::unary("neg", full(0, {size_of(y, 0), length}, dtype_of(y)));
  return pulled_through(start, framed(start, f), y);
}

Value istft(Value x, int64_t n_fft, OptInt hop, OptInt win, Value window, bool center, bool normalized, Flag onesided,
            OptInt length, bool return_complex) {
  BRASA_CHECK(is_complex(dtype_of(x)),
              "istft requires a complex-valued input tensor matching the output from stft with "
              "return_complex=True, got ",
              type_of(x));
  BRASA_CHECK(rank_of(x) == 2 || rank_of(x) == 3, "istft: expected a tensor with 2 or 3 dimensions, got ", type_of(x));
  Frames f = frames("istft", n_fft, hop, win);
  Value z = rank_of(x) == 2 ? unsqueeze(x, 0) : x;
  bool half = onesided.value_or(!same_size(size_of(z, 1), n_fft));
  Expr bins = half ? Expr(n_fft / 2 + 1) : Expr(n_fft);
  BRASA_CHECK(same_size(size_of(z, 1), bins),
              "istft: expected the frequency dimension (3rd to the last) of the input "
              "tensor to match n_fft",
              half ? " / 2 + 1" : "", " = ", bins, ", but got ", size_of(z, 1));
  BRASA_CHECK(is_less(0, size_of(z, 2)), "istft: the input tensor cannot be empty along the frames, got ", type_of(x));
  BRASA_CHECK(return_complex || !window || !is_complex(dtype_of(window)),
              "istft: Complex windows are incompatible with return_complex=False, got ",
              window ? str(type_of(window)) : "");
  BRASA_CHECK(!(return_complex && half), "cannot have onesided output if window or input is complex");
  int64_t norm = normalized ? kNormByRoot : kNormBySize;
  z = transpose(z, 1, 2);
  Value y = return_complex ? fft_c2c(z, {2}, norm, false)
                           : fft_c2r(narrow(z, 2, 0, Expr(n_fft / 2 + 1)), {2}, norm, Expr(n_fft));
  DType part = real_part_of(dtype_of(x));
  Value w = whole_window("istft", window, f, part);
  if (!w) w = full(1, {Expr(n_fft)}, part);
  Value envelope = overlapped(expand(square(w), {Expr(1), size_of(y, 1), Expr(n_fft)}), f);
  Value signal = overlapped(y * w, f);
  Expr size = size_of(signal, 1), start = center ? Expr(n_fft / 2) : Expr(0);
  Expr end = length ? start + *length : center ? size - n_fft / 2 : size;
  Expr there = ir::min(end, size);
  signal = narrow(signal, 1, start, there - start) / narrow(envelope, 1, start, there - start);
  if (length) signal = pad_dim(signal, 1, 0, end - there);
  return rank_of(x) == 2 ? squeeze(signal, 0) : signal;
}

}  // namespace

void add_stft(Table& t) {
  const ir::Arg none;
  t.op("aten::stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, str pad_mode=\"reflect\", bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor")
      .doc(
          "Transforms of windows that start hop_length (by default n_fft/4) apart: [frequency, window]. Centred, the signal is padded by n_fft/2 on both sides.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed(stft)
      .samples({{floats(20), 8, none, none, none, true, "reflect", false, none, true},
                {floats(2, 20), 7, 3, 5, floats(5), false, "reflect", true, false, false}});
  t.op("aten::stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor")
      .doc("As stft.center with center=False.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed(stft_uncentred)
      .samples({{floats(20), 8, none, none, none, false, none, true}});
  t.op("aten::istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor")
      .doc(
          "The signal that has these windows: they are added where they overlap, and divided by the sum of the squared windows.")
      .composed(istft)
      .samples({{tensor(DType::Complex64, {5, 6}), 8},
                {tensor(DType::Complex64, {2, 4, 5}), 6, 2, none, none, true, true, none, 9}});
}

}  // namespace brasa::ops
