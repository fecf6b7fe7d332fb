#include "compiler/libraries/line_sort.h"

#include "compiler/fusion/fuse.h"
#include "support/error.h"

namespace brasa::compiler {
namespace {

// prim::sort(x, dim, descending, first, count)
std::unique_ptr<DeviceCall> prepare(const Group& group, const CompilerOptions&, ir::Facts&) {
  const ir::Node& n = *group.graph->outputs()[0].value.node;
  const ir::Type& x = ir::type_of(n.args[0].get<ir::Value>());
  auto out = std::make_unique<LineSort>();
  auto dim = static_cast<size_t>(n.args[1].get<ir::Expr>().constant());
  ir::Expr outer(1), inner(1);
  for (size_t d = 0; d < x.shape.size(); ++d)
    if (d != dim) (d < dim ? outer : inner) = (d < dim ? outer : inner) * x.shape[d];
  auto first = n.args[3].get<ir::Expr>(), count = n.args[4].get<ir::Expr>();
  out->dtype = x.dtype;
  out->descending = n.args[2].get<bool>();
  out->outer = SizeProgram(outer);
  out->length = SizeProgram(x.shape[dim]);
  out->inner = SizeProgram(inner);
  out->first = SizeProgram(first);
  out->count = SizeProgram(count);
  constexpr int64_t kItemBytes = 16;
  out->items = SizeProgram((first + count) * ir::Expr(kItemBytes));
  return out;
}

bool supports(const ir::Node& n) {
  DType d = n.types[0].dtype;
  return d == kBool || is_integral(d) || d == kFloat16 || d == kBFloat16 || d == kFloat32 || d == kFloat64;
}

}  // namespace

void LineSort::run(runtime::Device&, runtime::Stream, void* const*, const int64_t*) const {
  fail_internal("a sort of a program that runs alone was run in the process");
}

const Implementation kLineSort = {
    .library = "alone", .name = "sort", .primitive = "prim::sort", .supports = supports, .prepare = prepare};

}  // namespace brasa::compiler
