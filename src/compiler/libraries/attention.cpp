#include "runtime/cuda/attention.h"

#include "compiler/libraries/operands.h"
#include "compiler/libraries/rows.h"
#include "compiler/run/size_program.h"
#include "support/error.h"

// Attention and its derivative by kernels of our own for tensor cores, which read heads where they are.
namespace brasa::compiler {
namespace {

using ir::Expr;
using ir::Node;
using ir::Value;

// prim::attention_backward has the cotangent in front, and vectors behind, of the operands that both have.
bool is_backward(const Node& n) { return n.types.size() == 3; }
size_t first_head(const Node& n) { return is_backward(n) ? 1 : 0; }
std::vector<size_t> heads_of(const Node& n) {
  return is_backward(n) ? std::vector<size_t>{1, 2, 3, 0} : std::vector<size_t>{0, 1, 2};
}
std::vector<size_t> vectors_of(const Node& n) {
  return is_backward(n) ? std::vector<size_t>{4, 5} : std::vector<size_t>{};
}

bool takes(const Node& n) {
  const ir::Type& query = type_of(n.arg<Value>(first_head(n)));
  auto features = query.shape.back().maybe_constant();
  for (size_t i : heads_of(n))
    if (type_of(n.arg<Value>(i)).dtype != query.dtype) return false;
  return features && runtime::cuda::takes_attention(query.dtype, *features) && n.args.back().get<double>() > 0;
}

bool are_heads(const Steps& s, const ir::Shape& shape) { return s.of.back().is(1) || shape.back().is(1); }
bool is_vector(const Steps& s, const ir::Shape& shape) {
  std::vector<Expr> without_gaps = ir::contiguous_strides(shape);
  for (size_t d = 0; d < shape.size(); ++d)
    if (!shape[d].is(1) && !(s.of[d] == without_gaps[d])) return false;
  return true;
}

void place(ir::Args& args, const ir::Graph& graph, std::unordered_set<Value>& in_memory) {
  bool backward = args.size() > 5;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].is<Value>()) continue;
    bool vector = backward && i > 3;
    args[i] = placed(args[i].get<Value>(), false, vector ? is_vector : are_heads, graph, in_memory);
  }
}

bool reads(const Node& n, const Stored& stored) {
  auto all = [&](const std::vector<size_t>& args, Readable readable) {
    for (size_t i : args) {
      Value v = n.arg<Value>(i), from = source_in(stored, v, readable);
      if (!from || type_of(from).dtype != type_of(v).dtype) return false;
    }
    return true;
  };
  return all(heads_of(n), are_heads) && all(vectors_of(n), is_vector);
}

class AttentionCall final : public DeviceCall {
 public:
  explicit AttentionCall(const Group& g) : inputs_(g.graph->inputs().size()) {
    const Node& n = *g.graph->outputs()[0].value.node;
    backward_ = is_backward(n);
    const ir::Shape &query = type_of(n.arg<Value>(first_head(n))).shape,
                    &key = type_of(n.arg<Value>(first_head(n) + 1)).shape;
    kind_ = {type_of(n.arg<Value>(first_head(n))).dtype, query[3].constant(), n.args[n.args.size() - 2].get<bool>()};
    scale_ = n.args.back().get<double>();
    batches_ = SizeProgram(query[0]);
    heads_ = SizeProgram(query[1]);
    queries_ = SizeProgram(query[2]);
    keys_ = SizeProgram(key[2]);
    for (size_t i : heads_of(n)) operands_.push_back(operand(source_of(g, n.arg<Value>(i), are_heads)));
    for (size_t i : vectors_of(n)) operands_.push_back(operand(source_of(g, n.arg<Value>(i), is_vector)));
    for (uint32_t r = 0; r < n.types.size(); ++r) results_.push_back(result(g, {const_cast<Node*>(&n), r}));
  }

  void run(runtime::Device& device, runtime::Stream stream, void* const* tensors,
           const int64_t* symbols) const override {
    runtime::cuda::Attention a{
        kind_,  batches_(symbols),       heads_(symbols),         queries_(symbols),       keys_(symbols),
        scale_, at(0, tensors, symbols), at(1, tensors, symbols), at(2, tensors, symbols), nullptr};
    auto result = [&](size_t r) { return results_[r].heads(tensors, symbols); };
    if (backward_) {
      a.log_sum = at(4, tensors, symbols).data;
      run_attention_backward(a, at(3, tensors, symbols), at(5, tensors, symbols).data, result(0), result(1), result(2),
                             device, stream);
    } else {
      a.log_sum = result(1).data;
      run_attention(a, result(0), device, stream);
    }
  }

 protected:
  // Two products of the scores' size forward, five backward.
  double products(const int64_t* s) const override {
    double scores = static_cast<double>(batches_(s)) * static_cast<double>(heads_(s)) *
                    static_cast<double>(queries_(s)) * static_cast<double>(keys_(s));
    return scores * static_cast<double>(kind_.features) * (backward_ ? 5 : 2) * (kind_.causal ? 0.5 : 1);
  }

 private:
  struct Operand {
    size_t tensor;
    DType dtype;
    SizeProgram offset, batch, head, row;
    runtime::cuda::Heads heads(void* const* tensors, const int64_t* s) const {
      auto* start = static_cast<std::byte*>(tensors[tensor]) + offset(s) * size_of(dtype);
      return {start, batch(s), head(s), row(s)};
    }
  };
  runtime::cuda::Heads at(size_t i, void* const* tensors, const int64_t* symbols) const {
    return operands_[i].heads(tensors, symbols);
  }
  static Operand operand(const Source& s) {
    return {s.input,
            s.dtype,
            SizeProgram(s.steps.offset),
            SizeProgram(s.steps.of[0]),
            SizeProgram(s.steps.of[1]),
            SizeProgram(s.steps.of[2])};
  }
  // Heads of a result lie beside each other: [batch, row, head, feature].
  Operand result(const Group& g, Value v) const {
    for (size_t o = 0; o < g.outputs.size(); ++o) {
      if (!(g.graph->outputs()[o].value == v)) continue;
      const ir::Type& t = type_of(v);
      std::vector<Expr> steps = g.output_strides[o].empty() ? ir::contiguous_strides(t.shape) : g.output_strides[o];
      return {inputs_ + o,          t.dtype, SizeProgram(Expr(0)), SizeProgram(steps[0]), SizeProgram(steps[2]),
              SizeProgram(steps[1])};
    }
    BRASA_ASSERT(false, "a result of attention is not in memory");
    return {};
  }

  size_t inputs_;
  bool backward_;
  runtime::cuda::AttentionKind kind_{};
  double scale_;
  SizeProgram batches_, heads_, queries_, keys_;
  std::vector<Operand> operands_, results_;
};

constexpr auto prepare = [](const Group& g, const CompilerOptions&, ir::Facts&) -> std::unique_ptr<DeviceCall> {
  return std::make_unique<AttentionCall>(g);
};

constexpr Implementation attention(std::string_view primitive) {
  return {.library = "attention",
          .name = "attention in one pass",
          .primitive = primitive,
          .supports = takes,
          .prepare = prepare,
          .place = place,
          .reads = reads};
}

}  // namespace

const Implementation kAttention = attention("prim::attention");
const Implementation kAttentionBackward = attention("prim::attention_backward");

}  // namespace brasa::compiler
