#pragma once

#include <array>
#include <bit>
#include <vector>

#include "runtime/cuda/attention_tiles.h"

// How the kernels of attention write rows, and what these add up to.
namespace brasa::runtime::cuda {

class AttentionResults : public AttentionTiles {
 protected:
  using AttentionTiles::AttentionTiles;

  // What an element of a result is multiplied by, by part and half.
  using Factors = std::vector<std::array<Reg, 2>>;
  Factors all(const Reg& factor) const { return Factors(parts_, {factor, factor}); }
  Reg scaled(const std::vector<Part>& values, const Factors& factors, int part, int n, int half) {
    const Regs& v = values[part][n];
    const Reg& factor = factors[part][half];
    Reg low = p_.f("mul.f32", v[2 * half], factor), high = p_.f("mul.f32", v[2 * half + 1], factor);
    return rounded(low, high);
  }

  // This warp's part of a block's i-th result, where tiles were that nobody reads any more.
  Reg result(int i = 0) { return p_.r("add.u32", p_.r("add.u32", shared_, result_offset_), i * result_bytes()); }

  // The warp's rows below `end`, by way of `own`, this warp's part of a result; what they add up to, to `sums` in shared memory, if it is there.
  void store_rows(const std::vector<Part>& values, const Factors& factors, const Reg& own, const Rows& to,
                  const Reg& end, const Reg& sums = {}) {
    if (rounds()) return store_fours(values, factors, to, end);
    bool whole = kind_.wide && kind_.features >= 16 && std::has_single_bit(static_cast<unsigned>(kind_.features));
    if (whole || !sums.empty()) put_down(values, factors, own, sums.empty() ? Reg() : end);
    if (!sums.empty()) add_up(own, sums);
    if (whole) return copy_out(own, to, end);
    for (int part = 0; part < parts_; ++part)
      for (int half : {0, 1}) {
        Reg row = own_row(part, half);
        p_.when(p_.p("setp.lt.u32", row, end), [&] {
          Reg at = p_.d("mad.wide.u32", pair_, 2, row_address(to, row));
          for (int n = 0; 8 * n < kind_.features; ++n) store_pair(scaled(values, factors, part, n, half), at, n);
        });
      }
  }
  void store_pair(const Reg& both, const Reg& at, int n) {
    if (kind_.wide) return p_.op("st.global.b32", str("[", at, "+", 16 * n, "]"), both);
    Regs parts = p_.fresh('h', 2);
    p_.op("mov.b32", braces(parts), both);
    for (int k : {0, 1}) {
      Reg has = p_.p("setp.lt.u32", p_.r("add.u32", pair_, 8 * n + k), kind_.features);
      p_.op(str("@", has, " st.global.b16"), str("[", at, "+", 16 * n + 2 * k, "]"), parts[k]);
    }
  }
  // Of float32 a lane has four columns beside each other of each 16, see add_wide_rows.
  void store_fours(const std::vector<Part>& values, const Factors& factors, const Rows& to, const Reg& end) {
    Reg column = p_.r("shl.b32", pair_, 1);
    for (int part = 0; part < parts_; ++part)
      for (int half : {0, 1}) {
        Reg row = own_row(part, half);
        p_.when(p_.p("setp.lt.u32", row, end), [&] {
          Reg at = p_.d("mad.wide.u32", column, 4, row_address(to, row));
          for (int n = 0; 16 * n < kind_.features; ++n) {
            Regs four;
            for (int e : {0, 1})
              for (int odd : {0, 1})
                four.push_back(p_.f("mul.f32", values[part][2 * n + odd][2 * half + e], factors[part][half]));
            auto has = [&](int i) { return p_.p("setp.lt.u32", p_.r("add.u32", column, 16 * n + i), kind_.features); };
            if (kind_.wide)
              p_.op(str("@", has(0), " st.global.v4.b32"), str("[", at, "+", 64 * n, "]"), braces(four));
            else
              for (int i = 0; i < 4; ++i)
                p_.op(str("@", has(i), " st.global.b32"), str("[", at, "+", 64 * n + 4 * i, "]"), four[i]);
          }
        });
      }
  }
  // Rounded rows in shared memory; zeros from row `end` on, if it is given.
  void put_down(const std::vector<Part>& values, const Factors& factors, const Reg& own, const Reg& end) {
    Reg at = p_.r("mad.lo.u32", p_.r("shr.u32", lane_, 2), result_row_bytes(), p_.r("mad.lo.u32", pair_, 2, own));
    for (int part = 0; part < parts_; ++part)
      for (int half : {0, 1}) {
        Reg given = end.empty() ? Reg() : p_.r("selp.b32", -1, 0, p_.p("setp.lt.u32", own_row(part, half), end));
        for (int n = 0; n < padded_ / 8; ++n) {
          Reg both = scaled(values, factors, part, n, half);
          if (!given.empty()) both = p_.r("and.b32", both, given);
          p_.op("st.shared.b32", str("[", at, "+", (16 * part + 8 * half) * result_row_bytes() + 16 * n, "]"), both);
        }
      }
    p_.op("bar.warp.sync", -1);
  }
  // Sums of columns of these, as a product of a row of ones.
  void add_up(const Reg& own, const Reg& sums) {
    Reg ones = p_.r("mov.u32", kind_.dtype == DType::Float16 ? 0x3C003C00 : 0x3F803F80);
    Reg at = p_.r("mad.lo.u32", p_.r("and.b32", lane_, 15), result_row_bytes(), own);
    at = p_.r("mad.lo.u32", p_.r("shr.u32", lane_, 4), 16, at);
    Part sum(padded_ / 8);
    for (Regs& four : sum)
      for (int e = 0; e < 4; ++e) four.push_back(p_.f("mov.f32", number(0)));
    for (int part = 0; part < parts_; ++part)
      for (int n = 0; n < padded_ / 16; ++n) {
        Regs b = matrices(at, 16 * part * result_row_bytes() + 32 * n, true);
        for (int i : {0, 1}) multiply(sum[2 * n + i], Regs(4, ones), b[2 * i], b[2 * i + 1]);
      }
    // All rows of the product are the same; four lanes have the first one.
    Reg leads = p_.p("setp.lt.u32", lane_, 4), to = p_.r("mad.lo.u32", pair_, 4, sums);
    for (int n = 0; n < padded_ / 8; ++n)
      p_.op(str("@", leads, " st.shared.v2.f32"), str("[", to, "+", 32 * n, "]"), braces({sum[n][0], sum[n][1]}));
  }
  // At the end of so many bytes of shared memory.
  void place_sums(int bytes) { sums_ = p_.r("add.u32", shared_, bytes - sum_bytes()); }
  // Where this warp's sums of the i-th result are; nowhere if nobody wants them.
  Reg sums_of(int i) {
    if (!kind_.summed) return {};
    Reg warp = p_.r("add.u32", p_.r("shr.u32", thread_, 5), i * warps_);
    return p_.r("mad.lo.u32", warp, warp_sum_bytes(), sums_);
  }
  // The warps' sums of the i-th result, of kRowsOfSum rows together, for rows below `end`. All of them are there.
  void store_sums(int i, const Rows& to, const Reg& end) {
    const int together = kRowsOfSum / (16 * parts_), sums = (warps_ + together - 1) / together;
    Reg from = p_.r("add.u32", sums_, i * warps_ * warp_sum_bytes());
    for (int first = 0; first < sums * padded_; first += threads()) {
      Reg at = p_.r("add.u32", thread_, first), which = p_.r("div.u32", at, padded_);
      Reg column = p_.r("rem.u32", at, padded_), warp = p_.r("mul.lo.u32", which, together);
      Reg there = p_.r("mad.lo.u32", column, 4, p_.r("mad.lo.u32", warp, warp_sum_bytes(), from));
      Reg sum = p_.f("mov.f32", number(0));
      for (int w = 0; w < together; ++w) {
        Reg v = p_.f("mov.f32", number(0));
        p_.op(str("@", p_.p("setp.lt.u32", warp, warps_ - w), " ld.shared.f32"), v,
              str("[", there, "+", w * warp_sum_bytes(), "]"));
        p_.op("add.f32", sum, sum, v);
      }
      which = p_.r("add.u32", which, p_.r("div.u32", first_, kRowsOfSum));
      Reg row = p_.r("mul.lo.u32", which, kRowsOfSum);
      Reg stores = p_.p("setp.lt.and.u32", column, kind_.features, p_.p("setp.lt.u32", row, end));
      stores = p_.p("setp.lt.and.u32", warp, warps_, stores);
      p_.op(str("@", stores, " st.global.f32"), str("[", p_.d("mad.wide.u32", column, 4, row_address(to, which)), "]"),
            sum);
    }
  }
  // Those of all results, which have rows below these ends: the kernel's last parameters say where to.
  void store_sums(const Regs& ends) {
    if (!kind_.summed) return;
    p_.op("bar.sync", 0);
    for (int i = 0; i < results(); ++i) store_sums(i, next_rows(), ends[i]);
  }
  // Lanes beside each other write 16 bytes each of a row.
  void copy_out(const Reg& own, const Rows& to, const Reg& end) {
    int lanes = static_cast<int>(kind_.features / 8), rows = 32 / lanes;
    Reg row = p_.r("div.u32", lane_, lanes), column = p_.r("shl.b32", p_.r("and.b32", lane_, lanes - 1), 4);
    Reg from = p_.r("mad.lo.u32", row, result_row_bytes(), p_.r("add.u32", own, column));
    for (int i = 0; i < 16 * parts_; i += rows) {
      Reg each = p_.r("add.u32", p_.r("add.u32", own_first_, row), i);
      Regs parts = p_.fresh('r', 4);
      p_.op("ld.shared.v4.b32", braces(parts), str("[", from, "+", i * result_row_bytes(), "]"));
      Reg there = p_.d("add.s64", row_address(to, each), p_.d("cvt.u64.u32", column));
      p_.op(str("@", p_.p("setp.lt.u32", each, end), " st.global.v4.b32"), str("[", there, "]"), braces(parts));
    }
  }

 private:
  Reg sums_;
};

}  // namespace brasa::runtime::cuda
