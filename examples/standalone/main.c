/* Calls a program that `brasa export` wrote: memory and threads are the caller's, nothing is allocated.
   Link it with classifier.o and the C library: see README.md. */
#include <pthread.h>
#include <stdio.h>

#include "classifier.h"

enum { kThreads = 2, kImages = 5, kPixels = 8 * 8, kClasses = 4 };

/* A pool as simple as one can be: a thread for each task. */
struct task {
  void (*run)(void* context, int32_t index);
  void* context;
  int32_t index;
};
static void* run_task(void* task) {
  struct task* t = task;
  t->run(t->context, t->index);
  return NULL;
}
static void parallel(void* pool, int32_t tasks, void (*run)(void*, int32_t), void* context) {
  pthread_t* threads = pool;
  struct task todo[kThreads];
  for (int32_t i = 0; i < tasks; ++i) todo[i] = (struct task){run, context, i};
  for (int32_t i = 1; i < tasks; ++i) pthread_create(&threads[i], NULL, run_task, &todo[i]);
  run_task(&todo[0]);
  for (int32_t i = 1; i < tasks; ++i) pthread_join(threads[i], NULL);
}

int main(void) {
  static float images[kImages * kPixels], scale[kImages], scores[kImages * kClasses], shares[kImages * kClasses];
  static int64_t sizes[kImages];
  static _Alignas(64) char memory[1 << 20];
  pthread_t pool[kThreads];
  for (int i = 0; i < kImages * kPixels; ++i) images[i] = (float)(i % 7) / 7;
  for (int i = 0; i < kImages; ++i) scale[i] = 1;

  classifier_context c;
  if (classifier_open(&c, NULL)) return puts(c.message), 1;
  c.threads = kThreads, c.parallel = parallel, c.pool = pool;
  classifier_tensor in[] = {{images, sizeof images, {kImages, 1, 8, 8}}, {scale, sizeof scale, {kImages}}};
  classifier_tensor out[] = {{scores, sizeof scores, {0}}, {shares, sizeof shares, {0}}, {sizes, sizeof sizes, {0}}};
  size_t needed;
  if (classifier_memory(&c, in, &needed)) return puts(c.message), 1;
  c.memory = memory, c.memory_bytes = sizeof memory; /* a run says if it is too little */
  if (classifier_run(&c, in, out)) return puts(c.message), 1;
  for (int i = 0; i < kImages; ++i) {
    int best = 0;
    for (int k = 1; k < kClasses; ++k) best = shares[i * kClasses + k] > shares[i * kClasses + best] ? k : best;
    printf("image %d: class %d, %.3f\n", i, best, shares[i * kClasses + best]);
  }
  in[0].sizes[0] = 1000; /* beyond what the archive allows */
  if (classifier_run(&c, in, out)) puts(c.message);
  classifier_close(&c);
  return 0;
}
