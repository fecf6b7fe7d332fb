/* Fourier transforms of lines of any length in double precision, four lines at a time. Part of runtime.c. */
#ifndef BRASA_ALONE_FOURIER_H
#define BRASA_ALONE_FOURIER_H

enum { kLanes = 4, kLargestRadix = 50 };
typedef double Lanes __attribute__((vector_size(kLanes * sizeof(double))));
typedef struct {
  Lanes re, im;
} Point;
typedef struct {
  double re, im;
} Complex;

/* exp(-2πi k/n), 0 <= k < n. Quarters of the circle are exact in integers; of the angle that remains, at most π/4, Taylor's series. */
static Complex root(int64_t k, int64_t n) {
  static const double kCos[] = {1,
                                -1 / 2.,
                                1 / 24.,
                                -1 / 720.,
                                1 / 40320.,
                                -1 / 3628800.,
                                1 / 479001600.,
                                -1 / 87178291200.,
                                1 / 20922789888000.};
  static const double kSin[] = {1,
                                -1 / 6.,
                                1 / 120.,
                                -1 / 5040.,
                                1 / 362880.,
                                -1 / 39916800.,
                                1 / 6227020800.,
                                -1 / 1307674368000.,
                                1 / 355687428096000.};
  int64_t quarter = (8 * k + n) / (2 * n);
  double x = 1.57079632679489661923 * (double)(4 * k - quarter * n) / (double)n, c = 0, s = 0;
  for (int i = 8; i >= 0; --i) {
    c = c * x * x + kCos[i];
    s = s * x * x + kSin[i];
  }
  s *= x;
  switch (quarter & 3) {
    case 0: return (Complex){c, -s};
    case 1: return (Complex){-s, -c};
    case 2: return (Complex){-c, s};
    default: return (Complex){s, c};
  }
}

static void add_turned(Point* to, const Point* from, Complex by) {
  to->re += from->re * by.re - from->im * by.im;
  to->im += from->re * by.im + from->im * by.re;
}
static void multiply(Point* x, Complex by) {
  Point product = {{0}, {0}};
  add_turned(&product, x, by);
  *x = product;
}

/* to[k * step] = Σ_j from[j * apart] exp(-2πi jk/radix) */
static void butterfly(const Point* from, int64_t apart, Point* to, int64_t step, int64_t radix, const Complex* roots,
                      int64_t length) {
  Point a = from[0], b = from[apart];
  if (radix == 2) {
    to[0] = (Point){a.re + b.re, a.im + b.im};
    to[step] = (Point){a.re - b.re, a.im - b.im};
    return;
  }
  if (radix == 4) {
    Point c = from[2 * apart], d = from[3 * apart];
    Point sum = {a.re + c.re, a.im + c.im}, difference = {a.re - c.re, a.im - c.im};
    Point other = {b.re + d.re, b.im + d.im}, turned = {b.im - d.im, d.re - b.re}; /* times -i */
    to[0] = (Point){sum.re + other.re, sum.im + other.im};
    to[step] = (Point){difference.re + turned.re, difference.im + turned.im};
    to[2 * step] = (Point){sum.re - other.re, sum.im - other.im};
    to[3 * step] = (Point){difference.re - turned.re, difference.im - turned.im};
    return;
  }
  for (int64_t k = 0; k < radix; ++k) {
    Point sum = a;
    for (int64_t j = 1; j < radix; ++j) add_turned(&sum, &from[j * apart], roots[j * k % radix * (length / radix)]);
    to[k * step] = sum;
  }
}

static int64_t next_radix(int64_t n) {
  if (n % 4 == 0) return 4;
  for (int64_t p = 2;; ++p)
    if (n % p == 0) return p;
}

/* Steps that leave their results in order (T. G. Stockham, 1966). Gives x or y, where the result is. */
static Point* transform(Point* x, Point* y, int64_t length, const Complex* roots) {
  for (int64_t n = length, together = 1; n > 1;) {
    int64_t radix = next_radix(n), left = n / radix;
    for (int64_t p = 0; p < left; ++p)
      for (int64_t q = 0; q < together; ++q) {
        Point* to = &y[q + together * radix * p];
        butterfly(&x[q + together * p], together * left, to, together, radix, roots, length);
        for (int64_t k = 1; k < radix && p > 0; ++k) multiply(&to[k * together], roots[p * k * together]);
      }
    Point* swapped = x;
    x = y;
    y = swapped;
    n = left;
    together *= radix;
  }
  return x;
}

/* Tables for lines of n elements: as a convolution of m points where a prime factor is large. L. Bluestein (1970):
   jk = (j² + k² - (k - j)²) / 2. */
typedef struct {
  int64_t n, m;
  Complex *roots, *kernel, *chirp; /* of m, m and n; no chirp: a direct transform */
} Tables;

static int64_t points_for(int64_t n) {
  int64_t rest = n, m = 1;
  for (int64_t p = 2; p <= kLargestRadix; ++p)
    while (rest % p == 0) rest /= p;
  if (rest == 1) return n;
  while (m < 2 * n - 1) m *= 2;
  return m;
}

/* Tables that lie there behind each other. */
static Tables tables_in(void* memory, int64_t n) {
  Tables t = {n, points_for(n), memory, NULL, NULL};
  if (t.m == n) return t;
  t.kernel = t.roots + t.m;
  t.chirp = t.kernel + t.m;
  return t;
}

/* x and y: of m points. */
static void fill_tables(const Tables* t, Point* x, Point* y) {
  int64_t n = t->n, m = t->m;
  for (int64_t k = 0; k < m; ++k) t->roots[k] = root(k, m);
  if (!t->chirp) return;
  memset(x, 0, sizeof(Point) * (size_t)m);
  int64_t square = 0; /* of j, modulo 2n */
  for (int64_t j = 0; j < n; square = (square + 2 * j + 1) % (2 * n), ++j) {
    Complex c = t->chirp[j] = root(square, 2 * n);
    x[j] = x[(m - j) % m] = (Point){{c.re}, {-c.im}};
  }
  Point* transformed = transform(x, y, m, t->roots);
  for (int64_t k = 0; k < m; ++k)
    t->kernel[k] = (Complex){transformed[k].re[0] / (double)m, transformed[k].im[0] / (double)m};
}

#ifndef ALONE_TABLES
/* Real and imaginary parts that change places give the other direction. */
static void swap_parts(Point* x, int64_t n) {
  for (int64_t k = 0; k < n; ++k) x[k] = (Point){x[k].im, x[k].re};
}

static Point* convolve(const Tables* t, Point* x, Point* y) {
  for (int64_t k = 0; k < t->n; ++k) multiply(&x[k], t->chirp[k]);
  memset(x + t->n, 0, sizeof(Point) * (size_t)(t->m - t->n));
  Point* there = transform(x, y, t->m, t->roots);
  for (int64_t k = 0; k < t->m; ++k) multiply(&there[k], t->kernel[k]);
  swap_parts(there, t->m);
  Point* back = transform(there, there == x ? y : x, t->m, t->roots);
  swap_parts(back, t->n);
  for (int64_t k = 0; k < t->n; ++k) multiply(&back[k], t->chirp[k]);
  return back;
}

/* Real and imaginary parts of operand and result. Facts: bytes of a number, forward?, where the tables lie
   in the code: -1 where the export made none. Sizes: lines as of `sort`. */
static const char* fft(const Call* c) {
  int64_t width = c->facts[0], other = !c->facts[1];
  const void *re = c->tensors[other], *im = c->tensors[!other];
  void *out_re = c->tensors[2 + other], *out_im = c->tensors[2 + !other];
  int64_t length = c->sizes[1], inner = c->sizes[2], lines = c->sizes[0] * inner;
  if (length <= 0 || lines <= 0) return NULL;
  int64_t made = c->facts[2];
  Point* x = c->work;
  Point *y = x + points_for(length), *behind = y + points_for(length);
  Tables tables = tables_in(made < 0 ? (void*)behind : (void*)(uintptr_t)(alone_code + made), length);
  if (made < 0) fill_tables(&tables, x, y);
  for (int64_t first = 0; first < lines; first += kLanes) {
    int64_t count = lines - first < kLanes ? lines - first : kLanes, starts[kLanes];
    for (int64_t i = 0; i < count; ++i) starts[i] = (first + i) / inner * length * inner + (first + i) % inner;
    for (int64_t k = 0; k < length; ++k)
      for (int64_t i = 0; i < kLanes; ++i) {
        int64_t at = starts[i < count ? i : 0] + k * inner;
        x[k].re[i] = number_at(re, width, at);
        x[k].im[i] = number_at(im, width, at);
      }
    Point* out = tables.chirp ? convolve(&tables, x, y) : transform(x, y, length, tables.roots);
    for (int64_t k = 0; k < length; ++k)
      for (int64_t i = 0; i < count; ++i) {
        put_number(out_re, width, starts[i] + k * inner, out[k].re[i]);
        put_number(out_im, width, starts[i] + k * inner, out[k].im[i]);
      }
  }
  return NULL;
}
#endif

#endif
