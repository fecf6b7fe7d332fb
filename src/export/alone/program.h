/* The face of every exported program; the header that an export writes says it with the program's name. */
#ifndef BRASA_ALONE_PROGRAM_H
#define BRASA_ALONE_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

/*BEGIN*/
#ifdef ALONE_CUDA
/* A tensor in memory of the GPU that is the caller's, row-major, aligned to 16 bytes. */
#else
/* A tensor in memory of the caller, row-major, aligned to its elements. */
#endif
typedef struct alone_tensor {
  void* data;
  size_t bytes; /* that `data` has room for */
  /* Of an input: given. Of an output: filled in, by alone_sizes with the greatest, by alone_run with those that it has. */
  int64_t sizes[8];
} alone_tensor;

typedef enum alone_status {
  ALONE_OK = 0,
  ALONE_INPUT = 1,  /* an input has a size that the program does not take, or too few bytes */
  ALONE_MEMORY = 2, /* the work memory or an output's is missing or too small */
  ALONE_FILE = 3,   /* a file of weights or state is missing, another program's, or cannot be written */
  ALONE_CPU = 4,    /* this processor, or GPU, runs none of the levels in the program */
  ALONE_CHECK = 5,  /* an operator does not take a value, such as an index, or a size that it gives is out of range */
  ALONE_DEVICE = 6, /* there is no driver or no GPU, or the driver or a library failed */
  ALONE_LIBRARY = 7 /* a library that the program was exported for (cuBLASLt, cuDNN) is missing or too old */
} alone_status;

#ifndef ALONE_CUDA
/* Calls task(context, i) once for each i in [0, tasks), on any threads, and returns when all are done. */
typedef void (*alone_parallel)(void* pool, int32_t tasks, void (*task)(void* context, int32_t index), void* context);

#endif
/* All that runs share. One thread uses a context at a time; any number of contexts may be in use. */
typedef struct alone_context {
  const void* weights; /* set by alone_open */
  void* mapped;        /* so too: what alone_close unmaps */
  void* prepared;      /* so too: what the first run makes of the weights, for all contexts */
#ifdef ALONE_CUDA
  int32_t level; /* so too: 80 where the code is for compute capability 8.0 */
  void* device;  /* so too: modules and kernels of the GPU that was current in the thread, or of the first one */
  void* stream;  /* a CUstream, the caller's, which all work is given to; null: the driver's default one */
#else
  int32_t level;           /* so too: 0 any processor of its kind, 1 AVX2, 2 AVX-512; may be lowered */
  int32_t threads;         /* pieces that `parallel` gets at most; 1 after alone_open */
  alone_parallel parallel; /* null: runs stay on the calling thread */
  void* pool;              /* first argument of `parallel` */
#endif
  void* memory; /* work memory, the caller's; the GPU's where the program is for one, as tensors and state are */
  size_t memory_bytes;
  void* state;       /* what runs change (parameters that they train, buffers), the caller's; see alone_reset */
  char message[248]; /* of the last status that was not ALONE_OK */
} alone_context;

/* Fills the context. `weights_file`: where they lie beside the program; it is mapped, and all of it is read once: other bytes than the export wrote are
   an error. Null where they are inside. What is made of weights once (packed ones) gets memory here
   that all contexts share, and that the last alone_close gives back. On a GPU it loads the driver and the code, and uploads the weights. */
alone_status alone_open(alone_context* context, const char* weights_file);
/* The same for weights that are in memory already (the bytes of the file, aligned to 64), of which only the head is checked. */
alone_status alone_open_memory(alone_context* context, const void* weights, size_t bytes);
void alone_close(alone_context* context);
/* Bytes of `state`; 0 for most programs. */
size_t alone_state_bytes(void);
/* Gives `state` its first value. */
alone_status alone_reset(alone_context* context);
/* Writes the tensors of the state to a safetensors file, which is replaced when the new one is whole. Never allocates. */
alone_status alone_save(alone_context* context, const char* file);
/* Reads all of them from one that may hold others too. A file that is refused changes nothing. Never allocates. */
alone_status alone_load(alone_context* context, const char* file);
/* Tensor i of the state: where it lies in context->state, its bytes and sizes. */
alone_status alone_state(alone_context* context, int32_t i, alone_tensor* tensor);
/* The work memory that a run with these sizes and context->threads needs, whatever the inputs' values are. */
alone_status alone_memory(alone_context* context, const alone_tensor* inputs, size_t* bytes);
/* Fills sizes and bytes of the outputs; where a size depends on values, the greatest that it may be. */
alone_status alone_sizes(alone_context* context, const alone_tensor* inputs, alone_tensor* outputs);
#ifdef ALONE_CUDA
/* Gives the program to context->stream and does not wait, but where a branch or loop depends on values. Outputs must not overlap
   inputs, work memory or each other. Never allocates. */
#else
/* Runs the program. Outputs must not overlap inputs, work memory or each other. Never allocates. */
#endif
alone_status alone_run(alone_context* context, const alone_tensor* inputs, alone_tensor* outputs);
#ifdef ALONE_CUDA
/* Waits for the stream. What a check of its work found is the status, ALONE_CHECK; what that work wrote means nothing then. */
alone_status alone_wait(alone_context* context);
/* Memory of the GPU, for those who have no other way to it. */
alone_status alone_allocate(alone_context* context, size_t bytes, void** memory);
void alone_free(alone_context* context, void* memory);
/* Copies in the stream's order. The host's memory may change when `upload` returns, and is there when `download` does. */
alone_status alone_upload(alone_context* context, void* to, const void* from, size_t bytes);
alone_status alone_download(alone_context* context, void* to, const void* from, size_t bytes);
#endif

/* What tensor i is; dtypes as safetensors names them. */
int32_t alone_inputs(void);
int32_t alone_outputs(void);
const char* alone_input_name(int32_t i);
const char* alone_input_dtype(int32_t i);
int32_t alone_input_rank(int32_t i);
const char* alone_output_dtype(int32_t i);
int32_t alone_output_rank(int32_t i);
int32_t alone_states(void);
const char* alone_state_name(int32_t i);
const char* alone_state_dtype(int32_t i);
int32_t alone_state_rank(int32_t i);
/*END*/

#endif
