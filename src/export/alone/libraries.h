/* What NVIDIA's libraries compute of a program: they are found by name when it is opened. Part of runtime.c, of programs that were exported for
   them. */
#ifndef BRASA_ALONE_LIBRARIES_H
#define BRASA_ALONE_LIBRARIES_H

/* How a library computes a call of these sizes. */
typedef struct Way {
  const struct LibraryFunction* by; /* null: nothing is made */
  int64_t sizes[kMostSizes];
  void* parts[4];
  uint64_t algorithm[8];
  int adds; /* to the result, which holds the bias */
} Way;

typedef struct LibraryFunction {
  alone_status (*open)(alone_context*);
  void (*close)(alone_context*);
  alone_status (*make)(alone_context*, const Call*, Way*);
  void (*unmake)(alone_context*, Way*);
  alone_status (*run)(alone_context*, const Call*, const Way*);
} LibraryFunction;

typedef struct {
  void *products, *convolutions; /* the libraries' handles */
  Way ways[];                    /* by call */
} Libraries;
static Libraries* libraries_of(const alone_context* c) { return device_of(c)->libraries; }

/* Dtypes as calls have them: float32, float64, float16, bfloat16. */
static const int64_t kDtypeBytes[] = {4, 8, 2, 2};
/* What calls may work in, as the compiler says. */
enum { kWorkspace = 32 << 20 };

/* The first library of these names that the system finds; it stays. Its functions are the same for all contexts. */
static alone_status open_first(alone_context* c, const char* const* names, const char* what, void** library) {
  for (*library = NULL; *names && !*library; ++names) *library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
  return *library ? ALONE_OK : FAIL(c, ALONE_LIBRARY, "there is no %s: %s", what, dlerror());
}
#define MEMBER(name, parameters) int(*name) parameters;
#define BIND(name, parameters)                      \
  *(void**)&FUNCTIONS.name = dlsym(library, #name); \
  if (!FUNCTIONS.name) return FAIL(c, ALONE_LIBRARY, "this " LIBRARY " is too old: it has no %s", #name);

static alone_status did(alone_context* c, int result, const char* what) {
  return result == 0 ? ALONE_OK : FAIL(c, ALONE_DEVICE, "%s failed with status %d", what, result);
}

#include "export/alone/cublaslt.h"
#include "export/alone/cudnn.h"
#undef MEMBER
#undef BIND

#define FUNCTION(name) {name##_open, name##_close, name##_make, name##_unmake, name##_run},
static const LibraryFunction alone_functions[] = {ALONE_LIBRARY_FUNCTIONS(FUNCTION)};
#undef FUNCTION
enum { kFunctions = sizeof alone_functions / sizeof *alone_functions };

static int is_called(int64_t function) { return alone_plan[kLibraries] >> function & 1; }

/* The call's way, for its sizes. */
static alone_status find_way(alone_context* c, const LibraryFunction* f, const Call* call, Way** out) {
  Way* way = *out = &libraries_of(c)->ways[call->facts[0]];
  if (way->by && memcmp(way->sizes, call->sizes, sizeof way->sizes) == 0) return ALONE_OK;
  if (way->by) f->unmake(c, way);
  memset(way, 0, sizeof *way);
  alone_status status = f->make(c, call, way);
  if (status) return f->unmake(c, way), status;
  way->by = f;
  memcpy(way->sizes, call->sizes, sizeof way->sizes);
  return ALONE_OK;
}

static alone_status call_function(alone_context* c, int64_t function, const Call* call) {
  Way* way;
  const LibraryFunction* f = &alone_functions[function];
  if (device_of(c)->failed) return ALONE_DEVICE;
  alone_status status = find_way(c, f, call, &way);
  return status ? status : f->run(c, call, way);
}

static Words behind_kernel(Words at) {
  ++at;
  for (int list = 0; list < 2; ++list) at += 1 + *at;
  for (int size = 0; size < 2; ++size) skip_size(&at);
  return at + 1;
}

/* For the calls whose sizes do not vary; others find their ways when they run with new sizes. */
static alone_status make_known_ways_in(alone_context* c, Words at) {
  alone_status status = ALONE_OK;
  Words end = at + 1 + at[0];
  for (++at; at < end && !status;) {
    int64_t kind = *at++;
    if (kind == kCheck || kind == kKernel) {
      at = kind == kCheck ? at + 3 : behind_kernel(at);
      continue;
    }
    Call call;
    Way* way;
    if (kind == kCall && read_call(at + 1, NULL, NULL, NULL, &call))
      status = find_way(c, &alone_functions[at[3]], &call, &way);
    at += 1 + *at;
  }
  return status;
}
static alone_status make_known_ways(alone_context* c) {
  alone_status status = ALONE_OK;
  for (int64_t v = 0; v < alone_plan[kVariants]; ++v) {
    if (level_at(v) != c->level) continue;
    Words stage = first_stage(v);
    for (int64_t s = 0; s < stages_of(v) && !status; ++s, stage = next_stage(stage))
      status = make_known_ways_in(c, steps_of(stage));
  }
  return status;
}

static alone_status open_libraries(alone_context* c) {
  alone_status status = ALONE_OK;
  device_of(c)->libraries = calloc(1, sizeof(Libraries) + sizeof(Way) * (size_t)alone_plan[kCalls]);
  if (!libraries_of(c)) return FAIL(c, ALONE_MEMORY, "there is no memory");
  for (int64_t f = 0; f < kFunctions && !status; ++f)
    if (is_called(f)) status = alone_functions[f].open(c);
  return status ? status : make_known_ways(c);
}

static void close_libraries(alone_context* c) {
  Libraries* l = libraries_of(c);
  if (!l) return;
  for (int64_t i = 0; i < alone_plan[kCalls]; ++i)
    if (l->ways[i].by) l->ways[i].by->unmake(c, &l->ways[i]);
  for (int64_t f = 0; f < kFunctions; ++f) alone_functions[f].close(c);
  free(l);
  device_of(c)->libraries = NULL;
}

#endif
