#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/attention.h"
#include "runtime/cuda/tensor_cores.h"

// What the kernels of attention are made of: tiles of rows in shared memory, products of them, sweeps over them.
namespace brasa::runtime::cuda {

constexpr double kLog2E = 1.4426950408889634, kLn2 = 0.6931471805599453;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kNever = 0x40000000;  // a row that no matrix has

class AttentionTiles : public TensorCores {
 public:
  AttentionTiles(AttentionPass pass, const AttentionKind& kind)
      : TensorCores(kind.dtype),
        pass_(pass),
        kind_(kind),
        padded_(static_cast<int>((kind.features + 15) / 16 * 16)),
        row_bytes_(padded_ * element_ + 16),  // what is read at once of eight rows comes from different banks
        small_(padded_ <= 64),
        by_key_(pass == AttentionPass::ByKey),
        kept_(rounds() ? by_key_ || pass == AttentionPass::ByQuery : by_key_ && !small_),
        block_(rounds() ? block_of_float32(pass, small_) : block(pass, small_, kind.tall)),
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

  // Its warps, the rows of a tile, how many columns of scores a warp has at once, and how many blocks a processor must have registers for.
  struct Block {
    int warps, tile, width, together = 1;
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
  static Block block_of_float32(AttentionPass pass, bool small) {
    switch (pass) {
      case AttentionPass::Forward: return {4, 32, 32};
      case AttentionPass::ByQuery: return small ? Block{4, 32, 32} : Block{4, 16, 16};
      case AttentionPass::ByKey: return small ? Block{4, 32, 32} : Block{2, 16, 16};
      case AttentionPass::ForwardOfHead: return {7, kMostRowsOfHead, 32, 2};
      default: return {};
    }
  }
  int threads() const { return 32 * warps_; }
  int tile_bytes() const { return tile_ * row_bytes_; }
  int stage_bytes() const { return 2 * tile_bytes() + (by_key_ ? 8 * tile_ : 0); }
  int own_bytes() const { return kept_ ? 2 * own_tile_bytes() : 0; }
  int shared_bytes() const {
    // Own matrices that lie there before tiles do.
    int before = pass_ == AttentionPass::Forward ? 1 : !kept_ ? 2 : by_key_ ? 0 : 1;
    return own_bytes() + std::max(2 * stage_bytes(), before * own_tile_bytes());
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
    // And of what is a column of the right operand: two rows, two elements of 4 bytes of each.
    pairs_ = p_.r("mad.lo.u32", pair_, row_bytes_, p_.r("shl.b32", p_.r("shr.u32", lane_, 2), 3));
    own_offset_ = p_.r("mul.lo.u32", warp, 16 * parts_ * row_bytes_);

    // A thread copies 16 bytes of a row, and of every row that is `pass_rows_` on.
    int chunks = padded_ * element_ / 16, lanes = static_cast<int>(std::bit_ceil(static_cast<unsigned>(chunks)));
    pass_rows_ = threads() / lanes;
    Reg column = p_.r("and.b32", thread_, lanes - 1);
    copy_row_ = p_.r("div.u32", thread_, lanes);
    copy_to_ = p_.r("mad.lo.u32", copy_row_, row_bytes_, p_.r("shl.b32", column, 4));
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
    p_.op("bar.sync", 0);
  }

  // Copies this block's rows of a matrix; where the warp's rows will be.
  Reg own_rows(const Rows& rows, const Reg& end, const Reg& to) {
    copy_rows(moving(rows, first_), to, first_, end, own_rows_);
    awaited_.push_back(to);
    return p_.r("add.u32", p_.r("add.u32", to, own_offset_), down_);
  }
  int own_tile_bytes() const { return own_rows_ * row_bytes_; }
  void own_rows_arrived() { arrived(std::exchange(awaited_, {}), own_rows_); }

  // --- products ---

  // 16 of a warp's rows: four registers for each 32 bytes of a row of an operand, or each 8 columns of a result.
  using Part = std::vector<Regs>;
  std::vector<Part> fragments(const Reg& at) {
    std::vector<Part> out(parts_);
    for (int i = 0; i < parts_; ++i)
      for (int k = 0; k < steps_of_row(); ++k) out[i].push_back(matrices(at, i * 16 * row_bytes_ + 32 * k));
    return out;
  }
  // The same of this warp's rows below `end` where they are; zeros behind.
  std::vector<Part> fragments(const Rows& rows, const Reg& end) {
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
  // The k-th fragment of a part: from registers, or, where these have no room, from where the rows stay.
  using Own = std::function<Regs(int part, int k)>;
  Own own_fragments(const Reg& at) {
    if (kept_) return [=, this](int part, int k) { return matrices(at, part * 16 * row_bytes_ + 32 * k); };
    return [held = fragments(at)](int part, int k) { return held[part][k]; };
  }
  // Of two matrices. Rows that stay are still on their way.
  std::array<Own, 2> both_own(const Rows& a, const Rows& b, const Reg& end) {
    Reg first = own_rows(a, end, shared_), second = own_rows(b, end, p_.r("add.u32", shared_, own_tile_bytes()));
    if (!kept_) own_rows_arrived();
    std::array<Own, 2> out = {own_fragments(first), own_fragments(second)};
    if (!kept_) p_.op("bar.sync", 0);
    return out;
  }
  int steps_of_row() const { return padded_ * element_ / 32; }
  std::vector<Part> zeros(int columns) {
    std::vector<Part> out(parts_);
    for (Part& part : out)
      for (int n = 0; n < columns / 8; ++n) {
        part.push_back(p_.fresh('f', 4));
        for (const Reg& r : part.back()) p_.op("mov.f32", r, number(0));
      }
    return out;
  }
  // own rows · (`width` rows at `other`)ᵀ.
  std::vector<Part> scores(const Own& own, const Reg& other, int width) {
    std::vector<Part> out = zeros(width);
    Reg at = p_.r("add.u32", other, across_);
    for (int k = 0; k < steps_of_row(); ++k) {
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
    if (rounds()) return add_wide_rows(sum, weights, other);
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
  // Of float32, which ldmatrix does not transpose. The rows are taken in an order in which a lane has its weights already, and the columns in
  // one in which it reads two at once: those of each 16 with an even number are one result's, the others the next one's.
  void add_wide_rows(const std::vector<Part>& sum, const std::vector<Part>& weights, const Reg& other) {
    Reg at = p_.r("add.u32", other, pairs_);
    for (int k = 0; k < static_cast<int>(weights[0].size()); ++k) {
      std::vector<Regs> a;
      for (const Part& w : weights) a.push_back(operands({w[k][0], w[k][2], w[k][1], w[k][3]}));
      for (int n = 0; n < padded_ / 16; ++n) {
        Regs b[2];
        for (int row : {0, 1}) {
          b[row] = p_.fresh('r', 2);
          p_.op("ld.shared.v2.b32", braces(b[row]), str("[", at, "+", (8 * k + row) * row_bytes_ + 64 * n, "]"));
        }
        for (int i = 0; i < parts_; ++i)
          for (int odd : {0, 1}) multiply(sum[i][2 * n + odd], a[i], b[0][odd], b[1][odd]);
      }
    }
  }

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
    if (rounds()) return store_fours(values, factors, to, end);
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
  bool small_, by_key_, kept_;  // kept: the block's own rows stay in shared memory
  Block block_;
  int parts_, own_rows_;  // of a warp: 16 rows each; of a block
  int warps_, tile_, width_;
  int parameters_ = 0, pass_rows_ = 0;
  Reg queries_, keys_, scale_, scale2_;
  Reg thread_, lane_, batch_, head_, first_, own_first_, own_row_, pair_, vector_start_;
  Reg shared_, stages_, down_, across_, pairs_, own_offset_;
  Regs awaited_;  // own matrices on their way
  Reg copy_row_, copy_to_, copy_bytes_, copy_column_, copy_test_, copies_;
};

}  // namespace brasa::runtime::cuda
