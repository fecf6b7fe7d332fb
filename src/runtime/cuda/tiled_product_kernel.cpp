#include <array>
#include <vector>

#include "runtime/cuda/tile_products.h"
#include "runtime/cuda/tiled_product.h"

// A block has as many threads as a processor's registers allow, and goes through tiles of the result. One thread has the copy engine bring what is
// summed up, 64 of each row and column at a time, into a ring of four stages in shared memory. Two groups multiply, each 64 of a tile's rows; a
// stage has two barriers in memory: it is full, and both groups have left it.
//
// To compute the epilogue and to write a tile takes about as long as to multiply one, and other parts of the processor: a group keeps a tile as
// pairs of rounded numbers, and writes an eighth of it behind each of the next tile's first eight products. Where there are not so many, or no next
// tile, it writes at once. What an epilogue reads of another matrix is brought to where its result goes out from.
namespace brasa::runtime::cuda {
namespace {

constexpr int kStages = 4, kGroup = 128, kGroups = 2, kGroupRows = 64;
constexpr int kTileRow = 128;      // bytes: 64 of what is summed up, or of a result's row
constexpr int kBlockColumns = 64;  // of a result that one copy writes, and of a right operand's rows
constexpr int kLeftBytes = kTileRows * kTileRow, kRightBytes = kTileColumns * kTileRow;
constexpr int kStageBytes = kLeftBytes + kRightBytes;
constexpr int kBlockShift = 13, kBlockBytes = 1 << kBlockShift;
static_assert(kBlockBytes == 64 * kTileRow);
constexpr int kBlocks = kTileColumns / kBlockColumns;
constexpr int kEights = kTileColumns / 8;      // columns: a thread has two neighbours of each, in two rows
constexpr int kPairs = 2 * kEights / kBlocks;  // that a thread has of a block
constexpr int kLoaderRegisters = 24, kMultiplierRegisters = 240;

class Kernel final : public TileProducts {
 public:
  explicit Kernel(const TiledProductKind& kind) : TileProducts(kind.dtype, kTileSums, 1, true), kind_(kind) {}

  WrittenKernel write() {
    const char* name = "tiled_product";
    begin();
    Reg loads = p_.p("setp.eq.u32", group_, kGroups);
    p_.when(loads, [&] {
      p_.op("setmaxnreg.dec.sync.aligned.u32", kLoaderRegisters);
      p_.when(first_, [&] { load(); });
    });
    p_.unless(loads, [&] {
      p_.op("setmaxnreg.inc.sync.aligned.u32", kMultiplierRegisters);
      multiply_tiles();
    });
    return {name, p_.kernel(name, maps_ + kParameters, kThreads, 0, 1, true, 1, maps_), kThreads, kSharedBytes, true};
  }

 private:
  static constexpr int kThreads = (kGroups + 1) * kGroup;
  static constexpr int kParameters = 6;
  // Two blocks of 64 rows and 64 columns on their way out for each group, the ring's barriers, and one for each block.
  static constexpr int kOut = kStages * kStageBytes, kBarriers = kOut + 2 * kGroups * kBlockBytes, kBarrierBytes = 8;
  static constexpr int kOutBarriers = kBarriers + 2 * kStages * kBarrierBytes;
  static constexpr int kSharedBytes = kOutBarriers + 2 * kGroups * kBarrierBytes;

  void begin() {
    p_.op("griddepcontrol.launch_dependents");
    left_ = p_.map(0);
    right_ = p_.map(1);
    result_ = p_.map(2);
    maps_ = 3;
    if (two_) first_result_ = p_.map(maps_++);
    if (reads_other_) other_ = p_.map(maps_++);
    bias_ = p_.parameter(maps_);
    steps_ = p_.parameter32(maps_ + 1);
    tiles_across_ = p_.parameter32(maps_ + 2);
    tiles_ = p_.parameter32(maps_ + 3);
    blocks_ = p_.parameter32(maps_ + 4);
    columns_ = p_.parameter32(maps_ + 5);
    thread_ = p_.r("mov.u32", "%tid.x");
    find_lane(thread_);
    // The same in all lanes, as the assembler sees then.
    group_ = p_.fresh('r');
    p_.op("shfl.sync.idx.b32", group_, p_.r("shr.u32", thread_, 7), 0, 31, -1);
    first_ = p_.p("setp.eq.u32", p_.r("and.b32", thread_, kGroup - 1), 0);
    shared_ = p_.r("mov.u32", "shared_memory");
    barriers_ = p_.r("add.u32", shared_, kBarriers);
    p_.when(p_.p("setp.eq.u32", thread_, 0), [&] {
      for (int s = 0; s < kStages; ++s) {
        p_.op("mbarrier.init.shared::cta.b64", at(barriers_, 2 * s * kBarrierBytes), 1);
        p_.op("mbarrier.init.shared::cta.b64", at(barriers_, (2 * s + 1) * kBarrierBytes), kGroups);
      }
      for (int b = 0; reads_other_ && b < 2 * kGroups; ++b)
        p_.op("mbarrier.init.shared::cta.b64", at(shared_, kOutBarriers + b * kBarrierBytes), 1);
      p_.op("fence.mbarrier_init.release.cluster");
      p_.op("fence.proxy.async.shared::cta");
    });
    p_.op("bar.sync", 0);
    p_.op("griddepcontrol.wait");
    tile_ = p_.r("mov.u32", "%ctaid.x");
    slot_ = p_.r("mov.u32", 0);
  }

  static std::string at(const Reg& address, int bytes = 0) { return str("[", address, "+", bytes, "]"); }
  static std::string at(const Reg& map, const Reg& column, const Reg& row) {
    return str("[", map, ", ", braces({column, row}), "]");
  }

  // --- the ring ---

  Reg full() { return p_.r("mad.lo.u32", slot_, 2 * kBarrierBytes, barriers_); }
  Reg stage() { return p_.r("mad.lo.u32", slot_, kStageBytes, shared_); }
  // Until the barrier has ended a phase of this parity.
  template <class Parity>
  void wait(const std::string& barrier, const Parity& parity) {
    p_.loop([&] { return p_.p("not.pred", p_.p("mbarrier.try_wait.parity.shared::cta.b64", barrier, parity)); }, [] {});
  }
  // A part of a matrix in the place of shared memory; its barrier counts the bytes.
  void bring(const Reg& to, int offset, const Reg& map, const Reg& column, const Reg& row, const std::string& barrier) {
    p_.op("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes", at(to, offset),
          at(map, column, row), barrier);
  }
  void next_slot() {
    Reg next = p_.r("add.u32", slot_, 1), again = p_.p("setp.eq.u32", next, kStages);
    p_.op("selp.b32", slot_, 0, next, again);
    p_.op("xor.b32", parity_, parity_, p_.r("selp.b32", 1, 0, again));
  }
  template <class F>
  void over_tiles(const F& use) {
    p_.loop([&] { return p_.p("setp.lt.u32", tile_, tiles_); },
            [&] {
              Reg row = p_.r("div.u32", tile_, tiles_across_), column = p_.r("rem.u32", tile_, tiles_across_);
              use(p_.r("mul.lo.u32", row, kTileRows), p_.r("mul.lo.u32", column, kTileColumns));
              p_.op("add.u32", tile_, tile_, blocks_);
            });
  }
  template <class F>
  void over_steps(const Reg& step, const F& use) {
    p_.loop([&] { return p_.p("setp.lt.u32", step, steps_); },
            [&] {
              use();
              p_.op("add.u32", step, step, 1);
            });
  }

  // By one thread. What lies behind the ends of a matrix comes as zeros, and is counted.
  void load() {
    parity_ = p_.r("mov.u32", 1);  // all stages are free
    over_tiles([&](const Reg& row, const Reg& column) {
      Reg step = p_.r("mov.u32", 0), sum = p_.r("mov.u32", 0);
      over_steps(step, [&] {
        Reg barrier = full(), to = stage();
        wait(at(barrier, kBarrierBytes), parity_);
        p_.op("mbarrier.arrive.expect_tx.shared::cta.b64", "_", at(barrier), kStageBytes);
        bring(to, 0, left_, sum, row, at(barrier));
        if (kind_.right_along_sum)
          bring(to, kLeftBytes, right_, sum, column, at(barrier));
        else
          for (int block = 0; block < kBlocks; ++block)
            bring(to, kLeftBytes + block * kBlockBytes, right_, p_.r("add.u32", column, block * kBlockColumns), sum,
                  at(barrier));
        p_.op("add.u32", sum, sum, kTileSums);
        next_slot();
      });
    });
  }

  // --- a group ---

  void multiply_tiles() {
    parity_ = p_.r("mov.u32", 0);
    sum_ = p_.fresh('f', 4 * kEights);
    kept_ = p_.fresh('r', 2 * kEights);
    kept_row_ = p_.fresh('r');
    kept_column_ = p_.fresh('r');
    left_of_group_ = p_.r("mul.lo.u32", group_, kGroupRows * kTileRow);
    barrier_of_group_ = p_.r("add.u32", group_, 1);
    before_ = p_.r("mov.u32", 0);
    place_ = p_.r("mov.u32", 0);
    out_parity_ = p_.r("mov.u32", 0);
    find_own();
    Reg long_enough = p_.p("setp.ge.u32", steps_, 2 * kBlocks), step = p_.fresh('r');
    Reg keeps = p_.p("setp.lt.u32", steps_, 0);
    auto multiply = [&] {
      Reg adds = p_.p("setp.ne.u32", step, 0);
      multiply_step(adds);
      leave(p_.p("and.pred", adds, first_));
      pass();
      p_.op("add.u32", step, step, 1);
    };
    over_tiles([&](const Reg& row, const Reg& column) {
      p_.op("mov.u32", step, 0);
      p_.when(keeps, [&] { write_kept(multiply); });
      if (reads_other_) p_.when(first_, [&] { bring_other(column, p_.r("mad.lo.u32", group_, kGroupRows, row)); });
      p_.loop([&] { return p_.p("setp.lt.u32", step, steps_); }, multiply);
      await();
      leave(first_);
      keep(row, column);
      Reg next = p_.r("add.u32", tile_, blocks_);
      p_.op("setp.lt.and.u32", keeps, next, tiles_, long_enough);
      p_.unless(keeps, [&] { write_kept([] {}); });
    });
    p_.op(str("@", first_, " cp.async.bulk.wait_group.read"), 0);
  }

  // The products of one stage, under way when this ends, and those before at an end.
  void multiply_step(const Reg& adds) {
    barrier_ = full();
    wait(at(barrier_), parity_);
    Reg from = stage(), left = sixteens(p_.r("add.u32", from, left_of_group_)),
        right = sixteens(p_.r("add.u32", from, kLeftBytes));
    // A row has four times what the tensor cores sum up at once, or there are four times as many rows.
    constexpr int kAtOnce = 16;
    std::vector<std::array<Reg, 2>> pairs;
    for (int k = 0; k < kTileSums / kAtOnce; ++k) {
      Reg b = kind_.right_along_sum ? descriptor(right, 2 * kAtOnce * k)
                                    : descriptor(right, kAtOnce * kTileRow * k, kBlockBytes);
      pairs.push_back({descriptor(left, 2 * kAtOnce * k), b});
    }
    begin_products();
    for (const auto& [a, b] : pairs)
      multiply_group(sum_, {a}, b, &a == pairs[0].data() ? adds : always_, !kind_.right_along_sum);
    end_products();
    await(1);
  }
  // The stage of the step before, if the condition is true: one thread for the group.
  void leave(const Reg& condition) {
    p_.op(str("@", condition, " mbarrier.arrive.shared::cta.b64"), "_", at(before_, kBarrierBytes));
  }
  void pass() {
    p_.op("mov.u32", before_, barrier_);
    next_slot();
  }

  // --- what is written ---

  // Where the thread's first pair lies in a block that is copied out: 16 bytes i of a row are at i ^ (row & 7).
  void find_own() {
    Reg warp = p_.r("and.b32", p_.r("shr.u32", thread_, 5), 3), eighth = p_.r("shr.u32", lane_, 2);
    Reg row = p_.r("mad.lo.u32", warp, 16, eighth);
    out_ = p_.r("mad.lo.u32", group_, 2 * kBlockBytes, p_.r("add.u32", shared_, kOut));
    out_barriers_ = p_.r("mad.lo.u32", group_, 2 * kBarrierBytes, p_.r("add.u32", shared_, kOutBarriers));
    own_ = p_.r("mad.lo.u32", row, kTileRow, out_);
    own_ = p_.r("add.u32", own_, p_.r("shl.b32", eighth, 4));
    own_ = p_.r("add.u32", own_, p_.r("shl.b32", pair_, 1));
  }

  // A tile's sums, with their bias, rounded.
  void keep(const Reg& row, const Reg& column) {
    p_.op("mad.lo.u32", kept_row_, group_, kGroupRows, row);
    p_.op("mov.u32", kept_column_, column);
    Reg own, room;
    if (kind_.bias) {
      own = p_.d("mad.wide.u32", p_.r("add.u32", column, pair_), element_, bias_);
      room = p_.r("sub.u32", p_.r("max.u32", p_.r("sub.u32", columns_, column), pair_), pair_);
    }
    for (int n = 0; n < kEights; ++n) {
      std::array<Reg, 2> bias;
      if (kind_.bias) {
        Reg both = p_.r("mov.b32", 0), there = p_.p("setp.gt.u32", room, 8 * n);
        p_.op(str("@", there, " ld.global.b32"), both, str("[", p_.d("add.s64", own, 8 * n * element_), "]"));
        bias = widened(both);
      }
      for (int half : {0, 1}) {
        std::array<Reg, 2> both = {sum_[4 * n + 2 * half], sum_[4 * n + 2 * half + 1]};
        if (kind_.bias)
          for (int e : {0, 1}) both[e] = p_.f("add.rn.f32", both[e], bias[e]);
        p_.op("mov.b32", kept_[2 * n + half], rounded(both[0], both[1]));
      }
    }
  }

  // Until what went out from the place of the next block was read; by the group's first thread. Blocks go out from two places in turn, or two
  // results from both.
  void free_place() { p_.op(str("@", first_, " cp.async.bulk.wait_group.read"), two_ ? 0 : 1); }
  Reg to_place() { return two_ ? out_ : p_.r("add.u32", out_, place_); }
  std::string out_barrier() {
    if (two_) return at(out_barriers_);
    return at(p_.r("add.u32", out_barriers_, p_.r("shr.u32", place_, kBlockShift - 3)));
  }
  // What is read at the places of the next block, which begins there; by that thread.
  void bring_other(const Reg& column, const Reg& row) {
    free_place();
    std::string barrier = out_barrier();
    p_.op("mbarrier.arrive.expect_tx.shared::cta.b64", "_", barrier, kBlockBytes);
    bring(to_place(), 0, other_, column, row, barrier);
  }

  // The kept tile, half a block behind each call of `between`.
  template <class F>
  void write_kept(const F& between) {
    Reg blocks = p_.r("mov.u32", kBlocks);
    p_.loop([&] { return p_.p("setp.ne.u32", blocks, 0); },
            [&] {
              p_.op("sub.u32", blocks, blocks, 1);
              for (int half : {0, 1}) {
                between();
                if (half == 0) await_place();
                write(half);
              }
              go_out(p_.p("setp.ne.u32", blocks, 0));
              for (size_t i = kPairs; i < kept_.size(); ++i) p_.op("mov.b32", kept_[i - kPairs], kept_[i]);
            });
  }
  void together() { p_.op("bar.sync", barrier_of_group_, kGroup); }
  void await_place() {
    if (reads_other_) return wait(out_barrier(), out_parity_);
    free_place();
    together();
  }
  // Half of a block's columns, to where they go out.
  void write(int half) {
    Reg own = two_ ? own_ : p_.r("add.u32", own_, place_);
    for (int i = half * kPairs / 2; i < (half + 1) * kPairs / 2; ++i) {
      int chunk = i / 2, row = i % 2 * 8 * kTileRow;
      Reg to = chunk ? p_.r("xor.b32", own, 16 * chunk) : own;
      Regs pairs = {kept_[i]};
      if (reads_other_) pairs.push_back(p_.r("ld.shared.b32", at(to, row)));
      Regs all = finished(kind_.epilogue, pairs);
      p_.op("st.shared.b32", at(to, row), all.back());
      if (two_) p_.op("st.shared.b32", at(to, row + kBlockBytes), all[0]);
    }
  }
  // The block; what the next one reads comes in, if there is one in this tile.
  void go_out(const Reg& more) {
    p_.op("fence.proxy.async.shared::cta");
    together();
    p_.when(first_, [&] {
      auto copy = [&](const Reg& map, const Reg& from, int offset) {
        p_.op("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group", at(map, kept_column_, kept_row_),
              at(from, offset));
      };
      copy(result_, to_place(), 0);
      if (two_) copy(first_result_, out_, kBlockBytes);
      p_.op("cp.async.bulk.commit_group");
    });
    p_.op("add.u32", kept_column_, kept_column_, kBlockColumns);
    if (!two_) p_.op("xor.b32", place_, place_, kBlockBytes);
    if (!reads_other_) return;
    p_.when(p_.p("and.pred", more, first_), [&] { bring_other(kept_column_, kept_row_); });
    // A place has the next phase when its next block comes.
    Reg turn = two_ ? p_.r("mov.u32", 1) : p_.r("xor.b32", p_.r("shr.u32", place_, kBlockShift), 1);
    p_.op("xor.b32", out_parity_, out_parity_, turn);
  }

  TiledProductKind kind_;
  const bool two_ = kind_.epilogue.writes_two(), reads_other_ = kind_.epilogue.reads_other();
  int maps_ = 0;
  Reg left_, right_, result_, first_result_, other_;  // maps
  Reg bias_, steps_, tiles_across_, tiles_, blocks_, columns_;
  Reg thread_, group_, first_, shared_, barriers_;  // `first_`: of its group
  Reg tile_, slot_, parity_;
  Regs sum_, kept_;
  Reg kept_row_, kept_column_, left_of_group_, barrier_of_group_, barrier_, before_, out_, own_, out_barriers_, place_,
      out_parity_;
};

}  // namespace

WrittenKernel tiled_product_kernel(const TiledProductKind& kind) { return Kernel(kind).write(); }

}  // namespace brasa::runtime::cuda
