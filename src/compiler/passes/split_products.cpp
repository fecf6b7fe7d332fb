#include <algorithm>

#include "compiler/fusion/indexing.h"
#include "compiler/fusion/places.h"
#include "compiler/lowering/expressions.h"
#include "compiler/passes/contraction.h"
#include "compiler/passes/transform.h"
#include "ops/shapes.h"

// A product reads a panel of its second operand once for each tile of rows. Where sums are long, as those over all places of all images in
// the gradient by a convolution's weights, a panel does not stay near meanwhile: the sums are made in parts whose panels stay there, and the
// parts are added up.
namespace brasa::compiler {

namespace prim = ops::prim;
using ops::shape_of;
using Dims = std::vector<int64_t>;

namespace {

// How long a part's sum is, and one that is worth parts.
struct Lengths {
  int64_t part, worth;
};
// A part's panel stays in the second cache. Sums over several dimensions, as images and places, read rows that are short or far apart, which
// nothing asks for ahead of time: a tile's rows of their parts stay in the first cache, too.
Lengths lengths(size_t dimensions, int64_t in_panel) {
  if (dimensions > 1) return {1024, 1024};
  return {(1 << 18) / in_panel, (1 << 19) / in_panel};
}
constexpr int64_t kShort = 8;          // how many times shorter than a panel's a part's sum is too short
constexpr int64_t kWorthResult = 192;  // products that take much longer than to write their sum and to read it again
constexpr int64_t kMostResults = 1 << 22;

// The outer ones of the dimensions that are summed up become parts: all of some, and the last of them in so many.
struct Parts {
  size_t count = 0;   // dimensions
  Expr of_last;       // parts
  Expr length;        // of a part's sum
  bool rest = false;  // parts of the last one leave some elements over
};

// The fewest equal parts of a size after which no more than `most` of `length` are left; all of it where there are none.
int64_t parts_of(int64_t size, int64_t length, int64_t most) {
  // With more of them they are too short to pay.
  int64_t fewest = (length - 1) / most + 1;
  for (int64_t p = fewest; p < size && p <= kShort * fewest; ++p)
    if (size % p == 0) return p;
  return size;
}

// None where there are no good ones. Of unknown sizes long rows are cut; else the first dimension becomes parts: images have enough places; a
// single one has some elements besides.
Parts parts_of(const Shape& summed, int64_t most, int64_t worth, const PassContext& context) {
  constexpr int64_t kUnknown = 512;
  Expr all = product(summed);
  if (!all.is_constant()) {
    if (!context.size_classes) return {};
    if (at_least(summed.back(), summed.size() > 1 ? 2 * most : worth, context))
      return {summed.size(), floordiv(summed.back(), most), most, true};
    if (summed.size() == 1) return {};
    Expr rest = product(Shape(summed.begin() + 1, summed.end()));
    bool many = at_least(rest, kUnknown, context) && at_least(summed[0], 4, context);
    return many ? Parts{1, summed[0], rest} : Parts{};
  }
  int64_t length = all.constant(), parts = 1, size = 1;
  size_t count = 0;
  for (; count < summed.size() && length > most && parts == size; ++count) {
    size = summed[count].constant();
    parts = parts_of(size, length, most);
    length /= parts;
  }
  return length < most / kShort ? Parts{} : Parts{count, parts, length};
}

// A product's operand: what is summed, and the batch.
struct Factor {
  Value x;
  Dims summed, batch;
  std::vector<std::optional<Expr>> steps() const {
    std::vector<Link> chain = chain_of(x);
    Expr place = linearise(chain.back().at, shape_of(chain.back().value));
    std::vector<std::optional<Expr>> out;
    for (Expr e : chain.front().at) out.push_back(coefficient(place, e));
    return out;
  }
  // Whether the i-th dimension of the sums and the one before are neighbours that lie in memory as one.
  bool joins(size_t i) const {
    int64_t d = summed[i];
    auto step = steps();
    return summed[i - 1] == d - 1 && step[d - 1] && step[d] && *step[d - 1] == *step[d] * shape_of(x)[d];
  }
  void join(size_t i) {
    int64_t d = summed[i];
    Shape s = shape_of(x);
    s[d - 1] = s[d - 1] * s[d];
    s.erase(s.begin() + d);
    x = prim::reshape(x, s);
    summed.erase(summed.begin() + static_cast<int64_t>(i));
    for (Dims* dims : {&summed, &batch})
      for (int64_t& other : *dims) other -= other > d;
  }
  // The i-th dimension of the sums becomes two: so many parts, and what each of them has.
  void cut(size_t i, Expr parts, Expr length) {
    int64_t d = summed[i];
    Shape s = shape_of(x);
    s[d] = length;
    s.insert(s.begin() + d, parts);
    x = prim::reshape(x, s);
    for (Dims* dims : {&summed, &batch})
      for (int64_t& other : *dims) other += other > d;
    summed.insert(summed.begin() + static_cast<int64_t>(i) + 1, d + 1);
  }
  // With some elements along the i-th dimension of the sums.
  Factor some(size_t i, Expr start, Expr count) const {
    Shape s = shape_of(x);
    std::vector<Expr> starts(s.size(), 0), ones(s.size(), 1);
    starts[summed[i]] = start;
    s[summed[i]] = count;
    return {prim::slice(x, starts, s, ones), summed, batch};
  }
  // The first dimensions of the sums stand beside the batch.
  void set_apart(size_t count) {
    auto first = summed.begin(), end = first + static_cast<int64_t>(count);
    batch.insert(batch.end(), first, end);
    summed.erase(first, end);
  }
};

// The product, where sums over the first dimensions, so many, are made of products of their own.
Value product_in_parts(Factor a, Factor b, size_t count) {
  Dims parts = ops::counted(std::ssize(a.batch), static_cast<int64_t>(count));
  for (Factor* f : {&a, &b}) f->set_apart(count);
  Value each = prim::dot_general(a.x, b.x, a.summed, b.summed, a.batch, b.batch);
  return parts.empty() ? each : prim::reduce(each, parts, "add");
}

// Parts of the last dimension of unknown size for each element of the others, and products of what is left.
Value with_rest(const Factor& a, const Factor& b, const Parts& parts) {
  size_t last = parts.count - 1;
  Expr size = shape_of(a.x)[a.summed[last]], whole = parts.of_last * parts.length;
  auto cut = [&](const Factor& f) {
    Factor out = f.some(last, 0, whole);
    out.cut(last, parts.of_last, parts.length);
    return out;
  };
  Value each = product_in_parts(cut(a), cut(b), parts.count);
  Value rest = product_in_parts(a.some(last, whole, size - whole), b.some(last, whole, size - whole), last);
  return prim::binary("add", each, rest);
}

Value split(const Node* n, const ir::Args& args, Primitives& out, const PassContext& context) {
  Factor a{args[0].get<Value>(), int_args(n, 2), int_args(n, 4)},
      b{args[1].get<Value>(), int_args(n, 3), int_args(n, 5)};
  for (size_t i = a.summed.size(); i-- > 1;)
    if (a.joins(i) && b.joins(i)) a.join(i), b.join(i);
  DType t = ops::dtype_of(a.x);
  if (!is_floating(t) || accumulator_of(t) != t) return {};
  Expr rows = free_size(a.x, a.summed, a.batch), columns = free_size(b.x, b.summed, b.batch);
  Shape summed = pick(shape_of(a.x), a.summed);
  int64_t in_panel = contraction_tile(rows, columns, t, context.machine).columns() * size_of(t);
  auto [part, worth] = lengths(summed.size(), in_panel);
  if (Expr all = product(summed); all.is_constant() && all.constant() <= worth) return {};
  if (rows.is(1) || columns.is(1)) return {};
  Parts parts = parts_of(summed, part, worth, context);
  // The parts' results are no more than the operands, or take little of the time and of memory.
  if (parts.count == 0) return {};
  Expr results = floordiv(product(summed), parts.length) * rows * columns;
  auto adds = [&](Expr least) { return at_least(parts.length - least, 0, context); };
  if (!(adds(rows) && adds(columns)) && !(adds(kWorthResult) && at_least(Expr(kMostResults) - results, 0, context)))
    return {};
  if (parts.rest) return in_memory(with_rest(a, b, parts), out);
  size_t last = parts.count - 1;
  if (Expr size = summed[last]; !(size == parts.of_last))
    for (Factor* f : {&a, &b}) f->cut(last, parts.of_last, floordiv(size, parts.of_last));
  return in_memory(product_in_parts(a, b, parts.count), out);
}

}  // namespace

void split_products(Primitives& p, const PassContext& context) {
  if (context.machine.gpu || context.machine.one_order) return;
  transform(
      p, context.facts, [](const Node* n) { return prim_of(n) == Prim::Dot; },
      [&](const Node* n, ir::Args& args, Primitives& out) -> std::vector<Value> {
        Value v = split(n, args, out, context);
        return v ? std::vector{v} : std::vector<Value>{};
      });
}

}  // namespace brasa::compiler
