/* Convolutions and their derivatives by cuDNN, of images whose channels are neighbours in memory. Part of libraries.h; src/runtime/cuda/cudnn.cpp
   does the same in a process, and checks these numbers against NVIDIA's. */
#ifndef BRASA_ALONE_CUDNN_H
#define BRASA_ALONE_CUDNN_H

#define ALONE_CUDNN(F)                                                     \
  F(cudnnCreate, (void**))                                                 \
  F(cudnnDestroy, (void*))                                                 \
  F(cudnnSetStream, (void*, void*))                                        \
  F(cudnnBackendCreateDescriptor, (int, void**))                           \
  F(cudnnBackendDestroyDescriptor, (void*))                                \
  F(cudnnBackendSetAttribute, (void*, int, int, int64_t, const void*))     \
  F(cudnnBackendGetAttribute, (void*, int, int, int64_t, int64_t*, void*)) \
  F(cudnnBackendFinalize, (void*))                                         \
  F(cudnnBackendExecute, (void*, void*, void*))

static struct {
  ALONE_CUDNN(MEMBER)
} dnn;

/* Of the library's enumerations. */
enum {
  kDnnOfHandle = 0,
  kDnnOfDtype = 1,
  kDnnOfInt = 3,
  kDnnOfFloat = 4,
  kDnnOfPointer = 6,
  kDnnOfMode = 7,
  kDnnOfHeuristic = 8,
  kDnnOfNote = 11,
  kDnnOfPart = 15
};
enum {
  kDnnConvolution = 1,
  kDnnEngine = 2,
  kDnnChoice = 3,
  kDnnHeuristic = 4,
  kDnnPlan = 5,
  kDnnGraph = 15,
  kDnnPointers = 16,
  kDnnTensor = 17
};
enum { kDnnCompute = 100, kDnnMode, kDnnDilation, kDnnStride, kDnnAfter, kDnnBefore, kDnnPlaces };
enum {
  kDnnHeuristicMode = 200,
  kDnnHeuristicGraph,
  kDnnHeuristicResults,
  kDnnChoiceEngine = 300,
  kDnnEngineNotes = 1303
};
enum { kDnnPlanHandle = 400, kDnnPlanChoice, kDnnPlanWorkspace, kDnnGraphHandle = 800, kDnnGraphOperations };
enum { kDnnTensorAlignment = 900, kDnnTensorDtype, kDnnTensorSizes, kDnnTensorStrides, kDnnTensorId = 906 };
enum { kDnnPointerIds = 1000, kDnnPointerData, kDnnPointerWorkspace = 1003 };
enum { kDnnCrossCorrelation = 1, kDnnAny = 2, kDnnLikely = 3 };
enum { kDnnTensorCores = 0, kDnnRoundedOperands = 1, kDnnRoundedSums = 2 };
static const int kDnnDtypes[] = {0, 1, 2, 9};
/* Of the convolution and of its derivatives by the image and by the weights: the operation, and its first attribute (scales of the product and of
   what is there, how, weights, image, result). */
static const int kDnnOperations[3][2] = {{10, 700}, {12, 706}, {11, 712}};

/* What a call says: facts {which call, dtype, which of the three is computed, rounded as float32 is?, places}, sizes {image, weights, result, stride,
   padding, dilation}, tensors {image, weights, result}. */
enum { kDtype = 1, kComputed, kExact, kPlaces };
enum { kMostChoices = 64, kDnnMostDims = 5, kMostParts = 8 };

/* A description that is being made: its parts, and the first status that was not 0. */
typedef struct {
  void* parts[kMostParts];
  int count, bad;
} Drawing;

static void* dnn_part(Drawing* d, int kind) {
  void* part = NULL;
  if (!d->bad) d->bad = dnn.cudnnBackendCreateDescriptor(kind, &part);
  return part ? d->parts[d->count++] = part : NULL;
}
static void dnn_set(Drawing* d, void* part, int attribute, int type, int64_t count, const void* values) {
  if (!d->bad) d->bad = dnn.cudnnBackendSetAttribute(part, attribute, type, count, values);
}
static void dnn_finish(Drawing* d, void* part) {
  if (!d->bad) d->bad = dnn.cudnnBackendFinalize(part);
}
static void dnn_destroy(void** part) {
  if (*part) dnn.cudnnBackendDestroyDescriptor(*part);
  *part = NULL;
}

static alone_status convolution_open(alone_context* c) {
  static const char* const kNames[] = {"libcudnn.so.9", NULL};
  void* library;
  alone_status status = open_first(c, kNames, "cuDNN 9", &library);
  if (status) return status;
#define FUNCTIONS dnn
#define LIBRARY "cuDNN"
  ALONE_CUDNN(BIND)
#undef FUNCTIONS
#undef LIBRARY
  return did(c, dnn.cudnnCreate(&libraries_of(c)->convolutions), "cudnnCreate");
}
static void convolution_close(alone_context* c) {
  if (libraries_of(c)->convolutions) dnn.cudnnDestroy(libraries_of(c)->convolutions);
}

/* The plan, and the choice that it was made of. */
static void convolution_unmake(alone_context* c, Way* way) {
  (void)c;
  dnn_destroy(&way->parts[0]);
  dnn_destroy(&way->parts[1]);
}

/* A line is an image of one row to the library: `missing` stands at `first` then. */
static void with_places(int64_t* to, const int64_t* from, int64_t count, int64_t places, int64_t first,
                        int64_t missing) {
  for (int64_t i = 0; i < count; ++i) to[i < first || places > 1 ? i : i + 1] = from[i];
  if (places == 1) to[first] = missing;
}

/* [n, channels, places…] and their distances, of what lies as [n, places…, channels]. */
static void* dnn_tensor(Drawing* d, const int64_t* sizes, int64_t places, int64_t dtype, int64_t id) {
  int64_t lie[kDnnMostDims], dims = (places > 1 ? places : 2) + 2, shape[kDnnMostDims], strides[kDnnMostDims], step = 1,
                             aligned = 16;
  with_places(lie, sizes, places + 2, places, 1, 1);
  for (int64_t i = dims; i-- > 0; step *= lie[i]) {
    int64_t at = i == 0 ? 0 : i == dims - 1 ? 1 : i + 1;
    shape[at] = lie[i];
    strides[at] = step;
  }
  void* t = dnn_part(d, kDnnTensor);
  dnn_set(d, t, kDnnTensorId, kDnnOfInt, 1, &id);
  dnn_set(d, t, kDnnTensorDtype, kDnnOfDtype, 1, &kDnnDtypes[dtype]);
  dnn_set(d, t, kDnnTensorSizes, kDnnOfInt, dims, shape);
  dnn_set(d, t, kDnnTensorStrides, kDnnOfInt, dims, strides);
  dnn_set(d, t, kDnnTensorAlignment, kDnnOfInt, 1, &aligned);
  dnn_finish(d, t);
  return t;
}

static void* dnn_graph(alone_context* c, Drawing* d, const Call* call) {
  const int64_t *facts = call->facts, *s = call->sizes, places = facts[kPlaces], described = places > 1 ? places : 2,
                dims = places + 2;
  const int* names = kDnnOperations[facts[kComputed]];
  void* tensors[3];
  for (int64_t i = 0; i < 3; ++i) tensors[i] = dnn_tensor(d, s + i * dims, places, facts[kDtype], i + 1);
  s += 3 * dims;
  int64_t stride[3], padding[3], dilation[3];
  with_places(stride, s, places, places, 0, 1);
  with_places(padding, s + places, places, places, 0, 0);
  with_places(dilation, s + 2 * places, places, places, 0, 1);
  int compute = kDnnDtypes[0], mode = kDnnCrossCorrelation;
  void* how = dnn_part(d, kDnnConvolution);
  dnn_set(d, how, kDnnCompute, kDnnOfDtype, 1, &compute);
  dnn_set(d, how, kDnnMode, kDnnOfMode, 1, &mode);
  dnn_set(d, how, kDnnPlaces, kDnnOfInt, 1, &described);
  dnn_set(d, how, kDnnStride, kDnnOfInt, described, stride);
  dnn_set(d, how, kDnnDilation, kDnnOfInt, described, dilation);
  dnn_set(d, how, kDnnBefore, kDnnOfInt, described, padding);
  dnn_set(d, how, kDnnAfter, kDnnOfInt, described, padding);
  dnn_finish(d, how);
  float one = 1, zero = 0;
  void *operation = dnn_part(d, names[0]), *of[] = {how, tensors[1], tensors[0], tensors[2]};
  dnn_set(d, operation, names[1], kDnnOfFloat, 1, &one);
  dnn_set(d, operation, names[1] + 1, kDnnOfFloat, 1, &zero);
  for (int i = 0; i < 4; ++i) dnn_set(d, operation, names[1] + 2 + i, kDnnOfPart, 1, &of[i]);
  dnn_finish(d, operation);
  void* graph = dnn_part(d, kDnnGraph);
  dnn_set(d, graph, kDnnGraphHandle, kDnnOfHandle, 1, &libraries_of(c)->convolutions);
  dnn_set(d, graph, kDnnGraphOperations, kDnnOfPart, 1, &operation);
  dnn_finish(d, graph);
  return graph;
}

/* Whether it rounds no more than is allowed: not the sums, and not operands of float32. */
static int is_exact(void* choice, int64_t exact) {
  Drawing d = {0};
  int64_t count = 0;
  int notes[32], good;
  void* engine = dnn_part(&d, kDnnEngine);
  if (!d.bad) d.bad = dnn.cudnnBackendGetAttribute(choice, kDnnChoiceEngine, kDnnOfPart, 1, &count, &engine);
  count = 0;
  if (!d.bad) d.bad = dnn.cudnnBackendGetAttribute(engine, kDnnEngineNotes, kDnnOfNote, 32, &count, notes);
  good = !d.bad;
  for (int64_t i = 0; i < count && i < 32; ++i)
    good &= notes[i] != kDnnRoundedSums && !(exact && (notes[i] == kDnnTensorCores || notes[i] == kDnnRoundedOperands));
  for (int i = 0; i < d.count; ++i) dnn_destroy(&d.parts[i]);
  return good;
}

/* Keeps the choice and its plan, where the library can do it in the work memory. */
static int take_choice(alone_context* c, void** choice, int64_t exact, Way* way) {
  int64_t bytes = 0, count = 0;
  void* plan = NULL;
  if (!is_exact(*choice, exact) || dnn.cudnnBackendCreateDescriptor(kDnnPlan, &plan)) return 0;
  if (dnn.cudnnBackendSetAttribute(plan, kDnnPlanHandle, kDnnOfHandle, 1, &libraries_of(c)->convolutions) ||
      dnn.cudnnBackendSetAttribute(plan, kDnnPlanChoice, kDnnOfPart, 1, choice) || dnn.cudnnBackendFinalize(plan) ||
      dnn.cudnnBackendGetAttribute(plan, kDnnPlanWorkspace, kDnnOfInt, 1, &count, &bytes) || bytes > kWorkspace) {
    dnn_destroy(&plan);
    return 0;
  }
  way->parts[0] = plan;
  way->parts[1] = *choice;
  *choice = NULL;
  return 1;
}

/* `mode`: what the library takes for best, or all that works. */
static void find_plan(alone_context* c, void* graph, int mode, int64_t exact, Way* way) {
  Drawing d = {0};
  void *choices[kMostChoices] = {0}, *heuristic = dnn_part(&d, kDnnHeuristic);
  dnn_set(&d, heuristic, kDnnHeuristicGraph, kDnnOfPart, 1, &graph);
  dnn_set(&d, heuristic, kDnnHeuristicMode, kDnnOfHeuristic, 1, &mode);
  dnn_finish(&d, heuristic);
  for (int i = 0; i < kMostChoices && !d.bad; ++i) d.bad = dnn.cudnnBackendCreateDescriptor(kDnnChoice, &choices[i]);
  int64_t found = 0;
  if (!d.bad)
    d.bad = dnn.cudnnBackendGetAttribute(heuristic, kDnnHeuristicResults, kDnnOfPart, kMostChoices, &found, choices);
  for (int64_t i = 0; i < found && i < kMostChoices && !d.bad; ++i)
    if (take_choice(c, &choices[i], exact, way)) break;
  for (int i = 0; i < kMostChoices; ++i) dnn_destroy(&choices[i]);
  dnn_destroy(&heuristic);
}

static int64_t elements_of(const Call* call, int64_t tensor) {
  int64_t dims = call->facts[kPlaces] + 2, n = 1;
  for (int64_t d = 0; d < dims; ++d) n *= call->sizes[tensor * dims + d];
  return n;
}
static int is_empty(const Call* call) {
  return elements_of(call, 0) == 0 || elements_of(call, 1) == 0 || elements_of(call, 2) == 0;
}

static alone_status convolution_make(alone_context* c, const Call* call, Way* way) {
  if (is_empty(call)) return ALONE_OK;
  Drawing d = {0};
  void* graph = dnn_graph(c, &d, call);
  for (int mode = kDnnLikely; mode >= kDnnAny && !d.bad && !way->parts[0]; --mode)
    find_plan(c, graph, mode, call->facts[kExact], way);
  while (d.count) dnn_destroy(&d.parts[--d.count]);
  if (d.bad) return did(c, d.bad, "cuDNN: describing a convolution");
  return way->parts[0] ? ALONE_OK : FAIL(c, ALONE_DEVICE, "cuDNN knows no way to make a convolution of the program");
}

static alone_status convolution_run(alone_context* c, const Call* call, const Way* way) {
  static const int kComputedTensor[] = {2, 0, 1};
  int64_t computed = kComputedTensor[call->facts[kComputed]];
  if (is_empty(call)) { /* a sum of nothing, if there is a result */
    size_t bytes = (size_t)(elements_of(call, computed) * kDtypeBytes[call->facts[kDtype]]);
    if (bytes) clear(c, call->tensors[computed], bytes);
    return leave(c);
  }
  static const int64_t kIds[] = {1, 2, 3};
  Drawing d = {0};
  void* pointers = dnn_part(&d, kDnnPointers);
  dnn_set(&d, pointers, kDnnPointerIds, kDnnOfInt, 3, kIds);
  dnn_set(&d, pointers, kDnnPointerData, kDnnOfPointer, 3, call->tensors);
  dnn_set(&d, pointers, kDnnPointerWorkspace, kDnnOfPointer, 1, &call->work);
  dnn_finish(&d, pointers);
  if (!d.bad) d.bad = dnn.cudnnSetStream(libraries_of(c)->convolutions, c->stream);
  if (!d.bad) d.bad = dnn.cudnnBackendExecute(libraries_of(c)->convolutions, way->parts[0], pointers);
  dnn_destroy(&pointers);
  return d.bad ? did(c, d.bad, "cuDNN: a convolution") : leave(c);
}

#endif
