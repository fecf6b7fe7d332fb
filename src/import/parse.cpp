#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "import/affine.h"
#include "import/graph.h"
#include "import/types.h"
#include "support/error.h"
#include "support/json.h"
#include "support/lazy.h"

// The JSON of torch/_export/serde/schema.py, version 8.
namespace brasa::import {
namespace {

using Json = nlohmann::json;

constexpr int kMaxNesting = 16, kMaxDepth = 400;

class Parser {
 public:
  Parser(std::string source, bool resolve) : source_(std::move(source)), resolve_(resolve) {}

  Program program(const Json& root) {
    const Json& version = field(root, "schema_version");
    int64_t major = integer(field(version, "major"));
    if (major != 8) error(str("schema version ", major, "; 8 is known, which PyTorch 2.6 to 2.15 write"));
    const Json& module = field(root, "graph_module");
    Program out;
    out.source = source_;
    out.graph = graph(field(module, "graph"), 0);
    const Json& signature = field(module, "signature");
    const Json& values = field(field(module, "graph"), "tensor_values");
    for (const Json& spec : list(signature, "input_specs")) out.inputs.push_back(input_spec(spec, values));
    for (const Json& spec : list(signature, "output_specs")) out.outputs.push_back(output_spec(spec));
    if (out.inputs.size() != out.graph.inputs.size() || out.outputs.size() != out.graph.outputs.size())
      error("the signature does not fit the graph's inputs and outputs");
    for (const auto& [symbol, range] : field(root, "range_constraints").items()) {
      Range r{symbol, INT64_MIN, std::nullopt};
      if (range.contains("min_val") && range["min_val"].is_number_integer()) r.least = range["min_val"].get<int64_t>();
      if (range.contains("max_val") && range["max_val"].is_number_integer())
        r.greatest = range["max_val"].get<int64_t>();
      out.ranges.push_back(std::move(r));
    }
    if (root.contains("torch_version") && root["torch_version"].is_string())
      out.torch_version = root["torch_version"].get<std::string>();
    return out;
  }

 private:
  [[noreturn]] void error(const std::string& what) const { fail(str(source_, ": ", what)); }

  const Json& field(const Json& j, const char* name) const {
    if (!j.is_object() || !j.contains(name)) error(str("the program has no '", name, "' where one belongs"));
    return j[name];
  }
  const Json& list(const Json& j, const char* name) const {
    const Json& out = field(j, name);
    if (!out.is_array()) error(str("'", name, "' is no list"));
    return out;
  }
  std::string text(const Json& j) const {
    if (!j.is_string()) error("a name is no string");
    return j.get<std::string>();
  }
  int64_t integer(const Json& j) const {
    if (!j.is_number_integer()) error(str("not an integer: ", j.dump().substr(0, 60)));
    return j.get<int64_t>();
  }
  // JSON has no infinity; PyTorch writes those as texts.
  double real(const Json& j) const {
    if (j.is_number()) return j.get<double>();
    std::string s = j.is_string() ? j.get<std::string>() : "";
    if (s == "Infinity") return INFINITY;
    if (s == "-Infinity") return -INFINITY;
    if (s == "NaN") return NAN;
    error(str("not a number: ", j.dump().substr(0, 60)));
  }
  bool boolean(const Json& j) const {
    if (!j.is_boolean()) error(str("not a bool: ", j.dump().substr(0, 60)));
    return j.get<bool>();
  }
  // The one member of a union.
  std::pair<std::string, const Json*> only(const Json& j) const {
    if (!j.is_object() || j.size() != 1) error("an argument that is not one of a union");
    return {j.begin().key(), &j.begin().value()};
  }

  // ---- Names of the graph that is read.
  struct Scope {
    Graph graph;
    std::map<std::string, int> slots;
    std::map<int, size_t> last_use;  // the node that reads a slot last
  };
  int defined(Scope& scope, const std::string& name) {
    auto [at, fresh] = scope.slots.emplace(name, static_cast<int>(scope.graph.slots.size()));
    if (fresh) scope.graph.slots.push_back(name);
    return at->second;
  }
  int used(Scope& scope, const Json& j) {
    std::string name = text(j);
    auto at = scope.slots.find(name);
    if (at == scope.slots.end()) error(str("'", name, "' is used before it is defined"));
    scope.last_use[at->second] = scope.graph.nodes.size();
    return at->second;
  }

  Graph graph(const Json& j, int depth) {
    if (depth > kMaxNesting) error("graphs nested too deep");
    Scope scope;
    for (const Json& input : list(j, "inputs")) {
      auto [kind, value] = only(input);
      scope.graph.inputs.push_back(kind == "as_none" || !is_name(kind, *value) ? -1 : defined(scope, name_of(*value)));
    }
    for (const Json& n : list(j, "nodes")) {
      Node out = node(scope, n, depth);
      scope.graph.nodes.push_back(std::move(out));
    }
    for (const Json& output : list(j, "outputs")) scope.graph.outputs.push_back({"", value(scope, output, depth)});
    for (auto [slot, at] : scope.last_use)
      if (at < scope.graph.nodes.size()) scope.graph.nodes[at].last_uses.push_back(slot);
    return std::move(scope.graph);
  }

  static bool is_name(const std::string& kind, const Json& value) {
    return value.is_object() &&
           (kind == "as_tensor" || kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") &&
           (value.contains("name") || value.contains("as_name"));
  }
  std::string name_of(const Json& value) const {
    return text(value.contains("name") ? value["name"] : field(value, "as_name"));
  }

  Node node(Scope& scope, const Json& j, int depth) {
    Node out;
    out.target = text(field(j, "target"));
    if (j.contains("name") && j["name"].is_string()) out.name = j["name"].get<std::string>();
    const Json& metadata = field(j, "metadata");
    if (metadata.contains("stack_trace") && metadata["stack_trace"].is_string())
      out.source = last_line(metadata["stack_trace"].get<std::string>());
    for (const Json& input : list(j, "inputs"))
      out.arguments.push_back({text(field(input, "name")), value(scope, field(input, "arg"), depth)});
    for (const Json& output : list(j, "outputs")) {
      auto [kind, v] = only(output);
      if (kind == "as_tensors")
        for (const Json& item : *v) out.outputs.push_back(defined(scope, text(field(item, "name"))));
      else if (kind == "as_none")
        out.outputs.push_back(-1);
      else if (is_name(kind, *v))
        out.outputs.push_back(defined(scope, name_of(*v)));
      else
        error(str("a result of the kind ", kind, " in ", describe(out)));
    }
    if (out.name.empty() && !out.outputs.empty() && out.outputs[0] >= 0)
      out.name = scope.graph.slots[static_cast<size_t>(out.outputs[0])];
    out.run = handler_of(out.target, out.op);
    if (!out.run && resolve_) error(str("Brasa has no operator for ", describe(out)));
    return out;
  }

  // The innermost call of a Python stack: '  File "model.py", line 12, in forward\n    y = relu(x)\n'.
  static std::string last_line(const std::string& trace) {
    size_t file = trace.rfind("File \"");
    if (file == trace.npos) return "";
    std::string line = trace.substr(file + 6, trace.find('\n', file) - file - 6);
    size_t quote = line.find("\", line "), comma = line.find(',', quote == line.npos ? 0 : quote + 8);
    if (quote != line.npos) line = line.substr(0, quote) + ":" + line.substr(quote + 8, comma - quote - 8);
    size_t code = trace.find('\n', file);
    if (code == trace.npos) return line;
    std::string statement = trace.substr(code + 1, trace.find('\n', code + 1) - code - 1);
    statement.erase(
        0, statement.find_first_not_of(' ') == statement.npos ? statement.size() : statement.find_first_not_of(' '));
    return statement.empty() ? line : line + ": " + statement;
  }

  // ---- Arguments.
  decltype(Argument::value) value(Scope& scope, const Json& j, int depth) {
    auto [kind, v] = only(j);
    if (kind == "as_none") return std::monostate();
    if (kind == "as_tensor") return Ref{used(scope, field(*v, "name"))};
    if (kind == "as_optional_tensor") {
      auto [inner, t] = only(*v);
      if (inner == "as_none") return std::monostate();
      return Ref{used(scope, field(*t, "name"))};
    }
    if (kind == "as_tensors" || kind == "as_optional_tensors") {
      Refs out{{}, kind == "as_optional_tensors"};
      for (const Json& item : *v) {
        const Json* t = out.optional ? only(item).second : &item;
        out.slots.push_back(out.optional && only(item).first == "as_none" ? -1 : used(scope, field(*t, "name")));
      }
      return out;
    }
    if (kind == "as_int") return Scalar(integer(*v));
    if (kind == "as_float") return Scalar(real(*v));
    if (kind == "as_bool") return Scalar(boolean(*v));
    if (kind == "as_complex") return Scalar(std::complex<double>(real(field(*v, "real")), real(field(*v, "imag"))));
    if (kind == "as_string") return text(*v);
    if (kind == "as_strings") {
      std::vector<std::string> out;
      for (const Json& item : *v) out.push_back(text(item));
      return out;
    }
    if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
      auto [inner, number] = only(*v);
      if (inner == "as_name") return Ref{used(scope, *number)};
      NumberList::Item item = number_item(inner, *number);
      if (inner == "as_int") return Scalar(item.integer);
      if (inner == "as_float") return Scalar(item.real);
      return Scalar(item.integer != 0);
    }
    if (kind == "as_ints" || kind == "as_sym_ints") return numbers(scope, *v, NumberList::Type::Int);
    if (kind == "as_floats" || kind == "as_sym_floats") return numbers(scope, *v, NumberList::Type::Float);
    if (kind == "as_bools" || kind == "as_sym_bools") return numbers(scope, *v, NumberList::Type::Bool);
    if (kind == "as_scalar_type") return dtype_of_archive(integer(*v), source_);
    if (kind == "as_memory_format") return memory_format_of_archive(integer(*v), source_);
    if (kind == "as_layout") return layout_of_archive(integer(*v), source_);
    if (kind == "as_device") {
      std::string device = text(field(*v, "type"));
      if (v->contains("index") && (*v)["index"].is_number_integer()) device += str(":", (*v)["index"].get<int64_t>());
      return Device(device);
    }
    if (kind == "as_graph") return std::make_shared<const Graph>(graph(field(*v, "graph"), depth + 1));
    error(str("an argument of the kind ", kind));
  }

  NumberList::Item number_item(const std::string& kind, const Json& j) const {
    NumberList::Item item;
    if (kind == "as_int")
      item.integer = integer(j), item.real = static_cast<double>(item.integer);
    else if (kind == "as_float")
      item.real = real(j);
    else if (kind == "as_bool")
      item.integer = boolean(j);
    else
      error(str("a number of the kind ", kind));
    return item;
  }

  NumberList numbers(Scope& scope, const Json& j, NumberList::Type type) {
    static constexpr const char* kKinds[] = {"as_int", "as_float", "as_bool"};
    NumberList out{type, {}};
    for (const Json& item : j) {
      if (!item.is_object()) {
        out.items.push_back(number_item(kKinds[static_cast<size_t>(type)], item));
      } else if (auto [kind, v] = only(item); kind == "as_name") {
        out.items.push_back({used(scope, *v), 0, 0});
      } else {
        out.items.push_back(number_item(kind, *v));
      }
    }
    return out;
  }

  // ---- The signature.
  InputSpec input_spec(const Json& j, const Json& values) {
    auto [kind, v] = only(j);
    InputSpec out;
    auto meta_of = [&](const std::string& name) {
      if (values.contains(name)) out.meta = meta(values[name]);
    };
    if (kind == "user_input") {
      auto [argument, value] = only(field(*v, "arg"));
      if (is_name(argument, *value)) {
        out.name = name_of(*value);
        if (argument == "as_tensor") meta_of(out.name);
      } else if (argument == "as_none") {
        out.kind = InputSpec::Kind::Number;
        out.none = true;
      } else {
        out.kind = InputSpec::Kind::Number;
        out.number = constant(argument, *value);
      }
      return out;
    }
    if (kind == "constant_input") {
      out.kind = InputSpec::Kind::Number;
      out.name = text(field(*v, "name"));
      auto [argument, value] = only(field(*v, "value"));
      if (argument == "as_none" || argument == "as_string")
        out.none = true;
      else
        out.number = constant(argument, *value);
      return out;
    }
    if (kind == "parameter") {
      out.kind = InputSpec::Kind::Parameter;
      out.name = text(field(*v, "parameter_name"));
    } else if (kind == "buffer") {
      out.kind = InputSpec::Kind::Buffer;
      out.name = text(field(*v, "buffer_name"));
      if (v->contains("persistent")) out.persistent = boolean((*v)["persistent"]);
    } else if (kind == "tensor_constant") {
      out.kind = InputSpec::Kind::Constant;
      out.name = text(field(*v, "tensor_constant_name"));
    } else {
      error(str("an input of the kind ", kind));
    }
    return out;
  }
  Scalar constant(const std::string& kind, const Json& j) const {
    if (kind == "as_int") return Scalar(integer(j));
    if (kind == "as_float") return Scalar(real(j));
    if (kind == "as_bool") return Scalar(boolean(j));
    // A text that the graph does not use.
    if (kind == "as_string") return Scalar(int64_t{0});
    error(str("an input of the kind ", kind));
  }

  OutputSpec output_spec(const Json& j) {
    using Kind = OutputSpec::Kind;
    static constinit Lazy<std::map<std::string, std::pair<Kind, const char*>>> kKinds([] {
      return std::map<std::string, std::pair<Kind, const char*>>{
          {"user_output", {Kind::User, nullptr}},
          {"loss_output", {Kind::Loss, nullptr}},
          {"buffer_mutation", {Kind::BufferMutation, "buffer_name"}},
          {"parameter_mutation", {Kind::ParameterMutation, "parameter_name"}},
          {"user_input_mutation", {Kind::InputMutation, "user_input_name"}},
          {"gradient_to_parameter", {Kind::ParameterGradient, "parameter_name"}},
          {"gradient_to_user_input", {Kind::InputGradient, "user_input_name"}},
      };
    });
    auto [kind, v] = only(j);
    auto at = kKinds->find(kind);
    if (at == kKinds->end()) error(str("an output of the kind ", kind));
    return {at->second.first, at->second.second ? text(field(*v, at->second.second)) : ""};
  }

  TensorMeta meta(const Json& j) {
    TensorMeta out;
    out.dtype = dtype_of_archive(integer(field(j, "dtype")), source_);
    for (const Json& size : list(j, "sizes")) {
      auto [kind, v] = only(size);
      if (kind == "as_int")
        out.sizes.push_back({"", integer(*v)});
      else
        out.sizes.push_back(size_of(text(field(*v, "expr_str")), hint_of(*v)));
    }
    return out;
  }
  static std::optional<int64_t> hint_of(const Json& v) {
    if (!v.contains("hint") || !v["hint"].is_object() || !v["hint"].contains("as_int")) return std::nullopt;
    const Json& hint = v["hint"]["as_int"];
    return hint.is_number_integer() ? std::optional(hint.get<int64_t>()) : std::nullopt;
  }
  static Size size_of(const std::string& expression, std::optional<int64_t> example) {
    std::optional<Affine> a = affine_of(expression);
    if (!a || a->symbol.empty() || a->factor < 1) return {"", std::nullopt, example};
    return {a->symbol, std::nullopt, example, a->factor, a->offset};
  }

  std::string source_;
  bool resolve_;
};

}  // namespace

Program parse_program(const std::string& json, const std::string& source, std::optional<Device> device, bool resolve) {
  Program out = Parser(source, resolve).program(parse_json(json, source, kMaxDepth));
  out.device = device;
  return out;
}

bool Program::joint() const {
  return std::any_of(outputs.begin(), outputs.end(), [](const OutputSpec& o) {
    return o.kind == OutputSpec::Kind::ParameterGradient || o.kind == OutputSpec::Kind::InputGradient;
  });
}

std::string describe(const Node& node) {
  std::string out = str("node '", node.name, "' (", node.target, ")");
  return node.source.empty() ? out : str(out, ", made by ", node.source);
}

}  // namespace brasa::import
