/* The `main` of an exported executable: reads inputs from a safetensors file and writes the outputs to another one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "export/alone/program.h"

typedef struct {
  char* bytes;
  size_t size;
} File;

static void stop(const char* what, const char* name) {
  fprintf(stderr, "%s%s%s\n", name, *name ? ": " : "", what);
  exit(1);
}
static void* room(size_t bytes) {
  void* p = NULL;
  if (posix_memalign(&p, 64, bytes + 64)) stop("there is no memory", "");
  return p;
}

static File read_file(const char* path) {
  FILE* f = fopen(path, "rb");
  if (!f) stop(strerror(errno), path);
  File out = {NULL, 0};
  long size;
  if (fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0 || fseek(f, 0, SEEK_SET)) stop("it cannot be read", path);
  out.size = (size_t)size;
  out.bytes = room(out.size);
  if (fread(out.bytes, 1, out.size, f) != out.size) stop("it cannot be read", path);
  fclose(f);
  out.bytes[out.size] = 0;
  return out;
}

/* ---- The JSON of a safetensors header: a dictionary of names, each with a flat one. Every step checks the end. */

typedef struct {
  const char *at, *end, *file;
} Reader;

static void bad(const Reader* r) { stop("no safetensors file", r->file); }
static void space(Reader* r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t')) ++r->at;
}
static int next_is(Reader* r, char c) {
  space(r);
  if (r->at >= r->end || *r->at != c) return 0;
  ++r->at;
  return 1;
}
static void expect(Reader* r, char c) {
  if (!next_is(r, c)) bad(r);
}
/* A string without its quotes; escapes stay as they are. */
static size_t string(Reader* r, const char** begin) {
  expect(r, '"');
  *begin = r->at;
  while (r->at < r->end && *r->at != '"') r->at += *r->at == '\\' ? 2 : 1;
  if (r->at >= r->end) bad(r);
  return (size_t)(r->at++ - *begin);
}
static long long number(Reader* r) {
  space(r);
  long long n = 0;
  int digits = 0;
  while (r->at < r->end && *r->at >= '0' && *r->at <= '9' && digits < 18) {
    n = n * 10 + (*r->at++ - '0');
    ++digits;
  }
  if (!digits) bad(r);
  return n;
}
static int numbers(Reader* r, long long* out, int most) {
  int count = 0;
  expect(r, '[');
  if (next_is(r, ']')) return 0;
  do {
    if (count == most) bad(r);
    out[count++] = number(r);
  } while (next_is(r, ','));
  expect(r, ']');
  return count;
}
static void skip_flat(Reader* r) {
  const char* s;
  expect(r, '{');
  if (next_is(r, '}')) return;
  do {
    string(r, &s);
    expect(r, ':');
    string(r, &s);
  } while (next_is(r, ','));
  expect(r, '}');
}
static int same(const char* a, size_t n, const char* b) { return strlen(b) == n && memcmp(a, b, n) == 0; }

/* The input that a name stands for: its own, or "in0", "in1", … */
static int32_t input_of(const char* name, size_t n) {
  char plain[24];
  for (int32_t i = 0; i < alone_inputs(); ++i) {
    snprintf(plain, sizeof plain, "in%d", (int)i);
    if (same(name, n, alone_input_name(i)) || same(name, n, plain)) return i;
  }
  return -1;
}

static void read_inputs(const char* path, alone_tensor* in) {
  File file = read_file(path);
  uint64_t head = 0;
  if (file.size >= 8) memcpy(&head, file.bytes, 8);
  if (file.size < 8 || head > file.size - 8) stop("no safetensors file", path);
  char* data = file.bytes + 8 + head;
  size_t data_size = file.size - 8 - head;
  Reader r = {file.bytes + 8, data, path};
  expect(&r, '{');
  if (!next_is(&r, '}')) do {
      const char *name, *key, *dtype = "";
      size_t length = string(&r, &name), dtype_length = 0;
      long long sizes[8], place[2] = {0, 0};
      int rank = 0;
      expect(&r, ':');
      if (same(name, length, "__metadata__")) {
        skip_flat(&r);
        continue;
      }
      expect(&r, '{');
      do {
        size_t n = string(&r, &key);
        expect(&r, ':');
        if (same(key, n, "dtype"))
          dtype_length = string(&r, &dtype);
        else if (same(key, n, "shape"))
          rank = numbers(&r, sizes, 8);
        else if (same(key, n, "data_offsets"))
          numbers(&r, place, 2);
        else
          bad(&r);
      } while (next_is(&r, ','));
      expect(&r, '}');
      int32_t i = input_of(name, length);
      if (i < 0) continue;
      if (!same(dtype, dtype_length, alone_input_dtype(i)) || rank != alone_input_rank(i)) {
        fprintf(stderr, "%s: input '%s' is %.*s with %d dimensions, expected %s with %d\n", path, alone_input_name(i),
                (int)dtype_length, dtype, rank, alone_input_dtype(i), (int)alone_input_rank(i));
        exit(1);
      }
      if (place[0] > place[1] || (size_t)place[1] > data_size) bad(&r);
      in[i].bytes = (size_t)(place[1] - place[0]);
      in[i].data = room(in[i].bytes);
      memcpy(in[i].data, data + place[0], in[i].bytes);
      for (int d = 0; d < rank; ++d) in[i].sizes[d] = sizes[d];
    } while (next_is(&r, ','));
  free(file.bytes);
  for (int32_t i = 0; i < alone_inputs(); ++i)
    if (!in[i].data) {
      fprintf(stderr, "%s: there is no input '%s' (or in%d)\n", path, alone_input_name(i), (int)i);
      exit(1);
    }
}

static void write_outputs(const char* path, const alone_tensor* out) {
  size_t most = 64 + 400 * (size_t)alone_outputs(), used = 0, at = 0;
  char* head = room(most);
  used += (size_t)snprintf(head + used, most - used, "{");
  for (int32_t o = 0; o < alone_outputs(); ++o) {
    used += (size_t)snprintf(head + used, most - used, "%s\"out%d\":{\"dtype\":\"%s\",\"shape\":[", o ? "," : "", (int)o,
                             alone_output_dtype(o));
    for (int32_t d = 0; d < alone_output_rank(o); ++d)
      used += (size_t)snprintf(head + used, most - used, "%s%lld", d ? "," : "", (long long)out[o].sizes[d]);
    used += (size_t)snprintf(head + used, most - used, "],\"data_offsets\":[%zu,%zu]}", at, at + out[o].bytes);
    at += out[o].bytes;
  }
  used += (size_t)snprintf(head + used, most - used, "}");
  while (used % 8) head[used++] = ' ';
  FILE* f = fopen(path, "wb");
  if (!f) stop(strerror(errno), path);
  uint64_t size = used;
  int good = fwrite(&size, 8, 1, f) == 1 && fwrite(head, 1, used, f) == used;
  for (int32_t o = 0; o < alone_outputs(); ++o)
    if (out[o].bytes) good = good && fwrite(out[o].data, 1, out[o].bytes, f) == out[o].bytes;
  if (fclose(f) || !good) stop("it cannot be written", path);
  free(head);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char kUsage[] =
    "IN.safetensors OUT.safetensors [--weights FILE] [--level 0|1|2] [--repeat N]\n"
    "  inputs by their names, or in0, in1, …; outputs are out0, out1, …\n"
    "  --weights  where they lie beside the program; else PROGRAM.weights\n"
    "  --level    no better code than for any x86-64 (0), AVX2 (1), AVX-512 (2)\n"
    "  --repeat   runs N times and says the fastest";

int main(int argc, char** argv) {
  const char *paths[2] = {NULL, NULL}, *weights = NULL;
  long level = 2, repeat = 0;
  int count = 0;
  for (int i = 1; i < argc; ++i) {
    const char* value = i + 1 < argc ? argv[i + 1] : NULL;
    if (!strcmp(argv[i], "--weights") && value)
      weights = value, ++i;
    else if (!strcmp(argv[i], "--level") && value)
      level = strtol(value, NULL, 10), ++i;
    else if (!strcmp(argv[i], "--repeat") && value)
      repeat = strtol(value, NULL, 10), ++i;
    else if (count < 2 && strncmp(argv[i], "--", 2))
      paths[count++] = argv[i];
    else
      count = 3;
  }
  if (count != 2) {
    fprintf(stderr, "usage: %s %s\n", argv[0], kUsage);
    return 2;
  }
  alone_context c;
  alone_status status = alone_open(&c, weights);
  if (status == ALONE_FILE && !weights) {
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 16);
    if (n > 0) {
      strcpy(path + n, ".weights");
      status = alone_open(&c, path);
    }
  }
  if (status) stop(c.message, argv[0]);
  if (level < c.level && level >= 0) c.level = (int32_t)level;
  alone_tensor* in = calloc((size_t)alone_inputs() + 1, sizeof *in);
  alone_tensor* out = calloc((size_t)alone_outputs() + 1, sizeof *out);
  if (!in || !out) stop("there is no memory", argv[0]);
  c.state = room(alone_state_bytes());
  if (alone_reset(&c)) stop(c.message, argv[0]);
  read_inputs(paths[0], in);
  if (alone_memory(&c, in, &c.memory_bytes) || alone_sizes(&c, in, out)) stop(c.message, argv[0]);
  c.memory = room(c.memory_bytes);
  for (int32_t o = 0; o < alone_outputs(); ++o) out[o].data = room(out[o].bytes);
  double best = -1;
  for (long k = 0; k < (repeat > 0 ? repeat : 1); ++k) {
    double start = now();
    if (alone_run(&c, in, out)) stop(c.message, argv[0]);
    double took = now() - start;
    if (best < 0 || took < best) best = took;
  }
  if (repeat > 0) printf("%.3f ms\n", best * 1e3);
  write_outputs(paths[1], out);
  return 0;
}
