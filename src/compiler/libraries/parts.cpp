#include <complex>

#include "compiler/libraries/rows.h"
#include "runtime/thread_pool.h"

namespace brasa::compiler {
namespace {

constexpr int64_t kGrain = 16384;

// f(part's type, elements).
template <class F>
void each_range(const LibraryTensor& t, F f) {
  int64_t count = 1;
  for (int64_t s : t.sizes) count *= s;
  runtime::parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
    t.dtype == DType::Float32 ? f(float{}, begin, end) : f(double{}, begin, end);
  });
}

void join(const LibraryCall& call) {
  each_range(call.inputs[0], [&](auto part, int64_t begin, int64_t end) {
    using T = decltype(part);
    auto *re = static_cast<const T*>(call.inputs[0].data), *im = static_cast<const T*>(call.inputs[1].data);
    auto* out = static_cast<std::complex<T>*>(call.outputs[0].data);
    for (int64_t i = begin; i < end; ++i) out[i] = {re[i], im[i]};
  });
}

void split(const LibraryCall& call) {
  each_range(call.outputs[0], [&](auto part, int64_t begin, int64_t end) {
    using T = decltype(part);
    auto* z = static_cast<const std::complex<T>*>(call.inputs[0].data);
    auto *re = static_cast<T*>(call.outputs[0].data), *im = static_cast<T*>(call.outputs[1].data);
    for (int64_t i = begin; i < end; ++i) {
      re[i] = z[i].real();
      im[i] = z[i].imag();
    }
  });
}

bool takes(DType t) { return t == DType::Float32 || t == DType::Float64; }
bool joins(const ir::Node& n) { return takes(ir::type_of(n.arg<ir::Value>(0)).dtype); }
bool splits(const ir::Node& n) { return takes(n.types[0].dtype); }

}  // namespace

const Implementation kJoinParts = {
    .library = "host", .name = "join parts", .primitive = "prim::join_parts", .supports = joins, .run = join};
const Implementation kSplitParts = {
    .library = "host", .name = "split parts", .primitive = "prim::split_parts", .supports = splits, .run = split};

}  // namespace brasa::compiler
