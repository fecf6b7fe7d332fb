/* Eigenvalues and singular values by Jacobi's rotations in double precision. Part of runtime.c. */
#ifndef BRASA_ALONE_SPECTRAL_H
#define BRASA_ALONE_SPECTRAL_H

enum { kMostSweeps = 60 };

/* x, y becomes cos x - sin y, sin x + cos y; elements lie `step` apart. */
static void rotate(double* x, double* y, double c, double s, int64_t n, int64_t step) {
  for (int64_t i = 0; i < n * step; i += step) {
    double a = x[i], b = y[i];
    x[i] = c * a - s * b;
    y[i] = s * a + c * b;
  }
}

/* The rotation that makes `off` between a and b zero: the smaller root of t² + 2 ζ t - 1. */
static void rotation(double a, double b, double off, double* c, double* s) {
  double zeta = (b - a) / (2 * off), size = __builtin_fabs(zeta) + __builtin_sqrt(1 + zeta * zeta);
  double t = zeta < 0 ? -1 / size : 1 / size;
  *c = 1 / __builtin_sqrt(1 + t * t);
  *s = *c * t;
}

static int all_finite(const double* a, int64_t n) {
  double zero = 0;
  for (int64_t i = 0; i < n; ++i) zero += a[i] * 0;
  return zero == 0;
}

static void identity(double* v, int64_t n) {
  for (int64_t i = 0; i < n * n; ++i) v[i] = i % (n + 1) == 0;
}

/* Rows of v become the eigenvectors, a's diagonal the values, ascending. */
static void eigh_of(double* a, double* v, int64_t n) {
  identity(v, n);
  double all = dot(a, a, n * n), rest = all;
  for (int sweep = 0; sweep < kMostSweeps && rest > 1e-34 * all; ++sweep) {
    rest = 0;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        double off = a[p * n + q], c, s;
        rest += off * off;
        if (off == 0) continue;
        rotation(a[p * n + p], a[q * n + q], off, &c, &s);
        rotate(a + p * n, a + q * n, c, s, n, 1);
        rotate(a + p, a + q, c, s, n, n);
        rotate(v + p * n, v + q * n, c, s, n, 1);
        a[p * n + q] = a[q * n + p] = 0;
      }
  }
  for (int64_t i = 0; i < n; ++i) {
    int64_t least = i;
    for (int64_t j = i + 1; j < n; ++j)
      if (a[j * (n + 1)] < a[least * (n + 1)]) least = j;
    if (least == i) continue;
    swap_rows(a + i * (n + 1), a + least * (n + 1), 1);
    swap_rows(v + i * n, v + least * n, n);
  }
}

/* Operand, of which the lower triangle counts, values, vectors as columns. */
static const char* eigh(const Call* c) {
  int64_t width = c->facts[0], n = c->sizes[1];
  double *a = c->work, *v = a + n * n;
  for (int64_t b = 0; b < c->sizes[0]; ++b) {
    load(a, c->tensors[0], width, b, n * n);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = i + 1; j < n; ++j) a[i * n + j] = a[j * n + i];
    if (!all_finite(a, n * n)) return "linalg.eigh: the matrix has values that are not finite";
    eigh_of(a, v, n);
    for (int64_t i = 0; i < n; ++i) put_number(c->tensors[1], width, b * n + i, a[i * (n + 1)]);
    store_columns(v, c->tensors[2], width, b, n, n);
  }
  return NULL;
}

/* Columns g of r numbers become U S, rows of v become V, by rotations from the right (M. R. Hestenes, 1958); s descends. */
static void svd_of(double* g, double* v, double* s, int64_t r, int64_t k) {
  identity(v, k);
  int turned = 1;
  for (int sweep = 0; sweep < kMostSweeps && turned; ++sweep) {
    turned = 0;
    for (int64_t p = 0; p < k; ++p)
      for (int64_t q = p + 1; q < k; ++q) {
        double *x = g + p * r, *y = g + q * r, a = dot(x, x, r), b = dot(y, y, r), off = dot(x, y, r), c, sine;
        if (!(__builtin_fabs(off) > 1e-15 * __builtin_sqrt(a) * __builtin_sqrt(b))) continue;
        turned = 1;
        rotation(a, b, off, &c, &sine);
        rotate(x, y, c, sine, r, 1);
        rotate(v + p * k, v + q * k, c, sine, k, 1);
      }
  }
  for (int64_t j = 0; j < k; ++j) s[j] = __builtin_sqrt(dot(g + j * r, g + j * r, r));
  for (int64_t i = 0; i < k; ++i) {
    int64_t most = i;
    for (int64_t j = i + 1; j < k; ++j)
      if (s[j] > s[most]) most = j;
    if (most == i) continue;
    swap_rows(s + i, s + most, 1);
    swap_rows(g + i * r, g + most * r, r);
    swap_rows(v + i * k, v + most * k, k);
  }
}

/* Columns of U from those of U S; what has no length becomes unit vectors that stand upright on those before. */
static void complete(double* g, const double* s, int64_t r, int64_t k, int64_t columns) {
  int64_t unit = 0;
  for (int64_t j = 0; j < columns; ++j) {
    double* x = g + j * r;
    if (j < k && s[j] > (double)r * 1e-16 * s[0]) {
      scale(x, 1 / s[j], r);
      continue;
    }
    for (double length = 0; length * length * (double)(4 * r) < 1; ++unit) {
      for (int64_t i = 0; i < r; ++i) x[i] = i == unit % r;
      for (int again = 0; again < 2; ++again)
        for (int64_t i = 0; i < j; ++i) subtract(x, g + i * r, dot(g + i * r, x, r), r);
      length = __builtin_sqrt(dot(x, x, r));
      if (length > 0) scale(x, 1 / length, r);
    }
  }
}

/* Operand, U, S, Vᵀ. Fact: all columns of U and V? A wide matrix is taken as its transpose. */
static const char* svd(const Call* c) {
  int64_t width = c->facts[0], full = c->facts[1], m = c->sizes[1], n = c->sizes[2];
  int wide = m < n;
  int64_t r = wide ? n : m, k = wide ? m : n, columns = full ? r : k;
  double *g = c->work, *v = g + r * r, *s = v + k * k;
  for (int64_t b = 0; b < c->sizes[0]; ++b) {
    if (wide)
      load(g, c->tensors[0], width, b, m * n);
    else
      load_columns(g, c->tensors[0], width, b, m, n);
    if (!all_finite(g, m * n)) return "linalg.svd: the matrix has values that are not finite";
    svd_of(g, v, s, r, k);
    complete(g, s, r, k, columns);
    store(s, c->tensors[2], width, b, k);
    if (wide) {
      store_columns(v, c->tensors[1], width, b, k, k);
      store(g, c->tensors[3], width, b, columns * r);
    } else {
      store_columns(g, c->tensors[1], width, b, r, columns);
      store(v, c->tensors[3], width, b, k * k);
    }
  }
  return NULL;
}

#endif
