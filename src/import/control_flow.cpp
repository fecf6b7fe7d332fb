#include <algorithm>

#include <brasa/autocast.h>
#include <brasa/autograd.h>
#include <brasa/control_flow.h>

#include "import/frame.h"
#include "support/error.h"
#include "support/lazy.h"

// Operators that take graphs. Those with branches and loops are <brasa/control_flow.h>'s, so that `compile` has them in its graphs.
namespace brasa::import {
namespace {

using detail::TensorVector;

std::vector<Value> joined(std::vector<Value> a, const std::vector<Value>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
std::vector<Value> values_from(Frame& f, const Node& n, size_t first) {
  std::vector<Value> out;
  for (size_t i = first; i < n.arguments.size(); ++i)
    if (!std::holds_alternative<std::string>(n.arguments[i].value))  // a graph's name
      out = joined(std::move(out), f.values(n.arguments[i]));
  return out;
}
std::vector<Value> optional_values(Frame& f, const Node& n, size_t i) {
  return i < n.arguments.size() ? f.values(n.arguments[i]) : std::vector<Value>();
}

bool is_tensor(const Value& v) { return std::holds_alternative<Tensor>(v); }
TensorVector tensors_of(const std::vector<Value>& values, const char* what) {
  TensorVector out;
  for (const Value& v : values) {
    BRASA_CHECK(is_tensor(v), what, " has a value that is no tensor");
    out.push_back(std::get<Tensor>(v));
  }
  return out;
}
std::vector<Value> values_of(const TensorVector& tensors) { return {tensors.begin(), tensors.end()}; }

// The graph as a function of tensors; `others`, which may be numbers too, follow them.
detail::TensorFunction function_of(Frame& f, const Graph& graph, const std::vector<Value>& others) {
  return [&f, &graph, others](const TensorVector& in) {
    return tensors_of(f.run_graph(graph, joined(values_of(in), others)), "what a graph within the graph gives");
  };
}

// (condition, graph, graph, operands)
void cond(Frame& f, const Node& n) {
  Value condition = f.value(f.argument(n, 0));
  const Graph &yes = f.graph(f.argument(n, 1)), &no = f.graph(f.argument(n, 2));
  std::vector<Value> operands = values_from(f, n, 3);
  const auto* number = std::get_if<Number>(&condition);
  if (number && !number->varies()) return f.set_all(n, f.run_graph(truth_of(condition) ? yes : no, operands));
  // Tensors are operands of both graphs, whichever reads them.
  TensorVector tensors;
  for (const Value& v : operands)
    if (is_tensor(v)) tensors.push_back(std::get<Tensor>(v));
  auto branch = [&](const Graph& graph) -> detail::TensorFunction {
    return [&](const TensorVector& in) {
      std::vector<Value> all = operands;
      size_t next = 0;
      for (Value& v : all)
        if (is_tensor(v)) v = in[next++];
      return tensors_of(f.run_graph(graph, std::move(all)), "what a graph within the graph gives");
    };
  };
  Tensor predicate = number ? number->element(DType::Bool) : std::get<Tensor>(condition);
  f.set_all(n, values_of(detail::cond(predicate, branch(yes), branch(no), tensors)));
}

// (condition's graph, body, carried, others)
void while_loop(Frame& f, const Node& n) {
  const Graph &condition = f.graph(f.argument(n, 0)), &body = f.graph(f.argument(n, 1));
  std::vector<Value> carried = f.values(f.argument(n, 2)), others = optional_values(f, n, 3);
  if (std::all_of(carried.begin(), carried.end(), is_tensor))
    return f.set_all(n, values_of(detail::while_loop(function_of(f, condition, others), function_of(f, body, others),
                                                     tensors_of(carried, ""))));
  // Numbers that steps change are numbers of the program.
  while (true) {
    std::vector<Value> go_on = f.run_graph(condition, joined(carried, others));
    BRASA_CHECK(go_on.size() == 1, "the loop's condition gives ", go_on.size(), " values");
    if (!truth_of(go_on[0])) break;
    std::vector<Value> next = f.run_graph(body, joined(carried, others));
    BRASA_CHECK(next.size() == carried.size(), "the loop's body gives ", next.size(), " values for ", carried.size());
    carried = std::move(next);
  }
  f.set_all(n, std::move(carried));
}

TensorVector tensors_at(Frame& f, const Node& n, size_t i) {
  return tensors_of(f.values(f.argument(n, i)), "what it goes along");
}

// (graph, first values, what it goes along, others) -> last values, stacked results
void scan(Frame& f, const Node& n) {
  detail::TensorFunction step = function_of(f, f.graph(f.argument(n, 0)), optional_values(f, n, 3));
  TensorVector init = tensors_of(f.values(f.argument(n, 1)), "what a step carries");
  f.set_all(n, values_of(detail::scan("scan", step, init, tensors_at(f, n, 2), {}, false)));
}

// (graph, what it goes along, others) -> stacked results
void map_along(Frame& f, const Node& n) {
  detail::TensorFunction step = function_of(f, f.graph(f.argument(n, 0)), optional_values(f, n, 2));
  f.set_all(n, values_of(detail::scan("map", step, {}, tensors_at(f, n, 1), {}, false)));
}

// (graph of two elements, what it goes along, others) -> all partial results
void associative_scan(Frame& f, const Node& n) {
  detail::TensorFunction combine = function_of(f, f.graph(f.argument(n, 0)), optional_values(f, n, 2));
  f.set_all(n, values_of(detail::associative_scan(combine, tensors_at(f, n, 1), false)));
}

const Argument& graph_argument(Frame& f, const Node& n, size_t& at) {
  for (at = 0; at < n.arguments.size(); ++at)
    if (std::holds_alternative<std::shared_ptr<const Graph>>(n.arguments[at].value)) return n.arguments[at];
  return f.argument(n, n.arguments.size());
}
// A graph that is only called: its arguments follow it.
void call_graph(Frame& f, const Node& n) {
  size_t at;
  const Graph& graph = f.graph(graph_argument(f, n, at));
  f.set_all(n, f.run_graph(graph, values_from(f, n, at + 1)));
}
// (enabled, graph, operands)
void with_grad_mode(Frame& f, const Node& n) {
  AutoGradMode mode(f.number(f.argument(n, 0)).toBool());
  call_graph(f, n);
}
// (device type, dtype, enabled, cache, graph, operands)
void with_autocast(Frame& f, const Node& n) {
  const auto* device = std::get_if<std::string>(&f.argument(n, 0).value);
  BRASA_CHECK(device, "autocast of no device");
  DeviceType type = f.program().device.value_or(Device(*device)).type();
  struct Restore {
    DeviceType type;
    bool enabled = autocast::is_autocast_enabled(type);
    DType dtype = autocast::get_autocast_dtype(type);
    ~Restore() {
      autocast::set_autocast_enabled(type, enabled);
      autocast::set_autocast_dtype(type, dtype);
    }
  } restore{type};
  if (const auto* dtype = std::get_if<DType>(&f.argument(n, 1).value)) autocast::set_autocast_dtype(type, *dtype);
  autocast::set_autocast_enabled(type, f.number(f.argument(n, 2)).toBool());
  call_graph(f, n);
}

}  // namespace

Handler graph_handler(const std::string& target) {
  static constinit Lazy<Handlers> kTable([] {
    return Handlers{
        {"cond", cond},
        {"while_loop", while_loop},
        {"scan", scan},
        {"map_impl", map_along},
        {"map", map_along},
        {"associative_scan", associative_scan},
        {"wrap_with_set_grad_enabled", with_grad_mode},
        {"wrap_with_autocast", with_autocast},
        {"wrap", call_graph},
        {"wrap_activation_checkpoint", call_graph},
        {"tag_activation_checkpoint", call_graph},
        {"strict_mode", call_graph},
        {"invoke_subgraph", call_graph},
    };
  });
  return find(*kTable, "torch.ops.higher_order.", target);
}

}  // namespace brasa::import
