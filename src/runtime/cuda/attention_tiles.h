#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/attention.h"
#include "runtime/cuda/tile_products.h"

// What the kernels of attention are made of: tiles of rows in shared memory, products of them, sweeps over them.
namespace brasa::runtime::cuda {

constexpr double kLog2E = 1.4426950408889634, kLn2 = 0.6931471805599453;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kNever = 0x40000000;  // a row that no matrix has
constexpr int kAlignment = 1024;    // of what the tensor cores read in shared memory

class AttentionTiles : public TileProducts {
 public:
  AttentionTiles(AttentionPass pass, const AttentionKind& kind)
      : TileProducts(kind.dtype, kind.features, kind.tall ? 2 : 1, kind.grouped),
        pass_(pass),
        kind_(kind),
        small_(padded_ <= 64),
        by_key_(pass == AttentionPass::ByKey),
        block_(kind.grouped ? block_of_groups(pass)
               : rounds()   ? block_of_float32(pass, small_)
                            : block(pass, small_, kind)),
        kept_(block_.kept),
        own_rows_(16 * parts_ * block_.warps),
        warps_(block_.warps),
        tile_(block_.tile),
        width_(block_.width) {}

 protected:
  struct Rows {  // of a head
    Reg start, step;
  };
  struct
      Moving {  // where this thread copies from, the rows' distance from one pass over a tile to the next, and a tile's extent
    Reg at, pass, tile;
  };

  // Its warps, the rows of a tile, how many columns of scores a warp has at once, whether its own rows stay in shared memory, and how many
  // blocks a processor must have registers for.
  struct Block {
    int warps, tile, width;
    bool kept = false;
    int together = 1;
  };
  static Block block(AttentionPass pass, bool small, const AttentionKind& kind) {
    switch (pass) {
      case AttentionPass::Forward: return {4, small ? 64 : 32, 32};
      case AttentionPass::ByQuery: return {4, small ? 64 : 32, 16};
      case AttentionPass::ByKey: return small ? Block{4, 64, kind.tall ? 16 : 32} : Block{2, 16, 16, true};
      case AttentionPass::ForwardOfHead: return {7, 224, 64};
      case AttentionPass::BackwardOfHead: return {kMostRowsOfHead / 16, kMostRowsOfHead, 16};
      case AttentionPass::OfRow: return {kind.blocks > 1 ? 4 : 16, 0, 0};
    }
    return {};
  }
  static Block block_of_float32(AttentionPass pass, bool small) {
    switch (pass) {
      case AttentionPass::Forward: return {4, 32, 32};
      case AttentionPass::ByQuery: return small ? Block{4, 32, 32, true} : Block{4, 16, 16, true};
      case AttentionPass::ByKey: return small ? Block{4, 32, 32, true} : Block{2, 16, 16, true};
      case AttentionPass::ForwardOfHead: return {7, kMostRowsOfHead, 32, false, 2};
      default: return {};
    }
  }
  // Four groups a processor, by 128 registers a thread, or three, where there are two results.
  static Block block_of_groups(AttentionPass pass) {
    switch (pass) {
      case AttentionPass::Forward: return {4, 64, 64, true, 4};
      case AttentionPass::ByQuery: return {8, 128, 64, true, 2};
      case AttentionPass::ByKey: return {4, 64, 64, true, 3};
      case AttentionPass::BackwardOfHead: return {16, kMostRowsOfHead, 32, true};
      default: return {};
    }
  }
  int threads() const { return 32 * warps_; }
  int tile_bytes() const { return tile_ * row_bytes_; }
  int stage_bytes() const {
    return 2 * tile_bytes() + (by_key_ ? (8 * tile_ + kAlignment - 1) / kAlignment * kAlignment : 0);
  }
  int own_matrices() const { return pass_ == AttentionPass::Forward ? 1 : 2; }
  int own_bytes() const { return kept_ ? own_matrices() * own_tile_bytes() : 0; }
  // Rows of 16 bytes more than they have, so that what is written at once comes to different banks.
  int result_row_bytes() const { return padded_ * element_ + 16; }
  int result_bytes() const { return own_rows_ * result_row_bytes(); }
  int results() const {
    switch (pass_) {
      case AttentionPass::OfRow: return 0;
      case AttentionPass::ByKey: return 2;
      case AttentionPass::BackwardOfHead: return 3;
      default: return 1;
    }
  }
  int shared_bytes() const {
    // Own matrices that lie there before tiles do; the output is one by queries.
    int before = !kept_ ? own_matrices() : pass_ == AttentionPass::ByQuery ? 1 : 0;
    int rows =
        std::max(own_bytes() + std::max(2 * stage_bytes(), before * own_tile_bytes()), results() * result_bytes());
    return rows + sum_bytes();
  }
  // At the end: each warp's sums of each result.
  int sum_bytes() const { return kind_.summed ? results() * warps_ * warp_sum_bytes() : 0; }
  int warp_sum_bytes() const { return 4 * padded_; }

  // --- where things are ---

  Reg next_parameter() { return p_.parameter(parameters_++); }
  Reg next_size() { return p_.parameter32(parameters_++); }
  Reg next_number() { return p_.f("mov.b32", next_size()); }

  Rows next_rows() {
    Reg data = next_parameter(), batch = next_parameter(), head = next_parameter(), row = next_parameter();
    Reg at = p_.d("mad.lo.s64", batch_, batch, data);
    return {p_.d("mad.lo.s64", head_, head, at), row};
  }
  Reg row_address(const Rows& rows, const Reg& row) {
    return p_.d("mad.lo.s64", p_.d("cvt.u64.u32", row), rows.step, rows.start);
  }

  void begin() {
    queries_ = next_size();
    keys_ = next_size();
    Reg heads_each = next_size(), all_heads = next_size(), tiles = next_size();
    scale2_ = next_number();
    scale_ = next_number();

    thread_ = p_.r("mov.u32", "%tid.x");
    Reg block = p_.r("mov.u32", "%ctaid.x");
    Reg tile = p_.r("rem.u32", block, tiles), both = p_.r("div.u32", block, tiles);
    if (kind_.causal) {  // long ways first, of all heads: the last queries, the first keys
      both = p_.r("rem.u32", block, all_heads);
      tile = p_.r("div.u32", block, all_heads);
      if (!by_key_) tile = p_.r("sub.u32", p_.r("sub.u32", tiles, 1), tile);
    }
    batch_ = p_.d("cvt.u64.u32", p_.r("div.u32", both, heads_each));
    head_ = p_.d("cvt.u64.u32", p_.r("rem.u32", both, heads_each));
    find_lane(thread_);
    Reg warp = p_.r("shr.u32", thread_, 5);
    first_ = p_.r("mul.lo.u32", tile, own_rows_);
    own_first_ = p_.r("mad.lo.u32", warp, 16 * parts_, first_);
    own_row_ = p_.r("add.u32", own_first_, p_.r("shr.u32", lane_, 2));
    vector_start_ = p_.d("mul.wide.u32", both, queries_);
    shared_ = p_.r("mov.u32", "shared_memory");
    stages_ = p_.r("add.u32", shared_, own_bytes());
    own_offset_ = p_.r("mul.lo.u32", warp, 16 * parts_ * row_bytes_);
    result_offset_ = p_.r("mul.lo.u32", warp, 16 * parts_ * result_row_bytes());
    swept_first_ = own_first_;
    if (grouped_) {
      // The same in all lanes, as the assembler sees then: what follows from it goes to registers of a warp.
      Reg group = p_.fresh('r');
      p_.op("shfl.sync.idx.b32", group, p_.r("shr.u32", warp, 2), 0, 31, -1);
      swept_first_ = p_.r("mad.lo.u32", group, swept_rows(), first_);
      group_offset_ = p_.r("mul.lo.u32", group, swept_rows() * row_bytes_);
    }

    // A thread copies 16 bytes of a row, and of every row that is `pass_rows_` on.
    int chunks = padded_ * element_ / 16, lanes = static_cast<int>(std::bit_ceil(static_cast<unsigned>(chunks)));
    pass_rows_ = threads() / lanes;
    Reg column = p_.r("and.b32", thread_, lanes - 1);
    copy_row_ = p_.r("div.u32", thread_, lanes);
    Reg chunk = grouped_ ? p_.r("xor.b32", column, p_.r("and.b32", copy_row_, 7)) : column;
    copy_to_ = p_.r("mad.lo.u32", copy_row_, row_bytes_, p_.r("shl.b32", chunk, 4));
    copy_bytes_ = p_.d("mul.wide.u32", column, 16);
    copy_column_ = p_.r("mul.lo.u32", column, 16 / element_);
    if (lanes != chunks) copies_ = p_.p("setp.lt.u32", column, chunks);
    Reg filled = p_.p("setp.lt.u32", copy_column_, kind_.features);
    copy_test_ = p_.r("selp.b32", copy_row_, kNever, filled);
  }

  // --- to shared memory ---

  Moving moving(const Rows& rows, const Reg& first) {
    Reg at = row_address(rows, p_.r("add.u32", first, copy_row_));
    return {p_.d("add.s64", at, copy_bytes_), p_.d("mul.lo.s64", rows.step, pass_rows_),
            p_.d("mul.lo.s64", rows.step, tile_)};
  }
  // `count` rows from `first` on; zeros from row `end` on and behind the features.
  void copy_rows(const Moving& from, const Reg& to, const Reg& first, const Reg& end, int count) {
    copy_rows_here(from, p_.r("add.u32", to, copy_to_), first, end, count, row_bytes_);
  }
  // To where this thread's part of the first row goes, and steps of bytes on.
  void copy_rows_here(const Moving& from, const Reg& to, const Reg& first, const Reg& end, int count, int step) {
    Reg row = p_.r("add.u32", first, copy_test_);
    auto all = [&] {
      Reg at = from.at;
      over_passes(count, [&](int done) {
        if (done) at = p_.d("add.s64", at, from.pass);
        Reg inside = p_.p("setp.lt.u32", done ? p_.r("add.u32", row, done) : row, end);
        std::string place = str("[", to, "+", done * step, "]");
        if (kind_.wide)
          return p_.op("cp.async.cg.shared.global", place, str("[", at, "]"), 16, p_.r("selp.b32", 16, 0, inside));
        Regs parts;
        for (int i = 0; i < 16 / element_; ++i) {
          parts.push_back(p_.fresh(element_ == 2 ? 'h' : 'r'));
          const char* bits = element_ == 2 ? "b16" : "b32";
          p_.op(str("mov.", bits), parts.back(), 0);
          Reg has = p_.p("setp.lt.and.u32", p_.r("add.u32", copy_column_, i), kind_.features, inside);
          p_.op(str("@", has, " ld.global.", bits), parts.back(), str("[", at, "+", element_ * i, "]"));
        }
        p_.op("st.shared.v4.b32", place, braces(element_ == 2 ? in_pairs(parts) : parts));
      });
    };
    if (copies_.empty())
      all();
    else
      p_.when(copies_, all);
  }
  // The rows of `count` that this thread has a part of: `body(the first one's distance from its own first)`.
  template <class F>
  void over_passes(int count, const F& body) {
    int done = 0;
    for (; done + pass_rows_ <= count; done += pass_rows_) body(done);
    if (done < count) p_.when(p_.p("setp.lt.u32", copy_row_, count - done), [&] { body(done); });
  }
  void copy_vector(const Reg& from, const Reg& to, const Reg& first, const Reg& end) {
    p_.when(p_.p("setp.lt.u32", thread_, tile_), [&] {
      Reg row = p_.r("add.u32", first, thread_);
      Reg at = p_.d("mad.wide.u32", row, 4, from);
      Reg inside = p_.p("setp.lt.u32", row, end);
      p_.op("cp.async.ca.shared.global", str("[", p_.r("mad.lo.u32", thread_, 4, to), "]"), str("[", at, "]"), 4,
            p_.r("selp.b32", 4, 0, inside));
    });
  }
  // Tiles of `count` rows each are there, and rounded, where the tensor cores would cut bits off: by the threads that copied them.
  void arrived(const Regs& tiles, int count) {
    p_.op("cp.async.commit_group");
    p_.op("cp.async.wait_group", 0);
    auto round = [&] {
      for (const Reg& tile : tiles) {
        Reg at = p_.r("add.u32", tile, copy_to_);
        over_passes(count, [&](int done) {
          Regs four = p_.fresh('r', 4);
          std::string place = str("[", at, "+", done * row_bytes_, "]");
          p_.op("ld.shared.v4.b32", braces(four), place);
          p_.op("st.shared.v4.b32", place, braces(operands(four)));
        });
      }
    };
    if (rounds()) copies_.empty() ? round() : p_.when(copies_, round);
    if (grouped_) p_.op("fence.proxy.async.shared::cta");  // the tensor cores read it themselves
    p_.op("bar.sync", 0);
  }

  // Copies this block's rows of a matrix.
  Reg own_rows(const Rows& rows, const Reg& end, const Reg& to) {
    copy_rows(moving(rows, first_), to, first_, end, own_rows_);
    awaited_.push_back(to);
    return to;
  }
  int own_tile_bytes() const { return own_rows_ * row_bytes_; }
  void own_rows_arrived() { arrived(std::exchange(awaited_, {}), own_rows_); }

  // --- own rows ---

  // This warp's rows of a block's, where ldmatrix reads them.
  Reg own_part(const Reg& tile) { return p_.r("add.u32", p_.r("add.u32", tile, own_offset_), down_); }
  // The same of this warp's rows below `end` where they are; zeros behind.
  std::vector<Part> fragments_of(const Rows& rows, const Reg& end) {
    std::vector<Part> out(parts_, Part(steps_of_row(), Regs(4)));
    for (int i = 0; i < parts_; ++i)
      for (int half : {0, 1}) {
        Reg row = own_row(i, half), inside = p_.p("setp.lt.u32", row, end);
        Reg at = p_.d("mad.wide.u32", pair_, 2, row_address(rows, row));
        for (int k = 0; k < steps_of_row(); ++k)
          for (int column : {0, 1}) {
            Reg& r = out[i][k][half + 2 * column] = p_.r("mov.b32", 0);
            p_.op(str("@", inside, " ld.global.b32"), r, str("[", at, "+", 32 * k + 16 * column, "]"));
            r = operand(r);
          }
      }
    return out;
  }
  // Of this block's rows of matrices, which stay or go to registers. Those that stay are still on their way.
  std::vector<Own> own(const std::vector<Rows>& matrices, const Reg& end) {
    Regs tiles;
    for (const Rows& rows : matrices) tiles.push_back(own_rows(rows, end, own_tile(static_cast<int>(tiles.size()))));
    if (!kept_) own_rows_arrived();
    std::vector<Own> out;
    for (const Reg& tile : tiles)
      out.push_back(!kept_     ? held(fragments(own_part(tile)))
                    : grouped_ ? read_by_group(p_.r("add.u32", tile, group_offset_))
                               : read_again(own_part(tile)));
    if (!kept_) p_.op("bar.sync", 0);
    return out;
  }
  Reg own_tile(int i) { return p_.r("add.u32", shared_, i * own_tile_bytes()); }

  // --- sweeps ---

  // Tiles from `first` on of rows below `end`: `copy(stage, first row)` brings one, `use(stage, first row)` uses it.
  template <class C, class U>
  void over_tiles(const Reg& first, const Reg& end, const C& copy, const U& use) {
    Reg row = p_.r("mov.u32", first), here = p_.r("mov.u32", stages_), there = p_.r("add.u32", stages_, stage_bytes());
    p_.when(p_.p("setp.lt.u32", row, end), [&] { copy(here, row); });
    if (!awaited_.empty()) own_rows_arrived();
    p_.loop([&] { return p_.p("setp.lt.u32", row, end); },
            [&] {
              arrived({here, p_.r("add.u32", here, tile_bytes())}, tile_);
              Reg next = p_.r("add.u32", row, tile_);
              p_.when(p_.p("setp.lt.u32", next, end), [&] { copy(there, next); });
              use(here, row);
              p_.op("mov.u32", row, next);
              Reg kept = p_.r("mov.u32", here);
              p_.op("mov.u32", here, there);
              p_.op("mov.u32", there, kept);
            });
  }
  // Steps of `width` columns from `column` on, as long as they are below `end`, or end there.
  template <class F>
  void steps(const Reg& column, const Reg& end, int width, bool whole, const F& body) {
    p_.loop(
        [&] {
          return whole ? p_.p("setp.le.u32", p_.r("add.u32", column, width), end) : p_.p("setp.lt.u32", column, end);
        },
        [&] {
          body(width);
          p_.op("add.u32", column, column, width);
        });
  }
  // What multiplies together, a warp or a group, goes through the other side's rows together.
  int swept_rows() const { return (grouped_ ? 4 : 1) * 16 * parts_; }
  Reg swept_end() { return p_.r("add.u32", swept_first_, swept_rows()); }
  // Of what is left at the end, or lies on the diagonal, where a group's rows need all of a step.
  int least_width() const { return grouped_ && kind_.causal ? width_ : 16; }
  // Keys for this warp's queries: `body(width, masked, column, offset of the column's row in the tile)`.
  template <class F>
  void over_keys(const Reg& tile_first, const F& body) {
    Reg tile_end = p_.r("add.u32", tile_first, tile_), end = keys_, whole = keys_;
    if (kind_.causal) {
      whole = p_.r("min.u32", keys_, p_.r("add.u32", swept_first_, 1));
      end = p_.r("min.u32", keys_, swept_end());
    }
    whole = p_.r("min.u32", whole, tile_end);
    end = p_.r("min.u32", end, tile_end);
    end = p_.r("selp.b32", end, 0, p_.p("setp.lt.u32", swept_first_, queries_));
    whole = p_.r("min.u32", whole, end);
    Reg column = p_.r("mov.u32", tile_first);
    auto at = [&] { return p_.r("mul.lo.u32", p_.r("sub.u32", column, tile_first), row_bytes_); };
    steps(column, whole, width_, true, [&](int width) { body(width, false, column, at()); });
    steps(column, end, least_width(), false, [&](int width) { body(width, true, column, at()); });
  }
  Reg keys_end() {
    if (!kind_.causal) return keys_;
    return p_.r("min.u32", keys_, p_.r("add.u32", first_, own_rows_));
  }
  // The thread's two rows of a part.
  Reg own_row(int part, int half) {
    int behind = 16 * part + 8 * half;
    return behind ? p_.r("add.u32", own_row_, behind) : own_row_;
  }
  // Whether this warp's element e of the 4 of 8 columns is one to attend to.
  Reg attends(const Reg& column, int part, int n, int e) {
    Reg col = p_.r("add.u32", p_.r("add.u32", column, pair_), 8 * n + e % 2), row = own_row(part, e / 2);
    if (by_key_) return p_.p("setp.ge.u32", col, row);
    Reg inside = p_.p("setp.lt.u32", col, keys_);
    return kind_.causal ? p_.p("setp.le.and.u32", col, row, inside) : inside;
  }

  // --- gradients of scores ---

  // In place: a group's products go to the same registers again.
  void to_power(const Reg& score, const Reg& less) {
    p_.op("fma.rn.f32", score, score, scale2_, less);
    p_.op("ex2.approx.ftz.f32", score, score);
  }
  void to_gradient(const Reg& of_probability, const Reg& probability, const Reg& inner) {
    p_.op("sub.f32", of_probability, of_probability, inner);
    p_.op("mul.f32", of_probability, probability, of_probability);
  }

  AttentionPass pass_;
  AttentionKind kind_;
  bool small_, by_key_;
  Block block_;
  bool kept_;     // the block's own rows stay in shared memory
  int own_rows_;  // of a block
  int warps_, tile_, width_;
  int parameters_ = 0, pass_rows_ = 0;
  Reg queries_, keys_, scale_, scale2_;
  Reg thread_, batch_, head_, first_, own_first_, own_row_, swept_first_, vector_start_;
  Reg shared_, stages_, own_offset_, group_offset_, result_offset_;
  Regs awaited_;  // own matrices on their way
  Reg copy_row_, copy_to_, copy_bytes_, copy_column_, copy_test_, copies_;
};

}  // namespace brasa::runtime::cuda
