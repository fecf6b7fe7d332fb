/* The `main` of an exported executable: reads inputs from a safetensors file or from .npy files and writes the outputs to such. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "export/alone/npy.h"
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
  if (bytes > SIZE_MAX - 64 || posix_memalign(&p, 64, bytes + 64)) stop("there is no memory", "");
  return p;
}

/* A tensor's memory for runs, `in` and `out` of it: the host's, or the GPU's with copies of the host's. */
#ifdef ALONE_CUDA
static void* run_room(alone_context* c, size_t bytes) {
  void* p;
  if (alone_allocate(c, bytes, &p)) stop(c->message, "");
  return p;
}
static void move_in(alone_context* c, alone_tensor* t) {
  void* there = run_room(c, t->bytes);
  if (alone_upload(c, there, t->data, t->bytes)) stop(c->message, "");
  free(t->data);
  t->data = there;
}
static void move_out(alone_context* c, alone_tensor* t) {
  void* here = room(t->bytes);
  if (alone_download(c, here, t->data, t->bytes)) stop(c->message, "");
  alone_free(c, t->data);
  t->data = here;
}
static alone_status finish(alone_context* c) { return alone_wait(c); }
#else
static void* run_room(alone_context* c, size_t bytes) {
  (void)c;
  return room(bytes);
}
static void move_in(alone_context* c, alone_tensor* t) { (void)c, (void)t; }
static void move_out(alone_context* c, alone_tensor* t) { (void)c, (void)t; }
static alone_status finish(alone_context* c) { return (void)c, ALONE_OK; }
#endif

static File read_file(const char* path) {
  FILE* f = fopen(path, "rb");
  if (!f) stop(strerror(errno), path);
  File out = {NULL, 0};
  long size = 0;
  if (fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0 || size == LONG_MAX || fseek(f, 0, SEEK_SET))
    stop("it cannot be read", path); /* a folder's size is the largest number */
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

static void wrong_input(const char* path, int32_t i, const char* dtype, size_t length, int rank) {
  fprintf(stderr, "%s: input '%s' is %.*s with %d dimensions, expected %s with %d\n", path, alone_input_name(i),
          (int)length, dtype, rank, alone_input_dtype(i), (int)alone_input_rank(i));
  exit(1);
}

static void read_array(const char* path, int32_t i, alone_tensor* in) {
  File file = read_file(path);
  NpyArray a;
  if (!read_npy(file.bytes, file.size, &a)) stop("no .npy file", path);
  const char* type = npy_type(alone_input_dtype(i));
  if (!type) stop("NumPy has no dtype for this input; give safetensors", path);
  if (strcmp(a.type, type) || a.rank != alone_input_rank(i)) wrong_input(path, i, a.type, strlen(a.type), a.rank);
  size_t width = (size_t)(type[2] - '0'), bytes = width;
  for (int d = 0; d < a.rank; ++d) {
    in->sizes[d] = a.sizes[d];
    if (__builtin_mul_overflow(bytes, (size_t)a.sizes[d], &bytes)) bytes = SIZE_MAX;
  }
  if (bytes != a.bytes) stop("its bytes are not those of its shape", path);
  in->bytes = bytes;
  in->data = room(bytes);
  copy_npy(in->data, &a, width);
  free(file.bytes);
}

static void write_array(const char* path, int32_t o, const alone_tensor* out) {
  char head[512];
  const char* type = npy_type(alone_output_dtype(o));
  if (!type) stop("NumPy has no dtype for this output; ask for safetensors", path);
  size_t n = npy_head(head, type, alone_output_rank(o), out->sizes);
  FILE* f = fopen(path, "wb");
  if (!f) stop(strerror(errno), path);
  int good = fwrite(head, 1, n, f) == n;
  if (out->bytes) good = good && fwrite(out->data, 1, out->bytes, f) == out->bytes;
  if (fclose(f) || !good) stop("it cannot be written", path);
}

static void read_inputs(const char* path, alone_tensor* in) {
  File file = read_file(path);
  StoredFile stored = read_stored(file.bytes, file.size);
  StoredTensor t;
  while (next_stored(&stored, &t)) {
    int32_t i = input_of(t.name, t.name_length);
    if (i < 0) continue;
    if (!same_text(t.dtype, t.dtype_length, alone_input_dtype(i)) || t.rank != alone_input_rank(i))
      wrong_input(path, i, t.dtype, t.dtype_length, t.rank);
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

/* Of an element, by its dtype's name: its bits stand at the end. */
static size_t width_of(const char* dtype) {
  const char* digits = dtype + strcspn(dtype, "0123456789");
  return *digits ? (size_t)strtol(digits, NULL, 10) / 8 : 1;
}

/* What a run gave, of what there was room for. */
static void keep_given(int32_t o, alone_tensor* out) {
  out->bytes = width_of(alone_output_dtype(o));
  for (int32_t d = 0; d < alone_output_rank(o); ++d) out->bytes *= (size_t)out->sizes[d];
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char kUsage[] =
    "IN.safetensors OUT.safetensors [--weights FILE] [--load FILE] [--save FILE] [--repeat N]"
#ifndef ALONE_CUDA
    " [--level 0|1|2]"
#endif
    "\n"
    "  inputs by their names, or in0, in1, …; outputs are out0, out1, …\n"
    "  in place of a safetensors file: IN.npy … for each input in order, OUT.npy … for each output\n"
    "  --weights  where they lie beside the program; else PROGRAM.weights\n"
    "  --load     what runs change, as another run saved it\n"
    "  --save     what the runs have made of it, as safetensors\n"
#ifndef ALONE_CUDA
    "  --level    no better code than for any processor (0), AVX2 (1), AVX-512 (2)\n"
#endif
    "  --repeat   runs N times and says the fastest";

static int is_npy(const char* path) {
  size_t n = strlen(path);
  return n > 4 && !strcmp(path + n - 4, ".npy");
}

int main(int argc, char** argv) {
  const char** paths = calloc((size_t)argc + 1, sizeof *paths);
  if (!paths) stop("there is no memory", argv[0]);
  const char *weights = NULL, *load = NULL, *save = NULL;
  long repeat = 0;
#ifndef ALONE_CUDA
  long level = 2;
#endif
  int count = 0, unknown = 0;
  for (int i = 1; i < argc; ++i) {
    const char* value = i + 1 < argc ? argv[i + 1] : NULL;
    if (!strcmp(argv[i], "--weights") && value)
      weights = value, ++i;
    else if (!strcmp(argv[i], "--load") && value)
      load = value, ++i;
    else if (!strcmp(argv[i], "--save") && value)
      save = value, ++i;
#ifndef ALONE_CUDA
    else if (!strcmp(argv[i], "--level") && value)
      level = strtol(value, NULL, 10), ++i;
#endif
    else if (!strcmp(argv[i], "--repeat") && value)
      repeat = strtol(value, NULL, 10), ++i;
    else if (strncmp(argv[i], "--", 2))
      paths[count++] = argv[i];
    else
      unknown = 1;
  }
  int arrays_in = count > 0 && is_npy(paths[0]), first_out = arrays_in ? alone_inputs() : 1;
  int arrays_out = count > first_out && is_npy(paths[first_out]);
  if (unknown || count != first_out + (arrays_out ? alone_outputs() : 1)) {
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
#ifndef ALONE_CUDA
  if (level < c.level && level >= 0) c.level = (int32_t)level;
#endif
  alone_tensor* in = calloc((size_t)alone_inputs() + 1, sizeof *in);
  alone_tensor* out = calloc((size_t)alone_outputs() + 1, sizeof *out);
  if (!in || !out) stop("there is no memory", argv[0]);
  c.state = run_room(&c, alone_state_bytes());
  if (alone_reset(&c) || (load && alone_load(&c, load))) stop(c.message, argv[0]);
  if (!arrays_in) read_inputs(paths[0], in);
  for (int32_t i = 0; arrays_in && i < alone_inputs(); ++i) read_array(paths[i], i, &in[i]);
  for (int32_t i = 0; i < alone_inputs(); ++i) move_in(&c, &in[i]);
  if (alone_memory(&c, in, &c.memory_bytes) || alone_sizes(&c, in, out)) stop(c.message, argv[0]);
  c.memory = run_room(&c, c.memory_bytes);
  for (int32_t o = 0; o < alone_outputs(); ++o) out[o].data = run_room(&c, out[o].bytes);
  double best = -1;
  for (long k = 0; k < (repeat > 0 ? repeat : 1); ++k) {
    double start = now();
    if (alone_run(&c, in, out) || finish(&c)) stop(c.message, argv[0]);
    double took = now() - start;
    if (best < 0 || took < best) best = took;
  }
  if (repeat > 0) printf("%.3f ms\n", best * 1e3);
  for (int32_t o = 0; o < alone_outputs(); ++o) {
    keep_given(o, &out[o]);
    move_out(&c, &out[o]);
  }
  if (!arrays_out) write_outputs(paths[first_out], out);
  for (int32_t o = 0; arrays_out && o < alone_outputs(); ++o) write_array(paths[first_out + o], o, &out[o]);
  if (save && alone_save(&c, save)) stop(c.message, argv[0]);
  return 0;
}
