#include "runtime/cuda/few_channels.h"
#include "runtime/cuda/tile_products.h"

// A pixel's taps along a row are 64 elements that lie beside each other, one pixel after the one before. Shared memory has them as a tile of 128
// bytes for each pixel of a row, a ring of such tiles for the rows of an image that one row of results needs, and one more on its way.
// A block has results' rows that follow each other: all but the first need one more row of the image each. By weight
//     dW[o, t, k] = Σ over rows y and pixels p of  ct[y, p, o] · image[y + t, p, k]
// is a product of a tile of cotangents, transposed, with each of the ring's tiles; sums stay in registers over all rows of a block.
namespace brasa::runtime::cuda {
namespace {

constexpr int kOutputs = 64, kElements = 64, kGroup = 128, kTileRow = 128;

class Kernel final : public TileProducts {
 public:
  Kernel(const FewChannelsKind& kind, bool by_weight)
      : TileProducts(kind.dtype, kElements, 1, true),
        kind_(kind),
        by_weight_(by_weight),
        groups_(by_weight ? 1 : (kind.columns + 63) / 64),
        rows_((kind.columns + 15) / 16 * 16),
        ring_(kind.taps + 1) {}

  WrittenKernel write() {
    const char* name = by_weight_ ? "few_channels_by_weight" : "few_channels";
    begin();
    if (by_weight_)
      by_weight();
    else
      forward();
    int together = by_weight_ ? 2 : std::max(1, 4 / groups_);
    return {name, p_.kernel(name, kParameters, threads(), 0, together, true), threads(), shared_bytes(), true};
  }

 private:
  static constexpr int kParameters = 7;
  int threads() const { return kGroup * groups_; }
  int tile_bytes() const { return rows_ * kTileRow; }
  int ring_bytes() const { return ring_ * tile_bytes(); }
  int weight_bytes() const { return kOutputs * kTileRow; }  // of a tap
  // Groups read rows behind the last one of a tile, whose results are not stored.
  int read_behind() const { return std::max(0, 64 * groups_ - rows_) * kTileRow; }
  int shared_bytes() const {
    return ring_bytes() + (by_weight_ ? 2 * tile_bytes() : std::max(kind_.taps * weight_bytes(), read_behind()));
  }

  void begin() {
    image_ = p_.parameter(0);
    other_ = p_.parameter(1);
    to_ = p_.parameter(2);
    Reg all = p_.parameter32(3), blocks = p_.parameter32(4);
    height_ = p_.parameter32(5);  // of results
    width_ = p_.parameter(6);     // of the image, in bytes
    thread_ = p_.r("mov.u32", "%tid.x");
    find_lane(thread_);
    block_ = p_.r("mov.u32", "%ctaid.x");
    row_ = p_.r("div.u32", p_.r("mul.lo.u32", block_, all), blocks);
    end_ = p_.r("div.u32", p_.r("mul.lo.u32", p_.r("add.u32", block_, 1), all), blocks);
    Reg image = p_.r("div.u32", row_, height_);
    y_ = p_.r("rem.u32", row_, height_);
    // An image has taps - 1 rows more than its results.
    source_ = p_.r("mad.lo.u32", image, kind_.taps - 1, row_);
    shared_ = p_.r("mov.u32", "shared_memory");
    behind_ring_ = p_.r("add.u32", shared_, ring_bytes());
    // A thread copies 16 bytes of a pixel, and of those that are `pass` on.
    copy_row_ = p_.r("shr.u32", thread_, 3);
    Reg column = p_.r("and.b32", thread_, 7);
    Reg chunk = p_.r("xor.b32", column, p_.r("and.b32", copy_row_, 7));
    copy_to_ = p_.r("mad.lo.u32", copy_row_, kTileRow, p_.r("shl.b32", chunk, 4));
    Reg bytes = p_.r("shl.b32", column, 4);
    copy_pixel_ = p_.d("cvt.u64.u32", p_.r("mad.lo.u32", copy_row_, kind_.channels * element_, bytes));
    copy_whole_ = p_.d("cvt.u64.u32", p_.r("mad.lo.u32", copy_row_, kTileRow, bytes));
  }

  // `count` rows of 128 bytes to shared memory, zeros behind `there` of them; one begins `step` bytes behind the other.
  void copy(const Reg& from, const Reg& to, int step, int count, int there) {
    int pass = threads() / 8;
    for (int done = 0; done < count; done += pass) {
      auto part = [&] {
        Reg bytes = p_.r("mov.u32", 16);
        if (done + pass > there) {
          Reg row = p_.r("add.u32", copy_row_, done);
          bytes = p_.r("selp.b32", 16, 0, p_.p("setp.lt.u32", row, there));
        }
        p_.op("cp.async.cg.shared.global", str("[", to, "+", done * kTileRow, "]"),
              str("[", from, "+", done * step, "]"), 16, bytes);
      };
      if (done + pass <= count)
        part();
      else
        p_.when(p_.p("setp.lt.u32", p_.r("add.u32", copy_row_, done), count), part);
    }
  }
  // A row of the image that is so many behind `source_`.
  Reg slot(int behind) {
    Reg at = p_.r("rem.u32", behind ? p_.r("add.u32", source_, behind) : source_, ring_);
    return p_.r("mad.lo.u32", at, tile_bytes(), shared_);
  }
  void copy_image_row(int behind) {
    Reg row = p_.d("cvt.u64.u32", behind ? p_.r("add.u32", source_, behind) : source_);
    Reg from = p_.d("add.s64", p_.d("mad.lo.s64", row, width_, image_), copy_pixel_);
    copy(from, p_.r("add.u32", slot(behind), copy_to_), kind_.channels * element_, rows_, kind_.columns);
  }
  void copy_cotangents(const Reg& row) {
    Reg bytes = p_.d("mul.wide.u32", row, kind_.columns * kTileRow);
    Reg from = p_.d("add.s64", p_.d("add.s64", other_, bytes), copy_whole_);
    copy(from, p_.r("add.u32", cotangents(row), copy_to_), kTileRow, rows_, kind_.columns);
  }
  Reg cotangents(const Reg& row) { return p_.r("mad.lo.u32", p_.r("and.b32", row, 1), tile_bytes(), behind_ring_); }
  void copy_window(const Reg& row) {
    for (int t = 0; t < kind_.taps; ++t) copy_image_row(t);
    if (by_weight_) copy_cotangents(row);
  }

  // `use` gets the row of results; what it needs has arrived.
  template <class F>
  void over_rows(const F& use) {
    p_.when(p_.p("setp.lt.u32", row_, end_), [&] { copy_window(row_); });
    p_.loop([&] { return p_.p("setp.lt.u32", row_, end_); },
            [&] {
              p_.op("cp.async.commit_group");
              p_.op("cp.async.wait_group", 0);
              p_.op("fence.proxy.async.shared::cta");
              p_.op("bar.sync", 0);
              Reg next = p_.r("add.u32", row_, 1), below = p_.r("add.u32", y_, 1);
              Reg more = p_.p("setp.lt.u32", next, end_);
              Reg same_image = p_.p("setp.lt.and.u32", below, height_, more);
              // The slot that the row before read; all have left it.
              p_.when(same_image, [&] {
                copy_image_row(kind_.taps);
                if (by_weight_) copy_cotangents(next);
              });
              use();
              Reg another = p_.p("setp.eq.and.u32", below, height_, more);
              p_.op("add.u32", source_, source_, 1);
              p_.op("mov.u32", y_, below);
              p_.when(another, [&] {
                p_.op("bar.sync", 0);
                p_.op("add.u32", source_, source_, kind_.taps - 1);
                p_.op("mov.u32", y_, 0);
                copy_window(next);
              });
              p_.op("mov.u32", row_, next);
            });
  }

  void by_weight() {
    std::vector<std::vector<Part>> sums;
    for (int t = 0; t < kind_.taps; ++t) sums.push_back(zeros(kElements));
    over_rows([&] {
      Reg left = cotangents(row_);
      for (int t = 0; t < kind_.taps; ++t) add_transposed_rows(sums[t], left, slot(t), rows_);
      await();
    });
    // As float32 [blocks, outputs, taps, elements].
    Reg row_bytes = p_.r("mul.lo.u32", own_row(), kind_.taps * kElements * 4);
    Reg block = p_.d("mul.wide.u32", block_, kOutputs * kind_.taps * kElements * 4);
    Reg at = p_.d("add.s64", p_.d("add.s64", to_, block), p_.d("cvt.u64.u32", row_bytes));
    at = p_.d("mad.wide.u32", pair_, 4, at);
    for (int t = 0; t < kind_.taps; ++t)
      for (int n = 0; n < kElements / 8; ++n)
        for (int half : {0, 1}) {
          const Regs& four = sums[t][0][n];
          int bytes = 4 * (8 * half * kind_.taps * kElements + t * kElements + 8 * n);
          p_.op("st.global.v2.f32", str("[", at, "+", bytes, "]"), braces({four[2 * half], four[2 * half + 1]}));
        }
  }

  void forward() {
    for (int t = 0; t < kind_.taps; ++t) {
      Reg from = p_.d("mad.wide.u32", copy_row_, kind_.taps * kTileRow, other_);
      from = p_.d("add.s64", from, p_.d("mul.wide.u32", p_.r("and.b32", thread_, 7), 16));
      from = p_.d("add.s64", from, t * kTileRow);
      copy(from, p_.r("add.u32", p_.r("add.u32", behind_ring_, t * weight_bytes()), copy_to_), kind_.taps * kTileRow,
           kOutputs, kOutputs);
    }
    // The same in all lanes, as the assembler sees then.
    Reg group = p_.fresh('r');
    p_.op("shfl.sync.idx.b32", group, p_.r("shr.u32", thread_, 7), 0, 31, -1);
    Reg own = p_.r("mul.lo.u32", group, 64 * kTileRow);
    Reg first = p_.r("mad.lo.u32", group, 64, own_row());
    Reg odd = p_.p("setp.eq.u32", p_.r("and.b32", lane_, 1), 1);
    // A lane stores four neighbours: the quad's first and third those of even eights of outputs, the others those of the odd ones.
    Reg outputs = p_.r("add.u32", p_.r("shl.b32", p_.r("and.b32", lane_, 2), 2), p_.r("selp.b32", 16, 0, odd));
    Reg own_bytes = p_.r("mad.lo.u32", first, kTileRow, outputs);
    over_rows([&] {
      std::vector<Part> sum = unset(kOutputs);
      Regs pixels, weights;
      for (int t = 0; t < kind_.taps; ++t) {
        pixels.push_back(p_.r("add.u32", slot(t), own));
        weights.push_back(p_.r("add.u32", behind_ring_, t * weight_bytes()));
      }
      set_to_products(sum, pixels, weights);
      await();
      Reg at = p_.d("add.s64", p_.d("mul.wide.u32", row_, kind_.columns * kTileRow), to_);
      at = p_.d("add.s64", at, p_.d("cvt.u64.u32", own_bytes));
      for (int half : {0, 1}) {
        Reg there = p_.p("setp.lt.u32", half ? p_.r("add.u32", first, 8) : first, kind_.columns);
        for (int n = 0; n < kOutputs / 8; n += 2) {
          auto pair = [&](int m) { return rounded(sum[0][m][2 * half], sum[0][m][2 * half + 1]); };
          Reg even = pair(n), uneven = pair(n + 1), given = p_.r("selp.b32", even, uneven, odd), got = p_.fresh('r');
          p_.op("shfl.sync.bfly.b32", got, given, 1, 31, "-1");
          Reg low = p_.r("selp.b32", got, even, odd), high = p_.r("selp.b32", uneven, got, odd);
          p_.op(str("@", there, " st.global.v2.b32"), str("[", at, "+", 8 * half * kTileRow + 16 * n, "]"),
                braces({low, high}));
        }
      }
    });
  }

  // The row of a group's 64 that the thread's first results are of.
  Reg own_row() {
    Reg warp = p_.r("and.b32", p_.r("shr.u32", thread_, 5), 3);
    return p_.r("mad.lo.u32", warp, 16, p_.r("shr.u32", lane_, 2));
  }

  FewChannelsKind kind_;
  bool by_weight_;
  int groups_, rows_, ring_;  // of four warps; of a tile; tiles
  Reg image_, other_, to_, height_, width_, thread_, block_, row_, end_, y_, source_, shared_, behind_ring_;
  Reg copy_row_, copy_to_, copy_pixel_, copy_whole_;
};

// A thread for each four weights, in 8 parts that go over blocks: those of a warp read beside each other.
class Sum final : public TensorCores {
 public:
  explicit Sum(const FewChannelsKind& kind) : TensorCores(kind.dtype), kind_(kind) {}

  WrittenKernel write() {
    constexpr const char* kName = "few_channels_sum";
    constexpr int kWarps = 8, kThreads = 32 * kWarps;
    Reg from = p_.parameter(0), to = p_.parameter(1), blocks = p_.parameter32(2);
    Reg thread = p_.r("mov.u32", "%tid.x"), lane = p_.r("and.b32", thread, 31), warp = p_.r("shr.u32", thread, 5);
    Reg own = p_.r("mad.lo.u32", p_.r("mov.u32", "%ctaid.x"), 32, lane);
    int bytes = kOutputs * kind_.taps * kElements * 4;
    Reg at = p_.d("mad.wide.u32", own, 16, from), done = p_.r("mov.u32", warp);
    at = p_.d("add.s64", at, p_.d("mul.wide.u32", warp, bytes));
    Regs sum;
    for (int e = 0; e < 4; ++e) sum.push_back(p_.f("mov.f32", number(0)));
    p_.loop([&] { return p_.p("setp.lt.u32", done, blocks); },
            [&] {
              Regs four = p_.fresh('f', 4);
              p_.op("ld.global.v4.f32", braces(four), str("[", at, "]"));
              for (int e = 0; e < 4; ++e) p_.op("add.f32", sum[e], sum[e], four[e]);
              p_.op("add.u32", done, done, kWarps);
              p_.op("add.s64", at, at, kWarps * bytes);
            });
    Reg shared = p_.r("mad.lo.u32", thread, 16, p_.r("mov.u32", "shared_memory"));
    p_.op("st.shared.v4.f32", str("[", shared, "]"), braces(sum));
    p_.op("bar.sync", 0);
    p_.when(p_.p("setp.lt.u32", thread, 32), [&] {
      for (int w = 1; w < kWarps; ++w) {
        Regs four = p_.fresh('f', 4);
        p_.op("ld.shared.v4.f32", braces(four), str("[", shared, "+", 32 * 16 * w, "]"));
        for (int e = 0; e < 4; ++e) p_.op("add.f32", sum[e], sum[e], four[e]);
      }
      p_.op("st.global.v2.b32", str("[", p_.d("mad.wide.u32", own, 8, to), "]"),
            braces({rounded(sum[0], sum[1]), rounded(sum[2], sum[3])}));
    });
    return {kName, p_.kernel(kName, 3, kThreads, 16 * kThreads), kThreads};
  }

 private:
  FewChannelsKind kind_;
};

}  // namespace

WrittenKernel few_channels_forward(const FewChannelsKind& kind) { return Kernel(kind, false).write(); }
WrittenKernel few_channels_by_weight(const FewChannelsKind& kind) { return Kernel(kind, true).write(); }
WrittenKernel few_channels_sum(const FewChannelsKind& kind) { return Sum(kind).write(); }

}  // namespace brasa::runtime::cuda
