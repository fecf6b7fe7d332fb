#include "compiler/fusion/indexing.h"
#include "compiler/passes/transform.h"

namespace brasa::compiler {

using ir::Expr;
using ir::Shape;
using ir::Value;
namespace prim = ops::prim;
using ops::rank_of;
using ops::shape_of;
using Dims = std::vector<int64_t>;

namespace {

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
    Value y = prim::dot_general(x, w, xc, wc, {1}, {0});
    Dims order = {1, 0, 2 + spatial};
    for (int64_t d = 0; d < spatial; ++d) order.push_back(2 + d);
    return prim::reshape(prim::transpose(y, order), result);
  }
  Value y = prim::dot_general(w, x, wc, xc, {0}, {1});  // groups, outputs, batch, positions…
  Dims order = {2, 0, 1};
  for (int64_t d = 0; d < spatial; ++d) order.push_back(3 + d);
  return prim::reshape(prim::transpose(y, order), result);
}

}  // namespace

void lower_convolutions(Primitives& p, const PassContext& context) {
  transform(
      p, context.facts, [](const ir::Node* n) { return prim_of(n) == Prim::Convolution; },
      [](const ir::Node*, ir::Args& args, Primitives&) { return std::vector{convolution(args)}; });
}

}  // namespace brasa::compiler
