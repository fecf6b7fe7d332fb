#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>

#include "compiler/fusion/filled_parts.h"
#include "compiler/fusion/places.h"
#include "compiler/fusion/values_in_memory.h"
#include "compiler/loops/math.h"
#include "compiler/lowering/lower.h"
#include "compiler/schedules/axes.h"
#include "compiler/schedules/schedule_product.h"

// Schedules for a CPU: vectors inside, threads outside, tiles in registers.
namespace brasa::compiler {

namespace {

// One parallel iteration should take about this many simple instructions, to be worth its start.
constexpr int64_t kPieceWork = 8192;
// Starting another thread costs a few thousand instructions.
constexpr double kTask = 30000;
// An element that is fetched by itself, whether or not by a vector instruction.
constexpr double kStridedWork = 4;
// Elements along a side of a tile: of most types a few cache lines.
constexpr int64_t kTile = 32;
// A scatter's updates are read once for each piece of their rows, and memory sends the next lines of a long piece ahead. Threads share pieces.
constexpr int64_t kScatterBytes = 65536, kSharedScatterBytes = 1024;
constexpr int64_t kScatterLines = 8;
// Elements of a window that is worth a copy of the body for each, and of one whose neighbours read the same ones.
constexpr int64_t kTaps = 25, kSharedTaps = 49;
// Lanes of vectors that are transposed in registers.
constexpr int kMostTransposed = 16;
// A body that may be spelled out for each lane of a vector, without what fetches its elements.
constexpr double kShortBody = 5;
// Bytes that memory reads and writes at once, and a piece of so many of them is long.
constexpr int64_t kLine = 64, kLines = 4;
// Vectors of picked places for one parallel iteration.
constexpr int64_t kPicked = 16;
// Elements of a few pages, at whose ends memory stops sending ahead.
constexpr double kPages = 2048;
// Sums side by side along an axis, where their order follows from its extent: as many as the lanes of the widest vectors.
constexpr int kChains = 16;
// Recomputing less than this in a later pass is cheaper than keeping it.
constexpr int kStageWork = 8;

class Scheduler {
 public:
  Scheduler(const Group& g, const Machine& m) : g_(g), m_(m) {}

  Schedule run() {
    switch (g_.kind) {
      case GroupKind::Contraction: {
        ProductSchedule product = schedule_product(g_, m_);
        s_ = std::move(product.schedule);
        work_ = product.work;
        break;
      }
      case GroupKind::Scatter: scatter(); break;
      case GroupKind::Library: return {};
      default: {
        s_.width = std::max(1, m_.lanes(element_bytes()));
        MergedAxes merged = merged_axes(g_, s_.width, m_.one_order);
        if (m_.one_order && g_.domain.has_reduced()) s_.chains = kChains;
        s_.axes = std::move(merged.axes);
        vector_ = merged.vector;
        strided_ = merged.strided;
        reversed_ = merged.reversed;
        gathered_ = merged.gathered;
        neighbours_ = merged.neighbours;
        again_ = merged.again;
        row_ = merged.row;
        continued_ = merged.continued;
        shared_ = merged.shared;
        rows_ = merged.rows;
        picked_once_ = merged.picked_once;
        if (merged.interleaved) {
          Axis& pieces = s_.axes[*merged.interleaved];
          pieces.spelled_out = pieces.extent.constant();
          if (neighbours_ == merged.interleaved) neighbours_.reset();
        }
        loops();
      }
    }
    s_.grain = static_cast<int64_t>(std::clamp(kTask / std::max(work_, 1.0), 1.0, 1e9));
    s_.beside = static_cast<int64_t>(std::ceil(std::min(16 * kTask * m_.threads / work_, 1e15)));
    return std::move(s_);
  }

 private:
  // Bytes of the widest elements that are computed with, operands too: a comparison gives bools, of numbers. 64-bit integers
  // count as 4, so that vectors of floats with their places stay whole. Numbers of rank 0 are in no vector.
  int64_t element_bytes() {
    int64_t bytes = 1;
    int in_doubles = 0, otherwise = 0;
    const std::vector<bool> decided = decided_by_places();
    auto computed = [&](DType t) {
      if (is_floating(t)) bytes = std::max<int64_t>(bytes, std::max<int64_t>(size_of(t), 4));
      if (is_integral(t)) bytes = std::max<int64_t>(bytes, size_of(t) == 8 ? 4 : size_of(t));
    };
    for (const Node* n : g_.graph->nodes()) {
      Prim p = prim_of(n);
      // Places are compared with the bounds: of sums those of each lane, else in vectors that lie across a bound alone.
      if (p == Prim::Pad && g_.domain.has_reduced() && !sums_parts()) computed(DType::Int64);
      if ((p != Prim::Pointwise && !is_reduction(p) && p != Prim::Scan) || decided[n->id]) continue;
      if (n->types[0].rank() > 0) computed(n->types[0].dtype);
      // Wider vectors of what is computed in doubles, or divided number by number, are longer code, not faster code, unless there is more to do.
      ops::ScalarOp op = ops::row_of(*n).scalar;
      if ((computes_in_double(op) || op == ops::ScalarOp::Div) && is_integral(n->types[0].dtype)) return 8;
      (computes_in_double(op) ? in_doubles : otherwise) += work_of(n);
      n->for_each_input([&](Value v) {
        if (type_of(v).rank() > 0) computed(type_of(v).dtype);
      });
    }
    if (in_doubles > otherwise) return 8;
    if (bytes > 1) return bytes;
    for (const ir::Output& o : g_.graph->outputs()) bytes = std::max<int64_t>(bytes, size_of(type_of(o.value).dtype));
    return bytes;
  }

  // By node: what only answers questions about places. Between borders the answers are the same for all lanes, and no vector is compared.
  std::vector<bool> decided_by_places() const {
    const auto& nodes = g_.graph->nodes();
    std::vector<bool> of_places(nodes.size()), computed(nodes.size());
    for (const Node* n : nodes) {
      Prim p = prim_of(n);
      bool all = is_leaf(p) || p == Prim::Pointwise || is_view(p);
      n->for_each_input([&](Value v) { all = all && of_places[v.node->id]; });
      of_places[n->id] = all && !g_.domain.has_reduced();
    }
    for (const ir::Output& o : g_.graph->outputs()) computed[o.value.node->id] = true;
    for (size_t i = nodes.size(); i-- > 0;) {
      if (of_places[i] && !computed[i]) continue;
      nodes[i]->for_each_input([&](Value v) {
        if (type_of(v).dtype != DType::Bool) computed[v.node->id] = true;
      });
    }
    for (size_t i = 0; i < nodes.size(); ++i) of_places[i] = of_places[i] && !computed[i];
    return of_places;
  }

  // Of the results' elements.
  int64_t least_bytes() const {
    int64_t least = 8;
    for (const ir::Output& o : g_.graph->outputs()) least = std::min<int64_t>(least, size_of(type_of(o.value).dtype));
    return least;
  }

  // Loops end where what is summed in parts does.
  bool sums_parts() const {
    for (size_t d = 0; d < g_.domain.dims.size(); ++d)
      if (g_.domain.reduced[d] && filled_parts(g_, d)) return true;
    return false;
  }

  double work_per_element() {
    double work = 1;
    for (const Node* n : g_.graph->nodes()) {
      Prim p = prim_of(n);
      if (p == Prim::Pointwise)
        work += once_a_sum(g_, n) ? 0 : work_of(n);
      else if (!is_view(p) && !is_leaf(p))
        work += 2;
    }
    return work / 8 + strided_ * kStridedWork + reversed_;  // a vector's worth at a time
  }

  // Of one value of an element.
  int longest_work() const {
    int longest = 0;
    for (const Node* n : g_.graph->nodes())
      if (prim_of(n) == Prim::Pointwise && !once_a_sum(g_, n)) longest = std::max(longest, work_of(n));
    return longest;
  }

  // Elements take one random number each, so that neighbours can share blocks of the generator.
  bool draws_once() const {
    const ir::Op* philox = &ops::row_of(ops::ScalarOp::Philox);
    return std::count_if(g_.graph->nodes().begin(), g_.graph->nodes().end(),
                         [&](const Node* n) { return n->op == philox; }) == 1;
  }

  // A size, or a number that is no window's: what is computed from sizes may be as short as one.
  static bool is_long(Expr extent) {
    if (extent.is_constant()) return extent.constant() > kTaps;
    return ir::is_symbol(extent) ||
           (extent->kind == ir::ExprKind::Mul && std::all_of(extent->args.begin(), extent->args.end(), ir::is_symbol));
  }

  // How many elements an axis is thought to have: the more, the more dimensions of unknown size it consists of, as planes do.
  static double size(Expr extent) {
    constexpr double kUnknown = 256, kOther = 4;
    if (extent.is_constant()) return static_cast<double>(std::max<int64_t>(extent.constant(), 1));
    if (extent->kind != ir::ExprKind::Mul) return kUnknown;
    return kUnknown * std::pow(kOther, static_cast<double>(extent->args.size() - 1));
  }

  bool has_borders() const {
    const auto& nodes = g_.graph->nodes();
    return std::any_of(nodes.begin(), nodes.end(),
                       [](const Node* n) { return prim_of(n) == Prim::Pad || prim_of(n) == Prim::Concat; });
  }

  bool rows_of_unknown_length(const Axis& last) const {
    return !last.extent.is_constant() && !s_.vector_outside && vector_ > 0;
  }

  void loops() {
    double each = work_per_element();
    if (s_.axes.empty()) {
      work_ = each;
      return;
    }
    Axis& last = s_.axes[vector_];
    auto folded = [&](const Axis& a) { return g_.domain.folds(a.first); };
    bool reducing = std::any_of(s_.axes.begin(), s_.axes.end(), folded);
    last.kind = Axis::Vector;
    double inside = 1;      // elements of one parallel iteration
    Expr taps(1), most(1);  // elements of a sum, and along its longest dimension
    for (Axis& a : s_.axes)
      if (folded(a) && &a != &last) {
        a.kind = Axis::Serial;
        inside *= size(a.extent);
        taps = taps * a.extent;
        most = max(most, a.extent);
      }
    // Places that a vector picked serve all elements along this axis.
    if (picked_once_) {
      s_.axes[*picked_once_].kind = Axis::Serial;
      inside *= size(s_.axes[*picked_once_].extent);
    }
    s_.vector_outside = (reducing && !folded(last)) || picked_once_;
    bool running = folded(last) && !last.reduced;  // a scan from lane to lane
    if (running && m_.one_order) s_.width = 1;
    constexpr double kLong = 40, kMedium = 2, kShort = 1,
                     kLongStep = 100;  // a long body's copies take longer to compile
    // Several vectors side by side are enough for a loop's end, but for the shortest bodies. Sums behind the vector axis have few elements,
    // often along several axes: copies of copies would be long code.
    if (s_.vector_outside && each <= kShort && vector_ + 1 == s_.axes.size()) s_.serial_unroll = 2;
    // All of a small window's are spelled out, so that a loop's end comes once for each vector.
    bool small_window = taps.is_constant() && taps.constant() <= (again_ && again_->step > 0 ? kSharedTaps : kTaps);
    if (s_.vector_outside && each <= kLong && small_window) s_.serial_unroll = static_cast<int>(most.constant());
    // Bodies as long as a few exponentials fill the processor by themselves, while their copies compete for registers; a
    // reduction's chain of additions gains for longer. Elements that are fetched one by one keep it busy, too.
    constexpr double kFills = 4, kFillsReducing = 8;
    // Long sums down columns read as many neighbours of each row as registers have room for: memory sends whole pieces of rows ahead. Of longer
    // bodies, without functions that need registers of their own, these are a few lines.
    bool long_columns = s_.vector_outside && !g_.domain.scanned && is_long(taps);
    bool fills = gathered_ || running || each > (reducing ? kFillsReducing : kFills);
    int copies = fills ? 1 : long_columns && each <= kShort ? 8 : reducing ? 4 : 2;
    if (long_columns && each <= kMedium && longest_work() < kStageWork)
      copies = std::max(copies, static_cast<int>(kLines * kLine / (s_.width * element_bytes())));
    // Between borders a step is a whole one where all its vectors are: single vectors leave few at the borders of rows that may be short.
    if (!reducing && rows_of_unknown_length(last) && has_borders()) copies = 1;
    if (draws_once() && each <= kLong) copies = std::clamp(64 / s_.width, 1, 8);    // that share their blocks
    Expr along = s_.chains > 0 && last.reduced ? s_.chains_of(last) : last.extent;  // of the vector loop
    if (transposes(each)) s_.width = std::min(s_.width, kMostTransposed);
    // Of a short axis all lies in a vector of fewer lanes, which needs no mask where it is full.
    if (along.is_constant() && along.constant() > 0 && along.constant() < s_.width && !folded(last)) {
      auto lanes = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(along.constant())));
      // Without mask registers to write a part of a vector takes longer than a few whole ones.
      if (m_.vector_registers < 32 && !neighbours_ && each <= kShort) {
        lanes = 1 << std::countr_zero(static_cast<uint64_t>(along.constant()));
        copies = static_cast<int>(along.constant()) / lanes;
      }
      if (!neighbours_ || (transposes(each) && lanes >= fewest_transposed())) s_.width = lanes;
    }
    if (along.is_constant()) copies = static_cast<int>(std::clamp<int64_t>(along.constant() / s_.width, 1, copies));
    // A step of whole rows, in which the places of all lanes are known; a long body finds them by divisions.
    if (row_) copies = static_cast<int>(row_ / std::gcd(row_, int64_t{s_.width}));
    if (row_ && copies * each > kLongStep) copies = 1;
    s_.unroll = copies;
    if (rows_ && !fills && s_.chains == 0) several_rows(s_.axes[*rows_], inside);
    // Results that take the same operands stand beside each other, and these are read once.
    if (shared_ && !neighbours_ && !row_ && s_.axes[*shared_].extent.constant() * each <= kLong) {
      Axis& results = s_.axes[*shared_];
      results.piece = results.spelled_out = results.extent.constant();
      inside *= static_cast<double>(results.piece);
      s_.unroll = 1;
    }
    bool shared = s_.serial_unroll > 1 && small_window && share_windows(last, each, inside);
    if (!folded(last)) {
      int64_t step = int64_t{s_.width} * s_.unroll;
      // Pieces of several rows are long enough for memory to send ahead. Long ones begin with lines of memory, as far as rows do.
      double elements = kPieceWork / each / inside;
      if (rows_of_unknown_length(last)) elements = std::max(elements, std::min(kPages, 4 * elements));
      int64_t lines = std::lcm(step, kLine / least_bytes()), unit = elements >= kLines * lines ? lines : step,
              piece = std::max(step, static_cast<int64_t>(elements) / unit * unit);
      // Long sums go down their columns a vector at a time, and what fetches its elements finds their places once for many rows. Small windows
      // go along rows, whose next elements memory sends ahead.
      bool along_rows = small_window && !gathered_;
      if (s_.vector_outside && !along_rows) piece = step * (picked_once_ ? kPicked : 1);
      // The places of what is shared are found once for several vectors.
      constexpr int64_t kSharing = 8;
      if (shared) piece = std::max(piece, kSharing * s_.width / step * step);
      if (neighbours_ && !reducing) piece = in_square_tiles(last, step, each, inside);
      if (!last.extent.is_constant() || last.extent.constant() >= 2 * piece) last.piece = piece;
      inside *= last.piece ? static_cast<double>(last.piece) : size(last.extent);
    } else {
      inside *= size(last.extent);
    }
    // Rows of unknown length may be short: a few make a parallel iteration, which is found by divisions. More do where borders are found, too.
    if (last.piece && rows_of_unknown_length(last)) {
      const int64_t count = has_borders() ? 16 : 8;
      Axis& rows = s_.axes[vector_ - 1];
      bool many = !rows.extent.is_constant() || rows.extent.constant() >= 2 * count;
      if (rows.kind == Axis::Parallel && !rows.spelled_out && !rows.piece && many) {
        rows.piece = count;
        inside *= static_cast<double>(count);
      }
    }
    bool in_order = !last.piece && !reducing && follow_memory(last, inside);
    // Short rows: several for one parallel iteration, all of an axis before some of the one around it. Sums inside of vectors read
    // again what the row before read.
    bool short_rows = (!last.piece && !in_order) || s_.vector_outside;
    for (size_t i = s_.axes.size(); short_rows && i-- > 0 && inside * each < kPieceWork / 2;) {
      Axis& rows = s_.axes[i];
      bool several = (again_ && again_->axis == i) || rows_ == i;  // side by side
      if (rows.kind != Axis::Parallel || (rows.spelled_out && !several)) continue;
      int64_t unit = std::max<int64_t>(rows.spelled_out, 1), piece = static_cast<int64_t>(kPieceWork / (inside * each));
      int64_t units = rows.extent.is_constant() ? rows.extent.constant() / unit : 0,
              count = (units + piece - 1) / piece;
      if (count) piece = (units + count - 1) / count;
      rows.piece = piece * unit;
      inside *= static_cast<double>(piece);
      if (count != 1) break;
    }
    work_ = inside * each;
    if (reducing && last.reduced) choose_stages();
  }

  // Memory sends more of several rows at once than of one, and what all of them are multiplied by is read once for them.
  void several_rows(Axis& rows, double& inside) {
    constexpr int64_t kRows = 4;
    if (rows.kind != Axis::Parallel || (rows.extent.is_constant() && rows.extent.constant() < kRows)) return;
    rows.piece = rows.spelled_out = kRows;
    inside *= static_cast<double>(kRows);
    s_.unroll = std::max(1, s_.unroll / 2);
  }

  // Elements are read along an axis that is not the one of vectors, by a short body.
  bool transposes(double each) const { return neighbours_ && each - strided_ * kStridedWork <= kShortBody; }
  int fewest_transposed() { return element_bytes() == 8 ? 4 : 8; }

  // A transposition in square tiles, whose lines stay in the first cache until all of them is read: the piece of the vector axis.
  int64_t in_square_tiles(const Axis& last, int64_t step, double each, double& inside) {
    Axis& rows = s_.axes[*neighbours_];
    rows.piece = kTile;
    // As many vectors as they have lanes are read along the rows, and transposed in registers.
    auto fills_vectors = [&](const Axis& a) {
      return !a.extent.is_constant() || a.extent.constant() >= kTile || a.extent.constant() % s_.width == 0;
    };
    if (s_.width >= fewest_transposed() && transposes(each) && fills_vectors(last)) {
      if (fills_vectors(rows))
        rows.spelled_out = s_.width;
      else if (is_part_of_vectors(rows))
        rows.spelled_out = rows.extent.constant();
      if (rows.spelled_out) s_.unroll = 1;
    }
    inside *= static_cast<double>(rows.extent.is_constant() ? std::min(rows.extent.constant(), kTile) : kTile);
    return std::max<int64_t>(step, kTile);
  }

  // Of few neighbours, as the taps of a kernel, a vector is read through a mask, where that costs nothing, or as many as fill vectors, while
  // few are left to be fetched one by one. Lanes that lie near each other are in few vectors anyway.
  bool is_part_of_vectors(const Axis& rows) const {
    bool masks = m_.vector_registers >= 32;
    int64_t count = rows.extent.constant(), few = s_.width / 4;
    return gathered_ > 0 && (count < s_.width ? masks && count >= few : count % s_.width < few);
  }

  // Small windows side by side that read some elements again: as many as registers hold, with what they read of one row. A few registers more go to
  // memory, where all that is read lies anyway.
  bool share_windows(const Axis& last, double each, double& inside) {
    constexpr int64_t kEnough = 8;  // sums that hide an addition's latency
    if (!again_ || gathered_ || s_.chains > 0) return false;
    Axis& places = s_.axes[again_->axis];
    bool known = places.extent.is_constant();
    if ((!known && !again_->repeats) || places.kind != Axis::Parallel) return false;
    int64_t held = m_.vector_registers * 5 / 4, most = known ? std::min(places.extent.constant(), kEnough) : kEnough,
            count = std::min(most, (held - again_->taps + again_->step) / (1 + again_->step));
    const int64_t many = count;
    while (count > 1 && known && places.extent.constant() % count != 0) --count;
    bool again = again_->repeats && (!known || count < many / 2);
    if (again) count = many;
    if (count <= 1) return false;
    places.piece = places.spelled_out = count;
    places.again = again;
    // Of rows of unknown length, too, an iteration takes some at once.
    constexpr double kShortRow = 32;
    if (!known)
      places.piece *= std::max<int64_t>(
          1, static_cast<int64_t>(kPieceWork / 2 / (each * inside * static_cast<double>(count) * kShortRow)));
    inside *= static_cast<double>(places.piece);
    s_.unroll = std::max(1, static_cast<int>(kEnough / count));
    if (last.extent.is_constant())
      s_.unroll = static_cast<int>(std::clamp<int64_t>(last.extent.constant() / s_.width, 1, s_.unroll));
    return true;
  }

  // What is read behind a short row belongs to another axis, as in panels of a matrix: of some rows as much is read in order as memory
  // sends ahead.
  bool follow_memory(const Axis& last, double& inside) {
    constexpr int64_t kRows = 16, kBytes = 2048, kShortBytes = 512;
    if (!continued_ || *continued_ + 1 >= vector_) return false;
    Axis &beside = s_.axes[*continued_], &rows = s_.axes[vector_ - 1];
    if (!last.extent.is_constant()) return false;
    int64_t bytes = last.extent.constant() * element_bytes();
    if (bytes == 0 || bytes > kShortBytes || rows.spelled_out || beside.spelled_out) return false;
    beside.piece = std::max<int64_t>(kBytes / bytes, 1);
    if (beside.extent.is_constant()) {
      int64_t count = std::max<int64_t>((beside.extent.constant() * bytes + kBytes - 1) / kBytes, 1);
      beside.piece = (beside.extent.constant() + count - 1) / count;
    }
    rows.piece = kRows;
    inside *= static_cast<double>(beside.piece * kRows);
    return true;
  }

  // Values that several passes over a row need, and that cost more than reading them back.
  void choose_stages() {
    const auto& nodes = g_.graph->nodes();
    std::vector<uint64_t> needed = passes_that_need(*g_.graph);
    Expr full = g_.domain.numel();
    auto reduces = [](const Node* n) { return is_reduction(prim_of(n)); };
    std::vector<int> cost(nodes.size());
    for (const Node* n : nodes) {
      Prim p = prim_of(n);
      int c = p == Prim::Input ? 1 : p == Prim::Pointwise ? work_of(n) : 0;
      if (!reduces(n)) n->for_each_input([&](Value v) { c += cost[v.node->id]; });
      bool per_element = n->types[0].numel() == full && !is_leaf(p) && p == Prim::Pointwise;
      bool again = needed[n->id] & (needed[n->id] - 1);
      if (per_element && again && c >= kStageWork) {
        s_.staged.push_back(n->id);
        c = 1;
      }
      if (n->types[0].numel() == g_.domain.rows() && !(full == g_.domain.rows())) c = 0;  // once a row
      cost[n->id] = c;
    }
  }

  // Updates of one place follow each other; what the indices leave free is parallel, the last of it a vector.
  void scatter() {
    s_.before.push_back(schedule(initial_value(g_), m_));
    s_.width = m_.lanes(4);
    int64_t piece = 4 * s_.width, bytes = m_.threads > 1 ? kSharedScatterBytes / m_.threads : kScatterBytes;
    s_.axes = free_axes(g_, piece);
    // Columns of a row; of other dimensions neighbouring pieces share lines.
    bool row = !s_.axes.empty() && s_.axes.back().first + 1 == g_.domain.dims.size();
    if (row) s_.axes.back().piece = std::max(piece, bytes / 4);
    // Vectors add elements that lie far from each other one by one. Of few such lines the first cache holds all that is read and written.
    if (!row && !s_.axes.empty() && work_per_element() <= kShortBody) {
      Axis& last = s_.axes.back();
      last.kind = Axis::Serial;
      last.piece = kScatterLines;
      if (last.extent.is_constant() && last.extent.constant() <= s_.width) {
        last.spelled_out = last.extent.constant();
        last.piece = 0;
      }
    }
    work_ = 1e9;  // as long as there are updates
  }

  const Group& g_;
  const Machine& m_;
  Schedule s_;
  size_t vector_ = 0;                       // the axis for vectors
  int strided_ = 0;                         // places along the vector axis that are not neighbours
  int reversed_ = 0;                        // neighbours that are turned round
  int gathered_ = 0;                        // of these, places that are fetched one by one
  std::optional<size_t> neighbours_;        // the axis along which some of them are
  std::optional<size_t> continued_;         // what lies behind the vector axis is read along this one
  std::optional<MergedAxes::Again> again_;  // see there
  // See there.
  std::optional<size_t> shared_, rows_, picked_once_;
  int64_t row_ = 0;  // the vector axis is rows of so many elements (see MergedAxes)
  double work_ = 1;  // of one parallel iteration, in simple instructions
};

}  // namespace

Schedule schedule_cpu(const Group& group, const Machine& machine) { return Scheduler(group, machine).run(); }

}  // namespace brasa::compiler
