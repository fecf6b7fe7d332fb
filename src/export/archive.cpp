#include "export/archive.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include <brasa/brasa.h>
#include <brasa/pickle.h>

#include "export/archive_primitives.h"
#include "import/archive.h"
#include "import/types.h"
#include "ops/decompose.h"
#include "support/error.h"

// The layout is that of PyTorch 2.15: a JSON program of schema 8.20 (torch/_export/serde/schema.py).
namespace brasa::exporting {
namespace {

constexpr auto named = ArchiveNodes::named;
constexpr auto number_of = ArchiveNodes::number;

// Rows in its namespace that PyTorch has no operator for.
constexpr std::string_view kOwn[] = {"aten::_adam_scales",      "aten::_adam_second_moment", "aten::_adam_update",
                                     "aten::_attention_scores", "aten::softmin.int",         "aten::tanhshrink"};

// PyTorch's operators, and writes through those views that it has an operator for.
bool in_pytorch(const ops::Row& row) {
  std::string_view name = row.schema.name;
  if (name.starts_with("put::aten::")) {
    std::string_view view = name.substr(11, name.find_first_of("./") - 11);
    return view == "slice" || view == "select" || view == "diagonal" || view == "as_strided";
  }
  if (std::find(std::begin(kOwn), std::end(kOwn), name) != std::end(kOwn)) return false;
  return name.starts_with("aten::") || name.starts_with("sized::aten::arange");
}

class Writer {
 public:
  Writer(const Captured& captured, const std::vector<InputType>& inputs, const std::vector<NamedTensor>& named)
      : captured_(captured),
        facts_(captured.facts),
        parts_(ops::decompose(*captured.graph, facts_, in_pytorch)),
        graph_(*parts_),
        types_(inputs),
        named_(named),
        sizes_(captured, inputs),
        nodes_(sizes_, user_inputs_) {}

  void write(const std::string& path) {
    check_parts();
    for (size_t i = 0; i < types_.size(); ++i) user_inputs_.push_back(nodes_.fresh_name(types_[i].name));
    for (const ir::Node* n : ir::live_nodes(graph_))
      n->op == ir::input_op() ? add_input({const_cast<ir::Node*>(n), 0}) : add_node(*n);
    add_outputs();
    add_user_inputs();
    import::write_archive(path, program().dump(), weights_, constants_, sample_inputs());
  }

 private:
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
  bool is_number(ir::Value v) const { return ir::is_input(v) && !source_of(v).number.empty(); }

  void add_input(ir::Value v) {
    const Captured::Source& s = source_of(v);
    if (s.input >= 0) {
      names_[v] = user_inputs_[s.input];
      nodes_.define(names_[v], ir::type_of(v));
      return;
    }
    if (s.unknown || is_number(v)) return;  // where it is used
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
    names_[v] = name;
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

  // ---- Arguments.
  // A number of the program as it is in Python.
  Json literal(ir::Value v) {
    const std::string& bytes = source_of(v).number;
    auto read = [&](auto zero) {
      BRASA_CHECK(bytes.size() == sizeof zero, "export: a number of another size");
      std::memcpy(&zero, bytes.data(), sizeof zero);
      return zero;
    };
    switch (ir::type_of(v).dtype) {
      case DType::Bool: return {{"as_bool", read(uint8_t{}) != 0}};
      case DType::Int64: return {{"as_int", read(int64_t{})}};
      case DType::Float64: return {{"as_float", number_of(read(double{}))}};
      case DType::Complex128: {
        auto c = read(std::complex<double>{});
        return {{"as_complex", {{"real", number_of(c.real())}, {"imag", number_of(c.imag())}}}};
      }
      default: fail(str("export: a number of dtype ", name(ir::type_of(v).dtype), " has no form in an archive"));
    }
  }
  std::string name_of(ir::Value v) {
    if (!names_.contains(v)) {
      BRASA_CHECK(ir::is_input(v) && !source_of(v).unknown,
                  "export: the function draws random numbers, for which an archive has no state");
      const std::string& bytes = source_of(v).number;
      Tensor t = empty({}, TensorOptions(ir::type_of(v).dtype).device(Device(kCPU)));
      std::memcpy(t.data_ptr(), bytes.data(), bytes.size());
      std::string target = str("constant", weights_.size() + constants_.size()),
                  name = nodes_.fresh_name("c_" + target);
      graph_inputs_.push_back(named("as_tensor", name));
      input_specs_.push_back({{"tensor_constant", {{"arg", {{"name", name}}}, {"tensor_constant_name", target}}}});
      nodes_.define(name, ir::type_of(v));
      constants_.push_back({target, t, false});
      names_[v] = name;
    }
    return names_[v];
  }

  Json tensors(const std::vector<ir::Value>& list, bool optional) {
    Json out = Json::array();
    for (ir::Value v : list) {
      if (!optional)
        out.push_back({{"name", name_of(v)}});
      else
        out.push_back(v ? named("as_tensor", name_of(v)) : Json{{"as_none", true}});
    }
    return {{optional ? "as_optional_tensors" : "as_tensors", out}};
  }

  Json argument(const ir::Arg& a, const ir::Param& p) {
    if (a.is_none()) return {{"as_none", true}};
    if (auto* v = a.get_if<ir::Value>())
      return is_number(*v) && ir::type_of(*v).weak ? literal(*v) : named("as_tensor", name_of(*v));
    if (auto* v = a.get_if<std::vector<ir::Value>>()) return tensors(*v, p.optional_items);
    if (auto* v = a.get_if<ir::Expr>()) {
      if (p.type == ir::ParamType::Float && sizes_(*v).is_constant())
        return {{"as_float", static_cast<double>(sizes_(*v).constant())}};
      return nodes_.integer(*v);
    }
    if (auto* v = a.get_if<std::vector<ir::Expr>>()) return nodes_.integers(*v);
    if (auto* v = a.get_if<double>()) return {{"as_float", number_of(*v)}};
    if (auto* v = a.get_if<bool>()) return {{"as_bool", *v}};
    if (auto* v = a.get_if<std::complex<double>>())
      return {{"as_complex", {{"real", number_of(v->real())}, {"imag", number_of(v->imag())}}}};
    if (auto* v = a.get_if<std::string>()) return {{"as_string", *v}};
    if (auto* v = a.get_if<DType>()) return {{"as_scalar_type", import::archive_number_of(*v)}};
    if (auto* v = a.get_if<std::vector<bool>>()) return {{"as_bools", *v}};
    if (auto* v = a.get_if<std::vector<double>>()) {
      Json list = Json::array();
      for (double d : *v) list.push_back(number_of(d));
      return {{"as_floats", list}};
    }
    fail(str("export: argument '", p.name, "' has no form in an archive"));
  }

  // ---- Nodes.
  static bool says_nothing(const ir::Arg& a, const ir::Param& p) {
    using Type = ir::ParamType;
    if (p.type == Type::Layout || p.type == Type::Device || p.type == Type::MemoryFormat || p.type == Type::Generator)
      return true;
    return p.keyword_only && (a.is_none() || (p.default_value && *p.default_value == a));
  }

  // How PyTorch spells a node: its operator, by place the parameter and the argument that it has of the node's, and which of the operator's
  // results are the node's.
  struct Spelling {
    std::string target;
    std::vector<std::pair<std::string, int>> arguments;
    std::vector<int> results;
    int all_results;
    std::map<int, Json> given = {};  // what stands for an argument
  };
  Spelling spelled(const ir::Node& n) {
    const ir::Schema& schema = n.op->schema;
    Spelling out{{}, {}, {}, static_cast<int>(n.types.size())};
    for (int i = 0; i < static_cast<int>(n.args.size()); ++i) out.arguments.emplace_back(schema.params[i].name, i);
    for (int k = 0; k < out.all_results; ++k) out.results.push_back(k);
    std::string name = schema.name;
    auto without = [&](std::string_view prefix) {
      bool has = name.starts_with(prefix);
      if (has) name.erase(0, prefix.size());
      return has;
    };
    if (without("put::aten::")) {  // (self, where …, value)
      std::string view = name.substr(0, name.find_first_of("./"));
      std::rotate(out.arguments.begin() + 1, out.arguments.end() - 1, out.arguments.end());
      out.arguments[1].first = "src";
      out.target = view + "_scatter.default";
      return out;
    }
    if (without("sized::")) {  // (…, count)
      out.arguments.pop_back();
      if (auto* count = n.args.back().get_if<std::vector<ir::Expr>>(); !count->at(0).is_constant())
        out.given[schema.index_of("end")] = end_of(n, name, sizes_(count->at(0)));
    }
    BRASA_CHECK(without("aten::") && n.args.size() <= schema.params.size(), "export: ", schema.name,
                " is no operator that PyTorch has");
    out.target = name.find('.') == name.npos ? name + ".default" : name;
    // Values of a graph have no memory, so that a view may be of what PyTorch lays out in another order.
    if (name == "view" || name == "_unsafe_view") {
      out.target = "reshape.default";
      out.arguments[1].first = "shape";
    }
    // With the statistics that it changes as results.
    if (name == "batch_norm" && n.types.size() == 3) {
      out.target = "_native_batch_norm_legit_functional.default";
      out.arguments.pop_back();
      out.results = {0, 3, 4};
      out.all_results = 5;
    } else {
      size_t results = schema.returns.size();
      BRASA_CHECK(results == n.types.size() || (results == 1 && schema.returns[0].list), "export: PyTorch's ", name,
                  " does not give what it changes");
    }
    return out;
  }

  // Of a range of so many numbers.
  Json end_of(const ir::Node& n, const std::string& name, ir::Expr count) {
    BRASA_CHECK(name.starts_with("aten::arange"), "export: ", name,
                " of a length that varies has no form in an archive");
    auto whole = [&](std::string_view parameter, int64_t otherwise) {
      int i = n.op->schema.index_of(parameter);
      Json j = i < 0 ? Json{{"as_int", otherwise}} : argument(n.args[i], n.op->schema.params[i]);
      BRASA_CHECK(j.contains("as_int"), "export: a range of a length that varies begins and goes on by whole numbers");
      return j["as_int"].get<int64_t>();
    };
    return nodes_.integer(whole("start", 0) + whole("step", 1) * count);
  }

  void add_node(const ir::Node& n) {
    auto result = [&](size_t k) { return ir::Value{const_cast<ir::Node*>(&n), static_cast<uint32_t>(k)}; };
    const ir::Schema& schema = n.op->schema;
    if (schema.name.starts_with("prim::")) {
      std::vector<std::string> names = write_primitive(nodes_, n, [&](ir::Value v) { return name_of(v); });
      for (size_t k = 0; k < names.size(); ++k) names_[result(k)] = names[k];
      return;
    }
    Spelling as = spelled(n);
    std::vector<ArchiveNodes::Argument> inputs;
    for (const auto& [name, i] : as.arguments) {
      const ir::Param& p = schema.params[i];
      if (says_nothing(n.args[i], p)) continue;
      auto given = as.given.find(i);
      inputs.push_back({name, given != as.given.end() ? given->second : argument(n.args[i], p), p.keyword_only});
    }
    std::vector<ir::Type> types(as.all_results, n.types.back());
    for (size_t k = 0; k < as.results.size(); ++k) types[as.results[k]] = n.types[k];
    std::vector<std::string> names =
        nodes_.add(as.target, inputs, types, schema.returns.size() == 1 && schema.returns[0].list);
    for (size_t k = 0; k < as.results.size(); ++k) names_[result(k)] = names[as.results[k]];
  }

  // ---- Outputs: first what is changed.
  void add_outputs() {
    std::vector<ir::Value> fresh;
    for (const ir::Output& o : graph_.outputs()) {
      if (!o.check.empty()) continue;
      if (o.into < 0) {
        fresh.push_back(o.value);
        continue;
      }
      ir::Value into = graph_.inputs()[o.into].value;
      std::string name = name_of(o.value);
      const Captured::Source& s = captured_.sources[o.into];
      if (s.input < 0 && !names_.contains(into)) held(into);
      std::string kind = s.input >= 0 ? "user_input" : targets_.at(into).first;
      std::string target = s.input >= 0 ? user_inputs_[s.input] : targets_.at(into).second;
      graph_outputs_.push_back(named("as_tensor", name));
      output_specs_.push_back({{kind + "_mutation", {{"arg", {{"name", name}}}, {kind + "_name", target}}}});
    }
    for (int o : captured_.outputs) {
      Json out = named("as_tensor", name_of(fresh.at(o)));
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
    Json graph{{"inputs", graph_inputs_},
               {"outputs", graph_outputs_},
               {"nodes", nodes_.nodes()},
               {"tensor_values", nodes_.tensor_values()},
               {"sym_int_values", nodes_.size_values()},
               {"sym_bool_values", Json::object()},
               {"is_single_tensor_return", false},
               {"custom_obj_values", Json::object()},
               {"sym_float_values", Json::object()}};
    Json ranges = Json::object();
    for (const auto& [symbol, range] : sizes_.ranges())
      ranges[symbol] = {{"min_val", range.first}, {"max_val", range.second}};
    return {{"graph_module",
             {{"graph", graph},
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
  ArchiveNodes nodes_;
  std::unordered_map<ir::Value, std::string> names_;
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
