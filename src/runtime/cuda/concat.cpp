#include "runtime/cuda/concat.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "runtime/cuda/ptx.h"

namespace brasa::runtime::cuda {
namespace {

constexpr int kThreads = 256, kEach = 8;          // units of a thread
constexpr int kMostParts = 32;                    // of a launch
constexpr int64_t kMostUnits = int64_t{1} << 31;  // of a part in a launch

enum Parameter : int { kTo, kRows, kWidth, kParts };  // the result's address; rows; units of a row
// Of a part: its address, its first block, units of a row, and where these go in a row of the result.
enum PartParameter : int { kFrom, kBlock, kSize, kAt, kOfPart };

// A block copies units of one part.
class Kernel {
 public:
  using Reg = Ptx::Reg;
  using Regs = Ptx::Regs;
  explicit Kernel(const ConcatKind& kind) : unit_(kind.unit) {}

  WrittenKernel write() {
    Reg thread = p_.r("mov.u32", "%tid.x"), block = p_.r("mov.u32", "%ctaid.x");
    Reg to = p_.parameter(kTo), rows = p_.parameter32(kRows), width = p_.parameter(kWidth);
    auto parameter = [&](int part, PartParameter which) { return p_.parameter(kParts + kOfPart * part + which); };
    Reg from = parameter(0, kFrom), first = parameter(0, kBlock), size = parameter(0, kSize), at = parameter(0, kAt);
    Reg own = p_.d("cvt.u64.u32", block);
    for (int i = 1; i < kMostParts; ++i) {
      Reg begins = parameter(i, kBlock), before = p_.p("setp.gt.u64", begins, own);
      auto choose = [&](Reg& r, const Reg& other) { r = p_.d("selp.b64", r, other, before); };
      choose(from, parameter(i, kFrom));
      choose(first, begins);
      choose(size, parameter(i, kSize));
      choose(at, parameter(i, kAt));
    }
    Reg row = p_.r("cvt.u32.u64", size), units = p_.r("mul.lo.u32", rows, row);
    Reg start = p_.r("mad.lo.u32", p_.r("sub.u32", block, p_.r("cvt.u32.u64", first)), kThreads * kEach, thread);
    Regs places, there;
    std::vector<Regs> values;
    for (int i = 0; i < kEach; ++i) {
      Reg place = p_.r("add.u32", start, i * kThreads);
      there.push_back(p_.p("setp.lt.u32", place, units));
      places.push_back(p_.r("min.u32", place, p_.r("sub.u32", units, 1)));
      values.push_back(loaded(p_.d("mad.wide.u32", places[i], unit_, from)));
    }
    for (int i = 0; i < kEach; ++i) {
      Reg y = p_.r("div.u32", places[i], row), x = p_.r("rem.u32", places[i], row);
      Reg unit = p_.d("mad.lo.s64", p_.d("cvt.u64.u32", y), width, p_.d("add.s64", at, p_.d("cvt.u64.u32", x)));
      p_.when(there[i], [&] { store(p_.d("mad.lo.s64", unit, unit_, to), values[i]); });
    }
    return {"concat", p_.kernel("concat", kParts + kOfPart * kMostParts, kThreads, 4), kThreads};
  }

 private:
  Regs loaded(const Reg& at) {
    Regs out = p_.fresh(unit_ == 8 ? 'd' : 'r', unit_ == 16 ? 4 : 1);
    p_.op(str("ld.global.", memory_type(unit_)), unit_ == 16 ? braces(out) : out[0], str("[", at, "]"));
    return out;
  }
  void store(const Reg& at, const Regs& v) {
    p_.op(str("st.global.", memory_type(unit_)), str("[", at, "]"), unit_ == 16 ? braces(v) : v[0]);
  }

  int unit_;
  Ptx p_;
};

struct Part {
  const std::byte* from;
  int64_t bytes, at;  // of a row, and where in the result's
};

void copy_rows(std::span<const Part> parts, int64_t rows, int64_t width, std::byte* to, Device& device, Stream stream) {
  uintptr_t all = reinterpret_cast<uintptr_t>(to) | static_cast<uintptr_t>(width);
  for (const Part& p : parts) all |= reinterpret_cast<uintptr_t>(p.from) | static_cast<uintptr_t>(p.bytes | p.at);
  int64_t unit = alignment(reinterpret_cast<const void*>(all), 16);
  auto slot = [](int64_t v) { return static_cast<Slot>(v); };
  std::vector<Slot> slots = {reinterpret_cast<Slot>(to), slot(rows), slot(width / unit)};
  int64_t blocks = 0;
  for (const Part& p : parts) {
    slots.insert(slots.end(), {reinterpret_cast<Slot>(p.from), slot(blocks), slot(p.bytes / unit), slot(p.at / unit)});
    blocks += (rows * (p.bytes / unit) + kThreads * kEach - 1) / (kThreads * kEach);
  }
  // No block has the others.
  for (size_t i = parts.size(); i < kMostParts; ++i)
    slots.insert(slots.end(), {0, std::numeric_limits<Slot>::max(), 1, 0});
  ready_kernel(concat_kernel, ConcatKind{static_cast<int>(unit)}, device).launch(blocks, slots, device, stream);
}

}  // namespace

WrittenKernel concat_kernel(const ConcatKind& kind) { return Kernel(kind).write(); }

void run_concat(std::span<const Rows> all, int64_t rows, void* result, Device& device, Stream stream) {
  std::vector<Part> parts;
  int64_t width = 0, longest = 1;
  for (const Rows& r : all) {
    if (r.bytes > 0) parts.push_back({static_cast<const std::byte*>(r.data), r.bytes, width});
    width += r.bytes;
    longest = std::max(longest, r.bytes);
  }
  auto* to = static_cast<std::byte*>(result);
  int64_t together = std::max<int64_t>(kMostUnits / longest, 1);
  for (int64_t row = 0; row < rows; row += together) {
    std::vector<Part> now = parts;
    for (Part& p : now) p.from += row * p.bytes;
    std::span<const Part> left = now;
    for (; !left.empty(); left = left.subspan(std::min<size_t>(left.size(), kMostParts)))
      copy_rows(left.first(std::min<size_t>(left.size(), kMostParts)), std::min(together, rows - row), width,
                to + row * width, device, stream);
  }
}

}  // namespace brasa::runtime::cuda
