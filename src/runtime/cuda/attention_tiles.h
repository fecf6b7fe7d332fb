#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/attention.h"
#include "runtime/cuda/ptx.h"

// What the kernels of attention are made of: tiles of rows in shared memory, products of them, sweeps over them.
namespace brasa::runtime::cuda {

constexpr double kLog2E = 1.4426950408889634, kLn2 = 0.6931471805599453;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kNever = 0x40000000;  // a row that no matrix has

class AttentionTiles {
 public:
  using Reg = Ptx::Reg;
  using Regs = Ptx::Regs;

  AttentionTiles(AttentionPass pass, const AttentionKind& kind)
      : pass_(pass),
        kind_(kind),
        padded_(static_cast<int>((kind.features + 15) / 16 * 16)),
        row_bytes_(padded_ * 2 + 16),  // ldmatrix reads eight rows at once, from different banks
        small_(padded_ <= 64),
        by_key_(pass == AttentionPass::ByKey),
        block_(block(pass, small_, kind.tall)),
        parts_(kind.tall ? 2 : 1),
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

  // Its warps, the rows of a tile, and how many columns of scores a warp has at once.
  struct Block {
    int warps, tile, width;
  };
  static Block block(AttentionPass pass, bool small, bool tall) {
    switch (pass) {
      case AttentionPass::Forward: return {4, small ? 64 : 32, 32};
      case AttentionPass::ByQuery: return {4, small ? 64 : 32, 16};
      case AttentionPass::ByKey: return small ? Block{4, 64, tall ? 16 : 32} : Block{2, 16, 16};
      case AttentionPass::ForwardOfHead: return {7, 224, 64};
      case AttentionPass::BackwardOfHead: return {kMostRowsOfHead / 16, kMostRowsOfHead, 16};
      case AttentionPass::OfRow: return {16, 0, 0};
    }
    return {};
  }
  int threads() const { return 32 * warps_; }
  int tile_bytes() const { return tile_ * row_bytes_; }
  int stage_bytes() const { return 2 * tile_bytes() + (by_key_ ? 8 * tile_ : 0); }
  int own_bytes() const { return by_key_ && !small_ ? 2 * own_rows_ * row_bytes_ : 0; }
  int shared_bytes() const {
    return own_bytes() + std::max(2 * stage_bytes(), own_bytes() ? 0 : 2 * own_rows_ * row_bytes_);
  }

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
    lane_ = p_.r("and.b32", thread_, 31);
    Reg warp = p_.r("shr.u32", thread_, 5);
    first_ = p_.r("mul.lo.u32", tile, own_rows_);
    own_first_ = p_.r("mad.lo.u32", warp, 16 * parts_, first_);
    own_row_ = p_.r("add.u32", own_first_, p_.r("shr.u32", lane_, 2));
    pair_ = p_.r("shl.b32", p_.r("and.b32", lane_, 3), 1);
    vector_start_ = p_.d("mul.wide.u32", both, queries_);
    shared_ = p_.r("mov.u32", "shared_memory");
    stages_ = p_.r("add.u32", shared_, own_bytes());

    // Of a lane in ldmatrix: rows one after the other in two columns of matrices, or the other way round.
    Reg low = p_.r("and.b32", lane_, 15), eight = p_.r("and.b32", lane_, 7), upper = p_.r("shr.u32", lane_, 4);
    Reg middle = p_.r("and.b32", p_.r("shr.u32", lane_, 3), 1);
    down_ = p_.r("mad.lo.u32", low, row_bytes_, p_.r("shl.b32", upper, 4));
    across_ = p_.r("mad.lo.u32", p_.r("mad.lo.u32", upper, 8, eight), row_bytes_, p_.r("shl.b32", middle, 4));
    own_offset_ = p_.r("mul.lo.u32", warp, 16 * parts_ * row_bytes_);

    // A thread copies 16 bytes of a row, and of every row that is `pass_rows_` on.
    int chunks = padded_ / 8, lanes = static_cast<int>(std::bit_ceil(static_cast<unsigned>(chunks)));
    pass_rows_ = threads() / lanes;
    Reg column = p_.r("and.b32", thread_, lanes - 1);
    copy_row_ = p_.r("div.u32", thread_, lanes);
    copy_to_ = p_.r("mad.lo.u32", copy_row_, row_bytes_, p_.r("shl.b32", column, 4));
    copy_bytes_ = p_.d("mul.wide.u32", column, 16);
    copy_column_ = p_.r("shl.b32", column, 3);
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
      for (int done = 0; done < count; done += pass_rows_) {
        if (done) at = p_.d("add.s64", at, from.pass);
        Reg inside = p_.p("setp.lt.u32", done ? p_.r("add.u32", row, done) : row, end);
        std::string place = str("[", to, "+", done * step, "]");
        if (kind_.wide) {
          p_.op("cp.async.cg.shared.global", place, str("[", at, "]"), 16, p_.r("selp.b32", 16, 0, inside));
          continue;
        }
        Regs parts;
        for (int i = 0; i < 8; i += 2) {
          Regs halves = p_.fresh('h', 2);
          for (int k : {0, 1}) {
            p_.op("mov.b16", halves[k], 0);
            Reg has = p_.p("setp.lt.and.u32", p_.r("add.u32", copy_column_, i + k), kind_.features, inside);
            p_.op(str("@", has, " ld.global.b16"), halves[k], str("[", at, "+", 2 * (i + k), "]"));
          }
          parts.push_back(p_.r("mov.b32", braces(halves)));
        }
        p_.op("st.shared.v4.b32", place, braces(parts));
      }
    };
    if (copies_.empty())
      all();
    else
      p_.when(copies_, all);
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
  void arrived() {
    p_.op("cp.async.commit_group");
    p_.op("cp.async.wait_group", 0);
    p_.op("bar.sync", 0);
  }

  // This block's rows of two matrices, in shared memory one behind the other; the warp's rows of them.
  std::pair<Reg, Reg> own_rows(const Rows& a, const Rows* b, const Reg& end) {
    int bytes = own_rows_ * row_bytes_;
    Reg second = p_.r("add.u32", shared_, bytes);
    copy_rows(moving(a, first_), shared_, first_, end, own_rows_);
    if (b) copy_rows(moving(*b, first_), second, first_, end, own_rows_);
    arrived();
    Reg at = p_.r("add.u32", p_.r("add.u32", shared_, own_offset_), down_);
    return {at, p_.r("add.u32", at, bytes)};
  }

  // --- products ---

  static std::string braces(const Regs& regs) {
    std::string out = "{";
    for (size_t i = 0; i < regs.size(); ++i) out += (i ? ", " : "") + regs[i];
    return out + "}";
  }
  Regs matrices(const Reg& at, int offset, bool transposed = false) {
    Regs out = p_.fresh('r', 4);
    p_.op(transposed ? "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16" : "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
          braces(out), str("[", at, "+", offset, "]"));
    return out;
  }
  // 16 of a warp's rows: four registers for each 16 columns of an operand, or each 8 of a result.
  using Part = std::vector<Regs>;
  std::vector<Part> fragments(const Reg& at) {
    std::vector<Part> out(parts_);
    for (int i = 0; i < parts_; ++i)
      for (int k = 0; k < padded_ / 16; ++k) out[i].push_back(matrices(at, i * 16 * row_bytes_ + 32 * k));
    return out;
  }
  void multiply(const Regs& sum, const Regs& a, const Reg& b0, const Reg& b1) {
    const char* t = kind_.dtype == DType::Float16 ? "f16" : "bf16";
    p_.op(str("mma.sync.aligned.m16n8k16.row.col.f32.", t, ".", t, ".f32"), braces(sum), braces(a), braces({b0, b1}),
          braces(sum));
  }
  std::vector<Part> zeros(int columns) {
    std::vector<Part> out(parts_);
    for (Part& part : out)
      for (int n = 0; n < columns / 8; ++n) {
        part.push_back(p_.fresh('f', 4));
        for (const Reg& r : part.back()) p_.op("mov.f32", r, number(0));
      }
    return out;
  }
  static std::string number(double v) {
    constexpr char kDigits[] = "0123456789abcdef";
    uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(v));
    std::string out = "0f";
    for (int shift = 28; shift >= 0; shift -= 4) out += kDigits[bits >> shift & 15];
    return out;
  }
  // own rows · (`width` rows at `other`)ᵀ; `own` gives the k-th fragment of a part.
  template <class F>
  std::vector<Part> scores(const F& own, const Reg& other, int width) {
    std::vector<Part> out = zeros(width);
    Reg at = p_.r("add.u32", other, across_);
    for (int k = 0; k < padded_ / 16; ++k) {
      std::vector<Regs> a;
      for (int i = 0; i < parts_; ++i) a.push_back(own(i, k));
      for (int n = 0; n < width / 16; ++n) {
        Regs b = matrices(at, n * 16 * row_bytes_ + 32 * k);
        for (int i = 0; i < parts_; ++i) {
          multiply(out[i][2 * n], a[i], b[0], b[1]);
          multiply(out[i][2 * n + 1], a[i], b[2], b[3]);
        }
      }
    }
    return out;
  }
  // sum += weights · (their rows at `other`).
  void add_rows(const std::vector<Part>& sum, const std::vector<Part>& weights, const Reg& other) {
    Reg at = p_.r("add.u32", other, down_);
    for (int k = 0; k < static_cast<int>(weights[0].size()) / 2; ++k) {
      std::vector<Regs> a;
      for (const Part& w : weights) {
        a.emplace_back();
        for (int n : {2 * k, 2 * k + 1})
          for (int half : {0, 2}) a.back().push_back(rounded(w[n][half], w[n][half + 1]));
      }
      for (int n = 0; n < padded_ / 16; ++n) {
        Regs b = matrices(at, k * 16 * row_bytes_ + 32 * n, true);
        for (int i = 0; i < parts_; ++i) {
          multiply(sum[i][2 * n], a[i], b[0], b[1]);
          multiply(sum[i][2 * n + 1], a[i], b[2], b[3]);
        }
      }
    }
  }
  Reg rounded(const Reg& low, const Reg& high) {
    return p_.r(kind_.dtype == DType::Float16 ? "cvt.rn.f16x2.f32" : "cvt.rn.bf16x2.f32", high, low);
  }

  // Both elements of a pair, widened.
  std::array<Reg, 2> widened(const Reg& pair) {
    if (kind_.dtype != DType::Float16) {
      Reg low = p_.r("shl.b32", pair, 16), high = p_.r("and.b32", pair, -65536);
      return {p_.f("mov.b32", low), p_.f("mov.b32", high)};
    }
    Regs halves = p_.fresh('h', 2);
    p_.op("mov.b32", braces(halves), pair);
    Reg low = p_.f("cvt.f32.f16", halves[0]), high = p_.f("cvt.f32.f16", halves[1]);
    return {low, high};
  }
  void add_products(const Reg& sum, const Reg& a, const Reg& b) {
    std::array<Reg, 2> left = widened(a), right = widened(b);
    for (int e : {0, 1}) p_.op("fma.rn.f32", sum, left[e], right[e], sum);
  }

  // --- sweeps ---

  // Tiles from `first` on of rows below `end`: `copy(stage, first row)` brings one, `use(stage, first row)` uses it.
  template <class C, class U>
  void over_tiles(const Reg& first, const Reg& end, const C& copy, const U& use) {
    Reg row = p_.r("mov.u32", first), here = p_.r("mov.u32", stages_), there = p_.r("add.u32", stages_, stage_bytes());
    p_.when(p_.p("setp.lt.u32", row, end), [&] { copy(here, row); });
    p_.loop([&] { return p_.p("setp.lt.u32", row, end); },
            [&] {
              arrived();
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
  // Keys for this warp's queries: `body(width, masked, column, offset of the column's row in the tile)`.
  template <class F>
  void over_keys(const Reg& tile_first, const F& body) {
    Reg tile_end = p_.r("add.u32", tile_first, tile_), end = keys_, whole = keys_;
    if (kind_.causal) {
      whole = p_.r("min.u32", keys_, p_.r("add.u32", own_first_, 1));
      end = p_.r("min.u32", keys_, p_.r("add.u32", own_first_, 16 * parts_));
    }
    whole = p_.r("min.u32", whole, tile_end);
    end = p_.r("min.u32", end, tile_end);
    end = p_.r("selp.b32", end, 0, p_.p("setp.lt.u32", own_first_, queries_));
    whole = p_.r("min.u32", whole, end);
    Reg column = p_.r("mov.u32", tile_first);
    auto at = [&] { return p_.r("mul.lo.u32", p_.r("sub.u32", column, tile_first), row_bytes_); };
    steps(column, whole, width_, true, [&](int width) { body(width, false, column, at()); });
    steps(column, end, 16, false, [&](int width) { body(width, true, column, at()); });
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

  Reg exp2(const Reg& x) { return p_.f("ex2.approx.ftz.f32", x); }
  // Over lanes beside each other: four share a row of a product.
  Reg over_lanes(std::string_view op, Reg v, int lanes = 4) {
    for (int step = 1; step < lanes; step *= 2) {
      Reg other = p_.fresh('f');
      p_.op("shfl.sync.bfly.b32", other, v, step, 31, "-1");
      v = p_.f(op, v, other);
    }
    return v;
  }

  // --- results ---

  // What an element of a result is multiplied by, by part and half.
  using Factors = std::vector<std::array<Reg, 2>>;
  Factors all(const Reg& factor) const { return Factors(parts_, {factor, factor}); }
  Reg scaled(const std::vector<Part>& values, const Factors& factors, int part, int n, int half) {
    const Regs& v = values[part][n];
    const Reg& factor = factors[part][half];
    Reg low = p_.f("mul.f32", v[2 * half], factor), high = p_.f("mul.f32", v[2 * half + 1], factor);
    return rounded(low, high);
  }

  // The warp's rows below `end`; `own` is the warp's part of a tile that nobody reads any more.
  void store_rows(const std::vector<Part>& values, const Factors& factors, const Reg& own, const Rows& to,
                  const Reg& end) {
    if (kind_.wide && kind_.features >= 16 && std::has_single_bit(static_cast<unsigned>(kind_.features)))
      return store_whole_rows(values, factors, own, to, end);
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
  // Lanes beside each other write 16 bytes each of a row.
  void store_whole_rows(const std::vector<Part>& values, const Factors& factors, const Reg& own, const Rows& to,
                        const Reg& end) {
    Reg at = p_.r("mad.lo.u32", p_.r("shr.u32", lane_, 2), row_bytes_, p_.r("mad.lo.u32", pair_, 2, own));
    for (int part = 0; part < parts_; ++part)
      for (int half : {0, 1})
        for (int n = 0; n < padded_ / 8; ++n)
          p_.op("st.shared.b32", str("[", at, "+", (16 * part + 8 * half) * row_bytes_ + 16 * n, "]"),
                scaled(values, factors, part, n, half));
    p_.op("bar.warp.sync", -1);
    int lanes = static_cast<int>(kind_.features / 8), rows = 32 / lanes;
    Reg row = p_.r("div.u32", lane_, lanes), column = p_.r("shl.b32", p_.r("and.b32", lane_, lanes - 1), 4);
    Reg from = p_.r("mad.lo.u32", row, row_bytes_, p_.r("add.u32", own, column));
    for (int i = 0; i < 16 * parts_; i += rows) {
      Reg each = p_.r("add.u32", p_.r("add.u32", own_first_, row), i);
      Regs parts = p_.fresh('r', 4);
      p_.op("ld.shared.v4.b32", braces(parts), str("[", from, "+", i * row_bytes_, "]"));
      Reg there = p_.d("add.s64", row_address(to, each), p_.d("cvt.u64.u32", column));
      p_.op(str("@", p_.p("setp.lt.u32", each, end), " st.global.v4.b32"), str("[", there, "]"), braces(parts));
    }
  }

  AttentionPass pass_;
  AttentionKind kind_;
  int padded_, row_bytes_;
  bool small_, by_key_;
  Block block_;
  int parts_, own_rows_;  // of a warp: 16 rows each; of a block
  int warps_, tile_, width_;
  int parameters_ = 0, pass_rows_ = 0;
  Ptx p_;
  Reg queries_, keys_, scale_, scale2_;
  Reg thread_, lane_, batch_, head_, first_, own_first_, own_row_, pair_, vector_start_;
  Reg shared_, stages_, down_, across_, own_offset_;
  Reg copy_row_, copy_to_, copy_bytes_, copy_column_, copy_test_, copies_;
};

}  // namespace brasa::runtime::cuda
