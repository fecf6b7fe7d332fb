#include "runtime/cuda/attention.h"

#include <algorithm>
#include <array>

#include "compiler/libraries/cuda/packed_gradients.h"
#include "compiler/libraries/operands.h"
#include "compiler/libraries/rows.h"
#include "compiler/passes/pass_runner.h"
#include "compiler/passes/transform.h"
#include "compiler/run/size_program.h"
#include "ops/attention.h"
#include "support/error.h"

// Attention and its derivative by kernels of our own for tensor cores, which read heads where they are.
namespace brasa::compiler {
namespace {

using ops::AttentionNode;

std::vector<size_t> heads_of(const AttentionNode& n) {
  return n.backward ? std::vector<size_t>{1, 2, 3, 0, 4} : std::vector<size_t>{0, 1, 2};
}
std::vector<size_t> vectors_of(const AttentionNode& n) {
  return n.backward ? std::vector<size_t>{5} : std::vector<size_t>{};
}
const ir::Type& query_of(const Node& n) { return type_of(n.arg<Value>(AttentionNode(n.args).query)); }

bool takes(const Node& n) {
  AttentionNode call(n.args);
  const ir::Type& query = query_of(n);
  auto features = query.shape.back().maybe_constant();
  for (size_t i : heads_of(call))
    if (type_of(n.arg<Value>(i)).dtype != query.dtype) return false;
  return n.args[call.mask].is_none() && n.args[call.random].is_none() && features &&
         runtime::cuda::takes_attention(query.dtype, *features) && n.arg<double>(call.scale) > 0;
}

bool takes_reduced(const Node& n) { return is_reduced_floating(query_of(n).dtype) && takes(n); }
// A library multiplies wide heads so much faster than mma does that scores in memory pay, unless half of them are left out.
bool takes_in_tf32(const Node& n) {
  constexpr int64_t kWide = 64;
  const ir::Type& query = query_of(n);
  return query.dtype == DType::Float32 && takes(n) &&
         (AttentionNode(n.args).causal || query.shape.back().constant() <= kWide);
}

bool are_heads(const Steps& s, const ir::Shape& shape) { return s.of.back().is(1) || shape.back().is(1); }
bool is_anywhere(const Steps&, const ir::Shape&) { return true; }

void place(ir::Args& args, const ir::Graph& graph, std::unordered_set<Value>& in_memory) {
  bool backward = AttentionNode(args).backward;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].is<Value>()) continue;
    bool vector = backward && i > 4;
    args[i] = placed(args[i].get<Value>(), false, vector ? is_contiguous : are_heads, graph, in_memory);
  }
}

bool reads(const Node& n, const Stored& stored) {
  auto all = [&](const std::vector<size_t>& args, Readable readable) {
    return std::all_of(args.begin(), args.end(),
                       [&](size_t i) { return reads_in_place(stored, n.arg<Value>(i), readable); });
  };
  AttentionNode call(n.args);
  return all(heads_of(call), are_heads) && all(vectors_of(call), is_contiguous);
}

std::optional<Covered> covers(const ir::Graph&, const Node& n) {
  PackedGradients packed(n);
  if (!packed || !takes(*packed.attention())) return std::nullopt;
  return Covered{packed.inside(), {}};
}

bool reads_packed(const Node& n, const Stored& stored) { return reads(*PackedGradients(n).attention(), stored); }

// Where others read the gradients, too, maybe in the shape in which they are summed up.
std::optional<Covered> covers_sums(const ir::Graph& graph, const Node& n) {
  auto sums = summed_gradients(n);
  auto packed = sums ? covers(graph, *sums->packed) : std::nullopt;
  if (!packed) return std::nullopt;
  std::unordered_map<const Node*, int> uses = ir::count_uses(graph), reads;
  auto note = [&](const Node* reader) { reader->for_each_input([&](Value v) { ++reads[v.node]; }); };
  note(&n);
  for (const Node* each : sums->inside) {
    if (reads[each] != uses[each]) continue;
    packed->inside.push_back(each);
    note(each);
  }
  if (reads[sums->packed] == uses[sums->packed]) return std::nullopt;
  packed->inside.push_back(sums->packed);
  packed->results = {sums->packed};
  return packed;
}

bool reads_summed(const Node& n, const Stored& stored) { return reads_packed(*summed_gradients(n)->packed, stored); }

runtime::cuda::Heads heads_at(const Located& l, void* const* tensors, const int64_t* s) {
  return {l.data(tensors, s), l.steps[0](s), l.steps[1](s), l.steps[2](s)};
}
std::vector<Expr> strides_of(const Group& g, size_t output) {
  const std::vector<Expr>& given = g.output_strides[output];
  return given.empty() ? ir::contiguous_strides(type_of(g.graph->outputs()[output].value).shape) : given;
}
// Heads of a result lie beside each other: [batch, row, head, feature].
Located result(size_t tensor, DType dtype, Expr offset, const std::vector<Expr>& steps) {
  return {tensor, dtype, {offset, {steps[0], steps[2], steps[1]}}};
}
// Of the sums of a tensor of gradients of this shape, by its dimensions: a sum for rows.
std::vector<Expr> sum_strides(const Group& g, const ir::Shape& packed) {
  std::vector<Expr> given = strides_of(g, 1), out = {given[0], given[1]};
  for (Expr e : ir::contiguous_strides(ir::Shape(packed.begin() + 2, packed.end()))) out.push_back(e * given[2]);
  return out;
}
Located result(const Group& g, Value v) {
  for (size_t o = 0; o < g.outputs.size(); ++o) {
    if (!(g.graph->outputs()[o].value == v)) continue;
    return result(g.graph->inputs().size() + o, type_of(v).dtype, 0, strides_of(g, o));
  }
  BRASA_ASSERT(false, "a result of attention is not in memory");
  return {};
}

class AttentionCall final : public DeviceCall {
 public:
  explicit AttentionCall(const Group& g) : inputs_(g.graph->inputs().size()) {
    const Node& first = *g.graph->outputs()[0].value.node;
    PackedGradients packed(first);
    const Node& n = packed ? *packed.attention() : first;
    AttentionNode call(n.args);
    backward_ = call.backward;
    const ir::Shape &query = query_of(n).shape, &key = type_of(n.arg<Value>(call.query + 1)).shape;
    kind_ = {query_of(n).dtype, query[3].constant(), call.causal};
    scale_ = n.arg<double>(call.scale);
    batches_ = SizeProgram(query[0]);
    heads_ = SizeProgram(query[1]);
    queries_ = SizeProgram(query[2]);
    keys_ = SizeProgram(key[2]);
    for (size_t i : heads_of(call)) operands_.emplace_back(source_of(g, n.arg<Value>(i), are_heads));
    for (size_t i : vectors_of(call)) operands_.emplace_back(source_of(g, n.arg<Value>(i), is_contiguous));
    for (uint32_t r = 0; r < n.types.size(); ++r)
      if (packed) {
        Part part = packed.part(r, strides_of(g, 0));
        results_.push_back(result(inputs_, n.types[r].dtype, part.offset, part.steps));
        if (g.outputs.size() == 1) continue;
        part = packed.part(r, sum_strides(g, first.types[0].shape));
        sums_.push_back(result(inputs_ + 1, DType::Float32, part.offset, part.steps));
      } else {
        results_.push_back(result(g, {const_cast<Node*>(&n), r}));
      }
  }

  void run(runtime::Device& device, runtime::Stream stream, void* const* tensors,
           const int64_t* symbols) const override {
    runtime::cuda::Attention a{
        kind_,  batches_(symbols),       heads_(symbols),         queries_(symbols),       keys_(symbols),
        scale_, at(0, tensors, symbols), at(1, tensors, symbols), at(2, tensors, symbols), nullptr};
    if (!backward_) {
      a.log_sum = results_[1].data(tensors, symbols);
      return run_attention(a, heads_at(results_[0], tensors, symbols), device, stream);
    }
    auto all = [&](const std::vector<Located>& of) {
      auto each = [&](size_t r) { return heads_at(of[r], tensors, symbols); };
      return runtime::cuda::AttentionGradients{each(0), each(1), each(2)};
    };
    auto sums = sums_.empty() ? std::nullopt : std::optional(all(sums_));
    a.log_sum = operands_[5].data(tensors, symbols);
    run_attention_backward(a, at(3, tensors, symbols), at(4, tensors, symbols), all(results_), sums ? &*sums : nullptr,
                           device, stream);
  }

 protected:
  // Two products of the scores' size forward, five backward.
  double products(const int64_t* s) const override {
    double scores = static_cast<double>(batches_(s)) * static_cast<double>(heads_(s)) *
                    static_cast<double>(queries_(s)) * static_cast<double>(keys_(s));
    return scores * static_cast<double>(kind_.features) * (backward_ ? 5 : 2) * (kind_.causal ? 0.5 : 1);
  }

 private:
  runtime::cuda::Heads at(size_t i, void* const* tensors, const int64_t* symbols) const {
    return heads_at(operands_[i], tensors, symbols);
  }
  size_t inputs_;
  bool backward_;
  runtime::cuda::AttentionKind kind_{};
  double scale_;
  SizeProgram batches_, heads_, queries_, keys_;
  std::vector<Located> operands_, results_, sums_;
};

// --- one query of each head, with a mask ---

bool is_cached(const Node& n) { return !n.args[5].is_none(); }
// Those of heads' shape: the mask is as long as the keys.
std::vector<size_t> rows_of(const Node& n) {
  return is_cached(n) ? std::vector<size_t>{0, 1, 2, 3, 6, 7} : std::vector<size_t>{0, 1, 2, 3};
}

bool takes_row(const Node& n) {
  const ir::Type &query = type_of(n.arg<Value>(0)), &value = type_of(n.arg<Value>(2));
  auto features = query.shape.back().maybe_constant();
  for (size_t i : {1, 2})
    if (type_of(n.arg<Value>(i)).dtype != query.dtype) return false;
  return features && query.shape[2].is(1) && value.shape.back() == query.shape.back() &&
         runtime::cuda::takes_attention_of_row(query.dtype, *features) && !PassRunner::switched_off("masked_attention");
}

void place_row(ir::Args& args, const ir::Graph& graph, std::unordered_set<Value>& in_memory) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].is<Value>()) continue;
    Value v = args[i].get<Value>();
    int input = graph.input_index(below_views(v));
    if (input >= 0 && graph.inputs()[input].by_value)
      args[i] = *in_memory.insert(ops::call("prim::reshape", {v, ops::shape_of(v)})).first;
    else
      args[i] = placed(v, false, i == 5 ? is_anywhere : are_heads, graph, in_memory);
  }
}

bool reads_row(const Node& n, const Stored& stored) {
  auto reads_at = [&](size_t i, Readable readable) { return reads_in_place(stored, n.arg<Value>(i), readable); };
  for (size_t i : rows_of(n))
    if (!reads_at(i, are_heads)) return false;
  return !is_cached(n) || reads_at(5, is_anywhere);
}

class AttentionOfRowCall final : public DeviceCall {
 public:
  explicit AttentionOfRowCall(const Group& g) {
    const Node& n = *g.graph->outputs()[0].value.node;
    const ir::Shape& key = type_of(n.arg<Value>(1)).shape;
    const ir::Type& query = type_of(n.arg<Value>(0));
    kind_ = {query.dtype, query.shape[3].constant(), false};
    kind_.cached = is_cached(n);
    scale_ = n.args[4].get<double>();
    batches_ = SizeProgram(query.shape[0]);
    heads_ = SizeProgram(query.shape[1]);
    keys_ = SizeProgram(key[2]);
    for (size_t i : rows_of(n)) operands_.emplace_back(source_of(g, n.arg<Value>(i), are_heads));
    if (kind_.cached) at_ = Located(source_of(g, n.arg<Value>(5), is_anywhere));
    kind_.early = !g.unwritten.empty() && g.unwritten[operands_[1].tensor] && g.unwritten[operands_[2].tensor];
    result_ = result(g, g.graph->outputs()[0].value);
  }

  void run(runtime::Device& device, runtime::Stream stream, void* const* tensors,
           const int64_t* symbols) const override {
    auto heads = [&](size_t i) { return heads_at(operands_[i], tensors, symbols); };
    runtime::cuda::AttentionOfRow a{};
    a.kind = kind_;
    a.batches = batches_(symbols);
    a.heads = heads_(symbols);
    a.keys = keys_(symbols);
    a.scale = scale_;
    a.query = heads(0);
    a.key = heads(1);
    a.value = heads(2);
    a.mask = heads(3);
    a.mask.row = 1;  // its last dimension is the keys'
    if (kind_.cached) {
      a.at = at_.data(tensors, symbols);
      a.key_row = heads(4);
      a.value_row = heads(5);
    }
    run_attention_of_row(a, heads_at(result_, tensors, symbols), device, stream);
  }

 protected:
  double products(const int64_t* s) const override {
    constexpr double kProducts = 2;
    return kProducts * static_cast<double>(batches_(s)) * static_cast<double>(heads_(s)) *
           static_cast<double>(keys_(s)) * static_cast<double>(kind_.features);
  }

 private:
  runtime::cuda::AttentionKind kind_{};
  double scale_;
  SizeProgram batches_, heads_, keys_;
  std::vector<Located> operands_;
  Located at_, result_;
};

constexpr auto prepare = [](const Group& g, const CompilerOptions&, ir::Facts&) -> std::unique_ptr<DeviceCall> {
  return std::make_unique<AttentionCall>(g);
};

constexpr Implementation attention(std::string_view library, std::string_view primitive,
                                   bool (*supports)(const Node& n)) {
  return {.library = library,
          .name = "attention in one pass",
          .primitive = primitive,
          .supports = supports,
          .prepare = prepare,
          .place = place,
          .reads = reads};
}

}  // namespace

const Implementation kAttention = attention("attention", "prim::attention", takes_reduced);
const Implementation kAttentionBackward = attention("attention", "prim::attention_backward", takes_reduced);
const Implementation kAttentionInTf32 = attention("attention_tf32", "prim::attention", takes_in_tf32);
const Implementation kAttentionInTf32Backward = attention("attention_tf32", "prim::attention_backward", takes_in_tf32);
const Implementation kMaskedAttention = {
    .library = "attention",
    .name = "attention of a row",
    .primitive = "prim::masked_attention",
    .supports = takes_row,
    .prepare = [](const Group& g, const CompilerOptions&, ir::Facts&) -> std::unique_ptr<DeviceCall> {
      return std::make_unique<AttentionOfRowCall>(g);
    },
    .place = place_row,
    .reads = reads_row};
const Implementation kPackedGradients = {.library = "attention",
                                         .name = "attention in one pass",
                                         .primitive = "prim::transpose",
                                         .covers = covers,
                                         .prepare = prepare,
                                         .reads = reads_packed};
const Implementation kSummedGradients = {.library = "attention",
                                         .name = "attention in one pass",
                                         .primitive = "prim::reduce",
                                         .covers = covers_sums,
                                         .prepare = prepare,
                                         .reads = reads_summed,
                                         .first_sums = sums_of_gradients};

}  // namespace brasa::compiler
