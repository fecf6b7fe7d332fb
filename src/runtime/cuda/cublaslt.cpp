#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define BRASA_CHECK_PROTOTYPES
#endif

#include "runtime/cuda/cublaslt.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "runtime/cuda/library.h"
#include "runtime/cuda/ways.h"
#include "runtime/float32_products.h"
#include "support/error.h"
#include "support/lazy.h"

namespace brasa::runtime::cuda {
namespace {

using Status = int;
struct Handle_;
struct Description_;
struct Layout_;
struct Preference_;
using Handle = Handle_*;
using Description = Description_*;
using Layout = Layout_*;
using Preference = Preference_*;

struct Algorithm {
  uint64_t data[8];
};
struct Candidate {
  Algorithm algorithm;
  size_t workspace;
  Status state;
  float waves;
  int reserved[4];
};

// Numbers of the interface's enumerations.
constexpr int kReal32 = 0, kReal64 = 1, kHalf = 2, kBrain = 14;
constexpr int kCompute32 = 68, kCompute64 = 70, kComputeTf32 = 77;
constexpr int kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBias = 8;
constexpr int32_t kNoEpilogue = 1, kAddBias = 4;
constexpr int kBatchCount = 5, kBatchOffset = 6;
constexpr int kMostWorkspace = 1, kAlignA = 5, kAlignB = 6, kAlignC = 7, kAlignD = 8;
constexpr int kTile = 1;
constexpr uint32_t kTile128x128 = 20;
constexpr int kTransposed = 1;

#ifdef BRASA_CHECK_PROTOTYPES
static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(Candidate) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(Candidate, workspace) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(Candidate, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(kReal32 == CUDA_R_32F && kReal64 == CUDA_R_64F && kHalf == CUDA_R_16F && kBrain == CUDA_R_16BF);
static_assert(kCompute32 == CUBLAS_COMPUTE_32F && kCompute64 == CUBLAS_COMPUTE_64F &&
              kComputeTf32 == CUBLAS_COMPUTE_32F_FAST_TF32);
static_assert(kTransposeA == CUBLASLT_MATMUL_DESC_TRANSA && kTransposeB == CUBLASLT_MATMUL_DESC_TRANSB);
static_assert(kEpilogue == CUBLASLT_MATMUL_DESC_EPILOGUE && kBias == CUBLASLT_MATMUL_DESC_BIAS_POINTER);
static_assert(kNoEpilogue == CUBLASLT_EPILOGUE_DEFAULT && kAddBias == CUBLASLT_EPILOGUE_BIAS);
static_assert(kTransposed == CUBLAS_OP_T);
static_assert(kTile == CUBLASLT_ALGO_CONFIG_TILE_ID && kTile128x128 == CUBLASLT_MATMUL_TILE_128x128);
static_assert(kBatchCount == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT &&
              kBatchOffset == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
static_assert(kMostWorkspace == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES &&
              kAlignA == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
              kAlignB == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES &&
              kAlignC == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES &&
              kAlignD == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
#endif

struct Interface {
  Status (*create)(Handle*);
  size_t (*version)();
  Status (*description_create)(Description*, int compute, int scale);
  Status (*description_destroy)(Description);
  Status (*description_set)(Description, int attribute, const void*, size_t);
  Status (*layout_create)(Layout*, int type, uint64_t rows, uint64_t columns, int64_t leading);
  Status (*layout_destroy)(Layout);
  Status (*layout_set)(Layout, int attribute, const void*, size_t);
  Status (*preference_create)(Preference*);
  Status (*preference_destroy)(Preference);
  Status (*preference_set)(Preference, int attribute, const void*, size_t);
  Status (*find)(Handle, Description, Layout, Layout, Layout, Layout, Preference, int, Candidate*, int*);
  Status (*check)(Handle, Description, Layout, Layout, Layout, Layout, const Algorithm*, Candidate*);
  Status (*algorithm_get)(const Algorithm*, int attribute, void*, size_t, size_t* written);
  Status (*run)(Handle, Description, const void* alpha, const void* a, Layout, const void* b, Layout, const void* beta,
                const void* c, Layout, void* d, Layout, const Algorithm*, void* workspace, size_t, void* stream);
};

Loaded<Interface> load() {
  constexpr const char* kNames[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
  Library library = open_library(kNames);
  if (!library.handle) return {nullptr, str("there is no cuBLASLt 12 or 13: ", library.why_not)};
  static Interface f;
  bool all = BRASA_BIND(library, cublasLtCreate, f.create) && BRASA_BIND(library, cublasLtGetVersion, f.version) &&
             BRASA_BIND(library, cublasLtMatmulDescCreate, f.description_create) &&
             BRASA_BIND(library, cublasLtMatmulDescDestroy, f.description_destroy) &&
             BRASA_BIND(library, cublasLtMatmulDescSetAttribute, f.description_set) &&
             BRASA_BIND(library, cublasLtMatrixLayoutCreate, f.layout_create) &&
             BRASA_BIND(library, cublasLtMatrixLayoutDestroy, f.layout_destroy) &&
             BRASA_BIND(library, cublasLtMatrixLayoutSetAttribute, f.layout_set) &&
             BRASA_BIND(library, cublasLtMatmulPreferenceCreate, f.preference_create) &&
             BRASA_BIND(library, cublasLtMatmulPreferenceDestroy, f.preference_destroy) &&
             BRASA_BIND(library, cublasLtMatmulPreferenceSetAttribute, f.preference_set) &&
             BRASA_BIND(library, cublasLtMatmulAlgoGetHeuristic, f.find) &&
             BRASA_BIND(library, cublasLtMatmulAlgoCheck, f.check) &&
             BRASA_BIND(library, cublasLtMatmulAlgoConfigGetAttribute, f.algorithm_get) &&
             BRASA_BIND(library, cublasLtMatmul, f.run);
  if (!all) return {nullptr, str("this cuBLASLt lacks a function: ", dlerror()), library};
  return {&f, "", library};
}

const Loaded<Interface>& loaded() {
  static constinit Lazy<Loaded<Interface>> l(load);
  return *l;
}
const Interface& lt() {
  BRASA_ASSERT(loaded().functions, loaded().why_not);
  return *loaded().functions;
}

void check(Status status, const char* call) {
  if (status != 0) throw DeviceError(str("cuBLASLt: ", call, " failed with status ", status));
}

int type_number(DType t) {
  switch (t) {
    case DType::Float32: return kReal32;
    case DType::Float64: return kReal64;
    case DType::Float16: return kHalf;
    default: return kBrain;
  }
}

// A row-major matrix is its transpose to the library, which wants columns that lie side by side: the result's transpose is
// rightᵀ · leftᵀ.
struct Stored {
  int64_t rows, columns, leading;
  bool transposed;
};
Stored stored(int64_t row, int64_t column, int64_t rows, int64_t columns) {
  if ((column == 1 || columns == 1) && (row >= columns || rows == 1))
    return {columns, rows, std::max(row, columns), false};
  BRASA_ASSERT((row == 1 || rows == 1) && (column >= rows || columns == 1), "a matrix in steps of ", row, " and ",
               column);
  return {rows, columns, std::max(column, rows), true};
}

// As the library takes it.
uint32_t aligned_at(const void* p) {
  constexpr int64_t kMost = 256;
  return static_cast<uint32_t>(alignment(p, kMost));
}

constexpr size_t kWorkspace = 32u << 20;
constexpr int kMostCandidates = 8;

// A product ready to run, for all operands of its kind.
class Way {
 public:
  explicit Way(Handle handle) : handle_(handle) {}
  // What another constructor made is destroyed where this one throws.
  Way(const Product& p, bool tf32, Handle handle, bool asks_other_sizes = true) : Way(handle) {
    bool wide = p.result == DType::Float64;
    check(lt().description_create(&description_,
                                  wide   ? kCompute64
                                  : tf32 ? kComputeTf32
                                         : kCompute32,
                                  wide ? kReal64 : kReal32),
          "cublasLtMatmulDescCreate");
    Stored a = stored(p.right.row, p.right.column, p.inner, p.columns),
           b = stored(p.left.row, p.left.column, p.rows, p.inner);
    describe(kTransposeA, transposed(a));
    describe(kTransposeB, transposed(b));
    layouts_[0] = layout(p.operands, a.rows, a.columns, a.leading, p.count, p.right.batch);
    layouts_[1] = layout(p.operands, b.rows, b.columns, b.leading, p.count, p.left.batch);
    layouts_[2] = layout(p.result, p.columns, p.rows, std::max(p.to_row, p.columns), p.count, p.to_batch);
    if (p.bias) describe(kEpilogue, kAddBias);
    Status status = find(p);
    if (candidates_.empty() && p.bias) {
      describe(kEpilogue, kNoEpilogue);
      adds_to_result_ = true;
      status = find(p);
    }
    if (candidates_.empty() && asks_other_sizes)
      throw DeviceError(str("cuBLASLt knows no way to multiply ", p.rows, " x ", p.inner, " by ", p.inner, " x ",
                            p.columns, " of ", name(p.operands), " (status ", status, ")"));
    if (has_short_sums(p) && !small_tiles_first() && asks_other_sizes) ask_for_small_tiles(p);
  }
  ~Way() {
    for (Layout l : layouts_)
      if (l) lt().layout_destroy(l);
    if (description_) lt().description_destroy(description_);
  }
  Way(const Way&) = delete;

  void run(const Product& p, void* workspace, Device& device, Stream stream) const {
    if (adds_to_result_) fill_rows(p, device, stream);
    check(run_as(candidates_[best_], p, workspace, device.native_stream(stream)), "cublasLtMatmul");
  }

  // Keeps the candidate that takes the least time; the results are written anew afterwards.
  void measure(const Product& p, const std::string& key, Measuring& measuring, void* workspace, Device& device,
               Stream stream) {
    constexpr int kRuns = 5;
    best_ = chosen(candidates_.size(), kRuns, key, measuring, device, stream,
                   [&](size_t i) { return run_as(candidates_[i], p, workspace, device.native_stream(stream)); });
  }

  // The bias in every row of the result, twice as many with each copy.
  static void fill_rows(const Product& p, Device& device, Stream stream) {
    auto row = static_cast<size_t>(std::max(p.to_row, p.columns) * size_of(p.result));
    auto* to = static_cast<std::byte*>(p.to);
    auto one = static_cast<size_t>(p.columns * size_of(p.result));
    device.copy(to, p.bias, one, stream);
    for (int64_t done = 1; done < p.rows; done *= 2) {
      auto more = static_cast<size_t>(std::min(done, p.rows - done) - 1);
      device.copy(to + static_cast<size_t>(done) * row, to, more * row + one, stream);
    }
  }

 private:
  template <class T>
  void describe(int attribute, T value) const {
    check(lt().description_set(description_, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  }
  Status find(const Product& p) {
    if (p.bias) describe(kBias, p.bias);
    Preference preference = nullptr;
    check(lt().preference_create(&preference), "cublasLtMatmulPreferenceCreate");
    auto prefer = [&](int attribute, auto value) {
      check(lt().preference_set(preference, attribute, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
    };
    prefer(kMostWorkspace, kWorkspace);
    prefer(kAlignA, aligned_at(p.right.data));
    prefer(kAlignB, aligned_at(p.left.data));
    prefer(kAlignC, aligned_at(p.to));
    // The library has no number of its own for the bias.
    prefer(kAlignD, p.bias ? std::min(aligned_at(p.to), aligned_at(p.bias)) : aligned_at(p.to));
    candidates_.resize(kMostCandidates);
    int found = 0;
    Status status = lt().find(handle_, description_, layouts_[0], layouts_[1], layouts_[2], layouts_[2], preference,
                              kMostCandidates, candidates_.data(), &found);
    lt().preference_destroy(preference);
    candidates_.resize(static_cast<size_t>(status == 0 ? found : 0));
    std::erase_if(candidates_, [](const Candidate& c) { return c.state != 0; });
    return status;
  }
  // Where sums are short, writing them takes about as long as multiplying. A processor has two tiles of 128 x 128 at once: of many, one is
  // written while the other one multiplies, which the library's order of ways does not count.
  static bool has_short_sums(const Product& p) {
    constexpr int64_t kShort = 2048;
    return is_reduced_floating(p.operands) && p.inner <= kShort && p.count == 1;
  }
  static bool has_small_tiles(const Candidate& c) {
    constexpr float kMany = 5;  // for each processor
    uint32_t tile = 0;
    size_t written = 0;
    return c.waves >= kMany && lt().algorithm_get(&c.algorithm, kTile, &tile, sizeof tile, &written) == 0 &&
           tile == kTile128x128;
  }
  bool small_tiles_first() {
    auto found = std::find_if(candidates_.begin(), candidates_.end(), has_small_tiles);
    if (found == candidates_.end()) return false;
    std::rotate(candidates_.begin(), found, found + 1);
    return true;
  }
  // The library names few ways of each size; one that it names for another size runs here if it says so.
  void ask_for_small_tiles(const Product& p) {
    constexpr int64_t kRows = 8192, kColumns = 3072, kTileSide = 128;
    if (p.columns % kTileSide != 0 || candidates_[0].waves < 1) return;
    Product other = p;
    other.rows = kRows;
    other.columns = other.to_row = kColumns;
    if (other.left.column != 1) other.left.column = kRows;
    if (other.right.column == 1) other.right.row = kColumns;
    Way known(other, false, handle_, false);
    if (known.candidates_.empty()) return;
    Candidate c = known.candidates_[0], here{};
    if (!has_small_tiles(c) ||
        lt().check(handle_, description_, layouts_[0], layouts_[1], layouts_[2], layouts_[2], &c.algorithm, &here) != 0)
      return;
    here.algorithm = c.algorithm;
    if (here.workspace <= kWorkspace && has_small_tiles(here)) candidates_.insert(candidates_.begin(), here);
  }
  static int32_t transposed(const Stored& s) { return s.transposed ? kTransposed : 0; }
  static Layout layout(DType type, int64_t rows, int64_t columns, int64_t leading, int64_t count, int64_t batch) {
    Layout out = nullptr;
    check(lt().layout_create(&out, type_number(type), static_cast<uint64_t>(rows), static_cast<uint64_t>(columns),
                             leading),
          "cublasLtMatrixLayoutCreate");
    if (count > 1) {
      auto number = static_cast<int32_t>(count);
      check(lt().layout_set(out, kBatchCount, &number, sizeof number), "cublasLtMatrixLayoutSetAttribute");
      check(lt().layout_set(out, kBatchOffset, &batch, sizeof batch), "cublasLtMatrixLayoutSetAttribute");
    }
    return out;
  }
  Status run_as(const Candidate& c, const Product& p, void* workspace, void* stream) const {
    // As wide as what is summed up.
    float one = 1, zero = 0;
    double wide_one = 1, wide_zero = 0;
    bool wide = p.result == DType::Float64;
    const float* before = adds_to_result_ ? &one : &zero;
    if (p.bias) describe(kBias, p.bias);
    return lt().run(handle_, description_, wide ? static_cast<const void*>(&wide_one) : &one, p.right.data, layouts_[0],
                    p.left.data, layouts_[1], wide ? static_cast<const void*>(&wide_zero) : before, p.to, layouts_[2],
                    p.to, layouts_[2], &c.algorithm, workspace, kWorkspace, stream);
  }

  Handle handle_;
  bool adds_to_result_ = false;  // which holds the bias, where the library knows no way with one
  Description description_ = nullptr;
  std::array<Layout, 3> layouts_{};
  std::vector<Candidate> candidates_;
  size_t best_ = 0;
};

struct Products {
  using Key = std::array<int64_t, 19>;
  std::mutex mutex;
  Handle handle = nullptr;
  std::map<Stream, void*> workspaces;  // work of one stream uses it in order
  std::map<Key, std::unique_ptr<Way>> ways;
};

}  // namespace

bool have_products(std::string* why_not) {
  if (why_not) *why_not = loaded().why_not;
  return loaded().functions != nullptr;
}

const Library& products_library() { return loaded().library; }
size_t products_version() { return have_products() ? lt().version() : 0; }

bool takes_product(DType operands, DType result) {
  if (is_reduced_floating(operands)) return result == operands || result == DType::Float32;
  return operands == result && (operands == DType::Float32 || operands == DType::Float64);
}

bool lies_well(int64_t row, int64_t column, int64_t rows, int64_t columns) {
  return ((column == 1 || columns == 1) && (row >= columns || rows == 1)) ||
         ((row == 1 || rows == 1) && (column >= rows || columns == 1));
}

void run_product(const Product& p, Device& device, Stream stream, Measuring* measuring) {
  if (p.rows == 0 || p.columns == 0 || p.count == 0) return;
  if (p.inner == 0) {
    if (p.bias) return Way::fill_rows(p, device, stream);
    return device.fill(
        p.to, 0, static_cast<size_t>(std::max(p.to_batch * p.count, p.to_row * p.rows) * size_of(p.result)), stream);
  }
  bool tf32 = p.operands == DType::Float32 && float32_products_in_tf32();
  Products::Key key = {int64_t(p.operands) * 64 + int64_t(p.result),
                       p.rows,
                       p.inner,
                       p.columns,
                       p.count,
                       p.left.row,
                       p.left.column,
                       p.left.batch,
                       p.right.row,
                       p.right.column,
                       p.right.batch,
                       aligned_at(p.left.data),
                       aligned_at(p.right.data),
                       aligned_at(p.to),
                       p.bias ? aligned_at(p.bias) : 0,
                       p.to_row,
                       p.to_batch,
                       tf32,
                       measuring != nullptr};
  Products& all = kept_of<Products>(device);
  std::lock_guard lock(all.mutex);
  if (!all.handle) check(lt().create(&all.handle), "cublasLtCreate");
  void*& workspace = all.workspaces[stream];
  if (!workspace) workspace = device.allocate(kWorkspace, stream);
  std::unique_ptr<Way>& way = all.ways[key];
  if (!way) {
    way = std::make_unique<Way>(p, tf32, all.handle);
    if (measuring)
      way->measure(p, str("cuBLASLt ", products_version(), " ", key), *measuring, workspace, device, stream);
  }
  way->run(p, workspace, device, stream);
}

}  // namespace brasa::runtime::cuda
