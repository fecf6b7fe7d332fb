#include "runtime/cuda/activated_product.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>

#include "runtime/cuda/ready_kernels.h"
#include "runtime/cuda/tensor_cores.h"
#include "runtime/cuda/tiled_product.h"
#include "support/error.h"

namespace brasa::runtime::cuda {
namespace {

// A function of the elements of a matrix, whose rows lie apart.
struct ElementsKind {
  DType dtype;
  Epilogue epilogue;
  bool wide;  // 16 bytes a thread, else an element
  auto operator<=>(const ElementsKind&) const = default;
};

class ElementsKernel final : public TensorCores {
 public:
  explicit ElementsKernel(const ElementsKind& kind) : TensorCores(kind.dtype), kind_(kind) {}

  WrittenKernel write() {
    const char* name = "tiled_elements";
    p_.op("griddepcontrol.launch_dependents");
    Reg from = p_.parameter(0), from_row = p_.parameter(1), to = p_.parameter(2), to_row = p_.parameter(3);
    Reg pieces = p_.parameter32(4), chunks = p_.parameter32(5);
    Reg block = p_.r("mov.u32", "%ctaid.x"), thread = p_.r("mov.u32", "%tid.x");
    Reg row = p_.d("cvt.u64.u32", p_.r("div.u32", block, pieces));
    Reg chunk = p_.r("mad.lo.u32", p_.r("rem.u32", block, pieces), kThreads, thread);
    p_.op("griddepcontrol.wait");
    p_.when(p_.p("setp.lt.u32", chunk, chunks), [&] {
      auto at = [&](const Reg& data, const Reg& step) {
        return p_.d("mad.wide.u32", chunk, kind_.wide ? 16 : 2, p_.d("mad.lo.s64", row, step, data));
      };
      Reg source = at(from, from_row), target = at(to, to_row);
      if (kind_.wide) {
        Regs all = p_.fresh('r', 4);
        p_.op("ld.global.v4.b32", braces(all), str("[", source, "]"));
        for (Reg& pair : all) pair = finished(pair);
        return p_.op("st.global.v4.b32", str("[", target, "]"), braces(all));
      }
      Regs halves = {p_.fresh('h'), p_.fresh('h')};
      p_.op("ld.global.b16", halves[0], str("[", source, "]"));
      p_.op("mov.b16", halves[1], 0);
      Regs two = p_.fresh('h', 2);
      p_.op("mov.b32", braces(two), finished(p_.r("mov.b32", braces(halves))));
      p_.op("st.global.b16", str("[", target, "]"), two[0]);
    });
    return {name, p_.kernel(name, 6, kThreads, 0, 1, true), kThreads, 0, true};
  }
  static constexpr int kThreads = 256;

 private:
  Reg finished(const Reg& pair) {
    return each_of(pair, [this](const Reg& x) { return computed(kind_.epilogue, p_, x); });
  }
  ElementsKind kind_;
};
WrittenKernel elements_kernel(const ElementsKind& kind) { return ElementsKernel(kind).write(); }

void run_elements(const Product& p, const void* from, int64_t from_row, const Epilogue& epilogue, Device& device,
                  Stream stream) {
  constexpr int64_t kChunk = 16, kChunkElements = 8;
  bool wide = p.columns % kChunkElements == 0 && from_row % kChunkElements == 0 && p.to_row % kChunkElements == 0 &&
              alignment(from, kChunk) == kChunk && alignment(p.to, kChunk) == kChunk;
  int64_t chunks = wide ? p.columns / kChunkElements : p.columns, threads = ElementsKernel::kThreads;
  int64_t pieces = (chunks + threads - 1) / threads;
  auto size = [](int64_t n) { return static_cast<Slot>(n); };
  const std::array slots = {reinterpret_cast<Slot>(from), size(2 * from_row), reinterpret_cast<Slot>(p.to),
                            size(2 * p.to_row),           size(pieces),       size(chunks)};
  const ReadyKernel& kernel = ready_kernel(elements_kernel, ElementsKind{p.operands, epilogue, wide}, device);
  kernel.launch(p.rows * pieces, slots, device, stream);
}

// The library, and a kernel of elements.
void run_apart(const Product& p, const AfterProduct& after, Device& device, Stream stream, bool measure) {
  Product first = p;
  if (after.elements) {
    first.to = after.elements;
    first.to_row = after.elements_row;
  }
  run_product(first, device, stream, measure);
  run_elements(p, first.to, first.to_row, after.epilogue, device, stream);
}

// A kernel of tiles needs about as many for each processor, and enough of them that the last ones do not count.
bool has_many_tiles(const Product& p, const Device& device) {
  constexpr double kEven = 0.85;
  double rounds = static_cast<double>(tiles_of(p)) / device.properties().processors;
  return rounds >= 1 && rounds / std::ceil(rounds) >= kEven;
}

}  // namespace

void run_product(const Product& p, const AfterProduct& after, Device& device, Stream stream, bool measure) {
  if (after.epilogue.steps.empty()) return run_product(p, device, stream, measure);
  if (p.rows == 0 || p.columns == 0) return;
  auto tiled = [&] { run_tiled_product(p, after, device, stream); };
  auto apart = [&] { run_apart(p, after, device, stream, measure); };
  if (!takes_tiled_product(p, after, device)) return apart();
  if (!measure) return has_many_tiles(p, device) ? tiled() : apart();
  using Key = std::array<int64_t, 4>;
  struct Measured {
    std::mutex mutex;
    std::map<Key, bool> tiled;
  };
  Measured& all = kept_of<Measured>(device);
  std::lock_guard lock(all.mutex);
  auto [it, is_new] = all.tiled.try_emplace(Key{p.rows, p.inner, p.columns, p.right.row == 1});
  if (is_new) {
    constexpr int kRuns = 5;
    auto run = [&](size_t way) {
      way ? apart() : tiled();
      return 0;
    };
    it->second = quickest(2, kRuns, device, stream, run) == 0;
  }
  it->second ? tiled() : apart();
}

}  // namespace brasa::runtime::cuda
