#include "export/archive_graph.h"

#include <algorithm>

#include "export/archive_primitives.h"
#include "import/types.h"
#include "support/error.h"

namespace brasa::exporting {

// PyTorch's operators, and writes through those views that it has an operator for.
bool in_pytorch(const ops::Row& row) {
  std::string_view name = row.schema.name;
  if (name.starts_with("put::aten::")) {
    std::string_view view = name.substr(11, name.find_first_of("./") - 11);
    return view == "slice" || view == "select" || view == "diagonal" || view == "as_strided";
  }
  return (name.starts_with("aten::") && !row.not_in_pytorch) || name.starts_with("sized::aten::arange");
}

// ---- Arguments.
// A number that has to be a tensor becomes one.
std::string ArchiveGraph::name_of(ir::Value v) {
  if (auto at = names_.find(v); at != names_.end()) return at->second;
  auto number = numbers_.find(v);
  BRASA_CHECK(number != numbers_.end(), "export: the function draws random numbers, for which an archive has no state");
  const ir::Type& type = ir::type_of(v);
  return names_[v] = nodes
                         .add("full.default",
                              {{"size", {{"as_ints", Json::array()}}},
                               {"fill_value", number->second},
                               {"dtype", {{"as_scalar_type", import::archive_number_of(type.dtype)}}, true}},
                              {type})
                         .front();
}

Json ArchiveGraph::tensors(const std::vector<ir::Value>& list, bool optional) {
  Json out = Json::array();
  for (ir::Value v : list) {
    if (!optional)
      out.push_back({{"name", name_of(v)}});
    else
      out.push_back(v ? ArchiveNodes::tensor(name_of(v)) : Json{{"as_none", true}});
  }
  return {{optional ? "as_optional_tensors" : "as_tensors", out}};
}

Json ArchiveGraph::argument(const ir::Arg& a, const ir::Param& p) {
  if (a.is_none()) return {{"as_none", true}};
  if (auto* v = a.get_if<ir::Value>()) {
    auto number = numbers_.find(*v);
    return number != numbers_.end() && ir::type_of(*v).weak ? number->second : ArchiveNodes::tensor(name_of(*v));
  }
  if (auto* v = a.get_if<std::vector<ir::Value>>()) return tensors(*v, p.optional_items);
  if (auto* v = a.get_if<ir::Expr>()) {
    if (p.type == ir::ParamType::Float && sizes_(*v).is_constant())
      return {{"as_float", static_cast<double>(sizes_(*v).constant())}};
    return nodes.integer(*v);
  }
  if (auto* v = a.get_if<std::vector<ir::Expr>>()) return nodes.integers(*v);
  if (auto* v = a.get_if<double>()) return {{"as_float", ArchiveNodes::number(*v)}};
  if (auto* v = a.get_if<bool>()) return {{"as_bool", *v}};
  if (auto* v = a.get_if<std::complex<double>>()) return ArchiveNodes::complex_number(*v);
  if (auto* v = a.get_if<std::string>()) return {{"as_string", *v}};
  if (auto* v = a.get_if<DType>()) return {{"as_scalar_type", import::archive_number_of(*v)}};
  if (auto* v = a.get_if<std::vector<bool>>()) return {{"as_bools", *v}};
  if (auto* v = a.get_if<std::vector<double>>()) {
    Json list = Json::array();
    for (double d : *v) list.push_back(ArchiveNodes::number(d));
    return {{"as_floats", list}};
  }
  fail(str("export: argument '", p.name, "' has no form in an archive"));
}

// ---- Nodes.
namespace {

bool says_nothing(const ir::Arg& a, const ir::Param& p) {
  using Type = ir::ParamType;
  if (p.type == Type::Layout || p.type == Type::Device || p.type == Type::MemoryFormat || p.type == Type::Generator)
    return true;
  return p.keyword_only && (a.is_none() || (p.default_value && *p.default_value == a));
}

}  // namespace

ArchiveGraph::Spelling ArchiveGraph::spelled(const ir::Node& n) {
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
Json ArchiveGraph::end_of(const ir::Node& n, const std::string& name, ir::Expr count) {
  BRASA_CHECK(name.starts_with("aten::arange"), "export: ", name, " of a length that varies has no form in an archive");
  auto whole = [&](std::string_view parameter, int64_t otherwise) {
    int i = n.op->schema.index_of(parameter);
    Json j = i < 0 ? Json{{"as_int", otherwise}} : argument(n.args[i], n.op->schema.params[i]);
    BRASA_CHECK(j.contains("as_int"), "export: a range of a length that varies begins and goes on by whole numbers");
    return j["as_int"].get<int64_t>();
  };
  return nodes.integer(whole("start", 0) + whole("step", 1) * count);
}

void ArchiveGraph::add(const ir::Node& n) {
  auto result = [&](size_t k) { return ir::Value{const_cast<ir::Node*>(&n), static_cast<uint32_t>(k)}; };
  const ir::Schema& schema = n.op->schema;
  if (add_control_flow(n)) return;
  if (schema.name.starts_with("prim::")) {
    std::vector<std::string> names = write_primitive(nodes, n, [&](ir::Value v) { return name_of(v); });
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
      nodes.add(as.target, inputs, types, schema.returns.size() == 1 && schema.returns[0].list);
  for (size_t k = 0; k < as.results.size(); ++k) names_[result(k)] = names[as.results[k]];
}

}  // namespace brasa::exporting
