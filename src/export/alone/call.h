/* Calls of the functions that programs carry besides their kernels. Part of runtime.c. */
#ifndef BRASA_ALONE_CALL_H
#define BRASA_ALONE_CALL_H

typedef struct {
  void* tensors[kMostTensors]; /* operands, then results, row-major */
  int64_t sizes[kMostSizes];
  const int64_t* facts;
  void* work;
} Call;

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

/* {0, 0, function, work memory, tensors, facts, sizes} */
static alone_status run_call(const Work* w, Words at) {
  Function function = alone_functions[at[2]];
  Call call = {.work = w->buffers[at[3]]};
  at += 4;
  int64_t n = *at++;
  for (int64_t i = 0; i < n; ++i) call.tensors[i] = w->buffers[*at++];
  n = *at++;
  call.facts = at;
  at += n;
  n = *at++;
  for (int64_t i = 0; i < n; ++i) call.sizes[i] = size_at(&at, w->symbols, w->values);
  const char* message = function(&call);
  return message ? FAIL(w->context, ALONE_CHECK, "%s", message) : ALONE_OK;
}

#endif
