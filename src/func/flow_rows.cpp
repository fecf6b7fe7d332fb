#include "func/flow_rows.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "ops/builder.h"
#include "support/error.h"
#include "tensor/dispatch.h"
#include "transforms/derived.h"

namespace brasa::func {
namespace {

using ir::Arg;
using ir::Args;
using ir::Expr;
using ir::Value;
using Values = std::vector<Value>;

// What the body makes of the operands, in the current Builder's graph.
Values replayed(const RecordedBody& body, std::span<const Value> operands, const std::vector<Expr>& sizes,
                const Args& numbers) {
  Values values;
  auto mapped = [&](const Arg& a) -> Arg {
    auto value = [&](Value v) { return v.index == 0 ? Value{} : values[v.index - 1]; };
    auto size = [&](Expr e) { return e->kind == ir::ExprKind::Size ? sizes.at(e->id) : e; };
    if (auto* v = a.get_if<Value>()) return capture::is_argument(*v) ? numbers.at(v->index) : Arg(value(*v));
    if (auto* list = a.get_if<Values>()) {
      Values items;
      for (Value v : *list) items.push_back(value(v));
      return Arg(std::move(items));
    }
    if (auto* e = a.get_if<Expr>()) return Arg(size(*e));
    if (auto* list = a.get_if<std::vector<Expr>>()) {
      std::vector<Expr> items;
      for (Expr e : *list) items.push_back(size(e));
      return Arg(std::move(items));
    }
    return a;
  };
  for (const capture::Event& e : body.events) {
    if (!e.row) {
      values.push_back(operands[static_cast<size_t>(e.args[0].get<Expr>().constant())]);
      continue;
    }
    Args args;
    for (const Arg& a : e.args) args.push_back(mapped(a));
    Values results = ops::Builder::current().call(*e.row, std::move(args));
    BRASA_ASSERT(results.size() == e.count, e.row->name(), " gives ", results.size(), " values in a body");
    values.insert(values.end(), results.begin(), results.end());
  }
  Values out;
  for (capture::Number n : body.outputs) out.push_back(values[n]);
  return out;
}

// Arguments: operands, sizes, then numbers, which a body gets as operands where they are not known.
Values compose(const Flow& flow, const Args& args) {
  Values operands = args[0].get<Values>();
  const auto& sizes = args[1].get<std::vector<Expr>>();
  std::vector<size_t> places(args.size());
  for (size_t i = 2; i < args.size(); ++i)
    if (auto* v = args[i].get_if<Value>()) {
      places[i] = operands.size();
      operands.push_back(*v);
    }
  std::vector<ops::BodyFunction> bodies;
  for (const RecordedBody& body : flow.bodies)
    bodies.emplace_back([&, places](std::span<const Value> in) {
      Args numbers;
      for (size_t i = 2; i < args.size(); ++i) numbers.push_back(places[i] ? Arg(in[places[i]]) : args[i]);
      return replayed(body, in, sizes, numbers);
    });
  return flow.build(flow, operands, bodies);
}

ir::Schema schema_of(const std::string& name, const std::string& base, size_t numbers) {
  std::string text = str("flow::", base, "(Tensor[] operands, SymInt[] sizes");
  for (size_t k = 0; k < numbers; ++k) text += str(", Scalar number", k);
  ir::Schema s = ir::parse_schema(text + ") -> Tensor");
  s.name = name;
  for (size_t i = 1; i < s.params.size(); ++i) s.params[i].use = i == 1 ? ir::NumberUse::Size : ir::NumberUse::Input;
  return s;
}

// The rows made so far.
class Rows {
 public:
  const ops::Row& of(const Flow& flow, size_t numbers) {
    size_t hash = numbers;
    for (const RecordedBody& b : flow.bodies) hash = hash * 31 + b.hash();
    {
      std::shared_lock lock(mutex_);
      if (const ops::Row* row = find(hash, flow)) return *row;
    }
    std::lock_guard lock(mutex_);
    if (const ops::Row* row = find(hash, flow)) return *row;
    auto made = std::make_unique<Known>(Known{flow, nullptr});
    std::string name = str("flow::", flow.name, "/", known_.size());
    made->row = &transforms::flow_row(name, [&, kept = made.get()](ops::Row& row) {
      row.schema = schema_of(name, flow.name, numbers);
      row.doc = str(flow.name, " with bodies of a program.");
      row.compose = [kept](const Args& args) { return compose(kept->flow, args); };
    });
    return *known_.emplace(hash, std::move(made))->second->row;
  }

 private:
  struct Known {
    Flow flow;
    const ops::Row* row;
  };
  const ops::Row* find(size_t hash, const Flow& flow) const {
    auto [begin, end] = known_.equal_range(hash);
    auto it = std::find_if(begin, end, [&](const auto& item) { return item.second->flow == flow; });
    return it == end ? nullptr : it->second->row;
  }

  std::shared_mutex mutex_;
  std::unordered_multimap<size_t, std::unique_ptr<Known>> known_;
};

}  // namespace

std::vector<Tensor> call(const Flow& flow, const FlowArguments& arguments) {
  std::vector<CallArg> args{arguments.operands, arguments.sizes};
  for (const Scalar& n : arguments.numbers) args.emplace_back(n);
  static auto* rows = new Rows;
  return eager::call_list(eager::op(rows->of(flow, arguments.numbers.size())), args);
}

}  // namespace brasa::func
