#include "runtime/cuda/sort.h"

#include "compiler/libraries/operands.h"
#include "compiler/libraries/rows.h"
#include "compiler/run/size_program.h"
#include "support/error.h"

// Sorts by kernels of our own.
namespace brasa::compiler {
namespace {

using ir::Expr;
using ir::Node;

bool takes(const Node& n) { return runtime::cuda::takes_sort(n.types[0].dtype); }

void place(ir::Args& args, const ir::Graph& graph, std::unordered_set<ir::Value>& in_memory) {
  args[0] = placed(args[0].get<ir::Value>(), false, is_contiguous, graph, in_memory);
}

bool reads(const Node& n, const Stored& stored) { return reads_in_place(stored, n.arg<ir::Value>(0), is_contiguous); }

// prim::sort(x, dim, descending, first, count)
class SortCall final : public DeviceCall {
 public:
  explicit SortCall(const Group& g) {
    const Node& n = *g.graph->outputs()[0].value.node;
    x_ = Located(source_of(g, n.arg<ir::Value>(0), is_contiguous));
    values_ = g.graph->inputs().size();
    descending_ = n.arg<bool>(2);
    auto dim = static_cast<size_t>(n.arg<Expr>(1).constant());
    std::span shape(type_of(n.arg<ir::Value>(0)).shape);
    outer_ = SizeProgram(ir::product(shape.first(dim)));
    length_ = SizeProgram(shape[dim]);
    inner_ = SizeProgram(ir::product(shape.subspan(dim + 1)));
    first_ = SizeProgram(n.arg<Expr>(3));
    count_ = SizeProgram(n.arg<Expr>(4));
  }

  void run(runtime::Device& device, runtime::Stream stream, void* const* tensors,
           const int64_t* symbols) const override {
    runtime::cuda::run_sort({x_.dtype, descending_, outer_(symbols), length_(symbols), inner_(symbols), first_(symbols),
                             count_(symbols), x_.data(tensors, symbols), tensors[values_], tensors[values_ + 1]},
                            device, stream);
  }

 private:
  Located x_;
  size_t values_;
  bool descending_;
  SizeProgram outer_, length_, inner_, first_, count_;
};

}  // namespace

const Implementation kSortOnDevice = {
    .library = "sort",
    .name = "sort on the GPU",
    .primitive = "prim::sort",
    .supports = takes,
    .prepare = [](const Group& g, const CompilerOptions&, ir::Facts&) -> std::unique_ptr<DeviceCall> {
      return std::make_unique<SortCall>(g);
    },
    .place = place,
    .reads = reads};

}  // namespace brasa::compiler
