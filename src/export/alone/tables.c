/* What the export computes for programs: it is part of the library, and not of programs. */
#define ALONE_TABLES
#include "export/alone/tables.h"

#include <stdlib.h>
#include <string.h>

#include "export/alone/fourier.h"

size_t alone_fourier_bytes(int64_t length) {
  int64_t m = points_for(length);
  return sizeof(Complex) * (size_t)(m == length ? m : 2 * m + length);
}

int alone_fourier_tables(int64_t length, void* to) {
  Tables t = tables_in(to, length);
  Point* points = malloc(2 * sizeof(Point) * (size_t)t.m);
  if (!points) return 0;
  fill_tables(&t, points, points + t.m);
  free(points);
  return 1;
}
