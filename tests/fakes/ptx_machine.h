#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

// What instructions work on: a warp's registers, and the shared memory of its block, or of a cluster of blocks.
namespace brasa::fakes {

constexpr int kLanes = 32;
constexpr uint32_t kAll = ~0u;

[[noreturn]] inline void fail(const std::string& what) { throw std::runtime_error("PTX: " + what); }

struct Operand {
  // Of a map it is where it lies.
  enum Kind : uint8_t { Register, Number, Memory, List, Thread, Block, Parameter, Map } kind = Number;
  int reg = -1;
  int64_t value = 0;      // of Memory: what is added
  std::vector<int> list;  // of Memory: a column and a row
};

struct Machine;
struct Instruction;
using Does = void (*)(Machine&, const Instruction&, uint32_t lanes);
struct Instruction {
  std::string name;
  Does does = nullptr;
  std::vector<Operand> operands;
  int guard = -1;
  bool branch = false;
  // Whether a warp stops here until others have come: the block's, or so many threads, the cluster's, or a group of four.
  enum Stop : uint8_t { None, OfBlock, OfCluster, OfGroup } stop = None;
  size_t target = 0;
  std::string label;
};

// What happened before: of each warp of a cluster, up to which of its moments. A second account has what copy engines and tensor cores may read,
// too, as a fence made it known to them.
struct Known {
  std::vector<unsigned> seen, fenced;
  unsigned own = 0;  // of the warp itself: its moments before this one came back to it by a barrier in memory

  void learn(const Known& other) {
    learn(seen, other.seen);
    learn(fenced, other.fenced);
  }
  // Another one learns it, and a new moment begins of this warp.
  void tell(Known& other, unsigned warp) {
    other.learn(*this);
    ++seen[warp];
  }
  void fence(unsigned warp) {
    learn(fenced, seen);
    ++seen[warp];
  }

 private:
  static void learn(std::vector<unsigned>& to, const std::vector<unsigned>& from) {
    to.resize(std::max(to.size(), from.size()));
    for (size_t w = 0; w < from.size(); ++w) to[w] = std::max(to[w], from[w]);
  }
};

// How threads use a word of shared memory.
class Uses {
 public:
  enum How : uint8_t { Read, Write, Add };
  struct Use {
    unsigned block, warp, moment, of_warp;  // `of_warp`: barriers that the warp has passed
    How how;
    bool by_engine;         // by a copy engine or tensor cores, which the thread told to
    unsigned first_thread;  // of the warp
    uint32_t lanes;

    unsigned thread() const { return first_thread + static_cast<unsigned>(std::countr_zero(lanes)); }
    bool same_but_for_lanes(const Use& o) const {
      return warp == o.warp && moment == o.moment && of_warp == o.of_warp && how == o.how && by_engine == o.by_engine;
    }
  };
  // A race: two threads, one of which writes, and nothing says that the other one came before. `u` is of one lane.
  void add(const Use& u, const Known& known) {
    // What others did since its warp read would have failed.
    if (u.how == Read)
      for (Use& other : since_)
        if (u.same_but_for_lanes(other)) {
          other.lanes |= u.lanes;
          return;
        }
    auto before = [&](const Use& other) {
      if (other.warp == u.warp) return other.of_warp != u.of_warp || other.lanes == u.lanes || other.moment < known.own;
      return known.seen[other.warp] >= other.moment;
    };
    std::erase_if(since_, [&](const Use& other) {
      bool hidden = u.by_engine && !other.by_engine && other.how != Read && known.fenced[other.warp] < other.moment;
      if (before(other) && hidden) fail("shared memory that no fence showed to copy engines and tensor cores");
      return before(other) && (u.how != Read || other.how == Read);
    });
    for (const Use& other : since_) {
      bool changes = u.how != other.how || u.how == Write;
      // One of a warp stands for all.
      if (u.how == Add && other.how == Add && other.warp == u.warp && !before(other)) return;
      if (!changes || before(other)) continue;
      if (u.block != other.block) fail("two blocks use a word of shared memory with no barrier between them");
      fail("threads " + std::to_string(other.thread()) + " and " + std::to_string(u.thread()) +
           " use a word of shared memory with no barrier between them");
    }
    since_.push_back(u);
  }

 private:
  std::vector<Use> since_;
};

// One that threads arrive at, or bytes.
struct MemoryBarrier {
  int count, missing;
  int64_t bytes;   // that are on their way
  unsigned phase;  // how many have ended
  Known known;
};

// A block's shared memory.
struct Shared {
  std::vector<std::byte> bytes;
  std::vector<Uses> uses;
  std::map<uint64_t, MemoryBarrier> barriers = {};
  std::set<uint64_t> being_read = {};  // 16 bytes each, by copies
};

// Work that goes on in groups, by the addresses that it reads.
struct Reading {
  std::vector<uint64_t> reads;                     // since the last group
  std::vector<std::vector<uint64_t>> groups = {};  // under way

  void commit() { groups.push_back(std::move(reads)), reads.clear(); }
  // What all but the last groups read.
  std::vector<uint64_t> await(int64_t behind) {
    std::vector<uint64_t> out;
    while (static_cast<int64_t>(groups.size()) > behind) {
      out.insert(out.end(), groups.front().begin(), groups.front().end());
      groups.erase(groups.begin());
    }
    return out;
  }
};

struct Machine {
  // An address in the shared memory of a block of the cluster has the block's rank, counted from 1, above so many bits.
  static constexpr int kBlockBits = 24;

  std::vector<std::array<uint64_t, kLanes>>* registers = nullptr;
  std::vector<Shared>* cluster = nullptr;  // by rank
  uint64_t* events = nullptr;              // that another warp may wait for
  unsigned block = 0, first_thread = 0;
  unsigned warp = 0;  // of the cluster
  void* const* parameters = nullptr;
  Known clocks = {};
  unsigned of_warp = 0;  // barriers that it has passed
  bool waits = false;    // for a barrier in memory
  Reading copies = {}, products = {};

  uint64_t get(const Operand& o, int lane) const {
    switch (o.kind) {
      case Operand::Register: return (*registers)[o.reg][lane];
      case Operand::Number: return static_cast<uint64_t>(o.value);
      case Operand::Thread: return first_thread + static_cast<unsigned>(lane);
      case Operand::Block: return block;
      case Operand::Parameter: return *static_cast<const uint64_t*>(parameters[o.value]);
      case Operand::Map: return reinterpret_cast<uint64_t>(parameters[o.value]);
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
  std::byte* shared_at(uint64_t at, size_t bytes, int lane, Uses::How how, bool by_engine = false) {
    return shared_at(own(), at, bytes, lane, how, by_engine);
  }
  std::byte* cluster_at(uint64_t at, size_t bytes, int lane, Uses::How how) {
    uint64_t block_of = at >> kBlockBits;
    if (block_of == 0 || block_of > cluster->size()) fail("no block of the cluster is at " + std::to_string(at));
    return shared_at((*cluster)[block_of - 1], at & ((1u << kBlockBits) - 1), bytes, lane, how, false);
  }

 private:
  static std::byte* shared_at(Shared& s, uint64_t at, size_t bytes) {
    if (at + bytes > s.bytes.size()) fail("shared memory at " + std::to_string(at));
    if (at % bytes) fail("shared memory at " + std::to_string(at) + " is not aligned");
    return s.bytes.data() + at;
  }
  std::byte* shared_at(Shared& s, uint64_t at, size_t bytes, int lane, Uses::How how, bool by_engine) {
    std::byte* out = shared_at(s, at, bytes);
    if (how != Uses::Read && s.being_read.count(at / 16 * 16)) fail("shared memory is changed while a copy reads it");
    for (uint64_t word = at / 4; word < (at + bytes + 3) / 4; ++word)
      s.uses[word].add({block, warp, clocks.seen[warp], of_warp, how, by_engine, first_thread, 1u << lane}, clocks);
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
/// Those of copies by themselves, and of barriers in memory.
void add_copies(Instructions& all);

}  // namespace brasa::fakes
