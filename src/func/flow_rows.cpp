#include "func/flow_rows.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "ops/builder.h"
#include "support/error.h"
#include "support/lazy.h"
#include "support/mutex.h"
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

// The operands in the order in which their gradients are complete in eager calls, which go back through one step after the other: what
// the bodies read last comes first, and what a loop goes along, of which a step takes its items before all else, at the end.
std::vector<size_t> order_of_gradients(const Flow& flow, size_t operands) {
  constexpr auto kNever = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> read(operands, kNever);
  for (const RecordedBody& body : flow.bodies) {
    std::vector<size_t> place;  // by number, of the operands
    for (size_t i = 0; i < body.events.size(); ++i) {
      const capture::Event& e = body.events[i];
      place.resize(e.first + e.count, operands);
      if (!e.row) place[e.first] = static_cast<size_t>(e.args[0].get<Expr>().constant());
      if (e.row)
        capture::each_operand(e, [&](capture::Number n) {
          if (size_t p = place[n]; p < operands) read[p] = std::min(read[p], static_cast<int64_t>(i));
        });
    }
  }
  for (size_t p = flow.along; p < flow.beyond; ++p) read[p] = static_cast<int64_t>(p) - static_cast<int64_t>(operands);
  std::vector<size_t> order(operands);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return read[a] > read[b]; });
  return order;
}

// Arguments: operands in that order, sizes, then numbers, which a body gets as operands where they are not known.
Values compose(const Flow& flow, const Args& args) {
  const auto& given = args[0].get<Values>();
  Values operands(given.size());
  std::vector<size_t> order = order_of_gradients(flow, given.size());
  for (size_t i = 0; i < given.size(); ++i) operands[order[i]] = given[i];
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

  SharedMutex mutex_;
  std::unordered_multimap<size_t, std::unique_ptr<Known>> known_;
};

}  // namespace

std::vector<Tensor> call(const Flow& flow, const FlowArguments& arguments) {
  std::vector<Tensor> operands;
  for (size_t place : order_of_gradients(flow, arguments.operands.size()))
    operands.push_back(arguments.operands[place]);
  std::vector<int64_t> sizes = arguments.sizes;
  bool named = std::any_of(arguments.names.begin(), arguments.names.end(), [](uint32_t n) { return n != 0; });
  if (named) sizes.insert(sizes.end(), arguments.names.begin(), arguments.names.end());
  std::vector<CallArg> args{operands, IntArrayRef(sizes.data(), arguments.sizes.size())};
  args[1].named = named;
  for (const Scalar& n : arguments.numbers) args.emplace_back(n);
  static constinit Lazy<Rows> rows;
  return eager::call_list(eager::op(rows->of(flow, arguments.numbers.size())), args);
}

}  // namespace brasa::func
