#include "runtime/cuda/attention_results.h"

// One block computes a tile of rows, 16 or 32 a warp, and sweeps over the other side's rows, which come in tiles through shared memory, the next
// while this one is used: attention and the cotangent of queries by rows of queries, the cotangents of keys and values by rows of
// keys. Nothing is added up across blocks, so results are the same every time. Scores and their exponentials stay in registers: what
// mma gives as a result has the layout that the next mma wants of its left operand.
namespace brasa::runtime::cuda {
namespace {

class Kernel final : public AttentionResults {
 public:
  using AttentionResults::AttentionResults;

  WrittenKernel write() {
    begin();
    switch (pass_) {
      case AttentionPass::Forward: forward(); return kernel("attention", own_rows_, shared_bytes());
      case AttentionPass::ForwardOfHead: forward_of_head(); return kernel("attention_of_head", tile_, forward_bytes());
      case AttentionPass::ByQuery: backward_by_query(); return kernel("attention_by_query", own_rows_, shared_bytes());
      case AttentionPass::ByKey: backward_by_key(); return kernel("attention_by_key", own_rows_, shared_bytes());
      case AttentionPass::BackwardOfHead:
        backward_of_head();
        return kernel("attention_backward_of_head", tile_, head_bytes());
      case AttentionPass::OfRow: break;
    }
    return {};
  }

 private:
  // Of a block's rows. More shared memory than a kernel may have is what its launch gives.
  WrittenKernel kernel(const char* name, int rows, int shared) const {
    constexpr int kMostOfText = 48 << 10;
    bool given = shared > kMostOfText;
    std::string text = p_.kernel(name, parameters_, threads(), given ? 0 : shared, block_.together, kind_.grouped);
    return {name, std::move(text), threads(), given ? shared : 0, kind_.grouped, rows};
  }

  // --- the kernels ---

  void forward() {
    Rows query = next_rows(), key = next_rows(), value = next_rows(), out = next_rows();
    Reg log_sum = p_.d("mad.lo.s64", vector_start_, 4, next_parameter());
    Own q = own({query}, queries_)[0];
    Softmax rows = none();
    over_both(key, value, keys_end(), [&](const Reg& stage, const Reg& tile_first) {
      over_keys(tile_first, [&](int width, bool masked, const Reg& column, const Reg& offset) {
        attend(rows, q, p_.r("add.u32", stage, offset), width, masked, column);
      });
    });
    p_.op("bar.sync", 0);  // keys and values are no more read
    store(rows, out, log_sum, result());
  }

  // All rows of a head are in shared memory together; a warp has 16 queries after others. Keys and values of float32 leave no room for the
  // queries, which are read where they are.
  void forward_of_head() {
    Rows query = next_rows(), key = next_rows(), value = next_rows(), out = next_rows();
    Reg log_sum = p_.d("mad.lo.s64", vector_start_, 4, next_parameter());
    Reg zero = p_.r("mov.u32", 0), keys = shared_, values = p_.r("add.u32", keys, tile_bytes());
    Reg queries = p_.r("add.u32", values, tile_bytes());
    if (!rounds()) copy_rows(moving(query, zero), queries, zero, queries_, tile_);
    copy_rows(moving(key, zero), keys, zero, keys_, tile_);
    copy_rows(moving(value, zero), values, zero, keys_, tile_);
    arrived({keys, values}, tile_);
    p_.loop([&] { return p_.p("setp.lt.u32", own_first_, queries_); },
            [&] {
              Reg own = p_.r("mad.lo.u32", own_first_, row_bytes_, queries);
              Own q = held(rounds() ? fragments_of(query, queries_) : fragments(p_.r("add.u32", own, down_)));
              Softmax rows = none();
              over_keys(zero, [&](int width, bool masked, const Reg& column, const Reg& offset) {
                attend(rows, q, p_.r("add.u32", keys, offset), width, masked, column);
              });
              store(rows, out, log_sum, own);
              for (const Reg& row : {own_first_, own_row_}) p_.op("add.u32", row, row, 16 * warps_);
            });
  }

  int forward_bytes() const { return (rounds() ? 2 : 3) * tile_bytes(); }

  // What a warp's rows have so far: their largest scores, the sums of exponentials less these, and of these times values.
  struct Softmax {
    Factors most, total;
    std::vector<Part> sum;
  };
  Softmax none() {
    Softmax out{all({}), all({}), zeros(padded_)};
    for (int part = 0; part < parts_; ++part)
      for (int half : {0, 1}) {
        out.most[part][half] = p_.f("mov.f32", number(-kInfinity));
        out.total[part][half] = p_.f("mov.f32", number(0));
      }
    return out;
  }
  // To `width` keys, which have their values a tile behind.
  void attend(Softmax& rows, const Own& q, const Reg& keys, int width, bool masked, const Reg& column) {
    Reg values = p_.r("add.u32", keys, tile_bytes());
    std::vector<Part> s = scores(q, keys, width);
    await();
    for (int part = 0; part < parts_; ++part) {
      if (masked)
        for (int n = 0; n < width / 8; ++n)
          for (int e = 0; e < 4; ++e) {
            Reg& each = s[part][n][e];
            p_.op("selp.f32", each, each, number(-kInfinity), attends(column, part, n, e));
          }
      for (int half : {0, 1}) weigh(s[part], half, rows.most[part][half], rows.total[part][half], rows.sum[part]);
    }
    add_rows(rows.sum, s, values);
    await();
  }
  // Scores become exponentials; what the rows have so far shrinks to the new largest score.
  void weigh(Part& s, int half, const Reg& most, const Reg& total, const Part& sum) {
    Reg m;
    for (const Regs& columns : s)
      for (int e : {0, 1}) m = m.empty() ? columns[2 * half] : p_.f("max.f32", m, columns[2 * half + e]);
    m = p_.f("max.f32", over_lanes("max.f32", m), most);
    Reg scaled = p_.f("mul.f32", m, scale2_), less = p_.f("neg.f32", scaled);
    Reg shrink = exp2(p_.f("fma.rn.f32", most, scale2_, less));
    p_.op("mov.f32", most, m);
    p_.op("mul.f32", total, total, shrink);
    for (Regs& columns : s)
      for (int e : {0, 1}) {
        Reg& each = columns[2 * half + e];
        to_power(each, less);
        p_.op("add.f32", total, total, each);
      }
    for (const Regs& v : sum)
      for (int e : {0, 1}) p_.op("mul.f32", v[2 * half + e], v[2 * half + e], shrink);
  }
  void store(const Softmax& rows, const Rows& out, const Reg& log_sum, const Reg& own) {
    Factors factors = all({});
    for (int part = 0; part < parts_; ++part)
      for (int half : {0, 1}) {
        Reg whole = over_lanes("add.f32", rows.total[part][half]);
        factors[part][half] = p_.f("rcp.approx.ftz.f32", whole);
        Reg logarithm = p_.f("fma.rn.f32", rows.most[part][half], scale2_, p_.f("lg2.approx.ftz.f32", whole));
        store_number(log_sum, part, half, p_.f("mul.f32", logarithm, number(kLn2)));
      }
    store_rows(rows.sum, factors, own, out, queries_);
  }
  // Of one of the warp's rows of queries.
  void store_number(const Reg& vector, int part, int half, const Reg& v) {
    Reg row = own_row(part, half);
    Reg stores = p_.p("setp.eq.and.u32", pair_, 0, p_.p("setp.lt.u32", row, queries_));
    p_.op(str("@", stores, " st.global.f32"), str("[", p_.d("mad.wide.u32", row, 4, vector), "]"), v);
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
  template <class F>
  void over_elements(int width, const F& body) const {
    for (int part = 0; part < parts_; ++part)
      for (int n = 0; n < width / 8; ++n)
        for (int e = 0; e < 4; ++e) body(part, n, e);
  }
  void advance(const Moving& m) { p_.op("add.s64", m.at, m.at, m.tile); }

  // dS = P (dO Vᵀ - Σ dO O), dQ = dS K · scale with P = exp(S - log_sum). The sums are there for what goes by keys.
  void backward_by_query() {
    Rows query = next_rows(), key = next_rows(), value = next_rows(), ct = next_rows(), out = next_rows(),
         to_query = next_rows();
    Reg vectors[2];
    for (Reg& v : vectors) v = p_.d("mad.lo.s64", vector_start_, 4, next_parameter());
    std::vector<Own> both = own({query, ct}, queries_);
    const Own &q = both[0], &g = both[1];
    Reg outs = own_rows(out, queries_, stages_);
    own_rows_arrived();
    std::vector<Part> o = fragments(own_part(outs));
    Own cts = grouped_ && kept_ ? read_again(own_part(own_tile(1))) : g;
    p_.op("bar.sync", 0);
    Factors less = all({}), inner = all({});
    for (int part = 0; part < parts_; ++part) {
      for (Reg& sum : inner[part]) sum = p_.f("mov.f32", number(0));
      for (int k = 0; k < steps_of_row(); ++k) {
        Regs of_ct = cts(part, k);
        for (int four = 0; four < 4; ++four) add_products(inner[part][four % 2], of_ct[four], o[part][k][four]);
      }
      for (int half : {0, 1}) {
        Reg row = own_row(part, half), v = p_.f("mov.f32", number(0));
        p_.op(str("@", p_.p("setp.lt.u32", row, queries_), " ld.global.f32"), v,
              str("[", p_.d("mad.wide.u32", row, 4, vectors[0]), "]"));
        less[part][half] = p_.f("mul.f32", v, number(-kLog2E));
        inner[part][half] = over_lanes("add.f32", inner[part][half]);
        store_number(vectors[1], part, half, inner[part][half]);
      }
    }

    std::vector<Part> sum = zeros(padded_);
    over_both(key, value, keys_end(), [&](const Reg& stage, const Reg& tile_first) {
      over_keys(tile_first, [&](int width, bool masked, const Reg& column, const Reg& offset) {
        Reg keys = p_.r("add.u32", stage, offset), values = p_.r("add.u32", keys, tile_bytes());
        std::vector<Part> s = scores(q, keys, width), ds = scores(g, values, width);
        await(1);
        over_elements(width, [&](int part, int n, int e) {
          const Reg& probability = s[part][n][e];
          to_power(probability, less[part][e / 2]);
          if (masked) p_.op("selp.f32", probability, probability, number(0), attends(column, part, n, e));
        });
        await();
        over_elements(width,
                      [&](int part, int n, int e) { to_gradient(ds[part][n][e], s[part][n][e], inner[part][e / 2]); });
        add_rows(sum, ds, keys);
        await();
      });
    });
    p_.op("bar.sync", 0);  // keys and values are no more read
    place_sums(shared_bytes());
    store_rows(sum, all(scale_), result(), to_query, queries_, sums_of(0));
    store_sums({queries_});
  }

  // dV = Pᵀ dO, dK = dSᵀ Q · scale. Behind the last query everything is zero, which adds nothing.
  void backward_by_key() {
    Rows query = next_rows(), key = next_rows(), value = next_rows(), ct = next_rows(), to_key = next_rows(),
         to_value = next_rows();
    Reg vectors[2];
    for (Reg& v : vectors) v = p_.d("mad.lo.s64", vector_start_, 4, next_parameter());
    std::vector<Own> both = own({key, value}, keys_);
    const Own &k = both[0], &v = both[1];

    std::vector<Part> by_key = zeros(padded_), by_value = zeros(padded_);
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
            std::vector<Part> s = scores(k, queries, width), ds = scores(v, cts, width);
            await();
            for (int n = 0; n < width / 8; ++n) {
              Regs less = p_.fresh('f', 2), inner = p_.fresh('f', 2);
              int at = 2 * tile_bytes() + 32 * n;
              p_.op("ld.shared.v2.f32", braces(less), str("[", of_columns, "+", at, "]"));
              p_.op("ld.shared.v2.f32", braces(inner), str("[", of_columns, "+", at + 4 * tile_, "]"));
              for (Reg& l : less) l = p_.f("mul.f32", l, number(-kLog2E));
              for (int part = 0; part < parts_; ++part)
                for (int e = 0; e < 4; ++e) {
                  const Reg& p = s[part][n][e];
                  to_power(p, less[e % 2]);
                  if (masked) p_.op("selp.f32", p, p, number(0), attends(column, part, n, e));
                  to_gradient(ds[part][n][e], p, inner[e % 2]);
                }
            }
            add_rows(by_value, s, cts);
            add_rows(by_key, ds, queries);
            await();
          };
          Reg end = p_.r("min.u32", queries_, p_.r("add.u32", tile_first, tile_));
          end = p_.r("selp.b32", end, 0, p_.p("setp.lt.u32", swept_first_, keys_));
          Reg column = p_.r("mov.u32", tile_first);
          if (kind_.causal) {
            column = p_.r("max.u32", column, swept_first_);
            steps(column, p_.r("min.u32", end, swept_end()), least_width(), false,
                  [&](int width) { body(width, true, column); });
          }
          // Behind the last query there are zeros, which one more step takes.
          if (least_width() < width_) steps(column, end, width_, true, [&](int width) { body(width, false, column); });
          steps(column, end, least_width(), false, [&](int width) { body(width, false, column); });
        });
    Reg one = p_.f("mov.f32", number(1));
    p_.op("bar.sync", 0);  // queries and cts are no more read
    place_sums(shared_bytes());
    store_rows(by_key, all(scale_), result(0), to_key, keys_, sums_of(0));
    store_rows(by_value, all(one), result(1), to_value, keys_, sums_of(1));
    store_sums({keys_, keys_});
  }

  // All three cotangents of a head whose rows are in shared memory together. By key as above; dSᵀ is left there, and then each warp has
  // queries: dQ = dS K · scale.
  void backward_of_head() {
    Rows query = next_rows(), key = next_rows(), value = next_rows(), ct = next_rows(), out = next_rows(),
         to_query = next_rows(), to_key = next_rows(), to_value = next_rows();
    Reg log_sum = p_.d("mad.lo.s64", vector_start_, 4, next_parameter());
    // A part of the queries arrives while those before are used.
    constexpr int kCopiedFirst = kMostRowsOfHead / 2, kUsedFirst = kCopiedFirst / 16 * 16;
    Reg zero = p_.r("mov.u32", 0), rest = p_.r("mov.u32", kCopiedFirst);
    Reg queries = p_.r("add.u32", shared_, tile_bytes()), cts = p_.r("add.u32", queries, tile_bytes());
    Reg numbers = p_.r("add.u32", cts, tile_bytes()), scores_at = p_.r("add.u32", numbers, 8 * tile_);
    copy_rows(moving(key, zero), shared_, zero, keys_, tile_);
    copy_rows(moving(value, zero), scores_at, zero, keys_, tile_);
    copy_vector(log_sum, numbers, zero, queries_);
    // The output lies where no values are, and none of the first part's dSᵀ where its second part is.
    Reg outs = p_.r("mad.lo.u32", p_.r("add.u32", copy_row_, kCopiedFirst), score_bytes(), scores_at);
    outs = p_.r("add.u32", outs, p_.r("shl.b32", p_.r("and.b32", thread_, 7), 4));
    constexpr int kOutputsBeside = 2 * kUsedFirst + 48;
    for (const Reg& first : {zero, rest}) {
      Reg there = p_.r("mul.lo.u32", first, row_bytes_);
      copy_rows(moving(query, first), p_.r("add.u32", queries, there), first, queries_, kCopiedFirst);
      copy_rows(moving(ct, first), p_.r("add.u32", cts, there), first, queries_, kCopiedFirst);
      Reg to = p_.r("add.u32", outs, first == rest ? kOutputsBeside : 0);
      copy_rows_here(moving(out, first), to, first, queries_, kCopiedFirst, score_bytes());
      p_.op("cp.async.commit_group");
    }
    // Σ dO O, by the threads that copied both.
    auto sums = [&](int from, int beside) {
      for (int row = from; row < from + kCopiedFirst; row += pass_rows_) {
        Regs both[2] = {p_.fresh('r', 4), p_.fresh('r', 4)};
        Reg g = p_.r("add.u32", cts, copy_to_), sum = p_.f("mov.f32", number(0));
        p_.op("ld.shared.v4.b32", braces(both[0]), str("[", g, "+", row * row_bytes_, "]"));
        p_.op("ld.shared.v4.b32", braces(both[1]), str("[", outs, "+", (row - from) * score_bytes() + beside, "]"));
        for (int i = 0; i < 4; ++i) add_products(sum, both[0][i], both[1][i]);
        sum = over_lanes("add.f32", sum, 8);
        p_.op(str("@", p_.p("setp.eq.u32", p_.r("and.b32", thread_, 7), 0), " st.shared.f32"),
              str("[", p_.r("mad.lo.u32", copy_row_, 4, numbers), "+", 4 * (tile_ + row), "]"), sum);
      }
    };
    p_.op("cp.async.wait_group", 1);
    sums(0, 0);
    p_.op("bar.sync", 0);
    Reg own = p_.r("add.u32", own_offset_, down_);
    std::vector<Part> k = fragments(p_.r("add.u32", shared_, own)), v = fragments(p_.r("add.u32", scores_at, own));
    p_.op("bar.sync", 0);  // dSᵀ lies where the values were

    Reg kept[2];  // keys that are not there give no scores
    for (int half : {0, 1})
      kept[half] = p_.r("selp.b32", -1, 0, p_.p("setp.lt.u32", p_.r("add.u32", own_row_, 8 * half), keys_));
    std::vector<Part> by_key = zeros(padded_), by_value = zeros(padded_);
    Reg own_scores = p_.r("mad.lo.u32", own_row_, score_bytes(), scores_at);
    Reg column = p_.r("mov.u32", 0);
    auto body = [&](int width) {
      Reg at = p_.r("mul.lo.u32", column, row_bytes_), from = p_.r("add.u32", column, pair_);
      Reg query_rows = p_.r("add.u32", queries, at), ct_rows = p_.r("add.u32", cts, at);
      Reg of_columns = p_.r("mad.lo.u32", from, 4, numbers), to = p_.r("mad.lo.u32", from, 2, own_scores);
      std::vector<Part> probabilities = scores([&](int part, int i) { return k[part][i]; }, query_rows, width);
      std::vector<Part> gradients = scores([&](int part, int i) { return v[part][i]; }, ct_rows, width);
      Part &s = probabilities[0], &ds = gradients[0];
      for (int n = 0; n < width / 8; ++n) {
        Regs less = p_.fresh('f', 2), inner = p_.fresh('f', 2);
        p_.op("ld.shared.v2.f32", braces(less), str("[", of_columns, "+", 32 * n, "]"));
        p_.op("ld.shared.v2.f32", braces(inner), str("[", of_columns, "+", 32 * n + 4 * tile_, "]"));
        for (Reg& l : less) l = p_.f("mul.f32", l, number(-kLog2E));
        for (int e = 0; e < 4; ++e) {
          s[n][e] = exp2(p_.f("fma.rn.f32", s[n][e], scale2_, less[e % 2]));
          ds[n][e] = p_.f("mul.f32", s[n][e], p_.f("sub.f32", ds[n][e], inner[e % 2]));
        }
        for (int half : {0, 1}) {
          Reg both = p_.r("and.b32", rounded(ds[n][2 * half], ds[n][2 * half + 1]), kept[half]);
          p_.op("st.shared.b32", str("[", to, "+", 16 * n + 8 * half * score_bytes(), "]"), both);
        }
      }
      add_rows(by_value, probabilities, ct_rows);
      add_rows(by_key, gradients, query_rows);
    };
    steps(column, p_.r("min.u32", queries_, p_.r("mov.u32", kUsedFirst)), 16, false, body);
    p_.op("cp.async.wait_group", 0);
    sums(kCopiedFirst, kOutputsBeside);
    p_.op("bar.sync", 0);
    steps(column, queries_, 16, false, body);
    Reg one = p_.f("mov.f32", number(1));
    p_.op("bar.sync", 0);  // queries and cts are no more read
    Reg own_queries = p_.r("add.u32", queries, own_offset_), own_cts = p_.r("add.u32", cts, own_offset_);
    place_sums(head_bytes());
    store_rows(by_key, all(scale_), own_queries, to_key, keys_, sums_of(1));
    store_rows(by_value, all(one), own_cts, to_value, keys_, sums_of(2));

    Reg low = p_.r("and.b32", lane_, 7), upper = p_.r("shr.u32", lane_, 4);
    Reg middle = p_.r("and.b32", p_.r("shr.u32", lane_, 3), 1);
    Reg lane_scores = p_.r("mad.lo.u32", p_.r("mad.lo.u32", upper, 8, low), score_bytes(), p_.r("shl.b32", middle, 4));
    Reg at = p_.r("mad.lo.u32", own_first_, 2, p_.r("add.u32", scores_at, lane_scores));
    Reg keys = p_.r("add.u32", shared_, down_);
    std::vector<Part> by_query = zeros(padded_);
    Reg row = p_.r("mov.u32", 0);
    steps(row, keys_, 16, false, [&](int) {
      Regs ds = matrices(p_.r("mad.lo.u32", row, score_bytes(), at), 0, true);
      Reg key_rows = p_.r("mad.lo.u32", row, row_bytes_, keys);
      for (int n = 0; n < padded_ / 16; ++n) {
        Regs b = matrices(key_rows, 32 * n, true);
        multiply(by_query[0][2 * n], ds, b[0], b[1]);
        multiply(by_query[0][2 * n + 1], ds, b[2], b[3]);
      }
    });
    p_.op("bar.warp.sync", -1);
    store_rows(by_query, all(scale_), own_queries, to_query, queries_, sums_of(0));
    store_sums({queries_, keys_, keys_});
  }
  // Of a key, as many as there may be queries; ldmatrix reads eight rows at once, from different banks.
  int score_bytes() const { return 2 * tile_ + 16; }
  int head_bytes() const { return 3 * tile_bytes() + 8 * tile_ + tile_ * score_bytes() + sum_bytes(); }
};

}  // namespace

WrittenKernel attention_kernel(AttentionPass pass, const AttentionKind& kind) {
  if (pass == AttentionPass::OfRow) return attention_of_row(kind);
  if (pass == AttentionPass::BackwardOfHead && kind.grouped) return attention_backward_of_head_by_groups(kind);
  return Kernel(pass, kind).write();
}

}  // namespace brasa::runtime::cuda
