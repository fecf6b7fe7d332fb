/* Sizes as words of a plan (runtime.h), for symbols that are known and for such that are within ranges; C and C++. */
#ifndef BRASA_ALONE_SIZES_H
#define BRASA_ALONE_SIZES_H

#include "export/alone/runtime.h"

static inline int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* Reads a size at the cursor. Beyond 64 bits it is the largest number. */
static inline int64_t size_at(const int64_t** at, const int64_t* symbols, int64_t* values) {
  int64_t count = *(*at)++;
  if (count == 0) return *(*at)++;
  for (int64_t i = 0; i < count; ++i) {
    int64_t word = *(*at)++, b = *(*at)++, op = word & 255;
    int64_t a = op > kSymbol ? values[word >> 16] : 0, r = 0;
    if (!(word & 256)) b = values[b];
    switch (op) {
      case kNumber: r = b; break;
      case kSymbol: r = symbols[b]; break;
      case kAdd:
        if (__builtin_add_overflow(a, b, &r)) r = INT64_MAX;
        break;
      case kMul:
        if (__builtin_mul_overflow(a, b, &r)) r = INT64_MAX;
        break;
      case kDiv: r = floor_div(a, b); break;
      case kMod: r = b == 0 ? 0 : a - b * floor_div(a, b); break;
      case kMin: r = a < b ? a : b; break;
      default: r = a > b ? a : b;
    }
    values[i] = r;
  }
  return values[count - 1];
}

/* What a size may be where symbols are within ranges: no less than `low`, and no more than `high`. */
typedef struct {
  int64_t low, high;
} SizeRange;

static inline SizeRange size_range(int64_t low, int64_t high) {
  SizeRange r;
  r.low = low;
  r.high = high;
  return r;
}
static inline int64_t sum_of(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_add_overflow(a, b, &r) ? (a < 0 ? INT64_MIN : INT64_MAX) : r;
}
static inline int64_t product_of(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_mul_overflow(a, b, &r) ? ((a < 0) != (b < 0) ? INT64_MIN : INT64_MAX) : r;
}
static inline SizeRange hull(const int64_t* of, int count) {
  SizeRange r = size_range(of[0], of[0]);
  for (int i = 1; i < count; ++i) {
    if (of[i] < r.low) r.low = of[i];
    if (of[i] > r.high) r.high = of[i];
  }
  return r;
}
static inline SizeRange product_range(SizeRange a, SizeRange b) {
  const int64_t ends[] = {product_of(a.low, b.low), product_of(a.low, b.high), product_of(a.high, b.low),
                          product_of(a.high, b.high)};
  return hull(ends, 4);
}
/* Divisors are greater than 0 where their quotient counts. */
static inline SizeRange quotient_range(SizeRange a, SizeRange b) {
  int64_t least = b.low < 1 ? 1 : b.low, greatest = b.high < 1 ? 1 : b.high;
  const int64_t ends[] = {floor_div(a.low, least), floor_div(a.low, greatest), floor_div(a.high, least),
                          floor_div(a.high, greatest), b.low < 1 ? 0 : floor_div(a.low, least)};
  return hull(ends, 5);
}
static inline SizeRange rest_range(SizeRange a, SizeRange b) {
  SizeRange r = size_range(0, b.high > 0 ? b.high - 1 : 0);
  if (b.low == b.high && b.low > 0 && floor_div(a.low, b.low) == floor_div(a.high, b.low)) {
    r.low = a.low - b.low * floor_div(a.low, b.low);
    r.high = a.high - b.low * floor_div(a.high, b.low);
  }
  return r;
}

/* As size_at for symbols that are not known yet. */
static inline SizeRange range_at(const int64_t** at, const SizeRange* symbols, SizeRange* values) {
  int64_t count = *(*at)++;
  if (count == 0) {
    int64_t number = *(*at)++;
    return size_range(number, number);
  }
  for (int64_t i = 0; i < count; ++i) {
    int64_t word = *(*at)++, number = *(*at)++, op = word & 255;
    SizeRange a = op > kSymbol ? values[word >> 16] : size_range(0, 0), b = size_range(number, number), r;
    if (!(word & 256)) b = values[number];
    switch (op) {
      case kNumber: r = b; break;
      case kSymbol: r = symbols[number]; break;
      case kAdd: r = size_range(sum_of(a.low, b.low), sum_of(a.high, b.high)); break;
      case kMul: r = product_range(a, b); break;
      case kDiv: r = quotient_range(a, b); break;
      case kMod: r = rest_range(a, b); break;
      case kMin: r = size_range(a.low < b.low ? a.low : b.low, a.high < b.high ? a.high : b.high); break;
      default: r = size_range(a.low > b.low ? a.low : b.low, a.high > b.high ? a.high : b.high);
    }
    values[i] = r;
  }
  return values[count - 1];
}

static inline void skip_size(const int64_t** at) {
  int64_t count = *(*at)++;
  *at += count ? 2 * count : 1;
}

#endif
