#include "compiler/libraries/alone.h"

#include <memory>
#include <span>

#include "compiler/fusion/fuse.h"
#include "ops/vectors.h"
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
  std::span all(shape);
  for (Expr e : {ir::product(all.first(dim)), shape[dim], ir::product(all.subspan(dim + 1))}) d.size(e);
}

// The bits of infinity: all ones in the exponent. 0 where there is none.
int64_t infinity_of(DType d) {
  if (!is_floating(d)) return 0;
  int64_t digits = info_of(d).digits, exponent_bits = 8 * size_of(d) - digits;
  return ((int64_t{1} << exponent_bits) - 1) << (digits - 1);
}

// prim::sort(x, dim, descending, first, count)
void sort(Draft& d) {
  DType t = d.operand(0).dtype;
  auto first = d.n.arg<Expr>(3), count = d.n.arg<Expr>(4);
  d.call.function = "sort";
  d.say({size_of(t), is_signed(t), infinity_of(t), d.n.arg<bool>(2)});
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
  return (d == kFloat32 || d == kFloat64) && ops::with_vectors(n).value_or(true);
}

struct Matrices {
  Expr count, rows, columns;
  explicit Matrices(const ir::Shape& shape)
      : count(ir::product(std::span(shape).first(shape.size() - 2))),
        rows(shape[shape.size() - 2]),
        columns(shape.back()) {}
  Expr least() const { return ir::min(rows, columns); }
  Expr most() const { return ir::max(rows, columns); }
};

template <size_t... kFlags>
Matrices matrices(Draft& d, std::string_view function) {
  Matrices m(d.operand(0).shape);
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
  std::span pivots(d.operand(0).shape);
  d.call.function = "lu_permutation";
  for (Expr e : {ir::product(pivots.first(pivots.size() - 1)), pivots.back(), d.n.arg<Expr>(1)}) d.size(e);
}

}  // namespace

int64_t alone_number(DType t) {
  return t == DType::Float32 ? 0 : t == DType::Float64 ? 1 : t == DType::Float16 ? 2 : 3;
}

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
