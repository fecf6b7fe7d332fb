#include "ops/primitives/dense.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>

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
void rotate_columns(Matrix& a, int64_t p, int64_t q, double c, double s) {
  for (int64_t k = 0; k < a.rows; ++k) {
    double x = a(k, p), y = a(k, q);
    a(k, p) = c * x - s * y;
    a(k, q) = s * x + c * y;
  }
}
void rotate_rows(Matrix& a, int64_t p, int64_t q, double c, double s) {
  for (int64_t k = 0; k < a.cols; ++k) {
    double x = a(p, k), y = a(q, k);
    a(p, k) = c * x - s * y;
    a(q, k) = s * x + c * y;
  }
}
Matrix identity(int64_t n) {
  Matrix m(n, n);
  for (int64_t i = 0; i < n; ++i) m(i, i) = 1;
  return m;
}
Matrix transposed(const Matrix& a) {
  Matrix t(a.cols, a.rows);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.cols; ++j) t(j, i) = a(i, j);
  return t;
}

// `a` with orthonormal or zero columns: zero ones replaced and new ones added, up to `columns`.
Matrix completed(const Matrix& a, int64_t columns) {
  Matrix out(a.rows, columns);
  std::vector<bool> there(columns);
  for (int64_t j = 0; j < std::min(a.cols, columns); ++j)
    for (int64_t i = 0; i < a.rows; ++i) {
      out(i, j) = a(i, j);
      if (a(i, j) != 0) there[j] = true;
    }
  for (int64_t j = 0; j < columns; ++j) {
    if (there[j]) continue;
    // The unit vector that is farthest from all columns, twice made orthogonal to them.
    std::vector<double> best;
    double most = -1;
    for (int64_t e = 0; e < a.rows; ++e) {
      std::vector<double> v(a.rows);
      v[e] = 1;
      for (int pass = 0; pass < 2; ++pass)
        for (int64_t k = 0; k < columns; ++k) {
          if (!there[k]) continue;
          double d = 0;
          for (int64_t i = 0; i < a.rows; ++i) d += v[i] * out(i, k);
          for (int64_t i = 0; i < a.rows; ++i) v[i] -= d * out(i, k);
        }
      double norm = std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
      if (norm > most) {
        most = norm;
        for (double& x : v) x /= norm;
        best = v;
      }
    }
    for (int64_t i = 0; i < a.rows; ++i) out(i, j) = best[i];
    there[j] = true;
  }
  return out;
}

}  // namespace

int64_t cholesky(Matrix& a) {
  int64_t n = a.rows, info = 0;
  for (int64_t j = 0; j < n && !info; ++j) {
    double d = a(j, j);
    for (int64_t k = 0; k < j; ++k) d -= a(j, k) * a(j, k);
    if (!(d > 0)) {
      info = j + 1;
      break;
    }
    a(j, j) = std::sqrt(d);
    for (int64_t i = j + 1; i < n; ++i) {
      double v = a(i, j);
      for (int64_t k = 0; k < j; ++k) v -= a(i, k) * a(j, k);
      a(i, j) = v / a(j, j);
    }
  }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i + 1; j < n; ++j) a(i, j) = 0;
  return info;
}

int64_t lu(Matrix& a, std::vector<int64_t>& pivots) {
  int64_t info = 0, k = std::min(a.rows, a.cols);
  for (int64_t j = 0; j < k; ++j) {
    int64_t p = j;
    for (int64_t i = j + 1; i < a.rows; ++i)
      if (std::fabs(a(i, j)) > std::fabs(a(p, j))) p = i;
    pivots.push_back(p + 1);
    if (a(p, j) == 0) {
      if (!info) info = j + 1;
      continue;
    }
    if (p != j)
      for (int64_t c = 0; c < a.cols; ++c) std::swap(a(j, c), a(p, c));
    for (int64_t i = j + 1; i < a.rows; ++i) {
      double f = a(i, j) /= a(j, j);
      for (int64_t c = j + 1; c < a.cols; ++c) a(i, c) -= f * a(j, c);
    }
  }
  return info;
}

int64_t ldl(Matrix& a, std::vector<int64_t>& pivots) {
  const double alpha = (1 + std::sqrt(17.0)) / 8;  // bounds the growth of the elements
  int64_t n = a.rows, info = 0;
  pivots.assign(n, 0);
  for (int64_t k = 0, step = 1; k < n; k += step) {
    step = 1;
    double diagonal = std::fabs(a(k, k)), below = 0;
    int64_t at = k, p = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (std::fabs(a(i, k)) > below) below = std::fabs(a(at = i, k));
    if (std::max(diagonal, below) == 0) {
      if (info == 0) info = k + 1;
      pivots[k] = k + 1;
      continue;
    }
    if (diagonal < alpha * below) {
      double row = 0;
      for (int64_t j = k; j < at; ++j) row = std::max(row, std::fabs(a(at, j)));
      for (int64_t i = at + 1; i < n; ++i) row = std::max(row, std::fabs(a(i, at)));
      if (diagonal < alpha * below * (below / row)) {
        p = at;
        if (std::fabs(a(at, at)) < alpha * row) step = 2;
      }
    }
    int64_t last = k + step - 1;
    if (p != last) {
      for (int64_t i = p + 1; i < n; ++i) std::swap(a(i, last), a(i, p));
      for (int64_t j = last + 1; j < p; ++j) std::swap(a(j, last), a(p, j));
      std::swap(a(last, last), a(p, p));
      if (step == 2) std::swap(a(k + 1, k), a(p, k));
    }
    for (int64_t i = k; i <= last; ++i) pivots[i] = step == 2 ? -(p + 1) : p + 1;
    if (step == 1) {
      for (int64_t j = k + 1; j < n; ++j)
        for (int64_t i = j; i < n; ++i) a(i, j) -= a(i, k) * a(j, k) / a(k, k);
      for (int64_t i = k + 1; i < n; ++i) a(i, k) /= a(k, k);
      continue;
    }
    double off = a(k + 1, k), d1 = a(k + 1, k + 1) / off, d2 = a(k, k) / off, scale = 1 / (d1 * d2 - 1) / off;
    for (int64_t j = k + 2; j < n; ++j) {
      double w1 = scale * (d1 * a(j, k) - a(j, k + 1)), w2 = scale * (d2 * a(j, k + 1) - a(j, k));
      for (int64_t i = j; i < n; ++i) a(i, j) -= a(i, k) * w1 + a(i, k + 1) * w2;
      a(j, k) = w1;
      a(j, k + 1) = w2;
    }
  }
  return info;
}

void ldl_solve(const Matrix& a, const std::vector<int64_t>& pivots, Matrix& b) {
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
      for (int64_t c = 0; c < m; ++c) b(k, c) -= a(i, k) * b(i, c);
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
    double off = a(k + 1, k), d1 = a(k, k) / off, d2 = a(k + 1, k + 1) / off, det = d1 * d2 - 1;
    for (int64_t c = 0; c < m; ++c) {
      double x = b(k, c) / off, y = b(k + 1, c) / off;
      b(k, c) = (d2 * x - y) / det;
      b(k + 1, c) = (d1 * y - x) / det;
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

std::vector<double> householder(Matrix& a) {
  int64_t n = std::min(a.rows, a.cols);
  std::vector<double> tau(n);
  for (int64_t k = 0; k < n; ++k) {
    double below = 0;
    for (int64_t i = k + 1; i < a.rows; ++i) below += a(i, k) * a(i, k);
    if (below == 0) continue;
    double alpha = a(k, k), beta = -std::copysign(std::sqrt(alpha * alpha + below), alpha);
    tau[k] = (beta - alpha) / beta;
    for (int64_t i = k + 1; i < a.rows; ++i) a(i, k) /= alpha - beta;
    a(k, k) = beta;
    for (int64_t c = k + 1; c < a.cols; ++c) {
      double d = a(k, c);
      for (int64_t i = k + 1; i < a.rows; ++i) d += a(i, k) * a(i, c);
      a(k, c) -= tau[k] * d;
      for (int64_t i = k + 1; i < a.rows; ++i) a(i, c) -= tau[k] * d * a(i, k);
    }
  }
  return tau;
}

Matrix product_of_reflectors(const Matrix& a, const std::vector<double>& tau, int64_t columns) {
  Matrix q(a.rows, columns);
  for (int64_t i = 0; i < std::min(a.rows, columns); ++i) q(i, i) = 1;
  for (auto k = static_cast<int64_t>(tau.size()); k-- > 0;)
    for (int64_t c = 0; c < columns; ++c) {
      double d = q(k, c);
      for (int64_t i = k + 1; i < a.rows; ++i) d += a(i, k) * q(i, c);
      q(k, c) -= tau[k] * d;
      for (int64_t i = k + 1; i < a.rows; ++i) q(i, c) -= tau[k] * d * a(i, k);
    }
  return q;
}

void eigh(Matrix a, std::vector<double>& values, Matrix& vectors) {
  int64_t n = a.rows;
  Matrix v = identity(n);
  bool again = true;
  for (int sweep = 0; again && sweep < kSweeps; ++sweep) {
    again = false;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        if (!(std::fabs(a(p, q)) > kEpsilon * 1e-2 * std::sqrt(std::fabs(a(p, p) * a(q, q))))) continue;
        again = true;
        auto [c, s] = rotation(a(p, p), a(q, q), a(p, q));
        rotate_columns(a, p, q, c, s);
        rotate_rows(a, p, q, c, s);
        a(p, q) = a(q, p) = 0;
        rotate_columns(v, p, q, c, s);
      }
  }
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return a(i, i) < a(j, j); });
  vectors = Matrix(n, n);
  for (int64_t j = 0; j < n; ++j) {
    values.push_back(a(order[j], order[j]));
    for (int64_t i = 0; i < n; ++i) vectors(i, j) = v(i, order[j]);
  }
}

void svd(const Matrix& a, bool full, Matrix& u, std::vector<double>& s, Matrix& v) {
  if (a.rows < a.cols) return svd(transposed(a), full, v, s, u);
  int64_t m = a.rows, n = a.cols;
  Matrix w = a, r = identity(n);
  bool again = true;
  for (int sweep = 0; again && sweep < kSweeps; ++sweep) {
    again = false;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        double pp = 0, qq = 0, pq = 0;
        for (int64_t i = 0; i < m; ++i) {
          pp += w(i, p) * w(i, p);
          qq += w(i, q) * w(i, q);
          pq += w(i, p) * w(i, q);
        }
        if (!(std::fabs(pq) > kEpsilon * std::sqrt(pp * qq))) continue;
        again = true;
        auto [c, t] = rotation(pp, qq, pq);
        rotate_columns(w, p, q, c, t);
        rotate_columns(r, p, q, c, t);
      }
  }
  std::vector<double> norm(n);
  double greatest = 0;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < m; ++i) norm[j] += w(i, j) * w(i, j);
    norm[j] = std::sqrt(norm[j]);
    greatest = std::max(greatest, norm[j]);
  }
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return norm[i] > norm[j]; });
  Matrix left(m, n);
  v = Matrix(n, n);
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

void eig(const Matrix& a, std::vector<double>& re, std::vector<double>& im, Matrix& vectors_re, Matrix& vectors_im) {
  using C = std::complex<double>;
  int64_t n = a.rows;
  std::vector<C> t(a.a.begin(), a.a.end()), z(n * n);
  auto at = [n](std::vector<C>& m, int64_t i, int64_t j) -> C& { return m[i * n + j]; };
  for (int64_t i = 0; i < n; ++i) at(z, i, i) = 1;
  double scale = 0;
  for (double v : a.a) scale = std::max(scale, std::fabs(v));
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
  vectors_re = vectors_im = Matrix(n, n);
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
    bool is_real = std::fabs(value.imag()) <= 1e-12 * scale;
    re.push_back(value.real());
    im.push_back(is_real ? 0 : value.imag());
    for (int64_t i = 0; i < n; ++i) {
      vectors_re(i, e) = (x[i] * unit).real();
      vectors_im(i, e) = is_real ? 0 : (x[i] * unit).imag();
    }
  }
}

}  // namespace brasa::ops::dense
