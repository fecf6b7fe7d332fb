#include <limits>

#include "ops/accepted.h"
#include "ops/positions.h"
#include "ops/rows.h"
#include "support/error.h"

// Sums, means or maxima of rows of a table: bag b takes the rows that indices[offsets[b]] … name.
namespace brasa::ops {
namespace {

enum Mode : int64_t { kSum, kMean, kMax };

struct Bags {
  Value weight, indices, bag;  // bag: that of each index
  Value end;                   // where the last bag ends, if that was given
  Value used;                  // is the index not padding? Absent if all are
  Value scale;                 // per_sample_weights
  Expr count;
  int64_t mode;
  DType index_type;
};

Value unused_as_zero(const Value& used, Value rows) {
  if (!used) return rows;
  return prim::select(prim::broadcast(used, shape_of(rows), {0}), rows, zeros_like(rows));
}
Value beside_rows(Value v, Value rows) { return prim::broadcast(convert(v, dtype_of(rows)), shape_of(rows), {0}); }
Value not_padding(Value indices, Expr padding) {
  return is_less(padding, 0) ? Value{} : ne(indices, Number(ir::Arg(padding)));
}

Bags bags_of(Value weight, Value indices, Value offsets, int64_t mode, Value scale, bool include_last, Expr padding) {
  constexpr const char* op = "embedding_bag";
  check_rank(op, "weight", weight, 2);
  check_rank(op, "indices", indices, 1);
  check_rank(op, "offsets", offsets, 1);
  BRASA_CHECK(is_integral(dtype_of(indices)) && is_integral(dtype_of(offsets)), op,
              ": expected indices and offsets of an integer dtype, got ", type_of(indices), " and ", type_of(offsets));
  DType index_type = promote(dtype_of(indices), dtype_of(offsets));
  BRASA_CHECK(index_type == DType::Int64 || index_type == DType::Int32, op,
              ": Expected indices to have one of the following scalar types: Long, Int; but got ", type_of(indices));
  BRASA_CHECK(is_floating(dtype_of(weight)), op, ": expected a floating weight, got ", type_of(weight));
  BRASA_CHECK(mode >= kSum && mode <= kMax, op, ": expected mode 0 (sum), 1 (mean) or 2 (max), got ", mode);
  if (scale) {
    BRASA_CHECK(mode == kSum, op, ": per_sample_weights only support mode 0 (sum), got mode ", mode);
    check_same_shape("embedding_bag: per_sample_weights", scale, indices);
    BRASA_CHECK(dtype_of(scale) == dtype_of(weight), op, ": expected per_sample_weights of weight's dtype ",
                name(dtype_of(weight)), ", got ", name(dtype_of(scale)));
  }
  BRASA_CHECK(!include_last || is_less(0, size_of(offsets, 0)), op,
              ": include_last_offset: number of offsets should be at least 1, got ", type_of(offsets));
  Bags b;
  b.index_type = index_type;
  b.count = include_last ? size_of(offsets, 0) - 1 : size_of(offsets, 0);
  b.weight = weight;
  b.indices = checked_forward_index(indices, size_of(weight, 0), op);
  Value starts = convert(offsets, DType::Int64);
  check_values(logical_and(le(starts, size_tensor(size_of(indices, 0), shape_of(starts))),
                           logical_or(ne(prim::iota(shape_of(starts), 0, DType::Int64), 0), eq(starts, 0))),
               str(op, ": offsets[0] has to be 0, and offsets at most the number of indices, ", size_of(indices, 0)));
  b.bag = segment_of(narrow(starts, 0, 0, b.count), size_of(indices, 0));
  if (include_last) b.end = narrow(starts, 0, b.count, 1);
  b.used = not_padding(b.indices, padding);
  b.scale = scale;
  b.mode = mode;
  return b;
}

Value collected(Value updates, Value bag, Expr count, double initial, const char* combine) {
  Shape shape = shape_of(updates);
  shape[0] = count;
  return prim::scatter(full(initial, shape, dtype_of(updates)), {bag}, updates, {0}, combine);
}

// {results, bag of each index, sizes of bags, index of the greatest}
std::array<Value, 4> embedding_bag(Value weight, Value indices, Value offsets, int64_t mode, Value scale,
                                   bool include_last, Expr padding) {
  Bags b = bags_of(weight, indices, offsets, mode, scale, include_last, padding);
  Value rows = prim::gather(weight, {b.indices}, {0});
  auto as_index = [&](Value v) { return convert(v, b.index_type); };
  Value none = full(0, {b.count}, b.index_type), bag = as_index(b.bag);
  Value summed = b.used;
  if (b.end && dtype_of(weight) != DType::Float64) {
    // PyTorch's kernels for these sums stop at the last offset; what counts elements does not.
    Value inside = lt(prim::iota(shape_of(b.indices), 0, DType::Int64), b.end);
    summed = summed ? logical_and(summed, inside) : inside;
  }
  if (mode == kSum) {
    if (scale) rows = rows * beside_rows(scale, rows);
    // As PyTorch's fast path does, which needs no bags for its derivative.
    if (is_less(padding, 0) && dtype_of(weight) != DType::Float64) bag = full(0, {Expr(0)}, b.index_type);
    return {collected(unused_as_zero(summed, rows), b.bag, b.count, 0, "add"), bag, none, none};
  }
  Value one = full(1, shape_of(b.indices), DType::Int64);
  Value sizes = collected(unused_as_zero(b.used, one), b.bag, b.count, 0, "add");
  if (mode == kMean) {
    Value total = collected(unused_as_zero(summed, rows), b.bag, b.count, 0, "add");
    Value n = maximum(sizes, full(1, shape_of(sizes), DType::Int64));
    return {total / beside_rows(n, total), bag, as_index(sizes), as_index(sizes)};
  }
  double lowest = -std::numeric_limits<double>::infinity();
  Value candidates =
      b.used ? prim::select(prim::broadcast(b.used, shape_of(rows), {0}), rows, constant_like(rows, lowest)) : rows;
  Value best = collected(candidates, b.bag, b.count, lowest, "max");
  Value filled = prim::broadcast(gt(sizes, 0), shape_of(best), {0});
  Expr n = size_of(b.indices, 0);
  Value behind = size_tensor(n, shape_of(rows));
  Value mine = eq(rows, prim::gather(best, {b.bag}, {0}));
  if (b.used) mine = logical_and(mine, prim::broadcast(b.used, shape_of(rows), {0}));
  Value place = where(mine, prim::iota(shape_of(rows), 0, DType::Int64), behind);
  Value first = prim::scatter(size_tensor(n, shape_of(best)), {b.bag}, place, {0}, "min");
  Value found = logical_and(filled, lt(first, size_tensor(n, shape_of(best))));
  Value which = prim::gather(b.indices, {where(found, first, zeros_like(first))}, {0});
  return {prim::select(filled, best, zeros_like(best)), bag, as_index(sizes),
          as_index(where(found, which, zeros_like(which)))};
}

// --- derivatives ---

// How often each index occurs.
Value frequencies(Value indices, Expr rows) {
  return prim::gather(collected(full(1, shape_of(indices), DType::Int64), indices, rows, 0, "add"), {indices}, {0});
}

Value weight_gradient(Value g, Value indices, Value bag, Value sizes, Value greatest, Expr rows, bool by_frequency,
                      int64_t mode, Value scale, Expr padding) {
  Shape shape = {rows, size_of(g, 1)};
  indices = convert(indices, DType::Int64);
  BRASA_CHECK(!by_frequency || mode != kMax,
              "embedding_bag: scale_grad_by_freq was set but is not supported for mode 2 (max)");
  if (mode == kMax || mode == kMean) sizes = with_sizes(sizes, {size_of(g, 0)});
  if (mode == kMax) {
    greatest = with_sizes(greatest, shape_of(g));
    Value filled = prim::broadcast(gt(sizes, 0), shape_of(g), {0});
    return prim::scatter(full(0, shape, dtype_of(g)),
                         {convert(greatest, DType::Int64), prim::iota(shape_of(g), 1, DType::Int64)},
                         prim::select(filled, g, zeros_like(g)), {0, 1}, "add");
  }
  if (mode == kMean) g = g / beside_rows(maximum(sizes, full(1, shape_of(sizes), dtype_of(sizes))), g);
  Value each = prim::gather(g, {with_sizes(convert(bag, DType::Int64), shape_of(indices))}, {0});
  if (scale) each = each * beside_rows(scale, each);
  if (by_frequency) each = each / beside_rows(frequencies(indices, rows), each);
  return collected(unused_as_zero(not_padding(indices, padding), each), indices, rows, 0, "add");
}

Value scale_gradient(Value g, Value weight, Value indices, Value bag, Expr padding) {
  Value rows = prim::gather(weight, {convert(indices, DType::Int64)}, {0});
  Value each = sum(prim::gather(g, {convert(bag, DType::Int64)}, {0}) * rows, {1});
  return unused_as_zero(not_padding(indices, padding), each);
}

constexpr const char* kBackward = "embedding_bag_backward";

// The bag of each index, where the forward pass did not give it.
Value known_bag(Value indices, Value offsets, Value offset2bag, Expr bags) {
  check_integer_index(kBackward, offset2bag);
  if (same_size(size_of(offset2bag, 0), size_of(indices, 0))) return with_sizes(offset2bag, shape_of(indices));
  Value starts = narrow(convert(offsets, DType::Int64), 0, 0, ir::min(bags, size_of(offsets, 0)));
  return segment_of(starts, size_of(indices, 0));
}

Expr wrapped_padding(std::optional<Expr> padding, Value weight) {
  if (!padding) return -1;
  Expr rows = size_of(weight, 0);
  BRASA_CHECK(!is_less(*padding, -rows) && is_less(*padding, rows),
              "padding_idx must be within the number of embeddings, -", rows, " through ", rows - 1, ", but got ",
              *padding);
  return is_less(*padding, 0) ? *padding + rows : *padding;
}

// Rows of gradients take indices that no forward pass has looked at.
Value checked_rows(Value indices, Expr rows) {
  check_integer_index(kBackward, indices);
  return checked_forward_index(indices, rows, kBackward);
}

Value checked_weight_gradient(Value g, Value indices, Value bag, Value sizes, Value greatest, Expr rows,
                              bool by_frequency, int64_t mode, Value scale, Expr padding) {
  check_rank(kBackward, "grad", g, 2);
  for (Value v : {sizes, greatest}) check_integer_index(kBackward, v);
  if (scale) check_same_shape("embedding_bag_backward: per_sample_weights", scale, indices);
  return weight_gradient(g, checked_rows(indices, rows), mode == kMax ? bag : checked_rows(bag, size_of(g, 0)), sizes,
                         mode == kMax ? checked_rows(greatest, rows) : greatest, rows, by_frequency, mode, scale,
                         padding);
}

enum class Padding { None, Given, Wrapped };

template <Padding kPadding>
std::vector<Value> bag_vjp(const Saved& s) {
  if (!s.ct()) return {};
  Value weight = s.in(0), indices = s.in(1), scale = s.in(6);
  Expr padding = -1;
  if constexpr (kPadding == Padding::Given) padding = s.arg<Expr>(8);
  if constexpr (kPadding == Padding::Wrapped) padding = wrapped_padding(s.arg<std::optional<Expr>>(8), weight);
  Value bag = known_bag(indices, s.in(2), s.out(1), size_of(s.out(), 0));
  std::vector<Value> out(7);
  out[0] = weight_gradient(s.ct(), indices, bag, s.out(2), s.out(3), size_of(weight, 0), s.arg<bool>(3),
                           s.arg<int64_t>(4), scale, padding);
  if (scale) out[6] = scale_gradient(s.ct(), weight, indices, bag, padding);
  return out;
}

constexpr const char* kResults = " Also gives the bag of each index, the bags' sizes and the rows of the maxima.";

}  // namespace

void add_embedding_bag(Table& t) {
  const std::string doc = "The sum (0), mean (1) or maximum (2) of each bag of rows; offsets say where bags begin.";
  const std::vector<Sample> samples = {{floats(2, 3), ints(5), tensor(DType::Int64, {2}).in(0, 1)},
                                       {floats(2, 3), ints(4), ints(1).in(0, 1), false, 1},
                                       {floats(2, 3), ints(4), ints(1).in(0, 1), false, 2}};
  auto bag = [](Value w, Value indices, Value offsets, bool, int64_t mode, bool, Value scale, bool include_last) {
    return embedding_bag(w, indices, offsets, mode, scale, include_last, -1);
  };
  auto padded_bag = [](Value w, Value indices, Value offsets, bool, int64_t mode, bool, Value scale, bool include_last,
                       Expr padding) { return embedding_bag(w, indices, offsets, mode, scale, include_last, padding); };
  constexpr const char* kParameters =
      "(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False";
  t.op(str("aten::embedding_bag", kParameters, ") -> (Tensor, Tensor, Tensor, Tensor)"))
      .doc(str(doc, kResults))
      .sparse(Sparse::EmbeddingBag)
      .composed_in_opmath(bag)
      .vjp(own_derivative(bag_vjp<Padding::None>))
      .samples(samples);
  t.op("aten::embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)")
      .doc(str(doc, " Rows of padding_idx take no part.", kResults))
      .sparse(Sparse::EmbeddingBag)
      .composed_in_opmath([](Value w, Value indices, Value offsets, bool, int64_t mode, bool, Value scale,
                             bool include_last, std::optional<Expr> padding) {
        return embedding_bag(w, indices, offsets, mode, scale, include_last, wrapped_padding(padding, w));
      })
      .vjp(own_derivative(bag_vjp<Padding::Wrapped>))
      .samples({{floats(2, 3), ints(5), ints(1).in(0, 1), false, 0, false, ir::None{}, false, 1},
                {floats(2, 3), ints(5), ints(1).in(0, 1), false, 2, false, ir::None{}, false, 0}});
  for (const char* name : {"_embedding_bag", "_embedding_bag_forward_only"})
    t.op(str("aten::", name, kParameters, ", int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)"))
        .doc(str(doc, " Rows of padding_idx take no part.", kResults))
        .sparse(Sparse::EmbeddingBag)
        .composed_in_opmath(padded_bag)
        .vjp(own_derivative(bag_vjp<Padding::Given>))
        .samples(samples);
  t.op("aten::_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor")
      .doc("The derivative of embedding_bag by the table of rows.")
      .composed_in_opmath([](Value g, Value indices, Value offsets, Value bag, Value sizes, Value greatest, Expr rows,
                             bool by_frequency, int64_t mode, bool, Value scale, Expr padding) {
        return checked_weight_gradient(g, indices, known_bag(indices, offsets, bag, size_of(g, 0)), sizes, greatest,
                                       rows, by_frequency, mode, scale, padding);
      })
      .samples({{floats(1, 3), ints(4), ints(1).in(0, 1), ints(0), ints(1), ints(1), 2, false, 0, false, ir::None{}}});
  t.op("aten::_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor")
      .doc("The derivative of embedding_bag by the table of rows.")
      .composed_in_opmath([](Value g, Value indices, Value bag, Value sizes, Value greatest, Expr rows,
                             bool by_frequency, int64_t mode, Value scale, Expr padding) {
        return checked_weight_gradient(g, indices, bag, sizes, greatest, rows, by_frequency, mode, scale, padding);
      })
      .samples({{floats(2, 3), ints(4), ints(4), ints(2), ints(2), 2, true, 1, ir::None{}}});
  t.op("aten::_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, Tensor offset2bag, int mode, int padding_idx=-1) -> Tensor")
      .doc("The derivative of embedding_bag by the weights of the samples.")
      .composed_in_opmath(
          [](Value g, Value weight, Value indices, Value offsets, Value bag, int64_t mode, Expr padding) {
            BRASA_CHECK(mode == kSum,
                        "embedding_bag_backward: per_sample_weights only supported for mode 0 (sum), got mode ", mode);
            Value bags = checked_rows(known_bag(indices, offsets, bag, size_of(g, 0)), size_of(g, 0));
            return scale_gradient(g, weight, checked_rows(indices, size_of(weight, 0)), bags, padding);
          })
      .samples({{floats(1, 3), floats(2, 3), ints(4), ints(1).in(0, 1), ints(0), 0}});
}

}  // namespace brasa::ops
