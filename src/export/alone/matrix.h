/* Factorisations of batches of matrices in double precision, as textbooks have them, with LAPACK's conventions. Part of runtime.c. */
#ifndef BRASA_ALONE_MATRIX_H
#define BRASA_ALONE_MATRIX_H

/* Matrix b of a tensor of them, row-major, into `to`, and back. */
static void load(double* to, const void* from, int64_t width, int64_t b, int64_t numbers) {
  for (int64_t i = 0; i < numbers; ++i) to[i] = number_at(from, width, b * numbers + i);
}
static void store(const double* from, void* to, int64_t width, int64_t b, int64_t numbers) {
  for (int64_t i = 0; i < numbers; ++i) put_number(to, width, b * numbers + i, from[i]);
}
/* The same for columns one after the other. */
static void load_columns(double* to, const void* from, int64_t width, int64_t b, int64_t rows, int64_t columns) {
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) to[j * rows + i] = number_at(from, width, (b * rows + i) * columns + j);
}
static void store_columns(const double* from, void* to, int64_t width, int64_t b, int64_t rows, int64_t columns) {
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) put_number(to, width, (b * rows + i) * columns + j, from[j * rows + i]);
}

static double dot(const double* a, const double* b, int64_t n) {
  double sums[4] = {0};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int k = 0; k < 4; ++k) sums[k] += a[i + k] * b[i + k];
  for (; i < n; ++i) sums[0] += a[i] * b[i];
  return sums[0] + sums[1] + (sums[2] + sums[3]);
}
/* to -= factor * from */
static void subtract(double* to, const double* from, double factor, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] -= factor * from[i];
}
static void scale(double* x, double factor, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] *= factor;
}
static void swap_rows(double* a, double* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    double t = a[i];
    a[i] = b[i];
    b[i] = t;
  }
}

/* The order of the first minor that is not positive, or 0. */
static int32_t cholesky_of(double* a, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    double* row = a + j * n;
    double d = row[j] - dot(row, row, j);
    if (!(d > 0)) return (int32_t)(j + 1);
    row[j] = __builtin_sqrt(d);
    for (int64_t i = j + 1; i < n; ++i) a[i * n + j] = (a[i * n + j] - dot(a + i * n, row, j)) / row[j];
  }
  return 0;
}

/* Of all these functions: the first fact is the bytes of a number, the first sizes are how many matrices, rows, columns. */

/* Operand, L, info. */
static const char* cholesky(const Call* c) {
  int64_t width = c->facts[0], n = c->sizes[1];
  double* a = c->work;
  for (int64_t b = 0; b < c->sizes[0]; ++b) {
    load(a, c->tensors[0], width, b, n * n);
    ((int32_t*)c->tensors[2])[b] = cholesky_of(a, n);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = i + 1; j < n; ++j) a[i * n + j] = 0;
    store(a, c->tensors[1], width, b, n * n);
  }
  return NULL;
}

/* By partial pivoting; the index of the first pivot that is zero, from 1, or 0. */
static int32_t lu_of(double* a, int64_t m, int64_t n, int32_t* pivots) {
  int32_t info = 0;
  for (int64_t k = 0; k < m && k < n; ++k) {
    int64_t p = k;
    for (int64_t i = k + 1; i < m; ++i)
      if (__builtin_fabs(a[i * n + k]) > __builtin_fabs(a[p * n + k])) p = i;
    pivots[k] = (int32_t)(p + 1);
    if (p != k) swap_rows(a + p * n, a + k * n, n);
    if (a[k * n + k] == 0) {
      if (!info) info = (int32_t)(k + 1);
      continue;
    }
    for (int64_t i = k + 1; i < m; ++i) {
      a[i * n + k] /= a[k * n + k];
      subtract(a + i * n + k + 1, a + k * n + k + 1, a[i * n + k], n - k - 1);
    }
  }
  return info;
}

/* Operand, L and U in one, pivots, info. */
static const char* lu(const Call* c) {
  int64_t width = c->facts[0], m = c->sizes[1], n = c->sizes[2];
  double* a = c->work;
  for (int64_t b = 0; b < c->sizes[0]; ++b) {
    load(a, c->tensors[0], width, b, m * n);
    ((int32_t*)c->tensors[3])[b] = lu_of(a, m, n, (int32_t*)c->tensors[2] + b * (m < n ? m : n));
    store(a, c->tensors[1], width, b, m * n);
  }
  return NULL;
}

/* Pivots and the order that they mean. Sizes: how many, pivots, rows. */
static const char* lu_permutation(const Call* c) {
  int64_t count = c->sizes[1], rows = c->sizes[2];
  for (int64_t b = 0; b < c->sizes[0]; ++b) {
    const int32_t* pivots = (const int32_t*)c->tensors[0] + b * count;
    int64_t* order = (int64_t*)c->tensors[1] + b * rows;
    for (int64_t i = 0; i < rows; ++i) order[i] = i;
    for (int64_t i = 0; i < count && i < rows; ++i) {
      int64_t p = pivots[i] - 1, t = order[i];
      if (p < 0 || p >= rows) return "lu_unpack: a pivot is not the number of a row";
      order[i] = order[p];
      order[p] = t;
    }
  }
  return NULL;
}

/* Triangle, right sides, solutions. Facts: upper?, transposed?, ones on the diagonal? The fourth size: columns of the right sides. */
static const char* triangular_solve(const Call* c) {
  int64_t width = c->facts[0], transposed = c->facts[2], unit = c->facts[3], n = c->sizes[1], columns = c->sizes[3];
  int upwards = (c->facts[1] != 0) != (transposed != 0);
  double *a = c->work, *x = a + n * n;
  for (int64_t b = 0; b < c->sizes[0]; ++b) {
    load(a, c->tensors[0], width, b, n * n);
    load(x, c->tensors[1], width, b, n * columns);
    for (int64_t k = 0; k < n; ++k) {
      int64_t i = upwards ? n - 1 - k : k;
      for (int64_t j = upwards ? i + 1 : 0; j < (upwards ? n : i); ++j)
        subtract(x + i * columns, x + j * columns, transposed ? a[j * n + i] : a[i * n + j], columns);
      for (int64_t j = 0; j < columns && !unit; ++j) x[i * columns + j] /= a[i * n + i];
    }
    store(x, c->tensors[2], width, b, n * columns);
  }
  return NULL;
}

/* x becomes (1 - tau v vᵀ) x, where v[0] stands for 1. */
static void reflect(const double* v, double tau, double* x, int64_t n) {
  double f = tau * (x[0] + dot(v + 1, x + 1, n - 1));
  x[0] -= f;
  subtract(x + 1, v + 1, f, n - 1);
}

/* Columns of m numbers become R and the reflectors' vectors below it (A. S. Householder, 1958). */
static void reflectors_of(double* a, double* tau, int64_t m, int64_t n) {
  for (int64_t j = 0; j < m && j < n; ++j) {
    double *v = a + j * m + j, rest = dot(v + 1, v + 1, m - j - 1), first = v[0];
    tau[j] = 0;
    if (rest == 0) continue;
    double length = __builtin_sqrt(first * first + rest), to = first < 0 ? length : -length;
    tau[j] = (to - first) / to;
    scale(v + 1, 1 / (first - to), m - j - 1);
    v[0] = to;
    for (int64_t k = j + 1; k < n; ++k) reflect(v, tau[j], a + k * m + j, m - j);
  }
}

/* Operand, R and the vectors in one, tau. */
static const char* geqrf(const Call* c) {
  int64_t width = c->facts[0], m = c->sizes[1], n = c->sizes[2];
  double *a = c->work, *tau = a + m * n;
  for (int64_t b = 0; b < c->sizes[0]; ++b) {
    load_columns(a, c->tensors[0], width, b, m, n);
    reflectors_of(a, tau, m, n);
    store_columns(a, c->tensors[1], width, b, m, n);
    store(tau, c->tensors[2], width, b, m < n ? m : n);
  }
  return NULL;
}

/* Operand, Q, R. Fact: all columns of Q? */
static const char* qr(const Call* c) {
  int64_t width = c->facts[0], complete = c->facts[1], m = c->sizes[1], n = c->sizes[2], least = m < n ? m : n;
  int64_t columns = complete ? m : least;
  double *a = c->work, *tau = a + m * n, *q = tau + n;
  for (int64_t b = 0; b < c->sizes[0]; ++b) {
    load_columns(a, c->tensors[0], width, b, m, n);
    reflectors_of(a, tau, m, n);
    for (int64_t i = 0; i < columns; ++i)
      for (int64_t j = 0; j < n; ++j)
        put_number(c->tensors[2], width, (b * columns + i) * n + j, i <= j ? a[j * m + i] : 0);
    for (int64_t j = 0; j < columns; ++j) {
      double* column = q + j * m;
      for (int64_t i = 0; i < m; ++i) column[i] = i == j;
      for (int64_t k = least - 1; k >= 0; --k) reflect(a + k * m + k, tau[k], column + k, m - k);
    }
    store_columns(q, c->tensors[1], width, b, m, columns);
  }
  return NULL;
}

#endif
