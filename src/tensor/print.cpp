#include <charconv>
#include <cmath>
#include <iomanip>
#include <iostream>

#include <brasa/autograd.h>

#include "tensor/dispatch.h"
#include "tensor/recorder.h"
#include "tensor/tensor_impl.h"

// LibTorch's text of a tensor.
namespace brasa {
namespace {

class KeepFormat {
 public:
  explicit KeepFormat(std::ostream& out) : out_(out), saved_(nullptr) { saved_.copyfmt(out); }
  ~KeepFormat() { out_.copyfmt(saved_); }

 private:
  std::ostream& out_;
  std::ios saved_;
};

// Width of a number, and what all numbers are divided by.
struct Style {
  double factor = 1;
  int width = 0;
};

double digits_before_point(double magnitude) { return magnitude == 0 ? 1 : std::floor(std::log10(magnitude)) + 1; }

// Chooses notation by the magnitudes of the finite values, and sets the stream to it.
Style choose_style(std::ostream& out, const double* values, int64_t n) {
  bool whole = true, found = false;
  double least = 1, most = 1;
  for (int64_t i = 0; i < n; ++i) {
    double v = values[i];
    if (!std::isfinite(v)) continue;
    whole = whole && v == std::ceil(v);
    double magnitude = std::fabs(v);
    if (!found) least = most = magnitude;
    found = true;
    least = std::min(least, magnitude);
    most = std::max(most, magnitude);
  }
  least = digits_before_point(least);
  most = digits_before_point(most);
  if (whole && most <= 9) {
    out << std::defaultfloat << std::setprecision(6);
    return {1, static_cast<int>(most) + 1};
  }
  if (whole || most - least > 4) {
    out << std::scientific << std::setprecision(4);
    return {1, !whole && (std::fabs(most) > 99 || std::fabs(least) > 99) ? 12 : 11};
  }
  out << std::fixed << std::setprecision(4);
  if (most > 5 || most < 0) return {std::pow(10, most - 1), 7};
  return {1, most == 0 ? 7 : static_cast<int>(most) + 6};
}

// As few digits as tell the number from its neighbours, of any width without the program's manipulators.
std::string shortest(double v) {
  char text[400];
  int exponent = v == 0 || !std::isfinite(v) ? 0 : static_cast<int>(std::floor(std::log10(std::fabs(v))));
  auto format = exponent < -4 || exponent > 15 ? std::chars_format::scientific : std::chars_format::fixed;
  return std::string(text, std::to_chars(std::begin(text), std::end(text), v, format).ptr);
}

void write_matrix(std::ostream& out, const double* values, int64_t rows, int64_t columns, int64_t line_size,
                  int64_t indent) {
  Style style = choose_style(out, values, rows * columns);
  std::string margin(static_cast<size_t>(indent), ' ');
  int64_t fit = std::max<int64_t>((line_size - indent) / (style.width + 1), 1);
  for (int64_t first = 0; first < columns; first += fit) {
    int64_t end = std::min(first + fit, columns);
    if (fit < columns) {
      if (first) out << '\n';
      out << "Columns " << first + 1 << " to " << end << margin;
    }
    if (style.factor != 1) out << shortest(style.factor) << " *\n" << margin;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = first; c < end; ++c)
        out << std::setw(style.width) << values[r * columns + c] / style.factor << (c + 1 == end ? '\n' : ' ');
      if (r + 1 < rows) out << margin << (style.factor != 1 ? " " : "");
    }
  }
}

void write_stack(std::ostream& out, const double* values, IntArrayRef sizes, int64_t line_size) {
  size_t outer = sizes.size() - 2;
  int64_t rows = sizes[outer], columns = sizes[outer + 1];
  std::vector<int64_t> at(outer, 0);
  for (bool first = true;; first = false) {
    if (!first) out << '\n';
    int64_t matrix = 0;
    out << '(';
    for (size_t d = 0; d < outer; ++d) {
      out << at[d] + 1 << ',';
      matrix = matrix * sizes[d] + at[d];
    }
    out << ".,.) = \n";
    write_matrix(out, values + matrix * rows * columns, rows, columns, line_size, 1);
    // The first index runs fastest.
    size_t d = 0;
    while (d < outer && ++at[d] == sizes[d]) at[d++] = 0;
    if (d == outer) return;
  }
}

std::ostream& print_sparse(std::ostream& out, const Tensor& t, int64_t line_size) {
  out << "[ " << t.toString() << "{}\n";
  auto part = [&](const char* name, const Tensor& values) {
    out << name << ":\n";
    print(out, values, line_size) << '\n';
  };
  if (t.is_sparse()) {
    part("indices", t._indices());
  } else {
    part("crow_indices", t.crow_indices());
    part("col_indices", t.col_indices());
  }
  part("values", t._values());
  return out << "size:\n" << t.sizes() << "\n]";
}

}  // namespace

std::ostream& print(std::ostream& out, const Tensor& t, int64_t line_size) {
  KeepFormat keep(out);
  out << std::right << std::setfill(' ') << std::setw(0);
  if (!t.defined()) return out << "[ Tensor (undefined) ]";
  NoGradGuard guard;
  if (impl_of(t)->sparse) return print_sparse(out, t, line_size);
  if (impl_of(t)->storage->recorder()) impl_of(t)->materialise("printing");
  if (Recorder* recorder = Recorder::current()) recorder->host_reads(t, "printing");
  Recorder::Scope alone(nullptr);
  Tensor values = t.detach().cpu().to(kDouble).contiguous();
  const double* at = values.data_ptr<double>();
  IntArrayRef sizes = t.sizes();
  if (sizes.empty()) {
    out << shortest(at[0]) << '\n';
  } else if (values.numel() > 0 && sizes.size() == 1) {
    Style style = choose_style(out, at, sizes[0]);
    if (style.factor != 1) out << shortest(style.factor) << " *\n";
    for (int64_t i = 0; i < sizes[0]; ++i) out << std::setw(style.width) << at[i] / style.factor << '\n';
  } else if (values.numel() > 0 && sizes.size() == 2) {
    write_matrix(out, at, sizes[0], sizes[1], line_size, 0);
  } else if (values.numel() > 0) {
    write_stack(out, at, sizes, line_size);
  }
  out << "[ " << t.toString() << '{';
  for (size_t d = 0; d < sizes.size(); ++d) out << (d ? "," : "") << sizes[d];
  return out << "} ]";
}

std::ostream& operator<<(std::ostream& out, const Tensor& t) { return print(out, t, 80); }

void print(const Tensor& t, int64_t line_size) { print(std::cout, t, line_size); }

void Tensor::print() const {
  if (!defined()) {
    std::cerr << "[UndefinedTensor]\n";
    return;
  }
  std::cerr << '[' << toString() << ' ' << sizes() << "]\n";
}

}  // namespace brasa
