#pragma once

#include <memory>
#include <string_view>

#include "compiler/compile.h"
#include "compiler/fusion/fuse.h"
#include "compiler/libraries/library.h"
#include "compiler/run/size_program.h"
#include "support/small_vector.h"

namespace brasa::compiler {

/// The body of a node of control flow, compiled with the sizes that are known outside. What else it assumes of sizes, the whole graph assumes.
class CompiledBody {
 public:
  /// `sizes` says what the body's symbols are outside.
  CompiledBody(const ir::Graph& body, const std::vector<ir::Expr>& sizes, std::string_view name,
               const CompilerOptions& options, ir::Facts& facts);
  /// What its symbols are where the outer ones are these.
  SmallVector<int64_t, 16> symbols(const int64_t* outer) const;
  const Executable& operator*() const { return *executable_; }
  const Executable* operator->() const { return executable_.get(); }

 private:
  std::vector<SizeProgram> sizes_;
  std::shared_ptr<Executable> executable_;
};

/// A call of a node of control flow: bodies run between the memory of the node's operands and that of its results.
class BodyCall : public DeviceCall {
 public:
  const Report* report() const override { return &report_; }

 protected:
  /// Which input of the group an operand is.
  static size_t place_of(const Group& group, ir::Value operand);
  /// The kernels of one more body.
  void add_report(const Executable& body);
  double products(const int64_t*) const override { return 0; }

 private:
  Report report_;
};

/// Of a group that is one node of control flow.
template <class Call, class View>
std::unique_ptr<DeviceCall> prepare_bodies(const Group& g, const CompilerOptions& options, ir::Facts& facts) {
  return std::make_unique<Call>(g, View(*g.graph->outputs()[0].value.node), options, facts);
}

}  // namespace brasa::compiler
