#include <algorithm>

#include "matrix_map.h"
#include "ptx_machine.h"

// Barriers in shared memory, and copies of parts of matrices, which end at once but are only known to have ended by such a barrier, or where
// their groups are awaited.
namespace brasa::fakes {
namespace {

constexpr uint32_t kRowBytes = 128, kChunk = 16;

MemoryBarrier& barrier_at(Machine& m, uint64_t at) {
  auto it = m.own().barriers.find(at);
  if (it == m.own().barriers.end()) fail("there is no barrier at " + std::to_string(at));
  return it->second;
}
void init(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) {
    uint64_t at = m.get(i.operands[0], l);
    if (at % 8) fail("a barrier at " + std::to_string(at));
    m.shared_at(at, 8);
    int count = static_cast<int>(m.get(i.operands[1], l));
    m.own().barriers[at] = {count, count, 0, 0, {}};
  });
}
// Of the phase of a barrier, if nothing is missing.
void end_phase(Machine& m, MemoryBarrier& b) {
  ++*m.events;
  if (b.missing < 0) fail("a barrier where more threads arrive than it counts");
  if (b.missing > 0 || b.bytes != 0) return;
  b.missing = b.count;
  ++b.phase;
}
template <bool expects>
void arrive(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) {
    MemoryBarrier& b = barrier_at(m, m.get(i.operands[1], l));
    if (expects) b.bytes += static_cast<int64_t>(m.get(i.operands[2], l));
    --b.missing;
    m.clocks.tell(b.known, m.warp);
    end_phase(m, b);
  });
}
void try_wait(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) {
    MemoryBarrier& b = barrier_at(m, m.get(i.operands[1], l));
    bool ended = b.phase % 2 != m.get(i.operands[2], l);
    m.set(i.operands[0], l, uint64_t{ended});
    if (ended) {
      m.clocks.learn(b.known);
      if (m.warp < b.known.seen.size()) m.clocks.own = std::max(m.clocks.own, b.known.seen[m.warp] + 1);
    } else {
      m.waits = true;
    }
    *m.events += ended;
  });
}

const MatrixMap& map_at(uint64_t at) {
  const auto& map = *reinterpret_cast<const MatrixMap*>(at);
  if (at % 64 || map.mark != MatrixMap::kMark) fail("a copy without a map");
  return map;
}
// `use` gets each 16 bytes of the part that begins at the column and row of the operand: where they lie in shared memory, in the matrix, and how
// many of them are in it.
template <class F>
void over_part(Machine& m, const Operand& part, int lane, uint64_t shared, const F& use) {
  const MatrixMap& map = map_at(m.get(part, lane));
  if (shared % kRowBytes) fail("a copy to or from shared memory at " + std::to_string(shared));
  auto number = [&](int k) { return int64_t{static_cast<int32_t>((*m.registers)[part.list[k]][lane])}; };
  auto rows = static_cast<int64_t>(map.rows), bytes = static_cast<int64_t>(2 * map.columns);
  for (int64_t r = 0; r < map.box[1]; ++r)
    for (int64_t b = 0; b < 2 * int64_t{map.box[0]}; b += kChunk) {
      int64_t row = number(1) + r, byte = 2 * number(0) + b;
      bool inside = row >= 0 && row < rows && byte >= 0;
      int64_t there = inside ? std::clamp<int64_t>(bytes - byte, 0, kChunk) : 0;
      uint64_t at = shared + static_cast<uint64_t>(r * kRowBytes + b);
      auto* in_matrix = reinterpret_cast<std::byte*>(map.address + static_cast<uint64_t>(row) * map.step +
                                                     static_cast<uint64_t>(byte));
      use(at ^ (at >> 7 & 7) << 4, in_matrix, static_cast<size_t>(there));
    }
}
void copy_in(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) {
    MemoryBarrier& b = barrier_at(m, m.get(i.operands[2], l));
    over_part(m, i.operands[1], l, m.get(i.operands[0], l), [&](uint64_t at, const std::byte* from, size_t there) {
      std::byte* to = m.shared_at(at, kChunk, l, Uses::Write, true);
      std::memset(to, 0, kChunk);
      if (there) std::memcpy(to, from, there);
      b.bytes -= kChunk;
    });
    m.clocks.tell(b.known, m.warp);
    end_phase(m, b);
  });
}
void copy_out(Machine& m, const Instruction& i, uint32_t lanes) {
  each(lanes, [&](int l) {
    over_part(m, i.operands[0], l, m.get(i.operands[1], l), [&](uint64_t at, std::byte* to, size_t there) {
      const std::byte* from = m.shared_at(at, kChunk, l, Uses::Read, true);
      if (there) std::memcpy(to, from, there);
      m.copies.reads.push_back(at);
      m.own().being_read.insert(at);
    });
  });
}

}  // namespace

void add_copies(Instructions& all) {
  using M = Machine&;
  using I = const Instruction&;
  using L = uint32_t;
  all.insert({
      {"mbarrier.init.shared::cta.b64", init},
      {"mbarrier.arrive.shared::cta.b64", arrive<false>},
      {"mbarrier.arrive.expect_tx.shared::cta.b64", arrive<true>},
      {"mbarrier.try_wait.parity.shared::cta.b64", try_wait},
      {"fence.mbarrier_init.release.cluster", [](M, I, L) {}},
      {"fence.proxy.async.shared::cta", [](M m, I, L) { m.clocks.fence(m.warp); }},
      {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes", copy_in},
      {"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group", copy_out},
      {"cp.async.bulk.commit_group",
       [](M m, I, L lanes) {
         if (lanes) m.copies.commit();
       }},
      {"cp.async.bulk.wait_group.read",
       [](M m, I i, L lanes) {
         if (!lanes) return;
         for (uint64_t at : m.copies.await(i.operands[0].value)) {
           m.own().being_read.erase(at);
           m.shared_at(at, kChunk, std::countr_zero(lanes), Uses::Read, true);
         }
       }},
      {"setmaxnreg.inc.sync.aligned.u32", [](M, I i, L lanes) { whole_warp(i, lanes); }},
      {"setmaxnreg.dec.sync.aligned.u32", [](M, I i, L lanes) { whole_warp(i, lanes); }},
  });
}

}  // namespace brasa::fakes
