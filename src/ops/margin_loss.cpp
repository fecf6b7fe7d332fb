#include <limits>

#include "ops/accepted.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Losses over the margins between the scores of one sample's classes. Scores are [N, C], or [C] of one sample.
namespace brasa::ops {
namespace {

enum Reduction : int64_t { kNone, kMean, kSum };

Value reduced(Value each, int64_t reduction) {
  if (reduction == kNone) return each;
  Value total = sum(each, all_dims(each));
  return reduction == kMean ? total / count(each, all_dims(each), dtype_of(each)) : total;
}

Value as_rows(const char* op, Value x) {
  BRASA_CHECK(rank_of(x) <= 2, op,
              ": Expected non-empty vector or matrix with optional 0-dim batch size, but got: ", type_of(x));
  Value m = at_least_1d(x);
  if (rank_of(m) == 1) m = unsqueeze(m, 0);
  BRASA_CHECK(!same_size(size_of(m, 1), 0), op,
              ": Expected non-empty vector or matrix with optional 0-dim batch size, but got: ", type_of(x));
  return m;
}

// The cotangent of each sample's loss, [N, 1].
Value per_sample(Value ct, Value rows, int64_t reduction) {
  Shape shape = {size_of(rows, 0), Expr(1)};
  if (reduction == kNone) return prim::reshape(ct, shape);
  if (reduction == kMean) ct = ct / count(rows, {0}, dtype_of(rows));
  return broadcast_to(prim::reshape(ct, {Expr(1), Expr(1)}), shape);
}

// --- one class a sample ---

struct Multi {
  Value x, target, is_target;  // [N, C], [N, 1], [N, C]
  Value hinge;                 // margin - x_y + x_j
  Value weight;                // [N, 1]; absent if all are 1
};

Multi multi(Value self, Value target, const Number& p, const Number& margin, Value weight) {
  constexpr const char* op = "multi_margin_loss";
  BRASA_CHECK(p.is(1) || p.is(2), op, ": only p == 1 and p == 2 supported, got ", p.as_double());
  Multi m;
  m.x = as_rows(op, floating_only(op, self));
  check_long_index(op, target);
  BRASA_CHECK(rank_of(target) <= 1 && same_size(type_of(target).numel(), size_of(m.x, 0)), op,
              ": inconsistent target size, expected ", size_of(m.x, 0), " but got ", type_of(target));
  BRASA_CHECK(!weight || (rank_of(weight) == 1 && same_size(size_of(weight, 0), size_of(m.x, 1))), op,
              ": inconsistent weight size, expected ", size_of(m.x, 1), " but got ",
              weight ? shape_of(weight) : Shape{});
  Value index = prim::reshape(target, {size_of(m.x, 0)});
  index = checked_forward_index(index, size_of(m.x, 1), op);
  m.target = unsqueeze(index, 1);
  m.is_target = eq(prim::iota(shape_of(m.x), 1, DType::Int64), m.target);
  m.hinge = margin - gather_along(m.x, 1, m.target) + m.x;
  if (weight) m.weight = unsqueeze(prim::gather(weight, {index}, {0}), 1);
  return m;
}

Value multi_margin_loss(Value self, Value target, Number p, Number margin, Value weight, int64_t reduction) {
  Multi m = multi(self, target, p, margin, weight);
  Value z = where(logical_or(m.is_target, le(m.hinge, 0)), zeros_like(m.x), m.hinge);
  if (p.is(2)) z = z * z;
  if (m.weight) z = z * m.weight;
  Value each = sum(z, {1}) / count(m.x, {1}, dtype_of(m.x));
  if (reduction == kNone && rank_of(target) == 0) return prim::reshape(each, {});
  return reduced(each, reduction);
}

Value multi_margin_pullback(Value ct, Value self, Value target, Number p, Number margin, Value weight,
                            int64_t reduction) {
  Multi m = multi(self, target, p, margin, weight);
  Value g = per_sample(ct, m.x, reduction) / count(m.x, {1}, dtype_of(m.x));
  if (m.weight) g = g * m.weight;
  Value each = p.is(2) ? 2 * m.hinge * g : broadcast_to(g, shape_of(m.x));
  each = where(logical_or(m.is_target, le(m.hinge, 0)), zeros_like(m.x), each);
  return prim::reshape(where(m.is_target, -sum(each, {1}, true), each), shape_of(self));
}

std::vector<Value> multi_margin_vjp(const Saved& s) {
  return {
      multi_margin_pullback(s.ct(), s.in(0), s.in(1), s.arg<Number>(2), s.arg<Number>(3), s.in(4), s.arg<int64_t>(5))};
}

// --- several classes a sample: those before the first -1 ---

struct MultiLabel {
  Value x, target, listed;  // [N, C]: scores, classes (0 behind the list), does the place belong to the list?
};

MultiLabel multilabel(Value self, Value target) {
  constexpr const char* op = "multilabel_margin_loss";
  MultiLabel m;
  m.x = as_rows(op, self);
  check_same_shape(op, self, target);
  check_long_index(op, target);
  Value labels = prim::reshape(target, shape_of(m.x));
  m.listed = eq(prim::scan(convert(lt(labels, 0), DType::Int64), 1, "add"), 0);
  m.target = where(m.listed, labels, zeros_like(labels));
  check_values(logical_and(ge(labels, -1), lt(labels, size_tensor(size_of(m.x, 1), shape_of(labels)))),
               str(op, ": target is out of range, expected classes in [-1, ", size_of(m.x, 1), ")"));
  return m;
}

// [N, listed, others], or with the latter two in the other order, `listed` being the dimension of the former: 1 - (x_listed - x_other),
// which counts where it is positive. It is -∞ or NaN where not both are what they should be.
Value margins(const MultiLabel& m, Value is_target, int64_t listed = 1) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Shape shape = {size_of(m.x, 0), size_of(m.x, 1), size_of(m.x, 1)};
  Value scores = where(m.listed, gather_along(m.x, 1, m.target), constant_like(m.x, kInfinity));
  Value others = where(convert(is_target, DType::Bool), constant_like(m.x, -kInfinity), m.x);
  return prim::broadcast(others, shape, {0, 3 - listed}) - prim::broadcast(scores, shape, {0, listed}) + 1;
}

std::array<Value, 2> multilabel_forward(Value self, Value target, int64_t reduction) {
  MultiLabel m = multilabel(self, target);
  Value is_target = prim::scatter(zeros_like(m.x), indices_along(shape_of(m.x), 1, m.target),
                                  convert(m.listed, dtype_of(m.x)), {0, 1}, "max");
  Value hinge = margins(m, is_target);
  Value each = sum(where(gt(hinge, 0), hinge, zeros_like(hinge)), {1, 2}) / count(m.x, {1}, dtype_of(m.x));
  Value out = reduction == kNone && rank_of(self) <= 1 ? prim::reshape(each, {}) : reduced(each, reduction);
  return {out, prim::reshape(is_target, shape_of(self))};
}

Value multilabel_pullback(Value ct, Value self, Value target, int64_t reduction, Value is_target) {
  MultiLabel m = multilabel(self, target);
  BRASA_CHECK(rank_of(is_target) == rank_of(self), "multilabel_margin_loss_backward: expected is_target of shape ",
              shape_of(self), ", got ", type_of(is_target));
  Value in_rows = prim::reshape(is_target, shape_of(m.x));
  // How many margins count, of each other and of each listed class. Both sums go along the middle dimension, over margins of their own:
  // comparing again costs less than writing all pairs.
  auto counted = [&](int64_t listed) { return sum(convert(gt(margins(m, in_rows, listed), 0), dtype_of(m.x)), {1}); };
  Value g = per_sample(ct, m.x, reduction) / count(m.x, {1}, dtype_of(m.x));
  Value others = counted(1) * g, listed = counted(2) * g;
  return prim::reshape(prim::scatter(others, indices_along(shape_of(m.x), 1, m.target), -listed, {0, 1}, "add"),
                       shape_of(self));
}

std::vector<Value> multilabel_vjp(const Saved& s) {
  if (!s.ct()) return {};
  return {multilabel_pullback(s.ct(), s.in(0), s.in(1), s.arg<int64_t>(2), s.out(1))};
}

}  // namespace

void add_margin_loss(Table& t) {
  t.op("aten::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1) -> Tensor")
      .doc("The sum over the other classes j of weight[y] max(0, margin - x[y] + x[j])^p / C, reduced.")
      .autocast(Autocast::Float32)
      .composed_in_opmath(multi_margin_loss)
      .vjp(own_derivative(multi_margin_vjp))
      .known({"p"})
      .samples({{floats(3, 2), ints(3)}, {floats(3, 2), ints(3), 2, 0.5, floats(2), 0}, {floats(2), ints()}});
  t.op("aten::multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, Tensor? weight=None, int reduction=1) -> Tensor")
      .doc("The derivative of multi_margin_loss.")
      .composed_in_opmath(multi_margin_pullback)
      .known({"p"})
      .one_dtype({"grad_output", "self", "weight"})
      .fits("margin")
      .samples({{floats(), floats(3, 2), ints(3), 1, 1}});
  t.op("aten::multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)")
      .doc(
          "The sum over classes y before the target's first -1, and j not among them, of max(0, 1 - x[y] + x[j]) / C, reduced; and which classes are among them.")
      .autocast(Autocast::Float32, Autocast::None)
      .composed_in_opmath(multilabel_forward)
      .vjp(own_derivative(multilabel_vjp))
      .samples({{floats(3, 2), ints(3, 2).in(-1, 2), 1}, {floats(2), ints(2).in(-1, 2), 0}});
  t.op("aten::multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, Tensor is_target) -> Tensor")
      .doc("The derivative of multilabel_margin_loss.")
      .composed_in_opmath(multilabel_pullback)
      .one_dtype({"grad_output", "self", "is_target"})
      .samples({{floats(), floats(3, 2), ints(3, 2).in(-1, 2), 1, floats(3, 2).in(0, 1)}});
  t.op("aten::multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
      .doc(
          "The sum over classes y before the target's first -1, and j not among them, of max(0, 1 - x[y] + x[j]) / C, reduced.")
      .autocast(Autocast::Float32)
      .composed([](Value x, Value target, int64_t reduction) {
        return call_all("aten::multilabel_margin_loss_forward", {x, target, reduction})[0];
      })
      .samples({{floats(3, 2), ints(3, 2).in(-1, 2)}});
}

}  // namespace brasa::ops
