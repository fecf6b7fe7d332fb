#include "compiler/passes/contraction.h"

#include <algorithm>
#include <numeric>

#include "compiler/fusion/places.h"
#include "compiler/lowering/expressions.h"
#include "compiler/passes/transform.h"
#include "compiler/passes/words.h"
#include "ops/shapes.h"

namespace brasa::compiler {

namespace prim = ops::prim;
using ops::rank_of;
using ops::shape_of;
using Dims = std::vector<int64_t>;

namespace {

Dims counted(int64_t n) { return ops::counted(0, n); }
// A panel's width, of `size` rows or columns; few make one panel.
Expr panel_width(Expr size, int64_t width) {
  return size.is_constant() && size.constant() < width ? size : Expr(width);
}
Dims joined(Dims a, const Dims& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class Contractions {
 public:
  Contractions(Primitives& out, const PassContext& context) : out_(out), m_(context.machine), context_(context) {}

  Value contraction(Value a, Value b, Dims ac, Dims bc, Dims ab, Dims bb) {
    // A sum over one element, such as the channels of grey images, is none.
    for (size_t i = ac.size(); i-- > 0 && ac.size() > 1;) {
      if (!shape_of(a)[ac[i]].is(1) || !shape_of(b)[bc[i]].is(1)) continue;
      leave_out(a, ac, i, ab);
      leave_out(b, bc, i, bb);
    }
    Shape sa = shape_of(a), sb = shape_of(b);
    Dims af = other_dims(joined(ac, ab), rank_of(a)), bf = other_dims(joined(bc, bb), rank_of(b));
    if (size_t apart = blocks_apart(b, bf);
        apart > 0 && !m_.gpu && !m_.one_order && !at_least(free_size(a, ac, ab), kPackingRows))
      return product_each({bf.begin(), bf.begin() + static_cast<int64_t>(apart)}, a, b, ac, bc, ab, bb);
    Shape result = pick(sa, ab);
    for (int64_t d : af) result.push_back(sa[d]);
    for (int64_t d : bf) result.push_back(sb[d]);
    Value ma = grouped(a, {ab, af, ac}), mb = grouped(b, {bb, bc, bf});  // [b] m k, [b] k n
    Expr m = product(pick(sa, af)), n = product(pick(sb, bf)), k = product(pick(sa, ac));
    bool summed = m_.orders_sums() && of_vectors(m, n, k);
    if (!m_.gpu && ac.size() > 1 && !summed && !(even(steps_of(ma)) && even(steps_of(mb)))) {
      auto [sums_a, sums_b] = joined_sums(a, {ab, af}, ac, bc);
      std::vector<Dims> groups_a = {ab, af}, groups_b = {bb};  // [b] m k…, [b] k… n
      groups_a.insert(groups_a.end(), sums_a.begin(), sums_a.end());
      groups_b.insert(groups_b.end(), sums_b.begin(), sums_b.end());
      groups_b.push_back(bf);
      Value each_a = grouped(a, groups_a), each_b = grouped(b, groups_b);
      Shape sums;
      for (const Dims& g : sums_b) sums.push_back(product(pick(sb, g)));
      Steps in_a = steps_of(each_a), in_b = steps_of(each_b);
      // Vectors along the last sum add up its elements in an order of their own.
      bool wide = is(in_b.back(), 1), deep = !m_.one_order && is(in_b[in_b.size() - 2], 1) && is(in_a.back(), 1);
      // A batch's steps may be uneven: a matrix is found once.
      auto each_even = [&](const Steps& steps) {
        return even({steps.begin() + static_cast<int64_t>(!ab.empty()), steps.end()});
      };
      auto product_of = [&](Value second) {
        return prim::reshape(product_over_each(in_order(each_a), second, !bb.empty(), sums.size()), result);
      };
      // Rows may lie anywhere, if what is summed lies at even steps in each. A row that tiles fill needs no panels.
      const DType t = ops::dtype_of(b);
      const int lanes = m_.lanes(size_of(accumulator_of(t)));
      const int64_t columns = contraction_tile(m, n, t, context_).columns();
      bool in_rows = each_even(in_a) && wide, full = n.is_constant() && n.constant() % columns == 0;
      if (in_rows && full) return product_of(in_order(each_b));
      bool even_sums = even({in_a.end() - std::ssize(sums), in_a.end()});
      if (even_sums && at_least(n, lanes) && at_least(m, 48))
        return product_of(panels(each_b, rank_of(each_b) - 1, columns, !bb.empty()));
      if (in_rows) return product_of(in_order(each_b));
      if (even_sums && deep) return product_of(in_order(each_b));
    }
    if (!m_.gpu) steady_rows(ma);
    return prim::reshape(matrix_product(ma, mb), result);
  }

 private:
  // Dimension dims[i], of one element; both lists name dimensions.
  static void leave_out(Value& x, Dims& dims, size_t i, Dims& others) {
    int64_t gone = dims[i];
    Shape s = shape_of(x);
    s.erase(s.begin() + gone);
    x = prim::reshape(x, s);
    dims.erase(dims.begin() + static_cast<int64_t>(i));
    for (Dims* list : {&dims, &others})
      for (int64_t& d : *list) d -= d > gone;
  }

  // How many of these dimensions are outside of the last ones, whose elements lie beside each other; 0 where those are all or none.
  size_t blocks_apart(Value v, const Dims& dims) {
    Steps steps = steps_of(v);
    if (dims.empty() || !is(steps[dims.back()], 1)) return 0;
    size_t first = dims.size() - 1;
    for (; first > 0; --first) {
      const std::optional<Expr>& step = steps[dims[first - 1]];
      if (!step || *step != *steps[dims[first]] * shape_of(v)[dims[first]]) break;
    }
    return first;
  }
  // Blocks of columns that lie apart would be packed as one matrix, which few rows do not pay for: each is a product of its own.
  Value product_each(const Dims& blocks, Value a, Value b, Dims ac, const Dims& bc, Dims ab, const Dims& bb) {
    auto count = std::ssize(blocks), kept = rank_of(a) - std::ssize(ac);
    Shape wide = pick(shape_of(b), blocks);
    wide.insert(wide.end(), shape_of(a).begin(), shape_of(a).end());
    for (Dims* dims : {&ac, &ab})
      for (int64_t& d : *dims) d += count;
    Value v = contraction(prim::broadcast(a, wide, ops::counted(count, rank_of(a))), b, ac, bc,
                          joined(counted(count), ab), joined(blocks, bb));
    Dims order = joined(ops::counted(count, kept), counted(count));
    return prim::transpose(v, joined(order, ops::counted(count + kept, rank_of(v) - count - kept)));
  }

  // The dimensions in the order of the groups, each group as one; an empty first group, the batch, leaves no dimension.
  static Value grouped(Value x, const std::vector<Dims>& groups) {
    Dims order;
    Shape s = shape_of(x), shape;
    for (const Dims& g : groups) {
      order = joined(std::move(order), g);
      if (!g.empty() || &g != groups.data()) shape.push_back(product(pick(s, g)));
    }
    return prim::reshape(prim::transpose(x, order), shape);
  }

  // The dimensions of both operands that are summed, those together through which the first one steps as through one; each by itself where
  // the order of sums must not depend on what is known of sizes.
  std::pair<std::vector<Dims>, std::vector<Dims>> joined_sums(Value a, std::vector<Dims> groups, const Dims& ac,
                                                              const Dims& bc) {
    for (int64_t d : ac) groups.push_back({d});
    Steps steps = steps_of(grouped(a, groups));
    auto step = steps.end() - std::ssize(ac);
    std::vector<Dims> of_a, of_b;
    for (size_t i = 0; i < ac.size(); ++i, ++step) {
      bool joins = i > 0 && !m_.one_order && step[-1] && step[0] && *step[-1] == *step[0] * shape_of(a)[ac[i]];
      if (!joins) {
        of_a.emplace_back();
        of_b.emplace_back();
      }
      of_a.back().push_back(ac[i]);
      of_b.back().push_back(bc[i]);
    }
    return {of_a, of_b};
  }

  // How far apart neighbours along each dimension are in memory; nothing where that depends on the place.
  using Steps = std::vector<std::optional<Expr>>;
  Steps steps_of(Value v) {
    Index index = probe(shape_of(v));
    Expr place = source_of(v, index).place;
    Steps out;
    for (Expr e : index) out.push_back(coefficient(place, e));
    return out;
  }
  // From neighbour to neighbour along a dimension, in blocks of this size.
  std::optional<Expr> step_within(Value v, int64_t dim, int64_t block) {
    Index index = probe(shape_of(v));
    auto next = static_cast<uint32_t>(kProbeRange + index.size());
    Expr within = Expr::range(next, block);
    index[dim] = Expr::range(next + 1, ceildiv(shape_of(v)[dim], block)) * block + within;
    return coefficient(source_of(v, index).place, within);
  }
  static bool even(const Steps& steps) {
    return std::all_of(steps.begin(), steps.end(), [](const std::optional<Expr>& s) { return s.has_value(); });
  }
  static bool is(const std::optional<Expr>& step, int64_t v) { return step && step->is(v); }

  // Sums over several dimensions that do not step through memory as one does: channels and places of a convolution's kernel.
  static Value product_over_each(Value a, Value b, bool batched, size_t count) {
    Dims batch, of_a, of_b;
    if (batched) batch.push_back(0);
    for (size_t i = 0; i < count; ++i) {
      of_a.push_back(static_cast<int64_t>(batched + 1 + i));
      of_b.push_back(static_cast<int64_t>(batched + i));
    }
    return prim::dot_general(a, b, of_a, of_b, batch, batch);
  }

  // Where a chain of views reads memory, or what is written to it, as an expression in the indices of its result.
  struct Source {
    Value value;
    Expr place;
  };
  Source source_of(Value v, Index index) {
    while (is_view(prim_of(v)) && !out_.in_memory.count(v)) {
      index = view_index(v.node, index);
      v = v.node->arg<Value>(0);
    }
    return {v, place_in(*out_.graph, v, index)};
  }

  // Rows that cannot be read in even steps (patches of an image) are written out first: as far down the chain of views as
  // reading is even from there, so that other views of it are served too. Those whose elements lie side by side are read wherever they begin.
  void steady_rows(Value a) {
    Steps steps = steps_of(a);
    if (is(steps.back(), 1)) {
      if (!steps[steps.size() - 2]) in_order(a);
      return;
    }
    Index index = probe(shape_of(a)), at = index;
    Value written = a;
    for (Value v = a;;) {
      Expr place = place_in(*out_.graph, v, at);
      bool steady = coefficient(place, index[index.size() - 1]) && coefficient(place, index[index.size() - 2]);
      if (steady) written = v;
      if (!is_view(prim_of(v))) {
        if (!steady) out_.in_memory.insert(written);
        return;
      }
      at = view_index(v.node, at);
      v = v.node->arg<Value>(0);
    }
  }

  Value matrix_product(Value a, Value b) {
    int64_t rank = rank_of(a), batch = rank - 2;
    Shape sa = shape_of(a), sb = shape_of(b);
    Expr m = sa[rank - 2], k = sa[rank - 1], n = sb[rank - 1];
    const DType t = ops::dtype_of(a);
    // An outer product writes its results at once, and no tiles.
    if (!m_.gpu && context_.size_classes && ir::is_symbol(k) && context_.facts.equal(k, 1)) {
      k = sa[rank - 1] = sb[rank - 2] = 1;
      a = prim::reshape(a, sa);
      b = prim::reshape(b, sb);
    }
    // On a GPU a sum whose length nobody knows is no better than a library's.
    bool known = k.is_constant() && m.is_constant() && n.is_constant();
    if (k.is(1) || (of_vectors(m, n, k) && (!m_.gpu || known))) return product_of_vectors(a, b);
    Value moved;
    if (!m_.gpu) {
      // What tiles multiply, or what is added up in pairs or fours.
      bool tiles = m_.tiles && narrowed(a, b, t) && at_least(m, 16) && at_least(n, 16) && at_least(k, 16);
      bool fours = !tiles && t == DType::Int32 && m_.quads && narrowed(a, b, t);
      bool in_words = tiles || fours || paired(a, b, t);
      ContractionTile tile = tiles ? matrix_tile(m, n) : contraction_tile(m, n, t, m_);
      // Columns of b that lie side by side are a vector, as well as what is summed where both operands lie along k.
      auto in_a = matrix_steps(a), in_b = matrix_steps(b);
      bool wide = in_b && in_b->column.is(1),
           deep = in_a && in_b && in_a->column.is(1) && in_b->row.is(1) && !wide && !in_b->column.is(0);
      // Packing costs a pass over an operand, and pays where its elements are used often. A row of panels never ends in part of a
      // vector; what has none is packed where the first cache does not hold it, or a panel of it, and its pages can't all be found at once. Pairs
      // ask for words.
      bool full = n.is_constant() && n.constant() % tile.columns() == 0;
      bool pack = tiles || (wide ? at_least(m, kPackingRows) &&
                                       (!full || in_words || at_least(n * k, kLarge) || crowds(b, k, tile))
                                 : !deep || m_.one_order || at_least(m, 48));
      bool words = pack && in_words;
      // Of like signs those of b are turned, which moves each row of the product by as much.
      DType as = ops::dtype_of(b);
      if (words && fours && as == ops::dtype_of(a)) {
        const bool up = as == DType::Int8;
        as = up ? DType::UInt8 : DType::Int8;
        moved = reduced(prim::convert(a, DType::Int32), {rank - 1}, "add");
        moved = ops::pointwise("mul", moved, up ? -128 : 128);
      }
      if (pack && !tiles) tile = contraction_tile(m, n, t, context_);
      // What is used often is widened once, on its way to memory, and not for each product.
      bool narrow_rows = is_reduced_floating(t) || widens(source_of(a, probe(sa)).value.node);
      bool widened = narrow_rows && !words && pack && at_least(n, 2 * int64_t{tile.columns()});
      if (widened) {
        a = prim::convert(a, accumulator_of(t));
        b = prim::convert(b, accumulator_of(t));
        if (in_a && in_a->column.is(1)) in_order(a);
      }
      auto packed = [&](Value v, int64_t dim, int64_t width, DType as) {
        return once_each(v, [&](Value each) {
          if (!words) return panels(each, dim, width, rank_of(each) - 2);
          return panels_of_words(each, dim, tiles ? Expr(width) : panel_width(shape_of(each)[dim], width),
                                 tiles ? kMatrixTile : 1, as, out_);
        });
      };
      b = pack ? packed(b, rank - 1, tile.columns(), as) : in_order(b);
      bool across = in_a ? !in_a->column.is(1) : tiles && is(step_within(a, rank - 2, tile.rows), 1);
      // Columns that lie near each other are read as they lie, if the second cache holds them; but for pairs.
      bool far = !in_a || words || at_least(m * k, kBeyondCache) || at_least(in_a->column, kFarColumn / size_of(t));
      bool pack_rows = across && far && at_least(n, 16) && at_least(m * k, kLarge / 16);
      // What is read as words is not widened.
      if (words && !pack_rows) in_order(a);
      // A tile's rows lie by themselves: beside others, what a step reads would be a line, as far from the first cache as a row of b. Words are put
      // together by whole vectors, which takes longer than to read them.
      int of_rows = words && !tiles ? std::lcm(tile.rows, tile.lanes) : tile.rows;
      if (pack_rows) a = packed(a, rank - 2, of_rows, ops::dtype_of(a));
      DType multiplied = widened ? accumulator_of(t) : t;
      a = prim::convert(a, multiplied);
      b = prim::convert(b, multiplied);
    }
    Dims batches = counted(batch);
    Value product = prim::convert(prim::dot_general(a, b, {rank - 1}, {rank - 2}, batches, batches), t);
    if (!moved) return product;
    return prim::binary("add", product, prim::broadcast(moved, shape_of(product), counted(rank - 1)));
  }

  // Both operands of a product of this dtype as what is added up in pairs: bfloat16, or bytes as 16 bits.
  bool paired(Value& a, Value& b, DType product) {
    bool bytes = is_integral(product);
    if (!(bytes ? m_.integer_pairs : adds_pairs(m_)) || !narrowed(a, b, product)) return false;
    if (bytes)
      for (Value* v : {&a, &b}) *v = prim::convert(*v, DType::Int16);
    return true;
  }

  // Both operands as bfloat16, or as bytes, where that is what they are.
  bool narrowed(Value& a, Value& b, DType product) {
    bool bytes = product == DType::Int32;
    if (!bytes && m_.one_order) return false;
    auto as = [](Value v, DType t) { return ops::dtype_of(v) == t ? v : before_widening(v, t); };
    auto narrow = [&](Value v) {
      if (!bytes) return as(v, DType::BFloat16);
      Value x = as(v, DType::Int8);
      return x ? x : as(v, DType::UInt8);
    };
    Value x = narrow(a), y = narrow(b);
    if (!x || !y) return false;
    a = x;
    b = y;
    return true;
  }

  bool at_least(Expr e, int64_t least) { return compiler::at_least(e, least, context_); }

  // Whether it has one row, column or product for each result. Where that decides about the order of sums it must not depend on what is known.
  bool of_vectors(Expr m, Expr n, Expr k) {
    auto is_one = [&](Expr e) {
      bool ask = m_.orders_sums() && !context_.portable && context_.facts.has_hint(e);
      return ask ? context_.facts.equal(e, 1) : e.is(1);
    };
    return is_one(m) || is_one(n) || is_one(k);
  }

  // The steps from row to row and from column to column; nothing where either is uneven.
  struct MatrixSteps {
    Expr row, column;
  };
  std::optional<MatrixSteps> matrix_steps(Value v) {
    Steps steps = steps_of(v);
    const std::optional<Expr>&row = steps[steps.size() - 2], &column = steps.back();
    return row && column ? std::optional(MatrixSteps{*row, *column}) : std::nullopt;
  }

  // Whether the rows of a panel that is read as it lies fall on so few places of the first cache that they push each other out.
  bool crowds(Value v, Expr rows, const ContractionTile& tile) {
    constexpr int64_t kLine = 64, kPlaces = 64, kLinesOfPlace = 8;
    auto steps = matrix_steps(v);
    if (!rows.is_constant() || !steps || !steps->row.is_constant() || steps->row.is(0)) return false;
    int64_t bytes = size_of(ops::dtype_of(v)), step = steps->row.constant() * bytes,
            lines = (tile.columns() * bytes + kLine - 1) / kLine, places = kPlaces;
    if (step % kLine == 0) places = std::min(places, kPlaces / std::gcd(step / kLine, kPlaces) * lines);
    return rows.constant() * lines > kLinesOfPlace * places;
  }

  // Of matrices that are picked from fewer ones, those are packed.
  template <class Pack>
  Value once_each(Value v, const Pack& pack) {
    Value picked = unwidened(v);
    if (prim_of(picked) != Prim::Gather) return pack(v);
    Value table = picked.node->arg<Value>(0);
    const auto& index = picked.node->arg<std::vector<Value>>(1);
    bool first = index.size() == 1 && rank_of(index[0]) == 1 && rank_of(table) == rank_of(v) &&
                 picked.node->arg<std::vector<Expr>>(2)[0].is(0);
    if (!first || !at_least(shape_of(v)[0] - shape_of(table)[0], 0)) return pack(v);
    return prim::gather(pack(prim::convert(table, ops::dtype_of(v))), index, {0});
  }

  // It is read as it lies, wherever that is.
  Value in_order(Value v) {
    in_memory(source_of(v, probe(shape_of(v))).value, out_);
    return v;
  }

  // The matrix packed into panels [b] size / width, others, width along this dimension of it; the last one is filled up with zeros. The
  // other dimension may be several.
  Value panels(Value v, int64_t dim, int64_t width, int64_t batch) {
    Shape s = shape_of(v), split = s, whole = s;
    // Few are one panel of whole vectors: a tile takes part of a vector by itself.
    int64_t lanes = m_.lanes(size_of(accumulator_of(ops::dtype_of(v)))), within = width;
    if (s[dim].is_constant()) within = std::clamp<int64_t>((s[dim].constant() + lanes - 1) / lanes * lanes, 1, width);
    Expr count = ceildiv(s[dim], within);
    std::vector<Expr> high(s.size(), Expr(0));
    high[dim] = count * within - s[dim];
    split[dim] = count;
    split.insert(split.begin() + dim + 1, within);
    whole[dim] = count * within;
    Dims order = joined(counted(batch), {dim}), back(split.size());
    for (int64_t d = batch; d < std::ssize(split); ++d)
      if (d != dim && d != dim + 1) order.push_back(d);
    order.push_back(dim + 1);
    for (size_t i = 0; i < order.size(); ++i) back[order[i]] = static_cast<int64_t>(i);
    Value packed = prim::transpose(prim::reshape(zeros_behind(v, high), split), order);
    in_memory(packed, out_);
    return first_of(prim::reshape(prim::transpose(packed, back), whole), s);
  }

  // One row or column, or an outer product: a sum of products as point-wise work.
  Value product_of_vectors(Value a, Value b) {
    int64_t rank = rank_of(a), batch = rank - 2;
    Shape sa = shape_of(a), sb = shape_of(b), wide(sa.begin(), sa.begin() + batch), result = wide;
    Expr m = sa[rank - 2], k = sa[rank - 1], n = sb[rank - 1];
    result.insert(result.end(), {m, n});
    DType t = ops::dtype_of(a), acc = accumulator_of(t);
    Value big = m.is(1) ? b : a;
    Index index = probe(shape_of(big));
    Source from = source_of(big, index);
    size_t k_at = m.is(1) ? batch : batch + 1;
    auto stride = coefficient(from.place, index[k_at]);
    // The contracted dimension comes last where it lies along memory.
    bool last = stride && stride->is(1);
    int64_t at_m = last ? batch : batch + 1, at_n = at_m + 1, at_k = last ? batch + 2 : batch;
    wide.insert(wide.end(), 3, k);
    wide[at_m] = m;
    wide[at_n] = n;
    Value x = prim::broadcast(prim::convert(a, acc), wide, joined(counted(batch), {at_m, at_k}));
    Value y = prim::broadcast(prim::convert(b, acc), wide, joined(counted(batch), {at_k, at_n}));
    Value sum = reduced(prim::binary("mul", x, y), {at_k}, "add");
    return prim::reshape(prim::convert(sum, t), result);
  }

  static constexpr int64_t kLarge = 1 << 14, kBeyondCache = 1 << 17;  // elements
  static constexpr int64_t kFarColumn = 2048;                         // bytes

  Primitives& out_;
  const Machine& m_;
  const PassContext& context_;
};

}  // namespace

Expr free_size(Value operand, Dims summed, const Dims& batch) {
  return product(pick(shape_of(operand), other_dims(joined(std::move(summed), batch), rank_of(operand))));
}

void shape_contractions(Primitives& p, const PassContext& context) {
  transform(
      p, context.facts, [](const Node* n) { return prim_of(n) == Prim::Dot; },
      [&](const Node* n, ir::Args& args, Primitives& out) {
        return std::vector{Contractions(out, context)
                               .contraction(args[0].get<Value>(), args[1].get<Value>(), int_args(n, 2), int_args(n, 3),
                                            int_args(n, 4), int_args(n, 5))};
      });
}

}  // namespace brasa::compiler
