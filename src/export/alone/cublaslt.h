/* Products of matrices by cuBLASLt. Part of libraries.h; src/runtime/cuda/cublaslt.cpp does the same in a process, and checks these declarations
   against NVIDIA's. */
#ifndef BRASA_ALONE_CUBLASLT_H
#define BRASA_ALONE_CUBLASLT_H

#define ALONE_CUBLASLT(F)                                                                                         \
  F(cublasLtCreate, (void**))                                                                                     \
  F(cublasLtDestroy, (void*))                                                                                     \
  F(cublasLtMatmulDescCreate, (void**, int, int))                                                                 \
  F(cublasLtMatmulDescDestroy, (void*))                                                                           \
  F(cublasLtMatmulDescSetAttribute, (void*, int, const void*, size_t))                                            \
  F(cublasLtMatrixLayoutCreate, (void**, int, uint64_t, uint64_t, int64_t))                                       \
  F(cublasLtMatrixLayoutDestroy, (void*))                                                                         \
  F(cublasLtMatrixLayoutSetAttribute, (void*, int, const void*, size_t))                                          \
  F(cublasLtMatmulPreferenceCreate, (void**))                                                                     \
  F(cublasLtMatmulPreferenceDestroy, (void*))                                                                     \
  F(cublasLtMatmulPreferenceSetAttribute, (void*, int, const void*, size_t))                                      \
  F(cublasLtMatmulAlgoGetHeuristic, (void*, void*, void*, void*, void*, void*, void*, int, void*, int*))          \
  F(cublasLtMatmul, (void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, \
                     void*, void*, void*, const void*, void*, size_t, void*))

static struct {
  ALONE_CUBLASLT(MEMBER)
} lt;

/* Of the library's enumerations. */
enum {
  kLtCompute32 = 68,
  kLtCompute64 = 70,
  kLtComputeTf32 = 77,
  kLtTransposed = 1,
  kLtNoEpilogue = 1,
  kLtAddBias = 4
};
enum { kLtTransposeA = 3, kLtTransposeB = 4, kLtEpilogue = 7, kLtBias = 8, kLtBatchCount = 5, kLtBatchOffset = 6 };
enum { kLtMostWorkspace = 1, kLtAlignA = 5, kLtAlignB = 6, kLtAlignC = 7, kLtAlignD = 8 };
static const int kLtDtypes[] = {0, 1, 2, 14};

typedef struct {
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
} LtCandidate;

/* What a call says: facts {which call, dtype of the operands, of the result, in TF32?, with a bias?}, tensors {left, right, result, bias}. */
typedef struct {
  int64_t count, rows, inner, columns;
  struct {
    int64_t offset, row, column, batch; /* elements */
  } left, right;
  int64_t to_row, to_batch;
} ProductSizes;
enum { kOperands = 1, kResult_, kTf32, kBiased };

static ProductSizes sizes_of_product(const Call* call) {
  ProductSizes s;
  memcpy(&s, call->sizes, sizeof s);
  return s;
}

static alone_status product_open(alone_context* c) {
  static const char* const kNames[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
  void* library;
  alone_status status = open_first(c, kNames, "cuBLASLt 12 or 13", &library);
  if (status) return status;
#define FUNCTIONS lt
#define LIBRARY "cuBLASLt"
  ALONE_CUBLASLT(BIND)
#undef FUNCTIONS
#undef LIBRARY
  return did(c, lt.cublasLtCreate(&libraries_of(c)->products), "cublasLtCreate");
}
static void product_close(alone_context* c) {
  if (libraries_of(c)->products) lt.cublasLtDestroy(libraries_of(c)->products);
}

static void product_unmake(alone_context* c, Way* way) {
  (void)c;
  for (int i = 0; i < 3; ++i)
    if (way->parts[i]) lt.cublasLtMatrixLayoutDestroy(way->parts[i]);
  if (way->parts[3]) lt.cublasLtMatmulDescDestroy(way->parts[3]);
}

static int lt_layout(void** out, int64_t dtype, int64_t rows, int64_t columns, int64_t leading, int64_t count,
                     int64_t batch) {
  int32_t number = (int32_t)count;
  int bad = lt.cublasLtMatrixLayoutCreate(out, kLtDtypes[dtype], (uint64_t)rows, (uint64_t)columns, leading);
  if (bad || count == 1) return bad;
  bad = lt.cublasLtMatrixLayoutSetAttribute(*out, kLtBatchCount, &number, sizeof number);
  return bad ? bad : lt.cublasLtMatrixLayoutSetAttribute(*out, kLtBatchOffset, &batch, sizeof batch);
}

/* A row-major matrix is its transpose to the library, which wants columns that lie side by side. */
static int lt_operand(void** out, int32_t* transposed, int64_t dtype, int64_t row, int64_t column, int64_t rows,
                      int64_t columns, int64_t count, int64_t batch) {
  *transposed = !((column == 1 || columns == 1) && (row >= columns || rows == 1));
  if (*transposed) return lt_layout(out, dtype, rows, columns, column > rows ? column : rows, count, batch);
  return lt_layout(out, dtype, columns, rows, row > columns ? row : columns, count, batch);
}

/* Memory begins at multiples of 16 bytes. */
static uint32_t aligned_at(int64_t offset, int64_t dtype) {
  uint64_t at = (uint64_t)(offset * kDtypeBytes[dtype]) | 16;
  return (uint32_t)(at & -at);
}

/* The library's first choice; none is no failure. */
static int lt_find(alone_context* c, const Call* call, Way* way, int32_t epilogue, int* found) {
  ProductSizes s = sizes_of_product(call);
  const int64_t* facts = call->facts;
  void *preference = NULL, *any = (void*)(uintptr_t)16; /* stands for a bias */
  size_t most = kWorkspace;
  uint32_t aligned[] = {aligned_at(s.right.offset, facts[kOperands]), aligned_at(s.left.offset, facts[kOperands]), 16,
                        16};
  LtCandidate candidate;
  int bad = lt.cublasLtMatmulDescSetAttribute(way->parts[3], kLtEpilogue, &epilogue, sizeof epilogue);
  if (!bad && facts[kBiased]) bad = lt.cublasLtMatmulDescSetAttribute(way->parts[3], kLtBias, &any, sizeof any);
  if (!bad) bad = lt.cublasLtMatmulPreferenceCreate(&preference);
  if (!bad) bad = lt.cublasLtMatmulPreferenceSetAttribute(preference, kLtMostWorkspace, &most, sizeof most);
  for (int i = 0; i < 4 && !bad; ++i)
    bad = lt.cublasLtMatmulPreferenceSetAttribute(preference, kLtAlignA + i, &aligned[i], sizeof aligned[i]);
  *found = 0;
  if (!bad) {
    int status =
        lt.cublasLtMatmulAlgoGetHeuristic(libraries_of(c)->products, way->parts[3], way->parts[0], way->parts[1],
                                          way->parts[2], way->parts[2], preference, 1, &candidate, found);
    *found = status == 0 && *found > 0 && candidate.state == 0;
  }
  if (*found) memcpy(way->algorithm, candidate.algorithm, sizeof way->algorithm);
  if (preference) lt.cublasLtMatmulPreferenceDestroy(preference);
  return bad;
}

static alone_status product_make(alone_context* c, const Call* call, Way* way) {
  ProductSizes s = sizes_of_product(call);
  const int64_t* facts = call->facts;
  int wide = kDtypeBytes[facts[kResult_]] == 8, found = 0;
  if (s.count == 0 || s.rows == 0 || s.columns == 0 || s.inner == 0) return ALONE_OK;
  int32_t transposed[2];
  int bad = lt.cublasLtMatmulDescCreate(&way->parts[3],
                                        wide           ? kLtCompute64
                                        : facts[kTf32] ? kLtComputeTf32
                                                       : kLtCompute32,
                                        kLtDtypes[wide]);
  /* The result's transpose is that of the right operand times that of the left one. */
  if (!bad)
    bad = lt_operand(&way->parts[0], &transposed[0], facts[kOperands], s.right.row, s.right.column, s.inner, s.columns,
                     s.count, s.right.batch);
  if (!bad)
    bad = lt_operand(&way->parts[1], &transposed[1], facts[kOperands], s.left.row, s.left.column, s.rows, s.inner,
                     s.count, s.left.batch);
  if (!bad)
    bad = lt_layout(&way->parts[2], facts[kResult_], s.columns, s.rows, s.to_row > s.columns ? s.to_row : s.columns,
                    s.count, s.to_batch);
  for (int i = 0; i < 2 && !bad; ++i) {
    int32_t how = transposed[i] ? kLtTransposed : 0;
    bad = lt.cublasLtMatmulDescSetAttribute(way->parts[3], kLtTransposeA + i, &how, sizeof how);
  }
  if (!bad) bad = lt_find(c, call, way, facts[kBiased] ? kLtAddBias : kLtNoEpilogue, &found);
  if (!bad && !found && facts[kBiased]) {
    way->adds = 1;
    bad = lt_find(c, call, way, kLtNoEpilogue, &found);
  }
  if (bad) return did(c, bad, "cuBLASLt: describing a product");
  if (found) return ALONE_OK;
  return FAIL(c, ALONE_DEVICE, "cuBLASLt knows no way to multiply %lld x %lld by %lld x %lld", (long long)s.rows,
              (long long)s.inner, (long long)s.inner, (long long)s.columns);
}

/* The bias in every row of the result, twice as many with each copy. */
static void fill_rows(alone_context* c, const Call* call, ProductSizes s) {
  size_t each = (size_t)kDtypeBytes[call->facts[kResult_]], one = (size_t)s.columns * each,
         row = (size_t)(s.to_row > s.columns ? s.to_row : s.columns) * each;
  char* to = call->tensors[2];
  copy_inside(c, to, call->tensors[3], one);
  for (int64_t done = 1; done < s.rows; done *= 2) {
    int64_t more = s.rows - done < done ? s.rows - done : done;
    copy_inside(c, to + (size_t)done * row, to, (size_t)(more - 1) * row + one);
  }
}

static alone_status product_run(alone_context* c, const Call* call, const Way* way) {
  ProductSizes s = sizes_of_product(call);
  const int64_t* facts = call->facts;
  if (s.count == 0 || s.rows == 0 || s.columns == 0) return ALONE_OK;
  if (facts[kBiased] && (way->adds || s.inner == 0)) fill_rows(c, call, s);
  if (s.inner == 0) { /* a sum of nothing */
    int64_t elements = s.to_batch * s.count > s.to_row * s.rows ? s.to_batch * s.count : s.to_row * s.rows;
    if (!facts[kBiased]) clear(c, call->tensors[2], (size_t)(elements * kDtypeBytes[facts[kResult_]]));
    return leave(c);
  }
  int wide = kDtypeBytes[facts[kResult_]] == 8;
  float one = 1, before = (float)way->adds;
  double wide_one = 1, nothing = 0;
  const char *left = (const char*)call->tensors[0] + s.left.offset * kDtypeBytes[facts[kOperands]],
             *right = (const char*)call->tensors[1] + s.right.offset * kDtypeBytes[facts[kOperands]];
  int bad =
      facts[kBiased] ? lt.cublasLtMatmulDescSetAttribute(way->parts[3], kLtBias, &call->tensors[3], sizeof(void*)) : 0;
  if (!bad)
    bad = lt.cublasLtMatmul(libraries_of(c)->products, way->parts[3], wide ? (const void*)&wide_one : &one, right,
                            way->parts[0], left, way->parts[1], wide ? (const void*)&nothing : &before,
                            call->tensors[2], way->parts[2], call->tensors[2], way->parts[2], way->algorithm,
                            call->work, kWorkspace, c->stream);
  return bad ? did(c, bad, "cublasLtMatmul") : leave(c);
}

#endif
