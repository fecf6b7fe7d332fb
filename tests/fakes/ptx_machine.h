#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

// What instructions work on: a warp's registers, and its block's shared memory.
namespace brasa::fakes {

constexpr int kLanes = 32;
constexpr uint32_t kAll = ~0u;

[[noreturn]] inline void fail(const std::string& what) { throw std::runtime_error("PTX: " + what); }

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

inline uint32_t u(uint64_t v) { return static_cast<uint32_t>(v); }

template <class T>
float part(uint32_t both, int which) {
  T parts[2];
  std::memcpy(static_cast<void*>(parts), &both, sizeof both);
  return static_cast<float>(parts[which]);
}
template <class F>
void of_float(Machine& m, const Instruction& i, uint32_t lanes, F f) {
  each(lanes, [&](int l) { m.set(i.operands[0], l, static_cast<float>(f(m.f(i.operands[1], l)))); });
}
inline void whole_warp(const Instruction& i, uint32_t lanes) {
  if (lanes != kAll) fail(i.name + " by a part of a warp");
}

using Instructions = std::map<std::string, Does, std::less<>>;
/// By name.
const Instructions& instructions();
/// Those of matrices.
void add_tensor_cores(Instructions& all);

}  // namespace brasa::fakes
