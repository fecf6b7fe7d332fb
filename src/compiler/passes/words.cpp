#include "compiler/passes/words.h"

#include "compiler/fusion/places.h"
#include "compiler/passes/contraction.h"
#include "compiler/passes/transform.h"
#include "ops/shapes.h"

namespace brasa::compiler {

namespace prim = ops::prim;
using Dims = std::vector<int64_t>;

namespace {

bool is_byte(DType t) { return t == DType::Int8 || t == DType::UInt8; }
bool is_narrow(DType t) { return is_byte(t) || t == DType::Int16; }
bool is(const Node* n, ops::ScalarOp op) { return prim_of(n) == Prim::Pointwise && ops::row_of(*n).scalar == op; }

Dims joined(Dims a, const Dims& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

Value unwidened(Value operand) {
  const Node* n = operand.node;
  bool integers = converts(n) && n->types[0].dtype == DType::Int32 && is_narrow(type_of(n->arg<Value>(0)).dtype);
  return integers || widens(n) ? n->arg<Value>(0) : operand;
}

int64_t in_a_word(DType t) { return 4 / size_of(t); }

Value panels_of_words(Value v, int64_t dim, Expr width, int64_t multiple, DType as, Primitives& out) {
  int64_t rank = ops::rank_of(v), batch = rank - 2, other = dim == batch ? batch + 1 : batch;
  const DType t = ops::dtype_of(v), raw = is_byte(t) ? t : DType::Int16, read = is_byte(t) ? as : raw;
  const int64_t each = in_a_word(t), bits = 32 / each;
  const Dims order = joined(ops::counted(0, batch), {dim, other});  // it is its own inverse
  v = prim::transpose(v, order);
  Shape s = ops::shape_of(v), outside(s.begin(), s.begin() + batch);
  Expr count = ceildiv(s[batch], width), words = ceildiv(s[batch + 1], each * multiple) * multiple;
  std::vector<Expr> high(rank, Expr(0));
  high[batch] = count * width - s[batch];
  high[batch + 1] = words * each - s[batch + 1];
  auto shape = [&](std::initializer_list<Expr> last) {
    Shape made = outside;
    made.insert(made.end(), last);
    return made;
  };
  Value split = prim::reshape(zeros_behind(v, high), shape({count, width, words, each}));
  const Dims swapped = joined(ops::counted(0, batch + 1), {batch + 2, batch + 1});
  auto part = [&](int64_t i) {
    std::vector<Expr> start(rank + 2, Expr(0)), step(rank + 2, Expr(1));
    start.back() = i;
    Value x = prim::slice(split, start, shape({count, width, words, 1}), step);
    x = prim::transpose(prim::reshape(x, shape({count, width, words})), swapped);
    x = prim::convert(prim::bitcast(x, raw), DType::Int32);
    if (i + 1 < each) x = ops::pointwise("bit_and", x, (int64_t{1} << bits) - 1);
    return i == 0 ? x : ops::pointwise("shl", x, bits * i);
  };
  Value packed = part(0);
  for (int64_t i = 1; i < each; ++i) packed = ops::pointwise("bit_or", packed, part(i));
  if (as != t) packed = ops::pointwise("bit_xor", packed, static_cast<int32_t>(0x80808080));
  in_memory(packed, out);
  const Shape parts = shape({count, words, width, each});
  Value all = prim::broadcast(packed, parts, ops::counted(0, rank + 1));
  Value shift = prim::slice(prim::iota({32}, 0, DType::Int32), {0}, {each}, {bits});
  Value x = prim::bitcast(prim::convert(ops::pointwise("shr", all, ops::broadcast_to(shift, parts)), read), as);
  x = prim::transpose(x, joined(swapped, {batch + 3}));
  return prim::transpose(first_of(prim::reshape(x, shape({count * width, words * each})), s), order);
}

std::optional<Words> words_of(Value operand, Index at) {
  Value v = unwidened(operand);
  auto down = [&] {
    for (; is_view(prim_of(v)); v = v.node->arg<Value>(0))
      if (!at.empty()) at = view_index(v.node, at);
  };
  down();
  if (is(v.node, ops::ScalarOp::Bitcast) && type_of(v.node->arg<Value>(0)).dtype == DType::Int16)
    v = v.node->arg<Value>(0);
  else if (!is_narrow(type_of(v).dtype))
    return {};
  for (ops::ScalarOp op : {ops::ScalarOp::Convert, ops::ScalarOp::Shr}) {
    if (!is(v.node, op)) return {};
    v = v.node->arg<Value>(0);
  }
  if (type_of(v).dtype != DType::Int32 || prim_of(v) != Prim::Broadcast) return {};
  down();
  return Words{v, std::move(at)};
}

bool of_words(Value operand) { return words_of(operand, {}).has_value(); }

bool in_tiles(Value operand, size_t kept, size_t summed) {
  Index at = probe(type_of(operand).shape);
  std::optional<Words> words = words_of(operand, at);
  if (!words || prim_of(words->value) != Prim::Input) return false;
  const ir::Shape& shape = type_of(words->value).shape;
  size_t rank = shape.size();
  Expr width = shape.back();
  return (width.is(kMatrixTile) || width.is(2 * kMatrixTile)) && provably_divisible(shape[rank - 2], kMatrixTile) &&
         words->at[rank - 3] == floordiv(at[kept], width) && words->at[rank - 1] == mod(at[kept], width) &&
         words->at[rank - 2] == floordiv(at[summed], in_a_word(type_of(unwidened(operand)).dtype));
}

}  // namespace brasa::compiler
