/* What an exported program is made of besides its kernels: the walk over its plan. Every `alone_` becomes the program's name. */
#ifndef BRASA_ALONE_RUNTIME_H
#define BRASA_ALONE_RUNTIME_H

#include "export/alone/program.h"

/* The plan: words that words.cpp and steps.cpp write. Positions of the first ones: */
enum {
  kVersion,
  kInputs,        /* how many */
  kOutputs,       /* how many */
  kWeightBytes,   /* of the file or section, its head included; 0: there are none */
  kWeightId,      /* the hash of what is behind their head (weights.h), where it stands too */
  kStateBytes,    /* of what runs change */
  kPreparedBytes, /* of what is made of weights once, for all variants */
  kSymbols,       /* the most that a variant has; so the following three */
  kValues,        /* instructions of a size */
  kSlots,         /* arguments of a kernel */
  kBuffers,       /* places of memory */
  kCounts,        /* numbers that a run reads of what it computes, and that sizes depend on */
  kInputAt,       /* where the inputs' records begin; so the following two */
  kOutputAt,      /* outputs */
  kStateAt,       /* what the state is at first: places in it and in the weights (0: zeros), bytes */
  kStates,        /* tensors in it, by name; several may lie at one place */
  kStateTensorAt,
  kModules, /* of a GPU's code; none where it is the processor's */
  kModuleAt,
  kKernels,
  kKernelAt,
  kLibraries, /* of a GPU: a bit for each function of a library that is called */
  kCalls,     /* of such functions */
  kVariants,  /* how many; then where each begins */
  kFirstVariant
};
enum { kPlanVersion = 8, kWeightHead = 64 };

/* A buffer of a variant; those from a loop are set by it. */
enum { kFromInput, kFromWeights, kFromState, kFromOutput, kFromPrepared, kFromArena, kFromLoop };
/* A step of a variant. */
enum { kKernel, kCheck, kOnce, kLoop, kWhile, kBranch, kCall };
/* What is called (call.h), by the names that the compiler has. */
#define ALONE_FUNCTIONS(F) \
  F(sort) F(fft) F(cholesky) F(lu) F(lu_permutation) F(triangular_solve) F(qr) F(geqrf) F(eigh) F(svd)
/* What a GPU's libraries compute (libraries.h), each by its own. */
#define ALONE_LIBRARY_FUNCTIONS(F) F(product) F(convolution)
enum { kMostTensors = 6, kMostSizes = 24 }; /* of a call */
/* An instruction of a size: operation + (256 if its right operand is a number) + left operand * 65536; then the right one. */
enum { kNumber, kSymbol, kAdd, kMul, kDiv, kMod, kMin, kMax };

#endif
