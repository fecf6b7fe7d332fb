/* captioner_encoder: a program that Brasa exported. Link its object with the C library; nothing else is needed.

   input 0 'image': float32[1, 3, 32, 32]
   output 0: float32, 5 dimensions
*/
#ifndef CAPTIONER_ENCODER_H
#define CAPTIONER_ENCODER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CAPTIONER_ENCODER_VERSION 1
#define CAPTIONER_ENCODER_INPUTS 1
#define CAPTIONER_ENCODER_OUTPUTS 1
#define CAPTIONER_ENCODER_STATES 0
#define CAPTIONER_ENCODER_WEIGHT_BYTES 76672
#define CAPTIONER_ENCODER_STATE_BYTES 0
/* Work memory of a run on one thread: every size is fixed. */
#define CAPTIONER_ENCODER_MEMORY_BYTES 39424

/* A tensor in memory of the caller, row-major, aligned to its elements. */
typedef struct captioner_encoder_tensor {
  void* data;
  size_t bytes;     /* that `data` has room for */
  int64_t sizes[8]; /* of an input: given; of an output: filled in */
} captioner_encoder_tensor;

typedef enum captioner_encoder_status {
  CAPTIONER_ENCODER_OK = 0,
  CAPTIONER_ENCODER_INPUT = 1,  /* an input has a size that the program does not take, or too few bytes */
  CAPTIONER_ENCODER_MEMORY = 2, /* the work memory or an output's is missing or too small */
  CAPTIONER_ENCODER_FILE = 3,   /* a file of weights or state is missing, another program's, or cannot be written */
  CAPTIONER_ENCODER_CPU = 4,    /* this processor, or GPU, runs none of the levels in the program */
  CAPTIONER_ENCODER_CHECK = 5,  /* a value is one that an operator does not take (an index out of range) */
  CAPTIONER_ENCODER_DEVICE = 6  /* there is no driver or no GPU, or the driver failed */
} captioner_encoder_status;

/* Calls task(context, i) once for each i in [0, tasks), on any threads, and returns when all are done. */
typedef void (*captioner_encoder_parallel)(void* pool, int32_t tasks, void (*task)(void* context, int32_t index), void* context);

/* All that runs share. One thread uses a context at a time; any number of contexts may be in use. */
typedef struct captioner_encoder_context {
  const void* weights; /* set by captioner_encoder_open */
  void* mapped;        /* so too: what captioner_encoder_close unmaps */
  int32_t level;           /* so too: 0 any processor of its kind, 1 AVX2, 2 AVX-512; may be lowered */
  int32_t threads;         /* pieces that `parallel` gets at most; 1 after captioner_encoder_open */
  captioner_encoder_parallel parallel; /* null: runs stay on the calling thread */
  void* pool;              /* first argument of `parallel` */
  void* memory; /* work memory, the caller's; the GPU's where the program is for one, as tensors and state are */
  size_t memory_bytes;
  void* state;       /* what runs change (parameters that they train, buffers), the caller's; see captioner_encoder_reset */
  char message[248]; /* of the last status that was not CAPTIONER_ENCODER_OK */
} captioner_encoder_context;

/* Fills the context. `weights_file`: where they lie beside the program; it is mapped, and all of it is read once: other bytes than the export wrote are
   an error. Null where they are inside. Never allocates but on a GPU: there it loads the driver
   and the code, and uploads the weights. */
captioner_encoder_status captioner_encoder_open(captioner_encoder_context* context, const char* weights_file);
/* The same for weights that are in memory already (the bytes of the file, aligned to 64), of which only the head is checked. */
captioner_encoder_status captioner_encoder_open_memory(captioner_encoder_context* context, const void* weights, size_t bytes);
void captioner_encoder_close(captioner_encoder_context* context);
/* Bytes of `state`; 0 for most programs. */
size_t captioner_encoder_state_bytes(void);
/* Gives `state` its first value. */
captioner_encoder_status captioner_encoder_reset(captioner_encoder_context* context);
/* Writes the tensors of the state to a safetensors file, which is replaced when the new one is whole. Never allocates. */
captioner_encoder_status captioner_encoder_save(captioner_encoder_context* context, const char* file);
/* Reads all of them from one that may hold others too. A file that is refused changes nothing. Never allocates. */
captioner_encoder_status captioner_encoder_load(captioner_encoder_context* context, const char* file);
/* Tensor i of the state: where it lies in context->state, its bytes and sizes. */
captioner_encoder_status captioner_encoder_state(captioner_encoder_context* context, int32_t i, captioner_encoder_tensor* tensor);
/* The work memory that a run with these sizes and context->threads needs. */
captioner_encoder_status captioner_encoder_memory(captioner_encoder_context* context, const captioner_encoder_tensor* inputs, size_t* bytes);
/* Fills sizes and bytes of the outputs. */
captioner_encoder_status captioner_encoder_sizes(captioner_encoder_context* context, const captioner_encoder_tensor* inputs, captioner_encoder_tensor* outputs);
/* Runs the program. Outputs must not overlap inputs, work memory or each other. Never allocates. */
captioner_encoder_status captioner_encoder_run(captioner_encoder_context* context, const captioner_encoder_tensor* inputs, captioner_encoder_tensor* outputs);

/* What tensor i is; dtypes as safetensors names them. */
int32_t captioner_encoder_inputs(void);
int32_t captioner_encoder_outputs(void);
const char* captioner_encoder_input_name(int32_t i);
const char* captioner_encoder_input_dtype(int32_t i);
int32_t captioner_encoder_input_rank(int32_t i);
const char* captioner_encoder_output_dtype(int32_t i);
int32_t captioner_encoder_output_rank(int32_t i);
int32_t captioner_encoder_states(void);
const char* captioner_encoder_state_name(int32_t i);
const char* captioner_encoder_state_dtype(int32_t i);
int32_t captioner_encoder_state_rank(int32_t i);

#ifdef __cplusplus
}
#endif

#endif
