#include <algorithm>

#include "compiler/lowering/lowering.h"
#include "compiler/passes/contraction.h"
#include "compiler/passes/transform.h"
#include "compiler/passes/words.h"
#include "support/error.h"

namespace brasa::compiler {

namespace {

constexpr int64_t kCacheLine = 64;
// About so many lines can be on their way to a core at once.
constexpr int64_t kLinesUnderWay = 64;

// Tiles of rows x columns stay in registers while all of k passes. Rows and columns beyond the end of the result are computed
// from what lies near, and not stored.
class Contraction {
 public:
  Contraction(const Group& g, const Schedule& s) : g_(g), s_(s), l_(g) {
    for (const Node* n : g.graph->nodes())
      if (prim_of(n) == Prim::Dot) dot_ = n;
    const ir::Shape& shape = dot_->types[0].shape;
    batched_ = shape.size() == 3;
    rows_ = shape[shape.size() - 2];
    columns_ = shape.back();
    const ir::Shape& first = type_of(dot_->arg<Value>(0)).shape;
    k_.assign(first.begin() + 1 + batched_, first.end());
  }

  Lowered run() {
    l_.expressions().set_hook([&](Value v, const Index&, Value) -> Value {
      if (v.node != dot_) return {};
      if (!product_) product_ = l_.b().convert(sum(), dot_->types[0].dtype);
      return product_;
    });
    s_.threads ? declare_gpu() : s_.matrix_tiles ? declare_matrix_tiles() : declare();
    store_tile(s_.stage_tile);
    if (s_.rest) {
      declare_rest();
      store_tile(true);
    }
    return l_.finish(s_);
  }

 private:
  void store_tile(bool staged) {
    Expressions& e = l_.expressions();
    if (!s_.threads && !s_.matrix_tiles) prefetch_rows();
    product_ = s_.matrix_tiles ? matrix_tile() : staged ? kept_tile() : Value{};
    bool kept = s_.matrix_tiles || staged;  // its rows end with the result's
    Value mask = e.both(kept || whole_tiles(rows_, s_.rows) ? Value{} : e.within(m_at_, 0, rows_), within_columns());
    Index index = in_batch({m_at_, n_at_});
    for (size_t i = 0; i < g_.graph->outputs().size(); ++i) {
      Value v = g_.graph->outputs()[i].value;
      Index at = member_index(v.node, g_.domain, index);
      l_.b().store(l_.output_buffer(i), l_.output_place(i, at), e.at(v, at, mask), mask);
    }
  }

  void declare() {
    LoopBuilder& b = l_.b();
    tile_ = s_.along_k ? s_.vectors : s_.vectors * s_.width;
    if (columns_.is_constant() && columns_.constant() < tile_) tile_ = few_columns();
    Expr tiles = ceildiv(rows_, s_.rows), panels = s_.rest ? floordiv(columns_, tile_) : ceildiv(columns_, tile_);
    Pieces pieces = pieces_of(panels, s_.panel_blocks ? Expr(s_.panel_blocks) : panels);
    int64_t step_bytes = s_.rows * size_of(type_of(operand(0)).dtype);
    Expr in_block =
        s_.row_bytes ? tiles_of_a_block(tiles * pieces.count, step_bytes, ir::product(k_)) : Expr(s_.row_blocks);
    Pieces row_tiles = pieces_of(tiles, in_block);
    if (batched_) batch_at_ = b.loop("parallel", g_.domain.dims[0]);
    Expr rows = loop("parallel", row_tiles.count), piece = s_.panel_blocks ? loop("parallel", pieces.count) : Expr(0);
    Expr panel = piece * pieces.size + loop("serial", s_.panel_blocks ? pieces.inside(piece) : panels);
    tiles_in_block_ = row_tiles.inside(rows);
    first_row_tile_ = rows * row_tiles.size;
    last_piece_ = floordiv(piece + 1, pieces.count);
    first_column_ = panel * Expr(tile_);
    declare_tile(tiles_in_block_);
  }

  // Tiles of the columns behind the last panel, which are fewer vectors: in the task of that panel, no tile in others.
  void declare_rest() {
    first_column_ = floordiv(columns_, tile_) * Expr(tile_);
    tile_ = int64_t{s_.rest} * s_.width;
    staged_rows_ = {};
    declare_tile(tiles_in_block_ * last_piece_);
  }

  void declare_tile(Expr tiles) {
    LoopBuilder& b = l_.b();
    tile_in_block_ = loop("serial", tiles);
    row_tile_ = first_row_tile_ + tile_in_block_;
    unroll_ = b.loop("unroll", s_.rows);
    m_at_ = row_tile_ * Expr(s_.rows) + unroll_;
    lane_ = s_.along_k ? b.loop("unroll", tile_) : vector_of_columns(vectors());
    n_at_ = first_column_ + lane_;
    k_loops_.clear();
    for (size_t i = 0; i < k_.size(); ++i) k_loops_.push_back(sum_loop(i));
    k_at_ = k_loops_;
  }

  // Those of the result, or the vectors that a panel fills up with zeros.
  int64_t few_columns() const {
    Value v = operand(1);
    bool filled = !s_.along_k && prim_of(v) == Prim::Slice &&
                  provably_divisible(type_of(v.node->arg<Value>(0)).shape.back(), s_.width);
    int64_t columns = columns_.constant();
    return filled ? (columns + s_.width - 1) / s_.width * s_.width : columns;
  }

  // Short sums inside others are expanded where their steps are short.
  Expr sum_loop(size_t i) {
    constexpr int64_t kCopies = 16;
    bool last = i + 1 == k_.size();
    if (last && s_.along_k) return l_.b().loop("vector", k_[i], s_.width);
    Expr inside(1);
    for (size_t d = i; d < k_.size(); ++d) inside = inside * k_[d];
    if (in_words()) return l_.b().loop("serial", floordiv(k_[i], s_.neighbours), 1, s_.k_unroll);
    bool expanded =
        !s_.long_step() && i > 0 && inside.is_constant() && inside.constant() > 0 && inside.constant() <= kCopies;
    return l_.b().loop("serial", k_[i], 1, expanded ? static_cast<int>(k_[i].constant()) : last ? s_.k_unroll : 1);
  }

  // What follows the product is computed row by row from the finished tile: beside it, the accumulators would lose their registers.
  Value kept_tile() {
    LoopBuilder& b = l_.b();
    return element_of(b.stage(b.convert(sum(), dot_->types[0].dtype), {unroll_, lane_}));
  }

  Value element_of(Value tile) {
    LoopBuilder& b = l_.b();
    Expr row = b.loop("serial", rows_of_tile()), column = vector_of_columns(few_of(vectors()));
    m_at_ = row_tile_ * Expr(s_.rows) + row;
    n_at_ = first_column_ + column;
    return b.load(tile, row * tile_ + column);
  }

  // So many tiles of rows as the bytes for them hold, a step of whose sums takes `bytes`, or the least number, if there are enough tasks then.
  Expr tiles_of_a_block(Expr tasks, int64_t bytes, Expr steps) const {
    Expr fit = max(floordiv(s_.row_bytes / bytes, max(steps, 1)), s_.row_least);
    return max(min(min(fit, ceildiv(tasks, s_.row_pieces)), s_.row_blocks), 1);
  }

  // A task copies its rows to tiles, once for all of its panels; each panel is read for all of them.
  void declare_matrix_tiles() {
    LoopBuilder& b = l_.b();
    tile_ = int64_t{s_.vectors} * s_.width;
    Expr tiles = ceildiv(rows_, s_.rows), in_block = tiles_of_a_block(tiles, s_.rows * kMatrixTile * 4, steps());
    Pieces panels = pieces_of(ceildiv(columns_, tile_), s_.panel_blocks);
    if (batched_) batch_at_ = b.loop("parallel", g_.domain.dims[0]);
    Expr block = loop("parallel", ceildiv(tiles, in_block)), piece = loop("parallel", panels.count);
    row_tile_ = block * in_block;
    tile_rows_ = rows_in_tiles(min(tiles, in_block));
    Expr panel = piece * Expr(s_.panel_blocks) + loop("serial", panels.inside(piece));
    first_column_ = panel * Expr(tile_);
    tile_in_block_ = loop("serial", min(in_block, tiles - row_tile_));
    row_tile_ = row_tile_ + tile_in_block_;
  }

  // Elements of an operand along k in a step, which has 64 bytes of a row.
  int64_t step() const { return kMatrixTile * in_a_word(type_of(operand(0)).dtype); }
  Expr steps() const { return ceildiv(k_[0], step()); }

  // So many of them after row_tile_, step by step; zeros behind the last element of each.
  Value rows_in_tiles(Expr tiles) {
    LoopBuilder& b = l_.b();
    Expressions& e = l_.expressions();
    Value a = operand(0);
    bool words = of_words(a);
    int64_t elements = words ? kMatrixTile : step();
    Expr tile = loop("serial", tiles), rows = loop("serial", s_.rows / kMatrixTile);
    // Words of a row lie apart, those of a step's rows beside each other: they are read as they lie, and transposed.
    Expr row = words ? Expr() : b.loop("serial", kMatrixTile);
    Expr at_step = loop("serial", steps());
    if (words) row = b.loop("unroll", kMatrixTile);
    Expr element = b.loop("vector", elements, static_cast<int>(elements));
    Expr m = (row_tile_ + tile) * Expr(s_.rows) + rows * Expr(kMatrixTile) + row;
    Value v;
    if (words) {
      // Both their rows and their words go on to the end of a tile.
      Words from = *words_of(a, row_index(m, {(at_step * elements + element) * in_a_word(type_of(a).dtype)}));
      v = e.at(from.value, from.at);
    } else {
      Expr k = at_step * elements + element;
      Value mask = e.within(k, 0, k_[0]);
      v = e.at(a, row_index(inside_rows(m), {k}), mask);
      if (mask && prim_of(below_views(a)) != Prim::Input)
        v = b.op(ops::ScalarOp::Select, {mask, v, b.constant(0, type_of(a).dtype)});
    }
    std::vector<Expr> ranges;
    for (Expr r : {tile, at_step, rows, row, element})
      if (!r.is_constant()) ranges.push_back(r);
    return b.stage(v, ranges);
  }

  Value matrix_tile() {
    Value b = operand(1);
    Words from = *words_of(b, column_index(first_column_, {Expr(0)}));
    DType of_a = type_of(operand(0)).dtype, of_b = type_of(b).dtype;
    auto letter = [](DType t) { return t == DType::Int8 ? "s" : "u"; };
    int64_t row = kMatrixTile * 4 / size_of(type_of(tile_rows_).dtype);  // elements
    TileProduct p;
    p.a = tile_rows_;
    p.a_at = tile_in_block_ * steps() * s_.rows * row;
    p.a_row = row;
    p.a_step = s_.rows * row;
    p.b = l_.input_buffer(static_cast<size_t>(g_.graph->input_index(from.value)));
    p.b_at = place_in(*g_.graph, from.value, from.at);
    p.steps = steps();
    p.rows = s_.rows;
    p.columns = tile_;
    p.kind = of_a == DType::BFloat16 ? "bf16" : std::string(letter(of_a)) + letter(of_b);
    prefetch_rows();
    return l_.b().convert(element_of(l_.b().tile_product(p)), dot_->types[0].dtype);
  }

  // Rows of a tile lie too far apart for the processor to foresee; while the product is computed, they can arrive.
  void prefetch_rows() {
    Places places = places_of(g_);
    Expr m = places.ranges[places.ranges.size() - 2], n = places.ranges.back();
    if (m.is_constant() || n.is_constant()) return;
    std::optional<Expr> row;
    int64_t lines = 0;
    auto prefetch = [&](Value buffer, Expr place, int64_t most) {
      int64_t step = kCacheLine / size_of(type_of(buffer).dtype), more = s_.rows * ((tile_ + step - 1) / step);
      if (lines + more > most) return;
      auto down = coefficient(place, m), along = coefficient(place, n);
      if (!down || down->is(0) || !along || !along->is(1) || depends_on_values(place)) return;
      if (!row) row = l_.b().loop("serial", rows_of_tile());
      Expr first = ir::substitute(place, [&](Expr e) -> std::optional<Expr> {
        if (e == m) return row_tile_ * Expr(s_.rows) + *row;
        if (e == n) return first_column_;
        return e == places.ranges[0] ? std::optional(batch_at_) : std::nullopt;
      });
      lines += more;
      // Of rows that begin within a line the one before brought the first.
      for (int64_t c = 0; c < tile_; c += step) l_.b().prefetch(buffer, first + (std::min(c + step, tile_) - 1));
    };
    for (const Places::Access& a : places.accesses)
      if (Value buffer = l_.input_buffer(a.input)) prefetch(buffer, a.place, INT64_MAX);
    // A write is waited for less than a read.
    for (size_t i = 0; i < g_.graph->outputs().size(); ++i) {
      Value v = g_.graph->outputs()[i].value;
      Expr place = l_.output_place(i, member_index(v.node, g_.domain, places.ranges));
      prefetch(l_.output_buffer(i), place, kLinesUnderWay);
    }
  }
  static bool depends_on_values(Expr e) {
    return std::any_of(e->symbols->begin(), e->symbols->end(), [](Expr s) { return s->kind == ir::ExprKind::Value; });
  }

  // One thread a column, a few rows each.
  void declare_gpu() {
    LoopBuilder& b = l_.b();
    if (batched_) batch_at_ = b.loop("block", g_.domain.dims[0]);
    row_tile_ = b.loop("block", ceildiv(rows_, s_.rows));
    Expr panel = b.loop("block", ceildiv(columns_, s_.threads));
    tile_ = s_.threads;
    n_at_ = panel * Expr(tile_) + b.loop("thread", tile_);
    unroll_ = b.loop("unroll", s_.rows);
    m_at_ = row_tile_ * Expr(s_.rows) + unroll_;
    k_at_ = k_loops_ = {b.loop("serial", k_[0], 1, 1)};
  }

  bool in_rest() const { return s_.rest && tile_ == int64_t{s_.rest} * s_.width; }
  // Of a row of this tile.
  int64_t vectors() const { return std::min<int64_t>(s_.vectors, (tile_ + s_.width - 1) / s_.width); }
  // As many of a row's vectors side by side as divide them into even steps; more make longer code, not faster code.
  static int64_t few_of(int64_t vectors) { return vectors % 2 == 0 ? 2 : vectors % 3 == 0 ? 3 : vectors; }
  Expr vector_of_columns(int64_t copies) {
    auto width = static_cast<int>(std::min<int64_t>(s_.width, tile_));
    return l_.b().loop("vector", tile_, width, static_cast<int>(std::min(copies, (tile_ + width - 1) / width)));
  }
  Expr loop(const char* kind, Expr extent) { return extent.is(1) ? Expr(0) : l_.b().loop(kind, extent); }

  // Whole tiles lie within the result, which is not seen from a place in one of them.
  static bool whole_tiles(Expr size, int64_t tile) { return provably_divisible(size, tile); }
  Value within_columns() {
    bool whole = (s_.rest && !in_rest()) || whole_tiles(columns_, tile_);
    return whole ? Value{} : l_.expressions().within(n_at_, 0, columns_);
  }
  static Expr inside(Expr at, Expr size, int64_t tile) {
    return whole_tiles(size, tile) || provably_less(at, size) == std::optional(true) ? at : min(at, size - 1);
  }
  Expr rows_of_tile() const {
    Expr all(s_.rows);
    return whole_tiles(rows_, s_.rows) ? all : min(all, rows_ - row_tile_ * all);
  }
  Expr inside_rows(Expr m) const { return inside(m, rows_, s_.rows); }
  Index in_batch(Index index) const {
    if (batched_) index.insert(index.begin(), batch_at_);
    return index;
  }
  Index row_index(Expr m) const { return row_index(m, k_at_); }
  Index row_index(Expr m, Index k) const {
    k.insert(k.begin(), m);
    return in_batch(std::move(k));
  }
  Index column_index(Expr n) const { return column_index(n, k_at_); }
  Index column_index(Expr n, Index k) const {
    k.push_back(n);
    return in_batch(std::move(k));
  }

  // What panels are read from, and where the one behind this begins.
  Words next_panel() const {
    Words from{operand(1), column_index(first_column_ + tile_, Index(k_.size(), Expr(0)))};
    if (in_words()) return *words_of(from.value, from.at);
    for (Value& v = from.value; is_view(prim_of(v)) || converts(v.node); v = v.node->arg<Value>(0))
      if (!converts(v.node)) from.at = view_index(v.node, from.at);
    return from;
  }

  // The tiles that share a panel ask for the next one while they compute, a piece in each step of their sums.
  void prefetch_panel() {
    auto [panels, at] = next_panel();
    Expr step(0), steps(1);
    for (Expr k : k_loops_) {
      if (k.is_constant()) continue;
      step = step * k->args[0] + k;
      steps = steps * k->args[0];
    }
    Expr piece = ceildiv(tile_, tiles_in_block_);  // words or elements
    Value buffer = l_.input_buffer(static_cast<size_t>(g_.graph->input_index(panels)));
    Expr first = place_in(*g_.graph, panels, at);
    l_.b().prefetch(buffer, first + (tile_in_block_ * steps + step) * piece, {lane_}, 2);
  }

  Value sum() {
    if (s_.next_panel && !in_rest()) prefetch_panel();
    if (in_words()) return sum_of_words();
    return l_.b().reduce(product(), k_loops_, "add");
  }
  Value product() {
    DType acc = accumulator_of(dot_->types[0].dtype);
    Value a = l_.b().convert(first_operand(), acc), b = l_.b().convert(second_operand(), acc);
    return l_.b().op(ops::ScalarOp::Mul, {a, b});
  }

  bool in_words() const { return s_.neighbours > 1; }

  // What is left behind the last whole word is added as one with zeros behind it, which the panels have there, too.
  Value sum_of_words() {
    LoopBuilder& b = l_.b();
    Expr k = k_[0], each = s_.neighbours;
    Value sum = b.reduce(product_of_words(k_loops_[0], each), k_loops_, "add");
    if (provably_divisible(k, s_.neighbours)) return sum;
    return b.op(ops::ScalarOp::Add, {sum, product_of_words(floordiv(k, each), mod(k, each))});
  }
  // Of the words at this place along k, with so many elements.
  Value product_of_words(Expr at, Expr elements) {
    LoopBuilder& b = l_.b();
    if (!k_[0].is_constant()) at = b.bounded(at, ceildiv(k_[0], s_.neighbours));
    Value some = l_.expressions().within(0, 0, elements);
    Value x = first_word(at, elements, some), y = second_word(at, some);
    if (s_.neighbours == 2) return b.pair_product(x, y, accumulator_of(dot_->types[0].dtype));
    return type_of(operand(0)).dtype == DType::Int8 ? b.quad_product(x, y) : b.quad_product(y, x);
  }

  Value first_word(Expr at, Expr elements, Value some) {
    using ops::ScalarOp;
    LoopBuilder& b = l_.b();
    if (auto from = words_of(operand(0), row_index(inside_rows(m_at_), {at * s_.neighbours})))
      return l_.expressions().at(from->value, from->at, some);
    const int bits = 32 / s_.neighbours;
    const DType raw = bits == 8 ? DType::Int8 : DType::Int16;
    auto with = [&](ScalarOp op, Value v, int64_t n) { return b.op(op, {v, b.constant(n, DType::Int32)}); };
    Value word;
    for (int i = 0; i < s_.neighbours; ++i) {
      if (provably_less(i, elements) == std::optional(false)) break;
      k_at_ = {at * s_.neighbours + i};
      Value mask = l_.expressions().within(i, 0, elements);
      Value part = b.convert(b.bitcast(first_operand(mask), raw), DType::Int32);
      if (mask) part = b.op(ScalarOp::Select, {mask, part, b.constant(0, DType::Int32)});
      if (i + 1 < s_.neighbours) part = with(ScalarOp::BitAnd, part, (int64_t{1} << bits) - 1);
      if (i > 0) part = with(ScalarOp::Shl, part, bits * i);
      word = word ? b.op(ScalarOp::BitOr, {word, part}) : part;
    }
    return word;
  }
  Value second_word(Expr at, Value some) {
    Words from = *words_of(operand(1), column_index(n_at_, {at * s_.neighbours}));
    const ir::Shape& panels = type_of(from.value).shape;
    bool filled = whole_tiles(panels[panels.size() - 3] * panels.back(), tile_);
    Expressions& e = l_.expressions();
    return e.at(from.value, from.at, e.both(filled ? Value{} : within_columns(), some));
  }

  // As it was before it was widened, where words of it are multiplied or tiles multiply it.
  Value operand(size_t i) const {
    Value v = dot_->arg<Value>(i);
    return in_words() || s_.matrix_tiles ? unwidened(v) : v;
  }

  Value first_operand(Value mask = {}) {
    Value a = operand(0);
    Expressions& e = l_.expressions();
    if (Value whole = filled_up(a, row_index(m_at_), m_at_, s_.rows)) return e.at(whole, row_index(m_at_), mask);
    if (!s_.stage_rows) return e.at(a, row_index(inside_rows(m_at_)), mask);
    return l_.b().load(staged_rows(), unroll_ * k_[0] + k_at_[0], mask);
  }

  Value staged_rows() {
    if (staged_rows_) return staged_rows_;
    BRASA_ASSERT(k_.size() == 1, "rows are staged along one dimension");
    LoopBuilder& b = l_.b();
    Expr row = b.loop("serial", s_.rows), k = b.loop("vector", k_[0], s_.width, 1);
    Expr m = inside_rows(row_tile_ * Expr(s_.rows) + row);
    Value v = l_.expressions().at(operand(0), row_index(m, {k}));
    if (!in_words()) v = b.convert(v, accumulator_of(dot_->types[0].dtype));
    return staged_rows_ = b.stage(v, {row, k});
  }

  Value second_operand() {
    Value v = operand(1);
    Index index = column_index(n_at_);
    Expressions& e = l_.expressions();
    if (Value whole = filled_up(v, index, n_at_, tile_)) return e.at(whole, index);
    if (s_.along_k) return e.at(v, column_index(inside(n_at_, columns_, tile_)));
    return e.at(v, index, within_columns());
  }

  // Panels are filled up with zeros, which may be read: what `v` is a slice of, if `at`, which goes through a tile of so many rows or
  // columns that begins within the slice, lies within that. Whole tiles do.
  Value filled_up(Value v, const Index& index, Expr at, int64_t tile) {
    if (prim_of(v) != Prim::Slice || view_index(v.node, index) != index) return {};
    Value whole = v.node->arg<Value>(0);
    auto dim = static_cast<size_t>(std::find(index.begin(), index.end(), at) - index.begin());
    Expr size = type_of(whole).shape[dim];
    return provably_divisible(size, tile) || !l_.expressions().within(at, 0, size) ? whole : Value{};
  }

  const Group& g_;
  const Schedule& s_;
  Lowering l_;
  const Node* dot_ = nullptr;
  bool batched_ = false;
  Expr rows_, columns_;
  ir::Shape k_;       // what is summed over
  int64_t tile_ = 0;  // columns
  Expr batch_at_, first_row_tile_, last_piece_, row_tile_, unroll_, first_column_, lane_, m_at_, n_at_;
  std::vector<Expr> k_loops_, k_at_;  // the loops that sum; where the operands are read
  Value product_, staged_rows_, tile_rows_;
  Expr tile_in_block_, tiles_in_block_;
};

}  // namespace

void lower_contraction(const Group& group, const Schedule& schedule, std::vector<Lowered>& out) {
  out.push_back(Contraction(group, schedule).run());
}

}  // namespace brasa::compiler
