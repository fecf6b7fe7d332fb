#include "runtime/cuda/activated_product.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/cuda/ready_kernels.h"
#include "runtime/cuda/small_product.h"
#include "runtime/cuda/tensor_cores.h"
#include "runtime/cuda/tiled_product.h"
#include "support/error.h"

namespace brasa::runtime::cuda {
namespace {

// Functions of the elements of matrices, whose rows lie apart.
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
    bool two = kind_.epilogue.writes_two(), reads_other = kind_.epilogue.reads_other();
    Reg pieces = p_.parameter32(0), chunks = p_.parameter32(1);
    int parameters = 2;
    auto matrix = [&] {
      std::array<Reg, 2> out = {p_.parameter(parameters), p_.parameter(parameters + 1)};
      parameters += 2;
      return out;
    };
    std::vector<std::array<Reg, 2>> read = {matrix()}, written = {matrix()};
    if (two) written.insert(written.begin(), matrix());
    if (reads_other) read.push_back(matrix());
    Reg block = p_.r("mov.u32", "%ctaid.x"), thread = p_.r("mov.u32", "%tid.x");
    Reg row = p_.d("cvt.u64.u32", p_.r("div.u32", block, pieces));
    Reg chunk = p_.r("mad.lo.u32", p_.r("rem.u32", block, pieces), kThreads, thread);
    p_.op("griddepcontrol.wait");
    p_.when(p_.p("setp.lt.u32", chunk, chunks), [&] {
      auto at = [&](const std::array<Reg, 2>& m) {
        return str("[", p_.d("mad.wide.u32", chunk, kind_.wide ? 16 : 2, p_.d("mad.lo.s64", row, m[1], m[0])), "]");
      };
      std::vector<Regs> in, out(written.size());
      for (const auto& m : read) in.push_back(pairs_at(at(m)));
      for (size_t i = 0; i < in[0].size(); ++i) {
        Regs pairs;
        for (const Regs& all : in) pairs.push_back(all[i]);
        pairs = finished(kind_.epilogue, pairs);
        for (size_t r = 0; r < out.size(); ++r) out[r].push_back(pairs[r]);
      }
      for (size_t r = 0; r < out.size(); ++r) put(at(written[r]), out[r]);
    });
    return {name, p_.kernel(name, parameters, kThreads, 0, 1, true), kThreads, 0, true};
  }
  static constexpr int kThreads = 256;

 private:
  // Four pairs, or an element beside nothing.
  Regs pairs_at(const std::string& place) {
    if (kind_.wide) {
      Regs all = p_.fresh('r', 4);
      p_.op("ld.global.v4.b32", braces(all), place);
      return all;
    }
    Regs halves = p_.fresh('h', 2);
    p_.op("ld.global.b16", halves[0], place);
    p_.op("mov.b16", halves[1], 0);
    return {p_.r("mov.b32", braces(halves))};
  }
  void put(const std::string& place, const Regs& pairs) {
    if (kind_.wide) return p_.op("st.global.v4.b32", place, braces(pairs));
    Regs halves = p_.fresh('h', 2);
    p_.op("mov.b32", braces(halves), pairs[0]);
    p_.op("st.global.b16", place, halves[0]);
  }
  ElementsKind kind_;
};
WrittenKernel elements_kernel(const ElementsKind& kind) { return ElementsKernel(kind).write(); }

struct ElementRows {
  const void* data;
  int64_t step;
};
// What the kernel reads and writes: the product's elements, its result, the first of two, another matrix.
void run_elements(const Product& p, const std::vector<ElementRows>& all, const Epilogue& epilogue, Device& device,
                  Stream stream) {
  constexpr int64_t kChunk = 16, kChunkElements = 8;
  bool wide = p.columns % kChunkElements == 0 && std::all_of(all.begin(), all.end(), [](const ElementRows& r) {
                return r.step % kChunkElements == 0 && alignment(r.data, kChunk) == kChunk;
              });
  int64_t chunks = wide ? p.columns / kChunkElements : p.columns;
  int64_t blocks_of_row = pieces(chunks, ElementsKernel::kThreads);
  auto size = [](int64_t n) { return static_cast<Slot>(n); };
  std::vector<Slot> slots = {size(blocks_of_row), size(chunks)};
  for (const ElementRows& r : all) slots.insert(slots.end(), {reinterpret_cast<Slot>(r.data), size(2 * r.step)});
  const ReadyKernel& kernel = ready_kernel(elements_kernel, ElementsKind{p.operands, epilogue, wide}, device);
  kernel.launch(p.rows * blocks_of_row, slots, device, stream);
}

// The library, and a kernel of elements. They lie where they are written themselves, or where what becomes of them will.
void run_apart(const Product& p, const AfterProduct& after, Device& device, Stream stream, Measuring* measuring) {
  Epilogue epilogue = after.epilogue;
  Product first = p;
  if (epilogue.writes_two() && epilogue.results[0] == 0) {
    first.to = after.first;
    first.to_row = after.first_row;
    epilogue.results.erase(epilogue.results.begin());
  }
  run_product(first, device, stream, measuring);
  std::vector<ElementRows> all = {{first.to, first.to_row}, {p.to, p.to_row}};
  if (epilogue.writes_two()) all.push_back({after.first, after.first_row});
  if (epilogue.reads_other()) all.push_back({after.other, after.other_row});
  run_elements(p, all, epilogue, device, stream);
}

// A kernel of tiles needs about as many for each processor, and enough of them that the last ones do not count.
bool has_many_tiles(const Product& p, const Device& device) {
  constexpr double kEven = 0.85;
  double rounds = static_cast<double>(tiles_of(p)) / device.properties().processors;
  return rounds >= 1 && rounds / std::ceil(rounds) >= kEven;
}

}  // namespace

void run_product(const Product& p, const AfterProduct& after, Device& device, Stream stream, Measuring* measuring) {
  if (after.epilogue.is_none()) {
    if (takes_small_product(p, device)) return run_small_product(p, device, stream);
    return run_product(p, device, stream, measuring);
  }
  if (p.rows == 0 || p.columns == 0) return;
  auto tiled = [&] { run_tiled_product(p, after, device, stream); };
  auto apart = [&] { run_apart(p, after, device, stream, measuring); };
  if (!takes_tiled_product(p, after, device)) return apart();
  if (!measuring) return has_many_tiles(p, device) ? tiled() : apart();
  using Key = std::pair<std::array<int64_t, 5>, Epilogue>;
  struct Measured {
    std::mutex mutex;
    std::map<Key, bool> tiled;
  };
  Measured& all = kept_of<Measured>(device);
  std::lock_guard lock(all.mutex);
  Key key{{p.rows, p.inner, p.columns, p.right.row == 1, p.bias != nullptr}, after.epilogue};
  auto [it, is_new] = all.tiled.try_emplace(key);
  if (is_new) {
    constexpr int kRuns = 5;
    auto run = [&](size_t way) {
      way ? apart() : tiled();
      return 0;
    };
    std::string what = str("tiles or cuBLASLt ", products_version(), " ", key.first, " then ", text_of(after.epilogue));
    it->second = chosen(2, kRuns, what, *measuring, device, stream, run) == 0;
  }
  it->second ? tiled() : apart();
}

}  // namespace brasa::runtime::cuda
