#include "runtime/cuda/attention_tiles.h"

// One query of a head, with a mask, by one block, or by a cluster of blocks: lanes beside each other have 16 bytes each of a row of keys and of
// the same row of values, so that a row takes few lanes, and the block many rows at once. These lanes have a softmax of their own over their
// rows; all of them are put together in the end, in the first block's shared memory. Rows of several steps are on their way together: what
// bounds this is how long memory takes to answer.
namespace brasa::runtime::cuda {
namespace {

constexpr int kTogether = 8;         // rows that lanes read before they use the first
constexpr double kLowest = -3.4e38;  // below all scores but those that the mask leaves out
constexpr double kLeast = 1e-37;     // a sum that may divide

class Kernel final : public AttentionTiles {
 public:
  explicit Kernel(const AttentionKind& kind)
      : AttentionTiles(AttentionPass::OfRow, kind),
        chunks_(static_cast<int>(kind.features / 8)),
        lanes_(static_cast<int>(std::bit_ceil(static_cast<unsigned>(chunks_)))) {}

  WrittenKernel write() {
    find_block();
    Rows mask = next_rows(), out = next_rows(), query = next_rows(), key = next_rows(), value = next_rows();
    key_ = {beside(key), key.step};
    value_ = {beside(value), value.step};
    mask_ = mask;
    begin_rows();
    if (clustered()) {
      p_.op("griddepcontrol.launch_dependents");  // what comes behind waits for this kernel itself
      p_.op("barrier.cluster.arrive.aligned");    // this block's shared memory is there
    }
    if (kind_.early) {
      load_rows();
      p_.op("griddepcontrol.wait");
    }
    for (const Reg& pair : loaded(beside(query)))
      for (const Reg& each : widened(pair)) query_.push_back(p_.f("mul.f32", each, scale2_));
    if (kind_.cached) {
      key_row_ = loaded(beside(next_rows()));
      value_row_ = loaded(beside(next_rows()));
      cached_at_ = p_.r("cvt.u32.u64", p_.d("ld.global.b64", str("[", next_parameter(), "]")));
    }
    if (!kind_.early) load_rows();
    over_all_keys();
    join_lanes();
    join_warps(out);
    std::string text =
        p_.kernel("attention_of_row", parameters_, threads(), shared_bytes(), 1, clustered(), kind_.blocks);
    return {"attention_of_row", std::move(text), threads(), 0, clustered()};
  }

 private:
  bool clustered() const { return kind_.blocks > 1; }
  int rows_of_block() const { return threads() / lanes_; }
  int rows_at_once() const { return kind_.blocks * rows_of_block(); }
  int all_warps() const { return kind_.blocks * warps_; }
  int sum_bytes() const { return lanes_ * 8 * 4; }  // of a warp
  // Sums of all warps, then their largest scores, then the sums of exponentials.
  int most_at() const { return all_warps() * sum_bytes(); }
  int total_at() const { return most_at() + 4 * all_warps(); }
  int shared_bytes() const { return total_at() + 4 * all_warps(); }

  void find_block() {
    keys_ = next_size();
    Reg heads_each = next_size();
    scale2_ = next_number();
    thread_ = p_.r("mov.u32", "%tid.x");
    Reg block = p_.r("mov.u32", "%ctaid.x");
    if (clustered()) {  // its blocks follow each other
      rank_ = p_.r("rem.u32", block, kind_.blocks);
      block = p_.r("div.u32", block, kind_.blocks);
    }
    batch_ = p_.d("cvt.u64.u32", p_.r("div.u32", block, heads_each));
    head_ = p_.d("cvt.u64.u32", p_.r("rem.u32", block, heads_each));
    shared_ = p_.r("mov.u32", "shared_memory");
    Reg lane = p_.r("and.b32", thread_, lanes_ - 1);
    if (lanes_ != chunks_) {  // lanes behind the last chunk read that one
      has_chunk_ = p_.p("setp.lt.u32", lane, chunks_);
      lane = p_.r("min.u32", lane, chunks_ - 1);
    }
    copy_bytes_ = p_.d("mul.wide.u32", lane, 16);
  }
  Reg beside(const Rows& rows) { return p_.d("add.s64", rows.start, copy_bytes_); }
  // 16 bytes.
  void load(const Regs& to, const Reg& at) {
    if (kind_.wide) return p_.op("ld.global.v4.b32", braces(to), str("[", at, "]"));
    for (int i = 0; i < 4; ++i) {
      Regs halves = p_.fresh('h', 2);
      for (int k : {0, 1}) p_.op("ld.global.b16", halves[k], str("[", at, "+", 2 * (2 * i + k), "]"));
      p_.op("mov.b32", to[i], braces(halves));
    }
  }
  Regs loaded(const Reg& at) {
    Regs out = p_.fresh('r', 4);
    load(out, at);
    return out;
  }

  struct Row {
    Reg inside, place;  // behind the last one it is that, and not attended to
    Regs key, value;
  };
  // The first row of the block's next ones, and that of these lanes.
  void begin_rows() {
    first_ = p_.r("mov.u32", 0);
    own_ = p_.r("div.u32", thread_, lanes_);
    if (clustered())
      for (const Reg& r : {first_, own_}) p_.op("mad.lo.u32", r, rank_, rows_of_block(), r);
    for (int i = 0; i < kTogether; ++i)
      rows_.push_back({p_.fresh('p'), p_.fresh('r'), p_.fresh('r', 4), p_.fresh('r', 4)});
  }
  Reg more_rows() { return p_.p("setp.lt.u32", first_, keys_); }
  void load_rows() {
    p_.when(more_rows(), [&] {
      for (int i = 0; i < kTogether; ++i) {
        const Row& row = rows_[i];
        Reg place = p_.r("add.u32", own_, i * rows_at_once());
        p_.op("setp.lt.u32", row.inside, place, keys_);
        p_.op("min.u32", row.place, place, p_.r("sub.u32", keys_, 1));
        load(row.key, row_address(key_, row.place));
        load(row.value, row_address(value_, row.place));
      }
    });
  }
  Reg attended(const Row& row) {
    Reg byte = p_.r("ld.global.u8", str("[", row_address(mask_, row.place), "]"));
    return p_.p("setp.lt.and.u32", p_.r("mov.u32", 0), byte, row.inside);
  }
  // What came in the place of one row.
  void replace(const Row& row) {
    Reg here = p_.p("setp.eq.u32", row.place, cached_at_);
    for (int i = 0; i < 4; ++i) {
      p_.op("selp.b32", row.key[i], key_row_[i], row.key[i], here);
      p_.op("selp.b32", row.value[i], value_row_[i], row.value[i], here);
    }
  }
  // The score of a row, the same in all of its lanes.
  Reg score(const Row& row, const Reg& attended) {
    Reg s = p_.f("mov.f32", number(0));
    for (int i = 0; i < 4; ++i) {
      std::array<Reg, 2> k = widened(row.key[i]);
      for (int e : {0, 1}) p_.op("fma.rn.f32", s, query_[2 * i + e], k[e], s);
    }
    if (!has_chunk_.empty()) s = p_.f("selp.f32", s, number(0), has_chunk_);
    return p_.f("selp.f32", over_lanes("add.f32", s, lanes_), number(-kInfinity), attended);
  }

  void over_all_keys() {
    most_ = p_.f("mov.f32", number(kLowest));
    total_ = p_.f("mov.f32", number(0));
    for (int e = 0; e < 8; ++e) sum_.push_back(p_.f("mov.f32", number(0)));
    p_.loop([&] { return more_rows(); },
            [&] {
              Regs scores, attends;
              for (const Row& row : rows_) attends.push_back(attended(row));
              Reg most = most_;
              for (int i = 0; i < kTogether; ++i) {
                if (kind_.cached) replace(rows_[i]);
                scores.push_back(score(rows_[i], attends[i]));
                most = p_.f("max.f32", most, scores.back());
              }
              shrink_to(most);
              for (int i = 0; i < kTogether; ++i) {
                Reg weight = exp2(p_.f("sub.f32", scores[i], most_));
                p_.op("add.f32", total_, total_, weight);
                for (int k = 0; k < 4; ++k) {
                  std::array<Reg, 2> v = widened(rows_[i].value[k]);
                  for (int e : {0, 1}) p_.op("fma.rn.f32", sum_[2 * k + e], weight, v[e], sum_[2 * k + e]);
                }
              }
              for (const Reg& r : {first_, own_}) p_.op("add.u32", r, r, kTogether * rows_at_once());
              load_rows();
            });
  }
  void shrink_to(const Reg& most) {
    Reg factor = exp2(p_.f("sub.f32", most_, most));
    p_.op("mov.f32", most_, most);
    p_.op("mul.f32", total_, total_, factor);
    for (const Reg& s : sum_) p_.op("mul.f32", s, s, factor);
  }

  void join_lanes() {
    for (int step = lanes_; step < 32; step *= 2) {
      auto other = [&](const Reg& v) {
        Reg out = p_.fresh('f');
        p_.op("shfl.sync.bfly.b32", out, v, step, 31, "-1");
        return out;
      };
      Reg most = p_.f("max.f32", most_, other(most_));
      shrink_to(most);
      p_.op("add.f32", total_, total_, other(total_));
      for (const Reg& s : sum_) p_.op("add.f32", s, s, other(s));
    }
  }
  // Through shared memory.
  void join_warps(const Rows& out) {
    Reg warp = p_.r("shr.u32", thread_, 5), lane = p_.r("and.b32", thread_, 31), joined = shared_;
    if (clustered()) {
      warp = p_.r("mad.lo.u32", rank_, warps_, warp);
      joined = p_.r("mapa.shared::cluster.u32", shared_, 0);
      p_.op("barrier.cluster.wait.aligned");
    }
    Reg writes = p_.p("setp.lt.u32", lane, lanes_), first = p_.p("setp.eq.u32", lane, 0);
    Reg sums = p_.r("mad.lo.u32", warp, sum_bytes(), p_.r("mad.lo.u32", lane, 8 * 4, joined));
    Reg numbers = p_.r("mad.lo.u32", warp, 4, joined);
    auto put = [&](const Reg& condition, const Reg& at, int offset, const Reg& v) {
      const char* memory = clustered() ? " st.shared::cluster.f32" : " st.shared.f32";
      p_.op(str("@", condition, memory), str("[", at, "+", offset, "]"), v);
    };
    for (int e = 0; e < 8; ++e) put(writes, sums, 4 * e, sum_[e]);
    put(first, numbers, most_at(), most_);
    put(first, numbers, total_at(), total_);
    if (!clustered()) {
      p_.op("bar.sync", 0);
      return write_features(out);
    }
    p_.op("barrier.cluster.arrive.aligned");
    p_.op("barrier.cluster.wait.aligned");
    p_.when(p_.p("setp.eq.u32", rank_, 0), [&] { write_features(out); });
  }
  // One for each thread.
  void write_features(const Rows& out) {
    auto features = static_cast<int>(kind_.features);
    Reg feature = p_.r("min.u32", thread_, features - 1), from = p_.r("mad.lo.u32", feature, 4, shared_);
    auto got = [&](const Reg& at, int offset) { return p_.f("ld.shared.f32", str("[", at, "+", offset, "]")); };
    Regs all;
    Reg most;
    for (int w = 0; w < all_warps(); ++w) {
      all.push_back(got(shared_, most_at() + 4 * w));
      most = w ? p_.f("max.f32", most, all[w]) : all[w];
    }
    Reg total = p_.f("mov.f32", number(0)), sum = p_.f("mov.f32", number(0));
    for (int w = 0; w < all_warps(); ++w) {
      Reg factor = exp2(p_.f("sub.f32", all[w], most));
      p_.op("fma.rn.f32", total, factor, got(shared_, total_at() + 4 * w), total);
      p_.op("fma.rn.f32", sum, factor, got(from, w * sum_bytes()), sum);
    }
    // Where nothing is attended to, all are zero.
    Reg result = p_.f("mul.f32", sum, p_.f("rcp.approx.ftz.f32", p_.f("max.f32", total, number(kLeast))));
    Regs halves = p_.fresh('h', 2);
    p_.op("mov.b32", braces(halves), rounded(result, result));
    Reg to = p_.d("mad.wide.u32", feature, 2, out.start);
    p_.op(str("@", p_.p("setp.lt.u32", thread_, features), " st.global.b16"), str("[", to, "+0]"), halves[0]);
  }

  const int chunks_, lanes_;
  Rows key_, value_, mask_;
  Reg cached_at_, has_chunk_, first_, own_;
  Reg rank_;  // of the block in its cluster
  std::vector<Row> rows_;
  Regs key_row_, value_row_, query_, sum_;
  Reg most_, total_;
};

}  // namespace

WrittenKernel attention_of_row(const AttentionKind& kind) { return Kernel(kind).write(); }

}  // namespace brasa::runtime::cuda
