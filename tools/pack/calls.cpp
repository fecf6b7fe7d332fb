#include "calls.h"

#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/call.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ops/builder.h"
#include "ops/decompose.h"
#include "sample_call.h"

namespace brasa::pack {
namespace {

using ops::Row;
using ops::Sample;
using ops::TensorSample;

// Forward alone, and with the gradients of all operands.
void pack(const Row& row, const Sample& sample) {
  {
    NoGradGuard no_grad;
    run(row, sample, false);
  }
  if (row.no_gradient) return;
  eager::Results results = run(row, sample, true);
  if (results.size() == 0 || !results[0].requires_grad()) return;
  results[0].backward(ones_like(results[0]), true);  // a cotangent in memory
  results[0].sum().backward();                       // and a repeated number
}

bool is_pointwise(const Row& row, const Sample& sample) {
  ir::Graph graph;
  ir::Facts facts;
  ir::Args args;
  ops::Builder builder(graph, facts, [](const Row&) { return true; });
  for (const ops::SampleArg& a : sample.args) {
    if (auto* literal = std::get_if<ir::Arg>(&a)) {
      args.push_back(*literal);
    } else {
      const auto& t = std::get<TensorSample>(a);
      args.emplace_back(graph.add_input({t.dtype, ir::Shape(t.shape.begin(), t.shape.end()), false}));
    }
  }
  for (ir::Value v : builder.record(row, std::move(args))) graph.add_output(v);
  std::unique_ptr<ir::Graph> primitives = ops::decompose(graph, facts);
  return std::all_of(primitives->nodes().begin(), primitives->nodes().end(), [](const ir::Node* n) {
    ops::Kind kind = ops::kind_of(*n);
    return kind == ops::Kind::Input || kind == ops::Kind::Full || kind == ops::Kind::Broadcast ||
           kind == ops::Kind::Pointwise;
  });
}

// The sample with vectors of one size in place of its tensors, if all have this dtype.
std::optional<Sample> on_vectors(const Sample& sample, DType t) {
  Sample out = sample;
  int tensors = 0;
  for (ops::SampleArg& a : out.args) {
    if (std::get_if<std::vector<TensorSample>>(&a)) return std::nullopt;
    auto* one = std::get_if<TensorSample>(&a);
    if (!one) continue;
    if (one->dtype != t) return std::nullopt;
    one->shape = {8};
    one->stride = 1;
    ++tensors;
  }
  return tensors ? std::optional(out) : std::nullopt;
}

// Of a point-wise row its first call on float32 tensors, and that on integers.
std::vector<Sample> pointwise_calls(const Row& row) {
  std::vector<Sample> out;
  bool plain =
      !row.random && !row.count && !row.view && row.memory == ops::Memory::None && row.schema.returns.size() == 1;
  for (const ir::Param& p : row.schema.params) plain = plain && !p.mutated;
  if (!plain) return out;
  for (DType t : {DType::Float32, DType::Int64})
    for (const Sample& s : row.samples) {
      std::optional<Sample> call = on_vectors(s, t);
      try {
        if (!call || !is_pointwise(row, *call)) continue;
      } catch (const std::exception&) {
        continue;  // it is about more than elements: the shapes do not fit
      }
      out.push_back(*call);
      break;
    }
  return out;
}

using Function = std::function<Tensor(const std::vector<Tensor>&)>;
void both(const std::vector<Tensor>& inputs, const Function& f) {
  {
    NoGradGuard no_grad;
    f(inputs);
  }
  std::vector<Tensor> leaves;
  for (const Tensor& t : inputs) leaves.push_back(t.detach().clone().set_requires_grad(true));
  Tensor y = f(leaves);
  y.backward(ones_like(y), true);
  y.sum().backward();
}

// The numbers that modules start with, for weights of each rank; a bound of 1 has code of its own.
void initialise() {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{8}, {2, 4}, {2, 2, 2}, {2, 2, 2, 2}}) {
    Tensor weight = brasa::empty(shape);
    weight.uniform_(-0.5, 0.5);
    weight.uniform_(-0.5, 1);
    weight.normal_(0, 0.5);
  }
  (void)brasa::empty({}, kInt64).fill_(0);
}

// Small ones read their operands where they are; others pack those that are used often (see passes/contraction.cpp).
void products() {
  struct Sizes {
    int64_t m, k, n;
  };
  for (const Sizes& s : {Sizes{8, 8, 8}, {8, 64, 64}, {24, 64, 64}, {64, 64, 8}, {64, 64, 64}}) {
    Tensor a = tensor_of(ops::floats(s.m, s.k)), b = tensor_of(ops::floats(s.k, s.n)),
           weight = tensor_of(ops::floats(s.n, s.k)), bias = tensor_of(ops::floats(s.n));
    both({a, b}, [](const auto& in) { return matmul(in[0], in[1]); });
    both({a, weight}, [](const auto& in) { return matmul(in[0], in[1].t()); });
    both({a, weight, bias}, [](const auto& in) { return addmm(in[2], in[0], in[1].t()); });
  }
}

// Layouts and forms that a row's sample does not say.
void others() {
  Tensor x = tensor_of(ops::floats(8, 8)), row = tensor_of(ops::floats(8)), i = tensor_of(ops::ints(8));
  products();
  both({x}, [](const auto& in) { return in[0].t().contiguous(); });
  both({x}, [](const auto& in) { return 1 - in[0]; });
  both({x}, [](const auto& in) { return 1 / in[0]; });
  both({x}, [](const auto& in) { return pow(in[0], 2); });
  both({x, x}, [](const auto& in) { return where(in[0] > 0.5, in[0], in[1]); });
  NoGradGuard no_grad;
  for (const char* name : {"aten::add_.Tensor", "aten::sub_.Tensor", "aten::mul_.Tensor", "aten::div_.Tensor"}) {
    for (const Tensor& y : {x, row}) call(name, {x.clone(), y});
    call(name, {x.clone(), Scalar(2.0)});
  }
  for (DType t : {kFloat64, kInt64, kBool}) (void)x.to(t).to(kFloat32);
  (void)(i == i).sum();
  (void)(i == i).to(kFloat32).mean();
  (void)x.clone().fill_(2.0);
  (void)x.clone().fill_(1);
  (void)x.clone().zero_();
  (void)zeros({8, 8});
  (void)ones({8, 8});
  (void)zeros_like(x);
  (void)rand({4, 4});
  (void)randn({4, 4});
  (void)arange(4);
  initialise();
}

}  // namespace

void call_common_operators() {
  for (const Row& row : ops::table().rows()) {
    if (row.is_primitive()) continue;
    for (const Sample& call : row.packed) pack(row, call);
    for (const Sample& call : pointwise_calls(row)) pack(row, call);
  }
  others();
}

}  // namespace brasa::pack
