#include <algorithm>
#include <bit>
#include <limits>

#include "runtime/cuda/attention.h"
#include "runtime/cuda/ptx.h"

// One block computes a tile of rows, 16 a warp, and sweeps over the other side's rows, which come in tiles through shared memory, the next
// while this one is used: attention and the cotangent of queries by rows of queries, the cotangents of keys and values by rows of
// keys. Nothing is added up across blocks, so results are the same every time. Scores and their exponentials stay in registers: what
// mma gives as a result has the layout that the next mma wants of its left operand.
namespace brasa::runtime::cuda {
namespace {

using Reg = Ptx::Reg;
using Regs = Ptx::Regs;

constexpr double kLog2E = 1.4426950408889634, kLn2 = 0.6931471805599453;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kNever = 0x40000000;  // a row that no matrix has

class Kernel {
 public:
  Kernel(AttentionPass pass, const AttentionKind& kind)
      : pass_(pass),
        kind_(kind),
        padded_(static_cast<int>((kind.features + 15) / 16 * 16)),
        row_bytes_(padded_ * 2 + 16),  // ldmatrix reads eight rows at once, from different banks
        small_(padded_ <= 64),
        by_key_(pass == AttentionPass::ByKey),
        warps_(by_key_ && !small_ ? 2 : 4),
        tile_(small_    ? 64
              : by_key_ ? 16
                        : 32),
        width_(pass == AttentionPass::ByQuery || (by_key_ && !small_) ? 16 : 32) {}

  AttentionKernel write() {
    begin();
    if (pass_ == AttentionPass::Forward)
      forward();
    else if (by_key_)
      backward_by_key();
    else
      backward_by_query();
    constexpr const char* kNames[] = {"attention", "attention_by_query", "attention_by_key"};
    const char* name = kNames[static_cast<int>(pass_)];
    return {name, p_.kernel(name, parameters_, threads(), shared_bytes()), threads(), 16 * warps_};
  }

 private:
  struct Rows {  // of a head
    Reg start, step;
  };
  struct
      Moving {  // where this thread copies from, the rows' distance from one pass over a tile to the next, and a tile's extent
    Reg at, pass, tile;
  };

  int threads() const { return 32 * warps_; }
  int tile_bytes() const { return tile_ * row_bytes_; }
  int stage_bytes() const { return 2 * tile_bytes() + (by_key_ ? 8 * tile_ : 0); }
  int own_bytes() const { return by_key_ && !small_ ? 2 * 16 * warps_ * row_bytes_ : 0; }
  int shared_bytes() const {
    return own_bytes() + std::max(2 * stage_bytes(), own_bytes() ? 0 : 2 * 16 * warps_ * row_bytes_);
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
    Reg heads_each = next_size(), tiles = next_size();
    scale2_ = next_number();
    scale_ = next_number();

    thread_ = p_.r("mov.u32", "%tid.x");
    Reg block = p_.r("mov.u32", "%ctaid.x");
    Reg tile = p_.r("rem.u32", block, tiles), both = p_.r("div.u32", block, tiles);
    batch_ = p_.d("cvt.u64.u32", p_.r("div.u32", both, heads_each));
    head_ = p_.d("cvt.u64.u32", p_.r("rem.u32", both, heads_each));
    lane_ = p_.r("and.b32", thread_, 31);
    Reg warp = p_.r("shr.u32", thread_, 5);
    first_ = p_.r("mul.lo.u32", tile, 16 * warps_);
    own_first_ = p_.r("mad.lo.u32", warp, 16, first_);
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
    own_offset_ = p_.r("mul.lo.u32", warp, 16 * row_bytes_);

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
    Reg to_here = p_.r("add.u32", to, copy_to_), row = p_.r("add.u32", first, copy_test_);
    auto all = [&] {
      Reg at = from.at;
      for (int done = 0; done < count; done += pass_rows_) {
        if (done) at = p_.d("add.s64", at, from.pass);
        Reg inside = p_.p("setp.lt.u32", done ? p_.r("add.u32", row, done) : row, end);
        std::string place = str("[", to_here, "+", done * row_bytes_, "]");
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
    int bytes = 16 * warps_ * row_bytes_;
    Reg second = p_.r("add.u32", shared_, bytes);
    copy_rows(moving(a, first_), shared_, first_, end, 16 * warps_);
    if (b) copy_rows(moving(*b, first_), second, first_, end, 16 * warps_);
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
  std::vector<Regs> fragments(const Reg& at) {
    std::vector<Regs> out;
    for (int k = 0; k < padded_ / 16; ++k) out.push_back(matrices(at, 32 * k));
    return out;
  }
  void multiply(const Regs& sum, const Regs& a, const Reg& b0, const Reg& b1) {
    const char* t = kind_.dtype == DType::Float16 ? "f16" : "bf16";
    p_.op(str("mma.sync.aligned.m16n8k16.row.col.f32.", t, ".", t, ".f32"), braces(sum), braces(a), braces({b0, b1}),
          braces(sum));
  }
  std::vector<Regs> zeros(int columns) {
    std::vector<Regs> out;
    for (int n = 0; n < columns / 8; ++n) {
      out.push_back(p_.fresh('f', 4));
      for (const Reg& r : out.back()) p_.op("mov.f32", r, number(0));
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
  // own rows · (`width` rows at `other`)ᵀ; `own` gives the k-th fragment.
  template <class F>
  std::vector<Regs> scores(const F& own, const Reg& other, int width) {
    std::vector<Regs> out = zeros(width);
    Reg at = p_.r("add.u32", other, across_);
    for (int k = 0; k < padded_ / 16; ++k) {
      Regs a = own(k);
      for (int n = 0; n < width / 16; ++n) {
        Regs b = matrices(at, n * 16 * row_bytes_ + 32 * k);
        multiply(out[2 * n], a, b[0], b[1]);
        multiply(out[2 * n + 1], a, b[2], b[3]);
      }
    }
    return out;
  }
  // sum += weights · (their rows at `other`).
  void add_rows(const std::vector<Regs>& sum, const std::vector<Regs>& weights, const Reg& other) {
    Reg at = p_.r("add.u32", other, down_);
    for (int k = 0; k < static_cast<int>(weights.size()) / 2; ++k) {
      Regs a = {rounded(weights[2 * k][0], weights[2 * k][1]), rounded(weights[2 * k][2], weights[2 * k][3]),
                rounded(weights[2 * k + 1][0], weights[2 * k + 1][1]),
                rounded(weights[2 * k + 1][2], weights[2 * k + 1][3])};
      for (int n = 0; n < padded_ / 16; ++n) {
        Regs b = matrices(at, k * 16 * row_bytes_ + 32 * n, true);
        multiply(sum[2 * n], a, b[0], b[1]);
        multiply(sum[2 * n + 1], a, b[2], b[3]);
      }
    }
  }
  Reg rounded(const Reg& low, const Reg& high) {
    return p_.r(kind_.dtype == DType::Float16 ? "cvt.rn.f16x2.f32" : "cvt.rn.bf16x2.f32", high, low);
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
      end = p_.r("min.u32", keys_, p_.r("add.u32", own_first_, 16));
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
    return p_.r("min.u32", keys_, p_.r("add.u32", first_, 16 * warps_));
  }
  // Whether this warp's element e of the 4 of 8 columns is one to attend to.
  Reg attends(const Reg& column, int n, int e) {
    Reg col = p_.r("add.u32", p_.r("add.u32", column, pair_), 8 * n + e % 2);
    Reg row = e < 2 ? own_row_ : p_.r("add.u32", own_row_, 8);
    if (by_key_) return p_.p("setp.ge.u32", col, row);
    Reg inside = p_.p("setp.lt.u32", col, keys_);
    return kind_.causal ? p_.p("setp.le.and.u32", col, row, inside) : inside;
  }

  Reg exp2(const Reg& x) { return p_.f("ex2.approx.ftz.f32", x); }
  // Over the four lanes that share a row.
  Reg over_row(std::string_view op, Reg v) {
    for (int step : {1, 2}) {
      Reg other = p_.fresh('f');
      p_.op("shfl.sync.bfly.b32", other, v, step, 31, "-1");
      v = p_.f(op, v, other);
    }
    return v;
  }

  // The warp's rows below `end`, each element multiplied by the factor of its row.
  void store_rows(const std::vector<Regs>& values, const Reg (&factors)[2], const Rows& to, const Reg& end) {
    for (int half : {0, 1}) {
      Reg row = half ? p_.r("add.u32", own_row_, 8) : own_row_;
      p_.when(p_.p("setp.lt.u32", row, end), [&] {
        Reg at = p_.d("mad.wide.u32", pair_, 2, row_address(to, row));
        for (int n = 0; 8 * n < kind_.features; ++n) {
          Reg both = rounded(p_.f("mul.f32", values[n][2 * half], factors[half]),
                             p_.f("mul.f32", values[n][2 * half + 1], factors[half]));
          if (kind_.wide) {
            p_.op("st.global.b32", str("[", at, "+", 16 * n, "]"), both);
            continue;
          }
          Regs parts = p_.fresh('h', 2);
          p_.op("mov.b32", braces(parts), both);
          for (int k : {0, 1}) {
            Reg has = p_.p("setp.lt.u32", p_.r("add.u32", pair_, 8 * n + k), kind_.features);
            p_.op(str("@", has, " st.global.b16"), str("[", at, "+", 16 * n + 2 * k, "]"), parts[k]);
          }
        }
      });
    }
  }

  // --- the kernels ---

  void forward() {
    Rows query = next_rows(), key = next_rows(), value = next_rows(), out = next_rows();
    Reg log_sum = p_.d("mad.lo.s64", vector_start_, 4, next_parameter());
    std::vector<Regs> q = fragments(own_rows(query, nullptr, queries_).first);
    p_.op("bar.sync", 0);

    std::vector<Regs> sum = zeros(padded_);
    Reg most[2], total[2];
    for (int half : {0, 1}) {
      most[half] = p_.f("mov.f32", number(-kInfinity));
      total[half] = p_.f("mov.f32", number(0));
    }
    over_both(key, value, keys_end(), [&](const Reg& stage, const Reg& tile_first) {
      over_keys(tile_first, [&](int width, bool masked, const Reg& column, const Reg& offset) {
        Reg keys = p_.r("add.u32", stage, offset), values = p_.r("add.u32", keys, tile_bytes());
        std::vector<Regs> s = scores([&](int k) { return q[k]; }, keys, width);
        if (masked)
          for (int n = 0; n < width / 8; ++n)
            for (int e = 0; e < 4; ++e) p_.op("selp.f32", s[n][e], s[n][e], number(-kInfinity), attends(column, n, e));
        for (int half : {0, 1}) {
          Reg m = s[0][2 * half];
          for (int n = 0; n < width / 8; ++n)
            for (int e : {0, 1})
              if (n || e) m = p_.f("max.f32", m, s[n][2 * half + e]);
          m = p_.f("max.f32", over_row("max.f32", m), most[half]);
          Reg scaled = p_.f("mul.f32", m, scale2_), less = p_.f("neg.f32", scaled);
          Reg shrink = exp2(p_.f("fma.rn.f32", most[half], scale2_, less));
          p_.op("mov.f32", most[half], m);
          p_.op("mul.f32", total[half], total[half], shrink);
          for (int n = 0; n < width / 8; ++n)
            for (int e : {0, 1}) {
              Reg& each = s[n][2 * half + e];
              each = exp2(p_.f("fma.rn.f32", each, scale2_, less));
              p_.op("add.f32", total[half], total[half], each);
            }
          for (const Regs& v : sum)
            for (int e : {0, 1}) p_.op("mul.f32", v[2 * half + e], v[2 * half + e], shrink);
        }
        add_rows(sum, s, values);
      });
    });

    Reg factors[2];
    for (int half : {0, 1}) {
      Reg whole = over_row("add.f32", total[half]);
      factors[half] = p_.f("rcp.approx.ftz.f32", whole);
      Reg logarithm =
          p_.f("mul.f32", p_.f("fma.rn.f32", most[half], scale2_, p_.f("lg2.approx.ftz.f32", whole)), number(kLn2));
      Reg row = p_.r("add.u32", own_row_, 8 * half);
      Reg stores = p_.p("setp.eq.and.u32", pair_, 0, p_.p("setp.lt.u32", row, queries_));
      p_.op(str("@", stores, " st.global.f32"), str("[", p_.d("mad.wide.u32", row, 4, log_sum), "]"), logarithm);
    }
    store_rows(sum, factors, out, queries_);
  }

  // Tiles of two matrices.
  template <class U>
  void over_both(const Rows& a, const Rows& b, const Reg& end, const U& use) {
    Moving from_a = moving(a, p_.r("mov.u32", 0)), from_b = moving(b, p_.r("mov.u32", 0));
    over_tiles(
        p_.r("mov.u32", 0), end,
        [&](const Reg& stage, const Reg& row) {
          copy_rows(from_a, stage, row, keys_, tile_);
          copy_rows(from_b, p_.r("add.u32", stage, tile_bytes()), row, keys_, tile_);
          advance(from_a);
          advance(from_b);
        },
        use);
  }
  void advance(const Moving& m) { p_.op("add.s64", m.at, m.at, m.tile); }

  // dS = P (dO Vᵀ - Σ dO O), dQ = dS K · scale with P = exp(S - log_sum).
  void backward_by_query() {
    Rows query = next_rows(), key = next_rows(), value = next_rows(), ct = next_rows(), out = next_rows();
    Reg vectors[2];
    for (Reg& v : vectors) v = p_.d("mad.lo.s64", vector_start_, 4, next_parameter());
    auto [own_query, own_ct] = own_rows(query, &ct, queries_);
    std::vector<Regs> q = fragments(own_query), g = fragments(own_ct);
    p_.op("bar.sync", 0);
    Reg less[2], inner[2];
    for (int half : {0, 1}) {
      Reg row = p_.r("add.u32", own_row_, 8 * half), inside = p_.p("setp.lt.u32", row, queries_);
      auto of_row = [&](const Reg& vector) {
        Reg v = p_.f("mov.f32", number(0));
        p_.op(str("@", inside, " ld.global.f32"), v, str("[", p_.d("mad.wide.u32", row, 4, vector), "]"));
        return v;
      };
      less[half] = p_.f("mul.f32", of_row(vectors[0]), number(-kLog2E));
      inner[half] = of_row(vectors[1]);
    }

    std::vector<Regs> sum = zeros(padded_);
    over_both(key, value, keys_end(), [&](const Reg& stage, const Reg& tile_first) {
      over_keys(tile_first, [&](int width, bool masked, const Reg& column, const Reg& offset) {
        Reg keys = p_.r("add.u32", stage, offset), values = p_.r("add.u32", keys, tile_bytes());
        std::vector<Regs> s = scores([&](int k) { return q[k]; }, keys, width);
        std::vector<Regs> ds = scores([&](int k) { return g[k]; }, values, width);
        for (int n = 0; n < width / 8; ++n)
          for (int e = 0; e < 4; ++e) {
            Reg probability = exp2(p_.f("fma.rn.f32", s[n][e], scale2_, less[e / 2]));
            if (masked) probability = p_.f("selp.f32", probability, number(0), attends(column, n, e));
            ds[n][e] = p_.f("mul.f32", probability, p_.f("sub.f32", ds[n][e], inner[e / 2]));
          }
        add_rows(sum, ds, keys);
      });
    });
    store_rows(sum, {scale_, scale_}, out, queries_);
  }

  // dV = Pᵀ dO, dK = dSᵀ Q · scale. Behind the last query everything is zero, which adds nothing.
  void backward_by_key() {
    Rows query = next_rows(), key = next_rows(), value = next_rows(), ct = next_rows(), to_key = next_rows(),
         to_value = next_rows();
    Reg vectors[2];
    for (Reg& v : vectors) v = p_.d("mad.lo.s64", vector_start_, 4, next_parameter());
    // clang 14 lets no lambda use the names of a structured binding.
    const std::pair<Reg, Reg> of_block = own_rows(key, &value, keys_);
    const Reg &own_key = of_block.first, &own_value = of_block.second;
    std::vector<Regs> k, v;
    if (small_) {
      k = fragments(own_key);
      v = fragments(own_value);
      p_.op("bar.sync", 0);
    }
    auto own = [&](const std::vector<Regs>& held, const Reg& at) {
      return [&held, at, this](int i) { return small_ ? held[i] : matrices(at, 32 * i); };
    };

    std::vector<Regs> by_key = zeros(padded_), by_value = zeros(padded_);
    Reg first = kind_.causal ? p_.r("and.b32", first_, -tile_) : p_.r("mov.u32", 0);
    Moving from_query = moving(query, first), from_ct = moving(ct, first);
    over_tiles(
        first, queries_,
        [&](const Reg& stage, const Reg& row) {
          copy_rows(from_query, stage, row, queries_, tile_);
          copy_rows(from_ct, p_.r("add.u32", stage, tile_bytes()), row, queries_, tile_);
          for (int i : {0, 1})
            copy_vector(vectors[i], p_.r("add.u32", stage, 2 * tile_bytes() + 4 * tile_ * i), row, queries_);
          advance(from_query);
          advance(from_ct);
        },
        [&](const Reg& stage, const Reg& tile_first) {
          auto body = [&](int width, bool masked, const Reg& column) {
            Reg in_tile = p_.r("sub.u32", column, tile_first);
            Reg queries = p_.r("mad.lo.u32", in_tile, row_bytes_, stage), cts = p_.r("add.u32", queries, tile_bytes());
            Reg of_columns = p_.r("mad.lo.u32", p_.r("add.u32", in_tile, pair_), 4, stage);
            std::vector<Regs> s = scores(own(k, own_key), queries, width), ds = scores(own(v, own_value), cts, width);
            for (int n = 0; n < width / 8; ++n) {
              Regs less = p_.fresh('f', 2), inner = p_.fresh('f', 2);
              int at = 2 * tile_bytes() + 32 * n;
              p_.op("ld.shared.v2.f32", braces(less), str("[", of_columns, "+", at, "]"));
              p_.op("ld.shared.v2.f32", braces(inner), str("[", of_columns, "+", at + 4 * tile_, "]"));
              for (Reg& l : less) l = p_.f("mul.f32", l, number(-kLog2E));
              for (int e = 0; e < 4; ++e) {
                s[n][e] = exp2(p_.f("fma.rn.f32", s[n][e], scale2_, less[e % 2]));
                if (masked) s[n][e] = p_.f("selp.f32", s[n][e], number(0), attends(column, n, e));
                ds[n][e] = p_.f("mul.f32", s[n][e], p_.f("sub.f32", ds[n][e], inner[e % 2]));
              }
            }
            add_rows(by_value, s, cts);
            add_rows(by_key, ds, queries);
          };
          Reg end = p_.r("min.u32", queries_, p_.r("add.u32", tile_first, tile_));
          end = p_.r("selp.b32", end, 0, p_.p("setp.lt.u32", own_first_, keys_));
          Reg column = p_.r("mov.u32", tile_first);
          if (kind_.causal) {
            column = p_.r("max.u32", column, own_first_);
            steps(column, p_.r("min.u32", end, p_.r("add.u32", own_first_, 16)), 16, false,
                  [&](int width) { body(width, true, column); });
          }
          steps(column, end, width_, true, [&](int width) { body(width, false, column); });
          steps(column, end, 16, false, [&](int width) { body(width, false, column); });
        });
    Reg one = p_.f("mov.f32", number(1));
    store_rows(by_key, {scale_, scale_}, to_key, keys_);
    store_rows(by_value, {one, one}, to_value, keys_);
  }

  AttentionPass pass_;
  AttentionKind kind_;
  int padded_, row_bytes_;
  bool small_, by_key_;
  int warps_, tile_, width_;
  int parameters_ = 0, pass_rows_ = 0;
  Ptx p_;
  Reg queries_, keys_, scale_, scale2_;
  Reg thread_, lane_, batch_, head_, first_, own_first_, own_row_, pair_, vector_start_;
  Reg shared_, stages_, down_, across_, own_offset_;
  Reg copy_row_, copy_to_, copy_bytes_, copy_column_, copy_test_, copies_;
};

}  // namespace

AttentionKernel attention_kernel(AttentionPass pass, const AttentionKind& kind) { return Kernel(pass, kind).write(); }

}  // namespace brasa::runtime::cuda
