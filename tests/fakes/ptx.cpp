#include "ptx.h"

#include <brasa/elements.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace brasa::fakes {
namespace {

constexpr int kLanes = 32;
constexpr uint32_t kAll = ~0u;

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error("PTX: " + what); }

struct Operand {
  enum Kind : uint8_t { Register, Number, Memory, List, Thread, Block, Parameter } kind = Number;
  int reg = -1;       // of Memory: -1 for a bare number
  int64_t value = 0;  // of Memory: what is added
  std::vector<int> list;
};

struct Machine;
struct Instruction;
using Does = void (*)(Machine&, const Instruction&, uint32_t lanes);
struct Instruction {
  std::string name;
  Does does = nullptr;
  std::vector<Operand> operands;
  int guard = -1;
  bool negated = false, barrier = false, branch = false;
  size_t target = 0;
  std::string label;
};

}  // namespace

class Program {
 public:
  std::vector<Instruction> code;
  int registers = 0;
  size_t shared = 0;
};

namespace {

// How threads of a block use a word of shared memory between two barriers.
class Uses {
 public:
  enum How : uint8_t { Read, Write, Add };
  struct Use {
    unsigned thread, barriers, of_warp;  // barriers of the block and of its warp that the thread has passed
    How how;
  };
  // A race: two threads, one of which writes, with no barrier between them.
  void add(const Use& u) {
    if (!since_.empty() && since_.back().barriers != u.barriers) since_.clear();
    for (const Use& other : since_) {
      bool changes = u.how != other.how || u.how == Write;
      bool same_warp = u.thread / kLanes == other.thread / kLanes, apart = !same_warp || u.of_warp == other.of_warp;
      if (u.how == Add && other.how == Add && same_warp && u.of_warp == other.of_warp)
        return;  // one of a warp stands for all
      if (changes && apart && u.thread != other.thread)
        fail("threads " + std::to_string(other.thread) + " and " + std::to_string(u.thread) +
             " use a word of shared memory with no barrier between them");
    }
    since_.push_back(u);
  }

 private:
  std::vector<Use> since_;
};

struct Machine {
  std::vector<std::array<uint64_t, kLanes>>* registers = nullptr;
  std::vector<std::byte>* shared = nullptr;
  std::vector<Uses>* uses = nullptr;
  unsigned block = 0, first_thread = 0;
  void* const* parameters = nullptr;
  unsigned barriers = 0, of_warp = 0;

  uint64_t get(const Operand& o, int lane) const {
    switch (o.kind) {
      case Operand::Register: return (*registers)[o.reg][lane];
      case Operand::Number: return static_cast<uint64_t>(o.value);
      case Operand::Thread: return first_thread + static_cast<unsigned>(lane);
      case Operand::Block: return block;
      case Operand::Parameter: return *static_cast<const uint64_t*>(parameters[o.value]);
      case Operand::Memory: return (*registers)[o.reg][lane] + static_cast<uint64_t>(o.value);
      case Operand::List: break;
    }
    fail("a list where a value should be");
  }
  float f(const Operand& o, int lane) const { return std::bit_cast<float>(static_cast<uint32_t>(get(o, lane))); }
  void set(const Operand& o, int lane, uint64_t v) { (*registers)[o.reg][lane] = v; }
  void set(const Operand& o, int lane, float v) { set(o, lane, uint64_t{std::bit_cast<uint32_t>(v)}); }
  std::byte* shared_at(uint64_t at, size_t bytes) {
    if (at + bytes > shared->size()) fail("shared memory at " + std::to_string(at));
    if (at % bytes) fail("shared memory at " + std::to_string(at) + " is not aligned");
    return shared->data() + at;
  }
  // By one lane, which is looked at for races.
  std::byte* shared_at(uint64_t at, size_t bytes, int lane, Uses::How how) {
    std::byte* out = shared_at(at, bytes);
    for (uint64_t word = at / 4; word < (at + bytes + 3) / 4; ++word)
      (*uses)[word].add({first_thread + static_cast<unsigned>(lane), barriers, of_warp, how});
    return out;
  }
};

template <class F>
void each(uint32_t lanes, F f) {
  for (int lane = 0; lane < kLanes; ++lane)
    if (lanes >> lane & 1) f(lane);
}

uint32_t u(uint64_t v) { return static_cast<uint32_t>(v); }

template <class F>
void unary(Machine& m, const Instruction& i, uint32_t lanes, F f) {
  each(lanes, [&](int l) { m.set(i.operands[0], l, f(m.get(i.operands[1], l))); });
}
template <class F>
void binary(Machine& m, const Instruction& i, uint32_t lanes, F f) {
  each(lanes, [&](int l) { m.set(i.operands[0], l, f(m.get(i.operands[1], l), m.get(i.operands[2], l))); });
}
template <class F>
void of_floats(Machine& m, const Instruction& i, uint32_t lanes, F f) {
  each(lanes,
       [&](int l) { m.set(i.operands[0], l, static_cast<float>(f(m.f(i.operands[1], l), m.f(i.operands[2], l)))); });
}
template <class F>
void of_float(Machine& m, const Instruction& i, uint32_t lanes, F f) {
  each(lanes, [&](int l) { m.set(i.operands[0], l, static_cast<float>(f(m.f(i.operands[1], l)))); });
}
template <class T, class F>
void compare(Machine& m, const Instruction& i, uint32_t lanes, F f) {
  each(lanes, [&](int l) {
    bool others = i.operands.size() < 4 || m.get(i.operands[3], l);
    auto a = static_cast<T>(m.get(i.operands[1], l)), b = static_cast<T>(m.get(i.operands[2], l));
    m.set(i.operands[0], l, uint64_t{f(a, b) && others});
  });
}
template <class T, class F>
void compare(Machine& m, const Instruction& i, uint32_t lanes) {
  compare<T>(m, i, lanes, F());
}
// Shifts by more than all bits give zero.
template <class T>
void shift_right(Machine& m, const Instruction& i, uint32_t lanes) {
  constexpr uint64_t kBits = 8 * sizeof(T);
  binary(m, i, lanes, [](uint64_t a, uint64_t b) { return u(b) < kBits ? uint64_t{static_cast<T>(a)} >> u(b) : 0; });
}
template <class T>
void shift_left(Machine& m, const Instruction& i, uint32_t lanes) {
  constexpr uint64_t kBits = 8 * sizeof(T);
  binary(m, i, lanes, [](uint64_t a, uint64_t b) { return uint64_t{u(b) < kBits ? static_cast<T>(a << u(b)) : T{0}}; });
}
template <class T, template <class> class F>
void bitwise(Machine& m, const Instruction& i, uint32_t lanes) {
  binary(m, i, lanes, [](uint64_t a, uint64_t b) { return uint64_t{static_cast<T>(F<uint64_t>()(a, b))}; });
}
template <class T>
uint64_t rounded(float low, float high) {
  T parts[2] = {T(low), T(high)};
  uint32_t out = 0;
  std::memcpy(&out, parts, sizeof out);
  return out;
}
template <class T>
void round_two(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) { m.set(i.operands[0], l, rounded<T>(m.f(i.operands[2], l), m.f(i.operands[1], l))); });
}
template <class T>
float part(uint32_t both, int which) {
  T parts[2];
  std::memcpy(static_cast<void*>(parts), &both, sizeof both);
  return static_cast<float>(parts[which]);
}

void whole_warp(const Instruction& i, uint32_t lanes) {
  if (lanes != kAll) fail(i.name + " by a part of a warp");
}

template <class T>
void multiply(Machine& m, const Instruction& i, uint32_t lanes) {
  whole_warp(i, lanes);
  auto& r = *m.registers;
  float a[16][16], b[16][8], sum[16][8];
  for (int l = 0; l < kLanes; ++l) {
    int group = l / 4, pair = 2 * (l % 4);
    for (int e = 0; e < 2; ++e) {
      for (int k = 0; k < 4; ++k)
        a[group + 8 * (k % 2)][pair + e + 8 * (k / 2)] = part<T>(u(r[i.operands[1].list[k]][l]), e);
      for (int k = 0; k < 2; ++k) b[pair + e + 8 * k][group] = part<T>(u(r[i.operands[2].list[k]][l]), e);
      for (int k = 0; k < 2; ++k)
        sum[group + 8 * k][pair + e] = std::bit_cast<float>(u(r[i.operands[3].list[2 * k + e]][l]));
    }
  }
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column)
      for (int k = 0; k < 16; ++k) sum[row][column] += a[row][k] * b[k][column];
  for (int l = 0; l < kLanes; ++l)
    for (int k = 0; k < 4; ++k)
      r[i.operands[0].list[k]][l] = std::bit_cast<uint32_t>(sum[l / 4 + 8 * (k / 2)][2 * (l % 4) + k % 2]);
}

// Of float32: the tensor cores read TF32, which is its first 19 bits.
void multiply_tf32(Machine& m, const Instruction& i, uint32_t lanes) {
  whole_warp(i, lanes);
  auto& r = *m.registers;
  auto tf32 = [&](int reg, int lane) { return std::bit_cast<float>(u(r[reg][lane]) & 0xffffe000u); };
  float a[16][8], b[8][8];
  for (int l = 0; l < kLanes; ++l)
    for (int k = 0; k < 4; ++k) {
      a[l / 4 + 8 * (k % 2)][l % 4 + 4 * (k / 2)] = tf32(i.operands[1].list[k], l);
      if (k < 2) b[l % 4 + 4 * k][l / 4] = tf32(i.operands[2].list[k], l);
    }
  for (int l = 0; l < kLanes; ++l)
    for (int e = 0; e < 4; ++e) {
      float sum = std::bit_cast<float>(u(r[i.operands[3].list[e]][l]));
      for (int k = 0; k < 8; ++k) sum += a[l / 4 + 8 * (e / 2)][k] * b[k][2 * (l % 4) + e % 2];
      r[i.operands[0].list[e]][l] = std::bit_cast<uint32_t>(sum);
    }
}
// To the nearest, ties away from zero.
float tf32(float v) {
  if (!std::isfinite(v)) return v;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(v) + 0x1000u) & 0xffffe000u);
}

// Where a descriptor says that an element lies: rows of 128 bytes, each eight as far behind the eight before as it says, 16 bytes i of a row at
// i ^ (row & 7).
const std::byte* element_of_rows(Machine& m, uint64_t descriptor, int row, int column) {
  constexpr uint64_t kSwizzledBy128 = 1, kRowBytes = 128;
  if (descriptor >> 62 != kSwizzledBy128) fail("a matrix that is not swizzled by 128 bytes");
  uint64_t start = (descriptor & 0x3fff) << 4, eight_rows = (descriptor >> 32 & 0x3fff) << 4;
  if (start % 1024 >= kRowBytes && column) fail("rows that do not begin at a multiple of 1024 bytes");
  uint64_t at = start + row / 8 * eight_rows + row % 8 * kRowBytes + 2 * column;
  return m.shared_at(at ^ (at >> 7 & 7) << 4, 2);
}
// Of the 64 rows that four warps multiply together this warp has 16. Operands are registers or descriptors of shared memory; the last number says
// whether a row of the right one is a column of the result, or what is summed over.
template <class T>
void multiply_group(Machine& m, const Instruction& i, uint32_t lanes) {
  whole_warp(i, lanes);
  constexpr int kDepth = 16, kRows = 16;
  auto& r = *m.registers;
  auto columns = static_cast<int>(2 * i.operands[0].list.size());
  bool transposed = i.operands.back().value, adds = m.get(i.operands[3], 0);
  bool left_transposed = i.operands.size() == 8 && i.operands[6].value;
  auto number = [&](const Operand& matrix, int row, int column) {
    T v;
    std::memcpy(static_cast<void*>(&v), element_of_rows(m, m.get(matrix, 0), row, column), sizeof v);
    return static_cast<float>(v);
  };
  std::vector<std::array<float, kDepth>> a(kRows), b(static_cast<size_t>(columns));
  int first = static_cast<int>(m.first_thread) / kLanes % 4 * kRows;
  for (int row = 0; row < kRows; ++row)
    for (int k = 0; k < kDepth; ++k)
      if (i.operands[1].kind == Operand::List)
        a[row][k] = part<T>(u(r[i.operands[1].list[row / 8 + k / 8 * 2]][4 * (row % 8) + k % 8 / 2]), k % 2);
      else
        a[row][k] = left_transposed ? number(i.operands[1], k, first + row) : number(i.operands[1], first + row, k);
  for (int column = 0; column < columns; ++column)
    for (int k = 0; k < kDepth; ++k)
      b[column][k] = transposed ? number(i.operands[2], k, column) : number(i.operands[2], column, k);
  for (int l = 0; l < kLanes; ++l)
    for (size_t e = 0; e < i.operands[0].list.size(); ++e) {
      const auto& left = a[l / 4 + e / 2 % 2 * 8];
      const auto& right = b[e / 4 * 8 + 2 * (l % 4) + e % 2];
      uint64_t& to = r[i.operands[0].list[e]][l];
      float sum = adds ? std::bit_cast<float>(u(to)) : 0;
      for (int k = 0; k < kDepth; ++k) sum += left[k] * right[k];
      to = std::bit_cast<uint32_t>(sum);
    }
}

template <bool transposed>
void load_matrices(Machine& m, const Instruction& i, uint32_t lanes) {
  whole_warp(i, lanes);
  for (int k = 0; k < 4; ++k) {
    uint16_t matrix[8][8];
    for (int row = 0; row < 8; ++row) std::memcpy(matrix[row], m.shared_at(m.get(i.operands[1], 8 * k + row), 16), 16);
    for (int l = 0; l < kLanes; ++l) {
      int row = l / 4, column = 2 * (l % 4);
      uint32_t low = transposed ? matrix[column][row] : matrix[row][column];
      uint32_t high = transposed ? matrix[column + 1][row] : matrix[row][column + 1];
      (*m.registers)[i.operands[0].list[k]][l] = low | high << 16;
    }
  }
}

template <size_t bytes>
void copy_to_shared(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) {
    std::byte* to = m.shared_at(m.get(i.operands[0], l), bytes);
    size_t given = m.get(i.operands[3], l);
    uint64_t from = m.get(i.operands[1], l);
    if (given && from % bytes)
      fail("a copy of " + std::to_string(bytes) + " bytes from an address that is not aligned");
    std::memset(to, 0, bytes);
    if (given) std::memcpy(to, reinterpret_cast<const void*>(from), given);
  });
}
template <int count>
void load_shared(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) {
    uint32_t parts[count];
    std::memcpy(parts, m.shared_at(m.get(i.operands[1], l), sizeof parts, l, Uses::Read), sizeof parts);
    for (int k = 0; k < count; ++k) (*m.registers)[i.operands[0].list[k]][l] = parts[k];
  });
}
template <class T>
void load_one_shared(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) {
    T v = 0;
    std::memcpy(&v, m.shared_at(m.get(i.operands[1], l), sizeof v, l, Uses::Read), sizeof v);
    m.set(i.operands[0], l, uint64_t{v});
  });
}
void store_one_shared(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) {
    uint64_t v = m.get(i.operands[1], l);
    std::memcpy(m.shared_at(m.get(i.operands[0], l), sizeof v, l, Uses::Write), &v, sizeof v);
  });
}
// What was there before.
uint32_t add_shared(Machine& m, const std::vector<Operand>& operands, int lane) {
  uint32_t before = 0;
  std::byte* at = m.shared_at(m.get(operands[0], lane), sizeof before, lane, Uses::Add);
  std::memcpy(&before, at, sizeof before);
  uint32_t after = before + u(m.get(operands[1], lane));
  std::memcpy(at, &after, sizeof after);
  return before;
}
template <class T>
void load(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) { m.set(i.operands[0], l, uint64_t{*reinterpret_cast<const T*>(m.get(i.operands[1], l))}); });
}
template <int count>
void load_parts(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) {
    uint64_t from = m.get(i.operands[1], l);
    if (from % (4 * count)) fail("a load from an address that is not aligned");
    for (int k = 0; k < count; ++k)
      (*m.registers)[i.operands[0].list[k]][l] = reinterpret_cast<const uint32_t*>(from)[k];
  });
}
template <class T>
void store(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) {
    uint64_t to = m.get(i.operands[0], l);
    if (to % sizeof(T)) fail("a store to an address that is not aligned");
    *reinterpret_cast<T*>(to) = static_cast<T>(m.get(i.operands[1], l));
  });
}

template <int count>
void store_parts(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) {
    uint64_t to = m.get(i.operands[0], l);
    if (to % (4 * count)) fail("a store to an address that is not aligned");
    for (int k = 0; k < count; ++k) reinterpret_cast<uint32_t*>(to)[k] = u((*m.registers)[i.operands[1].list[k]][l]);
  });
}
template <int count>
void store_shared(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) {
    std::byte* to = m.shared_at(m.get(i.operands[0], l), 4 * count, l, Uses::Write);
    for (int k = 0; k < count; ++k) {
      uint32_t v = u(count == 1 ? m.get(i.operands[1], l) : (*m.registers)[i.operands[1].list[k]][l]);
      std::memcpy(to + 4 * k, &v, 4);
    }
  });
}

const std::map<std::string, Does, std::less<>>& instructions() {
  using M = Machine&;
  using I = const Instruction&;
  using L = uint32_t;
  auto choose = [](M m, I i, L lanes) {
    each(lanes,
         [&](int l) { m.set(i.operands[0], l, uint64_t{u(m.get(i.operands[m.get(i.operands[3], l) ? 1 : 2], l))}); });
  };
  auto word = [](M m, I i, L l) { unary(m, i, l, [](uint64_t v) { return uint64_t{u(v)}; }); };
  static const std::map<std::string, Does, std::less<>> all = {
      {"bar.sync", [](M, I, L) {}},
      {"griddepcontrol.launch_dependents", [](M, I, L) {}},
      {"griddepcontrol.wait", [](M, I, L) {}},
      {"bar.warp.sync",
       [](M m, I i, L lanes) {
         whole_warp(i, lanes);
         ++m.of_warp;
       }},
      {"cp.async.commit_group", [](M, I, L) {}},
      {"cp.async.wait_group", [](M, I, L) {}},
      {"cp.async.cg.shared.global", copy_to_shared<16>},
      {"cp.async.ca.shared.global", copy_to_shared<4>},
      {"ld.param.u64", [](M m, I i, L l) { unary(m, i, l, [](uint64_t v) { return v; }); }},
      {"ld.global.f32", load<uint32_t>},
      {"ld.global.b16", load<uint16_t>},
      {"ld.global.u16", load<uint16_t>},
      {"ld.global.b32", load<uint32_t>},
      {"ld.global.b64", load<uint64_t>},
      {"ld.global.u8", load<uint8_t>},
      {"ld.global.v4.b32", load_parts<4>},
      {"ld.global.v4.f32", load_parts<4>},
      {"st.global.f32", store<uint32_t>},
      {"st.global.b32", store<uint32_t>},
      {"st.global.v2.b32", store_parts<2>},
      {"st.global.v2.f32", store_parts<2>},
      {"st.global.v4.b32", store_parts<4>},
      {"st.global.b16", store<uint16_t>},
      {"st.global.u8", store<uint8_t>},
      {"st.global.u16", store<uint16_t>},
      {"st.global.b64", store<uint64_t>},
      {"ld.shared.f32", load_one_shared<uint32_t>},
      {"ld.shared.b32", load_one_shared<uint32_t>},
      {"ld.shared.b64", load_one_shared<uint64_t>},
      {"st.shared.b64", store_one_shared},
      {"red.shared.add.u32", [](M m, I i, L lanes) { each(lanes, [&](int l) { add_shared(m, i.operands, l); }); }},
      {"atom.shared.add.u32",
       [](M m, I i, L lanes) {
         each(lanes, [&](int l) {
           m.set(i.operands[0], l, uint64_t{add_shared(m, {i.operands.begin() + 1, i.operands.end()}, l)});
         });
       }},
      {"match.any.sync.b32",
       [](M m, I i, L lanes) {
         whole_warp(i, lanes);
         uint64_t alike[kLanes] = {};
         for (int l = 0; l < kLanes; ++l)
           for (int k = 0; k < kLanes; ++k)
             alike[l] |= uint64_t{u(m.get(i.operands[1], l)) == u(m.get(i.operands[1], k))} << k;
         for (int l = 0; l < kLanes; ++l) m.set(i.operands[0], l, alike[l]);
       }},
      {"ld.shared.v2.f32", load_shared<2>},
      {"ld.shared.v2.b32", load_shared<2>},
      {"ld.shared.v4.b32", load_shared<4>},
      {"ld.shared.v4.f32", load_shared<4>},
      {"st.shared.f32", store_shared<1>},
      {"st.shared.b32", store_shared<1>},
      {"st.shared.v4.b32", store_shared<4>},
      {"st.shared.v4.f32", store_shared<4>},
      {"ldmatrix.sync.aligned.m8n8.x4.shared.b16", load_matrices<false>},
      {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", load_matrices<true>},
      {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", multiply<Half>},
      {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", multiply<BFloat16>},
      {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", multiply_tf32},
      {"wgmma.fence.sync.aligned", [](M, I, L) {}},
      {"wgmma.commit_group.sync.aligned", [](M, I, L) {}},
      {"wgmma.wait_group.sync.aligned", [](M, I, L) {}},
      {"fence.proxy.async.shared::cta", [](M, I, L) {}},
      {"wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", multiply_group<Half>},
      {"wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16", multiply_group<BFloat16>},
      {"wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16", multiply_group<Half>},
      {"wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16", multiply_group<BFloat16>},
      {"wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16", multiply_group<Half>},
      {"wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16", multiply_group<BFloat16>},
      {"cvt.rna.tf32.f32", [](M m, I i, L l) { of_float(m, i, l, tf32); }},
      {"shfl.sync.bfly.b32",
       [](M m, I i, L lanes) {
         whole_warp(i, lanes);
         auto from = (*m.registers)[i.operands[1].reg];
         for (int l = 0; l < kLanes; ++l) m.set(i.operands[0], l, from[l ^ static_cast<int>(i.operands[2].value)]);
       }},
      {"shfl.sync.up.b32",
       [](M m, I i, L lanes) {
         whole_warp(i, lanes);
         auto from = (*m.registers)[i.operands[1].reg];
         for (int l = 0; l < kLanes; ++l) {
           int other = l - static_cast<int>(i.operands[2].value);
           m.set(i.operands[0], l, from[other < 0 ? l : other]);
         }
       }},
      {"shfl.sync.idx.b32",
       [](M m, I i, L lanes) {
         whole_warp(i, lanes);
         uint64_t from = (*m.registers)[i.operands[1].reg][static_cast<size_t>(i.operands[2].value)];
         for (int l = 0; l < kLanes; ++l) m.set(i.operands[0], l, from);
       }},
      {"mov.u32", word},
      {"mov.f32", word},
      {"mov.b16", [](M m, I i, L l) { unary(m, i, l, [](uint64_t v) { return v & 0xffff; }); }},
      {"mov.b32",
       [](M m, I i, L lanes) {
         each(lanes, [&](int l) {
           auto& r = *m.registers;
           if (i.operands[0].kind == Operand::List) {
             uint64_t v = m.get(i.operands[1], l);
             for (int k = 0; k < 2; ++k) r[i.operands[0].list[k]][l] = v >> 16 * k & 0xffff;
           } else if (i.operands[1].kind == Operand::List) {
             m.set(i.operands[0], l, r[i.operands[1].list[0]][l] | r[i.operands[1].list[1]][l] << 16);
           } else {
             m.set(i.operands[0], l, uint64_t{u(m.get(i.operands[1], l))});
           }
         });
       }},
      {"mov.b64",
       [](M m, I i, L lanes) {
         each(lanes, [&](int l) {
           auto& r = *m.registers;
           const Operand& from = i.operands[1];
           bool two = from.kind == Operand::List;
           m.set(i.operands[0], l, two ? u(r[from.list[0]][l]) | r[from.list[1]][l] << 32 : m.get(from, l));
         });
       }},
      {"not.pred", [](M m, I i, L l) { unary(m, i, l, [](uint64_t v) { return uint64_t{!v}; }); }},
      {"cvt.u32.u64", word},
      {"cvt.u64.u32", word},
      {"cvt.f32.f16",
       [](M m, I i, L lanes) {
         each(lanes, [&](int l) { m.set(i.operands[0], l, part<Half>(u(m.get(i.operands[1], l)), 0)); });
       }},
      {"cvt.rn.f16x2.f32", round_two<Half>},
      {"cvt.rn.bf16x2.f32", round_two<BFloat16>},
      {"add.u32", [](M m, I i, L l) { binary(m, i, l, [](uint64_t a, uint64_t b) { return uint64_t{u(a + b)}; }); }},
      {"sub.u32", [](M m, I i, L l) { binary(m, i, l, [](uint64_t a, uint64_t b) { return uint64_t{u(a - b)}; }); }},
      {"mul.lo.u32", [](M m, I i, L l) { binary(m, i, l, [](uint64_t a, uint64_t b) { return uint64_t{u(a * b)}; }); }},
      {"div.u32", [](M m, I i, L l) { binary(m, i, l, [](uint64_t a, uint64_t b) { return uint64_t{u(a) / u(b)}; }); }},
      {"rem.u32", [](M m, I i, L l) { binary(m, i, l, [](uint64_t a, uint64_t b) { return uint64_t{u(a) % u(b)}; }); }},
      {"and.b32", bitwise<uint32_t, std::bit_and>},
      {"or.b32", bitwise<uint32_t, std::bit_or>},
      {"xor.b32", bitwise<uint32_t, std::bit_xor>},
      {"and.b64", bitwise<uint64_t, std::bit_and>},
      {"or.b64", bitwise<uint64_t, std::bit_or>},
      {"xor.b64", bitwise<uint64_t, std::bit_xor>},
      {"and.pred", bitwise<bool, std::bit_and>},
      {"or.pred", bitwise<bool, std::bit_or>},
      {"xor.pred", bitwise<bool, std::bit_xor>},
      {"shr.u32", shift_right<uint32_t>},
      {"shr.u64", shift_right<uint64_t>},
      {"shl.b32", shift_left<uint32_t>},
      {"shl.b64", shift_left<uint64_t>},
      {"popc.b32",
       [](M m, I i, L l) { unary(m, i, l, [](uint64_t v) { return uint64_t(std::popcount(u(v))); }); }},
      {"min.u32",
       [](M m, I i, L l) { binary(m, i, l, [](auto a, auto b) { return uint64_t{std::min(u(a), u(b))}; }); }},
      {"max.u32",
       [](M m, I i, L l) { binary(m, i, l, [](auto a, auto b) { return uint64_t{std::max(u(a), u(b))}; }); }},
      {"add.s64", [](M m, I i, L l) { binary(m, i, l, [](uint64_t a, uint64_t b) { return a + b; }); }},
      {"mul.lo.s64", [](M m, I i, L l) { binary(m, i, l, [](uint64_t a, uint64_t b) { return a * b; }); }},
      {"mul.wide.u32", [](M m, I i, L l) { binary(m, i, l, [](auto a, auto b) { return uint64_t{u(a)} * u(b); }); }},
      {"mad.lo.u32",
       [](M m, I i, L lanes) {
         each(lanes, [&](int l) {
           m.set(i.operands[0], l,
                 uint64_t{u(m.get(i.operands[1], l) * m.get(i.operands[2], l) + m.get(i.operands[3], l))});
         });
       }},
      {"mad.lo.s64",
       [](M m, I i, L lanes) {
         each(lanes, [&](int l) {
           m.set(i.operands[0], l, m.get(i.operands[1], l) * m.get(i.operands[2], l) + m.get(i.operands[3], l));
         });
       }},
      {"mad.wide.u32",
       [](M m, I i, L lanes) {
         each(lanes, [&](int l) {
           m.set(i.operands[0], l,
                 uint64_t{u(m.get(i.operands[1], l))} * u(m.get(i.operands[2], l)) + m.get(i.operands[3], l));
         });
       }},
      {"selp.b32", choose},
      {"selp.f32", choose},
      {"selp.b64",
       [](M m, I i, L lanes) {
         each(lanes, [&](int l) { m.set(i.operands[0], l, m.get(i.operands[m.get(i.operands[3], l) ? 1 : 2], l)); });
       }},
      {"setp.lt.u32", compare<uint32_t, std::less<>>},
      {"setp.le.u32", compare<uint32_t, std::less_equal<>>},
      {"setp.gt.u32", compare<uint32_t, std::greater<>>},
      {"setp.ge.u32", compare<uint32_t, std::greater_equal<>>},
      {"setp.eq.u32", compare<uint32_t, std::equal_to<>>},
      {"setp.lt.and.u32", compare<uint32_t, std::less<>>},
      {"setp.le.and.u32", compare<uint32_t, std::less_equal<>>},
      {"setp.eq.and.u32", compare<uint32_t, std::equal_to<>>},
      {"setp.lt.u64", compare<uint64_t, std::less<>>},
      {"setp.gt.u64", compare<uint64_t, std::greater<>>},
      {"setp.eq.u64", compare<uint64_t, std::equal_to<>>},
      {"add.f32", [](M m, I i, L l) { of_floats(m, i, l, std::plus<float>()); }},
      {"sub.f32", [](M m, I i, L l) { of_floats(m, i, l, std::minus<float>()); }},
      {"mul.f32", [](M m, I i, L l) { of_floats(m, i, l, std::multiplies<float>()); }},
      {"max.f32", [](M m, I i, L l) { of_floats(m, i, l, [](float a, float b) { return std::fmax(a, b); }); }},
      {"neg.f32", [](M m, I i, L l) { of_float(m, i, l, std::negate<float>()); }},
      {"ex2.approx.ftz.f32", [](M m, I i, L l) { of_float(m, i, l, [](float a) { return std::exp2(a); }); }},
      {"lg2.approx.ftz.f32", [](M m, I i, L l) { of_float(m, i, l, [](float a) { return std::log2(a); }); }},
      {"rcp.approx.ftz.f32", [](M m, I i, L l) { of_float(m, i, l, [](float a) { return 1 / a; }); }},
      {"fma.rn.f32",
       [](M m, I i, L lanes) {
         each(lanes, [&](int l) {
           m.set(i.operands[0], l, std::fma(m.f(i.operands[1], l), m.f(i.operands[2], l), m.f(i.operands[3], l)));
         });
       }},
  };
  return all;
}

class Parser {
 public:
  std::shared_ptr<const Program> parse(const std::string& text) {
    auto out = std::make_shared<Program>();
    std::map<std::string, size_t> labels;
    size_t at = text.find('{');
    while (at < text.size()) {
      size_t end = std::min(text.find('\n', at), text.size());
      std::string_view line = trimmed(std::string_view(text).substr(at, end - at));
      at = end + 1;
      if (line.starts_with(".shared"))
        out->shared = std::stoul(std::string(line.substr(line.find('[') + 1)));
      else if (line.ends_with(':'))
        labels[std::string(line.substr(0, line.size() - 1))] = out->code.size();
      else if (!line.empty() && line[0] != '.' && line != "{" && line != "}" && line != "ret;")
        out->code.push_back(instruction(line));
    }
    for (Instruction& i : out->code)
      if (i.branch) i.target = labels.at(i.label);
    out->registers = static_cast<int>(registers_.size());
    return out;
  }

 private:
  static std::string_view trimmed(std::string_view s) {
    while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
    while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
    return s;
  }
  int reg(std::string_view name) {
    return registers_.emplace(std::string(name), static_cast<int>(registers_.size())).first->second;
  }

  Instruction instruction(std::string_view line) {
    if (!line.ends_with(';')) fail("no instruction: " + std::string(line));
    line.remove_suffix(1);
    Instruction out;
    if (line[0] == '@') {
      size_t space = line.find(' ');
      out.guard = reg(line.substr(1, space - 1));
      line = trimmed(line.substr(space));
    }
    size_t space = std::min(line.find(' '), line.size());
    out.name = line.substr(0, space);
    line = trimmed(line.substr(space));
    if (out.name == "bra") {
      out.branch = true;
      out.label = line;
      return out;
    }
    out.barrier = out.name == "bar.sync";
    auto it = instructions().find(out.name);
    if (it == instructions().end()) fail("there is no instruction " + out.name);
    out.does = it->second;
    int depth = 0;
    size_t start = 0;
    for (size_t i = 0; i <= line.size(); ++i) {
      if (i < line.size() && (line[i] == '{' || line[i] == '[')) ++depth;
      if (i < line.size() && (line[i] == '}' || line[i] == ']')) --depth;
      if (i < line.size() && (line[i] != ',' || depth)) continue;
      if (i > start) out.operands.push_back(operand(trimmed(line.substr(start, i - start))));
      start = i + 1;
    }
    return out;
  }

  Operand operand(std::string_view s) {
    Operand out;
    if (s == "%tid.x" || s == "%ctaid.x") {
      out.kind = s[1] == 't' ? Operand::Thread : Operand::Block;
    } else if (s[0] == '%') {
      out.kind = Operand::Register;
      out.reg = reg(s);
    } else if (s[0] == '{') {
      out.kind = Operand::List;
      for (s = s.substr(1, s.size() - 2); !s.empty();) {
        size_t end = std::min(s.find(','), s.size());
        out.list.push_back(reg(trimmed(s.substr(0, end))));
        s.remove_prefix(std::min(end + 1, s.size()));
      }
    } else if (s[0] == '[') {
      s = s.substr(1, s.size() - 2);
      if (s[0] == 'p') {
        out.kind = Operand::Parameter;
        out.value = std::stol(std::string(s.substr(1)));
        return out;
      }
      size_t plus = s.find('+');
      out.kind = Operand::Memory;
      out.reg = reg(s.substr(0, plus));
      if (plus != s.npos) out.value = std::stol(std::string(s.substr(plus + 1)));
    } else if (s.starts_with("0f")) {
      out.value = static_cast<int64_t>(std::stoul(std::string(s.substr(2)), nullptr, 16));
    } else if (s == "shared_memory") {
      out.value = 0;
    } else {
      out.value = std::stol(std::string(s));
    }
    return out;
  }

  std::map<std::string, int> registers_;
};

// One warp; it stops at barriers.
class Warp {
 public:
  Warp(const Program& p, Machine machine)
      : program_(p), registers_(static_cast<size_t>(p.registers)), machine_(machine) {
    machine_.registers = &registers_;
  }
  bool done() const { return at_[0] >= program_.code.size() && lanes_at(program_.code.size()) == kAll; }

  void run() {
    machine_.registers = &registers_;
    while (!done()) {
      size_t pc = program_.code.size();
      for (size_t at : at_) pc = std::min(pc, at);
      const Instruction& i = program_.code[pc];
      uint32_t lanes = lanes_at(pc), active = lanes;
      if (i.guard >= 0)
        each(lanes, [&](int l) {
          if (!registers_[i.guard][l]) active &= ~(1u << l);
        });
      if (!i.branch) i.does(machine_, i, active);
      each(lanes, [&](int l) { at_[l] = i.branch && (active >> l & 1) ? i.target : pc + 1; });
      if (!i.barrier) continue;
      if (lanes != kAll) fail("a barrier for a part of a warp");
      ++machine_.barriers;
      return;
    }
  }

 private:
  uint32_t lanes_at(size_t pc) const {
    uint32_t out = 0;
    for (int l = 0; l < kLanes; ++l) out |= uint32_t{at_[l] == pc} << l;
    return out;
  }
  const Program& program_;
  std::vector<std::array<uint64_t, kLanes>> registers_;
  std::array<size_t, kLanes> at_{};
  Machine machine_;
};

}  // namespace

std::shared_ptr<const Program> parse_ptx(const std::string& text) { return Parser().parse(text); }

void run(const Program& program, unsigned blocks, unsigned threads, size_t given, void* const* parameters) {
  for (unsigned b = 0; b < blocks; ++b) {
    std::vector<std::byte> shared(program.shared + given, std::byte{0xff});  // NaN, until something is there
    std::vector<Uses> uses((shared.size() + 3) / 4);
    std::vector<Warp> warps;
    for (unsigned t = 0; t < threads; t += kLanes)
      warps.emplace_back(program, Machine{nullptr, &shared, &uses, b, t, parameters});
    for (bool more = true; more;) {
      more = false;
      for (Warp& w : warps) {
        w.run();
        more = more || !w.done();
      }
    }
  }
}

}  // namespace brasa::fakes
