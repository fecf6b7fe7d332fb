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

// What instructions work on: a warp's registers, and the shared memory of its block, or of a cluster of blocks.
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
  bool negated = false, barrier = false, of_cluster = false, branch = false;
  size_t target = 0;
  std::string label;
};

// The barriers that a warp has passed: its cluster's and its block's together, its own, its cluster's.
struct Barriers {
  unsigned of_block = 0, of_warp = 0, of_cluster = 0;
};

// How threads use a word of shared memory between two barriers.
class Uses {
 public:
  enum How : uint8_t { Read, Write, Add };
  struct Use {
    unsigned block, thread;
    Barriers passed;
    How how;
  };
  // A race: two threads, one of which writes, with no barrier between them.
  void add(const Use& u) {
    std::erase_if(since_, [&](const Use& other) {
      if (other.passed.of_cluster != u.passed.of_cluster) return true;
      return other.block == u.block && other.passed.of_block != u.passed.of_block;
    });
    for (const Use& other : since_) {
      bool changes = u.how != other.how || u.how == Write;
      if (changes && u.block != other.block)
        fail("two blocks use a word of shared memory with no barrier between them");
      bool same_warp = u.thread / kLanes == other.thread / kLanes;
      bool apart = !same_warp || u.passed.of_warp == other.passed.of_warp;
      if (u.how == Add && other.how == Add && same_warp && apart) return;  // one of a warp stands for all
      if (changes && apart && u.thread != other.thread)
        fail("threads " + std::to_string(other.thread) + " and " + std::to_string(u.thread) +
             " use a word of shared memory with no barrier between them");
    }
    since_.push_back(u);
  }

 private:
  std::vector<Use> since_;
};

// A block's shared memory.
struct Shared {
  std::vector<std::byte> bytes;
  std::vector<Uses> uses;
};

struct Machine {
  // An address in the shared memory of a block of the cluster has the block's rank, counted from 1, above so many bits.
  static constexpr int kBlockBits = 24;

  std::vector<std::array<uint64_t, kLanes>>* registers = nullptr;
  std::vector<Shared>* cluster = nullptr;  // by rank
  unsigned block = 0, first_thread = 0;
  void* const* parameters = nullptr;
  Barriers passed = {};

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
  unsigned rank() const { return block % static_cast<unsigned>(cluster->size()); }
  Shared& own() { return (*cluster)[rank()]; }
  std::byte* shared_at(uint64_t at, size_t bytes) { return shared_at(own(), at, bytes); }
  // By one lane, which is looked at for races.
  std::byte* shared_at(uint64_t at, size_t bytes, int lane, Uses::How how) {
    return shared_at(own(), at, bytes, lane, how);
  }
  std::byte* cluster_at(uint64_t at, size_t bytes, int lane, Uses::How how) {
    uint64_t block_of = at >> kBlockBits;
    if (block_of == 0 || block_of > cluster->size()) fail("no block of the cluster is at " + std::to_string(at));
    return shared_at((*cluster)[block_of - 1], at & ((1u << kBlockBits) - 1), bytes, lane, how);
  }

 private:
  static std::byte* shared_at(Shared& s, uint64_t at, size_t bytes) {
    if (at + bytes > s.bytes.size()) fail("shared memory at " + std::to_string(at));
    if (at % bytes) fail("shared memory at " + std::to_string(at) + " is not aligned");
    return s.bytes.data() + at;
  }
  std::byte* shared_at(Shared& s, uint64_t at, size_t bytes, int lane, Uses::How how) {
    std::byte* out = shared_at(s, at, bytes);
    for (uint64_t word = at / 4; word < (at + bytes + 3) / 4; ++word)
      s.uses[word].add({block, first_thread + static_cast<unsigned>(lane), passed, how});
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
