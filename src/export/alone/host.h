/* The processor as the device that a program runs on. Part of runtime.c, as cuda.h is where the device is a GPU: the same functions. */
#ifndef BRASA_ALONE_HOST_H
#define BRASA_ALONE_HOST_H

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <sched.h>

typedef void (*Kernel)(const uint64_t* slots, int64_t begin, int64_t end, void* scratch);

static int32_t level_of_cpu(void) {
#if defined(__x86_64__)
  unsigned a, b, c, d, low, high;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
  unsigned extended = b;
  __get_cpuid(1, &a, &b, &c, &d);
  if (!(c & bit_OSXSAVE) || !(c & bit_FMA) || !(c & bit_AVX) || !(c & bit_F16C)) return 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  unsigned avx2 = bit_AVX2 | bit_BMI | bit_BMI2;
  if ((low & 6) != 6 || (extended & avx2) != avx2) return 0;
  unsigned avx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL | bit_AVX512CD;
  return (low & 0xe6) == 0xe6 && (extended & avx512) == avx512 ? 2 : 1;
#else
  return 0;
#endif
}

/* ---- Contexts. */

/* Finds the best of the levels that the program has. */
static alone_status begin_device(alone_context* c) {
  c->threads = 1;
  c->level = level_of_cpu();
  int64_t least = least_level();
  if (c->level < least)
    return FAIL(c, ALONE_CPU, "the program was exported for processors with %s", least > 1 ? "AVX-512" : "AVX2");
  return ALONE_OK;
}
static alone_status enter(alone_context* c) { return (void)c, ALONE_OK; }
static alone_status leave(alone_context* c) { return (void)c, ALONE_OK; }

/* What is made of the weights once: a byte for each variant, which says whether it is made, then the variants' own. All contexts share it, and its pages are
   there when they are written. */
static struct {
  char* memory;
  int64_t users; /* contexts that are open */
  char busy;
} prepared;

static void hold_prepared(void) {
  while (__atomic_test_and_set(&prepared.busy, __ATOMIC_ACQUIRE)) sched_yield();
}
static void leave_prepared(void) { __atomic_clear(&prepared.busy, __ATOMIC_RELEASE); }

static alone_status take_prepared(alone_context* c) {
  size_t bytes = (size_t)alone_plan[kPreparedBytes];
  if (!bytes) return ALONE_OK;
  hold_prepared();
  if (!prepared.users) {
    void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    prepared.memory = memory == MAP_FAILED ? NULL : memory;
  }
  c->prepared = prepared.memory;
  prepared.users += c->prepared != NULL;
  leave_prepared();
  return c->prepared ? ALONE_OK : FAIL(c, ALONE_MEMORY, "there is no memory for %zu bytes made of the weights", bytes);
}

static void end_device(alone_context* c) {
  if (!c->prepared) return;
  hold_prepared();
  if (--prepared.users == 0) munmap(prepared.memory, (size_t)alone_plan[kPreparedBytes]);
  leave_prepared();
  c->prepared = NULL;
}

/* Where runs read the weights that lie at this address. */
static alone_status place_weights(alone_context* c, const void* weights, size_t bytes) {
  (void)bytes;
  c->weights = weights;
  return take_prepared(c);
}

/* ---- Memory. */

static alone_status check_address(alone_context* c, const void* data, const char* of, int32_t i) {
  return (void)c, (void)data, (void)of, (void)i, ALONE_OK;
}
static void copy_inside(alone_context* c, void* to, const void* from, size_t bytes) {
  (void)c;
  memcpy(to, from, bytes);
}
static void copy_in(alone_context* c, void* to, const void* from, size_t bytes) { copy_inside(c, to, from, bytes); }
static void finish_copies(alone_context* c) { (void)c; }
static void clear(alone_context* c, void* p, size_t bytes) {
  (void)c;
  memset(p, 0, bytes);
}
static int truth(alone_context* c, const void* p) {
  (void)c;
  return *(const uint8_t*)p;
}
static int64_t integer(alone_context* c, const int64_t* p) {
  (void)c;
  return *p;
}
static int write_out(alone_context* c, int fd, const void* from, size_t bytes) {
  (void)c;
  return put(fd, from, bytes);
}

/* The words of a run, of which the work memory has so many bytes. */
static size_t words_in_memory(void) { return aligned(words_bytes()); }
static char* words_of(alone_context* c, char* memory) {
  (void)c;
  return memory;
}

/* ---- Steps. */

static int32_t threads_of(const alone_context* c) { return c->parallel && c->threads > 1 ? c->threads : 1; }

typedef struct {
  Kernel kernel;
  const Work* work;
  int64_t count;
  int32_t tasks;
} Launch;

static void task(void* context, int32_t i) {
  const Launch* l = context;
  int64_t whole = l->count / l->tasks, rest = l->count % l->tasks;
  int64_t begin = i * whole + (i < rest ? i : rest), end = begin + whole + (i < rest);
  const Work* w = l->work;
  if (begin < end) l->kernel(w->slots, begin, end, w->scratch + (size_t)i * w->scratch_bytes);
}

/* `place`: in the code; `grain`: the least that a thread gets. Each has its scratch memory. */
static void launch(const Work* w, int64_t place, int64_t count, int64_t grain, int64_t bytes) {
  (void)bytes;
  Launch l = {(Kernel)(uintptr_t)(alone_code + place), w, count, 1};
  if (count <= 0) return;
  if (w->threads > 1 && count > grain) {
    int64_t pieces = (count + grain - 1) / grain;
    l.tasks = pieces < w->threads ? (int32_t)pieces : w->threads;
    w->context->parallel(w->context->pool, l.tasks, task, &l);
  } else {
    task(&l, 0);
  }
}

/* {words of the steps, 0, variant}: by the first run of this variant in any context. */
static alone_status run_once(const Work* w, Words at, Words steps, Words end) {
  char* made = (char*)w->context->prepared + at[2];
  if (__atomic_load_n(made, __ATOMIC_ACQUIRE)) return ALONE_OK;
  alone_status status = ALONE_OK;
  hold_prepared();
  if (!*made) status = run_steps(w, steps, end);
  if (!status) __atomic_store_n(made, 1, __ATOMIC_RELEASE);
  leave_prepared();
  return status;
}

/* Whether what the byte says is true; else `message` becomes the run's. */
static alone_status check(const Work* w, const void* byte, int64_t message, int64_t kernel) {
  (void)kernel;
  return *(const uint8_t*)byte ? ALONE_OK : FAIL(w->context, ALONE_CHECK, "%s", alone_text + message);
}

#endif
