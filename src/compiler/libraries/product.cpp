#include <algorithm>

#include "compiler/compile.h"
#include "compiler/fusion/fuse.h"
#include "compiler/fusion/places.h"
#include "compiler/libraries/rows.h"
#include "compiler/lowering/expressions.h"
#include "compiler/run/size_program.h"
#include "ops/algebra.h"
#include "runtime/cuda/cublaslt.h"
#include "support/error.h"

// Products of matrices, [b,] m, k times [b,] k, n, by cuBLASLt, which reads its operands through transpositions, slices and conversions
// from a narrower float, and can add a row to every row before it rounds.
namespace brasa::compiler {
namespace {

using ir::Expr;
using ir::Node;
using ir::Value;

// An operand as places in memory: of a source, in even steps.
struct Steps {
  Expr offset, batch = 0, row, column;
};
std::optional<Steps> steps_in(Expr place, const Index& probe) {
  Steps s;
  std::vector<Expr> steps;
  for (Expr e : probe) {
    auto step = e.is_constant() ? std::optional(Expr(0)) : coefficient(place, e);
    if (!step) return std::nullopt;
    steps.push_back(*step);
  }
  s.offset = ir::substitute(place, [&](Expr e) -> std::optional<Expr> {
    if (std::find(probe.begin(), probe.end(), e) != probe.end()) return Expr(0);
    return std::nullopt;
  });
  s.column = steps.back();
  s.row = steps[steps.size() - 2];
  if (steps.size() == 3) s.batch = steps[0];
  return s;
}

// Whether it can be read so, whatever the sizes.
bool readable(const Steps& s, Expr rows, Expr columns) {
  auto beside = [](Expr across, Expr along, Expr count, Expr others) {
    bool neighbours = along.is(1) || count.is(1);
    return neighbours && (others.is(1) || provably_less(across, count) == std::optional(false));
  };
  return beside(s.row, s.column, columns, rows) || beside(s.column, s.row, rows, columns);
}

std::optional<Steps> readable_at(Value operand, Expr place, const Index& probe) {
  auto steps = steps_in(place, probe);
  const ir::Shape& shape = type_of(operand).shape;
  if (!steps || !readable(*steps, shape[shape.size() - 2], shape.back())) return std::nullopt;
  return steps;
}

Value placed(Value operand, bool through, const ir::Graph& graph, std::unordered_set<Value>& in_memory) {
  // What is in memory already is read from there.
  std::vector<Link> chain = chain_of(operand, [&](Value v) { return in_memory.count(v) > 0; }, through);
  const Index& from = chain.front().at;
  for (size_t i = chain.size(); i-- > 0;) {
    const auto& [v, at] = chain[i];
    bool given = ir::is_input(v);
    Expr where = given ? place_in(graph, v, at) : linearise(at, type_of(v).shape);
    if (!readable_at(operand, where, from)) continue;
    // What is wide is copied before it is widened.
    bool narrow_below = std::any_of(chain.begin() + static_cast<ptrdiff_t>(i), chain.end() - 1,
                                    [](const Link& l) { return widens(l.value.node); });
    if (narrow_below) break;
    if (!given) in_memory.insert(v);
    return operand;
  }
  // A widened value narrows to what it was.
  DType narrow = type_of(chain.back().value).dtype, wide = type_of(operand).dtype;
  Value copy = ops::call("prim::reshape", {ops::prim::convert(operand, narrow), ops::shape_of(operand)});
  in_memory.insert(copy);
  return ops::prim::convert(copy, wide);
}

// Both operands have one dtype in memory: the narrow one that both are widened from, or the wide one.
void place(ir::Args& args, const ir::Graph& graph, std::unordered_set<Value>& in_memory) {
  Value a = args[0].get<Value>(), b = args[1].get<Value>();
  auto ends = [&](Value v) { return in_memory.count(v) > 0; };
  auto below = [&](Value v) { return type_of(chain_of(v, ends).back().value).dtype; };
  bool through = below(a) == below(b);
  args[0] = placed(a, through, graph, in_memory);
  args[1] = placed(b, through, graph, in_memory);
}

bool takes(const Node& n) {
  int64_t rank = n.types[0].rank();
  if (rank != 2 && rank != 3) return false;
  std::vector<int64_t> batch;
  if (rank == 3) batch = {0};
  return int_args(&n, 2) == std::vector{rank - 1} && int_args(&n, 3) == std::vector{rank - 2} &&
         int_args(&n, 4) == batch && int_args(&n, 5) == batch && type_of(n.arg<Value>(0)).rank() == rank &&
         type_of(n.arg<Value>(1)).rank() == rank &&
         runtime::cuda::takes_product(type_of(n.arg<Value>(0)).dtype, n.types[0].dtype);
}

bool reads(const Node& n, const std::unordered_map<const Node*, std::vector<Expr>>& stored) {
  std::vector<DType> dtypes;
  for (Value operand : {n.arg<Value>(0), n.arg<Value>(1)}) {
    std::vector<Link> chain = chain_of(operand, [&](Value v) { return stored.count(v.node) > 0; });
    const auto& [v, at] = chain.back();
    auto it = stored.find(v.node);
    if (it == stored.end()) return false;
    if (!readable_at(operand, place_of(at, type_of(v).shape, it->second), chain.front().at)) return false;
    dtypes.push_back(type_of(v).dtype);
  }
  return dtypes[0] == dtypes[1];
}

// round(product + a row), where the product is of reduced floats widened for it, and the row of the same: a linear layer, whose
// result may have more dimensions than the product.
struct Biased {
  const Node* product = nullptr;
  Value bias;
  std::vector<const Node*> inside;
};
// Below reshapes that keep the rows.
Value below_reshapes(Value v, std::vector<const Node*>& inside) {
  for (Expr columns = type_of(v).shape.back(); prim_of(v) == Prim::Reshape; v = v.node->arg<Value>(0)) {
    const ir::Shape& from = type_of(v.node->arg<Value>(0)).shape;
    if (from.size() < 2 || !(from.back() == columns)) break;
    inside.push_back(v.node);
  }
  return v;
}
std::optional<Biased> biased(const Node& n) {
  DType narrow = n.types[0].dtype;
  if (!converts(&n) || !is_reduced_floating(narrow) || n.types[0].rank() < 2) return std::nullopt;
  std::vector<const Node*> inside;
  Value sum = below_reshapes(n.arg<Value>(0), inside);
  if (sum.node->op->name() != "prim::add" || type_of(sum).dtype != DType::Float32) return std::nullopt;
  inside.push_back(sum.node);
  int64_t rank = type_of(sum).rank();
  Expr columns = type_of(sum).shape.back();
  for (size_t side : {size_t{0}, size_t{1}}) {
    Biased out;
    out.inside = inside;
    Value v = below_reshapes(sum.node->arg<Value>(side), out.inside);
    if (prim_of(v) != Prim::Dot || type_of(v).rank() != 2 || !takes(*v.node)) continue;
    out.product = v.node;
    out.inside.push_back(v.node);
    auto below = [&](size_t arg) { return type_of(chain_of(v.node->arg<Value>(arg)).back().value).dtype; };
    if (below(0) != narrow || below(1) != narrow) continue;

    Value b = sum.node->arg<Value>(1 - side);
    auto of_rows = [&] { return prim_of(b) == Prim::Broadcast && int_args(b.node, 2) == std::vector{rank - 1}; };
    while (widens(b.node) || (type_of(b).rank() == rank && of_rows())) {
      out.inside.push_back(b.node);
      b = b.node->arg<Value>(0);
    }
    out.bias = b;
    if (type_of(b).dtype == narrow && type_of(b).rank() == 1 && type_of(b).shape[0] == columns) return out;
  }
  return std::nullopt;
}

bool is_vector(const std::vector<Expr>& strides) { return strides.empty() || strides[0].is(1); }

std::optional<Covered> covers(const ir::Graph& graph, const Node& n) {
  auto b = biased(n);
  if (!b || !is_vector(ir::strides_of(graph, b->bias))) return std::nullopt;
  return Covered{std::move(b->inside), {b->bias}};
}

bool reads_biased(const Node& n, const std::unordered_map<const Node*, std::vector<Expr>>& stored) {
  auto b = biased(n);
  auto bias = stored.find(b->bias.node);
  return bias != stored.end() && is_vector(bias->second) && reads(*b->product, stored);
}

class ProductCall final : public DeviceCall {
 public:
  ProductCall(const Group& g, bool measure) : measure_(measure), inputs_(g.graph->inputs().size()) {
    const Node *last = g.graph->outputs()[0].value.node, *n = last;
    if (auto b = biased(*last)) {
      n = b->product;
      bias_ = g.graph->input_index(b->bias);
      BRASA_ASSERT(bias_ >= 0, "a product's bias is not in memory");
    }
    const ir::Shape& shape = n->types[0].shape;
    Value left = n->arg<Value>(0), right = n->arg<Value>(1);
    result_ = last->types[0].dtype;
    left_ = operand(g, left);
    right_ = operand(g, right);
    BRASA_ASSERT(left_.dtype == right_.dtype, "a product of ", name(left_.dtype), " and ", name(right_.dtype));
    count_ = SizeProgram(shape.size() == 3 ? shape[0] : Expr(1));
    rows_ = SizeProgram(shape[shape.size() - 2]);
    columns_ = SizeProgram(shape.back());
    inner_ = SizeProgram(type_of(left).shape.back());
    std::vector<Expr> strides =
        g.output_strides[0].empty() ? ir::contiguous_strides(last->types[0].shape) : g.output_strides[0];
    batch_ = SizeProgram(strides[0]);
    row_ = SizeProgram(strides[strides.size() - 2]);
  }

  void run(runtime::Device& device, runtime::Stream stream, void* const* tensors,
           const int64_t* symbols) const override {
    runtime::cuda::run_product({left_.dtype, result_, rows_(symbols), inner_(symbols), columns_(symbols),
                                count_(symbols), left_.matrix(tensors, symbols), right_.matrix(tensors, symbols),
                                bias_ < 0 ? nullptr : tensors[bias_], tensors[inputs_], row_(symbols), batch_(symbols)},
                               device, stream, measure_);
  }

 protected:
  double products(const int64_t* symbols) const override {
    return static_cast<double>(count_(symbols)) * static_cast<double>(rows_(symbols)) *
           static_cast<double>(columns_(symbols)) * static_cast<double>(inner_(symbols));
  }

 private:
  struct Operand {
    size_t input;
    DType dtype;
    SizeProgram offset, batch, row, column;
    runtime::cuda::Matrix matrix(void* const* tensors, const int64_t* s) const {
      auto* start = static_cast<const std::byte*>(tensors[input]) + offset(s) * size_of(dtype);
      return {start, row(s), column(s), batch(s)};
    }
  };
  static Operand operand(const Group& g, Value v) {
    std::vector<Link> chain = chain_of(v);
    const auto& [source, at] = chain.back();
    int i = g.graph->input_index(source);
    BRASA_ASSERT(i >= 0, "a product's operand is not in memory");
    auto steps = readable_at(v, place_in(*g.graph, source, at), chain.front().at);
    BRASA_ASSERT(steps, "a product's operand does not lie in even steps");
    return {static_cast<size_t>(i),    type_of(source).dtype,   SizeProgram(steps->offset),
            SizeProgram(steps->batch), SizeProgram(steps->row), SizeProgram(steps->column)};
  }

  bool measure_;
  size_t inputs_;
  int bias_ = -1;  // which input it is; none
  DType result_;
  Operand left_, right_;
  SizeProgram count_, rows_, columns_, inner_, row_, batch_;
};

constexpr auto prepare = [](const Group& g, const CompilerOptions& options, ir::Facts&) -> std::unique_ptr<DeviceCall> {
  return std::make_unique<ProductCall>(g, options.measure);
};

}  // namespace

const Implementation kBiasedProduct = {.library = "cublaslt",
                                       .name = "cuBLASLt",
                                       .primitive = "prim::convert",
                                       .covers = covers,
                                       .prepare = prepare,
                                       .reads = reads_biased};
const Implementation kProduct = {.library = "cublaslt",
                                 .name = "cuBLASLt",
                                 .primitive = "prim::dot_general",
                                 .supports = takes,
                                 .prepare = prepare,
                                 .place = place,
                                 .reads = reads};

}  // namespace brasa::compiler
