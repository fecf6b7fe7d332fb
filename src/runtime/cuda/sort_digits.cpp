#include "runtime/cuda/sort_items.h"
#include "runtime/cuda/sort_kernels.h"

// Lines of any length, by one digit after the other. A block has a part of a line, in tiles; each of its warps has a part of the tile, 32 elements at
// a time: those of lanes before with the same digit, and of 32 before, come first, so that equal digits keep their order.
namespace brasa::runtime::cuda {
namespace {

constexpr int kThreads = kDigits, kWarpsLog = 3, kWarps = 1 << kWarpsLog;
constexpr int kEach = kSortTile / kThreads;  // elements of a thread in a tile

class Part : public SortItems {
 protected:
  explicit Part(const SortKind& kind) : SortItems(kind) {}

  void find_part() {
    begin(kWarpsLog);
    find_tensor();
    Reg blocks = p_.parameter32(kBlocks), part = p_.parameter32(kPart);
    line_ = p_.r("div.u32", block_, blocks);
    part_ = p_.r("rem.u32", block_, blocks);
    first_ = p_.r("mul.lo.u32", part_, part);
    end_ = p_.r("min.u32", p_.r("add.u32", first_, part), length_);
    shift_ = p_.parameter32(kShift);
    if (kind_.given || kind_.last) start_ = line_start(line_);
    // Where the line's keys and places begin.
    Reg before = p_.d("mul.wide.u32", line_, length_);
    if (!kind_.given) find_kept(before);
    if (kind_.step == SortStep::Move && !kind_.last) find_room(before);
  }
  Reg loaded(const Reg& place) { return kind_.given ? loaded_element(element_at(start_, place)) : kept_key(place); }
  Reg key(const Reg& loaded) { return kind_.given ? key_of_element(loaded) : loaded; }
  // Its address in the table, for the thread's digit.
  Reg table_at() {
    Reg digits = p_.r("mad.lo.u32", line_, kDigits, thread_);
    Reg at = p_.d("mul.wide.u32", digits, p_.parameter32(kBlocks));
    return p_.d("mad.lo.s64", p_.d("add.s64", at, extended(part_)), 4, p_.parameter(kTable));
  }

  Reg line_, part_, first_, end_, shift_, start_;
};

class Count final : public Part {
 public:
  explicit Count(const SortKind& kind) : Part(kind) {}

  WrittenKernel write() {
    find_part();
    Reg own = p_.r("mad.lo.u32", thread_, 4, shared_);
    p_.op("st.shared.b32", in(own), number(0));
    p_.op("bar.sync", 0);
    constexpr int kTogether = 4;
    Reg first = p_.r("add.u32", first_, thread_);
    p_.loop([&] { return p_.p("setp.lt.u32", first, end_); },
            [&] {
              Regs all, there;
              for (int i = 0; i < kTogether; ++i) {
                Reg place = p_.r("add.u32", first, i * kThreads);
                there.push_back(p_.p("setp.lt.u32", place, end_));
                all.push_back(loaded(p_.r("min.u32", place, p_.r("sub.u32", end_, 1))));
              }
              for (int i = 0; i < kTogether; ++i) {
                Reg at = p_.r("mad.lo.u32", digit(key(all[i]), shift_), 4, shared_);
                p_.op(if_(there[i], "red.shared.add.u32"), in(at), 1);
              }
              p_.op("add.u32", first, first, kTogether * kThreads);
            });
    p_.op("bar.sync", 0);
    p_.op("st.global.b32", in(table_at()), p_.r("ld.shared.b32", in(own)));
    const char* name = kind_.given ? "sort_count_given" : "sort_count";
    return {name, p_.kernel(name, kSortParameters, kThreads, 4 * kDigits), kThreads};
  }
};

// A warp for each digit of a line: how many elements with it are in the parts before, and in all.
class Begin final : public SortItems {
 public:
  explicit Begin(const SortKind& kind) : SortItems(kind) {}

  WrittenKernel write() {
    begin(kWarpsLog);
    Reg blocks = p_.parameter32(kBlocks);
    Reg own = p_.r("mad.lo.u32", block_, kWarps, warp_);
    Reg table = p_.d("mad.lo.s64", p_.d("mul.wide.u32", own, blocks), 4, p_.parameter(kTable));
    Reg first = number(0), total = number(0);
    p_.loop([&] { return p_.p("setp.lt.u32", first, blocks); },
            [&] {
              Reg i = p_.r("add.u32", first, lane_), there = p_.p("setp.lt.u32", i, blocks);
              Reg at = p_.d("mad.wide.u32", i, 4, table), often = number(0);
              p_.op(if_(there, "ld.global.b32"), often, in(at));
              Reg up_to = over_lanes_before(often);
              Reg before = p_.r("add.u32", total, p_.r("sub.u32", up_to, often));
              p_.op(if_(there, "st.global.b32"), in(at), before);
              Reg all = p_.fresh('r');
              p_.op("shfl.sync.idx.b32", all, up_to, 31, 31, -1);
              p_.op("add.u32", total, total, all);
              p_.op("add.u32", first, first, 32);
            });
    Reg at = p_.d("mad.wide.u32", own, 4, p_.parameter(kTotals));
    p_.op(if_(p_.p("setp.eq.u32", lane_, 0), "st.global.b32"), in(at), total);
    return {"sort_begin", p_.kernel("sort_begin", kSortParameters, 32 * kWarps, 4), 32 * kWarps};
  }
};

class Move final : public Part {
 public:
  explicit Move(const SortKind& kind) : Part(kind) {}

  WrittenKernel write() {
    find_part();
    Reg own = p_.r("mad.lo.u32", thread_, 4, shared_);
    find_beginnings(own);
    Reg result, first, count;
    if (kind_.last) {
      result = result_start(line_);
      first = p_.parameter32(kFirst);
      count = p_.parameter32(kCount);
    }
    counters_ = p_.r("mad.lo.u32", warp_, 4 * kCounters, shared_);
    before_ = p_.r("sub.u32", p_.r("shl.b32", number(1), lane_), 1);
    Reg own_first = p_.r("mad.lo.u32", warp_, 32 * kEach, lane_);
    Reg tile = p_.r("mov.u32", first_);
    p_.loop([&] { return p_.p("setp.lt.u32", tile, end_); },
            [&] {
              p_.op("bar.sync", 0);
              for (int w = 0; w < kWarps; ++w)
                p_.op("st.shared.b32", in(own, counters_at() + 4 * kCounters * w), number(0));
              p_.op("bar.sync", 0);
              Elements e = read(p_.r("add.u32", tile, own_first));
              for (int i = 0; i < kEach; ++i) rank(e, i);
              p_.op("bar.sync", 0);
              place_warps(own);
              p_.op("bar.sync", 0);
              for (int i = 0; i < kEach; ++i) {
                Reg begins = p_.r("ld.shared.b32", in(e.counters[i], counters_at()));
                Reg to = p_.r("add.u32", begins, e.ranks[i]);
                p_.when(e.there[i], [&] {
                  if (!kind_.last) return keep(to, e.keys[i], e.places[i]);
                  Reg at = p_.r("sub.u32", to, first);
                  p_.when(p_.p("setp.lt.u32", at, count), [&] { put_result(start_, result, at, e.places[i]); });
                });
              }
              p_.op("add.u32", tile, tile, kSortTile);
            });
    std::string name = str("sort_move", kind_.given ? "_given" : "", kind_.last ? "_last" : "");
    return {name, p_.kernel(name, kSortParameters, kThreads, shared_bytes()), kThreads};
  }

 private:
  // Of a warp: of each digit, and of elements that are not there.
  static constexpr int kCounters = kDigits + 1;
  // Where the next tile's elements with each digit begin, then sums of warps, then counters of all warps.
  int sums_at() const { return 4 * kDigits; }
  int counters_at() const { return sums_at() + 4 * kWarps; }
  int shared_bytes() const { return counters_at() + 4 * kCounters * kWarps; }

  struct Elements {
    Regs keys, places, there, counters, ranks;  // counters: the address of its digit's, less what is in front of them
  };

  void find_beginnings(const Reg& own) {
    Reg at = p_.d("mad.wide.u32", p_.r("mad.lo.u32", line_, kDigits, thread_), 4, p_.parameter(kTotals));
    Reg smaller = sum_before(p_.r("ld.global.b32", in(at)), sums_at());
    Reg begins = p_.r("add.u32", smaller, p_.r("ld.global.b32", in(table_at())));
    p_.op("st.shared.b32", in(own), begins);
  }
  Elements read(const Reg& first) {
    Elements e;
    Reg last = p_.r("sub.u32", end_, 1);
    for (int i = 0; i < kEach; ++i) {
      Reg at = p_.r("add.u32", first, 32 * i), inside = p_.r("min.u32", at, last);
      e.there.push_back(p_.p("setp.lt.u32", at, end_));
      e.keys.push_back(loaded(inside));
      e.places.push_back(kind_.given ? at : kept_place(inside));
    }
    return e;
  }
  // Of an element among those of its warp's part with the same digit.
  void rank(Elements& e, int i) {
    e.keys[i] = key(e.keys[i]);
    Reg own = p_.r("selp.b32", digit(e.keys[i], shift_), kDigits, e.there[i]);
    Reg alike = p_.fresh('r');
    p_.op("match.any.sync.b32", alike, own, -1);
    e.counters.push_back(p_.r("mad.lo.u32", own, 4, counters_));
    Reg counted = p_.r("ld.shared.b32", in(e.counters[i], counters_at()));
    Reg lanes = p_.r("popc.b32", p_.r("and.b32", alike, before_));
    e.ranks.push_back(p_.r("add.u32", counted, lanes));
    Reg now = p_.r("add.u32", counted, p_.r("popc.b32", alike));
    p_.op("bar.warp.sync", -1);
    p_.op(if_(p_.p("setp.eq.u32", lanes, 0), "st.shared.b32"), in(e.counters[i], counters_at()), now);
    p_.op("bar.warp.sync", -1);
  }
  // Counters become where their elements begin.
  void place_warps(const Reg& own) {
    Reg begins = p_.r("ld.shared.b32", in(own));
    for (int w = 0; w < kWarps; ++w) {
      std::string counter = in(own, counters_at() + 4 * kCounters * w);
      Reg often = p_.r("ld.shared.b32", counter);
      p_.op("st.shared.b32", counter, begins);
      begins = p_.r("add.u32", begins, often);
    }
    p_.op("st.shared.b32", in(own), begins);
  }

  Reg counters_, before_;
};

}  // namespace

WrittenKernel sort_count(const SortKind& kind) { return Count(kind).write(); }
WrittenKernel sort_begin(const SortKind& kind) { return Begin(kind).write(); }
WrittenKernel sort_move(const SortKind& kind) { return Move(kind).write(); }

}  // namespace brasa::runtime::cuda
