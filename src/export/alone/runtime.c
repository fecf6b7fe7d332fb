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
  return 8 * (size_t)(alone_plan[kBuffers] + alone_plan[kSymbols] + alone_plan[kValues] + alone_plan[kSlots]);
}

static int64_t level_at(int64_t variant) { return alone_plan[alone_plan[kFirstVariant + variant]]; }
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

/* ---- Variants: {level, sizes that are fixed, sizes that are equal, symbols read from inputs, those that are known, facts, other symbols, outputs, buffers,
   steps}. */

/* Whether the variant is for these sizes as far as it has no symbols for them; else the cursor is anywhere. */
static int bind(Words* at, const alone_tensor* in, int64_t* symbols) {
  for (int64_t n = *(*at)++; n > 0; --n, *at += 3)
    if (in[(*at)[0]].sizes[(*at)[1]] != (*at)[2]) return 0;
  for (int64_t n = *(*at)++; n > 0; --n, *at += 4)
    if (in[(*at)[0]].sizes[(*at)[1]] != in[(*at)[2]].sizes[(*at)[3]]) return 0;
  for (int64_t n = *(*at)++; n > 0; --n, *at += 3) symbols[(*at)[0]] = in[(*at)[1]].sizes[(*at)[2]];
  for (int64_t n = *(*at)++; n > 0; --n, *at += 2) symbols[(*at)[0]] = (*at)[1];
  return 1;
}

/* Whether all facts hold; the cursor goes behind them. */
static int holds(Words* at, const int64_t* symbols, int64_t* values) {
  int good = 1;
  for (int64_t n = *(*at)++; n > 0; --n) {
    int64_t equal = *(*at)++;
    int64_t left = size_at(at, symbols, values), right = size_at(at, symbols, values);
    good &= (left == right) == (equal != 0);
  }
  return good;
}

/* The variant for these sizes, its arena next; null where there is none. */
static Words choose(const alone_context* c, const alone_tensor* in, int64_t* symbols, int64_t* values) {
  for (int64_t v = 0; v < alone_plan[kVariants]; ++v) {
    Words at = alone_plan + alone_plan[kFirstVariant + v];
    if (*at++ > c->level) continue;
    if (bind(&at, in, symbols) && holds(&at, symbols, values)) return at;
  }
  return NULL;
}

/* Where there is no work memory yet. */
enum { kFew = 512 };
static alone_status variant_of(alone_context* c, const alone_tensor* in, int64_t* few, Words* at) {
  alone_status status = check_inputs(c, in, 0);
  if (status) return status;
  *at = choose(c, in, few, few + alone_plan[kSymbols]);
  if (!*at) return FAIL(c, ALONE_INPUT, "the program has no code for inputs of these sizes together");
  return ALONE_OK;
}

/* Past outputs and buffers, to the steps. */
static void skip_to_steps(Words* at) {
  for (int64_t o = 0; o < alone_plan[kOutputs]; ++o)
    for (int64_t d = alone_output_rank((int32_t)o); d > 0; --d) skip_size(at);
  skip_buffers(at);
}

static size_t total(size_t arena, size_t scratch, int32_t threads) {
  if (scratch && (size_t)threads > SIZE_MAX / scratch) return SIZE_MAX;
  size_t all = add(words_in_memory(), arena > SIZE_MAX - 64 ? SIZE_MAX : aligned(arena));
  return add(add(all, scratch * (size_t)threads), 64);
}

alone_status alone_memory(alone_context* c, const alone_tensor* in, size_t* bytes) {
  int64_t few[kFew];
  Words at;
  alone_status status = variant_of(c, in, few, &at);
  if (status) return status;
  int64_t* values = few + alone_plan[kSymbols];
  size_t arena = arena_of(&at, few, values);
  skip_to_steps(&at);
  *bytes = total(arena, scratch_of(at, few, values), threads_of(c));
  return ALONE_OK;
}

static alone_status output_sizes(Words* at, alone_tensor* out, const int64_t* symbols, int64_t* values, int fill,
                                 alone_context* c) {
  for (int32_t o = 0; o < alone_outputs(); ++o) {
    Words r = record(o, kOutputAt, kOutputs);
    int64_t bytes = r[2];
    for (int64_t d = 0; d < r[3]; ++d) {
      out[o].sizes[d] = size_at(at, symbols, values);
      if (__builtin_mul_overflow(bytes, out[o].sizes[d], &bytes)) bytes = INT64_MAX;
    }
    if (fill)
      out[o].bytes = (size_t)bytes;
    else if (bytes > 0 && (!out[o].data || out[o].bytes < (size_t)bytes))
      return FAIL(c, ALONE_MEMORY, "output %d has %zu bytes, expected %lld", (int)o,
                  out[o].data ? out[o].bytes : (size_t)0, (long long)bytes);
    alone_status status = fill ? ALONE_OK : check_address(c, out[o].data, "output", o);
    if (status) return status;
  }
  return ALONE_OK;
}

alone_status alone_sizes(alone_context* c, const alone_tensor* in, alone_tensor* out) {
  int64_t few[kFew];
  Words at;
  alone_status status = variant_of(c, in, few, &at);
  if (status) return status;
  int64_t* values = few + alone_plan[kSymbols];
  arena_of(&at, few, values);
  return output_sizes(&at, out, few, values, 1, c);
}

/* ---- A run. */

static alone_status need_weights(alone_context* c) {
  if (alone_plan[kWeightBytes] && !c->weights) return FAIL(c, ALONE_FILE, "the program is not open, so it has no weights");
  return ALONE_OK;
}

alone_status alone_run(alone_context* c, const alone_tensor* in, alone_tensor* out) {
  alone_status status = need_weights(c);
  if (!status) status = check_inputs(c, in, 1);
  if (!status) status = enter(c);
  if (status) return status;
  if (!c->memory || c->memory_bytes < words_in_memory() + 64)
    return FAIL(c, ALONE_MEMORY, "there are %zu bytes of work memory; alone_memory says how many it takes",
                c->memory ? c->memory_bytes : (size_t)0);
  if (alone_plan[kStateBytes] && !c->state)
    return FAIL(c, ALONE_MEMORY, "the program has a state: it takes %lld bytes for it",
                (long long)alone_plan[kStateBytes]);
  if (alone_plan[kStateBytes]) status = check_address(c, c->state, "the state", -1);
  if (status) return status;
  size_t lost = aligned((size_t)(uintptr_t)c->memory) - (size_t)(uintptr_t)c->memory;
  char* memory = (char*)c->memory + lost;
  Work w = {.context = c, .buffers = (void**)words_of(c, memory), .threads = threads_of(c)};
  w.symbols = (int64_t*)(w.buffers + alone_plan[kBuffers]);
  w.values = w.symbols + alone_plan[kSymbols];
  w.slots = (uint64_t*)(w.values + alone_plan[kValues]);
  Words at = choose(c, in, w.symbols, w.values);
  if (!at) return FAIL(c, ALONE_INPUT, "the program has no code for inputs of these sizes together");
  size_t arena_bytes = arena_of(&at, w.symbols, w.values);
  status = output_sizes(&at, out, w.symbols, w.values, 0, c);
  if (status) return status;
  Words steps = at;
  skip_buffers(&steps);
  w.scratch_bytes = scratch_of(steps, w.symbols, w.values);
  size_t needs = total(arena_bytes, w.scratch_bytes, w.threads);
  if (c->memory_bytes < needs)
    return FAIL(c, ALONE_MEMORY, "there are %zu bytes of work memory, %zu are needed", c->memory_bytes, needs);

  char* arena = memory + words_in_memory();
  w.scratch = arena + aligned(arena_bytes);
  int64_t buffers = *at++;
  for (int64_t b = 0; b < buffers; ++b) {
    int64_t from = *at++, begin = from == kFromArena ? w.symbols[*at++] : 0;
    int64_t place = begin + size_at(&at, w.symbols, w.values);
    switch (from) {
      case kFromInput: w.buffers[b] = in[place].data; break;
      case kFromWeights: w.buffers[b] = (char*)(uintptr_t)c->weights + place; break;
      case kFromState: w.buffers[b] = (char*)c->state + place; break;
      case kFromOutput: w.buffers[b] = out[place].data; break;
      case kFromPrepared: w.buffers[b] = (char*)c->prepared + place; break;
      case kFromLoop: w.buffers[b] = NULL; break;
      default: w.buffers[b] = arena + place;
    }
  }
  status = run_steps(&w, steps + 1, steps + 1 + *steps);
  return status ? status : leave(c);
}

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
