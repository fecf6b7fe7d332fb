#include <brasa/elements.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "control.h"
#include "stream.h"

// cuBLASLt as far as src/runtime/cuda/cublaslt.cpp uses it. Matrices lie by columns.
namespace {

brasa::fakes::Log log_of_calls;

constexpr int kNotSupported = 15, kInvalid = 7;
constexpr int kReal32 = 0, kReal64 = 1, kHalf = 2;  // else bfloat16
constexpr int kComputeTf32 = 77;
constexpr int kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBias = 8;
constexpr int kPlain = 1, kWithBias = 4;
constexpr int kTile = 1;
constexpr uint32_t kTile128x128 = 20, kTile256x128 = 24;
constexpr uint64_t kUnnamed = 640;
constexpr int kBatchCount = 5, kBatchOffset = 6;

struct Description {
  int compute = 0, scale = 0;
  int32_t transpose_a = 0, transpose_b = 0, epilogue = kPlain;
  const void* bias = nullptr;
};
struct Layout {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0;
  int32_t count = 1;
  int64_t offset = 0;
};
struct Algorithm {
  uint64_t data[8];
};
struct Candidate {
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

int64_t bytes_of(int type) { return type == kReal64 ? 8 : type == kReal32 ? 4 : 2; }

double load(const void* p, int type, int64_t i) {
  auto at = [&](auto zero) {
    std::memcpy(&zero, static_cast<const char*>(p) + i * static_cast<int64_t>(sizeof zero), sizeof zero);
    return static_cast<double>(zero);
  };
  switch (type) {
    case kReal64: return at(double{});
    case kReal32: return at(float{});
    case kHalf: return at(brasa::Half());
    default: return at(brasa::BFloat16());
  }
}
void store(void* p, int type, int64_t i, double v) {
  auto at = [&](auto x) { std::memcpy(static_cast<char*>(p) + i * static_cast<int64_t>(sizeof x), &x, sizeof x); };
  switch (type) {
    case kReal64: return at(v);
    case kReal32: return at(static_cast<float>(v));
    case kHalf: return at(brasa::Half(static_cast<float>(v)));
    default: return at(brasa::BFloat16(static_cast<float>(v)));
  }
}

// What the library takes: a bias is of the result's type, one for each row.
bool supported(const Description& d, const Layout& a, const Layout& b, const Layout& out) {
  if (d.epilogue != kPlain && (d.epilogue != kWithBias || !d.bias || out.type == kReal64)) return false;
  uint64_t rows = d.transpose_a ? a.columns : a.rows, inner = d.transpose_a ? a.rows : a.columns;
  uint64_t inner_b = d.transpose_b ? b.columns : b.rows, columns = d.transpose_b ? b.rows : b.columns;
  if (rows != out.rows || columns != out.columns || inner != inner_b || a.type != b.type) return false;
  for (const Layout* l : {&a, &b, &out})
    if (l->leading < static_cast<int64_t>(l->rows) || l->count != out.count) return false;
  return true;
}

// For each of its processors, which is one.
float tiles_of(const Layout& out) { return static_cast<float>((out.rows + 127) / 128 * ((out.columns + 127) / 128)); }

struct Call {
  Description how;
  Layout a, b, out;
  const void *left, *right, *bias;
  double alpha, beta;
  void* to;

  void run() const {
    auto inner = static_cast<int64_t>(how.transpose_a ? a.rows : a.columns);
    for (int64_t n = 0; n < out.count; ++n)
      for (int64_t j = 0; j < static_cast<int64_t>(out.columns); ++j)
        for (int64_t i = 0; i < static_cast<int64_t>(out.rows); ++i) {
          double sum = 0;
          for (int64_t k = 0; k < inner; ++k)
            sum += load(left, a.type, n * a.offset + (how.transpose_a ? i * a.leading + k : k * a.leading + i)) *
                   load(right, b.type, n * b.offset + (how.transpose_b ? k * b.leading + j : j * b.leading + k));
          int64_t at = n * out.offset + j * out.leading + i;
          sum *= alpha;
          if (beta != 0) sum += beta * load(to, out.type, at);
          if (how.epilogue == kWithBias) sum += load(bias, out.type, i);
          store(to, out.type, at, sum);
        }
  }
};

template <class T>
int set(T& field, const void* value, size_t size) {
  if (size != sizeof field) return kInvalid;
  std::memcpy(&field, value, size);
  return 0;
}

}  // namespace

#define BRASA_FAKE extern "C" __attribute__((visibility("default")))
#define BRASA_NOTE \
  if (int status = log_of_calls.note(__func__)) return status

BRASA_FAKE brasa::fakes::Control* brasa_fake() { return &log_of_calls; }

BRASA_FAKE int cublasLtCreate(void** handle) {
  BRASA_NOTE;
  *handle = &log_of_calls;
  return 0;
}
BRASA_FAKE int cublasLtDestroy(void*) {
  BRASA_NOTE;
  return 0;
}
BRASA_FAKE size_t cublasLtGetVersion() { return 130100; }

BRASA_FAKE int cublasLtMatmulDescCreate(Description** out, int compute, int scale) {
  BRASA_NOTE;
  *out = new Description{compute, scale};
  return 0;
}
BRASA_FAKE int cublasLtMatmulDescDestroy(Description* d) {
  delete d;
  return 0;
}
BRASA_FAKE int cublasLtMatmulDescSetAttribute(Description* d, int attribute, const void* value, size_t size) {
  BRASA_NOTE;
  switch (attribute) {
    case kTransposeA: return set(d->transpose_a, value, size);
    case kTransposeB: return set(d->transpose_b, value, size);
    case kEpilogue: return set(d->epilogue, value, size);
    case kBias: return set(d->bias, value, size);
    default: return kInvalid;
  }
}

BRASA_FAKE int cublasLtMatrixLayoutCreate(Layout** out, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  BRASA_NOTE;
  *out = new Layout{type, rows, columns, leading};
  return 0;
}
BRASA_FAKE int cublasLtMatrixLayoutDestroy(Layout* l) {
  delete l;
  return 0;
}
BRASA_FAKE int cublasLtMatrixLayoutSetAttribute(Layout* l, int attribute, const void* value, size_t size) {
  BRASA_NOTE;
  return attribute == kBatchCount    ? set(l->count, value, size)
         : attribute == kBatchOffset ? set(l->offset, value, size)
                                     : kInvalid;
}

BRASA_FAKE int cublasLtMatmulPreferenceCreate(void** out) {
  BRASA_NOTE;
  *out = &log_of_calls;
  return 0;
}
BRASA_FAKE int cublasLtMatmulPreferenceDestroy(void*) { return 0; }
BRASA_FAKE int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, size_t) { return 0; }

BRASA_FAKE int cublasLtMatmulAlgoGetHeuristic(void*, const Description* d, const Layout* a, const Layout* b,
                                              const Layout*, const Layout* out, void*, int most, Candidate* found,
                                              int* count) {
  BRASA_NOTE;
  *count = 0;
  if (!supported(*d, *a, *b, *out)) return kNotSupported;
  // As the real one, it does not name all ways of a size.
  bool names_all = out->rows / kUnnamed != 1;
  for (; *count < most && *count < (names_all ? 2 : 1); ++*count)
    found[*count] = {{{static_cast<uint64_t>(*count)}}, 0, 0, tiles_of(*out), {}};
  return 0;
}
BRASA_FAKE int cublasLtMatmulAlgoCheck(void*, const Description* d, const Layout* a, const Layout* b, const Layout*,
                                       const Layout* out, const Algorithm*, Candidate* result) {
  BRASA_NOTE;
  if (!supported(*d, *a, *b, *out)) return kNotSupported;
  *result = {{}, 0, 0, tiles_of(*out), {}};
  return 0;
}
BRASA_FAKE int cublasLtMatmulAlgoConfigGetAttribute(const Algorithm* algorithm, int attribute, void* value, size_t size,
                                                    size_t* written) {
  uint32_t tile = algorithm->data[0] == 0 ? kTile256x128 : kTile128x128;
  *written = sizeof tile;
  if (attribute != kTile || size != sizeof tile) return kInvalid;
  std::memcpy(value, &tile, sizeof tile);
  return 0;
}

BRASA_FAKE int cublasLtMatmul(void*, const Description* d, const void* alpha, const void* left, const Layout* a,
                              const void* right, const Layout* b, const void* beta, const void* before, const Layout*,
                              void* to, const Layout* out, const Algorithm* algorithm, void*, size_t, void* stream) {
  BRASA_NOTE;
  if (before != to) return kNotSupported;
  if (d->epilogue == kWithBias) log_of_calls.note("bias");
  if (algorithm->data[0] == 1) log_of_calls.note("small tiles");
  if (d->compute == kComputeTf32) log_of_calls.note("tf32");
  if (!supported(*d, *a, *b, *out)) return kNotSupported;
  auto bytes = static_cast<uintptr_t>(bytes_of(out->type));
  if (reinterpret_cast<uintptr_t>(to) % bytes || reinterpret_cast<uintptr_t>(d->bias) % bytes) return kInvalid;
  auto* queue = brasa::fakes::stream_of(stream);
  if (!queue->computes()) return 0;
  Call call{*d,
            *a,
            *b,
            *out,
            queue->reach(left),
            queue->reach(right),
            queue->reach(d->bias),
            load(alpha, d->scale, 0),
            load(beta, d->scale, 0),
            queue->reach(to)};
  queue->add([call] { call.run(); });
  return 0;
}
