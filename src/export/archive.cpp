#include "export/archive.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include <brasa/brasa.h>
#include <brasa/pickle.h>

#include "export/archive_sizes.h"
#include "import/archive.h"
#include "import/types.h"
#include "support/error.h"

// The layout is that of PyTorch 2.15: a JSON program of schema 8.20 (torch/_export/serde/schema.py).
namespace brasa::exporting {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kPositional = 1, kKeyword = 2;

Json number_of(double v) {
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v > 0 ? "Infinity" : "-Infinity";
  return v;
}
Json named(const char* kind, const std::string& name) { return {{kind, {{"name", name}}}}; }

class Writer {
 public:
  Writer(const Captured& captured, const std::vector<InputType>& inputs, const std::vector<NamedTensor>& named)
      : captured_(captured), graph_(*captured.graph), types_(inputs), named_(named), sizes_(captured, inputs) {}

  void write(const std::string& path) {
    for (size_t i = 0; i < types_.size(); ++i) user_inputs_.push_back(fresh_name(types_[i].name));
    for (const ir::Node* n : ir::live_nodes(graph_))
      n->op == ir::input_op() ? add_input({const_cast<ir::Node*>(n), 0}) : add_node(*n);
    add_outputs();
    add_user_inputs();
    import::write_archive(path, program().dump(), weights_, constants_, sample_inputs());
  }

 private:
  // ---- Names and types.
  std::string fresh_name(std::string name) {
    for (char& c : name)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "v_" + name;
    std::string out = name;
    for (int k = 1; !taken_.insert(out).second; ++k) out = str(name, "_", k);
    return out;
  }
  Json size_json(ir::Expr e) {
    if (e.is_constant()) return {{"as_int", e.constant()}};
    return {{"as_expr", {{"expr_str", sizes_.text(e)}, {"hint", {{"as_int", sizes_.hint(e)}}}}}};
  }
  Json meta(DType dtype, const ir::Shape& shape, bool requires_grad = false) {
    Json sizes = Json::array(), strides = Json::array();
    for (ir::Expr e : shape) sizes.push_back(size_json(e));
    for (ir::Expr e : ir::contiguous_strides(shape)) strides.push_back(size_json(e));
    return {
        {"dtype", import::archive_number_of(dtype)},       {"sizes", sizes},     {"requires_grad", requires_grad},
        {"device", {{"type", "cpu"}, {"index", nullptr}}}, {"strides", strides}, {"storage_offset", {{"as_int", 0}}},
        {"layout", import::archive_number_of(kStrided)}};
  }
  void define(const std::string& name, const ir::Type& type, bool requires_grad = false) {
    ir::Shape shape;
    for (ir::Expr e : type.shape) shape.push_back(sizes_(e));
    tensor_values_[name] = meta(type.dtype, shape, requires_grad);
  }

  // ---- Inputs.
  const Captured::Source& source_of(ir::Value v) const { return captured_.sources[graph_.input_index(v)]; }
  bool is_number(ir::Value v) const { return ir::is_input(v) && !source_of(v).number.empty(); }

  void add_input(ir::Value v) {
    const Captured::Source& s = source_of(v);
    if (s.input >= 0) {
      names_[v] = user_inputs_[s.input];
      define(names_[v], ir::type_of(v));
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
    std::string name = fresh_name((parameter ? "p_" : buffer ? "b_" : "c_") + target);
    const char* kind = parameter ? "parameter" : buffer ? "buffer" : "tensor_constant";
    Json spec{{"arg", {{"name", name}}}, {str(kind, "_name"), target}};
    if (buffer) spec["persistent"] = true;
    graph_inputs_.push_back(exporting::named("as_tensor", name));
    input_specs_.push_back({{kind, spec}});
    define(name, type, parameter && t.requires_grad());
    names_[v] = name;
    targets_[v] = {parameter ? "parameter" : "buffer", target};
    (parameter || buffer ? weights_ : constants_).push_back({target, t, parameter});
  }

  void add_user_inputs() {
    for (size_t i = 0; i < types_.size(); ++i) {
      if (!tensor_values_.contains(user_inputs_[i]))  // which the function does not read
        tensor_values_[user_inputs_[i]] = meta(types_[i].dtype, sizes_.of_input(i));
      graph_inputs_.push_back(exporting::named("as_tensor", user_inputs_[i]));
      input_specs_.push_back({{"user_input", {{"arg", exporting::named("as_tensor", user_inputs_[i])}}}});
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
      std::string target = str("constant", weights_.size() + constants_.size()), name = fresh_name("c_" + target);
      graph_inputs_.push_back(exporting::named("as_tensor", name));
      input_specs_.push_back({{"tensor_constant", {{"arg", {{"name", name}}}, {"tensor_constant_name", target}}}});
      define(name, ir::type_of(v));
      constants_.push_back({target, t, false});
      names_[v] = name;
    }
    return names_[v];
  }

  // The name of a size that is no constant: nodes compute it.
  std::string size_name(ir::Expr e) {
    if (auto at = size_names_.find(e); at != size_names_.end()) return at->second;
    std::string name;
    auto node = [&](const std::string& target, const char* base, Json a, Json b) {
      bool of_tensor = base == std::string_view("sym_size_int");
      name = fresh_name(base);
      nodes_.push_back({{"target", target},
                        {"inputs",
                         {{{"name", of_tensor ? "self" : "a"}, {"arg", a}, {"kind", kPositional}},
                          {{"name", of_tensor ? "dim" : "b"}, {"arg", b}, {"kind", kPositional}}}},
                        {"outputs", {{{"as_sym_int", {{"as_name", name}}}}}},
                        {"metadata", Json::object()},
                        {"is_hop_single_tensor_return", nullptr},
                        {"name", name}});
    };
    auto binary = [&](const std::string& target, const char* base, ir::Expr a, ir::Expr b) {
      Json left = integer(a), right = integer(b);
      node(target, base, left, right);
    };
    auto fold = [&](const std::string& target, const char* base, auto combine, ir::Expr start) {
      ir::Expr all = start;
      for (size_t i = 0; i < e->args.size(); ++i) {
        ir::Expr next = combine(all, e->args[i]);
        if (next == e) return binary(target, base, all, e->args[i]);
        all = next;
      }
    };
    switch (e->kind) {
      case ir::ExprKind::Size: {
        auto [input, dim] = sizes_.place_of(e);
        node("torch.ops.aten.sym_size.int", "sym_size_int", exporting::named("as_tensor", user_inputs_[input]),
             {{"as_int", dim}});
        break;
      }
      case ir::ExprKind::Add:
        fold("_operator.add", "add", [](ir::Expr a, ir::Expr b) { return a + b; }, e->value);
        break;
      case ir::ExprKind::Mul:
        fold("_operator.mul", "mul", [](ir::Expr a, ir::Expr b) { return a * b; }, e->value);
        break;
      case ir::ExprKind::FloorDiv: binary("_operator.floordiv", "floordiv", e->args[0], e->args[1]); break;
      case ir::ExprKind::Mod: binary("_operator.mod", "mod", e->args[0], e->args[1]); break;
      case ir::ExprKind::Min: binary("torch.sym_min", "sym_min", e->args[0], e->args[1]); break;
      case ir::ExprKind::Max: binary("torch.sym_max", "sym_max", e->args[0], e->args[1]); break;
      default: break;
    }
    BRASA_CHECK(!name.empty(), "export: a size has no form in an archive");
    size_values_[name] = size_json(e);
    return size_names_[e] = name;
  }
  Json integer(ir::Expr e) {
    if (e.is_constant()) return {{"as_int", e.constant()}};
    return {{"as_sym_int", {{"as_name", size_name(e)}}}};
  }

  Json integers(const std::vector<ir::Expr>& list) {
    bool constant = true;
    Json plain = Json::array(), symbolic = Json::array();
    for (ir::Expr raw : list) {
      ir::Expr e = sizes_(raw);
      constant = constant && e.is_constant();
      if (e.is_constant()) plain.push_back(e.constant());
      symbolic.push_back(e.is_constant() ? Json{{"as_int", e.constant()}} : Json{{"as_name", size_name(e)}});
    }
    return constant ? Json{{"as_ints", plain}} : Json{{"as_sym_ints", symbolic}};
  }
  Json tensors(const std::vector<ir::Value>& list, bool optional) {
    Json out = Json::array();
    for (ir::Value v : list) {
      if (!optional)
        out.push_back({{"name", name_of(v)}});
      else
        out.push_back(v ? exporting::named("as_tensor", name_of(v)) : Json{{"as_none", true}});
    }
    return {{optional ? "as_optional_tensors" : "as_tensors", out}};
  }

  Json argument(const ir::Arg& a, const ir::Param& p) {
    if (a.is_none()) return {{"as_none", true}};
    if (auto* v = a.get_if<ir::Value>())
      return is_number(*v) && ir::type_of(*v).weak ? literal(*v) : exporting::named("as_tensor", name_of(*v));
    if (auto* v = a.get_if<std::vector<ir::Value>>()) return tensors(*v, p.optional_items);
    if (auto* v = a.get_if<ir::Expr>()) {
      if (p.type == ir::ParamType::Float && sizes_(*v).is_constant())
        return {{"as_float", static_cast<double>(sizes_(*v).constant())}};
      return integer(sizes_(*v));
    }
    if (auto* v = a.get_if<std::vector<ir::Expr>>()) return integers(*v);
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
      bool known = view == "slice" || view == "select" || view == "diagonal" || view == "as_strided";
      BRASA_CHECK(known, "export: PyTorch has no operator that writes through ", view);
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
    return integer(whole("start", 0) + whole("step", 1) * count);
  }

  void add_node(const ir::Node& n) {
    const ir::Schema& schema = n.op->schema;
    Spelling as = spelled(n);
    Json inputs = Json::array(), outputs = Json::array(), list = Json::array();
    for (const auto& [name, i] : as.arguments) {
      const ir::Param& p = schema.params[i];
      if (says_nothing(n.args[i], p)) continue;
      auto given = as.given.find(i);
      inputs.push_back({{"name", name},
                        {"arg", given != as.given.end() ? given->second : argument(n.args[i], p)},
                        {"kind", p.keyword_only ? kKeyword : kPositional}});
    }
    std::string base = fresh_name(as.target.substr(0, as.target.find('.')));
    for (int k = 0; k < as.all_results; ++k) {
      std::string name = as.all_results == 1 ? base : fresh_name("getitem");
      auto at = std::find(as.results.begin(), as.results.end(), k);
      bool wanted = at != as.results.end();
      auto result = static_cast<uint32_t>(at - as.results.begin());
      if (wanted) names_[{const_cast<ir::Node*>(&n), result}] = name;
      define(name, n.types[wanted ? result : 1]);
      list.push_back({{"name", name}});
      outputs.push_back(exporting::named("as_tensor", name));
    }
    if (schema.returns.size() == 1 && schema.returns[0].list) outputs = Json::array({{{"as_tensors", list}}});
    nodes_.push_back({{"target", "torch.ops.aten." + as.target},
                      {"inputs", inputs},
                      {"outputs", outputs},
                      {"metadata", Json::object()},
                      {"is_hop_single_tensor_return", nullptr},
                      {"name", base}});
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
      graph_outputs_.push_back(exporting::named("as_tensor", name));
      output_specs_.push_back({{kind + "_mutation", {{"arg", {{"name", name}}}, {kind + "_name", target}}}});
    }
    for (int o : captured_.outputs) {
      Json out = exporting::named("as_tensor", name_of(fresh.at(o)));
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
               {"nodes", nodes_},
               {"tensor_values", tensor_values_},
               {"sym_int_values", size_values_},
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
  const ir::Graph& graph_;
  const std::vector<InputType>& types_;
  const std::vector<NamedTensor>& named_;
  ArchiveSizes sizes_;
  std::set<std::string> taken_;
  std::vector<std::string> user_inputs_;
  std::unordered_map<ir::Value, std::string> names_;
  std::unordered_map<ir::Value, std::pair<std::string, std::string>> targets_;  // of what the archive holds: kind, name
  std::unordered_map<ir::Expr, std::string> size_names_;
  std::vector<import::Record> weights_, constants_;
  Json graph_inputs_ = Json::array(), input_specs_ = Json::array(), graph_outputs_ = Json::array(),
       output_specs_ = Json::array(), nodes_ = Json::array(), tensor_values_ = Json::object(),
       size_values_ = Json::object();
};

}  // namespace

void write_archive(const std::string& path, const Captured& captured, const std::vector<InputType>& inputs,
                   const std::vector<NamedTensor>& named) {
  Writer(captured, inputs, named).write(path);
}

}  // namespace brasa::exporting
