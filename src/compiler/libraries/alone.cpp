#include "compiler/libraries/alone.h"

#include <memory>

#include "compiler/fusion/fuse.h"
#include "support/error.h"

namespace brasa::compiler {
namespace {

using ir::Expr;

// A call's node, and what is told of it.
struct Draft {
  const ir::Node& n;
  AloneCall& call;

  const ir::Type& operand(size_t arg) const { return ir::type_of(n.args[arg].get<ir::Value>()); }
  void say(std::initializer_list<int64_t> facts) { call.facts.insert(call.facts.end(), facts); }
  void size(Expr e) { call.sizes.emplace_back(e); }
};

template <void (*kTell)(Draft&)>
std::unique_ptr<DeviceCall> prepare(const Group& group, const CompilerOptions&, ir::Facts&) {
  const ir::Node& n = *group.graph->outputs()[0].value.node;
  auto out = std::make_unique<AloneCall>();
  n.for_each_input([&](ir::Value v) {
    int i = group.graph->input_index(v);
    BRASA_ASSERT(i >= 0, "an operand of ", n.op->name(), " is not in memory");
    out->tensors.push_back(static_cast<size_t>(i));
  });
  for (size_t r = 0; r < n.types.size(); ++r) out->tensors.push_back(group.graph->inputs().size() + r);
  Draft draft{n, *out};
  kTell(draft);
  return out;
}

// The lines of a tensor along one dimension: how many before it, its length, how far apart its elements are.
void lines(Draft& d, const ir::Shape& shape, size_t dim) {
  Expr outer(1), inner(1);
  for (size_t k = 0; k < shape.size(); ++k)
    if (k != dim) (k < dim ? outer : inner) = (k < dim ? outer : inner) * shape[k];
  for (Expr e : {outer, shape[dim], inner}) d.size(e);
}

// The bits of infinity.
int64_t infinity_of(DType d) {
  switch (d) {
    case kFloat64: return 0x7ff0000000000000;
    case kFloat32: return 0x7f800000;
    case kFloat16: return 0x7c00;
    case kBFloat16: return 0x7f80;
    default: return 0;
  }
}

// prim::sort(x, dim, descending, first, count)
void sort(Draft& d) {
  DType t = d.operand(0).dtype;
  auto first = d.n.arg<Expr>(3), count = d.n.arg<Expr>(4);
  d.call.function = "sort";
  d.say({size_of(t), is_integral(t) && t != kUInt8 && t != kUInt64, infinity_of(t), d.n.arg<bool>(2)});
  lines(d, d.operand(0).shape, static_cast<size_t>(d.n.arg<Expr>(1).constant()));
  d.size(first);
  d.size(count);
  constexpr int64_t kItemBytes = 16;
  d.call.work = SizeProgram((first + count) * Expr(kItemBytes));
}

bool sorts(const ir::Node& n) {
  DType d = n.types[0].dtype;
  return d == kBool || is_integral(d) || d == kFloat16 || d == kBFloat16 || d == kFloat32 || d == kFloat64;
}

// Of a convolution that stands for a transform of n elements: at most 4 n.
Expr convolved(Expr n) {
  if (!n.is_constant()) return n * Expr(4);
  int64_t m = 1;
  while (m < 2 * n.constant() - 1) m *= 2;
  return Expr(m);
}

// prim::fft(re, im, dim, forward)
void fft(Draft& d) {
  const ir::Shape& shape = d.operand(0).shape;
  auto dim = static_cast<size_t>(d.n.arg<Expr>(2).constant());
  d.call.function = "fft";
  d.say({size_of(d.operand(0).dtype), d.n.arg<bool>(3)});
  lines(d, shape, dim);
  // Two rows of points of four lines, roots and a kernel; two numbers of a chirp for each element.
  d.call.work = SizeProgram((convolved(shape[dim]) * Expr(20) + shape[dim] * Expr(2)) * Expr(8));
}

// Batches of matrices, and their rows and columns; all is computed in double precision.
bool real_matrices(const ir::Node& n) {
  DType d = ir::type_of(n.arg<ir::Value>(0)).dtype;
  return d == kFloat32 || d == kFloat64;
}

struct Matrices {
  Expr count = Expr(1), rows, columns;
  Matrices(Draft& d, size_t arg = 0) {
    const ir::Shape& shape = d.operand(arg).shape;
    for (size_t k = 0; k + 2 < shape.size(); ++k) count = count * shape[k];
    rows = shape[shape.size() - 2];
    columns = shape.back();
  }
  Expr least() const { return ir::min(rows, columns); }
  Expr most() const { return ir::max(rows, columns); }
};

template <size_t... kFlags>
Matrices matrices(Draft& d, std::string_view function) {
  Matrices m(d);
  d.call.function = function;
  d.say({size_of(d.operand(0).dtype), d.n.arg<bool>(kFlags)...});
  for (Expr e : {m.count, m.rows, m.columns}) d.size(e);
  return m;
}
void work(Draft& d, Expr numbers) { d.call.work = SizeProgram(numbers * Expr(8)); }

void cholesky(Draft& d) {
  Matrices m = matrices(d, "cholesky");
  work(d, m.rows * m.columns);
}
void lu(Draft& d) {
  Matrices m = matrices(d, "lu");
  work(d, m.rows * m.columns);
}
void triangular_solve(Draft& d) {
  Matrices m = matrices<2, 3, 4>(d, "triangular_solve");
  Expr columns = d.operand(1).shape.back();
  d.size(columns);
  work(d, m.rows * (m.columns + columns));
}
void reflectors(Draft& d) {
  Matrices m = matrices(d, "geqrf");
  work(d, (m.rows + Expr(1)) * m.columns);
}
void qr(Draft& d) {
  Matrices m = matrices<1>(d, "qr");
  work(d, (m.rows + Expr(1)) * m.columns + m.rows * m.most());
}
void eigh(Draft& d) {
  Matrices m = matrices(d, "eigh");
  work(d, m.rows * m.columns * Expr(2));
}
void svd(Draft& d) {
  Matrices m = matrices<1>(d, "svd");
  work(d, m.most() * m.most() + m.least() * (m.least() + Expr(2)));
}

// prim::lu_permutation(pivots, rows)
void lu_order(Draft& d) {
  const ir::Shape& pivots = d.operand(0).shape;
  Expr count(1);
  for (size_t k = 0; k + 1 < pivots.size(); ++k) count = count * pivots[k];
  d.call.function = "lu_permutation";
  for (Expr e : {count, pivots.back(), d.n.arg<Expr>(1)}) d.size(e);
}

}  // namespace

void AloneCall::run(runtime::Device&, runtime::Stream, void* const*, const int64_t*) const {
  fail_internal(str(function, " of a program that runs alone was called in the process"));
}

const Implementation kAloneSort = {
    .library = "alone", .name = "sort", .primitive = "prim::sort", .supports = sorts, .prepare = prepare<sort>};
const Implementation kAloneFft = {
    .library = "alone", .name = "fourier", .primitive = "prim::fft", .prepare = prepare<fft>};
const Implementation kAloneLuOrder = {
    .library = "alone", .name = "order of pivots", .primitive = "prim::lu_permutation", .prepare = prepare<lu_order>};

#define BRASA_MATRICES(name_, primitive_, tell)            \
  const Implementation name_ = {.library = "alone",        \
                                .name = #tell,             \
                                .primitive = primitive_,   \
                                .supports = real_matrices, \
                                .prepare = prepare<tell>};
BRASA_MATRICES(kAloneCholesky, "prim::cholesky", cholesky)
BRASA_MATRICES(kAloneLu, "prim::lu", lu)
BRASA_MATRICES(kAloneTriangularSolve, "prim::triangular_solve", triangular_solve)
BRASA_MATRICES(kAloneQr, "prim::qr", qr)
BRASA_MATRICES(kAloneReflectors, "prim::geqrf", reflectors)
BRASA_MATRICES(kAloneEigh, "prim::eigh", eigh)
BRASA_MATRICES(kAloneSvd, "prim::svd", svd)
#undef BRASA_MATRICES

}  // namespace brasa::compiler
