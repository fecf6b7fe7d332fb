#include <algorithm>
#include <limits>
#include <map>

#include "compiler/fusion/indexing.h"
#include "compiler/fusion/places.h"
#include "compiler/loops/ops.h"
#include "compiler/passes/transform.h"

// m = max x and Σ exp(x - m) of rows too long for a block's registers are read from memory twice. With m_p and s_p of parts that fit there,
//     m = max m_p,  Σ exp(x - m) = Σ s_p exp(m_p - m),
// and one pass over memory makes all m_p and s_p (Milakov and Gimelshein 2018).
namespace brasa::compiler {

namespace prim = ops::prim;
using ops::ScalarOp;
using ops::shape_of;
using Dims = std::vector<int64_t>;

namespace {

// A block of a GPU keeps rows that are no longer than this; parts of this many elements leave room for other blocks beside it.
constexpr int64_t kLongest = 32768, kPart = 8192;
// Of so many elements parts begin and end where accesses of 16 bytes do.
constexpr int64_t kWhole = 8, kMostParts = 256;

bool is(Value v, ScalarOp op) { return prim_of(v) == Prim::Pointwise && scalar_op_of(v.node->op) == op; }

// The last dimension of x, and it alone.
bool is_of_rows(const Node* n) { return int_args(n, 1) == Dims{type_of(n->arg<Value>(0)).rank() - 1}; }

// Of equal parts as few as are short enough; 0 if there are none.
int64_t parts_of(Expr length) {
  if (!length.is_constant() || length.constant() <= kLongest) return 0;
  int64_t n = length.constant();
  for (int64_t p = (n + kPart - 1) / kPart; p <= kMostParts; ++p)
    if (n % (p * kWhole) == 0) return p;
  return 0;
}

// The reduction whose result for a row `sum` subtracts from each of the row's elements before it adds up their exponentials.
const Node* largest_of(const Node* sum) {
  if (prim_of(sum) != Prim::Reduce || sum->arg<std::string>(2) != "add" || !is_of_rows(sum)) return nullptr;
  Value e = sum->arg<Value>(0);
  DType t = type_of(e).dtype;
  if ((t != DType::Float32 && t != DType::Float64) || !is(e, ScalarOp::Exp)) return nullptr;
  Value shifted = e.node->arg<Value>(0);
  if (!is(shifted, ScalarOp::Sub)) return nullptr;
  Value x = shifted.node->arg<Value>(0);
  Link below = chain_of(shifted.node->arg<Value>(1), nullptr, false).back();
  const Node* most = below.value.node;
  if (prim_of(most) != Prim::Reduce || most->arg<std::string>(2) != "max") return nullptr;
  if (!is_of_rows(most) || !(most->arg<Value>(0) == x)) return nullptr;
  Index row = probe(shape_of(x));
  row.pop_back();
  return linearise(below.at, most->types[0].shape) == linearise(row, most->types[0].shape) ? most : nullptr;
}

// Rows as parts of theirs, and of each part the largest element, with one that may be subtracted from an infinite one.
struct Parts {
  Value x, most, finite, of_row;

  Parts(Value whole, int64_t count) {
    Shape pieces = shape_of(whole);
    pieces.back() = ir::floordiv(pieces.back(), Expr(count));
    pieces.insert(pieces.end() - 1, Expr(count));
    auto last = static_cast<int64_t>(pieces.size()) - 1;
    x = prim::reshape(whole, pieces);
    most = prim::reduce(x, {last}, "max");
    DType t = ops::dtype_of(x);
    double lowest = t == DType::Float32 ? std::numeric_limits<float>::lowest() : std::numeric_limits<double>::lowest();
    Value bound = prim::full(ops::Number(lowest), shape_of(most), t);
    finite = prim::binary("max", most, bound);
    of_row = prim::reduce(most, {last - 1}, "max");
  }
  Value sum() const {
    auto exponentials = [](Value v, Value less) {
      Dims dims;
      for (int64_t d = 0; d < ops::rank_of(less); ++d) dims.push_back(d);
      Value spread = prim::broadcast(less, shape_of(v), dims);
      return prim::unary("exp", prim::binary("sub", v, spread));
    };
    int64_t last = ops::rank_of(x) - 1;
    Value of_part = prim::reduce(exponentials(x, finite), {last}, "add"), factor = exponentials(finite, of_row);
    return prim::reduce(prim::binary("mul", of_part, factor), {last - 1}, "add");
  }
};

}  // namespace

void split_softmax(Primitives& p, const PassContext& context) {
  if (!context.machine.gpu || context.machine.one_order) return;
  std::map<const Node*, const Node*> largest;  // by sum
  std::map<const Node*, std::optional<Parts>> parts;
  for (const Node* n : live_nodes(*p.graph))
    if (const Node* most = largest_of(n); most && parts_of(shape_of(most->arg<Value>(0)).back())) {
      largest[n] = most;
      parts[most];
    }
  auto wanted = [&](const Node* n) { return largest.count(n) > 0 || parts.count(n) > 0; };
  transform(p, context.facts, wanted, [&](const Node* n, ir::Args& args, Primitives&) -> std::vector<Value> {
    if (auto sum = largest.find(n); sum != largest.end()) return {parts.at(sum->second)->sum()};
    std::optional<Parts>& of = parts.at(n);
    Value x = args[0].get<Value>();
    of.emplace(x, parts_of(shape_of(x).back()));
    return {of->of_row};
  });
}

}  // namespace brasa::compiler
