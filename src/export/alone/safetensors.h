/* The safetensors format, for the runtime and for the `main` of executables: 8 bytes, the size of the header; a JSON dictionary of names, each
   with a flat one; the tensors' bytes. Needs the C library only, and never allocates. */
#ifndef BRASA_ALONE_SAFETENSORS_H
#define BRASA_ALONE_SAFETENSORS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { kMostDims = 8, kEntryText = 1024 };

typedef struct {
  const char* name; /* without its quotes; escapes stay as they are */
  size_t name_length;
  const char* dtype;
  size_t dtype_length;
  int rank;
  int64_t sizes[kMostDims];
  const char* data;
  size_t bytes;
} StoredTensor;

/* Every step checks the end. What is wrong once stays wrong. */
typedef struct {
  const char *at, *end; /* of the header */
  const char* data;
  size_t data_bytes, taken, last; /* bytes: all, of the tensors so far, where the last of them ends */
  int bad;
} StoredFile;

static inline void skip_space(StoredFile* f) {
  while (f->at < f->end && (*f->at == ' ' || *f->at == '\n' || *f->at == '\r' || *f->at == '\t')) ++f->at;
}
static inline int next_is(StoredFile* f, char c) {
  skip_space(f);
  if (f->bad || f->at >= f->end || *f->at != c) return 0;
  ++f->at;
  return 1;
}
static inline void expect(StoredFile* f, char c) {
  if (!next_is(f, c)) f->bad = 1;
}
static inline size_t read_string(StoredFile* f, const char** begin) {
  expect(f, '"');
  *begin = f->at;
  while (f->at < f->end && *f->at != '"') f->at += *f->at == '\\' ? 2 : 1;
  if (f->at >= f->end) f->bad = 1;
  return f->bad ? 0 : (size_t)(f->at++ - *begin);
}
static inline int64_t read_number(StoredFile* f) {
  int64_t n = 0;
  int digits = 0;
  skip_space(f);
  for (; f->at < f->end && *f->at >= '0' && *f->at <= '9' && digits < 18; ++digits) n = n * 10 + (*f->at++ - '0');
  if (!digits) f->bad = 1;
  return n;
}
static inline int read_numbers(StoredFile* f, int64_t* out, int most) {
  int count = 0;
  expect(f, '[');
  if (next_is(f, ']')) return 0;
  do {
    int64_t n = read_number(f);
    if (count == most) f->bad = 1;
    if (!f->bad) out[count++] = n;
  } while (next_is(f, ','));
  expect(f, ']');
  return count;
}
static inline int same_text(const char* a, size_t n, const char* b) { return strlen(b) == n && memcmp(a, b, n) == 0; }

/* Before the first tensor. */
static inline StoredFile read_stored(const char* bytes, size_t size) {
  StoredFile f;
  uint64_t head = 0;
  memset(&f, 0, sizeof f);
  if (size >= 8) memcpy(&head, bytes, 8);
  if (size < 8 || head > size - 8) {
    f.bad = 1;
    return f;
  }
  f.at = bytes + 8;
  f.end = f.data = f.at + head;
  f.data_bytes = size - 8 - head;
  expect(&f, '{');
  return f;
}

/* Nothing lies behind the header's dictionary, and the tensors are all of the data. */
static inline void end_stored(StoredFile* f) {
  skip_space(f);
  if (f->at < f->end || f->taken != f->data_bytes || f->last != f->data_bytes) f->bad = 1;
}

/* The next tensor; 0 at the end, or where the file is bad. */
static inline int next_stored(StoredFile* f, StoredTensor* t) {
  const char *key, *skipped;
  do {
    int64_t place[2] = {0, 0};
    if (next_is(f, '}')) {
      end_stored(f);
      return 0;
    }
    memset(t, 0, sizeof *t);
    t->name_length = read_string(f, &t->name);
    expect(f, ':');
    expect(f, '{');
    int is_metadata = same_text(t->name, t->name_length, "__metadata__");
    if (!next_is(f, '}')) {
      do {
        size_t n = read_string(f, &key);
        expect(f, ':');
        if (f->bad) break;
        if (is_metadata)
          read_string(f, &skipped);
        else if (same_text(key, n, "dtype"))
          t->dtype_length = read_string(f, &t->dtype);
        else if (same_text(key, n, "shape"))
          t->rank = read_numbers(f, t->sizes, kMostDims);
        else if (same_text(key, n, "data_offsets"))
          f->bad |= read_numbers(f, place, 2) != 2;
        else
          f->bad = 1;
      } while (next_is(f, ','));
      expect(f, '}');
    }
    if (!next_is(f, ',')) {
      skip_space(f);
      if (f->at >= f->end || *f->at != '}') f->bad = 1;
    }
    if (place[0] > place[1] || (uint64_t)place[1] > f->data_bytes) f->bad = 1;
    if (f->bad) return 0;
    if (is_metadata) continue;
    t->data = f->data + place[0];
    t->bytes = (size_t)(place[1] - place[0]);
    f->taken += t->bytes;
    if ((size_t)place[1] > f->last) f->last = (size_t)place[1];
    return 1;
  } while (1);
}

/* What the header says of a tensor whose bytes begin at `at`: its length. `text` has room for kEntryText. */
static inline size_t stored_entry(char* text, int first, const char* name, const char* dtype, int32_t rank,
                                  const int64_t* sizes, size_t at, size_t bytes) {
  size_t n =
      (size_t)snprintf(text, kEntryText, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", first ? "{" : ",", name, dtype);
  for (int32_t d = 0; d < rank; ++d)
    n += (size_t)snprintf(text + n, kEntryText - n, "%s%lld", d ? "," : "", (long long)sizes[d]);
  return n + (size_t)snprintf(text + n, kEntryText - n, "],\"data_offsets\":[%zu,%zu]}", at, at + bytes);
}

#endif
