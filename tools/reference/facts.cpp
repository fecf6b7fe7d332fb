#include "facts.h"

#include <algorithm>

#include "ops/builder.h"
#include "support/error.h"
#include "transforms/derived.h"
#include "transforms/vjp.h"

namespace brasa::reference {
namespace {

using ops::TensorSample;

std::vector<TensorSample> tensors_of(const ops::Sample& sample) {
  std::vector<TensorSample> out;
  for (const ops::SampleArg& a : sample.args) {
    if (auto* one = std::get_if<TensorSample>(&a)) out.push_back(*one);
    if (auto* list = std::get_if<std::vector<TensorSample>>(&a)) out.insert(out.end(), list->begin(), list->end());
  }
  return out;
}

// The sample as a graph of one operator. Tensors of its first tensor's dtype get `dtype` instead.
std::unique_ptr<ir::Graph> record(const ops::Row& row, const ops::Sample& sample, std::optional<DType> dtype,
                                  ir::Facts& facts) {
  auto graph = std::make_unique<ir::Graph>();
  ops::Builder builder(*graph, facts);
  std::vector<TensorSample> tensors = tensors_of(sample);
  auto input = [&](const TensorSample& s) {
    DType t = dtype && s.dtype == tensors[0].dtype ? *dtype : s.dtype;
    return graph->add_input({t, ir::Shape(s.shape.begin(), s.shape.end()), false});
  };
  ir::Args args;
  for (const ops::SampleArg& a : sample.args) {
    if (auto* literal = std::get_if<ir::Arg>(&a)) {
      args.push_back(*literal);
    } else if (auto* one = std::get_if<TensorSample>(&a)) {
      args.emplace_back(input(*one));
    } else {
      std::vector<ir::Value> list;
      for (const TensorSample& s : std::get<std::vector<TensorSample>>(a)) list.push_back(input(s));
      args.emplace_back(std::move(list));
    }
  }
  const ops::Row* called = &row;
  if (row.random) {
    while (args.size() + 1 < row.schema.params.size())
      args.push_back(row.schema.params[args.size()].default_value.value_or(ir::Arg()));
    args.resize(row.schema.params.size());
    args.back() = ir::Arg(graph->add_input({DType::Int64, {ir::Expr(2)}, false}, "key"));
  }
  if (row.count) {  // any size does: the values are not known
    ops::complete_args(row, args);
    args.push_back(ops::list({1}));
    called = &transforms::sized_row(row);
  }
  for (ir::Value v : builder.record(*called, std::move(args))) graph->add_output(v);
  return graph;
}

bool differentiable(const ops::Row& row, const ops::Sample& sample) {
  ir::Facts facts;
  std::unique_ptr<ir::Graph> graph = record(row, sample, {}, facts);
  std::vector<bool> needs, has;
  for (const ir::Input& in : graph->inputs()) needs.push_back(is_floating(ir::type_of(in.value).dtype));
  for (const ir::Output& o : graph->outputs()) has.push_back(is_floating(ir::type_of(o.value).dtype));
  if (std::find(has.begin(), has.end(), true) == has.end()) return false;
  transforms::JointGraph joint = transforms::joint(*graph, facts, needs, has);
  return std::any_of(joint.gradient_of.begin(), joint.gradient_of.end(), [](int at) { return at >= 0; });
}

// A primitive may be the first to notice operands that do not go together: its InternalError is a refusal too.
template <class F>
bool accepted(F f) {
  try {
    return f();
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

std::vector<ir::Type> result_types(const ops::Row& row, const ops::Sample& sample, std::optional<DType> dtype) {
  ir::Facts facts;
  std::unique_ptr<ir::Graph> graph = record(row, sample, dtype, facts);
  std::vector<ir::Type> out;
  for (const ir::Output& o : graph->outputs()) out.push_back(ir::type_of(o.value));
  return out;
}

Facts facts_of(const ops::Row& row) {
  Facts out;
  for (const DTypeInfo& info : kDTypes) {
    if (!info.computes) continue;
    DType t = info.dtype;
    auto takes = [&](const ops::Sample& s) {
      return !tensors_of(s).empty() && accepted([&] { return result_types(row, s, t), true; });
    };
    if (std::any_of(row.samples.begin(), row.samples.end(), takes)) out.dtypes.push_back(t);
  }
  auto has_gradient = [&](const ops::Sample& s) { return accepted([&] { return differentiable(row, s); }); };
  out.differentiable =
      !row.no_gradient && (row.is_primitive() || std::any_of(row.samples.begin(), row.samples.end(), has_gradient));
  return out;
}

}  // namespace brasa::reference
