#include "ops/primitives/dense.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <type_traits>

namespace brasa::ops::dense {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr int kSweeps = 100;

// c, s of the rotation that makes the symmetric [[p, r], [r, q]] diagonal (Golub & Van Loan, 8.5.2).
std::pair<double, double> rotation(double p, double q, double r) {
  double tau = (q - p) / (2 * r);
  double t = (tau >= 0 ? 1 : -1) / (std::fabs(tau) + std::sqrt(1 + tau * tau));
  double c = 1 / std::sqrt(1 + t * t);
  return {c, t * c};
}
// x with |x| taken out: x = phase · real number. Of a real x the sign stays with the number.
double phase(double) { return 1; }
std::complex<double> phase(std::complex<double> x) {
  double size = std::abs(x);
  return size == 0 ? std::complex<double>(1) : x / size;
}
// By which pivots are compared: |re| + |im|, so that they are those that LAPACK takes.
double size1(double x) { return std::fabs(x); }
double size1(std::complex<double> x) { return std::fabs(x.real()) + std::fabs(x.imag()); }

template <class T>
void turn_column(Matrix<T>& a, int64_t j, T by) {
  for (int64_t k = 0; k < a.rows; ++k) a(k, j) *= by;
}
template <class T>
void turn_row(Matrix<T>& a, int64_t i, T by) {
  for (int64_t k = 0; k < a.cols; ++k) a(i, k) *= by;
}
template <class T>
void rotate_columns(Matrix<T>& a, int64_t p, int64_t q, double c, double s) {
  for (int64_t k = 0; k < a.rows; ++k) {
    T x = a(k, p), y = a(k, q);
    a(k, p) = c * x - s * y;
    a(k, q) = s * x + c * y;
  }
}
template <class T>
void rotate_rows(Matrix<T>& a, int64_t p, int64_t q, double c, double s) {
  for (int64_t k = 0; k < a.cols; ++k) {
    T x = a(p, k), y = a(q, k);
    a(p, k) = c * x - s * y;
    a(q, k) = s * x + c * y;
  }
}
template <class T>
Matrix<T> identity(int64_t n) {
  Matrix<T> m(n, n);
  for (int64_t i = 0; i < n; ++i) m(i, i) = 1;
  return m;
}

// `a` with orthonormal or zero columns: zero ones replaced and new ones added, up to `columns`.
template <class T>
Matrix<T> completed(const Matrix<T>& a, int64_t columns) {
  Matrix<T> out(a.rows, columns);
  std::vector<bool> there(columns);
  for (int64_t j = 0; j < std::min(a.cols, columns); ++j)
    for (int64_t i = 0; i < a.rows; ++i) {
      out(i, j) = a(i, j);
      if (a(i, j) != T(0)) there[j] = true;
    }
  for (int64_t j = 0; j < columns; ++j) {
    if (there[j]) continue;
    // The unit vector that is farthest from all columns, twice made orthogonal to them.
    std::vector<T> best;
    double most = -1;
    for (int64_t e = 0; e < a.rows; ++e) {
      std::vector<T> v(a.rows);
      v[e] = 1;
      for (int pass = 0; pass < 2; ++pass)
        for (int64_t k = 0; k < columns; ++k) {
          if (!there[k]) continue;
          T d = 0;
          for (int64_t i = 0; i < a.rows; ++i) d += conj(out(i, k)) * v[i];
          for (int64_t i = 0; i < a.rows; ++i) v[i] -= d * out(i, k);
        }
      double norm = 0;
      for (T x : v) norm += std::norm(x);
      norm = std::sqrt(norm);
      if (norm > most) {
        most = norm;
        for (T& x : v) x /= norm;
        best = v;
      }
    }
    for (int64_t i = 0; i < a.rows; ++i) out(i, j) = best[i];
    there[j] = true;
  }
  return out;
}

}  // namespace

template <class T>
int64_t cholesky(Matrix<T>& a) {
  int64_t n = a.rows, info = 0;
  for (int64_t j = 0; j < n; ++j) {
    double d = std::real(a(j, j));
    for (int64_t k = 0; k < j; ++k) d -= std::norm(a(j, k));
    if (!(d > 0)) {
      info = j + 1;
      break;
    }
    d = std::sqrt(d);
    a(j, j) = d;
    for (int64_t i = j + 1; i < n; ++i) {
      T v = a(i, j);
      for (int64_t k = 0; k < j; ++k) v -= a(i, k) * conj(a(j, k));
      a(i, j) = v / d;
    }
  }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i + 1; j < n; ++j) a(i, j) = 0;
  return info;
}

template <class T>
int64_t lu(Matrix<T>& a, std::vector<int64_t>& pivots) {
  int64_t info = 0, k = std::min(a.rows, a.cols);
  for (int64_t j = 0; j < k; ++j) {
    int64_t p = j;
    for (int64_t i = j + 1; i < a.rows; ++i)
      if (size1(a(i, j)) > size1(a(p, j))) p = i;
    pivots.push_back(p + 1);
    if (a(p, j) == T(0)) {
      if (!info) info = j + 1;
      continue;
    }
    if (p != j)
      for (int64_t c = 0; c < a.cols; ++c) std::swap(a(j, c), a(p, c));
    for (int64_t i = j + 1; i < a.rows; ++i) {
      T f = a(i, j) /= a(j, j);
      for (int64_t c = j + 1; c < a.cols; ++c) a(i, c) -= f * a(j, c);
    }
  }
  return info;
}

template <class T>
int64_t ldl(Matrix<T>& a, bool hermitian, std::vector<int64_t>& pivots) {
  const double alpha = (1 + std::sqrt(17.0)) / 8;  // bounds the growth of the elements
  int64_t n = a.rows, info = 0;
  auto other = [&](T x) { return hermitian ? conj(x) : x; };
  // Rounding leaves no imaginary part of a Hermitian matrix's diagonal.
  auto real_diagonal = [&](int64_t i) {
    if (hermitian) a(i, i) = std::real(a(i, i));
  };
  for (int64_t i = 0; i < n; ++i) real_diagonal(i);
  pivots.assign(n, 0);
  for (int64_t k = 0, step = 1; k < n; k += step) {
    step = 1;
    double diagonal = size1(a(k, k)), below = 0;
    int64_t at = k, p = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (size1(a(i, k)) > below) below = size1(a(at = i, k));
    if (std::max(diagonal, below) == 0) {
      if (info == 0) info = k + 1;
      pivots[k] = k + 1;
      continue;
    }
    if (diagonal < alpha * below) {
      double row = 0;
      for (int64_t j = k; j < at; ++j) row = std::max(row, size1(a(at, j)));
      for (int64_t i = at + 1; i < n; ++i) row = std::max(row, size1(a(i, at)));
      if (diagonal < alpha * below * (below / row)) {
        p = at;
        if (size1(a(at, at)) < alpha * row) step = 2;
      }
    }
    int64_t last = k + step - 1;
    if (p != last) {
      for (int64_t i = p + 1; i < n; ++i) std::swap(a(i, last), a(i, p));
      for (int64_t j = last + 1; j < p; ++j) {
        T x = a(j, last);
        a(j, last) = other(a(p, j));
        a(p, j) = other(x);
      }
      a(p, last) = other(a(p, last));
      std::swap(a(last, last), a(p, p));
      if (step == 2) std::swap(a(k + 1, k), a(p, k));
    }
    for (int64_t i = k; i <= last; ++i) pivots[i] = step == 2 ? -(p + 1) : p + 1;
    if (step == 1) {
      for (int64_t j = k + 1; j < n; ++j)
        for (int64_t i = j; i < n; ++i) a(i, j) -= a(i, k) * other(a(j, k)) / a(k, k);
      for (int64_t j = k + 1; j < n; ++j) real_diagonal(j);
      for (int64_t i = k + 1; i < n; ++i) a(i, k) /= a(k, k);
      continue;
    }
    // W D = the two columns, D = [[d1, conj(off)], [off, d2]] (without conj if symmetric).
    T off = a(k + 1, k), d1 = a(k, k), d2 = a(k + 1, k + 1), det = d1 * d2 - off * other(off);
    for (int64_t j = k + 2; j < n; ++j) {
      T x = a(j, k), y = a(j, k + 1), w1 = (d2 * x - off * y) / det, w2 = (d1 * y - other(off) * x) / det;
      for (int64_t i = j; i < n; ++i) a(i, j) -= a(i, k) * other(w1) + a(i, k + 1) * other(w2);
      real_diagonal(j);
      a(j, k) = w1;
      a(j, k + 1) = w2;
    }
  }
  return info;
}

template <class T>
void ldl_solve(const Matrix<T>& a, bool hermitian, const std::vector<int64_t>& pivots, Matrix<T>& b) {
  auto other = [&](T x) { return hermitian ? conj(x) : x; };
  int64_t n = a.rows, m = b.cols;
  auto exchange = [&](int64_t i, int64_t j) {
    for (int64_t c = 0; c < m; ++c) std::swap(b(i, c), b(j, c));
  };
  auto eliminate = [&](int64_t k, int64_t from) {
    for (int64_t i = from; i < n; ++i)
      for (int64_t c = 0; c < m; ++c) b(i, c) -= a(i, k) * b(k, c);
  };
  auto substitute = [&](int64_t k, int64_t from) {
    for (int64_t i = from; i < n; ++i)
      for (int64_t c = 0; c < m; ++c) b(k, c) -= other(a(i, k)) * b(i, c);
  };
  for (int64_t k = 0; k < n;) {
    if (pivots[k] > 0) {
      exchange(k, pivots[k] - 1);
      eliminate(k, k + 1);
      for (int64_t c = 0; c < m; ++c) b(k, c) /= a(k, k);
      ++k;
      continue;
    }
    exchange(k + 1, -pivots[k] - 1);
    eliminate(k, k + 2);
    eliminate(k + 1, k + 2);
    T off = a(k + 1, k), d1 = a(k, k), d2 = a(k + 1, k + 1), det = d1 * d2 - off * other(off);
    for (int64_t c = 0; c < m; ++c) {
      T x = b(k, c), y = b(k + 1, c);
      b(k, c) = (d2 * x - other(off) * y) / det;
      b(k + 1, c) = (d1 * y - off * x) / det;
    }
    k += 2;
  }
  for (int64_t k = n - 1; k >= 0;) {
    bool two = pivots[k] < 0;
    substitute(k, k + 1);
    if (two) substitute(k - 1, k + 1);
    exchange(k, std::abs(pivots[k]) - 1);
    k -= two ? 2 : 1;
  }
}

template <class T>
std::vector<T> householder(Matrix<T>& a) {
  int64_t n = std::min(a.rows, a.cols);
  std::vector<T> tau(n);
  for (int64_t k = 0; k < n; ++k) {
    double below = 0;
    for (int64_t i = k + 1; i < a.rows; ++i) below += std::norm(a(i, k));
    T alpha = a(k, k);
    if (below == 0 && alpha == conj(alpha)) continue;
    double beta = -std::copysign(std::sqrt(std::norm(alpha) + below), std::real(alpha));
    tau[k] = (beta - alpha) / beta;
    for (int64_t i = k + 1; i < a.rows; ++i) a(i, k) /= alpha - beta;
    a(k, k) = beta;
    // Hᴴ from the left.
    for (int64_t c = k + 1; c < a.cols; ++c) {
      T d = a(k, c);
      for (int64_t i = k + 1; i < a.rows; ++i) d += conj(a(i, k)) * a(i, c);
      d *= conj(tau[k]);
      a(k, c) -= d;
      for (int64_t i = k + 1; i < a.rows; ++i) a(i, c) -= d * a(i, k);
    }
  }
  return tau;
}

template <class T>
Matrix<T> product_of_reflectors(const Matrix<T>& a, const std::vector<T>& tau, int64_t columns) {
  Matrix<T> q(a.rows, columns);
  for (int64_t i = 0; i < std::min(a.rows, columns); ++i) q(i, i) = 1;
  for (auto k = static_cast<int64_t>(tau.size()); k-- > 0;)
    for (int64_t c = 0; c < columns; ++c) {
      T d = q(k, c);
      for (int64_t i = k + 1; i < a.rows; ++i) d += conj(a(i, k)) * q(i, c);
      d *= tau[k];
      q(k, c) -= d;
      for (int64_t i = k + 1; i < a.rows; ++i) q(i, c) -= d * a(i, k);
    }
  return q;
}

template <class T>
void eigh(Matrix<T> a, std::vector<double>& values, Matrix<T>& vectors) {
  int64_t n = a.rows;
  auto diagonal = [&](int64_t i) { return std::real(a(i, i)); };
  Matrix<T> v = identity<T>(n);
  bool again = true;
  for (int sweep = 0; again && sweep < kSweeps; ++sweep) {
    again = false;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        if (!(std::abs(a(p, q)) > kEpsilon * 1e-2 * std::sqrt(std::fabs(diagonal(p) * diagonal(q))))) continue;
        again = true;
        T turn = phase(a(p, q));
        turn_column(a, q, conj(turn));
        turn_row(a, q, turn);
        turn_column(v, q, conj(turn));
        auto [c, s] = rotation(diagonal(p), diagonal(q), std::real(a(p, q)));
        rotate_columns(a, p, q, c, s);
        rotate_rows(a, p, q, c, s);
        a(p, q) = a(q, p) = 0;
        rotate_columns(v, p, q, c, s);
      }
  }
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return diagonal(i) < diagonal(j); });
  vectors = Matrix<T>(n, n);
  for (int64_t j = 0; j < n; ++j) {
    values.push_back(diagonal(order[j]));
    for (int64_t i = 0; i < n; ++i) vectors(i, j) = v(i, order[j]);
  }
}

template <class T>
void svd(const Matrix<T>& a, bool full, Matrix<T>& u, std::vector<double>& s, Matrix<T>& v) {
  if (a.rows < a.cols) return svd(adjoint(a), full, v, s, u);
  int64_t m = a.rows, n = a.cols;
  Matrix<T> w = a, r = identity<T>(n);
  bool again = true;
  for (int sweep = 0; again && sweep < kSweeps; ++sweep) {
    again = false;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        double pp = 0, qq = 0;
        T pq = 0;
        for (int64_t i = 0; i < m; ++i) {
          pp += std::norm(w(i, p));
          qq += std::norm(w(i, q));
          pq += conj(w(i, p)) * w(i, q);
        }
        if (!(std::abs(pq) > kEpsilon * std::sqrt(pp * qq))) continue;
        again = true;
        T turn = phase(pq);
        turn_column(w, q, conj(turn));
        turn_column(r, q, conj(turn));
        auto [c, t] = rotation(pp, qq, std::real(pq * conj(turn)));
        rotate_columns(w, p, q, c, t);
        rotate_columns(r, p, q, c, t);
      }
  }
  std::vector<double> norm(n);
  double greatest = 0;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < m; ++i) norm[j] += std::norm(w(i, j));
    norm[j] = std::sqrt(norm[j]);
    greatest = std::max(greatest, norm[j]);
  }
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return norm[i] > norm[j]; });
  Matrix<T> left(m, n);
  v = Matrix<T>(n, n);
  for (int64_t j = 0; j < n; ++j) {
    double size = norm[order[j]];
    s.push_back(size);
    for (int64_t i = 0; i < n; ++i) v(i, j) = r(i, order[j]);
    // Columns at the level of rounding have no direction of their own.
    if (size > greatest * kEpsilon * static_cast<double>(m))
      for (int64_t i = 0; i < m; ++i) left(i, j) = w(i, order[j]) / size;
  }
  u = completed(left, full ? m : n);
}

template <class T>
void eig(const Matrix<T>& a, std::vector<double>& re, std::vector<double>& im, Matrix<double>& vectors_re,
         Matrix<double>& vectors_im) {
  using C = std::complex<double>;
  int64_t n = a.rows;
  std::vector<C> t(a.a.begin(), a.a.end()), z(n * n);
  auto at = [n](std::vector<C>& m, int64_t i, int64_t j) -> C& { return m[i * n + j]; };
  for (int64_t i = 0; i < n; ++i) at(z, i, i) = 1;
  double scale = 0;
  for (T v : a.a) scale = std::max(scale, std::abs(v));
  int steps = 0;
  for (int64_t hi = n - 1; hi > 0;) {
    double left = 0;
    for (int64_t j = 0; j < hi; ++j) left = std::max(left, std::abs(at(t, hi, j)));
    if (!(left > kEpsilon * scale) || steps > 200) {
      for (int64_t j = 0; j < hi; ++j) at(t, hi, j) = 0;
      --hi;
      steps = 0;
      continue;
    }
    // Wilkinson's shift: the eigenvalue of the last 2 x 2 block that is nearer to its corner; now and then another.
    C p = at(t, hi - 1, hi - 1), q = at(t, hi - 1, hi), r = at(t, hi, hi - 1), s = at(t, hi, hi);
    C root = std::sqrt((p - s) * (p - s) / 4.0 + q * r), one = (p + s) / 2.0 + root, two = (p + s) / 2.0 - root;
    C shift = std::abs(one - s) < std::abs(two - s) ? one : two;
    if (++steps % 11 == 10) shift = s + C(left, left / 2);
    for (int64_t i = 0; i <= hi; ++i) at(t, i, i) -= shift;
    struct Givens {
      int64_t i, j;
      C c, s;
    };
    std::vector<Givens> done;
    for (int64_t j = 0; j < hi; ++j)
      for (int64_t i = hi; i > j; --i) {
        C x = at(t, j, j), y = at(t, i, j);
        double size = std::hypot(std::abs(x), std::abs(y));
        if (std::abs(y) == 0) continue;
        Givens g{i, j, x / size, y / size};
        for (int64_t k = 0; k < n; ++k) {
          C top = at(t, j, k), low = at(t, i, k);
          at(t, j, k) = std::conj(g.c) * top + std::conj(g.s) * low;
          at(t, i, k) = g.c * low - g.s * top;
        }
        done.push_back(g);
      }
    for (const Givens& g : done)
      for (std::vector<C>* m : {&t, &z})
        for (int64_t k = 0; k < (m == &t ? hi + 1 : n); ++k) {
          C x = at(*m, k, g.j), y = at(*m, k, g.i);
          at(*m, k, g.j) = x * g.c + y * g.s;
          at(*m, k, g.i) = y * std::conj(g.c) - x * std::conj(g.s);
        }
    for (int64_t i = 0; i <= hi; ++i) at(t, i, i) += shift;
  }
  vectors_re = vectors_im = Matrix<double>(n, n);
  for (int64_t e = 0; e < n; ++e) {
    C value = at(t, e, e);
    // (T - λ) y = 0 from below, then Z y with norm 1 and a real greatest component.
    std::vector<C> y(n), x(n);
    y[e] = 1;
    for (int64_t i = e; i-- > 0;) {
      C sum = 0;
      for (int64_t k = i + 1; k <= e; ++k) sum -= at(t, i, k) * y[k];
      C gap = at(t, i, i) - value;
      y[i] = sum / (std::abs(gap) > kEpsilon * scale ? gap : C(kEpsilon * scale));
    }
    double norm = 0;
    C greatest = 0;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k <= e; ++k) x[i] += at(z, i, k) * y[k];
      norm += std::norm(x[i]);
      if (std::abs(x[i]) > std::abs(greatest)) greatest = x[i];
    }
    C unit = std::conj(greatest) / (std::abs(greatest) * std::sqrt(norm));
    bool is_real = std::is_same_v<T, double> && std::fabs(value.imag()) <= 1e-12 * scale;
    re.push_back(value.real());
    im.push_back(is_real ? 0 : value.imag());
    for (int64_t i = 0; i < n; ++i) {
      vectors_re(i, e) = (x[i] * unit).real();
      vectors_im(i, e) = is_real ? 0 : (x[i] * unit).imag();
    }
  }
}

#define BRASA_DENSE(T)                                                                        \
  template int64_t cholesky(Matrix<T>&);                                                      \
  template int64_t lu(Matrix<T>&, std::vector<int64_t>&);                                     \
  template int64_t ldl(Matrix<T>&, bool, std::vector<int64_t>&);                              \
  template void ldl_solve(const Matrix<T>&, bool, const std::vector<int64_t>&, Matrix<T>&);   \
  template std::vector<T> householder(Matrix<T>&);                                            \
  template Matrix<T> product_of_reflectors(const Matrix<T>&, const std::vector<T>&, int64_t); \
  template void eigh(Matrix<T>, std::vector<double>&, Matrix<T>&);                            \
  template void svd(const Matrix<T>&, bool, Matrix<T>&, std::vector<double>&, Matrix<T>&);    \
  template void eig(const Matrix<T>&, std::vector<double>&, std::vector<double>&, Matrix<double>&, Matrix<double>&);
BRASA_DENSE(double)
BRASA_DENSE(std::complex<double>)
#undef BRASA_DENSE

}  // namespace brasa::ops::dense
