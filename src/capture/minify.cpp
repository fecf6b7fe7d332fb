#include <brasa/minify.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include <brasa/autograd.h>
#include <brasa/compile.h>
#include <brasa/factories.h>
#include <brasa/generator.h>
#include <brasa/ops_generated.h>

#include "capture/backend.h"
#include "ir/copy.h"
#include "ir/text.h"
#include "program/variants.h"
#include "support/error.h"
#include "tensor/execute.h"
#include "tensor/geometry.h"
#include "tensor/recorder.h"
#include "tensor/tensor_impl.h"
#include "transforms/derived.h"

namespace brasa {
namespace {

using Tensors = std::vector<Tensor>;

std::vector<int64_t> constants(const std::vector<ir::Expr>& list) {
  std::vector<int64_t> out;
  for (ir::Expr e : list) out.push_back(e.constant());
  return out;
}

// The same graph for the sizes of one call.
std::unique_ptr<ir::Graph> sized(const std::string& text, const std::vector<int64_t>& symbols) {
  auto graph = ir::parse(text, transforms::find_row);
  return ir::with_sizes(*graph, [&](ir::Expr e) {
    return ir::Expr(ir::evaluate(e, [&](const ir::ExprNode& s) {
      BRASA_CHECK(s.id < symbols.size(), "the graph has a symbol s", s.id, " whose value is not given");
      return symbols[s.id];
    }));
  });
}

Tensor drawn(const ir::Input& in, const Generator& stream) {
  const ir::Type& type = ir::type_of(in.value);
  Sizes sizes(constants(type.shape));
  Sizes strides = in.strides.empty() ? row_major_strides(sizes) : Sizes(constants(in.strides));
  std::vector<int64_t> all{extent_of(sizes, strides)};
  Tensor values = is_integral(type.dtype, true) ? randint(2, all, kInt64, stream).to(type.dtype)
                                                : randn(all, kFloat32, stream).to(type.dtype);
  return values.as_strided(sizes.vec(), strides.vec());
}

Tensors inputs_of(const ir::Graph& graph, const GraphCheck& check) {
  if (check.inputs.empty()) {
    Generator stream(check.seed);
    Tensors out;
    for (const ir::Input& in : graph.inputs()) out.push_back(drawn(in, stream));
    return out;
  }
  BRASA_CHECK(check.inputs.size() == graph.inputs().size(), "the graph has ", graph.inputs().size(),
              " inputs, given are ", check.inputs.size());
  for (size_t i = 0; i < check.inputs.size(); ++i) {
    const ir::Type& type = ir::type_of(graph.inputs()[i].value);
    BRASA_CHECK(
        check.inputs[i].scalar_type() == type.dtype && check.inputs[i].sizes() == IntArrayRef(constants(type.shape)),
        "input ", i, " of the graph is not like ", check.inputs[i]);
  }
  return check.inputs;
}

// All results, none of them written into an input.
Tensors run(const ir::Graph& graph, const std::string& backend, const Tensors& inputs) {
  runtime::Device& device = runtime::device_of(get_default_device());
  auto apart = std::make_unique<ir::Graph>(graph.level());
  ir::ValueMap map;
  ir::copy_inputs(*apart, graph, map);
  ir::copy_live_nodes(*apart, graph, map);
  for (const ir::Output& o : graph.outputs())
    if (o.check.empty()) apart->add_output(map(o.value));
  ir::Facts facts;
  CompileOptions options;
  auto executable = capture::find_backend(backend)(*apart, facts, options, device, {});
  std::vector<compiler::Operand> operands;
  for (const Tensor& t : inputs) operands.push_back(eager::operand_of(t));
  return eager::run({program::Program(std::move(apart), device), std::move(executable)}, operands);
}

double tolerance_of(DType t) {
  switch (t) {
    case DType::Float64:
    case DType::Complex128: return 1e-10;
    case DType::Float16: return 1e-2;
    case DType::BFloat16: return 6e-2;
    default: return is_integral(t, true) ? 0 : 1e-4;
  }
}

// Empty: the same.
std::string difference(const Tensor& got, const Tensor& want, double tolerance) {
  if (is_integral(want.scalar_type(), true)) {
    if (got.cpu().equal(want.cpu())) return "";
    return str("differs: ", (got != want).sum().item<int64_t>(), " of ", want.numel(), " elements");
  }
  if (tolerance == 0) tolerance = tolerance_of(want.scalar_type());
  DType wide = is_complex(want.scalar_type()) ? DType::Complex128 : DType::Float64;
  Tensor a = got.cpu().to(wide), b = want.cpu().to(wide);
  // NaN and infinities have to be in the same places.
  Tensor finite = a.isfinite().logical_and(b.isfinite());
  Tensor same = (a == b).logical_or(a.isnan().logical_and(b.isnan())).logical_or(finite);
  if (!same.all().item<bool>())
    return str("differs: ", same.logical_not().sum().item<int64_t>(), " of ", want.numel(),
               " elements are NaN or infinite on one side");
  Tensor error = (a - b).abs().masked_fill(finite.logical_not(), 0),
         size = b.abs().masked_fill(finite.logical_not(), 0);
  double most = want.numel() ? error.max().item<double>() : 0;
  double largest = want.numel() ? std::max(1.0, size.max().item<double>()) : 1;
  if (most <= tolerance * largest) return "";
  return str("differs: by ", most, " at most, where the largest value is ", largest);
}

// What is wrong with a graph, and whether that is an error.
struct Failure {
  std::string text;
  bool error = false;
  explicit operator bool() const { return !text.empty(); }
};

Failure failure_of(const ir::Graph& graph, const GraphCheck& check, const Tensors& inputs) {
  Recorder::Scope alone(nullptr);
  NoGradGuard guard;
  Tensors want = run(graph, "interpreter", inputs), got;
  try {
    got = run(graph, check.backend, inputs);
  } catch (const std::exception& e) {
    return {str("backend '", check.backend, "' fails: ", e.what()), true};
  }
  for (size_t i = 0; i < want.size(); ++i)
    if (std::string text = difference(got[i], want[i], check.tolerance); !text.empty())
      return {str("result ", i, " of backend '", check.backend, "' ", text)};
  return {};
}

class Bisection {
 public:
  Bisection(const ir::Graph& graph, const GraphCheck& check, Tensors inputs)
      : check_(check), inputs_(std::move(inputs)) {
    graph_ = ir::copy(graph);
    failure_ = failure_of(*graph_, check_, inputs_);
    BRASA_CHECK(failure_, "minify: the graph does not fail with backend '", check.backend, "'");
  }

  void run() {
    one_output();
    for (bool smaller = true; smaller;) smaller = earlier_output() || fewer_operators();
  }
  const ir::Graph& graph() const { return *graph_; }
  const Failure& failure() const { return failure_; }
  const Tensors& inputs() const { return inputs_; }

 private:
  using Nodes = std::vector<ir::Node*>;

  Nodes operators() const {
    Nodes out;
    for (ir::Node* n : live_nodes(*graph_))
      if (n->op != ir::input_op()) out.push_back(n);
    return out;
  }

  // Takes a graph of these operators alone if it still fails. What they read of others becomes an input with the value that it has.
  bool take(const Nodes& kept, const std::vector<ir::Value>& outputs) {
    std::vector<bool> needed(graph_->nodes().size());
    for (ir::Value v : outputs) needed[v.node->id] = true;
    Nodes live;
    for (size_t i = kept.size(); i-- > 0;) {
      if (!needed[kept[i]->id]) continue;
      live.push_back(kept[i]);
      kept[i]->for_each_input([&](ir::Value v) { needed[v.node->id] = true; });
    }
    std::reverse(live.begin(), live.end());
    auto smaller = std::make_unique<ir::Graph>(graph_->level());
    ir::ValueMap map;
    Tensors inputs;
    auto read = [&](ir::Value v) {
      if (map.find(v)) return;
      int i = graph_->input_index(v);
      ir::Type type = ir::type_of(v);
      if (i < 0) type.weak = false;
      map.set(v, i < 0 ? smaller->add_input(type)
                       : smaller->add_input(type, graph_->inputs()[i].name, graph_->inputs()[i].strides,
                                            graph_->inputs()[i].by_value));
      inputs.push_back(i < 0 ? value(v) : inputs_[i]);
    };
    for (ir::Node* n : live) {
      n->for_each_input(read);
      ir::copy_node(*smaller, *n, map);
    }
    for (ir::Value v : outputs) {
      if (!map.find(v)) return false;
      smaller->add_output(map(v));
    }
    Failure f;
    try {
      f = failure_of(*smaller, check_, inputs);
    } catch (const std::exception&) {
      return false;  // the reference does not run it
    }
    if (!f || f.error != failure_.error) return false;
    graph_ = std::move(smaller);
    inputs_ = std::move(inputs);
    failure_ = std::move(f);
    values_.clear();
    return true;
  }

  // The reference's value of an operator's result.
  const Tensor& value(ir::Value v) {
    if (values_.empty()) {
      std::vector<ir::Output> outputs = std::exchange(graph_->outputs(), {});
      std::vector<ir::Value> all;
      for (ir::Node* n : graph_->nodes())
        for (uint32_t r = 0; n->op != ir::input_op() && r < n->types.size(); ++r) all.push_back(n->out(r));
      for (ir::Value each : all) graph_->add_output(each);
      Recorder::Scope alone(nullptr);
      Tensors results = brasa::run(*graph_, "interpreter", inputs_);
      graph_->outputs() = std::move(outputs);
      for (size_t i = 0; i < all.size(); ++i) values_[{all[i].node, all[i].index}] = results[i];
    }
    return values_.at({v.node, v.index});
  }

  std::vector<ir::Value> outputs() const {
    std::vector<ir::Value> out;
    for (const ir::Output& o : graph_->outputs())
      if (o.check.empty()) out.push_back(o.value);
    return out;
  }

  void one_output() {
    for (ir::Value v : outputs())
      if (!ir::is_input(v) && take(operators(), {v})) return;
  }

  // The first operator whose result fails.
  bool earlier_output() {
    Nodes all = operators();
    for (size_t k = 0; k + 1 < all.size(); ++k)
      for (uint32_t r = 0; r < all[k]->types.size(); ++r)
        if (take({all.begin(), all.begin() + static_cast<int64_t>(k) + 1}, {all[k]->out(r)})) return true;
    return false;
  }

  // Leaves runs of operators out, long ones first.
  bool fewer_operators() {
    Nodes all = operators();
    for (size_t length = all.size() / 2; length > 0; length /= 2)
      for (size_t begin = 0; begin + length <= all.size(); begin += length) {
        Nodes kept(all.begin(), all.begin() + static_cast<int64_t>(begin));
        kept.insert(kept.end(), all.begin() + static_cast<int64_t>(begin + length), all.end());
        if (take(kept, outputs())) return true;
      }
    return false;
  }

  const GraphCheck& check_;
  Tensors inputs_;
  std::unique_ptr<ir::Graph> graph_;
  Failure failure_;
  std::map<std::pair<const ir::Node*, uint32_t>, Tensor> values_;
};

}  // namespace

std::string check_graph(const std::string& text, const GraphCheck& check) {
  NoGradGuard guard;
  auto graph = sized(text, check.symbols);
  return failure_of(*graph, check, inputs_of(*graph, check)).text;
}

Minified minify(const std::string& text, const GraphCheck& check) {
  NoGradGuard guard;
  auto graph = sized(text, check.symbols);
  Bisection bisection(*graph, check, inputs_of(*graph, check));
  bisection.run();
  Minified out{ir::print(bisection.graph()), bisection.failure().text, bisection.inputs(), 0, check};
  for (const ir::Node* n : live_nodes(bisection.graph())) out.operators += n->op != ir::input_op();
  out.check.inputs.clear();
  out.check.symbols.clear();
  // Drawn inputs make a program that needs no file.
  if (Failure drawn = failure_of(bisection.graph(), out.check, inputs_of(bisection.graph(), out.check));
      drawn && drawn.error == bisection.failure().error) {
    out.failure = drawn.text;
    out.inputs.clear();
  }
  return out;
}

namespace {

// The elements between a tensor's first and last one, as C++.
std::string as_code(const Tensor& t) {
  const TensorImpl& impl = *impl_of(t);
  BRASA_CHECK(!is_complex(impl.dtype),
              "minify: the failure depends on the values of a complex input, which no program gets yet");
  Tensor all = t.as_strided({extent_of(impl.sizes, impl.strides)}, {1}).cpu().to(kFloat64).contiguous();
  std::string out = "brasa::tensor(std::vector<double>{";
  for (int64_t i = 0; i < all.numel(); ++i) {
    char text[32];
    double v = all.data_ptr<double>()[i];
    if (std::isfinite(v))
      std::snprintf(text, sizeof text, "%.17g", v);
    else
      std::snprintf(text, sizeof text, std::isnan(v) ? "NAN" : v > 0 ? "INFINITY" : "-INFINITY");
    out += str(i ? ", " : "", text);
  }
  auto list = [](const Sizes& sizes) {
    std::string items;
    for (int64_t s : sizes) items += str(items.empty() ? "" : ", ", s);
    return "{" + items + "}";
  };
  return str(out, "}).to(static_cast<brasa::DType>(", static_cast<int>(impl.dtype), ")).as_strided(", list(impl.sizes),
             ", ", list(impl.strides), ")");
}

}  // namespace

std::string reproducer(const Minified& m) {
  std::string out =
      str("// ", m.failure.substr(0, m.failure.find('\n')),
          "\n#include <brasa/brasa.h>\n#include <brasa/minify.h>\n\n#include <cmath>\n#include <iostream>\n\n"
          "int main() {\n  brasa::GraphCheck check;\n  check.backend = \"",
          m.check.backend, "\";\n  check.seed = ", m.check.seed, ";\n  check.tolerance = ", m.check.tolerance, ";\n");
  for (const Tensor& t : m.inputs) out += "  check.inputs.push_back(" + as_code(t) + ");\n";
  return out + "  std::string failure = brasa::check_graph(R\"graph(" + m.graph +
         ")graph\", check);\n  std::cout << (failure.empty() ? \"it does not fail\" : failure) << \"\\n\";\n"
         "  return failure.empty() ? 0 : 1;\n}\n";
}

}  // namespace brasa
