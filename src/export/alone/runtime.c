/* Runs the plan of an exported program: needs the C library only, and never allocates. */
#include "export/alone/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/alone/safetensors.h"
#include "export/alone/weights.h"

#define HIDDEN __attribute__((visibility("hidden")))
/* Put in by the export. */
extern HIDDEN const uint8_t alone_code[];
extern HIDDEN const int64_t alone_plan[];
extern HIDDEN const char alone_text[];
extern HIDDEN const uint8_t alone_weights[];

typedef const int64_t* Words;

static size_t aligned(size_t n) { return (n + 63) & ~(size_t)63; }
static size_t add(size_t a, size_t b) { return a > SIZE_MAX - b ? SIZE_MAX : a + b; }

#define FAIL(context, status, ...) (snprintf((context)->message, sizeof(context)->message, __VA_ARGS__), (status))

static size_t words_bytes(void) {
  return 8 * (size_t)(alone_plan[kBuffers] + alone_plan[kSymbols] + alone_plan[kValues] + alone_plan[kCounts] +
                      alone_plan[kSlots]);
}

/* A variant is {level, stages}, a stage {words behind this one, words from this one to its steps, …}; more is said of them below. */
static Words variant_at(int64_t v) { return alone_plan + alone_plan[kFirstVariant + v]; }
static int64_t level_at(int64_t v) { return variant_at(v)[0]; }
static int64_t stages_of(int64_t v) { return variant_at(v)[1]; }
enum { kStageHead = 2 };
static Words first_stage(int64_t v) { return variant_at(v) + 2; }
static Words next_stage(Words stage) { return stage + 1 + stage[0]; }
static Words steps_of(Words stage) { return stage + stage[1]; }

static int64_t least_level(void) {
  int64_t least = level_at(0);
  for (int64_t v = 1; v < alone_plan[kVariants]; ++v)
    if (level_at(v) < least) least = level_at(v);
  return least;
}

/* Writes all of it. */
static int put(int fd, const char* bytes, size_t n) {
  while (n > 0) {
    ssize_t done = write(fd, bytes, n);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return 0;
    bytes += done;
    n -= (size_t)done;
  }
  return 1;
}

#include "export/alone/steps.h"

/* ---- Inputs and outputs: {name, dtype, bytes of an element, rank}, and an input's dimensions {size or -1, least, greatest, input and
   dimension of the same size or -1}. */

static Words record(int32_t i, int64_t from, int64_t count) {
  Words at = alone_plan + alone_plan[from];
  if (i < 0 || i >= alone_plan[count]) return NULL;
  for (; i > 0; --i) at += 4 + (from == kInputAt ? 5 * at[3] : 0);
  return at;
}
int32_t alone_inputs(void) { return (int32_t)alone_plan[kInputs]; }
int32_t alone_outputs(void) { return (int32_t)alone_plan[kOutputs]; }
static const char* text_of(Words r, int field) { return r ? alone_text + r[field] : ""; }
const char* alone_input_name(int32_t i) { return text_of(record(i, kInputAt, kInputs), 0); }
const char* alone_input_dtype(int32_t i) { return text_of(record(i, kInputAt, kInputs), 1); }
const char* alone_output_dtype(int32_t i) { return text_of(record(i, kOutputAt, kOutputs), 1); }
static int32_t rank_of(Words r) { return r ? (int32_t)r[3] : -1; }
int32_t alone_input_rank(int32_t i) { return rank_of(record(i, kInputAt, kInputs)); }
int32_t alone_output_rank(int32_t i) { return rank_of(record(i, kOutputAt, kOutputs)); }

static alone_status check_inputs(alone_context* c, const alone_tensor* in, int with_data) {
  Words at = alone_plan + alone_plan[kInputAt];
  for (int64_t i = 0; i < alone_plan[kInputs]; ++i) {
    const char* name = alone_text + at[0];
    int64_t bytes = at[2], rank = at[3];
    at += 4;
    for (int64_t d = 0; d < rank; ++d, at += 5) {
      long long is = in[i].sizes[d];
      if (at[0] >= 0 && is != at[0])
        return FAIL(c, ALONE_INPUT, "input '%s': size %lld is %lld, expected %lld", name, (long long)d, is,
                    (long long)at[0]);
      if (is < at[1] || is > at[2])
        return FAIL(c, ALONE_INPUT, "input '%s': size %lld is %lld, expected %lld to %lld", name, (long long)d, is,
                    (long long)at[1], (long long)at[2]);
      if (at[3] >= 0 && is != in[at[3]].sizes[at[4]])
        return FAIL(c, ALONE_INPUT, "input '%s': size %lld is %lld, expected %lld as in input '%s'", name, (long long)d,
                    is, (long long)in[at[3]].sizes[at[4]], alone_input_name((int32_t)at[3]));
      if (__builtin_mul_overflow(bytes, (int64_t)is, &bytes)) bytes = INT64_MAX;
    }
    if (!with_data) continue;
    if (bytes > 0 && (!in[i].data || in[i].bytes < (size_t)bytes))
      return FAIL(c, ALONE_INPUT, "input '%s': it has %zu bytes, expected %lld", name,
                  in[i].data ? in[i].bytes : (size_t)0, (long long)bytes);
    alone_status status = check_address(c, in[i].data, "input", (int32_t)i);
    if (status) return status;
  }
  return ALONE_OK;
}

#include "export/alone/run.h"

/* ---- Contexts. */

/* Where the head says that they are this program's. */
static alone_status take_weights(alone_context* c, const void* weights, size_t bytes) {
  int64_t id = 0;
  if (bytes == (size_t)alone_plan[kWeightBytes] && bytes >= kWeightHead)
    memcpy(&id, (const char*)weights + 8, sizeof id);
  if (bytes != (size_t)alone_plan[kWeightBytes] || id != alone_plan[kWeightId])
    return FAIL(c, ALONE_FILE, "these weights are not this program's");
  return place_weights(c, weights, bytes);
}

static alone_status begin(alone_context* c) {
  memset(c, 0, sizeof *c);
  return begin_device(c);
}

/* A context that did not open has nothing. */
static alone_status opened(alone_context* c, alone_status status) {
  if (!status) return status;
  end_device(c);
  c->weights = NULL;
  return status;
}

alone_status alone_open_memory(alone_context* c, const void* weights, size_t bytes) {
  alone_status status = begin(c);
  if (status) return status;
  status = (uintptr_t)weights % 64 ? FAIL(c, ALONE_FILE, "the weights are not aligned to 64 bytes")
                                   : take_weights(c, weights, bytes);
  return opened(c, status);
}

static alone_status map_file(alone_context* c, const char* file, void** data, size_t* size) {
  int fd = open(file, O_RDONLY | O_CLOEXEC);
  struct stat st;
  if (fd < 0 || fstat(fd, &st) != 0 || st.st_size <= 0) {
    if (fd >= 0) close(fd);
    return FAIL(c, ALONE_FILE, "%s cannot be read", file);
  }
  *size = (size_t)st.st_size;
  *data = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  return *data == MAP_FAILED ? FAIL(c, ALONE_FILE, "%s cannot be mapped", file) : ALONE_OK;
}

static alone_status open_inside(alone_context* c) {
  size_t bytes = (size_t)alone_plan[kWeightBytes];
  int64_t inside;
  if (!bytes) return ALONE_OK;
  memcpy(&inside, alone_weights, sizeof inside);
  if (!inside) return FAIL(c, ALONE_FILE, "the weights lie beside the program: open it with their file");
  return take_weights(c, alone_weights, bytes);
}

static alone_status open_file(alone_context* c, const char* file) {
  void* data;
  size_t size;
  alone_status status = map_file(c, file, &data, &size);
  if (status) return status;
  status = take_weights(c, data, size);
  if (!status && alone_hash((const char*)data + kWeightHead, size - kWeightHead) != (uint64_t)alone_plan[kWeightId])
    status = FAIL(c, ALONE_FILE, "these weights are damaged: their bytes are not those that the export wrote");
  if (status || c->weights != data)
    munmap(data, size);
  else
    c->mapped = data;
  return status;
}

alone_status alone_open(alone_context* c, const char* file) {
  alone_status status = begin(c);
  if (status) return status;
  return opened(c, file ? open_file(c, file) : open_inside(c));
}

void alone_close(alone_context* c) {
  if (c->mapped) munmap(c->mapped, (size_t)alone_plan[kWeightBytes]);
  end_device(c);
  c->mapped = NULL;
  c->weights = NULL;
}

size_t alone_state_bytes(void) { return (size_t)alone_plan[kStateBytes]; }

static alone_status need_state(alone_context* c) {
  if (alone_plan[kStateBytes] && !c->state) return FAIL(c, ALONE_MEMORY, "there is no memory for the state");
  return ALONE_OK;
}

alone_status alone_reset(alone_context* c) {
  alone_status status = need_state(c);
  if (!status) status = need_weights(c);
  if (!status) status = enter(c);
  if (status) return status;
  Words at = alone_plan + alone_plan[kStateAt];
  for (int64_t n = *at++; n > 0; --n, at += 3) {
    char* to = (char*)c->state + at[0];
    if (at[1])
      copy_inside(c, to, (const char*)c->weights + at[1], (size_t)at[2]);
    else
      clear(c, to, (size_t)at[2]);
  }
  return leave(c);
}

/* ---- The state by name: tensors {name, dtype, bytes of an element, rank, place, sizes}. */

static Words state_record(int32_t i) {
  Words at = alone_plan + alone_plan[kStateTensorAt];
  if (i < 0 || i >= alone_plan[kStates]) return NULL;
  for (; i > 0; --i) at += 5 + at[3];
  return at;
}
int32_t alone_states(void) { return (int32_t)alone_plan[kStates]; }
const char* alone_state_name(int32_t i) { return text_of(state_record(i), 0); }
const char* alone_state_dtype(int32_t i) { return text_of(state_record(i), 1); }
int32_t alone_state_rank(int32_t i) { return rank_of(state_record(i)); }

static size_t state_bytes(Words r) {
  int64_t bytes = r[2];
  for (int64_t d = 0; d < r[3]; ++d) bytes *= r[5 + d];
  return (size_t)bytes;
}

alone_status alone_state(alone_context* c, int32_t i, alone_tensor* t) {
  Words r = state_record(i);
  if (!r) return FAIL(c, ALONE_INPUT, "there is no tensor %d of the state", (int)i);
  alone_status status = need_state(c);
  if (status) return status;
  t->data = (char*)c->state + r[4];
  t->bytes = state_bytes(r);
  for (int64_t d = 0; d < r[3]; ++d) t->sizes[d] = r[5 + d];
  return ALONE_OK;
}

/* The header of the state's file, up to a multiple of 8: its length; written where fd is not negative. */
static size_t put_header(int fd, int* good) {
  char text[kEntryText];
  size_t length = 0, at = 0;
  Words r = alone_plan + alone_plan[kStateTensorAt];
  for (int64_t i = 0; i < alone_plan[kStates]; ++i, r += 5 + r[3]) {
    size_t n = stored_entry(text, i == 0, alone_text + r[0], alone_text + r[1], (int32_t)r[3], r + 5, at, state_bytes(r));
    at += state_bytes(r);
    length += n;
    if (fd >= 0 && *good) *good = put(fd, text, n);
  }
  const char* end = length ? "}" : "{}";
  memset(text, ' ', 8);
  size_t n = strlen(end), whole = (length + n + 7) / 8 * 8;
  memcpy(text, end, n);
  if (fd >= 0 && *good) *good = put(fd, text, whole - length);
  return whole;
}

alone_status alone_save(alone_context* c, const char* file) {
  char fresh[4096];
  int good = 1;
  alone_status status = need_state(c);
  if (!status) status = enter(c);
  if (status) return status;
  if (snprintf(fresh, sizeof fresh, "%s.new", file) >= (int)sizeof fresh)
    return FAIL(c, ALONE_FILE, "the file's name is too long");
  int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return FAIL(c, ALONE_FILE, "%s cannot be written", file);
  uint64_t head = put_header(-1, &good);
  good = put(fd, (const char*)&head, 8);
  put_header(fd, &good);
  Words r = alone_plan + alone_plan[kStateTensorAt];
  for (int64_t i = 0; i < alone_plan[kStates] && good; ++i, r += 5 + r[3])
    good = write_out(c, fd, (const char*)c->state + r[4], state_bytes(r));
  good = fsync(fd) == 0 && good;
  good = close(fd) == 0 && good;
  if (good && rename(fresh, file) == 0) return ALONE_OK;
  unlink(fresh);
  status = leave(c); /* what the device failed with, if it did */
  if (status) return status;
  return FAIL(c, ALONE_FILE, "%s cannot be written", file);
}

/* The tensor of this name, which is mostly the next one. */
static int find_stored(const StoredFile* all, StoredFile* at, const char* name, StoredTensor* t) {
  for (int again = 0; again < 2; ++again, *at = *all)
    while (next_stored(at, t))
      if (same_text(t->name, t->name_length, name)) return 1;
  return 0;
}

static alone_status load_state(alone_context* c, const char* file, const StoredFile* all, int copy) {
  StoredFile at = *all;
  Words r = alone_plan + alone_plan[kStateTensorAt];
  for (int64_t i = 0; i < alone_plan[kStates]; ++i, r += 5 + r[3]) {
    StoredTensor t;
    const char* name = alone_text + r[0];
    if (!find_stored(all, &at, name, &t)) return FAIL(c, ALONE_FILE, "%s: there is no tensor '%s'", file, name);
    int same = same_text(t.dtype, t.dtype_length, alone_text + r[1]) && t.rank == r[3] && t.bytes == state_bytes(r);
    for (int d = 0; d < t.rank && same; ++d) same = t.sizes[d] == r[5 + d];
    if (!same)
      return FAIL(c, ALONE_FILE, "%s: tensor '%s' has another dtype or other sizes than the program's", file, name);
    if (copy) copy_in(c, (char*)c->state + r[4], t.data, t.bytes);
  }
  return ALONE_OK;
}

alone_status alone_load(alone_context* c, const char* file) {
  void* data;
  size_t size;
  alone_status status = need_state(c);
  if (!status) status = enter(c);
  if (!status) status = map_file(c, file, &data, &size);
  if (status) return status;
  StoredFile all = read_stored(data, size), at = all;
  StoredTensor t;
  while (next_stored(&at, &t)) {
  }
  status = at.bad ? FAIL(c, ALONE_FILE, "%s: no safetensors file", file) : load_state(c, file, &all, 0);
  if (!status) status = load_state(c, file, &all, 1);
  finish_copies(c);
  munmap(data, size);
  return status ? status : leave(c);
}
