/* NumPy's .npy, for the `main` of executables: "\x93NUMPY", a version, the size of a header, the header, which is a Python dictionary, the array. */
#ifndef BRASA_ALONE_NPY_H
#define BRASA_ALONE_NPY_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const char* const kNpyTypes[][2] = {{"BOOL", "|b1"}, {"U8", "|u1"},  {"I8", "|i1"},
                                           {"I16", "<i2"},  {"I32", "<i4"}, {"I64", "<i8"},
                                           {"F16", "<f2"},  {"F32", "<f4"}, {"F64", "<f8"}};

/* NumPy's name of a dtype; null where it has none. */
static inline const char* npy_type(const char* dtype) {
  for (size_t i = 0; i < sizeof kNpyTypes / sizeof *kNpyTypes; ++i)
    if (!strcmp(kNpyTypes[i][0], dtype)) return kNpyTypes[i][1];
  return NULL;
}

typedef struct {
  char type[8];
  int fortran, rank;
  int64_t sizes[8];
  const char* data;
  size_t bytes;
} NpyArray;

/* What comes behind 'key': in the header, which ends with a zero; null where it is not there. */
static inline const char* npy_value(const char* header, const char* key) {
  const char* at = strstr(header, key);
  if (!at) return NULL;
  at += strlen(key);
  while (*at == ' ' || *at == ':') ++at;
  return at;
}

/* 0 for a file that is none. `file` has a zero behind its bytes; the header gets one at its end. */
static inline int read_npy(char* file, size_t size, NpyArray* out) {
  memset(out, 0, sizeof *out);
  if (size < 12 || memcmp(file, "\x93NUMPY", 6)) return 0;
  const unsigned char* at = (const unsigned char*)file + 8;
  int is_first = file[6] == 1;
  size_t head = at[0] + 256u * at[1], begin = is_first ? 10 : 12;
  if (!is_first) head += 65536u * at[2] + 16777216u * (size_t)at[3];
  if (head == 0 || head > size - begin) return 0;
  char* header = file + begin;
  header[head - 1] = 0; /* a line's end */
  const char *type = npy_value(header, "'descr'"), *order = npy_value(header, "'fortran_order'"),
             *shape = npy_value(header, "'shape'");
  if (!type || !order || !shape || *type != '\'' || *shape != '(') return 0;
  for (int i = 0; i < 7 && type[1 + i] && type[1 + i] != '\''; ++i) out->type[i] = type[1 + i];
  out->fortran = *order == 'T';
  for (++shape; *shape && *shape != ')';) {
    if (*shape == ' ' || *shape == ',') {
      ++shape;
      continue;
    }
    if (out->rank == 8) return 0;
    int64_t n = 0;
    int digits = 0;
    for (; *shape >= '0' && *shape <= '9' && digits < 18; ++digits) n = n * 10 + (*shape++ - '0');
    if (!digits) return 0;
    out->sizes[out->rank++] = n;
  }
  out->data = header + head;
  out->bytes = size - begin - head;
  return 1;
}

/* The array's elements, of `width` bytes, in row-major order. */
static inline void copy_npy(char* to, const NpyArray* a, size_t width) {
  size_t count = a->bytes / width, step[8], at = 0;
  int64_t index[8] = {0};
  if (!count) return;
  if (!a->fortran) {
    memcpy(to, a->data, a->bytes);
    return;
  }
  for (int d = 0; d < a->rank; ++d) step[d] = d ? step[d - 1] * (size_t)a->sizes[d - 1] : 1;
  for (size_t k = 0; k < count; ++k) {
    memcpy(to + k * width, a->data + at * width, width);
    for (int d = a->rank - 1; d >= 0; --d) {
      at += step[d];
      if (++index[d] < a->sizes[d]) break;
      at -= step[d] * (size_t)index[d];
      index[d] = 0;
    }
  }
}

/* The bytes in front of an array: a multiple of 64. `text` has room for 512. */
static inline size_t npy_head(char* text, const char* type, int32_t rank, const int64_t* sizes) {
  size_t n = 10;
  n += (size_t)sprintf(text + n, "{'descr': '%s', 'fortran_order': False, 'shape': (", type);
  for (int32_t d = 0; d < rank; ++d) n += (size_t)sprintf(text + n, "%s%lld", d ? ", " : "", (long long)sizes[d]);
  n += (size_t)sprintf(text + n, "%s), }", rank == 1 ? "," : "");
  while (n % 64 != 63) text[n++] = ' ';
  text[n++] = '\n';
  memcpy(text, "\x93NUMPY\x01", 8);
  text[8] = (char)((n - 10) & 255);
  text[9] = (char)((n - 10) >> 8);
  return n;
}

#endif
