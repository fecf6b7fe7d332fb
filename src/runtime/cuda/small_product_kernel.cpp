#include "runtime/cuda/small_product.h"
#include "runtime/cuda/tensor_cores.h"

// A block has 32 by 32 elements of a result, and each of its warps a part of their sums, which go through shared memory in the end.
namespace brasa::runtime::cuda {
namespace {

enum Parameter : int { kLeft, kRight, kBias, kTo, kRows, kColumns, kInner, kPart, kAcross, kTiles, kOperandSteps };
// Of an operand, in bytes: from a row to the next one (of the right one a column), along the sum, and from a matrix to the next one.
constexpr int kStepsOfOperand = 3;
constexpr int kToRow = kOperandSteps + 2 * kStepsOfOperand, kToBatch = kToRow + 1, kParameters = kToBatch + 1;

class Kernel : public TensorCores {
 public:
  explicit Kernel(const SmallProductKind& kind) : TensorCores(kind.operands), kind_(kind) {}
  virtual ~Kernel() = default;

  WrittenKernel write() {
    if (kind_.early) p_.op("griddepcontrol.launch_dependents");
    begin();
    for (int i = 0; i < kSums; ++i) sums_.push_back(p_.f("mov.f32", number(0)));
    add_up();
    keep_sums();
    p_.op("bar.sync", 0);
    write_results();
    int threads = 32 * kind_.warps;
    const char* name = kind_.bias ? "small_product_with_bias" : "small_product";
    std::string text = p_.kernel(name, kParameters, threads, kind_.warps * kWarpBytes, 1, kind_.early);
    return {name, std::move(text), threads, 0, kind_.early};
  }

 protected:
  // Elements of the result that a lane sums up, and a warp's sums in shared memory: a word between rows keeps lanes from each other's banks.
  static constexpr int kSums = kSmallTile * kSmallTile / 32, kRowBytes = 4 * (kSmallTile + 1);
  static constexpr int kWarpBytes = kSmallTile * kRowBytes;

  // All of the block's part of the sums.
  virtual void add_up() = 0;
  // Where in the tile a lane's sum is: its row is so many below the lane's group, its column so many beside the lane's first one.
  struct Place {
    int row, column;
  };
  virtual Place place_of(int sum) const = 0;
  virtual int columns_apart() const = 0;  // of two lanes beside each other in a group

  // Of 2 or 4 bytes; zero where there is none.
  Reg element_at(const Reg& at, const Reg& inside, int size) {
    Reg out = p_.fresh(size == 2 ? 'h' : 'r');
    p_.op(size == 2 ? "mov.b16" : "mov.u32", out, 0);
    p_.op(str("@", inside, size == 2 ? " ld.global.b16" : " ld.global.b32"), out, str("[", at, "]"));
    return out;
  }
  Reg wide(const Reg& r) { return p_.d("cvt.u64.u32", r); }
  // No operand is read before.
  void wait_for_operands() {
    if (kind_.early) p_.op("griddepcontrol.wait");
  }

  struct Operand {
    Reg start, step, along;  // of the block's matrix; bytes
    Reg row, rows;           // the tile's first one, and of all
    bool lies_along;
  };
  Operand operand(int which) {
    int steps = kOperandSteps + kStepsOfOperand * which;
    Reg start = p_.d("mad.lo.s64", matrix_, p_.parameter(steps + 2), p_.parameter(which));
    return {start,
            p_.parameter(steps),
            p_.parameter(steps + 1),
            which == kLeft ? tile_row_ : tile_column_,
            p_.parameter32(which == kLeft ? kRows : kColumns),
            which == kLeft ? kind_.left_along : kind_.right_along};
  }

  const SmallProductKind kind_;
  Reg thread_, warp_, shared_, matrix_, tile_row_, tile_column_;
  Reg group_, beside_;  // of four lanes, and which of them
  Regs sums_;

 private:
  void begin() {
    thread_ = p_.r("mov.u32", "%tid.x");
    Reg block = p_.r("mov.u32", "%ctaid.x"), tiles = p_.parameter32(kTiles), across = p_.parameter32(kAcross);
    matrix_ = wide(p_.r("div.u32", block, tiles));
    Reg tile = p_.r("rem.u32", block, tiles);
    tile_row_ = p_.r("mul.lo.u32", p_.r("div.u32", tile, across), kSmallTile);
    tile_column_ = p_.r("mul.lo.u32", p_.r("rem.u32", tile, across), kSmallTile);
    warp_ = p_.r("shr.u32", thread_, 5);
    Reg lane = p_.r("and.b32", thread_, 31);
    group_ = p_.r("shr.u32", lane, 2);
    beside_ = p_.r("and.b32", lane, 3);
    shared_ = p_.r("mov.u32", "shared_memory");
  }

  void keep_sums() {
    Reg at = p_.r("mad.lo.u32", warp_, kWarpBytes, p_.r("mad.lo.u32", group_, kRowBytes, shared_));
    at = p_.r("mad.lo.u32", beside_, 4 * columns_apart(), at);
    for (int s = 0; s < kSums; ++s) {
      Place place = place_of(s);
      p_.op("st.shared.f32", str("[", at, "+", place.row * kRowBytes + place.column * 4, "]"),
            sums_[static_cast<size_t>(s)]);
    }
  }

  // A warp has one row after the other.
  void write_results() {
    Reg lane = p_.r("and.b32", thread_, 31), column = p_.r("add.u32", tile_column_, lane);
    Reg has_column = p_.p("setp.lt.u32", column, p_.parameter32(kColumns)), rows = p_.parameter32(kRows);
    int size = static_cast<int>(size_of(kind_.result));
    Reg to = p_.d("mad.lo.s64", matrix_, p_.parameter(kToBatch), p_.parameter(kTo)), step = p_.parameter(kToRow);
    to = p_.d("mad.wide.u32", column, size, to);
    Reg bias = kind_.bias ? bias_of(column, has_column, size) : "";
    Reg from = p_.r("mad.lo.u32", lane, 4, p_.r("mad.lo.u32", warp_, kRowBytes, shared_));
    Reg row = p_.r("add.u32", tile_row_, warp_);
    for (int i = 0; i < kSmallTile; i += kind_.warps) {
      Reg place = p_.r("add.u32", row, i), inside = p_.p("setp.lt.and.u32", place, rows, has_column), total;
      for (int w = 0; w < kind_.warps; ++w) {
        Reg part = p_.f("ld.shared.f32", str("[", from, "+", w * kWarpBytes + i * kRowBytes, "]"));
        total = w ? p_.f("add.f32", total, part) : part;
      }
      if (kind_.bias) total = p_.f("add.f32", total, bias);
      std::string at = str("[", p_.d("mad.lo.s64", wide(place), step, to), "]");
      if (size == 2) {
        Regs halves = p_.fresh('h', 2);
        p_.op("mov.b32", braces(halves), rounded(total, total));
        p_.op(str("@", inside, " st.global.b16"), at, halves[0]);
      } else {
        p_.op(str("@", inside, " st.global.f32"), at, total);
      }
    }
  }
  Reg bias_of(const Reg& column, const Reg& has_column, int size) {
    Reg bits = element_at(p_.d("mad.wide.u32", column, size, p_.parameter(kBias)), has_column, size);
    return size == 2 ? widened(in_pairs({bits, bits})[0])[0] : p_.f("mov.b32", bits);
  }
};

// Of reduced floats. A lane reads 16 bytes of a row along the sum, and the lanes beside it the next ones; tensor cores multiply them in the order
// that they lie in.
class ReducedKernel final : public Kernel {
 public:
  using Kernel::Kernel;

 private:
  static constexpr int kEach = 8;  // elements of 16 bytes

  void add_up() override {
    Reg part = p_.parameter32(kPart), first = p_.r("mul.lo.u32", warp_, part);
    end_ = p_.r("min.u32", p_.r("add.u32", first, part), p_.parameter32(kInner));
    own_ = p_.r("mad.lo.u32", beside_, kEach, first);
    Read left = read(operand(kLeft)), right = read(operand(kRight));
    wait_for_operands();
    p_.loop([&] { return p_.p("setp.lt.u32", first, end_); },
            [&] {
              auto a = next_chunks(left), b = next_chunks(right);
              multiply_tiles(a, b);
              for (const Reg& r : {first, own_}) p_.op("add.u32", r, r, kSmallStep);
            });
  }

  struct Read {
    Operand of;
    Regs rows;  // where the lane's next chunk of each lies
  };
  // Every eighth row; behind the last one it is that.
  Read read(const Operand& o) {
    Reg start = p_.d("mad.lo.s64", wide(own_), o.along, o.start);
    Reg row = p_.r("add.u32", o.row, group_), last = p_.r("sub.u32", o.rows, 1);
    Read out{o, {}};
    for (int i = 0; i < 4; ++i) {
      Reg place = p_.r("min.u32", p_.r("add.u32", row, 8 * i), last);
      out.rows.push_back(p_.d("mad.lo.s64", wide(place), o.step, start));
    }
    return out;
  }
  // 16 bytes of each row, as pairs; zeros behind the end of the sum. The rows go on.
  std::vector<Regs> next_chunks(const Read& o) {
    std::vector<Regs> out;
    Regs inside;
    for (int e = 0; e < (o.of.lies_along ? 1 : kEach); ++e)
      inside.push_back(p_.p("setp.lt.u32", e ? p_.r("add.u32", own_, e) : own_, end_));
    Reg step = p_.d("mul.lo.s64", o.of.along, kSmallStep);
    for (const Reg& row : o.rows) {
      out.push_back(o.of.lies_along ? chunk_at(row, inside[0]) : elements_at(row, o.of.along, inside));
      p_.op("add.s64", row, row, step);
    }
    return out;
  }
  Regs chunk_at(const Reg& at, const Reg& inside) {
    Regs out;
    for (int i = 0; i < 4; ++i) out.push_back(p_.r("mov.u32", 0));
    p_.op(str("@", inside, " ld.global.v4.b32"), braces(out), str("[", at, "]"));
    return out;
  }
  Regs elements_at(Reg at, const Reg& along, const Regs& inside) {
    Regs out;
    for (size_t e = 0; e < inside.size(); ++e) {
      if (e) at = p_.d("add.s64", at, along);
      out.push_back(element_at(at, inside[e], element_));
    }
    return in_pairs(out);
  }

  // Two times 16 rows by four times 8 columns. Which elements of a sum are multiplied together is the same for both operands, in any order.
  void multiply_tiles(const std::vector<Regs>& a, const std::vector<Regs>& b) {
    for (size_t half : {0, 2})
      for (size_t i = 0; i < 2; ++i)
        for (size_t j = 0; j < 4; ++j) {
          auto at = sums_.begin() + static_cast<int64_t>(4 * (4 * i + j));
          multiply(Regs(at, at + 4), {a[2 * i][half], a[2 * i + 1][half], a[2 * i][half + 1], a[2 * i + 1][half + 1]},
                   b[j][half], b[j][half + 1]);
        }
  }
  // Of a product of 16 by 8 a lane has two neighbours in each of two rows.
  Place place_of(int s) const override { return {s / 16 * 16 + s / 2 % 2 * 8, s / 4 % 4 * 8 + s % 2}; }
  int columns_apart() const override { return 2; }

  Reg end_, own_;  // of the sum: where the warp's part ends, and the lane's next element
};

// Of float32. The block's threads put 64 elements of each row into shared memory, while the warps multiply those before them, eight elements each.
class FloatKernel final : public Kernel {
 public:
  using Kernel::Kernel;

 private:
  static constexpr int kThreads = 32 * kFloat32Warps, kEach = kSmallTile * kFloat32Step / kThreads;
  // Four words between rows: eight lanes that read 16 bytes of as many rows meet all banks.
  static constexpr int kStagedRow = 4 * (kFloat32Step + 4), kStaged = kSmallTile * kStagedRow;
  static_assert(2 * kStaged <= kFloat32Warps * kWarpBytes);

  void add_up() override {
    inner_ = p_.parameter32(kInner);
    first_ = p_.r("mov.u32", 0);
    Read left = read(operand(kLeft), 0), right = read(operand(kRight), kStaged);
    wait_for_operands();
    for (Read* o : {&left, &right}) load(*o);
    p_.loop([&] { return p_.p("setp.lt.u32", first_, inner_); },
            [&] {
              for (Read* o : {&left, &right}) stage(*o);
              p_.op("bar.sync", 0);
              p_.op("add.u32", first_, first_, kFloat32Step);
              for (Read* o : {&left, &right}) load(*o);
              multiply_staged();
              p_.op("bar.sync", 0);
            });
  }

  // Threads beside each other take neighbours in memory: along the sum, or rows; and every so many of the others.
  struct Read {
    Reg row, rows, place;  // the first one, of all, and where in the sum
    Reg at, apart,
        step;  // in memory: the next ones; from one of a thread's to the next one, and from a step's to those of the next one
    int rows_apart, places_apart, staged_apart;
    Reg staged;
    Regs values;
  };
  Read read(const Operand& o, int offset) {
    constexpr int kRowsApart = kThreads / kFloat32Step, kPlacesApart = kThreads / kSmallTile;
    int beside = o.lies_along ? kFloat32Step : kSmallTile;
    Reg near = p_.r("and.b32", thread_, beside - 1), far = p_.r("div.u32", thread_, beside);
    const Reg &row = o.lies_along ? far : near, &place = o.lies_along ? near : far;
    Read out;
    out.row = p_.r("add.u32", o.row, row);
    out.rows = o.rows;
    out.place = place;
    out.at = p_.d("mad.lo.s64", wide(out.row), o.step, p_.d("mad.lo.s64", wide(place), o.along, o.start));
    out.rows_apart = o.lies_along ? kRowsApart : 0;
    out.places_apart = o.lies_along ? 0 : kPlacesApart;
    out.staged_apart = out.rows_apart * kStagedRow + out.places_apart * 4;
    out.apart = o.lies_along ? p_.d("mul.lo.s64", o.step, kRowsApart) : p_.d("mul.lo.s64", o.along, kPlacesApart);
    out.step = p_.d("mul.lo.s64", o.along, kFloat32Step);
    out.staged = p_.r("mad.lo.u32", row, kStagedRow, p_.r("mad.lo.u32", place, 4, shared_));
    if (offset) out.staged = p_.r("add.u32", out.staged, offset);
    out.values = p_.fresh('f', kEach);
    return out;
  }
  // Zeros where there is nothing.
  void load(Read& o) {
    Reg place = p_.r("add.u32", o.place, first_), at = o.at;
    for (int i = 0; i < kEach; ++i) {
      if (i) at = p_.d("add.s64", at, o.apart);
      Reg own = p_.r("add.u32", o.row, i * o.rows_apart), own_place = p_.r("add.u32", place, i * o.places_apart);
      Reg inside = p_.p("setp.lt.u32", own, o.rows);
      inside = p_.p("setp.lt.and.u32", own_place, inner_, inside);
      const Reg& value = o.values[static_cast<size_t>(i)];
      p_.op("mov.f32", value, number(0));
      p_.op(str("@", inside, " ld.global.f32"), value, str("[", at, "]"));
    }
    p_.op("add.s64", o.at, o.at, o.step);
  }
  void stage(const Read& o) {
    for (int i = 0; i < kEach; ++i)
      p_.op("st.shared.f32", str("[", o.staged, "+", i * o.staged_apart, "]"), o.values[static_cast<size_t>(i)]);
  }

  // Four rows of a lane and eight columns.
  void multiply_staged() {
    constexpr int kOfWarp = kFloat32Step / kFloat32Warps, kTogether = 4;
    Reg warp = p_.r("mad.lo.u32", warp_, 4 * kOfWarp, shared_);
    Reg left = p_.r("mad.lo.u32", group_, kStagedRow, warp), right = p_.r("mad.lo.u32", beside_, kStagedRow, warp);
    for (int k = 0; k < kOfWarp; k += kTogether) {
      auto chunk = [&](const Reg& at, int offset) {
        Regs out = p_.fresh('f', kTogether);
        p_.op("ld.shared.v4.f32", braces(out), str("[", at, "+", offset + 4 * k, "]"));
        return out;
      };
      std::vector<Regs> a, b;
      for (int i = 0; i < 4; ++i) a.push_back(chunk(left, 8 * i * kStagedRow));
      for (int j = 0; j < 8; ++j) b.push_back(chunk(right, kStaged + 4 * j * kStagedRow));
      for (size_t e = 0; e < kTogether; ++e)
        for (size_t i = 0; i < a.size(); ++i)
          for (size_t j = 0; j < b.size(); ++j) {
            const Reg& sum = sums_[i * b.size() + j];
            p_.op("fma.rn.f32", sum, a[i][e], b[j][e], sum);
          }
    }
  }
  Place place_of(int s) const override { return {s / 8 * 8, s % 8 * 4}; }
  int columns_apart() const override { return 1; }

  Reg inner_, first_;  // of the sum: its length, and what of it is loaded next
};

}  // namespace

WrittenKernel small_product_kernel(const SmallProductKind& kind) {
  if (is_reduced_floating(kind.operands)) return ReducedKernel(kind).write();
  return FloatKernel(kind).write();
}

}  // namespace brasa::runtime::cuda
