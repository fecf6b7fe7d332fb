/* The `main` of an exported executable: reads inputs from a safetensors file and writes the outputs to another one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "export/alone/program.h"
#include "export/alone/safetensors.h"

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
  long size = 0;
  if (fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0 || fseek(f, 0, SEEK_SET)) stop("it cannot be read", path);
  out.size = (size_t)size;
  out.bytes = room(out.size);
  if (fread(out.bytes, 1, out.size, f) != out.size) stop("it cannot be read", path);
  fclose(f);
  out.bytes[out.size] = 0;
  return out;
}

/* The input that a name stands for: its own, or "in0", "in1", … */
static int32_t input_of(const char* name, size_t n) {
  char plain[24];
  for (int32_t i = 0; i < alone_inputs(); ++i) {
    snprintf(plain, sizeof plain, "in%d", (int)i);
    if (same_text(name, n, alone_input_name(i)) || same_text(name, n, plain)) return i;
  }
  return -1;
}

static void read_inputs(const char* path, alone_tensor* in) {
  File file = read_file(path);
  StoredFile stored = read_stored(file.bytes, file.size);
  StoredTensor t;
  while (next_stored(&stored, &t)) {
    int32_t i = input_of(t.name, t.name_length);
    if (i < 0) continue;
    if (!same_text(t.dtype, t.dtype_length, alone_input_dtype(i)) || t.rank != alone_input_rank(i)) {
      fprintf(stderr, "%s: input '%s' is %.*s with %d dimensions, expected %s with %d\n", path, alone_input_name(i),
              (int)t.dtype_length, t.dtype, t.rank, alone_input_dtype(i), (int)alone_input_rank(i));
      exit(1);
    }
    in[i].bytes = t.bytes;
    in[i].data = room(t.bytes);
    memcpy(in[i].data, t.data, t.bytes);
    for (int d = 0; d < t.rank; ++d) in[i].sizes[d] = t.sizes[d];
  }
  if (stored.bad) stop("no safetensors file", path);
  free(file.bytes);
  for (int32_t i = 0; i < alone_inputs(); ++i)
    if (!in[i].data) {
      fprintf(stderr, "%s: there is no input '%s' (or in%d)\n", path, alone_input_name(i), (int)i);
      exit(1);
    }
}

static void write_outputs(const char* path, const alone_tensor* out) {
  char* head = room(((size_t)alone_outputs() + 1) * kEntryText);
  size_t used = 0, at = 0;
  for (int32_t o = 0; o < alone_outputs(); ++o) {
    char name[24];
    snprintf(name, sizeof name, "out%d", (int)o);
    used += stored_entry(head + used, o == 0, name, alone_output_dtype(o), alone_output_rank(o), out[o].sizes, at,
                         out[o].bytes);
    at += out[o].bytes;
  }
  used += (size_t)sprintf(head + used, used ? "}" : "{}");
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
    "IN.safetensors OUT.safetensors [--weights FILE] [--load FILE] [--save FILE] [--level 0|1|2] [--repeat N]\n"
    "  inputs by their names, or in0, in1, …; outputs are out0, out1, …\n"
    "  --weights  where they lie beside the program; else PROGRAM.weights\n"
    "  --load     what runs change, as another run saved it\n"
    "  --save     what the runs have made of it, as safetensors\n"
    "  --level    no better code than for any x86-64 (0), AVX2 (1), AVX-512 (2)\n"
    "  --repeat   runs N times and says the fastest";

int main(int argc, char** argv) {
  const char *paths[2] = {NULL, NULL}, *weights = NULL, *load = NULL, *save = NULL;
  long level = 2, repeat = 0;
  int count = 0;
  for (int i = 1; i < argc; ++i) {
    const char* value = i + 1 < argc ? argv[i + 1] : NULL;
    if (!strcmp(argv[i], "--weights") && value)
      weights = value, ++i;
    else if (!strcmp(argv[i], "--load") && value)
      load = value, ++i;
    else if (!strcmp(argv[i], "--save") && value)
      save = value, ++i;
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
  if (alone_reset(&c) || (load && alone_load(&c, load))) stop(c.message, argv[0]);
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
  if (save && alone_save(&c, save)) stop(c.message, argv[0]);
  return 0;
}
