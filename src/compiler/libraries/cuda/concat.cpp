#include "runtime/cuda/concat.h"

#include <algorithm>

#include "compiler/libraries/operands.h"
#include "compiler/libraries/rows.h"
#include "compiler/run/size_program.h"
#include "support/error.h"

// Concatenations of many tensors by a kernel of our own.
namespace brasa::compiler {
namespace {

using ir::Expr;
using ir::Value;

void place(ir::Args& args, const ir::Graph& graph, std::unordered_set<Value>& in_memory) {
  std::vector<Value> parts = args[0].get<std::vector<Value>>();
  for (Value& v : parts) v = placed(v, false, is_contiguous, graph, in_memory);
  args[0] = parts;
}

bool reads(const ir::Node& n, const Stored& stored) {
  const auto& parts = n.arg<std::vector<Value>>(0);
  return std::all_of(parts.begin(), parts.end(), [&](Value v) { return reads_in_place(stored, v, is_contiguous); });
}

// prim::concat(xs, dim)
class ConcatCall final : public DeviceCall {
 public:
  explicit ConcatCall(const Group& g) : result_(g.graph->inputs().size()) {
    const ir::Node& n = *g.graph->outputs()[0].value.node;
    auto dim = static_cast<size_t>(n.arg<Expr>(1).constant());
    auto bytes = [&](const ir::Type& t) {
      return SizeProgram(ir::product(std::span(t.shape).subspan(dim)) * Expr(size_of(t.dtype)));
    };
    rows_ = SizeProgram(ir::product(std::span(n.types[0].shape).first(dim)));
    for (Value v : n.arg<std::vector<Value>>(0))
      parts_.push_back({Located(source_of(g, v, is_contiguous)), bytes(type_of(v))});
  }

  void run(runtime::Device& device, runtime::Stream stream, void* const* tensors,
           const int64_t* symbols) const override {
    std::vector<runtime::cuda::Rows> parts;
    for (const Part& p : parts_) parts.push_back({p.rows.data(tensors, symbols), p.bytes(symbols)});
    runtime::cuda::run_concat(parts, rows_(symbols), tensors[result_], device, stream);
  }

 private:
  struct Part {
    Located rows;
    SizeProgram bytes;  // of a row
  };
  size_t result_;
  std::vector<Part> parts_;
  SizeProgram rows_;
};

}  // namespace

const Implementation kConcatOnDevice = {
    .library = "concat",
    .name = "copies on the GPU",
    .primitive = "prim::concat",
    .supports = is_long_concat,
    .prepare = [](const Group& g, const CompilerOptions&, ir::Facts&) -> std::unique_ptr<DeviceCall> {
      return std::make_unique<ConcatCall>(g);
    },
    .place = place,
    .reads = reads};

}  // namespace brasa::compiler
