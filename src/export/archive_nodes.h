#pragma once

#include <complex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "export/archive_sizes.h"

namespace brasa::exporting {

using Json = nlohmann::ordered_json;

/// The nodes of an archive's graph, and the names and types of what they give.
class ArchiveNodes {
 public:
  /// `user_inputs` has their names.
  ArchiveNodes(const ArchiveSizes& sizes, const std::vector<std::string>& user_inputs)
      : sizes_(sizes), user_inputs_(user_inputs) {}

  std::string fresh_name(std::string name);
  void define(const std::string& name, const ir::Type& type, bool requires_grad = false);
  void define(const std::string& name, DType dtype, const ir::Shape& shape, bool requires_grad = false);
  bool defined(const std::string& name) const { return tensor_values_.contains(name); }

  static Json named(const char* kind, const std::string& name) { return {{kind, {{"name", name}}}}; }
  static Json tensor(const std::string& name) { return named("as_tensor", name); }
  static Json number(double v);
  static Json complex_number(std::complex<double> v) {
    return {{"as_complex", {{"real", number(v.real())}, {"imag", number(v.imag())}}}};
  }
  /// A size, as an argument: what is no constant nodes compute.
  Json integer(ir::Expr e);
  Json integers(const std::vector<ir::Expr>& list);

  struct Argument {
    std::string name;
    Json value;
    bool keyword = false;
  };
  /// A node of `results` results, which get names; `list`: they are one list.
  std::vector<std::string> add(const std::string& target, const std::vector<Argument>& arguments,
                               const std::vector<ir::Type>& results, bool list = false);

  /// The same of an operator that takes graphs, which gives a list.
  std::vector<std::string> add_of_graphs(const std::string& op, const std::vector<Json>& arguments,
                                         const std::vector<ir::Type>& results);
  /// The name of a symbol that the graph gets as an argument.
  std::string given_size(ir::Expr symbol);

  /// From here on the symbol is the only element of this tensor.
  void read_size(ir::Expr symbol, const std::string& from);
  /// An error of a run, with the message, where it is negative.
  void require(ir::Expr not_negative, const std::string& message);

  /// The graph of these nodes; `single`: its one output is no list.
  Json graph(const Json& inputs, const Json& outputs, bool single = false) const;

 private:
  Json size_json(ir::Expr e) const;
  std::string size_name(ir::Expr e);
  std::string size_node(const std::string& target, const char* base, const std::vector<Argument>& arguments);
  void push(const std::string& target, const std::vector<Argument>& arguments, Json outputs, const std::string& name,
            const Json& single_result = nullptr);

  const ArchiveSizes& sizes_;
  const std::vector<std::string>& user_inputs_;
  std::set<std::string> taken_;
  std::unordered_map<ir::Expr, std::string> size_names_;
  Json nodes_ = Json::array(), tensor_values_ = Json::object(), size_values_ = Json::object(),
       truth_values_ = Json::object();
};

}  // namespace brasa::exporting
