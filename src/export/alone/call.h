/* Calls of the functions that programs carry besides their kernels, or that a GPU's libraries have. Part of runtime.c. */
#ifndef BRASA_ALONE_CALL_H
#define BRASA_ALONE_CALL_H

typedef struct {
  void* tensors[kMostTensors]; /* operands, then results, row-major */
  int64_t sizes[kMostSizes];
  const int64_t* facts;
  void* work;
} Call;

/* {0, 0, function, work memory, tensors, facts, sizes}. Without buffers, before a run, false where a size is not known. */
static int read_call(Words at, void** buffers, const int64_t* symbols, int64_t* values, Call* call) {
  memset(call, 0, sizeof *call);
  at += 3;
  if (buffers) call->work = buffers[*at];
  ++at;
  int64_t n = *at++;
  for (int64_t i = 0; i < n; ++i, ++at)
    if (buffers) call->tensors[i] = buffers[*at];
  n = *at++;
  call->facts = at;
  at += n;
  n = *at++;
  for (int64_t i = 0; i < n; ++i) {
    if (!buffers && *at) return 0;
    call->sizes[i] = size_at(&at, symbols, values);
  }
  return 1;
}

#ifdef ALONE_CUDA
#include "export/alone/libraries.h"
#else

/* Gives what the function does not take of its operands' values, or null. */
typedef const char* (*Function)(const Call*);

/* Elements of float or double: `width` bytes each. */
static double number_at(const void* a, int64_t width, int64_t i) {
  return width == sizeof(float) ? ((const float*)a)[i] : ((const double*)a)[i];
}
static void put_number(void* a, int64_t width, int64_t i, double x) {
  if (width == sizeof(float))
    ((float*)a)[i] = (float)x;
  else
    ((double*)a)[i] = x;
}

#include "export/alone/fourier.h"
#include "export/alone/matrix.h"
#include "export/alone/sort.h"
#include "export/alone/spectral.h"

#define FUNCTION(name) name,
static const Function alone_functions[] = {ALONE_FUNCTIONS(FUNCTION)};
#undef FUNCTION

static alone_status call_function(alone_context* c, int64_t function, const Call* call) {
  const char* message = alone_functions[function](call);
  return message ? FAIL(c, ALONE_CHECK, "%s", message) : ALONE_OK;
}
#endif

static alone_status run_call(const Work* w, Words at) {
  Call call;
  read_call(at, w->buffers, w->symbols, w->values, &call);
  return call_function(w->context, at[2], &call);
}

#endif
