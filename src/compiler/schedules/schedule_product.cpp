#include "compiler/schedules/schedule_product.h"

#include <algorithm>
#include <optional>

#include "compiler/fusion/places.h"
#include "compiler/lowering/expressions.h"
#include "compiler/lowering/lower.h"
#include "compiler/passes/contraction.h"
#include "compiler/passes/words.h"

namespace brasa::compiler {

namespace {

// What a core keeps of a product's operands, and of the rows of a task, beside two panels.
constexpr int64_t kSecondCache = 1 << 20, kRowsInCache = kSecondCache / 2;
// So many tiles of rows share a panel in any case: what comes from beyond the second cache, the panel first of all, takes little of their time
// then, while their own rows are long, and memory sends these ahead.
constexpr int kSharing = 32;
// Of a product with an unknown number of columns, as many are a task's.
constexpr int64_t kUnknownPanels = 16;
// Tasks for each thread before blocks of rows are as large as the second cache has room for.
constexpr int kTasks = 4;
// Tasks for each thread of which the last one is a small part: threads that begin together end about together.
constexpr int64_t kEvenTasks = 32;
// Tiles of rows for which a panel is read from beyond the second cache are at least so many.
constexpr int64_t kRowsOfFarPanel = 16;
// Numbers of a sum that are spelled out where their places are uneven.
constexpr int64_t kSpelledOut = 16;

class Product {
 public:
  Product(const Group& g, const Machine& m) : g_(g), m_(m) {}

  ProductSchedule run() {
    contraction();
    return {std::move(s_), work_};
  }

 private:
  void contraction() {
    const Node* dot = nullptr;
    for (const Node* n : g_.graph->nodes())
      if (prim_of(n) == Prim::Dot) dot = n;
    const ir::Shape& shape = dot->types[0].shape;
    size_t batched = shape.size() - 2;
    Expr m = shape[batched], n = shape.back(), batch = batched ? shape[0] : Expr(1);
    const ir::Shape& rows = type_of(dot->arg<Value>(0)).shape;
    size_t sums = rows.size() - batched - 1;
    Expr k(1);
    for (size_t d = batched + 1; d < rows.size(); ++d) k = k * rows[d];
    Value first = dot->arg<Value>(0), second = dot->arg<Value>(1);
    if (m_.tiles && sums == 1 && in_tiles(second, batched + 1, batched)) return matrix_tiles(m, n, k, batch, first);
    ContractionTile tile = contraction_tile(m, n, type_of(first).dtype, m_);
    if (auto few = few_columns(second, n, tile, batched, sums))
      tile = contraction_tile(m, *few, type_of(first).dtype, m_);
    Steps a = steps_of(first, batched, batched + 1, sums, tile.rows),
          b = steps_of(second, batched + sums, batched, sums, tile.columns());
    auto by_one = [](const std::optional<Expr>& step) { return step && step->is(1); };
    if (of_words(second)) s_.neighbours = neighbours_of_a_step(first, m_);
    bool words = s_.neighbours > 1, panels_of_b = words || (b.along_k && b.along_k->is(tile.columns()));
    // Only few rows would not be worth panels: long pieces of b's rows arrive sooner, and by few passes over it.
    bool few_rows = !m.is_constant() || (m.constant() < kPackingRows && !n.is_constant());
    if (!panels_of_b && !by_one(b.along_k) && few_rows) {
      const int registers = m_.vector_registers;
      tile.rows = static_cast<int>(evenly(m.is_constant() ? m.constant() : 2, registers >= 32 ? 8 : 4));
      tile.vectors = n.is_constant() ? static_cast<int>(evenly(ceildiv(n, tile.lanes).constant(), 6)) : 6;
      while (tile.vectors > 1 && tile.rows * tile.vectors + std::min(tile.rows, tile.vectors) >= registers)
        --tile.vectors;
      // Where tiles fill the columns, none asks for their end.
      for (int v = tile.vectors; v > 1; --v)
        if (provably_divisible(n, int64_t{v} * tile.lanes)) {
          tile.vectors = v;
          break;
        }
      // Sums side by side that hide an addition's latency.
      constexpr int kEnough = 8;
      if (!m.is_constant()) tile.rows = std::max(tile.rows, kEnough / (tile.vectors * tile.rows) * tile.rows);
    }
    // Neighbouring columns make a vector, unless they fill little of it: of windows that overlap what is summed lies side by side, too.
    bool narrow_columns = n.is_constant() && n.constant() <= tile.lanes / 2;
    bool along_k = by_one(a.along_k) && (a.across || sums > 1) && by_one(b.along_k) &&
                   (!by_one(b.across) || narrow_columns) && b.across != Expr(0);
    if (along_k && !m_.one_order) {
      s_.along_k = true;
      tile.rows = m_.vector_registers >= 32 ? 4 : 2;  // one more row of 16 registers goes to memory in each step
      if (m.is_constant()) tile.rows = static_cast<int>(std::clamp<int64_t>(m.constant(), 1, tile.rows));
      tile.vectors = n.is_constant() ? static_cast<int>(evenly(n.constant(), 4)) : 4;
    }
    s_.rows = tile.rows;
    s_.vectors = tile.vectors;
    s_.width = tile.lanes;
    if (!s_.along_k && n.is_constant()) s_.rest = rest_of(tile, n.constant());
    // Sums that are the result go to memory from registers, but through masks, where a tile is kept in between.
    s_.stage_tile = s_.along_k || !is_result(dot) || !(s_.rest || provably_divisible(n, tile.columns()));
    s_.k_unroll = s_.long_step() || s_.along_k || (k.is_constant() && k.constant() / s_.neighbours % 2) ? 1 : 2;
    // Few numbers are places each by itself, where each place is found by divisions.
    if (!b.along_k && sums == 1 && !words && k.is_constant() && k.constant() > 1 && k.constant() <= kSpelledOut)
      s_.k_unroll = static_cast<int>(k.constant());
    // Narrow floats are widened a vector at a time on the way, which takes as long for one of them by itself.
    bool narrow =
        !words && !s_.along_k && is_floating(type_of(first).dtype) && size_of(type_of(unwidened(first)).dtype) < 4;
    s_.stage_rows = sums == 1 && (!a.along_k || (!a.across && !by_one(a.along_k)) || narrow);
    if (words) s_.stage_rows = !of_words(first) && (s_.stage_rows || !a.along_k->is(1) || a.converted);
    auto size = [](Expr e, int64_t unknown) { return e.is_constant() ? std::max<int64_t>(e.constant(), 1) : unknown; };
    int64_t blocks = (size(m, 512) + tile.rows - 1) / tile.rows, columns = s_.along_k ? tile.vectors : tile.columns(),
            panels = (size(n, 512) + columns - 1) / columns - (s_.rest > 0);
    int64_t tasks = size(batch, 1) * blocks, enough = 16 * m_.threads;
    // A panel that fits in the first cache is used for several rows; a task has all panels of its rows.
    int64_t bytes = size_of(type_of(second).dtype), row_bytes = tile.rows * size(k, 512) * bytes,
            in_cache = std::max<int64_t>(kRowsInCache / row_bytes, kSharing);
    // Where all panels stay in the second, several results, as a weight's updates, are made along their rows, which memory sends ahead.
    bool along_rows = g_.graph->outputs().size() > 1 && size(k, 512) * size(n, 512) * bytes <= kSecondCache / 2;
    s_.row_blocks = s_.stage_rows || along_rows ? 1 : static_cast<int>(std::clamp<int64_t>(tasks / enough, 1, 6));
    // One that comes from beyond the second cache is used for all rows that this has room for.
    if (!s_.stage_rows && size(k, 512) * size(n, 512) * bytes > kSecondCache) {
      int64_t most = std::clamp<int64_t>(in_cache, s_.row_blocks, blocks), parts = (blocks - 1) / most + 1;
      int64_t even = (kEvenTasks * m_.threads - 1) / (size(batch, 1) * panels) + 1;
      parts = std::max(parts, std::min(even, blocks / kRowsOfFarPanel));
      s_.row_blocks = static_cast<int>((blocks - 1) / parts + 1);  // evenly
      s_.next_panel = panels_of_b && panels > 1 && s_.row_blocks > 1;
    }
    int64_t in_block = s_.row_blocks;
    // Where sizes are unknown, that is found when they are there.
    if (!s_.stage_rows && !(m.is_constant() && n.is_constant() && k.is_constant())) {
      constexpr int kMostBlocks = 128;
      s_.row_blocks = kMostBlocks;
      s_.row_bytes = kRowsInCache;
      s_.row_least = kSharing;
      s_.row_pieces = kTasks * m_.threads;
      s_.next_panel = panels_of_b;
      in_block = std::clamp<int64_t>(std::min(in_cache, tasks / s_.row_pieces), 1, kMostBlocks);
    }
    // Columns are parts of tasks before threads would wait for the last of few, but where the rows would be made for each part.
    tasks = size(batch, 1) * ((blocks + in_block - 1) / in_block);
    int64_t wanted = s_.stage_rows || !n.is_constant() ? enough : kEvenTasks * m_.threads;
    int64_t pieces = std::clamp<int64_t>((wanted + tasks - 1) / std::max<int64_t>(tasks, 1), 1, panels);
    s_.panel_blocks = static_cast<int>(n.is_constant() ? std::max<int64_t>(panels / pieces, 1) : kUnknownPanels);
    work_ = static_cast<double>(in_block * tile.rows) * static_cast<double>(size(n, 512)) /
            static_cast<double>(pieces) * static_cast<double>(size(k, 512)) / tile.lanes;
  }

  // Whether nothing follows the product.
  bool is_result(const Node* dot) const {
    const auto& outputs = g_.graph->outputs();
    return outputs.size() == 1 && outputs[0].value.node == dot;
  }

  // Parts of at most so many, each as large as the others.
  static int64_t evenly(int64_t all, int64_t most) {
    int64_t parts = std::max<int64_t>(1, (all + most - 1) / most);
    return std::max<int64_t>(1, (all + parts - 1) / parts);
  }

  // Of an unknown number of columns: so many at most, where panels of them are no wider than one of the tile and a vector.
  std::optional<Expr> few_columns(Value second, Expr n, const ContractionTile& tile, size_t batched, size_t sums) {
    if (n.is_constant()) return {};
    std::optional<Words> words = words_of(second, {});
    auto width = words ? type_of(words->value).shape.back()
                       : steps_of(second, batched + sums, batched, sums, tile.lanes).along_k;
    bool few = width && width->is_constant() && width->constant() <= tile.columns() + tile.lanes &&
               width->constant() % tile.lanes == 0;
    return few ? width : std::nullopt;
  }

  // Rows are copied to tiles once for all panels of a task; as many as the second cache keeps beside what passes by. A panel is read
  // for all of them.
  void matrix_tiles(Expr m, Expr n, Expr k, Expr batch, Value first) {
    constexpr int64_t kBytesOfRows = 1 << 20, kMostBlocks = 16;
    ContractionTile tile = matrix_tile(m, n);
    s_.matrix_tiles = true;
    s_.rows = tile.rows;
    s_.vectors = tile.vectors;
    s_.width = tile.lanes;
    auto size = [](Expr e) { return e.is_constant() ? std::max<int64_t>(e.constant(), 1) : 512; };
    int64_t block_bytes = tile.rows * size(k) * size_of(type_of(unwidened(first)).dtype);
    int64_t blocks = (size(m) + tile.rows - 1) / tile.rows, panels = (size(n) + tile.columns() - 1) / tile.columns();
    // Fewer rows before parts of a row of panels, for each of which the rows would be copied.
    s_.row_blocks = kMostBlocks;
    s_.row_bytes = kBytesOfRows;
    s_.row_pieces =
        static_cast<int>(m.is_constant() ? std::max<int64_t>(1, kTasks * m_.threads / size(batch)) : kTasks);
    int64_t in_piece =
        std::clamp<int64_t>(std::min(kBytesOfRows / block_bytes, blocks / s_.row_pieces), 1, kMostBlocks);
    int64_t tasks = (blocks + in_piece - 1) / in_piece;
    int64_t pieces = std::clamp<int64_t>(m_.threads / (tasks * size(batch)), 1, panels);
    s_.panel_blocks = static_cast<int>(n.is_constant() ? (panels + pieces - 1) / pieces : kUnknownPanels);
    work_ = static_cast<double>(in_piece * tile.rows) * static_cast<double>(s_.panel_blocks * tile.columns()) *
            static_cast<double>(size(k)) / 256;
  }

  // How far apart the elements of an operand are in memory along the last dimension that is summed over and, within a tile of so
  // many, along the one that is kept; nothing where such steps, or those along other sums, are uneven, or where there is work on the
  // way from memory.
  struct Steps {
    std::optional<Expr> along_k, across;
    bool converted = false;
  };
  Steps steps_of(Value v, size_t kept, size_t first_k, size_t sums, int64_t tile) {
    Index at = probe(type_of(v).shape);
    auto next = static_cast<uint32_t>(kProbeRange + at.size());
    const Index along(at.begin() + static_cast<int64_t>(first_k), at.begin() + static_cast<int64_t>(first_k + sums));
    Expr within = Expr::range(next, tile);
    at[kept] = Expr::range(next + 1, ceildiv(type_of(v).shape[kept], tile)) * tile + within;
    Steps out;
    for (; is_view(prim_of(v)) || converts(v.node); v = v.node->arg<Value>(0)) {
      out.converted |= converts(v.node) && unwidened(v) == v;
      if (!converts(v.node)) at = view_index(v.node, at);
    }
    if (prim_of(v) != Prim::Input) return {};
    Expr place = place_in(*g_.graph, v, at);
    out.along_k = coefficient(place, along.back());
    out.across = coefficient(place, within);
    for (Expr k : along)
      if (!coefficient(place, k)) out.along_k.reset();
    return out;
  }

  const Group& g_;
  const Machine& m_;
  Schedule s_;
  double work_ = 1;
};

}  // namespace

ProductSchedule schedule_product(const Group& group, const Machine& machine) { return Product(group, machine).run(); }

}  // namespace brasa::compiler
