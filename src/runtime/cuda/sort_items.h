#pragma once

#include <utility>

#include "runtime/cuda/ptx.h"
#include "runtime/cuda/sort.h"

namespace brasa::runtime::cuda {

/// What the kernels that sort are made of: elements as keys, lines in memory, sums over a block, and a block's items in shared memory: a key
/// above a place, in 8 bytes, or in 8 and 4 bytes where keys have 64 bits.
class SortItems {
 public:
  using Reg = Ptx::Reg;
  using Regs = Ptx::Regs;

 protected:
  explicit SortItems(const SortKind& kind)
      : kind_(kind), bytes_(static_cast<int>(size_of(kind.dtype))), bits_(key_bits(kind.dtype)), wide_(bits_ > 32) {}

  static std::string in(const Reg& at, int offset = 0) { return str("[", at, "+", offset, "]"); }
  std::string if_(const Reg& condition, std::string_view name) const { return str("@", condition, " ", name); }
  Reg number(int64_t v) { return p_.r("mov.u32", v); }
  Reg extended(const Reg& v) { return p_.d("cvt.u64.u32", v); }

  void begin(int warps_log) {
    thread_ = p_.r("mov.u32", "%tid.x");
    block_ = p_.r("mov.u32", "%ctaid.x");
    lane_ = p_.r("and.b32", thread_, 31);
    warp_ = p_.r("shr.u32", thread_, 5);
    threads_ = 32 << warps_log;
    shared_ = p_.r("mov.u32", "shared_memory");
  }

  // --- keys ---

  Reg fresh_key() { return p_.fresh(wide_ ? 'd' : 'r'); }
  template <class... A>
  Reg key_of(std::string_view name, const A&... operands) {  // an instruction whose type is the key's, behind the name
    Reg out = fresh_key();
    key_op(name, out, operands...);
    return out;
  }
  template <class... A>
  void key_op(std::string_view name, const A&... operands) {
    bool bitwise = name == "and" || name == "or" || name == "xor" || name == "shl" || name == "not";
    p_.op(str(name, bitwise ? ".b" : ".u", wide_ ? 64 : 32), operands...);
  }
  template <class... A>
  Reg keys_compare(std::string_view how, const A&... operands) {
    return p_.p(str("setp.", how, wide_ ? ".u64" : ".u32"), operands...);
  }
  Reg key_number(int64_t v) { return wide_ ? p_.d("mov.b64", v) : number(v); }
  /// Of the key, from a bit on.
  Reg digit(const Reg& key, const Reg& shift) {
    Reg above = key_of("shr", key, shift);
    return p_.r("and.b32", wide_ ? p_.r("cvt.u32.u64", above) : above, kDigits - 1);
  }

  Reg loaded_element(const Reg& at) {
    std::string load = str("ld.global.", memory_type(bytes_));
    return wide_ ? p_.d(load, in(at)) : p_.r(load, in(at));
  }
  void store_element(const Reg& at, const Reg& v) { p_.op(str("st.global.", memory_type(bytes_)), in(at), v); }
  /// See sort.h.
  Reg key_of_element(Reg v) {
    const int64_t ones = wide_ ? -1 : (int64_t{1} << bits_) - 1, sign = sign_bit();
    if (is_floating(kind_.dtype)) {
      auto digits = info_of(kind_.dtype).digits;
      const int64_t infinity = (magnitude() >> (digits - 1)) << (digits - 1);
      Reg size = key_of("and", v, magnitude());
      Reg is_nan = keys_compare("gt", size, infinity), is_zero = keys_compare("eq", size, 0);
      v = chosen(is_zero, key_number(0), v);
      Reg below = keys_compare("gt", v, magnitude());
      Reg flipped = key_of("xor", v, chosen(below, key_number(ones), key_number(sign)));
      v = chosen(is_nan, key_number(ones), flipped);
    } else if (is_signed(kind_.dtype)) {
      v = key_of("xor", v, sign);
    }
    return kind_.descending ? key_of("xor", v, ones) : v;
  }
  Reg chosen(const Reg& condition, const Reg& a, const Reg& b) {
    Reg out = fresh_key();
    p_.op(wide_ ? "selp.b64" : "selp.b32", out, a, b, condition);
    return out;
  }

  // --- keys and places that a launch leaves in memory for the next ---

  /// Those before the `begin`th are others'.
  void find_kept(const Reg& begin) {
    keys_from_ = p_.d("mad.lo.s64", begin, key_bytes(), p_.parameter(kKeysFrom));
    places_from_ = p_.d("mad.lo.s64", begin, 4, p_.parameter(kPlacesFrom));
  }
  Reg kept_key(const Reg& i) {
    std::string at = in(p_.d("mad.wide.u32", i, key_bytes(), keys_from_));
    return wide_ ? p_.d("ld.global.b64", at) : p_.r("ld.global.b32", at);
  }
  Reg kept_place(const Reg& i) { return p_.r("ld.global.b32", in(p_.d("mad.wide.u32", i, 4, places_from_))); }
  void find_room(const Reg& begin) {
    keys_to_ = p_.d("mad.lo.s64", begin, key_bytes(), p_.parameter(kKeysTo));
    places_to_ = p_.d("mad.lo.s64", begin, 4, p_.parameter(kPlacesTo));
  }
  void keep(const Reg& i, const Reg& key, const Reg& place) {
    p_.op(wide_ ? "st.global.b64" : "st.global.b32", in(p_.d("mad.wide.u32", i, key_bytes(), keys_to_)), key);
    p_.op("st.global.b32", in(p_.d("mad.wide.u32", i, 4, places_to_)), place);
  }

  // --- lines in memory ---

  void find_tensor() {
    length_ = p_.parameter32(kLength);
    step_ = p_.parameter(kStep);
  }
  /// The address of a line's first element, and the number of its first result.
  Reg line_start(const Reg& line) {
    auto [outer, inner] = parts_of(line);
    Reg at = p_.d("mad.lo.s64", outer, p_.parameter(kSpan), p_.parameter(kX));
    return p_.d("mad.lo.s64", inner, bytes_, at);
  }
  Reg result_start(const Reg& line) {
    auto [outer, inner] = parts_of(line);
    return p_.d("mad.lo.s64", outer, p_.parameter(kResultSpan), inner);
  }
  Reg element_at(const Reg& start, const Reg& place) { return p_.d("mad.lo.s64", extended(place), step_, start); }
  /// Writes the element at `place` of a line as the result's `rank`.
  void put_result(const Reg& start, const Reg& result, const Reg& rank, const Reg& place) {
    Reg at = p_.d("mad.lo.s64", extended(rank), p_.parameter(kResultStep), result);
    store_element(p_.d("mad.lo.s64", at, bytes_, p_.parameter(kValues)), loaded_element(element_at(start, place)));
    p_.op("st.global.b64", in(p_.d("mad.lo.s64", at, 8, p_.parameter(kPlaces))), extended(place));
  }

  // --- over a block ---

  /// The sum of `v` of the threads before, of the first 256; all threads take part. `sums` is shared memory for a number of each warp.
  Reg sum_before(const Reg& v, int sums) {
    Reg total = over_lanes_before(v);
    Reg at = p_.r("mad.lo.u32", warp_, 4, shared_);
    p_.op(if_(p_.p("setp.eq.u32", lane_, 31), "st.shared.b32"), in(at, sums), total);
    p_.op("bar.sync", 0);
    Reg out = p_.r("sub.u32", total, v);
    for (int w = 0; w + 1 < kDigits / 32; ++w) {
      Reg of_warp = p_.r("ld.shared.b32", in(shared_, sums + 4 * w));
      p_.op(if_(p_.p("setp.gt.u32", warp_, w), "add.u32"), out, out, of_warp);
    }
    return out;
  }
  /// The sum of `v` of the lanes up to this one.
  Reg over_lanes_before(const Reg& v) {
    Reg sum = p_.r("mov.u32", v);
    for (int step = 1; step < 32; step *= 2) {
      Reg other = p_.fresh('r');
      p_.op("shfl.sync.up.b32", other, sum, step, 0, -1);
      p_.op(if_(p_.p("setp.ge.u32", lane_, step), "add.u32"), sum, sum, other);
    }
    return sum;
  }

  // --- items in shared memory ---

  int items_bytes(int items) const { return items * (wide_ ? 12 : 8); }
  struct Item {
    Reg key, place;  // 8 bytes and nothing where keys are narrow
  };
  Item item(const Reg& key, const Reg& place) {
    if (wide_) return {key, place};
    Reg both = p_.fresh('d');
    p_.op("mov.b64", both, str("{", place, ", ", key, "}"));
    return {both, {}};
  }
  /// Behind all others.
  Item no_item() { return {p_.d("mov.b64", -1), wide_ ? number(-1) : Reg()}; }
  struct ItemAddress {
    Reg key, place;
  };
  ItemAddress item_address(const Reg& i) {
    Reg key = p_.r("mad.lo.u32", i, 8, shared_);
    return {key, wide_ ? p_.r("mad.lo.u32", i, 4, p_.r("add.u32", shared_, 8 * items_)) : Reg()};
  }
  Item get(const ItemAddress& at) {
    return {p_.d("ld.shared.b64", in(at.key)), wide_ ? p_.r("ld.shared.b32", in(at.place)) : Reg()};
  }
  void put(const ItemAddress& at, const Item& v, const std::string& condition = "") {
    p_.op(condition + "st.shared.b64", in(at.key), v.key);
    if (wide_) p_.op(condition + "st.shared.b32", in(at.place), v.place);
  }
  Reg place_of(const Item& v) { return wide_ ? v.place : p_.r("cvt.u32.u64", v.key); }
  Reg is_greater(const Item& a, const Item& b) {
    Reg greater = p_.p("setp.gt.u64", a.key, b.key);
    if (!wide_) return greater;
    Reg behind = p_.p("setp.gt.u32", a.place, b.place), same = p_.p("setp.eq.u64", a.key, b.key);
    return p_.p("or.pred", greater, p_.p("and.pred", same, behind));
  }

  /// A bitonic network (Batcher 1968) for each line of `line` items, a power of 2; only the first `used` of the block's items if that is given.
  void sort_items(const Reg& line, const Reg& used = {}) {
    Reg inside = p_.r("sub.u32", line, 1), size = number(2);
    p_.loop([&] { return p_.p("setp.le.u32", size, line); },
            [&] {
              Reg step = p_.r("shr.u32", size, 1);
              p_.loop([&] { return p_.p("setp.ge.u32", step, 1); },
                      [&] {
                        exchange(inside, size, step, used);
                        synchronize(size, step);
                        p_.op("shr.u32", step, step, 1);
                      });
              p_.op("shl.b32", size, size, 1);
            });
    p_.op("bar.sync", 0);
  }

 private:
  int key_bytes() const { return wide_ ? 8 : 4; }
  // Which of the outer ones, and which of its neighbours.
  std::pair<Reg, Reg> parts_of(const Reg& line) {
    Reg across = p_.parameter32(kAcross);
    return {extended(p_.r("div.u32", line, across)), extended(p_.r("rem.u32", line, across))};
  }
  int64_t magnitude() const { return wide_ ? INT64_MAX : (int64_t{1} << (bits_ - 1)) - 1; }
  int64_t sign_bit() const { return wide_ ? INT64_MIN : int64_t{1} << (bits_ - 1); }

  void exchange(const Reg& inside, const Reg& size, const Reg& step, const Reg& used) {
    Reg below = p_.r("sub.u32", step, 1);
    for (int pair = 0; pair < items_ / 2; pair += threads_) {
      Reg q = p_.r("add.u32", thread_, pair);
      Reg i = p_.r("sub.u32", p_.r("shl.b32", q, 1), p_.r("and.b32", q, below));
      auto swap = [&] {
        ItemAddress low = item_address(i), high = item_address(p_.r("add.u32", i, step));
        Item a = get(low), b = get(high);
        Reg descends = p_.p("setp.gt.u32", p_.r("and.b32", p_.r("and.b32", i, inside), size), 0);
        std::string differ = str("@", p_.p("xor.pred", is_greater(a, b), descends), " ");
        put(low, b, differ);
        put(high, a, differ);
      };
      if (used.empty())
        swap();
      else
        p_.when(p_.p("setp.lt.u32", i, used), swap);
    }
  }
  // Pairs up to 32 apart are of one warp, this step's and the next one's.
  void synchronize(const Reg& size, const Reg& step) {
    Reg next = p_.r("selp.b32", size, step, p_.p("setp.eq.u32", step, 1));
    Reg far = p_.p("setp.gt.u32", next, 32);
    p_.when(far, [&] { p_.op("bar.sync", 0); });
    p_.unless(far, [&] { p_.op("bar.warp.sync", -1); });
  }

 protected:
  Ptx p_;
  const SortKind kind_;
  const int bytes_, bits_;
  const bool wide_;
  int threads_ = 0, items_ = 0;
  Reg thread_, block_, lane_, warp_, shared_, length_, step_;

 private:
  Reg keys_from_, places_from_, keys_to_, places_to_;
};

}  // namespace brasa::runtime::cuda
