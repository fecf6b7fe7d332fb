#include "transforms/derived.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "ir/copy.h"
#include "ir/text.h"
#include "ops/algebra.h"
#include "ops/bodies.h"
#include "ops/decompose.h"
#include "support/error.h"
#include "support/lazy.h"
#include "support/mutex.h"
#include "transforms/jvp.h"
#include "transforms/vjp.h"
#include "transforms/vmap.h"

namespace brasa::transforms {
namespace {

using ir::Arg;
using ir::Args;
using ir::Value;
using ops::Builder;
using ops::Row;

std::string bits(const std::vector<bool>& v) {
  std::string s;
  for (bool b : v) s += b ? '1' : '0';
  return s;
}

std::vector<bool> bits(std::string_view s) {
  std::vector<bool> v;
  for (char c : s) v.push_back(c == '1');
  return v;
}

class Registry {
 public:
  static Registry& get() {
    static constinit Lazy<Registry> r;
    return *r;
  }
  template <class F>
  const Row& find_or_make(const std::string& name, F make) {
    std::lock_guard lock(mutex_);
    auto it = by_name_.find(name);
    if (it != by_name_.end()) return *it->second;
    rows_.emplace_back();
    Row& row = rows_.back();
    make(row);
    row.schema.name = name;
    by_name_.emplace(name, &row);
    return row;
  }
  const Row* find(std::string_view name) {
    std::lock_guard lock(mutex_);
    auto it = by_name_.find(std::string(name));
    return it == by_name_.end() ? nullptr : it->second;
  }

 private:
  Mutex mutex_;
  std::deque<Row> rows_;
  std::unordered_map<std::string, const Row*> by_name_;
};

// A graph of the one call `row(args)`, whose inputs are the call's operands.
struct OneCall {
  std::unique_ptr<ir::Graph> graph;
  std::vector<Value> operands;  // of the caller's graph
  std::vector<bool> is_tensor;  // by operand; the others are numbers, which have no gradient
};

// `mapped` tensors hold the values of many calls, one behind the other.
OneCall one_call(const Row& row, const Args& args, ir::Facts& facts, const std::vector<bool>& mapped_tensors = {}) {
  OneCall out{std::make_unique<ir::Graph>(), {}, {}};
  size_t tensors = 0;
  Args mapped;
  for (size_t i = 0; i < args.size(); ++i) {
    const Arg& a = args[i];
    auto input = [&](Value v) {
      if (!v) return v;
      out.operands.push_back(v);
      ir::ParamType type = row.schema.params[i].type;
      out.is_tensor.push_back(type == ir::ParamType::Tensor || type == ir::ParamType::Generator);
      ir::Type t = ir::type_of(v);
      if (out.is_tensor.back() && tensors++ < mapped_tensors.size() && mapped_tensors[tensors - 1]) {
        BRASA_ASSERT(!t.shape.empty(), row.name(), ": many calls of a tensor without dimensions");
        t.shape.erase(t.shape.begin());
      }
      return out.graph->add_input(std::move(t));
    };
    if (auto* v = a.get_if<Value>()) {
      mapped.push_back(Arg(input(*v)));
    } else if (auto* list = a.get_if<std::vector<Value>>()) {
      std::vector<Value> items;
      for (Value v : *list) items.push_back(input(v));
      mapped.push_back(Arg(std::move(items)));
    } else {
      mapped.push_back(a);
    }
  }
  Builder builder(*out.graph, facts);
  for (Value v : builder.record(row, std::move(mapped))) out.graph->add_output(v);
  return out;
}

ir::Schema schema_with(ir::Schema s, std::string_view parameter, bool list) {
  for (ir::Param& q : s.params) q.mutated = false;  // what the row writes, its derivative only reads
  ir::Param p;
  p.name = std::string(parameter);
  auto taken = [&] {
    return std::any_of(s.params.begin(), s.params.end(), [&](const ir::Param& q) { return q.name == p.name; });
  };
  for (int order = 2; taken(); ++order) p.name = str(parameter, order);
  p.list = p.optional_items = list;
  s.params.push_back(std::move(p));
  s.returns.assign(1, ir::Return{});
  return s;
}

std::vector<Value> take_list(Args& args) {
  std::vector<Value> list = args.back().get<std::vector<Value>>();
  args.pop_back();
  return list;
}

std::vector<Value> compose_vjp(const Row& row, const std::vector<bool>& needs, const std::vector<bool>& given,
                               Args args) {
  std::vector<Value> cts = take_list(args), results = take_list(args);
  ir::Facts& facts = Builder::current().facts();
  OneCall call = one_call(row, args, facts);
  std::vector<bool> wanted;
  size_t tensors = 0;
  for (bool is_tensor : call.is_tensor) {
    bool wants = is_tensor && tensors < needs.size() && needs[tensors];
    wanted.push_back(wants);
    tensors += is_tensor;
  }
  BRASA_ASSERT(tensors == needs.size() && cts.size() == given.size(), row.name(), ": masks do not fit");
  std::erase_if(cts, [](Value ct) { return !ct; });
  return derivative(*call.graph, wanted, given, call.operands, cts, results);
}

// The movement's transpose. Its sizes are those of the operand, though they need not be the same expressions.
Value back_through(const ir::Node& movement, Value v) {
  return of_shape(ops::row_of(movement).transposed(0, movement, v), ir::type_of(movement.inputs()[0]).shape);
}

// `base` with `value` where the movements look at it. Their rules read their nodes' types alone, so nodes of another graph serve.
Value placed(std::span<ir::Node* const> movements, Value base, Value value) {
  // Elements of one dtype up to here: behind a change of it, the value is one for what these movements give.
  auto changes = [](const ir::Node* n) { return ir::type_of(n->inputs()[0]).dtype != n->types[0].dtype; };
  auto end = std::find_if(movements.begin(), movements.end(), changes);
  if (end != movements.end()) {
    Value seen = base;
    for (auto it = movements.begin(); it <= end; ++it) {
      Args args = (*it)->args;
      args[0] = Arg(seen);
      seen = Builder::current().call(ops::row_of(**it), std::move(args))[0];
    }
    Value inner = placed({end + 1, movements.end()}, seen, value);
    value = back_through(**end, inner);
  }
  movements = {movements.begin(), end};
  bool partial = std::any_of(movements.begin(), movements.end(), [](ir::Node* n) { return !ops::row_of(*n).dense; });
  auto place = [&](Value v) {
    for (size_t i = movements.size(); i-- > 0;) v = back_through(*movements[i], v);
    return v;
  };
  Value out = place(value);
  return partial ? ops::prim::select(place(ops::full(true, ops::shape_of(value), DType::Bool)), out, base) : out;
}

Value compose_put(const Row& view, int result, Args args) {
  Value value = args.back().get<Value>();
  args.pop_back();
  Value base = args[0].get<Value>();
  ir::Facts& facts = Builder::current().facts();
  OneCall call = one_call(view, args, facts);
  std::unique_ptr<ir::Graph> chain =
      ops::decompose(*call.graph, facts, [](const Row& r) { return static_cast<bool>(r.view_rule); });
  // From the base to the result; each is linear in its first operand.
  std::vector<ir::Node*> movements;
  for (Value v = chain->outputs()[result].value; !ir::is_input(v); v = v.node->inputs()[0]) {
    BRASA_ASSERT(ops::row_of(*v.node).view_rule, view.name(), " is no chain of movements");
    movements.push_back(v.node);
  }
  std::reverse(movements.begin(), movements.end());
  ir::Type t = ir::type_of(chain->outputs()[result].value);
  return placed(movements, base, ops::broadcast_to(ops::convert(value, t.dtype), t.shape));
}

// A mask by tensor as one by operand.
std::vector<bool> by_operand(const OneCall& call, const std::vector<bool>& mask) {
  std::vector<bool> out;
  size_t tensors = 0;
  for (bool is_tensor : call.is_tensor) out.push_back(is_tensor && mask.at(tensors++));
  return out;
}

std::vector<Value> compose_vmap(const Row& row, const std::vector<bool>& mapped, const Args& args) {
  ir::Facts& facts = Builder::current().facts();
  OneCall call = one_call(row, args, facts, mapped);
  std::vector<bool> operands = by_operand(call, mapped);
  std::vector<Value> inputs = call.operands;
  std::optional<ir::Expr> count;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!operands[i]) continue;
    ir::Shape shape = ir::type_of(inputs[i]).shape;
    if (!count) count = shape[0];
    shape[0] = *count;
    inputs[i] = of_shape(inputs[i], shape);
  }
  BRASA_ASSERT(count, row.name(), ": no operand holds many calls");
  std::vector<Value> out = splice(*vmap(*call.graph, facts, operands, *count), inputs);
  std::erase(out, Value{});  // in the places of checks
  return out;
}

std::vector<Value> compose_jvp(const Row& row, const std::vector<bool>& has_tangent, Args args) {
  std::vector<Value> tangents = take_list(args);
  ir::Facts& facts = Builder::current().facts();
  OneCall call = one_call(row, args, facts);
  std::vector<Value> inputs = call.operands;
  std::vector<bool> marked = by_operand(call, has_tangent);
  for (size_t i = 0, k = 0; i < marked.size(); ++i)
    if (marked[i]) inputs.push_back(of_shape(tangents.at(k++), ir::type_of(call.operands[i]).shape));
  Forward forward = jvp(*call.graph, facts, marked);
  std::vector<Value> all = splice(*forward.graph, inputs), out, behind;
  for (size_t i = 0; i < call.graph->outputs().size(); ++i) {
    if (!call.graph->outputs()[i].check.empty()) continue;
    out.push_back(all[i]);
    behind.push_back(forward.tangent_of[i] < 0 ? ops::zeros_like(all[i]) : all[forward.tangent_of[i]]);
  }
  out.insert(out.end(), behind.begin(), behind.end());
  return out;
}

}  // namespace

std::vector<Value> splice(const ir::Graph& graph, const std::vector<Value>& inputs) {
  ir::Graph& to = Builder::current().graph();
  ir::ValueMap map;
  for (size_t i = 0; i < graph.inputs().size(); ++i) map.set(graph.inputs()[i].value, inputs[i]);
  for (ir::Node* n : ir::live_nodes(graph))
    if (n->op != ir::input_op()) ops::add_again(*n, map);
  std::vector<Value> out;
  for (const ir::Output& o : graph.outputs()) {
    out.push_back(o.check.empty() ? map(o.value) : Value{});
    if (!o.check.empty()) to.add_check(map(o.value), o.check);
  }
  return out;
}

const Row& vjp_row(const Row& row, const std::vector<bool>& needs, const std::vector<bool>& given) {
  return Registry::get().find_or_make(str("vjp::", row.name(), "/", bits(needs), "/", bits(given)), [&](Row& made) {
    made.schema = schema_with(schema_with(row.schema, "results", true), "cts", true);
    made.doc = str("Cotangents of the operands of ", row.name(), ".");
    made.random = row.random;
    made.compose = [&row, needs, given](const Args& args) { return compose_vjp(row, needs, given, args); };
  });
}

std::vector<std::vector<bool>> flows(const Row& row, const Args& args, ir::Facts& facts) {
  OneCall call = one_call(row, args, facts);
  std::unique_ptr<ir::Graph> primitives = ops::decompose(*call.graph, facts);
  std::vector<std::vector<bool>> out(call.graph->outputs().size());
  for (size_t r = 0; r < out.size(); ++r) {
    std::vector<bool> given(out.size());
    given[r] = true;
    std::vector<bool> all = flows(*primitives, given, is_backward(row));
    for (size_t i = 0; i < all.size(); ++i)
      if (call.is_tensor[i]) out[r].push_back(all[i]);
  }
  return out;
}

bool is_published(const Row& row, const Args& args, uint32_t result, ir::Facts& facts) {
  OneCall call = one_call(row, args, facts);
  return has_published_derivative(ops::decompose(*call.graph, facts, has_own_derivative)->outputs()[result].value);
}

const Row& vmap_row(const Row& row, const std::vector<bool>& mapped) {
  return Registry::get().find_or_make(str("vmap::", row.name(), "/", bits(mapped)), [&](Row& made) {
    made.schema = row.schema;
    for (ir::Param& p : made.schema.params) p.mutated = false;
    made.doc = str("Many calls of ", row.name(), ".");
    made.random = row.random;
    made.compose = [&row, mapped](const Args& args) { return compose_vmap(row, mapped, args); };
    made.no_gradient = row.no_gradient;
  });
}

bool is_of_many_calls(const Row& row) { return row.name().find("vmap::") != std::string::npos; }

bool is_backward(const Row& row) { return row.name().find("vjp::") != std::string::npos; }
bool may_not_flow(const Row& row, size_t results) { return results > 1 || is_backward(row); }

const Row& jvp_row(const Row& row, const std::vector<bool>& has_tangent) {
  return Registry::get().find_or_make(str("jvp::", row.name(), "/", bits(has_tangent)), [&](Row& made) {
    made.schema = schema_with(row.schema, "tangents", true);
    made.doc = str("Results of ", row.name(), " and their tangents.");
    made.random = row.random;
    made.compose = [&row, has_tangent](const Args& args) { return compose_jvp(row, has_tangent, args); };
    made.no_gradient = row.no_gradient;
  });
}

const Row& put_row(const Row& view, int result) {
  return Registry::get().find_or_make(str("put::", view.name(), "/", result), [&](Row& made) {
    made.schema = schema_with(view.schema, "value", false);
    made.doc = str("A tensor with values written through ", view.name(), ".");
    made.compose = [&view, result](const Args& args) { return std::vector<Value>{compose_put(view, result, args)}; };
  });
}

bool is_put(const Row& row) { return row.name().starts_with("put::"); }

const Row& count_row(const Row& row) {
  return Registry::get().find_or_make(str("count::", row.name()), [&](Row& made) {
    made.schema = row.schema;
    made.schema.returns.assign(1, ir::Return{});
    made.doc = str("The size of the results of ", row.name(), ".");
    made.compose = row.bounds ? row.bounds : row.count;
    made.no_gradient = true;
  });
}

const Row& sized_row(const Row& row) {
  return Registry::get().find_or_make(str("sized::", row.name()), [&](Row& made) {
    made.schema = row.schema;
    ir::Param count;
    count.name = "count";
    count.type = ir::ParamType::Int;
    count.list = count.symbolic = true;
    count.use = ir::NumberUse::Size;
    count.list_size = row.counts ? 0 : 1;
    made.schema.params.push_back(std::move(count));
    made.doc = row.doc;
    made.view = row.view;
    made.no_gradient = row.no_gradient;
    made.random = row.random;
    made.compose = [&row, compose = row.number_count ? row.counted
                                    : row.bounds     ? row.bounded
                                                     : row.compose](const Args& args) {
      Args unpacked = args;
      if (!row.counts) unpacked.back() = Arg(args.back().get<std::vector<ir::Expr>>().at(0));
      return compose(unpacked);
    };
  });
}

const Row& flow_row(const std::string& name, const std::function<void(Row&)>& make) {
  return Registry::get().find_or_make(name, make);
}

std::string text_of(const ir::Graph& graph, ir::Facts facts) {
  auto is_flow = [](const Row& row) { return row.name().find("flow::") != std::string::npos; };
  const auto& nodes = graph.nodes();
  if (std::none_of(nodes.begin(), nodes.end(),
                   [&](const ir::Node* n) { return n->op != ir::input_op() && is_flow(ops::row_of(*n)); }))
    return ir::print(graph);
  return ir::print(*ops::decompose(graph, facts, [&](const Row& row) { return !is_flow(row); }));
}

const Row* find_row(std::string_view name) {
  if (const Row* row = ops::find(name)) return row;
  if (name.starts_with("flow::")) return Registry::get().find(name);
  auto tail = [&](size_t skip) { return name.substr(skip); };
  for (auto [prefix, make] : {std::pair("count::", &count_row), std::pair("sized::", &sized_row)})
    if (name.starts_with(prefix)) {
      const Row* row = ops::find(tail(7));
      bool counts = row && (row->count || row->bounds || (make == &sized_row && row->number_count));
      return counts ? &(*make)(*row) : nullptr;
    }
  if (name.starts_with("put::")) {
    size_t slash = name.rfind('/');
    const Row* view = slash == name.npos ? nullptr : find_row(name.substr(5, slash - 5));
    return view ? &put_row(*view, std::atoi(std::string(tail(slash + 1)).c_str())) : nullptr;
  }
  for (auto [prefix, make] : {std::pair("vmap::", &vmap_row), std::pair("jvp::", &jvp_row)})
    if (name.starts_with(prefix)) {
      size_t slash = name.rfind('/'), start = std::string_view(prefix).size();
      const Row* row = slash == name.npos || slash < start ? nullptr : find_row(name.substr(start, slash - start));
      return row ? &(*make)(*row, bits(tail(slash + 1))) : nullptr;
    }
  if (name.starts_with("vjp::")) {
    size_t last = name.rfind('/');
    size_t first = last == name.npos || last == 0 ? name.npos : name.rfind('/', last - 1);
    if (first == name.npos) return nullptr;
    const Row* row = find_row(name.substr(5, first - 5));
    return row ? &vjp_row(*row, bits(name.substr(first + 1, last - first - 1)), bits(tail(last + 1))) : nullptr;
  }
  return nullptr;
}

}  // namespace brasa::transforms
