#pragma once

#include <functional>
#include <string>
#include <vector>

#include "export/archive_nodes.h"
#include "ir/graph.h"

namespace brasa::exporting {

using Names = std::vector<std::string>;

/// What writes a primitive in PyTorch's operators: its operands as arguments, and the nodes that take them.
class NodeWriter {
 public:
  NodeWriter(ArchiveNodes& to, const ir::Node& node, const std::function<std::string(ir::Value)>& name_of)
      : to_(to), n_(node), name_of_(name_of) {}

 protected:
  using Arguments = std::vector<ArchiveNodes::Argument>;

  ir::Value value(size_t i) const { return n_.arg<ir::Value>(i); }
  const ir::Type& type(size_t i) const { return ir::type_of(value(i)); }
  Json of(size_t i) const { return of(value(i)); }
  Json of(ir::Value v) const { return ArchiveNodes::tensor(name_of_(v)); }
  static Json of(const std::string& name) { return ArchiveNodes::tensor(name); }
  static Json an_int(int64_t n) { return {{"as_int", n}}; }
  static Json a_bool(bool b) { return {{"as_bool", b}}; }
  std::string aten(const std::string& target, const Arguments& arguments, const ir::Type& type) {
    return to_.add(target, arguments, {type}).front();
  }

  ArchiveNodes& to_;
  const ir::Node& n_;
  const std::function<std::string(ir::Value)>& name_of_;
};

}  // namespace brasa::exporting
