/* A GPU of NVIDIA's as the device that a program runs on, by the driver's library alone. Part of runtime.c, as host.h is where the
   device is the processor: the same functions. */
#ifndef BRASA_ALONE_CUDA_H
#define BRASA_ALONE_CUDA_H

#include <dlfcn.h>
#include <stdlib.h>

typedef unsigned long long Address;

#define ALONE_DRIVER(F)                                                \
  F(cuInit, (unsigned))                                                \
  F(cuGetErrorString, (int, const char**))                             \
  F(cuDeviceGetCount, (int*))                                          \
  F(cuDeviceGet, (int*, int))                                          \
  F(cuDeviceGetAttribute, (int*, int, int))                            \
  F(cuCtxGetCurrent, (void**))                                         \
  F(cuCtxSetCurrent, (void*))                                          \
  F(cuCtxGetDevice, (int*))                                            \
  F(cuDevicePrimaryCtxRetain, (void**, int))                           \
  F(cuDevicePrimaryCtxRelease_v2, (int))                               \
  F(cuMemAlloc_v2, (Address*, size_t))                                 \
  F(cuMemFree_v2, (Address))                                           \
  F(cuMemcpyHtoDAsync_v2, (Address, const void*, size_t, void*))       \
  F(cuMemcpyDtoHAsync_v2, (void*, Address, size_t, void*))             \
  F(cuMemcpyDtoDAsync_v2, (Address, Address, size_t, void*))           \
  F(cuMemsetD8Async, (Address, unsigned char, size_t, void*))          \
  F(cuStreamSynchronize, (void*))                                      \
  F(cuModuleLoadDataEx, (void**, const void*, unsigned, int*, void**)) \
  F(cuModuleUnload, (void*))                                           \
  F(cuModuleGetFunction, (void**, void*, const char*))                 \
  F(cuFuncSetAttribute, (void*, int, int))                             \
  F(cuLaunchKernel,                                                    \
    (void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**))

/* Of the driver's enumerations. */
enum { kOutOfMemory = 2, kComputeMajor = 75, kComputeMinor = 76, kCompilerLog = 5, kCompilerLogBytes = 6 };
enum { kMostShared = 8, kUsualShared = 48 << 10 }; /* the attribute of kernels that are given more bytes than that */
enum { kMostBlocks = 0x7fffffff };

/* What a context has of its GPU; the words of a run, modules and kernels lie behind it. */
typedef struct {
#define MEMBER(name, parameters) int(*name) parameters;
  ALONE_DRIVER(MEMBER)
#undef MEMBER
  void* cuda;           /* the driver's context */
  int number, retained; /* of the GPU; whether its primary context is held */
  int was_free;         /* no context was current where it was opened */
  int failed;           /* a call failed since the last status was given */
  Address weights, error;
  char* words;
  void **modules, **kernels, **parameters;
  void* libraries; /* what libraries.h has */
} Device;

static Device* device_of(const alone_context* c) { return c->device; }
static Address address(const void* p) { return (Address)(uintptr_t)p; }

/* Notes the first failure, which `leave` gives. */
static int good(alone_context* c, int result, const char* call) {
  Device* d = device_of(c);
  const char* text = NULL;
  if (result == 0 || d->failed) return result == 0;
  d->failed = 1;
  d->cuGetErrorString(result, &text);
  snprintf(c->message, sizeof c->message, "%s failed: %s", call, text ? text : "unknown error");
  return 0;
}
#define CALL(c, name, ...) good(c, device_of(c)->name(__VA_ARGS__), #name)

#ifdef ALONE_CALLS
static alone_status open_libraries(alone_context* c);
static void close_libraries(alone_context* c);
#else
static alone_status open_libraries(alone_context* c) { return (void)c, ALONE_OK; }
static void close_libraries(alone_context* c) { (void)c; }
#endif

/* ---- Contexts. */

static alone_status enter(alone_context* c) {
  if (!c->device) return FAIL(c, ALONE_DEVICE, "the program is not open");
  device_of(c)->failed = 0;
  return CALL(c, cuCtxSetCurrent, device_of(c)->cuda) ? ALONE_OK : ALONE_DEVICE;
}
static alone_status leave(alone_context* c) { return device_of(c)->failed ? ALONE_DEVICE : ALONE_OK; }

static alone_status load_driver(alone_context* c) {
  Device* d = device_of(c);
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); /* which stays: it has threads of its own */
  if (!library) return FAIL(c, ALONE_DEVICE, "there is no NVIDIA driver: %s", dlerror());
#define BIND(name, parameters)               \
  *(void**)&d->name = dlsym(library, #name); \
  if (!d->name) return FAIL(c, ALONE_DEVICE, "the NVIDIA driver is too old: it has no %s", #name);
  ALONE_DRIVER(BIND)
#undef BIND
  int count = 0;
  if (!CALL(c, cuInit, 0) || !CALL(c, cuDeviceGetCount, &count)) return ALONE_DEVICE;
  return count > 0 ? ALONE_OK : FAIL(c, ALONE_DEVICE, "the NVIDIA driver finds no GPU");
}

/* The GPU that is current in this thread, or the first one. Its primary context is held, so that it lives when others give it back; a
   context that the caller made is the caller's. What is current may be a primary one that nobody holds any more, which is no GPU. */
static alone_status choose_gpu(alone_context* c) {
  Device* d = device_of(c);
  void* current = NULL;
  if (!CALL(c, cuCtxGetCurrent, &current)) return ALONE_DEVICE;
  d->was_free = !current || d->cuCtxGetDevice(&d->number) != 0;
  if (d->was_free && !CALL(c, cuDeviceGet, &d->number, 0)) return ALONE_DEVICE;
  if (!CALL(c, cuDevicePrimaryCtxRetain, &d->cuda, d->number)) return ALONE_DEVICE;
  d->retained = d->was_free || d->cuda == current;
  if (!d->retained) {
    d->cuDevicePrimaryCtxRelease_v2(d->number);
    d->cuda = current;
  }
  return enter(c);
}

static alone_status choose_level(alone_context* c) {
  Device* d = device_of(c);
  int major = 0, minor = 0;
  if (!CALL(c, cuDeviceGetAttribute, &major, kComputeMajor, d->number) ||
      !CALL(c, cuDeviceGetAttribute, &minor, kComputeMinor, d->number))
    return ALONE_DEVICE;
  int64_t is = 10 * major + minor, least = least_level();
  if (is < least)
    return FAIL(c, ALONE_CPU, "the program was exported for GPUs of compute capability %d.%d; this one has %d.%d",
                (int)(least / 10), (int)(least % 10), major, minor);
  c->level = (int32_t)least;
  for (int64_t v = 0; v < alone_plan[kVariants]; ++v) {
    int64_t level = level_at(v);
    if (level > c->level && level <= is) c->level = (int32_t)level;
  }
  return ALONE_OK;
}

/* Machine code where the GPU takes it, else what the driver compiles. */
static int load_module(alone_context* c, Words module, void** out) {
  Device* d = device_of(c);
  char log[200] = "";
  int options[] = {kCompilerLog, kCompilerLogBytes};
  void* values[] = {log, (void*)sizeof log};
  if (module[2] >= 0 && d->cuModuleLoadDataEx(out, alone_code + module[2], 0, NULL, NULL) == 0) return 1;
  if (CALL(c, cuModuleLoadDataEx, out, alone_code + module[1], 2, options, values)) return 1;
  size_t used = strlen(c->message);
  if (log[0]) snprintf(c->message + used, sizeof c->message - used, " (%s)", log);
  return 0;
}

/* Modules {level, place of their text in the code, of machine code or -1}, kernels {module, name}. */
static alone_status load_kernels(alone_context* c) {
  Device* d = device_of(c);
  Words module = alone_plan + alone_plan[kModuleAt], kernel = alone_plan + alone_plan[kKernelAt];
  for (int64_t m = 0; m < alone_plan[kModules]; ++m, module += 3)
    if (module[0] == c->level && !load_module(c, module, &d->modules[m])) return ALONE_DEVICE;
  for (int64_t k = 0; k < alone_plan[kKernels]; ++k, kernel += 2)
    if (d->modules[kernel[0]] &&
        !CALL(c, cuModuleGetFunction, &d->kernels[k], d->modules[kernel[0]], alone_text + kernel[1]))
      return ALONE_DEVICE;
  return ALONE_OK;
}

static alone_status take(alone_context* c, size_t bytes, const char* what, Address* out) {
  int result = device_of(c)->cuMemAlloc_v2(out, bytes ? bytes : 1);
  if (result == kOutOfMemory) return FAIL(c, ALONE_MEMORY, "the GPU has no memory for %zu bytes of %s", bytes, what);
  return good(c, result, "cuMemAlloc") ? ALONE_OK : ALONE_DEVICE;
}

static void end_device(alone_context* c) {
  Device* d = device_of(c);
  if (!d) return;
  if (d->cuda && d->cuCtxSetCurrent(d->cuda) == 0) {
    d->cuStreamSynchronize(c->stream);
    close_libraries(c);
    for (int64_t m = 0; m < alone_plan[kModules]; ++m)
      if (d->modules[m]) d->cuModuleUnload(d->modules[m]);
    if (d->weights) d->cuMemFree_v2(d->weights);
    if (d->error) d->cuMemFree_v2(d->error);
    if (d->was_free) d->cuCtxSetCurrent(NULL);
  }
  if (d->retained) d->cuDevicePrimaryCtxRelease_v2(d->number);
  free(d);
  c->device = NULL;
}

static alone_status begin_device(alone_context* c) {
  size_t slots = (size_t)alone_plan[kSlots], modules = (size_t)alone_plan[kModules],
         kernels = (size_t)alone_plan[kKernels];
  Device* d = c->device = calloc(1, sizeof *d + words_bytes() + 8 * (modules + kernels + slots));
  if (!d) return FAIL(c, ALONE_MEMORY, "there is no memory");
  d->words = (char*)(d + 1);
  d->modules = (void**)(d->words + words_bytes());
  d->kernels = d->modules + modules;
  d->parameters = d->kernels + kernels;
  uint64_t* slot = (uint64_t*)d->modules - slots; /* the last of the words */
  for (size_t i = 0; i < slots; ++i) d->parameters[i] = slot + i;
  alone_status status = load_driver(c);
  if (!status) status = choose_gpu(c);
  if (!status) status = choose_level(c);
  if (!status) status = load_kernels(c);
  if (!status) status = open_libraries(c);
  if (!status) status = take(c, sizeof(uint64_t), "what checks find", &d->error);
  /* The caller's stream need not wait for the default one. */
  if (!status &&
      (!CALL(c, cuMemsetD8Async, d->error, 0, sizeof(uint64_t), c->stream) || !CALL(c, cuStreamSynchronize, c->stream)))
    status = ALONE_DEVICE;
  if (status) end_device(c);
  return status;
}

/* ---- Memory. */

static alone_status check_address(alone_context* c, const void* data, const char* of, int32_t i) {
  if ((uintptr_t)data % 16 == 0) return ALONE_OK;
  if (i < 0) return FAIL(c, ALONE_MEMORY, "%s is not aligned to 16 bytes", of);
  return FAIL(c, ALONE_INPUT, "%s %d is not aligned to 16 bytes", of, (int)i);
}
static void copy_inside(alone_context* c, void* to, const void* from, size_t bytes) {
  CALL(c, cuMemcpyDtoDAsync_v2, address(to), address(from), bytes, c->stream);
}
static void copy_in(alone_context* c, void* to, const void* from, size_t bytes) {
  CALL(c, cuMemcpyHtoDAsync_v2, address(to), from, bytes, c->stream);
}
/* Until then the driver may read what is copied in, where it lies in pinned memory. */
static void finish_copies(alone_context* c) { CALL(c, cuStreamSynchronize, c->stream); }
static void copy_out(alone_context* c, void* to, const void* from, size_t bytes) {
  CALL(c, cuMemcpyDtoHAsync_v2, to, address(from), bytes, c->stream);
  finish_copies(c);
}
static void clear(alone_context* c, void* p, size_t bytes) {
  CALL(c, cuMemsetD8Async, address(p), 0, bytes, c->stream);
}
/* False where the driver fails, so that loops end. */
static int truth(alone_context* c, const void* p) {
  uint8_t is = 0;
  copy_out(c, &is, p, 1);
  return is && !device_of(c)->failed;
}
static int64_t integer(alone_context* c, const int64_t* p) {
  int64_t is = 0;
  copy_out(c, &is, p, sizeof is);
  return device_of(c)->failed ? 0 : is;
}
static int write_out(alone_context* c, int fd, const void* from, size_t bytes) {
  char part[1 << 14];
  for (size_t at = 0; at < bytes; at += sizeof part) {
    size_t n = bytes - at < sizeof part ? bytes - at : sizeof part;
    copy_out(c, part, (const char*)from + at, n);
    if (device_of(c)->failed || !put(fd, part, n)) return 0;
  }
  return 1;
}

static alone_status place_weights(alone_context* c, const void* weights, size_t bytes) {
  Device* d = device_of(c);
  alone_status status = take(c, bytes, "weights", &d->weights);
  if (status) return status;
  copy_in(c, (void*)(uintptr_t)d->weights, weights, bytes);
  finish_copies(c);
  c->weights = (const void*)(uintptr_t)d->weights;
  return leave(c);
}

static size_t words_in_memory(void) { return 0; }
static char* words_of(alone_context* c, char* memory) {
  (void)memory;
  return device_of(c)->words;
}

/* ---- Steps. */

static int32_t threads_of(const alone_context* c) { return (void)c, 1; }

/* `count` blocks of so many threads, which share so many bytes. */
static void launch(const Work* w, int64_t kernel, int64_t count, int64_t threads, int64_t bytes) {
  Device* d = device_of(w->context);
  if (count <= 0 || d->failed) return;
  if (count > kMostBlocks) {
    d->failed = 1;
    snprintf(w->context->message, sizeof w->context->message, "a kernel of %lld blocks is more than a GPU takes",
             (long long)count);
    return;
  }
  if (bytes > kUsualShared) CALL(w->context, cuFuncSetAttribute, d->kernels[kernel], kMostShared, (int)bytes);
  CALL(w->context, cuLaunchKernel, d->kernels[kernel], (unsigned)count, 1, 1, (unsigned)threads, 1, 1, (unsigned)bytes,
       w->context->stream, d->parameters, NULL);
}

/* A GPU's kernels read the weights as they are. */
static alone_status run_once(const Work* w, Words at, Words steps, Words end) {
  return (void)at, run_steps(w, steps, end);
}

/* The kernel writes which check failed first, which alone_wait reads. */
static alone_status check(const Work* w, const void* byte, int64_t message, int64_t kernel) {
  w->slots[0] = (uint64_t)(uintptr_t)byte;
  w->slots[1] = device_of(w->context)->error;
  w->slots[2] = (uint64_t)message + 1;
  launch(w, kernel, 1, 1, 0);
  return ALONE_OK;
}

/* ---- For callers. */

alone_status alone_wait(alone_context* c) {
  alone_status status = enter(c);
  if (status) return status;
  uint64_t failed = 0;
  Device* d = device_of(c);
  copy_out(c, &failed, (const void*)(uintptr_t)d->error, sizeof failed);
  if (d->failed || !failed) return leave(c);
  clear(c, (void*)(uintptr_t)d->error, sizeof failed);
  return FAIL(c, ALONE_CHECK, "%s", alone_text + failed - 1);
}

alone_status alone_allocate(alone_context* c, size_t bytes, void** memory) {
  Address at = 0;
  alone_status status = enter(c);
  if (!status) status = take(c, bytes, "a caller's", &at);
  *memory = (void*)(uintptr_t)at;
  return status;
}

void alone_free(alone_context* c, void* memory) {
  if (memory && enter(c) == ALONE_OK) CALL(c, cuMemFree_v2, address(memory));
}

alone_status alone_upload(alone_context* c, void* to, const void* from, size_t bytes) {
  alone_status status = enter(c);
  if (status) return status;
  if (bytes) copy_in(c, to, from, bytes);
  finish_copies(c);
  return leave(c);
}

alone_status alone_download(alone_context* c, void* to, const void* from, size_t bytes) {
  alone_status status = enter(c);
  if (status) return status;
  if (bytes) copy_out(c, to, from, bytes);
  return leave(c);
}

#endif
