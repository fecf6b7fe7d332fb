/* Fine-tunes a model that example-finetune exported: cc finetune.c digits_step.o digits_eval.o -o finetune && ./finetune */
#include <stdio.h>
#include <stdlib.h>

#include "digits_eval.h"
#include "digits_step.h"

enum { kPixels = 64, kBatch = 64, kTrain = 1437, kTest = 360, kEpochs = 6 };
static float images[kTrain * kPixels], scores[kTest * 10];
static int64_t labels[kTrain];
static _Alignas(64) char step_state[DIGITS_STEP_STATE_BYTES], step_memory[DIGITS_STEP_MEMORY_BYTES];
static _Alignas(64) char eval_state[DIGITS_EVAL_STATE_BYTES], eval_memory[DIGITS_EVAL_MEMORY_BYTES];

static void check(int failed, const char* message) { if (failed) fprintf(stderr, "%s\n", message), exit(1); }
static void read_digits(const char* path, size_t count) {
  FILE* file = fopen(path, "rb");
  check(!file || fread(images, kPixels * sizeof *images, count, file) != count ||
            fread(labels, sizeof *labels, count, file) != count, path);
  fclose(file);
}
static double accuracy(digits_eval_context* eval) {
  digits_eval_tensor in = {images, sizeof images, {kTest, 1, 8, 8}}, out = {scores, sizeof scores, {0}};
  int right = 0;
  read_digits("held_out.bin", kTest);
  check(digits_eval_run(eval, &in, &out), eval->message);
  for (int i = 0, best; i < kTest; ++i, right += best == labels[i - 1])
    for (int k = best = 0; k < 10; ++k) best = scores[i * 10 + k] > scores[i * 10 + best] ? k : best;
  return 100.0 * right / kTest;
}

int main(void) {
  digits_step_context step;
  digits_eval_context eval;
  check(digits_step_open(&step, NULL), step.message), check(digits_eval_open(&eval, NULL), eval.message);
  step.state = step_state, step.memory = step_memory, step.memory_bytes = sizeof step_memory;
  eval.state = eval_state, eval.memory = eval_memory, eval.memory_bytes = sizeof eval_memory;
  check(digits_step_reset(&step) || digits_eval_reset(&eval), "the state has no first value");
  fprintf(stderr, "held out, before: %.1f %%\n", accuracy(&eval));
  read_digits("train.bin", kTrain);
  for (int k = 0, epoch = kTrain / kBatch, steps = epoch * kEpochs; k < steps; ++k) {
    float lr = 1e-3f * (float)(steps - k) / (float)steps, loss;
    digits_step_tensor in[] = {{images + k % epoch * kBatch * kPixels, kBatch * kPixels * sizeof *images, {kBatch, 1, 8, 8}},
                               {labels + k % epoch * kBatch, kBatch * sizeof *labels, {kBatch}}, {&lr, sizeof lr, {0}}};
    check(digits_step_run(&step, in, &(digits_step_tensor){&loss, sizeof loss, {0}}), step.message);
    printf("%.9g\n", loss);
  }
  check(digits_step_save(&step, "finetuned.safetensors"), step.message);
  check(digits_eval_load(&eval, "finetuned.safetensors"), eval.message);
  fprintf(stderr, "held out, after: %.1f %%\n", accuracy(&eval));
}
