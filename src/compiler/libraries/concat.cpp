#include <algorithm>
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

// The bytes that an operand gives to each of the result's blocks, and where they begin there.
struct Part {
  const char* data;
  int64_t size, at;
};

using Copy = void (*)(const std::vector<Part>& parts, char* to, int64_t block, int64_t begin, int64_t end);

void copy_parts(const std::vector<Part>& parts, char* to, int64_t block, int64_t begin, int64_t end) {
  for (int64_t b = begin; b < end; ++b)
    for (const Part& p : parts) std::memcpy(to + b * block + p.at, p.data + b * p.size, static_cast<size_t>(p.size));
}

// One number of each operand in a block: a call would take longer than the copy. Each operand gives several blocks theirs in turn.
template <int64_t kBytes>
void copy_numbers(const std::vector<Part>& parts, char* to, int64_t block, int64_t begin, int64_t end) {
  constexpr int64_t kBlocks = 32;
  for (int64_t first = begin; first < end; first += kBlocks)
    for (const Part& p : parts)
      for (int64_t b = first; b < std::min(first + kBlocks, end); ++b)
        std::memcpy(to + b * block + p.at, p.data + b * kBytes, kBytes);
}

Copy copy_of(const std::vector<Part>& parts) {
  int64_t size = parts[0].size;
  if (std::any_of(parts.begin(), parts.end(), [&](const Part& p) { return p.size != size; })) return copy_parts;
  switch (size) {
    case 1: return copy_numbers<1>;
    case 2: return copy_numbers<2>;
    case 4: return copy_numbers<4>;
    case 8: return copy_numbers<8>;
    case 16: return copy_numbers<16>;
    default: return copy_parts;
  }
}

void run(const LibraryCall& call) {
  int64_t dim = call.integer(1);
  auto bytes = static_cast<int64_t>(size_of(call.outputs[0].dtype));
  Lines out(call.outputs[0].sizes, dim);
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
  if (block <= kGrainBytes) {
    Copy copy = copy_of(parts);
    runtime::parallel_for(out.outer, kGrainBytes / block + 1,
                          [&](int64_t begin, int64_t end) { copy(parts, to, block, begin, end); });
    return;
  }
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
