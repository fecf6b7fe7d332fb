#include "compiler/prepare.h"

#include <algorithm>
#include <numeric>

#include "compiler/indexing.h"
#include "ops/algebra.h"
#include "ops/combiner.h"
#include "support/error.h"

namespace brasa::compiler {

using ir::Expr;
using ir::Node;
using ir::Shape;
using ir::Value;
namespace prim = ops::prim;
using ops::rank_of;
using ops::shape_of;
using Dims = std::vector<int64_t>;

DType accumulator_of(DType t) { return is_reduced_floating(t) ? DType::Float32 : t; }

ContractionTile contraction_tile(Expr m, Expr n, DType dtype, const Machine& machine) {
  int lanes = std::max(1, machine.lanes(size_of(accumulator_of(dtype))));
  int registers = machine.vector_registers;
  ContractionTile best{1, 1, lanes};
  double best_cost = 1e300;
  for (int v = 1; v <= 4; ++v)
    for (int r = 1; r <= 14; ++r) {
      if (r * v + v + 1 > registers) continue;
      double waste = 1;
      auto padded = [](int64_t size, int64_t tile) {
        return static_cast<double>((size + tile - 1) / tile * tile) / static_cast<double>(std::max<int64_t>(size, 1));
      };
      // A tile that a size does not fill wastes work; of an unknown size a long one is assumed.
      if (m.is_constant()) waste *= padded(m.constant(), r);
      if (n.is_constant()) waste *= padded(n.constant(), v * lanes);
      // For each k: r * v multiply-adds, v + r loads (two of each a cycle), at least 4 cycles latency for each accumulator.
      double cycles = std::max({r * v / 2.0, (v + r) / 2.0, 4.0}) + 0.5;
      double cost = waste * cycles / (r * v);
      if (cost < best_cost * 0.999) {
        best_cost = cost;
        best = {r, v, lanes};
      }
    }
  return best;
}

namespace {

// A reduction is split so that about this many elements stay in each part.
constexpr int64_t kPart = 8192;

class Preparer {
 public:
  Preparer(const ir::Graph& graph, ir::Facts& facts, const Machine& machine)
      : graph_(graph), machine_(machine), facts_(facts) {}

  Prepared run() {
    out_.graph = std::make_unique<ir::Graph>(ir::Level::Primitives);
    out_.graph->name = graph_.name;
    ops::Builder builder(*out_.graph, facts_);
    for (const ir::Input& in : graph_.inputs()) {
      std::vector<Expr> strides;
      for (Expr e : in.strides) strides.push_back(facts_.known(e));
      ir::Type t = type_of(in.value);
      map_.set(in.value, out_.graph->add_input({t.dtype, known(t.shape), false}, in.name, std::move(strides)));
    }
    for (Node* n : live_nodes(graph_)) {
      if (n->op == ir::input_op()) continue;
      std::vector<Value> results = node(n);
      for (uint32_t i = 0; i < results.size(); ++i) map_.set({n, i}, results[i]);
    }
    for (const ir::Output& o : graph_.outputs())
      out_.graph->outputs().push_back({written(map_(o.value), o.into), o.into, o.check});
    return std::move(out_);
  }

 private:
  Shape known(Shape shape) const {
    for (Expr& e : shape) e = facts_.known(e);
    return shape;
  }

  // An input that another input receives is copied, so that the plan has a value to keep where both are overwritten.
  Value written(Value v, int into) {
    if (into < 0 || !ir::is_input(v) || v == out_.graph->inputs()[into].value) return v;
    v = ops::call("prim::reshape", {v, shape_of(v)});
    out_.in_memory.insert(v);
    return v;
  }

  static bool is_empty(const Shape& shape) {
    return std::any_of(shape.begin(), shape.end(), [](Expr e) { return e.is(0); });
  }

  std::vector<Value> node(Node* n) {
    ir::Args args;
    for (const ir::Arg& a : n->args) {
      if (auto* e = a.get_if<Expr>())
        args.push_back(ir::Arg(facts_.known(*e)));
      else if (auto* list = a.get_if<std::vector<Expr>>())
        args.push_back(ir::Arg(known(*list)));
      else
        args.push_back(map_(a));
    }
    // Results without elements need nothing, and no kernel has a loop that never runs.
    if (std::all_of(n->types.begin(), n->types.end(), [&](const ir::Type& t) { return is_empty(known(t.shape)); })) {
      std::vector<Value> out;
      for (const ir::Type& t : n->types) out.push_back(prim::full(0, known(t.shape), t.dtype));
      return out;
    }
    switch (prim_of(n)) {
      case Prim::Dot:
        return {contraction(args[0].get<Value>(), args[1].get<Value>(), int_args(n, 2), int_args(n, 3), int_args(n, 4),
                            int_args(n, 5))};
      case Prim::Convolution: return {convolution(args)};
      case Prim::Reduce: return {reduction(args[0].get<Value>(), int_args(n, 1), args[2].get<std::string>())};
      case Prim::ArgReduce: {
        Value x = args[0].get<Value>();
        return {prim::arg_reduce(prim::convert(x, accumulator_of(ops::dtype_of(x))), n->arg<Expr>(1).constant(),
                                 args[2].get<std::string>())};
      }
      case Prim::Scatter: {
        DType t = n->types[0].dtype;
        const auto& how = args[4].get<std::string>();
        auto wide = [&](const ir::Arg& a) {
          return prim::convert(a.get<Value>(), how.empty() ? t : accumulator_of(t));
        };
        return {prim::convert(
            prim::scatter(wide(args[0]), args[1].get<std::vector<Value>>(), wide(args[2]), int_args(n, 3), how), t)};
      }
      case Prim::Scan: {
        Value x = args[0].get<Value>();
        DType t = ops::dtype_of(x);
        return {prim::convert(
            prim::scan(prim::convert(x, accumulator_of(t)), n->arg<Expr>(1).constant(), args[2].get<std::string>()),
            t)};
      }
      case Prim::Sort: {
        // The library sorts contiguous memory; an input of other strides is copied.
        Value x = args[0].get<Value>();
        if (ir::is_input(x) && !out_.graph->inputs()[out_.graph->input_index(x)].strides.empty()) {
          x = ops::call("prim::reshape", {x, shape_of(x)});
          out_.in_memory.insert(x);
          args[0] = x;
        }
        return ops::Builder::current().call(ops::row_of(*n), std::move(args));
      }
      default: return ops::Builder::current().call(ops::row_of(*n), std::move(args));
    }
  }

  // --- contractions ---

  static Shape pick(const Shape& shape, const Dims& dims) {
    Shape out;
    for (int64_t d : dims) out.push_back(shape[d]);
    return out;
  }

  // The dimensions in the order of the groups, each group as one; an empty group of `batch` leaves no dimension.
  static Value grouped(Value x, const Dims& batch, const Dims& first, const Dims& second) {
    Dims order = batch;
    order.insert(order.end(), first.begin(), first.end());
    order.insert(order.end(), second.begin(), second.end());
    Shape s = shape_of(x), shape;
    if (!batch.empty()) shape.push_back(product(pick(s, batch)));
    shape.push_back(product(pick(s, first)));
    shape.push_back(product(pick(s, second)));
    return prim::reshape(prim::transpose(x, order), shape);
  }

  // Where a chain of views reads memory, as an expression in the indices of its result.
  struct Source {
    Value value;
    Expr place;
  };
  Source source_of(Value v, Index index) {
    while (is_view(prim_of(v))) {
      index = view_index(v.node, index);
      v = v.node->arg<Value>(0);
    }
    const Shape& shape = shape_of(v);
    std::vector<Expr> strides;
    if (int i = out_.graph->input_index(v); i >= 0) strides = out_.graph->inputs()[i].strides;
    if (strides.empty()) return {v, linearise(index, shape)};
    Expr place(0);
    for (size_t d = 0; d < index.size(); ++d) place = place + index[d] * strides[d];
    return {v, place};
  }

  static Index probe(const Shape& shape) {
    Index index;
    for (size_t d = 0; d < shape.size(); ++d)
      index.push_back(Expr::range((1u << 20) + static_cast<uint32_t>(d), shape[d]));
    return index;
  }

  Value contraction(Value a, Value b, const Dims& ac, const Dims& bc, const Dims& ab, const Dims& bb) {
    Shape sa = shape_of(a), sb = shape_of(b);
    Dims taken_a = ac, taken_b = bc;
    taken_a.insert(taken_a.end(), ab.begin(), ab.end());
    taken_b.insert(taken_b.end(), bb.begin(), bb.end());
    Dims af = other_dims(taken_a, rank_of(a)), bf = other_dims(taken_b, rank_of(b));
    Shape result = pick(sa, ab);
    for (int64_t d : af) result.push_back(sa[d]);
    for (int64_t d : bf) result.push_back(sb[d]);
    Value ma = grouped(a, ab, af, ac), mb = grouped(b, bb, bc, bf);  // [b] m k, [b] k n
    if (!machine_.gpu) steady_rows(ma);
    return prim::reshape(matrix_product(ma, mb), result);
  }

  // Rows that cannot be read in even steps (patches of an image) are written out first, in their own dimensions.
  void steady_rows(Value a) {
    Index index = probe(shape_of(a));
    Source from = source_of(a, index);
    if (coefficient(from.place, index[index.size() - 1]) && coefficient(from.place, index[index.size() - 2])) return;
    Value before = prim_of(a) == Prim::Reshape ? a.node->arg<Value>(0) : a;
    if (prim_of(before) != Prim::Input) out_.in_memory.insert(before);
  }

  Value matrix_product(Value a, Value b) {
    int64_t rank = rank_of(a), batch = rank - 2;
    Shape sa = shape_of(a), sb = shape_of(b);
    Expr m = sa[rank - 2], k = sa[rank - 1], n = sb[rank - 1];
    if (k.is(1) || ((m.is(1) || n.is(1)) && !machine_.gpu)) return product_of_vectors(a, b);
    if (!machine_.gpu) b = along_vectors(b, m);
    Dims batches(batch);
    std::iota(batches.begin(), batches.end(), 0);
    return prim::dot_general(a, b, {rank - 1}, {rank - 2}, batches, batches);
  }

  // b if its columns lie side by side in memory, else b packed into panels [b] n / columns, k, columns.
  Value along_vectors(Value b, Expr m) {
    int64_t rank = rank_of(b), batch = rank - 2;
    Shape s = shape_of(b);
    Expr k = s[rank - 2], n = s[rank - 1];
    Index index = probe(s);
    Source from = source_of(b, index);
    auto column = coefficient(from.place, index[rank - 1]), row = coefficient(from.place, index[rank - 2]);
    bool affine = column && row && column->is(1);
    bool far =
        n.is_constant() && n.constant() * size_of(ops::dtype_of(b)) >= 8192 && m.is_constant() && m.constant() >= 64;
    if (affine && !far) {
      if (prim_of(from.value) != Prim::Input) out_.in_memory.insert(from.value);
      return b;
    }
    ContractionTile tile = contraction_tile(m, n, ops::dtype_of(b), machine_);
    Expr columns = n.is_constant() && n.constant() < tile.columns() ? n : Expr(tile.columns());
    Expr panels = ceildiv(n, columns);
    std::vector<Expr> zeros(rank, Expr(0)), ones(rank, Expr(1)), high = zeros;
    high[rank - 1] = panels * columns - n;
    Value padded = prim::pad(b, ops::scalar(0, ops::dtype_of(b)), zeros, high, zeros);
    Shape split(s.begin(), s.begin() + batch), back = split;
    split.insert(split.end(), {k, panels, columns});
    back.insert(back.end(), {k, panels * columns});
    Dims order(batch);
    std::iota(order.begin(), order.end(), 0);
    order.insert(order.end(), {batch + 1, batch, batch + 2});
    Value packed = prim::transpose(prim::reshape(padded, split), order);
    if (prim_of(packed) == Prim::Input) return b;
    out_.in_memory.insert(packed);
    Value unpacked = prim::reshape(prim::transpose(packed, order), back);
    return prim::slice(unpacked, zeros, s, ones);
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
    Dims dims_a(batch), dims_b(batch);
    std::iota(dims_a.begin(), dims_a.end(), 0);
    dims_b = dims_a;
    if (last) {
      wide.insert(wide.end(), {m, n, k});
      dims_a.insert(dims_a.end(), {batch, batch + 2});
      dims_b.insert(dims_b.end(), {batch + 2, batch + 1});
    } else {
      wide.insert(wide.end(), {k, m, n});
      dims_a.insert(dims_a.end(), {batch + 1, batch});
      dims_b.insert(dims_b.end(), {batch, batch + 2});
    }
    Value x = prim::broadcast(prim::convert(a, acc), wide, dims_a);
    Value y = prim::broadcast(prim::convert(b, acc), wide, dims_b);
    Value sum = reduction(prim::binary("mul", x, y), {last ? batch + 2 : batch}, "add");
    return prim::reshape(prim::convert(sum, t), result);
  }

  // --- convolutions ---

  Value convolution(const ir::Args& args) {
    Value x = args[0].get<Value>(), w = args[1].get<Value>();
    const auto &stride = args[2].get<std::vector<Expr>>(), &low = args[3].get<std::vector<Expr>>(),
               &high = args[4].get<std::vector<Expr>>(), &x_dilation = args[5].get<std::vector<Expr>>(),
               &w_dilation = args[6].get<std::vector<Expr>>();
    Expr groups = args[7].get<Expr>();
    auto spatial = static_cast<int64_t>(stride.size());
    x = bordered(x, low, high, x_dilation);
    bool patches = true;
    for (int64_t d = 0; d < spatial; ++d) {
      Expr size = shape_of(w)[d + 2];
      patches = patches && stride[d] == size && w_dilation[d].is(1);
      x = prim::window(x, d + 2, size, stride[d], w_dilation[d]);
    }
    // x: batch, groups, channels, positions…, kernel…; w: groups, outputs, channels, kernel….
    Shape sx = shape_of(x), sw = shape_of(w);
    Shape split_x = {sx[0], groups, floordiv(sx[1], groups)}, split_w = {groups, floordiv(sw[0], groups)};
    split_x.insert(split_x.end(), sx.begin() + 2, sx.end());
    split_w.insert(split_w.end(), sw.begin() + 1, sw.end());
    x = prim::reshape(x, split_x);
    w = prim::reshape(w, split_w);
    Dims xc = {2}, wc = {2};
    for (int64_t d = 0; d < spatial; ++d) {
      xc.push_back(3 + spatial + d);
      wc.push_back(3 + d);
    }
    Shape result = {sx[0], sw[0]};
    for (int64_t d = 0; d < spatial; ++d) result.push_back(sx[2 + d]);
    if (patches) {  // groups, batch, positions…, outputs: every element of x is read once
      Value y = contraction(x, w, xc, wc, {1}, {0});
      Dims order = {1, 0, 2 + spatial};
      for (int64_t d = 0; d < spatial; ++d) order.push_back(2 + d);
      return prim::reshape(prim::transpose(y, order), result);
    }
    Value y = contraction(w, x, wc, xc, {0}, {1});  // groups, outputs, batch, positions…
    Dims order = {2, 0, 1};
    for (int64_t d = 0; d < spatial; ++d) order.push_back(3 + d);
    return prim::reshape(prim::transpose(y, order), result);
  }

  // Zeros around and between the spatial elements; a negative border cuts off.
  Value bordered(Value x, const std::vector<Expr>& low, const std::vector<Expr>& high,
                 const std::vector<Expr>& dilation) {
    int64_t rank = rank_of(x);
    std::vector<Expr> lo(rank, 0), hi(rank, 0), between(rank, 0), start(rank, 0), step(rank, 1);
    for (int64_t d = 2; d < rank; ++d) {
      lo[d] = max(low[d - 2], 0);
      hi[d] = max(high[d - 2], 0);
      between[d] = dilation[d - 2] - 1;
      start[d] = max(-low[d - 2], 0);
    }
    x = prim::pad(x, ops::scalar(0, ops::dtype_of(x)), lo, hi, between);
    Shape size = shape_of(x);
    for (int64_t d = 2; d < rank; ++d) size[d] = size[d] - start[d] - max(-high[d - 2], 0);
    return prim::slice(x, start, size, step);
  }

  // --- reductions ---

  Value reduction(Value x, const Dims& dims, const std::string& combiner) {
    DType t = ops::dtype_of(x);
    Shape s = shape_of(x);
    Dims kept = other_dims(dims, rank_of(x)), real;
    Shape result = pick(s, kept);
    if (is_empty(s)) return ops::broadcast_to(identity(combiner, t), result);
    for (int64_t d : dims)
      if (!s[d].is(1)) real.push_back(d);
    if (real.empty()) return prim::reshape(x, result);
    Value wide = prim::convert(x, accumulator_of(t));
    Value out = machine_.gpu ? Value{} : split(wide, kept, real, combiner);
    if (!out) out = prim::reduce(wide, dims, combiner);
    return prim::convert(prim::reshape(out, result), t);
  }

  Value identity(const std::string& combiner, DType t) { return ops::scalar(ops::identity(combiner, t), t); }

  // In two steps where one would leave threads without work; an absent Value where it would not.
  Value split(Value x, const Dims& kept, const Dims& reduced, const std::string& combiner) {
    Shape s = shape_of(x);
    Expr rows = product(pick(s, kept)), length = product(pick(s, reduced));
    Dims kept_real;
    for (int64_t d : kept)
      if (!s[d].is(1)) kept_real.push_back(d);
    if (!rows.is_constant() || (!length.is_constant() && !rows.is(1))) return {};
    bool columns = !kept_real.empty() && kept_real.front() > reduced.back();
    bool rows_first = kept_real.empty() || kept_real.back() < reduced.front();
    Expr parts(1);
    if (rows_first) {
      if (length.is_constant() ? length.constant() < 2 * kPart || rows.constant() >= 4 * machine_.threads : false)
        return {};
      parts = length.is_constant() ? Expr(parts_of(length.constant(), (length.constant() + kPart - 1) / kPart))
                                   : ceildiv(length, Expr(2 * kPart));
    } else if (columns) {
      int64_t tasks = (rows.constant() + 63) / 64, enough = 4 * machine_.threads;
      if (tasks >= enough || length.constant() < 128 || rows.constant() * length.constant() < 2 * kPart) return {};
      parts = Expr(parts_of(length.constant(), std::min((enough + tasks - 1) / tasks, length.constant() / 32)));
    } else {
      return {};
    }
    Expr part = ceildiv(length, parts);
    Shape flat = columns ? Shape{length, rows} : Shape{rows, length};
    size_t at = columns ? 0 : 1;
    Value v = prim::reshape(x, flat);
    std::vector<Expr> zeros(2, 0), high(2, 0);
    high[at] = parts * part - length;
    v = prim::pad(v, identity(combiner, ops::dtype_of(x)), zeros, high, zeros);
    Value pieces = columns ? prim::reshape(v, {parts, part, rows}) : prim::reshape(v, {rows, parts, part});
    Value partial = prim::reduce(pieces, {columns ? 1 : 2}, combiner);
    return prim::reduce(partial, {columns ? 0 : 1}, combiner);
  }

  // About `wanted` parts of equal length if there is such a number near.
  static int64_t parts_of(int64_t length, int64_t wanted) {
    wanted = std::max<int64_t>(wanted, 1);
    for (int64_t p = wanted; p <= wanted * 2; ++p)
      if (length % p == 0) return p;
    return wanted;
  }

  const ir::Graph& graph_;
  const Machine& machine_;
  ir::Facts& facts_;
  Prepared out_;
  ir::ValueMap map_;
};

}  // namespace

Prepared prepare(const ir::Graph& graph, ir::Facts& facts, const Machine& machine) {
  return Preparer(graph, facts, machine).run();
}

}  // namespace brasa::compiler
