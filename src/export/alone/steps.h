/* Sizes and steps of a plan: what a variant computes, its loops and branches too. Part of runtime.c. */
#ifndef BRASA_ALONE_STEPS_H
#define BRASA_ALONE_STEPS_H

#include "export/alone/sizes.h"

/* Symbols besides those of inputs, {symbol, behind, size}: sizes of bodies where `behind` is -1, else where memory ends that begins at
   the symbol `behind`. Gives the bytes of the arena. */
static size_t arena_of(Words* at, int64_t* symbols, int64_t* values) {
  int64_t arena = 0;
  for (int64_t n = *(*at)++; n > 0; --n) {
    int64_t symbol = *(*at)++, behind = *(*at)++, size = size_at(at, symbols, values);
    if (behind >= 0) {
      size = size > INT64_MAX - 63 ? INT64_MAX : (int64_t)aligned((size_t)size);
      if (__builtin_add_overflow(size, symbols[behind], &size)) size = INT64_MAX;
      if (size > arena) arena = size;
    }
    symbols[symbol] = size;
  }
  return (size_t)arena;
}

/* The same for the greatest sizes. */
static size_t greatest_arena(Words* at, SizeRange* symbols, SizeRange* values) {
  int64_t arena = 0;
  for (int64_t n = *(*at)++; n > 0; --n) {
    int64_t symbol = *(*at)++, behind = *(*at)++;
    SizeRange size = range_at(at, symbols, values);
    if (behind >= 0) {
      int64_t end = size.high > INT64_MAX - 63 ? INT64_MAX : (int64_t)aligned((size_t)(size.high < 0 ? 0 : size.high));
      end = sum_of(end, symbols[behind].high);
      if (end > arena) arena = end;
      size = size_range(end, end);
    }
    symbols[symbol] = size;
  }
  return (size_t)arena;
}

/* The most scratch of any step for one thread: by `symbols`, or by `ranges` where those are there. The steps' words begin with their number. */
static size_t scratch_of(Words at, const int64_t* symbols, int64_t* values, const SizeRange* ranges,
                         SizeRange* range_values) {
  size_t most = 0;
  Words end = at + 1 + at[0];
  for (++at; at < end;) {
    int64_t kind = *at++;
    if (kind == kCheck) {
      at += 3;
    } else if (kind == kKernel) {
      ++at;
      at += 1 + *at;
      at += 1 + *at;
      skip_size(&at);
      size_t scratch = (size_t)(ranges ? range_at(&at, ranges, range_values).high : size_at(&at, symbols, values));
      if (scratch > most) most = scratch;
      ++at;
    } else {
      at += 1 + *at; /* to the steps inside */
    }
  }
  return most > SIZE_MAX - 64 ? SIZE_MAX : aligned(most);
}

/* The working state of one call, in the work memory. */
typedef struct {
  alone_context* context;
  void** buffers;
  int64_t *symbols, *values;
  int64_t* counts;
  uint64_t* slots;
  char *arena, *scratch;
  size_t scratch_bytes; /* of one task */
  int32_t threads;
  int64_t before, ran; /* the variant that ran before in this run, -1: none; how many of its stages */
} Work;

static alone_status run_steps(const Work* w, Words at, Words end);

#ifdef ALONE_CUDA
#include "export/alone/cuda.h"
#else
#include "export/alone/host.h"
#endif

/* {kernel, buffers, symbols, count, scratch, or bytes that a block shares, grain, or threads of a block}; a kernel is a place in the code, or a
   number. */
static Words run_kernel(const Work* w, Words at) {
  int64_t kernel = *at++;
  uint64_t* slot = w->slots;
  for (int64_t k = *at++; k > 0; --k) *slot++ = (uint64_t)(uintptr_t)w->buffers[*at++];
  for (int64_t k = *at++; k > 0; --k) *slot++ = (uint64_t)w->symbols[*at++];
  int64_t count = size_at(&at, w->symbols, w->values), bytes = size_at(&at, w->symbols, w->values);
  launch(w, kernel, count, *at++, bytes);
  return at;
}

static void copy(const Work* w, void* to, const void* from, int64_t bytes) {
  if (bytes > 0) copy_inside(w->context, to, from, (size_t)bytes);
}

/* {words of what all steps share, words of the step, how many steps, backwards?, states {operand, trace, bytes}, buffers that move {of the step, of the loop, one later?,
   bytes of an item}} */
static alone_status run_loop(const Work* w, Words at, Words shared, Words end) {
  Words body = shared + at[0];
  at += 2;
  int64_t steps = size_at(&at, w->symbols, w->values), reverse = *at++;
  for (int64_t n = *at++; n > 0; --n) {
    const void* from = w->buffers[*at++];
    char* to = w->buffers[*at++];
    int64_t bytes = size_at(&at, w->symbols, w->values);
    copy(w, to + (reverse ? steps * bytes : 0), from, bytes);
  }
  alone_status status = steps > 0 ? run_steps(w, shared, body) : ALONE_OK;
  for (int64_t k = 0; k < steps && !status; ++k) {
    Words move = at;
    int64_t t = reverse ? steps - 1 - k : k;
    for (int64_t n = *move++; n > 0; --n) {
      void** inner = &w->buffers[*move++];
      char* outer = w->buffers[*move++];
      int64_t item = t + *move++;
      *inner = outer + item * size_at(&move, w->symbols, w->values);
    }
    status = run_steps(w, body, end);
  }
  return status;
}

/* {words of the condition, words of the step, buffer of the condition, states {operand, result, second, now, next, bytes}} */
enum { kOperand, kResult, kSecond, kNow, kNext, kStateWords };

static void point(const Work* w, Words states, int to, int from) {
  Words s = states;
  for (int64_t n = *s++; n > 0; --n) {
    w->buffers[s[to]] = w->buffers[s[from]];
    s += kStateWords;
    skip_size(&s);
  }
}

/* Steps write in turn to the results and to the second memory. */
static alone_status run_while(const Work* w, Words at, Words condition, Words end) {
  Words step = condition + at[0], states = at + 3;
  const void* goes_on = w->buffers[at[2]];
  int in_results = 0;
  point(w, states, kNow, kOperand);
  for (;;) {
    alone_status status = run_steps(w, condition, step);
    if (status) return status;
    if (!truth(w->context, goes_on)) break;
    in_results = !in_results;
    point(w, states, kNext, in_results ? kResult : kSecond);
    status = run_steps(w, step, end);
    if (status) return status;
    point(w, states, kNow, kNext);
  }
  Words s = states;
  for (int64_t n = *s++; n > 0 && !in_results; --n) {
    void *to = w->buffers[s[kResult]], *from = w->buffers[s[kNow]];
    s += kStateWords;
    copy(w, to, from, size_at(&s, w->symbols, w->values));
  }
  return ALONE_OK;
}

/* {words of one side, words of the other, buffer of the predicate} */
static alone_status run_branch(const Work* w, Words at, Words yes, Words end) {
  Words no = yes + at[0];
  int holds = truth(w->context, w->buffers[at[2]]);
  return holds ? run_steps(w, yes, no) : run_steps(w, no, end);
}

#ifndef ALONE_CALLS
static alone_status run_call(const Work* w, Words at) {
  return (void)at, FAIL(w->context, ALONE_DEVICE, "no such step");
}
#else
#include "export/alone/call.h"
#endif

static alone_status run_steps(const Work* w, Words at, Words end) {
  while (at < end) {
    int64_t kind = *at++;
    if (kind == kKernel) {
      at = run_kernel(w, at);
      continue;
    }
    if (kind == kCheck) { /* {buffer, message, kernel that notes a failure on a GPU} */
      alone_status status = check(w, w->buffers[at[0]], at[1], at[2]);
      if (status) return status;
      at += 3;
      continue;
    }
    /* Others have steps inside, or none: {words before these, their words on one side, on the other, …}. */
    Words head = at + 1, inside = head + *at, behind = inside + head[0] + head[1];
    at = behind;
    alone_status status = kind == kCall    ? run_call(w, head)
                          : kind == kOnce  ? run_once(w, head, inside, behind)
                          : kind == kLoop  ? run_loop(w, head, inside, behind)
                          : kind == kWhile ? run_while(w, head, inside, behind)
                                           : run_branch(w, head, inside, behind);
    if (status) return status;
  }
  return ALONE_OK;
}

#endif
