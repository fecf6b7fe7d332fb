#include "runtime/cuda/sort_items.h"
#include "runtime/cuda/sort_kernels.h"

// Lines that a block sorts in its shared memory: several whole ones, or a part of the order of a longer line. That part is found as a radix
// select finds it (Alabi et al. 2012): how often each value of a digit is tells which value the wanted item has, the first digit first; where several
// items share the last key, the digits of their places go on.
namespace brasa::runtime::cuda {
namespace {

class Lines final : public SortItems {
 public:
  explicit Lines(const SortKind& kind) : SortItems(kind) { items_ = kind.many ? kManyItems : kFewItems; }

  WrittenKernel write() {
    begin(kind_.many ? 5 : 3);
    find_tensor();
    Reg power = p_.parameter32(kPower);
    Reg line = p_.r("shl.b32", number(1), power), inside = p_.r("sub.u32", line, 1);
    Reg first_line = p_.r("mul.lo.u32", block_, p_.r("shr.u32", number(items_), power)), lines = p_.parameter32(kLines);
    auto over_items = [&](auto&& body) {
      for (int item = 0; item < items_; item += threads_) {
        Reg i = p_.r("add.u32", thread_, item);
        body(i, p_.r("add.u32", first_line, p_.r("shr.u32", i, power)), p_.r("and.b32", i, inside));
      }
    };
    over_items([&](const Reg& i, const Reg& own, const Reg& k) {
      Item v = no_item();
      Reg there = p_.p("setp.lt.and.u32", k, length_, p_.p("setp.lt.u32", own, lines));
      p_.when(there, [&] {
        Item given = item(key_of_element(loaded_element(element_at(line_start(own), k))), k);
        p_.op("mov.b64", v.key, given.key);
        if (wide_) p_.op("mov.u32", v.place, given.place);
      });
      put(item_address(i), v);
    });
    p_.op("bar.sync", 0);
    sort_items(line);
    Reg first = p_.parameter32(kFirst), count = p_.parameter32(kCount);
    over_items([&](const Reg& i, const Reg& own, const Reg& k) {
      Reg rank = p_.r("sub.u32", k, first);
      Reg wanted = p_.p("setp.lt.and.u32", rank, count, p_.p("setp.lt.u32", own, lines));
      p_.when(wanted, [&] { put_result(line_start(own), result_start(own), rank, place_of(get(item_address(i)))); });
    });
    const char* name = kind_.many ? "sort_long_lines" : "sort_lines";
    return {name, p_.kernel(name, kSortParameters, threads_, items_bytes(items_)), threads_};
  }
};

class Select final : public SortItems {
 public:
  explicit Select(const SortKind& kind) : SortItems(kind) { items_ = kMostSelected; }

  WrittenKernel write() {
    begin(5);
    find_tensor();
    find_part();
    Reg first = p_.parameter32(kFirst), count = p_.parameter32(kCount);
    Reg last = p_.r("sub.u32", p_.r("add.u32", first, count), 1);
    Bound upper = bound(last, true), lower;
    if (kind_.many) lower = bound(first, false);
    collect(lower, upper);
    if (!kind_.last)
      return {"sort_select_part", p_.kernel("sort_select_part", kSortParameters, threads_, shared_bytes()), threads_};
    Reg line = p_.r("shl.b32", number(1), p_.parameter32(kPower));
    over_ranks(line, [&](const Reg& i) {
      p_.unless(p_.p("setp.lt.u32", i, count), [&] { put(item_address(i), no_item()); });
    });
    p_.op("bar.sync", 0);
    sort_items(line, line);
    Reg start = line_start(line_), result = result_start(line_);
    over_ranks(count, [&](const Reg& i) { put_result(start, result, i, place_of(get(item_address(i)))); });
    std::string name = str("sort_select", kind_.many ? "_from" : "", kind_.given ? "" : "_kept");
    return {name, p_.kernel(name, kSortParameters, threads_, shared_bytes()), threads_};
  }

 private:
  static constexpr int kTogether = 4;  // elements that a thread reads before it uses the first
  int counts_at() const { return items_bytes(items_); }
  int sums_at() const { return counts_at() + 4 * kDigits; }
  int found_at() const { return sums_at() + 4 * 32; }  // a digit, items below it, items that have it
  int taken_at() const { return found_at() + 3 * 4; }
  int shared_bytes() const { return taken_at() + 4; }

  struct Bound {
    Reg key, place;
  };

  // A block has a whole line, or a part of it; or all that parts have kept of a line.
  void find_part() {
    line_ = block_;
    first_ = number(0);
    end_ = length_;
    if (!kind_.last) {
      Reg blocks = p_.parameter32(kBlocks), part = p_.parameter32(kPart);
      line_ = p_.r("div.u32", block_, blocks);
      first_ = p_.r("mul.lo.u32", p_.r("rem.u32", block_, blocks), part);
      end_ = p_.r("min.u32", p_.r("add.u32", first_, part), length_);
      find_room(p_.d("mul.wide.u32", block_, p_.parameter32(kCount)));
    }
    if (kind_.given) {
      start_ = line_start(line_);
    } else {
      end_ = p_.r("mul.lo.u32", p_.parameter32(kBlocks), p_.parameter32(kCount));
      find_kept(p_.d("mul.wide.u32", line_, end_));
    }
  }

  // All of the block's elements: `use` gets a key, its place, and whether they are there.
  template <class F>
  void over_line(const F& use) {
    Reg first = p_.r("add.u32", first_, thread_), last = p_.r("sub.u32", end_, 1);
    p_.loop([&] { return p_.p("setp.lt.u32", first, end_); },
            [&] {
              Regs keys, places, there;
              for (int i = 0; i < kTogether; ++i) {
                Reg at = p_.r("add.u32", first, i * threads_), inside = p_.r("min.u32", at, last);
                there.push_back(p_.p("setp.lt.u32", at, end_));
                if (kind_.given) {
                  places.push_back(at);
                  keys.push_back(loaded_element(element_at(start_, inside)));
                } else {
                  places.push_back(kept_place(inside));
                  keys.push_back(kept_key(inside));
                }
              }
              for (int i = 0; i < kTogether; ++i)
                use(kind_.given ? key_of_element(keys[i]) : keys[i], places[i], there[i]);
              p_.op("add.u32", first, first, kTogether * threads_);
            });
  }
  template <class F>
  void over_ranks(const Reg& end, const F& use) {
    Reg i = p_.r("mov.u32", thread_);
    p_.loop([&] { return p_.p("setp.lt.u32", i, end); },
            [&] {
              use(i);
              p_.op("add.u32", i, i, threads_);
            });
  }

  // The item of this rank, as a bound that takes what is up to it, or from it on. Places are looked at only where the key does not tell.
  Bound bound(const Reg& wanted, bool upper) {
    Reg rank = p_.r("mov.u32", wanted), alike = number(0), left = number(bits_);
    Bound out{key_number(0), number(upper ? -1 : 0)};
    p_.loop([&] { return p_.p("setp.gt.u32", left, 0); },
            [&] {
              Reg above = p_.r("mov.u32", left);
              p_.op("sub.u32", left, left, 8);
              count([&](const Reg& key, const Reg&, const Reg& there) {
                Reg other = key_of("shr", key_of("xor", key, out.key), above);
                Reg same = p_.p("and.pred", keys_compare("eq", other, 0), there);
                return std::pair(same, digit(key, left));
              });
              Reg found = find_digit(rank, alike);
              key_op("or", out.key, out.key, key_of("shl", wide_ ? extended(found) : found, left));
            });
    Reg next = p_.r("add.u32", rank, 1);
    Reg told = upper ? p_.p("setp.eq.u32", next, alike) : p_.p("setp.eq.u32", rank, 0);
    p_.unless(told, [&] {
      p_.op("mov.u32", out.place, 0);
      p_.op("mov.u32", left, 32);
      p_.loop([&] { return p_.p("setp.gt.u32", left, 0); },
              [&] {
                Reg above = p_.r("mov.u32", left);
                p_.op("sub.u32", left, left, 8);
                count([&](const Reg& key, const Reg& place, const Reg& there) {
                  Reg other = p_.r("shr.u32", p_.r("xor.b32", place, out.place), above);
                  Reg same =
                      p_.p("setp.eq.and.u32", other, 0, p_.p("and.pred", keys_compare("eq", key, out.key), there));
                  return std::pair(same, p_.r("and.b32", p_.r("shr.u32", place, left), kDigits - 1));
                });
                p_.op("or.b32", out.place, out.place, p_.r("shl.b32", find_digit(rank, alike), left));
              });
    });
    return out;
  }
  // How often each digit is; `digit_of` gives whether an element counts, and its digit.
  template <class F>
  void count(const F& digit_of) {
    Reg own = p_.r("mad.lo.u32", thread_, 4, shared_), has_digit = p_.p("setp.lt.u32", thread_, kDigits);
    p_.op(if_(has_digit, "st.shared.b32"), in(own, counts_at()), number(0));
    p_.op("bar.sync", 0);
    over_line([&](const Reg& key, const Reg& place, const Reg& there) {
      auto [same, digit] = digit_of(key, place, there);
      p_.op(if_(same, "red.shared.add.u32"), in(p_.r("mad.lo.u32", digit, 4, shared_), counts_at()), 1);
    });
    p_.op("bar.sync", 0);
  }
  // Of the item of this rank among those counted; its rank among those that have that digit, and how many these are.
  Reg find_digit(const Reg& rank, const Reg& alike) {
    Reg has_digit = p_.p("setp.lt.u32", thread_, kDigits);
    Reg own = p_.r("mad.lo.u32", p_.r("min.u32", thread_, kDigits - 1), 4, shared_);
    Reg often = p_.r("selp.b32", p_.r("ld.shared.b32", in(own, counts_at())), 0, has_digit);
    Reg below = sum_before(often, sums_at());
    // Others wrap around to what is greater than all counts.
    Reg among = p_.r("sub.u32", rank, below);
    Reg here = p_.p("setp.lt.u32", among, often);
    Reg values[] = {thread_, below, often};
    for (int i = 0; i < 3; ++i) p_.op(if_(here, "st.shared.b32"), in(shared_, found_at() + 4 * i), values[i]);
    p_.op("bar.sync", 0);
    Reg found[3];
    for (int i = 0; i < 3; ++i) found[i] = p_.r("ld.shared.b32", in(shared_, found_at() + 4 * i));
    p_.op("sub.u32", rank, rank, found[1]);
    p_.op("mov.u32", alike, found[2]);
    return found[0];
  }
  // The items between the bounds, in any order.
  void collect(const Bound& lower, const Bound& upper) {
    p_.op(if_(p_.p("setp.eq.u32", thread_, 0), "st.shared.b32"), in(shared_, taken_at()), number(0));
    p_.op("bar.sync", 0);
    over_line([&](const Reg& key, const Reg& place, const Reg& there) {
      Reg taken = p_.p("and.pred", there, is_up_to(key, place, upper.key, upper.place));
      if (!lower.key.empty()) taken = p_.p("and.pred", taken, is_up_to(lower.key, lower.place, key, place));
      p_.when(taken, [&] {
        Reg at = p_.fresh('r');
        p_.op("atom.shared.add.u32", at, in(shared_, taken_at()), 1);
        if (kind_.last)
          put(item_address(at), item(key, place));
        else
          keep(at, key, place);
      });
    });
    p_.op("bar.sync", 0);
  }
  Reg is_up_to(const Reg& key, const Reg& place, const Reg& last_key, const Reg& last_place) {
    Reg before = p_.p("setp.le.u32", place, last_place), same = keys_compare("eq", key, last_key);
    return p_.p("or.pred", keys_compare("lt", key, last_key), p_.p("and.pred", same, before));
  }

  Reg line_, first_, end_, start_;
};

}  // namespace

WrittenKernel sort_lines(const SortKind& kind) { return Lines(kind).write(); }
WrittenKernel sort_select(const SortKind& kind) { return Select(kind).write(); }

}  // namespace brasa::runtime::cuda
