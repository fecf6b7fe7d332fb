#include <brasa/autocast.h>
#include <brasa/autograd.h>

#include "import/frame.h"
#include "support/error.h"

// Operators that take graphs. A branch or a loop runs by its condition's value: while `compile` records, that ends a graph.
namespace brasa::import {
namespace {

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

// (condition, graph, graph, operands)
void cond(Frame& f, const Node& n) {
  bool first = truth_of(f.value(f.argument(n, 0)));
  f.set_all(n, f.run_graph(f.graph(f.argument(n, first ? 1 : 2)), values_from(f, n, 3)));
}

// (condition's graph, body, carried, others)
void while_loop(Frame& f, const Node& n) {
  const Graph &condition = f.graph(f.argument(n, 0)), &body = f.graph(f.argument(n, 1));
  std::vector<Value> carried = f.values(f.argument(n, 2)), others = optional_values(f, n, 3);
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

std::vector<Tensor> tensors_of(const std::vector<Value>& values) {
  std::vector<Tensor> out;
  for (const Value& v : values) {
    const auto* t = std::get_if<Tensor>(&v);
    BRASA_CHECK(t && t->defined() && t->dim() > 0, "what it goes along is no tensor with a dimension");
    out.push_back(*t);
  }
  BRASA_CHECK(!out.empty(), "there is nothing to go along");
  for (const Tensor& t : out)
    BRASA_CHECK(t.size(0) == out[0].size(0), "it goes along ", out[0].size(0), " and ", t.size(0), " items");
  return out;
}
std::vector<Value> slices(const std::vector<Tensor>& along, int64_t i) {
  std::vector<Value> out;
  for (const Tensor& t : along) out.emplace_back(t.select(0, i));
  return out;
}
// What the steps gave, stacked along a new first dimension.
class Stacked {
 public:
  explicit Stacked(size_t count) : steps_(count) {}
  void add(const std::vector<Value>& values, size_t first) {
    BRASA_CHECK(values.size() == first + steps_.size(), "a step gives ", values.size(), " values, expected ",
                first + steps_.size());
    for (size_t i = 0; i < steps_.size(); ++i) {
      const auto* t = std::get_if<Tensor>(&values[first + i]);
      BRASA_CHECK(t && t->defined(), "a step gives a value that is no tensor");
      steps_[i].push_back(*t);
    }
  }
  std::vector<Value> values() const {
    std::vector<Value> out;
    for (const auto& list : steps_) {
      BRASA_CHECK(!list.empty(), "it goes along no items");
      out.emplace_back(stack(list, 0));
    }
    return out;
  }

 private:
  std::vector<std::vector<Tensor>> steps_;
};

// (graph, first values, what it goes along, others) -> last values, stacked results
void scan(Frame& f, const Node& n) {
  const Graph& step = f.graph(f.argument(n, 0));
  std::vector<Value> carried = f.values(f.argument(n, 1)), others = optional_values(f, n, 3);
  std::vector<Tensor> along = tensors_of(f.values(f.argument(n, 2)));
  size_t carries = carried.size();
  BRASA_CHECK(step.outputs.size() >= carries, "a step gives fewer values than it takes");
  Stacked results(step.outputs.size() - carries);
  for (int64_t i = 0; i < along[0].size(0); ++i) {
    std::vector<Value> out = f.run_graph(step, joined(joined(carried, slices(along, i)), others));
    results.add(out, carries);
    out.resize(carries);
    carried = std::move(out);
  }
  f.set_all(n, joined(std::move(carried), results.values()));
}

// (graph, what it goes along, others) -> stacked results
void map_along(Frame& f, const Node& n) {
  const Graph& step = f.graph(f.argument(n, 0));
  std::vector<Tensor> along = tensors_of(f.values(f.argument(n, 1)));
  std::vector<Value> others = optional_values(f, n, 2);
  Stacked results(step.outputs.size());
  for (int64_t i = 0; i < along[0].size(0); ++i) results.add(f.run_graph(step, joined(slices(along, i), others)), 0);
  f.set_all(n, results.values());
}

// (graph of two elements, what it goes along, others) -> all partial results
void associative_scan(Frame& f, const Node& n) {
  const Graph& combine = f.graph(f.argument(n, 0));
  std::vector<Tensor> along = tensors_of(f.values(f.argument(n, 1)));
  std::vector<Value> others = optional_values(f, n, 2), so_far = slices(along, 0);
  Stacked results(along.size());
  results.add(so_far, 0);
  for (int64_t i = 1; i < along[0].size(0); ++i) {
    so_far = f.run_graph(combine, joined(joined(so_far, slices(along, i)), others));
    results.add(so_far, 0);
  }
  f.set_all(n, results.values());
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
  static const Handlers kTable{
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
  return find(kTable, "torch.ops.higher_order.", target);
}

}  // namespace brasa::import
