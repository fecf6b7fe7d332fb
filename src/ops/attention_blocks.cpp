#include "ops/attention.h"
#include "ops/attention_math.h"
#include "ops/decompose.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "ops/softmax.h"

// What a target computes that goes through attention block by block.
namespace brasa::ops {
namespace {

class BlockGraph {
 public:
  BlockGraph(const AttentionBlock& b, ir::Facts& facts) : block_(b), builder_(*graph_, facts) {}

  Value rows() { return input(block_.dtype, {block_.rows, block_.features}); }
  Value keys() { return input(block_.dtype, {block_.keys, block_.features}); }
  Value by_row() { return input(opmath(block_.dtype), {block_.rows}); }
  Value sum(Expr length) { return input(opmath(block_.dtype), {length, block_.features}); }
  AttentionOperands of(Value q, Value k, Value v) {
    AttentionOperands o = attention_operands({q, k, v, mask(), false, block_.scale});
    o.diagonal = block_.diagonal;
    if (!block_.dropout) return o;
    o.kept = of_scores(DType::Bool, block_.dropout->row, 1);
    o.dropout = block_.dropout->p;
    return o;
  }
  Value mask_sum() {
    const auto& sum = *block_.mask_sum;
    Shape shape = {1, 1, sum.over_rows ? Expr(1) : block_.rows, sum.over_keys ? Expr(1) : block_.keys};
    return graph_->add_input({opmath(block_.dtype), shape, false}, "", std::vector<Expr>{0, 0, sum.row, 1});
  }
  Value key() { return graph_->add_input({DType::Int64, {2}, false}); }
  /// In the place of an input, or in memory of its own.
  void output(Value v, Value into = {}) { graph_->outputs().push_back({v, into ? graph_->input_index(into) : -1, {}}); }
  std::unique_ptr<ir::Graph> take() { return std::move(graph_); }

 private:
  Value mask() {
    if (!block_.mask) return {};
    return of_scores(block_.mask->dtype, block_.mask->row, block_.mask->key);
  }
  Value of_scores(DType dtype, Expr row, Expr key) {
    return graph_->add_input({dtype, {1, 1, block_.rows, block_.keys}, false}, "", std::vector<Expr>{0, 0, row, key});
  }
  // With the dimensions in front that heads have.
  Value input(DType dtype, Shape shape) {
    shape.insert(shape.begin(), {1, 1});
    return graph_->add_input({dtype, shape, false});
  }

  const AttentionBlock& block_;
  std::unique_ptr<ir::Graph> graph_ = std::make_unique<ir::Graph>(ir::Level::Primitives);
  Builder builder_;
};

}  // namespace

std::unique_ptr<ir::Graph> attention_block(const AttentionBlock& block, ir::Facts& facts) {
  BlockGraph g(block, facts);
  Value q = g.rows(), k = g.keys(), v = g.keys();
  AttentionOperands o = g.of(q, k, v);
  Value most = g.by_row(), total = g.by_row(), out = g.sum(block.rows);
  Value s = attention_scores(o), now = prim::binary("max", most, prim::reduce(s, {3}, "max"));
  Value finite = where(eq(now, -kInfinity), zeros_like(now), now);
  Value e = exp_beside_one(s - by_row(finite, o.scores)), before = exp_beside_one(most - finite);
  Value by_value = prim::dot_general(to_opmath(convert(dropped(o, e), block.dtype)), o.value, {3}, {2}, {0, 1}, {0, 1});
  g.output(now, most);
  g.output(total * before + prim::reduce(e, {3}, "add"), total);
  g.output(out * by_row(before, shape_of(out)) + by_value, out);
  return g.take();
}

std::unique_ptr<ir::Graph> attention_end(const AttentionBlock& block, ir::Facts& facts) {
  BlockGraph g(block, facts);
  Value most = g.by_row(), total = g.by_row(), out = g.sum(block.rows), empty = eq(total, 0);
  Value safe = where(empty, constant_like(total, 1), total);
  g.output(convert(out / by_row(safe, shape_of(out)), block.dtype));
  g.output(where(empty, zeros_like(total), log(safe) + most));
  return g.take();
}

std::unique_ptr<ir::Graph> attention_kept(const AttentionBlock& block, ir::Facts& facts) {
  BlockGraph g(block, facts);
  g.output(ge(uniform(g.key(), {block.rows}, DType::Float32), block.dropout->p));
  return g.take();
}

std::unique_ptr<ir::Graph> attention_backward_end(const AttentionBlock& block, ir::Facts& facts) {
  BlockGraph g(block, facts);
  g.output(convert(g.sum(block.rows), block.dtype));
  return g.take();
}

std::unique_ptr<ir::Graph> attention_block_backward(const AttentionBlock& block, ir::Facts& facts) {
  BlockGraph g(block, facts);
  Value ct = g.rows(), q = g.rows(), k = g.keys(), v = g.keys();
  AttentionOperands o = g.of(q, k, v);
  Value out = g.rows(), log_sum = g.by_row();
  Value sums[] = {g.sum(block.rows), g.sum(block.keys), g.sum(block.keys)};
  auto by = attention_cotangents(o, ct, log_sum, attention_inner(ct, {}, out));
  for (size_t i = 0; i < 3; ++i) g.output(sums[i] + by[i], sums[i]);
  if (!block.mask_sum) return g.take();
  Value all = g.mask_sum();
  Dims over;
  if (block.mask_sum->over_rows) over.push_back(2);
  if (block.mask_sum->over_keys) over.push_back(3);
  Value sum = over.empty() ? by[3] : prim::reshape(prim::reduce(by[3], over, "add"), shape_of(all));
  g.output(all + sum, all);
  return g.take();
}

}  // namespace brasa::ops
