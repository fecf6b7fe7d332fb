#include "export/archive.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include <brasa/brasa.h>
#include <brasa/pickle.h>

#include "export/archive_graph.h"
#include "import/archive.h"
#include "ir/copy.h"
#include "ops/decompose.h"
#include "support/error.h"

// The layout is that of PyTorch 2.15: a JSON program of schema 8.20 (torch/_export/serde/schema.py).
namespace brasa::exporting {
namespace {

constexpr auto named = ArchiveNodes::named;

class Writer {
 public:
  Writer(const Captured& captured, const std::vector<InputType>& inputs, const std::vector<NamedTensor>& named)
      : captured_(captured),
        facts_(captured.facts),
        parts_(ops::decompose(*with_counts(captured), facts_, in_pytorch)),
        graph_(*parts_),
        types_(inputs),
        named_(named),
        sizes_(captured, inputs),
        to_(sizes_, user_inputs_, facts_),
        nodes_(to_.nodes) {}

  void write(const std::string& path) {
    for (size_t i = 0; i < types_.size(); ++i) user_inputs_.push_back(nodes_.fresh_name(types_[i].name));
    for (const ir::Node* n : ir::live_nodes(graph_)) {
      n->op == ir::input_op() ? add_input({const_cast<ir::Node*>(n), 0}) : to_.add(*n);
      read_counts(*n);
    }
    for (const auto& r : captured_.requirements) nodes_.require(r.first, r.second);
    add_outputs();
    add_user_inputs();
    check_parts();
    import::write_archive(path, program().dump(), weights_, constants_, sample_inputs());
  }

 private:
  // The graph with the values that integers are read of behind its outputs, and what these are made of before all else.
  static std::unique_ptr<ir::Graph> with_counts(const Captured& captured) {
    auto out = std::make_unique<ir::Graph>(captured.graph->level());
    ir::ValueMap map;
    ir::copy_inputs(*out, *captured.graph, map);
    for (const CountedValue& c : captured.counted) ir::copy_value(*out, c.value, map);
    ir::copy_live_nodes(*out, *captured.graph, map);
    for (const ir::Output& o : captured.graph->outputs()) out->outputs().push_back({map(o.value), o.into, o.check});
    for (const CountedValue& c : captured.counted) out->add_output(map(c.value));
    return out;
  }

  // Sizes that values are, behind the node that gives these.
  void read_counts(const ir::Node& n) {
    size_t first = captured_.graph->outputs().size();
    for (size_t i = 0; i < captured_.counted.size(); ++i) {
      ir::Value from = graph_.outputs()[first + i].value;
      const CountedValue& counted = captured_.counted[i];
      const Captured::Read& read = captured_.counts[counted.number];
      ir::Expr symbol = ir::type_of(captured_.graph->inputs()[static_cast<size_t>(counted.input)].value).shape[0];
      if (from.node != &n || sizes_.is_known(symbol)) continue;
      nodes_.read_size(symbol, to_.name_of(from));
      std::string message = str(read.reader, " is outside of its range");
      nodes_.require(symbol - read.least, message);
      if (!read.greatest.is(INT64_MAX)) nodes_.require(read.greatest - symbol, message);
    }
  }

  // What primitives take for granted of sizes has to hold for all that the archive takes.
  void check_parts() const {
    const std::vector<ir::Fact>& known = captured_.facts.facts();
    for (const ir::Fact& f : facts_.facts())
      BRASA_CHECK(
          !f.equal || std::find(known.begin(), known.end(), f) != known.end() || sizes_(f.left) == sizes_(f.right),
          "export: what PyTorch has no operator for holds only where ", f.left, " is ", f.right);
  }

  // ---- Inputs.
  const Captured::Source& source_of(ir::Value v) const { return captured_.sources[graph_.input_index(v)]; }

  // A number of the program as it is in Python.
  static Json literal(DType dtype, const std::string& bytes) {
    Tensor t = empty({}, TensorOptions(dtype).device(Device(kCPU)));
    BRASA_CHECK(bytes.size() == static_cast<size_t>(t.element_size()), "export: a number of another size");
    std::memcpy(t.data_ptr(), bytes.data(), bytes.size());
    Scalar s = t.item();
    if (s.isBoolean()) return {{"as_bool", s.toBool()}};
    if (s.isIntegral(false)) return {{"as_int", s.toLong()}};
    if (!s.isComplex()) return {{"as_float", ArchiveNodes::number(s.toDouble())}};
    return ArchiveNodes::complex_number(s.toComplexDouble());
  }

  void add_input(ir::Value v) {
    const Captured::Source& s = source_of(v);
    if (s.input >= 0) {
      to_.set_name(v, user_inputs_[s.input]);
      nodes_.define(user_inputs_[s.input], ir::type_of(v));
      return;
    }
    if (s.unknown) return;  // an error where it is used
    if (!s.number.empty())
      to_.set_number(v, literal(ir::type_of(v).dtype, s.number));
    else
      held(v);
  }

  static bool same(const Tensor& a, const Tensor& b) {
    return a.data_ptr() == b.data_ptr() && a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
           a.strides() == b.strides();
  }

  // A tensor that the archive holds.
  void held(ir::Value v) {
    const Captured::Source& s = source_of(v);
    const ir::Type& type = ir::type_of(v);
    Tensor t = s.tensor;
    if (!t.defined()) {  // Only its sizes are read.
      std::vector<int64_t> sizes;
      for (ir::Expr e : type.shape) sizes.push_back(sizes_.hint(sizes_(e)));
      t = zeros(sizes, TensorOptions(type.dtype).device(Device(kCPU)));
    }
    const NamedTensor* known = nullptr;
    for (const NamedTensor& n : named_)
      if (!known && t.numel() > 0 && same(n.tensor, t)) known = &n;
    bool parameter = known && known->parameter, buffer = !parameter && (known || s.written);
    std::string target = known ? known->name : str(buffer ? "state" : "constant", weights_.size() + constants_.size());
    std::string name = nodes_.fresh_name((parameter ? "p_" : buffer ? "b_" : "c_") + target);
    const char* kind = parameter ? "parameter" : buffer ? "buffer" : "tensor_constant";
    Json spec{{"arg", {{"name", name}}}, {str(kind, "_name"), target}};
    if (buffer) spec["persistent"] = true;
    graph_inputs_.push_back(named("as_tensor", name));
    input_specs_.push_back({{kind, spec}});
    nodes_.define(name, type, parameter && t.requires_grad());
    to_.set_name(v, name);
    targets_[v] = {parameter ? "parameter" : "buffer", target};
    (parameter || buffer ? weights_ : constants_).push_back({target, t, parameter});
  }

  void add_user_inputs() {
    for (size_t i = 0; i < types_.size(); ++i) {
      if (!nodes_.defined(user_inputs_[i]))  // which the function does not read
        nodes_.define(user_inputs_[i], types_[i].dtype, sizes_.of_input(i));
      graph_inputs_.push_back(named("as_tensor", user_inputs_[i]));
      input_specs_.push_back({{"user_input", {{"arg", named("as_tensor", user_inputs_[i])}}}});
    }
  }

  // ---- Outputs: first what is changed.
  void add_outputs() {
    std::vector<ir::Value> fresh;
    for (const ir::Output& o : std::span(graph_.outputs()).first(captured_.graph->outputs().size())) {
      if (!o.check.empty()) continue;
      if (o.into < 0) {
        fresh.push_back(o.value);
        continue;
      }
      ir::Value into = graph_.inputs()[o.into].value;
      std::string name = to_.name_of(o.value);
      const Captured::Source& s = captured_.sources[o.into];
      if (s.input < 0 && !to_.has_name(into)) held(into);
      std::string kind = s.input >= 0 ? "user_input" : targets_.at(into).first;
      std::string target = s.input >= 0 ? user_inputs_[s.input] : targets_.at(into).second;
      graph_outputs_.push_back(named("as_tensor", name));
      output_specs_.push_back({{kind + "_mutation", {{"arg", {{"name", name}}}, {kind + "_name", target}}}});
    }
    for (int o : captured_.outputs) {
      Json out = named("as_tensor", to_.name_of(fresh.at(o)));
      graph_outputs_.push_back(out);
      output_specs_.push_back({{"user_output", {{"arg", out}}}});
    }
  }

  // ---- The file.
  static std::string tree(size_t leaves, bool one) {
    Json leaf{{"type", nullptr}, {"context", nullptr}, {"children_spec", Json::array()}};
    if (one) return Json::array({1, leaf}).dump();
    Json tuple{{"type", "builtins.tuple"}, {"context", "null"}, {"children_spec", Json(leaves, leaf)}};
    return Json::array({1, tuple}).dump();
  }
  Json program() {
    Json leaf{{"type", nullptr}, {"context", nullptr}, {"children_spec", Json::array()}};
    Json arguments{{"type", "builtins.tuple"}, {"context", "null"}, {"children_spec", Json(types_.size(), leaf)}};
    Json keywords{{"type", "builtins.dict"}, {"context", "[]"}, {"children_spec", Json::array()}};
    Json both{{"type", "builtins.tuple"}, {"context", "null"}, {"children_spec", {arguments, keywords}}};
    size_t results = captured_.outputs.size();
    Json call{{"fqn", ""},
              {"signature",
               {{"inputs", Json::array()},
                {"outputs", Json::array()},
                {"in_spec", Json::array({1, both}).dump()},
                {"out_spec", tree(results, results == 1)},
                {"forward_arg_names", user_inputs_}}}};
    Json ranges = Json::object();
    for (const auto& [symbol, range] : sizes_.ranges())
      ranges[symbol] = {{"min_val", range.least}, {"max_val", range.greatest ? Json(*range.greatest) : Json()}};
    return {{"graph_module",
             {{"graph", nodes_.graph(graph_inputs_, graph_outputs_)},
              {"signature", {{"input_specs", input_specs_}, {"output_specs", output_specs_}}},
              {"module_call_graph", Json::array({call})},
              {"metadata", Json::object()},
              {"treespec_namedtuple_fields", Json::object()}}},
            {"opset_version", {{"aten", 10}}},
            {"range_constraints", ranges},
            {"schema_version", {{"major", 8}, {"minor", 20}}},
            {"verifiers", Json::array({"ATEN"})},
            {"torch_version", "2.15.0"},
            {"guards_code", Json::array()}};
  }
  // What the export was called with: arguments and keywords. Their values do not matter.
  std::string sample_inputs() const {
    std::vector<pickle::Value> arguments;
    for (size_t i = 0; i < types_.size(); ++i)
      arguments.emplace_back(zeros(captured_.sizes[i], TensorOptions(types_[i].dtype).device(Device(kCPU))));
    return pickle::dump(pickle::Value::tuple({pickle::Value::tuple(std::move(arguments)), pickle::Value::dict({})}));
  }

  const Captured& captured_;
  ir::Facts facts_;
  std::unique_ptr<ir::Graph> parts_;  // what PyTorch has no operator for as primitives
  const ir::Graph& graph_;
  const std::vector<InputType>& types_;
  const std::vector<NamedTensor>& named_;
  ArchiveSizes sizes_;
  std::vector<std::string> user_inputs_;
  ArchiveGraph to_;
  ArchiveNodes& nodes_;
  std::unordered_map<ir::Value, std::pair<std::string, std::string>> targets_;  // of what the archive holds: kind, name
  std::vector<import::Record> weights_, constants_;
  Json graph_inputs_ = Json::array(), input_specs_ = Json::array(), graph_outputs_ = Json::array(),
       output_specs_ = Json::array();
};

}  // namespace

void write_archive(const std::string& path, const Captured& captured, const std::vector<InputType>& inputs,
                   const std::vector<NamedTensor>& named) {
  Writer(captured, inputs, named).write(path);
}

}  // namespace brasa::exporting
