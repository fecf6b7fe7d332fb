#include <algorithm>
#include <span>

#include "compiler/compile.h"
#include "compiler/libraries/alone.h"
#include "compiler/libraries/cuda/activation.h"
#include "compiler/libraries/cuda/measured_call.h"
#include "compiler/libraries/operands.h"
#include "compiler/libraries/rows.h"
#include "compiler/passes/pass_runner.h"
#include "compiler/run/size_program.h"
#include "ops/algebra.h"
#include "ops/primitives.h"
#include "runtime/cuda/activated_product.h"
#include "runtime/float32_products.h"
#include "support/error.h"

// Products of matrices, [b,] m, k times [b,] k, n, by cuBLASLt, which reads its operands through transpositions, slices and conversions
// from a narrower float, and can add a row to every row before it rounds.
namespace brasa::compiler {
namespace {

using ir::Expr;
using ir::Node;
using ir::Value;
using runtime::cuda::Epilogue;

// Whether a matrix, or many, can be read so.
bool readable(const Steps& s, const ir::Shape& shape) {
  size_t row = s.of.size() - 2, column = row + 1;
  auto beside = [](Expr across, Expr along, Expr count, Expr others) {
    bool neighbours = along.is(1) || count.is(1);
    return neighbours && (others.is(1) || provably_less(across, count) == std::optional(false));
  };
  return beside(s.of[row], s.of[column], shape[column], shape[row]) ||
         beside(s.of[column], s.of[row], shape[row], shape[column]);
}

// Both operands have one dtype in memory: the narrow one that both are widened from, or the wide one.
void place(ir::Args& args, const ir::Graph& graph, std::unordered_set<Value>& in_memory) {
  Value a = args[0].get<Value>(), b = args[1].get<Value>();
  auto ends = [&](Value v) { return in_memory.count(v) > 0; };
  auto below = [&](Value v) { return type_of(chain_of(v, ends).back().value).dtype; };
  bool through = below(a) == below(b);
  args[0] = placed(a, through, readable, graph, in_memory);
  args[1] = placed(b, through, readable, graph, in_memory);
}

// A dimension of an operand that is a known number; 0 of others.
int64_t known(Value v, size_t dim) { return type_of(v).shape[dim].maybe_constant().value_or(0); }

// Tensor cores take operands of TF32 only with neighbours along the sum. A library turns others on its way to them, two of them at half
// the speed of one; a copy that is turned pays if it is used often enough.
void place_along_sum(ir::Args& args, const ir::Graph& graph, std::unordered_set<Value>& in_memory) {
  constexpr int64_t kLeast = 256, kMany = 512, kMostOften = 2048;
  constexpr int64_t kWhole = 4;  // rows in multiples of 16 bytes
  place(args, graph, in_memory);
  Value a = args[0].get<Value>(), b = args[1].get<Value>();
  if (type_of(a).rank() != 2) return;
  auto lies_along = [&](Value v, size_t dim) { return steps_in_memory(v, readable, graph, in_memory)->of[dim].is(1); };
  int64_t rows = known(a, 0), inner = known(a, 1), columns = known(b, 1);
  bool turn_a = !lies_along(a, 1), turn_b = !lies_along(b, 0);
  if (std::min({rows, inner, columns}) < kLeast || inner % kWhole != 0) return;
  int64_t often = turn_a && turn_b ? kMany : kMostOften;
  // A row of the first operand is used for each column, and the other way round.
  if (turn_a && turn_b) (rows < columns ? turn_b : turn_a) = false;
  auto copied = [&](Value v) { return *in_memory.insert(ops::call("prim::reshape", {v, type_of(v).shape})).first; };
  if (turn_a && columns >= often) args[0] = copied(a);
  if (turn_b && rows >= often) args[1] = ops::prim::transpose(copied(ops::prim::transpose(b, {1, 0})), {1, 0});
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

bool takes_in_tf32(const Node& n) { return n.types[0].dtype == DType::Float32 && takes(n); }

bool reads(const Node& n, const Stored& stored) {
  Value a = source_in(stored, n.arg<Value>(0), readable), b = source_in(stored, n.arg<Value>(1), readable);
  return a && b && type_of(a).dtype == type_of(b).dtype;
}

// round(product + a row), where the product is of reduced floats widened for it, and the row of the same, or all are float32: a linear layer,
// whose result may have more dimensions than the product.
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
  bool rounds = converts(&n) && is_reduced_floating(narrow);
  if (!(rounds || narrow == DType::Float32) || n.types[0].rank() < 2) return std::nullopt;
  std::vector<const Node*> inside;
  Value sum = rounds ? below_reshapes(n.arg<Value>(0), inside) : Value{const_cast<Node*>(&n), 0};
  if (sum.node->op->name() != "prim::add" || type_of(sum).dtype != DType::Float32) return std::nullopt;
  if (rounds) inside.push_back(sum.node);
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

// Whether all dimensions but the last one count rows, whose elements are neighbours.
bool are_rows(const std::vector<Expr>& strides, const ir::Shape& shape) {
  if (strides.empty()) return true;
  bool even = strides.back().is(1);
  for (size_t d = strides.size() - 1; d-- > 1;) even = even && strides[d - 1] == strides[d] * shape[d];
  return even;
}

// Who reads it through views and what widens; null: the caller.
std::vector<const Node*> readers_of(const ir::Graph& graph, const Node& n) {
  std::vector<const Node*> out;
  std::unordered_set<const Node*> views = {&n};
  for (const Node* reader : live_nodes(graph)) {
    bool reads = false;
    reader->for_each_input([&](Value v) { reads |= views.count(v.node) > 0; });
    if (!reads) continue;
    out.push_back(reader);
    if (is_view(prim_of(reader)) || widens(reader)) views.insert(reader);
  }
  for (const ir::Output& o : graph.outputs())
    if (views.count(o.value.node)) out.push_back(nullptr);
  return out;
}

// Whether it is read from memory in any case: by a product or another function, or by the caller.
bool goes_to_memory(const ir::Graph& graph, const Node& n) {
  std::vector<const Node*> readers = readers_of(graph, n);
  return std::any_of(readers.begin(), readers.end(),
                     [](const Node* r) { return !r || prim_of(r) == Prim::Dot || prim_of(r) == Prim::Whole; });
}

// Whether those that read it are functions of elements and sums, whose kernels can compute it.
bool computed_by_readers(const ir::Graph& graph, const Node& n) {
  std::vector<const Node*> readers = readers_of(graph, n);
  return std::all_of(readers.begin(), readers.end(), [](const Node* r) {
    return r && (is_view(prim_of(r)) || prim_of(r) == Prim::Reduce || ops::row_of(*r).is_pointwise());
  });
}

std::optional<Covered> covers(const ir::Graph& graph, const Node& n) {
  auto b = biased(n);
  // What makes more of a sum of float32 adds the bias itself: small products take longer with one.
  if (!b || (n.types[0].dtype == DType::Float32 && !goes_to_memory(graph, n)) ||
      !is_vector(ir::strides_of(graph, b->bias)))
    return std::nullopt;
  return Covered{std::move(b->inside), {b->bias}};
}

bool reads_biased(const Node& n, const Stored& stored) {
  auto b = biased(n);
  auto bias = stored.find(b->bias.node);
  return bias != stored.end() && is_vector(bias->second) && reads(*b->product, stored);
}

// Activations of a product's elements, with or without a bias, the last one last: what makes these is inside as well.
struct Activated {
  Activation activation;
  const Node* product = nullptr;
  Value bias = {};                          // none: null
  std::vector<const Node*> functions = {};  // of those inside: behind what the function is of
};
bool is_rounded_product(Value v) { return prim_of(v) == Prim::Dot && type_of(v).rank() == 2 && takes(*v.node); }
bool ends_in_product(Value v) { return is_rounded_product(v) || biased(*v.node).has_value(); }
std::optional<Activated> activated(std::span<const Node* const> stored) {
  std::optional<Activation> a = activation_of(stored, ends_in_product);
  if (!a) return std::nullopt;
  Activated out{std::move(*a)};
  out.product = out.activation.of.node;
  out.functions = out.activation.inside;
  if (auto b = biased(*out.product)) {
    out.product = b->product;
    out.bias = b->bias;
    std::vector<const Node*>& inside = out.activation.inside;
    inside.insert(inside.end(), b->inside.begin(), b->inside.end());
  }
  return out;
}
std::optional<Activated> activated(const Node& n) {
  const Node* all[] = {&n};
  return activated(all);
}

// Something else that is made of the same two tensors and goes to memory, as an activation that is computed again beside its derivative.
struct Beside {
  const Node* node;
  Activated both;
};
std::optional<Beside> made_beside(const ir::Graph& graph, const Node& n, const Activation& a) {
  // It is made of these two alone, but `n` may be made of it.
  std::vector<bool> before(graph.nodes().size());
  before[n.id] = true;
  ir::add_operands(graph, before);
  for (const Node* beside : live_nodes(graph)) {
    if (before[beside->id] || beside->types[0].shape != n.types[0].shape || !converts(beside)) continue;
    const Node* pair[] = {beside, &n};
    auto both = activated(pair);
    if (!both || both->activation.of != a.of || both->activation.other != a.other) continue;
    if (goes_to_memory(graph, *beside)) return Beside{beside, std::move(*both)};
  }
  return std::nullopt;
}

// Whether it takes less time to compute this behind the product than in a kernel that reads it again. Tensor cores and other instructions hardly
// run beside each other (they share registers and power): on an H200 sixteen instructions take about as long as memory takes for two tensors.
bool pays(const ir::Graph& graph, const Node& n, const Epilogue& epilogue) {
  constexpr size_t kEachTensor = 8;
  size_t tensors = static_cast<size_t>(epilogue.operands) + epilogue.results.size();
  // A kernel of its own would sum up its results on their way.
  std::vector<const Node*> readers = readers_of(graph, n);
  if (std::any_of(readers.begin(), readers.end(), [](const Node* r) { return r && prim_of(r) == Prim::Reduce; }))
    --tensors;
  return epilogue.instructions() <= kEachTensor * tensors;
}

// Of products that take longer than it takes to begin them.
std::optional<Covered> covers_activated(const ir::Graph& graph, const Node& n) {
  constexpr int64_t kLeastRows = 512, kLeastColumns = 256;
  if (!converts(&n) || !is_reduced_floating(n.types[0].dtype) || PassRunner::switched_off("tiled_products"))
    return std::nullopt;
  auto a = activated(n);
  if (!a || !goes_to_memory(graph, n) || !pays(graph, n, a->activation.epilogue)) return std::nullopt;
  auto rows = a->product->types[0].shape[0].maybe_constant(), columns = a->product->types[0].shape[1].maybe_constant();
  if ((rows && *rows < kLeastRows) || !columns || *columns < kLeastColumns) return std::nullopt;
  // What the function is of is kept for its derivative.
  std::unordered_map<const Node*, int> uses = ir::count_uses(graph);
  auto covered = [&](const Activated& all, std::vector<const Node*> results) {
    Covered out{all.activation.inside, {}, std::move(results)};
    out.inside.insert(out.inside.end(), out.results.begin(), out.results.end());
    const Node* of = all.activation.of.node;
    out.inside.push_back(of);
    std::unordered_map<const Node*, int> reads;
    auto note = [&](const Node* reader) { reader->for_each_input([&](Value v) { ++reads[v.node]; }); };
    note(&n);
    for (const Node* reader : out.inside) note(reader);
    // What is widened once for all its readers is theirs, too.
    for (const Node* w : all.activation.widens) {
      if (reads[w] != uses[w]) continue;
      out.inside.push_back(w);
      note(w);
    }
    // A derivative that reads these, too, computes them again of what they are of.
    for (const Node* f : all.functions)
      if (reads[f] != uses[f] && computed_by_readers(graph, *f)) out.repeated.push_back(f);
    if (reads[of] != uses[of] || !out.repeated.empty()) out.results.push_back(of);
    return out;
  };
  Covered out = covered(*a, {});
  Value other = a->activation.other;
  if (auto more = other && out.results.empty() ? made_beside(graph, n, a->activation) : std::nullopt)
    if (Covered both = covered(more->both, {more->node}); both.results.size() == 1)
      if (pays(graph, n, more->both.activation.epilogue)) out = std::move(both);
  for (Value v : {a->bias, other}) {
    if (!v) continue;
    out.operands.push_back(v);
    std::vector<Expr> strides = ir::strides_of(graph, v);
    if (v == a->bias ? !is_vector(strides) : !are_rows(strides, type_of(v).shape)) return std::nullopt;
  }
  return out;
}

bool reads_activated(const Node& n, const Stored& stored) {
  auto a = activated(n);
  auto lies = [&](Value v, auto&& well) {
    auto at = stored.find(v.node);
    return at != stored.end() && well(at->second);
  };
  if (a->bias && !lies(a->bias, is_vector)) return false;
  Value other = a->activation.other;
  if (other && !lies(other, [&](const auto& strides) { return are_rows(strides, type_of(other).shape); })) return false;
  return reads(*a->product, stored);
}

class ProductCall final : public MeasuredCall {
 public:
  ProductCall(const Group& g, std::shared_ptr<MeasuredWays> ways)
      : MeasuredCall(std::move(ways)), inputs_(g.graph->inputs().size()), result_at_(inputs_) {
    size_t results = g.graph->outputs().size();
    const Node *last = g.graph->outputs()[results - 1].value.node, *n = last;
    Value bias, other;
    if (auto a = activated(*last)) {
      n = a->product;
      bias = a->bias;
      other = a->activation.other;
      epilogue_ = std::move(a->activation.epilogue);
      if (results > 1) {
        const Node* pair[] = {g.graph->outputs()[0].value.node, last};
        if (auto both = activated(pair))
          epilogue_ = std::move(both->activation.epilogue);
        else
          epilogue_.results.insert(epilogue_.results.begin(), 0);
      }
    } else if (auto b = biased(*last)) {
      n = b->product;
      bias = b->bias;
    }
    bias_ = bias ? g.graph->input_index(bias) : -1;
    BRASA_ASSERT(!bias || bias_ >= 0, "a product's bias is not in memory");
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
    auto steps = [&](Value v, const std::vector<Expr>& given) {
      return given.empty() ? ir::contiguous_strides(type_of(v).shape) : given;
    };
    auto steps_of_result = [&](size_t i) { return steps(g.graph->outputs()[i].value, g.output_strides[i]); };
    auto row = [](const std::vector<Expr>& steps) { return SizeProgram(steps[steps.size() - 2]); };
    batch_ = SizeProgram(steps_of_result(results - 1)[0]);
    row_ = row(steps_of_result(results - 1));
    if (results > 1) first_row_ = row(steps_of_result(0));
    result_at_ = inputs_ + results - 1;
    if (!other) return;
    other_ = g.graph->input_index(other);
    BRASA_ASSERT(other_ >= 0, "what a product's activation reads is not in memory");
    other_row_ = row(steps(other, ir::strides_of(*g.graph, other)));
  }

  /// What a program that runs alone is told of it.
  std::unique_ptr<AloneCall> alone() const {
    auto out = std::make_unique<AloneCall>();
    out->function = "product";
    out->tensors = {left_.tensor, right_.tensor, inputs_};
    if (bias_ >= 0) out->tensors.push_back(static_cast<size_t>(bias_));
    bool tf32 = left_.dtype == DType::Float32 && runtime::float32_products_in_tf32();
    out->facts = {alone_number(left_.dtype), alone_number(result_), tf32, bias_ >= 0};
    out->sizes = {count_, rows_, inner_, columns_};
    for (const Located* l : {&left_, &right_})
      out->sizes.insert(out->sizes.end(), {l->offset, l->steps[1], l->steps[2], l->steps[0]});
    out->sizes.insert(out->sizes.end(), {row_, batch_});
    out->work = SizeProgram(Expr(kAloneWorkspace));
    return out;
  }
  void repeat(int64_t count, std::span<const int64_t> apart) override {
    count_ = SizeProgram(Expr(count));
    for (Located* l : {&left_, &right_}) l->steps[0] = SizeProgram(Expr(apart[l->tensor] / size_of(l->dtype)));
    batch_ = SizeProgram(Expr(apart[result_at_] / size_of(result_)));
  }
  void run(runtime::Device& device, runtime::Stream stream, void* const* tensors,
           const int64_t* symbols) const override {
    runtime::cuda::run_product(
        {left_.dtype, result_, rows_(symbols), inner_(symbols), columns_(symbols), count_(symbols),
         matrix(left_, tensors, symbols), matrix(right_, tensors, symbols), bias_ < 0 ? nullptr : tensors[bias_],
         tensors[result_at_], row_(symbols), batch_(symbols)},
        {epilogue_, other_ < 0 ? nullptr : tensors[other_], other_row_(symbols),
         result_at_ > inputs_ ? tensors[inputs_] : nullptr, first_row_(symbols)},
        device, stream, measuring("a product"));
  }

 protected:
  double products(const int64_t* symbols) const override {
    return static_cast<double>(count_(symbols)) * static_cast<double>(rows_(symbols)) *
           static_cast<double>(columns_(symbols)) * static_cast<double>(inner_(symbols));
  }

 private:
  // A step for the count of products, too, where there is no dimension of it.
  static Located operand(const Group& g, Value v) {
    Source source = source_of(g, v, readable);
    if (source.steps.of.size() == 2) source.steps.of.insert(source.steps.of.begin(), 0);
    return Located(source);
  }
  static runtime::cuda::Matrix matrix(const Located& l, void* const* tensors, const int64_t* s) {
    return {l.data(tensors, s), l.steps[1](s), l.steps[2](s), l.steps[0](s)};
  }

  size_t inputs_, result_at_;   // where results begin, and the last one is
  int bias_ = -1, other_ = -1;  // which inputs they are; none
  Epilogue epilogue_;
  DType result_;
  Located left_, right_;
  SizeProgram count_, rows_, columns_, inner_, row_, batch_, first_row_, other_row_;
};

constexpr auto prepare = [](const Group& g, const CompilerOptions& options, ir::Facts&) -> std::unique_ptr<DeviceCall> {
  auto call = std::make_unique<ProductCall>(g, options.measured_ways);
  if (options.portable) return call->alone();
  return call;
};

constexpr Implementation biased_product(std::string_view primitive) {
  return {.library = "cublaslt",
          .name = "cuBLASLt",
          .primitive = primitive,
          .covers = covers,
          .prepare = prepare,
          .reads = reads_biased};
}
constexpr Implementation product(std::string_view library, decltype(Implementation::supports) supports,
                                 decltype(Implementation::place) place) {
  return {.library = library,
          .name = "cuBLASLt",
          .primitive = "prim::dot_general",
          .supports = supports,
          .prepare = prepare,
          .place = place,
          .reads = reads,
          .repeats = true};
}

}  // namespace

const Implementation kActivatedProduct = {.library = "tiled_products",
                                          .name = "a product by tiles",
                                          .primitive = "prim::convert",
                                          .covers = covers_activated,
                                          .prepare = prepare,
                                          .reads = reads_activated};
const Implementation kBiasedProduct = biased_product("prim::convert");
const Implementation kBiasedFloat32Product = biased_product("prim::add");
const Implementation kProduct = product("cublaslt", takes, place);
const Implementation kProductInTf32 = product("cublaslt_tf32", takes_in_tf32, place_along_sum);

}  // namespace brasa::compiler
