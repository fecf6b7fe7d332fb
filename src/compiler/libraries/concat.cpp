#include <cstring>
#include <vector>

#include "compiler/libraries/lines.h"
#include "compiler/libraries/rows.h"
#include "runtime/thread_pool.h"

namespace brasa::compiler {
namespace {

// A kernel has a branch an operand, and each number of operands is a kernel of its own: beyond a few, compiling takes longer than
// what fusion saves.
constexpr size_t kMaxFused = 8;
constexpr int64_t kGrainBytes = 65536;

void run(const LibraryCall& call) {
  int64_t dim = call.integer(1);
  auto bytes = static_cast<int64_t>(size_of(call.outputs[0].dtype));
  Lines out(call.outputs[0].sizes, dim);
  // The bytes that an operand gives to each of the result's `outer` blocks, and where they begin there.
  struct Part {
    const char* data;
    int64_t size, at;
  };
  std::vector<Part> parts;
  int64_t block = 0;
  for (const LibraryTensor& x : call.inputs) {
    int64_t size = x.sizes[dim] * out.inner * bytes;
    if (size == 0) continue;
    parts.push_back({static_cast<const char*>(x.data), size, block});
    block += size;
  }
  if (block == 0) return;
  auto* to = static_cast<char*>(call.outputs[0].data);
  auto count = static_cast<int64_t>(parts.size());
  int64_t mean = block / count;
  runtime::parallel_for(out.outer * count, kGrainBytes / (mean + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Part& p = parts[i % count];
      int64_t b = i / count;
      std::memcpy(to + b * block + p.at, p.data + b * p.size, static_cast<size_t>(p.size));
    }
  });
}

}  // namespace

bool is_long_concat(const ir::Node& n) { return n.arg<std::vector<ir::Value>>(0).size() > kMaxFused; }

const Implementation kConcat = {
    .library = "host", .name = "copies", .primitive = "prim::concat", .supports = is_long_concat, .run = run};

}  // namespace brasa::compiler
