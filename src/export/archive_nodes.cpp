#include "export/archive_nodes.h"

#include <cctype>
#include <cmath>

#include "import/types.h"
#include "support/error.h"

namespace brasa::exporting {

std::string ArchiveNodes::fresh_name(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "v_" + name;
  std::string out = name;
  for (int k = 1; !taken_.insert(out).second; ++k) out = str(name, "_", k);
  return out;
}

Json ArchiveNodes::number(double v) {
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v > 0 ? "Infinity" : "-Infinity";
  return v;
}

namespace {

Json expression(const std::string& text, Json hint) {
  return {{"as_expr", {{"expr_str", text}, {"hint", std::move(hint)}}}};
}

}  // namespace

Json ArchiveNodes::size_json(ir::Expr e) const {
  if (e.is_constant()) return {{"as_int", e.constant()}};
  return expression(sizes_.text(e), sizes_.is_known(e) ? Json{{"as_int", sizes_.hint(e)}} : Json());
}

void ArchiveNodes::define(const std::string& name, DType dtype, const ir::Shape& shape, bool requires_grad) {
  Json sizes = Json::array(), strides = Json::array();
  for (ir::Expr e : shape) sizes.push_back(size_json(e));
  for (ir::Expr e : ir::contiguous_strides(shape)) strides.push_back(size_json(e));
  tensor_values_[name] = {
      {"dtype", import::archive_number_of(dtype)},       {"sizes", sizes},     {"requires_grad", requires_grad},
      {"device", {{"type", "cpu"}, {"index", nullptr}}}, {"strides", strides}, {"storage_offset", {{"as_int", 0}}},
      {"layout", import::archive_number_of(kStrided)}};
}

void ArchiveNodes::define(const std::string& name, const ir::Type& type, bool requires_grad) {
  ir::Shape shape;
  for (ir::Expr e : type.shape) shape.push_back(sizes_(e));
  define(name, type.dtype, shape, requires_grad);
}

void ArchiveNodes::push(const std::string& target, const std::vector<Argument>& arguments, Json outputs,
                        const std::string& name, const Json& single_result) {
  constexpr int kPositional = 1, kKeyword = 2;
  Json inputs = Json::array();
  for (const Argument& a : arguments)
    inputs.push_back({{"name", a.name}, {"arg", a.value}, {"kind", a.keyword ? kKeyword : kPositional}});
  nodes_.push_back({{"target", target},
                    {"inputs", inputs},
                    {"outputs", std::move(outputs)},
                    {"metadata", Json::object()},
                    {"is_hop_single_tensor_return", single_result},
                    {"name", name}});
}

std::vector<std::string> ArchiveNodes::add(const std::string& target, const std::vector<Argument>& arguments,
                                           const std::vector<ir::Type>& results, bool list) {
  std::string base = fresh_name(target.substr(0, target.find('.')));
  std::vector<std::string> names;
  Json outputs = Json::array(), items = Json::array();
  for (const ir::Type& type : results) {
    names.push_back(results.size() == 1 && !list ? base : fresh_name("getitem"));
    define(names.back(), type);
    items.push_back({{"name", names.back()}});
    outputs.push_back(tensor(names.back()));
  }
  if (list) outputs = Json::array({{{"as_tensors", items}}});
  push("torch.ops.aten." + target, arguments, std::move(outputs), base);
  return names;
}

std::vector<std::string> ArchiveNodes::add_of_graphs(const std::string& op, const std::vector<Json>& arguments,
                                                     const std::vector<ir::Type>& results) {
  std::vector<std::string> names;
  std::vector<Argument> inputs;
  Json outputs = Json::array();
  for (const Json& a : arguments) inputs.push_back({"", a});
  for (const ir::Type& type : results) {
    names.push_back(fresh_name("getitem"));
    define(names.back(), type);
    outputs.push_back(tensor(names.back()));
  }
  push("torch.ops.higher_order." + op, inputs, std::move(outputs), fresh_name(op), false);
  return names;
}

std::string ArchiveNodes::size_node(const std::string& target, const char* base,
                                    const std::vector<Argument>& arguments) {
  std::string name = fresh_name(base);
  push(target, arguments, {{{"as_sym_int", {{"as_name", name}}}}}, name);
  return name;
}

std::string ArchiveNodes::given_size(ir::Expr symbol) {
  std::string name = fresh_name(str("s", symbol->id));
  size_values_[name] = size_json(symbol);
  return size_names_[symbol] = name;
}

void ArchiveNodes::read_size(ir::Expr symbol, const std::string& from) {
  std::string name = size_node("torch.ops.aten.item.default", "item", {{"self", tensor(from)}});
  size_values_[name] = size_json(symbol);
  size_names_[symbol] = name;
}

void ArchiveNodes::require(ir::Expr raw, const std::string& message) {
  ir::Expr not_negative = sizes_(raw);
  if (not_negative->min >= 0) return;
  Json size = integer(not_negative);
  std::string name = fresh_name("ge");
  push("_operator.ge", {{"a", size}, {"b", {{"as_int", 0}}}}, {{{"as_sym_bool", {{"as_name", name}}}}}, name);
  truth_values_[name] = expression(str("GreaterThan(", sizes_.text(not_negative), ", Integer(0))"), Json());
  push("torch.ops.aten._assert_scalar.default",
       {{"self", {{"as_sym_bool", {{"as_name", name}}}}}, {"assert_msg", {{"as_string", message}}}}, Json::array(),
       fresh_name("_assert_scalar_default"));
}

std::string ArchiveNodes::size_name(ir::Expr e) {
  if (auto at = size_names_.find(e); at != size_names_.end()) return at->second;
  std::string name;
  auto binary = [&](const std::string& target, const char* base, ir::Expr a, ir::Expr b) {
    Json left = integer(a), right = integer(b);
    name = size_node(target, base, {{"a", left}, {"b", right}});
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
      name = size_node("torch.ops.aten.sym_size.int", "sym_size_int",
                       {{"self", tensor(user_inputs_[input])}, {"dim", {{"as_int", dim}}}});
      break;
    }
    case ir::ExprKind::Add: fold("_operator.add", "add", [](ir::Expr a, ir::Expr b) { return a + b; }, e->value); break;
    case ir::ExprKind::Mul: fold("_operator.mul", "mul", [](ir::Expr a, ir::Expr b) { return a * b; }, e->value); break;
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

Json ArchiveNodes::integer(ir::Expr raw) {
  ir::Expr e = sizes_(raw);
  if (e.is_constant()) return {{"as_int", e.constant()}};
  return {{"as_sym_int", {{"as_name", size_name(e)}}}};
}

Json ArchiveNodes::integers(const std::vector<ir::Expr>& list) {
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

Json ArchiveNodes::graph(const Json& inputs, const Json& outputs, bool single) const {
  return {{"inputs", inputs},
          {"outputs", outputs},
          {"nodes", nodes_},
          {"tensor_values", tensor_values_},
          {"sym_int_values", size_values_},
          {"sym_bool_values", truth_values_},
          {"is_single_tensor_return", single},
          {"custom_obj_values", Json::object()},
          {"sym_float_values", Json::object()}};
}

}  // namespace brasa::exporting
