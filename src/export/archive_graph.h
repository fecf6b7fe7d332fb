#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "export/archive_nodes.h"
#include "ir/facts.h"
#include "ir/graph.h"
#include "ops/table.h"

namespace brasa::exporting {

/// Rows that PyTorch has an operator for. What is made of others has to be decomposed before.
bool in_pytorch(const ops::Row& row);

/// The nodes of a recorded graph, or of a body within one, as those of an archive's graph.
class ArchiveGraph {
 public:
  /// `user_inputs` has the names of the program's inputs; what decomposing a body takes for granted goes to `facts`.
  ArchiveGraph(const ArchiveSizes& sizes, const std::vector<std::string>& user_inputs, ir::Facts& facts)
      : nodes(sizes, user_inputs), sizes_(sizes), user_inputs_(user_inputs), facts_(facts) {}

  ArchiveNodes nodes;

  /// What stands for a value that no node gives: a tensor of the archive, or a number as it is in Python.
  void set_name(ir::Value v, const std::string& name) { names_[v] = name; }
  void set_number(ir::Value v, Json number) { numbers_[v] = std::move(number); }
  bool has_name(ir::Value v) const { return names_.contains(v); }
  std::string name_of(ir::Value v);

  /// brasa::Error for an operator that PyTorch has not.
  void add(const ir::Node& n);

 private:
  // How PyTorch spells a node: its operator, by place the parameter and the argument that it has of the node's, and which of the operator's
  // results are the node's.
  struct Spelling {
    std::string target;
    std::vector<std::pair<std::string, int>> arguments;
    std::vector<int> results;
    int all_results;
    std::map<int, Json> given = {};  // what stands for an argument
  };
  Spelling spelled(const ir::Node& n);
  Json end_of(const ir::Node& n, const std::string& name, ir::Expr count);
  Json argument(const ir::Arg& a, const ir::Param& p);
  Json tensors(const std::vector<ir::Value>& list, bool optional);

  // ---- Control flow (archive_bodies.cpp).
  // What the bodies of a node get: those operands that are no numbers of the program, then the symbols.
  struct Given {
    std::span<const ir::Value> operands;
    std::vector<bool> passed;
    std::vector<ir::Expr> symbols;
    std::set<std::string> names;  // of what was listed
  };
  bool add_control_flow(const ir::Node& n);
  void add_cond(const ir::Node& n);
  void add_scan(const ir::Node& n);
  void add_while(const ir::Node& n);
  Given given(std::span<const ir::Value> operands, size_t tensors, const std::vector<ir::Expr>& sizes) const;
  Json list_of(Given& given, size_t first, size_t last);
  Json others_of(Given& given, size_t first);
  std::string copied(const std::string& name, const ir::Type& type);
  /// The first `again` results once more at the end; `single`: the one result is no list.
  Json body(const char* name, const ir::Graph& graph, const Given& given, size_t again = 0, bool single = false);

  const ArchiveSizes& sizes_;
  const std::vector<std::string>& user_inputs_;
  ir::Facts& facts_;
  std::unordered_map<ir::Value, std::string> names_;
  std::unordered_map<ir::Value, Json> numbers_;
};

}  // namespace brasa::exporting
