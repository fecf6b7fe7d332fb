#include "runtime/cuda/attention_results.h"

// All three cotangents of a head by one block of four groups, which has the head's rows in shared memory together, as
// attention_kernels.cpp does it by single warps. A group has 64 keys: dV = Pᵀ dO, dK = dSᵀ Q · scale, and leaves its rows of dSᵀ there; then it has
// 64 queries: dQ = dS K · scale.
namespace brasa::runtime::cuda {
namespace {

class Kernel final : public AttentionResults {
 public:
  explicit Kernel(const AttentionKind& kind) : AttentionResults(AttentionPass::BackwardOfHead, kind) {}

  WrittenKernel write() {
    begin();
    Rows query = next_rows(), key = next_rows(), value = next_rows(), ct = next_rows(), out = next_rows(),
         to_query = next_rows(), to_key = next_rows(), to_value = next_rows();
    Reg log_sum = p_.d("mad.lo.s64", vector_start_, 4, next_parameter());
    Reg zero = p_.r("mov.u32", 0), keys = shared_, values = behind(keys), queries = behind(values),
        cts = behind(queries);
    numbers_ = behind(cts);
    scores_ = p_.r("add.u32", numbers_, kNumberBytes);
    Reg outs = p_.r("add.u32", scores_, 2 * tile_bytes());  // where no dSᵀ of the first queries will be
    copy_rows(moving(key, zero), keys, zero, keys_, tile_);
    copy_rows(moving(value, zero), values, zero, keys_, tile_);
    copy_vector(log_sum, numbers_, zero, queries_);
    for (const Arrival& a : kArrivals) {
      Reg row = p_.r("mov.u32", a.first);
      auto copy = [&](const Rows& from, const Reg& to) {
        copy_rows(moving(from, row), p_.r("add.u32", to, a.first * row_bytes_), row, queries_, a.count);
      };
      copy(query, queries);
      copy(ct, cts);
      copy(out, outs);
      p_.op("cp.async.commit_group");
    }

    Own k = read_by_group(p_.r("add.u32", keys, group_offset_)),
        v = read_by_group(p_.r("add.u32", values, group_offset_));
    std::vector<Part> by_key = zeros(padded_), by_value = zeros(padded_);
    find_scores();
    Reg column = p_.r("mov.u32", 0);
    auto body = [&](int width) {
      Reg at = p_.r("mul.lo.u32", column, row_bytes_);
      Reg query_rows = p_.r("add.u32", queries, at), ct_rows = p_.r("add.u32", cts, at);
      std::vector<Part> s = scores(k, query_rows, width), ds = scores(v, ct_rows, width);
      await();
      weigh(s[0], ds[0], column);
      add_rows(by_value, s, ct_rows);
      add_rows(by_key, ds, query_rows);
      await();
    };
    arrived_part(0, cts, outs);
    steps(column, p_.r("min.u32", queries_, kArrivals[0].count), width_, true, body);
    arrived_part(1, cts, outs);
    steps(column, queries_, width_, true, body);
    steps(column, queries_, 16, false, body);
    p_.op("fence.proxy.async.shared::cta");
    p_.op("bar.sync", 0);

    // While dQ is made, the other two leave by way of the queries and the cotangents.
    std::vector<Part> by_query = zeros(padded_);
    Reg group = p_.r("div.u32", group_offset_, swept_rows() * row_bytes_);
    add_transposed_rows(by_query, p_.r("mad.lo.u32", group, tile_bytes(), scores_), keys, tile_);
    Reg one = p_.f("mov.f32", number(1)), own = p_.r("add.u32", queries, result_offset_);
    place_sums(bytes());
    store_rows(by_key, all(scale_), own, to_key, keys_, sums_of(1));
    p_.op("bar.warp.sync", -1);
    store_rows(by_value, all(one), own, to_value, keys_, sums_of(2));
    await();
    p_.op("bar.warp.sync", -1);
    store_rows(by_query, all(scale_), own, to_query, queries_, sums_of(0));
    store_sums({queries_, keys_, keys_});

    std::string text = p_.kernel(kName, parameters_, threads(), 0, 1, true);
    return {kName, std::move(text), threads(), bytes(), true, tile_};
  }

 private:
  static constexpr const char* kName = "attention_backward_of_head";
  static constexpr int kNumberBytes = 2 * kAlignment;  // two numbers of each query
  static constexpr int kParts = 8;                     // four matrices, and dSᵀ of 64 queries each
  static_assert(kNumberBytes >= 8 * kMostRowsOfHead);

  int bytes() const { return kParts * tile_bytes() + kNumberBytes + sum_bytes(); }
  Reg behind(const Reg& tile) { return p_.r("add.u32", tile, tile_bytes()); }

  // Queries arrive in two parts, the second while the first is used.
  struct Arrival {
    int first, count;
  };
  static constexpr Arrival kArrivals[] = {{0, 96}, {96, kMostRowsOfHead - 96}};
  // Σ dO O, by the threads that copied both.
  void arrived_part(int part, const Reg& cts, const Reg& outs) {
    p_.op("cp.async.wait_group", 1 - part);
    Reg g = p_.r("add.u32", cts, copy_to_), o = p_.r("add.u32", outs, copy_to_);
    Reg leads = p_.p("setp.eq.u32", p_.r("and.b32", thread_, 7), 0), to = p_.r("mad.lo.u32", copy_row_, 4, numbers_);
    over_passes(kArrivals[part].count, [&](int done) {
      int row = kArrivals[part].first + done;
      Regs both[2] = {p_.fresh('r', 4), p_.fresh('r', 4)};
      Reg sum = p_.f("mov.f32", number(0));
      p_.op("ld.shared.v4.b32", braces(both[0]), str("[", g, "+", row * row_bytes_, "]"));
      p_.op("ld.shared.v4.b32", braces(both[1]), str("[", o, "+", row * row_bytes_, "]"));
      for (int i = 0; i < 4; ++i) add_products(sum, both[0][i], both[1][i]);
      sum = over_lanes("add.f32", sum, 8);
      p_.op(str("@", leads, " st.shared.f32"), str("[", to, "+", 4 * (tile_ + row), "]"), sum);
    });
    p_.op("fence.proxy.async.shared::cta");
    p_.op("bar.sync", 0);
  }

  // Where this thread's two rows of dSᵀ are, and which of them: keys that are not there give zeros, as far as there are rows.
  void find_scores() {
    own_scores_ = p_.r("mad.lo.u32", own_row_, row_bytes_, p_.r("shl.b32", p_.r("shr.u32", lane_, 2), 4));
    own_scores_ = p_.r("add.u32", p_.r("mad.lo.u32", pair_, 2, own_scores_), scores_);
    for (int half : {0, 1}) {
      Reg row = own_row(0, half);
      given_[half] = p_.r("selp.b32", -1, 0, p_.p("setp.lt.u32", row, keys_));
      stored_[half] = p_.p("setp.lt.u32", row, tile_);
    }
  }
  // Scores become P, and their gradients dS, which goes to shared memory.
  void weigh(const Part& s, const Part& ds, const Reg& column) {
    Reg of_columns = p_.r("mad.lo.u32", p_.r("add.u32", column, pair_), 4, numbers_);
    Reg part = p_.r("mad.lo.u32", p_.r("shr.u32", column, 6), tile_bytes(), own_scores_);
    Reg at = p_.r("xor.b32", part, p_.r("shl.b32", p_.r("and.b32", column, 63), 1));
    for (int n = 0; n < static_cast<int>(s.size()); ++n) {
      Regs less = p_.fresh('f', 2), inner = p_.fresh('f', 2);
      p_.op("ld.shared.v2.f32", braces(less), str("[", of_columns, "+", 32 * n, "]"));
      p_.op("ld.shared.v2.f32", braces(inner), str("[", of_columns, "+", 32 * n + 4 * tile_, "]"));
      for (Reg& l : less) l = p_.f("mul.f32", l, number(-kLog2E));
      for (int e = 0; e < 4; ++e) {
        to_power(s[n][e], less[e % 2]);
        to_gradient(ds[n][e], s[n][e], inner[e % 2]);
      }
      Reg to = n ? p_.r("xor.b32", at, 16 * n) : at;
      for (int half : {0, 1}) {
        Reg both = p_.r("and.b32", rounded(ds[n][2 * half], ds[n][2 * half + 1]), given_[half]);
        p_.op(str("@", stored_[half], " st.shared.b32"), str("[", to, "+", 8 * half * row_bytes_, "]"), both);
      }
    }
  }

  Reg numbers_, scores_, own_scores_, given_[2], stored_[2];
};

}  // namespace

WrittenKernel attention_backward_of_head_by_groups(const AttentionKind& kind) { return Kernel(kind).write(); }

}  // namespace brasa::runtime::cuda
